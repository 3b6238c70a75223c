// SPDX-License-Identifier: MIT
/*
 * glibc_arenas_test.c: the arenas of a child, against what glibc itself says of them (mallinfo2).
 *
 * glibc counts what threads' caches hold as in use; the child says how much that is, from a cache that it has emptied
 * and filled itself, or runs without any.
 */
#include "alloc/glibc_arenas.h"
#include "base/clock.h"
#include "proc/maps.h"
#include "proc/peek.h"
#include "unit.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define BLOCKS     20000
#define CACHED     5
#define THREADS    3
#define MAX_SPANS  4096
#define NO_CACHE   "glibc.malloc.tcache_count=0"
#define TWO_ARENAS "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=2"

/* What a child says of itself. */
struct truth {
	struct mallinfo2 info;
	uint64_t cached; /* bytes of chunks in its cache that came since `info` */
};

static char *blocks[BLOCKS];
static void *volatile kept; /* no compiler sees through it */

/* --- the child -----------------------------------------------------------------------------------------------------
 */

static void fill_and_free(size_t size, size_t every)
{
	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(size);
	for (size_t i = 0; i < BLOCKS; i += every)
		free(blocks[i]);
}

static void *thread_main(void *barrier)
{
	char *mine[2000];

	for (size_t i = 0; i < 2000; i++)
		mine[i] = malloc(200 + i % 700);
	for (size_t i = 0; i < 2000; i += 2)
		free(mine[i]);
	/* More than a heap of 64 MiB holds. */
	for (size_t i = 0; i < 700; i++)
		kept = malloc(120000);
	pthread_barrier_wait(barrier);
	for (;;)
		pause();
	return NULL;
}

static void run_threads(void)
{
	static pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, thread_main, &barrier))
			_exit(1);
	pthread_barrier_wait(&barrier);
}

static void cache(struct truth *truth)
{
	char *held[CACHED];

	for (int i = 0; i < CACHED; i++)
		held[i] = malloc(0x1f0);
	for (int i = 0; i < CACHED; i++)
		free(held[i]);
	truth->info = mallinfo2();
	truth->cached = CACHED * 0x200;
}

/* Others' memory amidst the main arena's. */
static void move_break(void)
{
	for (int i = 0; i < 3; i++) {
		char *foreign = sbrk(100003);

		memset(foreign, 0x61, 100003);
		for (size_t j = 0; j < 3000; j++)
			kept = malloc(100);
	}
}

static void say(const struct truth *truth)
{
	char byte;

	(void)!write(STDOUT_FILENO, truth, sizeof(*truth));
	(void)!read(STDIN_FILENO, &byte, 1);
	_exit(0);
}

/* Blocks that look like threads' caches, whose lists are as long as they may say they are and lead to themselves. */
static void loop(void)
{
	char *page = calloc(8192, 1);

	for (size_t i = 0; i < 2000; i++) {
		uint16_t *counts = calloc(1, 0x280);
		uint64_t *lists = (uint64_t *)(void *)(counts + 64);

		for (size_t bin = 0; bin < 64; bin++) {
			uint64_t *chunk = (uint64_t *)(void *)(page + 48 * bin);

			chunk[1] = (32 + 16 * bin) | 1;
			chunk[2] = (uintptr_t)&chunk[2];
			chunk[3] = UINT64_C(0x5a5a5a5a5a5a5a5a);
			counts[bin] = UINT16_MAX;
			lists[bin] = (uintptr_t)&chunk[2];
		}
		kept = counts;
	}
}

static void churn(void)
{
	unsigned seed = 1;
	struct truth truth = {0};

	for (unsigned long turn = 0;; turn++) {
		size_t i = (seed = seed * 1103515245 + 12345) / 65536 % 5000;

		free(blocks[i]);
		blocks[i] = malloc(seed / 7 % 3000);
		if (turn == 100000)
			(void)!write(STDOUT_FILENO, &truth, sizeof(truth));
	}
}

static void be_child(const char *what)
{
	struct truth truth = {0};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(what, "small") == 0)
		fill_and_free(40, 2);
	else if (strcmp(what, "large") == 0)
		fill_and_free(1500, 3);
	else if (strcmp(what, "all") == 0)
		fill_and_free(600, 1);
	else if (strcmp(what, "threads") == 0)
		run_threads();
	else if (strcmp(what, "break") == 0)
		move_break();
	else if (strcmp(what, "churn") == 0)
		churn();
	else if (strcmp(what, "loop") == 0)
		loop();
	truth.info = mallinfo2();
	if (strcmp(what, "cache") == 0)
		cache(&truth);
	say(&truth);
}

