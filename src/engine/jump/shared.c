// SPDX-License-Identifier: MIT
/* shared.c: lays out the memory that is shared with a target (drain.h). */
#include "engine/jump/drain.h"

#define STACKS         (1u << 17)
#define KNOWN          (1u << 20)
#define CACHED_ROWS    (1u << 14)
#define FEW_STACKS     (1u << 13)
#define FEW_KNOWN      (1u << 16)
#define FEW_ROWS       (1u << 13)
#define SPARE_RINGS    48u
#define FEW_RINGS      2u
#define MIN_SLOTS      1024u
#define MAX_SLOTS      (1u << 20)
#define MIN_RINGS      256u
#define MAX_RINGS      (1u << 16)
#define RING_BYTES     (128u << 10)
#define MIN_RING_BYTES (32u << 10)           /* a record of the slow road carries a piece of the stack */
#define ALL_RINGS      (UINT64_C(512) << 20) /* of address space: memory comes with the threads */
#define DICTIONARY     (UINT64_C(1) << 16)   /* rows; programs of a hundred modules have a few thousand */
#define ROWS_ROOM      (UINT64_C(4) << 20)
#define ALIGNMENT      4096u

_Static_assert(sizeof(struct mw_ring_slot) == 256, "slots lie on cache lines of their own");
_Static_assert(sizeof(struct mw_ring_record) == MW_RING_UNIT, "a record is a unit");

static uint32_t power_of_two(uint64_t at_least)
{
	uint32_t n = 1;

	while (n < at_least)
		n *= 2;
	return n;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	if (value < low)
		return low;
	return value < high ? value : high;
}

/* `size` bytes from `*end` on, which moves. */
static uint64_t take(uint64_t *end, uint64_t size)
{
	uint64_t start = *end;

	*end = (start + size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
	return start;
}

void jump_geometry_plan(struct jump_geometry *geometry, size_t threads, uint32_t depth, uint64_t rows_bytes,
			bool sampling, unsigned scripts, bool small)
{
	uint64_t wanted = threads > MAX_SLOTS / 4 ? MAX_SLOTS : 4 * (uint64_t)threads;
	uint64_t ring_bytes = RING_BYTES, end;
	uint32_t rings = (uint32_t)clamp(wanted, MIN_RINGS, MAX_RINGS);

	while (ring_bytes > MIN_RING_BYTES && ring_bytes * rings > ALL_RINGS)
		ring_bytes /= 2;
	*geometry = (struct jump_geometry){
		.slot_count = power_of_two(clamp(wanted, MIN_SLOTS, MAX_SLOTS)),
		.ring_count = rings,
		.ring_units = (uint32_t)(ring_bytes / MW_RING_UNIT),
		.queue_count = power_of_two(rings),
		.depth = depth,
		.script_frames = scripts & JUMP_SCRIPT_PYTHON ? depth : 0,
		.spare_rings = small ? FEW_RINGS : SPARE_RINGS,
		.stack_count = small ? FEW_STACKS : STACKS,
		.known_count = small ? FEW_KNOWN : KNOWN,
		.cache_count = small ? FEW_ROWS : CACHED_ROWS,
		.dictionary_capacity = DICTIONARY,
	};
	end = 0;
	take(&end, sizeof(struct mw_ring_control));
	geometry->slots = take(&end, geometry->slot_count * sizeof(struct mw_ring_slot));
	geometry->queue = take(&end, geometry->queue_count * sizeof(uint32_t));
	geometry->scratch =
		take(&end, (uint64_t)rings * mw_ring_scratch_words(depth, geometry->script_frames) * sizeof(uint64_t));
	geometry->memos = take(&end, (uint64_t)rings * MW_RING_MEMOS * sizeof(struct mw_ring_memo));
	geometry->stacks = take(&end, geometry->stack_count * sizeof(struct mw_ring_stack_entry));
	geometry->known = take(&end, geometry->known_count * sizeof(uint32_t));
	geometry->cache = take(&end, geometry->cache_count * sizeof(struct mw_ring_cached_row));
	if (scripts)
		geometry->script_ranges = take(&end, MW_RING_SCRIPT_RANGES * sizeof(struct mw_ring_region) +
							     MW_RING_SCRIPT_CODES * sizeof(uint64_t));
	geometry->tables_end = end;
	if (sampling)
		geometry->filter = take(&end, MW_RING_FILTER_SIZE);
	geometry->dictionary = take(&end, DICTIONARY * sizeof(uint64_t));
	geometry->learned = take(&end, MW_RING_LEARNED * sizeof(struct mw_ring_cached_row));
	geometry->rows = take(&end, rows_bytes * 2 + ROWS_ROOM);
	geometry->rows_end = end;
	geometry->rings = take(&end, ring_bytes * rings);
	geometry->size = end;
}

void jump_shared_format(const struct jump_shared *shared, uint32_t rings)
{
	const struct jump_geometry *geometry = &shared->geometry;
	struct mw_ring_control *control = jump_control(shared);
	uint32_t *queue = jump_queue(shared);

	control->layout = MW_RING_LAYOUT;
	control->size = geometry->size;
	control->slot_count = geometry->slot_count;
	control->ring_count = geometry->ring_count;
	control->ring_units = geometry->ring_units;
	control->queue_count = geometry->queue_count;
	control->depth = geometry->depth;
	control->stack_count = geometry->stack_count;
	control->known_count = geometry->known_count;
	control->cache_count = geometry->cache_count;
	control->slots = geometry->slots;
	control->queue = geometry->queue;
	control->scratch = geometry->scratch;
	control->memos = geometry->memos;
	control->stacks = geometry->stacks;
	control->known = geometry->known;
	control->cache = geometry->cache;
	control->dictionary = geometry->dictionary;
	control->learned = geometry->learned;
	control->rings = geometry->rings;
	control->script.frames = geometry->script_frames;
	control->script.ranges = geometry->script_ranges;
	control->script.codes = geometry->script_ranges + MW_RING_SCRIPT_RANGES * sizeof(struct mw_ring_region);
	control->slow_allowed = JUMP_SLOW_FREE;
	if (rings > geometry->ring_count)
		rings = geometry->ring_count;
	for (uint32_t i = 0; i < rings; i++)
		queue[i] = i;
	control->rings_offered = rings;
	__atomic_store_n(&control->magic, MW_RING_MAGIC, __ATOMIC_RELEASE);
}
