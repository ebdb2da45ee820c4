/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_submitted.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 128, MAX_COMPONENTS = 32 };

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place; false for what the plugin does not write. */
static bool decode(char *word)
{
    char *to = word;

    for (const char *from = word; *from; from++) {
        char plain = *from;
        if (plain == '%') {
            int high = hex_digit(from[1]);
            int low = high < 0 ? -1 : hex_digit(from[2]);
            if (low < 0)
                return false;
            plain = (char)(high << 4 | low);
            from += 2;
        }
        if (!plain)
            return false;
        *to++ = plain;
    }
    *to = '\0';
    return true;
}

static bool add(struct slurm_submitted *out, const char *word)
{
    char *copy = strdup(word);

    if (!copy || out->count == MAX_WORDS || !decode(copy) || strncmp(copy, "--", 2) != 0 ||
        !copy[2] || copy[2] == '-') {
        free(copy);
        return false;
    }
    out->component[out->count] = out->components - 1;
    out->words[out->count++] = copy;
    return true;
}

bool slurm_submitted_read(const char *text, struct slurm_submitted *out)
{
    char *copy = text && *text ? strdup(text) : NULL;
    bool good = copy != NULL;

    *out = (struct slurm_submitted){.words = calloc(MAX_WORDS, sizeof(char *)),
                                    .component = calloc(MAX_WORDS, sizeof(size_t)),
                                    .components = 1};
    good = good && out->words && out->component;
    for (char *save = NULL, *word = good ? strtok_r(copy, " ", &save) : NULL; word && good;
         word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, ":") == 0)
            good = ++out->components <= MAX_COMPONENTS;
        else
            good = add(out, word);
    }
    free(copy);
    if (!good)
        slurm_submitted_free(out);
    return good;
}

void slurm_submitted_free(struct slurm_submitted *submitted)
{
    for (size_t i = 0; i < submitted->count; i++)
        free(submitted->words[i]);
    free(submitted->words);
    free(submitted->component);
    *submitted = (struct slurm_submitted){NULL, 0, NULL, 0};
}