/* --- the parent ----------------------------------------------------------------------------------------------------
 */

struct child {
	pid_t pid;
	int to, from;
	struct truth truth;
	struct mw_glibc_span anonymous[MAX_SPANS], data[64];
	struct mw_glibc_process process;
};

static size_t read_child(void *context, mw_addr addr, void *out, size_t size)
{
	return mw_peek_some(*(const pid_t *)context, addr, out, size);
}

static void see_mappings(struct child *child)
{
	struct mw_maps maps = {0};

	child->process = (struct mw_glibc_process){
		.read = read_child, .context = &child->pid, .anonymous = child->anonymous, .data = child->data};
	assert_null(mw_maps_read(child->pid, &maps));
	for (size_t i = 0; i < maps.count; i++) {
		const struct mw_mapping *mapping = &maps.items[i];
		const struct mw_glibc_span span = {mapping->start, mapping->end};

		if (strcmp(mapping->path, "[heap]") == 0)
			child->process.heap = span;
		else if (mapping->write && !mapping->inode && !*mapping->path)
			child->anonymous[child->process.anonymous_count++] = span;
		else if (mapping->write && strstr(mapping->path, "/libc.so"))
			child->data[child->process.data_count++] = span;
	}
	mw_maps_deinit(&maps);
}

static void start(struct child *child, const char *what, const char *tunables)
{
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	child->pid = fork();
	if (child->pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		setenv("GLIBC_TUNABLES", tunables, 1);
		execl("/proc/self/exe", "unit_alloc", "glibc_arenas", what, (char *)NULL);
		_exit(1);
	}
	assert_true(child->pid > 0);
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = from[0];
	assert_int_equal(read(child->from, &child->truth, sizeof(child->truth)), sizeof(child->truth));
	see_mappings(child);
}

static void end(struct child *child)
{
	(void)kill(child->pid, SIGKILL);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
	close(child->to);
	close(child->from);
}

static struct mw_glibc_arenas look(const struct child *child)
{
	struct mw_glibc_arenas arenas = {0};

	assert_null(mw_glibc_arenas_find(&child->process, &arenas));
	assert_null(mw_glibc_arenas_walk(&child->process, mw_clock_ns() + 60000000000, &arenas));
	return arenas;
}

static void check_total(const char *what, const char *tunables)
{
	static struct child child;
	struct mw_glibc_arenas arenas;

	start(&child, what, tunables);
	arenas = look(&child);
	assert_true(arenas.main.state != 0);
	assert_int_equal(arenas.total.free, child.truth.info.fordblks + child.truth.cached);
	assert_int_equal(arenas.total.used, child.truth.info.uordblks - child.truth.cached);
	assert_int_equal(arenas.total.size, child.truth.info.arena);
	mw_glibc_arenas_deinit(&arenas);
	end(&child);
}

static void tells_fragments(void **state)
{
	(void)state;
	check_total("small", NO_CACHE); /* the free ones stay in a fast bin */
	check_total("large", NO_CACHE);
	check_total("all", NO_CACHE);
}

static void tells_caches(void **state)
{
	(void)state;
	check_total("cache", "");
}

static void tells_threads(void **state)
{
	static struct child child;
	struct mw_glibc_arenas arenas;

	(void)state;
	check_total("threads", NO_CACHE);
	check_total("threads", TWO_ARENAS);
	start(&child, "threads", NO_CACHE);
	arenas = look(&child);
	assert_int_equal(arenas.arena_count, THREADS);
	assert_true(arenas.heap_count >= 2 * THREADS);
	for (size_t i = 0; i < arenas.heap_count; i++) {
		const struct mw_glibc_arena *arena =
			mw_glibc_arena_of(&child.process, &arenas, arenas.heaps[i].start + 12345);

		assert_non_null(arena);
		assert_int_equal(arena->state, arenas.heaps[i].arena);
	}
	assert_ptr_equal(mw_glibc_arena_of(&child.process, &arenas, child.process.heap.start), &arenas.main);
	assert_null(mw_glibc_arena_of(&child.process, &arenas, 16));
	mw_glibc_arenas_deinit(&arenas);
	end(&child);
}

