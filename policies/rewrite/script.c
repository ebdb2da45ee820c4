/* SPDX-License-Identifier: Apache-2.0
 *
 * A script as an object: parsed once, read and rewritten any number of times. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/plan.h"

static const char *const *copy_list(struct rw_arena *arena, const char *const *list)
{
    size_t count = 0;

    if (!list)
        return NULL;
    while (list[count])
        count++;
    const char **copy = rw_alloc(arena, (count + 1) * sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = rw_strndup(arena, list[i], strlen(list[i]));
    return copy;
}

static void copy_source(struct oom_script *script, const struct oom_script_source *source)
{
    struct rw_arena *arena = &script->arena;
    const char *name = source->name ? source->name : "script";

    script->source = *source;
    script->source.name = rw_strndup(arena, name, strlen(name));
    script->source.bytes = rw_strndup(arena, source->bytes, source->length);
    if (source->directory)
        script->source.directory = rw_strndup(arena, source->directory, strlen(source->directory));
    script->source.args = copy_list(arena, source->args);
    script->source.environ_list = copy_list(arena, source->environ_list);
}

/* What stands at a syntax error, for the message. */
static int refuse(const struct rw_buf *root, struct oom_error *err)
{
    uint32_t at = root->error_at, column = 1;
    char near[41];
    size_t n = 0;

    while (column <= at && root->bytes[at - column] != '\n')
        column++;
    for (uint32_t i = at; i < root->length && n + 1 < sizeof(near) && root->bytes[i] != '\n'; i++)
        near[n++] = isprint((unsigned char)root->bytes[i]) ? root->bytes[i] : '?';
    near[n] = '\0';
    return oom_errorf(err, "%s:%u:%u: bash would not accept this%s%s%s", root->name,
                      rw_line_of(root, at), column, n ? ", near \"" : "", near, n ? "\"" : "");
}

/* Copies and parses; both arenas unwind to here. */
static int fill(struct oom_script *script, struct rw *rw, const struct oom_script_source *source,
                struct oom_error *err)
{
    if (setjmp(rw->bail))
        return oom_errorf(err, "%s: too large", source->name ? source->name : "script");
    copy_source(script, source);
    script->root = rw_buf_new(rw, script->source.bytes, source->length, script->source.name, 1);
    script->root->editable = true;
    rw_parse(rw, script->root);
    if (script->root->error_at != RW_NO_ERROR)
        return refuse(script->root, err);
    return 0;
}

static struct oom_script *parse(const struct oom_script_source *source, bool from_argv,
                                struct oom_error *err)
{
    struct oom_script *script = calloc(1, sizeof(*script));
    struct rw rw;

    if (!script) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    memset(&rw, 0, sizeof(rw));
    script->from_argv = from_argv;
    script->arena.limit_bytes = 16U << 20;
    rw.arena.limit_bytes = 128U << 20;
    script->arena.bail = rw.arena.bail = &rw.bail;
    int rc = fill(script, &rw, source, err);
    /* The tree stands in the arena of this call, which becomes the script's second one. */
    script->parsed = rw.arena;
    script->arena.bail = script->parsed.bail = NULL;
    if (rc != 0) {
        oom_script_free(script);
        return NULL;
    }
    return script;
}

struct oom_script *oom_script_parse(const struct oom_script_source *source, struct oom_error *err)
{
    const char *name = source->name ? source->name : "script";

    if (source->length > RW_MAX_SCRIPT_BYTES) {
        oom_errorf(err, "%s: longer than %u MiB", name, RW_MAX_SCRIPT_BYTES >> 20);
        return NULL;
    }
    if (source->length && memchr(source->bytes, '\0', source->length)) {
        oom_errorf(err, "%s: holds a NUL byte, so it is not a script", name);
        return NULL;
    }
    if (source->length > 1 && source->bytes[0] == '#' && source->bytes[1] == '!') {
        const char *end = memchr(source->bytes, '\n', source->length);
        size_t length = end ? (size_t)(end - source->bytes) : source->length;
        if (memmem(source->bytes, length, "python", 6) ||
            memmem(source->bytes, length, "perl", 4) || memmem(source->bytes, length, "csh", 3)) {
            oom_errorf(err,
                       "%s:1: only scripts for sh and bash can be rewritten, this one starts "
                       "%.*s",
                       name, (int)(length < 60 ? length : 60), source->bytes);
            return NULL;
        }
    }
    return parse(source, false, err);
}

struct oom_script *oom_script_from_argv(const char *const *argv, const struct oom_script_source *s,
                                        struct oom_error *err)
{
    struct oom_script_source source = *s;
    size_t size = 1;

    for (size_t i = 0; argv[i]; i++)
        size += strlen(argv[i]) * 4 + 4;
    char *bytes = malloc(size);
    if (!bytes) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    size_t at = 0;
    for (size_t i = 0; argv[i]; i++) {
        const char *word = argv[i];
        bool plain = *word && strspn(word, RW_PLAIN) == strlen(word);
        if (i)
            bytes[at++] = ' ';
        if (!plain)
            bytes[at++] = '\'';
        for (; *word; word++) {
            if (*word == '\'') {
                memcpy(bytes + at, "'\\''", 4);
                at += 4;
            } else {
                bytes[at++] = *word;
            }
        }
        if (!plain)
            bytes[at++] = '\'';
    }
    bytes[at] = '\0';
    source.bytes = bytes;
    source.length = at;
    struct oom_script *script = parse(&source, true, err);
    free(bytes);
    return script;
}

void oom_script_free(struct oom_script *script)
{
    if (!script)
        return;
    rw_arena_free(&script->arena);
    rw_arena_free(&script->parsed);
    free(script);
}

void oom_script_ran(struct oom_script *script, const char *const *argv)
{
    script->source.ran = argv;
    script->source.for_what_ran = argv != NULL;
}

int oom_script_recognise(const struct oom_script *script, const struct oom_policy *const *policies,
                         size_t count)
{
    struct rw_analysis a;

    for (size_t i = 0; i < count; i++) {
        if (rw_analyse(&a, script, script->root->bytes, script->root->length, policies[i], NULL, 0,
                       NULL, NULL, NULL) != 0)
            continue;
        bool ours = a.training && a.by_policy;
        rw_analysis_free(&a);
        if (ours)
            return (int)i;
    }
    return -1;
}

char **oom_script_log_paths(const struct oom_script *script)
{
    struct rw_analysis a;
    char **paths = NULL;

    if (rw_analyse(&a, script, script->root->bytes, script->root->length, NULL, NULL, 0, NULL, NULL,
                   NULL) != 0)
        return NULL;
    if (a.rw.log_count)
        paths = calloc(a.rw.log_count + 1, sizeof(*paths));
    for (size_t i = 0; paths && i < a.rw.log_count; i++)
        paths[i] = strdup(a.rw.logs[i]);
    rw_analysis_free(&a);
    return paths;
}

void oom_script_log_paths_free(char **paths)
{
    for (char **p = paths; p && *p; p++)
        free(*p);
    free(paths);
}
