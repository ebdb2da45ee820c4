/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/period.h"

#include <stdlib.h>

#include "agent/lib/jsonget.h"

json_t *period_rows(struct service *service, const struct service_request *request,
                    struct oom_error *err, const char *sql)
{
    int64_t since_ms = atoll(json_get_string(request->query, "since_ms", "0"));

    return db_rows(service->db,
                   db_query(service->db, err, sql, "iii", (int64_t)request->admin,
                            (int64_t)request->uid, since_ms),
                   err);
}
