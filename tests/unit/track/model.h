/* SPDX-License-Identifier: MIT */
/*
 * model.h: what a tracker should say, found the slow and plain way.
 *
 * Heap addresses and pages come from small arrays with one cell each; every lifetime is kept.
 */
#ifndef MW_TEST_TRACK_MODEL_H
#define MW_TEST_TRACK_MODEL_H

#include "rig.h"

#define MODEL_CELLS   3000U /* heap addresses */
#define MODEL_PAGES   1500U
#define MODEL_STACKS  40U
#define MODEL_THREADS 6U
#define MODEL_PAGE    UINT64_C(4096)
#define MODEL_HEAP_AT UINT64_C(0x555555550010)
#define MODEL_VM_AT   UINT64_C(0x7f0000000000)
#define MODEL_BEFORE  UINT32_MAX

struct model_totals {
	struct mw_amount impacting, transient, aofi;
	uint64_t aofi_unknown;
	struct mw_track_peak peak;
};

struct model_stack {
	enum mw_kind kind;
	struct model_totals totals;
	uint64_t *lifetimes;
	size_t lifetime_count, lifetime_capacity;
};

struct model_block {
	bool live;
	uint64_t bytes, time;
	uint32_t stack, thread;
};

struct model_map {
	uint64_t time, pages;
	uint32_t stack, thread;
};

/* A call that has begun. */
struct model_call {
	enum mw_event_type begin;
	uint64_t time;
	uint32_t stack;
	struct model_block block; /* live: was known */
	uint32_t cell;            /* MODEL_CELLS: realloc of NULL */
	uint64_t unknown_bytes;
	uint32_t first, count;
	uint32_t *owners;
};

#define MODEL_NESTING 4U

struct model {
	struct model_totals kinds[MW_KIND_COUNT];
	struct model_stack stacks[MODEL_STACKS];
	struct mw_amount impacting[MODEL_THREADS], transient[MODEL_THREADS];
	struct model_block cells[MODEL_CELLS];
	uint32_t pages[MODEL_PAGES]; /* owner: 0, MODEL_BEFORE or the map's number + 1 */
	struct model_map *maps;
	uint32_t map_count, map_capacity;
	struct model_call calls[MODEL_THREADS][MODEL_NESTING];
	uint32_t depth[MODEL_THREADS];
	uint64_t missed;
};

void model_deinit(struct model *model);

/* Accounts, for both parts of the model. */
void model_add(struct model *model, uint32_t stack, uint32_t thread, uint64_t bytes, uint64_t time);
void model_release(struct model *model, uint32_t stack, uint32_t thread, uint64_t count, uint64_t bytes);
void model_lived(struct model *model, uint32_t stack, uint64_t lifetime);
void model_aofi(struct model *model, uint32_t stack, uint64_t bytes);

/* Calls that have begun; the newest comes first. model_end_call() takes it off and the caller frees owners. */
struct model_call *model_begin_call(struct model *model, const struct mw_event *event);
struct model_call model_end_call(struct model *model, uint32_t thread);

/* Take an event. Its addresses must be cells or pages, its stack one of MODEL_STACKS. */
void model_heap_event(struct model *model, const struct mw_event *event);
void model_vm_event(struct model *model, const struct mw_event *event);
void model_before(struct model *model, uint32_t first, uint32_t count);

/* Assert that the tracker says the same. */
void model_compare(struct model *model, const struct mw_track *track);

static inline uint32_t model_cell(mw_addr addr)
{
	return addr ? (uint32_t)((addr - MODEL_HEAP_AT) / 16) : MODEL_CELLS;
}

static inline mw_addr model_cell_addr(uint32_t cell)
{
	return MODEL_HEAP_AT + (mw_addr)cell * 16;
}

#endif
