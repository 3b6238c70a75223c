// SPDX-License-Identifier: MIT
/* What each role's calls become. */
#include "rig.h"
#include "unit.h"

#include <memwatch/engine.h>
#include <string.h>

_Static_assert((int)STUB_ROLE_MALLOC == (int)MW_ROLE_MALLOC && (int)STUB_ROLE_CALLOC == (int)MW_ROLE_CALLOC, "");
_Static_assert((int)STUB_ROLE_REALLOC == (int)MW_ROLE_REALLOC, "");
_Static_assert((int)STUB_ROLE_REALLOCARRAY == (int)MW_ROLE_REALLOCARRAY, "");
_Static_assert((int)STUB_ROLE_FREE == (int)MW_ROLE_FREE, "");
_Static_assert((int)STUB_ROLE_POSIX_MEMALIGN == (int)MW_ROLE_POSIX_MEMALIGN, "");
_Static_assert((int)STUB_ROLE_RESIZE == (int)MW_ROLE_RESIZE && (int)STUB_ROLE_MMAP == (int)MW_ROLE_MMAP, "");
_Static_assert((int)STUB_ROLE_MUNMAP == (int)MW_ROLE_MUNMAP && (int)STUB_ROLE_MREMAP == (int)MW_ROLE_MREMAP, "");
_Static_assert((int)STUB_ROLE_BRK == (int)MW_ROLE_BRK && (int)STUB_ROLE_SBRK == (int)MW_ROLE_SBRK, "");
_Static_assert((int)STUB_ROLE_COUNT == (int)MW_ROLE_COUNT, "");

#define BLOCK 0x7f0000001000u
#define OTHER 0x7f0000002000u

static void allocate(uint64_t block)
{
	mw_stub_leave(rig_call(HOOK_MALLOC, 24, 0, 0, 0), block);
	rig_expect(MW_RING_ALLOC, block, 24);
}

static void test_first_records(void **state)
{
	struct mw_stub_call *call = rig_call(HOOK_MALLOC, 100, 0, 0, 0);
	struct shared_record *record = rig_record();
	uint32_t stack;

	(void)state;
	assert_int_equal(record->type, MW_RING_THREAD);
	assert_int_equal(record->addr, 4711);
	assert_int_equal(record->size, rig_tp(rig.thread));
	record = rig_record();
	assert_int_equal(record->type, MW_RING_STACK);
	assert_int_equal(record->size, 4);
	assert_int_equal(record->payload[0], CODE_SP + 0x10);
	assert_int_equal(record->payload[2], CODE_SP + 0x12);
	assert_int_equal(record->payload[3], CODE_END + 1);
	assert_int_equal(record->hook, HOOK_MALLOC);
	stack = record->stack;
	assert_int_equal(record->addr, stack);
	rig_expect_none();
	mw_stub_leave(call, BLOCK);
	record = rig_record();
	assert_int_equal(record->type, MW_RING_ALLOC);
	assert_int_equal(record->stack, stack);
	assert_int_equal(record->flags, 0);
	/* The same stack again, and a free of what is known: neither has to be told. */
	mw_stub_leave(rig_call(HOOK_MALLOC, 8, 0, 0, 0), OTHER);
	record = rig_record();
	assert_int_equal(record->type, MW_RING_ALLOC);
	assert_int_equal(record->stack, stack);
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	record = rig_record();
	assert_int_equal(record->type, MW_RING_FREE_BLOCK);
	assert_int_equal(record->stack, MW_RING_STACK_NONE);
	assert_int_equal(record->addr, BLOCK);
	assert_int_equal(record->size, UINT64_MAX);
	/* … but only once. */
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	record = rig_record();
	assert_int_equal(record->type, MW_RING_STACK);
	assert_int_equal(record->hook, HOOK_FREE);
	record = rig_record();
	assert_int_equal(record->type, MW_RING_FREE_BLOCK);
	assert_int_not_equal(record->stack, MW_RING_STACK_NONE);
	rig_expect_none();
}

