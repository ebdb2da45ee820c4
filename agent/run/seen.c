/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/seen.h"

#include <stdlib.h>
#include <string.h>

#include "agent/run/run.h"

enum { MAX_COMMANDS = 256, MAX_POLLS = 256, TICK_MS = 10 };

struct poll {
    int64_t ms;
    int64_t lines[2];
};

struct seen {
    struct seen_command commands[MAX_COMMANDS];
    size_t count;
    int64_t look;             /* looks so far */
    int64_t look_ms, last_ms; /* when this one was, and the one before */
    struct poll polls[MAX_POLLS];
    size_t poll_count; /* so far: the newest take the place of the oldest */
};

struct seen *seen_new(void)
{
    return calloc(1, sizeof(struct seen));
}

void seen_clear(struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        free(seen->commands[i].argv);
    seen->count = seen->poll_count = 0;
    seen->look = seen->look_ms = seen->last_ms = 0;
}

void seen_free(struct seen *seen)
{
    if (!seen)
        return;
    seen_clear(seen);
    free(seen);
}

static bool same(char *const *a, char *const *b)
{
    while (*a && *b && strcmp(*a, *b) == 0)
        a++, b++;
    return !*a && !*b;
}

void seen_look(struct seen *seen, int64_t now_ms)
{
    seen->look++;
    seen->last_ms = seen->look_ms;
    seen->look_ms = now_ms;
}

/* Who had ended when this command began has written what was there at the first reading since. */
static bool settle(struct seen_command *command, const struct poll *poll)
{
    if (poll->ms < command->began_ms + TICK_MS)
        return false;
    memcpy(command->lines, poll->lines, sizeof(command->lines));
    return true;
}

void seen_add(struct seen *seen, char **argv, int64_t began_ms)
{
    for (size_t i = 0; i < seen->count; i++)
        if (same(seen->commands[i].argv, argv)) {
            seen->commands[i].last = seen->look;
            free(argv);
            return;
        }
    if (seen->count == MAX_COMMANDS) {
        free(argv);
        return;
    }
    /* A process that is older than the look before became this program since, nobody knows when. */
    if (began_ms < seen->last_ms)
        began_ms = seen->look_ms;
    struct seen_command *command = &seen->commands[seen->count++];
    *command = (struct seen_command){.argv = argv,
                                     .first = seen->look,
                                     .last = seen->look,
                                     .began_ms = began_ms,
                                     .lines = {INT64_MAX, INT64_MAX}};
    size_t kept = seen->poll_count < MAX_POLLS ? seen->poll_count : MAX_POLLS;
    for (size_t i = seen->poll_count - kept; i < seen->poll_count; i++)
        if (settle(command, &seen->polls[i % MAX_POLLS]))
            return;
}

void seen_poll(struct seen *seen, int64_t now_ms, int64_t out_lines, int64_t err_lines)
{
    struct poll *poll = &seen->polls[seen->poll_count++ % MAX_POLLS];

    *poll = (struct poll){now_ms, {out_lines, err_lines}};
    for (size_t i = seen->count; i-- > 0;)
        if (seen->commands[i].lines[0] == INT64_MAX)
            settle(&seen->commands[i], poll);
}

/* Configurations only: what a shell will run shows as processes of its own. */
static int read_config(void *arg, const char *path, char **bytes, size_t *length)
{
    static const char *const ends[] = {".yaml", ".yml", ".json"};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strcmp(dot, ends[i]) == 0)
            return launch_read_side(arg, path, bytes, length);
    return -1;
}

static struct oom_script *as_script(char *const *argv)
{
    static const char *const nothing[] = {NULL};
    struct oom_script_source source = {
        .name = "argv", .args = nothing, .environ_list = nothing, .read_side = read_config};

    return oom_script_from_argv((const char *const *)argv, &source, NULL);
}

/* True when the policy knows this command line; its settings are added to `values`, if not NULL. */
static bool take(char *const *argv, const struct oom_policy *policy, struct oom_values *values)
{
    struct oom_values found = {NULL, 0};
    struct oom_script *script = as_script(argv);
    bool known = script && oom_script_recognise(script, &policy, 1) == 0;

    if (known && values && oom_script_values(script, policy, &found, NULL) == 0)
        oom_values_fill(values, &found, OOM_SOURCE_ARGV);
    oom_values_free(&found);
    oom_script_free(script);
    return known;
}

char *const *seen_script(char *const *argv)
{
    /* The first line of a script can give its interpreter one option. */
    size_t at = argv[1] && argv[1][0] == '-' ? 2 : 1;

    return argv[1] && argv[at] && strchr(argv[at], '/') ? argv + at : NULL;
}

static bool take_any(char *const *argv, const struct oom_policy *policy, struct oom_values *values)
{
    char *const *script = seen_script(argv);

    return take(argv, policy, values) || (script && take(script, policy, values));
}

bool seen_recognises(const struct seen *seen, const struct oom_policy *policy)
{
    for (size_t i = 0; i < seen->count; i++)
        if (take_any(seen->commands[i].argv, policy, NULL))
            return true;
    return false;
}

int seen_last(const struct seen *seen, struct oom_policy *const *policies, size_t count)
{
    for (size_t i = seen->count; i-- > 0;)
        for (size_t p = 0; p < count; p++)
            if (take_any(seen->commands[i].argv, policies[p], NULL))
                return (int)p;
    return -1;
}

void seen_values(const struct seen *seen, const struct oom_policy *policy,
                 struct oom_values *values)
{
    for (size_t i = 0; i < seen->count; i++)
        take_any(seen->commands[i].argv, policy, values);
}

const struct seen_command *seen_at(const struct seen *seen, size_t i)
{
    return i < seen->count ? &seen->commands[i] : NULL;
}

bool seen_is_of(const struct seen_command *command, const struct oom_policy *policy)
{
    return take_any(command->argv, policy, NULL);
}
