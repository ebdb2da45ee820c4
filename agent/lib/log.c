/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level threshold = LOG_NOTICE;

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    char line[2048];
    va_list ap;

    if (level > threshold)
        return;
    int used = snprintf(line, sizeof(line), "oomagent: %s", names[level]);
    va_start(ap, fmt);
    vsnprintf(line + used, sizeof(line) - (size_t)used - 1, fmt, ap);
    va_end(ap);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    strcat(line, "\n");
    if (write(2, line, strlen(line)) < 0)
        return;
}
