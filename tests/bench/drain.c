// SPDX-License-Identifier: MIT
/*
 * drain.c: how many events a second the jump engine's drain takes out of rings: with a sink that only counts (the
 * rings' side alone), and with the tracker behind it. The rings are filled by another thread, as they are in earnest,
 * while the drain waits; only the drain's time counts.
 *
 *   drain [millions of events a line, 20]
 */
#include "engine/jump/drain.h"
#include "base/clock.h"
#include "track/track.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LIVE_LONG  1000000u
#define LIVE_SHORT 100u
#define STACKS     1000u
#define HELD_BACK  (UINT64_C(1) << 16) /* ticks: what the drain holds back may lie in the future when it looks */

/* One allocating program: blocks that live, whichever thread frees them. */
struct world {
	struct jump_shared shared;
	uint32_t rings, live, count;
	uint64_t *blocks; /* live ones */
	uint64_t next;    /* address */
	uint64_t random;
	uint64_t last_time;
	uint64_t told_stacks;
	uint64_t given; /* addresses freed and not used again: the newest first, as allocators do */
	uint64_t free_count;
	uint64_t *free;
	sem_t fill, filled;
	bool stop;
};

static uint64_t counted;

static struct mw_error *count_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	static uint32_t next;

	(void)context, (void)stack;
	*id = next++;
	return NULL;
}

static struct mw_error *count_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	(void)context, (void)name, (void)fresh;
	*number = (uint32_t)tid;
	return NULL;
}

static struct mw_error *count_event(void *context, const struct mw_event *event)
{
	(void)context, (void)event;
	counted++;
	return NULL;
}

static struct mw_error *count_events(void *context, const struct mw_event *events, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		counted += events[i].addr != 0;
	return NULL;
}

static bool count_knows(void *context, mw_addr addr)
{
	(void)context, (void)addr;
	return true;
}

static bool help_thread(void *context, uint32_t tid, pid_t *out, char name[17])
{
	(void)context;
	*out = (pid_t)tid;
	strcpy(name, "bench");
	return true;
}

static uint32_t help_module(void *context, mw_addr pc)
{
	(void)context, (void)pc;
	return 0;
}

static void help_walk(void *context, const struct mw_ring_slow *slow, const uint8_t *bytes, size_t size,
		      struct mw_raw_frame *frames, uint32_t capacity, uint32_t *count, enum mw_stack_cut *cut)
{
	(void)context, (void)slow, (void)bytes, (void)size, (void)frames, (void)capacity, (void)count, (void)cut;
}

static bool help_lives(void *context, uint32_t tid)
{
	(void)context, (void)tid;
	return true;
}

static uint64_t draw(struct world *world)
{
	world->random ^= world->random << 13;
	world->random ^= world->random >> 7;
	world->random ^= world->random << 17;
	return world->random;
}

/* Room for `units` more in a ring? */
static bool room(const struct world *world, uint32_t ring, uint64_t units)
{
	const struct mw_ring_slot *slot = jump_slot(&world->shared, ring);

	return slot->reserved + units - slot->drained <= world->shared.geometry.ring_units;
}

static void put(struct world *world, uint32_t ring, enum mw_ring_type type, uint32_t stack, uint64_t addr,
		uint64_t size)
{
	uint32_t units = world->shared.geometry.ring_units;
	struct mw_ring_slot *slot = jump_slot(&world->shared, ring);
	struct mw_ring_record *record = jump_ring(&world->shared, ring) + slot->reserved % units;
	uint64_t mark = mw_ring_mark(stack, 1, type, 0, mw_ring_lap(slot->reserved, units));

	*record = (struct mw_ring_record){.time = ++world->last_time, .addr = addr, .size = size};
	__atomic_store_n(&slot->reserved, slot->reserved + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&record->mark, mark, __ATOMIC_RELEASE);
}

static void put_stack(struct world *world, uint32_t ring, uint32_t id)
{
	uint32_t units = world->shared.geometry.ring_units;
	struct mw_ring_slot *slot = jump_slot(&world->shared, ring);

	/* Its frame lies in the unit behind it. */
	jump_ring(&world->shared, ring)[(slot->reserved + 1) % units] = (struct mw_ring_record){.time = 0x1000 + id};
	put(world, ring, MW_RING_STACK, MW_RING_STACK_NONE, id, 1);
	slot->reserved++;
}

/* An allocation or the freeing of a block: one of the oldest, or any where many live. */
static void put_event(struct world *world, uint32_t ring)
{
	uint64_t number = draw(world), addr;
	uint32_t at = (uint32_t)(number >> 32) % world->live;

	if (world->count == world->live) {
		addr = world->blocks[at];
		world->blocks[at] = world->blocks[--world->count];
		world->free[world->free_count++] = addr;
		put(world, ring, MW_RING_FREE_BLOCK, MW_RING_STACK_NONE, addr, 0);
		return;
	}
	addr = world->free_count ? world->free[--world->free_count] : (world->next += 16 + (number & 0xf0));
	world->blocks[world->count++] = addr;
	put(world, ring, MW_RING_ALLOC, (uint32_t)(number >> 40) % STACKS, addr, 16 + (number & 0xff));
}

