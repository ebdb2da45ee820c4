/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the logs of the classifier's bench and measures the classifier on them.
 *
 *   bench_classify make KIND BYTES   a log on standard output: quiet, bars, near or dense
 *   bench_classify run FILE          seconds, GB/s and peak memory of one diagnosis */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/evidence/logs.h"
#include "agent/evidence/sigset.h"

#define NEAR_MAX       1000
#define NEAR_BYTES_MAX 400

static uint64_t random_state = 0x2545f4914f6cdd1d;

static unsigned int next_random(unsigned int below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned int)(random_state % below);
}

/* What a healthy server and trainer print for days. */
static int line_quiet(char *out, size_t size)
{
    static const char *const words[] = {"tensor", "layer",  "rollout", "sample", "shard",  "bucket",
                                        "expert", "router", "prompt",  "reward", "buffer", "queue"};

    switch (next_random(3)) {
    case 0:
        return snprintf(out, size,
                        "(SGLangEngine pid=%u, ip=10.0.%u.%u) [2026-02-23 18:%02u:%02u TP0] Decode "
                        "batch. #running-req: %u, #token: %u, token usage: 0.%02u, cuda graph: "
                        "True, gen throughput (token/s): %u.%02u, #queue-req: 0\n",
                        next_random(90000), next_random(250), next_random(250), next_random(60),
                        next_random(60), next_random(256), next_random(900000), next_random(100),
                        next_random(9999), next_random(100));
    case 1:
        return snprintf(out, size,
                        "2026-02-23T18:%02u:%02u.%06uZ worker-%u INFO %s %s moved %u of %u, "
                        "%s %s took %u.%03u ms, mean %u.%04u\n",
                        next_random(60), next_random(60), next_random(1000000), next_random(64),
                        words[next_random(12)], words[next_random(12)], next_random(4096),
                        next_random(4096), words[next_random(12)], words[next_random(12)],
                        next_random(100), next_random(1000), next_random(10), next_random(10000));
    default:
        return snprintf(out, size,
                        "gpu%03u:%u:%u [%u] NCCL INFO Channel %02u/0 : %u[%u] -> %u[%u] via "
                        "P2P/CUMEM/read\n",
                        next_random(400), next_random(400000), next_random(400000), next_random(8),
                        next_random(24), next_random(8), next_random(8), next_random(8),
                        next_random(8));
    }
}

static int line_bars(char *out, size_t size)
{
    unsigned int step = next_random(100000);

    return snprintf(
        out, size, "\r %2u%%|███████▌            | %u/100000 [%02u:%02u<%02u:%02u,  %u.%02us/it]%s",
        step / 1000, step, next_random(60), next_random(60), next_random(60), next_random(60),
        next_random(9), next_random(100),
        next_random(16) ? ""
                        : "{'loss': 0.3025, 'grad_norm': 1.197734, "
                          "'learning_rate': 1.7621e-05, 'epoch': 5.36}\n");
}

/* Every line is one that the signatures know: survived, advice, or a frame. */
static int line_dense(char *out, size_t size)
{
    switch (next_random(4)) {
    case 0:
        return snprintf(out, size,
                        "WARNING trainer.py:%u large batches can cause CUDA out of memory errors, "
                        "consider gradient checkpointing (sample %u)\n",
                        next_random(999), next_random(1000000));
    case 1:
        return snprintf(out, size,
                        "[2026-05-22 04:%02u:%02u TP%u] KV cache pool is full. Retract requests. "
                        "#retracted_reqs: %u, #new_token_ratio: 0.%04u -> 0.%04u\n",
                        next_random(60), next_random(60), next_random(8), next_random(9),
                        next_random(9999), next_random(9999));
    case 2:
        return snprintf(out, size,
                        "[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not "
                        "be an issue e.g. torch allocator will free cache and retry) size=%u\n",
                        next_random(1000000000));
    default:
        return snprintf(out, size, "  File \"/opt/train/module_%u.py\", line %u, in forward_%u\n",
                        next_random(20), next_random(999), next_random(20));
    }
}

/* --- near matches ----------------------------------------------------------------------------- */

/* The look-alikes of the shipped signatures, which hold the words of one and are none: each was
 * made to be as near to a match as a line can be. */
struct near {
    char *lines[NEAR_MAX];
    size_t count;
};

static bool holds_words(const json_t *signatures, const char *line)
{
    size_t i, k;
    const json_t *sig, *text;

    json_array_foreach(signatures, i, sig)
    {
        json_array_foreach(json_object_get(sig, "find"), k, text)
        {
            if (strstr(line, json_string_value(text)))
                return true;
        }
    }
    return false;
}