static void test_malloc_and_calloc(void **state)
{
	(void)state;
	mw_stub_leave(rig_call(HOOK_MALLOC, 5, 0, 0, 0), 0);
	rig_expect_none();
	mw_stub_leave(rig_call(HOOK_CALLOC, 3, 7, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, 21);
	mw_stub_leave(rig_call(HOOK_CALLOC, UINT64_C(1) << 40, UINT64_C(1) << 40, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, UINT64_MAX);
	rig_expect_none();
}

static void test_free_of_nothing(void **state)
{
	struct mw_stub_call *call = rig_stack(1000, 2);

	(void)state;
	assert_int_equal(rig_enter(call, HOOK_FREE, 0, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
}

static void test_reallocs(void **state)
{
	(void)state;
	mw_stub_leave(rig_call(HOOK_REALLOC, 0, 10, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, 10);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 20, 0, 0), OTHER);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, OTHER, 20);
	/* The block is known to be freed after a failure, as before. */
	mw_stub_leave(rig_call(HOOK_REALLOCARRAY, OTHER, 4, 8, 0), 0);
	rig_expect(MW_RING_REALLOC_BEGIN, OTHER, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_FAIL, OTHER, 0);
	mw_stub_leave(rig_call(HOOK_REALLOC, OTHER, 0, 0, 0), 0);
	rig_expect(MW_RING_REALLOC_BEGIN, OTHER, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, 0, 0);
	rig_expect_none();
}

static void test_resize(void **state)
{
	(void)state;
	mw_stub_leave(rig_call(HOOK_RESIZE, 0, 10, 0, 0), 0);
	rig_expect_none();
	allocate(BLOCK);
	mw_stub_leave(rig_call(HOOK_RESIZE, BLOCK, 100, 0, 0), 112);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, BLOCK, 100);
	mw_stub_leave(rig_call(HOOK_RESIZE, BLOCK, 1000, 0, 0), 112);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_FAIL, BLOCK, 0);
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	assert_int_equal(rig_event()->stack, MW_RING_STACK_NONE);
}

static void test_memalign_and_strings(void **state)
{
	static const char text[] __attribute__((aligned(16))) = "copied";
	uint64_t block = 0;
	struct mw_stub_call *call = rig_call(HOOK_MEMALIGN, (uint64_t)(uintptr_t)&block, 64, 50, 0);

	(void)state;
	block = BLOCK;
	mw_stub_leave(call, 0);
	rig_expect(MW_RING_ALLOC, BLOCK, 50);
	mw_stub_leave(rig_call(HOOK_MEMALIGN, (uint64_t)(uintptr_t)&block, 64, 50, 0), 12);
	rig_expect_none();
	mw_stub_leave(rig_call(HOOK_STRDUP, 1, 2, 3, 4), (uint64_t)(uintptr_t)text);
	rig_expect(MW_RING_ALLOC, (uint64_t)(uintptr_t)text, sizeof(text));
}

static void test_mappings(void **state)
{
	struct shared_record *record;

	(void)state;
	mw_stub_leave(rig_call(HOOK_MMAP, 0, 5000, 3, 0x22), BLOCK);
	record = rig_event();
	assert_int_equal(record->type, MW_RING_MAP);
	assert_int_equal(record->size, 8192);
	assert_int_equal(record->flags, MW_RING_VM);
	mw_stub_leave(rig_call(HOOK_MMAP, 0, 5000, 3, 0x22), UINT64_MAX);
	rig_expect_none();
	mw_stub_leave(rig_call(HOOK_MUNMAP, BLOCK, 1, 0, 0), 0);
	rig_expect(MW_RING_UNMAP_BEGIN, BLOCK, 4096);
	rig_expect(MW_RING_UNMAP_END, BLOCK, 4096);
	mw_stub_leave(rig_call(HOOK_MUNMAP, BLOCK, 1, 0, 0), 0xffffffff);
	rig_expect(MW_RING_UNMAP_BEGIN, BLOCK, 4096);
	rig_expect(MW_RING_UNMAP_FAIL, BLOCK, 4096);
	mw_stub_leave(rig_call(HOOK_MREMAP, BLOCK, 4096, 9000, 1), OTHER);
	rig_expect(MW_RING_REMAP_BEGIN, BLOCK, 4096);
	rig_expect(MW_RING_REMAP_END, OTHER, 12288);
	mw_stub_leave(rig_call(HOOK_MREMAP, BLOCK, 4096, 9000, 1), UINT64_MAX);
	rig_expect(MW_RING_REMAP_BEGIN, BLOCK, 4096);
	rig_expect(MW_RING_REMAP_FAIL, BLOCK, 4096);
	mw_stub_leave(rig_call(HOOK_MREMAP, BLOCK, 4096, 4096, 5), OTHER);
	rig_expect(MW_RING_MAP, OTHER, 4096);
	mw_stub_leave(rig_call(HOOK_BRK, BLOCK, 0, 0, 0), 0);
	rig_expect(MW_RING_BRK, BLOCK, 0);
	mw_stub_leave(rig_call(HOOK_BRK, BLOCK, 0, 0, 0), 0xffffffff);
	mw_stub_leave(rig_call(HOOK_SBRK, 0, 0, 0, 0), BLOCK);
	rig_expect_none();
	mw_stub_leave(rig_call(HOOK_SBRK, 4096, 0, 0, 0), BLOCK);
	rig_expect(MW_RING_SBRK, BLOCK, 4096);
	rig_expect_none();
}

