// SPDX-License-Identifier: MIT
/*
 * generate FILE EVENTS [LIVE [STACKS [SECONDS [SEED]]]]: write a recording of so many events, of a process that never
 * was: THREADS threads that allocate, free and reallocate so that about LIVE blocks are live (100,000), from STACKS
 * call stacks (2000) over SECONDS seconds (600). The same arguments make the same recording. Prints its size.
 *
 * Blocks lie as in an allocator's arenas, one a thread; most die young, some are freed by another thread.
 */
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH     512U
#define FRAMES    20U
#define THREADS   8U
#define MODULES   6U
#define HOOKS     6U
#define VM_STACKS 16U
#define YOUNG     64U /* blocks a thread allocated last, of which it frees most */
#define SLOT_SIZE 48U /* bytes from a block to the next */
#define MARKS     10U
#define CODE      UINT64_C(0x555555554000)
#define CODE_SIZE 0x400000U

static const char *const functions[HOOKS] = {"malloc", "free", "realloc", "mmap", "munmap", "calloc"};

/* The addresses of one thread's arena: those in use, newest last, and those to be handed out. */
struct arena {
	mw_addr *live, *unused;
	uint32_t live_count, unused_count;
};

struct generator {
	struct mw_store_writer *writer;
	struct mw_event_sink sink;
	struct arena arenas[THREADS];
	mw_addr *maps; /* what is mapped, a ring */
	uint64_t map_count, unmap_count;
	uint32_t *stacks, vm_stacks[VM_STACKS];
	uint32_t stack_count, live_wanted;
	uint32_t threads[THREADS];
	uint64_t random, time_ns, step_ns;
	uint64_t told, wanted;
	uint64_t heap_bytes; /* about what is live */
	struct mw_event events[BATCH];
	size_t count;
	uint32_t stack_ids, thread_ids; /* what the inner sink gave out */
};

#define MAPS_MAX 4096U

static void check(struct mw_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "generate: %s\n", mw_error_text(err));
	exit(1);
}

static void *allocate(size_t count, size_t size)
{
	void *block = calloc(count, size);

	if (!block) {
		fprintf(stderr, "generate: no memory\n");
		exit(1);
	}
	return block;
}

static uint32_t random_below(struct generator *generator, uint32_t limit)
{
	generator->random ^= generator->random << 13;
	generator->random ^= generator->random >> 7;
	generator->random ^= generator->random << 17;
	return (uint32_t)((generator->random >> 32) * limit >> 32);
}

/* Few of many: the lower the likelier. */
static uint32_t skewed_below(struct generator *generator, uint32_t limit)
{
	uint64_t a = random_below(generator, limit), b = random_below(generator, limit);

	return (uint32_t)(a * b / limit);
}

static struct mw_error *give_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct generator *generator = context;

	(void)stack;
	*id = generator->stack_ids++;
	return NULL;
}

static struct mw_error *give_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct generator *generator = context;

	(void)tid, (void)name, (void)fresh;
	*number = generator->thread_ids++;
	return NULL;
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	(void)context, (void)event;
	return NULL;
}

static struct mw_error *take_events(void *context, const struct mw_event *events, size_t count)
{
	(void)context, (void)events, (void)count;
	return NULL;
}

static void hand_over(struct generator *generator)
{
	if (generator->count)
		check(generator->sink.events(generator->sink.context, generator->events, generator->count));
	generator->count = 0;
}

static void tell(struct generator *generator, struct mw_event event)
{
	/* Most calls come close on one another, some after a pause. */
	uint64_t pause = random_below(generator, 2 * (uint32_t)generator->step_ns / 3 + 1);

	if (random_below(generator, 16) == 0)
		pause += random_below(generator, 20 * (uint32_t)generator->step_ns / 2 + 1);
	generator->time_ns += pause;
	event.time_ns = generator->time_ns;
	generator->events[generator->count++] = event;
	generator->told++;
	if (generator->count == BATCH)
		hand_over(generator);
}

