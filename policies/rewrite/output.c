/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands put out, where the script itself settles it: echo, printf, cat and tee of what is
 * known. So the text of files that it writes and of "$(…)" keeps its origin. */
#include <string.h>

#include "policies/rewrite/rw.h"

static const char *word(const struct rw_fields *fields, size_t index)
{
    return index < fields->count ? fields->items[index].string : "";
}

/* Text that stands nowhere in the script. */
static void push_made(struct rw *rw, struct rw_text *out, const char *bytes, size_t length)
{
    struct rw_frag frag = {bytes, (uint32_t)length, RW_DERIVED, RW_DQ, rw->root, 0, 0, NULL, false};

    if (length)
        rw_text_push(rw, out, &frag);
}

/* What a backslash and this letter mean to printf and `echo -e`; NULL: themselves. */
static const char *escape(char c)
{
    static const char from[] = "nt\\\"'";
    static const char *const to[] = {"\n", "\t", "\\", "\"", "'"};
    const char *known = c ? strchr(from, c) : NULL;

    return known ? to[known - from] : NULL;
}

/* The bytes [from, to) of a text, with escapes. */
static void push_escaped(struct rw *rw, const struct rw_text *text, uint32_t from, uint32_t to,
                         struct rw_text *out)
{
    const char *string = rw_text_string(rw, text);
    struct rw_text part;

    for (uint32_t at = from; at < to; at++) {
        const char *meant = string[at] == '\\' && at + 1 < to ? escape(string[at + 1]) : NULL;
        if (!meant)
            continue;
        rw_text_slice(rw, text, from, at, &part);
        rw_text_append(rw, out, &part);
        push_made(rw, out, meant, strlen(meant));
        from = ++at + 1;
    }
    rw_text_slice(rw, text, from, to, &part);
    rw_text_append(rw, out, &part);
}

/* "%q" puts quotes only where they are needed, but quotes never hurt. */
static void push_argument(struct rw *rw, const struct rw_field *field, char conversion,
                          struct rw_text *out)
{
    bool quote = conversion == 'q' &&
                 (strspn(field->string, RW_PLAIN) != field->text.length || !field->text.length);

    push_made(rw, out, "'", quote ? 1 : 0);
    if (conversion == 'b')
        push_escaped(rw, &field->text, 0, field->text.length, out);
    else
        rw_text_append(rw, out, &field->text);
    push_made(rw, out, "'", quote ? 1 : 0);
}

bool rw_printf_text(struct rw *rw, const struct rw_fields *fields, size_t format,
                    struct rw_text *out)
{
    memset(out, 0, sizeof(*out));
    if (strcmp(word(fields, format), "--") == 0)
        format++;
    if (format >= fields->count || !rw_text_known(&fields->items[format].text))
        return false;
    const struct rw_text *text = &fields->items[format].text;
    const char *string = word(fields, format);
    size_t next = format + 1;
    for (bool taken = true; taken;) {
        uint32_t from = 0;
        taken = false;
        for (uint32_t at = 0; at + 1 < text->length; at++) {
            if (string[at] != '%')
                continue;
            char conversion = string[at + 1];
            if (conversion != '%' && !strchr("sdiqb", conversion))
                return false;
            push_escaped(rw, text, from, at, out);
            if (conversion == '%') {
                push_made(rw, out, "%", 1);
            } else if (next < fields->count) {
                push_argument(rw, &fields->items[next++], conversion, out);
                taken = true;
            } else if (conversion == 'd' || conversion == 'i') {
                push_made(rw, out, "0", 1);
            }
            from = ++at + 1;
        }
        push_escaped(rw, text, from, text->length, out);
        taken &= next < fields->count; /* the format serves again for what is left */
    }
    return true;
}

static void echo_text(struct rw *rw, const struct rw_fields *fields, struct rw_text *out)
{
    bool newline = true, escapes = false;
    struct rw_text joined;
    size_t from = 1;

    for (; word(fields, from)[0] == '-' && word(fields, from)[1] &&
           strspn(word(fields, from) + 1, "neE") + 1 == strlen(word(fields, from));
         from++) {
        newline &= !strchr(word(fields, from), 'n');
        escapes |= strchr(word(fields, from), 'e') != NULL;
    }
    rw_join(rw, fields, from, fields->count, &joined);
    if (escapes && rw_text_known(&joined))
        push_escaped(rw, &joined, 0, joined.length, out);
    else
        rw_text_append(rw, out, &joined);
    push_made(rw, out, "\n", newline ? 1 : 0);
}

/* cat: its input, or files that the script wrote. */
static bool cat_text(struct rw *rw, const struct rw_fields *fields, const struct rw_text *input,
                     struct rw_text *out)
{
    if (fields->count == 1 && input)
        rw_text_append(rw, out, input);
    for (size_t i = 1; i < fields->count; i++) {
        const struct rw_written *file = rw_written_file(rw, word(fields, i));
        const struct rw_text *text = strcmp(word(fields, i), "-") == 0 ? input
                                     : file                            ? file->text
                                                                       : NULL;
        if (!text)
            return false;
        rw_text_append(rw, out, text);
    }
    return fields->count > 1 || input;
}

static void tee(struct rw *rw, const struct rw_fields *fields, const struct rw_text *input)
{
    bool append = false;

    for (size_t i = 1; i < fields->count; i++) {
        if (word(fields, i)[0] == '-')
            append |= strchr(word(fields, i), 'a') != NULL;
        else if (rw_text_known(&fields->items[i].text))
            rw_write_file(rw, word(fields, i), input, append);
    }
}

static bool is_silent(const char *name)
{
    static const char *const names[] = {"mkdir", "rm", "rmdir", "touch", "chmod", "cp",
                                        "mv",    "ln", "sleep", "kill",  NULL};

    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void rw_put_out(struct rw *rw, const struct rw_fields *fields, const struct rw_text *input)
{
    struct rw_capture *capture = rw->capture;
    const char *name = word(fields, 0);
    struct rw_text out = {0};
    bool known;

    if (strcmp(name, "tee") == 0)
        tee(rw, fields, input);
    if (!capture || is_silent(name))
        return;
    if (strcmp(name, "echo") == 0) {
        echo_text(rw, fields, &out);
        known = true;
    } else if (strcmp(name, "printf") == 0) {
        known = rw_printf_text(rw, fields, 1, &out);
    } else if (strcmp(name, "cat") == 0) {
        known = cat_text(rw, fields, input, &out);
    } else {
        known = strcmp(name, "tee") == 0 && input;
        if (known)
            rw_text_append(rw, &out, input);
    }
    rw_text_append(rw, &capture->text, &out);
    capture->unknown |= !known;
}
