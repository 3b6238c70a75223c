// SPDX-License-Identifier: MIT
/*
 * drain.c: the rings' records in order of time (drain.h).
 *
 * What is reported in a round, and why nothing comes later that is earlier. A thread reserves a record's units, then
 * reads the time stamp counter, then writes the record, then marks it. We read the counter (`now`), then look at each
 * ring's `reserved`.
 *
 * - All units that we see reserved are marked: what the thread writes next, it reserves later than we looked, or it has
 *   and its store was on its way. A store leaves the processor's store buffer within well less than `margin`, whatever
 *   becomes of the thread, which is not needed for that; so the store came after now - margin, and so did the counter's
 *   reading after it. Nothing later than now - margin is reported.
 * - Some are not marked: the thread, preempted perhaps, is about to mark a record whose time may be any from that of
 * the ring's last one on. Nothing later than that is reported.
 *
 * Counters of different processors agree (clock.c). A ring that we don't know yet was taken later than we looked at how
 * many are taken, and its first record's time is later still.
 */
#include "engine/jump/drain.h"

#include <stdlib.h>
#include <string.h>

/* Slots and rings come and go (memwatch/ring.h). */

static void attach(struct jump_drain *drain, struct jump_reader *reader, struct mw_ring_slot *slot)
{
	reader->slot = slot;
	reader->read = reader->published = reader->end = reader->last = reader->awaited = 0;
	reader->held_at = UINT64_MAX;
	reader->thread = JUMP_NO_THREAD;
	reader->tid = 0;
	reader->searching = reader->dead = reader->overtaken = false;
	for (unsigned i = 0; i < JUMP_WAIT_STEPS; i++)
		reader->waited[i] = __atomic_load_n(&slot->waited_room, __ATOMIC_RELAXED);
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

/* Find the rings that threads have taken. */
static void discover(struct jump_drain *drain)
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

/* Offer rings to the threads that wait for one, and so that some lie ready: as many as there are threads that record, between
 * two limits. */
static void offer(struct jump_drain *drain)
{
	uint64_t taken = __atomic_load_n(&jump_control(drain->shared)->rings_taken, __ATOMIC_ACQUIRE);
	uint64_t ready = taken < drain->offered ? drain->offered - taken : 0;
	uint64_t waiting = taken > drain->offered ? taken - drain->offered : 0;
	uint32_t left = drain->shared->geometry.ring_count - drain->next_ring, count;
	uint32_t least = drain->shared->geometry.spare_rings, spare = drain->active_count;

	spare = spare < least ? least : spare;
	spare = spare < JUMP_SPARE_RINGS ? spare : JUMP_SPARE_RINGS;
	if (ready >= spare || left == 0)
		return;
	count = waiting < left ? (uint32_t)waiting + spare - (uint32_t)ready : left;
	if (count > left)
		count = left;
	if (drain->help.fill && !drain->help.fill(drain->help.context, drain->next_ring, count))
		return;
	for (uint32_t i = 0; i < count; i++)
		put_in_queue(drain, &drain->readers[drain->next_ring++]);
	__atomic_store_n(&jump_control(drain->shared)->rings_all, count == left, __ATOMIC_RELAXED);
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
	uint64_t spent = __atomic_load_n(&slot->spent, __ATOMIC_RELAXED);

	add(&stats->lost_events, __atomic_load_n(&slot->lost_events, __ATOMIC_RELAXED));
	add(&stats->lost_stacks, __atomic_load_n(&slot->lost_stacks, __ATOMIC_RELAXED));
	add(&stats->walks, __atomic_load_n(&slot->walks, __ATOMIC_RELAXED));
	add(&stats->slow_walks, __atomic_load_n(&slot->slow_walks, __ATOMIC_RELAXED));
	/* No thread has waited for longer than there was something to wait for. */
	add(&stats->waited, waited < window ? waited : window);
	add(&stats->spent, spent < window ? spent : window);
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

/* What a reader's thread has waited since the step that is JUMP_WAIT_STEPS before this one. */
static uint64_t note_waited(struct jump_reader *reader, uint64_t last, uint64_t step)
{
	uint64_t now = __atomic_load_n(&reader->slot->waited_room, __ATOMIC_RELAXED), waited;

	for (uint64_t i = last + 1; i < step && i <= last + JUMP_WAIT_STEPS; i++)
		reader->waited[i % JUMP_WAIT_STEPS] = reader->waited[last % JUMP_WAIT_STEPS];
	waited = now - reader->waited[step % JUMP_WAIT_STEPS];
	reader->waited[step % JUMP_WAIT_STEPS] = now;
	return waited;
}

uint64_t jump_drain_waited(struct jump_drain *drain, uint64_t step)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < drain->active_count; i++) {
		uint64_t waited = note_waited(drain->active[i], drain->wait_step, step);

		most = waited > most ? waited : most;
	}
	drain->wait_step = step;
	return most;
}

