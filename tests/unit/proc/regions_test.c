// SPDX-License-Identifier: MIT
/* regions_test.c: kinds of regions, how they are split, and what is resident; of this process and of made-up ones. */
#include "proc/maps.h"
#include "proc/peek.h"
#include "proc/regions.h"
#include "proc/status.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#define PAGE  UINT64_C(4096)
#define STACK ((size_t)1 << 20)
#define SLAB  (1 << 20)

static enum mw_region_kind kind_of(const char *line)
{
	struct mw_maps maps = {0};
	enum mw_region_kind kind;

	assert_null(mw_maps_parse(line, strlen(line), false, &maps));
	assert_int_equal(maps.count, 1);
	kind = mw_region_kind_of(&maps.items[0]);
	mw_maps_deinit(&maps);
	return kind;
}

static void tells_kinds(void **state)
{
	(void)state;
	assert_int_equal(kind_of("1000-2000 rw-p 0 00:00 0   [heap]\n"), MW_REGION_HEAP);
	assert_int_equal(kind_of("1000-2000 rw-p 0 00:00 0   [stack]\n"), MW_REGION_STACK);
	assert_int_equal(kind_of("1000-2000 rw-p 0 00:00 0   [stack:12]\n"), MW_REGION_STACK);
	assert_int_equal(kind_of("1000-2000 r-xp 0 00:00 0   [vdso]\n"), MW_REGION_SPECIAL);
	assert_int_equal(kind_of("1000-2000 rw-p 0 00:00 0   [anon:mine]\n"), MW_REGION_ANONYMOUS);
	assert_int_equal(kind_of("1000-2000 rw-s 0 00:00 0   [anon_shmem:mine]\n"), MW_REGION_SHARED);
	assert_int_equal(kind_of("1000-2000 rw-p 0 00:00 0 \n"), MW_REGION_ANONYMOUS);
	assert_int_equal(kind_of("1000-2000 r-xp 0 fe:00 7   /bin/x\n"), MW_REGION_FILE_TEXT);
	assert_int_equal(kind_of("1000-2000 rw-p 0 fe:00 7   /bin/x\n"), MW_REGION_FILE_DATA);
	assert_int_equal(kind_of("1000-2000 r--p 0 fe:00 7   [heap]\n"), MW_REGION_FILE_DATA);
	assert_int_equal(kind_of("1000-2000 rw-s 0 fe:00 7   /bin/x\n"), MW_REGION_SHARED);
	assert_int_equal(kind_of("1000-2000 rw-s 0 00:01 7   /dev/zero (deleted)\n"), MW_REGION_SHARED);
	assert_int_equal(kind_of("1000-2000 rw-s 0 00:01 7   /memfd:memwatch (deleted)\n"), MW_REGION_OWN);
	assert_int_equal(kind_of("1000-2000 rw-s 0 00:01 7   /memfd:memwatches (deleted)\n"), MW_REGION_SHARED);
}

static void make(struct mw_regions *regions, const char *text)
{
	struct mw_maps maps = {0};

	assert_null(mw_maps_parse(text, strlen(text), false, &maps));
	assert_null(mw_regions_of(&maps, 0, regions));
	mw_maps_deinit(&maps);
}

static void assert_region(const struct mw_region *region, mw_addr start, mw_addr end, enum mw_region_kind kind,
			  const char *path)
{
	assert_int_equal(region->start, start);
	assert_int_equal(region->end, end);
	assert_int_equal(region->kind, kind);
	assert_string_equal(region->path, path);
}

