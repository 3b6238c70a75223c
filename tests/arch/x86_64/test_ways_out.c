// SPDX-License-Identifier: MIT
/* test_ways_out.c: how functions give control back, and the code that signal handlers return to. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#define BASE 0x401000u
#define SP   0x7ffc00001000u
#define FP   0x7ffc00001100u
#define MOST 4

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R12 = 12, R13, R14, R15 };

static const struct mw_arch *arch;

struct way {
	uint64_t return_at, sp;
	uint32_t restored;
};

struct code {
	const char *name;
	const char *bytes;
	size_t size, from; /* the pc's offset */
	struct way ways[MOST];
	size_t count;
};

#define CODE(text) (text), sizeof(text) - 1
#define BIT(reg)   (1u << (reg))
#define WAY(at)                                                                                                        \
	{                                                                                                              \
		SP + (at), SP + (at) + 8, 0                                                                            \
	}
#define WAY_R(at, r)                                                                                                   \
	{                                                                                                              \
		SP + (at), SP + (at) + 8, (r)                                                                          \
	}

/* Positions are offsets from the stack pointer at the pc, unless the frame pointer leads. */
static const struct code codes[] = {
	{"ret", CODE("\xc3"), 0, {WAY(0)}, 1},
	{"endbr64; ret", CODE("\xf3\x0f\x1e\xfa\xc3"), 0, {WAY(0)}, 1},
	{"repz ret", CODE("\xf3\xc3"), 0, {WAY(0)}, 1},
	{"ret $16", CODE("\xc2\x10\x00"), 0, {{SP, SP + 8 + 16, 0}}, 1},
	{"add $0x28,%rsp; pop %rbx; ret", CODE("\x48\x83\xc4\x28\x5b\xc3"), 0, {WAY_R(0x30, BIT(RBX))}, 1},
	{"add $0x12345678,%rsp; ret", CODE("\x48\x81\xc4\x78\x56\x34\x12\xc3"), 0, {WAY(0x12345678)}, 1},
	{"sub $-0x80,%rsp; ret", CODE("\x48\x83\xec\x80\xc3"), 0, {WAY(0x80)}, 1},
	{"pop r15 r14 r13 r12 rbp rbx; ret",
	 CODE("\x41\x5f\x41\x5e\x41\x5d\x41\x5c\x5d\x5b\xc3"),
	 0,
	 {WAY_R(48, BIT(R15) | BIT(R14) | BIT(R13) | BIT(R12) | BIT(RBP) | BIT(RBX))},
	 1},
	{"leave; ret", CODE("\xc9\xc3"), 0, {{FP + 8, FP + 16, BIT(RBP)}}, 1},
	{"mov %rbp,%rsp; pop %rbp; ret", CODE("\x48\x89\xec\x5d\xc3"), 0, {{FP + 8, FP + 16, BIT(RBP)}}, 1},
	{"lea -0x10(%rbp),%rsp; pop %rbx; pop %r12; pop %rbp; ret",
	 CODE("\x48\x8d\x65\xf0\x5b\x41\x5c\x5d\xc3"),
	 0,
	 {{FP + 8, FP + 16, BIT(RBX) | BIT(R12) | BIT(RBP)}},
	 1},
	{"lea 0x18(%rsp),%rsp; ret", CODE("\x48\x8d\x64\x24\x18\xc3"), 0, {WAY(0x18)}, 1},
	{"push %rax; call; pop %rdx; ret", CODE("\x50\xe8\x00\x01\x00\x00\x5a\xc3"), 0, {WAY_R(0, BIT(RDX))}, 1},
	{"the same from behind the call", CODE("\x50\xe8\x00\x01\x00\x00\x5a\xc3"), 6, {WAY_R(8, BIT(RDX))}, 1},
	{"push %rbp; mov %rsp,%rbp; sub $32,%rsp; leave; ret",
	 CODE("\x55\x48\x89\xe5\x48\x83\xec\x20\xc9\xc3"),
	 0,
	 {WAY_R(0, BIT(RBP))},
	 1},
	/* Two ways that agree are one: je 1f; add $8,%rsp; ret; 1: add $8,%rsp; ret */
	{"two equal ways", CODE("\x74\x05\x48\x83\xc4\x08\xc3\x48\x83\xc4\x08\xc3"), 0, {WAY(8)}, 1},
	/* … and two that don't are two: je 1f; add $8,%rsp; ret; 1: ret */
	{"two ways", CODE("\x74\x05\x48\x83\xc4\x08\xc3\xc3"), 0, {WAY(8), WAY(0)}, 2},
	/* jmp back over the pc: 0: add $8,%rsp; ret; 5: jmp 0 */
	{"a jump back", CODE("\x48\x83\xc4\x08\xc3\xeb\xf9"), 5, {WAY(8)}, 1},
	/* 0: dec %eax; jne 0; ret */
	{"a loop with an end", CODE("\xff\xc8\x75\xfc\xc3"), 0, {WAY(0)}, 1},
	{"a loop without one", CODE("\xeb\xfe"), 0, {{0}}, 0},
	/* 0: call; 5: jmp 5 */
	{"a call that does not return, then a loop without one", CODE("\xe8\x00\x01\x00\x00\xeb\xfe"), 5, {{0}}, 0},
	{"add $8,%rsp; jmp far away", CODE("\x48\x83\xc4\x08\xe9\x00\x00\x10\x00"), 0, {WAY(8)}, 1},
	{"a call that does not return, then nothing", CODE("\xe8\x00\x01\x00\x00\x0f\x0b\xc3"), 0, {{0}}, 0},
	{"hlt", CODE("\xf4\xc3"), 0, {{0}}, 0},
	{"int3", CODE("\xcc\xc3"), 0, {{0}}, 0},
	{"the end of what is known", CODE("\x90\x90"), 0, {{0}}, 0},
	{"cmp %rax,%rsp; test %rsp,%rsp; ret", CODE("\x48\x39\xc4\x48\x85\xe4\xc3"), 0, {WAY(0)}, 1},
	{"cmp %rax,%rbp; leave; ret", CODE("\x48\x39\xc5\xc9\xc3"), 0, {{FP + 8, FP + 16, BIT(RBP)}}, 1},
};

