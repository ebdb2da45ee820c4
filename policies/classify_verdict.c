/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict: the earliest failure of memory that still counts, over all files and ranks, and
 * how the attempt ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/redact.h"
#include "policies/classify_private.h"

#define SECONDARY_MAX 24
#define NODE_LINES    20

/* --- choosing -------------------------------------------------------------------------------- */

static int richness(const struct event *e)
{
    return (e->phase_strength > STRENGTH_MARKER ? 2 : 0) +
           (e->numbers.tried_bytes != OOM_UNSTATED ? 1 : 0);
}

static bool earlier(const struct oom_classifier *c, const struct event *a, const struct event *b)
{
    if (a->stream == b->stream)
        return a->line < b->line || (a->line == b->line && a->order < b->order);
    if (oom_stream_now(c, a->stream) == oom_stream_now(c, b->stream))
        return a->stream < b->stream;
    if (a->time && b->time && a->time != b->time)
        return a->time < b->time;
    if (richness(a) != richness(b))
        return richness(a) > richness(b);
    return a->order < b->order;
}

static struct event *choose(struct oom_classifier *c, const struct ending *end, bool wrappers)
{
    struct event *best = NULL;

    for (size_t i = 0; i < c->pending_count; i++) {
        struct event *e = c->pending[i];
        if ((e->sig->kind == SIG_WRAPPER) != wrappers)
            continue;
        const char *why = oom_objection(c, e, end);
        snprintf(e->why, sizeof(e->why), "%s", why ? why : "");
        if (!why && (!best || earlier(c, e, best)))
            best = e;
    }
    return best;
}

/* Another rank may have told the phase that this one did not. */
static void borrow_phase(const struct oom_classifier *c, struct event *best)
{
    for (size_t i = 0; i < c->pending_count; i++) {
        const struct event *e = c->pending[i];
        if (e == best || e->why[0] || e->domain != best->domain ||
            e->phase_strength <= STRENGTH_MARKER || e->phase_strength <= best->phase_strength ||
            best->phase_strength > STRENGTH_MARKER)
            continue;
        best->phase = e->phase;
        best->phase_strength = e->phase_strength;
    }
}

/* Slurm counts kills in one line and names the node in the next. */
static void borrow_node(const struct oom_classifier *c, struct event *best)
{
    for (size_t i = 0; i < c->pending_count && best->sig->kill && !best->node[0]; i++) {
        const struct event *e = c->pending[i];
        if (e->sig->kill && e->stream == best->stream && llabs(e->line - best->line) <= NODE_LINES)
            memcpy(best->node, e->node, sizeof(best->node));
    }
}

/* What rank 0 says that it does holds for those that say nothing, and for the kernel's log. */
static void take_phase_of_others(const struct oom_classifier *c, struct event *best)
{
    enum oom_phase phase = OOM_PHASE_UNKNOWN;

    if (best->phase_strength > STRENGTH_NONE || c->streams[best->stream].phase_line > 0)
        return;
    for (int i = 0; i < c->stream_count; i++) {
        const struct stream *s = &c->streams[i];
        if (s->phase == OOM_PHASE_UNKNOWN || s->continued_by >= 0)
            continue;
        if (phase != OOM_PHASE_UNKNOWN && phase != s->phase)
            return;
        phase = s->phase;
    }
    best->phase = phase;
}

static bool is_survived(const struct oom_classifier *c, const struct event *failure)
{
    return failure->progress >= PROGRESS_PROVES || oom_event_is_of_earlier(c, failure);
}

static const struct event *choose_failure(const struct oom_classifier *c)
{
    const struct event *best = NULL;

    for (size_t i = 0; i < c->failure_count; i++) {
        const struct event *e = c->failures[i];
        if (best && is_survived(c, e) != is_survived(c, best)) {
            if (is_survived(c, best))
                best = e;
            continue;
        }
        if (!best || e->sig->priority > best->sig->priority ||
            (e->sig->priority == best->sig->priority && earlier(c, e, best)))
            best = e;
    }
    return best;
}

