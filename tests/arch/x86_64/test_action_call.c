// SPDX-License-Identifier: MIT
/* test_action_call.c: where code sets a signal's action, and how it is made a jump to elsewhere. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#define MOST 3

#define NUMBER "\xb8\x0d\x00\x00\x00"     /* mov $13,%eax */
#define SHORT  "\x6a\x0d\x58"             /* push $13; pop %rax */
#define SIZE   "\x41\xba\x08\x00\x00\x00" /* mov $8,%r10d */
#define CALL   "\x0f\x05"                 /* syscall */
#define XOR    "\x31\xff"                 /* xor %edi,%edi */

static const struct mw_arch *arch;

static const struct code {
	const char *name;
	const char *bytes;
	size_t size;
	size_t found[MOST];
	size_t count;
} codes[] = {
#define CODE(text) (text), sizeof(text) - 1
	{"at once", CODE(SIZE NUMBER CALL XOR), {11}, 1},
	{"the short way", CODE(SHORT SIZE CALL XOR), {9}, 1},
	{"others between", CODE(NUMBER SIZE XOR CALL XOR), {13}, 1},
	{"two", CODE(NUMBER CALL SIZE SHORT CALL XOR), {5, 16}, 2},
	{"another number", CODE("\xb8\x0e\x00\x00\x00" CALL XOR), {0}, 0},
	{"a jump between", CODE(NUMBER "\xeb\x00" CALL XOR), {0}, 0},
	{"a branch between", CODE(NUMBER "\x74\x00" CALL XOR), {0}, 0},
	{"a return between", CODE(NUMBER "\xc3" CALL XOR), {0}, 0},
	{"far behind", CODE(NUMBER XOR XOR XOR XOR XOR XOR XOR XOR XOR XOR CALL XOR), {0}, 0},
	{"in an operand", CODE(NUMBER "\xb9\x0f\x05\x00\x00" XOR), {0}, 0},
	{"no number", CODE("\x0d\x00\x00\x00" CALL XOR), {0}, 0},
	{"no call", CODE(NUMBER XOR), {0}, 0},
	{"half a call", CODE(NUMBER "\x0f"), {0}, 0},
	{"half a number", CODE("\xb8\x0d\x00"), {0}, 0},
	{"nothing", CODE(""), {0}, 0},
};

/* Each in memory of its very size, so that sanitizers see what is read behind it. */
static void test_action_call(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const struct code *code = &codes[i];
		uint8_t *bytes = malloc(code->size + (code->size == 0));
		size_t at = 0, insn = 0, count = 0;

		assert_non_null(bytes);
		memcpy(bytes, code->bytes, code->size);
		while ((at = arch->action_call(bytes, code->size, at, &insn)) < code->size) {
			if (count == code->count || insn != code->found[count])
				fail_msg("%s: found at %zu", code->name, insn);
			count++;
		}
		if (count != code->count)
			fail_msg("%s: %zu found", code->name, count);
		free(bytes);
	}
}

#define INSN       0x7f0000001005u
#define TRAMPOLINE 0x7f0000100000u
#define ACT        0x7f0000102000u

static bool jump_from(const char *before, mw_addr trampoline_at, mw_addr act, uint8_t *jump, uint8_t *trampoline)
{
	return arch->action_jump((const uint8_t *)before, INSN, trampoline_at, act, jump, trampoline);
}

static void test_action_jump(void **state)
{
	/* mov $13,%eax; lea INSN + 2(%rip),%rcx; jmp ACT */
	static const uint8_t expected[] = {0xb8, 0x0d, 0,    0,    0,    0x48, 0x8d, 0x0d, 0xfb,
					   0x0f, 0xf0, 0xff, 0xe9, 0xef, 0x1f, 0,    0};
	uint8_t jump[MW_ACTION_JUMP], trampoline[MW_ACTION_TRAMPOLINE];

	(void)state;
	assert_true(jump_from(NUMBER, TRAMPOLINE, ACT, jump, trampoline));
	assert_memory_equal(jump, "\xe9\xfb\xef\x0f\x00", sizeof(jump));
	assert_memory_equal(trampoline, expected, sizeof(expected));
	for (size_t i = sizeof(expected); i < sizeof(trampoline); i++)
		assert_int_equal(trampoline[i], arch->breakpoint[0]);
	assert_true(jump_from(NUMBER, INSN + INT32_MAX - 16, INSN + INT32_MAX, jump, trampoline));
	assert_false(jump_from(NUMBER, INSN + INT32_MAX + 1, INSN, jump, trampoline));
	assert_true(jump_from(NUMBER, INSN - 0x7ffffff0u, INSN, jump, trampoline));
	assert_false(jump_from(NUMBER, INSN - 0x80000001u, INSN, jump, trampoline));
	assert_false(jump_from(NUMBER, TRAMPOLINE, ACT + UINT64_C(0x100000000), jump, trampoline));
	assert_false(jump_from(SHORT "\x90\x90", TRAMPOLINE, ACT, jump, trampoline));
	assert_false(jump_from("\xb8\x0e\x00\x00\x00", TRAMPOLINE, ACT, jump, trampoline));
}

static void test_spare(void **state)
{
	struct mw_regs regs = {.pc = INSN}, before = regs;

	(void)state;
	arch->spare(&regs, 1, 2);
	assert_int_equal(regs.gpr[2], 1);
	assert_int_equal(regs.gpr[11], 2);
	regs.gpr[2] = regs.gpr[11] = 0;
	assert_memory_equal(&regs, &before, sizeof(regs));
}

UNIT_GROUP(action_call)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_action_call),
		cmocka_unit_test(test_action_jump),
		cmocka_unit_test(test_spare),
	};

	arch = mw_arch_find(EM_X86_64);
	return cmocka_run_group_tests_name("arch_x86_64_action_call", tests, NULL, NULL);
}
