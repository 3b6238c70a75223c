// SPDX-License-Identifier: MIT
/* jump_rig.c: made-up rings (jump_rig.h). */
#include "jump_rig.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

static struct mw_error *take_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct rig *rig = context;
	struct rig_stack *kept = &rig->stacks[rig->stack_count % 64];

	assert_true(stack->count <= RIG_DEPTH);
	memcpy(kept->frames, stack->frames, stack->count * sizeof(*stack->frames));
	kept->count = stack->count;
	kept->cut = stack->cut;
	kept->hook = stack->hook;
	kept->kind = stack->kind;
	*id = rig->stack_count++;
	return NULL;
}

static struct mw_error *take_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct rig *rig = context;
	struct rig_thread *thread = &rig->threads[rig->thread_count % 64];

	thread->pid = tid;
	thread->fresh = fresh;
	strcpy(thread->name, name);
	if (fresh)
		*number = rig->thread_count;
	rig->thread_count++;
	return NULL;
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	struct rig *rig = context;

	if (rig->refuse_event)
		return mw_error_nomem();
	rig->events = mw_vector_room(rig->events, rig->event_count, &rig->event_capacity, sizeof(*event));
	assert_non_null(rig->events);
	rig->events[rig->event_count++] = *event;
	return NULL;
}

/* An interval is known by its bytes. */
static struct mw_error *take_interval(void *context, uint64_t bytes, uint16_t *number)
{
	(void)context;
	*number = (uint16_t)bytes;
	return NULL;
}

static bool knows(void *context, mw_addr addr)
{
	(void)context;
	return addr == RIG_KNOWN;
}

static bool help_thread(void *context, uint32_t tid, pid_t *out, char name[17])
{
	const struct rig *rig = context;

	*out = (pid_t)(RIG_PID + tid - RIG_TID);
	strcpy(name, rig->ended ? "ended" : rig->name);
	return !rig->ended;
}

/* Modules are of 64 KiB. */
static uint32_t help_module(void *context, mw_addr pc)
{
	const struct rig *rig = context;

	return rig->unmapped ? MW_MODULE_NONE : (uint32_t)(pc >> 16);
}

static void help_walk(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		      struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	struct rig *rig = context;

	rig->slow = *slow;
	rig->slow_size = size;
	memcpy(rig->slow_bytes, bytes, size < sizeof(rig->slow_bytes) ? size : sizeof(rig->slow_bytes));
	*count = rig->walked_count < capacity ? rig->walked_count : capacity;
	memcpy(frames, rig->walked, *count * sizeof(*frames));
	*cut = rig->walked_cut;
}

/* The interpreter's frames stand first, as module 77. */
static struct mw_error *help_script(void *context, const struct mw_raw_stack *native, const struct mw_script_ref *refs,
				    uint32_t ref_count, struct mw_raw_frame *out, uint32_t capacity, uint32_t *count,
				    bool *truncated)
{
	struct rig *rig = context;

	assert_in_range(ref_count, 1, RIG_SCRIPT);
	memcpy(rig->refs, refs, ref_count * sizeof(*refs));
	rig->ref_count = ref_count;
	*count = 0;
	for (uint32_t i = 0; i < ref_count && *count < capacity; i++)
		out[(*count)++] = (struct mw_raw_frame){refs[i].at, 77};
	for (uint32_t i = 0; i < native->count && *count < capacity; i++)
		out[(*count)++] = native->frames[i];
	*truncated = ref_count + native->count > capacity;
	return NULL;
}

/* A frame of module 88: where in its method it is. */
static struct mw_error *help_interpreted(void *context, const struct mw_interpreted *interpreted,
					 struct mw_raw_frame *frame)
{
	struct rig *rig = context;

	rig->interpreted = *interpreted;
	*frame = (struct mw_raw_frame){interpreted->at, 88};
	return NULL;
}

