/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefixes of a line say who speaks: Ray's "(WorkerDict pid=12, ip=10.0.0.3)", torchrun's
 * "[rank3]:" and "[default0]:", "srun -l", mpirun's "[1,3]<stderr>:", time stamps of container
 * runtimes and syslog. */
#include <ctype.h>
#include <string.h>

#include "policies/classify_private.h"

struct cursor {
    const char *at;
    const char *end;
};

static size_t left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

static bool starts(const struct cursor *c, const char *word)
{
    size_t n = strlen(word);

    return left(c) >= n && memcmp(c->at, word, n) == 0;
}

static void skip_spaces(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
        c->at++;
}
static void voice_mix(struct line_view *view, const char *text, const char *end)
{
    uint64_t hash = view->voice ? view->voice : HASH_START;

    view->voice = oom_hash(hash, text, (size_t)(end - text)) | 1;
}

static void set_node(struct line_view *view, const char *text, size_t length)
{
    if (length == 0 || length >= sizeof(view->node))
        return;
    memcpy(view->node, text, length);
    view->node[length] = '\0';
}

static const char *find_in(const char *at, const char *end, const char *word)
{
    return memmem(at, (size_t)(end - at), word, strlen(word));
}

/* "(Name pid=12, ip=10.0.0.3)", "(VllmWorker rank=1 pid=7)", "(raylet)", "(EngineCore_0 pid=1)" */
static bool prefix_process(struct cursor *c, struct line_view *view)
{
    if (left(c) < 4 || *c->at != '(' || !isalpha((unsigned char)c->at[1]))
        return false;
    size_t window = left(c) < 200 ? left(c) : 200;
    const char *close = memchr(c->at, ')', window);
    if (!close)
        return false;
    const char *pid = find_in(c->at, close, "pid=");
    bool named = starts(c, "(raylet") || starts(c, "(autoscaler") || starts(c, "(AReaL)");
    if (!pid && !named)
        return false;
    const char *rank = find_in(c->at, close, "rank=");
    const char *ip = find_in(c->at, close, "ip=");
    const char *after;
    if (rank) {
        int value = oom_digits_read(rank + 5, close, &after);
        if (value >= 0)
            view->rank = value;
    }
    if (ip) {
        const char *stop = ip + 3;
        while (stop < close && *stop != ',' && *stop != ' ')
            stop++;
        set_node(view, ip + 3, (size_t)(stop - ip) - 3);
    }
    voice_mix(view, c->at, close);
    c->at = close + 1;
    skip_spaces(c);
    return true;
}

/* "[rank3]:", "[rank 3]", "[Rank 3]", "[rank: 3]", "[default5]:", "[trainer2]:" */
static bool prefix_bracket_rank(struct cursor *c, struct line_view *view)
{
    static const char *const words[] = {"[rank", "[Rank",    "[default",
                                        "[RANK", "[trainer", "[worker"};

    if (left(c) < 6 || *c->at != '[' || !isalpha((unsigned char)c->at[1]))
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!starts(c, words[i]))
            continue;
        const char *p = c->at + strlen(words[i]);
        const char *after;
        for (int mark = 0; mark < 2 && p < c->end && strchr(" _=-:", *p); mark++)
            p++;
        int value = oom_digits_read(p, c->end, &after);
        if (value < 0 || after >= c->end || *after != ']')
            return false;
        /* [defaultN] is a local rank: good for a voice, no rank of the job. */
        if (i < 2 || i == 3)
            view->rank = value;
        voice_mix(view, c->at, after);
        c->at = after + 1;
        if (c->at < c->end && *c->at == ':')
            c->at++;
        if (c->at < c->end && *c->at == ' ')
            c->at++;
        return true;
    }
    return false;
}

/* "12: " and " 7: " of srun -l, which fills up to the width of the last */
static bool prefix_task(struct cursor *c, struct line_view *view)
{
    const char *p = c->at;
    const char *after;

    if (c->at == view->text)
        while (p < c->end && *p == ' ' && p - c->at < 5)
            p++;
    int value = oom_digits_read(p, c->end, &after);
    if (value < 0 || after - c->at > 5 || after >= c->end || *after != ':')
        return false;
    if (after + 1 < c->end && after[1] != ' ')
        return false;
    view->rank = value;
    voice_mix(view, c->at, after);
    c->at = after + 1;
    if (c->at < c->end)
        c->at++;
    return true;
}