static void test_known_is_exact(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	const uint64_t step = UINT64_C(16) * rig.shared.plan.known;

	(void)state;
	stub_known_add(control, BLOCK);
	/* The same place, other addresses. */
	for (uint64_t i = 1; i < 4096; i++)
		assert_false(stub_known_take(control, BLOCK + i * step));
	for (uint64_t i = 1; i < 16; i++)
		assert_false(stub_known_take(control, BLOCK + i));
	assert_false(stub_known_take(control, BLOCK | UINT64_C(1) << 55));
	assert_true(stub_known_take(control, BLOCK));
	assert_false(stub_known_take(control, BLOCK));
	/* Too far up to be told from others, or not aligned: never known. */
	stub_known_add(control, UINT64_C(0x00fffffffffffff0));
	assert_false(stub_known_take(control, UINT64_C(0x00fffffffffffff0)));
	stub_known_add(control, BLOCK + 8);
	assert_false(stub_known_take(control, BLOCK + 8));
	assert_false(stub_known_take(control, 0));
	assert_false(stub_known_take(control, step));
}

static void test_chunks(void **state)
{
	static uint64_t heap[64] __attribute__((aligned(4096)));
	const struct mw_stub_range ranges[] = {{1, 2}, {(uint64_t)(uintptr_t)heap, (uint64_t)(uintptr_t)(heap + 16)}};
	uint64_t block = (uint64_t)(uintptr_t)&heap[2];

	(void)state;
	heap[1] = 48 | 1;
	heap[7] = 32 | 1;
	assert_int_equal(stub_chunk_usable(block), UINT64_MAX);
	mw_stub_context.readable = (uint64_t)(uintptr_t)ranges;
	mw_stub_context.readable_count = 2;
	assert_int_equal(stub_chunk_usable(block), 40);
	heap[7] = 32;
	assert_int_equal(stub_chunk_usable(block), UINT64_MAX);
	/* What follows can't be read. */
	heap[1] = 256 | 1;
	heap[1 + 32] = 32 | 1;
	assert_int_equal(stub_chunk_usable(block), UINT64_MAX);
	assert_int_equal(stub_chunk_usable((uint64_t)(uintptr_t)&heap[0]), UINT64_MAX);
	assert_int_equal(stub_chunk_usable(block + 8), UINT64_MAX);
	/* With a mapping of its own; from glibc 2.43 on that ends 16 bytes behind the chunk. */
	heap[0] = 0;
	heap[1] = 0x2000 | 2;
	assert_int_equal(stub_chunk_usable(block), 0x2000 - 16);
	heap[1] = 0x1ff0 | 2;
	assert_int_equal(stub_chunk_usable(block), 0x1ff0 - 8);
	heap[1] = 0x1fe0 | 2;
	assert_int_equal(stub_chunk_usable(block), UINT64_MAX);
	/* A free of a glibc block from before the window tells its size. */
	heap[1] = 48 | 1;
	heap[7] = 32 | 1;
	mw_stub_context.hooks[HOOK_FREE].flags |= MW_STUB_GLIBC;
	mw_stub_leave(rig_call(HOOK_FREE, block, 0, 0, 0), 0);
	rig_expect(MW_RING_FREE_BLOCK, block, 40);
}

