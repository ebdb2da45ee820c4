/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/slurm_components.h"
#include "agent/sched/slurm_fields.h"

/* In the order in which they count: beside memory per GPU the record has a default per CPU. */
static const struct slurm_memory kinds[] = {
    {"slurm:mem-per-gpu", "MemPerTres", "mem-per-gpu", false},
    {"slurm:mem-per-cpu", "MinMemoryCPU", "mem-per-cpu", true},
    {"slurm:mem", "MinMemoryNode", "mem", true},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *slurm_of_gpus(const char *value)
{
    static const char prefix[] = "gres:gpu:";

    return strncmp(value, prefix, sizeof(prefix) - 1) == 0 ? value + sizeof(prefix) - 1 : value;
}

const struct slurm_memory *slurm_memory_of(const char *record, int64_t *mib)
{
    char word[128];

    for (size_t i = 0; i < KINDS; i++)
        if (slurm_field(record, kinds[i].field, word, sizeof(word)) &&
            (*mib = slurm_mib(slurm_of_gpus(word))) > 0)
            return &kinds[i];
    return NULL;
}

const struct oom_edit *slurm_memory_edit(const struct oom_edits *edits,
                                         const struct slurm_memory **memory)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct oom_edit *edit = slurm_edit_of(edits, kinds[i].knob);
        if (edit) {
            *memory = &kinds[i];
            return edit;
        }
    }
    return NULL;
}

bool slurm_memory_suffices(const char *record, const struct slurm_memory *memory,
                           const struct oom_edit *wanted)
{
    int64_t mib = -1;

    return slurm_memory_of(record, &mib) == memory && mib >= atoll(wanted->new_value);
}

bool slurm_memory_is_all(const char *record)
{
    char word[32];

    return slurm_field(record, "MinMemoryNode", word, sizeof(word)) && strcmp(word, "0") == 0;
}

static void set_mib(struct oom_values *facts, const char *name, int64_t mib)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)mib);
    oom_values_set(facts, name, mib > 0 ? text : NULL, OOM_SOURCE_SCHEDULER, NULL);
}

/* "mem=300M" of all nodes together. */
static int64_t on_each_node(const char *record)
{
    char tres[512], nodes[32] = "1";
    const char *mem = slurm_field(record, "AllocTRES", tres, sizeof(tres)) ||
                              slurm_field(record, "TRES", tres, sizeof(tres))
                          ? strstr(tres, "mem=")
                          : NULL;
    int64_t all = mem ? slurm_mib(mem + strlen("mem=")) : -1;

    slurm_field(record, "NumNodes", nodes, sizeof(nodes));
    return all > 0 && atoll(nodes) > 0 ? all / atoll(nodes) : -1;
}

void slurm_memory_facts(const char *record, struct oom_values *facts)
{
    int64_t mib = -1;
    const struct slurm_memory *memory = slurm_memory_of(record, &mib);

    if (!memory)
        return;
    /* A line of the script may ask in a way that the command line replaced. */
    for (size_t i = 0; i < KINDS; i++)
        if (&kinds[i] == memory || oom_values_get(facts, kinds[i].knob))
            set_mib(facts, kinds[i].knob, &kinds[i] == memory ? mib : -1);
    if (strcmp(memory->knob, "slurm:mem") != 0)
        mib = on_each_node(record);
    if (mib > 0)
        set_mib(facts, "slurm.mem_mib", mib);
}