/* --- filling the incident -------------------------------------------------------------------- */

static char *redacted(const char *text)
{
    return text ? oom_redact(text, strlen(text)) : NULL;
}

static int fill_line(const struct oom_classifier *c, const struct event *e, const char *why,
                     struct oom_line *out)
{
    const char *file = c->streams[e->stream].file;

    memset(out, 0, sizeof(*out));
    out->line = e->line;
    out->rank = e->rank;
    out->text = redacted(e->text);
    out->file = file ? strdup(file) : NULL;
    out->node = e->node[0] ? strdup(e->node) : NULL;
    out->signature = strdup(e->sig->id);
    out->why = why && *why ? strdup(why) : NULL;
    return out->text && out->signature && (!file || out->file) ? 0 : -1;
}

static int add_secondary(const struct oom_classifier *c, const struct event *e, const char *why,
                         struct oom_incident *out)
{
    if (out->secondary_count == SECONDARY_MAX)
        return 0;
    struct oom_line *grown =
        realloc(out->secondary, (out->secondary_count + 1) * sizeof(*out->secondary));
    if (!grown)
        return -1;
    out->secondary = grown;
    int rc = fill_line(c, e, why, &grown[out->secondary_count]);
    out->secondary_count++;
    return rc;
}

static bool is_first_of_kind(const struct oom_classifier *c, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (c->failures[i]->sig == c->failures[index]->sig)
            return false;
    return true;
}

static void put_count(const struct tally *t, char *why, size_t size, int used)
{
    char files[32] = "";

    if (t->count < 2 || used <= 0 || (size_t)used >= size)
        return;
    if (t->files > 1)
        snprintf(files, sizeof(files), " in %d files", t->files);
    snprintf(why + used, size - (size_t)used, " (%lld lines%s)", (long long)t->count, files);
}

static bool is_same_line(const struct event *e, const struct event *cause)
{
    return cause && e->stream == cause->stream && e->line == cause->line;
}

static int fill_secondary(const struct oom_classifier *c, const struct event *cause,
                          struct oom_incident *out)
{
    char why[256];
    int rc = 0;

    for (size_t i = 0; i < c->pending_count; i++) {
        const struct event *e = c->pending[i];
        if (e != cause)
            rc |= add_secondary(c, e,
                                e->why[0]                     ? e->why
                                : e->sig->kind == SIG_WRAPPER ? "names the failure again"
                                                              : "the same failure elsewhere",
                                out);
    }
    for (size_t i = 0; i < c->set->count; i++) {
        const struct tally *t = &c->tallies[i];
        enum sig_kind kind = c->set->items[i].kind;
        if (!t->first || (kind != SIG_SECONDARY && kind != SIG_LOOK_ALIKE) ||
            (t->count == 1 && is_same_line(t->first, cause)))
            continue;
        int n = snprintf(why, sizeof(why), "%s%s",
                         kind == SIG_SECONDARY ? "a consequence: " : "not a failure of memory: ",
                         oom_why(&c->set->items[i], "see `oomctl signatures show`"));
        put_count(t, why, sizeof(why), n);
        rc |= add_secondary(c, t->first, why, out);
    }
    for (size_t i = 0; i < c->discounted_count; i++)
        rc |= add_secondary(c, c->discounted[i], c->discounted[i]->why, out);
    for (size_t i = 0; i < c->failure_count; i++) {
        const struct event *e = c->failures[i];
        const struct tally *t = &c->tallies[e->sig - c->set->items];
        if (e == cause || (cause && e->sig == cause->sig) || !is_first_of_kind(c, i))
            continue;
        int n = snprintf(why, sizeof(why), "%s", oom_why(e->sig, "another failure"));
        put_count(t, why, sizeof(why), n);
        rc |= add_secondary(c, e, why, out);
    }
    return rc;
}

static int fill_oom(struct oom_classifier *c, struct event *best, const struct ending *end,
                    struct oom_incident *out)
{
    bool kills = end->killed && !end->well;

