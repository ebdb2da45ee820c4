# oomretry: `make demo` shows it, `make test` tests it, `make install PREFIX=DIR` installs it.

VERSION := $(shell cat VERSION)
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
CC ?= gcc
AR ?= ar
PYTHON ?= /usr/bin/python3

# What packagers set wins; CI sets WERROR=1, the unit tests SANITIZE=1.
OPT ?= -O2 -g
CFLAGS ?= $(OPT) -fstack-protector-strong -D_FORTIFY_SOURCE=2
LDFLAGS ?= -Wl,-z,relro,-z,now,-z,noexecstack
# Messages for people are bounded on purpose: truncation is no mistake there.
WARN := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
	-Wno-format-truncation
ifdef WERROR
WARN += -Werror
endif
ifdef SANITIZE
CFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LDFLAGS := -fsanitize=address,undefined
endif

PKGS := jansson libhs libpcre2-8 tree-sitter yaml-0.1
AGENT_PKGS := sqlite3 libcurl libevent libarchive
STD := -std=gnu11 -D_GNU_SOURCE -DOOMRETRY_VERSION='"$(VERSION)"' -Iinclude -I. -MMD -MP -fPIE
# Deferred: the packages may only be there after contrib/install-deps has run.
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) $(AGENT_PKGS))
PKG_LIBS = $(shell pkg-config --libs $(PKGS))
AGENT_LIBS = $(PKG_LIBS) $(shell pkg-config --libs $(AGENT_PKGS)) -lmunge -lm -lpthread

