/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings changed in YAML and JSON texts. The properties hold for every case and for texts that
 * are made at random: nothing else changes, the present value changes nothing, and what was done
 * can be undone to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/confedit.h"

struct row {
    const char *about;
    enum oom_config_format format;
    const char *path, *value, *type;
    const char *before;
    const char *after; /* NULL: refused, with `error` in the message */
    const char *error;
};

#define Y OOM_CONFIG_YAML
#define J OOM_CONFIG_JSON

static const struct row rows[] = {
    /* ---- values */
    {"plain", Y, "a", "2", NULL, "a: 1\n", "a: 2\n", NULL},
    {"comment behind", Y, "a", "2", NULL, "a: 1  # one\nb: 3\n", "a: 2  # one\nb: 3\n", NULL},
    {"nested", Y, "a.b.c", "x", NULL, "a:\n  b:\n    c: y\n    d: 1\n",
     "a:\n  b:\n    c: x\n    d: 1\n", NULL},
    {"single quotes stay", Y, "a", "new", NULL, "a: 'old'\n", "a: 'new'\n", NULL},
    {"double quotes stay", Y, "a", "n\"w", NULL, "a: \"old\"\n", "a: \"n\\\"w\"\n", NULL},
    {"a quoted number is text", Y, "a", "16", NULL, "a: '8'\n", "a: '16'\n", NULL},
    {"a known number is none", Y, "a", "16", "int", "a: '8'\n", "a: 16\n", NULL},
    {"a word instead of a number", Y, "a", "auto", NULL, "a: 8\n", "a: auto\n", NULL},
    {"text like a boolean", Y, "a", "no", "string", "a: x\n", "a: \"no\"\n", NULL},
    {"text with a colon", Y, "a", "x: y", NULL, "a: x\n", "a: \"x: y\"\n", NULL},
    {"capital booleans", Y, "a", "false", "bool", "a: True\n", "a: False\n", NULL},
    {"null", Y, "a", "null", NULL, "a: 1\n", "a: null\n", NULL},
    {"nothing there", Y, "a", "1", NULL, "a:\nb: 2\n", "a: 1\nb: 2\n", NULL},
    {"nothing there but a comment", Y, "a", "1", NULL, "a:   # later\n", "a: 1   # later\n", NULL},
    {"PyYAML's floats", Y, "a", "1e-5", NULL, "a: 1.0e-4\n", "a: 1.0e-5\n", NULL},
    {"the same number stays as written", Y, "a", "1e-4", NULL, "a: 1.0e-4\n", "a: 1.0e-4\n", NULL},
    {"folded text", Y, "a", "short", NULL, "a: >\n  long\n  text\nb: 1\n", "a: short\nb: 1\n",
     NULL},
    {"text of several lines", Y, "a", "x", NULL, "a: one\n  two\nb: 1\n", "a: x\nb: 1\n", NULL},
    {"flow map", Y, "a.c", "3", NULL, "a: {b: 1, c: 2}  # x\n", "a: {b: 1, c: 3}  # x\n", NULL},
    {"list entry", Y, "a.1", "9", NULL, "a: [1, 2, 3]\n", "a: [1, 9, 3]\n", NULL},
    {"map in a list", Y, "a.1.x", "9", NULL, "a:\n  - x: 1\n  - x: 2\n    y: 3\n",
     "a:\n  - x: 1\n  - x: 9\n    y: 3\n", NULL},
    {"lines end in CR LF", Y, "b", "3", NULL, "a: 1\r\nb: 2\r\nc: 3\r\n",
     "a: 1\r\nb: 3\r\nc: 3\r\n", NULL},
    {"characters of several bytes", Y, "b", "3", NULL, "ä: größer  # λ→\nb: 2  # ü\n",
     "ä: größer  # λ→\nb: 3  # ü\n", NULL},
    {"byte order mark", Y, "a", "2", NULL,
     "\xef\xbb\xbf"
     "a: 1\n",
     "\xef\xbb\xbf"
     "a: 2\n",
     NULL},
    {"byte order mark and characters", Y, "b", "2", NULL,
     "\xef\xbb\xbf"
     "ä: 1\nb: 1\n",
     "\xef\xbb\xbf"
     "ä: 1\nb: 2\n",
     NULL},
    {"given twice: the last counts", Y, "a", "3", NULL, "a: 1\nb: 0\na: 2\n", "a: 1\nb: 0\na: 3\n",
     NULL},
    {"two documents", Y, "a", "2", NULL, "---\na: 1\n---\na: 1\n", "---\na: 2\n---\na: 1\n", NULL},
    {"reference elsewhere", Y, "m.n", "2", NULL, "m:\n  n: 4\nk: ${m.n}\n",
     "m:\n  n: 2\nk: ${m.n}\n", NULL},
    {"reference replaced", Y, "k", "2", NULL, "m: 4\nk: ${m}  # follows\n",
     "m: 4\nk: 2  # follows\n", NULL},
    {"key with a dot", Y, "a.b", "2", NULL, "a.b: 1\n", "a.b: 2\n", NULL},
    {"quoted key", Y, "a", "2", NULL, "\"a\": 1\n", "\"a\": 2\n", NULL},
    {"json number", J, "a", "2", NULL, "{\"a\": 1}", "{\"a\": 2}", NULL},
    {"json auto to number", J, "a", "2", "int", "{\"a\": \"auto\"}\n", "{\"a\": 2}\n", NULL},
    {"json text", J, "a.device", "cpu", "enum", "{\"a\": {\"device\": \"none\"}}\n",
     "{\"a\": {\"device\": \"cpu\"}}\n", NULL},
    {"json bytes", J, "b", "5e7", NULL, "{\"ü\\u00e9\": \"\\\"}\",\n \"b\" : 5e8}",
     "{\"ü\\u00e9\": \"\\\"}\",\n \"b\" : 5e7}", NULL},
    {"json true", J, "a", "True", "bool", "{\"a\":false}", "{\"a\":true}", NULL},
    {"json null", J, "a", "null", NULL, "{\"a\": [1]  , \"b\":1}", NULL, "group"},
    /* ---- keys that are not there yet */
    {"added at the end", Y, "c", "3", NULL, "a: 1\nb: 2\n", "a: 1\nb: 2\nc: 3\n", NULL},
    {"added without a line end", Y, "b", "2", NULL, "a: 1", "a: 1\nb: 2", NULL},
    {"added with CR LF", Y, "a.c", "2", NULL, "a:\r\n  b: 1\r\nd: 1\r\n",
     "a:\r\n  b: 1\r\n  c: 2\r\nd: 1\r\n", NULL},
    {"added in its group", Y, "a.c", "2", NULL, "a:\n    b: 1  # x\n\n# next\nd: 1\n",
     "a:\n    b: 1  # x\n    c: 2\n\n# next\nd: 1\n", NULL},
    {"added behind a nested group", Y, "a.c", "2", NULL, "a:\n  b:\n    - 1\n    - 2\nd: 1\n",
     "a:\n  b:\n    - 1\n    - 2\n  c: 2\nd: 1\n", NULL},
    {"added with its groups", Y, "x.y.z", "1", NULL, "a:\n    b: 1\n",
     "a:\n    b: 1\nx:\n    y:\n        z: 1\n", NULL},
    {"added to an empty group", Y, "a.b", "1", NULL, "a:  # nothing yet\nc: 1\n",
     "a:  # nothing yet\n  b: 1\nc: 1\n", NULL},
    {"added to null", Y, "a.b", "1", NULL, "a: null  # off\n", "a: {b: 1}  # off\n", NULL},
    {"added to a flow", Y, "a.c", "2", NULL, "a: {b: 1} # x\n", "a: {b: 1, c: 2} # x\n", NULL},
    {"added to {}", Y, "a.c", "2", NULL, "a: {}\n", "a: {c: 2}\n", NULL},
    {"added in a list's map", Y, "a.0.y", "2", NULL, "a:\n  - x: 1\n  - z: 1\n",
     "a:\n  - x: 1\n    y: 2\n  - z: 1\n", NULL},
    {"added behind literal text", Y, "b", "2", NULL, "a: |\n  one\n  two\n",
     "a: |\n  one\n  two\nb: 2\n", NULL},
    {"added to an empty file", Y, "a.b", "2", NULL, "# nothing\n", "# nothing\na:\n  b: 2\n", NULL},
    {"added before the next document", Y, "b", "2", NULL, "a: 1\n---\nc: 1\n",
     "a: 1\nb: 2\n---\nc: 1\n", NULL},
    {"json added, one line", J, "c", "2", NULL, "{\"a\": 1, \"b\": {}}",
     "{\"a\": 1, \"b\": {}, \"c\": 2}", NULL},
    {"json added, compact", J, "c", "2", NULL, "{\"a\":1}", "{\"a\":1,\"c\":2}", NULL},
    {"json added, lines", J, "z.pin", "true", "bool",
     "{\n    \"z\": {\n        \"s\": 2\n    }\n}\n",
     "{\n    \"z\": {\n        \"s\": 2,\n        \"pin\": true\n    }\n}\n", NULL},
    {"json added with its group", J, "z.off.device", "cpu", "enum",
     "{\n  \"z\": {\n    \"s\": 2\n  }\n}\n",
     "{\n  \"z\": {\n    \"s\": 2,\n    \"off\": {\n      \"device\": \"cpu\"\n    }\n  }\n}\n",
     NULL},
    {"json added to {}", J, "z.s", "2", NULL, "{\"z\": {}}", "{\"z\": {\"s\": 2}}", NULL},
    {"json null becomes a group", J, "z.s", "2", NULL, "{\"z\": null}", "{\"z\": {\"s\": 2}}",
     NULL},
    {"json with tabs", J, "b", "2", NULL, "{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"b\": 2\n}",
     NULL},
    /* ---- keys that are taken away */
    {"taken with its line", Y, "b", NULL, NULL, "a: 1\nb: 2  # two\nc: 3\n", "a: 1\nc: 3\n", NULL},
    {"taken at the end", Y, "b", NULL, NULL, "a: 1\nb: 2", "a: 1", NULL},
    {"taken with what is under it", Y, "b", NULL, NULL, "a: 1\nb:\n  - x\n  - y: 1\nc: 3\n",
     "a: 1\nc: 3\n", NULL},
    {"the only one", Y, "a.b", NULL, NULL, "a:  # x\n  b: 1\nc: 1\n", "a: {}  # x\nc: 1\n", NULL},
    {"given twice, all go", Y, "a", NULL, NULL, "a: 1\nb: 0\na: 2\n", "b: 0\n", NULL},
    {"behind a dash", Y, "l.0.a", NULL, NULL, "l:\n  - a: 1\n    b: 2\n", "l:\n  - b: 2\n", NULL},
    {"first of a flow", Y, "m.a", NULL, NULL, "m: {a: 1, b: 2}\n", "m: {b: 2}\n", NULL},
    {"last of a flow", Y, "m.b", NULL, NULL, "m: {a: 1, b: 2}\n", "m: {a: 1}\n", NULL},
    {"only one of a flow", Y, "m.a", NULL, NULL, "m: {a: 1}\n", "m: {}\n", NULL},
    {"json, a line in the middle", J, "b", NULL, NULL,
     "{\n  \"a\": 1,\n  \"b\": {\"c\": 1},\n  \"d\": 1\n}\n", "{\n  \"a\": 1,\n  \"d\": 1\n}\n",
     NULL},
    {"json, the last line", J, "d", NULL, NULL, "{\n  \"a\": 1,\n  \"d\": 1\n}\n",
     "{\n  \"a\": 1\n}\n", NULL},
    {"what is not there", Y, "x.y", NULL, NULL, "a: 1\n", "a: 1\n", NULL},
    /* ---- anchors, aliases, merges */
    {"an alias gets its own value", Y, "b", "2", NULL, "a: &x 1\nb: *x  # as a\n",
     "a: &x 1\nb: 2  # as a\n", NULL},
    {"others keep the anchor's value", Y, "a", "2", NULL, "a: &x 1\nb: *x\nc: *x\n",
     "a: &x 2\nb: 1\nc: 1\n", NULL},
    {"an alias of a group", Y, "b.lr", "2", NULL, "a: &x\n  lr: 1\n  wd: 0\nb: *x\n",
     "a: &x\n  lr: 1\n  wd: 0\nb: {<<: *x, lr: 2}\n", NULL},
    {"a merged value", Y, "b.lr", "2", NULL, "a: &x\n  lr: 1\nb:\n  <<: *x\n  wd: 0\n",
     "a: &x\n  lr: 1\nb:\n  <<: *x\n  wd: 0\n  lr: 2\n", NULL},
    {"its own before the merged", Y, "b.lr", "3", NULL, "a: &x {lr: 1}\nb: {<<: *x, lr: 2}\n",
     "a: &x {lr: 1}\nb: {<<: *x, lr: 3}\n", NULL},
    {"merged elsewhere", Y, "a.lr", "2", NULL, "a: &x\n  lr: 1\nb:\n  <<: *x\n",
     "a: &x\n  lr: 2\nb:\n  <<: *x\n  lr: 1\n", NULL},
    {"a list of merges", Y, "c.q", "9", NULL, "a: &a {p: 1}\nb: &b {q: 2}\nc: {<<: [*a, *b]}\n",
     "a: &a {p: 1}\nb: &b {q: 2}\nc: {<<: [*a, *b], q: 9}\n", NULL},
    {"a group that is merged", Y, "b.o.lr", "2", NULL,
     "a: &x\n  o:\n    lr: 1\n    wd: ${w}\n    names: [p, 'q']\nb:\n  <<: *x\n",
     "a: &x\n  o:\n    lr: 1\n    wd: ${w}\n    names: [p, 'q']\nb:\n  <<: *x\n"
     "  o: {lr: 2, wd: \"${w}\", names: [p, 'q']}\n",
     NULL},
    {"an anchor of nothing", Y, "a", "2", NULL, "a: &x\nb: 1\n", "a: &x 2\nb: 1\n", NULL},
    {"merged cannot be taken away", Y, "b.lr", NULL, NULL, "a: &x {lr: 1}\nb: {<<: *x}\n", NULL,
     "f.yaml:2: b.lr: comes through a merge"},
    /* ---- refusals */
    {"a group is no value", Y, "a", "1", NULL, "a:\n  b: 1\n", NULL,
     "f.yaml:2: a: is a group of settings"},
    {"a value is no group", Y, "a.b", "1", NULL, "x: 1\na: 3\n", NULL, "f.yaml:2: a.b:"},
    {"no such entry", Y, "a.7.b", "1", NULL, "a: [1]\n", NULL, "no such entry"},
    {"out of a list", Y, "a.0", NULL, NULL, "a: [1, 2]\n", NULL, "is in a list"},
    {"tags", Y, "a", "1", NULL, "a: !include x.yaml\n", NULL, "has a tag"},
    {"no YAML", Y, "a", "1", NULL, "a: [1\nb: 2\n", NULL, "f.yaml:2:"},
    {"templates", Y, "a", "1", NULL, "{% if x %}\na: 1\n{% endif %}\n", NULL, "f.yaml:1:"},
    {"no JSON", J, "a", "1", NULL, "{\"a\": 1,}\n", NULL, "f.json:1:"},
    {"TOML", OOM_CONFIG_TOML, "a", "1", NULL, "a = 2\n", NULL, "TOML"},
    {"lone carriage returns", Y, "a", "1", NULL, "a: 2\rb: 3\n", NULL, "carriage return"},
    {"an empty key", Y, "b.a", "1", NULL, "? \n: {a: 1}\n", NULL, "key: value"},
    {"explicit keys", Y, "c", "1", NULL, "? a\n: 1\n", NULL, "key: value"},
};

