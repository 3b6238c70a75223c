// SPDX-License-Identifier: MIT
/* model.c: accounts, heap events and comparison of the plain model (model.h). */
#include "model.h"

#include <stdlib.h>
#include <string.h>

void model_deinit(struct model *model)
{
	for (uint32_t i = 0; i < MODEL_STACKS; i++)
		free(model->stacks[i].lifetimes);
	for (uint32_t i = 0; i < MODEL_THREADS; i++) {
		while (model->depth[i] > 0)
			free(model_end_call(model, i).owners);
	}
	free(model->maps);
}

static void add_to(struct model_totals *totals, uint64_t bytes, uint64_t time)
{
	totals->impacting.count++;
	totals->impacting.bytes += bytes;
	if (totals->impacting.bytes > totals->peak.amount.bytes)
		totals->peak = (struct mw_track_peak){totals->impacting, time};
}

static void move(struct mw_amount *from, struct mw_amount *to, uint64_t count, uint64_t bytes)
{
	from->count -= count;
	from->bytes -= bytes;
	to->count += count;
	to->bytes += bytes;
}

void model_add(struct model *model, uint32_t stack, uint32_t thread, uint64_t bytes, uint64_t time)
{
	enum mw_kind kind = model->stacks[stack].kind;

	add_to(&model->kinds[kind], bytes, time);
	add_to(&model->stacks[stack].totals, bytes, time);
	if (kind != MW_KIND_VM_INTERNAL) {
		model->impacting[thread].count++;
		model->impacting[thread].bytes += bytes;
	}
}

void model_release(struct model *model, uint32_t stack, uint32_t thread, uint64_t count, uint64_t bytes)
{
	enum mw_kind kind = model->stacks[stack].kind;
	struct model_totals *totals = &model->stacks[stack].totals;

	move(&model->kinds[kind].impacting, &model->kinds[kind].transient, count, bytes);
	move(&totals->impacting, &totals->transient, count, bytes);
	if (kind != MW_KIND_VM_INTERNAL)
		move(&model->impacting[thread], &model->transient[thread], count, bytes);
}

void model_lived(struct model *model, uint32_t stack, uint64_t lifetime)
{
	struct model_stack *s = &model->stacks[stack];

	if (s->lifetime_count == s->lifetime_capacity) {
		s->lifetime_capacity = s->lifetime_capacity ? s->lifetime_capacity * 2 : 64;
		s->lifetimes = realloc(s->lifetimes, s->lifetime_capacity * sizeof(*s->lifetimes));
		assert_non_null(s->lifetimes);
	}
	s->lifetimes[s->lifetime_count++] = lifetime;
}

static void aofi_to(struct model_totals *totals, uint64_t bytes)
{
	totals->aofi.count++;
	if (bytes == MW_SIZE_UNKNOWN)
		totals->aofi_unknown++;
	else
		totals->aofi.bytes += bytes;
}

void model_aofi(struct model *model, uint32_t stack, uint64_t bytes)
{
	aofi_to(&model->stacks[stack].totals, bytes);
	aofi_to(&model->kinds[model->stacks[stack].kind], bytes);
}

struct model_call *model_begin_call(struct model *model, const struct mw_event *event)
{
	struct model_call *call = &model->calls[event->thread][model->depth[event->thread]++];

	*call = (struct model_call){.begin = event->type, .time = event->time_ns, .stack = event->stack};
	return call;
}

struct model_call model_end_call(struct model *model, uint32_t thread)
{
	return model->calls[thread][--model->depth[thread]];
}

static void end_block(struct model *model, struct model_block *block, uint64_t time)
{
	model_release(model, block->stack, block->thread, 1, block->bytes);
	model_lived(model, block->stack, time - block->time);
	block->live = false;
}

static void alloc(struct model *model, const struct mw_event *event)
{
	struct model_block *block = &model->cells[model_cell(event->addr)];

	if (block->live) {
		model->missed++;
		end_block(model, block, event->time_ns);
	}
	*block = (struct model_block){true, event->size, event->time_ns, event->stack, event->thread};
	model_add(model, event->stack, event->thread, event->size, event->time_ns);
}

static void fail_realloc(struct model *model, struct model_call *call)
{
	struct model_block *now = &model->cells[call->cell];

	if (!call->block.live)
		return;
	if (now->live) {
		model->missed++;
		end_block(model, &call->block, call->time);
	} else {
		*now = call->block;
	}
}

void model_heap_event(struct model *model, const struct mw_event *event)
{
	uint32_t cell = model_cell(event->addr);
	struct model_call call, *begun;

	switch (event->type) {
	case MW_EVENT_ALLOC:
		alloc(model, event);
		break;
	case MW_EVENT_FREE:
		if (model->cells[cell].live)
			end_block(model, &model->cells[cell], event->time_ns);
		else
			model_aofi(model, event->stack, event->size);
		break;
	case MW_EVENT_REALLOC_BEGIN:
		begun = model_begin_call(model, event);
		begun->cell = cell;
		begun->unknown_bytes = event->size;
		if (cell < MODEL_CELLS) {
			begun->block = model->cells[cell];
			model->cells[cell].live = false;
		}
		break;
	case MW_EVENT_REALLOC_END:
		call = model_end_call(model, event->thread);
		if (call.block.live)
			end_block(model, &call.block, call.time);
		else if (call.cell < MODEL_CELLS)
			model_aofi(model, event->stack, call.unknown_bytes);
		alloc(model, event);
		break;
	default:
		call = model_end_call(model, event->thread);
		if (call.cell < MODEL_CELLS)
			fail_realloc(model, &call);
	}
}