static void splits_at_marks(void **state)
{
	struct mw_region_mark marks[] = {
		{0xc000, 0xe000, MW_REGION_ARENA, "[x]", 0, 0},     /* a file: keeps its kind */
		{0x2000, 0x4000, MW_REGION_ARENA, "[a]", 0, 0},     /* where one ends and the next begins */
		{0x3000, 0x5000, MW_REGION_KIND_COUNT, NULL, 0, 0}, /* only what the other left */
		{0x9000, 0xd000, MW_REGION_OWN, NULL, 0, 0},        {0x7000, 0x7000, MW_REGION_OWN, NULL, 0, 0},
		{0x20000, 0x30000, MW_REGION_OWN, NULL, 0, 0},
	};
	struct mw_regions regions = {0};

	(void)state;
	make(&regions, "1000-3000 rw-p 0 00:00 0 \n3000-8000 rw-p 0 00:00 0 \na000-10000 rw-p 0 fe:00 7 /f\n");
	assert_null(mw_regions_mark(&regions, marks, sizeof(marks) / sizeof(marks[0])));
	assert_int_equal(regions.count, 8);
	assert_region(&regions.items[0], 0x1000, 0x2000, MW_REGION_ANONYMOUS, "");
	assert_region(&regions.items[1], 0x2000, 0x3000, MW_REGION_ARENA, "[a]");
	assert_region(&regions.items[2], 0x3000, 0x4000, MW_REGION_ARENA, "[a]");
	assert_region(&regions.items[3], 0x4000, 0x5000, MW_REGION_ANONYMOUS, "");
	assert_region(&regions.items[4], 0x5000, 0x8000, MW_REGION_ANONYMOUS, "");
	assert_region(&regions.items[5], 0xa000, 0xd000, MW_REGION_OWN, "/f");
	assert_region(&regions.items[6], 0xd000, 0xe000, MW_REGION_FILE_DATA, "/f");
	assert_region(&regions.items[7], 0xe000, 0x10000, MW_REGION_FILE_DATA, "/f");
	assert_null(mw_regions_mark(&regions, NULL, 0));
	assert_int_equal(regions.count, 8);
	mw_regions_deinit(&regions);
	mw_regions_deinit(&regions);
}

/* However often regions are split, the sums of their figures stay. */
static void figures_stay_with_the_first_piece(void **state)
{
	struct mw_region_mark marks[] = {{0x2000, 0x9000, MW_REGION_ANONYMOUS, "Java heap", 70, 50}};
	struct mw_region_mark cuts[] = {{0x3000, 0x3800, MW_REGION_KIND_COUNT, NULL, 0, 0},
					{0x8000, 0x8800, MW_REGION_KIND_COUNT, NULL, 0, 0}};
	struct mw_regions regions = {0};
	uint64_t committed = 0, used = 0;

	(void)state;
	make(&regions,
	     "1000-4000 rw-p 0 00:00 0 \n6000-7000 ---p 0 00:00 0 \n8000-a000 rw-s 0 00:01 7 /memfd:java_heap\n");
	assert_null(mw_regions_mark(&regions, marks, 1));
	assert_int_equal(regions.count, 5);
	assert_region(&regions.items[1], 0x2000, 0x4000, MW_REGION_ANONYMOUS, "Java heap");
	/* Shared memory as well. */
	assert_region(&regions.items[3], 0x8000, 0x9000, MW_REGION_ANONYMOUS, "Java heap");
	assert_region(&regions.items[4], 0x9000, 0xa000, MW_REGION_SHARED, "/memfd:java_heap");
	assert_null(mw_regions_mark(&regions, cuts, 2));
	assert_int_equal(regions.count, 8);
	for (size_t i = 0; i < regions.count; i++) {
		assert_int_equal(regions.items[i].used, regions.items[i].start == 0x2000 ? 50 : 0);
		committed += regions.items[i].committed;
		used += regions.items[i].used;
	}
	assert_true(committed == 70 && used == 50);
	mw_regions_deinit(&regions);
}

/* Many regions and many marks: time in proportion to both. */
static void splits_many(void **state)
{
	const size_t count = 70000;
	struct mw_region_mark *marks = calloc(count, sizeof(*marks));
	struct mw_regions regions = {.items = calloc(count, sizeof(*regions.items)), .count = count};

	(void)state;
	assert_non_null(marks);
	assert_non_null(regions.items);
	for (size_t i = 0; i < count; i++) {
		regions.items[i] = (struct mw_region){.start = 3 * i * PAGE, .end = (3 * i + 2) * PAGE};
		regions.items[i].kind = MW_REGION_ANONYMOUS;
		regions.items[i].path = strdup("");
		marks[count - 1 - i] =
			(struct mw_region_mark){(3 * i + 1) * PAGE, (3 * i + 2) * PAGE, MW_REGION_ARENA, NULL, 0, 0};
	}
	assert_null(mw_regions_mark(&regions, marks, count));
	assert_int_equal(regions.count, 2 * count);
	assert_int_equal(regions.items[2 * count - 1].kind, MW_REGION_ARENA);
	mw_regions_deinit(&regions);
	free(marks);
}

