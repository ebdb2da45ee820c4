/* SPDX-License-Identifier: Apache-2.0
 *
 * What is run: the user's own command or script, or a copy of it in which the edits hold. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/rewritten.h"
#include "agent/run/run.h"
#include "plugin/restore.h"

extern char **environ;

enum { MAX_SCRIPT_BYTES = 8 * 1024 * 1024, MAX_SIDE_BYTES = 4 * 1024 * 1024 };

bool launch_is_shell(const char *program)
{
    const char *name = strrchr(program, '/');

    name = name ? name + 1 : program;
    return strcmp(name, "bash") == 0 || strcmp(name, "sh") == 0 || strcmp(name, "dash") == 0;
}

/* A file whose first line names a shell. */
static bool is_shell_script(const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    bool shell = false;

    if (access(path, X_OK) == 0 && file_read(path, 256, &bytes, &length, NULL) >= 0 && length > 2 &&
        bytes[0] == '#' && bytes[1] == '!') {
        bytes[strcspn(bytes, "\n")] = '\0';
        shell = strstr(bytes, "bash") || strstr(bytes, "/sh") || strstr(bytes, "dash");
    }
    free(bytes);
    return shell;
}

/* `bash [-x ...] script args`, `./script args`; -1: neither. Options of bash that take a word of
 * their own (-o, also as in -euo, -O, --rcfile, --init-file) are few enough to know. */
static int find_script(char **argv)
{
    if (!launch_is_shell(argv[0]))
        return strchr(argv[0], '/') && is_shell_script(argv[0]) ? 0 : -1;
    for (int i = 1; argv[i]; i++) {
        if (strcmp(argv[i], "-c") == 0 || strcmp(argv[i], "-s") == 0)
            return -1;
        if (argv[i][0] == '-' && argv[i][1] != '-' && strchr(argv[i], 'c'))
            return -1;
        if (argv[i][0] != '-' && argv[i][0] != '+')
            return i;
        char last = argv[i][strlen(argv[i]) - 1];
        bool takes_word = argv[i][1] == '-' ? strcmp(argv[i], "--rcfile") == 0 ||
                                                  strcmp(argv[i], "--init-file") == 0
                                            : last == 'o' || last == 'O';
        if (takes_word && argv[i + 1])
            i++;
    }
    return -1;
}

int launch_open(struct launch *launch, char **argv, bool in_job, struct oom_error *err)
{
    memset(launch, 0, sizeof(*launch));
    launch->argv = argv;
    launch->script_index = in_job ? 0 : find_script(argv);
    launch->rewrite_in_place = in_job;
    launch->run_argv = argv;
    launch->stdin_start = -1;
    if (launch->script_index < 0)
        return 0;
    launch->script_path = argv[launch->script_index];
    if (file_read(launch->script_path, MAX_SCRIPT_BYTES, &launch->script_bytes,
                  &launch->script_length, err) != 0) {
        /* bash will say what is wrong with it; of a larger one only a part is known */
        free(launch->script_bytes);
        launch->script_bytes = NULL;
        launch->script_length = 0;
        launch->script_index = -1;
        launch->script_path = NULL;
        return 0;
    }
    launch->directory = file_directory(launch->script_path);
    size_t line = in_job ? restore_launcher_length(launch->script_bytes, launch->script_length) : 0;
    if (line > 0) {
        launch->launcher_line = strndup(launch->script_bytes, line);
        if (!launch->launcher_line)
            return oom_errorf(err, "out of memory");
        launch->script_length -= line;
        memmove(launch->script_bytes, launch->script_bytes + line, launch->script_length + 1);
    }
    return 0;
}

int launch_reveal(struct launch *launch, struct oom_error *err)
{
    if (!launch->rewrite_in_place)
        return 0;
    if (restore_script(launch->argv[0]) < 0 && !launch->copy_path[0])
        return oom_errorf(err, "cannot restore %s: %s", launch->argv[0], strerror(errno));
    free(launch->launcher_line);
    launch->launcher_line = NULL;
    return 0;
}

int launch_read_side(void *arg, const char *path, char **bytes, size_t *length)
{
    (void)arg;
    return file_read(path, MAX_SIDE_BYTES, bytes, length, NULL) > 0 ? -1 : *bytes ? 0 : -1;
}

struct oom_script *launch_parse(const struct launch *launch, struct oom_error *err)
{
    struct oom_script_source source = {
        .name = "script",
        .environ_list = (const char *const *)environ,
        .read_side = launch_read_side,
        .place_copy = copies_place,
        .place_copy_arg = (void *)(uintptr_t)&launch->copies,
        .starts_unseen = launch->starts_unseen,
        .ran = launch->ran,
        .for_what_ran = launch->for_what_ran,
    };

    /* The scheduler's copy stands where nothing of the user's does. */
    if (launch->script_path && !launch->rewrite_in_place)
        source.directory = launch->directory;
    if (launch->script_index < 0 && !launch->stdin_args)
        return oom_script_from_argv((const char *const *)launch->argv, &source, err);
    source.bytes = launch->script_bytes;
    source.length = launch->script_length;
    source.args =
        (const char *const *)(launch->stdin_args ? launch->stdin_args
                                                 : &launch->argv[launch->script_index + 1]);
    return oom_script_parse(&source, err);
}

