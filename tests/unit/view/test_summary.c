// SPDX-License-Identifier: MIT
/* test_summary.c: a window summed up. */
#include "unit.h"
#include "world.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Code to stand on stacks: never called, so long that an address a few bytes in is inside. */
int place_leak(volatile int *numbers);
int place_main(volatile int *numbers);

__attribute__((noinline, used)) int place_leak(volatile int *numbers)
{
	return numbers[0] * numbers[1] + numbers[2] * numbers[3];
}

__attribute__((noinline, used)) int place_main(volatile int *numbers)
{
	return numbers[4] * numbers[5] - numbers[6] * numbers[7];
}

/* An address in libc's own code. By name: taken with &, a sanitizer's wrapper may come instead. */
static mw_addr in_libc(void)
{
	void *address = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");

	assert_non_null(address);
	return (mw_addr)(uintptr_t)address + 1;
}

#define LEAK ((mw_addr)(uintptr_t)&place_leak + 4)
#define MAIN ((mw_addr)(uintptr_t)&place_main + 4)

/* Two leaks by one thread, one by another, one freed, one free of an older block. */
static void feed_leak(struct world *world)
{
	const mw_addr leak[] = {in_libc(), LEAK, MAIN}, older[] = {MAIN};
	uint32_t stack = world_stack(world, MW_KIND_HEAP, HOOK_MALLOC, leak, 3, MW_STACK_COMPLETE);
	uint32_t one = world_thread(world, 101, "one"), two = world_thread(world, 102, "two");
	uint32_t other = world_stack(world, MW_KIND_HEAP, HOOK_FREE, older, 1, MW_STACK_BROKEN);

	world_event(world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000, 100, stack, one, 1);
	world_event(world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x2000, 300, stack, two, 2);
	world_event(world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x3000, 50, stack, one, 3);
	world_event(world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x4000, 70, stack, one, 3.5);
	world_event(world, MW_EVENT_FREE, MW_KIND_HEAP, 0x4000, MW_SIZE_UNKNOWN, MW_STACK_NONE, two, 4);
	world_event(world, MW_EVENT_FREE, MW_KIND_HEAP, 0x9000, MW_SIZE_UNKNOWN, other, two, 5);
}