static const char *file_name(enum oom_config_format format)
{
    return format == J ? "f.json" : format == Y ? "f.yaml" : "f.toml";
}

static char *edited(enum oom_config_format format, const char *text, const char *path,
                    const char *value, const char *type, struct oom_error *err)
{
    struct oom_confedit edit = {path, value, type};
    size_t length = 0;
    char *out = NULL;

    if (oom_confedit_apply(file_name(format), text, strlen(text), format, &edit, 1, &out, &length,
                           err) != 0)
        return NULL;
    assert_int_equal(strlen(out), length);
    return out;
}

static void test_rows(void **state)
{
    (void)state;
    assert_true(sizeof(rows) / sizeof(rows[0]) >= 40);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct oom_error err = {""};
        char *out = edited(row->format, row->before, row->path, row->value, row->type, &err);
        if (row->after && (!out || strcmp(out, row->after) != 0))
            fail_msg("%s: got\n%s\n(%s) instead of\n%s", row->about, out ? out : "nothing",
                     err.text, row->after);
        if (!row->after && (out || !strstr(err.text, row->error)))
            fail_msg("%s: got %s, \"%s\"", row->about, out ? out : "nothing", err.text);
        /* What is so already changes nothing. */
        if (out && row->value) {
            char *again = edited(row->format, out, row->path, row->value, row->type, &err);
            assert_non_null(again);
            assert_string_equal(again, out);
            free(again);
        }
        free(out);
    }
}

