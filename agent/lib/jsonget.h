/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of JSON objects with a value for absence: hostile bodies have wrong types, which count
 * as absent. */
#ifndef AGENT_LIB_JSONGET_H
#define AGENT_LIB_JSONGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

static inline const char *json_get_string(const json_t *object, const char *key, const char *absent)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : absent;
}

static inline int64_t json_get_int(const json_t *object, const char *key, int64_t absent)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? json_integer_value(value) : absent;
}

static inline bool json_get_bool(const json_t *object, const char *key, bool absent)
{
    const json_t *value = json_object_get(object, key);

    return json_is_boolean(value) ? json_is_true(value) : absent;
}

#endif
