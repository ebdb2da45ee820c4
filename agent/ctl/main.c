/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/ctl.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct ctl_verb verbs[] = {
    {"diagnose", ctl_diagnose, "what ran out, where and in which phase, from logs"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_DFL);
    return ctl_dispatch("oomctl", verbs, argc, argv);
}