/* ---- texts as they are found */

static const char deepspeed[] =
    "{\n"
    "    \"fp16\": {\n        \"enabled\": \"auto\",\n        \"loss_scale\": 0\n    },\n"
    "    \"zero_optimization\": {\n        \"stage\": 2,\n"
    "        \"offload_optimizer\": {\"device\": \"none\", \"pin_memory\": true},\n"
    "        \"allgather_bucket_size\": 2e8,\n        \"overlap_comm\": true\n    },\n"
    "    \"gradient_accumulation_steps\": \"auto\",\n"
    "    \"train_micro_batch_size_per_gpu\": \"auto\"\n}\n";

static const char grpo[] =
    "# größere Batches passen nicht\n"
    "defaults: &defaults\n  lr: 1.0e-6   # siehe Tabelle\n  betas: [0.9, 0.95]\n"
    "actor:\n  <<: *defaults\n  path: ${oc.env:MODEL}\n  mb_spec:\n"
    "    max_tokens_per_mb: 10240\n    granularity: 1\n"
    "ref:\n  <<: *defaults\n  mb_spec: {max_tokens_per_mb: '${actor.mb_spec.max_tokens_per_mb}'}\n"
    "stages:\n- name: 'warm up'\n  steps: 10\n- name: main\n  steps: 1000\n"
    "note: |\n  lr: 5\n\nlast: ~\n";

