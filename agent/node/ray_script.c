/* SPDX-License-Identifier: Apache-2.0
 *
 * A Ray job's command line is its entrypoint, which a shell runs in the working directory. When
 * the training command is in a script that the entrypoint starts, that script is what has to be
 * changed: in the working directory it becomes another package; elsewhere its text takes its
 * file's place in the entrypoint. */
#include "agent/node/ray_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/textdiff.h"

enum { MAX_FILE_BYTES = 1024 * 1024, MAX_INLINE_BYTES = 100 * 1024 };

/* The file inside the working directory, or, from elsewhere, one that everybody may read: a job
 * must not make us read what only we can. */
static int read_side(void *arg, const char *path, char **bytes, size_t *length)
{
    struct ray_script *script = arg;
    char full[4096], real[4096];
    struct stat st;

    *bytes = NULL;
    if (path[0] != '/' && ray_script_fetch(script, NULL) < 0)
        return -1;
    size_t root = strlen(script->working_dir);
    int n = snprintf(full, sizeof(full), "%s%s%s", path[0] == '/' ? "" : script->working_dir,
                     path[0] == '/' ? "" : "/", path);
    if (n < 0 || (size_t)n >= sizeof(full) || !realpath(full, real) || stat(real, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return -1;
    bool inside = root && strncmp(real, script->working_dir, root) == 0 && real[root] == '/';
    bool open_to_all =
        path[0] == '/' && (st.st_mode & S_IROTH) && (st.st_uid != geteuid() || geteuid() == 0);
    if (!inside && !open_to_all)
        return -1;
    return file_read(real, MAX_FILE_BYTES, bytes, length, NULL) == 0 ? 0 : -1;
}

int ray_script_fetch(struct ray_script *script, struct oom_error *err)
{
    if (!script->working_dir[0] && !script->asked) {
        script->asked = true;
        if (!script->uri)
            oom_errorf(&script->why, "the job has no working directory");
        else
            script->fetched = ray_fetch_working_dir(script->cluster, script->job, script->uri,
                                                    script->working_dir,
                                                    sizeof(script->working_dir), &script->why) == 0;
        if (!script->fetched)
            script->working_dir[0] = '\0';
    }
    return script->working_dir[0] ? 0 : oom_errorf(err, "%s", script->why.text);
}

static char **environment_of(const json_t *job)
{
    const json_t *env = json_object_get(json_object_get(job, "runtime_env"), "env_vars");
    char **list = calloc(json_object_size(env) + 1, sizeof(char *));
    const char *name;
    json_t *value;
    size_t count = 0;

    if (!list)
        return NULL;
    json_object_foreach((json_t *)env, name, value)
    {
        if (json_is_string(value) &&
            asprintf(&list[count], "%s=%s", name, json_string_value(value)) >= 0)
            count++;
    }
    list[count] = NULL;
    return list;
}

static struct oom_script_source source_of(struct ray_script *script, const char *bytes,
                                          size_t length, const char *name)
{
    return (struct oom_script_source){
        .bytes = bytes,
        .length = length,
        .name = name,
        .environ_list = script->environment && script->environment[0]
                            ? (const char *const *)script->environment
                            : NULL,
        .read_side = read_side,
        .read_side_arg = script,
    };
}

int ray_script_open(const json_t *job, const struct ray_cluster *cluster, struct ray_script *out,
                    struct oom_error *err)
{
    char here[2048];

    memset(out, 0, sizeof(*out));
    out->cluster = cluster;
    out->job = job;
    out->uri =
        json_string_value(json_object_get(json_object_get(job, "runtime_env"), "working_dir"));
    out->entrypoint = json_string_value(json_object_get(job, "entrypoint"));
    if (!out->entrypoint)
        return oom_errorf(err, "the job's record has no entrypoint");
    if (out->uri && ray_place_working_dir(&cluster->place, out->uri, here, sizeof(here))) {
        char *real = realpath(here, NULL);
        snprintf(out->working_dir, sizeof(out->working_dir), "%s", real ? real : "");
        free(real);
    }
    out->environment = environment_of(job);
    struct oom_script_source source =
        source_of(out, out->entrypoint, strlen(out->entrypoint), "entrypoint");
    out->parsed = oom_script_parse(&source, err);
    if (out->parsed)
        return 0;
    ray_script_close(out);
    return -1;
}

void ray_script_close(struct ray_script *script)
{
    for (char **e = script->environment; e && *e; e++)
        free(*e);
    free(script->environment);
    oom_script_free(script->parsed);
    if (script->fetched)
        ray_fetch_remove(script->working_dir);
    memset(script, 0, sizeof(*script));
}

/* --- rewriting ----------------------------------------------------------------------------------
 */

/* "run.sh" of "./run.sh": how the package names it. NULL when it is not in the working directory.
 */
static const char *in_package(const struct ray_script *script, const char *path)
{
    size_t root = strlen(script->working_dir);

    if (path[0] == '/')
        return root && strncmp(path, script->working_dir, root) == 0 && path[root] == '/'
                   ? path + root + 1
                   : NULL;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return root && !strstr(path, "..") ? path : NULL;
}

static int keep_nested(const struct ray_script *script, const struct ray_start *start,
                       const char *old, size_t old_length, struct oom_rewrite *rewrite,
                       struct ray_rewritten *out, struct oom_error *err)
{
    const char *path = start->words[start->file], *packed = in_package(script, path);

    out->diff = textdiff_unified(path, path, old, old_length, rewrite->bytes, rewrite->length);
    if (packed) {
        out->entrypoint = strdup(script->entrypoint);
        out->file = strdup(packed);
        out->bytes = rewrite->bytes;
        out->length = rewrite->length;
        rewrite->bytes = NULL;
        return out->entrypoint && out->file ? 0 : oom_errorf(err, "out of memory");
    }
    if (rewrite->length > MAX_INLINE_BYTES || memchr(rewrite->bytes, '\0', rewrite->length))
        return oom_errorf(err, "%s is too large to be handed over in the entrypoint", path);
    char *text = strndup(rewrite->bytes, rewrite->length);
    out->entrypoint = text ? ray_start_inline(start, text) : NULL;
    free(text);
    return out->entrypoint ? 0 : oom_errorf(err, "out of memory");
}

static int rewrite_nested(struct ray_script *script, const struct oom_policy *policy,
                          const struct oom_edits *edits, struct ray_rewritten *out,
                          struct oom_error *err)
{
    struct oom_rewrite rewrite = {0};
    struct oom_script *parsed = NULL;
    struct ray_start start;
    char *bytes = NULL;
    size_t length = 0;
    int rc = -1;

    if (!ray_start_parse(script->entrypoint, &start))
        return oom_errorf(err, "the training command is out of sight of the entrypoint");
    const char *path = start.words[start.file];
    if (read_side(script, path, &bytes, &length) < 0) {
        oom_errorf(err, "the training command is in %s, which cannot be read%s%s", path,
                   script->why.text[0] ? ": " : "", script->why.text);
        goto out;
    }
    struct oom_script_source source = source_of(script, bytes, length, path);
    source.args = (const char *const *)start.words + start.file + 1;
    parsed = oom_script_parse(&source, err);
    if (!parsed || oom_script_apply(parsed, policy, edits, &rewrite, err) < 0)
        goto out;
    if (rewrite.needs_exec || rewrite.copy_count)
        oom_errorf(err, "the training command is out of sight of %s", path);
    else
        rc = keep_nested(script, &start, bytes, length, &rewrite, out, err);
    if (rc == 0) {
        out->edits = rewrite.edits;
        rewrite.edits = (struct oom_edits){NULL, 0};
    }
out:
    oom_rewrite_free(&rewrite);
    oom_script_free(parsed);
    free(bytes);
    ray_start_free(&start);
    return rc;
}

int ray_script_rewrite(struct ray_script *script, const struct oom_policy *policy,
                       const struct oom_edits *edits, struct ray_rewritten *out,
                       struct oom_error *err)
{
    struct oom_rewrite rewrite = {0};
    int rc = 0;

    memset(out, 0, sizeof(*out));
    if (edits->count == 0) {
        out->entrypoint = strdup(script->entrypoint);
        return out->entrypoint ? 0 : oom_errorf(err, "out of memory");
    }
    if (oom_script_apply(script->parsed, policy, edits, &rewrite, err) < 0 || rewrite.needs_exec ||
        rewrite.copy_count) {
        rc = rewrite_nested(script, policy, edits, out, err);
    } else {
        out->entrypoint = strndup(rewrite.bytes, rewrite.length);
        out->edits = rewrite.edits;
        rewrite.edits = (struct oom_edits){NULL, 0};
        rc = out->entrypoint ? 0 : oom_errorf(err, "out of memory");
    }
    oom_rewrite_free(&rewrite);
    if (rc < 0)
        ray_rewritten_free(out);
    return rc;
}

void ray_rewritten_free(struct ray_rewritten *rewritten)
{
    free(rewritten->entrypoint);
    free(rewritten->file);
    free(rewritten->bytes);
    free(rewritten->diff);
    oom_edits_free(&rewritten->edits);
    memset(rewritten, 0, sizeof(*rewritten));
}