static void test_leak(void **state)
{
	const struct mw_report_stack *stack;
	struct mw_report *report;
	struct world world;

	(void)state;
	world_init(&world);
	feed_leak(&world);
	report = world_report(&world);
	assert_int_equal(report->stack_count, 2);
	stack = &report->stacks[0];
	assert_string_equal(stack->api, "malloc");
	assert_int_equal(strlen(stack->id), 16);
	assert_int_equal(strspn(stack->id, "0123456789abcdef"), 16);
	assert_int_equal(stack->impacting.bytes, 450);
	assert_int_equal(stack->size.count, 4);
	assert_true(stack->has_lifetime);
	assert_int_equal(stack->lifetime_max_ns, 500000000);
	assert_float_equal(stack->oldest, 1, 1e-9);
	assert_float_equal(stack->newest, 3, 1e-9);
	assert_int_equal(stack->thread_count, 2);
	assert_int_equal(stack->threads[0].tid, 102);
	assert_string_equal(stack->threads[1].name, "one");
	assert_int_equal(stack->threads[1].impacting.count, 2);
	stack = find_stack(report, "free");
	assert_int_equal(stack->cut, MW_STACK_BROKEN);
	assert_int_equal(stack->aofi.count, 1);
	assert_int_equal(stack->aofi_unknown, 1);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* The frames' names, and that the runtime is passed over when somebody is to be charged. */
static void test_frames(void **state)
{
	char exe[PATH_MAX] = "";
	const struct mw_report_stack *stack;
	struct mw_report *report;
	struct world world;

	(void)state;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	world_init(&world);
	feed_leak(&world);
	report = world_report(&world);
	stack = &report->stacks[0];
	assert_int_equal(stack->frame_count, 3);
	assert_string_equal(stack->frames[1].function, "place_leak");
	assert_string_equal(stack->frames[1].module, exe);
	assert_int_equal(stack->frames[1].offset, 4);
	assert_int_equal(stack->frames[1].address, LEAK);
	assert_string_equal(stack->frames[2].function, "place_main");
	assert_string_not_equal(stack->frames[0].module, exe);
	assert_string_equal(stack->suspect, exe);
	assert_int_equal(report->module_count, 1);
	assert_string_equal(report->modules[0].module, exe);
	assert_int_equal(report->modules[0].transient.bytes, 70);
	mw_report_destroy(report);

	/* Without symbols: the offset in the module. */
	world.input.symbols = NULL;
	report = world_report(&world);
	stack = &report->stacks[0];
	assert_null(stack->frames[1].function);
	assert_int_equal(stack->frames[1].offset, LEAK - mw_modules_find(world.modules, LEAK)->bias);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* All that is copied from elsewhere. */
static void test_surroundings(void **state)
{
	struct mw_report_sample samples[] = {{0, 1, 2, 3, 4, 5, 10, 11, 21},
					     {1, 6, MW_SIZE_UNKNOWN, 7, 8, 9, 12, 13, 25}};
	struct mw_report *report;
	struct world world;

	(void)state;
	world_init(&world);
	world.input.samples = samples;
	world.input.sample_count = 2;
	world.input.track_vm = false;
	world.stats.lost_events = 7;
	world.window.ended = MW_END_EXIT;
	world.window.has_exit_status = true;
	world.window.exit_status = 11;
	report = world_report(&world);
	assert_int_equal(report->stack_count, 0);
	assert_int_equal(report->target.command_count, 2);
	assert_string_equal(report->target.command[1], "--view");
	assert_int_equal(report->target.exit_status, 139);
	assert_int_equal(report->target.exit_signal, 11);
	assert_float_equal(report->window.to, 10, 1e-9);
	assert_int_equal(report->engine.hook_count, HOOK_COUNT);
	assert_string_equal(report->engine.hooks[HOOK_MMAP].refused, "too short");
	assert_string_equal(report->engine.hooks[HOOK_MMAP].role, "mmap");
	assert_null(report->engine.hooks[HOOK_MALLOC].refused);
	/* What was not asked for is not missed. */
	assert_false(report->engine.hooks[HOOK_MMAP].missed);
	assert_int_equal(report->lost.hooks, 0);
	assert_int_equal(report->lost.events, 7);
	assert_int_equal(report->memory_count, 2);
	assert_int_equal(report->memory[1].rss, 6);
	assert_true(report->tracked[MW_KIND_HEAP]);
	assert_false(report->tracked[MW_KIND_VM]);
	assert_false(report->tracked[MW_KIND_VM_INTERNAL]);
	mw_report_destroy(report);
	world.window.exit_status = 3 << 8;
	report = world_report(&world);
	assert_int_equal(report->target.exit_status, 3);
	assert_int_equal(report->target.exit_signal, 0);
	mw_report_destroy(report);
	world.stats.lost_events = 0;
	report = world_report(&world);
	assert_true(mw_report_is_complete(report));
	mw_report_destroy(report);
	world.input.track_vm = true;
	report = world_report(&world);
	assert_true(report->engine.hooks[HOOK_MMAP].missed);
	assert_false(report->engine.hooks[HOOK_MALLOC].missed);
	assert_int_equal(report->lost.hooks, 1);
	assert_false(mw_report_is_complete(report));
	mw_report_destroy(report);
	mw_report_destroy(NULL);
	world_deinit(&world);
}

/* A block where one lives already: a free was missed. */
static void test_missed(void **state)
{
	const mw_addr chain[] = {LEAK};
	struct mw_report *report;
	struct world world;
	uint32_t stack, thread;

	(void)state;
	world_init(&world);
	stack = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, chain, 1, MW_STACK_COMPLETE);
	thread = world_thread(&world, 1, "t");
	world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000, 8, stack, thread, 1);
	world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000, 8, stack, thread, 2);
	world.stats.lost_events = 2;
	report = world_report(&world);
	assert_int_equal(report->lost.events, 3);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* A mapping in two pieces is one block; the allocator's own is charged to nobody. */