/* Every setting is changed and undone, and every other one stays. */
static void check_everything(const char *text, enum oom_config_format format)
{
    struct oom_config config;

    assert_int_equal(oom_config_parse(text, strlen(text), format, &config), 0);
    for (size_t i = 0; i < config.count; i++) {
        const char *path = config.items[i].path, *old = config.items[i].value;
        struct oom_error err = {""};
        char *same = edited(format, text, path, old ? old : "null", NULL, &err);
        if (!same)
            fail_msg("%s: %s", path, err.text);
        assert_string_equal(same, text);
        free(same);
        bool number = old && strspn(old, "0123456789.") == strlen(old) && *old;
        char *there = edited(format, text, path, number ? "77" : "other", NULL, &err);
        if (!there)
            fail_msg("%s in\n%s: %s", path, text, err.text);
        assert_string_not_equal(there, text);
        struct oom_config after;
        assert_int_equal(oom_config_parse(there, strlen(there), format, &after), 0);
        assert_int_equal(after.count, config.count);
        for (size_t k = 0; k < after.count; k++) {
            const struct oom_conffile_entry *now = oom_config_find(&after, config.items[k].path);
            assert_non_null(now);
            if (k != i)
                assert_true(oom_confedit_same(now->value, config.items[k].value));
        }
        oom_config_free(&after);
        free(there);
    }
    oom_config_free(&config);
}

