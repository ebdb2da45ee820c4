/* SPDX-License-Identifier: Apache-2.0
 *
 * Edits of knobs to a new script. The first guess of every place is taken together and checked by
 * walking the result; when that fails, places are tried one after the other. */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/affected.h"
#include "policies/rewrite/apply.h"

/* Of all checks of one rewrite: every way of every place is walked once at most, and a large script
 * may have many. */
#define TRY_STEP_LIMIT 1500000U

bool rw_add_all(struct rw *rw, struct rw_changes *to, const struct rw_changes *from)
{
    struct rw_changes trial = {0};

    for (size_t i = 0; i < to->count; i++)
        rw_changes_add(rw, &trial, &to->items[i]);
    for (size_t i = 0; i < from->count; i++)
        if (!rw_changes_add(rw, &trial, &from->items[i]))
            return false;
    *to = trial;
    return true;
}

/* Whether the script with these changes does what the accepted tasks want, and nothing else. */
static int try(struct rw_job *job, const struct rw_changes *changes, struct oom_error *err)
{
    struct rw_analysis after;
    struct rw_changes all = {0};
    size_t length;

    if (job->try_steps > TRY_STEP_LIMIT)
        return oom_errorf(err, "the script is too large for trying more places");
    if (!rw_add_all(&job->before.rw, &all, changes) ||
        !rw_copies_follow(&job->before.rw, &job->copies, &all))
        return oom_errorf(err, "a file that the script calls cannot be replaced by a copy");
    const char *bytes = rw_changes_apply(&job->before.rw, &all, job->before.rw.root, &length);
    int rc = rw_analyse(&after, job->script, bytes, length, job->policy, job->env_names,
                        job->env_count, &job->before, &all, err);
    job->try_steps += after.rw.steps;
    if (rc != 0)
        return -1;
    if (setjmp(after.rw.bail)) {
        rc = oom_errorf(err, "%s: too large to be checked", job->script->source.name);
    } else if (job->before.rw.root->error_at == RW_NO_ERROR &&
               after.rw.root->error_at != RW_NO_ERROR) {
        rc = oom_errorf(err, "the new script would not parse");
    } else {
        rc = rw_check(&job->before, &after, job->policy, job->knobs, job->knob_count, &job->tasks,
                      err);
    }
    rw_analysis_free(&after);
    return rc;
}

static int place_together(struct rw_job *job)
{
    struct rw_changes all = {0};

    for (size_t t = 0; t < job->tasks.count; t++) {
        struct rw_task *task = &job->tasks.items[t];
        if (task->done)
            continue;
        if (!task->places.count || !rw_add_all(&job->before.rw, &all, &task->places.options[0]))
            return -1;
        task->accepted = true;
    }
    if (all.count && try(job, &all, NULL) != 0)
        return -1;
    job->accepted = all;
    return 0;
}

/* The command stands in a file that the script calls or sources. */
static bool in_side_file(const struct rw_cmd *cmd)
{
    const struct rw_buf *buf = cmd->buf;

    for (int depth = 0; buf->text && buf->text->count && depth < 16; depth++)
        buf = buf->text->frags[0].buf;
    return !buf->editable && !buf->text;
}

static int place_one_by_one(struct rw_job *job, struct oom_error *err)
{
    for (size_t t = 0; t < job->tasks.count; t++)
        job->tasks.items[t].accepted = false;
    for (size_t t = 0; t < job->tasks.count; t++) {
        struct rw_task *task = &job->tasks.items[t];
        struct oom_error why = {""};
        if (task->done)
            continue;
        task->accepted = true;
        size_t way = 0;
        for (; way < task->places.count; way++) {
            struct rw_changes trial = job->accepted;
            if (!rw_add_all(&job->before.rw, &trial, &task->places.options[way]))
                continue;
            if (try(job, &trial, &why) == 0) {
                job->accepted = trial;
                break;
            }
        }
        if (way == task->places.count && in_side_file(task->first)) {
            task->accepted = false;
            task->at_exec = true;
        } else if (way == task->places.count) {
            const struct rw_cmd *cmd = task->first;
            return oom_errorf(err, "%s: there is no place for it in the command of %s:%u%s%s",
                              task->knob->name, job->script->source.name,
                              rw_line_of(cmd->buf, cmd->start), why.text[0] ? ": " : "", why.text);
        }
    }
    return 0;
}

/* The script starts something that is out of sight: only the preload library can reach it. */
static int leave_to_exec(struct rw_job *job, const struct oom_edits *edits, struct oom_rewrite *out,
                         struct oom_error *err)
{
    bool hidden = job->before.rw.opaque_env || job->script->source.starts_unseen;

    for (size_t w = 0; w < job->before.count; w++)
        for (size_t c = 0; c < job->before.worlds[w].count; c++)
            hidden |= job->before.worlds[w].cmds[c].file != NULL;
    if (!hidden)
        return oom_errorf(err, "%s: no command in it is a training program of %s",
                          job->script->source.name, oom_policy_name(job->policy));
    for (size_t e = 0; e < edits->count; e++) {
        const struct oom_edit *edit = &edits->items[e];
        if (strncmp(edit->knob, "slurm:", 6) == 0 || strncmp(edit->knob, "ray:", 4) == 0)
            continue;
        if (oom_edits_add(&out->exec_edits, edit->knob, edit->old_value, edit->new_value, NULL))
            return oom_errorf(err, "out of memory");
    }
    return rw_finish(job, edits, out, err);
}

