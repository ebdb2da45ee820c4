/* SPDX-License-Identifier: Apache-2.0
 *
 * What bash itself runs and what matters for later words: read, set, shift, source, eval, … */
#include "policies/rewrite/rw.h"

#include <stdlib.h>
#include <string.h>

void rw_join(struct rw *rw, const struct rw_fields *fields, size_t from, size_t to,
             struct rw_text *out)
{
    struct rw_frag gap = {" ", 1, RW_DERIVED, RW_DQ, rw->root, 0, 0, NULL, false};

    memset(out, 0, sizeof(*out));
    for (size_t i = from; i < to && i < fields->count; i++) {
        if (i > from)
            rw_text_push(rw, out, &gap);
        rw_text_append(rw, out, &fields->items[i].text);
    }
}

struct rw_buf *rw_text_buf(struct rw *rw, const struct rw_text *text, uint64_t key)
{
    const char *bytes = rw_text_string(rw, text);
    struct rw_text *copy = rw_alloc(&rw->arena, sizeof(*copy));
    struct rw_buf *buf = rw_buf_new(rw, bytes, text->length, NULL, key);

    *copy = *text;
    buf->text = copy;
    /* The same text was parsed in an earlier world: its tree serves again, its origin may not. */
    for (struct rw_buf *old = rw->bufs; old; old = old->next) {
        if (old->text && old->length == buf->length &&
            memcmp(old->bytes, bytes, buf->length) == 0) {
            buf->nodes = old->nodes;
            buf->node_count = old->node_count;
            buf->heredocs = old->heredocs;
            buf->heredoc_count = old->heredoc_count;
            buf->error_at = old->error_at;
            return buf;
        }
    }
    rw_parse(rw, buf);
    buf->next = rw->bufs;
    rw->bufs = buf;
    return buf;
}

struct rw_buf *rw_file_buf(struct rw *rw, const char *path, uint64_t key)
{
    char *bytes = NULL;
    size_t length = 0;

    const struct rw_written *written = rw_written_file(rw, path);
    if (written)
        return written->text ? rw_text_buf(rw, written->text, key) : NULL;
    for (struct rw_buf *old = rw->bufs; old; old = old->next)
        if (old->name && strcmp(old->name, path) == 0)
            return old;
    for (const struct rw_overlay *file = rw->overlay; file && !bytes; file = file->next)
        if (strcmp(file->path, path) == 0) {
            length = file->length;
            bytes = strndup(file->bytes, length);
        }
    if (!bytes && (!rw->source->read_side ||
                   rw->source->read_side(rw->source->read_side_arg, path, &bytes, &length) != 0))
        return NULL;
    if (length > RW_MAX_SCRIPT_BYTES || (length && memchr(bytes, '\0', length))) {
        free(bytes);
        return NULL;
    }
    rw->file_bytes += length;
    if (++rw->file_count > RW_MAX_FILES || rw->file_bytes > RW_MAX_FILE_BYTES) {
        free(bytes);
        rw_give_up(rw, rw_printf(&rw->arena,
                                 "it sources and calls more than %d files, or %u MiB of them",
                                 RW_MAX_FILES, RW_MAX_FILE_BYTES >> 20));
    }
    const char *copy = rw_strndup(&rw->arena, bytes, length);
    free(bytes);
    struct rw_buf *buf =
        rw_buf_new(rw, copy, length, rw_strndup(&rw->arena, path, strlen(path)), key);
    rw_parse(rw, buf);
    buf->next = rw->bufs;
    rw->bufs = buf;
    return buf;
}

static void builtin_set(struct rw *rw, const struct rw_cmd *cmd)
{
    size_t i = 1;

    for (; i < cmd->fields.count && strchr("-+", cmd->fields.items[i].string[0]) &&
           strcmp(cmd->fields.items[i].string, "--") != 0;
         i++) {
        const char *next = i + 1 < cmd->fields.count ? cmd->fields.items[i + 1].string : NULL;
        if (rw_shell_option(rw->shell, cmd->fields.items[i].string, next))
            i++;
    }
    if (i >= cmd->fields.count)
        return;
    if (strcmp(cmd->fields.items[i].string, "--") == 0)
        i++;
    bool wild = false;
    for (size_t f = i; f < cmd->fields.count; f++)
        wild |= cmd->fields.items[f].text.wild;
    rw->positional.items = cmd->fields.items + i;
    rw->positional.count = cmd->fields.count - i;
    rw->positional.capacity = 0;
    rw->positional_known = !wild;
}

static void builtin_shift(struct rw *rw, const struct rw_cmd *cmd)
{
    size_t n = cmd->fields.count > 1 ? (size_t)strtoul(cmd->fields.items[1].string, NULL, 10) : 1;

    if (!rw->positional_known)
        return;
    if (n > rw->positional.count)
        n = rw->positional.count;
    if (!n) /* there may be no array at all */
        return;
    rw->positional.items += n;
    rw->positional.count -= n;
    rw->positional.capacity = 0;
}

