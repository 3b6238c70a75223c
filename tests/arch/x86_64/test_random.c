// SPDX-License-Identifier: MIT
/* test_random.c: any bytes may be asked about, from any thread; what a plan says of itself must hold. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>
#include <pthread.h>

#define ROUNDS  150000
#define THREADS 4
#define PC      0x7f0000001000ULL

static const struct mw_arch *arch;

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x * 0x2545f4914f6cdd1dULL;
}

/* Half of them start like real instructions do, or most would be refused for their first byte. */
static void random_insn(uint64_t *x, uint8_t bytes[MW_INSN_MAX])
{
	static const uint8_t starts[] = {0x48, 0x4c, 0x41, 0x66, 0xf3, 0xf2, 0xf0, 0x0f, 0xc5, 0xc4, 0x62, 0x67, 0xff};
	uint64_t a = next_random(x), b = next_random(x);

	memcpy(bytes, &a, 8);
	memcpy(bytes + 8, &b, 8);
	a = next_random(x);
	if (a & 1)
		bytes[0] = starts[(a >> 8) % sizeof(starts)];
	if ((a & 6) == 6) /* an operand relative to pc */
		bytes[2] = (uint8_t)((bytes[2] & 0x38) | 0x05);
}

/* Returns what is wrong, or NULL: cmocka's asserts belong to one thread. */
static const char *check_copy(const struct mw_insn_plan *plan, mw_addr dest)
{
	uint8_t out[MW_OOL_MAX];
	size_t copy_length, length;
	struct mw_insn_plan copy;
	struct mw_error *err;

	memset(out, 0x90, sizeof(out));
	err = arch->relocate(plan, dest, out, &copy_length, &length);
	if (err) {
		mw_error_destroy(err);
		return plan->can_relocate && !plan->disp_offset ? "a copy was refused for no reason" : NULL;
	}
	if (!plan->can_relocate)
		return "a copy was made of what cannot have one";
	arch->plan(out, sizeof(out), dest, &copy);
	if (copy_length != plan->length || copy.length != plan->length)
		return "the copy has another length";
	if (copy.disp_offset != plan->disp_offset || (plan->disp_offset && copy.target != plan->target))
		return "the copy refers to something else";
	if (length <= copy_length || length > MW_OOL_MAX)
		return "the jump back does not fit";
	return NULL;
}

static const char *check_plan(const struct mw_insn_plan *plan, const uint8_t *bytes)
{
	bool refuse = plan->how == MW_INSN_REFUSE;

	if (plan->length >= MW_INSN_MAX || (plan->length == 0 && !refuse))
		return "length";
	if (memcmp(plan->bytes, bytes, plan->length) != 0)
		return "bytes";
	if (refuse != (!plan->can_emulate && !plan->can_relocate))
		return "refuse";
	if ((plan->how == MW_INSN_EMULATE && !plan->can_emulate) ||
	    (plan->how == MW_INSN_OUT_OF_LINE && !plan->can_relocate))
		return "how";
	if (!plan->can_relocate != (plan->why != NULL))
		return "why";
	if (!plan->can_emulate && plan->memory != MW_MEMORY_NONE)
		return "memory";
	return NULL;
}

static const char *check_emulation(const struct mw_insn_plan *plan, uint64_t *x)
{
	struct mw_regs regs;
	uint64_t word = next_random(x);
	mw_addr at;

	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		regs.gpr[i] = next_random(x);
	regs.flags = 0x202;
	regs.pc = plan->pc;
	regs.syscall = UINT64_MAX;
	regs.thread_pointer = 0;
	at = arch->memory_address(plan, &regs);
	arch->emulate(plan, &regs, &word);
	return plan->memory == MW_MEMORY_NONE && at != 0 ? "memory address" : NULL;
}

static void *check_many(void *seed)
{
	uint64_t x = *(uint64_t *)seed;
	const char *wrong = NULL;

	for (unsigned i = 0; i < ROUNDS && !wrong; i++) {
		uint8_t bytes[MW_INSN_MAX];
		struct mw_insn_plan plan;
		size_t size = next_random(&x) % 8 ? sizeof(bytes) : next_random(&x) % (sizeof(bytes) + 1);

		random_insn(&x, bytes);
		arch->plan(bytes, size, PC, &plan);
		if (plan.length > size)
			wrong = "read beyond the end";
		if (!wrong)
			wrong = check_plan(&plan, bytes);
		if (!wrong)
			wrong = check_copy(&plan, PC + 0x10000 - next_random(&x) % 0x20000);
		if (!wrong)
			wrong = check_copy(&plan, next_random(&x));
		if (!wrong && plan.can_emulate)
			wrong = check_emulation(&plan, &x);
		if (wrong) {
			for (unsigned k = 0; k < sizeof(bytes); k++)
				fprintf(stderr, "%02x ", bytes[k]);
			fprintf(stderr, "(%zu): %s\n", size, wrong);
		}
	}
	return (void *)(uintptr_t)wrong;
}

static void test_random_bytes(void **state)
{
	uint64_t seed = 88172645463325252ULL;

	(void)state;
	assert_null(check_many(&seed));
}

static void test_random_bytes_threaded(void **state)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = 1234567 + i;
		assert_int_equal(pthread_create(&threads[i], NULL, check_many, &seeds[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

UNIT_GROUP(random)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_random_bytes_threaded),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
