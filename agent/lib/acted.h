/* SPDX-License-Identifier: Apache-2.0
 *
 * What has been done about starting a decided attempt: words that people read in `oomctl explain`,
 * and that tell the agent whether the deed is done. */
#ifndef AGENT_LIB_ACTED_H
#define AGENT_LIB_ACTED_H

#include <stdbool.h>
#include <string.h>

#define ACTED_QUEUED    "queued again"
#define ACTED_SUBMITTED "submitted as job "
#define ACTED_ONCE_MORE ", because the launch before had failed"
#define ACTED_FORGOTTEN ", because the scheduler had forgotten the job before"

static inline bool acted_is_queued(const char *acted)
{
    return strncmp(acted, ACTED_QUEUED, strlen(ACTED_QUEUED)) == 0;
}

static inline bool acted_is_submitted(const char *acted)
{
    return strncmp(acted, ACTED_SUBMITTED, strlen(ACTED_SUBMITTED)) == 0;
}

/* It remains to be seen that the attempt begins. */
static inline bool acted_is_done(const char *acted)
{
    return acted_is_queued(acted) || acted_is_submitted(acted);
}

/* A second launch was tried: there is no third. */
static inline bool acted_once_more(const char *acted)
{
    return strstr(acted, ACTED_ONCE_MORE) || strstr(acted, ACTED_FORGOTTEN);
}

#endif
