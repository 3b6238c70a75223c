// SPDX-License-Identifier: MIT
#include "shared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t take(uint64_t *end, uint64_t size)
{
	uint64_t start = *end;

	*end = (start + size + 63) & ~(uint64_t)63;
	return start;
}

static void *at(const struct shared *shared, uint64_t offset)
{
	return (uint8_t *)shared->control + offset;
}

void shared_create(struct shared *shared, const struct shared_plan *plan)
{
	struct mw_ring_control control = {.magic = MW_RING_MAGIC,
					  .layout = MW_RING_LAYOUT,
					  .slot_count = plan->slots,
					  .ring_count = plan->rings,
					  .ring_units = plan->ring_units,
					  .queue_count = 64,
					  .depth = plan->depth,
					  .stack_count = plan->stacks,
					  .known_count = plan->known,
					  .cache_count = plan->cache,
					  .rings_offered = plan->rings,
					  .heartbeat_limit = UINT64_MAX / 2,
					  .wait_limit = 1000000,
					  .wait_gap = 1000,
					  .exit_limit = 100000,
					  .generation = 1,
					  .slow_allowed = UINT64_MAX,
					  .recording = 1};
	uint64_t end = sizeof(control);
	uint32_t *queue;

	shared->plan = *plan;
	control.slots = take(&end, plan->slots * sizeof(struct mw_ring_slot));
	control.slots = (control.slots + 63) & ~(uint64_t)63;
	end += 64;
	control.queue = take(&end, control.queue_count * sizeof(uint32_t));
	control.scratch = take(&end, (uint64_t)plan->rings * (plan->depth + 1) * 8);
	control.memos = take(&end, (uint64_t)plan->rings * MW_RING_MEMOS * sizeof(struct mw_ring_memo));
	control.stacks = take(&end, plan->stacks * sizeof(struct mw_ring_stack_entry));
	control.known = take(&end, plan->known * sizeof(uint32_t));
	shared->filter = take(&end, MW_RING_FILTER_SIZE);
	control.cache = take(&end, plan->cache * sizeof(struct mw_ring_cached_row));
	control.dictionary = take(&end, plan->dictionary * sizeof(uint64_t));
	control.learned = take(&end, MW_RING_LEARNED * sizeof(struct mw_ring_cached_row));
	shared->index = control.index =
		take(&end, sizeof(struct mw_ring_index) + plan->codes * sizeof(struct mw_ring_code));
	shared->rows = take(&end, plan->rows * sizeof(struct mw_ring_row));
	control.rings = take(&end, (uint64_t)plan->rings * plan->ring_units * MW_RING_UNIT);
	control.size = shared->size = end;
	shared->control = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared->control == MAP_FAILED)
		abort();
	memcpy(shared->control, &control, sizeof(control));
	queue = at(shared, control.queue);
	for (uint32_t i = 0; i < plan->rings; i++)
		queue[i] = plan->rings - 1 - i;
}

void shared_destroy(struct shared *shared)
{
	munmap(shared->control, shared->size);
}

struct mw_ring_slot *shared_slot(const struct shared *shared, uint32_t number)
{
	return (struct mw_ring_slot *)at(shared, shared->control->slots) + number;
}

struct mw_ring_slot *shared_slot_of(const struct shared *shared, uint64_t owner)
{
	for (uint32_t i = 0; i < shared->plan.slots; i++)
		if (shared_slot(shared, i)->owner == owner)
			return shared_slot(shared, i);
	return NULL;
}

void shared_code(struct shared *shared, uint64_t start, uint64_t end, uint64_t row)
{
	struct mw_ring_index *index = at(shared, shared->index);

	if (index->count == shared->plan.codes)
		abort();
	index->code[index->count++] = (struct mw_ring_code){.start = start, .end = end, .whole = row};
	shared->control->generation++;
}

static struct mw_ring_record *unit(const struct shared *shared, const struct mw_ring_slot *slot, uint64_t number)
{
	return (struct mw_ring_record *)at(shared, shared->control->rings) +
	       (uint64_t)(slot->ring - 1) * shared->plan.ring_units + number % shared->plan.ring_units;
}

static uint64_t units_behind(uint32_t type, uint64_t size)
{
	if (type == MW_RING_STACK)
		return ((uint32_t)size + 3) / 4;
	if (type == MW_RING_SLOW)
		return (size / 8 + 3) / 4;
	return type == MW_RING_NOTHING ? size - 1 : 0;
}

bool shared_next(struct shared *shared, struct mw_ring_slot *slot, struct shared_record *out)
{
	uint64_t number = slot->drained, behind;
	struct mw_ring_record *first;
	uint64_t mark;

	if (!slot->ring)
		return false;
	first = unit(shared, slot, number);
	mark = __atomic_load_n(&first->mark, __ATOMIC_ACQUIRE);
	if (mark >> 56 != mw_ring_lap(number, shared->plan.ring_units) || number >= slot->reserved)
		return false;
	out->time = first->time;
	out->addr = first->addr;
	out->size = first->size;
	out->stack = mw_ring_stack_of(mark);
	out->hook = mw_ring_hook_of(mark);
	out->type = mw_ring_type_of(mark);
	out->flags = mw_ring_flags_of(mark);
	behind = units_behind(out->type, out->size);
	out->words = (uint32_t)behind * 4;
	if (out->words > sizeof(out->payload) / 8)
		abort();
	for (uint64_t i = 0; i < behind; i++) {
		struct mw_ring_record *more = unit(shared, slot, number + 1 + i);

		memcpy(&out->payload[i * 4], more, sizeof(*more));
		more->mark = 0;
	}
	__atomic_store_n(&slot->drained, number + 1 + behind, __ATOMIC_RELEASE);
	return true;
}
