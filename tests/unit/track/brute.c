// SPDX-License-Identifier: MIT
/* brute.c: figures of an interval by definition (brute.h). */
#include "brute.h"

#include <string.h>

void brute_init(struct brute *brute)
{
	brute->block_count = brute->part_count = brute->loss_count = 0;
	memset(brute->missed, 0, sizeof(brute->missed));
	memset(brute->depth, 0, sizeof(brute->depth));
	for (uint32_t i = 0; i < BRUTE_CELLS; i++)
		brute->cells[i] = BRUTE_FREE;
	for (uint32_t i = 0; i < BRUTE_SPACE; i++)
		brute->space[i] = BRUTE_FREE;
}

void brute_before(struct brute *brute, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		brute->space[i] = BRUTE_BEFORE;
}

static uint32_t stack_of(const struct mw_event *event, uint32_t stack)
{
	return stack == MW_STACK_NONE ? (uint32_t)event->kind * 4 + 3 : stack;
}

static uint32_t cell_of(const struct mw_event *event)
{
	return event->addr == 0 ? 0 : (uint32_t)(event->addr - BRUTE_HEAP_AT) / 16;
}

static void part_gone(struct brute *brute, int id, uint32_t number, uint64_t died_ns)
{
	struct brute_part *part = &brute->parts[id];
	struct brute_block *block = &brute->blocks[part->block];

	part->gone = number;
	part->died_ns = died_ns;
	if (--block->parts_left == 0) {
		block->gone = number;
		block->died_ns = died_ns;
	}
}

static void before_gone(struct brute *brute, uint32_t number, struct brute_loss loss)
{
	loss.event = number;
	loss.is_first = brute->loss_count == 0 || brute->losses[brute->loss_count - 1].event != number;
	brute->losses[brute->loss_count++] = loss;
}

static void new_block(struct brute *brute, const struct mw_event *event, uint32_t number, uint32_t parts)
{
	brute->blocks[brute->block_count++] = (struct brute_block){
		.kind = event->kind,
		.stack = stack_of(event, event->stack),
		.thread = event->thread,
		.born = number,
		.gone = BRUTE_NEVER,
		.parts_left = parts,
		.bytes = event->size,
		.born_ns = event->time_ns,
	};
}

static int new_part(struct brute *brute, uint64_t addr, uint64_t bytes)
{
	brute->parts[brute->part_count] = (struct brute_part){brute->block_count - 1, BRUTE_NEVER, addr, bytes, 0};
	return (int)brute->part_count++;
}

static struct brute_call *begin_call(struct brute *brute, const struct mw_event *event)
{
	struct brute_call *call = &brute->calls[event->thread][brute->depth[event->thread]++];

	*call = (struct brute_call){.begin = event->type, .stack = event->stack, .time_ns = event->time_ns};
	return call;
}

/* The newest call of that BEGIN; those above it stay. */
static bool end_call(struct brute *brute, uint32_t thread, enum mw_event_type begin, struct brute_call *out)
{
	struct brute_call *calls = brute->calls[thread];

	for (uint32_t i = brute->depth[thread]; i-- > 0;) {
		if (calls[i].begin != begin)
			continue;
		*out = calls[i];
		brute->depth[thread]--;
		for (; i < brute->depth[thread]; i++)
			calls[i] = calls[i + 1];
		return true;
	}
	return false;
}

static void heap_alloc(struct brute *brute, const struct mw_event *event, uint32_t number)
{
	int *cell = &brute->cells[cell_of(event)];

	if (event->addr == 0)
		return;
	if (*cell >= 0) {
		brute->missed[number] = true;
		part_gone(brute, *cell, number, event->time_ns);
	}
	new_block(brute, event, number, 1);
	*cell = new_part(brute, event->addr, event->size);
}

static void heap_free(struct brute *brute, const struct mw_event *event, uint32_t number)
{
	int *cell = &brute->cells[cell_of(event)];

	if (event->addr == 0)
		return;
	if (*cell >= 0)
		part_gone(brute, *cell, number, event->time_ns);
	else
		before_gone(brute, number,
			    (struct brute_loss){.stack = stack_of(event, event->stack),
						.kind = MW_KIND_HEAP,
						.addr = event->addr,
						.bytes = event->size,
						.died_ns = event->time_ns});
	*cell = BRUTE_FREE;
}

