/* SPDX-License-Identifier: Apache-2.0
 *
 * What came of a rewrite: the new script or words, the copies, and what was changed where. */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/apply.h"

static const char for_entrypoint[] =
    " (for the entrypoint only: Ray's workers have what its runtime environment says)";

static bool entrypoint_only(const struct rw_task *task)
{
    return task->knob->env && task->knob->value && task->first->ray && !rw_ray_reaches(task->first);
}

static int report_task(struct rw_job *job, const struct rw_task *task, const char *given_old,
                       struct oom_edits *out)
{
    struct rw *rw = &job->before.rw;
    const char *old = given_old, *where = NULL;
    struct rw_text text;

    if (task->hit)
        old = rw_hit_value(rw, task->first, task->hit);
    else if (task->knob->env && rw_env_value(rw, task->first, task->knob->name + 4, &text))
        old = rw_text_string(rw, &text);
    if (!task->done && task->places.count) {
        struct rw_changes mine = {0};
        for (size_t w = 0; w < task->places.count && !mine.count; w++) {
            const struct rw_changes *way = &task->places.options[w];
            for (size_t i = 0; i < job->accepted.count && !mine.count; i++)
                if (way->count && way->items[0].start == job->accepted.items[i].start &&
                    strcmp(way->items[0].text, job->accepted.items[i].text) == 0)
                    mine = *way;
        }
        const struct rw_change *change = mine.count ? &mine.items[0] : NULL;
        if (change)
            where = rw_printf(&rw->arena, "%s:%u%s", change->buf->name,
                              rw_line_of(change->buf, change->start),
                              entrypoint_only(task) ? for_entrypoint : "");
    }
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].knob, task->knob->name) == 0)
            return 0;
    return oom_edits_add(out, task->knob->name, old, task->knob->value, where);
}

static int report(struct rw_job *job, const struct oom_edits *edits, struct oom_rewrite *out)
{
    for (size_t e = 0; e < edits->count; e++) {
        const struct oom_edit *edit = &edits->items[e];
        size_t before = out->edits.count;
        for (size_t t = 0; t < job->tasks.count; t++)
            if (strcmp(job->tasks.items[t].knob->name, edit->knob) == 0 &&
                report_task(job, &job->tasks.items[t], edit->old_value, &out->edits) != 0)
                return -1;
        if (out->edits.count > before)
            continue;
        char where[512];
        const char *old = edit->old_value, *path, *place;
        const char *file = rw_file_of(job->policy, edit->knob, &path);
        where[0] = '\0';
        if (file) {
            rw_side_present(&job->before.rw, &job->sides, file, path, &old, &place);
            snprintf(where, sizeof(where), "%.500s", place ? place : "");
        }
        if (strncmp(edit->knob, "slurm:", 6) == 0) {
            uint32_t line = 0;
            const char *value =
                rw_sbatch_value(&job->before.rw, job->before.rw.root, edit->knob + 6, &line);
            old = value ? value : old;
            if (value)
                snprintf(where, sizeof(where), "%.40s:%u", job->script->source.name, line);
        }
        if (oom_edits_add(&out->edits, edit->knob, old, edit->new_value, where[0] ? where : NULL) !=
            0)
            return -1;
    }
    return 0;
}

/* The words of the one command that a script from an argument vector is. */
static char **argv_of(const struct oom_script *script, const char *bytes, size_t length)
{
    struct rw rw;
    struct rw_fields fields = {0};
    char **argv = NULL;

    memset(&rw, 0, sizeof(rw));
    rw.arena.limit_bytes = 64U << 20;
    rw.arena.bail = &rw.bail;
    rw.source = &script->source;
    if (setjmp(rw.bail)) {
        rw_arena_free(&rw.arena);
        return NULL;
    }
    struct rw_buf *buf = rw_buf_new(&rw, bytes, length, "argv", 0);
    rw.root = buf;
    for (uint32_t at = 0; at < length;) {
        uint32_t end = at;
        while (end < length && bytes[end] != ' ' && bytes[end] != '\n') {
            if (bytes[end] == '\'')
                end = rw_skip_single(bytes, end, (uint32_t)length);
            else if (bytes[end] == '"')
                end = rw_skip_double(bytes, end, (uint32_t)length);
            else
                end += bytes[end] == '\\' ? 2 : 1;
        }
        if (end > at)
            rw_expand_word(&rw, buf, at, end < length ? end : (uint32_t)length, false, &fields);
        at = end + 1;
    }
    argv = calloc(fields.count + 1, sizeof(*argv));
    for (size_t i = 0; argv && i < fields.count; i++)
        argv[i] = strdup(fields.items[i].string);
    rw_arena_free(&rw.arena);
    return argv;
}

