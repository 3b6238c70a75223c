// SPDX-License-Identifier: MIT
/* test_inspect.c: what functions are seen to do, and where the quick look finds the places. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#include "bytes.h"
#include "unit.h"

#define BASE 0x400000

static const struct mw_arch *arch;
static const mw_addr callees[] = {0x401000, 0x402000};
static const struct mw_code_wanted wanted = {
	.data = 0x400107,
	.callees = callees,
	.callee_count = 2,
	.target_start = 0x400800,
	.target_end = 0x400810,
};

static bool inspect(struct bytes code, struct mw_code_seen *seen)
{
	memset(seen, 0xee, sizeof(*seen));
	return arch->inspect((const uint8_t *)code.data, code.size, BASE, &wanted, seen);
}

static void test_inspect(void **state)
{
	static const struct {
		const char *text;
		struct bytes code;
		struct mw_code_seen seen;
	} cases[] = {
		{"lea 0x100(%rip),%rdi", BYTES("\x48\x8d\x3d\x00\x01\x00\x00"), {.data = 1}},
		{"lea 0x101(%rip),%rdi", BYTES("\x48\x8d\x3d\x01\x01\x00\x00"), {0}},
		{"nop; lea 0xff(%rip),%r9", BYTES("\x90\x4c\x8d\x0d\xff\x00\x00\x00"), {.data = 1}},
		{"lea 0x100(%rax),%rdi", BYTES("\x48\x8d\xb8\x00\x01\x00\x00"), {0}},
		{"mov 0x100(%rip),%rdi", BYTES("\x48\x8b\x3d\x00\x01\x00\x00"), {0}},
		{"call 0x401000", BYTES("\xe8\xfb\x0f\x00\x00"), {.calls = 1}},
		{"jmp 0x402000", BYTES("\xe9\xfb\x1f\x00\x00"), {.calls = 1}},
		{"call 0x401001", BYTES("\xe8\xfc\x0f\x00\x00"), {0}},
		{"call *%rax", BYTES("\xff\xd0"), {0}},
		{"call 0x401000 twice", BYTES("\xe8\xfb\x0f\x00\x00\xe8\xf6\x0f\x00\x00"), {.calls = 2}},
		{"jne 0x400800", BYTES("\x0f\x85\xfa\x07\x00\x00"), {.branches = 1}},
		{"jmp 0x40080f", BYTES("\xe9\x0a\x08\x00\x00"), {.branches = 1}},
		{"jmp 0x400810", BYTES("\xe9\x0b\x08\x00\x00"), {0}},
		{"jmp 0x4007ff", BYTES("\xe9\xfa\x07\x00\x00"), {0}},
		{"movb $1,%fs:0x10", BYTES("\x64\xc6\x04\x25\x10\x00\x00\x00\x01"), {.flags = 1}},
		{"movb $1,%fs:(%rax)", BYTES("\x64\xc6\x00\x01"), {.flags = 1}},
		{"movb $1,%fs:(%r8)", BYTES("\x64\x41\xc6\x00\x01"), {.flags = 1}},
		{"movb $0,%fs:(%rax)", BYTES("\x64\xc6\x00\x00"), {0}},
		{"movl $1,%fs:(%rax)", BYTES("\x64\xc7\x00\x01\x00\x00\x00"), {0}},
		{"movb $1,(%rax)", BYTES("\xc6\x00\x01"), {0}},
		{"push %rbx; movb; call; pop; ret",
		 BYTES("\x53\x64\xc6\x00\x01\xe8\xf6\x0f\x00\x00\x5b\xc3"),
		 {.calls = 1, .flags = 1}},
		{"nothing", BYTES(""), {0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_code_seen seen;

		if (!inspect(cases[i].code, &seen))
			fail_msg("%s: not read", cases[i].text);
		if (memcmp(&seen, &cases[i].seen, sizeof(seen)) != 0)
			fail_msg("%s: data %u, calls %u, branches %u, flags %u", cases[i].text, seen.data, seen.calls,
				 seen.branches, seen.flags);
	}
}

static void test_leads_to(void **state)
{
	static const struct {
		const char *text;
		struct bytes code;
		mw_addr target;
	} cases[] = {
		{"nop", BYTES("\x90\xc3"), BASE + 1},
		{"nopw", BYTES("\x66\x90"), BASE + 2},
		{"nopw %cs:0(%rax,%rax,1)", BYTES("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"), BASE + 10},
		{"jmp 0x401000", BYTES("\xe9\xfb\x0f\x00\x00"), BASE + 0x1000},
		{"jmp short", BYTES("\xeb\x10"), BASE + 0x12},
		{"jmp *%rax", BYTES("\xff\xe0"), 0},
		{"je", BYTES("\x74\x10"), 0},
		{"call", BYTES("\xe8\xfb\x0f\x00\x00"), 0},
		{"push %rbx", BYTES("\x53"), 0},
		{"ret", BYTES("\xc3"), 0},
		{"half of one", BYTES("\x66\x2e\x0f\x1f\x84\x00"), 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (arch->leads_to((const uint8_t *)cases[i].code.data, cases[i].code.size, BASE) != cases[i].target)
			fail_msg("%s leads elsewhere", cases[i].text);
}

/* A function is read to its end or not at all. */
static void test_inspect_refuses(void **state)
{
	static const struct bytes cases[] = {
		BYTES("\x90\x06"),                 /* push %es is none in 64-bit code */
		BYTES("\x90\xe8\xfb\x0f\x00"),     /* cut short */
		BYTES("\xe8\xfb\x0f\x00\x00\xff"), /* the same, of two */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_code_seen seen;

		assert_false(inspect(cases[i], &seen));
	}
}

