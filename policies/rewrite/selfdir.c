/* SPDX-License-Identifier: Apache-2.0
 *
 * "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)" and its relatives: the directory of the file in
 * which they stand. Scripts find their helpers by it. */
#include <stdio.h>
#include <string.h>

#include "policies/rewrite/rw.h"

enum { MAX_LENGTH = 200 };

/* In this order: a shorter spelling may stand within a longer one. */
struct spelling {
    const char *text;
    const char *means; /* "@" the file, "%" its directory */
    bool root_only;    /* in a sourced file $0 is the script that sources it */
};

static const struct spelling spellings[] = {
    {"\"", "", false},
    {"&> /dev/null", "", false},
    {"&>/dev/null", "", false},
    {"2>/dev/null", "", false},
    {"2> /dev/null", "", false},
    {">/dev/null 2>&1", "", false},
    {"> /dev/null 2>&1", "", false},
    {">/dev/null", "", false},
    {"> /dev/null", "", false},
    {" -- ", " ", false},
    {"( ", "(", false},
    {" )", ")", false},
    {" -P", "", false},
    {"${BASH_SOURCE[0]:-$0}", "@", true},
    {"${BASH_SOURCE[0]%/*}", "%", false},
    {"${BASH_SOURCE%/*}", "%", false},
    {"${0%/*}", "%", true},
    {"${BASH_SOURCE[0]}", "@", false},
    {"${BASH_SOURCE}", "@", false},
    {"$BASH_SOURCE", "@", false},
    {"${0}", "@", true},
    {"$0", "@", true},
    {"  ", " ", false},
    {"readlink -f @", "@", false},
    {"readlink -e @", "@", false},
    {"realpath @", "@", false},
    {"$(@)", "@", false},
    {"`@`", "@", false},
    {"dirname @", "%", false},
    {"$(%)", "%", false},
    {"`%`", "%", false},
    {"dirname %", "%/..", false},
    {"cd %", "%", false},
    {" && pwd", "", false},
    {" ; pwd", "", false},
    {"; pwd", "", false},
    {";pwd", "", false},
    {"realpath %", "%", false},
    {"readlink -f %", "%", false},
};

static void replace(char *text, const char *what, const char *by)
{
    size_t length = strlen(what), room = strlen(by);

    for (char *at = text; (at = strstr(at, what)) && room <= length;) {
        memmove(at + room, at + length, strlen(at + length) + 1);
        memcpy(at, by, room);
        at += what[0] == ' ' ? 0 : room; /* three blanks are two and one */
    }
}

/* "%" and a path below or above it, in letters that mean themselves. */
static bool is_path(const char *text)
{
    return text[0] == '%' && (text[1] == '\0' || text[1] == '/') &&
           strspn(text + 1, RW_PLAIN) == strlen(text + 1);
}

const char *rw_own_directory(struct rw *rw, const struct rw_buf *buf, const char *bytes,
                             size_t length)
{
    char text[MAX_LENGTH + 1];
    bool root = buf == rw->root;
    const char *name = root ? rw->source->directory : buf->name, *slash = NULL;

    if (!name || buf->text || length > MAX_LENGTH || memchr(bytes, '\n', length))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", (int)length, bytes);
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
        if (root || !spellings[i].root_only)
            replace(text, spellings[i].text, spellings[i].means);
    char *from = text + strspn(text, " "), *end = from + strlen(from);
    while (end > from && end[-1] == ' ')
        *--end = '\0';
    if (!is_path(from))
        return NULL;
    if (!root && !(slash = strrchr(name, '/')))
        name = ".";
    return rw_printf(&rw->arena, "%.*s%s", (int)(slash ? slash - name : (ptrdiff_t)strlen(name)),
                     name, from + 1);
}
