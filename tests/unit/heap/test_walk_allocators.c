// SPDX-License-Identifier: MIT
/*
 * test_walk_allocators.c: the blocks of a process with each allocator, against the process's own list of them and the
 * allocator's own statistics.
 *
 * unit_heap walk_allocators TEST: that one, which may have *.
 * unit_heap walk_allocators PID: what the walkers find in that process (which is stopped meanwhile).
 */
#include "heap/walker.h"

#include "../../targets/heapblocks.h"
#include "base/clock.h"
#include "heap/reach.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#include "image_of.h"

#include <dirent.h>

#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"
#define THREADS   256

struct process {
	pid_t pid;
	struct heapblocks *told;
	struct image_of of;
	struct mw_image_thread threads[THREADS];
	struct mw_blocks *blocks;
};

/* --- the process ------------------------------------------------------------------------------------------------------------ */

static void read_registers(struct mw_image_thread *thread)
{
	struct user_regs_struct regs;
	struct user_fpregs_struct vectors;

	assert_int_equal(ptrace(PTRACE_GETREGS, thread->tid, NULL, &regs), 0);
	assert_int_equal(ptrace(PTRACE_GETFPREGS, thread->tid, NULL, &vectors), 0);
	memcpy(thread->registers, &regs, sizeof(regs));
	memcpy(thread->registers + sizeof(regs) / 8, vectors.xmm_space, sizeof(vectors.xmm_space));
	thread->register_count = (sizeof(regs) + sizeof(vectors.xmm_space)) / 8;
	thread->pc = regs.rip;
	thread->sp = regs.rsp;
	thread->thread_pointer = regs.fs_base;
}

static void stop(struct process *process)
{
	struct image_of *of = &process->of;
	size_t count = 0;
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)) && count < THREADS) {
		struct mw_image_thread *thread = &process->threads[count];

		thread->tid = atoi(entry->d_name);
		if (thread->tid <= 0 || ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) != 0)
			continue;
		assert_int_equal(ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL), 0);
		assert_int_equal(waitpid(thread->tid, NULL, __WALL), thread->tid);
		read_registers(thread);
		count++;
	}
	closedir(tasks);
	image_of_begin(of, process->pid);
	of->image.threads = process->threads;
	of->image.thread_count = count;
}

static void walk(struct process *process, const struct mw_walker *walker)
{
	assert_null(mw_blocks_create(&process->blocks));
	assert_null(mw_walker_run(walker, &process->of.image, NULL, process->blocks));
	assert_null(mw_blocks_finish(process->blocks));
}

