/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of confedit: where in the text an edit goes. */
#ifndef POLICIES_CONFEDIT_PLACE_H
#define POLICIES_CONFEDIT_PLACE_H

#include "policies/confedit.h"
#include "policies/conftree.h"

struct conf_change {
    uint32_t start, end;
    char *text; /* malloc'd; NULL: nothing */
};

#define CONF_MAX_CHANGES 64 /* a key that is given more often than that is not taken away */

struct conf_changes {
    const struct conf_tree *tree;
    const char *name; /* of the file */
    const char *raw;  /* the value as it is to be written; NULL: made from the edit */
    struct conf_change items[CONF_MAX_CHANGES];
    size_t count;
    struct oom_error *err;
};

/* The changes of bytes for one edit; none when it is so already. -1 and err: no place. */
int conf_place(struct conf_changes *changes, const struct oom_confedit *edit);
/* confedit_remove.c: the same for one that takes a key away. */
int conf_place_removal(struct conf_changes *changes, const struct oom_confedit *edit);

/* Takes `text` over. NULL text where there should be some is "out of memory". */
int conf_change(struct conf_changes *changes, uint32_t start, uint32_t end, char *text);
int conf_refuse(const struct conf_changes *changes, uint32_t node, const char *path,
                const char *why);

/* Behind the value, or its key where it has none. */
uint32_t conf_pair_end(const struct conf_tree *tree, uint32_t value);
/* Behind the ':' that follows the key; 0 when another thing follows. */
uint32_t conf_behind_colon(const struct conf_tree *tree, uint32_t value);
/* Behind the line that has the byte at `at`, with its line end. */
uint32_t conf_line_end(const struct conf_tree *tree, uint32_t at);

#endif