static size_t search(const char *code, size_t size, size_t from, enum mw_code_deed deed)
{
	return arch->search((const uint8_t *)code, size, BASE, from, deed, &wanted);
}

static void test_search(void **state)
{
	/* The place that is found stands in the middle of the instruction. */
	static const struct {
		const char *text;
		enum mw_code_deed deed;
		struct bytes code;
		size_t at;
	} cases[] = {
		{"lea 0x100(%rip),%rdi", MW_CODE_TAKES_DATA, BYTES("\x48\x8d\x3d\x00\x01\x00\x00"), 3},
		{"lea 0x100(%rip),%r15", MW_CODE_TAKES_DATA, BYTES("\x4c\x8d\x3d\x00\x01\x00\x00"), 3},
		{"lea 0x101(%rip),%rdi", MW_CODE_TAKES_DATA, BYTES("\x48\x8d\x3d\x01\x01\x00\x00"), 7},
		{"lea 0x100(%rip),%edi", MW_CODE_TAKES_DATA, BYTES("\x40\x8d\x3d\x00\x01\x00\x00"), 7},
		{"nops; lea 0xfe(%rip),%rdi", MW_CODE_TAKES_DATA, BYTES("\x90\x90\x48\x8d\x3d\xfe\x00\x00\x00"), 5},
		{"nop; jne 0x400800", MW_CODE_BRANCHES, BYTES("\x90\x0f\x85\xf9\x07\x00\x00"), 3},
		{"nops; jmp 0x400800", MW_CODE_BRANCHES, BYTES("\x90\x90\xe9\xf9\x07\x00\x00"), 3},
		{"nops; call 0x400800", MW_CODE_BRANCHES, BYTES("\x90\x90\xe8\xf9\x07\x00\x00"), 7},
		{"nop; jne 0x400810", MW_CODE_BRANCHES, BYTES("\x90\x0f\x85\x09\x08\x00\x00"), 7},
		{"nops; movb $1,%fs:(%rax)", MW_CODE_SETS_FLAG, BYTES("\x90\x90\x64\xc6\x00\x01\x90\x90"), 3},
		{"nop; movb $1,%fs:(%r8)", MW_CODE_SETS_FLAG, BYTES("\x90\x64\x41\xc6\x00\x01\x90\x90"), 3},
		{"nops; movb $1,(%rax)", MW_CODE_SETS_FLAG, BYTES("\x90\x90\x90\xc6\x00\x01\x90\x90"), 8},
		{"nothing", MW_CODE_SETS_FLAG, BYTES(""), 0},
		{"less than any", MW_CODE_BRANCHES, BYTES("\x0f\x85\x00\x00\x00\x00"), 6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t at = search(cases[i].code.data, cases[i].code.size, 0, cases[i].deed);

		if (at != cases[i].at)
			fail_msg("%s: found at %zu", cases[i].text, at);
	}
}

/* All places are found one after the other, and none behind the end is read. */
static void test_search_goes_on(void **state)
{
	static const char code[] = "\x90\x90\x90\x64\xc6\x00\x01\x64\xc6\x00\x01\x64\xc6";
	const size_t size = sizeof(code) - 1;

	(void)state;
	assert_int_equal(search(code, size, 0, MW_CODE_SETS_FLAG), 4);
	assert_int_equal(search(code, size, 4, MW_CODE_SETS_FLAG), 4);
	assert_int_equal(search(code, size, 5, MW_CODE_SETS_FLAG), 8);
	assert_int_equal(search(code, size, 9, MW_CODE_SETS_FLAG), size);
	assert_int_equal(search(code, size, size, MW_CODE_SETS_FLAG), size);
	assert_int_equal(search(code, size, SIZE_MAX, MW_CODE_SETS_FLAG), size);
}

UNIT_GROUP(inspect)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inspect),         cmocka_unit_test(test_leads_to),
		cmocka_unit_test(test_inspect_refuses), cmocka_unit_test(test_search),
		cmocka_unit_test(test_search_goes_on),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
