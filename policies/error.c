/* SPDX-License-Identifier: Apache-2.0 */
#include "oomretry/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int oom_errorf(struct oom_error *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    if (err) {
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
    }
    errno = saved;
    return -1;
}

int oom_error_prefix(struct oom_error *err, const char *fmt, ...)
{
    int saved = errno;
    char old[sizeof(err->text)];
    va_list ap;

    if (err) {
        memcpy(old, err->text, sizeof(old));
        va_start(ap, fmt);
        int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof(err->text))
            snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old);
    }
    errno = saved;
    return -1;
}
