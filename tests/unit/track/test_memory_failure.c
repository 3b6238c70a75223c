// SPDX-License-Identifier: MIT
/* test_memory_failure.c: every allocation fails once; the tracker stays consistent and serves on. */
#include "counting.h"
#include "rig.h"

#define PAGE UINT64_C(4096)

struct script {
	struct rig rig;
	unsigned int errors;
	bool may_fail;
};

static void check(struct script *script, struct mw_error *err)
{
	if (!err)
		return;
	assert_true(script->may_fail);
	assert_int_equal(mw_error_kind(err), MW_ERROR_MEMORY);
	mw_error_destroy(err);
	script->errors++;
}

static void send(struct script *script, enum mw_event_type type, mw_addr addr, uint64_t size, uint32_t stack)
{
	struct mw_event event = {addr * 2000 % 100000000, addr, size, stack, 0, type, MW_KIND_HEAP, 0, false};

	if (type >= MW_EVENT_MAP)
		event.kind = MW_KIND_VM;
	check(script, script->rig.sink.event(script->rig.sink.context, &event));
}

/* Numbers that the sink does not give for want of memory stay those of the first stack and thread. */
static void intern(struct script *script, enum mw_kind kind, uint32_t seed, uint32_t *id)
{
	struct mw_raw_frame frames[3] = {{seed, 0}, {seed / 4, 1}, {1, 2}};
	struct mw_raw_stack stack = {frames, 3, MW_STACK_COMPLETE, 0, kind};

	check(script, script->rig.sink.stack(script->rig.sink.context, &stack, id));
}

static void heap_part(struct script *script)
{
	for (uint32_t i = 1; i <= 6000; i++) {
		uint32_t stack = script->rig.heap;

		if (i % 40 == 0)
			intern(script, MW_KIND_HEAP, i, &stack);
		send(script, MW_EVENT_ALLOC, i * 16, i, stack);
		if (i % 7 == 0)
			send(script, MW_EVENT_FREE, i * 8 / 16 * 16, MW_SIZE_UNKNOWN, MW_STACK_NONE);
		if (i % 11 == 0) {
			send(script, MW_EVENT_REALLOC_BEGIN, i * 16, 0, MW_STACK_NONE);
			send(script, i % 2 ? MW_EVENT_REALLOC_END : MW_EVENT_REALLOC_FAIL, i * 16 + 4, 5, stack);
		}
	}
}

static void vm_part(struct script *script)
{
	check(script, mw_track_before(script->rig.track, 5 * PAGE, 500 * PAGE));
	for (uint32_t i = 0; i < 1200; i++) {
		send(script, MW_EVENT_MAP, i * 4 * PAGE, 3 * PAGE, script->rig.vm);
		if (i % 3 == 0) {
			send(script, MW_EVENT_UNMAP_BEGIN, (i * 4 + 1) * PAGE, PAGE, MW_STACK_NONE);
			send(script, i % 2 ? MW_EVENT_UNMAP_END : MW_EVENT_UNMAP_FAIL, (i * 4 + 1) * PAGE, PAGE,
			     MW_STACK_NONE);
		}
		if (i % 50 == 0) {
			send(script, MW_EVENT_REMAP_BEGIN, i * 2 * PAGE, 9 * PAGE, MW_STACK_NONE);
			send(script, MW_EVENT_MAP, (i * 2 + 2) * PAGE, PAGE, script->rig.vm);
			send(script, i % 20 ? MW_EVENT_REMAP_END : MW_EVENT_REMAP_FAIL, i * 2 * PAGE, 3 * PAGE,
			     i % 20 ? script->rig.vm : MW_STACK_NONE);
		}
	}
}

static void threads_part(struct script *script)
{
	for (int i = 0; i < 600; i++) {
		uint32_t number;

		check(script, script->rig.sink.thread(script->rig.sink.context, 100 + i % 400, "name", true, &number));
	}
}

/* Run it all with memory for `successes` allocations, then once more with plenty. False where it sufficed. */
static bool run_with(uint64_t successes)
{
	struct script script = {.may_fail = true};
	uint64_t base = counting_now();
	bool has_failed;

	assert_null(mw_track_create(&script.rig.track));
	script.rig.sink = mw_track_sink(script.rig.track);
	script.rig.heap = rig_stack(&script.rig, MW_KIND_HEAP, 1);
	script.rig.vm = rig_stack(&script.rig, MW_KIND_VM, 1);
	assert_null(script.rig.sink.thread(script.rig.sink.context, 1, "main", true, &script.rig.thread[0]));
	counting_fail_after(successes);
	threads_part(&script);
	vm_part(&script);
	heap_part(&script);
	check(&script, mw_track_interval(script.rig.track, 1000));
	heap_part(&script);
	has_failed = counting_has_failed();
	counting_fail_after(UINT64_MAX);
	/* Only a smaller table that was not to be had is no error. */
	if (script.errors > 0)
		assert_true(has_failed);
	rig_check(&script.rig);
	script.may_fail = false;
	vm_part(&script);
	heap_part(&script);
	rig_check(&script.rig);
	mw_track_destroy(script.rig.track);
	assert_int_equal(counting_now(), base);
	return has_failed;
}

static void test_each_allocation_fails(void **state)
{
	uint64_t successes = 0, failures = 0;

	(void)state;
	while (run_with(successes)) {
		failures++;
		successes += 1 + successes / 40;
	}
	assert_true(failures > 50);
}

static void test_create_fails(void **state)
{
	struct mw_track *track = (struct mw_track *)state;
	struct mw_error *err;

	counting_fail_after(0);
	err = mw_track_create(&track);
	counting_fail_after(UINT64_MAX);
	assert_int_equal(mw_error_kind(err), MW_ERROR_MEMORY);
	mw_error_destroy(err);
	assert_ptr_equal(track, state); /* untouched */
	mw_track_destroy(NULL);
}

int test_memory_failure(void);

int test_memory_failure(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation_fails),
		cmocka_unit_test(test_create_fails),
	};

	return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