/* A variable in front of the whole vector is not a program: `env` starts it. */
static const char *startable(struct rw *rw, const char *bytes, size_t *length)
{
    size_t name = strspn(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    if (!name || bytes[name] != '=')
        return bytes;
    const char *with = rw_printf(&rw->arena, "env %s", bytes);
    *length = strlen(with);
    return with;
}

static char *copy_bytes(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);

    if (copy) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}

/* The copies of sourced and called files. */
static int hand_over_scripts(const struct rw_changes *all, struct oom_rewrite *out)
{
    for (const struct rw_overlay *file = all->overlay; file; file = file->next) {
        struct oom_side_copy *more =
            realloc(out->copies, (out->copy_count + 1) * sizeof(*out->copies));
        if (!more)
            return -1;
        out->copies = more;
        struct oom_side_copy *copy = &more[out->copy_count++];
        *copy = (struct oom_side_copy){.path = strdup(file->buf->name),
                                       .new_path = strdup(file->path),
                                       .bytes = copy_bytes(file->bytes, file->length),
                                       .length = file->length,
                                       .old_bytes = copy_bytes(file->buf->bytes, file->buf->length),
                                       .old_length = file->buf->length};
        if (!copy->path || !copy->new_path || !copy->bytes || !copy->old_bytes)
            return -1;
    }
    return 0;
}

int rw_finish(struct rw_job *job, const struct oom_edits *edits, struct oom_rewrite *out,
              struct oom_error *err)
{
    struct rw *rw = &job->before.rw;
    struct rw_changes all = {0};
    size_t length;

    if (!rw_add_all(rw, &all, &job->fixed) || !rw_add_all(rw, &all, &job->accepted) ||
        !rw_copies_follow(rw, &job->copies, &all))
        return oom_errorf(err, "%s: two changes meet in one place", job->script->source.name);
    for (size_t t = 0; t < job->tasks.count; t++) {
        const struct rw_knob *knob = job->tasks.items[t].knob;
        if (job->tasks.items[t].at_exec &&
            oom_edits_add(&out->exec_edits, knob->name, NULL, knob->value, NULL) != 0)
            return oom_errorf(err, "out of memory");
    }
    out->needs_exec = out->exec_edits.count > 0;
    const char *bytes = rw_changes_apply(rw, &all, rw->root, &length);
    if (job->script->from_argv)
        bytes = startable(rw, bytes, &length);
    out->bytes = malloc(length + 1);
    if (!out->bytes || report(job, edits, out) != 0)
        return oom_errorf(err, "out of memory");
    memcpy(out->bytes, bytes, length);
    out->bytes[length] = '\0';
    out->length = length;
    if (rw_sides_hand_over(&job->sides, out) != 0 || hand_over_scripts(&all, out) != 0)
        return oom_errorf(err, "out of memory");
    if (job->script->from_argv) {
        out->argv = argv_of(job->script, out->bytes, length);
        if (!out->argv)
            return oom_errorf(err, "out of memory");
    }
    return 0;
}

void oom_rewrite_free(struct oom_rewrite *rewrite)
{
    free(rewrite->bytes);
    for (char **a = rewrite->argv; a && *a; a++)
        free(*a);
    free(rewrite->argv);
    oom_edits_free(&rewrite->edits);
    for (size_t i = 0; i < rewrite->copy_count; i++) {
        free(rewrite->copies[i].path);
        free(rewrite->copies[i].new_path);
        free(rewrite->copies[i].bytes);
        free(rewrite->copies[i].old_bytes);
    }
    free(rewrite->copies);
    oom_edits_free(&rewrite->exec_edits);
    oom_edits_free(&rewrite->references);
    memset(rewrite, 0, sizeof(*rewrite));
}
