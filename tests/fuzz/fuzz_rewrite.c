/* SPDX-License-Identifier: Apache-2.0
 *
 * Script bytes through parsing, values and rewriting; and again through the result. The first byte
 * picks the parser family. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct oom_policy *policy_of(const char *family)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{\"name\": \"f\", \"title\": \"f\", \"family\": \"%s\","
             "\"recognise\": {\"programs\": [\"*train*\", \"trl *\"]},"
             "\"knobs\": {\"--mbs\": {\"type\": \"int\"}, \"--fast\": {\"type\": \"switch\"}},"
             "\"rungs\": {}, \"ladders\": {}}",
             family);
    json_t *json = json_loads(text, 0, NULL);
    struct oom_policy *policy = json ? oom_policy_from_json(json, "fuzz", NULL) : NULL;

    json_decref(json);
    if (!policy)
        abort();
    return policy;
}

/* Any path is this script's own text: sourcing itself must end. */
static int read_side(void *arg, const char *path, char **bytes, size_t *length)
{
    const struct oom_script_source *source = arg;

    if (path[0] == '/')
        return -1;
    *bytes = malloc(source->length + 1);
    if (!*bytes)
        return -1;
    memcpy(*bytes, source->bytes, source->length);
    *length = source->length;
    return 0;
}

static void rewrite_once(const struct oom_policy *policy, const char *bytes, size_t length,
                         int round)
{
    struct oom_script_source source = {.bytes = bytes, .length = length, .name = "script"};
    struct oom_edits edits = {0};
    struct oom_values values;
    struct oom_rewrite out;

    source.read_side = read_side;
    source.read_side_arg = &source;
    struct oom_script *script = oom_script_parse(&source, NULL);
    if (!script)
        return;
    if (oom_script_values(script, policy, &values, NULL) == 0)
        oom_values_free(&values);
    oom_script_log_paths_free(oom_script_log_paths(script));
    oom_script_masks_status(script);
    oom_edits_add(&edits, "--mbs", NULL, "2'$x \"", NULL);
    oom_edits_add(&edits, "--fast", NULL, "true", NULL);
    oom_edits_add(&edits, "--gone", NULL, NULL, NULL);
    oom_edits_add(&edits, "env:NAME", NULL, "v w", NULL);
    oom_edits_add(&edits, "slurm:mem", NULL, "1024", NULL);
    if (oom_script_apply(script, policy, &edits, &out, NULL) == 0) {
        if (!out.bytes || strlen(out.bytes) != out.length)
            abort();
        if (round == 0)
            rewrite_once(policy, out.bytes, out.length, 1);
        oom_rewrite_free(&out);
    }
    oom_edits_free(&edits);
    oom_script_free(script);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const families[] = {"argparse", "hydra", "omegaconf",
                                           "tyro",     "hf",    "axolotl"};
    static struct oom_policy *policies[6];

    if (size < 1 || size > 8192)
        return 0;
    size_t which = data[0] % 6;
    if (!policies[which])
        policies[which] = policy_of(families[which]);
    rewrite_once(policies[which], (const char *)data + 1, size - 1, 0);
    return 0;
}
