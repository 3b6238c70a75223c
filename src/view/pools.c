// SPDX-License-Identifier: MIT
/* pools.c: see pools.h. */
#include "view/pools.h"

#include "alloc/pools.h"
#include "base/cleanup.h"
#include "base/function_name.h"
#include "base/vector.h"
#include "view/suspects.h"

#include <stdlib.h>
#include <string.h>

#define NEAR        12u    /* frames from the allocation: further out nobody is the pool */
#define MOST        4096u  /* blocks of a stack that are read … */
#define MOST_IN_ALL 65536u /* … and of all */
#define USERS       64u    /* of a stack; all others count as one */
#define TOLD        256u   /* users of a suspect */
#define LEVELS      8      /* of a path */

/* By the functions up to the innermost that is no wrapper. */
static const struct mw_pool *pool_of(const struct mw_report_stack *stack)
{
	for (size_t i = 0; i < stack->frame_count && i < NEAR; i++) {
		const char *function = stack->frames[i].function;

		for (const struct mw_pool *pool = mw_pool_rows; function && pool->name; pool++)
			if (mw_function_is_of(pool->functions, function))
				return pool->maps && stack->kind == MW_KIND_HEAP ? NULL : pool;
		if (function && !mw_suspects_is_wrapper(function))
			return NULL;
	}
	return NULL;
}

/* --- what a stack says ------------------------------------------------------------------------------------------- */

/* Room for `count` users. */
static struct mw_error *make(struct mw_arena *arena, const char *name, const char *hint, size_t count,
			     struct mw_report_pool **out)
{
	struct mw_report_pool *pool = mw_arena_array(arena, 1, sizeof(*pool));

	if (!pool)
		return mw_error_nomem();
	pool->name = mw_arena_string(arena, name);
	pool->hint = hint;
	pool->users = mw_arena_array(arena, count, sizeof(*pool->users));
	if (!pool->users)
		return mw_error_nomem();
	*out = pool;
	return NULL;
}

static void add_others(struct mw_report_pool *pool, struct mw_amount blocks)
{
	mw_amount_add(&pool->looked, blocks);
	mw_amount_add(&pool->others, blocks);
}

/* Texts are the arena's, so that equal ones are one pointer. */
static void add(struct mw_report_pool *pool, const struct mw_report_pool_user *user)
{
	size_t i = 0;

	while (i < pool->user_count && (pool->users[i].name != user->name || pool->users[i].path != user->path))
		i++;
	if (i == TOLD) {
		add_others(pool, user->blocks);
		return;
	}
	mw_amount_add(&pool->looked, user->blocks);
	if (i < pool->user_count)
		mw_amount_add(&pool->users[i].blocks, user->blocks);
	else
		pool->users[pool->user_count++] = *user;
	pool->hint = NULL;
}

/* The largest first. */
static int by_bytes(const void *a, const void *b)
{
	const struct mw_report_pool_user *x = a, *y = b;

	if (x->blocks.bytes != y->blocks.bytes)
		return x->blocks.bytes > y->blocks.bytes ? -1 : 1;
	return strcmp(x->name, y->name) != 0 ? strcmp(x->name, y->name) : strcmp(x->path, y->path);
}

static void sort(struct mw_report_pool *pool)
{
	qsort(pool->users, pool->user_count, sizeof(*pool->users), by_bytes);
}

/* --- from the process -------------------------------------------------------------------------------------------- */

/* Blocks of a stack, by users; others are not known, or one of many. */
struct counted {
	const struct mw_pool *pool;
	uint64_t seen, every;
	struct {
		const struct mw_pool_user *user;
		struct mw_amount blocks;
	} users[USERS];
	size_t user_count;
	struct mw_amount others;
};

struct walk {
	struct mw_pools *pools;
	struct counted **counted; /* by the report's stacks; NULL: of no pool */
	uint32_t looked;
};

static void visit(void *context, uint32_t group, const struct mw_track_block *block, bool first)
{
	struct walk *walk = context;
	struct counted *counted = walk->counted[group];
	struct mw_amount amount = {1 + block->others, (1 + block->others) * block->bytes};
	const struct mw_pool_user *user;
	size_t i = 0;

	(void)first;
	if (!counted || !counted->pool->user || block->settled || counted->seen++ % counted->every ||
	    walk->looked >= MOST_IN_ALL)
		return;
	walk->looked++;
	user = mw_pool_user_of(counted->pool, walk->pools, block->addr, block->size, 0);
	while (i < counted->user_count && counted->users[i].user != user)
		i++;
	if (user && i == counted->user_count && i < USERS)
		counted->users[counted->user_count++].user = user;
	mw_amount_add(user && i < USERS ? &counted->users[i].blocks : &counted->others, amount);
}

/* "TopMemoryContext > PortalContext": of what it is part of. */
static const char *path_of(const struct mw_pool_user *user, struct mw_arena *arena)
{
	const struct mw_pool_user *levels[LEVELS];
	char text[LEVELS * (MW_POOL_NAME_MAX + 4) + 8] = "";
	size_t count = 0;

	for (; user->part_of && count < LEVELS; user = user->part_of)
		levels[count++] = user->part_of;
	if (user->part_of)
		strcpy(text, "... > ");
	while (count--) {
		strcat(text, levels[count]->name);
		strcat(text, count ? " > " : "");
	}
	return mw_arena_string(arena, text);
}

