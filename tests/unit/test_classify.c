/* SPDX-License-Identifier: Apache-2.0
 *
 * The labelled logs of tests/corpus through the library, and what the labels cannot say: that the
 * way of feeding does not matter, that memory is bounded, that exit data weigh as they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cases.h"
#include "tests/unit/sets.h"

static struct oom_signatures *set;

static int setup(void **state)
{
    (void)state;
    set = sets_shipped();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    oom_signatures_free(set);
    return 0;
}

/* --- the corpus --------------------------------------------------------------------------------
 */

#define FILES_MAX 64

/* Feeds in portions of `portion` bytes, 0: at once. */
static void judge(const json_t *one, size_t portion, struct oom_incident *out)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_exit exit_data;
    struct oom_error err;
    json_t *files = json_object_get(one, "files");
    const char *names[FILES_MAX];
    bool goes_on[FILES_MAX];
    size_t count = 0;
    int stream = -1;
    const char *name;
    json_t *lines;

    assert_non_null(classifier);
    assert_true(json_object_size(files) <= FILES_MAX);
    json_object_foreach(files, name, lines) names[count++] = name;
    assert_int_equal(oom_logs_in_order(names, count, goes_on), 0);
    for (size_t i = 0; i < count; i++) {
        size_t length;
        char *text = cases_joined(json_object_get(files, names[i]), &length);
        stream = goes_on[i] ? oom_classifier_go_on(classifier, stream, names[i])
                            : oom_classifier_open(classifier, names[i], 1);
        size_t step = portion ? portion : length;
        for (size_t at = 0; at < length; at += step)
            assert_int_equal(oom_classifier_feed(classifier, stream, text + at,
                                                 length - at < step ? length - at : step),
                             0);
        free(text);
    }
    cases_read_exit(json_object_get(one, "exit"), &exit_data);
    assert_int_equal(oom_classifier_verdict(classifier, &exit_data, out, &err), 0);
    oom_classifier_free(classifier);
}

static bool listed(const json_t *list, const char *word)
{
    size_t i;
    const json_t *entry;

    json_array_foreach(list, i, entry) if (strcmp(json_string_value(entry), word) == 0) return true;
    return false;
}

static int wrong(const char *id, const char *what, const char *got)
{
    print_error("%s: %s: got %s\n", id, what, got);
    return 1;
}

static int check_number(const char *id, const json_t *numbers, const char *key, int64_t got)
{
    const json_t *want = json_object_get(numbers, key);
    char text[64];

    if (got == (want ? json_integer_value(want) : OOM_UNSTATED))
        return 0;
    snprintf(text, sizeof(text), "%s %lld", key, (long long)got);
    return wrong(id, "numbers", text);
}

static int check_word(const char *id, const json_t *want, const char *key, const char *got)
{
    const json_t *word = json_object_get(want, key);

    if (!word || strcmp(json_is_string(word) ? json_string_value(word) : "", got ? got : "") == 0)
        return 0;
    return wrong(id, key, got ? got : "none");
}

static int check_speaker(const char *id, const json_t *want, const struct oom_incident *got)
{
    const json_t *rank = json_object_get(want, "rank");
    char text[32];
    int faults = check_word(id, want, "node", got->cause.node) +
                 check_word(id, want, "framework", got->framework) +
                 check_word(id, want, "direction", oom_direction_name(got->direction));

    if (rank && got->cause.rank != (json_is_integer(rank) ? json_integer_value(rank) : -1)) {
        snprintf(text, sizeof(text), "%d", got->cause.rank);
        faults += wrong(id, "rank", text);
    }
    return faults;
}

