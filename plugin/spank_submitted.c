/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that a job was submitted with, from sbatch's own command line and SBATCH_* variables.
 * The job's record does not tell them all (--signal, --exclusive, --gpus-per-task, …), and of
 * others it tells what was allocated instead of what was asked for. Kept are options only: neither
 * the script nor its arguments, nor what was exported to it. */
#include <stdlib.h>
#include <string.h>

#include "spank_plugin.h"

enum argument { NONE, REQUIRED, OPTIONAL };
enum use {
    KEPT,
    LEFT,      /* belongs to that one submission, or the job's record tells it as it is by now */
    SINGLETON, /* of what a job waited for, this alone goes on while it runs */
};

/* What sbatch knows from 20.11 to 25.11. `variable` where it is not SBATCH_ and the name. */
static const struct known {
    const char *name;
    char letter;
    enum argument argument;
    enum use use;
    const char *variable;
} known[] = {
    {"account", 'A', REQUIRED, LEFT, NULL},
    {"acctg-freq", 0, REQUIRED, KEPT, NULL},
    {"array", 'a', REQUIRED, LEFT, NULL},
    {"batch", 0, REQUIRED, KEPT, NULL},
    {"bb", 0, REQUIRED, KEPT, "SBATCH_BURST_BUFFER"},
    {"bbf", 0, REQUIRED, KEPT, NULL},
    {"begin", 'b', REQUIRED, LEFT, NULL},
    {"chdir", 'D', REQUIRED, LEFT, NULL},
    {"cluster-constraint", 0, REQUIRED, KEPT, NULL},
    {"clusters", 'M', REQUIRED, LEFT, NULL},
    {"comment", 0, REQUIRED, LEFT, NULL},
    {"consolidate-segments", 0, NONE, KEPT, NULL},
    {"constraint", 'C', REQUIRED, KEPT, NULL},
    {"container", 0, REQUIRED, KEPT, NULL},
    {"container-id", 0, REQUIRED, KEPT, NULL},
    {"contiguous", 0, NONE, KEPT, NULL},
    {"core-spec", 'S', REQUIRED, KEPT, NULL},
    {"cores-per-socket", 0, REQUIRED, KEPT, NULL},
    {"cpu-freq", 0, REQUIRED, KEPT, "SBATCH_CPU_FREQ_REQ"},
    {"cpus-per-gpu", 0, REQUIRED, KEPT, NULL},
    {"cpus-per-task", 'c', REQUIRED, KEPT, NULL},
    {"deadline", 0, REQUIRED, LEFT, NULL},
    {"debug", 0, NONE, LEFT, NULL},
    {"delay-boot", 0, REQUIRED, KEPT, NULL},
    {"dependency", 'd', REQUIRED, SINGLETON, NULL},
    {"distribution", 'm', REQUIRED, KEPT, NULL},
    {"error", 'e', REQUIRED, KEPT, NULL},
    {"exclude", 'x', REQUIRED, LEFT, NULL},
    {"exclusive", 0, OPTIONAL, KEPT, NULL},
    {"export", 0, REQUIRED, LEFT, NULL},
    {"export-file", 0, REQUIRED, LEFT, NULL},
    {"external", 0, NONE, LEFT, NULL},
    {"extra", 0, REQUIRED, KEPT, NULL},
    {"extra-node-info", 'B', REQUIRED, KEPT, NULL},
    {"get-user-env", 0, OPTIONAL, LEFT, NULL},
    {"gid", 0, REQUIRED, LEFT, NULL},
    {"gpu-bind", 0, REQUIRED, KEPT, NULL},
    {"gpu-freq", 0, REQUIRED, KEPT, NULL},
    {"gpus", 'G', REQUIRED, KEPT, NULL},
    {"gpus-per-node", 0, REQUIRED, KEPT, NULL},
    {"gpus-per-socket", 0, REQUIRED, KEPT, NULL},
    {"gpus-per-task", 0, REQUIRED, KEPT, NULL},
    {"gres", 0, REQUIRED, KEPT, NULL},
    {"gres-flags", 0, REQUIRED, KEPT, NULL},
    {"help", 'h', NONE, LEFT, NULL},
    {"hint", 0, REQUIRED, KEPT, NULL},
    {"hold", 'H', NONE, LEFT, NULL},
    {"ignore-pbs", 0, NONE, KEPT, NULL},
    {"input", 'i', REQUIRED, KEPT, NULL},
    {"job-name", 'J', REQUIRED, LEFT, NULL},
    {"kill-on-invalid-dep", 0, REQUIRED, KEPT, NULL},
    {"licenses", 'L', REQUIRED, KEPT, NULL},
    {"mail-type", 0, REQUIRED, LEFT, NULL},
    {"mail-user", 0, REQUIRED, LEFT, NULL},
    {"mcs-label", 0, REQUIRED, KEPT, NULL},
    {"mem", 0, REQUIRED, LEFT, NULL},
    {"mem-bind", 0, REQUIRED, KEPT, NULL},
    {"mem-per-cpu", 0, REQUIRED, LEFT, NULL},
    {"mem-per-gpu", 0, REQUIRED, KEPT, NULL},
    {"mincores", 0, REQUIRED, KEPT, NULL},
    {"mincpus", 0, REQUIRED, KEPT, NULL},
    {"minsockets", 0, REQUIRED, KEPT, NULL},
    {"minthreads", 0, REQUIRED, KEPT, NULL},
    {"network", 0, REQUIRED, KEPT, NULL},
    {"nice", 0, OPTIONAL, LEFT, NULL},
    {"no-kill", 'k', OPTIONAL, KEPT, NULL},
    {"no-requeue", 0, NONE, LEFT, NULL},
    {"nodefile", 'F', REQUIRED, KEPT, NULL},
    {"nodelist", 'w', REQUIRED, KEPT, NULL},
    {"nodes", 'N', REQUIRED, KEPT, NULL},
    {"ntasks", 'n', REQUIRED, KEPT, NULL},
    {"ntasks-per-core", 0, REQUIRED, KEPT, NULL},
    {"ntasks-per-gpu", 0, REQUIRED, KEPT, NULL},
    {"ntasks-per-node", 0, REQUIRED, KEPT, NULL},
    {"ntasks-per-socket", 0, REQUIRED, KEPT, NULL},
    {"ntasks-per-tres", 0, REQUIRED, KEPT, NULL},
    {"oom-allow", 0, REQUIRED, LEFT, NULL},
    {"oom-dry-run", 0, NONE, LEFT, NULL},
    {"oom-kill-step", 0, OPTIONAL, KEPT, NULL},
    {"oom-max-retries", 0, REQUIRED, LEFT, NULL},
    {"oom-mode", 0, REQUIRED, LEFT, NULL},
    {"oom-retry", 0, OPTIONAL, LEFT, NULL},
    {"open-mode", 0, REQUIRED, LEFT, NULL},
    {"output", 'o', REQUIRED, KEPT, NULL},
    {"overcommit", 'O', NONE, KEPT, NULL},
    {"oversubscribe", 's', NONE, KEPT, NULL},
    {"parsable", 0, NONE, LEFT, NULL},
    {"partition", 'p', REQUIRED, LEFT, NULL},
    {"power", 0, REQUIRED, KEPT, NULL},
    {"prefer", 0, REQUIRED, KEPT, NULL},
    {"priority", 0, REQUIRED, KEPT, NULL},
    {"profile", 0, REQUIRED, KEPT, NULL},
    {"propagate", 0, OPTIONAL, KEPT, NULL},
    {"qos", 'q', REQUIRED, LEFT, NULL},
    {"quiet", 'Q', NONE, LEFT, NULL},
    {"reboot", 0, NONE, LEFT, NULL},
    {"requeue", 0, NONE, LEFT, NULL},
    {"reservation", 0, REQUIRED, LEFT, NULL},
    {"resv-ports", 0, OPTIONAL, KEPT, NULL},
    {"segment", 0, REQUIRED, KEPT, NULL},
    {"share", 0, NONE, KEPT, NULL},
    {"signal", 0, REQUIRED, KEPT, NULL},
    {"sockets-per-node", 0, REQUIRED, KEPT, NULL},
    {"spread-job", 0, NONE, KEPT, NULL},
    {"spread-segments", 0, NONE, KEPT, NULL},
    {"stepmgr", 0, NONE, KEPT, NULL},
    {"switches", 0, REQUIRED, KEPT, "SBATCH_REQ_SWITCH"},
    {"tasks-per-node", 0, REQUIRED, KEPT, NULL},
    {"test-only", 0, NONE, LEFT, NULL},
    {"thread-spec", 0, REQUIRED, KEPT, NULL},
    {"threads-per-core", 0, REQUIRED, KEPT, NULL},
    {"time", 't', REQUIRED, LEFT, "SBATCH_TIMELIMIT"},
    {"time-min", 0, REQUIRED, KEPT, NULL},
    {"tmp", 0, REQUIRED, KEPT, NULL},
    {"tres-bind", 0, REQUIRED, KEPT, NULL},
    {"tres-per-task", 0, REQUIRED, KEPT, NULL},
    {"uid", 0, REQUIRED, LEFT, NULL},
    {"usage", 0, NONE, LEFT, NULL},
    {"use-min-nodes", 0, NONE, KEPT, NULL},
    {"verbose", 'v', NONE, LEFT, NULL},
    {"version", 'V', NONE, LEFT, NULL},
    {"wait", 'W', NONE, LEFT, NULL},
    {"wait-all-nodes", 0, REQUIRED, KEPT, NULL},
    {"wckey", 0, REQUIRED, LEFT, NULL},
    {"wrap", 0, REQUIRED, LEFT, NULL},
};
#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))

