/* SPDX-License-Identifier: Apache-2.0
 *
 * A verdict in one sentence, for people. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_private.h"

#define VERBATIM_BYTES 160 /* of a line that is quoted */

const char *oom_why(const struct signature *sig, const char *otherwise)
{
    return sig->why ? sig->why : otherwise;
}

static const char *domain_words(enum oom_domain domain)
{
    static const char *const words[] = {
        [OOM_DOMAIN_NONE] = "memory",
        [OOM_DOMAIN_GPU] = "GPU out of memory",
        [OOM_DOMAIN_HOST] = "host out of memory",
        [OOM_DOMAIN_SHM] = "shared memory used up",
        [OOM_DOMAIN_KV_CACHE] = "KV cache too small",
    };
    return words[domain];
}

/* In GiB, where that shows something. */
static void put_size(int64_t bytes, char *out, size_t size)
{
    const double mib = 1024.0 * 1024.0;

    if ((double)bytes >= 0.1 * 1024 * mib || bytes == 0)
        snprintf(out, size, "%.2f GiB", (double)bytes / (1024 * mib));
    else if ((double)bytes >= 0.1 * mib)
        snprintf(out, size, "%.2f MiB", (double)bytes / mib);
    else
        snprintf(out, size, "%lld bytes", (long long)bytes);
}

void oom_summary_of_oom(struct oom_incident *incident)
{
    char where[96] = "";
    char numbers[128] = "";
    char tried[32];
    char left[32];
    const struct oom_numbers *n = &incident->numbers;

    if (incident->cause.rank >= 0)
        snprintf(where, sizeof(where), ", rank %d", incident->cause.rank);
    if (incident->cause.node) {
        size_t have = strlen(where);
        snprintf(where + have, sizeof(where) - have, "%s%s", have ? " on " : ", on ",
                 incident->cause.node);
    }
    put_size(n->tried_bytes, tried, sizeof(tried));
    put_size(n->free_bytes, left, sizeof(left));
    if (n->tried_bytes != OOM_UNSTATED && n->free_bytes != OOM_UNSTATED)
        snprintf(numbers, sizeof(numbers), ": tried to allocate %s with %s free", tried, left);
    else if (n->tried_bytes != OOM_UNSTATED)
        snprintf(numbers, sizeof(numbers), ": tried to allocate %s", tried);
    snprintf(incident->summary, sizeof(incident->summary), "%s%s%s%s%s",
             domain_words(incident->domain), incident->phase == OOM_PHASE_UNKNOWN ? "" : " in ",
             incident->phase == OOM_PHASE_UNKNOWN ? "" : oom_phase_name(incident->phase), where,
             numbers);
}

/* What the decisive line says behind its prefixes, not cut in the middle of a character. */
static void quote(const struct oom_line *line, char *out, size_t size)
{
    struct line_view view = {.text = line->text, .length = strlen(line->text)};

    oom_line_speaker(&view);
    while (view.body_length > 0 && strchr(" \t", *view.body)) {
        view.body++;
        view.body_length--;
    }
    size_t shown = view.body_length < VERBATIM_BYTES ? view.body_length : VERBATIM_BYTES;
    while (shown > 0 && shown < view.body_length &&
           ((unsigned char)view.body[shown] & 0xc0) == 0x80)
        shown--;
    snprintf(out, size, "%.*s%s", (int)shown, view.body, shown < view.body_length ? " ..." : "");
}

void oom_summary_of_failure(const struct signature *sig, struct oom_incident *incident)
{
    char line[VERBATIM_BYTES + 8] = "";

    if (sig->verbatim)
        quote(&incident->cause, line, sizeof(line));
    snprintf(incident->summary, sizeof(incident->summary), "not out of memory: %s",
             line[0] ? line : oom_why(sig, "another failure"));
}
