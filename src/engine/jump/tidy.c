// SPDX-License-Identifier: MIT
/* tidy.c: slots and rings come and go (drain_state.h, memwatch/ring.h). */
#include "engine/jump/drain_state.h"

#include <string.h>

static void attach(struct jump_drain *drain, struct jump_reader *reader, struct mw_ring_slot *slot)
{
	reader->slot = slot;
	reader->read = reader->published = reader->end = reader->last = 0;
	reader->held_at = UINT64_MAX;
	reader->thread = JUMP_NO_THREAD;
	reader->tid = 0;
	reader->searching = reader->dead = reader->overtaken = false;
	reader->state = JUMP_READER_ATTACHED;
	drain->active[drain->active_count++] = reader;
	drain->attached++;
}

/* The ring that a slot says it has, or NULL. */
static struct jump_reader *ring_of(const struct jump_drain *drain, const struct mw_ring_slot *slot)
{
	uint32_t number = __atomic_load_n(&slot->ring, __ATOMIC_ACQUIRE);

	return number == 0 || number > drain->shared->geometry.ring_count ? NULL : &drain->readers[number - 1];
}

/* Nobody's: free, or being cleared. */
static bool vacant(const struct mw_ring_slot *slot)
{
	return __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) <= MW_RING_TOMB;
}

void jump_drain_discover(struct jump_drain *drain)
{
	for (uint32_t i = 0; i < drain->shared->geometry.slot_count; i++) {
		struct mw_ring_slot *slot = jump_slot(drain->shared, i);
		struct jump_reader *reader = vacant(slot) ? NULL : ring_of(drain, slot);

		/* A ring that was not offered, or that another slot has, is not the slot's. */
		if (reader && reader->state == JUMP_READER_OFFERED)
			attach(drain, reader, slot);
	}
}

static void put_in_queue(struct jump_drain *drain, struct jump_reader *reader)
{
	uint32_t *entry = jump_queue(drain->shared) + drain->offered % drain->shared->geometry.queue_count;

	reader->state = JUMP_READER_OFFERED;
	__atomic_store_n(entry, reader->number, __ATOMIC_RELAXED);
	drain->offered++;
	__atomic_store_n(&jump_control(drain->shared)->rings_offered, drain->offered, __ATOMIC_RELEASE);
}

void jump_drain_offer(struct jump_drain *drain)
{
	uint64_t taken = __atomic_load_n(&jump_control(drain->shared)->rings_taken, __ATOMIC_ACQUIRE);
	uint64_t ready = taken < drain->offered ? drain->offered - taken : 0;
	uint32_t left = drain->shared->geometry.ring_count - drain->next_ring, count;

	if (ready >= JUMP_SPARE_RINGS || left == 0)
		return;
	count = JUMP_SPARE_RINGS - (uint32_t)ready;
	if (count > left)
		count = left;
	if (drain->help.fill && !drain->help.fill(drain->help.context, drain->next_ring, count))
		return;
	for (uint32_t i = 0; i < count; i++)
		put_in_queue(drain, &drain->readers[drain->next_ring++]);
}

/* What a target has counted it may as well have made up: sums of that don't wrap. */
static void add(uint64_t *sum, uint64_t more)
{
	*sum = more > JUMP_MOST_COUNTED - *sum ? JUMP_MOST_COUNTED : *sum + more;
}

static void count_slot(const struct jump_drain *drain, struct jump_drain_stats *stats, const struct mw_ring_slot *slot)
{
	uint64_t now = jump_clock_tick(), start = drain->clock->start_tick;
	uint64_t waited = __atomic_load_n(&slot->waited, __ATOMIC_RELAXED), window = now > start ? now - start : 0;

	add(&stats->lost_events, __atomic_load_n(&slot->lost_events, __ATOMIC_RELAXED));
	add(&stats->lost_stacks, __atomic_load_n(&slot->lost_stacks, __ATOMIC_RELAXED));
	add(&stats->walks, __atomic_load_n(&slot->walks, __ATOMIC_RELAXED));
	add(&stats->slow_walks, __atomic_load_n(&slot->slow_walks, __ATOMIC_RELAXED));
	/* No thread has waited for longer than there was something to wait for. */
	add(&stats->waited, waited < window ? waited : window);
}

