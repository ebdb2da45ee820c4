/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/dump_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LITERAL_BYTES = 256 * 1024,
    MAX_LITERALS = 64,     /* one for each engine of a large job */
    FULL_TABLE_ROWS = 150, /* Megatron has more than 300 arguments; an excerpt has fewer */
    MAX_NAME = 256,
    MAX_VALUE = 256,
    MAX_DEPTH = 16,
    MARK_REACH = 256, /* between a mark and the bracket that it announces */
};

char *dump_clean(const char *log, size_t length)
{
    char *text = malloc(length + 1);
    size_t to = 0;

    if (!text)
        return NULL;
    for (size_t at = 0; at < length; at++) {
        if (log[at] == '\x1b' && at + 1 < length && log[at + 1] == '[') {
            for (at += 2; at < length && !isalpha((unsigned char)log[at]) && log[at] != '\n'; at++)
                ;
            at -= at < length && log[at] == '\n';
        } else if (log[at] != '\r' && log[at] != '\0') {
            text[to++] = log[at];
        }
    }
    text[to] = '\0';
    return text;
}

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

/* Behind what launchers put in front of a line: "(Worker pid=12, ip=10.0.0.1) ", "[rank0]: ",
 * "0: ". */
static const char *behind_prefixes(const char *line)
{
    for (;;) {
        const char *at = line;
        size_t digits = strspn(line, "0123456789");
        if (*line == '(' || strncmp(line, "[rank", 5) == 0) {
            char close = *line == '(' ? ')' : ']';
            while (*at && *at != '\n' && *at != close)
                at++;
            if (*at != close || (close == ')' && !memmem(line, (size_t)(at - line), "pid=", 4)))
                return line;
            at += close == ']' && at[1] == ':' ? 2 : 1;
        } else if (digits && line[digits] == ':' && line[digits + 1] == ' ') {
            at += digits + 1;
        } else {
            return line;
        }
        line = at + (*at == ' ');
    }
}

static void copy(char *out, size_t size, const char *from, size_t length)
{
    if (length >= size)
        length = size - 1;
    memcpy(out, from, length);
    out[length] = '\0';
}

/* ---- tables */

static bool table_row(const char *line, size_t length, dump_found_f *found, void *arg)
{
    const char *dots = memmem(line, length, " ...", 4), *end = line + length;
    char name_text[MAX_NAME], value_text[MAX_VALUE];

    if (!dots)
        return false;
    const char *value = dots + 1 + strspn(dots + 1, ".");
    const char *name = dots;
    while (name > line && name_char(name[-1]))
        name--;
    if (name == dots || (name > line && name[-1] != ' ') || value >= end || *value != ' ')
        return false;
    value++;
    while (end > value && isspace((unsigned char)end[-1]))
        end--;
    if (end - value >= MAX_VALUE || dots - name >= MAX_NAME)
        return false;
    copy(name_text, sizeof(name_text), name, (size_t)(dots - name));
    copy(value_text, sizeof(value_text), value, (size_t)(end - value));
    found(arg, name_text, value_text);
    return true;
}

int dump_table(const char *text, const char *begin, const char *end, dump_found_f *found, void *arg)
{
    bool inside = !begin;
    int whole = 0, rows = 0;

    while (*text) {
        size_t length = strcspn(text, "\n");
        if (inside && end && memmem(text, length, end, strlen(end))) {
            inside = !begin;
            whole += rows >= FULL_TABLE_ROWS;
        } else if (begin && memmem(text, length, begin, strlen(begin))) {
            inside = true;
            rows = 0;
        } else if (inside) {
            rows += table_row(text, length, found, arg);
        }
        text += length + (text[length] == '\n');
    }
    return whole;
}

/* ---- literals */

/* Whether a line goes on with a literal, and is not another process's between its lines. */
static bool goes_on(const char *line)
{
    static const char *const words[] = {"True", "False", "None", "null", "true", "false"};

    line += strspn(line, " ");
    size_t word = 0;
    while (isalnum((unsigned char)line[word]) || line[word] == '_')
        word++;
    if (!word || isdigit((unsigned char)*line))
        return *line != '[' || strpbrk(line, "'\",]") != NULL;
    if (line[word] == '=')
        return true;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == word && strncmp(line, words[i], word) == 0)
            return true;
    return false;
}

/* The literal that opens at `at`, without prefixes of lines, in `out`. False when it does not
 * close. */