static void test_glibc_frees_itself(void **state)
{
	(void)state;
	mw_stub_context.hooks[HOOK_FREE].flags |= MW_STUB_GLIBC;
	mw_stub_context.internal_count = 1;
	mw_stub_context.internal[0] = (struct mw_stub_range){CODE_SP, CODE_SP + 0x100};
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	rig_expect_none();
	/* A block that is known is freed whoever calls. */
	allocate(BLOCK);
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
	rig_expect_none();
}

static void test_allocators_mappings_are_internal(void **state)
{
	(void)state;
	mw_stub_context.allocator_count = 1;
	mw_stub_context.allocators[0] = (struct mw_stub_range){CODE_SP, CODE_SP + 0x100};
	mw_stub_leave(rig_call(HOOK_MMAP, 0, 4096, 0, 0), BLOCK);
	assert_int_equal(rig_event()->flags, MW_RING_INTERNAL);
}

static void test_off(void **state)
{
	struct mw_stub_call *call = rig_call(HOOK_MALLOC, 1, 0, 0, 0);

	(void)state;
	rig.guard = 0;
	rig.shared.control->recording = 0;
	mw_stub_leave(call, BLOCK);
	rig_expect_none();
}

static void test_child(void **state)
{
	struct mw_stub_call *call = rig_stack(1000, 2);

	(void)state;
	rig.guard = 0;
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig.guard, 2);
	assert_int_equal(rig.shared.control->child_count, 1);
	assert_int_equal(rig.shared.control->children[0], 4711);
	assert_int_equal(rig_slot()->reserved, 0);
	rig.shared.control->child_count = MW_RING_CHILDREN;
	rig.guard = 0;
	rig_enter(call, HOOK_MALLOC, 1, 0, 0, 0);
	assert_int_equal(rig.shared.control->child_count, MW_RING_CHILDREN + 1);
	assert_int_equal(rig_slot()->reserved, 0);
}

static void serve_loader(void)
{
	if (rig.pauses == 5)
		rig.shared.control->loader_served = rig.shared.control->loader_changes;
}

