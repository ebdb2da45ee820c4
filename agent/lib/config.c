/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <yaml.h>

#include "agent/lib/child.h"
#include "agent/lib/sealed.h"
#include "agent/sched/ray.h"

enum kind { TEXT, LIST, NUMBER, REAL, TRUTH };

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset, count_offset;
    const char *absent;
} keys[] = {
#define FIELD(member) offsetof(struct config, member)
    {"cluster", TEXT, FIELD(cluster), 0, ""},
    {"head_socket", TEXT, FIELD(head_socket), 0, "/run/oomretry/head.sock"},
    {"node_socket", TEXT, FIELD(node_socket), 0, "/run/oomretry/node.sock"},
    {"head_url", TEXT, FIELD(head_url), 0, NULL},
    {"head_listen", TEXT, FIELD(head_listen), 0, NULL},
    {"head_is_local", TRUTH, FIELD(head_is_local), 0, NULL},
    {"database", TEXT, FIELD(database), 0, "/var/lib/oomretry/oomretry.db"},
    {"head_user", TEXT, FIELD(head_user), 0, ""},
    {"role", TEXT, FIELD(role), 0, "both"},
    {"munge_socket", TEXT, FIELD(munge_socket), 0, ""},
    {"admins", LIST, FIELD(admins), FIELD(admin_count), NULL},
    {"scheduler", TEXT, FIELD(scheduler), 0, "slurm"},
    {"slurm_bin", TEXT, FIELD(slurm_bin), 0, ""},
    {"nvidia_smi", TEXT, FIELD(nvidia_smi), 0, "/usr/bin/nvidia-smi"},
    {"gpu_wait_s", NUMBER, FIELD(gpu_wait_s), 0, NULL},
    {"slurmrestd", TEXT, FIELD(slurmrestd), 0, ""},
    {"ray_clusters", LIST, FIELD(ray_clusters), FIELD(ray_cluster_count), NULL},
    {"node_listen", TEXT, FIELD(node_listen), 0, NULL},
    {"ray_temp", LIST, FIELD(ray_temp), FIELD(ray_temp_count), NULL},
    {"max_retries", NUMBER, FIELD(limits.max_retries), 0, NULL},
    {"default_retries", NUMBER, FIELD(limits.default_retries), 0, NULL},
    {"attempts_per_user_day", NUMBER, FIELD(limits.attempts_per_user_day), 0, NULL},
    {"gpu_hours_per_user_day", REAL, FIELD(limits.gpu_hours_per_user_day), 0, NULL},
    {"attempts_per_account_day", NUMBER, FIELD(limits.attempts_per_account_day), 0, NULL},
    {"gpu_hours_per_account_day", REAL, FIELD(limits.gpu_hours_per_account_day), 0, NULL},
    {"max_lineage_hours", REAL, FIELD(limits.max_lineage_hours), 0, NULL},
    {"cooldown_failures", NUMBER, FIELD(limits.cooldown_failures), 0, NULL},
    {"cooldown_s", NUMBER, FIELD(limits.cooldown_s), 0, NULL},
    {"max_mem_gib", REAL, FIELD(limits.max_mem_mib), 0, NULL},
#undef FIELD
};

enum { DEFAULT_GPU_WAIT_S = 30 };
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static void *at(struct config *config, size_t offset)
{
    return (char *)config + offset;
}

void config_free(struct config *config)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].kind == TEXT) {
            char **text = at(config, keys[i].offset);
            free(*text);
            *text = NULL;
        } else if (keys[i].kind == LIST) {
            char ***list = at(config, keys[i].offset);
            size_t *count = at(config, keys[i].count_offset);
            for (size_t k = 0; k < *count; k++)
                free((*list)[k]);
            free(*list);
            *list = NULL;
            *count = 0;
        }
    }
}

static int set_defaults(struct config *config, struct oom_error *err)
{
    memset(config, 0, sizeof(*config));
    config->limits = service_default_limits;
    config->gpu_wait_s = DEFAULT_GPU_WAIT_S;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        char **text = at(config, keys[i].offset);
        if (keys[i].kind == TEXT && keys[i].absent && !(*text = strdup(keys[i].absent)))
            return oom_errorf(err, "out of memory");
    }
    return 0;
}

static int bad(const char *path, const yaml_node_t *node, struct oom_error *err, const char *what,
               const char *key)
{
    return oom_errorf(err, "%s:%zu: %s \"%s\"", path, node->start_mark.line + 1, what, key);
}

static int set_list(struct config *config, const struct key *key, yaml_document_t *document,
                    const yaml_node_t *value, const char *path, struct oom_error *err)
{
    char ***list = at(config, key->offset);
    size_t *count = at(config, key->count_offset);

    if (value->type != YAML_SEQUENCE_NODE)
        return bad(path, value, err, "a list is wanted for", key->name);
    size_t total = (size_t)(value->data.sequence.items.top - value->data.sequence.items.start);
    *list = calloc(total + 1, sizeof(char *));
    for (size_t i = 0; *list && i < total; i++) {
        const yaml_node_t *item =
            yaml_document_get_node(document, value->data.sequence.items.start[i]);
        if (!item || item->type != YAML_SCALAR_NODE)
            return bad(path, value, err, "plain words are wanted in", key->name);
        (*list)[i] = strdup((const char *)item->data.scalar.value);
        if (!(*list)[i])
            return oom_errorf(err, "out of memory");
        *count = i + 1;
    }
    return *list ? 0 : oom_errorf(err, "out of memory");
}