static uint64_t size_of(struct generator *generator, uint32_t stack)
{
	/* Three stacks in four ask for one size, the others for what comes. */
	if (stack % 4)
		return 16 + (uint64_t)stack * 2654435761U % 61 * 8;
	return 1 + random_below(generator, 2000);
}

static void tell_alloc(struct generator *generator, uint32_t thread, enum mw_event_type type, mw_addr addr)
{
	uint32_t stack = skewed_below(generator, generator->stack_count);
	uint64_t size = size_of(generator, stack);

	generator->heap_bytes += size;
	tell(generator, (struct mw_event){.addr = addr,
					  .size = size,
					  .stack = generator->stacks[stack],
					  .thread = generator->threads[thread],
					  .type = type,
					  .kind = MW_KIND_HEAP});
}

static void tell_free(struct generator *generator, uint32_t thread, enum mw_event_type type, mw_addr addr)
{
	generator->heap_bytes -= generator->heap_bytes / (generator->live_wanted + 1);
	tell(generator, (struct mw_event){.addr = addr,
					  .size = 24 + (uint64_t)random_below(generator, 8) * 16,
					  .stack = MW_STACK_NONE,
					  .thread = generator->threads[thread],
					  .type = type,
					  .kind = MW_KIND_HEAP});
}

static mw_addr take(struct generator *generator, struct arena *arena)
{
	bool young = arena->live_count > YOUNG && random_below(generator, 10) < 8;
	uint32_t from = young ? arena->live_count - 1 - random_below(generator, YOUNG)
			      : random_below(generator, arena->live_count);
	mw_addr addr = arena->live[from];

	arena->live[from] = arena->live[--arena->live_count];
	arena->unused[arena->unused_count++] = addr;
	return addr;
}

static void tell_map(struct generator *generator, uint32_t thread)
{
	uint32_t stack = generator->vm_stacks[random_below(generator, VM_STACKS)];
	struct mw_event event = {.stack = stack,
				 .size = UINT64_C(65536) * (1 + stack % 16),
				 .thread = generator->threads[thread],
				 .type = MW_EVENT_MAP,
				 .kind = MW_KIND_VM};
	uint64_t live = generator->map_count - generator->unmap_count;

	if (live < MAPS_MAX / 2 || (live < MAPS_MAX && random_below(generator, 2))) {
		event.addr = UINT64_C(0x7e0000000000) + generator->map_count % (1U << 20) * (1U << 20);
		generator->maps[generator->map_count++ % MAPS_MAX] = event.addr;
		tell(generator, event);
		return;
	}
	event.addr = generator->maps[generator->unmap_count++ % MAPS_MAX];
	event.type = MW_EVENT_UNMAP_BEGIN;
	event.size = 65536;
	tell(generator, event);
	event.type = MW_EVENT_UNMAP_END;
	event.stack = MW_STACK_NONE;
	tell(generator, event);
}

static void tell_some(struct generator *generator)
{
	uint32_t thread = random_below(generator, THREADS), what = random_below(generator, 1000);
	uint32_t other = random_below(generator, 20) ? thread : random_below(generator, THREADS);
	struct arena *arena = &generator->arenas[thread], *from = &generator->arenas[other];
	uint32_t wanted = generator->live_wanted / THREADS + 1;

	if (what < 2) {
		tell_map(generator, thread);
	} else if (what < 40 && arena->live_count) {
		mw_addr addr = take(generator, arena);

		tell_free(generator, thread, MW_EVENT_REALLOC_BEGIN, addr);
		arena->unused_count--; /* in place */
		arena->live[arena->live_count++] = addr;
		tell_alloc(generator, thread, MW_EVENT_REALLOC_END, addr);
	} else if (arena->unused_count &&
		   (random_below(generator, 2 * wanted) >= from->live_count || !from->live_count)) {
		mw_addr addr = arena->unused[--arena->unused_count];

		arena->live[arena->live_count++] = addr;
		tell_alloc(generator, thread, MW_EVENT_ALLOC, addr);
	} else if (from->live_count) {
		tell_free(generator, thread, MW_EVENT_FREE, take(generator, from));
	}
}

