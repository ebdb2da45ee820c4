/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl ray submit: `ray job submit` with the metadata that opts the job in. Everything that is
 * not ours is handed on as it is. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/ctl.h"
#include "policies/near.h"

enum kind { WORD, NUMBER, TRAINING };

static const struct setting {
    const char *option; /* of oomctl */
    const char *key;    /* of the job's metadata */
    const char *alone;  /* value without "=…"; NULL: one is needed */
    enum kind kind;
} settings[] = {
    {"--oom-retry", "oom_retry", "auto", WORD},
    {"--oom-max-retries", "oom_max_retries", NULL, NUMBER},
    {"--oom-allow", "oom_allow", NULL, TRAINING},
    {"--oom-grace", "oom_grace_s", NULL, NUMBER},
    {"--oom-dry-run", "oom_dry_run", "true", WORD},
};

static const char help[] =
    "Usage: oomctl ray submit [--oom-retry[=POLICY]] [--oom-max-retries=N] [--oom-allow=training]\n"
    "                         [--oom-grace=SECONDS] [--oom-dry-run] -- ARGUMENTS OF `ray job "
    "submit`\n"
    "Submits a job to a Ray cluster so that it is retried when it runs out of memory.\n"
    "\n"
    "  oomctl ray submit -- --working-dir . -- python train.py --lr 1e-5\n"
    "  oomctl ray submit --oom-max-retries=3 -- --address http://head:8265 -- bash run.sh\n";

static bool is_option(const char *word, const char *option)
{
    size_t length = strlen(option);

    return strncmp(word, option, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

static bool is_good(const struct setting *setting, const char *value)
{
    if (!*value)
        return false;
    switch (setting->kind) {
    case NUMBER:
        return strlen(value) < 6 && strspn(value, "0123456789") == strlen(value);
    case TRAINING:
        return strcmp(value, "training") == 0;
    case WORD:
        break;
    }
    return true;
}

/* Ours, into the metadata; false for any other word. *bad: it has been complained about. */
static bool take(const char *word, json_t *metadata, bool *bad)
{
    static const char *const wants[] = {
        [WORD] = "a word", [NUMBER] = "a number", [TRAINING] = "\"training\""};
    struct near near;

    near_init(&near, word);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        near_offer(&near, settings[i].option);
        if (!is_option(word, settings[i].option))
            continue;
        const char *equals = strchr(word, '=');
        const char *value = equals ? equals + 1 : settings[i].alone;
        if (!value || !is_good(&settings[i], value) ||
            json_object_set_new(metadata, settings[i].key, json_string(value)) < 0) {
            fprintf(stderr, "oomctl ray submit: %s needs %s: %s=…\n", settings[i].option,
                    wants[settings[i].kind], settings[i].option);
            *bad = true;
        }
        return true;
    }
    if (strncmp(word, "--oom-", 6) != 0)
        return false;
    fprintf(stderr, "oomctl ray submit: unknown option %s%s%s%s\n", word,
            near.best ? " (did you mean " : "", near.best ? near.best : "", near.best ? "?)" : "");
    *bad = true;
    return true;
}

/* The user's own --metadata-json goes under ours and leaves the vector. */
static int merge(char **argv, int *argc, json_t *metadata)
{
    int out = 0;

    for (int i = 0; i < *argc; i++) {
        const char *text = NULL;
        int words = 1;
        if (strcmp(argv[i], "--") == 0) {
            while (i < *argc)
                argv[out++] = argv[i++];
            break;
        }
        if (strncmp(argv[i], "--metadata-json=", 16) == 0) {
            text = argv[i] + 16;
        } else if (strcmp(argv[i], "--metadata-json") == 0 && i + 1 < *argc) {
            text = argv[i + 1];
            words = 2;
        }
        if (!text) {
            argv[out++] = argv[i];
            continue;
        }
        json_error_t where;
        json_t *own = json_loads(text, 0, &where);
        if (!json_is_object(own)) {
            fprintf(stderr, "oomctl ray submit: --metadata-json is no JSON object: %s\n",
                    own ? text : where.text);
            json_decref(own);
            return -1;
        }
        json_object_update_missing(metadata, own);
        json_decref(own);
        i += words - 1;
    }
    argv[out] = NULL;
    *argc = out;
    return 0;
}

/* Under oomrun the retry is its, not the watcher's. */
static void tell_supervisor(json_t *metadata)
{
    const char *slurm = getenv("SLURM_JOB_ID");

    if (!getenv("OOMRETRY_ATTEMPT"))
        return;
    json_object_set_new(metadata, "oom_supervisor", json_string("oomrun"));
    if (slurm && *slurm)
        json_object_set_new(metadata, "slurm_job_id", json_string(slurm));
    fputs("oomctl ray submit: this runs under oomrun, which owns the retry\n", stderr);
}

static int submit(int argc, char **argv)
{
    json_t *metadata = json_object();
    bool bad = false, separated = false;
    int at = 1;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return 0;
    }
    while (at < argc && take(argv[at], metadata, &bad))
        at++;
    if (at < argc && strcmp(argv[at], "--") == 0)
        at++;
    int rest = argc - at;
    if (bad)
        return 2;
    if (rest == 0) {
        fputs(help, stderr);
        return 2;
    }
    if (!json_object_get(metadata, "oom_retry"))
        json_object_set_new(metadata, "oom_retry", json_string("auto"));
    if (merge(argv + at, &rest, metadata) < 0)
        return 2;
    if (rest == 0) {
        fputs(help, stderr);
        return 2;
    }
    tell_supervisor(metadata);
    for (int i = 0; i < rest; i++)
        separated |= strcmp(argv[at + i], "--") == 0;
    char *text = json_dumps(metadata, JSON_COMPACT | JSON_SORT_KEYS);
    char **words = calloc((size_t)rest + 8, sizeof(char *));
    if (!text || !words) {
        fputs("oomctl ray submit: out of memory\n", stderr);
        return 2;
    }
    char *const first[] = {"ray", "job", "submit", "--metadata-json", text};
    memcpy(words, first, sizeof(first));
    size_t n = sizeof(first) / sizeof(first[0]);
    /* Only an entrypoint: its options must not be taken for ray's. */
    if (!separated && argv[at][0] != '-')
        words[n++] = "--";
    memcpy(words + n, argv + at, (size_t)rest * sizeof(char *));
    execvp(words[0], words);
    fprintf(stderr, "oomctl ray submit: cannot run ray: %s\n", strerror(errno));
    return 2;
}

int ctl_ray(int argc, char **argv)
{
    static const struct ctl_verb verbs[] = {
        {"submit", submit, "ray job submit, with retries"},
        {"list", ctl_ray_list, "jobs of the configured clusters, and whether they are watched"},
        {NULL, NULL, NULL},
    };

    return ctl_dispatch("oomctl ray", verbs, argc, argv);
}
