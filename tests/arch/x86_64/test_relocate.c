// SPDX-License-Identifier: MIT
/* test_relocate.c: bytes in, relocated bytes out, and what is out of reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#include "bytes.h"
#include "unit.h"

static const struct mw_arch *arch;

static const struct relocate_case {
	struct bytes in;
	mw_addr pc, dest;
	struct bytes out;
} relocate_cases[] = {
	/* push rbp; jmp back over 0x1000 - 5 bytes, forward and backward */
	{BYTES("\x55"), 0x2000, 0x1000, BYTES("\x55\xe9\xfb\x0f\x00\x00")},
	{BYTES("\x55"), 0x1000, 0x2000, BYTES("\x55\xe9\xfb\xef\xff\xff")},
	/* out of a jmp's reach: jmp [rip+0], address */
	{BYTES("\x55"), 0x401000, 0x7f0000000000,
	 BYTES("\x55\xff\x25\x00\x00\x00\x00\x01\x10\x40\x00\x00\x00\x00\x00")},
	/* mov rax, [rip+0x10] refers to pc+7+0x10 = 0x1017 */
	{BYTES("\x48\x8b\x05\x10\x00\x00\x00"), 0x1000, 0x2000,
	 BYTES("\x48\x8b\x05\x10\xf0\xff\xff\xe9\xfb\xef\xff\xff")},
	/* the displacement is not the last: cmp byte [rip+0x10], 5 */
	{BYTES("\x80\x3d\x10\x00\x00\x00\x05"), 0x2000, 0x1000,
	 BYTES("\x80\x3d\x10\x10\x00\x00\x05\xe9\xfb\x0f\x00\x00")},
	/* mov dword [rip+0x10], 0x04030201 */
	{BYTES("\xc7\x05\x10\x00\x00\x00\x01\x02\x03\x04"), 0x2000, 0x1000,
	 BYTES("\xc7\x05\x10\x10\x00\x00\x01\x02\x03\x04\xe9\xfb\x0f\x00\x00")},
	/* an operand-size prefix that belongs to the opcode, and an immediate behind: palignr */
	{BYTES("\x66\x0f\x3a\x0f\x05\x10\x00\x00\x00\x05"), 0x2000, 0x1000,
	 BYTES("\x66\x0f\x3a\x0f\x05\x10\x10\x00\x00\x05\xe9\xfb\x0f\x00\x00")},
	/* vmovdqa ymm0, [rip+0x10] */
	{BYTES("\xc5\xfd\x6f\x05\x10\x00\x00\x00"), 0x2000, 0x1000,
	 BYTES("\xc5\xfd\x6f\x05\x10\x10\x00\x00\xe9\xfb\x0f\x00\x00")},
	/* lock cmpxchg [rip-0x10], ecx */
	{BYTES("\xf0\x0f\xb1\x0d\xf0\xff\xff\xff"), 0x2000, 0x1000,
	 BYTES("\xf0\x0f\xb1\x0d\xf0\x0f\x00\x00\xe9\xfb\x0f\x00\x00")},
	/* jmp [rip+0x10] */
	{BYTES("\xff\x25\x10\x00\x00\x00"), 0x2000, 0x1000, BYTES("\xff\x25\x10\x10\x00\x00\xe9\xfb\x0f\x00\x00")},
	/* a displacement of zero is one all the same */
	{BYTES("\x48\x8b\x05\x00\x00\x00\x00"), 0x2000, 0x1000,
	 BYTES("\x48\x8b\x05\x00\x10\x00\x00\xe9\xfb\x0f\x00\x00")},
	/* an absolute address is not relative to pc: mov eax, [0x10] through an index byte */
	{BYTES("\x8b\x04\x25\x10\x00\x00\x00"), 0x2000, 0x1000,
	 BYTES("\x8b\x04\x25\x10\x00\x00\x00\xe9\xfb\x0f\x00\x00")},
};

static void plan_padded(const struct bytes *in, mw_addr pc, struct mw_insn_plan *plan)
{
	uint8_t bytes[MW_INSN_MAX];

	memset(bytes, 0x90, sizeof(bytes));
	memcpy(bytes, in->data, in->size);
	arch->plan(bytes, sizeof(bytes), pc, plan);
	assert_int_equal(plan->length, in->size);
}

static void test_relocate(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(relocate_cases) / sizeof(relocate_cases[0]); i++) {
		const struct relocate_case *c = &relocate_cases[i];
		struct mw_insn_plan plan;
		uint8_t out[MW_OOL_MAX];
		size_t copy_length, length;

		plan_padded(&c->in, c->pc, &plan);
		assert_null(arch->relocate(&plan, c->dest, out, &copy_length, &length));
		assert_int_equal(copy_length, c->in.size);
		assert_int_equal(length, c->out.size);
		assert_memory_equal(out, c->out.data, length);
	}
}

static void expect_error(const struct mw_insn_plan *plan, mw_addr dest, const char *text)
{
	uint8_t out[MW_OOL_MAX], untouched[MW_OOL_MAX];
	size_t copy_length = 77, length = 78;
	struct mw_error *err;

	memset(out, 0xa5, sizeof(out));
	memset(untouched, 0xa5, sizeof(untouched));
	err = arch->relocate(plan, dest, out, &copy_length, &length);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_UNSUPPORTED);
	assert_non_null(strstr(mw_error_text(err), text));
	mw_error_destroy(err);
	assert_memory_equal(out, untouched, sizeof(out));
	assert_int_equal(copy_length, 77);
	assert_int_equal(length, 78);
}

static void test_relocate_refuses(void **state)
{
	static const struct bytes refused[] = {
		BYTES("\xe8\x00\x01\x00\x00"),     BYTES("\xeb\x10"), BYTES("\x74\x10"), BYTES("\xff\xd0"),
		BYTES("\xff\x15\x10\x00\x00\x00"), BYTES("\x0f\x05"), BYTES("\xe2\xf0"), BYTES("\xcc"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct mw_insn_plan plan;

		plan_padded(&refused[i], 0x1000, &plan);
		expect_error(&plan, 0x2000, plan.why);
	}
}

/* The last address that a displacement reaches, and the first that it does not, on both sides. */
static void test_relocate_reach(void **state)
{
	static const struct bytes load = BYTES("\x48\x8b\x05\x00\x00\x00\x00");
	const mw_addr pc = 0x7f0000000000, target = pc + 7;
	const mw_addr lowest = target - INT32_MAX - 7, highest = target + 0x80000000 - 7;
	struct mw_insn_plan plan;
	uint8_t out[MW_OOL_MAX];
	size_t copy_length, length;
	int32_t disp;

	(void)state;
	plan_padded(&load, pc, &plan);
	assert_int_equal(plan.target, target);
	assert_null(arch->relocate(&plan, lowest, out, &copy_length, &length));
	memcpy(&disp, out + 3, 4);
	assert_int_equal(disp, INT32_MAX);
	assert_null(arch->relocate(&plan, highest, out, &copy_length, &length));
	memcpy(&disp, out + 3, 4);
	assert_int_equal(disp, INT32_MIN);
	expect_error(&plan, lowest - 1, "cannot reach");
	expect_error(&plan, highest + 1, "cannot reach");
}

UNIT_GROUP(relocate)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relocate),
		cmocka_unit_test(test_relocate_refuses),
		cmocka_unit_test(test_relocate_reach),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
