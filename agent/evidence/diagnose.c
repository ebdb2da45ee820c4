/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/diagnose.h"

#include <stdlib.h>
#include <string.h>

#include "agent/evidence/logs.h"
#include "agent/evidence/sigset.h"

struct logs {
    const char **files;
    bool *goes_on; /* with the log before it: it was rotated */
    size_t count;
};

/* Where the end of each log begins, 0 where it is read as a whole. NULL: all are. One long log
 * whose end does not decide makes the others worth no shortcut. */
static int64_t *find_ends(const struct oom_signatures *set, const struct logs *logs)
{
    int64_t *ends = calloc(logs->count + 1, sizeof(*ends));
    bool some = false;

    for (size_t i = 0; ends && i < logs->count; i++) {
        if (logs->goes_on[i]) { /* what came before is in another file */
            some = false;
            break;
        }
        if (!logs_is_long(logs->files[i]))
            continue;
        ends[i] = logs_end_that_decides(set, logs->files[i]);
        some = ends[i] > 0;
        if (!some)
            break;
    }
    if (!some) {
        free(ends);
        return NULL;
    }
    return ends;
}

/* `before`: the stream of the part of the log that comes before this one; -1: none. */
static int feed_one(struct oom_classifier *classifier, const char *log, int before, int64_t end,
                    bool *decided, struct oom_error *err)
{
    if (end == 0)
        return logs_feed(classifier, log, before, LOGS_PIPES, err);
    int stream = logs_feed_end(classifier, log, end, err);
    /* It may have grown since. */
    *decided &= stream >= 0 && oom_classifier_end_decides(classifier, stream);
    return stream;
}

/* 0 judged, 1 the ends did not decide, -1 an error. */
static int judge(struct oom_classifier *classifier, const struct logs *logs, const int64_t *ends,
                 const struct oom_exit *exit_data, struct oom_incident *out, struct oom_error *err)
{
    bool decided = true;
    int stream = -1;

    for (size_t i = 0; i < logs->count; i++) {
        stream = feed_one(classifier, logs->files[i], logs->goes_on[i] ? stream : -1,
                          ends ? ends[i] : 0, &decided, err);
        if (stream < 0)
            return -1;
    }
    if (oom_classifier_verdict(classifier, exit_data, out, err))
        return -1;
    if (!ends || (decided && out->oom && out->cause.text))
        return 0;
    oom_incident_free(out);
    return 1;
}

static int diagnose_in_order(const struct oom_signatures *set, const struct logs *logs,
                             const struct oom_exit *exit_data, bool whole, struct oom_incident *out,
                             struct oom_classifier **used, struct oom_error *err)
{
    int64_t *ends = whole ? NULL : find_ends(set, logs);
    struct oom_classifier *classifier = oom_classifier_new(set);
    int rc = -1;

    if (classifier)
        rc = judge(classifier, logs, ends, exit_data, out, err);
    if (rc == 1) {
        oom_classifier_free(classifier);
        classifier = oom_classifier_new(set);
        rc = classifier ? judge(classifier, logs, NULL, exit_data, out, err) : -1;
    }
    if (!classifier)
        oom_errorf(err, "diagnosis: out of memory");
    free(ends);
    if (used && rc == 0)
        *used = classifier;
    else
        oom_classifier_free(classifier);
    return rc;
}

int diagnose_logs(const struct oom_signatures *set, const char *const *files, size_t count,
                  const struct oom_exit *exit_data, bool whole, struct oom_incident *out,
                  struct oom_classifier **used, struct oom_error *err)
{
    struct logs logs = {
        .files = calloc(count + 1, sizeof(*logs.files)),
        .goes_on = calloc(count + 1, sizeof(*logs.goes_on)),
        .count = count,
    };
    int rc = -1;

    oom_incident_init(out);
    if (logs.files)
        memcpy(logs.files, files, count * sizeof(*files));
    if (!logs.files || !logs.goes_on || oom_logs_in_order(logs.files, count, logs.goes_on))
        oom_errorf(err, "diagnosis: out of memory");
    else
        rc = diagnose_in_order(set, &logs, exit_data, whole, out, used, err);
    free(logs.files);
    free(logs.goes_on);
    return rc;
}

int diagnose_files(const char *const *logs, size_t count, const struct oom_exit *exit_data,
                   struct oom_incident *out, struct oom_error *err)
{
    struct oom_signatures *set = sigset_load(err);

    oom_incident_init(out);
    int rc = set ? diagnose_logs(set, logs, count, exit_data, false, out, NULL, err) : -1;
    oom_signatures_free(set);
    return rc;
}
