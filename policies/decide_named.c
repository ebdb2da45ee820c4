/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "oomretry/decide.h"

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static bool same_letter(char a, char b)
{
    return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

/* The dashes of a flag are its own; those of --no-FLAG are not. An attribute stands behind its
 * object ("args.loss_fusion"), while a longer key is another key. */
static bool word_begins(const char *line, const char *at, bool dotted)
{
    while (at > line && (at[-1] == '-' || at[-1] == '+'))
        at--;
    return at == line || !(in_word(at[-1]) || (dotted && at[-1] == '.'));
}

/* Does `line` hold `word` as a word of its own? '-' and '_' are the same: a parser complains about
 * the flag, an assertion about the attribute. */
static bool holds_word(const char *line, const char *word, size_t length)
{
    bool dotted = memchr(word, '.', length) != NULL;

    for (const char *at = line; *at; at++) {
        size_t i = 0;
        while (i < length && same_letter(at[i], word[i]))
            i++;
        if (i == length && word_begins(line, at, dotted) && !in_word(at[i]) &&
            !(at[i] == '.' && in_word(at[i + 1])))
            return true;
    }
    return false;
}

/* "unexpected keyword argument 'offload_params'": the last part of a key, when it is quoted. */
static bool quotes_leaf(const char *line, const char *knob)
{
    const char *leaf = strrchr(knob, '.');
    size_t length;

    if (!leaf)
        return false;
    leaf++;
    length = strlen(leaf);
    for (const char *at = strstr(line, leaf); at && length > 0; at = strstr(at + 1, leaf))
        if (at > line && strchr("'\"`", at[-1]) && at[-1] == at[length])
            return true;
    return false;
}

const char *oom_edits_named(const struct oom_edits *edits, const char *line)
{
    for (size_t i = 0; i < edits->count; i++) {
        const char *knob = edits->items[i].knob;
        const char *name = strncmp(knob, "env:", 4) == 0 ? knob + 4 : knob + strspn(knob, "-+");
        /* A word such as "lr" or "mem" stands in many a message. */
        if (strlen(name) >= 6 && strncmp(knob, "slurm:", 6) != 0 && strncmp(knob, "ray:", 4) != 0 &&
            (holds_word(line, name, strlen(name)) || quotes_leaf(line, name)))
            return knob;
    }
    return NULL;
}
