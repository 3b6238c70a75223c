// SPDX-License-Identifier: MIT
/* The real image in this process: registers, flags, results, forks. */
#include "image.h"
#include "shared.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct regs {
	uint64_t gpr[16];
	uint64_t flags, unused;
	uint8_t xmm[256];
};
extern struct regs regs_in, regs_out, regs_seen, regs_given;
extern uint64_t regs_sp;
void regs_call(void *function);
void regs_target(void);

#define FLAGS 0x8d5u /* carry, parity, adjust, zero, sign, overflow */
#define NO    0xff

static struct shared shared;
static struct image *image;
static uint64_t random_state = 88172645463325252;

static uint64_t random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_regs(struct regs *regs)
{
	uint64_t *words = (uint64_t *)(void *)regs;

	for (size_t i = 0; i < sizeof(*regs) / 8; i++)
		words[i] = random_word();
	regs->flags = (regs->flags & FLAGS) | 0x202;
}

static struct mw_ring_slot *own_slot(void)
{
	return shared_slot_of(&shared, (uint64_t)pthread_self());
}

static int setup(void **state)
{
	struct shared_plan plan = SHARED_DEFAULT;
	struct mw_ring_slot *slot;
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	(void)state;
	plan.ring_units = 4096;
	shared_create(&shared, &plan);
	shared.control->wait_limit = UINT64_C(1) << 24;
	shared.control->heartbeat = __builtin_ia32_rdtsc();
	/* One frame is all of a stack. */
	shared_code(&shared, 0x1000, UINT64_MAX, mw_row(MW_ROW_END, 0, MW_ROW_FP_SAME, 0));
	image = image_create(&shared);
	slot = shared_slot(&shared, mw_ring_slot_first((uint64_t)pthread_self(), plan.slots));
	slot->owner = (uint64_t)pthread_self();
	slot->tid = (uint32_t)gettid();
	slot->regions[0] = (struct mw_ring_region){here - (256u << 10), here + 1024};
	image_guard(image, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	image_destroy(image);
	shared_destroy(&shared);
	return 0;
}

static void *trampoline(uint32_t number, uint8_t role, uint8_t pointer, uint8_t argument, uint64_t original)
{
	const struct mw_stub_hook hook = {
		.original = original,
		.role = role,
		.flags = role <= 6 ? MW_STUB_IS_HEAP : 0,
		.pointer = pointer,
		.count = NO,
		.argument = argument,
	};

	return image_trampoline(image, number, &hook, 0);
}

/* A call with all registers at random: the function finds them, and the caller what the function left. */
static void through(void *function, const uint64_t *arguments)
{
	for (int i = 0; i < 500; i++) {
		struct mw_ring_slot *slot = own_slot();

		random_regs(&regs_in);
		random_regs(&regs_given);
		if (arguments) {
			regs_in.gpr[5] = arguments[0];
			regs_in.gpr[4] = arguments[1];
		}
		regs_call(function);
		for (unsigned j = 0; j < 16; j++) {
			static const uint8_t kept[16] = {[3] = 1, [6] = 1, [12] = 1, [13] = 1, [14] = 1, [15] = 1};

			if (j == 7)
				continue;
			assert_int_equal(regs_seen.gpr[j], regs_in.gpr[j]);
			assert_int_equal(regs_out.gpr[j], kept[j] ? regs_in.gpr[j] : regs_given.gpr[j]);
		}
		assert_int_equal(regs_seen.gpr[7] & 15, 8);
		assert_int_equal(regs_out.gpr[7] & 15, 0);
		assert_int_equal(regs_seen.flags & FLAGS, regs_in.flags & FLAGS);
		assert_int_equal(regs_out.flags & FLAGS, regs_given.flags & FLAGS);
		assert_memory_equal(regs_seen.xmm, regs_in.xmm, 256);
		assert_memory_equal(regs_out.xmm, regs_given.xmm, 256);
		assert_int_equal(slot->inside, 0);
		assert_int_equal(slot->top, 0);
		slot->drained = slot->reserved;
	}
}

static void test_registers(void **state)
{
	const uint64_t nothing[2] = {0};
	void *function = trampoline(0, 0 /* malloc */, NO, 0, (uint64_t)(uintptr_t)regs_target);

	(void)state;
	through(function, NULL);
	assert_true(own_slot()->reserved >= 500);
	assert_int_equal(own_slot()->lost_stacks, 0);
	image_guard(image, 2);
	through(function, NULL);
	image_guard(image, 0);
	shared.control->recording = 0;
	through(function, NULL);
	/* What passes the recorder by, and what is a child's. */
	image_guard(image, 1);
	through(trampoline(1, 4 /* free */, 0, NO, (uint64_t)(uintptr_t)regs_target), nothing);
	image_guard(image, 0);
	shared.control->recording = 1;
	through(function, NULL);
	assert_int_equal(shared.control->child_count, 1);
	assert_int_equal(image_guard_now(image), 2);
	/* The other entry, for what is not ours. */
	const struct mw_stub_hook unwinder = {.original = (uint64_t)(uintptr_t)regs_target, .role = MW_STUB_UNWINDER};

	through(image_trampoline(image, 2, &unwinder, 1), NULL);
}

/* While blocks are sampled: the fast paths, which leave no trace unless the countdown ends. */
static void test_fast_paths(void **state)
{
	const struct mw_stub_header *header = mw_stub_header();
	const struct {
		uint32_t entry;
		uint8_t role, pointer, count, argument;
		int64_t each;
	} ways[] = {
		{header->enter_size0, 0, NO, NO, 0, 1000},
		{header->enter_size1, 0, NO, NO, 1, 24},
		{header->enter_product, 1, NO, 0, 1, 24000},
		{header->enter_free, 4, 0, NO, NO, 0},
	};
	const uint64_t arguments[2] = {1000, 24}, zero[2] = {0}, huge[2] = {UINT64_MAX, UINT64_MAX};

	(void)state;
	if (!image_use_rdfsbase(image))
		skip(); /* there the fast paths are not taken */
	shared.control->sampling = mw_ring_sampling(4096, 3);
	for (uint32_t i = 0; i < 4; i++) {
		const struct mw_stub_hook hook = {.original = (uint64_t)(uintptr_t)regs_target,
						  .role = ways[i].role,
						  .flags = MW_STUB_IS_HEAP,
						  .pointer = ways[i].pointer,
						  .count = ways[i].count,
						  .argument = ways[i].argument};
		void *function = image_trampoline_to(image, i, &hook, ways[i].entry);
		struct mw_ring_slot *slot = own_slot();
		uint64_t entries;

		/* As at `enter`, where the guard says so. */
		image_guard(image, 1);
		through(function, arguments);
		image_guard(image, 2);
		through(function, NULL);
		image_guard(image, MW_STUB_GUARD_SAMPLING);
		slot->sampling = shared.control->sampling;
		slot->countdown = INT64_C(1) << 40;
		entries = slot->entries;
		through(function, arguments);
		assert_int_equal((INT64_C(1) << 40) - slot->countdown, 500 * ways[i].each);
		through(function, zero);
		assert_int_equal((INT64_C(1) << 40) - slot->countdown, 500 * (ways[i].each + (ways[i].each != 0)));
		assert_int_equal(slot->entries, entries);
		/* The slow path: the size is none, or the countdown ends. */
		through(function, huge);
		assert_int_equal(slot->entries != entries, i < 3);
		entries = slot->entries;
		for (int j = 0; j < 8; j++) {
			slot->countdown = 10;
			through(function, arguments);
		}
		assert_int_equal(slot->entries != entries, i < 3);
		assert_int_equal(slot->top, 0);
	}
	assert_int_equal(own_slot()->lost_stacks, 0);
}

static struct mw_ring_slot *sampled_pair(void *function, uint64_t size, int64_t countdown)
{
	struct mw_ring_slot *slot = own_slot();

	slot->countdown = countdown;
	slot->drained = slot->reserved;
	((void *(*)(uint64_t))(uintptr_t)function)(size);
	return slot;
}

static void *give_block(void)
{
	return shared.control;
}

/* The block that the countdown does not suffice for is recorded, with its label, and so is its free, once. */
static void test_fast_path_samples(void **state)
{
	struct mw_stub_hook hook = {
		.original = (uint64_t)(uintptr_t)give_block, .flags = MW_STUB_IS_HEAP, .pointer = NO, .count = NO};
	void *allocate = image_trampoline_to(image, 0, &hook, mw_stub_header()->enter_size0), *release;
	struct mw_ring_slot *slot;
	struct shared_record record;
	uint64_t reserved;

	(void)state;
	hook.role = 4;
	hook.pointer = 0;
	release = image_trampoline_to(image, 1, &hook, mw_stub_header()->enter_free);
	image_use_rdfsbase(image);
	shared.control->sampling = mw_ring_sampling(4096, 3);
	image_guard(image, MW_STUB_GUARD_SAMPLING);
	/* The first that a thread allocates only draws its countdown, which a block of all sizes is more than. */
	slot = sampled_pair(allocate, 0, 0);
	slot->drained = slot->reserved;
	reserved = slot->reserved;
	slot = sampled_pair(allocate, 100, 100);
	assert_int_equal(slot->countdown, 0);
	assert_int_equal(slot->reserved, reserved);
	((void (*)(void *))(uintptr_t)release)(shared.control);
	assert_int_equal(slot->reserved, reserved);
	slot = sampled_pair(allocate, 101, 100);
	((void (*)(void *))(uintptr_t)release)(shared.control);
	((void (*)(void *))(uintptr_t)release)(shared.control);
	do
		assert_true(shared_next(&shared, slot, &record));
	while (record.type == MW_RING_STACK || record.type == MW_RING_THREAD);
	assert_int_equal(record.type, MW_RING_ALLOC);
	assert_int_equal(record.size, UINT64_C(3) << MW_RING_SIZE_BITS | 101);
	assert_int_equal(record.addr, (uint64_t)(uintptr_t)shared.control);
	assert_true(shared_next(&shared, slot, &record));
	assert_int_equal(record.type, MW_RING_FREE_BLOCK);
	assert_false(shared_next(&shared, slot, &record));
}

/* A free goes by the byte of the filter's piece first; only what is counted in both is looked up. */
static void test_fast_path_filter(void **state)
{
	const struct mw_stub_hook hook = {.original = (uint64_t)(uintptr_t)give_block,
					  .role = 4,
					  .flags = MW_STUB_IS_HEAP,
					  .pointer = 0,
					  .count = NO};
	void (*release)(uint64_t) =
		(void (*)(uint64_t))(uintptr_t)image_trampoline_to(image, 1, &hook, mw_stub_header()->enter_free);
	uint8_t *filter = (uint8_t *)shared.control + shared.filter;
	const uint64_t block = 0x7f0000001230, in_piece = block + 0x10, elsewhere = block + 0x100000;
	struct mw_ring_slot *slot = own_slot();
	uint64_t entries;

	(void)state;
	if (!image_use_rdfsbase(image))
		skip();
	shared.control->sampling = mw_ring_sampling(4096, 3);
	image_guard(image, MW_STUB_GUARD_SAMPLING);
	mw_ring_filter_count(filter, block, 1, 0);
	entries = slot->entries;
	release(in_piece);
	release(elsewhere);
	assert_int_equal(slot->entries, entries);
	/* Counted, and one that nobody knows: it is looked up. */
	filter[mw_ring_filter_place(block)] = 255;
	release(block);
	assert_int_equal(slot->entries, entries + 1);
	filter[mw_ring_filter_place(block)] = 1;
	mw_ring_filter_count(filter, block, -1, 0);
	for (uint32_t i = 0; i < MW_RING_FILTER_SIZE; i++)
		assert_int_equal(filter[i], 0);
	filter[mw_ring_filter_place(block)] = 255;
	release(block);
	assert_int_equal(slot->entries, entries + 1);
	filter[mw_ring_filter_place(block)] = 0;
}

/* What does not fit a piece's count leaves it as it is for ever: no block in it is missed. */
static void test_filter_pieces(void **state)
{
	uint8_t *filter = (uint8_t *)shared.control + shared.filter, *piece = filter + MW_RING_FILTER;

	(void)state;
	for (uint64_t i = 0; i < 300; i++)
		mw_ring_filter_count(filter, i % 100 << 4, 1, 0);
	assert_int_equal(filter[0], 3);
	assert_int_equal(piece[0], 255);
	for (uint64_t i = 0; i < 300; i++)
		mw_ring_filter_count(filter, i % 100 << 4, -1, 0);
	assert_int_equal(filter[0], 0);
	assert_int_equal(piece[0], 255);
	mw_ring_filter_count(filter, UINT64_C(1) << 12, 1, 1);
	assert_int_equal(piece[2], 255);
	memset(filter, 0, MW_RING_FILTER_SIZE);
}

/* As many as are to be, of blocks that are smaller than the interval and larger. */
static void test_fast_path_share(void **state)
{
	static const struct {
		uint64_t size;
		double p; /* 1 - exp(-size / interval) */
	} sizes[] = {{8, 0.0019512205}, {1024, 0.2211992169}, {4096, 0.6321205588}, {8192, 0.8646647168}};
	const uint64_t calls = 200000;
	struct mw_stub_hook hook = {
		.original = (uint64_t)(uintptr_t)give_block, .flags = MW_STUB_IS_HEAP, .pointer = NO, .count = NO};
	void *allocate = image_trampoline_to(image, 0, &hook, mw_stub_header()->enter_size0), *release;

	(void)state;
	hook.role = 4;
	hook.pointer = 0;
	release = image_trampoline_to(image, 1, &hook, mw_stub_header()->enter_free);
	image_use_rdfsbase(image);
	shared.control->sampling = mw_ring_sampling(4096, 3);
	image_guard(image, MW_STUB_GUARD_SAMPLING);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double p = sizes[i].p, off;
		uint64_t sampled = 0;

		for (uint64_t j = 0; j < calls; j++) {
			struct mw_ring_slot *slot = own_slot();
			uint64_t reserved = slot->reserved;

			slot->drained = reserved;
			((void *(*)(uint64_t))(uintptr_t)allocate)(sizes[i].size);
			sampled += slot->reserved != reserved;
			((void (*)(void *))(uintptr_t)release)(shared.control);
		}
		off = (double)sampled - (double)calls * p;
		/* Five standard errors. */
		assert_true(off * off < 25 * (double)calls * p * (1 - p));
	}
}

