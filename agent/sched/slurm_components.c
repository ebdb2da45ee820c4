/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_components.h"

#include <stdlib.h>
#include <string.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_memory.h"

enum { CALL_MS = 10000 };

bool slurm_is_heterogeneous(const char *text)
{
    char word[32];

    return slurm_field(text, "HetJobOffset", word, sizeof(word));
}

/* "gpu[1-3,7]" has to be asked for. */
static bool has_node(const char *list, const char *node)
{
    const char *show[] = {"scontrol", "show", "hostnames", list, NULL};
    char *names = NULL;
    bool found = false;

    if (!strchr(list, '[') && !strchr(list, ','))
        return strcmp(list, node) == 0;
    if (child_expect(show, CALL_MS, &names, NULL) < 0)
        return false;
    for (char *save = NULL, *name = strtok_r(names, "\n", &save); name && !found;
         name = strtok_r(NULL, "\n", &save))
        found = strcmp(name, node) == 0;
    free(names);
    return found;
}

/* By its own id, or by the first one's and its offset. */
static bool is_named(const char *line, const char *message)
{
    static const char key[] = "StepId=";
    const char *step = strstr(message, key);
    char id[32], job[32] = "", het[32] = "", offset[16] = "";

    if (!step)
        return false;
    step += sizeof(key) - 1;
    size_t length = strspn(step, "0123456789");
    if (length == 0 || length >= sizeof(id))
        return false;
    memcpy(id, step, length);
    id[length] = '\0';
    slurm_field(line, "JobId", job, sizeof(job));
    if (step[length] != '+')
        return strcmp(id, job) == 0;
    slurm_field(line, "HetJobId", het, sizeof(het));
    slurm_field(line, "HetJobOffset", offset, sizeof(offset));
    return strcmp(id, het) == 0 && atoi(step + length + 1) == atoi(offset);
}

static bool is_on(const char *line, const char *node)
{
    char list[4096];

    return slurm_field(line, "NodeList", list, sizeof(list)) && has_node(list, node);
}

/* The first line that fits, cut out. */
static char *find(char *text, bool (*fits)(const char *line, const char *what), const char *what)
{
    for (char *line = text, *end; what && *line; line = end + (*end != '\0')) {
        end = line + strcspn(line, "\n");
        char after = *end;
        *end = '\0';
        if (fits(line, what))
            return line;
        *end = after;
    }
    return NULL;
}

char *slurm_component_of(char *text, const char *message, const char *node)
{
    char *line = NULL;

    if (slurm_is_heterogeneous(text))
        line = find(text, is_named, message);
    if (!line && slurm_is_heterogeneous(text))
        line = find(text, is_on, node);
    if (!line) {
        line = text;
        line[strcspn(line, "\n")] = '\0';
    }
    return line;
}

const struct oom_edit *slurm_edit_of(const struct oom_edits *edits, const char *knob)
{
    for (size_t i = 0; edits && i < edits->count; i++)
        if (strcmp(edits->items[i].knob, knob) == 0 && edits->items[i].new_value)
            return &edits->items[i];
    return NULL;
}

bool slurm_component_is_meant(const char *line, const struct oom_edit *memory)
{
    int64_t now = -1;
    const struct slurm_memory *kind = slurm_memory_of(line, &now);

    return kind && strcmp(kind->knob, memory->knob) == 0 && now < atoll(memory->new_value) &&
           (!memory->old_value || now >= atoll(memory->old_value));
}
