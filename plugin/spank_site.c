/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments after the plugin's name in plugstack.conf. */
#include <stdio.h>
#include <string.h>

#include "spank_plugin.h"

#define DEFAULT_PREFIX "/usr/local"
#define DEFAULT_SOCKET "/run/oomretry/node.sock"

/* An absolute path that survives in a #! line and in a line of a report. */
static bool set_path(char *field, size_t size, const char *value)
{
    if (value[0] != '/' || strlen(value) >= size)
        return false;
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 127)
            return false;
    strcpy(field, value);
    return true;
}

void site_read(struct site *site, int argc, char **argv, void (*complain)(const char *text))
{
    settings_init(&site->defaults);
    strcpy(site->prefix, DEFAULT_PREFIX);
    strcpy(site->socket, DEFAULT_SOCKET);
    site->config[0] = '\0';

    for (int i = 0; i < argc; i++) {
        char key[32], why[160] = "must be an absolute path without blanks, not too long";
        const char *value = strchr(argv[i], '=');
        bool good = false;

        if (!value || (size_t)(value - argv[i]) >= sizeof(key)) {
            snprintf(why, sizeof(why), "is not of the form name=value");
        } else {
            memcpy(key, argv[i], (size_t)(value - argv[i]));
            key[value - argv[i]] = '\0';
            value++;
            if (strcmp(key, "prefix") == 0)
                good = set_path(site->prefix, sizeof(site->prefix), value);
            else if (strcmp(key, "socket") == 0)
                good = set_path(site->socket, sizeof(site->socket), value);
            else if (strcmp(key, "config") == 0)
                good = set_path(site->config, sizeof(site->config), value);
            else
                good = settings_set(&site->defaults, strcmp(key, "default") ? key : "policy", value,
                                    why, sizeof(why)) == 0;
        }
        if (!good && complain) {
            char text[512];

            snprintf(text, sizeof(text), "\"%.200s\" %s; ignored", argv[i], why);
            complain(text);
        }
    }
}
