/* SPDX-License-Identifier: Apache-2.0
 *
 * Changed copies of the files that training commands name, and the commands that name them. */
#include "policies/rewrite/sides.h"

#include <stdlib.h>
#include <string.h>

#include "policies/confedit.h"

static struct rw_side *side_of(struct rw *rw, struct rw_sides *sides, const char *file,
                               const char *path)
{
    struct rw_side **at = &sides->first;

    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->file, file) == 0 && strcmp((*at)->path, path) == 0)
            return *at;
    struct rw_side *side = rw_alloc(&rw->arena, sizeof(*side));
    side->file = file;
    side->path = rw_strndup(&rw->arena, path, strlen(path));
    *at = side;
    return side;
}

static void add_edit(struct rw *rw, struct rw_side *side, const char *path, const char *value,
                     const char *type)
{
    for (size_t i = 0; i < side->edit_count; i++)
        if (strcmp(side->edits[i].path, path) == 0)
            return;
    struct oom_confedit *more = rw_alloc(&rw->arena, (side->edit_count + 1) * sizeof(*side->edits));
    if (side->edit_count)
        memcpy(more, side->edits, side->edit_count * sizeof(*more));
    more[side->edit_count++] = (struct oom_confedit){path, value, type};
    side->edits = more;
}

/* The file that one command names, with what is to change in it. */
static int want(struct rw_analysis *a, const struct oom_script *script,
                const struct oom_policy *policy, const struct oom_edit *edit,
                const struct rw_cmd *cmd, struct rw_sides *sides, struct oom_error *err)
{
    const struct oom_knob *known = oom_policy_knob(policy, edit->knob);
    const char *path, *file = rw_file_of(policy, edit->knob, &path);
    struct rw *rw = &a->rw;
    struct rw_ref ref, outer;

    if (!rw_ref_find(rw, policy, cmd, file, &ref))
        return oom_errorf(err, "%s: the command of %s:%u names no file that holds it", edit->knob,
                          script->source.name, rw_line_of(cmd->buf, cmd->start));
    struct rw_side *side = side_of(rw, sides, file, ref.path);
    if (ref.outer && rw_ref_find(rw, policy, cmd, ref.outer, &outer)) {
        side->outer = side_of(rw, sides, ref.outer, outer.path);
        side->outer_key = ref.outer_key;
    }
    add_edit(rw, side, path, edit->new_value, known ? known->type : NULL);
    return 0;
}

static int make_copy(struct rw *rw, const struct oom_script *script, struct rw_side *side,
                     struct oom_error *err)
{
    const struct oom_script_source *source = &script->source;
    char *place;

    if (!side->edit_count)
        return 0;
    if (!source->read_side || source->read_side(source->read_side_arg, side->path, &side->old_bytes,
                                                &side->old_length) != 0)
        return oom_errorf(err, "%s:%s: %s cannot be read", side->file, side->edits[0].path,
                          side->path);
    if (oom_confedit_apply(side->path, side->old_bytes, side->old_length,
                           oom_config_format_of(side->path), side->edits, side->edit_count,
                           &side->bytes, &side->length, err) != 0)
        return -1;
    if (side->length == side->old_length &&
        memcmp(side->bytes, side->old_bytes, side->length) == 0) {
        free(side->bytes);
        side->bytes = NULL;
        return 0;
    }
    place =
        source->place_copy ? source->place_copy(source->place_copy_arg, side->path, false) : NULL;
    if (!place)
        return oom_errorf(err, "%s:%s: there is no place for a changed copy of %s", side->file,
                          side->edits[0].path, side->path);
    side->new_path = rw_strndup(&rw->arena, place, strlen(place));
    free(place);
    if (side->outer)
        add_edit(rw, side->outer, side->outer_key, side->new_path, "string");
    return 0;
}

int rw_sides_make(struct rw_analysis *a, const struct oom_script *script,
                  const struct oom_policy *policy, const struct oom_edits *edits,
                  struct rw_sides *out, struct oom_error *err)
{
    const char *path;
    int rc = 0;

    for (size_t e = 0; e < edits->count && rc == 0; e++) {
        if (!rw_file_of(policy, edits->items[e].knob, &path) || !*path)
            continue;
        if (!a->training)
            rc = oom_errorf(err, "%s: %s shows no command that names a file for it",
                            edits->items[e].knob, script->source.name);
        for (size_t w = 0; w < a->count; w++)
            for (size_t c = 0; c < a->worlds[w].count && rc == 0; c++)
                if (a->worlds[w].cmds[c].training)
                    rc = want(a, script, policy, &edits->items[e], &a->worlds[w].cmds[c], out, err);
    }
    /* Those that others name come first, since the others must name their copies. */
    for (int outer = 0; outer < 2; outer++)
        for (struct rw_side *side = out->first; side && rc == 0; side = side->next)
            if ((side->outer == NULL) == (outer == 1))
                rc = make_copy(&a->rw, script, side, err);
    return rc;
}

