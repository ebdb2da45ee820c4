/* SPDX-License-Identifier: Apache-2.0
 *
 * Long logs of which only the end is read: wherever it says that it decides, its verdict is that of
 * a whole reading, whatever the rest holds. */
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

#define QUIET_LINES 20200 /* a little more than an own traceback stays fresh */
#define QUIET_TEXT  "step done\n"
#define OOM_LINE                                                                                   \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "   \
    "capacity of 79.15 GiB of which 1.02 GiB is free.\n"
#define PROGRESS   "{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
#define PROGRESS_5 PROGRESS PROGRESS PROGRESS PROGRESS PROGRESS

static struct oom_signatures *set;
static json_t *cases;

static int setup(void **state)
{
    json_error_t why;
    FILE *file = fopen("tests/corpus/cases.jsonl", "r");
    char *line = NULL;
    size_t room = 0;

    (void)state;
    set = sets_shipped();
    cases = json_array();
    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        json_t *one = json_loads(line, 0, &why);
        if (one) /* not those with bytes that are no UTF-8 */
            json_array_append_new(cases, one);
    }
    free(line);
    fclose(file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(cases);
    oom_signatures_free(set);
    return 0;
}

/* --- two readings -------------------------------------------------------------------------------
 */

struct text {
    char *bytes;
    size_t length, room;
};