struct writer {
    char *out;
    size_t size, used;
    bool full;
};

static void put_byte(struct writer *w, char byte)
{
    if (w->used + 1 < w->size)
        w->out[w->used++] = byte;
    else
        w->full = true;
}

/* Blanks separate the words, and no byte of a value may look like one: they travel as %20. */
static void put_text(struct writer *w, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte > ' ' && byte < 0x7f && byte != '%') {
            put_byte(w, *text);
            continue;
        }
        put_byte(w, '%');
        put_byte(w, digits[byte >> 4]);
        put_byte(w, digits[byte & 15]);
    }
}

static void put_option(struct writer *w, const char *name, size_t length, const char *value)
{
    if (w->used > 0)
        put_byte(w, ' ');
    put_byte(w, '-');
    put_byte(w, '-');
    for (size_t i = 0; i < length; i++)
        put_byte(w, name[i]);
    if (!value)
        return;
    put_byte(w, '=');
    put_text(w, value);
}

static void keep(struct writer *w, const struct known *option, const char *value)
{
    if (option->use == KEPT)
        put_option(w, option->name, strlen(option->name), value);
    else if (option->use == SINGLETON && value && strstr(value, "singleton"))
        put_option(w, option->name, strlen(option->name), "singleton");
}

/* Like getopt_long: the whole name, or a beginning that only one has. */
static const struct known *find_name(const char *name, size_t length)
{
    const struct known *found = NULL;
    int count = 0;

    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strncmp(known[i].name, name, length) != 0)
            continue;
        if (!known[i].name[length])
            return &known[i];
        found = &known[i];
        count++;
    }
    return count == 1 ? found : NULL;
}