/* glibc counts what others took of the break as its own. */
static void steps_over_others(void **state)
{
	static struct child child;
	struct mw_glibc_arenas arenas;

	(void)state;
	start(&child, "break", NO_CACHE);
	arenas = look(&child);
	assert_int_equal(arenas.total.free, child.truth.info.fordblks);
	assert_true(arenas.total.size <= child.truth.info.arena);
	assert_true(arenas.total.size >= child.truth.info.arena - 3 * (100003 + 4096 + 16));
	mw_glibc_arenas_deinit(&arenas);
	end(&child);
}

/* While the heap changes: plausible, or nothing. */
static void does_not_guess(void **state)
{
	static struct child child;
	unsigned known = 0;

	(void)state;
	start(&child, "churn", "");
	for (int i = 0; i < 50; i++) {
		struct mw_glibc_arenas arenas;

		see_mappings(&child);
		arenas = look(&child);
		if (arenas.total.size != MW_SIZE_UNKNOWN) {
			known++;
			assert_true(arenas.total.size <= child.process.heap.end - child.process.heap.start);
			assert_int_equal(arenas.total.used + arenas.total.free, arenas.total.size);
			/* 5,000 blocks of 1,500 bytes on average. */
			assert_in_range(arenas.total.used, 6500000, 8500000);
		}
		mw_glibc_arenas_deinit(&arenas);
	}
	assert_true(known > 0);
	end(&child);
}

static void respects_the_deadline(void **state)
{
	static struct child child;
	struct mw_glibc_arenas arenas = {0};

	(void)state;
	start(&child, "small", "");
	assert_null(mw_glibc_arenas_find(&child.process, &arenas));
	assert_null(mw_glibc_arenas_walk(&child.process, 0, &arenas));
	assert_true(arenas.total.used == MW_SIZE_UNKNOWN && arenas.total.free == MW_SIZE_UNKNOWN);
	mw_glibc_arenas_deinit(&arenas);
	end(&child);
}

/* A heap over which its program has scribbled leads round and round in what has been read already. */
static void leaves_loops(void **state)
{
	static struct child child;
	struct mw_glibc_arenas arenas = {0};
	uint64_t begin = mw_clock_ns();

	(void)state;
	start(&child, "loop", "");
	assert_null(mw_glibc_arenas_find(&child.process, &arenas));
	assert_null(mw_glibc_arenas_walk(&child.process, mw_clock_ns() + 200000000, &arenas));
	assert_true(arenas.total.used == MW_SIZE_UNKNOWN);
	/* Not as long as all the lists together take. */
	assert_true(mw_clock_ns() - begin < 10000000000);
	mw_glibc_arenas_deinit(&arenas);
	end(&child);
}

/* A main arena and a thread's that are made up, and damaged. */
#define MADE_UP    65536u
#define WORDS      (MADE_UP / 8)
#define DATA       UINT64_C(0x7f0000000000)
#define MAIN_HEAP  (UINT64_C(1) << 40)
#define OTHER_HEAP (5 * MW_GLIBC_HEAP_SIZE)

struct made_up {
	uint64_t data[512], main[WORDS], other[WORDS];
	unsigned seed;
};

static unsigned any(struct made_up *made_up, unsigned below)
{
	made_up->seed = made_up->seed * 1103515245 + 12345;
	return (made_up->seed >> 8) % below;
}

static size_t read_made_up(void *context, mw_addr addr, void *out, size_t size)
{
	const struct made_up *made_up = context;
	const struct {
		mw_addr start;
		const void *bytes;
		size_t size;
	} parts[] = {{DATA, made_up->data, sizeof(made_up->data)},
		     {MAIN_HEAP, made_up->main, sizeof(made_up->main)},
		     {OTHER_HEAP, made_up->other, sizeof(made_up->other)}};

	for (size_t i = 0; i < 3; i++) {
		size_t offset = addr - parts[i].start;

		if (addr < parts[i].start || offset >= parts[i].size)
			continue;
		size = size < parts[i].size - offset ? size : parts[i].size - offset;
		memcpy(out, (const char *)parts[i].bytes + offset, size);
		return size;
	}
	return 0;
}

/* glibc 2.36's state at `state`, whose words are given; its top, the ring's next. */
static void make_state(uint64_t *words, mw_addr state, mw_addr top, mw_addr next)
{
	memset(words, 0, 2200);
	words[12] = top;
	for (size_t i = 0; i < 127; i++)
		words[14 + 2 * i] = words[15 + 2 * i] = state + 112 + 16 * i - 16;
	words[270] = next;
	words[273] = words[274] = MADE_UP;
}

