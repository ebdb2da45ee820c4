/* SPDX-License-Identifier: Apache-2.0
 *
 * A YAML or JSON text as a tree whose nodes know the bytes they were written as, so that one value
 * can be changed and every other byte stays. Only the first document of a stream is read. Pure. */
#ifndef POLICIES_CONFTREE_H
#define POLICIES_CONFTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomretry/error.h"

enum conf_kind { CONF_SCALAR, CONF_MAP, CONF_LIST, CONF_ALIAS };

struct conf_node {
    enum conf_kind kind;
    char style;       /* '\'', '"' or '|' of a scalar, '{' of a flow collection; 0: plain, block */
    bool tagged;      /* "!include", "!!int" */
    uint32_t from;    /* where its anchor or tag begins, or its own text */
    uint32_t start;   /* of its own text */
    uint32_t end;     /* behind it; of a block collection: behind its last child */
    uint32_t line;    /* from 1 */
    uint32_t parent;  /* 0: the document */
    uint32_t key;     /* in a map: the node that names it; 0 elsewhere */
    uint32_t next;    /* sibling */
    uint32_t first;   /* child: of a map the values, each with its key */
    uint32_t last;    /* child */
    uint32_t target;  /* of an alias; 0: unknown */
    const char *name; /* of an anchor or alias; NULL: none */
    const char *text; /* a scalar's value, NUL-terminated */
    size_t length;    /* of text */
};

struct conf_tree {
    const char *bytes; /* the caller's */
    uint32_t length;
    bool json;
    struct conf_node *nodes; /* [0] is no node */
    size_t count, capacity;
    char **strings;
    size_t string_count, string_capacity;
    uint32_t root; /* 0: an empty document */
};

/* Longer files are not read. */
#define CONF_MAX_BYTES (4U << 20)

/* -1 and err (naming line and column) when the text does not parse; what was read before that place
 * stays in the tree, which is to be freed in any case. */
int conf_tree_read(struct conf_tree *tree, const char *name, const char *bytes, size_t length,
                   bool json, struct oom_error *err);
void conf_tree_free(struct conf_tree *tree);

/* Through aliases to what they stand for; 0 when that is not known. */
uint32_t conf_deref(const struct conf_tree *tree, uint32_t node);
bool conf_is_null(const struct conf_node *node);
/* "<<" with a map, an alias or a list of them behind it. */
bool conf_is_merge(const struct conf_tree *tree, uint32_t value);
/* The child of a map that counts: of two the last one, and its own before merged ones. `own` false
 * looks into merges as well. 0: none. `length` is the key's. */
uint32_t conf_child(const struct conf_tree *tree, uint32_t map, const char *key, size_t length,
                    bool own);
/* The same for the key that begins a dotted path; *rest is what is left of the path ("": nothing).
 * A key may have dots of its own. */
uint32_t conf_step(const struct conf_tree *tree, uint32_t map, const char *path, bool own,
                   const char **rest);
/* What a path stands for, through aliases and merges; 0: nothing. */
uint32_t conf_at(const struct conf_tree *tree, const char *path);
/* Entry number N of a list for a path "N.rest"; 0: there is none. */
uint32_t conf_item(const struct conf_tree *tree, uint32_t list, const char *path,
                   const char **rest);

/* ---- conftree_build.c: for the readers */
struct conf_level {
    uint32_t node;
    uint32_t key; /* of the value that comes next */
};

#define CONF_MAX_DEPTH 64

struct conf_builder {
    struct conf_tree *tree;
    struct conf_level levels[CONF_MAX_DEPTH];
    size_t depth;
};

/* Copies what is to live as long as the tree; NULL when out of memory. */
const char *conf_keep(struct conf_tree *tree, const char *text, size_t length);
/* Puts a node where the text has it; collections are then open. -1: too many, or too deep. */
int conf_add(struct conf_builder *builder, const struct conf_node *node);
/* The innermost collection ends; `end` is where a flow collection's bracket was closed. */
void conf_close(struct conf_builder *builder, uint32_t end);

/* ---- conftree_json.c */
int conf_read_json(struct conf_builder *builder, const char *name, struct oom_error *err);

#endif
