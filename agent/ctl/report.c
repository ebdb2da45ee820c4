/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl report: a period in one page of Markdown, for a mail or a wiki: what ran out, what was
 * done about it, which scripts should be changed for good, and what nothing could help. */
#include <stdio.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/since.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "db/db.h"

static const int64_t DEFAULT_PERIOD_MS = INT64_C(30) * 86400 * 1000;

/* A cell of a Markdown table; names and reasons come from users. */
static void print_cell(const char *text)
{
    fputs("| ", stdout);
    for (; *text; text++)
        if (*text == '\n' || *text == '\r')
            putchar(' ');
        else if (*text == '|')
            fputs("\\|", stdout);
        else
            putchar(*text);
    putchar(' ');
}

static void print_number_cell(const json_t *row, const char *key)
{
    printf("| %lld ", (long long)json_get_int(row, key, 0));
}

static void print_totals(const json_t *totals)
{
    long long ran_out = json_get_int(totals, "ran_out", 0);
    long long completed = json_get_int(totals, "completed", 0);
    long long under_way = json_get_int(totals, "under_way", 0);
    long long changes = json_get_int(totals, "median_changes", 0);
    double gpu_hours = json_number_value(json_object_get(totals, "gpu_hours"));

    printf("%lld jobs were watched, %lld ran out of memory.",
           (long long)json_get_int(totals, "lineages", 0), ran_out);
    if (ran_out > 0)
        printf(" Of these %lld completed all the same (%lld %%)", completed,
               (100 * completed + ran_out / 2) / ran_out);
    if (completed > 0)
        printf(", half of them after at most %lld change%s", changes, changes == 1 ? "" : "s");
    if (ran_out > 0)
        printf("; %lld are under way, %lld could not be helped.", under_way,
               ran_out - completed - under_way);
    if (gpu_hours > 0)
        printf(" The attempts that failed took %.1f GPU-hours.", gpu_hours);
    putchar('\n');
}

static void print_causes(const json_t *causes)
{
    json_t *row;
    size_t i;

    printf("\n## What ran out\n\n| framework | domain | phase | failures |\n"
           "| --- | --- | --- | ---: |\n");
    json_array_foreach(causes, i, row)
    {
        print_cell(json_get_string(row, "framework", ""));
        print_cell(json_get_string(row, "domain", ""));
        print_cell(json_get_string(row, "phase", ""));
        print_number_cell(row, "failures");
        puts("|");
    }
}

static void print_scripts(const json_t *scripts)
{
    json_t *row;
    size_t i;

    printf("\n## Scripts to change for good\n\nThey run with these settings, and fail first in "
           "every new job until the settings are theirs.\n\n"
           "| user | script | jobs | failures | settings that worked |\n"
           "| --- | --- | ---: | ---: | --- |\n");
    json_array_foreach(scripts, i, row)
    {
        char changed[600];
        lineage_changed(json_object_get(row, "edits"), changed, sizeof(changed));
        print_cell(json_get_string(row, "user", ""));
        print_cell(json_get_string(row, "name", ""));
        print_number_cell(row, "lineages");
        print_number_cell(row, "failures");
        print_cell(changed);
        puts("|");
    }
}

static void print_stopped(const json_t *stopped)
{
    json_t *row;
    size_t i;

    printf("\n## What could not be helped\n\n| job | user | script | why | what to do |\n"
           "| --- | --- | --- | --- | --- |\n");
    json_array_foreach(stopped, i, row)
    {
        char job[64];
        lineage_job(row, job, sizeof(job));
        print_cell(job);
        print_cell(json_get_string(row, "user", ""));
        print_cell(json_get_string(row, "name", ""));
        print_cell(json_get_string(row, "reason", ""));
        print_cell(json_get_string(row, "advice", ""));
        puts("|");
    }
}

static void print_report(const json_t *reply, int64_t since_ms)
{
    const json_t *part;
    char from[32], to[32];

    humanize_iso(since_ms, from, sizeof(from));
    humanize_iso(db_now_ms(), to, sizeof(to));
    printf("# Memory failures, %.10s to %.10s\n\n", from, to);
    print_totals(json_object_get(reply, "totals"));
    if (json_array_size(part = json_object_get(reply, "causes")) > 0)
        print_causes(part);
    if (json_array_size(part = json_object_get(reply, "scripts")) > 0)
        print_scripts(part);
    if (json_array_size(part = json_object_get(reply, "stopped")) > 0)
        print_stopped(part);
}

int ctl_report(int argc, char **argv)
{
    return since_report(
        "report",
        "A period (30 days unless --since says another) in one page of Markdown: what ran out, "
        "what was done about it, which scripts should be changed for good. Administrators see all "
        "jobs, others their own.",
        db_now_ms() - DEFAULT_PERIOD_MS, argc, argv, print_report);
}