static int set_scalar(struct config *config, const struct key *key, const yaml_node_t *value,
                      const char *path, struct oom_error *err)
{
    const char *text;
    char *end = NULL;

    if (value->type != YAML_SCALAR_NODE)
        return bad(path, value, err, "one value is wanted for", key->name);
    text = (const char *)value->data.scalar.value;
    errno = 0;
    if (key->kind == TEXT) {
        char **slot = at(config, key->offset);
        free(*slot);
        *slot = strdup(text);
        return *slot ? 0 : oom_errorf(err, "out of memory");
    }
    if (key->kind == TRUTH) {
        bool yes = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0;
        if (!yes && strcmp(text, "false") != 0 && strcmp(text, "no") != 0)
            return bad(path, value, err, "true or false is wanted for", key->name);
        *(bool *)at(config, key->offset) = yes;
        return 0;
    }
    double number = strtod(text, &end);
    if (errno || end == text || *end || !(number >= 0 && number <= 1e9))
        return bad(path, value, err, "a number from 0 on is wanted for", key->name);
    if (key->offset == offsetof(struct config, limits.max_mem_mib))
        config->limits.max_mem_mib = (int64_t)(number * 1024);
    else if (key->kind == REAL)
        *(double *)at(config, key->offset) = number;
    else if (number != (int)number)
        return bad(path, value, err, "a whole number is wanted for", key->name);
    else
        *(int *)at(config, key->offset) = (int)number;
    return 0;
}

/* Values that only make sense as a certain kind of text. */
static int check(const struct config *config, const char *path, struct oom_error *err)
{
    const char *const sockets[][2] = {{"head_socket", config->head_socket},
                                      {"node_socket", config->node_socket},
                                      {"munge_socket", config->munge_socket}};
    const struct sockaddr_un *address = NULL;

    if (strcmp(config->role, "both") != 0 && strcmp(config->role, "node") != 0 &&
        strcmp(config->role, "head") != 0)
        return oom_errorf(err, "%s: role \"%s\" is none of both, node, head", path, config->role);
    if (*config->slurmrestd && strncmp(config->slurmrestd, "http://", 7) != 0 &&
        strncmp(config->slurmrestd, "https://", 8) != 0 &&
        strncmp(config->slurmrestd, "unix:/", 6) != 0)
        return oom_errorf(err,
                          "%s: slurmrestd: \"%s\" is none of http://HOST:PORT, https://HOST:PORT, "
                          "unix:/PATH",
                          path, config->slurmrestd);
    for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++)
        if (strlen(sockets[i][1]) >= sizeof(address->sun_path))
            return oom_errorf(err, "%s: %s: \"%s\" is too long for a socket", path, sockets[i][0],
                              sockets[i][1]);
    for (size_t i = 0; i < config->ray_temp_count; i++)
        if (config->ray_temp[i][0] != '/')
            return oom_errorf(err, "%s: ray_temp: \"%s\" is no absolute path", path,
                              config->ray_temp[i]);
    for (size_t i = 0; i < config->ray_cluster_count; i++) {
        struct ray_options options;
        if (ray_options_parse(config->ray_clusters[i], &options, err) < 0)
            return oom_error_prefix(err, "%s", path);
    }
    if (*config->slurm_bin && config->slurm_bin[0] != '/')
        return oom_errorf(err, "%s: slurm_bin: \"%s\" is no absolute path", path,
                          config->slurm_bin);
    return 0;
}

static int set_pair(struct config *config, bool *seen, yaml_document_t *document,
                    const yaml_node_pair_t *pair, const char *path, struct oom_error *err)
{
    const yaml_node_t *name = yaml_document_get_node(document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(document, pair->value);

    if (!name || !value || name->type != YAML_SCALAR_NODE)
        return oom_errorf(err, "%s: a plain key is wanted", path);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(keys[i].name, (const char *)name->data.scalar.value) != 0)
            continue;
        if (seen[i])
            return bad(path, name, err, "a second", keys[i].name);
        seen[i] = true;
        return keys[i].kind == LIST ? set_list(config, &keys[i], document, value, path, err)
                                    : set_scalar(config, &keys[i], value, path, err);
    }
    return bad(path, name, err, "unknown key", (const char *)name->data.scalar.value);
}

static int parse(struct config *config, FILE *file, const char *path, struct oom_error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    bool seen[KEY_COUNT] = {false};
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return oom_errorf(err, "out of memory");
    yaml_parser_set_input_file(&parser, file);
    if (!yaml_parser_load(&parser, &document)) {
        rc = oom_errorf(err, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                        parser.problem ? parser.problem : "not YAML");
        yaml_parser_delete(&parser);
        return rc;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root && root->type != YAML_MAPPING_NODE)
        rc = oom_errorf(err, "%s:1: lines of the form \"key: value\" are wanted", path);
    for (const yaml_node_pair_t *pair = root && rc == 0 ? root->data.mapping.pairs.start : NULL;
         pair && rc == 0 && pair < root->data.mapping.pairs.top; pair++)
        rc = set_pair(config, seen, &document, pair, path, err);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return rc;
}

int config_load(const char *path, struct config *config, struct oom_error *err)
{
    const char *set = secure_getenv("OOMRETRY_CONFIG");
    bool named = path || set;
    int rc = -1;

    if (!path)
        path = set ? set : CONFIG_PATH;
    if (set_defaults(config, err) < 0)
        goto fail;
    FILE *file = fopen(path, "re");
    if (!file) {
        if (errno == ENOENT && !named)
            return 0;
        oom_errorf(err, "cannot read %s: %s", path, strerror(errno));
        goto fail;
    }
    rc = parse(config, file, path, err);
    fclose(file);
    if (rc == 0)
        rc = check(config, path, err);
    if (rc == 0) {
        child_look_first_in(config->slurm_bin);
        sealed_use_socket(config->munge_socket);
        return 0;
    }
fail:
    config_free(config);
    return -1;
}