/* "[1,3]<stderr>:" of mpirun, "[prterun-gpu01-4711@1,3]<stderr>:" of its version 5, and
 * "[1,mpirank:3,algo-2]<stderr>:" of SageMaker */
static bool prefix_mpi(struct cursor *c, struct line_view *view)
{
    static const char word[] = "mpirank:";
    const char *after = c->at + 1;

    if (left(c) < 3 || *c->at != '[')
        return false;
    if (starts(c, "[prterun-")) {
        const char *job = memchr(c->at, '@', left(c) < 120 ? left(c) : 120);
        if (!job)
            return false;
        after = job + 1;
    }
    if (oom_digits_read(after, c->end, &after) < 0 || after >= c->end || *after++ != ',')
        return false;
    if ((size_t)(c->end - after) > sizeof(word) && memcmp(after, word, sizeof(word) - 1) == 0)
        after += sizeof(word) - 1;
    int value = oom_digits_read(after, c->end, &after);
    if (value < 0 || after >= c->end)
        return false;
    size_t window = (size_t)(c->end - after) < 80 ? (size_t)(c->end - after) : 80;
    const char *close = memchr(after, ']', window);
    if (!close || (close > after && *after != ',') || c->end - close < 9 ||
        memcmp(close, "]<std", 5) != 0)
        return false;
    const char *colon =
        memchr(close, ':', (size_t)(c->end - close) < 12 ? (size_t)(c->end - close) : 12);
    if (!colon)
        return false;
    view->rank = value;
    if (close > after)
        set_node(view, after + 1, (size_t)(close - after) - 1);
    voice_mix(view, c->at, close);
    c->at = colon + 1;
    return true;
}

/* "[3] " of Intel MPI and MPICH; "[1]  + 4711 killed" is a shell's */
static bool prefix_process_rank(struct cursor *c, struct line_view *view)
{
    const char *after;

    if (left(c) < 4 || c->at != view->text || *c->at != '[')
        return false;
    int value = oom_digits_read(c->at + 1, c->end, &after);
    if (value < 0 || c->end - after < 3 || after[0] != ']' || after[1] != ' ')
        return false;
    struct cursor rest = {after + 2, c->end};
    skip_spaces(&rest);
    if (rest.at == rest.end || strchr("+-0123456789", *rest.at))
        return false;
    view->rank = value;
    voice_mix(view, c->at, after);
    c->at = after + 2;
    return true;
}

