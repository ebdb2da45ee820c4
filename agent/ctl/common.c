/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/common.h"

#include <stdio.h>

#include "agent/ctl/ctl.h"
#include "agent/lib/config.h"

enum { KEY_JSON = 0x1000, KEY_DB, KEY_HEAD }; /* out of the way of the verbs' own */

static const struct argp_option json_table[] = {
    {"json", KEY_JSON, NULL, 0, "as JSON", -1},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const struct argp_option common_table[] = {
    {"json", KEY_JSON, NULL, 0, "as JSON", -1},
    {"db", KEY_DB, "FILE", 0, "use this database instead of asking the head", -1},
    {"head", KEY_HEAD, "WHERE", 0, "ask the head at this socket or URL", -1},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct ctl_common *common = state->input;

    switch (key) {
    case KEY_JSON:
        common->json = true;
        return 0;
    case KEY_DB:
        common->db_path = arg;
        return 0;
    case KEY_HEAD:
        common->head = arg;
        return 0;
    case ARGP_KEY_END:
        if (common->db_path && common->head)
            argp_error(state, "--db and --head contradict each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp common_argp = {.options = common_table, .parser = parse_option};
static const struct argp json_argp = {.options = json_table, .parser = parse_option};

const struct argp_child ctl_common_options[] = {{&common_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
const struct argp_child ctl_json_option[] = {{&json_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

struct api *ctl_open(const struct ctl_common *common, struct oom_error *err)
{
    struct config config;

    if (!common->head)
        return api_open_default(common->db_path, CTL_TIMEOUT_MS, err);
    if (*common->head == '/')
        return api_open_head(common->head, "", CTL_TIMEOUT_MS, err);
    if (config_load(NULL, &config, err) < 0)
        return NULL;
    struct api *api = api_open_head(common->head, config.head_user, CTL_TIMEOUT_MS, err);
    config_free(&config);
    return api;
}

int ctl_fail(const char *verb, const struct oom_error *err)
{
    fprintf(stderr, "oomctl %s: %s\n", verb, err->text);
    return 2;
}

int ctl_call(const struct ctl_common *common, const char *verb, const char *method,
             const char *path, const json_t *body, json_t **reply)
{
    struct oom_error err = {""};
    struct api *api = ctl_open(common, &err);
    int status = api ? api_call(api, method, path, body, reply, &err) : -1;

    api_close(api);
    if (status == 200)
        return 0;
    json_decref(*reply);
    *reply = NULL;
    ctl_fail(verb, &err);
    return status == 404 ? 1 : 2;
}

void ctl_print_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
}
