// SPDX-License-Identifier: MIT
/* heap_diff.c: see heap_diff.h. Texts are interned, so that they are compared by pointer. */
#include "view/heap_diff.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/vector.h"
#include "view/arena.h"
#include "view/diff.h"

#include <stdlib.h>
#include <string.h>

/* --- items that both looks may have ---------------------------------------------------------------------------------- */

#define KEY_WORDS 4

/* What tells an item from others: pointers to interned texts, and numbers. */
struct key {
	uint64_t words[KEY_WORDS];
};

struct keys {
	struct key *items; /* by number */
	size_t capacity;
	struct mw_index index;
};

static uint32_t hash_of(const void *context, uint32_t number)
{
	const struct key *key = &((const struct key *)context)[number];
	uint64_t hash = 0;

	for (unsigned i = 0; i < KEY_WORDS; i++)
		hash = mw_hash_add(hash, key->words[i]);
	return (uint32_t)mw_hash_mix(hash);
}

static bool is_same(const struct key *key, const struct key *other)
{
	for (unsigned i = 0; i < KEY_WORDS; i++)
		if (key->words[i] != other->words[i])
			return false;
	return true;
}

static void keys_deinit(struct keys *keys)
{
	free(keys->items);
	mw_index_deinit(&keys->index);
}

/* Its number; *fresh: it is a new one. Errors: MEMORY. */
static struct mw_error *number_of(struct keys *keys, const struct key *key, uint32_t *out, bool *fresh)
{
	uint32_t hash = hash_of(key, 0), number;

	*fresh = false;
	MW_INDEX_EACH(&keys->index, hash, number) {
		if (is_same(&keys->items[number], key)) {
			*out = number;
			return NULL;
		}
	}
	if (!mw_index_reserve(&keys->index, hash_of, keys->items) ||
	    !MW_VECTOR_ROOM(keys->items, keys->index.count, keys->capacity))
		return mw_error_nomem();
	*fresh = true;
	*out = mw_index_put(&keys->index, hash);
	keys->items[*out] = *key;
	return NULL;
}

static uint64_t word_of(const void *text)
{
	return (uintptr_t)text;
}

/* The larger growth first; sizes are any numbers of 64 bits. */
static int by_growth(uint64_t from, uint64_t to, uint64_t other_from, uint64_t other_to)
{
	bool grown = to >= from, other_grown = other_to >= other_from;
	uint64_t by = grown ? to - from : from - to,
		 other = other_grown ? other_to - other_from : other_from - other_to;

	if (grown != other_grown)
		return grown ? -1 : 1;
	if (by == other)
		return 0;
	return (by > other) == grown ? -1 : 1;
}

static int by_growth_of(const struct mw_amount held[MW_DIFF_SIDES], const struct mw_amount other[MW_DIFF_SIDES])
{
	int order = by_growth(held[MW_DIFF_OLD].bytes, held[MW_DIFF_NEW].bytes, other[MW_DIFF_OLD].bytes,
			      other[MW_DIFF_NEW].bytes);

	if (!order)
		order = by_growth(held[MW_DIFF_OLD].count, held[MW_DIFF_NEW].count, other[MW_DIFF_OLD].count,
				  other[MW_DIFF_NEW].count);
	if (!order && held[MW_DIFF_NEW].bytes != other[MW_DIFF_NEW].bytes)
		order = held[MW_DIFF_NEW].bytes > other[MW_DIFF_NEW].bytes ? -1 : 1;
	return order;
}

/* NULL comes last. */
static int by_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a == NULL) - (b == NULL);
	return strcmp(a, b);
}

/* --- the account ----------------------------------------------------------------------------------------------------- */

static int compare_lines(const void *a, const void *b)
{
	const struct mw_heap_diff_line *x = a, *y = b;
	int order = by_growth(x->held[MW_DIFF_OLD], x->held[MW_DIFF_NEW], y->held[MW_DIFF_OLD], y->held[MW_DIFF_NEW]);

	if (!order && x->held[MW_DIFF_NEW] != y->held[MW_DIFF_NEW])
		order = x->held[MW_DIFF_NEW] > y->held[MW_DIFF_NEW] ? -1 : 1;
	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->detail, y->detail);
}

