// SPDX-License-Identifier: MIT
/* test_rescue.c: breakpoints that nobody serves: the rescue passes them, and takes them out. */
#include "rescue_rig.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESULT  4321
#define ROUNDS  300
#define THREADS 4

/* Goes to `trampoline` as a function returns whose return address was exchanged; the true one and its stack pointer are told
 * to `note` before. Gives RESULT where it comes to it. */
uint64_t return_by(const void *trampoline, void (*note)(uint64_t ret, uint64_t sp));
__asm__(".text\n"
	"return_by:\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %rax\n"
	"	lea 1f(%rip), %rdi\n"
	"	mov %rsp, %rsi\n"
	"	call *%rax\n"
	"	push %rbx\n"
	"	mov $4321, %eax\n"
	"	ret\n"
	"	ud2\n"
	"1:	pop %rbx\n"
	"	ret\n");

static void assert_calls(size_t number)
{
	static struct regs expected;

	rig_random_regs(&regs_in);
	/* As the processor does it: the same bytes, elsewhere. */
	regs_call(rig.code + CODE_SIZE / 2 + number * STEP);
	expected = regs_out;
	regs_call(rig.code + number * STEP);
	expected.gpr[7] = regs_out.gpr[7];
	if (strcmp(rig_functions[number].name, "load") == 0)
		assert_int_equal(regs_out.gpr[2], expected.gpr[2]);
	for (size_t i = 0; i < 16; i++)
		if (regs_out.gpr[i] != expected.gpr[i])
			fail_msg("%s: register %zu is %llx, not %llx", rig_functions[number].name, i,
				 (unsigned long long)regs_out.gpr[i], (unsigned long long)expected.gpr[i]);
	assert_int_equal(regs_out.flags, expected.flags);
	assert_memory_equal(regs_out.xmm, expected.xmm, sizeof(expected.xmm));
	assert_int_equal(regs_out.gpr[0], regs_in.gpr[4] + regs_in.gpr[5]);
}

static void copy_all(void)
{
	for (size_t i = 0; i < rig_function_count; i++)
		rig_write_code(CODE_SIZE / 2 + i * STEP, rig_functions[i].bytes, sizeof(rig_functions[i].bytes));
}

static void assert_standing(bool expected)
{
	for (uint32_t i = 0; i < rig.rescue->count; i++) {
		const struct mw_insn_plan *plan = &rig.rescue->breakpoints[i].plan;
		const uint8_t *at = (const uint8_t *)(uintptr_t)plan->pc;

		assert_int_equal(*at, expected ? 0xcc : plan->bytes[0]);
	}
}

static void test_heals_all_at_the_first(void **state)
{
	(void)state;
	rig.rescue->may_call = 1;
	copy_all();
	rig_plant_all();
	assert_standing(true);
	for (size_t i = 0; i < rig_function_count; i++)
		assert_calls(i);
	assert_standing(false);
	assert_int_equal(rig.rescue->healed, 1);
	assert_int_equal(rig.rescue->hits, 1);
}

/* Each of them is the one that is interrupted first. */
static void test_heals_at_any(void **state)
{
	for (size_t i = 0; i < rig_function_count; i++) {
		assert_int_equal(rig_teardown(state) | rig_setup(state), 0);
		rig.rescue->may_call = 1;
		copy_all();
		rig_plant_all();
		assert_calls(i);
		assert_standing(false);
	}
}

static void test_passes_without_system_calls(void **state)
{
	(void)state;
	copy_all();
	rig_plant_all();
	for (size_t i = 0; i < rig_function_count; i++)
		for (size_t round = 0; round < ROUNDS; round++)
			assert_calls(i);
	assert_standing(true);
	assert_int_equal(rig.rescue->healed, 0);
	assert_int_equal(rig.rescue->hits, ROUNDS * rig_function_count);
}

static _Atomic bool begun;

static void *keep_calling(void *wrong)
{
	while (!atomic_load(&begun))
		;
	for (uint64_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < rig_function_count; i++)
			if (rig_sum_at(i * STEP)(round, i) != round + i)
				atomic_fetch_add((_Atomic unsigned *)wrong, 1);
	return NULL;
}

static void call_from_threads(void)
{
	_Atomic unsigned wrong = 0;
	pthread_t threads[THREADS];

	atomic_store(&begun, false);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, keep_calling, &wrong), 0);
	atomic_store(&begun, true);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
}

static void test_threads_pass(void **state)
{
	(void)state;
	rig_plant_all();
	call_from_threads();
	assert_standing(true);
	assert_int_equal(rig.rescue->hits, ROUNDS * rig_function_count * THREADS);
}

static void test_threads_heal(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rig_teardown(state) | rig_setup(state), 0);
		rig.rescue->may_call = 1;
		rig_plant_all();
		call_from_threads();
		assert_standing(false);
		assert_int_equal(rig.rescue->healed, 1);
	}
}

static void heal_without_files(void)
{
	const struct rlimit none = {0, 0};

	/* As the kernel does it. */
	rig.rescue->pid = 0;
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		_exit(1);
	for (size_t i = 0; i < rig_function_count; i++)
		if (rig_sum_at(i * STEP)(i, 5) != i + 5)
			_exit(2);
	_exit(rig.rescue->healed == 1 && rig.rescue->hits == 1 && *rig.code == rig_functions[0].bytes[0] ? 0 : 3);
}

static void test_heals_without_a_file(void **state)
{
	(void)state;
	rig.rescue->may_call = 1;
	rig_plant_all();
	rig_assert_child(heal_without_files, 0);
	assert_standing(true);
}

/* Many places of the table are taken, from the one on where it should stand. */
static void note_return(uint64_t ret, uint64_t sp)
{
	uint32_t at = mw_rescue_place(sp, MW_RESCUE_RETURNS);

	for (unsigned i = 0; i < 10; i++, at = (at + 1) & (MW_RESCUE_RETURNS - 1)) {
		rig.rescue->returns[at].sp = sp + 16 * (i + 1);
		rig.rescue->returns[at].ret = 1;
	}
	rig.rescue->returns[at].sp = sp;
	rig.rescue->returns[at].ret = ret;
}

static void test_exchanged_return(void **state)
{
	(void)state;
	for (uint32_t may_call = 0; may_call < 2; may_call++) {
		rig.rescue->may_call = may_call;
		if (may_call == 0)
			rig_plant(2 * STEP, false, MW_RESCUE_TRAMPOLINE);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(return_by(rig_function_at(2 * STEP), note_return), RESULT);
		assert_int_equal(rig.code[2 * STEP], 0xcc);
	}
	assert_int_equal(rig.rescue->hits, 20);
}

UNIT_GROUP(rescue)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_heals_all_at_the_first, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_heals_at_any, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_passes_without_system_calls, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_threads_pass, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_threads_heal, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_heals_without_a_file, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_exchanged_return, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("stub_rescue", tests, NULL, NULL);
}