static void test_header(void **state)
{
	const struct mw_stub_header *header = mw_stub_header();
	int32_t table[2];

	(void)state;
	assert_int_equal(header->magic, MW_STUB_MAGIC);
	assert_int_equal(header->size, mw_stub_image_size);
	assert_true(header->context + sizeof(struct mw_stub_context) <= header->size);
	assert_true(header->enter < header->entered && header->entered < header->returned);
	assert_true(header->returned < header->left && header->left < header->entries_end);
	assert_true(header->left < header->enter_size0 && header->enter_size0 < header->enter_free);
	assert_true(header->enter_free < header->find_fde);
	assert_true(header->find_fde < header->entries_end && header->entries_end < header->code_end);
	assert_int_equal(header->context % 64, 0);
	memcpy(table, mw_stub_image + header->table, sizeof(table));
	assert_int_equal(table[0], header->returned - 1);
	assert_int_equal(table[1], header->fde);
	/* What memory.c of the engine fills in is all zeros before. */
	for (size_t i = 0; i < sizeof(struct mw_stub_context); i++)
		assert_int_equal(mw_stub_image[header->context + i], 0);
}

struct bases {
	void *tbase, *dbase, *func;
};
typedef void *find(void *pc, struct bases *bases);

static void *find_another(void *pc, struct bases *bases)
{
	bases->func = pc;
	return bases;
}