static int check_case(const json_t *one, size_t portion)
{
    const char *id = json_string_value(json_object_get(one, "id"));
    const json_t *want = json_object_get(one, "expect");
    const json_t *numbers = json_object_get(want, "numbers");
    const json_t *cause = json_object_get(want, "cause");
    const char *domain = json_string_value(json_object_get(want, "domain"));
    struct oom_incident got;
    int faults = 0;
    char text[64];

    judge(one, portion, &got);
    if (got.oom != json_is_true(json_object_get(want, "oom"))) {
        faults = wrong(id, "oom", got.summary);
        oom_incident_free(&got);
        return faults;
    }
    if (strcmp(oom_domain_name(got.domain), domain ? domain : "none") != 0)
        faults += wrong(id, "domain", oom_domain_name(got.domain));
    if (json_object_get(want, "phase") &&
        !listed(json_object_get(want, "phase"), oom_phase_name(got.phase)))
        faults += wrong(id, "phase", oom_phase_name(got.phase));
    if (got.oom && numbers) {
        faults += check_number(id, numbers, "tried", got.numbers.tried_bytes);
        faults += check_number(id, numbers, "total", got.numbers.total_bytes);
        faults += check_number(id, numbers, "free", got.numbers.free_bytes);
    }
    if (cause && (!got.cause.text ||
                  strcmp(got.cause.file, json_string_value(json_object_get(cause, "file"))) != 0 ||
                  got.cause.line != json_integer_value(json_object_get(cause, "line")))) {
        snprintf(text, sizeof(text), "line %lld", (long long)got.cause.line);
        faults += wrong(id, "cause", text);
    }
    if (got.oom)
        faults += check_speaker(id, want, &got);
    oom_incident_free(&got);
    return faults;
}

static void check_corpus(const char *path, size_t portion, size_t at_least)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    size_t cases = 0;
    int faults = 0;

    assert_non_null(file);
    while (getline(&line, &size, file) > 0) {
        json_t *one = json_loads(line, 0, NULL);
        if (!one)
            continue;
        cases++;
        faults += check_case(one, portion);
        json_decref(one);
    }
    free(line);
    fclose(file);
    assert_true(cases >= at_least);
    assert_int_equal(faults, 0);
}

static void failures_of_memory(void **state)
{
    (void)state;
    check_corpus("tests/corpus/cases.jsonl", 0, 150);
}

static void look_alikes(void **state)
{
    (void)state;
    check_corpus("tests/corpus/look_alikes.jsonl", 0, 120);
}

static void portions_do_not_matter(void **state)
{
    (void)state;
    check_corpus("tests/corpus/cases.jsonl", 1, 150);
    check_corpus("tests/corpus/cases.jsonl", 37, 150);
    check_corpus("tests/corpus/cases.jsonl", 4093, 150);
    check_corpus("tests/corpus/look_alikes.jsonl", 61, 120);
}

/* --- what labels cannot say ---------------------------------------------------------------------
 */

#define OOM_LINE                                                                                   \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "   \
    "capacity of 79.11 GiB of which 1.00 GiB is free.\n"

static void feed(struct oom_classifier *classifier, int stream, const char *text)
{
    assert_int_equal(oom_classifier_feed(classifier, stream, text, strlen(text)), 0);
}

static bool verdict(struct oom_classifier *classifier, const struct oom_exit *exit_data)
{
    struct oom_incident incident;
    struct oom_error err;

    assert_int_equal(oom_classifier_verdict(classifier, exit_data, &incident, &err), 0);
    bool oom = incident.oom;
    oom_incident_free(&incident);
    return oom;
}

static void looking_while_it_runs(void **state)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_incident incident;
    int stream = oom_classifier_open(classifier, "x", 1);

    (void)state;
    feed(classifier, stream, "{'loss': 1.0, 'epoch': 0.1}\nRuntimeError: CUDA error: out of");
    assert_false(verdict(classifier, NULL));
    feed(classifier, stream, "\nnothing\n" OOM_LINE);
    assert_true(verdict(classifier, NULL));
    for (int i = 0; i < 6; i++)
        feed(classifier, stream, "{'loss': 1.0, 'epoch': 0.1}\n");
    assert_false(verdict(classifier, NULL));
    feed(classifier, stream, OOM_LINE);
    assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
    assert_true(incident.oom);
    assert_int_equal(incident.cause.line, 11);
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
}

static void interleaved_streams(void **state)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_incident incident;
    int a = oom_classifier_open(classifier, "rank_0.log", 100);
    int b = oom_classifier_open(classifier, "rank_1.log", 1);

    (void)state;
    feed(classifier, a, "first\n  File \"/x/verl/workers/fsdp_workers.py\", line 1, in compute_");
    feed(classifier, b,
         "RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error.\n");
    feed(classifier, a, "log_prob\n" OOM_LINE);
    assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
    assert_int_equal(incident.domain, OOM_DOMAIN_GPU);
    assert_int_equal(incident.phase, OOM_PHASE_LOG_PROBS);
    assert_int_equal(incident.cause.line, 102);
    assert_int_equal(incident.cause.rank, 0);
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
}

