/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs carry what users pass on command lines. Better one word too many hidden than a key kept. */
#include "oomretry/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char mark[] = "[redacted]";

static bool is_value_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-_.+/=~:%@!$^*", c));
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool ends_with(const char *name, size_t length, const char *word)
{
    size_t n = strlen(word);

    return length >= n && strncasecmp(name + length - n, word, n) == 0;
}

/* wandb-key, HF_TOKEN, client_secret, db.password; not "monkey" or "num_tokens" or a path that
 * ends in "tokenizer". */
static bool is_secret_name(const char *name, size_t length)
{
    static const char *const words[] = {"key",    "token",  "secret",     "password",
                                        "passwd", "apikey", "credential", "credentials"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t n = strlen(words[i]);
        if (!ends_with(name, length, words[i]))
            continue;
        if (length == n || strchr("_-.", name[length - n - 1]))
            return true;
        /* apiKey, accessToken */
        if (isupper((unsigned char)name[length - n]) &&
            islower((unsigned char)name[length - n - 1]))
            return true;
    }
    return ends_with(name, length, "apikey") || ends_with(name, length, "password");
}

/* Names of settings that end like secrets and hold none. */
static bool is_harmless_name(const char *name, size_t length)
{
    static const char *const words[] = {
        "pad_token", "eos_token",  "bos_token",  "unk_token",    "per_token",  "sep_token",
        "cls_token", "mask_token", "input_key",  "label_key",    "prompt_key", "stop_token",
        "data_key",  "image_key",  "reward_key", "metadata_key", "output_key", "eval_input_key"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t n = strlen(words[i]);
        if (length < n)
            continue;
        bool same = true;
        for (size_t k = 0; k < n && same; k++) {
            char c = (char)tolower((unsigned char)name[length - n + k]);
            same = (c == '-' || c == '.' ? '_' : c) == words[i][k];
        }
        if (same)
            return true;
    }
    return false;
}

/* Shapes of tokens that are secrets wherever they stand. Returns the length, 0: none. */
static size_t token_shape(const char *text, size_t length)
{
    static const struct {
        const char *prefix;
        size_t least;
    } shapes[] = {
        {"hf_", 20},    {"sk-", 20},   {"ghp_", 20},       {"gho_", 20}, {"github_pat_", 20},
        {"glpat-", 16}, {"xoxb-", 16}, {"xoxp-", 16},      {"AKIA", 16}, {"wandb_v1_", 20},
        {"nvapi-", 20}, {"AIza", 30},  {"eyJhbGciOi", 30},
    };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        size_t n = strlen(shapes[i].prefix);
        if (length < n || memcmp(text, shapes[i].prefix, n) != 0)
            continue;
        while (n < length && (isalnum((unsigned char)text[n]) || strchr("-_.", text[n])))
            n++;
        if (n >= shapes[i].least)
            return n;
    }
    return 0;
}

/* 40 hex digits are a WandB key, where "wandb" stands shortly before. */
static size_t wandb_key(const char *text, size_t at, size_t length)
{
    size_t n = 0;

    while (at + n < length && isxdigit((unsigned char)text[at + n]))
        n++;
    if (n != 40)
        return 0;
    size_t from = at > 60 ? at - 60 : 0;
    for (size_t i = from; i + 5 <= at; i++)
        if (strncasecmp(text + i, "wandb", 5) == 0)
            return n;
    return 0;
}

struct output {
    char *text;
    size_t length;
    size_t size;
    bool failed;
};

static void put(struct output *out, const char *text, size_t length)
{
    if (out->failed || length == 0)
        return;
    if (out->length + length + 1 > out->size) {
        size_t size = (out->length + length + 1) * 2;
        char *grown = realloc(out->text, size);
        if (!grown) {
            out->failed = true;
            return;
        }
        out->text = grown;
        out->size = size;
    }
    memcpy(out->text + out->length, text, length);
    out->length += length;
    out->text[out->length] = '\0';
}

static void put_clean(struct output *out, char c)
{
    if (((unsigned char)c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
        c = '?';
    put(out, &c, 1);
}

static bool is_number(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)text[i]) && text[i] != '.' && text[i] != ',')
            return false;
    return true;
}

/* Behind a secret's name: the separator, an opening quote and the value. Returns where the value
 * starts, `at` when there is none, and its length. */
