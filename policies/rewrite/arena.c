/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/rewrite/rw.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256U * 1024U)

struct rw_chunk {
    struct rw_chunk *next;
    size_t used, size;
    max_align_t data[];
};

static void *take(struct rw_arena *arena, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    struct rw_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        if (arena->used_bytes + room > arena->limit_bytes)
            longjmp(*arena->bail, 1);
        chunk = malloc(sizeof(*chunk) + room);
        if (!chunk)
            longjmp(*arena->bail, 1);
        chunk->next = arena->chunks;
        chunk->used = 0;
        chunk->size = room;
        arena->chunks = chunk;
        arena->used_bytes += room;
    }
    void *memory = (char *)chunk->data + chunk->used;
    chunk->used += size;
    return memory;
}

void *rw_alloc(struct rw_arena *arena, size_t size)
{
    return memset(take(arena, size), 0, size);
}

void *rw_more(struct rw_arena *arena, void *old, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return old;
    /* Most texts have one fragment, most words give one field. */
    size_t grown = *capacity ? *capacity * 2 : size >= 32 ? 1 : 4;
    void *memory = take(arena, grown * size);
    if (count)
        memcpy(memory, old, count * size);
    *capacity = grown;
    return memory;
}

char *rw_strndup(struct rw_arena *arena, const char *text, size_t length)
{
    char *copy = rw_alloc(arena, length + 1);

    if (length)
        memcpy(copy, text, length);
    return copy;
}

char *rw_printf(struct rw_arena *arena, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = rw_alloc(arena, (size_t)(n < 0 ? 0 : n) + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, fmt, ap);
    va_end(ap);
    return text;
}

void rw_give_up(struct rw *rw, const char *why)
{
    rw->why = why;
    longjmp(*rw->arena.bail, 1);
}

void rw_arena_free(struct rw_arena *arena)
{
    while (arena->chunks) {
        struct rw_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->used_bytes = 0;
}
