/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs in UTF-16 and other encodings: the verdict is that of the same text in UTF-8, in whatever
 * portions the bytes come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/sets.h"

/* "Abort" in Chinese, with characters one byte of which is that of the end of a line, of an escape
 * or zero; a character of two units; then the failure. */
#define LOG                                                                                        \
    "\u4e0a\u4e0d\u4e1b \u0a00\u0d00\u4e00\r\n"                                                    \
    "\U0001f525 step 1\r\n"                                                                        \
    "[rank3]: Traceback (most recent call last):\r\n"                                              \
    "[rank3]:   File \"/srv/\u4e0a\u4f20/train.py\", line 3, in backward\r\n"                      \
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has "  \
    "a total capacity of 79.15 GiB of which 1.02 GiB is free. \u0a00\U0001f525\r\n"

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

static size_t encode(const char *encoding, const char *mark, size_t mark_length, const char *text,
                     char *out, size_t room)
{
    iconv_t to = iconv_open(encoding, "UTF-8");
    char *in = (char *)(uintptr_t)text;
    char *at = out + mark_length;
    size_t left = strlen(text);
    size_t free_bytes = room - mark_length;

    assert_ptr_not_equal(to, (iconv_t)-1);
    memcpy(out, mark, mark_length);
    assert_int_equal(iconv(to, &in, &left, &at, &free_bytes), 0);
    iconv_close(to);
    return (size_t)(at - out);
}

static void read_in_portions(const char *bytes, size_t length, size_t portion,
                             struct oom_incident *out)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    int stream = oom_classifier_open(classifier, "a.log", 1);

    for (size_t at = 0; at < length; at += portion) {
        size_t n = length - at < portion ? length - at : portion;
        assert_int_equal(oom_classifier_feed(classifier, stream, bytes + at, n), 0);
    }
    assert_int_equal(oom_classifier_verdict(classifier, NULL, out, NULL), 0);
    oom_classifier_free(classifier);
}

static void check(const char *bytes, size_t length)
{
    static const size_t portions[] = {1, 2, 3, 5, 7, 64, 1u << 20};

    for (size_t i = 0; i < sizeof(portions) / sizeof(portions[0]); i++) {
        struct oom_incident incident;
        read_in_portions(bytes, length, portions[i], &incident);
        assert_true(incident.oom);
        assert_int_equal(incident.phase, OOM_PHASE_BACKWARD);
        assert_int_equal(incident.cause.line, 5);
        assert_int_equal(incident.cause.rank, 3);
        assert_int_equal(incident.numbers.tried_bytes, INT64_C(2) << 30);
        assert_non_null(strstr(incident.cause.text, "free. \u0a00\U0001f525"));
        oom_incident_free(&incident);
    }
}

static void test_every_encoding(void **state)
{
    static const struct {
        const char *encoding;
        const char *mark;
        size_t mark_length;
    } encodings[] = {
        {"UTF-16LE", "\xff\xfe", 2},
        {"UTF-16BE", "\xfe\xff", 2},
        {"UTF-8", "\xef\xbb\xbf", 3},
        {"UTF-8", "", 0},
    };
    char bytes[4096];

    (void)state;
    for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++)
        check(bytes, encode(encodings[i].encoding, encodings[i].mark, encodings[i].mark_length, LOG,
                            bytes, sizeof(bytes)));
}

/* Without a mark the first characters tell, as long as they are ASCII. */
static void test_without_mark(void **state)
{
    char text[4096] = "Epoch";
    char bytes[4096];

    (void)state;
    strcat(text, LOG);
    check(bytes, encode("UTF-16LE", "", 0, text, bytes, sizeof(bytes)));
    assert_true(oom_log_is_wide(bytes, 8));
    check(bytes, encode("UTF-16BE", "", 0, text, bytes, sizeof(bytes)));
    assert_true(oom_log_is_wide(bytes, sizeof(bytes)));
}

/* A whole portion of 64 KiB and more, of which a pair is cut in two. */
static void test_long(void **state)
{
    size_t characters = 50000;
    char *text = malloc(characters * 4 + 1 + sizeof(LOG));
    char *bytes = malloc(characters * 4 + 2 * sizeof(LOG));
    struct oom_incident incident;

    (void)state;
    for (size_t i = 0; i < characters; i++)
        memcpy(text + 4 * i, "\U0001f525", 4);
    strcpy(text + 4 * characters, "\n" LOG);
    size_t length =
        encode("UTF-16LE", "\xff\xfe", 2, text, bytes, characters * 4 + 2 * sizeof(LOG));
    read_in_portions(bytes, length, length, &incident);
    assert_true(incident.oom);
    assert_int_equal(incident.cause.line, 6);
    oom_incident_free(&incident);
    free(text);
    free(bytes);
}

/* What looks a little like it, and what is broken. */
static void test_other_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } logs[] = {
#define ENTRY(text) {text, sizeof(text) - 1}
        ENTRY("\0\0\0\0\0\0\0\0\0\0MemoryError\n"), /* cut back by somebody else */
        ENTRY("M\0emoryError\n"),
        ENTRY("gr\xfc\xdf\xff\xfe\x80\nMemoryError\n"), /* Latin-1 and nonsense */
        ENTRY("\xff\xff\nMemoryError\n"),
        ENTRY("\xef\xbb\nMemoryError\n"),
        ENTRY("\xff\xfe\0\xd8 \0M\0e\0m\0o\0r\0y\0E\0r\0r\0o\0r\0\n\0\n"), /* a lone half, an odd
                                                                              end */
        ENTRY("\xff\xfe\0\xdc\n\0M\0e\0m\0o\0r\0y\0E\0r\0r\0o\0r\0"),
#undef ENTRY
    };
    struct oom_incident incident;

    (void)state;
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
        for (size_t portion = 1; portion < 9; portion++) {
            read_in_portions(logs[i].bytes, logs[i].length, portion, &incident);
            if (!incident.oom)
                print_error("log %zu in portions of %zu\n", i, portion);
            assert_true(incident.oom);
            oom_incident_free(&incident);
        }
    assert_false(oom_log_is_wide(logs[0].bytes, logs[0].length));
    assert_false(oom_log_is_wide("\xff", 1));
    assert_false(oom_log_is_wide("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_encoding),
        cmocka_unit_test(test_without_mark),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_other_bytes),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