static void check_undo(const char *text, enum oom_config_format format, const char *path,
                       const char *value, const char *old)
{
    struct oom_error err = {""};
    char *there = edited(format, text, path, value, NULL, &err);

    if (!there)
        fail_msg("%s: %s", path, err.text);
    assert_string_not_equal(there, text);
    char *back = edited(format, there, path, old, NULL, &err);
    if (!back)
        fail_msg("%s: %s", path, err.text);
    assert_string_equal(back, text);
    free(there);
    free(back);
}

static void test_found_texts(void **state)
{
    (void)state;
    check_everything(deepspeed, J);
    check_everything(deepspeed, Y);
    check_everything(grpo, Y);
    check_undo(deepspeed, J, "zero_optimization.stage", "3", "2");
    check_undo(deepspeed, J, "zero_optimization.offload_optimizer.device", "cpu", "none");
    check_undo(deepspeed, J, "zero_optimization.sub_group_size", "1e8", NULL);
    check_undo(deepspeed, J, "train_micro_batch_size_per_gpu", "4", "auto");
    check_undo(grpo, Y, "actor.mb_spec.max_tokens_per_mb", "5120", "10240");
    check_undo(grpo, Y, "actor.mb_spec.pad", "true", NULL);
    check_undo(grpo, Y, "actor.weight_decay", "0.1", NULL);
    check_undo(grpo, Y, "stages.1.steps", "5", "1000");
    check_undo(grpo, Y, "stages.0.lr", "5", NULL);
    check_undo(grpo, Y, "ref.mb_spec.granularity", "2", NULL);
}

/* ---- texts made at random */

struct maker {
    uint32_t seed;
    char text[16384];
    size_t at;
    bool json;
    const char *newline;
    int names; /* anchors so far */
};

