/* SPDX-License-Identifier: MIT */
/* arena.h: the memory of one report, freed as a whole; equal strings are kept once. */
#ifndef MW_VIEW_ARENA_H
#define MW_VIEW_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct mw_arena;

/* A new arena, or NULL without memory. */
struct mw_arena *mw_arena_create(void);
/* Free it and all that was made in it; NULL is fine. */
void mw_arena_destroy(struct mw_arena *arena);

/* A zeroed array that lives as long as the arena; NULL without memory. An array of none is not NULL. */
void *mw_arena_array(struct mw_arena *arena, size_t count, size_t size);
/*
 * A copy of `text` that lives as long as the arena: the same pointer for the same text, so copies
 * are compared by pointer. NULL stays NULL. Without memory it is NULL too, and mw_arena_failed()
 * says so: callers ask once, at the end.
 */
const char *mw_arena_string(struct mw_arena *arena, const char *text);
/* Has a string been refused for want of memory? */
bool mw_arena_failed(const struct mw_arena *arena);

#endif