static void retire_ring(struct jump_drain *drain, struct jump_reader *reader)
{
	uint64_t units = (uint64_t)drain->units_mask + 1;
	uint64_t written = reader->read < units ? reader->read : units;

	if (!drain->failure)
		drain->failure = jump_calls_cancel(drain, reader);
	reader->open_count = 0;
	/* Its next thread begins at the first lap again. */
	for (uint64_t i = 0; i < written; i++)
		__atomic_store_n(&reader->units[i].mark, 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < drain->active_count; i++) {
		if (drain->active[i] == reader) {
			drain->active[i] = drain->active[--drain->active_count];
			break;
		}
	}
	reader->slot = NULL;
	if (reader->compared)
		reader->compared->waiting = false;
	put_in_queue(drain, reader);
}

/* The slot is nobody's; its ring, if it has one, is read. */
static void clear(struct jump_drain *drain, struct mw_ring_slot *slot, struct jump_reader *reader)
{
	count_slot(drain, &drain->retired, slot);
	if (reader)
		retire_ring(drain, reader);
	memset((uint8_t *)slot + offsetof(struct mw_ring_slot, ring), 0,
	       sizeof(*slot) - offsetof(struct mw_ring_slot, ring));
	/* The tid stays MW_RING_NO_TID: a thread with this thread pointer must not take the slot for its own. */
	__atomic_store_n(&slot->owner, MW_RING_TOMB, __ATOMIC_RELEASE);
}

/*
 * A slot whose thread may have ended. Its thread pointer may be a new thread's already, which would take the slot over:
 * whoever of us two exchanges the tid first has it. What its thread has reserved and not marked it never will.
 */
static void tidy_slot(struct jump_drain *drain, struct mw_ring_slot *slot)
{
	uint32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
	struct jump_reader *reader = ring_of(drain, slot);

	if (reader && reader->slot != slot)
		reader = NULL;
	if (!reader || !reader->dead) {
		/* Between a slot's taking and its tid there is no thread to ask for. */
		if (tid == 0 || tid == MW_RING_NO_TID || drain->help.thread_lives(drain->help.context, tid))
			return;
		if (!__atomic_compare_exchange_n(&slot->tid, &tid, MW_RING_NO_TID, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			return;
		if (reader)
			reader->dead = true;
	}
	if (!reader || reader->read == __atomic_load_n(&slot->reserved, __ATOMIC_ACQUIRE))
		clear(drain, slot, reader);
}

void jump_drain_tidy(struct jump_drain *drain)
{
	jump_drain_discover(drain);
	for (uint32_t i = 0; i < drain->shared->geometry.slot_count; i++)
		if (!vacant(jump_slot(drain->shared, i)))
			tidy_slot(drain, jump_slot(drain->shared, i));
	jump_drain_offer(drain);
}

const struct jump_drain_stats *jump_drain_stats(struct jump_drain *drain)
{
	struct jump_drain_stats *sum = &drain->sum;

	*sum = drain->stats;
	add(&sum->lost_events, drain->retired.lost_events);
	add(&sum->lost_stacks, drain->retired.lost_stacks);
	add(&sum->walks, drain->retired.walks);
	add(&sum->slow_walks, drain->retired.slow_walks);
	add(&sum->waited, drain->retired.waited);
	add(&sum->lost_events, __atomic_load_n(&jump_control(drain->shared)->lost_events, __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < drain->shared->geometry.slot_count; i++)
		if (!vacant(jump_slot(drain->shared, i)))
			count_slot(drain, sum, jump_slot(drain->shared, i));
	if (sum->slow_walks > sum->walks)
		sum->slow_walks = sum->walks;
	return sum;
}
