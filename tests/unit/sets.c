/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sets.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

struct oom_signatures *sets_shipped(void)
{
    struct oom_signatures *set = oom_signatures_new();
    struct oom_error err = {""};
    DIR *dir = opendir("policies/signatures");

    assert_non_null(set);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[512];
        json_error_t why;
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof(path), "policies/signatures/%s", entry->d_name);
        json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
        if (!document)
            fail_msg("%s:%d: %s", path, why.line, why.text);
        if (oom_signatures_add(set, document, path, &err))
            fail_msg("%s", err.text);
        json_decref(document);
    }
    closedir(dir);
    if (oom_signatures_compile(set, &err))
        fail_msg("%s", err.text);
    return set;
}