static void make_arenas(struct generator *generator)
{
	uint32_t room = 2 * (generator->live_wanted / THREADS + 1) + YOUNG;

	for (uint32_t i = 0; i < THREADS; i++) {
		struct arena *arena = &generator->arenas[i];

		arena->live = allocate(room, sizeof(*arena->live));
		arena->unused = allocate(room, sizeof(*arena->unused));
		arena->unused_count = room;
		for (uint32_t j = 0; j < room; j++)
			arena->unused[room - 1 - j] =
				UINT64_C(0x7f0000000010) + ((mw_addr)i << 33) + (mw_addr)j * SLOT_SIZE;
	}
	generator->maps = allocate(MAPS_MAX, sizeof(*generator->maps));
}

static uint32_t make_stack(struct generator *generator, uint32_t number, uint32_t hook, enum mw_kind kind)
{
	struct mw_raw_frame frames[FRAMES];
	struct mw_raw_stack stack = {frames, FRAMES, MW_STACK_COMPLETE, hook, kind};
	uint32_t id;

	/* The further out, the more stacks share a frame. */
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint64_t function = (number >> i / 2) + 977U * i;
		uint32_t module = (uint32_t)(function % MODULES);

		frames[i] = (struct mw_raw_frame){
			CODE + (uint64_t)module * CODE_SIZE + 64 * (function % (CODE_SIZE / 64)), module};
	}
	check(generator->sink.stack(generator->sink.context, &stack, &id));
	return id;
}

static void tell_symbols(struct generator *generator)
{
	for (uint32_t module = 0; module < MODULES; module++) {
		for (uint32_t i = module; i < 4 * generator->stack_count; i += MODULES) {
			char name[32];
			struct mw_stored_frame frame = {name, "src/generated.c", 1 + i % 5000, i % 64, false};
			struct mw_stored_symbol symbol = {
				module, CODE + (uint64_t)module * CODE_SIZE + 64 * (i % (CODE_SIZE / 64)), &frame, 1};

			snprintf(name, sizeof(name), "function_%u", i);
			MW_STORE_TELL(generator->writer, symbol, 0, &symbol);
		}
	}
}

static void tell_facts(struct generator *generator)
{
	static const char *const command[] = {"generated", "--serve"};
	const struct mw_stored_target target = {.pid = 4711,
						.comm = "generated",
						.exe = "/usr/bin/generated",
						.command = command,
						.command_count = 2,
						.started_realtime_ns = INT64_C(1700000000000000000),
						.track_heap = true,
						.track_vm = true,
						.depth = 128,
						.engine = "jump",
						.engine_reason = "made up"};

	MW_STORE_TELL(generator->writer, target, 0, &target);
	for (uint32_t i = 0; i < HOOKS; i++)
		MW_STORE_TELL(generator->writer, hook, 0,
			      &(struct mw_stored_hook){.number = i,
						       .function = functions[i],
						       .module = "/usr/lib/libc.so.6",
						       .address = UINT64_C(0x7ffff7c00000) + 64 * (uint64_t)i,
						       .kind = i == 3 || i == 4 ? MW_KIND_VM : MW_KIND_HEAP});
	for (uint32_t i = 0; i < MODULES; i++) {
		char path[32];
		uint8_t id[20];

		snprintf(path, sizeof(path), "/usr/lib/libpart%u.so", i);
		memset(id, (int)(17 * i + 1), sizeof(id));
		MW_STORE_TELL(generator->writer, module, 0,
			      &(struct mw_stored_module){.number = i,
							 .path = path,
							 .build_id = id,
							 .build_id_size = sizeof(id),
							 .start = CODE + (uint64_t)i * CODE_SIZE,
							 .end = CODE + (uint64_t)(i + 1) * CODE_SIZE,
							 .base = CODE + (uint64_t)i * CODE_SIZE,
							 .suspect = true});
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "worker-%u", i);
		check(generator->sink.thread(generator->sink.context, 4711 + (pid_t)i, name, true,
					     &generator->threads[i]));
	}
	for (uint32_t i = 0; i < generator->stack_count; i++)
		generator->stacks[i] = make_stack(generator, i, i % 8 ? 0 : 2, MW_KIND_HEAP);
	for (uint32_t i = 0; i < VM_STACKS; i++)
		generator->vm_stacks[i] = make_stack(generator, i, 3, MW_KIND_VM);
}

