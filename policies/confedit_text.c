/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/confedit_text.h"

char *conf_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    return text;
}

static bool is_number(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');
    bool digits = false;

    for (; isdigit((unsigned char)*at); at++)
        digits = true;
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at); at++)
            digits = true;
    if (!digits)
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        if (!isdigit((unsigned char)*at))
            return false;
        while (isdigit((unsigned char)*at))
            at++;
    }
    return !*at;
}

static bool is_word(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_boolean(const char *text)
{
    static const char *const words[] = {"true", "false", NULL};

    return is_word(text, words);
}

static bool is_null(const char *text)
{
    return strcmp(text, "null") == 0 || strcmp(text, "~") == 0;
}

bool oom_confedit_same(const char *a, const char *b)
{
    char *end_a, *end_b;

    a = a ? a : "null";
    b = b ? b : "null";
    if (strcmp(a, b) == 0 || (is_null(a) && is_null(b)) || (is_boolean(a) && strcasecmp(a, b) == 0))
        return true;
    if (!is_number(a) || !is_number(b))
        return false;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return !(x < y) && !(x > y);
}

static char *quoted(const char *text, size_t length)
{
    json_t *string = json_stringn(text, length);
    char *out = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

    json_decref(string);
    return out;
}

/* Whether YAML 1.1 and 1.2 both read it as the text that it is, in a block and in a flow. */
static bool plain_text(const char *text)
{
    static const char *const taken[] = {"true", "false", "yes",  "no",   "on", "off",
                                        "null", "~",     ".nan", ".inf", NULL};

    if (!*text || is_word(text, taken) || isdigit((unsigned char)*text) || strchr("-+.=<?:", *text))
        return *text == '.' && text[1] == '/' &&
               strspn(text, "abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_-./") == strlen(text);
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+") ==
           strlen(text);
}

/* PyYAML reads 1e-5 and 1.0e5 as text: it wants the point and the sign. */
static char *yaml_number(const char *text)
{
    size_t mantissa = strcspn(text, "eE");
    const char *exponent = text + mantissa;

    if (!*exponent)
        return strdup(text);
    bool point = memchr(text, '.', mantissa) != NULL;
    bool sign = exponent[1] == '-' || exponent[1] == '+';
    return conf_printf("%.*s%s%c%s%s", (int)mantissa, text, point ? "" : ".0", *exponent,
                       sign ? "" : "+", exponent + 1);
}

/* JSON has neither +5 nor 05 nor .5. */
static bool json_number(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    bool number = json_is_number(value);

    json_decref(value);
    return number;
}

static bool wants_text(const struct oom_confedit *edit, const struct conf_node *old)
{
    const char *type = edit->type ? edit->type : "";

    if (strcmp(type, "string") == 0 || strcmp(type, "enum") == 0)
        return !is_null(edit->value);
    if (*type)
        return false;
    /* "8" in quotes was meant as text, and so is what takes its place. */
    return old && old->kind == CONF_SCALAR && old->style &&
           (is_number(old->text) || is_boolean(old->text));
}

static char *single_quoted(const char *text)
{
    size_t length = strlen(text), n = 0;
    char *out = malloc(length * 2 + 3);

    if (!out)
        return NULL;
    out[n++] = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            out[n++] = '\'';
        out[n++] = *text;
    }
    out[n++] = '\'';
    out[n] = '\0';
    return out;
}

static bool printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

char *conf_value_text(const struct conf_tree *tree, const struct oom_confedit *edit,
                      const struct conf_node *old)
{
    const char *value = edit->value;
    bool text = wants_text(edit, old);

    if (!text && is_null(value))
        return strdup("null");
    if (!text && is_boolean(value)) {
        /* As the file has it: True stays a capital. */
        bool capital = old && !tree->json && old->kind == CONF_SCALAR && is_boolean(old->text) &&
                       isupper((unsigned char)*old->text);
        char *word = strdup(value);
        for (char *c = word; c && *c; c++)
            *c = (char)(c == word && capital ? toupper((unsigned char)*c)
                                             : tolower((unsigned char)*c));
        return word;
    }
    if (!text && is_number(value) && (!tree->json || json_number(value)))
        return tree->json ? strdup(value) : yaml_number(value);
    if (tree->json || (old && old->style == '"') || !printable(value))
        return quoted(value, strlen(value));
    if (old && old->style == '\'')
        return single_quoted(value);
    return plain_text(value) ? strdup(value) : quoted(value, strlen(value));
}

char *conf_key_text(const struct conf_tree *tree, const char *key, size_t length, bool in_quotes)
{
    char *copy = strndup(key, length);
    char *out = NULL;

    if (copy && !tree->json && !in_quotes && plain_text(copy))
        return copy;
    if (copy)
        out = quoted(key, length);
    free(copy);
    return out;
}