static uint32_t any(struct maker *m, uint32_t below)
{
    m->seed = m->seed * 1664525U + 1013904223U;
    return (m->seed >> 8) % below;
}

static void put(struct maker *m, const char *text)
{
    m->at += (size_t)snprintf(m->text + m->at, sizeof(m->text) - m->at, "%s", text);
    assert_true(m->at < sizeof(m->text));
}

/* In a flow, ${…} would have to be quoted. */
static void put_scalar(struct maker *m, bool flow)
{
    static const char *const yaml[] = {"1",     "0.5",    "true", "False", "text",  "'q u'",
                                       "\"d\"", "1.0e-3", "~",    "größe", "x/y.z", "${a0.k1}"};
    static const char *const json[] = {"1",     "-2.5e3",   "true",    "null",
                                       "\"t\"", "\"ü\\n\"", "\"auto\""};
    put(m, m->json ? json[any(m, 7)] : yaml[any(m, flow ? 11 : 12)]);
}

static void put_flow(struct maker *m, int depth)
{
    uint32_t count = any(m, 4);
    bool map = any(m, 3) > 0;
    char key[32];

    put(m, map ? "{" : "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            put(m, any(m, 4) ? ", " : ",");
        if (m->json && any(m, 2))
            put(m, m->newline), put(m, "  ");
        snprintf(key, sizeof(key), m->json ? "\"k%u\": " : "k%u: ", i);
        put(m, map ? key : "");
        if (depth < 3 && !any(m, 3))
            put_flow(m, depth + 1);
        else
            put_scalar(m, true);
    }
    put(m, map ? "}" : "]");
}

static void put_block(struct maker *m, int depth, uint32_t indent)
{
    uint32_t count = 1 + any(m, 4), step = 2 + 2 * any(m, 2);
    char key[64];

    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "%*s%s%u:", (int)indent, "", depth ? "k" : "a", i);
        put(m, key);
        uint32_t what = any(m, 10);
        if (depth < 3 && what < 3) {
            put(m, m->newline);
            if (m->names && any(m, 3) == 0) {
                snprintf(key, sizeof(key), "%*s<<: *n%u", (int)(indent + step), "",
                         any(m, (uint32_t)m->names));
                put(m, key);
                put(m, m->newline);
            }
            put_block(m, depth + 1, indent + step);
            continue;
        }
        put(m, " ");
        if (what == 3) {
            put_flow(m, 0);
        } else if (what == 4) {
            snprintf(key, sizeof(key), "&n%d {p: 1, q: {r: 2, s: x}}", m->names++);
            put(m, key);
        } else if (what == 5 && m->names) {
            snprintf(key, sizeof(key), "*n%u", any(m, (uint32_t)m->names));
            put(m, key);
        } else {
            put_scalar(m, false);
        }
        put(m, any(m, 4) ? "" : "   # größer: 3");
        put(m, m->newline);
        put(m, any(m, 6) ? "" : m->newline);
    }
}

static void test_random_texts(void **state)
{
    static struct maker m;

    (void)state;
    for (uint32_t seed = 0; seed < 400; seed++) {
        memset(&m, 0, sizeof(m));
        m.seed = seed * 7919 + 1;
        m.json = seed % 3 == 0;
        m.newline = seed % 5 == 0 ? "\r\n" : "\n";
        if (m.json) {
            put(&m, "{\"a0\": {\"k1\": 1}, \"a1\": ");
            put_flow(&m, 0);
            put(&m, "}");
        } else {
            put_block(&m, 0, 0);
        }
        struct oom_config config;
        if (oom_config_parse(m.text, m.at, m.json ? J : Y, &config) == 0)
            check_everything(m.text, m.json ? J : Y);
        oom_config_free(&config);
        check_undo(m.text, m.json ? J : Y, "new_key", "3", NULL);
    }
}

static void test_bounds(void **state)
{
    static const char laughs[] =
        "a: &a {x: 1}\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\n"
        "f: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\n";
    struct oom_error err = {""};
    char deep[400];

    (void)state;
    assert_null(edited(Y, laughs, "a.x", "2", NULL, &err));
    assert_non_null(strstr(err.text, "too many"));
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    assert_null(edited(Y, deep, "a", "2", NULL, &err));
    assert_null(edited(J, deep, "a", "2", NULL, &err));
    assert_null(edited(Y, "a: &a [*a]\nb: *nobody\n", "b", "2", NULL, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_found_texts),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