static struct mw_error *compare_accounts(struct mw_heap_diff *diff, struct keys *keys)
{
	struct mw_arena *arena = diff->arena;

	diff->lines = mw_arena_array(arena, diff->looks[MW_DIFF_OLD]->line_count + diff->looks[MW_DIFF_NEW]->line_count,
				     sizeof(*diff->lines));
	if (!diff->lines)
		return mw_error_nomem();
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
		MW_EACH(line, diff->looks[side]->lines, diff->looks[side]->line_count) {
			const char *name = mw_arena_string(arena, line->name),
				   *detail = mw_arena_string(arena, line->detail);
			const struct key key = {{word_of(name), word_of(detail)}};
			uint32_t number = 0;
			bool fresh;

			if (!name || !detail)
				return mw_error_nomem();
			MW_TRY(number_of(keys, &key, &number, &fresh));
			diff->lines[number].name = name;
			diff->lines[number].detail = detail;
			diff->lines[number].held[side] += line->bytes;
			diff->lines[number].swapped[side] += line->swapped;
		}
	}
	diff->line_count = keys->index.count;
	qsort(diff->lines, diff->line_count, sizeof(*diff->lines), compare_lines);
	return NULL;
}

/* --- groups ---------------------------------------------------------------------------------------------------------- */

static int compare_groups(const void *a, const void *b)
{
	const struct mw_heap_diff_group *x = a, *y = b;
	int order = by_growth_of(x->held, y->held);

	if (!order)
		order = by_text(x->class_name, y->class_name);
	if (!order && x->size != y->size)
		order = x->size < y->size ? -1 : 1;
	return order ? order : by_text(x->arena, y->arena);
}

/* Of a group what both looks tell apart. */
static struct mw_error *fit_group(const struct mw_heap_diff *diff, const struct mw_heap_group *group,
				  struct mw_heap_diff_group *out)
{
	struct mw_arena *arena = diff->arena;
	bool one_arena = diff->by & MW_HEAP_BY_ARENA;
	/* Where blocks are not told apart by arenas the allocator is known if there is only one. */
	bool one_allocator =
		one_arena || !((diff->looks[MW_DIFF_OLD]->by | diff->looks[MW_DIFF_NEW]->by) & MW_HEAP_BY_ARENA);

	*out = (struct mw_heap_diff_group){
		.class_name = diff->by & MW_HEAP_BY_CLASS ? mw_arena_string(arena, group->class_name) : NULL,
		.size = diff->by & MW_HEAP_BY_SIZE ? group->size : MW_SIZE_UNKNOWN,
		.allocator = one_allocator ? mw_arena_string(arena, group->allocator) : NULL,
		.arena = one_arena ? mw_arena_string(arena, group->arena) : NULL,
	};
	return mw_arena_failed(arena) ? mw_error_nomem() : NULL;
}

static struct mw_error *add_group(struct mw_heap_diff *diff, struct keys *keys, const struct mw_heap_group *group,
				  enum mw_diff_side side)
{
	struct mw_heap_diff_group fit, *to;
	uint32_t number = 0;
	bool fresh;

	MW_TRY(fit_group(diff, group, &fit));
	MW_TRY(number_of(
		keys,
		&(const struct key){{word_of(fit.class_name), fit.size, word_of(fit.allocator), word_of(fit.arena)}},
		&number, &fresh));
	to = &diff->groups[number];
	if (fresh)
		*to = fit;
	mw_amount_add(&to->held[side], group->blocks);
	if (group->verdict == MW_REACH_DEFINITE || group->verdict == MW_REACH_INDIRECT)
		mw_amount_add(&to->lost[side], group->blocks);
	if (group->holder_count && !to->holder_count) {
		to->holder = (const char *const *)group->holder;
		to->holder_count = group->holder_count;
	}
	return NULL;
}

