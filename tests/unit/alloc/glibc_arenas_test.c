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
	truth->info = mallinfo2();
	for (int i = 0; i < CACHED; i++)
		free(held[i]);
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
		execl("/proc/self/exe", "glibc_arenas_test", what, (char *)NULL);
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

/* Memory that says anything: each read word is random, or what leads on. */
static size_t read_noise(void *context, mw_addr addr, void *out, size_t size)
{
	unsigned *seed = context;
	unsigned char *bytes = out;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t value;

		*seed = *seed * 1103515245 + 12345;
		switch (*seed >> 28) {
		case 0 ... 9: /* an empty list's head: the arena's are told by these */
			value = addr + (i & ~(size_t)15) - 16;
			break;
		case 10:
			value = *seed & 0xfff0;
			break;
		case 11:
			value = 0x21;
			break;
		case 12:
			value = (addr & ~(MW_GLIBC_HEAP_SIZE - 1)) + 48;
			break;
		case 13:
			value = 4096u * (*seed & 63);
			break;
		default:
			value = UINT64_MAX / (*seed | 1);
		}
		memcpy(bytes + i, &value, 8);
	}
	return *seed % 5 ? size : size / 2;
}

static void bears_anything(void **state)
{
	const struct mw_glibc_span anonymous = {MW_GLIBC_HEAP_SIZE, 40 * MW_GLIBC_HEAP_SIZE};
	const struct mw_glibc_span data = {0x7f0000000000, 0x7f0000010000};
	unsigned seed = 1;
	struct mw_glibc_process process = {
		read_noise, &seed, &anonymous, 1, &data, 1, {UINT64_C(1) << 40, (UINT64_C(1) << 40) + 100000}};

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct mw_glibc_arenas arenas = {0};

		assert_null(mw_glibc_arenas_find(&process, &arenas));
		assert_null(mw_glibc_arenas_walk(&process, mw_clock_ns() + 100000000, &arenas));
		mw_glibc_arenas_deinit(&arenas);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest real[] = {
		cmocka_unit_test(tells_fragments), cmocka_unit_test(tells_caches),
		cmocka_unit_test(tells_threads),   cmocka_unit_test(steps_over_others),
		cmocka_unit_test(does_not_guess),  cmocka_unit_test(respects_the_deadline),
		cmocka_unit_test(bears_anything),
	};
	const struct CMUnitTest made_up[] = {cmocka_unit_test(bears_anything)};

	if (argc > 1)
		be_child(argv[1]);
	/* A sanitizer's malloc is not glibc's. */
	return SANITIZED ? cmocka_run_group_tests(made_up, NULL, NULL) : cmocka_run_group_tests(real, NULL, NULL);
}