static const struct known *find_letter(char letter)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (known[i].letter == letter)
            return &known[i];
    return NULL;
}

/* What another plugin's option was given. When the options have been read, sbatch has them in
 * _SLURM_SPANK_OPTION_PLUGIN_NAME, with '_' for what is no letter or digit. */
static const char *value_of_plugin(char *const *environment, const char *name, size_t length)
{
    static const char prefix[] = "_SLURM_SPANK_OPTION_";

    for (; *environment; environment++) {
        const char *variable = *environment, *equals = strchr(variable, '=');
        size_t i = 0;

        if (!equals || strncmp(variable, prefix, sizeof(prefix) - 1) != 0 ||
            (size_t)(equals - variable) < sizeof(prefix) + length)
            continue;
        for (const char *tail = equals - length; i < length; i++)
            if (tail[i] != name[i] && !(tail[i] == '_' && name[i] == '-'))
                break;
        if (i == length && equals[-(ptrdiff_t)length - 1] == '_')
            return equals + 1;
    }
    return NULL;
}

/* "--name", "--name=value", "--name value". Returns how many words it took; 0: not understood. */
static int read_long(struct writer *w, char *const *argv, char *const *environment)
{
    const char *name = argv[0] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct known *option = find_name(name, length);
    const char *value = equals ? equals + 1 : NULL;

    if (option && option->argument == REQUIRED && !value) {
        if (!argv[1])
            return 0;
        keep(w, option, argv[1]);
        return 2;
    }
    if (option) {
        keep(w, option, value);
        return 1;
    }
    const char *given = value ? NULL : value_of_plugin(environment, name, length);
    if (!value && !given)
        return 0;
    if (given && *given && argv[1] && strcmp(given, argv[1]) == 0) {
        put_option(w, name, length, given);
        return 2;
    }
    put_option(w, name, length, value);
    return 1;
}