static int prepare(struct rw_job *job, const struct oom_edits *edits, struct oom_error *err)
{
    /* Behind the edits there is room for the files that these stand in. */
    size_t count = 2 * edits->count + 1;
    const char *path;

    job->knobs = calloc(count, sizeof(*job->knobs));
    job->env_names = calloc(count, sizeof(*job->env_names));
    if (!job->knobs || !job->env_names)
        return oom_errorf(err, "out of memory");
    /* What is taken away goes first: what is added may stand in its place. */
    for (size_t e = 0; e < 2 * edits->count; e++) {
        const struct oom_edit *edit = &edits->items[e % edits->count];
        bool removal = !edit->new_value;
        if (strncmp(edit->knob, "slurm:", 6) == 0 || strncmp(edit->knob, "ray:", 4) == 0 ||
            removal != (e < edits->count) || rw_file_of(job->policy, edit->knob, &path))
            continue;
        struct rw_knob *knob = &job->knobs[job->knob_count++];
        knob->name = edit->knob;
        knob->value = edit->new_value;
        knob->env = strncmp(edit->knob, "env:", 4) == 0;
        knob->known = oom_policy_knob(job->policy, edit->knob);
        if (knob->env)
            job->env_names[job->env_count++] = edit->knob + 4;
    }
    return 0;
}

/* The commands must use the copies. */
static void want_copies(struct rw_job *job)
{
    for (const struct rw_side *side = job->sides.first; side; side = side->next) {
        bool listed = !side->bytes || side->outer;
        for (size_t k = 0; k < job->knob_count && !listed; k++)
            listed = job->knobs[k].file && strcmp(job->knobs[k].file, side->file) == 0;
        if (listed)
            continue;
        job->knobs[job->knob_count++] =
            (struct rw_knob){.name = rw_printf(&job->before.rw.arena, "%s:", side->file),
                             .value = side->new_path,
                             .file = side->file,
                             .sides = &job->sides};
    }
}

static void place_sbatch(struct rw_job *job, const struct oom_edits *edits)
{
    for (size_t e = 0; e < edits->count; e++) {
        const struct oom_edit *edit = &edits->items[e];
        struct rw_places places = {0};
        if (job->script->from_argv || strncmp(edit->knob, "slurm:", 6) != 0 || !edit->new_value)
            continue;
        rw_sbatch_places(&job->before.rw, job->before.rw.root, edit->knob + 6, edit->new_value,
                         &places);
        rw_add_all(&job->before.rw, &job->fixed, &places.options[0]);
    }
}

/* Of a policy that knows no programs: a flag is changed where it is, and nowhere added. */
static int check_placed(const struct rw_job *job, struct oom_error *err)
{
    for (size_t k = 0; rw_takes_anything(job->policy) && k < job->knob_count; k++) {
        bool placed = false;
        for (size_t t = 0; t < job->tasks.count; t++)
            placed |= job->tasks.items[t].knob == &job->knobs[k];
        if (!placed)
            return oom_errorf(err, "%s: no command in it is seen to take %s",
                              job->script->source.name, job->knobs[k].name);
    }
    return 0;
}

int oom_script_apply(const struct oom_script *script, const struct oom_policy *policy,
                     const struct oom_edits *edits, struct oom_rewrite *out, struct oom_error *err)
{
    struct rw_job job = {.script = script, .policy = policy};
    int rc = -1;

    memset(out, 0, sizeof(*out));
    if (prepare(&job, edits, err) != 0)
        goto done;
    if (rw_analyse(&job.before, script, script->root->bytes, script->root->length, policy,
                   job.env_names, job.env_count, NULL, NULL, err) != 0)
        goto done;
    if (setjmp(job.before.rw.bail)) {
        oom_errorf(err, "%s: too large to be rewritten", script->source.name);
        rc = -1;
    } else {
        if (script->source.for_what_ran)
            rw_keep_affected(&job.before, policy, edits, script->source.ran);
        place_sbatch(&job, edits);
        if (rw_sides_make(&job.before, script, policy, edits, &job.sides, err) != 0) {
            rc = -1;
        } else if (job.knob_count && !job.before.training) {
            rc = leave_to_exec(&job, edits, out, err);
        } else {
            want_copies(&job);
            rw_tasks_make(&job.before, policy, job.knobs, job.knob_count, &job.tasks);
            rc = check_placed(&job, err);
            if (rc == 0 && place_together(&job) != 0)
                rc = place_one_by_one(&job, err);
            if (rc == 0)
                rc = rw_finish(&job, edits, out, err);
        }
    }
    rw_sides_free(&job.sides);
    rw_analysis_free(&job.before);
done:
    free(job.knobs);
    free(job.env_names);
    if (rc != 0)
        oom_rewrite_free(out);
    return rc;
}