/* There may be more ways than can be seen. */
static const struct code blind_codes[] = {
	{"half an instruction", CODE("\x48\x83"), 0, {{0}}, 0},
	{"no instruction", CODE("\x06\xc3"), 0, {{0}}, 0},
	{"jmp *%rax", CODE("\xff\xe0\xc3"), 0, {{0}}, 0},
	/* What has taken its frame down before may well call in its place: */
	{"add $8,%rsp; pop %rbx; jmp *%rax", CODE("\x48\x83\xc4\x08\x5b\xff\xe0"), 0, {WAY_R(16, BIT(RBX))}, 1},
	/* One way can be followed, the other can't: je 1f; ret; 1: jmp *%rax */
	{"a way, and a jump to nowhere known", CODE("\x74\x01\xc3\xff\xe0"), 0, {WAY(0)}, 1},
	/* What called a function with such a loop is not told by its code: 0: call; 5: jmp 0 */
	{"a loop that calls, from behind the call", CODE("\xe8\x00\x01\x00\x00\xeb\xf9"), 5, {{0}}, 0},
	{"a loop that calls, from before", CODE("\x90\xe8\x00\x01\x00\x00\xeb\xf9"), 0, {{0}}, 0},
	/* 0: call; 5: je 0; hlt */
	{"a loop that calls, and then hlt", CODE("\xe8\x00\x01\x00\x00\x74\xf9\xf4"), 5, {{0}}, 0},
	/* What the stack pointer becomes nobody knows: and $-16,%rsp; mov %rax,%rsp; pop %rsp; xchg */
	{"and $-16,%rsp", CODE("\x48\x83\xe4\xf0\xc3"), 0, {{0}}, 0},
	{"mov %rax,%rsp", CODE("\x48\x89\xc4\xc3"), 0, {{0}}, 0},
	{"pop %rsp", CODE("\x5c\xc3"), 0, {{0}}, 0},
	{"mov %rax,%rbp; leave; ret", CODE("\x48\x89\xc5\xc9\xc3"), 0, {{0}}, 0},
};

static struct mw_regs some_regs(void)
{
	struct mw_regs regs = {.pc = 0};

	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		regs.gpr[i] = 0x1111u * i;
	regs.gpr[RSP] = SP;
	regs.gpr[RBP] = FP;
	return regs;
}

static bool blind; /* as the last run had it */

static size_t run(const void *bytes, size_t size, size_t from, struct mw_way_out *ways, size_t capacity)
{
	struct mw_regs regs = some_regs();
	/* Exactly as long as it says, for the sanitizer to see. */
	uint8_t *copy = malloc(size ? size : 1);
	size_t count;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	regs.pc = BASE + from;
	count = arch->ways_out(copy, size, BASE, BASE + from, &regs, ways, capacity, &blind);
	free(copy);
	return count;
}