void jump_drain_forgive(struct jump_drain *drain)
{
	for (uint32_t i = 0; i < drain->active_count; i++)
		for (unsigned step = 0; step < JUMP_WAIT_STEPS; step++)
			drain->active[i]->waited[step] =
				__atomic_load_n(&drain->active[i]->slot->waited_room, __ATOMIC_RELAXED);
}

uint64_t jump_drain_asked(const struct jump_drain *drain)
{
	const struct mw_ring_control *control = jump_control(drain->shared);
	uint64_t sum = __atomic_load_n(&control->rings_taken, __ATOMIC_ACQUIRE);

	sum += __atomic_load_n(&control->loader_changes, __ATOMIC_RELAXED);
	sum += __atomic_load_n(&control->asks, __ATOMIC_RELAXED);
	sum += __atomic_load_n(&control->lost_events, __ATOMIC_RELAXED);
	sum += __atomic_load_n(&control->given_up, __ATOMIC_RELAXED);
	sum += __atomic_load_n(&control->child_count, __ATOMIC_RELAXED);
	sum += __atomic_load_n(&control->exits, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < drain->active_count; i++)
		sum += __atomic_load_n(&drain->active[i]->slot->exec, __ATOMIC_RELAXED);
	return sum;
}

uint64_t jump_drain_counted(const struct jump_drain *drain)
{
	const struct mw_ring_control *control = jump_control(drain->shared);
	uint64_t sum = jump_drain_asked(drain);

	sum += __atomic_load_n(&control->next_stack, __ATOMIC_RELAXED);
	sum += __atomic_load_n(&control->slow_taken, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < drain->active_count; i++)
		sum += __atomic_load_n(&drain->active[i]->slot->reserved, __ATOMIC_RELAXED);
	return sum;
}

void jump_drain_await(struct jump_drain *drain)
{
	discover(drain);
	for (uint32_t i = 0; i < drain->active_count; i++)
		drain->active[i]->awaited = __atomic_load_n(&drain->active[i]->slot->reserved, __ATOMIC_ACQUIRE);
}

bool jump_drain_caught_up(const struct jump_drain *drain)
{
	for (uint32_t i = 0; i < drain->active_count; i++)
		if (drain->active[i]->read < drain->active[i]->awaited)
			return false;
	return true;
}