/* "gpu042: " of pdsh, clush and the DeepSpeed launcher: a lower-case name with a digit. */
static bool prefix_host(struct cursor *c, struct line_view *view)
{
    const char *p = c->at;
    bool digit = false;

    if (p >= c->end || !islower((unsigned char)*p))
        return false;
    while (p < c->end &&
           (islower((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '-' || *p == '.')) {
        digit |= isdigit((unsigned char)*p) != 0;
        p++;
    }
    if (!digit || p - c->at < 3 || p - c->at > 40 || p + 1 >= c->end || p[0] != ':' || p[1] != ' ')
        return false;
    set_node(view, c->at, (size_t)(p - c->at));
    voice_mix(view, c->at, p);
    c->at = p + 2;
    return true;
}

/* "Wed Mar  4 10:00:00 2026" of mpirun --timestamp-output */
static bool prefix_ctime(struct cursor *c)
{
    const char *p = c->at;

    if (left(c) < 26 || !isupper((unsigned char)p[0]) || p[3] != ' ' ||
        !isupper((unsigned char)p[4]) || p[7] != ' ' || p[10] != ' ' || p[13] != ':' ||
        p[16] != ':' || p[19] != ' ' || !oom_digits_only(p + 20, 4))
        return false;
    c->at += 24;
    c->at += *c->at == ' ';
    return true;
}

/* "2026-03-04T10:00:00.123Z ", "[2026-03-04 10:00:00,123] " */
static bool prefix_time(struct cursor *c)
{
    const char *p = c->at;
    bool bracket = left(c) > 0 && *p == '[';

    p += bracket;
    if (c->end - p < 20 || !oom_digits_only(p, 4) || p[4] != '-' || !oom_digits_only(p + 5, 2) ||
        p[7] != '-' || !oom_digits_only(p + 8, 2) || (p[10] != 'T' && p[10] != ' ') ||
        !oom_digits_only(p + 11, 2) || p[13] != ':')
        return false;
    p += 16;
    while (p < c->end && *p != ' ' && *p != '\t' && p - c->at < 48)
        p++;
    if (p >= c->end || (*p != ' ' && *p != '\t') || (bracket && p[-1] != ']'))
        return false;
    c->at = p + 1;
    if (starts(c, "stderr F ") || starts(c, "stdout F ") || starts(c, "stderr P ") ||
        starts(c, "stdout P "))
        c->at += 9;
    return true;
}

/* "Mar 10 07:43:22 gpu289 kernel: " */
static bool prefix_syslog(struct cursor *c, struct line_view *view)
{
    const char *p = c->at;

    if (left(c) < 20 || !isupper((unsigned char)p[0]) || !islower((unsigned char)p[1]) ||
        !islower((unsigned char)p[2]) || p[3] != ' ' || p[6] != ' ' || p[9] != ':' ||
        p[12] != ':' || p[15] != ' ')
        return false;
    const char *host = p + 16;
    const char *stop = memchr(host, ' ', (size_t)(c->end - host));
    if (!stop)
        return false;
    set_node(view, host, (size_t)(stop - host));
    voice_mix(view, host, stop);
    c->at = stop + 1;
    return true;
}

/* "[pod/trainer-0/main] " of kubectl --prefix, "trainer-0  | " of compose, "1a2b3c4d || " of
 * Determined */
static bool prefix_container(struct cursor *c, struct line_view *view)
{
    if (starts(c, "[pod/")) {
        const char *close = memchr(c->at, ']', left(c) < 200 ? left(c) : 200);
        if (!close)
            return false;
        voice_mix(view, c->at, close);
        c->at = close + 1;
        skip_spaces(c);
        return true;
    }
    const char *p = c->at;
    while (p < c->end && (isalnum((unsigned char)*p) || *p == '-' || *p == '_') && p - c->at < 64)
        p++;
    const char *name_end = p;
    while (p < c->end && *p == ' ')
        p++;
    if (name_end == c->at || p == name_end || c->end - p < 3 || p[0] != '|')
        return false;
    bool two = p[1] == '|';
    if (p[1 + two] != ' ' || (!two && !memchr(c->at, '-', (size_t)(name_end - c->at))))
        return false;
    voice_mix(view, c->at, name_end);
    c->at = p + 2 + two;
    return true;
}

static void read_prefixes(struct line_view *view)
{
    struct cursor c = {view->text, view->text + view->length};

    for (int i = 0; i < 6; i++)
        if (!prefix_time(&c) && !prefix_ctime(&c) && !prefix_process(&c, view) &&
            !prefix_bracket_rank(&c, view) && !prefix_syslog(&c, view) && !prefix_task(&c, view) &&
            !prefix_mpi(&c, view) && !prefix_process_rank(&c, view) && !prefix_host(&c, view) &&
            !prefix_container(&c, view))
            break;
    view->body = c.at;
    view->body_length = left(&c);
}

/* Commands that bash -x echoes, comments, exports, and commands that search for words: they hold
 * the words of a failure without being one. */
static bool is_shell(const char *body, size_t length)
{
    static const char *const words[] = {
        "+ ",      "++ ",     "+++ ",   "$ ",     "# ",    "#!",   "#SBATCH", "declare -x ",
        "export ", "echo ",   "grep ",  "egrep ", "rg ",   "awk ", "sed ",    "//",
        "if grep", "printf ", "if [[ ", "elif ",  "then ", "#--",  "\"\"\"",
    };
    struct cursor c = {body, body + length};

    skip_spaces(&c);
    if (c.at == c.end || !strchr("+$#deg/rasipt\"", *c.at))
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (starts(&c, words[i]))
            return true;
    return false;
}

void oom_line_speaker(struct line_view *view)
{
    view->voice = 0;
    view->rank = -1;
    view->node[0] = '\0';
    read_prefixes(view);
    view->shell = is_shell(view->body, view->body_length);
}
