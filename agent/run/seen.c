/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/seen.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COMMANDS = 256 };

struct seen {
    char **commands[MAX_COMMANDS];
    size_t count;
};

struct seen *seen_new(void)
{
    return calloc(1, sizeof(struct seen));
}

void seen_clear(struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        free(seen->commands[i]);
    seen->count = 0;
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

void seen_add(struct seen *seen, char **argv)
{
    for (size_t i = 0; i < seen->count; i++)
        if (same(seen->commands[i], argv)) {
            free(argv);
            return;
        }
    if (seen->count == MAX_COMMANDS) {
        free(argv);
        return;
    }
    seen->commands[seen->count++] = argv;
}

static struct oom_script *as_script(char *const *argv)
{
    static const char *const nothing[] = {NULL};
    struct oom_script_source source = {.name = "argv", .args = nothing, .environ_list = nothing};

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
        if (take_any(seen->commands[i], policy, NULL))
            return true;
    return false;
}

int seen_last(const struct seen *seen, struct oom_policy *const *policies, size_t count)
{
    for (size_t i = seen->count; i-- > 0;)
        for (size_t p = 0; p < count; p++)
            if (take_any(seen->commands[i], policies[p], NULL))
                return (int)p;
    return -1;
}

void seen_values(const struct seen *seen, const struct oom_policy *policy,
                 struct oom_values *values)
{
    for (size_t i = 0; i < seen->count; i++)
        take_any(seen->commands[i], policy, values);
}