static void test_mappings(void **state)
{
	const mw_addr chain[] = {LEAK, MAIN};
	const struct mw_report_stack *vm;
	struct mw_report *report;
	struct world world;
	uint32_t own, internal, thread;

	(void)state;
	world_init(&world);
	own = world_stack(&world, MW_KIND_VM, HOOK_MMAP, chain, 2, MW_STACK_TRUNCATED);
	internal = world_stack(&world, MW_KIND_VM_INTERNAL, HOOK_MMAP, chain, 2, MW_STACK_COMPLETE);
	thread = world_thread(&world, 1, "t");
	world_event(&world, MW_EVENT_MAP, MW_KIND_VM, 0x10000, 0x3000, own, thread, 1);
	world_event(&world, MW_EVENT_UNMAP_BEGIN, MW_KIND_VM, 0x11000, 0x1000, own, thread, 2);
	world_event(&world, MW_EVENT_UNMAP_END, MW_KIND_VM, 0x11000, 0x1000, MW_STACK_NONE, thread, 2);
	world_event(&world, MW_EVENT_MAP, MW_KIND_VM_INTERNAL, 0x90000, 0x21000, internal, thread, 3);
	report = world_report(&world);
	assert_int_equal(report->stack_count, 2);
	assert_string_not_equal(report->stacks[0].id, report->stacks[1].id);
	vm = &report->stacks[1];
	assert_int_equal(vm->kind, MW_KIND_VM);
	assert_int_equal(vm->cut, MW_STACK_TRUNCATED);
	assert_int_equal(vm->threads[0].impacting.count, 1);
	assert_int_equal(vm->threads[0].impacting.bytes, 0x2000);
	assert_int_equal(report->module_count, 1);
	assert_int_equal(report->modules[0].impacting.bytes, 0x2000);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* Map the file that holds `addr` once more and give the address in it that is the same place. */
static mw_addr map_again(mw_addr addr)
{
	struct mw_maps maps = {0};
	const struct mw_mapping *mapping;
	mw_addr again;
	void *memory;
	int fd;

	assert_null(mw_maps_read(getpid(), &maps));
	mapping = mw_maps_find(&maps, addr);
	assert_non_null(mapping);
	fd = open(mapping->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	memory = mmap(NULL, mapping->end - mapping->start, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		      (off_t)mapping->offset);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	again = (mw_addr)(uintptr_t)memory + (addr - mapping->start);
	mw_maps_deinit(&maps);
	return again;
}

/* The same place in a file that is mapped twice is the same stack. */
static void test_merge(void **state)
{
	const struct mw_report_stack *stack;
	struct mw_report *report;
	struct world world;
	mw_addr chain[] = {LEAK, 0}, again = map_again(LEAK);
	uint32_t stacks[2], thread;

	(void)state;
	world_init(&world);
	assert_int_not_equal(mw_modules_find(world.modules, again)->number,
			     mw_modules_find(world.modules, LEAK)->number);
	stacks[0] = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, chain, 1, MW_STACK_COMPLETE);
	chain[0] = again;
	stacks[1] = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, chain, 1, MW_STACK_BROKEN);
	thread = world_thread(&world, 1, "t");
	for (unsigned i = 0; i < 4; i++)
		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000 * (i + 1), 10 + i, stacks[i % 2], thread, i);
	world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, 0x1000, 10, MW_STACK_NONE, thread, 4);
	world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, 0x2000, 11, MW_STACK_NONE, thread, 7);
	report = world_report(&world);
	assert_int_equal(report->stack_count, 1);
	stack = &report->stacks[0];
	assert_int_equal(stack->size.count, 4);
	assert_int_equal(stack->impacting.bytes, 25);
	assert_int_equal(stack->cut, MW_STACK_BROKEN);
	assert_int_equal(stack->lifetime_min_ns, 4000000000);
	assert_int_equal(stack->lifetime_max_ns, 6000000000);
	assert_int_equal(stack->lifetime_median_ns, 4000000000);
	assert_int_equal(stack->lifetime_p99_ns, 6000000000);
	assert_int_equal(stack->thread_count, 1);
	mw_report_destroy(report);
	world_deinit(&world);
}