/* "-n4", "-n 4", "-Hn4". */
static int read_letters(struct writer *w, char *const *argv)
{
    for (const char *p = argv[0] + 1; *p; p++) {
        const struct known *option = find_letter(*p);

        if (!option)
            return 0;
        if (option->argument == NONE) {
            keep(w, option, NULL);
            continue;
        }
        if (p[1] || option->argument == OPTIONAL) {
            keep(w, option, p[1] ? p + 1 : NULL);
            return 1;
        }
        if (!argv[1])
            return 0;
        keep(w, option, argv[1]);
        return 2;
    }
    return 1;
}

static const char *variable_of(const struct known *option, char *const *environment)
{
    char name[64] = "SBATCH_";
    size_t used = strlen(name);

    if (option->variable) {
        used = strlen(option->variable);
        memcpy(name, option->variable, used);
    } else {
        for (const char *p = option->name; *p && used + 1 < sizeof(name); p++)
            name[used++] = *p == '-' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    }
    for (; *environment; environment++)
        if (strncmp(*environment, name, used) == 0 && (*environment)[used] == '=')
            return *environment + used + 1;
    return NULL;
}

/* Before the words of the command line, which count more. */
static void put_variables(struct writer *w, char *const *environment)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        const char *value = known[i].use == KEPT ? variable_of(&known[i], environment) : NULL;

        if (value && (*value || known[i].argument != REQUIRED))
            keep(w, &known[i], known[i].argument == NONE || !*value ? NULL : value);
    }
}

int submitted_options(char *const *argv, char *const *environment, char *out, size_t size)
{
    struct writer w = {.out = out, .size = size};
    const char *slash = *argv ? strrchr(*argv, '/') : NULL;
    int taken;

    /* scrontab and salloc read their options elsewhere, or know others. */
    if (!*argv || strcmp(slash ? slash + 1 : *argv, "sbatch") != 0)
        return -1;
    put_variables(&w, environment);
    for (argv++; *argv; argv += taken) {
        const char *word = *argv;

        taken = 1;
        if (strcmp(word, ":") == 0) {
            put_byte(&w, ' ');
            put_byte(&w, ':');
            put_variables(&w, environment);
            continue;
        }
        if (word[0] != '-' || !word[1] || strcmp(word, "--") == 0)
            break;
        taken = word[1] == '-' ? read_long(&w, argv, environment) : read_letters(&w, argv);
        if (taken == 0)
            return -1;
    }
    out[w.used] = '\0';
    return w.full ? -1 : 0;
}