    borrow_phase(c, best);
    take_phase_of_others(c, best);
    borrow_node(c, best);
    oom_wrapped_complete(c, best);
    out->oom = true;
    out->domain = best->domain;
    out->phase = best->phase;
    out->direction = best->direction;
    out->numbers = best->numbers;
    out->confidence = best->sig->confidence;
    if (best->hinted)
        out->confidence *= 0.85;
    if (end->well)
        out->confidence *= 0.65;
    if (end->running)
        out->confidence *= 0.9;
    if (best->domain == OOM_DOMAIN_HOST && kills)
        out->confidence = out->confidence + (1.0 - out->confidence) * 0.8;
    snprintf(out->evidence, sizeof(out->evidence), "log%s%s%s",
             best->domain == OOM_DOMAIN_HOST && kills ? ", " : "",
             best->domain == OOM_DOMAIN_HOST && kills ? end->kill_source : "",
             end->well ? " (although the exit status is good)" : "");
    if (fill_line(c, best, best->sig->why, &out->cause))
        return -1;
    oom_summary_of_oom(out);
    return fill_secondary(c, best, out);
}

static int fill_killed(struct oom_classifier *c, const struct ending *end, struct oom_incident *out)
{
    out->oom = true;
    out->domain = OOM_DOMAIN_HOST;
    out->confidence = strcmp(end->kill_source, "scheduler") == 0 ? 0.9 : 0.95;
    for (int i = 0; i < c->stream_count; i++)
        if (c->streams[i].phase != OOM_PHASE_UNKNOWN)
            out->phase = c->streams[i].phase;
    snprintf(out->evidence, sizeof(out->evidence), "%s", end->kill_source);
    oom_summary_of_oom(out);
    return fill_secondary(c, NULL, out);
}

static int fill_other(struct oom_classifier *c, const struct ending *end, const struct oom_exit *x,
                      struct oom_incident *out)
{
    const struct event *failure = choose_failure(c);

    out->confidence = failure || end->well ? 0.95 : 0.8;
    snprintf(out->evidence, sizeof(out->evidence), "%s",
             failure ? "log" : (end->known ? "exit data" : "nothing that points to memory"));
    if (failure && fill_line(c, failure, failure->sig->why, &out->cause))
        return -1;
    if (end->well)
        snprintf(out->summary, sizeof(out->summary), "not out of memory: the work ended well");
    else if (failure)
        oom_summary_of_failure(failure->sig, out);
    else if (x && (x->exit_code == 137 || x->signal == 9))
        snprintf(out->summary, sizeof(out->summary),
                 "not out of memory as far as can be seen: killed, but nothing recorded a kill "
                 "for memory");
    else
        snprintf(out->summary, sizeof(out->summary), "not out of memory: no sign of it");
    return fill_secondary(c, failure, out);
}

int oom_classifier_verdict(struct oom_classifier *classifier, const struct oom_exit *exit_data,
                           struct oom_incident *out, struct oom_error *err)
{
    struct ending end = oom_ending_read(exit_data);

    oom_incident_init(out);
    for (int i = 0; i < classifier->stream_count && !classifier->broken; i++)
        if (classifier->streams[i].carry_length > 0)
            classifier->broken = oom_carry_flush(classifier, &classifier->streams[i]) != 0;
    if (classifier->broken)
        return oom_errorf(err, "diagnosis: out of memory while reading the log");
    if (classifier->framework)
        snprintf(out->framework, sizeof(out->framework), "%s", classifier->framework->framework);
    struct event *best = choose(classifier, &end, false);
    struct event *wrapper = choose(classifier, &end, true);
    if (!best)
        best = wrapper;
    int rc;
    if (best)
        rc = fill_oom(classifier, best, &end, out);
    else if (end.killed && !end.well)
        rc = fill_killed(classifier, &end, out);
    else
        rc = fill_other(classifier, &end, exit_data, out);
    if (rc) {
        oom_incident_free(out);
        return oom_errorf(err, "diagnosis: out of memory");
    }
    return 0;
}