static const struct mw_region *find(const struct mw_regions *regions, const void *at)
{
	for (size_t i = 0; i < regions->count; i++)
		if (regions->items[i].start <= (uintptr_t)at && (uintptr_t)at < regions->items[i].end)
			return &regions->items[i];
	fail_msg("%p is in no region", at);
	return NULL;
}

static void measures(void **state)
{
	/* Other rights than what may stand beside it. */
	char *at = mmap(NULL, 100 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *huge = mmap(NULL, UINT64_C(1) << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mw_addr start = (uintptr_t)at;
	struct mw_region_mark part = {start + 10 * PAGE, start + 50 * PAGE, MW_REGION_KIND_COUNT, NULL, 0, 0};
	struct mw_regions regions = {0};
	uint64_t sum = 0;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	for (size_t i = 45; i < 65; i++)
		at[i * PAGE] = 1;
	/* With a terabyte that is only reserved, and without. */
	for (int round = 0; round < 2; round++) {
		assert_null(mw_regions_read(getpid(), &regions));
		mw_regions_measure(&regions, getpid());
		assert_int_equal(find(&regions, at)->resident, 20 * PAGE);
		assert_null(mw_regions_mark(&regions, &part, 1));
		assert_true(find(&regions, at)->resident == MW_SIZE_UNKNOWN);
		mw_regions_measure(&regions, getpid());
		assert_int_equal(find(&regions, at)->resident, 0);
		assert_int_equal(find(&regions, at + 10 * PAGE)->resident, 5 * PAGE);
		assert_int_equal(find(&regions, at + 50 * PAGE)->resident, 15 * PAGE);
		sum = 0;
		for (size_t i = 0; i < regions.count; i++)
			sum += regions.items[i].resident;
		assert_in_range(sum, 100 * PAGE, UINT64_C(1) << 32);
		mw_regions_deinit(&regions);
		if (huge != MAP_FAILED)
			assert_int_equal(munmap(huge, UINT64_C(1) << 40), 0);
		huge = MAP_FAILED;
	}
	assert_int_equal(munmap(at, 100 * PAGE), 0);
}

static void reads_without_touching(void **state)
{
	char *at = mmap(NULL, 300 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy = malloc(300 * PAGE);
	struct mw_regions regions = {0};
	struct mw_touched touched;

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_non_null(copy);
	for (size_t i = 3; i < 300; i += i % 7 ? 5 : 1)
		memset(at + i * PAGE, (int)i, PAGE);
	assert_null(mw_regions_read(getpid(), &regions));
	mw_regions_measure(&regions, getpid());
	mw_touched_init(&touched, getpid());
	for (size_t offset = 0; offset < 3 * PAGE; offset += 1000) {
		size_t size = 300 * PAGE - 2 * offset;

		memset(copy, 1, 300 * PAGE);
		assert_int_equal(mw_touched_read(&touched, (uintptr_t)at + offset, copy, size), size);
	}
	assert_int_equal(mw_touched_peek(getpid(), (uintptr_t)at, copy, 300 * PAGE), 300 * PAGE);
	/* Only comparing touches them. */
	for (int round = 0; round < 2; round++) {
		uint64_t resident = find(&regions, at)->resident;

		mw_regions_measure(&regions, getpid());
		assert_int_equal(find(&regions, at)->resident, resident);
	}
	assert_int_equal(mw_touched_read(&touched, (uintptr_t)at, copy, 300 * PAGE), 300 * PAGE);
	assert_memory_equal(copy, at, 300 * PAGE);
	assert_int_equal(mw_touched_read(&touched, (uintptr_t)at + 700, copy, 9 * PAGE), 9 * PAGE);
	assert_memory_equal(copy, at + 700, 9 * PAGE);
	mw_touched_deinit(&touched);
	mw_regions_deinit(&regions);
	free(copy);
	assert_int_equal(munmap(at, 300 * PAGE), 0);
}

struct threads {
	pthread_barrier_t barrier;
	void *volatile local; /* an address on the thread's stack */
	volatile pid_t waits; /* the thread, once it is about to wait for the end */
	volatile bool stop;
};

static void *wait_for_end(void *context)
{
	struct threads *threads = context;
	char here = 0;

	threads->local = &here;
	pthread_barrier_wait(&threads->barrier);
	threads->waits = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&threads->barrier);
	return NULL;
}

static void *run_until_end(void *context)
{
	struct threads *threads = context;
	char here = 0;

	threads->local = &here;
	pthread_barrier_wait(&threads->barrier);
	while (!threads->stop)
		;
	return NULL;
}

/* A thread's stack, waiting or busy, of the C library's memory or the program's. */
static void check_stack(void *(*body)(void *), void *memory)
{
	struct threads threads = {.stop = false};
	struct mw_regions regions = {0};
	const struct mw_region *region;
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_barrier_init(&threads.barrier, NULL, 2);
	pthread_attr_init(&attributes);
	assert_int_equal(memory ? pthread_attr_setstack(&attributes, memory, STACK)
				: pthread_attr_setstacksize(&attributes, STACK),
			 0);
	assert_int_equal(pthread_create(&thread, &attributes, body, &threads), 0);
	pthread_barrier_wait(&threads.barrier);
	assert_null(mw_regions_read(getpid(), &regions));
	region = find(&regions, threads.local);
	assert_int_equal(region->kind, MW_REGION_STACK);
	assert_in_range(region->end - region->start, STACK - 4 * PAGE, STACK + 4 * PAGE);
	assert_int_equal(find(&regions, &region)->kind, MW_REGION_STACK);
	mw_regions_deinit(&regions);
	threads.stop = true;
	if (body == wait_for_end)
		pthread_barrier_wait(&threads.barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&threads.barrier);
	pthread_attr_destroy(&attributes);
}

static void finds_stacks(void **state)
{
	void *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	check_stack(wait_for_end, NULL);
	check_stack(run_until_end, NULL);
	check_stack(wait_for_end, memory);
	check_stack(run_until_end, memory);
	assert_int_equal(munmap(memory, STACK), 0);
}

/* Memory that a stack of the program's is the beginning of, behind a guard page, and a slab the rest. */
static char *map_stack_and_slab(void)
{
	char *guard = mmap(NULL, PAGE + STACK + SLAB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(guard, MAP_FAILED);
	assert_int_equal(mprotect(guard + PAGE, STACK + SLAB, PROT_READ | PROT_WRITE), 0);
	memset(guard + PAGE + STACK, 1, SLAB);
	return guard + PAGE;
}

static pthread_t start_on(char *stack, void *(*body)(void *), struct threads *threads)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_barrier_init(&threads->barrier, NULL, 2);
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attributes, body, threads), 0);
	pthread_barrier_wait(&threads->barrier);
	pthread_attr_destroy(&attributes);
	return thread;
}

