// SPDX-License-Identifier: MIT
/* test_mask_set.c: where code sets its signal mask to a constant; leaving a function at its first instruction. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#define BASE 0x401000u
#define MOST 3

#define LEA    "\x48\x8d\x35\x10\x02\x00\x00" /* lea 0x210(%rip),%rsi */
#define BACK   "\x48\x8d\x35\xf0\xff\xff\xff" /* lea -0x10(%rip),%rsi */
#define NUMBER "\xb8\x0e\x00\x00\x00"         /* mov $14,%eax */
#define CALL   "\x0f\x05"                     /* syscall */
#define XOR    "\x31\xff"                     /* xor %edi,%edi */
#define NOP8   "\x0f\x1f\x84\x00\x00\x00\x00\x00"
#define NOP64  NOP8 NOP8 NOP8 NOP8 NOP8 NOP8 NOP8 NOP8

static const struct mw_arch *arch;

static const struct code {
	const char *name;
	const char *bytes;
	size_t size;
	/* Offset of each displacement, and of the set from BASE. */
	struct {
		size_t operand;
		int64_t set;
	} found[MOST];
	size_t count;
} codes[] = {
#define CODE(text) (text), sizeof(text) - 1
	{"the set, then the number", CODE(LEA NUMBER CALL), {{3, 7 + 0x210}}, 1},
	{"the number, then the set", CODE(NUMBER LEA CALL), {{8, 12 + 0x210}}, 1},
	{"before it", CODE(LEA "\xb8\x0e\x00\x00\x00" CALL BACK NUMBER CALL), {{3, 7 + 0x210}, {17, 21 - 0x10}}, 2},
	{"others between", CODE(XOR LEA XOR NOP8 NUMBER NOP8 XOR CALL), {{5, 9 + 0x210}}, 1},
	{"others between, the other way", CODE(NUMBER XOR NOP8 LEA XOR CALL), {{18, 22 + 0x210}}, 1},
	{"the nearest counts", CODE(BACK XOR LEA NUMBER CALL), {{12, 16 + 0x210}}, 1},
	{"one far behind the first",
	 CODE(LEA NUMBER CALL NOP64 NOP64 NUMBER BACK CALL),
	 {{3, 7 + 0x210}, {150, 154 - 0x10}},
	 2},
	{"too far before", CODE(LEA NOP64 NUMBER CALL), {{0, 0}}, 0},
	{"the call too far behind", CODE(LEA NUMBER NOP64 NOP8 CALL), {{0, 0}}, 0},
	{"another number", CODE(LEA "\xb8\x0d\x00\x00\x00" CALL), {{0, 0}}, 0},
	{"another register", CODE("\x48\x8d\x3d\x10\x02\x00\x00" NUMBER CALL), {{0, 0}}, 0},
	{"no set", CODE(XOR NUMBER CALL), {{0, 0}}, 0},
	{"no call", CODE(LEA NUMBER XOR), {{0, 0}}, 0},
	{"half a call", CODE(LEA NUMBER "\x0f"), {{0, 0}}, 0},
	{"half a number", CODE(LEA "\xb8\x0e\x00\x00"), {{0, 0}}, 0},
	{"the call in the displacement", CODE(NUMBER "\x48\x8d\x35\x0f\x05\x00\x00"), {{0, 0}}, 0},
	{"nothing", CODE(""), {{0, 0}}, 0},
};

static void check(const struct code *code, const uint8_t *bytes)
{
	size_t at = 0, count = 0, operand = 0;
	mw_addr set = 0;

	while ((at = arch->mask_set(bytes, code->size, BASE, at, &operand, &set)) < code->size) {
		if (count == code->count)
			fail_msg("%s: found where there is nothing, at %zu", code->name, operand);
		if (operand != code->found[count].operand || set != (mw_addr)(BASE + code->found[count].set))
			fail_msg("%s: operand at %zu, set at %llx", code->name, operand, (unsigned long long)set);
		count++;
	}
	if (count != code->count)
		fail_msg("%s: %zu found", code->name, count);
}

/* Each in memory of its very size, so that sanitizers see what is read behind it. */
static void test_mask_set(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		uint8_t *bytes = malloc(codes[i].size + (codes[i].size == 0));

		assert_non_null(bytes);
		memcpy(bytes, codes[i].bytes, codes[i].size);
		check(&codes[i], bytes);
		free(bytes);
	}
}