static void realloc_begin(struct brute *brute, const struct mw_event *event)
{
	struct brute_call *call = begin_call(brute, event);
	int *cell = &brute->cells[cell_of(event)];

	if (event->addr == 0)
		return;
	if (*cell == BRUTE_FREE) {
		call->is_unknown = true;
		call->unknown_addr = event->addr;
		call->unknown_bytes = event->size;
		return;
	}
	call->places[0] = cell_of(event);
	call->owners[0] = *cell;
	call->count = 1;
	*cell = BRUTE_FREE;
}

static void realloc_end(struct brute *brute, const struct mw_event *event, uint32_t number)
{
	struct mw_event alloc = *event;
	struct brute_call call;

	if (end_call(brute, event->thread, MW_EVENT_REALLOC_BEGIN, &call)) {
		if (alloc.stack == MW_STACK_NONE)
			alloc.stack = call.stack;
		if (call.count > 0)
			part_gone(brute, call.owners[0], number, call.time_ns);
		if (call.is_unknown)
			before_gone(brute, number,
				    (struct brute_loss){.stack = stack_of(event, alloc.stack),
							.kind = MW_KIND_HEAP,
							.addr = call.unknown_addr,
							.bytes = call.unknown_bytes,
							.died_ns = call.time_ns});
	}
	heap_alloc(brute, &alloc, number);
}

static void realloc_fail(struct brute *brute, const struct mw_event *event, uint32_t number)
{
	struct brute_call call;

	if (!end_call(brute, event->thread, MW_EVENT_REALLOC_BEGIN, &call) || call.count == 0)
		return;
	if (brute->cells[call.places[0]] == BRUTE_FREE) {
		brute->cells[call.places[0]] = call.owners[0];
	} else {
		brute->missed[number] = true;
		part_gone(brute, call.owners[0], number, call.time_ns);
	}
}

static void byte_gone(struct brute *brute, uint32_t place, int owner, uint32_t number, struct brute_loss loss)
{
	if (owner >= 0)
		part_gone(brute, owner, number, loss.died_ns);
	if (owner != BRUTE_BEFORE)
		return;
	loss.addr = BRUTE_VM_AT + place;
	loss.bytes = 1;
	before_gone(brute, number, loss);
}

static void map(struct brute *brute, const struct mw_event *event, uint32_t stack, uint32_t number)
{
	uint32_t first = (uint32_t)(event->addr - BRUTE_VM_AT), count = (uint32_t)event->size;
	struct brute_loss loss = {.stack = stack, .kind = event->kind, .died_ns = event->time_ns};

	if (count == 0)
		return;
	for (uint32_t i = first; i < first + count; i++)
		byte_gone(brute, i, brute->space[i], number, loss);
	new_block(brute, event, number, count);
	brute->blocks[brute->block_count - 1].stack = stack;
	for (uint32_t i = first; i < first + count; i++)
		brute->space[i] = new_part(brute, BRUTE_VM_AT + i, 1);
}

static void unmap_begin(struct brute *brute, const struct mw_event *event)
{
	struct brute_call *call = begin_call(brute, event);
	uint32_t first = (uint32_t)(event->addr - BRUTE_VM_AT);

	for (uint32_t i = first; i < first + (uint32_t)event->size; i++) {
		if (brute->space[i] == BRUTE_FREE)
			continue;
		call->places[call->count] = i;
		call->owners[call->count++] = brute->space[i];
		brute->space[i] = BRUTE_FREE;
	}
}

static void unmap_return(struct brute *brute, const struct mw_event *event, uint32_t number)
{
	bool is_remap = event->type >= MW_EVENT_REMAP_BEGIN;
	bool fails = event->type == MW_EVENT_UNMAP_FAIL || event->type == MW_EVENT_REMAP_FAIL;
	struct brute_call call;
	uint32_t stack = event->stack;

	if (end_call(brute, event->thread, is_remap ? MW_EVENT_REMAP_BEGIN : MW_EVENT_UNMAP_BEGIN, &call)) {
		struct brute_loss loss = {.kind = event->kind, .died_ns = call.time_ns};

		if (stack == MW_STACK_NONE && call.stack / 4 == (uint32_t)event->kind)
			stack = call.stack;
		loss.stack = stack_of(event, stack);
		for (uint32_t i = 0; i < call.count; i++) {
			if (fails && brute->space[call.places[i]] == BRUTE_FREE)
				brute->space[call.places[i]] = call.owners[i];
			else
				byte_gone(brute, call.places[i], call.owners[i], number, loss);
		}
	}
	if (is_remap && !fails)
		map(brute, event, stack_of(event, stack), number);
}