/* What has an address of 0x7fff0000 to 0x7fffffff stands for two frames of module 99. */
static struct mw_error *help_name(void *context, const struct mw_raw_stack *native, struct mw_raw_frame *out,
				  uint32_t capacity, uint32_t *count, bool *truncated)
{
	(void)context;
	*count = 0;
	for (uint32_t i = 0; i < native->count; i++)
		for (unsigned j = 0; j < (native->frames[i].addr >> 16 == 0x7fff ? 2u : 1u); j++) {
			*truncated = *count == capacity;
			if (*truncated)
				return NULL;
			out[*count] = native->frames[i];
			if (native->frames[i].addr >> 16 == 0x7fff)
				out[*count] = (struct mw_raw_frame){j, 99};
			++*count;
		}
	return NULL;
}

static bool help_lives(void *context, uint32_t tid)
{
	const struct rig *rig = context;

	return tid >= 256 || !rig->dead[tid];
}

static bool help_fill(void *context, uint32_t first, uint32_t count)
{
	struct rig *rig = context;

	if (rig->refuse_fill)
		return false;
	rig->filled_from = first;
	rig->filled_count = count;
	rig->fills++;
	return true;
}

static void plan(struct jump_geometry *geometry)
{
	*geometry = (struct jump_geometry){.slot_count = RIG_SLOTS,
					   .ring_count = RIG_RINGS,
					   .ring_units = RIG_UNITS,
					   .queue_count = RIG_RINGS,
					   .spare_rings = RIG_RINGS,
					   .depth = RIG_DEPTH,
					   .script_frames = RIG_SCRIPT,
					   .slots = sizeof(struct mw_ring_control)};
	geometry->queue = geometry->slots + RIG_SLOTS * sizeof(struct mw_ring_slot);
	geometry->rings = geometry->queue + RIG_RINGS * sizeof(uint32_t);
	geometry->size = geometry->rings + RIG_RINGS * RIG_UNITS * MW_RING_UNIT;
}

void rig_use(struct rig *rig, const struct mw_event_sink *sink)
{
	const struct jump_drain_help help = {.context = rig,
					     .thread = help_thread,
					     .module = help_module,
					     .walk = help_walk,
					     .interpreted = help_interpreted,
					     .name = help_name,
					     .script = help_script,
					     .thread_lives = help_lives,
					     .fill = help_fill};

	jump_drain_destroy(rig->drain);
	assert_null(jump_drain_create(&rig->shared, &rig->clock, sink, &help, &rig->drain));
}

int rig_setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	const struct mw_event_sink sink = {.context = rig,
					   .stack = take_stack,
					   .thread = take_thread,
					   .event = take_event,
					   .knows = knows,
					   .interval = take_interval};
	uint64_t start = jump_clock_tick() - 1000000000;

	assert_non_null(rig);
	rig->name = "worker";
	plan(&rig->shared.geometry);
	rig->shared.base = aligned_alloc(64, (rig->shared.geometry.size + 63) & ~UINT64_C(63));
	assert_non_null(rig->shared.base);
	memset(rig->shared.base, 0, rig->shared.geometry.size);
	jump_shared_format(&rig->shared, 8);
	rig->clock = (struct jump_clock){.start_tick = start,
					 .known_tick = start,
					 .rate = UINT64_C(1) << 32,
					 .before_tick = start,
					 .before_rate = UINT64_C(1) << 32};
	rig_use(rig, &sink);
	*state = rig;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *rig = *state;

	jump_drain_destroy(rig->drain);
	free(rig->shared.base);
	free(rig->events);
	free(rig);
	return 0;
}

struct mw_ring_slot *rig_slot(const struct rig *rig, uint32_t ring)
{
	return jump_slot(&rig->shared, ring);
}

void rig_thread(struct rig *rig, uint32_t slot)
{
	struct mw_ring_control *control = jump_control(&rig->shared);

	assert_true(control->rings_taken < control->rings_offered);
	rig_slot(rig, slot)->ring = 1 + jump_queue(&rig->shared)[control->rings_taken++ % RIG_RINGS];
	rig_slot(rig, slot)->tid = RIG_TID + slot;
	rig_slot(rig, slot)->owner = 0x7f0000000000 + slot;
	rig_put(rig, slot, 0, MW_RING_THREAD, 0, MW_RING_STACK_NONE, RIG_TID + slot, 0);
}

