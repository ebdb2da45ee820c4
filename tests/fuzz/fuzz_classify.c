/* SPDX-License-Identifier: Apache-2.0
 *
 * Arbitrary bytes as logs. The first bytes choose how they are fed and how the attempt ended; the
 * verdict must hold together and survive its JSON. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/classify.h"
#include "oomretry/redact.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct oom_signatures *set;

static void load(const char *directory)
{
    DIR *dir = opendir(directory);
    char path[512];

    if (!dir) {
        fprintf(stderr, "run from the top of the source tree\n");
        abort();
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        json_t *document = json_load_file(path, 0, NULL);
        if (!document || oom_signatures_add(set, document, path, NULL))
            abort();
        json_decref(document);
    }
    closedir(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    set = oom_signatures_new();
    load("policies/signatures");
    if (oom_signatures_compile(set, NULL))
        abort();
    return 0;
}

static void check(struct oom_classifier *classifier, const struct oom_exit *exit_data)
{
    struct oom_incident incident, copy;

    if (oom_classifier_verdict(classifier, exit_data, &incident, NULL))
        abort();
    if (incident.oom == (incident.domain == OOM_DOMAIN_NONE))
        abort();
    json_t *json = oom_incident_to_json(&incident);
    if (!json || oom_incident_from_json(json, &copy, NULL))
        abort();
    json_decref(json);
    oom_incident_free(&copy);
    oom_incident_free(&incident);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oom_exit exit_data;

    if (size < 4)
        return 0;
    struct oom_classifier *classifier = oom_classifier_new(set);
    int streams[2] = {oom_classifier_open(classifier, "attempt_0/rank_1.log.1", 1),
                      oom_classifier_open(classifier, data[3] & 4 ? "attempt_1/x" : NULL, 1)};
    size_t portion = (size_t)data[0] * 16 + 1;
    oom_exit_init(&exit_data);
    exit_data.exit_code = data[1];
    exit_data.cgroup_oom_kills = data[2] & 3;
    exit_data.finished = data[2] & 4;
    size_t at = 4;
    for (int turn = 0; at < size; turn++) {
        size_t n = size - at < portion ? size - at : portion;
        if (oom_classifier_feed(classifier, streams[data[3] & turn & 1], data + at, n))
            abort();
        at += n;
        if (turn == 2 && (data[3] & 2)) /* it was rotated */
            streams[0] = oom_classifier_go_on(classifier, streams[0], "attempt_0/rank_1.log");
        if (turn == 3)
            check(classifier, NULL);
    }
    check(classifier, &exit_data);
    json_decref(oom_classifier_explain(classifier));
    json_decref(oom_classifier_windows(classifier));
    oom_classifier_free(classifier);
    free(oom_redact((const char *)data, size));
    return 0;
}