/* Every rank of a node full of processes prints its own traceback, line by line in turn. */
static void interleaved_ranks(void **state)
{
    enum { RANKS = 256, LOOKED_AT = 0 };
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_incident incident;
    int stream = oom_classifier_open(classifier, "x", 1);
    char line[200];

    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(line, sizeof(line), "[rank%d]:   File \"/x/%s.py\", line 1, in %s\n", rank,
                 rank == LOOKED_AT ? "verl/workers/fsdp_workers" : "torch/autograd/__init__",
                 rank == LOOKED_AT ? "compute_log_prob" : "backward");
        feed(classifier, stream, line);
    }
    snprintf(line, sizeof(line), "[rank%d]: %s", LOOKED_AT, OOM_LINE);
    feed(classifier, stream, line);
    assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
    assert_int_equal(incident.phase, OOM_PHASE_LOG_PROBS);
    assert_int_equal(incident.cause.rank, LOOKED_AT);
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
}

/* Terminal control in the middle of what is searched, and what a file that was cut back holds. */
static void colours_inside_words(void **state)
{
    static const char log[] =
        "one\n\033[2mTraceback (most \033[1mrecent\033[0m call last):\n"
        "  File \033[32m\"/x/train.py\"\033[0m, line \033[36m3\033[0m, in \033[35mbackward\n"
        "\0\0\0\0\033[1;31mtorch.OutOfMemoryError\033[0m: \033[1mCUDA\033[0m out of "
        "\033[38;5;9mmemory\033[0m. \0Tried to allocate \033[1;36m2.00\033[0m GiB.\n"
        "\033[not closed\n\033]0;title\n";
    struct oom_incident incident;

    (void)state;
    for (size_t portion = 1; portion < sizeof(log); portion += 7) {
        struct oom_classifier *classifier = oom_classifier_new(set);
        int stream = oom_classifier_open(classifier, "x", 1);
        for (size_t at = 0; at < sizeof(log) - 1; at += portion)
            oom_classifier_feed(classifier, stream, log + at,
                                sizeof(log) - 1 - at < portion ? sizeof(log) - 1 - at : portion);
        assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
        assert_true(incident.oom);
        assert_int_equal(incident.phase, OOM_PHASE_BACKWARD);
        assert_int_equal(incident.cause.line, 4);
        assert_true(incident.numbers.tried_bytes == INT64_C(2) << 30);
        assert_string_equal(incident.cause.text, "torch.OutOfMemoryError: CUDA out of memory. "
                                                 "Tried to allocate 2.00 GiB.");
        oom_incident_free(&incident);
        oom_classifier_free(classifier);
    }
}

