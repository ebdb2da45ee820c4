/* SPDX-License-Identifier: Apache-2.0
 *
 * What a policy says of things outside of the command line: configuration files, other files that
 * hold settings, and what programs print. Those who use them read the document themselves. */
#include <stdlib.h>
#include <string.h>

#include "policies/policy_read.h"

/* Where the framework's configuration file is named; rewrite reads the document itself. */
static int parse_config(const struct oom_policy *policy, const struct place *place)
{
    const json_t *config = json_object_get(policy->document, "config");
    struct place here = read_inside(place, "config");
    bool positional;

    if (!config)
        return 0;
    return read_check_keys(&here, config, "flags positional") != 0 ||
                   read_strings(&here, config, "flags") != 0 ||
                   read_bool(&here, config, "positional", &positional) != 0
               ? -1
               : 0;
}

/* The files that hold settings of their own; rewrite reads the document itself. */
static int parse_files(const struct oom_policy *policy, const struct place *place)
{
    const json_t *files = json_object_get(policy->document, "files");
    struct place here = read_inside(place, "files");
    const char *name, *key;
    json_t *entry;
    bool flag;

    if (!files)
        return 0;
    if (!json_is_object(files))
        return read_wrong(&here, "must be an object, { }");
    json_object_foreach((json_t *)files, name, entry)
    {
        struct place there = read_inside(&here, name);
        if (!*name || strlen(name) > 31 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz_") != strlen(name) ||
            strcmp(name, "env") == 0 || strcmp(name, "slurm") == 0 || strcmp(name, "ray") == 0)
            return read_wrong(&there, "a file's name is a short word, not env, slurm or ray");
        if (read_check_keys(&there, entry, "flags launcher positional key about") != 0 ||
            read_strings(&there, entry, "flags") != 0 ||
            read_bool(&there, entry, "launcher", &flag) != 0 ||
            read_bool(&there, entry, "positional", &flag) != 0 ||
            read_string(&there, entry, "about", false, &key) != 0 ||
            read_string(&there, entry, "key", false, &key) != 0)
            return -1;
        size_t n = key ? strcspn(key, ":") : 0;
        char *outer = key && key[n] ? strndup(key, n) : NULL;
        bool known = outer && strcmp(outer, name) != 0 && json_object_get(files, outer);
        free(outer);
        if (key && !known)
            return read_wrong(&there, "key: is FILE:SETTING of another entry");
    }
    return 0;
}

/* How the framework prints its own settings; dump.c reads the document itself. */
static int parse_dump(const struct oom_policy *policy, const struct place *place)
{
    const json_t *dumps = json_object_get(policy->document, "dump"), *dump;
    struct place list = read_inside(place, "dump");
    const char *mark = NULL, *begin = NULL, *end = NULL;
    bool complete = false;
    size_t i;

    if (dumps && !json_is_array(dumps))
        return read_wrong(&list, "must be an array");
    json_array_foreach((json_t *)dumps, i, dump)
    {
        struct place here = read_at(&list, i);
        mark = begin = end = NULL;
        if (read_check_keys(&here, dump, "mark begin end complete unlisted about") != 0 ||
            read_string(&here, dump, "mark", false, &mark) != 0 ||
            read_string(&here, dump, "begin", false, &begin) != 0 ||
            read_string(&here, dump, "end", false, &end) != 0 ||
            read_bool(&here, dump, "complete", &complete) != 0 ||
            read_strings(&here, dump, "unlisted") != 0)
            return -1;
        if ((mark && (!*mark || begin || end)) || (!begin != !end) || (begin && (!*begin || !*end)))
            return read_wrong(&here, "has either a mark, or begin and end of a table, or neither");
    }
    return 0;
}

int policy_parse_outside(const struct oom_policy *policy, const struct place *place)
{
    return parse_config(policy, place) != 0 || parse_files(policy, place) != 0 ||
                   parse_dump(policy, place) != 0
               ? -1
               : 0;
}
