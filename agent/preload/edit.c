/* SPDX-License-Identifier: Apache-2.0
 *
 * Which command is the training program, and what its arguments become. */
#include <string.h>

#include "agent/preload/argv.h"

/* '*' and '?' only; the library may not use what might allocate. */
static bool glob(const char *pattern, const char *text, size_t length)
{
    const char *star = NULL, *retry = NULL, *end = text + length;

    while (text < end) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool any(const struct argv_plan *plan, enum argv_kind kind, const char *text, size_t length,
                bool *exists)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->records[i].kind != kind)
            continue;
        if (exists)
            *exists = true;
        if (glob(plan->records[i].name, text, length))
            return true;
    }
    return false;
}

static bool arguments_fit(const struct argv_plan *plan, char *const argv[], size_t first)
{
    bool wanted = false, found = false;

    any(plan, ARGV_WITH, "", 0, &wanted);
    for (size_t i = first; argv[i]; i++) {
        size_t length = strcspn(argv[i], "=");
        found |= any(plan, ARGV_WITH, argv[i], length, NULL);
        if (any(plan, ARGV_WITHOUT, argv[i], length, NULL))
            return false;
    }
    return !wanted || found;
}

static bool is_program(const struct argv_plan *plan, const char *program, char *const argv[],
                       size_t first)
{
    while (program[0] == '.' && program[1] == '/')
        program += 2;
    size_t length = strlen(program);
    return any(plan, ARGV_MATCH, program, length, NULL) &&
           !any(plan, ARGV_REJECT, program, length, NULL) && arguments_fit(plan, argv, first);
}

/* Programs that start another one that stands among their own arguments. */
static bool launches(const char *name)
{
    static const char *const names[] = {
        "torchrun",   "accelerate", "deepspeed", "srun",    "mpirun",    "mpiexec",
        "ray",        "uv",         "conda",     "mamba",   "env",       "nohup",
        "time",       "timeout",    "numactl",   "taskset", "apptainer", "singularity",
        "docker",     "podman",     "enroot",    "nsys",    "nice",      "stdbuf",
        "micromamba", "setsid",     "ionice",    "sudo",    NULL};

    if (strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6))
        return true;
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

size_t argv_find(const struct argv_plan *plan, char *const argv[])
{
    char pair[256];

    if (!plan->active || !argv || !argv[0])
        return 0;
    const char *name = basename(argv[0]);
    /* "trl sft": a program with its sub-command. */
    if (argv[1] && strlen(name) + strlen(argv[1]) + 2 < sizeof(pair)) {
        size_t n = strlen(name);
        memcpy(pair, name, n);
        pair[n] = ' ';
        memcpy(pair + n + 1, argv[1], strlen(argv[1]) + 1);
        if (is_program(plan, pair, argv, 2))
            return 2;
    }
    if (!launches(name))
        return strchr(argv[0], '/') && is_program(plan, argv[0], argv, 1) ? 1 : 0;
    for (size_t i = 1; argv[i]; i++) {
        if (argv[i][0] != '-' && is_program(plan, argv[i], argv, i + 1))
            return i + 1;
        /* Code in an argument is nobody's program. */
        if (strcmp(argv[i], "-c") == 0)
            return 0;
    }
    return 0;
}

bool argv_leaves_host(char *const argv[])
{
    static const char *const names[] = {"apptainer", "singularity", "enroot", "docker",
                                        "podman",    "shifter",     NULL};

    if (!argv || !argv[0])
        return false;
    const char *name = basename(argv[0]);
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    for (size_t i = 1; strcmp(name, "srun") == 0 && argv[i]; i++)
        if (strncmp(argv[i], "--container-", 12) == 0)
            return true;
    return false;
}

static bool same_name(const struct argv_plan *plan, const char *word, const char *name)
{
    while (*word == '-' || *word == '+')
        word++;
    while (*name == '-')
        name++;
    for (; *name; word++, name++)
        if (*word != *name &&
            !(plan->alike && (*word == '-' || *word == '_') && (*name == '-' || *name == '_')))
            return false;
    return *word == '\0' || *word == '=';
}