CORE_SRC := $(wildcard policies/*.c policies/*/*.c)
# plugin/restore.c is shared by the launcher and oomrun.
AGENT_SRC := $(wildcard db/*.c agent/lib/*.c agent/evidence/*.c agent/sched/*.c agent/head/*.c) \
	plugin/restore.c
RUN_SRC := $(wildcard agent/run/*.c)
NODE_SRC := $(wildcard agent/node/*.c)
CTL_SRC := $(wildcard agent/ctl/*.c)
PLUGIN_SRC := $(wildcard plugin/spank_*.c)
START_SRC := plugin/oomstart.c plugin/restore.c
PRELOAD_SRC := $(wildcard agent/preload/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_HELP := $(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c))
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC := $(wildcard tests/bench/bench_*.c)

# `make V=1` shows the commands.
ifndef V
Q := @
say = @printf '%-8s %s\n' '$(1)' '$(2)'
else
say = @:
endif

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
CORE_OBJ := $(call obj,$(CORE_SRC))
AGENT_OBJ := $(call obj,$(AGENT_SRC))
GRAMMAR := $(BUILD)/grammar
GRAMMAR_OBJ := $(GRAMMAR)/parser.o $(GRAMMAR)/scanner.o
LIBS := $(BUILD)/liboomagent.a $(BUILD)/liboomcore.a

PROGRAMS := $(BUILD)/bin/oomctl $(BUILD)/bin/oomrun $(BUILD)/sbin/oomagent \
	$(BUILD)/libexec/oomretry/oomstart $(BUILD)/libexec/oomretry/liboomargv.so \
	$(BUILD)/lib/slurm/spank_oomretry.so
UNIT_BIN := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))

.PHONY: all deps demo test unit fuzz bench bench-ladder chaos install uninstall clean format format-check lint
.DEFAULT_GOAL := all
.SECONDARY:

all: $(PROGRAMS) $(BUILD)/share/oomretry

# --- programs -----------------------------------------------------------------------------------

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(STD) $(WARN) $(CFLAGS) $(PKG_CFLAGS) -c -o $@ $<

# Its assembler takes the files in; the compiler's dependency list does not know them.
$(BUILD)/obj/db/migrations.o: $(wildcard db/migrations/*.sql)

$(GRAMMAR)/parser.c:
	contrib/fetch-grammar $(GRAMMAR)
	@touch $@
$(GRAMMAR)/scanner.c: $(GRAMMAR)/parser.c
$(GRAMMAR)/%.o: $(GRAMMAR)/%.c
	$(call say,CC,$@)
	$(Q)$(CC) -std=gnu11 -O2 -fPIE -w -I$(GRAMMAR) -c -o $@ $<

$(BUILD)/liboomcore.a: $(CORE_OBJ) $(GRAMMAR_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/liboomagent.a: $(AGENT_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

define program
$(1): $(call obj,$(2)) $(LIBS)
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -pie -o $$@ $$^ $$(AGENT_LIBS)
endef
$(eval $(call program,$(BUILD)/bin/oomctl,$(CTL_SRC)))
$(eval $(call program,$(BUILD)/bin/oomrun,$(RUN_SRC)))
$(eval $(call program,$(BUILD)/sbin/oomagent,$(NODE_SRC)))

# The plugin and what it starts link nothing but libc.
$(BUILD)/lib/slurm/spank_oomretry.so: $(PLUGIN_SRC) plugin/spank_oomretry.map $(wildcard plugin/*.h)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -MMD -MP -fPIE,$(STD)) $(WARN) $(CFLAGS) $(LDFLAGS) -fPIC -shared \
		-fvisibility=hidden -Wl,--version-script=plugin/spank_oomretry.map -o $@ $(PLUGIN_SRC)
$(BUILD)/libexec/oomretry/oomstart: $(START_SRC) plugin/restore.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -MMD -MP,$(STD)) $(WARN) $(CFLAGS) $(LDFLAGS) -pie -o $@ $(START_SRC)
$(BUILD)/libexec/oomretry/liboomargv.so: $(PRELOAD_SRC)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -MMD -MP -fPIE,$(STD)) $(WARN) $(CFLAGS) $(LDFLAGS) -fPIC -shared \
		-fvisibility=hidden -o $@ $(PRELOAD_SRC) -ldl

# The build directory has the shape of an installed tree: programs find ../share/oomretry.
$(BUILD)/share/oomretry:
	@mkdir -p $@
	ln -sfnr policies/signatures $@/signatures
	ln -sfnr policies/frameworks $@/frameworks

# --- tests --------------------------------------------------------------------------------------

deps:
	@contrib/install-deps

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(call obj,$(UNIT_HELP)) $(LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pie -o $@ $^ -lcmocka $(AGENT_LIBS)

unit: $(UNIT_BIN) $(BUILD)/share/oomretry
	@set -e; for t in $(UNIT_BIN); do $$t; done

test: deps
	$(MAKE) -j$$(nproc) all
	$(MAKE) -j$$(nproc) unit
	PYTHON=$(PYTHON) tests/run-all $(BUILD)

demo: deps
	$(MAKE) -j$$(nproc) all
	contrib/demo

# libFuzzer targets; `make fuzz SECONDS=600` runs each for that long.
SECONDS ?= 60
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
$(BUILD)/fuzz/%: tests/fuzz/%.c $(CORE_SRC) $(GRAMMAR_OBJ)
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)clang $(filter-out -MMD -MP -fPIE,$(STD)) $(PKG_CFLAGS) $(FUZZ_FLAGS) -o $@ $^ $(PKG_LIBS) -lm
fuzz: $(FUZZ_BIN)
	@set -e; for f in $(FUZZ_BIN); do n=$$(basename $$f); \
		$$f -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix=$(BUILD)/fuzz/ tests/fuzz/corpus/$${n#fuzz_}; done

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pie -o $@ $^ $(AGENT_LIBS)
bench: all $(BENCH_BIN)
	@set -e; for b in tests/bench/*.sh; do $$b $(BUILD); done
bench-ladder: all
	$(PYTHON) tests/bench/ladder.py --build $(BUILD)

# Random kills on a real cluster; `make chaos RUNS=300`.
RUNS ?= 300
chaos: all
	OOMRETRY_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/cluster/chaos.py --runs $(RUNS)

# --- care ---------------------------------------------------------------------------------------

C_FILES := $(shell git ls-files '*.c' '*.h' 2>/dev/null)
format:
	clang-format -i $(C_FILES)
format-check:
	@clang-format --dry-run -Werror $(C_FILES)
lint: format-check
	@cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr \
		--enable=warning,portability --suppress=missingIncludeSystem \
		--suppress=varFuncNullUB --suppress=toomanyconfigs -Iinclude -I. \
		--library=contrib/cppcheck.cfg --max-configs=1 \
		$(CORE_SRC) $(AGENT_SRC) $(RUN_SRC) $(NODE_SRC) $(CTL_SRC) $(PLUGIN_SRC) $(START_SRC)

clean:
	rm -rf $(BUILD)

# --- installation -------------------------------------------------------------------------------

DEST := $(DESTDIR)$(PREFIX)
install: all
	install -d $(DEST)/bin $(DEST)/sbin $(DEST)/libexec/oomretry $(DEST)/lib/slurm \
		$(DEST)/share/oomretry/signatures $(DEST)/share/oomretry/frameworks \
		$(DEST)/share/oomretry/examples $(DEST)/share/man/man1 $(DEST)/share/man/man8 \
		$(DEST)/share/doc/oomretry/docs $(DEST)/share/bash-completion/completions \
		$(DEST)/lib/systemd/system
	install -m 755 $(BUILD)/bin/oomctl $(BUILD)/bin/oomrun $(DEST)/bin/
	install -m 755 $(BUILD)/sbin/oomagent $(DEST)/sbin/
	install -m 755 $(BUILD)/libexec/oomretry/* $(DEST)/libexec/oomretry/
	install -m 755 $(BUILD)/lib/slurm/spank_oomretry.so $(DEST)/lib/slurm/
	install -m 644 policies/signatures/*.json $(DEST)/share/oomretry/signatures/
	install -m 644 policies/frameworks/*.json $(DEST)/share/oomretry/frameworks/
	install -m 644 contrib/completions/oomctl $(DEST)/share/bash-completion/completions/
	@for f in contrib/examples/*; do install -m 644 "$$f" $(DEST)/share/oomretry/examples/; done
	install -m 644 contrib/systemd/oomagent.service $(DEST)/lib/systemd/system/
	@sed -i '/^#/!s|/usr/local|$(PREFIX)|g' $(DEST)/share/oomretry/examples/* $(DEST)/lib/systemd/system/oomagent.service
	@for f in contrib/man/*.[18]; do [ ! -f "$$f" ] || install -m 644 "$$f" $(DEST)/share/man/man$${f##*.}/; done
	install -m 644 README.md LICENSE $(DEST)/share/doc/oomretry/
	install -m 644 docs/*.md $(DEST)/share/doc/oomretry/docs/

uninstall:
	rm -f $(DEST)/bin/oomctl $(DEST)/bin/oomrun $(DEST)/sbin/oomagent $(DEST)/lib/slurm/spank_oomretry.so \
		$(DEST)/lib/systemd/system/oomagent.service
	rm -f $(DEST)/share/man/man1/oomctl.1 $(DEST)/share/man/man1/oomrun.1 $(DEST)/share/man/man8/oomagent.8 \
		$(DEST)/share/man/man8/spank_oomretry.8 $(DEST)/share/bash-completion/completions/oomctl
	rm -rf $(DEST)/libexec/oomretry $(DEST)/share/oomretry $(DEST)/share/doc/oomretry

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
