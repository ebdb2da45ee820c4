/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a classifier and of its streams. */
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

void oom_exit_init(struct oom_exit *exit_data)
{
    *exit_data = (struct oom_exit){
        .exit_code = -1,
        .signal = -1,
        .derived_exit_code = -1,
        .cgroup_oom_kills = -1,
        .cgroup_peak_bytes = -1,
        .cgroup_limit_bytes = -1,
        .kernel_oom_kills = -1,
    };
}

struct oom_classifier *oom_classifier_new(const struct oom_signatures *set)
{
    struct oom_classifier *classifier = calloc(1, sizeof(*classifier));

    if (!classifier)
        return NULL;
    classifier->set = set;
    classifier->tallies = calloc(set->count + 1, sizeof(*classifier->tallies));
    classifier->voices = calloc(VOICES_MAX, sizeof(*classifier->voices));
    classifier->frame_memo = calloc(FRAME_MEMO, sizeof(*classifier->frame_memo));
    classifier->match_data = pcre2_match_data_create(16, NULL);
    if (!set->compiled || !classifier->tallies || !classifier->voices || !classifier->frame_memo ||
        !classifier->match_data ||
        hs_alloc_scratch(set->database, &classifier->scratch) != HS_SUCCESS ||
        (set->calm && hs_alloc_scratch(set->calm, &classifier->scratch) != HS_SUCCESS) ||
        (set->frameworks &&
         hs_alloc_scratch(set->frameworks, &classifier->scratch) != HS_SUCCESS) ||
        (set->look_alikes &&
         hs_alloc_scratch(set->look_alikes, &classifier->line_scratch) != HS_SUCCESS)) {
        oom_classifier_free(classifier);
        return NULL;
    }
    return classifier;
}

void oom_classifier_free(struct oom_classifier *classifier)
{
    if (!classifier)
        return;
    for (size_t i = 0; i < classifier->pending_count; i++)
        oom_sighting_free(classifier->pending[i]);
    for (size_t i = 0; i < classifier->discounted_count; i++)
        oom_sighting_free(classifier->discounted[i]);
    for (size_t i = 0; i < classifier->failure_count; i++)
        oom_sighting_free(classifier->failures[i]);
    for (size_t i = 0; classifier->tallies && i < classifier->set->count; i++)
        oom_sighting_free(classifier->tallies[i].first);
    for (int i = 0; i < classifier->stream_count; i++) {
        free(classifier->streams[i].file);
        free(classifier->streams[i].carry);
        free(classifier->streams[i].tail);
    }
    hs_free_scratch(classifier->scratch);
    hs_free_scratch(classifier->line_scratch);
    hs_free_database(classifier->essential);
    pcre2_match_data_free(classifier->match_data);
    free(classifier->streams);
    free(classifier->tallies);
    free(classifier->voices);
    free(classifier->frame_memo);
    free(classifier->clean);
    free(classifier->narrow);
    free(classifier);
}

int oom_classifier_open(struct oom_classifier *classifier, const char *file, int64_t first_line)
{
    if (classifier->stream_count >= STREAMS_MAX)
        return -1;
    struct stream *grown =
        realloc(classifier->streams, (size_t)(classifier->stream_count + 1) * sizeof(*grown));
    if (!grown)
        return -1;
    classifier->streams = grown;
    struct stream *stream = &grown[classifier->stream_count];
    memset(stream, 0, sizeof(*stream));
    stream->file = file ? strdup(file) : NULL;
    if (file && !stream->file)
        return -1;
    stream->file_rank = file ? oom_file_rank(file) : -1;
    stream->attempt = file ? oom_file_attempt(file, &stream->attempt_place) : -1;
    stream->continued_by = -1;
    /* Progress is looked at until something shows that a later attempt lived. */
    stream->restarted = stream->attempt > 0;
    stream->line = first_line;
    return classifier->stream_count++;
}

int oom_stream_now(const struct oom_classifier *classifier, int stream)
{
    while (classifier->streams[stream].continued_by >= 0)
        stream = classifier->streams[stream].continued_by;
    return stream;
}

int oom_classifier_go_on(struct oom_classifier *classifier, int stream, const char *file)
{
    if (stream < 0 || stream >= classifier->stream_count || classifier->broken ||
        oom_carry_flush(classifier, &classifier->streams[stream]))
        return -1;
    int next = oom_classifier_open(classifier, file, 1);
    if (next < 0)
        return -1;
    struct stream *from = &classifier->streams[stream];
    struct stream *to = &classifier->streams[next];
    from->continued_by = next;
    to->phase = from->phase;
    to->phase_sig = from->phase_sig;
    to->phase_steps = from->phase_steps;
    to->waiting = from->waiting;
    to->restarted |= from->restarted;
    to->restart_weak = from->restart_weak;
    return next;
}