static void compare_amount(const struct mw_amount *a, const struct mw_amount *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->bytes, b->bytes);
}

static void compare_totals(const struct model_totals *model, const struct mw_track_totals *totals)
{
	compare_amount(&model->impacting, &totals->impacting);
	compare_amount(&model->transient, &totals->transient);
	compare_amount(&model->aofi, &totals->aofi);
	compare_amount(&model->peak.amount, &totals->peak.amount);
	assert_int_equal(model->peak.at_ns, totals->peak.at_ns);
	assert_int_equal(model->aofi_unknown, totals->aofi_unknown);
}

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void compare_quantile(const struct model_stack *stack, size_t percent, uint64_t got)
{
	uint64_t exact = stack->lifetimes[(stack->lifetime_count * percent + 99) / 100 - 1];
	uint64_t off = got > exact ? got - exact : exact - got;

	assert_true(off * 20 <= exact);
}

static void compare_lifetimes(struct model_stack *stack, const struct mw_track_lifetime *lifetime)
{
	assert_int_equal(stack->lifetime_count, lifetime->count);
	if (stack->lifetime_count == 0)
		return;
	qsort(stack->lifetimes, stack->lifetime_count, sizeof(*stack->lifetimes), compare_values);
	assert_int_equal(stack->lifetimes[0], lifetime->min_ns);
	assert_int_equal(stack->lifetimes[stack->lifetime_count - 1], lifetime->max_ns);
	compare_quantile(stack, 50, lifetime->median_ns);
	compare_quantile(stack, 99, lifetime->p99_ns);
}

/* Cells and pages that mw_track_each_block() came by. */
struct seen {
	const struct model *model;
	uint32_t cells;
	uint32_t pages[MODEL_PAGES];
};

static bool see_block(void *context, const struct mw_track_block *block, bool first)
{
	struct seen *seen = context;

	if (block->kind == MW_KIND_HEAP) {
		const struct model_block *cell = &seen->model->cells[model_cell(block->addr)];

		assert_true(first);
		/* Pending blocks are counted by rig_check(); their cell may be another block's by now. */
		if (!cell->live || cell->time != block->time_ns || cell->thread != block->thread)
			return true;
		seen->cells++;
		assert_int_equal(cell->bytes, block->bytes);
		assert_int_equal(cell->stack, block->stack);
		return true;
	}
	for (uint64_t at = 0; at < block->bytes; at += MODEL_PAGE) {
		uint32_t page = (uint32_t)((block->addr + at - MODEL_VM_AT) / MODEL_PAGE);
		uint32_t owner = seen->model->pages[page];

		if (owner == 0 || owner == MODEL_BEFORE || seen->model->maps[owner - 1].time != block->time_ns)
			continue;
		seen->pages[page]++;
		assert_int_equal(seen->model->maps[owner - 1].stack, block->stack);
		assert_int_equal(seen->model->maps[owner - 1].thread, block->thread);
	}
	return true;
}

static void compare_blocks(const struct model *model, const struct mw_track *track)
{
	struct seen seen = {.model = model};
	uint32_t live = 0;

	mw_track_each_block(track, see_block, &seen);
	for (uint32_t i = 0; i < MODEL_CELLS; i++)
		live += model->cells[i].live;
	assert_int_equal(seen.cells, live);
	for (uint32_t i = 0; i < MODEL_PAGES; i++)
		assert_int_equal(seen.pages[i], model->pages[i] != 0 && model->pages[i] != MODEL_BEFORE);
}

void model_compare(struct model *model, const struct mw_track *track)
{
	for (int kind = 0; kind < MW_KIND_COUNT; kind++) {
		struct mw_track_totals totals;

		mw_track_totals(track, (enum mw_kind)kind, &totals);
		compare_totals(&model->kinds[kind], &totals);
	}
	for (uint32_t i = 0; i < MODEL_STACKS; i++) {
		struct mw_track_stack stack;

		mw_track_stack(track, i, &stack);
		compare_totals(&model->stacks[i].totals, &stack.totals);
		compare_lifetimes(&model->stacks[i], &stack.lifetime);
	}
	for (uint32_t i = 0; i < MODEL_THREADS; i++) {
		struct mw_track_thread thread;

		mw_track_thread(track, i, &thread);
		compare_amount(&model->impacting[i], &thread.impacting);
		compare_amount(&model->transient[i], &thread.transient);
	}
	assert_int_equal(model->missed, mw_track_missed(track));
	compare_blocks(model, track);
	rig_check_track(track);
}
