/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that give a line its meaning share: the piece of a line under judgement. The
 * order of meanings is in classify_note.c. */
#ifndef POLICIES_CLASSIFY_NOTE_H
#define POLICIES_CLASSIFY_NOTE_H

#include "policies/classify_private.h"

struct note {
    struct block *block;
    struct oom_classifier *classifier;
    struct stream *stream;
    struct line_view view;
    int64_t line;
    struct voice *voice;
    bool progressed; /* one line is one sign of progress */
};

#define KIND(kind)   (1u << (kind))
#define MEMORY_KINDS (KIND(SIG_OOM) | KIND(SIG_WRAPPER) | KIND(SIG_SUSPECT))
#define BESIDE_KINDS                                                                               \
    (KIND(SIG_RECOVERED) | KIND(SIG_DETAIL) | KIND(SIG_SECONDARY) | KIND(SIG_FAILURE))
#define STRUCTURE_KINDS                                                                            \
    (KIND(SIG_TRACEBACK) | KIND(SIG_FRAME) | KIND(SIG_CONTEXT) | KIND(SIG_FRAMEWORK))
#define COURSE_KINDS (KIND(SIG_PROGRESS) | KIND(SIG_FINISHED) | KIND(SIG_RESTART) | KIND(SIG_PHASE))

/* classify_note.c */
bool oom_note_confirms(struct note *n, const struct signature *sig);
/* Who speaks, and where: only asked when a line means something. */
void oom_note_speaker(struct note *n);
void oom_note_tally(struct note *n, const struct signature *sig, bool keep_first);
/* Is the line text that its voice quotes? */
bool oom_note_is_quoting(struct note *n);

/* classify_note_phase.c */
void oom_note_phase_passed(struct note *n, const struct signature *sig);
void oom_note_phase(struct note *n, const struct signature *sig);
void oom_note_context(struct note *n, const struct signature *sig);
void oom_note_frames(struct note *n);
void oom_note_find_phase(struct note *n, struct event *event);

/* classify_note_failure.c */
void oom_note_oom(struct note *n, const struct signature *sig);
void oom_note_detail(struct note *n, const struct signature *sig);
void oom_note_recovered(struct note *n, const struct signature *sig);
/* Some lines are failures only as the last one of a traceback. */
bool oom_note_may_fail(const struct note *n, const struct signature *sig);
void oom_note_failure(struct note *n, const struct signature *sig);
/* Takes over an event that is known not to count. */
void oom_note_discounted(struct note *n, struct event *event, const char *why);

/* classify_note_memory.c: everything that a line says about memory and failures. */
void oom_note_memory(struct note *n);

#endif
