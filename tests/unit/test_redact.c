/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "oomretry/redact.h"

#define HEX40 "0123456789abcdef0123456789abcdef01234567"

static void expect(const char *text, const char *want)
{
    char *got = oom_redact(text, strlen(text));

    assert_string_equal(got, want);
    free(got);
}

static void secrets_go(void **state)
{
    (void)state;
    expect("--wandb-key " HEX40 " --lr 1", "--wandb-key [redacted] --lr 1");
    expect("--logger.wandb.key=abc123 x", "--logger.wandb.key=[redacted] x");
    expect("export HF_TOKEN=hf_abcdefghijklmnopqrstuv", "export HF_TOKEN=[redacted]");
    expect("{\"WANDB_API_KEY\": \"s3cr3t\", \"a\": 1}",
           "{\"WANDB_API_KEY\": \"[redacted]\", \"a\": 1}");
    expect("{'apiKey': 'short', 'b': 2}", "{'apiKey': '[redacted]', 'b': 2}");
    expect("password=hunter2", "password=[redacted]");
    expect("client_secret: xyz", "client_secret: [redacted]");
    expect("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [redacted]");
    expect("pushed with hf_abcdefghijklmnopqrstuv to hub", "pushed with [redacted] to hub");
    expect("key sk-abcdefghijklmnopqrstuvwx used", "key [redacted] used");
    expect("wandb: logged in with " HEX40, "wandb: logged in with [redacted]");
    expect("{\\\"HF_TOKEN\\\": \\\"abc\\\"}", "{\\\"HF_TOKEN\\\": \\\"[redacted]\\\"}");
    expect("DB_PASSWORD='a b c' next", "DB_PASSWORD='[redacted]' next");
    expect("export http_proxy=http://me:s3:cr@t@proxy:3128/ x",
           "export http_proxy=http://me:[redacted]@proxy:3128/ x");
    expect("redis://:pw@10.0.0.1:6379", "redis://:[redacted]@10.0.0.1:6379");
}

static void the_rest_stays(void **state)
{
    static const char *const lines[] = {
        "--max-tokens-per-gpu 9216",
        "num_tokens=4096 monkey=1 tokenizer=/models/qwen",
        "pad_token=<pad> eos_token: </s>",
        "--input-key prompt --label-key label",
        "commit " HEX40,
        "prefill throughput 9 token/s",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "the key is under the mat",
        "#running-req: 30, #token: 118869, token usage: 0.77",
        "--token --other-flag",
        "tcp://10.0.0.1:29500 http://host:8080/a@b ssh://git@host:22/x https://a:@b",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        expect(lines[i], lines[i]);
}

static void control_characters_are_replaced(void **state)
{
    char *got = oom_redact("a\033[31mb\0c\td\ne\x7f\xff", 15);

    (void)state;
    assert_string_equal(got, "ab?c\td\ne?\xff");
    free(got);
}

static void any_length_is_fine(void **state)
{
    char text[600];

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, "token=", 6);
    char *got = oom_redact(text, sizeof(text));
    assert_string_equal(got, "token=[redacted]");
    free(got);
    for (size_t n = 0; n < 60; n++) {
        got = oom_redact("a_key=b bearer hf_abcdefghijklmnopqrstuvwxyz wandb " HEX40, n);
        assert_non_null(got);
        free(got);
    }
}

static void colours_are_left_out(void **state)
{
    static const char text[] = "\033[1;38;2;180;140;80m(AReaL)\033[0m up\033[K \033[no end";
    char *clean = oom_redact(text, sizeof(text) - 1);

    (void)state;
    assert_non_null(clean);
    assert_string_equal(clean, "(AReaL) up o end");
    free(clean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_go),
        cmocka_unit_test(the_rest_stays),
        cmocka_unit_test(control_characters_are_replaced),
        cmocka_unit_test(colours_are_left_out),
        cmocka_unit_test(any_length_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