static void start(struct process *process, const char *preload, const char *program, unsigned seed, bool busy)
{
	char text[16];
	uint64_t deadline = mw_clock_ns() + UINT64_C(60) * 1000000000;
	char name[] = "/tmp/mw_heapblocks_XXXXXX";
	int fd = mkstemp(name);

	memset(process, 0, sizeof(*process));
	(void)snprintf(text, sizeof(text), "%u", seed);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*process->told)), 0);
	process->told = mmap(NULL, sizeof(*process->told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(process->told != MAP_FAILED);
	close(fd);
	process->pid = fork();
	assert_true(process->pid >= 0);
	if (process->pid == 0) {
		alarm(120);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		execl(program, "heapblocks", name, "6", "30000", text, busy ? "busy" : NULL, (char *)NULL);
		_exit(127);
	}
	while (!process->told->ready) {
		assert_true(mw_clock_ns() < deadline);
		assert_int_equal(waitpid(process->pid, NULL, WNOHANG), 0);
		usleep(10000);
	}
	unlink(name);
	usleep(50000);
	stop(process);
}

static void end(struct process *process)
{
	pid_t ended;

	kill(process->pid, SIGKILL);
	/* Its first thread ends last. A test that failed may have left a process of its own. */
	do
		ended = waitpid(-1, NULL, __WALL);
	while (ended > 0 && ended != process->pid);
	mw_blocks_destroy(process->blocks);
	image_of_end(&process->of);
	munmap(process->told, sizeof(*process->told));
}

/* --- what is found ---------------------------------------------------------------------------------------------------------- */

/* Sums of all live blocks of an allocator. */
static struct mw_amount live_of(const struct mw_blocks *blocks, uint32_t allocator)
{
	struct mw_amount sum = {0};
	const struct mw_heap_arena *arenas;
	const struct mw_span *spans;
	size_t count, arena_count;

	spans = mw_blocks_spans(blocks, &count);
	arenas = mw_blocks_arenas(blocks, &arena_count);
	MW_EACH(span, spans, count) {
		struct mw_segment segment;

		if (arenas[span->arena].allocator != allocator)
			continue;
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			if (segment.live)
				mw_amount_add(&sum, (struct mw_amount){1, segment.size});
	}
	return sum;
}

static bool is_skipped(const struct process *process, mw_addr addr)
{
	const struct mw_heap_skipped *skipped;
	size_t count;

	skipped = mw_blocks_skipped(process->blocks, &count);
	MW_EACH(range, skipped, count)
		if (addr - range->start < range->bytes)
			return true;
	return false;
}

/*
 * All blocks of the process are there, with their sizes; some may be `more` larger than what was asked for. mimalloc may give
 * out an aligned part of a larger block: then that ends where the block does. What was passed over is not looked for.
 */
static struct mw_amount assert_all_found(const struct process *process, uint64_t more)
{
	struct mw_amount sum = {0};

	for (uint32_t i = 0; i < process->told->count; i++) {
		mw_addr addr = process->told->blocks[i].addr;
		uint64_t usable = process->told->blocks[i].usable;
		struct mw_block block = {0};

		if (is_skipped(process, addr))
			continue;
		if (!mw_blocks_find(process->blocks, addr, &block) || block.start + block.size - addr - usable > more ||
		    (block.start != addr && (addr % 32 || more)))
			fail_msg("block %u of %u at %#lx, usable %lu, was found at %#lx with %lu", i,
				 process->told->count, (unsigned long)addr, (unsigned long)usable,
				 (unsigned long)block.start, (unsigned long)block.size);
		mw_amount_add(&sum, (struct mw_amount){1, block.size});
	}
	return sum;
}

static const struct mw_heap_allocator *only_allocator(const struct process *process)
{
	const struct mw_heap_allocator *allocators;
	size_t count;

	allocators = mw_blocks_allocators(process->blocks, &count);
	assert_int_equal(count, 1);
	if (!allocators->walked)
		fail_msg("%s %s was not walked: %s", allocators->name, allocators->version, allocators->why);
	return allocators;
}

static const char *either(const char *library, const char *program)
{
	return library ? library : program;
}

static bool is_there(const char *library)
{
	if (access(library, R_OK) == 0)
		return true;
	print_message("%s is not installed\n", library);
	return false;
}

/* How many blocks nothing leads to. */
static uint64_t lost_of(const struct process *process)
{
	const struct mw_reach_options options = {.threads = 1};
	struct mw_reached *reached;
	uint64_t lost;

	assert_null(mw_reach(&process->of.image, process->blocks, &options, &reached));
	lost = mw_reached_sums(reached)[MW_REACH_DEFINITE].count + mw_reached_sums(reached)[MW_REACH_INDIRECT].count;
	mw_reached_destroy(reached);
	return lost;
}

/*
 * Its threads allocate and free when they are stopped: what the process has listed is there, and little else, but for the
 * page or slab that each thread may be changing. Nothing is lost, whatever a thread is in the middle of, but for one object
 * of tcmalloc's own, to which it has dropped the pointer.
 */
static void assert_found_busy(const char *library, const char *program, const struct mw_walker *walker, uint64_t more)
{
	struct process process;

	for (unsigned seed = 0; seed < 8; seed++) {
		struct mw_amount live, own;

		start(&process, library, program, seed, true);
		walk(&process, walker);
		(void)only_allocator(&process);
		own = assert_all_found(&process, more);
		assert_in_range(own.count, process.told->count * 3 / 4, process.told->count);
		assert_in_range(lost_of(&process), 0, walker == &mw_walker_tcmalloc);
		live = live_of(process.blocks, 0);
		assert_in_range(live.count, own.count, own.count + 400);
		end(&process);
	}
}

/* --- jemalloc --------------------------------------------------------------------------------------------------------------- */

#define JEMALLOC LIBRARIES "libjemalloc.so.2"

static void test_jemalloc(void **state)
{
	struct process process;

	(void)state;
	if (!is_there(JEMALLOC))
		skip();
	for (unsigned seed = 0; seed < 3; seed++) {
		const struct mw_heap_allocator *allocator;
		struct mw_amount live, own;
		uint64_t stacks;

		start(&process, JEMALLOC, HEAPBLOCKS, seed, false);
		walk(&process, &mw_walker_jemalloc);
		allocator = only_allocator(&process);
		assert_string_equal(allocator->version, "5.3.0");
		own = assert_all_found(&process, 0);
		live = live_of(process.blocks, 0);
		assert_in_range(live.count, own.count, own.count + 100); /* libc's */
		assert_int_equal(allocator->cached, process.told->cached);
		assert_int_equal(allocator->skipped, 0);
		/* What is left are the stacks of the threads' caches, each of one size. */
		stacks = process.told->allocated - live.bytes - allocator->cached;
		assert_int_equal(stacks, process.of.image.thread_count * 28672);
		end(&process);
	}
}

/* --- tcmalloc --------------------------------------------------------------------------------------------------------------- */

#define TCMALLOC LIBRARIES "libtcmalloc_minimal.so.4"

static void test_tcmalloc(void **state)
{
	struct process process;

	(void)state;
	if (!is_there(TCMALLOC))
		skip();
	for (unsigned seed = 0; seed < 3; seed++) {
		const struct mw_heap_allocator *allocator;
		struct mw_amount live, own;

		start(&process, TCMALLOC, HEAPBLOCKS, seed, false);
		walk(&process, &mw_walker_tcmalloc);
		allocator = only_allocator(&process);
		assert_string_equal(allocator->version, "2.10");
		own = assert_all_found(&process, 0);
		live = live_of(process.blocks, 0);
		assert_in_range(live.count, own.count, own.count + 100); /* libc's */
		assert_int_equal(live.bytes, process.told->allocated);
		assert_int_equal(allocator->skipped, 0);
		assert_true(allocator->cached > 0);
		end(&process);
	}
}

/* --- mimalloc --------------------------------------------------------------------------------------------------------------- */

#define MIMALLOC LIBRARIES "libmimalloc.so.2.0"

static void test_mimalloc(void **state)
{
	struct process process;

	(void)state;
	if (!is_there(MIMALLOC))
		skip();
	for (unsigned seed = 0; seed < 3; seed++) {
		const struct mw_heap_allocator *allocator;
		struct mw_amount live, own;

		start(&process, MIMALLOC, HEAPBLOCKS, seed, false);
		walk(&process, &mw_walker_mimalloc);
		allocator = only_allocator(&process);
		assert_string_equal(allocator->version, "2.0");
		own = assert_all_found(&process, 0);
		live = live_of(process.blocks, 0);
		assert_in_range(live.count, own.count, own.count + 100); /* libc's */
		assert_int_equal(allocator->skipped, 0);
		end(&process);
	}
}

/* --- musl ------------------------------------------------------------------------------------------------------------------- */

/* Blocks are told up to a multiple of 16. */
static void assert_musl(const char *program, const char *version)
{
	struct process process;

	for (unsigned seed = 0; seed < 3; seed++) {
		const struct mw_heap_allocator *allocator;
		struct mw_amount live, own;

		start(&process, NULL, program, seed, false);
		walk(&process, &mw_walker_musl);
		allocator = only_allocator(&process);
		assert_string_equal(allocator->version, version);
		own = assert_all_found(&process, 15);
		live = live_of(process.blocks, 0);
		assert_in_range(live.count, own.count, own.count + 20);
		/* A block that fills the first slot of a group may be passed over: threads always stand in musl. */
		assert_in_range(own.count, process.told->count - 4, process.told->count);
		end(&process);
	}
}

static void test_musl(void **state)
{
	(void)state;
	if (!is_there(HEAPBLOCKS_MUSL))
		skip();
	assert_musl(HEAPBLOCKS_MUSL, "1.2.3");
	assert_musl(HEAPBLOCKS_MUSL "_static", "");
}

/* --- versions that are not known --------------------------------------------------------------------------------------------- */

/* A file's constants and its data, a page each. */
static size_t read_pages(void *context, mw_addr addr, void *out, size_t size)
{
	const char *pages = context;

	if (addr < 0x10000 || addr >= 0x12000)
		return 0;
	if (size > 0x12000 - addr)
		size = 0x12000 - addr;
	memcpy(out, pages + (addr - 0x10000), size);
	return size;
}

static void assert_refused(const struct mw_walker *walker, const char *constants, size_t size, const char *version)
{
	static const struct mw_image_mapping mappings[] = {
		{.start = 0x10000, .end = 0x11000, .inode = 1, .read = true, .path = "/lib/x.so"},
		{.start = 0x11000, .end = 0x12000, .inode = 1, .read = true, .write = true, .path = "/lib/x.so"},
	};
	static char pages[2 * 4096];
	const struct mw_image image = {
		.read_some = read_pages, .context = pages, .mappings = mappings, .mapping_count = 2};
	const struct mw_heap_allocator *allocators;
	struct mw_blocks *blocks;
	size_t count;

	memset(pages, 0, sizeof(pages));
	memcpy(pages + 1, constants, size);
	assert_null(mw_blocks_create(&blocks));
	assert_null(mw_walker_run(walker, &image, NULL, blocks));
	assert_null(mw_blocks_finish(blocks));
	allocators = mw_blocks_allocators(blocks, &count);
	assert_int_equal(count, version ? 1 : 0);
	if (version) {
		assert_false(allocators[0].walked);
		assert_non_null(strstr(allocators[0].why, "roots"));
		assert_string_equal(allocators[0].version, version);
		assert_string_equal(allocators[0].module, "/lib/x.so");
	}
	mw_blocks_destroy(blocks);
}

#define HASH_40                 "0123456789abcdef0123456789abcdef01234567"
#define ASSERT_REFUSED(w, c, v) assert_refused(w, c, sizeof(c), v)

static void test_jemalloc_unknown(void **state)
{
	(void)state;
	ASSERT_REFUSED(&mw_walker_jemalloc,
		       "<jemalloc>: error\0"
		       "4.5.0-0-g" HASH_40,
		       "4.5.0");
	ASSERT_REFUSED(&mw_walker_jemalloc, "5.4.0-0-g" HASH_40 "\0<jemalloc>: error", "5.4.0");
	ASSERT_REFUSED(&mw_walker_jemalloc,
		       "<jemalloc>: error\0"
		       "5.3.0-187-g" HASH_40,
		       "5.3.0");
	ASSERT_REFUSED(&mw_walker_jemalloc, "<jemalloc>: error", "");
	/* Known, but there is no heap of its kind. */
	ASSERT_REFUSED(&mw_walker_jemalloc,
		       "<jemalloc>: error\0"
		       "5.3.0-0-g" HASH_40,
		       "5.3.0");
	ASSERT_REFUSED(&mw_walker_jemalloc, "5.3.0-0-g" HASH_40, NULL);
}

static void test_tcmalloc_unknown(void **state)
{
	(void)state;
	ASSERT_REFUSED(&mw_walker_tcmalloc, "gperftools 2.15", "2.15");
	ASSERT_REFUSED(&mw_walker_tcmalloc,
		       "gperftools 2.10\0"
		       "TCMALLOC_MAX_FREE_QUEUE_SIZE",
		       "2.10");
	ASSERT_REFUSED(&mw_walker_tcmalloc, "gperftools 2.10", "2.10"); /* there is no heap */
	ASSERT_REFUSED(&mw_walker_tcmalloc, "gperftools or so", NULL);
}

static void test_mimalloc_unknown(void **state)
{
	(void)state;
	ASSERT_REFUSED(&mw_walker_mimalloc, "mimalloc: warning: ", "");
	ASSERT_REFUSED(&mw_walker_mimalloc, "mimalloc: warning: this", NULL);
}

static void test_musl_unknown(void **state)
{
	(void)state;
	ASSERT_REFUSED(&mw_walker_musl, "musl libc (x86_64)\0001.2.9", "1.2.9");
	ASSERT_REFUSED(&mw_walker_musl, "musl", NULL);
}

/* --- heaps that make no sense ----------------------------------------------------------------------------------------------- */

/* An image of which now and then a word is read as another one. */
struct spoilt {
	struct mw_image image;
	const struct mw_image *good;
	uint64_t state;
	unsigned seldom; /* one word of about so many */
};

static uint64_t random_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t spoil(struct spoilt *spoilt, const uint64_t *words, size_t count, uint64_t word)
{
	uint64_t random = random_of(&spoilt->state);

	switch (random % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - (random >> 8) % 64;
	case 2:
		return word ^ UINT64_C(1) << (random >> 8) % 64;
	case 3:
		return word + ((random >> 8) % 64 - 32) * 8;
	case 4:
		return words[(random >> 8) % count];
	case 5:
		return (random >> 8) % 4096;
	case 6:
		return random;
	default:
		return spoilt->good->mappings[(random >> 8) % spoilt->good->mapping_count].start +
		       (random >> 32) % 4096 * 8;
	}
}

static size_t read_spoilt(void *context, mw_addr addr, void *out, size_t size)
{
	struct spoilt *spoilt = context;
	size_t got = mw_image_read_some(spoilt->good, addr, out, size);
	uint64_t *words = out;

	if (random_of(&spoilt->state) % spoilt->seldom == 0)
		got = random_of(&spoilt->state) % (got + 1);
	for (size_t at = random_of(&spoilt->state) % spoilt->seldom; at < got / 8;
	     at += 1 + random_of(&spoilt->state) % spoilt->seldom)
		words[at] = spoil(spoilt, words, got / 8, words[at]);
	return got;
}

/* A walk through what is invalid ends, and soon. */
static void walk_spoilt(struct process *process, const struct mw_walker *walker, unsigned walks)
{
	static const unsigned seldom[] = {16, 4096, 65536, 1u << 20};
	unsigned walked = 0;

	for (unsigned i = 0; i < walks; i++) {
		struct spoilt spoilt = {.good = &process->of.image, .state = i + 1, .seldom = seldom[i % 4]};
		const struct mw_heap_allocator *allocators;
		uint64_t began = mw_clock_ns();
		size_t count;

		spoilt.image = process->of.image;
		spoilt.image.read_some = read_spoilt;
		spoilt.image.context = &spoilt;
		assert_null(mw_blocks_create(&process->blocks));
		assert_null(mw_walker_run(walker, &spoilt.image, NULL, process->blocks));
		assert_null(mw_blocks_finish(process->blocks));
		allocators = mw_blocks_allocators(process->blocks, &count);
		walked += count && allocators[0].walked;
		(void)live_of(process->blocks, 0);
		mw_blocks_destroy(process->blocks);
		process->blocks = NULL;
		if (mw_clock_ns() - began > UINT64_C(20) * 1000000000)
			fail_msg("walk %u took too long", i);
	}
	/* Some went to the end. */
	print_message("%u of %u walked\n", walked, walks);
	assert_in_range(walked, 1, walks - 1);
}

#define SPOILT_AND_BUSY(name, library, program, more)                                                                  \
	static void test_##name##_busy(void **state)                                                                   \
	{                                                                                                              \
		(void)state;                                                                                           \
		if (!is_there(either(library, program)))                                                               \
			skip();                                                                                        \
		assert_found_busy(library, program, &mw_walker_##name, more);                                          \
	}                                                                                                              \
	static void test_##name##_spoilt(void **state)                                                                 \
	{                                                                                                              \
		struct process process;                                                                                \
                                                                                                                       \
		(void)state;                                                                                           \
		if (!is_there(either(library, program)))                                                               \
			skip();                                                                                        \
		start(&process, library, program, 1, false);                                                           \
		walk_spoilt(&process, &mw_walker_##name, 40);                                                          \
		end(&process);                                                                                         \
	}

SPOILT_AND_BUSY(jemalloc, JEMALLOC, HEAPBLOCKS, 0)
SPOILT_AND_BUSY(tcmalloc, TCMALLOC, HEAPBLOCKS, 0)
SPOILT_AND_BUSY(mimalloc, MIMALLOC, HEAPBLOCKS, 0)
SPOILT_AND_BUSY(musl, NULL, HEAPBLOCKS_MUSL, 15)

static int print_process(const char *pid)
{
	static const struct mw_walker *const walkers[] = {&mw_walker_jemalloc, &mw_walker_tcmalloc, &mw_walker_mimalloc,
							  &mw_walker_musl};
	struct process process = {.pid = atoi(pid)};
	uint64_t began;

	stop(&process);
	assert_null(mw_blocks_create(&process.blocks));
	began = mw_clock_ns();
	MW_EACH(walker, walkers, sizeof(walkers) / sizeof(*walkers))
		assert_null(mw_walker_run(*walker, &process.of.image, NULL, process.blocks));
	assert_null(mw_blocks_finish(process.blocks));
	printf("%lu us\n", (unsigned long)(mw_clock_ns() - began) / 1000);
	for (uint32_t i = 0;; i++) {
		const struct mw_heap_allocator *allocators;
		struct mw_amount live;
		size_t count;

		allocators = mw_blocks_allocators(process.blocks, &count);
		if (i >= count)
			return 0;
		live = live_of(process.blocks, i);
		printf("%s %s in %s: %lu live blocks, %lu bytes; cached %lu, skipped %lu; %s\n", allocators[i].name,
		       allocators[i].version, allocators[i].module, (unsigned long)live.count,
		       (unsigned long)live.bytes, (unsigned long)allocators[i].cached,
		       (unsigned long)allocators[i].skipped, allocators[i].walked ? "walked" : allocators[i].why);
	}
}

#define TESTS(name)                                                                                                    \
	cmocka_unit_test(test_##name), cmocka_unit_test(test_##name##_unknown), cmocka_unit_test(test_##name##_busy),  \
		cmocka_unit_test(test_##name##_spoilt)

UNIT_GROUP(walk_allocators)
{
	const struct CMUnitTest tests[] = {
		TESTS(jemalloc),
		TESTS(tcmalloc),
		TESTS(mimalloc),
		TESTS(musl),
	};

	if (argc > 1 && atoi(argv[1]))
		return print_process(argv[1]);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
