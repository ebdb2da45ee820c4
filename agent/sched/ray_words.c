/* SPDX-License-Identifier: Apache-2.0
 *
 * `ray job submit -- bash run.sh a "b c"` stores the words as `bash run.sh a 'b c'`: quoted by
 * Python's shlex.join. That form is read back here; everything that a shell would expand or
 * interpret is left to the rewriting of bash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/ray.h"

enum { MAX_WORDS = 1024 };

/* One word; NULL at the end of the text or when it is no plain word (*bad). */
static char *next_word(const char **at, bool *bad)
{
    const char *p = *at + strspn(*at, " \t\n");
    char *word = *p ? malloc(strlen(p) + 1) : NULL, *out = word;

    while (word && *p && !strchr(" \t\n", *p)) {
        if (*p == '\'') {
            const char *end = strchr(p + 1, '\'');
            if (!end)
                break;
            memcpy(out, p + 1, (size_t)(end - p - 1));
            out += end - p - 1;
            p = end + 1;
        } else if (*p == '"') {
            const char *end = p + 1;
            while (*end && !strchr("\"$`\\", *end))
                *out++ = *end++;
            if (*end != '"')
                break;
            p = end + 1;
        } else if (*p == '\\' && p[1]) {
            *out++ = p[1];
            p += 2;
        } else if (strchr("$`;&|<>()*?[]{}~#!\\", *p)) {
            break;
        } else {
            *out++ = *p++;
        }
    }
    if (!word)
        return NULL;
    if (*p && !strchr(" \t\n", *p)) {
        *bad = true;
        free(word);
        return NULL;
    }
    *out = '\0';
    *at = p;
    return word;
}

static bool is_assignment(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return n > 0 && word[n] == '=';
}

static bool is_shell(const char *word)
{
    const char *slash = strrchr(word, '/');
    const char *base = slash ? slash + 1 : word;

    return strcmp(base, "bash") == 0 || strcmp(base, "sh") == 0;
}

/* Where the script's name stands; false when there is none. */
static bool find_file(struct ray_start *start)
{
    size_t i = 0;

    while (i < start->count && is_assignment(start->words[i]))
        i++;
    if (i == start->count)
        return false;
    start->shell = start->file = i;
    if (!is_shell(start->words[i]))
        return strchr(start->words[i], '/') != NULL;
    for (i++; i < start->count && start->words[i][0] == '-'; i++)
        if (start->words[i][1] == '-' || strpbrk(start->words[i], "cs"))
            return false;
    start->file = i;
    return i < start->count;
}

bool ray_start_parse(const char *entrypoint, struct ray_start *out)
{
    bool bad = false;
    char *word;

    *out = (struct ray_start){NULL, 0, 0, 0};
    out->words = calloc(MAX_WORDS + 1, sizeof(char *));
    if (!out->words)
        return false;
    while (out->count < MAX_WORDS && (word = next_word(&entrypoint, &bad)))
        out->words[out->count++] = word;
    if (!bad && entrypoint[strspn(entrypoint, " \t\n")] == '\0' && find_file(out))
        return true;
    ray_start_free(out);
    return false;
}

void ray_start_free(struct ray_start *start)
{
    for (size_t i = 0; i < start->count; i++)
        free(start->words[i]);
    free(start->words);
    *start = (struct ray_start){NULL, 0, 0, 0};
}

static void put_quoted(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./-_";

    if (*word && strspn(word, plain) == strlen(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    }
    fputc('\'', out);
}

char *ray_start_inline(const struct ray_start *start, const char *text)
{
    char *bytes = NULL;
    size_t length;
    FILE *out = open_memstream(&bytes, &length);

    if (!out)
        return NULL;
    for (size_t i = 0; i < start->file; i++) {
        const char *word = start->words[i];
        if (i < start->shell) { /* a quoted name would not be an assignment any more */
            size_t name = strcspn(word, "=") + 1;
            fprintf(out, "%.*s", (int)name, word);
            word += name;
        }
        put_quoted(out, word);
        fputc(' ', out);
    }
    fputs(start->file == start->shell ? "bash -c " : "-c ", out);
    put_quoted(out, text);
    for (size_t i = start->file; i < start->count; i++) {
        fputc(' ', out);
        put_quoted(out, start->words[i]);
    }
    if (fclose(out) != 0) {
        free(bytes);
        return NULL;
    }
    return bytes;
}
