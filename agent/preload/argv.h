/* SPDX-License-Identifier: Apache-2.0
 *
 * liboomargv.so: changes the arguments of the training program in the moment it is executed. It is
 * loaded (LD_PRELOAD) only in retries whose launch command the batch script does not show.
 *
 * It runs in the user's processes, between vfork and exec, in threads, under signal handlers: so
 * no allocation, no locks, no standard I/O; all memory is static or on the stack. What to do comes
 * in one environment variable, so that it reaches every node:
 *
 *   OOMRETRY_ARGV=1;RECORD;RECORD…    fields of a record are separated by '|', and any byte may be
 *                                     written as %XX
 *     report|PATH                one line is appended for each command that is changed
 *     match|GLOB  reject|GLOB    the program: "train.py", "pkg.module", "trl sft"
 *     with|GLOB  without|GLOB    flags that must be there, or must not
 *     alike                      '-' and '_' are the same in names
 *     set|FORM|NAME|VALUE        FORM: flag (--k v), key (++k=v), plain (k=v behind a YAML file,
 *                                --k v without one)
 *     switch|NAME                the bare flag
 *     drop|NAME|N                taken away; N 1: with the word behind it
 *     env|NAME|VALUE             in the environment of the program */
#ifndef AGENT_PRELOAD_ARGV_H
#define AGENT_PRELOAD_ARGV_H

#include <stdbool.h>
#include <stddef.h>

#define ARGV_VARIABLE "OOMRETRY_ARGV"

enum {
    ARGV_MAX_TEXT = 16384,
    ARGV_MAX_RECORDS = 96,
    ARGV_MAX_WORDS = 4096, /* longer vectors are passed on as they are */
};

enum argv_kind {
    ARGV_MATCH,
    ARGV_REJECT,
    ARGV_WITH,
    ARGV_WITHOUT,
    ARGV_SET_FLAG,
    ARGV_SET_KEY,
    ARGV_SET_PLAIN,
    ARGV_SWITCH,
    ARGV_DROP,
    ARGV_ENV,
};

struct argv_record {
    enum argv_kind kind;
    const char *name, *value;
    const char *joined; /* "--k=v", "++k=v", "k=v", "NAME=VALUE" */
    bool takes_value;
};

struct argv_plan {
    bool active, alike;
    const char *report;
    size_t count;
    struct argv_record records[ARGV_MAX_RECORDS];
    size_t used;
    char text[ARGV_MAX_TEXT]; /* what the records point into */
};

/* Reads the variable's value; an instruction that is not understood makes the plan inactive. */
void argv_plan_read(struct argv_plan *plan, const char *instructions);

/* Index of the training program's first argument; 0: this command is not it. */
size_t argv_find(const struct argv_plan *plan, char *const argv[]);

/* Writes the changed vector to `out` (room for ARGV_MAX_WORDS + 2 * ARGV_MAX_RECORDS pointers).
 * True when something changed. */
bool argv_edit(const struct argv_plan *plan, char *const argv[], size_t first, char **out);

/* Whether `program` starts a container whose inside does not have this library. */
bool argv_leaves_host(char *const argv[]);

#endif