void brute_event(struct brute *brute, const struct mw_event *event, uint32_t number)
{
	switch (event->type) {
	case MW_EVENT_ALLOC:
		heap_alloc(brute, event, number);
		break;
	case MW_EVENT_FREE:
		heap_free(brute, event, number);
		break;
	case MW_EVENT_REALLOC_BEGIN:
		realloc_begin(brute, event);
		break;
	case MW_EVENT_REALLOC_END:
		realloc_end(brute, event, number);
		break;
	case MW_EVENT_REALLOC_FAIL:
		realloc_fail(brute, event, number);
		break;
	case MW_EVENT_MAP:
		map(brute, event, stack_of(event, event->stack), number);
		break;
	case MW_EVENT_UNMAP_BEGIN:
	case MW_EVENT_REMAP_BEGIN:
		unmap_begin(brute, event);
		break;
	default:
		unmap_return(brute, event, number);
	}
}

static void add(struct mw_amount *amount, uint64_t count, uint64_t bytes)
{
	amount->count += count;
	amount->bytes += bytes;
}

static bool is_whose(const struct brute_block *block, struct brute_who who)
{
	if (who.thread >= 0 && (block->kind == MW_KIND_VM_INTERNAL || block->thread != (uint32_t)who.thread))
		return false;
	return (who.kind < 0 || block->kind == (enum mw_kind)who.kind) &&
	       (who.stack < 0 || block->stack == (uint32_t)who.stack);
}

/* `count` blocks and `bytes` of a block, which go with event `gone`. */
static void put(const struct brute_block *block, uint32_t begin, uint32_t end, uint32_t gone, uint64_t count,
		uint64_t bytes, struct brute_figures *out)
{
	if (block->born < begin) {
		if (gone >= end)
			add(&out->totals.aofo, count, bytes);
		else if (gone >= begin)
			add(&out->totals.aofi, count, bytes);
		return;
	}
	add(&out->totals.size, count, bytes);
	add(gone < end ? &out->totals.transient : &out->totals.impacting, count, bytes);
	for (uint32_t i = block->born + 1; i <= end && i <= gone; i++)
		add(&out->impacting[i], count, bytes);
}

static void put_lifetime(const struct brute_block *block, struct mw_track_lifetime *out)
{
	uint64_t lifetime = block->died_ns > block->born_ns ? block->died_ns - block->born_ns : 0;

	if (out->count == 0 || lifetime < out->min_ns)
		out->min_ns = lifetime;
	if (out->count == 0 || lifetime > out->max_ns)
		out->max_ns = lifetime;
	out->count++;
}

static void put_losses(const struct brute *brute, uint32_t begin, uint32_t end, struct brute_who who,
		       struct mw_track_totals *out)
{
	for (uint32_t i = 0; i < brute->loss_count; i++) {
		const struct brute_loss *loss = &brute->losses[i];

		if (loss->event < begin || loss->event >= end || who.thread >= 0 ||
		    (who.kind >= 0 && loss->kind != (enum mw_kind)who.kind) ||
		    (who.stack >= 0 && loss->stack != (uint32_t)who.stack))
			continue;
		out->aofi.count += loss->is_first;
		if (loss->bytes == MW_SIZE_UNKNOWN)
			out->aofi_unknown++;
		else
			out->aofi.bytes += loss->bytes;
	}
}

void brute_figures(const struct brute *brute, uint32_t begin, uint32_t end, struct brute_who who,
		   struct brute_figures *out)
{
	memset(out, 0, sizeof(*out));
	out->peak_event = BRUTE_NEVER;
	for (uint32_t i = 0; i < brute->block_count; i++) {
		const struct brute_block *block = &brute->blocks[i];

		if (!is_whose(block, who) || block->born >= end)
			continue;
		put(block, begin, end, block->gone, 1, 0, out);
		if (block->born >= begin && block->gone < end)
			put_lifetime(block, &out->lifetime);
	}
	for (uint32_t i = 0; i < brute->part_count; i++) {
		const struct brute_part *part = &brute->parts[i];
		const struct brute_block *block = &brute->blocks[part->block];

		if (is_whose(block, who) && block->born < end)
			put(block, begin, end, part->gone, 0, part->bytes, out);
	}
	put_losses(brute, begin, end, who, &out->totals);
	for (uint32_t i = begin; i < end; i++) {
		if (out->impacting[i + 1].bytes > out->totals.peak.amount.bytes) {
			out->totals.peak.amount = out->impacting[i + 1];
			out->peak_event = i;
		}
	}
}

uint64_t brute_missed(const struct brute *brute, uint32_t begin, uint32_t end)
{
	uint64_t missed = 0;

	for (uint32_t i = begin; i < end; i++)
		missed += brute->missed[i];
	return missed;
}