/* Chunks from word `at` on, sometimes free ones and what looks like a cache; returns the top. */
static mw_addr make_chunks(struct made_up *made_up, uint64_t *words, mw_addr start, size_t at, uint64_t flag)
{
	uint64_t in_use = 1;

	while (WORDS - at > 400) {
		size_t size = any(made_up, 8) ? 32 + 16 * any(made_up, 40) : 0x290;

		words[at + 1] = size | in_use | flag;
		for (size_t i = 0; i < 80 && size == 0x290; i++)
			words[at + 2 + i] = i < 16 ? 0x0001000100010001 : start + 16 * any(made_up, WORDS / 2);
		at += size / 8;
		in_use = any(made_up, 4) != 0;
		words[at] = size;
	}
	words[at + 1] = (MADE_UP - 8 * at) | 1;
	return start + 8 * at;
}

static void make(struct made_up *made_up)
{
	memset(made_up->main, 0, sizeof(made_up->main));
	memset(made_up->other, 0, sizeof(made_up->other));
	make_state(made_up->data, DATA, make_chunks(made_up, made_up->main, MAIN_HEAP, 0, 0), OTHER_HEAP + 48);
	made_up->other[0] = OTHER_HEAP + 48;
	made_up->other[2] = made_up->other[3] = MADE_UP;
	made_up->other[4] = 4096;
	make_state(made_up->other + 6, OTHER_HEAP + 48, make_chunks(made_up, made_up->other, OTHER_HEAP, 282, 4), DATA);
	for (size_t i = 0; i < 10; i++)
		made_up->data[2 + i] = any(made_up, 2) ? MAIN_HEAP + 16 * any(made_up, WORDS / 2) : 0;
}

static void damage(struct made_up *made_up)
{
	uint64_t *parts[] = {made_up->main, made_up->other, made_up->data};

	for (unsigned i = any(made_up, 6); i; i--) {
		unsigned part = any(made_up, 3);
		uint64_t *word = &parts[part][any(made_up, part == 2 ? 512 : WORDS)];

		switch (any(made_up, 4)) {
		case 0:
			*word ^= UINT64_C(1) << any(made_up, 64);
			break;
		case 1:
			*word = UINT64_MAX - any(made_up, 64);
			break;
		case 2:
			*word = any(made_up, 64);
			break;
		default:
			*word = MAIN_HEAP + any(made_up, MADE_UP);
		}
	}
}

static void bears_anything(void **state)
{
	static struct made_up made_up = {.seed = 1};
	const struct mw_glibc_span anonymous = {OTHER_HEAP, OTHER_HEAP + MADE_UP}, data = {DATA, DATA + 4096};
	const struct mw_glibc_process process = {.read = read_made_up,
						 .context = &made_up,
						 .anonymous = &anonymous,
						 .anonymous_count = 1,
						 .data = &data,
						 .data_count = 1,
						 .heap = {MAIN_HEAP, MAIN_HEAP + MADE_UP}};
	unsigned known = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct mw_glibc_arenas arenas = {0};

		make(&made_up);
		if (i)
			damage(&made_up);
		assert_null(mw_glibc_arenas_find(&process, &arenas));
		assert_null(mw_glibc_arenas_walk(&process, mw_clock_ns() + 60000000000, &arenas));
		/* Undamaged it is whole. */
		if (!i)
			assert_int_equal(arenas.total.size, 2 * MADE_UP);
		if (arenas.total.size != MW_SIZE_UNKNOWN) {
			known++;
			assert_true(arenas.total.size <= 2 * MADE_UP);
			assert_true(arenas.total.used <= arenas.total.size);
			assert_int_equal(arenas.total.used + arenas.total.free, arenas.total.size);
		}
		mw_glibc_arenas_deinit(&arenas);
	}
	assert_in_range(known, 10, 2990);
}

UNIT_GROUP(glibc_arenas)
{
	const struct CMUnitTest real[] = {
		cmocka_unit_test(tells_fragments), cmocka_unit_test(tells_caches),
		cmocka_unit_test(tells_threads),   cmocka_unit_test(steps_over_others),
		cmocka_unit_test(does_not_guess),  cmocka_unit_test(respects_the_deadline),
		cmocka_unit_test(leaves_loops),    cmocka_unit_test(bears_anything),
	};
	const struct CMUnitTest made_up[] = {cmocka_unit_test(bears_anything)};

	if (argc > 1)
		be_child(argv[1]);
	/* A sanitizer's malloc is not glibc's. */
	return SANITIZED ? cmocka_run_group_tests(made_up, NULL, NULL) : cmocka_run_group_tests(real, NULL, NULL);
}