void jump_drain_tidy(struct jump_drain *drain)
{
	discover(drain);
	for (uint32_t i = 0; i < drain->shared->geometry.slot_count; i++)
		if (!vacant(jump_slot(drain->shared, i)))
			tidy_slot(drain, jump_slot(drain->shared, i));
	offer(drain);
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
	add(&sum->spent, drain->retired.spent);
	add(&sum->lost_events, __atomic_load_n(&jump_control(drain->shared)->lost_events, __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < drain->shared->geometry.slot_count; i++)
		if (!vacant(jump_slot(drain->shared, i)))
			count_slot(drain, sum, jump_slot(drain->shared, i));
	if (sum->slow_walks > sum->walks)
		sum->slow_walks = sum->walks;
	return sum;
}

#define ROUND_RECORDS 65536u
#define MARGIN_NS     20000u
#define PATIENCE      10u                   /* times JUMP_HOLD_NS where nobody waits for room */
#define FUTURE_NS     UINT64_C(10000000000) /* later than now by so much no record can be */
#define LONGER_NS     20000000u             /* a ring is taken to be filled more slowly, by a sixteenth, so often */
#define FASTEST_NS    UINT64_C(50000)       /* … from this on */
#define WALKS_NS      UINT64_C(100000000)   /* of walks a round */
#define LAST_WALKS_NS UINT64_C(10000000000) /* … the last one, which can leave nothing for later */

static void free_readers(struct jump_drain *drain)
{
	for (uint32_t i = 0; drain->readers && i < drain->shared->geometry.ring_count; i++) {
		free(drain->readers[i].open);
		free(drain->readers[i].compared);
	}
	free(drain->readers);
}

void jump_drain_destroy(struct jump_drain *drain)
{
	if (!drain)
		return;
	mw_error_destroy(drain->failure);
	for (uint32_t i = 0; i < drain->difference_count; i++)
		free(drain->differences[i]);
	for (uint32_t i = 0; drain->stacks.chunk_count; i++) {
		drain->stacks.chunk_count -= drain->stacks.chunks[i] != NULL;
		free(drain->stacks.chunks[i]);
	}
	free(drain->stacks.chunks);
	free_readers(drain);
	free(drain->active);
	free(drain->heap);
	free(drain->payload);
	free(drain->frames);
	free(drain->merged);
	free(drain->refs);
	free(drain->functions);
	free(drain);
}

static void init_readers(struct jump_drain *drain)
{
	const struct jump_geometry *geometry = &drain->shared->geometry;
	uint64_t offered = __atomic_load_n(&jump_control(drain->shared)->rings_offered, __ATOMIC_ACQUIRE);

	drain->next_ring = offered < geometry->ring_count ? (uint32_t)offered : geometry->ring_count;
	drain->offered = drain->next_ring;
	for (uint32_t i = 0; i < geometry->ring_count; i++) {
		drain->readers[i].number = i;
		drain->readers[i].units = jump_ring(drain->shared, i);
		drain->readers[i].state = i < drain->next_ring ? JUMP_READER_OFFERED : JUMP_READER_UNUSED;
	}
}

struct mw_error *jump_drain_create(const struct jump_shared *shared, struct jump_clock *clock,
				   const struct mw_event_sink *sink, const struct jump_drain_help *help,
				   struct jump_drain **out)
{
	const struct jump_geometry *geometry = &shared->geometry;
	struct jump_drain *drain = calloc(1, sizeof(*drain));

	if (!drain)
		return mw_error_nomem();
	drain->shared = shared;
	drain->clock = clock;
	drain->end_ns = UINT64_MAX;
	/* For all that is known they are as fast as can be. */
	drain->fill_ticks = jump_clock_ticks(clock, FASTEST_NS);
	drain->sink = *sink;
	drain->help = *help;
	drain->hooks = MW_RING_HOOKS;
	drain->units_mask = geometry->ring_units - 1;
	drain->units_shift = (uint32_t)__builtin_ctz(geometry->ring_units);
	drain->margin = jump_clock_ticks(clock, MARGIN_NS);
	drain->hold_ticks = jump_clock_ticks(clock, JUMP_HOLD_NS);
	drain->longer_ticks = jump_clock_ticks(clock, LONGER_NS);
	drain->walk_limit = jump_clock_ticks(clock, WALKS_NS);
	drain->last_limit = jump_clock_ticks(clock, LAST_WALKS_NS);
	drain->readers = calloc(geometry->ring_count, sizeof(*drain->readers));
	drain->active = calloc(geometry->ring_count, sizeof(struct jump_reader *));
	drain->heap = calloc(geometry->ring_count, sizeof(*drain->heap));
	drain->payload = malloc((size_t)geometry->ring_units * MW_RING_UNIT);
	drain->frames = calloc(geometry->depth + (size_t)1, sizeof(*drain->frames));
	drain->merged = calloc(geometry->depth + (size_t)1, sizeof(*drain->merged));
	drain->refs = calloc(geometry->script_frames + (size_t)1, sizeof(*drain->refs));
	drain->functions = calloc(geometry->depth + (size_t)1, sizeof(*drain->functions));
	drain->stacks.chunks = calloc(JUMP_STACK_CHUNKS, sizeof(*drain->stacks.chunks));
	if (!drain->readers || !drain->active || !drain->heap || !drain->payload || !drain->frames || !drain->merged ||
	    !drain->refs || !drain->functions || !drain->stacks.chunks) {
		jump_drain_destroy(drain);
		return mw_error_nomem();
	}
	init_readers(drain);
	*out = drain;
	return NULL;
}

/*
 * A ring's next record is not marked: nothing later than its last one is reported. But a thread that does not come to
 * mark it (it was stopped, or has left its signal handler by a jump and not come back) is not waited for while others
 * wait for room, nor for ever.
 */
static void hold(struct jump_drain *drain, struct jump_reader *reader)
{
	uint64_t since;

	if (reader->held_at != reader->read) {
		reader->held_at = reader->read;
		reader->held_since = drain->now;
		reader->overtaken = false;
	}
	since = drain->now - reader->held_since;
	if (since > drain->hold_ticks * PATIENCE || (drain->pressed && since > drain->hold_ticks)) {
		drain->stats.overtaken += !reader->overtaken;
		reader->overtaken = true;
		return;
	}
	if (reader->last < drain->limit)
		drain->limit = reader->last;
}

static void sift_down(struct jump_drain *drain, uint32_t at, struct jump_next moved)
{
	struct jump_next *heap = drain->heap;

	for (uint32_t child = 2 * at + 1; child < drain->heap_count; child = 2 * at + 1) {
		if (child + 1 < drain->heap_count && heap[child + 1].time < heap[child].time)
			child++;
		if (heap[child].time >= moved.time)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

/* The least time of all but the first. */
static uint64_t second_time(const struct jump_drain *drain)
{
	uint64_t time = UINT64_MAX;

	if (drain->heap_count > 1)
		time = drain->heap[1].time;
	if (drain->heap_count > 2 && drain->heap[2].time < time)
		time = drain->heap[2].time;
	return time;
}

/* See how far a ring may be read. */
static void look(struct jump_drain *drain, struct jump_reader *reader)
{
	uint64_t units = (uint64_t)drain->units_mask + 1;
	uint64_t reserved = __atomic_load_n(&reader->slot->reserved, __ATOMIC_ACQUIRE);
	uint64_t ahead = reserved - reader->read;

	/* A signal handler may have taken the room that the thread had seen: it has reserved more then than there is,
	 * and waits. Much more, or less than was read: the number is not the recorder's. */
	if (ahead > units * JUMP_MOST_AHEAD) {
		if (!reader->searching)
			drain->stats.bad_records++;
		reader->searching = true;
		ahead = ahead > UINT64_MAX / 2 ? 0 : units;
	}
	reader->more = ahead > units;
	if (reader->more)
		ahead = units;
	reader->end = reader->read + ahead;
	if (ahead > units / 4 * 3)
		drain->pressed = true;
	if (ahead > drain->fullest)
		drain->fullest = ahead;
}

/* Look at every ring: what it has first, and what it holds back. */
static struct mw_error *gather(struct jump_drain *drain)
{
	drain->heap_count = 0;
	drain->pressed = false;
	drain->fullest = 0;
	for (uint32_t i = 0; i < drain->active_count; i++)
		look(drain, drain->active[i]);
	for (uint32_t i = 0; i < drain->active_count; i++) {
		struct jump_reader *reader = drain->active[i];
		enum jump_run state;
		uint64_t time;

		reader->begun = reader->read;
		if (reader->read == reader->end)
			continue;
		MW_TRY(jump_reader_run(drain, reader, 0, &state, &time));
		if (state == JUMP_RUN_HELD)
			hold(drain, reader);
		if (state == JUMP_RUN_LATER) {
			reader->begun = reader->read;
			reader->first = time;
			drain->heap[drain->heap_count++] = (struct jump_next){time, reader};
		}
	}
	for (uint32_t i = drain->heap_count / 2; i-- > 0;)
		sift_down(drain, i, drain->heap[i]);
	return NULL;
}

static struct mw_error *merge(struct jump_drain *drain)
{
	while (drain->heap_count > 0 && drain->budget > 0) {
		struct jump_next first = drain->heap[0];
		uint64_t second = second_time(drain);
		enum jump_run state;

		if (first.time > drain->limit)
			break;
		MW_TRY(jump_reader_run(drain, first.reader, second < drain->limit ? second : drain->limit, &state,
				       &first.time));
		if (state == JUMP_RUN_HELD)
			hold(drain, first.reader);
		if (state == JUMP_RUN_HELD || state == JUMP_RUN_EMPTY)
			first = drain->heap[--drain->heap_count];
		if (drain->heap_count > 0)
			sift_down(drain, 0, first);
	}
	return NULL;
}

/* Rings were taken that we don't know, or the target says so. */
static void look_for_rings(struct jump_drain *drain)
{
	uint64_t taken = __atomic_load_n(&jump_control(drain->shared)->rings_taken, __ATOMIC_ACQUIRE);

	if (taken != drain->attached) {
		discover(drain);
		offer(drain);
	}
}

/* How fast is a ring filled? Its records say when they were made: that does not depend on how often it is read, or on
 * whether the thread has a CPU all the time. */
static void note_pace(struct jump_drain *drain, const struct jump_reader *reader)
{
	uint64_t read = reader->read - reader->begun, quarter = drain->shared->geometry.ring_units / 4, ticks;

	/* A few that come at once fill none. */
	if (read == 0 || read < quarter / 2 || reader->last <= reader->first)
		return;
	ticks = (reader->last - reader->first) * quarter / read;
	if (ticks < drain->fill_ticks)
		drain->fill_ticks = ticks;
}

static void note_paces(struct jump_drain *drain)
{
	if (drain->fill_ticks != UINT64_MAX && drain->now - drain->filled > drain->longer_ticks) {
		drain->filled = drain->now;
		drain->fill_ticks += drain->fill_ticks / 16 + 1;
		/* That is as good as never. */
		if (drain->fill_ticks > drain->hold_ticks)
			drain->fill_ticks = UINT64_MAX;
	}
	for (uint32_t i = 0; i < drain->active_count; i++)
		note_pace(drain, drain->active[i]);
}

struct mw_error *jump_drain_round(struct jump_drain *drain, size_t *events)
{
	uint64_t before = drain->stats.events, future = jump_clock_ticks(drain->clock, FUTURE_NS);
	struct mw_error *err = drain->failure;

	*events = 0;
	drain->failure = NULL;
	MW_TRY(err);
	drain->now = jump_clock_tick();
	drain->latest = drain->now + future;
	drain->limit = drain->last_round ? UINT64_MAX : drain->now - drain->margin;
	drain->budget = drain->last_round ? SIZE_MAX : ROUND_RECORDS;
	drain->walked = 0;
	drain->sought = 0;
	look_for_rings(drain);
	err = gather(drain);
	if (!err)
		err = merge(drain);
	note_paces(drain);
	for (uint32_t i = 0; i < drain->active_count; i++)
		jump_reader_publish(drain->active[i]);
	if (!err)
		err = jump_drain_flush(drain);
	*events = (size_t)(drain->stats.events - before);
	return err;
}

struct mw_error *jump_drain_stacks(struct jump_drain *drain)
{
	look_for_rings(drain);
	return jump_stacks_take_early(drain);
}

struct mw_error *jump_drain_finish(struct jump_drain *drain)
{
	size_t events;

	discover(drain);
	drain->last_round = true;
	MW_TRY(jump_drain_round(drain, &events));
	for (uint32_t i = 0; i < drain->active_count; i++)
		MW_TRY(jump_calls_cancel(drain, drain->active[i]));
	return jump_drain_flush(drain);
}

struct mw_error *jump_drain_rename(struct jump_drain *drain)
{
	for (uint32_t i = 0; i < drain->active_count; i++) {
		struct jump_reader *reader = drain->active[i];
		char name[17] = "";
		pid_t pid = reader->pid;

		/* Who has ended keeps the name that it had. */
		if (reader->thread == JUMP_NO_THREAD || !drain->help.thread_lives(drain->help.context, reader->tid))
			continue;
		if (!drain->help.thread(drain->help.context, reader->tid, &pid, name))
			continue;
		name[sizeof(name) - 1] = '\0';
		if (pid == reader->pid && name[0] != '\0')
			MW_TRY(drain->sink.thread(drain->sink.context, pid, name, false, &reader->thread));
	}
	return NULL;
}