static void *fill(void *context)
{
	struct world *world = context;

	for (;;) {
		sem_wait(&world->fill);
		if (world->stop)
			return NULL;
		world->last_time = jump_clock_tick();
		while (world->told_stacks < STACKS && room(world, 0, 2))
			put_stack(world, 0, (uint32_t)world->told_stacks++);
		for (;;) {
			uint32_t ring = (uint32_t)(draw(world) >> 20) % world->rings;

			/* Threads go on at their own pace for some events each. */
			if (!room(world, ring, 8))
				break;
			for (int i = 0; i < 8; i++)
				put_event(world, ring);
		}
		sem_post(&world->filled);
	}
}

static void die(struct mw_error *err)
{
	fprintf(stderr, "%s\n", mw_error_text(err));
	exit(1);
}

static void world_init(struct world *world, uint32_t rings, uint32_t live)
{
	*world = (struct world){.rings = rings, .live = live, .random = 88172645463325252u, .next = 0x10000000};
	jump_geometry_plan(&world->shared.geometry, 16, 128, 0, false, false, false);
	world->shared.base = mmap(NULL, world->shared.geometry.size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (world->shared.base == MAP_FAILED)
		exit(1);
	jump_shared_format(&world->shared, rings);
	for (uint32_t i = 0; i < rings; i++)
		*jump_slot(&world->shared, i) = (struct mw_ring_slot){.owner = 0x1000 + i, .tid = i, .ring = i + 1};
	jump_control(&world->shared)->rings_taken = rings;
	world->blocks = calloc(live, sizeof(*world->blocks));
	world->free = calloc(live, sizeof(*world->free));
	sem_init(&world->fill, 0, 0);
	sem_init(&world->filled, 0, 0);
}

static void world_deinit(struct world *world)
{
	munmap(world->shared.base, world->shared.geometry.size);
	free(world->blocks);
	free(world->free);
}

/* Events a second. */
static double measure(uint32_t rings, uint32_t live, const struct mw_event_sink *sink, uint64_t wanted)
{
	const struct jump_drain_help help = {
		.thread = help_thread, .module = help_module, .walk = help_walk, .thread_lives = help_lives};
	struct jump_clock clock;
	struct jump_drain *drain;
	struct world world;
	uint64_t told = 0, took = 0, warm = live < 100000 ? 0 : 2 * (uint64_t)live;
	pthread_t filler;
	struct mw_error *err;

	world_init(&world, rings, live);
	jump_clock_init(&clock);
	err = jump_drain_create(&world.shared, &clock, sink, &help, &drain);
	if (err)
		die(err);
	for (uint32_t i = 0; i < rings; i++)
		if ((err = sink->thread(sink->context, (pid_t)i + 1, "bench", true, &(uint32_t){0})))
			die(err);
	pthread_create(&filler, NULL, fill, &world);
	while (told < wanted + warm) {
		size_t events;
		uint64_t start;

		sem_post(&world.fill);
		sem_wait(&world.filled);
		while (jump_clock_tick() < world.last_time + HELD_BACK)
			;
		start = mw_clock_ns();
		do {
			if ((err = jump_drain_round(drain, &events)))
				die(err);
			told += events;
		} while (events > 0);
		if (told >= warm)
			took += mw_clock_ns() - start;
	}
	world.stop = true;
	sem_post(&world.fill);
	pthread_join(filler, NULL);
	if (jump_drain_stats(drain)->bad_records > 0)
		fprintf(stderr, "%llu bad records\n", (unsigned long long)jump_drain_stats(drain)->bad_records);
	jump_drain_destroy(drain);
	world_deinit(&world);
	return (double)wanted * 1e9 / (double)took;
}

int main(int argc, char **argv)
{
	static const uint32_t rings[] = {1, 2, 16};
	static const uint32_t lives[] = {LIVE_SHORT, LIVE_LONG};
	const struct mw_event_sink counting = {.stack = count_stack,
					       .thread = count_thread,
					       .event = count_event,
					       .events = count_events,
					       .knows = count_knows};
	uint64_t wanted = 1000000 * (argc > 1 ? strtoull(argv[1], NULL, 10) : 20);

	printf("rings  live blocks  counted only   with tracker   (million events a second)\n");
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		for (size_t j = 0; j < sizeof(lives) / sizeof(lives[0]); j++) {
			struct mw_track *track;
			struct mw_error *err = mw_track_create(&track);
			struct mw_event_sink sink;
			double alone, tracked;

			if (err)
				die(err);
			sink = mw_track_sink(track);
			alone = measure(rings[i], lives[j], &counting, wanted);
			tracked = measure(rings[i], lives[j], &sink, wanted);
			printf("%5u  %11u  %12.1f  %13.1f\n", rings[i], lives[j], alone / 1e6, tracked / 1e6);
			fflush(stdout);
			mw_track_destroy(track);
		}
	}
	return 0;
}