static size_t secret_value(const char *text, size_t at, size_t length, size_t *value_length)
{
    size_t i = at;
    char quote = '\0';

    if (i + 1 < length && text[i] == '\\' && text[i + 1] == '"') /* JSON in JSON */
        i++;
    if (i < length && (text[i] == '"' || text[i] == '\'')) /* "key": value */
        i++;
    if (i >= length || !strchr("=: \t", text[i]))
        return at;
    bool only_space = text[i] == ' ' || text[i] == '\t';
    while (i < length && strchr(" \t=:", text[i]) && i - at < 8) {
        only_space &= text[i] != '=' && text[i] != ':';
        i++;
    }
    if (i < length && (text[i] == '"' || text[i] == '\'' || text[i] == '\\'))
        quote = text[i++];
    if (quote == '\\' && i < length && (text[i] == '"' || text[i] == '\''))
        quote = text[i++];
    size_t start = i;
    while (i < length && (quote ? text[i] != quote && text[i] != '\n' && text[i] != '\\'
                                : is_value_char(text[i])))
        i++;
    /* "--token --other": a flag is no value; prose behind a space is none either. */
    if (i == start || (only_space && (text[start] == '-' || i - start < 8)))
        return at;
    if (is_number(text + start, i - start))
        return at; /* "#token: 132621" is a count */
    *value_length = i - start;
    return start;
}

static size_t bearer(const char *text, size_t at, size_t length)
{
    if (length - at > 14 && strncasecmp(text + at, "bearer ", 7) == 0)
        return 7;
    return 0;
}

/* "://user:password@host": the password's length and where it starts; 0: there is none. */
static size_t url_password(const char *text, size_t length, size_t *start)
{
    size_t colon = 0, at = 0;

    if (length < 4 || memcmp(text, "://", 3) != 0)
        return 0;
    for (size_t i = 3;
         i < length && !isspace((unsigned char)text[i]) && !strchr("/?#\"'`<>\\", text[i]); i++) {
        if (text[i] == ':' && !colon)
            colon = i;
        if (text[i] == '@')
            at = i;
    }
    *start = colon + 1;
    return colon && at > colon ? at - colon - 1 : 0;
}

/* Of a terminal's control sequence (ESC [ … letter): colours say nothing in a record. 0: none. */
static size_t escape_length(const char *text, size_t length)
{
    size_t n = 2;

    if (length < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (n < length && n < 32 && !(text[n] >= '@' && text[n] <= '~'))
        n++;
    return n < length && n < 32 ? n + 1 : 0;
}

char *oom_redact(const char *text, size_t length)
{
    struct output out = {0};
    size_t i = 0;

    put(&out, "", 0);
    out.text = calloc(1, length + 32);
    if (!out.text)
        return NULL;
    out.size = length + 32;
    while (i < length) {
        bool word_start = i == 0 || !is_name_char(text[i - 1]);
        size_t n = word_start ? token_shape(text + i, length - i) : 0;
        if (!n && word_start)
            n = wandb_key(text, i, length);
        if (n) {
            put(&out, mark, sizeof(mark) - 1);
            i += n;
            continue;
        }
        n = word_start ? bearer(text, i, length) : 0;
        if (n) {
            put(&out, text + i, n);
            i += n;
            while (i < length && is_value_char(text[i]))
                i++;
            put(&out, mark, sizeof(mark) - 1);
            continue;
        }
        size_t colour = escape_length(text + i, length - i);
        if (colour) {
            i += colour;
            continue;
        }
        size_t start = 0, secret = url_password(text + i, length - i, &start);
        if (secret) {
            for (size_t stop = i + start; i < stop; i++)
                put_clean(&out, text[i]);
            put(&out, mark, sizeof(mark) - 1);
            i += secret;
            continue;
        }
        if (!word_start || !is_name_char(text[i])) {
            put_clean(&out, text[i++]);
            continue;
        }
        size_t end = i;
        while (end < length && is_name_char(text[end]) && end - i < 200)
            end++;
        size_t value_length = 0;
        size_t value = end;
        if (is_secret_name(text + i, end - i) && !is_harmless_name(text + i, end - i))
            value = secret_value(text, end, length, &value_length);
        put(&out, text + i, end - i);
        i = end;
        if (value_length) {
            for (; i < value; i++)
                put_clean(&out, text[i]);
            put(&out, mark, sizeof(mark) - 1);
            i = value + value_length;
        }
    }
    if (out.failed) {
        free(out.text);
        return NULL;
    }
    return out.text;
}