static void test_find_fde(void **state)
{
	const struct mw_stub_hook hook = {.original = (uint64_t)(uintptr_t)find_another, .role = MW_STUB_UNWINDER};
	find *f = (find *)(uintptr_t)image_trampoline(image, 3, &hook, 1);
	uint64_t returned = image_returned(image);
	struct bases bases;

	(void)state;
	for (uint32_t guard = 0; guard < 3; guard++) {
		image_guard(image, guard);
		for (uint64_t pc = returned - 1; pc <= returned; pc++) {
			memset(&bases, 1, sizeof(bases));
			assert_int_equal((uint64_t)(uintptr_t)f((void *)(uintptr_t)pc, &bases),
					 image_start(image) + mw_stub_header()->fde);
			assert_null(bases.tbase);
			assert_null(bases.dbase);
			assert_int_equal((uint64_t)(uintptr_t)bases.func, returned - 1);
		}
		assert_ptr_equal(f((void *)(uintptr_t)(returned - 2), &bases), &bases);
		assert_ptr_equal(f((void *)(uintptr_t)(returned + 1), &bases), &bases);
		assert_int_equal((uint64_t)(uintptr_t)bases.func, returned + 1);
	}
}

typedef void *allocate(size_t size);
typedef void release(void *block);

static void test_fork(void **state)
{
	allocate *f = (allocate *)(uintptr_t)trampoline(0, 0, NO, 0, (uint64_t)(uintptr_t)malloc);
	uint64_t reserved;
	int status;
	pid_t pid;

	(void)state;
	free(f(10));
	reserved = own_slot()->reserved;
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 10; i++)
			free(f(10));
		_exit(image_guard_now(image) == 2 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(own_slot()->reserved, reserved);
	assert_int_equal(shared.control->child_count, 1);
	assert_int_equal(shared.control->children[0], pid);
	assert_int_equal(image_guard_now(image), 1);
}