static bool gather(const char *at, char *out)
{
    size_t to = 0;
    int level = 0;
    char quote = '\0';

    while (*at && to + 2 < MAX_LITERAL_BYTES) {
        char c = *at++;
        if (c == '\n') {
            at = behind_prefixes(at);
            while (*at && !goes_on(at)) {
                at += strcspn(at, "\n");
                at = *at ? behind_prefixes(at + 1) : at;
            }
            quote = '\0';
            c = ' ';
        } else if (quote) {
            if (c == '\\' && *at && *at != '\n')
                out[to++] = c, c = *at++;
            else if (c == quote)
                quote = '\0';
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (strchr("([{", c)) {
            level++;
        } else if (strchr(")]}", c)) {
            level--;
        }
        out[to++] = c;
        if (level <= 0)
            break;
    }
    out[to] = '\0';
    return level == 0 && to > 1;
}

struct reader {
    const char *at;
    dump_found_f *found;
    void *arg;
    char name[MAX_NAME];
    int depth;
};

static void blanks(struct reader *r)
{
    r->at += strspn(r->at, " \t");
}

/* A quoted text or a bare word, of which the beginning is kept. */
static void scalar(struct reader *r, char *out, size_t size)
{
    size_t length = 0;
    char quote = *r->at == '\'' || *r->at == '"' ? *r->at++ : '\0';

    for (; *r->at && (quote ? *r->at != quote : strchr(",:)}]=", *r->at) == NULL); r->at++) {
        if (quote && *r->at == '\\' && r->at[1])
            r->at++;
        if (length + 1 < size)
            out[length++] = *r->at;
    }
    r->at += quote && *r->at;
    while (!quote && length && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
}

static void value(struct reader *r);

/* Members up to the closing bracket: key: value, key=value, or a value alone. */
static void members(struct reader *r, char close)
{
    size_t outer = strlen(r->name);

    r->depth++;
    for (r->at++; *r->at && *r->at != close;) {
        const char *before = r->at;
        char key[MAX_NAME];
        blanks(r);
        if (!strchr("([{<", *r->at)) {
            const char *start = r->at;
            scalar(r, key, sizeof(key));
            blanks(r);
            if (*r->at == ':' || *r->at == '=') {
                r->at++;
                if (outer + strlen(key) + 2 < sizeof(r->name)) {
                    if (outer)
                        strcat(r->name, ".");
                    strcat(r->name, key);
                }
                value(r);
                r->name[outer] = '\0';
            } else {
                r->at = start;
                dump_found_f *found = r->found;
                r->found = NULL; /* an element has no name */
                value(r);
                r->found = found;
            }
        } else {
            dump_found_f *found = r->found;
            r->found = NULL;
            value(r);
            r->found = found;
        }
        blanks(r);
        r->at += *r->at == ',';
        if (r->at == before)
            break;
    }
    r->at += *r->at == close;
    r->depth--;
}

static void value(struct reader *r)
{
    char text[MAX_VALUE];

    blanks(r);
    if (r->depth >= MAX_DEPTH) {
        r->at += strlen(r->at);
    } else if (*r->at == '{') {
        members(r, '}');
    } else if (*r->at == '[' || *r->at == '(') {
        dump_found_f *found = r->found;
        r->found = NULL;
        members(r, *r->at == '[' ? ']' : ')');
        r->found = found;
    } else if (*r->at == '<') { /* <Backend.flash: 2> */
        r->at += strcspn(r->at, ">");
        r->at += *r->at == '>';
    } else {
        bool quoted = *r->at == '\'' || *r->at == '"';
        size_t word = quoted ? 0 : strcspn(r->at, " ,:)}]=([{");
        if (word && r->at[word] == '(') { /* Namespace(…) */
            r->at += word;
            members(r, ')');
            return;
        }
        scalar(r, text, sizeof(text));
        if (r->found && *r->name)
            r->found(r->arg, r->name, text);
    }
}

int dump_literal(const char *text, const char *mark, dump_found_f *found, void *arg)
{
    char *literal = malloc(MAX_LITERAL_BYTES);
    int count = 0;

    if (!literal)
        return -1;
    for (const char *at = text; count < MAX_LITERALS && (at = strstr(at, mark)) != NULL; count++) {
        size_t reach = strcspn(at, "({");
        if (reach > strlen(mark) + MARK_REACH || !gather(at + reach, literal)) {
            at += strlen(mark);
            continue;
        }
        struct reader reader = {.at = literal, .found = found, .arg = arg};
        members(&reader, *literal == '(' ? ')' : '}');
        at += strlen(mark);
    }
    free(literal);
    return 0;
}
