/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of the signature schema as values. */
#include <string.h>

#include "policies/classify_private.h"

const char *const oom_sig_kinds[] = {
    [SIG_OOM] = "oom",
    [SIG_WRAPPER] = "wrapper",
    [SIG_SUSPECT] = "suspect",
    [SIG_LOOK_ALIKE] = "look_alike",
    [SIG_RECOVERED] = "recovered",
    [SIG_DETAIL] = "detail",
    [SIG_SECONDARY] = "secondary",
    [SIG_FAILURE] = "failure",
    [SIG_PROGRESS] = "progress",
    [SIG_FINISHED] = "finished",
    [SIG_RESTART] = "restart",
    [SIG_PHASE] = "phase",
    [SIG_CONTEXT] = "context",
    [SIG_QUOTE] = "quote",
    [SIG_FRAMEWORK] = "framework",
    [SIG_TRACEBACK] = "traceback",
    [SIG_FRAME] = "frame",
    NULL,
};

const char *oom_sig_kind_name(enum sig_kind kind)
{
    return oom_sig_kinds[kind];
}

int oom_sig_kind_parse(const char *name, enum sig_kind *out)
{
    for (size_t i = 0; oom_sig_kinds[i]; i++)
        if (strcmp(oom_sig_kinds[i], name) == 0) {
            *out = (enum sig_kind)i;
            return 0;
        }
    return -1;
}

int oom_strength_parse(const char *name, int *out)
{
    static const struct {
        const char *name;
        int value;
    } strengths[] = {
        {"marker", STRENGTH_MARKER},     {"work", STRENGTH_WORK},   {"step", STRENGTH_STEP},
        {"scope", STRENGTH_SCOPE},       {"outer", STRENGTH_OUTER}, {"override", STRENGTH_OVERRIDE},
        {"message", STRENGTH_SIGNATURE},
    };

    for (size_t i = 0; i < sizeof(strengths) / sizeof(*strengths); i++)
        if (strcmp(strengths[i].name, name) == 0) {
            *out = strengths[i].value;
            return 0;
        }
    return -1;
}