/* A signal may strike anywhere, and its handler allocate: all is told, once, and nothing is left open. */
static allocate *hooked_malloc;
static release *hooked_free;
static volatile unsigned handled;

static void on_signal(int number)
{
	int saved = errno;

	(void)number;
	/* No malloc of a handler's is safe; this function stands for one that is. */
	hooked_free(hooked_malloc(77));
	handled++;
	errno = saved;
}

static char arena[1024];

static void *safe_malloc(size_t size)
{
	return arena + size;
}

static void safe_free(void *block)
{
	(void)block;
}

static void test_signals(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, before;
	struct itimerspec often = {{0, 20000}, {0, 20000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	static struct shared_record record;
	unsigned counts[MW_RING_TYPES] = {0}, pairs = 0;
	struct mw_ring_slot *slot = own_slot();
	timer_t timer;

	(void)state;
	hooked_malloc = (allocate *)(uintptr_t)trampoline(0, 0, NO, 0, (uint64_t)(uintptr_t)safe_malloc);
	hooked_free = (release *)(uintptr_t)trampoline(1, 4, 0, NO, (uint64_t)(uintptr_t)safe_free);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	for (pairs = 0; pairs < 200000 || handled < 100; pairs++) {
		hooked_free(hooked_malloc(16));
		if (slot->reserved - slot->drained > 2000)
			while (shared_next(&shared, slot, &record))
				counts[record.type]++;
	}
	timer_delete(timer);
	sigaction(SIGUSR1, &before, NULL);
	while (shared_next(&shared, slot, &record))
		counts[record.type]++;
	assert_int_equal(slot->drained, slot->reserved);
	assert_int_equal(slot->inside, 0);
	assert_int_equal(slot->top, 0);
	assert_int_equal(slot->lost_events, 0);
	/* A handler that interrupted inside the original of a malloc is inside a signal frame that no row tells of
	 * here. */
	assert_in_range(counts[MW_RING_ALLOC], pairs, pairs + handled);
	assert_in_range(counts[MW_RING_FREE_BLOCK], pairs, pairs + handled);
}

UNIT_GROUP(image)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_header),
		T(test_registers),
		T(test_fast_paths),
		T(test_fast_path_samples),
		T(test_fast_path_filter),
		T(test_filter_pieces),
		T(test_fast_path_share),
		T(test_find_fde),
		T(test_fork),
		T(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
