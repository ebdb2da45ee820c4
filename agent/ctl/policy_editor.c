/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy edit: the document in the user's editor, checked before it is stored. A wrong or
 * abandoned edit changes nothing; an edit that somebody else overtook is kept in its file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ctl/policy.h"
#include "agent/lib/jsonget.h"
#include "policies/policy_edit.h"

enum { MAX_EDITOR_WORDS = 16 };

struct draft {
    char directory[256];
    char path[384];
};

static int draft_write(struct draft *draft, const char *name, const json_t *document,
                       struct oom_error *err)
{
    const char *base = getenv("TMPDIR");
    char *text = policy_edit_text(document);

    snprintf(draft->directory, sizeof(draft->directory), "%.200s/oomretry-XXXXXX",
             base && *base ? base : "/tmp");
    if (!text || !mkdtemp(draft->directory)) {
        free(text);
        return oom_errorf(err, "cannot make %s: %s", draft->directory, strerror(errno));
    }
    snprintf(draft->path, sizeof(draft->path), "%s/%.64s.json", draft->directory, name);
    FILE *file = fopen(draft->path, "wx");
    int rc = file && fputs(text, file) >= 0 ? 0 : -1;
    if (file && fclose(file) != 0)
        rc = -1;
    free(text);
    return rc == 0 ? 0 : oom_errorf(err, "cannot write %s: %s", draft->path, strerror(errno));
}

static void draft_remove(const struct draft *draft)
{
    unlink(draft->path);
    rmdir(draft->directory);
}

/* $VISUAL or $EDITOR may have arguments ("vim -f"); no shell reads them. */
static int run_editor(const char *path, struct oom_error *err)
{
    char words[512];
    char *argv[MAX_EDITOR_WORDS + 2];
    size_t count = 0;
    int status;
    const char *editor = getenv("VISUAL");

    if (!editor || !*editor)
        editor = getenv("EDITOR");
    snprintf(words, sizeof(words), "%s", editor && *editor ? editor : "vi");
    char *save = NULL;
    for (char *word = strtok_r(words, " \t", &save); word && count < MAX_EDITOR_WORDS;
         word = strtok_r(NULL, " \t", &save))
        argv[count++] = word;
    argv[count] = (char *)(uintptr_t)path;
    argv[count + 1] = NULL;

    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], argv);
        fprintf(stderr, "oomctl: cannot start the editor \"%s\": %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        return oom_errorf(err, "cannot start the editor: %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return oom_errorf(err, "lost the editor: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return oom_errorf(err, "the editor did not end well; nothing was changed");
    return 0;
}

/* The edited document, asked for again while it is wrong and somebody is there to correct it. */
static json_t *edited(const struct policy_call *call, const struct draft *draft,
                      struct oom_error *err)
{
    for (;;) {
        if (run_editor(draft->path, err) != 0)
            return NULL;
        char name[POLICY_OVERRIDE_NAME_ROOM];
        json_t *document = policy_read_file(call, draft->path, name, sizeof(name), err);
        if (document && strcmp(name, call->name) == 0)
            return document;
        if (document)
            oom_errorf(err, "this is %s now, not %s", name, call->name);
        json_decref(document);
        fprintf(stderr, "%s\n", err->text);
        if (!policy_confirm("Edit again?"))
            return NULL;
    }
}

/* With a terminal and no -m, asks what the change is for. */
static const char *ask_message(const struct policy_call *call, char *text, size_t size)
{
    if (call->message)
        return call->message;
    if (!isatty(STDIN_FILENO) || call->yes)
        return "edited";
    fprintf(stderr, "What is the change for? ");
    if (!fgets(text, (int)size, stdin) || text[0] == '\n')
        return "edited";
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static int store(const struct policy_call *call, const json_t *row, const json_t *document)
{
    char text[256];

    if (!policy_print_diff("active", json_object_get(row, "document"), "new", document)) {
        printf("%s: nothing was changed\n", call->name);
        return 0;
    }
    if (!call->yes && !policy_confirm("Store this as the new active version?")) {
        fprintf(stderr, "oomctl policy edit: not stored (without a terminal, say --yes)\n");
        return 1;
    }
    return policy_store(call, call->name, json_get_int(row, "version", 0), document,
                        ask_message(call, text, sizeof(text)));
}

int policy_edit(struct policy_call *call)
{
    struct oom_error err = {""};
    struct draft draft = {"", ""};
    int status = 2;
    json_t *row = policy_fetch_or_new(call);

    if (!row)
        return 2;
    json_t *document = draft_write(&draft, call->name, json_object_get(row, "document"), &err) == 0
                           ? edited(call, &draft, &err)
                           : NULL;
    if (document)
        status = store(call, row, document);
    else
        policy_fail(call, &err);
    if (status == 0)
        draft_remove(&draft);
    else if (draft.path[0])
        fprintf(stderr, "oomctl policy edit: your text is kept in %s\n", draft.path);
    json_decref(document);
    json_decref(row);
    return status;
}