/* The same log under different ends. */
static void exit_data_weigh(void **state)
{
    static const struct {
        const char *log;
        int exit_code;
        int signal;
        int derived;
        const char *state;
        int kills;
        bool finished;
        bool oom;
    } rows[] = {
        {"working\n", 137, 9, -1, "", -1, false, false},
        {"working\n", 137, 9, -1, "FAILED", 0, false, false},
        {"working\n", 137, 9, -1, "", 1, false, true},
        {"working\n", 1, 0, 253, "FAILED", -1, false, true},
        {"working\n", 1, 0, 1, "FAILED", -1, false, false},
        {"working\n", 137, 0, -1, "OUT_OF_MEMORY", -1, false, true},
        {"working\n", -1, -1, -1, "OUT_OF_MEMORY", -1, false, true},
        {"working\n", 0, 0, -1, "OUT_OF_MEMORY", 1, false, false},
        {"working\n", 0, 0, -1, "OUT_OF_MEMORY", 1, true, false},
        {"working\nKilled\n", 137, -1, -1, "", -1, false, false},
        {"working\nKilled\n", 137, -1, -1, "", 2, false, true},
        {OOM_LINE, 1, 0, -1, "", -1, false, true},
        {OOM_LINE, 1, 0, -1, "", -1, true, false},
        {OOM_LINE, 143, 15, -1, "CANCELLED", -1, false, true},
        {"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n", 1, 0, -1, "", -1, false,
         true},
        {"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n", 0, 0, -1, "", -1, false,
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct oom_classifier *classifier = oom_classifier_new(set);
        struct oom_exit exit_data;
        oom_exit_init(&exit_data);
        exit_data.exit_code = rows[i].exit_code;
        exit_data.signal = rows[i].signal;
        exit_data.derived_exit_code = rows[i].derived;
        exit_data.cgroup_oom_kills = rows[i].kills;
        exit_data.finished = rows[i].finished;
        snprintf(exit_data.state, sizeof(exit_data.state), "%s", rows[i].state);
        feed(classifier, oom_classifier_open(classifier, NULL, 1), rows[i].log);
        if (verdict(classifier, &exit_data) != rows[i].oom)
            fail_msg("row %zu: %s", i, rows[i].log);
        oom_classifier_free(classifier);
    }
}

/* Thousands of ranks failing at once: the first counts, and what is kept stays small. */
static void floods_are_bounded(void **state)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_incident incident;
    int stream = oom_classifier_open(classifier, "x", 1);
    char line[256];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        snprintf(line, sizeof(line),
                 "[rank%d]: RuntimeError: CUDA out of memory. Tried to allocate %d.00 MiB.\n"
                 "[rank%d]: RuntimeError: CUDA error: an illegal memory access was encountered\n",
                 i, i + 1, i);
        feed(classifier, stream, line);
    }
    assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
    assert_int_equal(incident.cause.line, 1);
    assert_int_equal(incident.cause.rank, 0);
    assert_true(incident.secondary_count <= 32);
    json_t *windows = oom_classifier_windows(classifier);
    size_t bytes = 0;
    size_t i;
    const json_t *window;
    json_array_foreach(windows, i, window) bytes +=
        json_string_length(json_object_get(window, "text"));
    assert_true(bytes <= 64 * 1024);
    json_t *explain = oom_classifier_explain(classifier);
    assert_true(json_array_size(json_object_get(explain, "events")) < 300);
    json_decref(explain);
    json_decref(windows);
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
}

static void an_incident_survives_json(void **state)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_incident incident, copy;

    (void)state;
    feed(classifier, oom_classifier_open(classifier, "x", 1), "[rank3]: " OOM_LINE "\xff\xfe\n");
    assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
    json_t *json = oom_incident_to_json(&incident);
    assert_int_equal(oom_incident_from_json(json, &copy, NULL), 0);
    assert_int_equal(copy.numbers.tried_bytes, INT64_C(2) << 30);
    assert_int_equal(copy.cause.rank, 3);
    assert_string_equal(copy.summary, incident.summary);
    json_decref(json);
    oom_incident_free(&incident);
    oom_incident_free(&copy);
    oom_classifier_free(classifier);
}

static void bad_streams_are_errors(void **state)
{
    struct oom_classifier *classifier = oom_classifier_new(set);

    (void)state;
    assert_int_equal(oom_classifier_feed(classifier, 0, "x", 1), -1);
    assert_int_equal(oom_classifier_open(classifier, NULL, 1), 0);
    assert_int_equal(oom_classifier_feed(classifier, 1, "x", 1), -1);
    assert_int_equal(oom_classifier_feed(classifier, -1, "x", 1), -1);
    assert_int_equal(oom_classifier_feed(classifier, 0, "", 0), 0);
    assert_false(verdict(classifier, NULL));
    oom_classifier_free(classifier);
    oom_classifier_free(NULL);
    struct oom_signatures *raw = oom_signatures_new();
    assert_null(oom_classifier_new(raw)); /* not compiled */
    oom_signatures_free(raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_of_memory),     cmocka_unit_test(look_alikes),
        cmocka_unit_test(portions_do_not_matter), cmocka_unit_test(looking_while_it_runs),
        cmocka_unit_test(interleaved_streams),    cmocka_unit_test(interleaved_ranks),
        cmocka_unit_test(colours_inside_words),   cmocka_unit_test(exit_data_weigh),
        cmocka_unit_test(floods_are_bounded),     cmocka_unit_test(an_incident_survives_json),
        cmocka_unit_test(bad_streams_are_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
