/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/remember.h"

#include <stdio.h>
#include <string.h>

#include "agent/lib/jsonget.h"

/* Resources are asked from the queue each time anew, and a guess must not ask for more of them. */
static bool is_resource(const struct oom_edit *edit)
{
    return strncmp(edit->knob, "slurm:", 6) == 0 || strncmp(edit->knob, "ray:", 4) == 0;
}

/* Takes the step before the last out of what worked: the last was needed, for without it the
 * lineage ran out; the one before was not enough by itself, and may do nothing beside the last.
 * 1: done, 0: there is no such step, -1: out of memory. */
static int take_step_back(const json_t *row, struct oom_edits *all)
{
    const char *taken_back = json_get_string(json_object_get(row, "decision"), "taken_back", "");
    struct oom_edits step = {NULL, 0};
    bool changed = false;
    int rc = 0;

    if (strcmp(taken_back, json_get_string(row, "step_rung", "")) == 0 ||
        oom_edits_from_json(json_object_get(row, "step_edits"), &step) < 0)
        return 0;
    for (size_t i = 0; rc == 0 && i < step.count; i++) {
        const struct oom_edit *edit = &step.items[i];
        for (size_t k = 0; rc == 0 && k < all->count; k++)
            if (strcmp(all->items[k].knob, edit->knob) == 0 && all->items[k].new_value &&
                edit->new_value && strcmp(all->items[k].new_value, edit->new_value) == 0) {
                rc = oom_edits_add(all, edit->knob, NULL, edit->old_value, NULL);
                changed = true;
            }
    }
    oom_edits_free(&step);
    oom_edits_drop_unchanged(all);
    return rc < 0 ? -1 : changed;
}

/* Where that lineage went on from its checkpoint is its own matter too. */
static int fill(const json_t *row, bool step_back, struct oom_decision *decision,
                struct oom_error *err)
{
    const json_t *last = json_object_get(row, "decision");
    const char *resume_knob = json_get_string(row, "resume_knob", "");
    struct oom_edits all = {NULL, 0};

    if (oom_edits_from_json(json_object_get(row, "edits"), &all) < 0)
        return oom_errorf(err, "the edits of a stored lineage are damaged");
    int rc = step_back ? take_step_back(row, &all) : 1;
    if (rc != 1) {
        oom_edits_free(&all);
        return rc < 0 ? oom_errorf(err, "out of memory") : 0;
    }
    for (size_t i = 0; i < all.count; i++)
        if (!is_resource(&all.items[i]) && strcmp(all.items[i].knob, resume_knob) != 0 &&
            oom_edits_add(&decision->edits, all.items[i].knob, all.items[i].old_value,
                          all.items[i].new_value, NULL) < 0) {
            oom_edits_free(&all);
            return oom_errorf(err, "out of memory");
        }
    oom_edits_free(&all);
    if (decision->edits.count == 0)
        return 0;
    decision->retry = true;
    decision->cost = -1;
    decision->changes_training = json_get_int(row, "changes_training", 0) != 0;
    snprintf(decision->rung, sizeof(decision->rung), "%s", step_back ? STEP_BACK : AS_BEFORE);
    snprintf(decision->kind, sizeof(decision->kind), "%s", json_get_string(last, "kind", "tokens"));
    snprintf(decision->policy, sizeof(decision->policy), "%s", json_get_string(last, "policy", ""));
    snprintf(decision->overrides, sizeof(decision->overrides), "%s",
             json_get_string(last, "overrides", ""));
    if (step_back)
        snprintf(decision->reason, sizeof(decision->reason),
                 "lineage L%lld of the same script completed with these settings and rung %s, "
                 "without which it is tried now, as its owner wishes",
                 (long long)json_get_int(row, "id", 0), json_get_string(row, "step_rung", "?"));
    else
        snprintf(decision->reason, sizeof(decision->reason),
                 "lineage L%lld of the same script completed with these settings, so its ladder is "
                 "not climbed again",
                 (long long)json_get_int(row, "id", 0));
    return 1;
}

static void choose_mode(const json_t *options, const struct oom_incident *incident,
                        const struct oom_values *facts, struct oom_decision *decision)
{
    struct oom_start start = {
        .facts = facts, .domain = incident->domain, .edits = &decision->edits};

    oom_mode_parse(json_get_string(options, "mode", "auto"), &start.wanted);
    decision->mode = oom_decide_mode(&start, decision->mode_why, sizeof(decision->mode_why));
}

int remember(struct service *service, const json_t *lineage, const struct oom_incident *incident,
             const struct oom_values *facts, bool allow_training, enum remember_how how,
             struct oom_decision *decision, struct oom_error *err)
{
    const char *shape = json_get_string(lineage, "shape", "");
    const json_t *options = json_object_get(lineage, "options");
    const char *memory = json_get_string(options, "memory", "on");
    int rc = 0;

    if (!*shape || strcmp(memory, "off") == 0)
        return 0;
    /* A lineage teaches only when it completed by itself: its last attempt ended well and was not
     * cut short by a bound. And only one of the same wishes: settings that another policy chose, or
     * that needed consent to change the training, are not this owner's. And only one on such GPUs,
     * which the message tells apart by their memory. */
    json_t *rows = db_rows(
        service->db,
        db_query(service->db, err,
                 "SELECT l.id, a.total_edits AS j_edits, a.decision AS j_decision, "
                 "(SELECT json_extract(body, '$.resume.load') FROM policy_version "
                 "WHERE name || '@' || version = json_extract(a.decision, '$.policy')) "
                 "AS resume_knob, b.edits AS j_step_edits, "
                 "json_extract(b.decision, '$.rung') AS step_rung, EXISTS (SELECT 1 FROM attempt t "
                 "WHERE t.lineage = l.id "
                 "AND json_extract(t.decision, '$.changes_training')) AS changes_training "
                 "FROM lineage l "
                 "JOIN attempt a ON a.lineage = l.id AND a.number = "
                 "(SELECT max(number) FROM attempt WHERE lineage = l.id) "
                 "LEFT JOIN attempt b ON b.lineage = l.id AND b.number = a.number - 1 "
                 "WHERE l.shape = ?1 AND l.uid = ?2 AND l.id <> ?3 AND l.state = 'completed' "
                 "AND a.decision IS NOT NULL AND EXISTS (SELECT 1 FROM attempt f "
                 "WHERE f.lineage = l.id AND f.number = 1 "
                 "AND json_extract(f.incident, '$.domain') = ?4 "
                 "AND abs(coalesce(json_extract(f.incident, '$.numbers.total'), ?7) - ?7) "
                 "<= ?7 / 50) "
                 "AND coalesce(json_extract(l.options, '$.policy'), 'auto') = ?5 "
                 "AND (?6 = 1 OR NOT changes_training) "
                 "AND (?8 = 0 OR b.decision IS NOT NULL) "
                 "ORDER BY l.updated_ms DESC LIMIT 1",
                 "siissiii", shape, json_get_int(lineage, "uid", -1),
                 json_get_int(lineage, "id", 0), oom_domain_name(incident->domain),
                 json_get_string(options, "policy", "auto"), (int64_t)allow_training,
                 incident->numbers.total_bytes, (int64_t)(how != REMEMBER_ALL)),
        err);
    if (!rows)
        return -1;
    if (json_array_size(rows) > 0)
        rc = fill(json_array_get(rows, 0), how == REMEMBER_LESS, decision, err);
    json_decref(rows);
    if (rc == 1)
        choose_mode(options, incident, facts, decision);
    return rc;
}
