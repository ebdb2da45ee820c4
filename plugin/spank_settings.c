/* SPDX-License-Identifier: Apache-2.0
 *
 * The owner's wishes as a handful of checked words. Every source (option, environment, plugstack
 * argument, job-control variable) ends here, and each may be written by the user directly. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spank_plugin.h"

#define MAX_RETRIES_LIMIT 100

void settings_init(struct settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    settings->max_retries = -1;
    settings->dry_run = -1;
}

static int refuse(char *why, size_t why_size, const char *text)
{
    snprintf(why, why_size, "%s", text);
    return -1;
}

static int set_policy(struct settings *settings, const char *value, char *why, size_t why_size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";

    if (!value)
        value = "auto";
    if (!value[0] || strlen(value) >= sizeof(settings->policy) ||
        strspn(value, letters) != strlen(value) || strchr("-_.", value[0]))
        return refuse(why, why_size,
                      "must be auto, off, or the name of a policy (oomctl policy list)");
    strcpy(settings->policy, value);
    return 0;
}

static int set_mode(struct settings *settings, const char *value, char *why, size_t why_size)
{
    static const char *const modes[] = {"auto", "inplace", "requeue", "resubmit"};

    for (size_t i = 0; value && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(value, modes[i]) == 0) {
            strcpy(settings->mode, value);
            return 0;
        }
    return refuse(why, why_size, "must be auto, inplace, requeue or resubmit");
}

static int set_allow(struct settings *settings, const char *value, char *why, size_t why_size)
{
    if (!value || strcmp(value, "training") != 0)
        return refuse(why, why_size, "must be training (consent to changes of what is trained)");
    strcpy(settings->allow, value);
    return 0;
}

static int set_max_retries(struct settings *settings, const char *value, char *why, size_t why_size)
{
    char *end = NULL;
    long number = -1;

    errno = 0;
    if (value && value[0] >= '0' && value[0] <= '9')
        number = strtol(value, &end, 10);
    if (number < 0 || number > MAX_RETRIES_LIMIT || errno || *end)
        return refuse(why, why_size, "must be a number from 0 to 100");
    settings->max_retries = (int)number;
    return 0;
}

static int set_dry_run(struct settings *settings, const char *value, char *why, size_t why_size)
{
    if (!value || strcmp(value, "1") == 0 || strcmp(value, "yes") == 0)
        settings->dry_run = 1;
    else if (strcmp(value, "0") == 0 || strcmp(value, "no") == 0)
        settings->dry_run = 0;
    else
        return refuse(why, why_size, "must be 1 or 0");
    return 0;
}

int settings_set(struct settings *settings, const char *key, const char *value, char *why,
                 size_t why_size)
{
    if (strcmp(key, "policy") == 0)
        return set_policy(settings, value, why, why_size);
    if (strcmp(key, "mode") == 0)
        return set_mode(settings, value, why, why_size);
    if (strcmp(key, "allow") == 0)
        return set_allow(settings, value, why, why_size);
    if (strcmp(key, "max_retries") == 0)
        return set_max_retries(settings, value, why, why_size);
    if (strcmp(key, "dry_run") == 0)
        return set_dry_run(settings, value, why, why_size);
    return refuse(why, why_size, "is not a setting");
}

void settings_merge(struct settings *settings, const struct settings *from)
{
    if (!settings->policy[0])
        strcpy(settings->policy, from->policy);
    if (!settings->mode[0])
        strcpy(settings->mode, from->mode);
    if (!settings->allow[0])
        strcpy(settings->allow, from->allow);
    if (settings->max_retries < 0)
        settings->max_retries = from->max_retries;
    if (settings->dry_run < 0)
        settings->dry_run = from->dry_run;
}

bool settings_opted_in(const struct settings *settings)
{
    return settings->policy[0] && strcmp(settings->policy, "off") != 0;
}

void settings_format(const struct settings *settings, char *text, size_t size)
{
    char number[16] = "";

    if (settings->max_retries >= 0)
        snprintf(number, sizeof(number), "%d", settings->max_retries);
    snprintf(text, size, "%s%s%s%s%s%s%s%s%s", settings->policy[0] ? " policy=" : "",
             settings->policy, settings->mode[0] ? " mode=" : "", settings->mode,
             settings->allow[0] ? " allow=" : "", settings->allow, number[0] ? " max_retries=" : "",
             number,
             settings->dry_run < 0 ? "" : (settings->dry_run ? " dry_run=1" : " dry_run=0"));
    if (text[0] == ' ')
        memmove(text, text + 1, strlen(text));
}

void settings_read(struct settings *settings, const char *text)
{
    char word[64], why[128];

    while (*text) {
        size_t length = strcspn(text, " ");

        if (length > 0 && length < sizeof(word)) {
            char *value;

            memcpy(word, text, length);
            word[length] = '\0';
            value = strchr(word, '=');
            if (value) {
                *value++ = '\0';
                (void)settings_set(settings, word, value, why, sizeof(why));
            }
        }
        text += length;
        text += strspn(text, " ");
    }
}
