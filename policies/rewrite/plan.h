/* SPDX-License-Identifier: Apache-2.0
 *
 * From wanted settings to edits of the script, and the proof that they do what they should.
 *
 *   hit     a place in a command's arguments that sets a knob
 *   place   one way to bring a text about: a change of bytes of the script
 *   option  the places that together bring one knob of one command to its value */
#ifndef POLICIES_REWRITE_PLAN_H
#define POLICIES_REWRITE_PLAN_H

#include "policies/rewrite/rw.h"

/* ---- analyse.c */
struct rw_changes;

struct rw_analysis {
    struct rw rw;
    struct rw_world *worlds;
    size_t count;
    size_t training; /* training commands, over all worlds */
    bool by_policy;  /* the policy knows them; else they only look like it */
};

struct oom_script {
    struct rw_arena arena;  /* the source */
    struct rw_arena parsed; /* its syntax tree */
    struct oom_script_source source;
    struct rw_buf *root;
    bool from_argv;
};

/* Walks a script in every world that matters. `like` gives the worlds of an earlier analysis of
 * the script before an edit (NULL: finds its own). Returns -1 and err when it is too large. */
int rw_analyse(struct rw_analysis *a, const struct oom_script *script, const char *bytes,
               size_t length, const struct oom_policy *policy, const char *const *env_names,
               size_t env_count, const struct rw_analysis *like, const struct rw_changes *changes,
               struct oom_error *err);
void rw_analysis_free(struct rw_analysis *a);
/* The program's arguments as strings, NULL-terminated, in the arena. */
const char *const *rw_cmd_args(struct rw *rw, const struct rw_cmd *cmd);

/* ---- family.c */
enum rw_form {
    RW_FORM_SWITCH,   /* --k */
    RW_FORM_NEGATED,  /* --x.no-k */
    RW_FORM_SEPARATE, /* --k v */
    RW_FORM_EQUALS,   /* --k=v */
    RW_FORM_KEY,      /* k=v, +k=v, ++k=v */
};

struct rw_sides;

struct rw_hit {
    enum rw_form form;
    size_t field;       /* of the flag */
    size_t value_field; /* where the value stands */
    uint32_t from, to;  /* the value in that field's text */
};

struct rw_knob {
    const char *name;
    const char *value; /* NULL: taken away */
    const struct oom_knob *known;
    bool env;
    const char *file; /* an entry of the policy's "files" whose copies are to be used; or NULL */
    const struct rw_sides *sides; /* the copies */
};

/* Index behind the arguments that belong to the program (a lone "--" ends them). */
size_t rw_args_end(const struct rw_cmd *cmd);
/* The last place that sets the knob; false when none does. `all` collects every one. */
bool rw_find_hit(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const struct rw_knob *knob, struct rw_hit *last, struct rw_hit *all,
                 size_t *count);
#define RW_MAX_HITS 64
/* By its looks: the program's name, and that Python runs it. */
bool rw_looks_like_training(const struct rw_cmd *cmd);
/* Anything but what a script does around its work (mkdir, pip, nvidia-smi). */
bool rw_may_train(const struct rw_cmd *cmd);
/* It recognises whatever is run, and so cannot say what a command takes. */
bool rw_takes_anything(const struct oom_policy *policy);
/* Something that is not known stands behind field `after`, and may set the knob too. */
bool rw_outrun(const struct oom_policy *policy, const struct rw_cmd *cmd, size_t after);
/* What the hit sets, as the edit would name it ("true" for a switch). */
const char *rw_hit_value(struct rw *rw, const struct rw_cmd *cmd, const struct rw_hit *hit);
/* Whether a command has the knob as wanted. */
bool rw_satisfied(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                  const struct rw_knob *knob);
/* The words that set the knob when nothing does yet, as shell text; NULL: nothing to write. */
const char *rw_override(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                        const struct rw_knob *knob);
bool rw_same_name(const struct oom_policy *policy, const struct rw_knob *knob, const char *name,
                  size_t length);
/* ---- world.c */
/* How many processes the command's launcher starts; 0: not known. */
long rw_launch_processes(const struct rw_cmd *cmd);

bool rw_same_value(const char *a, const char *b);

/* ---- quote.c */
/* Bytes that give `bytes` in a quoting context. */
const char *rw_encode(struct rw *rw, enum rw_quote quote, const char *bytes);
/* One shell word. */
const char *rw_shell_word(struct rw *rw, const char *bytes);

/* ---- edit.c */
struct rw_change {
    const struct rw_buf *buf; /* the root, or a side file that must be copied */
    uint32_t start, end;
    const char *text;
    uint32_t word_start, word_end; /* of a removal: what it takes away, without the blanks */
};

struct rw_changes {
    struct rw_change *items;
    size_t count, capacity;
    const struct rw_overlay *overlay; /* side files as they become (calls.c) */
};

