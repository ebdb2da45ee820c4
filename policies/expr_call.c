/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/expr_call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "policies/layout.h"

typedef struct oom_expr_value value;

static bool numbers(const value *args, int count)
{
    for (int i = 0; i < count; i++)
        if (args[i].kind != OOM_EXPR_NUMBER)
            return false;
    return true;
}

static bool strings(const value *args, int count)
{
    for (int i = 0; i < count; i++)
        if (args[i].kind != OOM_EXPR_STRING)
            return false;
    return true;
}

static void call_ceil(const value *args, int count, value *out)
{
    if (numbers(args, count))
        oom_expr_set_number(out, ceil(args[0].number - 1e-9));
}

static void call_floor(const value *args, int count, value *out)
{
    if (numbers(args, count))
        oom_expr_set_number(out, floor(args[0].number + 1e-9));
}

static void call_min(const value *args, int count, value *out)
{
    if (!numbers(args, count))
        return;
    double best = args[0].number;
    for (int i = 1; i < count; i++)
        best = fmin(best, args[i].number);
    oom_expr_set_number(out, best);
}

static void call_max(const value *args, int count, value *out)
{
    if (!numbers(args, count))
        return;
    double best = args[0].number;
    for (int i = 1; i < count; i++)
        best = fmax(best, args[i].number);
    oom_expr_set_number(out, best);
}

/* divides(a, b): b is a multiple of a. */
static void call_divides(const value *args, int count, value *out)
{
    if (numbers(args, count) && args[0].number > 0)
        oom_expr_set_bool(out, fabs(fmod(args[1].number, args[0].number)) < 1e-9);
}

/* set(x): something gives it a value; for a switch, that it is on. */
static void call_set(const value *args, int count, value *out)
{
    (void)count;
    if (args[0].kind == OOM_EXPR_UNKNOWN)
        return;
    oom_expr_set_bool(out, args[0].kind == OOM_EXPR_BOOL ? args[0].truth
                                                         : args[0].kind != OOM_EXPR_NULL);
}

static void call_known(const value *args, int count, value *out)
{
    (void)count;
    oom_expr_set_bool(out, args[0].kind != OOM_EXPR_UNKNOWN && args[0].kind != OOM_EXPR_NULL);
}

/* first(a, b, ...): the first that is set. One that cannot be read decides nothing. */
static void call_first(const value *args, int count, value *out)
{
    for (int i = 0; i < count; i++) {
        if (args[i].kind == OOM_EXPR_NULL)
            continue;
        *out = args[i];
        return;
    }
    out->kind = OOM_EXPR_NULL;
}

static void call_if(const value *args, int count, value *out)
{
    (void)count;
    if (args[0].kind == OOM_EXPR_BOOL)
        *out = args[0].truth ? args[1] : args[2];
    else if (args[0].kind == OOM_EXPR_NULL)
        *out = args[2];
}

/* contains(text, "part"): nothing contains anything when it is not set. */
static void call_contains(const value *args, int count, value *out)
{
    if (strings(args, count))
        oom_expr_set_bool(out, strstr(args[0].text, args[1].text) != NULL);
    else if (args[0].kind == OOM_EXPR_NULL)
        oom_expr_set_bool(out, false);
}

/* replace(text, "part", "other"): the first place where the part is. */
static void call_replace(const value *args, int count, value *out)
{
    char text[OOM_EXPR_TEXT];

    if (!strings(args, count) || !args[1].text[0])
        return;
    const char *at = strstr(args[0].text, args[1].text);
    if (!at) {
        oom_expr_set_string(out, args[0].text);
        return;
    }
    int n = snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - args[0].text), args[0].text,
                     args[2].text, at + strlen(args[1].text));
    if (n >= 0 && (size_t)n < sizeof(text))
        oom_expr_set_string(out, text);
}

/* largest_divisor(n, limit): of n, at most limit. */
static void call_largest_divisor(const value *args, int count, value *out)
{
    if (!numbers(args, count) || args[0].number < 1 || args[0].number > 1e7)
        return;
    long n = (long)args[0].number;
    long best = 1;
    for (long d = 1; d <= n && (double)d <= args[1].number; d++)
        if (n % d == 0)
            best = d;
    oom_expr_set_number(out, (double)best);
}

static void call_round_down(const value *args, int count, value *out)
{
    if (numbers(args, count) && args[1].number > 0)
        oom_expr_set_number(out, floor(args[0].number / args[1].number + 1e-9) * args[1].number);
}

static void call_round_up(const value *args, int count, value *out)
{
    if (numbers(args, count) && args[1].number > 0)
        oom_expr_set_number(out, ceil(args[0].number / args[1].number - 1e-9) * args[1].number);
}

/* conf_set("a:1,b:2", "b", "3"): "a:1,b:3". The form of PYTORCH_CUDA_ALLOC_CONF. */
static void call_conf_set(const value *args, int count, value *out)
{
    char text[OOM_EXPR_TEXT] = "";
    size_t used = 0;

    (void)count;
    if (!strings(args + 1, 2) || (args[0].kind != OOM_EXPR_STRING && args[0].kind != OOM_EXPR_NULL))
        return;
    const char *from = args[0].kind == OOM_EXPR_STRING ? args[0].text : "";
    size_t key = strlen(args[1].text);
    while (*from) {
        size_t n = strcspn(from, ",");
        bool same = n > key && strncmp(from, args[1].text, key) == 0 && from[key] == ':';
        if (n > 0 && !same)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s,", (int)n, from);
        if (used >= sizeof(text))
            return;
        from += n + (from[n] == ',');
    }
    int n = snprintf(text + used, sizeof(text) - used, "%s:%s", args[1].text, args[2].text);
    if (n > 0 && used + (size_t)n < sizeof(text))
        oom_expr_set_string(out, text);
}