static struct mw_error *compare_blocks(struct mw_heap_diff *diff, struct keys *keys)
{
	diff->groups = mw_arena_array(diff->arena,
				      diff->looks[MW_DIFF_OLD]->group_count + diff->looks[MW_DIFF_NEW]->group_count,
				      sizeof(*diff->groups));
	if (!diff->groups)
		return mw_error_nomem();
	/* The newer look's first: how its blocks are held is what is shown. */
	for (unsigned i = MW_DIFF_SIDES; i-- > 0;)
		MW_EACH(group, diff->looks[i]->groups, diff->looks[i]->group_count)
			MW_TRY(add_group(diff, keys, group, (enum mw_diff_side)i));
	diff->group_count = keys->index.count;
	qsort(diff->groups, diff->group_count, sizeof(*diff->groups), compare_groups);
	return NULL;
}

/* --- holders --------------------------------------------------------------------------------------------------------- */

#define NO_PARENT UINT32_MAX
#define MOST_DEEP 256u /* deeper ones are left out: nobody reads such a path */

/* One is known by its name, and by who holds it. */
struct held {
	uint32_t parent;
	const char *name;
	struct mw_amount retained[MW_DIFF_SIDES];
	size_t depth; /* names up to the root, its own included */
};

static int compare_holders(const void *a, const void *b)
{
	const struct mw_heap_diff_holder *x = a, *y = b;
	int order = by_growth_of(x->retained, y->retained);

	for (size_t i = 0; !order && i < x->depth && i < y->depth; i++)
		order = strcmp(x->path[i], y->path[i]);
	return order ? order : (x->depth > y->depth) - (x->depth < y->depth);
}

static struct mw_error *add_holders(struct mw_heap_diff *diff, struct keys *keys, struct held *held,
				    enum mw_diff_side side)
{
	uint32_t above[MOST_DEEP] = {0}; /* numbers, from the root down */
	size_t known = 0;

	MW_EACH(holder, diff->looks[side]->holders, diff->looks[side]->holder_count) {
		const char *name = mw_arena_string(diff->arena, holder->name);
		uint32_t parent, number = 0;
		bool fresh;

		if (!name)
			return mw_error_nomem();
		/* What is deeper than its predecessor by more than one is no tree. */
		if (holder->depth >= MOST_DEEP || holder->depth > known)
			continue;
		parent = holder->depth ? above[holder->depth - 1] : NO_PARENT;
		MW_TRY(number_of(keys, &(const struct key){{parent, word_of(name)}}, &number, &fresh));
		if (fresh)
			held[number] = (struct held){.parent = parent, .name = name, .depth = holder->depth + 1u};
		mw_amount_add(&held[number].retained[side], holder->retained);
		above[holder->depth] = number;
		known = holder->depth + 1u;
	}
	return NULL;
}

static struct mw_error *name_holder(struct mw_heap_diff *diff, const struct held *held, uint32_t number)
{
	struct mw_heap_diff_holder *out = &diff->holders[diff->holder_count++];

	out->depth = held[number].depth;
	memcpy(out->retained, held[number].retained, sizeof(out->retained));
	out->path = mw_arena_array(diff->arena, out->depth, sizeof(*out->path));
	if (!out->path)
		return mw_error_nomem();
	for (size_t i = out->depth; i-- > 0; number = held[number].parent)
		out->path[i] = held[number].name;
	return NULL;
}

static struct mw_error *compare_all_holders(struct mw_heap_diff *diff, struct keys *keys)
{
	size_t most = diff->looks[MW_DIFF_OLD]->holder_count + diff->looks[MW_DIFF_NEW]->holder_count;
	struct held *held;