static void test_loader(void **state)
{
	struct mw_stub_call *call = rig_stack(1000, 2);

	(void)state;
	rig.on_pause = serve_loader;
	assert_int_equal(rig_enter(call, HOOK_LOADER, 0, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig.shared.control->loader_changes, 1);
	assert_int_equal(rig.pauses, 5);
	/* Nobody answers: it goes on all the same. */
	rig.on_pause = NULL;
	assert_int_equal(rig_enter(call, HOOK_LOADER, 0, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig.shared.control->loader_changes, 2);
}

static void serve_exit(void)
{
	struct mw_ring_control *control = rig.shared.control;

	if (rig.pauses == 3)
		control->exits_served = mw_ring_exit_count(control->exits);
}

static void end(void)
{
	assert_int_equal(rig_enter(rig_stack(1000, 1), HOOK_EXIT, 0, 0, 0, 0), MW_STUB_PASS);
}

/* A process that ends waits for memwatch, and goes on alone where that does not answer. */
static void test_exit(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	uint64_t begin;

	(void)state;
	rig.on_pause = serve_exit;
	end();
	assert_int_equal(rig.pauses, 3);
	assert_int_equal(mw_ring_exit_count(control->exits), 1);
	assert_int_equal(mw_ring_exit_tid(control->exits), rig.thread->tid_word[1]);
	rig.on_pause = NULL;
	begin = rig.ticks;
	end();
	assert_int_equal(mw_ring_exit_count(control->exits), 2);
	assert_true(rig.ticks - begin > control->exit_limit && rig.ticks - begin < 2 * control->exit_limit);
	assert_int_equal(control->given_up, 0);
	/* Nothing is recorded, and no slot taken, for it. */
	assert_int_equal(control->rings_taken, 0);
	control->exits = (uint64_t)UINT32_MAX << 32;
	control->exits_served = UINT32_MAX;
	rig.pauses = 0;
	rig.on_pause = serve_exit;
	end();
	assert_int_equal(rig.pauses, 3);
	assert_int_equal(mw_ring_exit_count(control->exits), 0);
}

static void test_exit_without_memwatch(void **state)
{
	struct mw_ring_control *control = rig.shared.control;

	(void)state;
	control->heartbeat_limit = 1000;
	control->heartbeat = rig.ticks;
	end();
	assert_int_equal(control->given_up, 1);
	assert_true(rig.ticks < control->exit_limit);
	rig.pauses = 0;
	end();
	assert_int_equal(rig.pauses, 0);
}

/* … of a forked child: nobody is told, and nothing waited for. */
static void test_exit_of_a_child(void **state)
{
	(void)state;
	rig.guard = 0;
	end();
	assert_int_equal(rig.pauses, 0);
	assert_int_equal(rig.guard, 0);
	assert_int_equal(rig.shared.control->child_count, 0);
	assert_int_equal(rig.shared.control->exits, 0);
}

static void pass(uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct mw_stub_call *call = rig_stack(1000, 2);

	assert_int_equal(rig_enter(call, hook, a, b, c, d), MW_STUB_PASS);
	rig_expect_none();
}

/* Only what frees is recorded, without stacks. */
static void test_settling(void **state)
{
	struct mw_stub_call *under_way, *call;

	(void)state;
	allocate(BLOCK);
	under_way = rig_call(HOOK_MALLOC, 48, 0, 0, 0);
	rig.shared.control->settling = 1;
	pass(HOOK_MALLOC, 24, 0, 0, 0);
	pass(HOOK_CALLOC, 24, 2, 0, 0);
	pass(HOOK_MEMALIGN, 0, 16, 24, 0);
	pass(HOOK_REALLOC, 0, 24, 0, 0);
	pass(HOOK_REALLOCARRAY, 0, 24, 2, 0);
	pass(HOOK_RESIZE, BLOCK, 24, 0, 0);
	pass(HOOK_STRDUP, (uint64_t)(uintptr_t) "text", 0, 0, 0);
	pass(HOOK_MMAP, 0, 4096, 3, 0x22);
	/* What was under way ends as ever. */
	mw_stub_leave(under_way, OTHER);
	rig_expect(MW_RING_ALLOC, OTHER, 48);
	/* Blocks of the window, and others: memwatch knows which. */
	call = rig_stack(1000, 2);
	assert_int_equal(rig_enter(call, HOOK_FREE, BLOCK, 0, 0, 0), MW_STUB_PASS);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
	assert_int_equal(rig_enter(call, HOOK_FREE, BLOCK + 0x100, 0, 0, 0), MW_STUB_PASS);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK + 0x100, UINT64_MAX);
	pass(HOOK_FREE, 0, 0, 0, 0);
	mw_stub_leave(rig_call(HOOK_REALLOC, OTHER, 1000, 0, 0), BLOCK);
	assert_int_equal(rig_record()->type, MW_RING_REALLOC_BEGIN);
	rig_expect(MW_RING_REALLOC_END, BLOCK, 1000);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 1000, 0, 0), 0);
	assert_int_equal(rig_record()->type, MW_RING_REALLOC_BEGIN);
	assert_int_equal(rig_record()->type, MW_RING_REALLOC_FAIL);
	mw_stub_leave(rig_call(HOOK_MUNMAP, 0x10000, 4096, 0, 0), 0);
	rig_expect(MW_RING_UNMAP_BEGIN, 0x10000, 4096);
	rig_expect(MW_RING_UNMAP_END, 0x10000, 4096);
	/* What is mapped over something. */
	mw_stub_leave(rig_call(HOOK_MMAP, 0x20000, 4096, 3, 0x32), 0x20000);
	rig_expect(MW_RING_MAP, 0x20000, 4096);
	rig_expect_none();
}

UNIT_GROUP(events)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_first_records),
		T(test_malloc_and_calloc),
		T(test_free_of_nothing),
		T(test_reallocs),
		T(test_resize),
		T(test_memalign_and_strings),
		T(test_mappings),
		T(test_known_is_exact),
		T(test_chunks),
		T(test_glibc_frees_itself),
		T(test_allocators_mappings_are_internal),
		T(test_settling),
		T(test_off),
		T(test_child),
		T(test_loader),
		T(test_exit),
		T(test_exit_without_memwatch),
		T(test_exit_of_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