static void builtin_source(struct rw *rw, const struct rw_cmd *cmd)
{
    struct rw_fields saved = rw->positional;
    bool known = rw->positional_known;

    if (cmd->fields.count < 2)
        return;
    struct rw_buf *buf = rw_text_known(&cmd->fields.items[1].text)
                             ? rw_file_buf(rw, cmd->fields.items[1].string, cmd->key)
                             : NULL;
    if (!buf || buf->walking) {
        rw->opaque_env = true;
        if (rw->capture)
            rw->capture->unknown = true;
        return;
    }
    rw_note_call(rw, buf, &cmd->fields.items[1].text);
    if (cmd->fields.count > 2) {
        rw->positional.items = cmd->fields.items + 2;
        rw->positional.count = cmd->fields.count - 2;
        rw->positional.capacity = 0;
        rw->positional_known = true;
    }
    rw_walk_file(rw, buf);
    if (rw->leaving == RW_RETURNS)
        rw->leaving = RW_GOES_ON;
    if (cmd->fields.count > 2) {
        rw->positional = saved;
        rw->positional_known = known;
    }
}

static void builtin_printf(struct rw *rw, const struct rw_cmd *cmd, const struct rw_text *input)
{
    if (cmd->fields.count < 4 || strcmp(cmd->fields.items[1].string, "-v") != 0) {
        rw_put_out(rw, &cmd->fields, input);
        return;
    }
    const char *name = cmd->fields.items[2].string;
    struct rw_text text;
    if (rw_printf_text(rw, &cmd->fields, 3, &text))
        rw_var_set_text(rw, name, &text);
    else
        rw_var_set_unknown(rw, name);
}

static void builtin_let(struct rw *rw, const struct rw_cmd *cmd)
{
    for (size_t i = 1; i < cmd->fields.count; i++) {
        const char *expr = cmd->fields.items[i].string;
        rw_arithmetic_sets(rw, cmd->buf, expr, strlen(expr));
    }
}

bool rw_builtin(struct rw *rw, struct rw_cmd *cmd, const struct rw_text *input)
{
    static const char *const silent[] = {":",     "true",  "false",  "cd",       "trap",
                                         "umask", "break", "ulimit", "hash",     "test",
                                         "[",     "alias", "logger", "continue", NULL};
    const char *name = cmd->fields.items[0].string;

    if (strcmp(name, "exit") == 0 || strcmp(name, "return") == 0) {
        rw->leaving = *name == 'e' ? RW_EXITS : RW_RETURNS;
        return true;
    }
    for (size_t i = 0; silent[i]; i++)
        if (silent[i][0] == name[0] && strcmp(silent[i], name) == 0)
            return true;
    if (strcmp(name, "pushd") == 0 || strcmp(name, "popd") == 0) {
        if (rw->capture)
            rw->capture->unknown = true;
        return true;
    }
    if (strcmp(name, "echo") == 0) {
        rw_put_out(rw, &cmd->fields, input);
    } else if (strcmp(name, "read") == 0) {
        rw_builtin_read(rw, cmd, input);
    } else if (strcmp(name, "set") == 0) {
        builtin_set(rw, cmd);
    } else if (strcmp(name, "shift") == 0) {
        builtin_shift(rw, cmd);
    } else if (strcmp(name, "source") == 0 || strcmp(name, ".") == 0) {
        builtin_source(rw, cmd);
    } else if (strcmp(name, "printf") == 0) {
        builtin_printf(rw, cmd, input);
    } else if (strcmp(name, "mapfile") == 0 || strcmp(name, "readarray") == 0) {
        rw_builtin_mapfile(rw, cmd, input);
    } else if (strcmp(name, "let") == 0) {
        builtin_let(rw, cmd);
    } else if (strcmp(name, "shopt") == 0) {
        for (size_t i = 1; i + 1 < cmd->fields.count; i++)
            if (strcmp(cmd->fields.items[i + 1].string, "lastpipe") == 0)
                rw->lastpipe = strcmp(cmd->fields.items[i].string, "-s") == 0;
    } else if (strcmp(name, "wait") == 0) {
        for (size_t c = 0; cmd->fields.count > 1 && c < rw->cmd_count; c++)
            rw->cmds[c].background = false;
    } else if (strcmp(name, "getopts") == 0) {
        if (cmd->fields.count > 2)
            rw_var_set_unknown(rw, cmd->fields.items[2].string);
        rw_var_set_unknown(rw, "OPTARG");
    } else if (strcmp(name, "eval") == 0) {
        struct rw_text text;
        rw_join(rw, &cmd->fields, 1, cmd->fields.count, &text);
        rw_walk_buf(rw, rw_text_buf(rw, &text, cmd->key));
    } else {
        return false;
    }
    return true;
}
