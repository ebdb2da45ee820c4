/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/urlquery.h"

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *urlquery_split(const char *path, char *plain, size_t size)
{
    const char *mark = strchr(path, '?');
    size_t length = mark ? (size_t)(mark - path) : strlen(path);
    json_t *query = json_object();
    struct evkeyvalq pairs;

    snprintf(plain, size, "%.*s", (int)(length < size ? length : size - 1), path);
    if (!mark || evhttp_parse_query_str(mark + 1, &pairs) < 0)
        return query;
    for (const struct evkeyval *kv = pairs.tqh_first; kv; kv = kv->next.tqe_next)
        json_object_set_new(query, kv->key, json_string(kv->value));
    evhttp_clear_headers(&pairs);
    return query;
}

int urlquery_add(char *path, size_t size, const char *name, const char *value)
{
    size_t used = strlen(path);
    char *encoded = evhttp_uriencode(value, -1, 0);

    if (!encoded)
        return -1;
    int n =
        snprintf(path + used, size - used, "%c%s=%s", strchr(path, '?') ? '&' : '?', name, encoded);
    free(encoded);
    if (n >= 0 && (size_t)n < size - used)
        return 0;
    path[used] = '\0';
    return -1;
}