static struct mw_error *tell(const struct counted *counted, struct mw_arena *arena, struct mw_report_stack *stack)
{
	struct mw_report_pool *pool = NULL;

	MW_TRY(make(arena, counted->pool->name, counted->pool->hint, counted->user_count, &pool));
	for (size_t i = 0; i < counted->user_count; i++) {
		const struct mw_pool_user *user = counted->users[i].user;

		add(pool,
		    &(struct mw_report_pool_user){mw_arena_string(arena, user->name), path_of(user, arena),
						  mw_arena_string(arena, user->example), counted->users[i].blocks});
	}
	add_others(pool, counted->others);
	sort(pool);
	stack->pool = pool;
	return NULL;
}

static struct mw_error *ask(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
			    const uint32_t *group_of, bool whole, struct walk *walk)
{
	struct mw_error *err = NULL;

	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		const struct mw_pool *pool = stack->impacting.count ? pool_of(stack) : NULL;

		if (!pool || (pool->user && !whole))
			continue;
		walk->counted[i] = calloc(1, sizeof(*walk->counted[i]));
		if (!walk->counted[i])
			return mw_error_nomem();
		walk->counted[i]->pool = pool;
		walk->counted[i]->every = (stack->impacting.count + MOST - 1) / MOST;
	}
	if (walk->pools)
		mw_view_each_block(input->track, group_of, visit, walk);
	for (size_t i = 0; i < report->stack_count && !err; i++)
		err = walk->counted[i] ? tell(walk->counted[i], arena, &report->stacks[i]) : NULL;
	return err;
}

/* --- from a recording -------------------------------------------------------------------------------------------- */

static int by_stack(const void *a, const void *b)
{
	const struct mw_stored_pool *const *x = a, *const *y = b;

	return (*x)->stack < (*y)->stack ? -1 : (*x)->stack > (*y)->stack;
}

/* Those of one stack. */
static struct mw_error *take(const struct mw_stored_pool *const *stored, size_t count, struct mw_arena *arena,
			     struct mw_report_stack *stack)
{
	struct mw_report_pool *pool = NULL;

	MW_TRY(make(arena, stored[0]->pool, stack->pool ? stack->pool->hint : NULL, count, &pool));
	for (size_t i = 0; i < count; i++) {
		if (*stored[i]->name)
			add(pool, &(struct mw_report_pool_user){mw_arena_string(arena, stored[i]->name),
								mw_arena_string(arena, stored[i]->path),
								mw_arena_string(arena, stored[i]->example),
								stored[i]->blocks});
		else
			add_others(pool, stored[i]->blocks);
	}
	sort(pool);
	stack->pool = pool;
	return NULL;
}

static struct mw_error *find(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report)
{
	size_t count = input->stored_pools_count;
	MW_FREE const struct mw_stored_pool **sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		sorted[i] = &input->stored_pools[i];
	qsort(sorted, count, sizeof(*sorted), by_stack);
	for (size_t i = 0; i < report->stack_count; i++) {
		uint64_t stack = strtoull(report->stacks[i].id, NULL, 16);
		size_t low = 0, high = count, end;

		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (sorted[middle]->stack < stack)
				low = middle + 1;
			else
				high = middle;
		}
		for (end = low; end < count && end - low <= USERS && sorted[end]->stack == stack; end++)
			;
		if (end > low)
			MW_TRY(take(&sorted[low], end - low, arena, &report->stacks[i]));
	}
	return NULL;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

struct mw_error *mw_view_pools(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
			       const uint32_t *group_of)
{
	bool whole = !input->from_ns && (!input->to_ns || !input->window || input->to_ns >= input->window->length_ns);
	MW_FREE struct counted **counted = calloc(report->stack_count + 1, sizeof(*counted));
	struct walk walk = {.counted = counted};
	struct mw_error *err = NULL;

	if (!counted)
		return mw_error_nomem();
	if (whole && input->pools)
		err = mw_pools_create(input->pools, &walk.pools);
	if (!err)
		err = ask(input, arena, report, group_of, whole, &walk);
	for (size_t i = 0; i < report->stack_count; i++)
		free(counted[i]);
	mw_pools_destroy(walk.pools);
	if (!err && whole && !input->pools)
		err = find(input, arena, report);
	return err;
}

struct mw_error *mw_view_pools_merge(struct mw_arena *arena, struct mw_report *report)
{
	MW_EACH_MUTABLE(suspect, report->suspects, report->suspect_count) {
		const struct mw_report_pool *first = NULL;
		struct mw_report_pool *pool = NULL;
		size_t users = 0;

		for (size_t i = 0; i < suspect->stack_count; i++) {
			const struct mw_report_pool *of = report->stacks[suspect->stacks[i]].pool;

			first = first ? first : of;
			users += of ? of->user_count : 0;
		}
		if (!first)
			continue;
		MW_TRY(make(arena, first->name, first->hint, users, &pool));
		for (size_t i = 0; i < suspect->stack_count; i++) {
			const struct mw_report_pool *of = report->stacks[suspect->stacks[i]].pool;

			if (!of || of->name != first->name)
				continue;
			MW_EACH(user, of->users, of->user_count)
				add(pool, user);
			add_others(pool, of->others);
		}
		sort(pool);
		suspect->pool = pool;
	}
	return NULL;
}