static void check_slab(const struct mw_regions *regions, char *stack)
{
	const struct mw_region *region = find(regions, stack + STACK / 2);

	assert_int_equal(region->kind, MW_REGION_STACK);
	assert_ptr_equal((void *)(uintptr_t)region->start, stack);
	assert_ptr_equal((void *)(uintptr_t)region->end, stack + STACK);
	assert_int_equal(find(regions, stack + STACK)->kind, MW_REGION_ANONYMOUS);
}

/* What lies right behind a stack is one mapping with it, and none of it. */
static void ends_stacks_where_they_end(void **state)
{
	struct threads waiting = {.stop = false}, running = {.stop = false};
	char *stacks[] = {map_stack_and_slab(), map_stack_and_slab()};
	struct mw_regions regions = {0};
	pthread_t threads[2];

	(void)state;
	threads[0] = start_on(stacks[0], wait_for_end, &waiting);
	/* The stack of one that runs is found by the size of those that wait. */
	while (!waiting.waits || mw_state_read(waiting.waits) != 'S')
		sched_yield();
	threads[1] = start_on(stacks[1], run_until_end, &running);
	assert_null(mw_regions_read(getpid(), &regions));
	check_slab(&regions, stacks[0]);
	check_slab(&regions, stacks[1]);
	mw_regions_deinit(&regions);
	pthread_barrier_wait(&waiting.barrier);
	running.stop = true;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(munmap(stacks[i] - PAGE, PAGE + STACK + SLAB), 0);
	}
}

