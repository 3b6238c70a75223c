// SPDX-License-Identifier: MIT
/* rig.c: a tracker with a sink at hand (rig.h). */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

int rig_setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	assert_null(mw_track_create(&rig->track));
	rig->sink = mw_track_sink(rig->track);
	rig->heap = rig_stack(rig, MW_KIND_HEAP, 1);
	rig->vm = rig_stack(rig, MW_KIND_VM, 1);
	rig->internal = rig_stack(rig, MW_KIND_VM_INTERNAL, 1);
	for (int i = 0; i < 3; i++)
		assert_null(rig->sink.thread(rig->sink.context, 100 + i, "t", true, &rig->thread[i]));
	*state = rig;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *rig = *state;

	rig_check(rig);
	mw_track_destroy(rig->track);
	free(rig);
	return 0;
}

uint32_t rig_stack(struct rig *rig, enum mw_kind kind, uint32_t seed)
{
	struct mw_raw_frame frames[3] = {{0x1000 + seed, 0}, {0x2000 + seed, 1}, {0x3000, MW_MODULE_NONE}};
	struct mw_raw_stack stack = {frames, 3, MW_STACK_COMPLETE, 7, kind};
	uint32_t id = UINT32_MAX;

	assert_null(rig->sink.stack(rig->sink.context, &stack, &id));
	return id;
}

void rig_send(struct rig *rig, struct mw_event event)
{
	assert_null(rig->sink.event(rig->sink.context, &event));
}

void rig_refuse(struct rig *rig, struct mw_event event, enum mw_error_kind kind)
{
	struct mw_error *err = rig->sink.event(rig->sink.context, &event);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), kind);
	mw_error_destroy(err);
}

void rig_alloc(struct rig *rig, uint64_t time, mw_addr addr, uint64_t size)
{
	rig_heap(rig, MW_EVENT_ALLOC, time, 0, addr, size);
}

void rig_free(struct rig *rig, uint64_t time, mw_addr addr)
{
	rig_send(rig, (struct mw_event){time, addr, MW_SIZE_UNKNOWN, MW_STACK_NONE, rig->thread[0], MW_EVENT_FREE,
					MW_KIND_HEAP, 0, false});
}

void rig_heap(struct rig *rig, enum mw_event_type type, uint64_t time, int t, mw_addr addr, uint64_t size)
{
	rig_send(rig, (struct mw_event){time, addr, size, rig->heap, rig->thread[t], type, MW_KIND_HEAP, 0, false});
}

void rig_vm(struct rig *rig, enum mw_event_type type, uint64_t time, int t, mw_addr addr, uint64_t size)
{
	rig_send(rig, (struct mw_event){time, addr, size, rig->vm, rig->thread[t], type, MW_KIND_VM, 0, false});
}

struct mw_track_totals rig_totals(const struct rig *rig, enum mw_kind kind)
{
	struct mw_track_totals totals;

	mw_track_totals(rig->track, kind, &totals);
	return totals;
}

struct mw_track_stack rig_of_stack(const struct rig *rig, uint32_t id)
{
	struct mw_track_stack stack;

	mw_track_stack(rig->track, id, &stack);
	return stack;
}

/* Sums over blocks, by stack and by thread. */
struct sums {
	struct mw_amount *stacks, *threads;
	uint32_t stack_count, thread_count;
	const struct mw_track *track;
};

static bool sum_block(void *context, const struct mw_track_block *block, bool first)
{
	struct sums *sums = context;
	struct mw_track_stack stack;

	assert_true(block->stack < sums->stack_count);
	assert_true(block->thread < sums->thread_count);
	mw_track_stack(sums->track, block->stack, &stack);
	assert_int_equal(stack.kind, block->kind);
	sums->stacks[block->stack].count += first + block->others;
	sums->stacks[block->stack].bytes += (1 + block->others) * block->bytes;
	if (block->kind != MW_KIND_VM_INTERNAL) {
		sums->threads[block->thread].count += first + block->others;
		sums->threads[block->thread].bytes += (1 + block->others) * block->bytes;
	}
	return true;
}

static void add(struct mw_amount *to, const struct mw_amount *amount)
{
	to->count += amount->count;
	to->bytes += amount->bytes;
}

static void assert_same(const struct mw_amount *a, const struct mw_amount *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->bytes, b->bytes);
}

static void check_size(const struct mw_track_totals *totals)
{
	assert_int_equal(totals->size.count, totals->impacting.count + totals->transient.count);
	assert_int_equal(totals->size.bytes, totals->impacting.bytes + totals->transient.bytes);
	assert_true(totals->peak.amount.bytes >= totals->impacting.bytes);
}

static void check_stacks(const struct sums *sums)
{
	struct mw_track_totals by_stack[MW_KIND_COUNT];

	memset(by_stack, 0, sizeof(by_stack));
	for (uint32_t i = 0; i < sums->stack_count; i++) {
		struct mw_track_stack stack;
		struct mw_track_totals *to;

		mw_track_stack(sums->track, i, &stack);
		to = &by_stack[stack.kind];
		check_size(&stack.totals);
		assert_same(&stack.totals.impacting, &sums->stacks[i]);
		add(&to->impacting, &stack.totals.impacting);
		add(&to->transient, &stack.totals.transient);
		add(&to->aofi, &stack.totals.aofi);
		add(&to->aofo, &stack.totals.aofo);
		to->aofi_unknown += stack.totals.aofi_unknown;
	}
	for (int kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(sums->track, (enum mw_kind)kind, &totals);
		check_size(&totals);
		assert_same(&totals.impacting, &by_stack[kind].impacting);
		assert_same(&totals.transient, &by_stack[kind].transient);
		assert_same(&totals.aofi, &by_stack[kind].aofi);
		assert_same(&totals.aofo, &by_stack[kind].aofo);
		assert_int_equal(totals.aofi_unknown, by_stack[kind].aofi_unknown);
	}
}

static void check_threads(const struct sums *sums)
{
	struct mw_track_totals heap, vm;
	struct mw_amount impacting = {0, 0}, transient = {0, 0};

	for (uint32_t i = 0; i < sums->thread_count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(sums->track, i, &thread);
		assert_same(&thread.impacting, &sums->threads[i]);
		assert_int_equal(thread.size.count, thread.impacting.count + thread.transient.count);
		assert_int_equal(thread.size.bytes, thread.impacting.bytes + thread.transient.bytes);
		add(&impacting, &thread.impacting);
		add(&transient, &thread.transient);
	}
	mw_track_totals(sums->track, MW_KIND_HEAP, &heap);
	mw_track_totals(sums->track, MW_KIND_VM, &vm);
	add(&heap.impacting, &vm.impacting);
	add(&heap.transient, &vm.transient);
	assert_same(&impacting, &heap.impacting);
	assert_same(&transient, &heap.transient);
}

void rig_check_track(const struct mw_track *track)
{
	struct sums sums = {
		.stack_count = mw_track_stack_count(track),
		.thread_count = mw_track_thread_count(track),
		.track = track,
	};

	sums.stacks = calloc(sums.stack_count + 1, sizeof(*sums.stacks));
	sums.threads = calloc(sums.thread_count + 1, sizeof(*sums.threads));
	assert_non_null(sums.stacks);
	assert_non_null(sums.threads);
	mw_track_each_block(track, sum_block, &sums);
	check_stacks(&sums);
	check_threads(&sums);
	free(sums.stacks);
	free(sums.threads);
}

void rig_check(const struct rig *rig)
{
	rig_check_track(rig->track);
}