/* What is cut off anywhere is either what it was or not found, and nothing behind is looked at. */
static void test_truncated(void **state)
{
	static const char whole[] = LEA XOR NUMBER XOR CALL;
	const size_t size = sizeof(whole) - 1;

	(void)state;
	for (size_t cut = 0; cut <= size; cut++) {
		uint8_t *bytes = malloc(cut + (cut == 0));
		size_t operand = 0;
		mw_addr set = 0;

		assert_non_null(bytes);
		memcpy(bytes, whole, cut);
		(void)arch->mask_set(bytes, cut, BASE, 0, &operand, &set);
		assert_int_equal(operand, cut == size ? 3 : 0);
		free(bytes);
	}
}

static void test_leave(void **state)
{
	struct mw_regs regs, before;

	(void)state;
	for (size_t i = 0; i < MW_REG_COUNT; i++)
		regs.gpr[i] = 0x1111 * (i + 1);
	regs.pc = BASE;
	regs.flags = 0x246;
	regs.syscall = UINT64_MAX;
	regs.thread_pointer = 0x7f0000000000;
	regs.gpr[arch->dwarf_sp] = 0x7ffc00001000;
	before = regs;
	arch->leave(&regs, 0x402345, 0xfedcba9876543210);
	before.gpr[0] = 0xfedcba9876543210;
	before.gpr[arch->dwarf_sp] += 8;
	before.pc = 0x402345;
	assert_memory_equal(regs.gpr, before.gpr, sizeof(regs.gpr));
	assert_int_equal(regs.pc, before.pc);
	assert_int_equal(regs.flags, before.flags);
	assert_int_equal(regs.syscall, before.syscall);
	assert_int_equal(regs.thread_pointer, before.thread_pointer);
	assert_int_equal(arch->result(&regs), 0xfedcba9876543210);
}

#define MOVABS(low) "\x48\xb8" low "\xff\xff\xff\xfe\xff\xff\xff" /* movabs $0xfffffffeffffff..,%rax */
#define STORE       "\x48\x89\x83\xf0\x08\x00\x00"                /* mov %rax,0x8f0(%rbx) */

static void test_mask_constant(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t size, operand; /* 0: none */
	} texts[] = {
		{"made and stored", CODE(MOVABS("\xff") STORE NUMBER CALL), 2},
		{"in another register", CODE(XOR "\x49\xb9\xff\xff\xff\x7f\xfc\xff\xff\xff" NUMBER CALL), 4},
		{"the last one", CODE(MOVABS("\xff") XOR MOVABS("\xff") STORE NUMBER NOP8 CALL), 14},
		{"without SIGTRAP already", CODE(MOVABS("\xef") STORE NUMBER CALL), 0},
		{"some signals only", CODE("\x48\xb8\xff\xff\x00\xff\xfe\xff\xff\xff" STORE NUMBER CALL), 0},
		{"another number", CODE(MOVABS("\xff") STORE "\xb8\x0d\x00\x00\x00" CALL), 0},
		{"too far before", CODE(MOVABS("\xff") NOP64 NUMBER CALL), 0},
		{"no call", CODE(MOVABS("\xff") STORE NUMBER XOR), 0},
		{"half a constant", CODE("\x48\xb8\xff\xff" NUMBER CALL), 0},
		{"nothing", CODE(""), 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)texts[i].bytes;
		size_t operand = 0, at = arch->mask_constant(bytes, texts[i].size, 0, &operand);

		if (operand != texts[i].operand || (at < texts[i].size) != (texts[i].operand != 0))
			fail_msg("%s: %zu, not %zu", texts[i].name, operand, texts[i].operand);
		/* Cut off anywhere it reads nothing behind. */
		for (size_t cut = 0; cut < texts[i].size; cut++) {
			uint8_t *copy = malloc(cut + 1);

			assert_non_null(copy);
			memcpy(copy, bytes, cut);
			(void)arch->mask_constant(copy, cut, 0, &operand);
			free(copy);
		}
	}
}

UNIT_GROUP(mask_set)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mask_set),
		cmocka_unit_test(test_mask_constant),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_leave),
	};

	arch = mw_arch_find(EM_X86_64);
	return cmocka_run_group_tests_name("arch_x86_64_mask_set", tests, NULL, NULL);
}
