// SPDX-License-Identifier: MIT
/* blocks.c: what only the live blocks know of a stack: its threads and ages. */
#include "base/map.h"
#include "base/vector.h"
#include "view/stacks.h"

#include <stdlib.h>

/* Blocks of one stack that one thread allocated. */
struct share {
	uint32_t stack, thread;
	struct mw_amount impacting;
};

struct walk {
	struct mw_report *report;
	const uint32_t *group_of;
	uint32_t stack_count; /* of the tracker */
	struct mw_map numbering;
	struct share *shares;
	size_t capacity;
	bool failed;
};

static struct share *share_of(struct walk *walk, uint32_t stack, uint32_t thread)
{
	size_t before = walk->numbering.count;
	uint32_t number;

	if (!mw_map_number(&walk->numbering, (uint64_t)stack << 32 | thread, &number))
		return NULL;
	if (walk->numbering.count > before) {
		if (!MW_VECTOR_ROOM(walk->shares, number, walk->capacity))
			return NULL;
		walk->shares[number] = (struct share){.stack = stack, .thread = thread};
	}
	return &walk->shares[number];
}

static bool visit(void *context, const struct mw_track_block *block, bool first)
{
	struct walk *walk = context;
	double at = (double)block->time_ns / 1e9;
	struct mw_report_stack *stack;
	struct share *share;
	uint32_t group;

	if (block->stack >= walk->stack_count)
		return true;
	group = walk->group_of[block->stack];
	if (group == UINT32_MAX)
		return true;
	stack = &walk->report->stacks[group];
	if (!stack->has_ages || at < stack->oldest)
		stack->oldest = at;
	if (!stack->has_ages || at > stack->newest)
		stack->newest = at;
	stack->has_ages = true;
	share = share_of(walk, group, block->thread);
	if (!share) {
		walk->failed = true;
		return false;
	}
	/* A mapping that was cut into pieces is still one block. */
	share->impacting.count += first;
	share->impacting.bytes += block->bytes;
	return true;
}

static int compare_shares(const void *left, const void *right)
{
	const struct share *a = left, *b = right;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->impacting.bytes != b->impacting.bytes)
		return a->impacting.bytes > b->impacting.bytes ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static void fill_thread(const struct mw_track *track, struct mw_arena *arena, const struct share *share,
			struct mw_report_thread *out)
{
	struct mw_track_thread thread;

	out->impacting = share->impacting;
	if (share->thread >= mw_track_thread_count(track))
		return;
	mw_track_thread(track, share->thread, &thread);
	out->tid = thread.tid;
	out->name = mw_arena_string(arena, thread.name);
}

/* Shares, sorted by stack, become each stack's part of one array of threads. */
static struct mw_error *hand_out(struct walk *walk, const struct mw_track *track, struct mw_arena *arena)
{
	size_t count = walk->numbering.count;
	struct mw_report_thread *threads = mw_arena_array(arena, count, sizeof(*threads));

	if (!threads)
		return mw_error_nomem();
	if (count)
		qsort(walk->shares, count, sizeof(*walk->shares), compare_shares);
	for (size_t i = 0; i < count; i++) {
		struct mw_report_stack *stack = &walk->report->stacks[walk->shares[i].stack];

		fill_thread(track, arena, &walk->shares[i], &threads[i]);
		if (!stack->thread_count)
			stack->threads = &threads[i];
		stack->thread_count++;
	}
	return NULL;
}

struct mw_error *mw_view_blocks(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
				const uint32_t *group_of)
{
	struct walk walk = {.report = report, .group_of = group_of};
	struct mw_error *err;

	walk.stack_count = mw_track_stack_count(input->track);
	mw_track_each_block(input->track, visit, &walk);
	err = walk.failed ? mw_error_nomem() : hand_out(&walk, input->track, arena);
	mw_map_deinit(&walk.numbering);
	free(walk.shares);
	return err;
}
