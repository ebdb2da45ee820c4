/* SPDX-License-Identifier: Apache-2.0
 *
 * Evidence in, incident out. Pure: the caller reads the files and hands over bytes.
 *
 * Signatures are data (policies/signatures/, JSON, schema in docs/signatures.md). A set is
 * compiled once and may be shared between classifiers. */
#ifndef OOMRETRY_CLASSIFY_H
#define OOMRETRY_CLASSIFY_H

#include "oomretry/incident.h"

struct oom_signatures;
struct oom_classifier;

/* How the attempt ended, as far as it is known. */
struct oom_exit {
    int exit_code;             /* -1: unknown */
    int signal;                /* -1: unknown, 0: none */
    int derived_exit_code;     /* Slurm's highest step code (253: a step ran out); -1: unknown */
    char state[32];            /* the scheduler's word, such as OUT_OF_MEMORY; "" unknown */
    int64_t cgroup_oom_kills;  /* kills in this attempt; -1: unknown */
    int64_t cgroup_peak_bytes; /* -1: unknown */
    int64_t cgroup_limit_bytes;
    int64_t kernel_oom_kills; /* kernel log records naming a process of the job; -1: unknown */
    bool finished;            /* the work is known to have ended well */
};

void oom_exit_init(struct oom_exit *exit_data);

/* A new empty set; NULL when out of memory. */
struct oom_signatures *oom_signatures_new(void);
void oom_signatures_free(struct oom_signatures *set);

/* Adds one document. `name` is what errors call it (a file name). On error nothing is added. */
int oom_signatures_add(struct oom_signatures *set, const json_t *document, const char *name,
                       struct oom_error *err);

/* Compiles what was added; required before a classifier uses the set. */
int oom_signatures_compile(struct oom_signatures *set, struct oom_error *err);

/* Everything in the set, for `oomctl signatures list|show`. New reference. */
json_t *oom_signatures_to_json(const struct oom_signatures *set);

/* Holds every signature to its own examples and look-alikes. New reference to an array of
 * {signature, line, what}: empty when all keep their promise. */
json_t *oom_signatures_check(const struct oom_signatures *set);

/* The set must outlive the classifier. NULL when out of memory. */
struct oom_classifier *oom_classifier_new(const struct oom_signatures *set);
void oom_classifier_free(struct oom_classifier *classifier);

/* Begins a file (or stream). Lines of several files may be interleaved by alternating between the
 * numbers that oom_classifier_open returns. `first_line` is the number of the first line that
 * will be fed (1 for a whole file). Returns the stream's number or -1. */
int oom_classifier_open(struct oom_classifier *classifier, const char *file, int64_t first_line);

/* Begins the part of a log that goes on where the one of `stream` ended: a log that was rotated. */
int oom_classifier_go_on(struct oom_classifier *classifier, int stream, const char *file);

/* Puts the parts of rotated logs ("train.log.2", "train.log.1.gz", "train.log", and such whose
 * names end in a date) one behind the other, the oldest first; other files stay where they are.
 * goes_on[i]: files[i] is to go on with the log of files[i - 1]. -1: out of memory. */
int oom_logs_in_order(const char **files, size_t count, bool *goes_on);

/* Feeds raw bytes, in any portions. Memory use does not grow with the amount fed. A stream that
 * begins like UTF-16 is read as that, any other as bytes of which those below 128 are ASCII. */
int oom_classifier_feed(struct oom_classifier *classifier, int stream, const void *bytes,
                        size_t length);

/* Long logs. The end of one decides when nothing before it could change the verdict: the first
 * failure of memory in it stands far behind lines which prove that the run had survived whatever
 * there was, and all that tells its phase lies in it too. So a caller may
 *
 *   1. open a stream on a classifier of its own, skim it with no bytes ("there is more before"),
 *      feed the end of the log, whole lines from the first, and ask oom_classifier_end_decides;
 *   2. if so, open a stream on the real classifier, skim all that precedes the end and feed the
 * end. If the verdict is then not out of memory, or the end did not decide, feed the whole log.
 *
 * What is skimmed is read once, several times faster than what is fed: lines are counted, so that
 * the verdict states their true numbers, and only names of frameworks are searched. The verdict is
 * that of a whole reading but for `secondary`, which tells of the end only. */
int oom_classifier_skim(struct oom_classifier *classifier, int stream, const void *bytes,
                        size_t length);

/* Does a log that begins so (8 bytes tell) have to be read from its beginning, as UTF-16? */
bool oom_log_is_wide(const void *head, size_t length);

/* For a stream that was skimmed and then fed. */
bool oom_classifier_end_decides(const struct oom_classifier *classifier, int stream);

/* Was any stream skimmed? */
bool oom_classifier_has_skimmed(const struct oom_classifier *classifier);

/* The verdict over everything fed so far. May be called more than once, and feeding may go on
 * afterwards (a supervisor looks while the job is running: exit_data NULL means still running). */
int oom_classifier_verdict(struct oom_classifier *classifier, const struct oom_exit *exit_data,
                           struct oom_incident *out, struct oom_error *err);

/* How often the framework has begun again by itself, with the same settings, after running out:
 * several nodes that say so count once. */
int oom_classifier_own_restarts(const struct oom_classifier *classifier);

/* All matched signatures so far with counts and what became of them (`--explain`). New ref. */
json_t *oom_classifier_explain(struct oom_classifier *classifier);

/* The windows of lines around the decisive and the secondary lines: the evidence bundle, bounded
 * to 64 KiB and redacted. New reference to an array of {file, line, text}. */
json_t *oom_classifier_windows(struct oom_classifier *classifier);

#endif