static void check(const struct code *code, bool expected)
{
	struct mw_way_out ways[MOST];
	size_t count = run(code->bytes, code->size, code->from, ways, MOST);

	if (count != code->count)
		fail_msg("%s: %zu ways, not %zu", code->name, count, code->count);
	if (blind != expected)
		fail_msg("%s: %sblind", code->name, blind ? "" : "not ");
	for (size_t i = 0; i < count; i++) {
		if (ways[i].return_at != code->ways[i].return_at || ways[i].sp != code->ways[i].sp ||
		    ways[i].restored != code->ways[i].restored)
			fail_msg("%s: way %zu: return at %#llx, sp %#llx, restored %#x", code->name, i,
				 (unsigned long long)ways[i].return_at, (unsigned long long)ways[i].sp,
				 ways[i].restored);
	}
}

static void test_codes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		check(&codes[i], false);
	for (size_t i = 0; i < sizeof(blind_codes) / sizeof(blind_codes[0]); i++)
		check(&blind_codes[i], true);
}

/* Each register is taken from where it was pushed. */
static void test_restored(void **state)
{
	/* add $8,%rsp; pop %rbx; pop %r12; pop %rbp; ret */
	static const char code[] = "\x48\x83\xc4\x08\x5b\x41\x5c\x5d\xc3";
	struct mw_way_out way;

	(void)state;
	assert_int_equal(run(CODE(code), 0, &way, 1), 1);
	assert_int_equal(way.restored, BIT(RBX) | BIT(R12) | BIT(RBP));
	assert_int_equal(way.restored_at[RBX], SP + 8);
	assert_int_equal(way.restored_at[R12], SP + 16);
	assert_int_equal(way.restored_at[RBP], SP + 24);
	assert_int_equal(way.return_at, SP + 32);
	/* leave; ret */
	assert_int_equal(run(CODE("\xc9\xc3"), 0, &way, 1), 1);
	assert_int_equal(way.restored_at[RBP], FP);
}

/* No more are noted than there is room for, and a pc that is not in the bytes has no way. */
static void test_bounds(void **state)
{
	static const char two[] = "\x74\x05\x48\x83\xc4\x08\xc3\xc3";
	struct mw_way_out ways[2];

	(void)state;
	memset(ways, 0, sizeof(ways));
	assert_int_equal(run(CODE(two), 0, ways, 1), 1);
	assert_int_equal(ways[1].sp, 0);
	assert_int_equal(run(CODE(two), 0, ways, 0), 0);
	assert_int_equal(run(CODE(two), sizeof(two) - 1, ways, 2), 0);
	assert_int_equal(run(CODE(two), (size_t)-1, ways, 2), 0);
	assert_int_equal(run("", 0, 0, ways, 2), 0);
}

/* Any bytes end in an answer: among them jumps to and fro, and more branches than are followed. */
static void test_random(void **state)
{
	static const uint8_t likely[] = {0x74, 0x75, 0xeb, 0xe9, 0xc3, 0x5b, 0x50, 0xc9, 0x48, 0x83, 0xc4, 0x08};
	uint64_t seed = 1;
	uint8_t code[2048];
	struct mw_way_out ways[MOST];

	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		for (size_t i = 0; i < sizeof(code); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			code[i] = round % 2 ? (uint8_t)(seed >> 33) : likely[(seed >> 33) % sizeof(likely)];
		}
		assert_true(run(code, sizeof(code), seed % sizeof(code), ways, MOST) <= MOST);
	}
	memset(code, 0x74, sizeof(code)); /* je +0x74 everywhere */
	assert_int_equal(run(code, sizeof(code), 0, ways, MOST), 0);
}

static void test_signal_return(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		bool is;
	} cases[] = {
		{CODE("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"), true},         /* glibc */
		{CODE("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05\x0f\x1f"), true}, /* … and what follows */
		{CODE("\xb8\x0f\x00\x00\x00\x0f\x05"), true},                 /* others */
		{CODE("\x48\xc7\xc0\x0f\x00\x00\x00\x0f"), false},            /* cut off */
		{CODE("\xb8\x0f\x00\x00\x00\x0f"), false},
		{CODE("\x48\xc7\xc0\x0e\x00\x00\x00\x0f\x05"), false}, /* another system call */
		{CODE("\xb8\x0e\x00\x00\x00\x0f\x05"), false},
		{CODE("\x48\xc7\xc1\x0f\x00\x00\x00\x0f\x05"), false}, /* another register */
		{CODE("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x34"), false}, /* sysenter */
		{CODE("\x90\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"), false},
		{"", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (arch->is_signal_return((const uint8_t *)cases[i].bytes, cases[i].size) != cases[i].is)
			fail_msg("case %zu", i);
}

UNIT_GROUP(ways_out)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),  cmocka_unit_test(test_restored),      cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_random), cmocka_unit_test(test_signal_return),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