char *conf_nested_flow(const struct conf_tree *tree, const char *path, const char *value,
                       bool in_quotes)
{
    size_t length = strcspn(path, ".");

    if (!*path)
        return strdup(value);
    char *key = conf_key_text(tree, path, length, in_quotes);
    char *inner =
        conf_nested_flow(tree, path[length] ? path + length + 1 : path + length, value, in_quotes);
    char *out = key && inner ? conf_printf("{%s: %s}", key, inner) : NULL;
    free(key);
    free(inner);
    return out;
}

/* --- copies of what stands elsewhere ------------------------------------------------------------
 */

static bool names_only(const struct conf_tree *tree, uint32_t node)
{
    const char *name = tree->nodes[node].name;

    /* An anchor that is given twice means another thing further down. */
    for (size_t i = node + 1; i < tree->count; i++)
        if (tree->nodes[i].kind != CONF_ALIAS && tree->nodes[i].name &&
            strcmp(tree->nodes[i].name, name) == 0)
            return false;
    return true;
}

char *conf_scalar_text(const struct conf_tree *tree, const struct conf_node *node)
{
    const char *source = tree->bytes + node->start;
    size_t length = node->end - node->start;

    if (node->style != '|' && length && !memchr(source, '\n', length) &&
        (node->style || !memchr(source, '#', length))) {
        char *text = strndup(source, length);
        if (node->style || !text || (!strpbrk(text, ",[]{}:") && printable(text)))
            return text;
        free(text);
    }
    return conf_is_null(node) ? strdup("null") : quoted(node->text, node->length);
}

static char *copy_node(const struct conf_tree *tree, uint32_t index, const char *path,
                       const char *value, int depth);

/* Appends ", key: value"; false when out of memory. Both are freed. */
static bool append(char **list, char *key, char *value)
{
    char *more = NULL;

    if (*list && value)
        more = conf_printf("%s%s%s%s%s", *list, **list ? ", " : "", key ? key : "", key ? ": " : "",
                           value);
    free(*list);
    free(key);
    free(value);
    *list = more;
    return more != NULL;
}

static char *copy_children(const struct conf_tree *tree, const struct conf_node *node,
                           uint32_t changed, const char *rest, const char *value, int depth)
{
    char *list = strdup("");
    bool map = node->kind == CONF_MAP;

    for (uint32_t i = node->first; i && list; i = tree->nodes[i].next) {
        const struct conf_node *key = &tree->nodes[tree->nodes[i].key];
        char *name = map && key->kind == CONF_SCALAR ? conf_scalar_text(tree, key) : NULL;
        if (map && !name) {
            free(list);
            return NULL;
        }
        append(&list, name,
               copy_node(tree, i, i == changed ? rest : NULL, i == changed ? value : NULL, depth));
    }
    return list;
}

/* `path` NULL: as it is. */
static char *copy_node(const struct conf_tree *tree, uint32_t index, const char *path,
                       const char *value, int depth)
{
    const char *rest = "", *name = tree->nodes[index].name;
    uint32_t real = conf_deref(tree, index);
    const struct conf_node *node = &tree->nodes[real];
    char *list, *out;

    if (path && !*path)
        return strdup(value);
    if (!real || depth > 16 || node->tagged || (name && !names_only(tree, real)))
        return NULL;
    if (!path && name)
        return conf_printf("*%s", name);
    if (!path && node->kind == CONF_SCALAR)
        return conf_scalar_text(tree, node);
    if (path && node->kind == CONF_SCALAR)
        return NULL;
    bool map = node->kind == CONF_MAP;
    uint32_t changed = !path ? 0
                       : map ? conf_step(tree, real, path, !name, &rest)
                             : conf_item(tree, real, path, &rest);
    if (path && !map && !changed)
        return NULL;
    /* A list cannot be merged: it is written out. */
    if (!map)
        name = NULL;
    if (!name) {
        list = copy_children(tree, node, changed, rest, value, depth + 1);
    } else {
        list = conf_printf("<<: *%s", name);
    }
    /* The changed key is not among its children, or is what is added to a merge. */
    if (list && path && map && (name || !changed)) {
        const char *tail = changed ? rest : strchr(path, '.') ? strchr(path, '.') + 1 : "";
        size_t length = changed && !*rest ? strlen(path)
                        : changed         ? (size_t)(rest - path) - 1
                                          : strcspn(path, ".");
        append(&list, conf_key_text(tree, path, length, false),
               changed ? copy_node(tree, changed, rest, value, depth + 1)
                       : conf_nested_flow(tree, tail, value, false));
    }
    out = list ? conf_printf(map ? "{%s}" : "[%s]", list) : NULL;
    free(list);
    return out;
}

char *conf_copy_flow(const struct conf_tree *tree, uint32_t node, const char *path,
                     const char *value)
{
    return copy_node(tree, node, path, value, 0);
}