/* What resembles one signature may be another one. */
static bool is_known(const struct oom_signatures *set, const char *line)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    json_t *story = NULL;

    if (classifier && oom_classifier_open(classifier, NULL, 1) == 0 &&
        oom_classifier_feed(classifier, 0, line, strlen(line)) == 0 &&
        oom_classifier_feed(classifier, 0, "\n", 1) == 0)
        story = oom_classifier_explain(classifier);
    bool known = !story || json_array_size(json_object_get(story, "matched")) > 0;
    json_decref(story);
    oom_classifier_free(classifier);
    return known;
}

static int near_load(struct near *near)
{
    struct oom_error err = {""};
    struct oom_signatures *set = sigset_load(&err);
    json_t *list = set ? oom_signatures_to_json(set) : NULL;
    size_t i, k;
    const json_t *sig, *text;

    near->count = 0;
    json_array_foreach(list, i, sig)
    {
        json_array_foreach(json_object_get(sig, "look_alikes"), k, text)
        {
            const char *line = json_string_value(text);
            if (near->count < NEAR_MAX && strlen(line) < NEAR_BYTES_MAX && !strchr(line, '\n') &&
                holds_words(list, line) && !is_known(set, line))
                near->lines[near->count++] = strdup(line);
        }
    }
    json_decref(list);
    oom_signatures_free(set);
    if (near->count == 0)
        fprintf(stderr, "bench_classify: %s\n", err.text);
    return near->count > 0 ? 0 : -1;
}

/* One line in four, behind what launchers and engines put in front: tens of millions in a log of
 * 4 GiB. */
static int line_near(char *out, size_t size)
{
    static struct near near;
    int n;

    if (near.count == 0 && near_load(&near))
        exit(1);
    if (next_random(4))
        return line_quiet(out, size);
    const char *line = near.lines[next_random((unsigned int)near.count)];
    switch (next_random(3)) {
    case 0:
        n = snprintf(out, size, "(WorkerDict pid=%u, ip=10.0.%u.%u) %s\n", next_random(90000),
                     next_random(250), next_random(250), line);
        break;
    case 1:
        n = snprintf(out, size, "[2026-05-22 04:%02u:%02u TP%u] %s\n", next_random(60),
                     next_random(60), next_random(8), line);
        break;
    default:
        n = snprintf(out, size, "[rank%u]: %s\n", next_random(64), line);
    }
    return n;
}

/* --- logs ------------------------------------------------------------------------------------- */

static int make(const char *kind, size_t bytes)
{
    static char out[1 << 20];
    int (*line)(char *, size_t) = strcmp(kind, "quiet") == 0   ? line_quiet
                                  : strcmp(kind, "bars") == 0  ? line_bars
                                  : strcmp(kind, "near") == 0  ? line_near
                                  : strcmp(kind, "dense") == 0 ? line_dense
                                                               : NULL;
    if (!line)
        return 2;
    /* One MiB of lines, printed with a changing start: making a log must not take longer than
     * reading it. */
    size_t n = 0;
    while (n + 1024 < sizeof(out))
        n += (size_t)line(out + n, sizeof(out) - n);
    while (n > 0 && out[n - 1] != '\n')
        n--;
    for (size_t done = 0; done < bytes; done += n)
        if (fwrite(out, 1, n, stdout) != n)
            return 1;
    return 0;
}

static double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(const char *path)
{
    struct oom_error err = {""};
    struct oom_incident incident;
    struct oom_exit exit_data;
    struct rusage usage;
    double before = now_seconds();
    struct oom_signatures *set = sigset_load(&err);
    double loaded = now_seconds();
    struct oom_classifier *classifier = set ? oom_classifier_new(set) : NULL;

    oom_exit_init(&exit_data);
    if (!classifier || logs_feed(classifier, path, -1, 0, &err) < 0 ||
        oom_classifier_verdict(classifier, &exit_data, &incident, &err)) {
        fprintf(stderr, "bench_classify: %s\n", err.text);
        return 1;
    }
    double done = now_seconds();
    FILE *file = fopen(path, "r");
    fseeko(file, 0, SEEK_END);
    double bytes = (double)ftello(file);
    fclose(file);
    getrusage(RUSAGE_SELF, &usage);
    printf("seconds %.3f gb_per_second %.3f load_ms %.1f peak_mib %.1f oom %d\n", done - loaded,
           bytes / 1e9 / (done - loaded), (loaded - before) * 1000.0,
           (double)usage.ru_maxrss / 1024.0, incident.oom);
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
    oom_signatures_free(set);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        return make(argv[2], strtoull(argv[3], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "run") == 0)
        return run(argv[2]);
    fprintf(stderr, "usage: bench_classify make KIND BYTES | run FILE\n");
    return 2;
}