static void call_engine(const value *args, int count, value *out)
{
    struct layout layout;

    if (strings(args, count) && layout_parse(args[0].text, &layout) == 0)
        oom_expr_set_string(out, layout.engine);
}

/* dim("fsdp:d4c2", "c"): 2. */
static void call_dim(const value *args, int count, value *out)
{
    struct layout layout;

    if (strings(args, count) && layout_parse(args[0].text, &layout) == 0) {
        long degree = layout_degree(&layout, args[1].text[0]);
        if (degree > 0)
            oom_expr_set_number(out, (double)degree);
    }
}

/* shift("fsdp:d8", "d", "c"): "fsdp:d4c2". */
static void call_shift(const value *args, int count, value *out)
{
    struct layout layout;
    char text[OOM_EXPR_TEXT];

    if (strings(args, count) && layout_parse(args[0].text, &layout) == 0 &&
        layout_shift(&layout, args[1].text[0], args[2].text[0]) == 0 &&
        layout_format(&layout, text, sizeof(text)) == 0)
        oom_expr_set_string(out, text);
}

/* widen("archon:d4p2e2", "e"): "archon:d4p2e4". */
static void call_widen(const value *args, int count, value *out)
{
    struct layout layout;
    char text[OOM_EXPR_TEXT];

    if (strings(args, count) && layout_parse(args[0].text, &layout) == 0 &&
        layout_widen(&layout, args[1].text[0]) == 0 &&
        layout_format(&layout, text, sizeof(text)) == 0)
        oom_expr_set_string(out, text);
}

/* json_get('{"a":1}', "a"): 1; null when the key is not there. */
static void call_json_get(const value *args, int count, value *out)
{
    if (args[0].kind == OOM_EXPR_NULL) {
        out->kind = OOM_EXPR_NULL;
        return;
    }
    if (!strings(args, count))
        return;
    json_t *object = json_loads(args[0].text, 0, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return;
    }
    const json_t *member = json_object_get(object, args[1].text);
    if (!member || json_is_null(member))
        out->kind = OOM_EXPR_NULL;
    else if (json_is_number(member))
        oom_expr_set_number(out, json_number_value(member));
    else if (json_is_boolean(member))
        oom_expr_set_bool(out, json_is_true(member));
    else if (json_is_string(member))
        oom_expr_set_string(out, json_string_value(member));
    json_decref(object);
}

static json_t *to_json(const value *from)
{
    switch (from->kind) {
    case OOM_EXPR_NUMBER:
        return from->number == floor(from->number) && fabs(from->number) < 9e15
                   ? json_integer((json_int_t)from->number)
                   : json_real(from->number);
    case OOM_EXPR_BOOL:
        return json_boolean(from->truth);
    case OOM_EXPR_STRING:
        return json_string(from->text);
    case OOM_EXPR_NULL:
        return json_null();
    case OOM_EXPR_UNKNOWN:
        break;
    }
    return NULL;
}

/* json_set('{"a":1}', "a", 2): '{"a":2}'. */
static void call_json_set(const value *args, int count, value *out)
{
    (void)count;
    if (!strings(args, 2))
        return;
    json_t *object = json_loads(args[0].text, 0, NULL);
    if (json_is_object(object) &&
        json_object_set_new(object, args[1].text, to_json(&args[2])) == 0) {
        char *text = json_dumps(object, JSON_COMPACT);
        if (text)
            oom_expr_set_string(out, text);
        free(text);
    }
    json_decref(object);
}

static const struct oom_expr_function functions[] = {
    {"ceil", 1, 1, call_ceil},
    {"floor", 1, 1, call_floor},
    {"min", 1, OOM_EXPR_MAX_ARGS, call_min},
    {"max", 1, OOM_EXPR_MAX_ARGS, call_max},
    {"divides", 2, 2, call_divides},
    {"set", 1, 1, call_set},
    {"known", 1, 1, call_known},
    {"first", 1, OOM_EXPR_MAX_ARGS, call_first},
    {"if", 3, 3, call_if},
    {"contains", 2, 2, call_contains},
    {"largest_divisor", 2, 2, call_largest_divisor},
    {"replace", 3, 3, call_replace},
    {"round_down", 2, 2, call_round_down},
    {"round_up", 2, 2, call_round_up},
    {"conf_set", 3, 3, call_conf_set},
    {"engine", 1, 1, call_engine},
    {"dim", 2, 2, call_dim},
    {"shift", 3, 3, call_shift},
    {"widen", 2, 2, call_widen},
    {"json_get", 2, 2, call_json_get},
    {"json_set", 3, 3, call_json_set},
};

const struct oom_expr_function *oom_expr_function(const char *name)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

const char *oom_expr_function_name(size_t index)
{
    return index < sizeof(functions) / sizeof(functions[0]) ? functions[index].name : NULL;
}
