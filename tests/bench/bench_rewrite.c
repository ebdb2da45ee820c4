/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a rewrite takes: parse, apply two edits, free; the best and the median of N runs.
 *
 *   bench_rewrite SCRIPT [N]    one line: {"lines":…,"best_ms":…,"median_ms":…} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/lib/files.h"
#include "oomretry/rewrite.h"

enum { MAX_BYTES = 4 * 1024 * 1024, MAX_RUNS = 1000 };

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int rewrite(const struct oom_policy *policy, const char *bytes, size_t length,
                   struct oom_error *err)
{
    struct oom_script_source source = {.bytes = bytes, .length = length, .name = "script"};
    struct oom_edits edits = {0};
    struct oom_rewrite out;
    struct oom_script *script = oom_script_parse(&source, err);

    if (!script)
        return -1;
    oom_edits_add(&edits, "--micro-batch-size", NULL, "2", NULL);
    oom_edits_add(&edits, "--num-workers", NULL, "0", NULL);
    int rc = oom_script_apply(script, policy, &edits, &out, err);
    if (rc == 0)
        oom_rewrite_free(&out);
    oom_edits_free(&edits);
    oom_script_free(script);
    return rc;
}

int main(int argc, char **argv)
{
    struct oom_error err = {""};
    double times[MAX_RUNS];
    char *bytes;
    size_t length, lines = 0;
    int runs = argc > 2 ? atoi(argv[2]) : 20;
    json_t *json = json_pack("{s:s, s:s, s:s, s:{s:[s]}, s:{}, s:{}, s:{}}", "name", "b", "title",
                             "b", "family", "argparse", "recognise", "programs", "pretrain_gpt.py",
                             "knobs", "rungs", "ladders");

    if (argc < 2 || runs < 1 || runs > MAX_RUNS)
        return 2;
    struct oom_policy *policy = oom_policy_from_json(json, "bench", &err);
    if (!policy || file_read(argv[1], MAX_BYTES, &bytes, &length, &err) != 0) {
        fprintf(stderr, "bench_rewrite: %s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    for (int i = 0; i < runs; i++) {
        double start = now_ms();
        if (rewrite(policy, bytes, length, &err) != 0) {
            fprintf(stderr, "bench_rewrite: %s\n", err.text);
            return 1;
        }
        times[i] = now_ms() - start;
    }
    qsort(times, (size_t)runs, sizeof(times[0]), ascending);
    printf("{\"lines\": %zu, \"bytes\": %zu, \"best_ms\": %.2f, \"median_ms\": %.2f}\n", lines,
           length, times[0], times[runs / 2]);
    oom_policy_free(policy);
    json_decref(json);
    free(bytes);
    return 0;
}