	if (!diff->looks[MW_DIFF_OLD]->holder_count || !diff->looks[MW_DIFF_NEW]->holder_count)
		return NULL;
	held = mw_arena_array(diff->arena, most, sizeof(*held));
	diff->holders = mw_arena_array(diff->arena, most, sizeof(*diff->holders));
	if (!held || !diff->holders)
		return mw_error_nomem();
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++)
		MW_TRY(add_holders(diff, keys, held, (enum mw_diff_side)side));
	/* Names of those that are as they were would be many, and nobody asks for them. */
	for (uint32_t i = 0; i < keys->index.count; i++)
		if (memcmp(&held[i].retained[MW_DIFF_OLD], &held[i].retained[MW_DIFF_NEW],
			   sizeof(held[i].retained[0])) != 0)
			MW_TRY(name_holder(diff, held, i));
	qsort(diff->holders, diff->holder_count, sizeof(*diff->holders), compare_holders);
	return NULL;
}

/* --- which processes ------------------------------------------------------------------------------------------------- */

static enum mw_heap_diff_process compare_processes(const struct mw_heap_report *old, const struct mw_heap_report *new)
{
	if (*old->boot_id && *new->boot_id && strcmp(old->boot_id, new->boot_id) != 0)
		return MW_HEAP_DIFF_BOOT;
	if (old->pid != new->pid || (old->start_ticks && new->start_ticks && old->start_ticks != new->start_ticks))
		return MW_HEAP_DIFF_OTHER;
	return *old->boot_id && *new->boot_id && old->start_ticks &&new->start_ticks ? MW_HEAP_DIFF_ONE
										     : MW_HEAP_DIFF_UNKNOWN;
}

static struct mw_error *check_order(const struct mw_heap_diff *diff)
{
	if (diff->process != MW_HEAP_DIFF_ONE || diff->seconds > 0)
		return NULL;
	if (diff->seconds < 0)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "'%.200s' is later than '%.200s'",
						     diff->files[MW_DIFF_OLD], diff->files[MW_DIFF_NEW]),
				     "Give the earlier look first");
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "'%.200s' and '%.200s' are the same look",
					     diff->files[MW_DIFF_OLD], diff->files[MW_DIFF_NEW]),
			     "Look again, by memwatch heap -p PID -o FILE, and compare with that");
}

static struct mw_error *compare(struct mw_heap_diff *diff)
{
	static struct mw_error *(*const steps[])(struct mw_heap_diff * diff, struct keys * keys) = {
		compare_accounts, compare_blocks, compare_all_holders};
	const struct mw_heap_report *old = diff->looks[MW_DIFF_OLD], *new = diff->looks[MW_DIFF_NEW];

	diff->process = compare_processes(old, new);
	diff->program = mw_diff_programs(old->exe, old->build_id, new->exe, new->build_id);
	diff->seconds = ((double)new->started_realtime_ns - (double)old->started_realtime_ns) / 1e9;
	diff->by = old->by & new->by;
	MW_TRY(check_order(diff));
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct keys keys = {.items = NULL};
		struct mw_error *err = steps[i](diff, &keys);

		keys_deinit(&keys);
		MW_TRY(err);
	}
	return NULL;
}

struct mw_error *mw_heap_diff_create(const char *const files[MW_DIFF_SIDES],
				     const struct mw_heap_report *const looks[MW_DIFF_SIDES], struct mw_heap_diff **out)
{
	struct mw_heap_diff *diff = calloc(1, sizeof(*diff));
	struct mw_error *err;

	if (!diff)
		return mw_error_nomem();
	memcpy(diff->files, files, sizeof(diff->files));
	memcpy(diff->looks, looks, sizeof(diff->looks));
	diff->arena = mw_arena_create();
	err = diff->arena ? compare(diff) : mw_error_nomem();
	if (err) {
		mw_heap_diff_destroy(diff);
		return err;
	}
	*out = diff;
	return NULL;
}

void mw_heap_diff_destroy(struct mw_heap_diff *diff)
{
	if (!diff)
		return;
	mw_arena_destroy(diff->arena);
	free(diff);
}
