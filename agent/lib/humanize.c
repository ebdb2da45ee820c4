/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/humanize.h"

#include <stdio.h>
#include <time.h>

void humanize_bytes(int64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    /* What would print as 1024.00 of a unit is 1.00 of the next. */
    while (value >= 1023.995 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(out, size, "%lld bytes", (long long)bytes);
    else
        snprintf(out, size, "%.2f %s", value, units[unit]);
}

void humanize_duration(int64_t ms, char *out, size_t size)
{
    int64_t s = ms / 1000;

    if (ms < 0)
        snprintf(out, size, "?");
    else if (s < 10)
        snprintf(out, size, "%.1fs", (double)ms / 1000);
    else if (s < 60)
        snprintf(out, size, "%llds", (long long)s);
    else if (s < 3600)
        snprintf(out, size, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
    else
        snprintf(out, size, "%lldh%02lldm", (long long)(s / 3600), (long long)(s % 3600 / 60));
}

void humanize_when(int64_t at_ms, int64_t now_ms, char *out, size_t size)
{
    time_t at = (time_t)(at_ms / 1000), now = (time_t)(now_ms / 1000);
    struct tm then, today;
    char clock[16];

    localtime_r(&at, &then);
    localtime_r(&now, &today);
    strftime(clock, sizeof(clock), "%H:%M", &then);
    if (then.tm_year == today.tm_year && then.tm_yday == today.tm_yday)
        snprintf(out, size, "today %s", clock);
    else if (now - at < 7 * 24 * 3600 && now >= at)
        strftime(out, size, "%a %H:%M", &then);
    else
        strftime(out, size, "%Y-%m-%d", &then);
}

void humanize_iso(int64_t at_ms, char *out, size_t size)
{
    time_t at = (time_t)(at_ms / 1000);
    struct tm utc;

    gmtime_r(&at, &utc);
    strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
