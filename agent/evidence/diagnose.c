/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/diagnose.h"

#include "agent/evidence/logs.h"
#include "agent/evidence/sigset.h"

int diagnose_files(const char *const *logs, size_t count, const struct oom_exit *exit_data,
                   struct oom_incident *out, struct oom_error *err)
{
    struct oom_signatures *set = sigset_load(err);
    struct oom_classifier *classifier = set ? oom_classifier_new(set) : NULL;
    int rc = classifier ? 0 : -1;

    oom_incident_init(out);
    if (set && !classifier)
        oom_errorf(err, "diagnosis: out of memory");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = logs_feed(classifier, logs[i], 0, err);
    if (rc == 0)
        rc = oom_classifier_verdict(classifier, exit_data, out, err);
    oom_classifier_free(classifier);
    oom_signatures_free(set);
    return rc;
}