/* False when it overlaps an earlier change that differs. */
bool rw_changes_add(struct rw *rw, struct rw_changes *changes, const struct rw_change *change);
/* New bytes of one buffer. */
const char *rw_changes_apply(struct rw *rw, const struct rw_changes *changes,
                             const struct rw_buf *buf, size_t *length);
/* The same as ranges, sorted. Returns how many. */
size_t rw_changes_splices(struct rw *rw, const struct rw_changes *changes, const struct rw_buf *buf,
                          struct rw_splice *out);
/* Grows a range that is taken away by the blanks, or the lines, that nobody would leave. */
void rw_tidy_removal(const struct rw_buf *buf, uint32_t *start, uint32_t *end);

/* ---- place.c */
struct rw_places {
    struct rw_changes *options; /* each is one way; best first */
    size_t count, capacity;
};

/* Ways to make `slice` read `bytes`. */
void rw_places_replace(struct rw *rw, const struct rw_text *slice, const char *bytes,
                       struct rw_places *out);
/* Ways to insert shell text at an offset of a buffer. */
void rw_places_insert(struct rw *rw, const struct rw_buf *buf, uint32_t at, const char *bytes,
                      struct rw_places *out);
/* Ways to take bytes away together with the blanks behind them. */
void rw_places_cut(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                   struct rw_places *out);
/* Ways to take fields [from, to) of a command away. */
void rw_places_remove(struct rw *rw, const struct rw_cmd *cmd, size_t from, size_t to,
                      struct rw_places *out);
/* Where words are added to a command: in front of field `index`, or at its end. */
void rw_places_add(struct rw *rw, const struct rw_cmd *cmd, size_t index, const char *words,
                   struct rw_places *out);
/* How often the script's text uses a variable. */
size_t rw_uses(const struct rw *rw, const char *name);

/* ---- options.c */
/* One knob at one command (in all worlds): the ways to bring it to its value. */
struct rw_task {
    const struct rw_knob *knob;
    uint64_t site;              /* the command's key */
    const struct rw_cmd *first; /* one instance of the command */
    const struct rw_hit *hit;   /* what sets it now in that instance; NULL nothing */
    struct rw_places places;
    bool done; /* already as wanted */
    bool accepted;
    bool at_exec; /* no place in the script shows it: the preload library looks at the command */
};

struct rw_tasks {
    struct rw_task *items;
    size_t count, capacity;
};

void rw_tasks_make(struct rw_analysis *a, const struct oom_policy *policy,
                   const struct rw_knob *knobs, size_t knob_count, struct rw_tasks *out);

/* ---- env.c: environment variables as knobs */
/* What the variable is for the command; false: not set by the script. */
bool rw_env_value(struct rw *rw, const struct rw_cmd *cmd, const char *name, struct rw_text *out);
bool rw_env_satisfied(struct rw *rw, const struct rw_cmd *cmd, const struct rw_knob *knob);
void rw_env_places(struct rw *rw, const struct rw_cmd *cmd, const struct rw_knob *knob,
                   const struct rw_knob *knobs, size_t knob_count, struct rw_places *out);

/* ---- rayenv.c: the same for the workers of `ray job submit` */
/* Whether the command line says, or can be made to say, what environment the workers get. */
bool rw_ray_reaches(const struct rw_cmd *cmd);
bool rw_ray_value(struct rw *rw, const struct rw_cmd *cmd, const char *name, struct rw_text *out);
void rw_ray_places(struct rw *rw, const struct rw_cmd *cmd, const struct rw_knob *knob,
                   const struct rw_knob *knobs, size_t knob_count, struct rw_places *out);
/* Marks the fields of the runtime environment; rw_ray_same compares what is in them. */
void rw_ray_mark(const struct rw_cmd *cmd, bool *skip);
bool rw_ray_same(const struct rw_cmd *old, const struct rw_cmd *new, const struct rw_knob *knobs,
                 size_t knob_count);

/* ---- check.c */
/* Compares the commands of two analyses world by world. 0 when all that differs is what the
 * accepted tasks are to change, and they are as wanted. */
int rw_check(struct rw_analysis *before, struct rw_analysis *after, const struct oom_policy *policy,
             const struct rw_knob *knobs, size_t knob_count, const struct rw_tasks *tasks,
             struct oom_error *err);

/* ---- sbatch.c: #SBATCH lines */
/* The value of an option ("mem"); NULL when no line gives it. `line` gets its number. */
const char *rw_sbatch_value(struct rw *rw, const struct rw_buf *root, const char *option,
                            uint32_t *line);
void rw_sbatch_places(struct rw *rw, const struct rw_buf *root, const char *option,
                      const char *value, struct rw_places *out);

#endif