static void tell_second(struct generator *generator, uint64_t second)
{
	uint64_t heap = generator->heap_bytes, vm = (generator->map_count - generator->unmap_count) * 65536;

	MW_STORE_TELL(generator->writer, sample, 0,
		      &(struct mw_stored_sample){.time_ns = second * UINT64_C(1000000000),
						 .rss = heap + (8U << 20),
						 .pss = heap + (4U << 20),
						 .vsize = heap + vm + (64U << 20),
						 .heap_impacting = heap,
						 .vm_impacting = vm,
						 .arena_used = heap,
						 .arena_free = heap / 8,
						 .arena_size = heap + heap / 8});
}

static void tell_mark(struct generator *generator, uint32_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "mark %u", number);
	MW_STORE_TELL(generator->writer, mark, 0, &(struct mw_stored_mark){number, generator->time_ns, name});
}

static void tell_all(struct generator *generator)
{
	uint64_t second = 1;
	uint32_t mark = 1;

	tell_facts(generator);
	while (generator->told < generator->wanted) {
		tell_some(generator);
		for (; generator->time_ns / 1000000000 >= second; second++) {
			tell_second(generator, second);
			mw_store_flush(generator->writer);
		}
		if (generator->told * (MARKS + 1) / generator->wanted >= mark && mark <= MARKS)
			tell_mark(generator, mark++);
	}
	hand_over(generator);
	tell_symbols(generator);
	MW_STORE_TELL(generator->writer, end, 0,
		      &(struct mw_stored_end){
			      .length_ns = generator->time_ns,
			      .figures = &(struct mw_stored_figure){"stops", 12},
			      .figure_count = 1,
		      });
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void init(struct generator *generator, int argc, char **argv)
{
	uint64_t seconds = argc > 5 ? strtoull(argv[5], NULL, 10) : 600;

	generator->wanted = strtoull(argv[2], NULL, 10);
	generator->live_wanted = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 100000;
	generator->stack_count = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 2000;
	generator->random = 88172645463325252U + (argc > 6 ? strtoull(argv[6], NULL, 10) : 0);
	generator->step_ns = seconds * 1000000000 / (generator->wanted ? generator->wanted : 1);
	if (generator->step_ns > 100000000)
		generator->step_ns = 100000000;
	if (!generator->stack_count)
		generator->stack_count = 1;
	generator->stacks = allocate(generator->stack_count, sizeof(*generator->stacks));
	make_arenas(generator);
}

static void deinit(struct generator *generator)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		free(generator->arenas[i].live);
		free(generator->arenas[i].unused);
	}
	free(generator->maps);
	free(generator->stacks);
}

int main(int argc, char **argv)
{
	static struct generator generator;
	const struct mw_event_sink inner = {.context = &generator,
					    .stack = give_stack,
					    .thread = give_thread,
					    .event = take_event,
					    .events = take_events};
	double begun = now();

	if (argc < 3) {
		fprintf(stderr, "usage: generate FILE EVENTS [LIVE [STACKS [SECONDS [SEED]]]]\n");
		return 2;
	}
	init(&generator, argc, argv);
	check(mw_store_create(argv[1], &generator.writer));
	check(mw_store_publish(generator.writer));
	check(mw_store_sink(generator.writer, 0, &inner, &generator.sink));
	tell_all(&generator);
	check(mw_store_finish(generator.writer));
	printf("%s: events=%" PRIu64 " bytes=%" PRIu64 " bytes_per_event=%.2f seconds=%.1f\n", argv[1], generator.told,
	       mw_store_written(generator.writer), (double)mw_store_written(generator.writer) / (double)generator.told,
	       now() - begun);
	mw_store_destroy(generator.writer);
	deinit(&generator);
	return 0;
}