static void append(struct text *text, const char *bytes, size_t length)
{
    if (text->length + length >= text->room) {
        text->room = 2 * (text->length + length) + 1;
        text->bytes = realloc(text->bytes, text->room);
        assert_non_null(text->bytes);
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void append_text(struct text *text, const char *more)
{
    append(text, more, strlen(more));
}

/* The end of a log: what stands at its beginning, quiet lines, then the case. */
static struct text end_of(const char *begin, int quiet_lines, const char *log, size_t length)
{
    struct text end = {0};

    append_text(&end, begin);
    for (int i = 0; i < quiet_lines; i++)
        append(&end, QUIET_TEXT, strlen(QUIET_TEXT));
    append(&end, log, length);
    return end;
}

/* Reads `rest` and `end` as the streams of one log each; false: the ends do not decide. */
static bool judge(const json_t *one, const char *rest, const char *begin, int quiet_lines,
                  bool whole, struct oom_incident *out)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_exit exit_data;
    const char *name;
    json_t *lines;
    bool decides = true;

    json_object_foreach(json_object_get(one, "files"), name, lines)
    {
        size_t length;
        char *log = cases_joined(lines, &length);
        struct text end = end_of(begin, quiet_lines, log, length);
        int stream = oom_classifier_open(classifier, name, 1);
        if (whole)
            oom_classifier_feed(classifier, stream, rest, strlen(rest));
        else
            oom_classifier_skim(classifier, stream, rest, strlen(rest));
        oom_classifier_feed(classifier, stream, end.bytes, end.length);
        decides &= whole || oom_classifier_end_decides(classifier, stream);
        free(end.bytes);
        free(log);
    }
    cases_read_exit(json_object_get(one, "exit"), &exit_data);
    assert_int_equal(oom_classifier_verdict(classifier, &exit_data, out, NULL), 0);
    oom_classifier_free(classifier);
    return decides && out->oom && out->cause.text;
}

static char *verdict_text(const struct oom_incident *incident)
{
    json_t *json = oom_incident_to_json(incident);

    json_object_del(json, "secondary");
    char *text = json_dumps(json, JSON_SORT_KEYS);
    json_decref(json);
    return text;
}

/* How many ends of every `step`th case decide; each of them rightly. */
static int compare(const char *rest, const char *begin, size_t first, size_t step)
{
    int decided = 0;

    for (size_t i = first; i < json_array_size(cases); i += step) {
        const json_t *one = json_array_get(cases, i);
        struct oom_incident by_end, by_all;
        if (judge(one, rest, begin, QUIET_LINES, false, &by_end)) {
            judge(one, rest, begin, QUIET_LINES, true, &by_all);
            char *mine = verdict_text(&by_end);
            char *right = verdict_text(&by_all);
            if (strcmp(mine, right) != 0)
                print_error("%s\n", json_string_value(json_object_get(one, "id")));
            assert_string_equal(mine, right);
            free(mine);
            free(right);
            oom_incident_free(&by_all);
            decided++;
        }
        oom_incident_free(&by_end);
    }
    return decided;
}

/* --- what the rest may hold ---------------------------------------------------------------------
 */

static int oom_cases(void)
{
    int count = 0;
    size_t i;
    const json_t *one;

    json_array_foreach(cases, i, one)
    {
        struct oom_incident incident;
        count += judge(one, "", "", 0, true, &incident);
        oom_incident_free(&incident);
    }
    return count;
}

static void the_rest_is_quiet(void **state)
{
    int all = oom_cases();
    int decided = compare(PROGRESS_5 QUIET_TEXT, PROGRESS_5, 0, 2);

    (void)state;
    print_message("%d of every second of %d failures are decided by the end\n", decided, all);
    assert_true(decided > all / 6);
}

static void the_rest_holds_failures(void **state)
{
    static const char *const rests[] = {
        QUIET_TEXT OOM_LINE PROGRESS_5, /* survived */
        OOM_LINE,                       /* survived, as the end shows */
        "RuntimeError: CUDA error: out of memory\n" QUIET_TEXT,
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have "
        "been OOM Killed.\n",
        "Traceback (most recent call last):\n  File \"/x/verl/workers/fsdp_workers.py\", line 1, "
        "in "
        "compute_log_prob\nValueError: no\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
        assert_true(compare(rests[i], PROGRESS_5, i % 5, 5) > 20);
}

static void the_rest_changes_the_state(void **state)
{
    static const char *const rests[] = {
        "(AReaL) areal/engine verl/trainer relax/backends megatron/core vllm/v1/ trl/trainer\n",
        "from megatron/training\n",
        "Timer (ref_log_probs) start\n",
        "Timer (save_model) end\n",
        "<|im_start|>user\n",
        "```\n",
        "=== Starting GLOBAL restart 2\n",
        "Training completed. Do not forget to share your model\n",
        "  File \"/x/verl/workers/fsdp_workers.py\", line 1, in compute_log_prob\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
        assert_true(compare(rests[i], PROGRESS_5, i % 5, 5) > 20);
}

static bool decides(const char *rest, const char *begin, int quiet_lines)
{
    json_t *one = json_pack(
        "{s:{s:[s, s, s]}, s:{s:i}}", "files", "x",
        "Traceback (most recent call last):", "  File \"/x/train.py\", line 3, in backward",
        "torch.OutOfMemoryError: CUDA out of memory.", "exit", "exit_code", 1);
    struct oom_incident incident;

    assert_non_null(one);
    bool yes = judge(one, rest, begin, quiet_lines, false, &incident);
    oom_incident_free(&incident);
    json_decref(one);
    return yes;
}

static void the_end_is_not_enough(void **state)
{
    (void)state;
    assert_true(decides(QUIET_TEXT, PROGRESS_5, QUIET_LINES));
    /* Nothing proves that what came before was survived. */
    assert_false(decides(OOM_LINE, "", QUIET_LINES));
    assert_false(decides(OOM_LINE, PROGRESS, QUIET_LINES));
    /* A traceback of the rest may belong to the failure. */
    assert_false(decides(QUIET_TEXT, PROGRESS_5, 1000));
    /* The end may begin inside quoted text. */
    assert_false(decides("```\n", PROGRESS_5 "```\n", QUIET_LINES));
    /* A failure before the proof. */
    assert_false(decides(QUIET_TEXT, OOM_LINE PROGRESS_5, QUIET_LINES));
}

/* --- lines and frameworks -----------------------------------------------------------------------
 */

static void skimmed_lines_count(void **state)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    struct oom_incident incident;
    int stream = oom_classifier_open(classifier, "x", 1);
    struct text end = end_of(PROGRESS_5, QUIET_LINES, OOM_LINE, strlen(OOM_LINE));

    (void)state;
    /* In portions that cut lines, and lines without end. */
    for (int i = 0; i < 1000; i++) {
        oom_classifier_skim(classifier, stream, "one\ntw", 6);
        oom_classifier_skim(classifier, stream, "o\r\n", 3);
        oom_classifier_skim(classifier, stream, QUIET_TEXT, strlen(QUIET_TEXT));
    }
    oom_classifier_skim(classifier, stream, "in relax/backe", 14);
    oom_classifier_skim(classifier, stream, "nds\n", 4);
    for (size_t at = 0; at < end.length; at += 999)
        oom_classifier_feed(classifier, stream, end.bytes + at,
                            end.length - at < 999 ? end.length - at : 999);
    /* No traceback and no marker: the phase may lie in the rest. */
    assert_false(oom_classifier_end_decides(classifier, stream));
    assert_int_equal(oom_classifier_verdict(classifier, NULL, &incident, NULL), 0);
    assert_true(incident.oom);
    assert_int_equal(incident.cause.line, 3000 + 1 + 5 + QUIET_LINES + 1);
    assert_string_equal(incident.framework, "relax");
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
    free(end.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_is_quiet),          cmocka_unit_test(the_rest_holds_failures),
        cmocka_unit_test(the_rest_changes_the_state), cmocka_unit_test(the_end_is_not_enough),
        cmocka_unit_test(skimmed_lines_count),
    };

    return cmocka_run_group_tests_name("classify_tail", tests, setup, teardown);
}