/* Stacks side by side are one mapping, and told apart: one that waits between two that run. */
static void parts_stacks_of_one_mapping(void **state)
{
	/* What is next to it must not be one mapping with it as well. */
	char *guard = mmap(NULL, 3 * STACK + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory = guard + PAGE;
	struct threads context[3] = {{.stop = false}, {.stop = false}, {.stop = false}};
	struct mw_regions regions = {0};
	pthread_t threads[3];

	(void)state;
	assert_ptr_not_equal(guard, MAP_FAILED);
	assert_int_equal(mprotect(memory, 3 * STACK, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i < 3; i++)
		threads[i] = start_on(memory + i * STACK, i == 1 ? wait_for_end : run_until_end, &context[i]);
	while (!context[1].waits || mw_state_read(context[1].waits) != 'S')
		sched_yield();
	assert_null(mw_regions_read(getpid(), &regions));
	for (size_t i = 0; i < 3; i++) {
		const struct mw_region *region = find(&regions, context[i].local);

		assert_int_equal(region->kind, MW_REGION_STACK);
		assert_ptr_equal((void *)(uintptr_t)region->start, memory + i * STACK);
		assert_ptr_equal((void *)(uintptr_t)region->end, memory + (i + 1) * STACK);
	}
	mw_regions_deinit(&regions);
	pthread_barrier_wait(&context[1].barrier);
	for (size_t i = 0; i < 3; i++) {
		context[i].stop = true;
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	assert_int_equal(munmap(guard, 3 * STACK + 2 * PAGE), 0);
}

/* Nor is the guard of a stack, which glibc 2.42 makes a page of the same mapping, a part of it. */
static void leaves_guards_out(void **state)
{
	struct threads context[2] = {{.stop = false}, {.stop = false}};
	struct mw_regions regions = {0};
	pthread_attr_t attributes;
	pthread_t threads[2];

	(void)state;
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
	for (size_t i = 0; i < 2; i++) {
		pthread_barrier_init(&context[i].barrier, NULL, 2);
		assert_int_equal(pthread_create(&threads[i], &attributes, wait_for_end, &context[i]), 0);
		pthread_barrier_wait(&context[i].barrier);
		while (!context[i].waits || mw_state_read(context[i].waits) != 'S')
			sched_yield();
	}
	assert_null(mw_regions_read(getpid(), &regions));
	assert_ptr_not_equal(find(&regions, context[0].local), find(&regions, context[1].local));
	for (size_t i = 0; i < 2; i++) {
		const struct mw_region *region = find(&regions, context[i].local);

		assert_int_equal(region->kind, MW_REGION_STACK);
		assert_in_range(region->end - region->start, STACK - 4 * PAGE, STACK);
		pthread_barrier_wait(&context[i].barrier);
	}
	mw_regions_deinit(&regions);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_attr_destroy(&attributes);
}

/* The first thread's descriptor stands where the loader put it, which may be the end of any memory. */
static void takes_no_slab_for_a_stack(void **state)
{
	char *slab = mmap(NULL, SLAB + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *descriptor = (uint64_t *)(void *)(slab + SLAB - 2048);
	struct threads running = {.stop = false};
	struct mw_regions regions = {0};
	char *stack = map_stack_and_slab();
	pthread_t thread = start_on(stack, run_until_end, &running);

	(void)state;
	assert_ptr_not_equal(slab, MAP_FAILED);
	assert_int_equal(mprotect(slab + SLAB, PAGE, PROT_NONE), 0);
	descriptor[0] = descriptor[2] = (uintptr_t)descriptor;
	descriptor[10] = (uintptr_t)&descriptor[10]; /* an empty list, behind a word of zeros */
	assert_null(mw_regions_read(getpid(), &regions));
	assert_int_equal(find(&regions, slab)->kind, MW_REGION_ANONYMOUS);
	mw_regions_deinit(&regions);
	running.stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(munmap(stack - PAGE, PAGE + STACK + SLAB), 0);
	assert_int_equal(munmap(slab, SLAB + PAGE), 0);
}

UNIT_GROUP(regions)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_kinds),
		cmocka_unit_test(splits_at_marks),
		cmocka_unit_test(figures_stay_with_the_first_piece),
		cmocka_unit_test(splits_many),
		cmocka_unit_test(measures),
		cmocka_unit_test(finds_stacks),
		cmocka_unit_test(reads_without_touching),
		cmocka_unit_test(ends_stacks_where_they_end),
		cmocka_unit_test(parts_stacks_of_one_mapping),
		cmocka_unit_test(leaves_guards_out),
		cmocka_unit_test(takes_no_slab_for_a_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
