/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_components.h"

#include <stdlib.h>
#include <string.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_fields.h"

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

char *slurm_component_on(char *text, const char *node)
{
    char list[4096];

    if (node && slurm_is_heterogeneous(text)) {
        for (char *line = text, *end; *line; line = end + (*end != '\0')) {
            end = line + strcspn(line, "\n");
            char after = *end;
            *end = '\0';
            if (slurm_field(line, "NodeList", list, sizeof(list)) && has_node(list, node))
                return line;
            *end = after;
        }
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
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
    char word[64];
    int64_t now = slurm_field(line, "MinMemoryNode", word, sizeof(word)) ? slurm_mib(word) : -1;

    return now > 0 && now < atoll(memory->new_value) &&
           (!memory->old_value || now >= atoll(memory->old_value));
}
