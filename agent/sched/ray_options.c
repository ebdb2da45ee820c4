/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/ray.h"

enum { DEFAULT_GRACE_S = 120 };

#define FIELD(member)                                                                              \
    offsetof(struct ray_options, member), sizeof(((struct ray_options *)0)->member)

static const struct {
    const char *name;
    size_t offset, size;
    bool path;
} settings[] = {
    {"token", FIELD(token_file), true}, {"ca", FIELD(ca_file), true},
    {"cert", FIELD(cert_file), true},   {"key", FIELD(key_file), true},
    {"retry", FIELD(retry), false},     {"owner", FIELD(owner), false},
    {"temp", FIELD(temp), true},
};

static int set_url(const char *word, struct ray_options *out, struct oom_error *err)
{
    size_t length = strlen(word);

    if (strncmp(word, "http://", 7) != 0 && strncmp(word, "https://", 8) != 0)
        return oom_errorf(err, "ray_clusters: \"%s\" is no dashboard's address (http://HOST:8265)",
                          word);
    while (length && word[length - 1] == '/')
        length--;
    if (length >= sizeof(out->url))
        return oom_errorf(err, "ray_clusters: the address %s is too long", word);
    memcpy(out->url, word, length);
    out->url[length] = '\0';
    return 0;
}

static int set_number(const char *word, size_t name, long least, long most, int *out,
                      const char *url, struct oom_error *err)
{
    char *end;
    long number = strtol(word + name, &end, 10);

    if (end == word + name || *end || number < least || number > most)
        return oom_errorf(err, "ray_clusters: %s for %s is no number from %ld to %ld", word, url,
                          least, most);
    *out = (int)number;
    return 0;
}

static int set_one(char *word, struct ray_options *out, struct oom_error *err)
{
    char *equals = strchr(word, '=');

    if (strcmp(word, "tls=insecure") == 0) {
        out->insecure = true;
        return 0;
    }
    if (strncmp(word, "agents=", 7) == 0)
        return set_number(word, 7, 1, 65535, &out->agents_port, out->url, err);
    if (strncmp(word, "grace=", 6) == 0)
        return set_number(word, 6, 0, 86400, &out->grace_s, out->url, err);
    if (!equals)
        return oom_errorf(err, "ray_clusters: \"%s\" behind %s is no NAME=VALUE", word, out->url);
    *equals = '\0';
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strcmp(settings[i].name, word) != 0)
            continue;
        if (strlen(equals + 1) >= settings[i].size)
            return oom_errorf(err, "ray_clusters: the value of %s for %s is too long", word,
                              out->url);
        if (settings[i].path && equals[1] != '/')
            return oom_errorf(err, "ray_clusters: %s for %s must be an absolute path", word,
                              out->url);
        strcpy((char *)out + settings[i].offset, equals + 1);
        return 0;
    }
    return oom_errorf(err,
                      "ray_clusters: unknown setting \"%s\" for %s (known: token, ca, cert, key, "
                      "tls=insecure, retry, owner, temp, agents, grace)",
                      word, out->url);
}

int ray_options_parse(const char *line, struct ray_options *out, struct oom_error *err)
{
    char *copy = strdup(line), *save = NULL;
    int rc = 0;

    memset(out, 0, sizeof(*out));
    strcpy(out->temp, "/tmp/ray");
    out->grace_s = DEFAULT_GRACE_S;
    if (!copy)
        return oom_errorf(err, "out of memory");
    for (char *word = strtok_r(copy, " \t", &save); word && rc == 0;
         word = strtok_r(NULL, " \t", &save))
        rc = out->url[0] ? set_one(word, out, err) : set_url(word, out, err);
    free(copy);
    if (rc == 0 && !out->url[0])
        rc = oom_errorf(err, "ray_clusters: an entry is empty");
    if (rc == 0 && !out->cert_file[0] != !out->key_file[0])
        rc = oom_errorf(err, "ray_clusters: cert and key of %s go together", out->url);
    return rc;
}
