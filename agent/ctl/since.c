/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/since.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/db.h"

int64_t since_parse(struct argp_state *state, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    struct tm day = {.tm_isdst = -1};

    if (end > text && value >= 0 && end[0] && !end[1] && strchr("smhdw", *end)) {
        static const double seconds[] = {1, 60, 3600, 86400, 604800};
        return db_now_ms() - (int64_t)(value * 1000 * seconds[strchr("smhdw", *end) - "smhdw"]);
    }
    const char *rest = strptime(text, "%Y-%m-%d", &day);
    if (!rest || (*rest && *rest != 'T'))
        argp_error(state,
                   "--since takes 90s, 30m, 2h, 3d, 1w or a date such as 2026-11-29, "
                   "not \"%s\"",
                   text);
    return (int64_t)mktime(&day) * 1000;
}