static bool is_flag(const char *word)
{
    return word && word[0] == '-' &&
           (word[1] == '-' || (word[1] >= 'A' && word[1] <= 'z' && word[1] != '\\'));
}

static bool file_first(char *const argv[], size_t first)
{
    const char *word = argv[first];
    size_t n = word ? strlen(word) : 0;

    return (n > 5 && strcmp(word + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(word + n - 4, ".yml") == 0) ||
           (n > 5 && strcmp(word + n - 5, ".json") == 0);
}

/* The vector being made: [start, end) are the program's arguments so far. */
struct draft {
    char **words;
    size_t start, end;
    bool changed;
};

static void cut(struct draft *d, size_t at, size_t count)
{
    memmove(d->words + at, d->words + at + count, (d->end - at - count) * sizeof(*d->words));
    d->end -= count;
    d->changed = true;
}

static void put(struct draft *d, const char *word)
{
    d->words[d->end++] = (char *)word;
    d->changed = true;
}

static void drop(const struct argv_plan *plan, const struct argv_record *r, struct draft *d)
{
    for (size_t i = d->start; i < d->end;) {
        bool flag = is_flag(d->words[i]);
        if (!same_name(plan, d->words[i], r->name) || (!flag && !strchr(d->words[i], '='))) {
            i++;
            continue;
        }
        bool with = flag && r->takes_value && !strchr(d->words[i], '=') && i + 1 < d->end &&
                    !is_flag(d->words[i + 1]);
        cut(d, i, with ? 2 : 1);
    }
}

static void set_flag(const struct argv_plan *plan, const struct argv_record *r, struct draft *d)
{
    for (size_t i = d->end; i-- > d->start;) {
        if (!is_flag(d->words[i]) || !same_name(plan, d->words[i], r->name))
            continue;
        const char *equals = strchr(d->words[i], '=');
        if (equals && strcmp(equals + 1, r->value) != 0) {
            d->words[i] = (char *)r->joined;
            d->changed = true;
        } else if (!equals && i + 1 < d->end && !is_flag(d->words[i + 1]) &&
                   strcmp(d->words[i + 1], r->value) != 0) {
            d->words[i + 1] = (char *)r->value;
            d->changed = true;
        }
        return;
    }
    put(d, r->joined);
}

static void set_key(const struct argv_plan *plan, const struct argv_record *r, struct draft *d)
{
    for (size_t i = d->end; i-- > d->start;) {
        const char *equals = strchr(d->words[i], '=');
        if (!equals || is_flag(d->words[i]) || !same_name(plan, d->words[i], r->name))
            continue;
        if (strcmp(equals + 1, r->value) == 0)
            return;
        break;
    }
    put(d, r->joined);
}

static void set_switch(const struct argv_plan *plan, const struct argv_record *r, struct draft *d)
{
    for (size_t i = d->start; i < d->end; i++)
        if (is_flag(d->words[i]) && same_name(plan, d->words[i], r->name))
            return;
    put(d, r->name);
}

bool argv_edit(const struct argv_plan *plan, char *const argv[], size_t first, char **out)
{
    struct draft d = {.words = out, .start = first};
    size_t count = 0, tail = 0;

    while (argv[count])
        count++;
    if (count >= ARGV_MAX_WORDS)
        return false;
    for (d.end = 0; d.end < count; d.end++) {
        if (d.end >= first && strcmp(argv[d.end], "--") == 0)
            break;
        out[d.end] = argv[d.end];
    }
    tail = d.end; /* a lone "--" and what is behind it stay behind */
    bool file = file_first(argv, first);
    for (size_t i = 0; i < plan->count; i++) {
        const struct argv_record *r = &plan->records[i];
        if (r->kind == ARGV_DROP)
            drop(plan, r, &d);
        else if (r->kind == ARGV_SET_FLAG || (r->kind == ARGV_SET_PLAIN && !file))
            set_flag(plan, r, &d);
        else if (r->kind == ARGV_SET_KEY || r->kind == ARGV_SET_PLAIN)
            set_key(plan, r, &d);
        else if (r->kind == ARGV_SWITCH)
            set_switch(plan, r, &d);
    }
    for (; tail < count; tail++)
        out[d.end++] = argv[tail];
    out[d.end] = NULL;
    return d.changed;
}
