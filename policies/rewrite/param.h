/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameter expansion; param.c reads its syntax. */
#ifndef POLICIES_REWRITE_PARAM_H
#define POLICIES_REWRITE_PARAM_H

#include "policies/rewrite/rw.h"

/* What a name stands for. */
struct rw_found {
    enum { RW_FOUND_UNSET, RW_FOUND_KNOWN, RW_FOUND_OPAQUE } state;
    bool from_script; /* assigned by the script, so that the environment does not matter */
    bool list, loop;
    const struct rw_field *items;
    size_t count;
};

/* ---- param_value.c */
bool rw_name_start(char c);
void rw_find_name(struct rw *rw, const char *name, size_t length, const struct rw_site *site,
                  struct rw_found *out);
/* Puts fields [from, to) of a value; `each` keeps array elements apart ("${A[@]}"), else the first
 * byte of `between` joins them. */
void rw_put_items(struct rw *rw, struct rw_sink *sink, const struct rw_site *site, const char *name,
                  const struct rw_found *found, size_t from, size_t to, bool each,
                  const char *between);
/* The value itself, or the element that `index` names. */
void rw_put_value(struct rw *rw, struct rw_sink *sink, const struct rw_site *site, const char *name,
                  const struct rw_found *found, const char *index);

/* ---- param_change.c */
/* What follows the name (and index) in "${…}" when it is not a conditional. */
void rw_put_transformed(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                        const char *name, const struct rw_found *found, const char *index,
                        uint32_t at, uint32_t end);

#endif