uint64_t rig_reserve(struct rig *rig, uint32_t slot, uint64_t units)
{
	struct mw_ring_slot *at = rig_slot(rig, slot);

	assert_true(at->reserved + units - at->drained <= RIG_UNITS);
	at->reserved += units;
	return at->reserved - units;
}

static struct mw_ring_record *record_at(struct rig *rig, uint32_t slot, uint64_t unit)
{
	return jump_ring(&rig->shared, rig_slot(rig, slot)->ring - 1) + unit % RIG_UNITS;
}

void rig_write(struct rig *rig, uint32_t slot, uint64_t unit, uint64_t time, enum mw_ring_type type, uint32_t flags,
	       uint32_t stack, uint64_t addr, uint64_t size)
{
	struct mw_ring_record *record = record_at(rig, slot, unit);

	record->time = rig->clock.start_tick + time;
	record->addr = addr;
	record->size = size;
	record->mark = mw_ring_mark(stack, 1, type, flags, mw_ring_lap(unit, RIG_UNITS));
}

void rig_payload(struct rig *rig, uint32_t slot, uint64_t unit, const void *bytes, size_t size)
{
	for (size_t done = 0; done < size; done += MW_RING_UNIT)
		memcpy(record_at(rig, slot, ++unit), (const uint8_t *)bytes + done,
		       size - done < MW_RING_UNIT ? size - done : MW_RING_UNIT);
}

void rig_put(struct rig *rig, uint32_t slot, uint64_t time, enum mw_ring_type type, uint32_t flags, uint32_t stack,
	     uint64_t addr, uint64_t size)
{
	rig_write(rig, slot, rig_reserve(rig, slot, 1), time, type, flags, stack, addr, size);
}

static void put_behind(struct rig *rig, uint32_t slot, uint64_t time, enum mw_ring_type type, uint32_t flags,
		       uint32_t id, uint64_t size, const void *bytes, size_t length)
{
	uint64_t unit = rig_reserve(rig, slot, 1 + (length + MW_RING_UNIT - 1) / MW_RING_UNIT);

	rig_payload(rig, slot, unit, bytes, length);
	rig_write(rig, slot, unit, time, type, flags, MW_RING_STACK_NONE, id, size);
}

void rig_put_stack(struct rig *rig, uint32_t slot, uint64_t time, uint32_t flags, uint32_t id, const uint64_t *frames,
		   uint32_t count, uint32_t cut)
{
	put_behind(rig, slot, time, MW_RING_STACK, flags, id, count | (uint64_t)cut << 32, frames,
		   count * sizeof(*frames));
}

void rig_put_script(struct rig *rig, uint32_t slot, uint64_t time, uint32_t id, const struct mw_script_ref *refs,
		    uint32_t count)
{
	put_behind(rig, slot, time, MW_RING_SCRIPT, 0, id, count, refs, count * sizeof(*refs));
}

void rig_put_slow(struct rig *rig, uint32_t slot, uint64_t time, uint32_t flags, uint32_t id, const void *bytes,
		  size_t size)
{
	put_behind(rig, slot, time, MW_RING_SLOW, flags, id, size, bytes, size);
}

size_t rig_round(struct rig *rig)
{
	size_t events = 0;

	assert_null(jump_drain_round(rig->drain, &events));
	return events;
}

size_t rig_drain(struct rig *rig)
{
	size_t all = 0, events;

	while ((events = rig_round(rig)) > 0)
		all += events;
	return all;
}

void rig_expect(const struct rig *rig, size_t at, struct mw_event event)
{
	const struct mw_event *told = &rig->events[at];

	assert_true(at < rig->event_count);
	assert_int_equal(told->type, event.type);
	assert_int_equal(told->kind, event.kind);
	assert_int_equal(told->time_ns, event.time_ns);
	assert_int_equal(told->addr, event.addr);
	assert_int_equal(told->size, event.size);
	assert_int_equal(told->stack, event.stack);
	assert_int_equal(told->thread, event.thread);
	assert_int_equal(told->interval, event.interval);
	assert_int_equal(told->unsampled, event.unsampled);
}