static void id_of(const mw_addr *chain, uint32_t count, uint32_t hook, char id[17])
{
	struct mw_report *report;
	struct world world;
	uint32_t stack, thread;

	world_init(&world);
	stack = world_stack(&world, MW_KIND_HEAP, hook, chain, count, MW_STACK_COMPLETE);
	thread = world_thread(&world, 1, "t");
	world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000, 1, stack, thread, 0);
	report = world_report(&world);
	memcpy(id, report->stacks[0].id, 17);
	mw_report_destroy(report);
	world_deinit(&world);
}

static void test_ids(void **state)
{
	const mw_addr both[] = {LEAK, MAIN}, swapped[] = {MAIN, LEAK}, none[] = {0x10};
	char first[17], again[17], other[17];

	(void)state;
	id_of(both, 2, HOOK_MALLOC, first);
	id_of(both, 2, HOOK_MALLOC, again);
	assert_string_equal(first, again);
	id_of(swapped, 2, HOOK_MALLOC, other);
	assert_string_not_equal(first, other);
	id_of(both, 1, HOOK_MALLOC, other);
	assert_string_not_equal(first, other);
	id_of(both, 2, HOOK_CALLOC, other);
	assert_string_not_equal(first, other);
	/* Of code in no file, all is known beforehand: this id may never change, or recordings can't be compared. */
	id_of(none, 1, HOOK_MALLOC, other);
	assert_string_equal(other, "629c5505667615b7");
}

static void count_progress(void *context, size_t done, size_t total)
{
	size_t *calls = context;

	assert_true(done <= total);
	++*calls;
}

/* Many stacks and blocks: sums hold, order holds, and it is not quadratic. */
static void test_many(void **state)
{
	const uint32_t stack_count = 20000, block_count = 100000;
	struct mw_report *report;
	struct world world;
	size_t calls = 0;
	uint32_t threads[7];
	clock_t before;

	(void)state;
	world_init(&world);
	world.input.progress = count_progress;
	world.input.progress_context = &calls;
	for (uint32_t i = 0; i < 7; i++)
		threads[i] = world_thread(&world, (pid_t)(i + 1), "worker");
	for (uint32_t i = 0; i < stack_count; i++) {
		const mw_addr chain[] = {LEAK + i % 100, LEAK + i / 100 % 100, LEAK + i / 10000, MAIN};

		assert_int_equal(world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, chain, 4, MW_STACK_COMPLETE), i);
	}
	for (uint32_t i = 0; i < block_count; i++)
		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000 + 16 * (mw_addr)i, i % 97,
			    i * 31 % stack_count, threads[i % 7], i * 1e-5);
	before = clock();
	report = world_report(&world);
	assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 10);
	assert_int_equal(report->stack_count, stack_count);
	assert_true(calls > 10);
	for (size_t i = 1; i < report->stack_count; i++)
		assert_true(report->stacks[i - 1].impacting.bytes >= report->stacks[i].impacting.bytes);
	mw_report_destroy(report);
	world_deinit(&world);
}

UNIT_GROUP(summary)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leak),   cmocka_unit_test(test_frames),   cmocka_unit_test(test_surroundings),
		cmocka_unit_test(test_missed), cmocka_unit_test(test_mappings), cmocka_unit_test(test_merge),
		cmocka_unit_test(test_ids),    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
