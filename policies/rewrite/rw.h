/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of rewrite. A script is *run on paper*: walk.c goes through its syntax tree the way bash
 * would, and every byte of every word that a command is finally given remembers where it came
 * from. A branch whose condition is not known is a decision; a *world* is one choice for every
 * decision, and the script is walked once per world that matters. So values are always concrete,
 * and the same walk that finds where a value stands also proves that an edit did what it should.
 *
 *   arena    memory that is freed at once; running out of it unwinds to the entry point
 *   buffer   bytes of bash: the script, a side file, or text that the script hands to a shell
 *   fragment a run of bytes of a value with its origin; text: a list of fragments
 *   via      the chain of expansions (outermost first) through which a fragment came
 *   field    one word of an argument vector, after expansion and splitting */
#ifndef POLICIES_REWRITE_RW_H
#define POLICIES_REWRITE_RW_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomretry/rewrite.h"

/* ---- arena.c */
struct rw_arena {
    struct rw_chunk *chunks;
    size_t used_bytes;
    size_t limit_bytes;
    jmp_buf *bail; /* where running out goes */
};
void *rw_alloc(struct rw_arena *arena, size_t size); /* zeroed; never NULL: unwinds instead */
/* Room for one more item; what is new is not zeroed. */
void *rw_more(struct rw_arena *arena, void *old, size_t count, size_t *capacity, size_t size);
char *rw_strndup(struct rw_arena *arena, const char *text, size_t length);
char *rw_printf(struct rw_arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rw_arena_free(struct rw_arena *arena);

struct rw;
/* Unwinds as running out of memory does, with a reason for people. */
void rw_give_up(struct rw *rw, const char *why) __attribute__((noreturn));

/* ---- text.c */
enum rw_quote {
    RW_BARE,    /* unquoted shell */
    RW_DQ,      /* in double quotes */
    RW_SQ,      /* in single quotes */
    RW_ANSI,    /* in $'…' */
    RW_HEREDOC, /* heredoc whose delimiter is not quoted */
    RW_RAW,     /* heredoc whose delimiter is quoted */
};

enum rw_kind {
    RW_LITERAL, /* the bytes stand in the buffer at [start, end) */
    RW_DERIVED, /* computed by the expansion at [start, end) */
    RW_UNKNOWN, /* what the expansion at [start, end) gives is not known */
};

struct rw_buf;

/* One expansion (or, `name` NULL, one word) that a fragment came through. */
struct rw_via {
    const struct rw_via *next; /* inwards */
    const struct rw_buf *buf;
    uint32_t start, end;
    enum rw_quote quote;
    const char *name;
    uint32_t instance; /* the same for all fragments of one evaluation of the expansion */
    uint32_t total;    /* bytes that the whole expansion gave */
    bool fixed;        /* never look further in: loop variables, defaults that may not be taken */
};

struct rw_frag {
    const char *bytes;
    uint32_t length;
    enum rw_kind kind;
    enum rw_quote quote;
    const struct rw_buf *buf;
    uint32_t start, end;
    const struct rw_via *via;
    bool partial; /* only some of the bytes that the expansion gave */
};

struct rw_text {
    struct rw_frag *frags;
    size_t count, capacity;
    uint32_t length;
    bool wild; /* may be any number of words, among them flags */
};

struct rw_field {
    struct rw_text text;
    const char *string; /* the bytes, NUL-terminated; unknown parts as "$NAME" */
    bool gone;          /* an element that was unset: the others keep their numbers */
};

struct rw_fields {
    struct rw_field *items;
    size_t count, capacity;
};

void rw_text_push(struct rw *rw, struct rw_text *text, const struct rw_frag *frag);
void rw_text_append(struct rw *rw, struct rw_text *text, const struct rw_text *more);
void rw_text_slice(struct rw *rw, const struct rw_text *text, uint32_t from, uint32_t to,
                   struct rw_text *out);
const char *rw_text_string(struct rw *rw, const struct rw_text *text);
bool rw_text_known(const struct rw_text *text); /* no unknown fragment */
/* Pushes an expansion onto every fragment's chain. */
void rw_text_through(struct rw *rw, struct rw_text *text, const struct rw_via *via);

/* ---- heredoc.c */
struct rw_heredoc {
    uint32_t operator_at; /* of "<<" */
    uint32_t body_start, body_end;
    bool quoted, strip_tabs;
};

/* ---- parse.c */
enum rw_node_type {
    RW_N_OTHER,
    RW_N_TOKEN, /* anonymous: keywords and operators */
    RW_N_PROGRAM,
    RW_N_COMMENT,
    RW_N_COMMAND,
    RW_N_COMMAND_NAME,
    RW_N_ASSIGNMENT,
    RW_N_ASSIGNMENTS,
    RW_N_DECLARATION,
    RW_N_UNSET,
    RW_N_REDIRECTED,
    RW_N_FILE_REDIRECT,
    RW_N_HERESTRING,
    RW_N_LIST,
    RW_N_PIPELINE,
    RW_N_NEGATED,
    RW_N_IF,
    RW_N_ELIF,
    RW_N_ELSE,
    RW_N_CASE,
    RW_N_CASE_ITEM,
    RW_N_FOR,
    RW_N_CFOR,
    RW_N_WHILE,
    RW_N_DO,
    RW_N_FUNCTION,
    RW_N_COMPOUND,
    RW_N_SUBSHELL,
    RW_N_TEST,
    RW_N_ARRAY,
    RW_N_VARIABLE_NAME,
    RW_N_SUBSCRIPT,
    RW_N_ERROR,
};

struct rw_node {
    enum rw_node_type type;
    uint32_t start, end;
    uint32_t first; /* index of the first child; children are linked by `next`; 0: none */
    uint32_t next;
    uint32_t order; /* its number in the buffer: stays the same when words change */
    bool missing;
};

struct rw_buf {
    const char *bytes;
    uint32_t length;
    const char *name;           /* "script", a side file's path, or NULL for text */
    bool editable;              /* the script itself */
    uint64_t key;               /* the same in every world and after an edit */
    const struct rw_text *text; /* what the bytes came from; NULL for files */
    struct rw_node *nodes;      /* [0] unused, [1] the root; NULL until parsed */
    size_t node_count, node_capacity;
    struct rw_heredoc *heredocs;
    size_t heredoc_count, heredoc_capacity;
    uint32_t error_at; /* offset of the first syntax error; UINT32_MAX none */
    bool whole;        /* the grammar tripped over nothing */
    bool walking;      /* a file that starts itself is not followed again */
    struct rw_buf *next;
};

#define RW_NO_ERROR UINT32_MAX

struct rw_buf *rw_buf_new(struct rw *rw, const char *bytes, size_t length, const char *name,
                          uint64_t key);
void rw_parse(struct rw *rw, struct rw_buf *buf);

/* A range of an older text and the length of what stands there now. */
struct rw_splice {
    uint32_t start, old_end, new_length;
};

/* Parses `buf`, which is `old` with splices (sorted by start): only what they touch is parsed. */
void rw_parse_again(struct rw *rw, struct rw_buf *buf, const struct rw_buf *old,
                    const struct rw_splice *splices, size_t count);
const struct rw_heredoc *rw_heredoc_at(const struct rw_buf *buf, uint32_t at);
void rw_find_heredocs(struct rw *rw, struct rw_buf *buf, char *masked);
uint32_t rw_line_of(const struct rw_buf *buf, uint32_t at); /* from 1 */

/* ---- mask.c */
/* Puts letters over what is inside words; `out` is a copy of `bytes`. */
void rw_mask_words(const char *bytes, uint32_t length, char *out);

/* ---- syntax.c */
/* Offset of what bash would refuse; RW_NO_ERROR: nothing is seen. Here-documents must be masked. */
uint32_t rw_syntax_fault(struct rw *rw, const char *bytes, uint32_t length);

/* Whether a word may begin behind this byte. */
static inline bool rw_separates(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == ';' || c == '|' || c == '&' || c == '(';
}

/* Ends of quoted things, for scanners: index after the closing delimiter, or `end`. */
uint32_t rw_skip_single(const char *bytes, uint32_t at, uint32_t end);
uint32_t rw_skip_double(const char *bytes, uint32_t at, uint32_t end);
uint32_t rw_skip_paren(const char *bytes, uint32_t at, uint32_t end);
uint32_t rw_skip_brace(const char *bytes, uint32_t at, uint32_t end);

/* ---- vars.c */
struct rw_value {
    bool array, unset;
    bool unknown;           /* set somewhere, to what is not known */
    const char *refers;     /* `declare -n`: the variable that is meant */
    struct rw_field *items; /* scalars: one */
    size_t count;
};

struct rw_var {
    const char *name;
    const struct rw_value *value; /* NULL: never set here: the environment's */
    bool loop;
    bool exported;
    bool used; /* a training command's words came through it */
    struct rw_var *next;
};

#define RW_VAR_BUCKETS      1024
#define RW_FUNCTION_BUCKETS 64
#define RW_DECISION_BUCKETS 1024
#define RW_WRITTEN_BUCKETS  1024

struct rw_trail {
    struct rw_var *var;
    const struct rw_value *old;
    bool old_loop, old_exported;
};

/* What a function made its own: it has its old value again when the function returns. */
struct rw_local {
    struct rw_var *var;
    const struct rw_value *old;
    bool old_loop, old_exported;
    int scope;
};

/* The variable that the name stands for; rw_var_slot: not the one that it refers to. */
struct rw_var *rw_var_at(struct rw *rw, const char *name, size_t length);
struct rw_var *rw_var_slot(struct rw *rw, const char *name, size_t length);
void rw_var_localise(struct rw *rw, struct rw_var *var);
void rw_scope_enter(struct rw *rw);
void rw_scope_leave(struct rw *rw);
void rw_var_set(struct rw *rw, struct rw_var *var, const struct rw_value *value);
void rw_var_set_text(struct rw *rw, const char *name, const struct rw_text *text);
void rw_var_set_unknown(struct rw *rw, const char *name);
size_t rw_trail_mark(const struct rw *rw);
void rw_trail_undo(struct rw *rw, size_t mark);
/* What words are split at. */
const char *rw_ifs(struct rw *rw);
/* What the environment holds, or NULL. */
const char *rw_env_get(const struct rw *rw, const char *name);

/* ---- shell.c */
/* A shell: the script's own, and each that it starts for a text or a file. */
struct rw_shell {
    const struct rw_buf *buf;
    const struct rw_shell *outer; /* NULL: the script's own */
    uint32_t at;                  /* the command in buf that is walked */
    bool pipefail, errexit;
};

/* An option of `set`, or of a shell's command line; true when the next word belongs to it. */
bool rw_shell_option(struct rw_shell *shell, const char *option, const char *next);
/* RANDOM, PWD, …: they have a value also where the environment holds none. */
bool rw_shell_sets_variable(const char *name);
/* "#!/bin/bash -e" */
void rw_shell_first_line(struct rw_shell *shell);
/* A shell of these options that runs buf; its end goes on in the one around it. */
void rw_shell_enter(struct rw *rw, const struct rw_shell *options, const struct rw_buf *buf);
void rw_shell_leave(struct rw *rw, struct rw_shell *outer);
/* They go on from here; a command keeps them as they are now. */
const struct rw_shell *rw_shells_now(struct rw *rw);

/* ---- expand.c */
/* Where expansion puts what it gives: fields, or with `split` false one field. */
struct rw_sink {
    struct rw_fields *fields;
    struct rw_field *open; /* the field being built; NULL between fields */
    bool split;
    const char *ifs; /* what splits; NULL: what the script has set */
};

struct rw_field *rw_fields_add(struct rw *rw, struct rw_fields *fields);
struct rw_text *rw_sink_text(struct rw *rw, struct rw_sink *sink); /* opens a field */
void rw_sink_frag(struct rw *rw, struct rw_sink *sink, const struct rw_frag *frag);
/* `quoted` text stays together; other text is split at blanks when the sink splits. */
void rw_sink_put(struct rw *rw, struct rw_sink *sink, const struct rw_text *text, bool quoted);
void rw_sink_break(struct rw_sink *sink);
void rw_finish_fields(struct rw *rw, struct rw_fields *fields, size_t from);

/* Evaluates the word at [start, end) of buf to fields. `split` false: one field, no splitting
 * (the right side of an assignment). */
void rw_expand_word(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                    bool split, struct rw_fields *out);
/* The bytes [start, end) in a quoting context, into a sink or a text. */
void rw_expand_region(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                      enum rw_quote quote, struct rw_sink *sink);
void rw_expand_text(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                    enum rw_quote quote, struct rw_text *out);
void rw_expand_heredoc(struct rw *rw, const struct rw_buf *buf, const struct rw_heredoc *doc,
                       struct rw_text *out);

/* ---- param.c, param_value.c */
/* The expansion at `at` ("$…"); returns the index behind it. */
struct rw_site {
    const struct rw_buf *buf;
    uint32_t start, end;
    enum rw_quote quote;
};
uint32_t rw_expand_dollar(struct rw *rw, const struct rw_buf *buf, uint32_t at, uint32_t end,
                          enum rw_quote quote, struct rw_sink *sink);
void rw_sink_unknown(struct rw *rw, struct rw_sink *sink, const struct rw_site *site, bool many);
void rw_sink_derived(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                     const char *text, size_t length);

/* ---- selfdir.c */
/* What a command substitution in this file gives when that is the directory of the file itself, or
 * a path from there; NULL: something else. */
const char *rw_own_directory(struct rw *rw, const struct rw_buf *buf, const char *bytes,
                             size_t length);

/* ---- subst.c */
void rw_expand_command(struct rw *rw, const struct rw_site *site, uint32_t start, uint32_t end,
                       struct rw_sink *sink);

/* ---- arith.c, arith_set.c */
bool rw_arithmetic(struct rw *rw, const char *expr, size_t length, int64_t *out);
/* What ((…)) and `let` assign; rw_arithmetic_loses: it is not known how often. */
void rw_arithmetic_sets(struct rw *rw, const struct rw_buf *buf, const char *expr, size_t length);
void rw_arithmetic_loses(struct rw *rw, const char *expr, size_t length);

/* ---- walk.c */
struct rw_function {
    const char *name;
    const struct rw_buf *buf;
    uint32_t node; /* the body */
    bool called;
    struct rw_function *next;
};

/* A file that the script writes. */
struct rw_written {
    const char *path;
    const struct rw_text *text; /* NULL: not known what */
    struct rw_written *next;
};

/* What commands put out while they are walked. */
struct rw_capture {
    struct rw_text text;
    bool unknown; /* there is more than the text, or something else */
};

/* One program that the script starts. */
struct rw_cmd {
    const struct rw_buf *buf;
    uint32_t start, end; /* the command's words in buf: end of the last one */
    uint64_t key;
    struct rw_fields fields;
    size_t launch;       /* index of the field with which the program's own command begins */
    size_t arg0;         /* index of the program's first argument */
    const char *program; /* module, script path or "trl sft"; NULL: not a program of interest */
    const char *file;    /* called script file, or whatever "$X" is, that is out of sight */
    bool python;
    bool ray;                     /* behind `ray job submit` */
    size_t ray_from, ray_to;      /* fields of its options */
    bool piped;                   /* a later part of its pipe gives the status */
    bool background;              /* and no `wait` has asked for its status */
    const struct rw_shell *shell; /* that runs it, as it stood then */
    bool sealed;                  /* only some variables of whoever starts it reach it: `passes` */
    size_t env_at;                /* `env` takes NAME=VALUE in front of this field; 0: no */
    bool training;
    const struct rw_env *env;    /* what the command itself sets: NAME=V, env NAME=V, --export= */
    const struct rw_env *passes; /* names only */
    const struct rw_env *outer_env; /* the same of the commands around it */
    bool calls;                     /* `file` was read, and commands in it are listed before */
    struct rw_text *asked;          /* rw->env_names: what each is for this command; NULL unset */
    bool *asked_set;
};

struct rw_env {
    const char *name;
    struct rw_text value;
    const struct rw_buf *buf; /* where NAME=VALUE stands, when it stands in front of the command */
    uint32_t start, end;
    const struct rw_env *next;
};

struct rw_vars {
    struct rw_var **items;
    size_t count, capacity;
};

/* A place where worlds may differ; or, with one choice, a condition that the script settles. */
struct rw_decision {
    uint64_t key;
    size_t next;      /* in its bucket: index + 1; 0 none */
    const char *name; /* of a variable of the environment */
    int choices;
    struct rw_vars assigned; /* by its branches */
    struct rw_vars read;     /* by its condition: they decide what its branches change */
    bool commands;           /* a branch starts something */
    bool relevant;
};

/* A file as it is to become, under the name of its copy. */
struct rw_overlay {
    const struct rw_buf *buf;
    const char *path;
    const char *bytes;
    size_t length;
    const struct rw_overlay *next;
};

/* One sourcing or calling of a file. */
struct rw_call {
    const struct rw_buf *buf;
    const struct rw_text *path;
};

struct rw {
    struct rw_arena arena;
    const struct oom_script_source *source;
    struct rw_buf *root;
    struct rw_buf *bufs; /* side files and texts, parsed once */
    struct rw_var *vars[RW_VAR_BUCKETS];
    struct rw_trail *trail;
    size_t trail_count, trail_capacity;
    struct rw_local *locals;
    size_t local_count, local_capacity;
    int scope;                  /* depth of functions */
    struct rw_capture *capture; /* where output goes; NULL: nobody asks */
    bool lastpipe;              /* the last part of a pipe is no subshell */
    struct rw_function *functions[RW_FUNCTION_BUCKETS];
    struct rw_written *written[RW_WRITTEN_BUCKETS];
    const struct rw_overlay *overlay; /* read before the files themselves */
    struct rw_call *calls;
    size_t call_count, call_capacity;
    struct rw_fields positional;
    bool positional_known;
    uint32_t instances;
    int depth;
    uint64_t steps, step_limit;
    size_t file_count, file_bytes; /* side files that were read */
    uint64_t file_steps;           /* of this world, in side files and what they run */
    int file_depth;
    const char *why; /* the walk was given up; NULL: it became too large */

    struct rw_decision *decisions;
    size_t decision_count, decision_capacity;
    size_t decision_buckets[RW_DECISION_BUCKETS]; /* index + 1 of the first */
    const char *const *env_names;                 /* environment variables that are asked for */
    size_t env_count;
    bool opaque_env; /* a file that cannot be read was sourced: anything may be set */
    int piped;       /* depth of pipes that hide the status of what runs */
    int background;  /* the same for "&" */
    struct rw_shell *shell;
    enum { RW_GOES_ON, RW_RETURNS, RW_EXITS } leaving; /* statements behind it are not reached */
    uint64_t env_reads;                                /* how often the environment was looked at */
    bool last;   /* the default choice: the first or the last one */
    size_t flip; /* the decision that differs, SIZE_MAX none */
    int flip_choice;

    struct rw_cmd *cmds; /* of the world walked last */
    size_t cmd_count, cmd_capacity;
    const char **logs;
    size_t log_count, log_capacity;
    jmp_buf bail;
};

struct rw_world {
    struct rw_cmd *cmds;
    size_t count;
    bool last;
    size_t flip;
    int flip_choice;
};

void rw_walk(struct rw *rw); /* the whole script, in the world set in rw */
void rw_walk_buf(struct rw *rw, struct rw_buf *buf);
void rw_walk_file(struct rw *rw, struct rw_buf *buf); /* a side file, within its limits */
void rw_walk_function(struct rw *rw, struct rw_function *function, const struct rw_fields *args,
                      size_t first);
struct rw_function *rw_function_find(struct rw *rw, const char *name);
/* The way that this world takes. Ways in `avoid` (bits) are only taken when asked for. */
struct rw_decision *rw_decision_at(struct rw *rw, uint64_t key, int choices, const char *name);
int rw_choose(struct rw *rw, uint64_t key, const char *name, int choices, uint64_t avoid);
uint64_t rw_hash(uint64_t seed, uint64_t value);
uint64_t rw_hash_string(const char *text, size_t length);
/* A command's words after expansion: builtins, functions, launchers, programs. */
void rw_run(struct rw *rw, struct rw_cmd *cmd, const struct rw_text *input);
bool rw_builtin(struct rw *rw, struct rw_cmd *cmd, const struct rw_text *input);
struct rw_buf *rw_text_buf(struct rw *rw, const struct rw_text *text, uint64_t key);
struct rw_buf *rw_file_buf(struct rw *rw, const char *path, uint64_t key);
/* calls.c: the file was read because the word `path` names it. */
void rw_note_call(struct rw *rw, const struct rw_buf *buf, const struct rw_text *path);
/* Joins fields [from, to) with blanks. */
void rw_join(struct rw *rw, const struct rw_fields *fields, size_t from, size_t to,
             struct rw_text *out);

/* ---- output.c */
/* Notes what a command puts out: known of echo, printf, cat and tee of what is known, and of
 * commands that put out nothing. */
void rw_put_out(struct rw *rw, const struct rw_fields *fields, const struct rw_text *input);
/* The text of printf's words, from the format on; false: not known. */
bool rw_printf_text(struct rw *rw, const struct rw_fields *fields, size_t format,
                    struct rw_text *out);

/* ---- subst.c */
/* Walks [start, end) of buf as a script of its own, whose variables are lost, where it may start
 * something or put out what can be known. True: `out` is all that it puts out. */
bool rw_capture_region(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                       struct rw_text *out);

/* ---- written.c */
/* The file of this name that the script has written; NULL: none. */
const struct rw_written *rw_written_file(const struct rw *rw, const char *path);
/* The file now has this text (NULL: not known which), behind what it had when `append`. */
void rw_write_file(struct rw *rw, const char *path, const struct rw_text *text, bool append);

/* ---- read.c */
void rw_builtin_read(struct rw *rw, const struct rw_cmd *cmd, const struct rw_text *input);
void rw_builtin_mapfile(struct rw *rw, const struct rw_cmd *cmd, const struct rw_text *input);

/* Longer scripts and side files are not read. */
#define RW_MAX_SCRIPT_BYTES (4U << 20)

/* Files that run each other multiply: beyond these, a script is refused. What is walked of them
 * is bounded for each world, far above what scripts need and far below what the script itself may
 * take. */
#define RW_MAX_FILES      64
#define RW_MAX_FILE_BYTES (8U << 20) /* of all of them */
#define RW_MAX_FILE_STEPS 50000U

/* Bytes that need no quoting in a shell word. */
#define RW_PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^"

/* ---- launch.c */
/* Finds the program behind launchers, from field `from`; runs nested shells. */
void rw_record(struct rw *rw, const struct rw_cmd *cmd);
void rw_launch(struct rw *rw, struct rw_cmd *cmd, size_t from, const struct rw_text *input);

#endif