void rw_sides_free(struct rw_sides *sides)
{
    for (struct rw_side *side = sides->first; side; side = side->next) {
        free(side->old_bytes);
        free(side->bytes);
    }
    sides->first = NULL;
}

const char *rw_side_copy(const struct rw_sides *sides, const char *file, const char *path)
{
    for (const struct rw_side *side = sides->first; side; side = side->next)
        if (side->bytes && strcmp(side->file, file) == 0 && strcmp(side->path, path) == 0)
            return side->new_path;
    return NULL;
}

bool rw_sides_follow(struct rw_analysis *before, struct rw_analysis *after,
                     const struct oom_policy *policy, const struct rw_knob *knob,
                     const struct rw_cmd *old, const struct rw_cmd *new)
{
    struct rw_ref was, is;

    if (!rw_ref_find(&before->rw, policy, old, knob->file, &was))
        return true;
    const char *copy = rw_side_copy(knob->sides, knob->file, was.path);
    return rw_ref_find(&after->rw, policy, new, knob->file, &is) &&
           strcmp(is.path, copy ? copy : was.path) == 0;
}

void rw_side_present(struct rw *rw, const struct rw_sides *sides, const char *file,
                     const char *path, const char **value, const char **where)
{
    struct oom_config config;

    *value = *where = NULL;
    for (const struct rw_side *side = sides->first; side && !*where; side = side->next) {
        if (strcmp(side->file, file) != 0 || !side->old_bytes)
            continue;
        enum oom_config_format format = oom_config_format_of(side->path);
        oom_config_parse(side->old_bytes, side->old_length, format, &config);
        const struct oom_conffile_entry *entry = oom_config_find(&config, path);
        if (entry) {
            *where = rw_printf(&rw->arena, "%s:%u", side->path, entry->line);
            if (entry->value)
                *value = rw_strndup(&rw->arena, entry->value, strlen(entry->value));
        }
        oom_config_free(&config);
        if (*where || !side->bytes)
            continue;
        /* It is new: where it stands in the copy. */
        oom_config_parse(side->bytes, side->length, format, &config);
        entry = oom_config_find(&config, path);
        *where = rw_printf(&rw->arena, "%s:%u", side->path, entry ? entry->line : 1);
        oom_config_free(&config);
    }
}

void rw_side_places(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                    const struct rw_knob *knob, struct rw_places *change, struct rw_places *add)
{
    struct rw_text slice;
    struct rw_ref ref;

    if (!rw_ref_find(rw, policy, cmd, knob->file, &ref))
        return;
    const char *copy = rw_side_copy(knob->sides, knob->file, ref.path);
    if (copy && ref.field != RW_NO_FIELD) {
        rw_text_slice(rw, &cmd->fields.items[ref.field].text, ref.from, ref.to, &slice);
        rw_places_replace(rw, &slice, copy, change);
    }
    struct rw_knob flag = {.name = ref.flag, .value = copy};
    const char *words = copy && ref.flag ? rw_override(rw, policy, cmd, &flag) : NULL;
    if (words)
        rw_places_add(rw, cmd, rw_args_end(cmd), words, add);
}

/* Two commands that read two files of a kind prove nothing about each other. */
static bool only_one(const struct rw_sides *sides, const char *file)
{
    size_t count = 0;

    for (const struct rw_side *side = sides->first; side; side = side->next)
        count += strcmp(side->file, file) == 0;
    return count == 1;
}

int rw_sides_hand_over(struct rw_sides *sides, struct oom_rewrite *out)
{
    size_t count = 0;

    for (const struct rw_side *side = sides->first; side; side = side->next)
        count += side->bytes != NULL;
    out->copies = count ? calloc(count, sizeof(*out->copies)) : NULL;
    if (count && !out->copies)
        return -1;
    for (struct rw_side *side = sides->first; side; side = side->next) {
        if (!side->bytes)
            continue;
        struct oom_side_copy *copy = &out->copies[out->copy_count++];
        copy->path = strdup(side->path);
        copy->new_path = strdup(side->new_path);
        copy->old_bytes = side->old_bytes;
        copy->old_length = side->old_length;
        copy->bytes = side->bytes;
        copy->length = side->length;
        side->old_bytes = side->bytes = NULL;
        char knob[64];
        snprintf(knob, sizeof(knob), "%.60s:", side->file);
        if (!copy->path || !copy->new_path ||
            (!side->outer && only_one(sides, side->file) &&
             oom_edits_add(&out->references, knob, side->path, side->new_path, NULL) != 0))
            return -1;
    }
    return 0;
}
