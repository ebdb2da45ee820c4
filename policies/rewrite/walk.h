/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the walk over a syntax tree; walk.c has the overview. */
#ifndef POLICIES_REWRITE_WALK_H
#define POLICIES_REWRITE_WALK_H

#include "policies/rewrite/rw.h"

/* Any statement. `input` is what it reads from standard input, where that is known. */
void rw_walk_node(struct rw *rw, struct rw_buf *buf, uint32_t index, const struct rw_text *input);

/* The statements in a node. */
void rw_walk_children(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                      const struct rw_text *input);

/* ---- loop.c */
void rw_loop(struct rw *rw, struct rw_buf *buf, const struct rw_node *node);
void rw_repeat(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
               const struct rw_text *input);

/* ---- assign.c */
bool rw_is_token(const struct rw_buf *buf, const struct rw_node *node, const char *text);
/* End of the word that begins at a node: nodes that touch are one word. Steps *index over them. */
uint32_t rw_word_end(const struct rw_buf *buf, const struct rw_node *node, uint32_t *index);
void rw_assign(struct rw *rw, struct rw_buf *buf, const struct rw_node *node, bool opaque);
void rw_declare(struct rw *rw, struct rw_buf *buf, const struct rw_node *node);
void rw_unset(struct rw *rw, struct rw_buf *buf, const struct rw_node *node);

/* ---- pipe.c */
void rw_command(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                const struct rw_text *input);
void rw_redirected(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                   const struct rw_text *input);
void rw_pipeline(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                 const struct rw_text *input);

/* ---- branch.c */
void rw_conditional(struct rw *rw, struct rw_buf *buf, const struct rw_node *node);
void rw_selection(struct rw *rw, struct rw_buf *buf, const struct rw_node *node);
void rw_list(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
             const struct rw_text *input);

/* ---- cond.c */
/* A test whose words the script itself settles: 1 true, 0 false; -1 anything else. */
int rw_condition(struct rw *rw, const struct rw_buf *buf, const struct rw_node *node);

#endif