static void remove_copies(struct launch *launch)
{
    if (launch->copy_path[0])
        unlink(launch->copy_path);
    launch->copy_path[0] = '\0';
    if (launch->preload_file)
        unlink(launch->preload_file);
    free(launch->preload_file);
    launch->preload_file = NULL;
    copies_remove(&launch->copies);
    oom_edits_free(&launch->references);
}

/* `dirname "$0"` must go on working, so the copy stands beside the script; a directory that
 * cannot be written to leaves the temporary one. */
static int write_copy(struct launch *launch, const char *bytes, size_t length,
                      struct oom_error *err)
{
    const char *slash = strrchr(launch->script_path, '/');
    const char *base = slash ? slash + 1 : launch->script_path;
    char name[NAME_MAX + 16];

    snprintf(launch->copy_path, sizeof(launch->copy_path), "%.*s.%s.oomrun-XXXXXX",
             slash ? (int)(slash - launch->script_path + 1) : 0, launch->script_path, base);
    if (file_write_temporary(launch->copy_path, bytes, length, 0700, NULL) == 0)
        return 0;
    snprintf(name, sizeof(name), ".%s.oomrun", base);
    return file_write_in_tmp(name, bytes, length, 0700, launch->copy_path,
                             sizeof(launch->copy_path), err);
}

/* The words are our own only when all of them were rewritten. */
static void free_run_argv(struct launch *launch)
{
    if (launch->run_argv == launch->argv)
        return;
    for (size_t i = 0; launch->script_index < 0 && launch->run_argv[i]; i++)
        free(launch->run_argv[i]);
    free(launch->run_argv);
    launch->run_argv = launch->argv;
}

/* Into the scheduler's own copy, behind the launcher's line while that is there. */
static int overwrite(struct launch *launch, const struct oom_rewrite *rewrite,
                     struct oom_error *err)
{
    size_t line = launch->launcher_line ? strlen(launch->launcher_line) : 0;
    char *bytes = malloc(line + rewrite->length + 1);

    if (!bytes)
        return oom_errorf(err, "out of memory");
    if (line > 0)
        memcpy(bytes, launch->launcher_line, line);
    memcpy(bytes + line, rewrite->bytes, rewrite->length);
    int rc = file_overwrite(launch->script_path, bytes, line + rewrite->length, err);
    free(bytes);
    return rc;
}

static int use_script(struct launch *launch, const struct oom_rewrite *rewrite,
                      struct oom_error *err)
{
    int count = 0;

    /* A controller that was killed and has forgotten this job makes the node remove the job's files
     * while it runs. That says nothing about the change: it goes into a copy then. */
    if (launch->rewrite_in_place && overwrite(launch, rewrite, err) == 0) {
        free_run_argv(launch);
        return 0;
    }
    if (write_copy(launch, rewrite->bytes, rewrite->length, err) < 0)
        return -1;
    while (launch->argv[count])
        count++;
    char **argv = calloc((size_t)count + 1, sizeof(char *));
    if (!argv)
        return oom_errorf(err, "out of memory");
    memcpy(argv, launch->argv, (size_t)count * sizeof(char *));
    argv[launch->script_index] = launch->copy_path;
    free_run_argv(launch);
    launch->run_argv = argv;
    return 0;
}

static int use_argv(struct launch *launch, struct oom_rewrite *rewrite)
{
    free_run_argv(launch);
    launch->run_argv = rewrite->argv;
    rewrite->argv = NULL;
    return 0;
}

int launch_rewrite(struct launch *launch, const struct oom_policy *policy,
                   const struct oom_edits *edits, struct oom_error *err)
{
    struct oom_rewrite rewrite = {0};
    int rc = -1;

    remove_copies(launch);
    free(launch->diff);
    launch->diff = NULL;
    struct oom_script *script = launch_parse(launch, err);
    if (!script)
        return -1;
    if (oom_script_apply(script, policy, edits, &rewrite, err) < 0)
        goto out;
    if (copies_write(&rewrite, err) < 0)
        goto out;
    if (rewrite.needs_exec &&
        preload_write(policy, &rewrite.exec_edits, &launch->preload_file, err) < 0)
        goto out;
    launch->diff = rewritten_diff("script", launch->script_bytes ? launch->script_bytes : "",
                                  launch->script_length, &rewrite);
    rc = launch->stdin_args          ? launch_feed(launch, rewrite.bytes, rewrite.length, err)
         : launch->script_index >= 0 ? use_script(launch, &rewrite, err)
                                     : use_argv(launch, &rewrite);
    if (rc == 0) {
        oom_edits_free(&launch->written);
        launch->written = rewrite.edits;
        rewrite.edits = (struct oom_edits){NULL, 0};
        launch->references = rewrite.references;
        rewrite.references = (struct oom_edits){NULL, 0};
    }
out:
    if (rc != 0)
        remove_copies(launch);
    oom_rewrite_free(&rewrite);
    oom_script_free(script);
    return rc;
}

void launch_close(struct launch *launch)
{
    remove_copies(launch);
    free_run_argv(launch);
    oom_edits_free(&launch->written);
    free(launch->diff);
    free(launch->script_bytes);
    free(launch->launcher_line);
    free(launch->directory);
    launch->directory = NULL;
    launch->diff = launch->script_bytes = launch->launcher_line = NULL;
}
