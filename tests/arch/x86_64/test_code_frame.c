// SPDX-License-Identifier: MIT
/* test_code_frame.c: the frame at a call in a function without unwind information, read off its code. */
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#define BASE 0x401000u

enum known {
	EXACT,   /* where it begins and ends */
	BEGIN,   /* where it begins */
	NOTHING, /* its prologue only */
};

struct code {
	const char *name;
	const char *bytes;
	size_t size, start, pc; /* offsets */
	enum known known;
	bool certain;
	struct mw_code_frame frame;
};

#define CODE(text) (text), sizeof(text) - 1
#define CALL       "\xe8\x00\x01\x00\x00" /* five bytes */
#define NO_ROW                                                                                                         \
	false,                                                                                                         \
	{                                                                                                              \
		.fp = MW_CODE_FP_SAME                                                                                  \
	}
#define FIRST                                                                                                          \
	true,                                                                                                          \
	{                                                                                                              \
		.outermost = true                                                                                      \
	}
#define SP_ROW(n, where, at)                                                                                           \
	true,                                                                                                          \
	{                                                                                                              \
		.cfa = n, .fp = MW_CODE_FP_##where, .fp_at = at                                                        \
	}
#define FP_ROW(n, where, at)                                                                                           \
	true,                                                                                                          \
	{                                                                                                              \
		.by_fp = true, .cfa = n, .fp = MW_CODE_FP_##where, .fp_at = at                                         \
	}

static const struct code codes[] = {
	{"sub $8,%rsp; call; add $8,%rsp; ret", CODE("\x48\x83\xec\x08" CALL "\x48\x83\xc4\x08\xc3"), 0, 9, BEGIN,
	 SP_ROW(16, SAME, 0)},
	{"endbr64 first", CODE("\xf3\x0f\x1e\xfa\x48\x83\xec\x08" CALL "\x48\x83\xc4\x08\xc3"), 0, 13, BEGIN,
	 SP_ROW(16, SAME, 0)},
	{"push %rbp; push %rbx; sub $8; call; add $8; pop; pop; ret",
	 CODE("\x55\x53\x48\x83\xec\x08" CALL "\x48\x83\xc4\x08\x5b\x5d\xc3"), 0, 11, BEGIN, SP_ROW(32, SAVED, -16)},
	{"push %rbx; push %rbp: the frame pointer saved second",
	 CODE("\x53\x55\x48\x83\xec\x08" CALL "\x48\x83\xc4\x08\x5d\x5b\xc3"), 0, 11, BEGIN, SP_ROW(32, SAVED, -24)},
	{"mov %rbp,8(%rsp) saves it, mov 8(%rsp),%rbp restores it, which the way out does not say",
	 CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x08" CALL "\x48\x8b\x6c\x24\x08\x48\x83\xc4\x18\xc3"), 0, 14, BEGIN,
	 SP_ROW(32, LOST, 0)},
	{"a frame pointer; sub $0x10; call; leave; ret", CODE("\x55\x48\x89\xe5\x48\x83\xec\x10" CALL "\xc9\xc3"), 0,
	 13, NOTHING, SP_ROW(32, SAVED, -16)},
	{"enter $32,$0; call; leave; ret", CODE("\xc8\x20\x00\x00" CALL "\xc9\xc3"), 0, 9, BEGIN,
	 SP_ROW(48, SAVED, -16)},
	{"enter $32,$1", CODE("\xc8\x20\x00\x01" CALL "\xc9\xc3"), 0, 9, BEGIN, NO_ROW},
	{"the other encoding of mov", CODE("\x55\x48\x8b\xec\x48\x83\xec\x10" CALL "\xc9\xc3"), 0, 13, NOTHING,
	 SP_ROW(32, SAVED, -16)},
	{"a stack of unknown size below a frame pointer: sub %rax,%rsp; and $-32,%rsp",
	 CODE("\x55\x48\x89\xe5\x48\x29\xc4\x48\x83\xe4\xe0" CALL "\xc9\xc3"), 0, 16, NOTHING, FP_ROW(16, SAVED, -16)},
	{"lea -8(%rbp),%rsp; pop %rbx; pop %rbp; ret",
	 CODE("\x55\x48\x89\xe5\x53\x48\x29\xc4" CALL "\x48\x8d\x65\xf8\x5b\x5d\xc3"), 0, 13, NOTHING,
	 FP_ROW(16, SAVED, -16)},
	/* 0: push %rbx; test; jne 10; call; 9: pop %rbx; ret; 10: jmp 9 behind */
	{"two paths that agree", CODE("\x53\x85\xff\x75\x07" CALL "\x5b\xc3" CALL "\xeb\xf7"), 0, 17, BEGIN,
	 SP_ROW(16, SAME, 0)},
	/* jne over a push: push %rax on one path only */
	{"two paths that do not", CODE("\x53\x85\xff\x75\x02\x50\x50" CALL "\x5b\xc3"), 0, 12, BEGIN, NO_ROW},
	{"the ways out say something else", CODE("\x48\x83\xec\x08" CALL "\x48\x83\xc4\x18\xc3"), 0, 9, BEGIN, NO_ROW},
	{"arguments pushed", CODE("\x48\x83\xec\x08\x50\x50" CALL "\x48\x83\xc4\x10\x48\x83\xc4\x08\xc3"), 0, 11, BEGIN,
	 SP_ROW(32, SAME, 0)},
	{"a stack that is not aligned, of what only looks like a function",
	 CODE("\x48\x83\xec\x10" CALL "\x48\x83\xc4\x10\xc3"), 0, 9, BEGIN, NO_ROW},
	{"… of what surely is one", CODE("\x48\x83\xec\x10" CALL "\x48\x83\xc4\x10\xc3"), 0, 9, EXACT,
	 SP_ROW(24, SAME, 0)},
	{"the last call is a jump: pop %rbx; jmp far", CODE("\x53" CALL "\x5b\xe9\x00\x00\x10\x00"), 0, 6, BEGIN,
	 SP_ROW(16, SAME, 0)},
	{"… through a register: pop %rbx; jmp *%rax", CODE("\x53" CALL "\x5b\xff\xe0"), 0, 6, BEGIN,
	 SP_ROW(16, SAME, 0)},
	{"a call that does not return ends it", CODE("\x48\x83\xec\x08" CALL), 0, 9, EXACT, SP_ROW(16, SAME, 0)},
	{"… or is another function's, where nobody says where it ends", CODE("\x48\x83\xec\x08" CALL "\xcc\xcc"), 0, 9,
	 BEGIN, NO_ROW},
	{"… before another with a frame pointer", CODE("\x48\x83\xec\x08" CALL "\x55\x48\x89\xe5\x5d\xc3"), 0, 9,
	 NOTHING, NO_ROW},
	/* push %rbp; mov; sub $16; jmp *%rax; call; leave; ret */
	{"by a jump table", CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\xff\xe0" CALL "\xc9\xc3"), 0, 15, NOTHING,
	 SP_ROW(32, SAVED, -16)},
	{"… where what lies behind disagrees", CODE("\x53\xff\xe0" CALL "\x48\x83\xc4\x18\xc3"), 0, 8, BEGIN, NO_ROW},
	{"nobody says where it begins", CODE("\x48\x83\xec\x08" CALL "\x48\x83\xc4\x08\xc3"), 0, 9, NOTHING, NO_ROW},
	{"it goes to another stack: mov %rsp,%rbx; mov %rax,%rsp; call; mov %rbx,%rsp",
	 CODE("\x53\x48\x89\xe3\x48\x89\xc4" CALL "\x48\x89\xdc\x5b\xc3"), 0, 12, EXACT, NO_ROW},
	{"it takes its return address: pop %rax; push %rax",
	 CODE("\x58\x50\x48\x83\xec\x08" CALL "\x48\x83\xc4\x08\xc3"), 0, 11, EXACT, NO_ROW},
	{"the frame pointer used for something else: push %rbp; mov %rdi,%rbp",
	 CODE("\x55\x48\x89\xfd" CALL "\x5d\xc3"), 0, 9, BEGIN, SP_ROW(16, SAVED, -16)},
	{"… that nothing saves: mov %rdi,%rbp", CODE("\x50\x48\x89\xfd" CALL "\x58\xc3"), 0, 9, BEGIN,
	 SP_ROW(16, LOST, 0)},
	{"… and what was saved written over: mov %rax,(%rsp)", CODE("\x55\x48\x89\xfd\x48\x89\x04\x24" CALL "\x58\xc3"),
	 0, 13, BEGIN, SP_ROW(16, LOST, 0)},
	{"call of what follows: a pc on the stack", CODE("\xe8\x00\x00\x00\x00" CALL "\x58\xc3"), 0, 10, BEGIN,
	 SP_ROW(16, SAME, 0)},
	{"a call in another function, behind the end of this", CODE("\x50\x58\xc3" CALL "\xc3"), 0, 8, BEGIN, NO_ROW},
	{"a program's first function: xor %ebp,%ebp; mov %rsp,%rdi; and $-16,%rsp; call",
	 CODE("\x48\x31\xed\x48\x89\xe7\x48\x83\xe4\xf0" CALL), 0, 15, BEGIN, FIRST},
	{"… after endbr64: xor %ebp,%ebp; and $-16,%rsp; call; hlt",
	 CODE("\xf3\x0f\x1e\xfa\x31\xed\x48\x83\xe4\xf0" CALL "\xf4"), 0, 15, EXACT, FIRST},
	{"no instruction", CODE("\x06\x06\x06" CALL "\xc3"), 0, 8, BEGIN, NO_ROW},
};

static const struct mw_arch *arch;

static bool frame_at(const uint8_t *bytes, const struct code *code, struct mw_code_frame *out)
{
	struct mw_code_function known = {0};

	if (code->known != NOTHING)
		known.start = BASE + code->start;
	if (code->known == EXACT) {
		known.end = BASE + code->size;
		known.exact = true;
	}
	return arch->frame_at(bytes, code->size, BASE, BASE + code->pc, &known, out);
}

static void test_codes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const struct code *code = &codes[i];
		struct mw_code_frame frame = {0};
		/* Where it ends is where nothing may be read. */
		uint8_t *bytes = malloc(code->size);
		bool certain;

		assert_non_null(bytes);
		memcpy(bytes, code->bytes, code->size);
		certain = frame_at(bytes, code, &frame);
		if (certain != code->certain || frame.by_fp != code->frame.by_fp ||
		    frame.outermost != code->frame.outermost || frame.cfa != code->frame.cfa ||
		    frame.fp != code->frame.fp || frame.fp_at != code->frame.fp_at)
			fail_msg("%s: %d: %d %d %d %d", code->name, certain, frame.by_fp, frame.cfa, (int)frame.fp,
				 frame.fp_at);
		free(bytes);
	}
}

/* Any bytes, any place in them: an answer that makes sense. */
static void test_anything(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		const struct code *from = &codes[round % (sizeof(codes) / sizeof(codes[0]))];
		struct code code = *from;
		uint8_t *bytes = malloc(from->size);
		struct mw_code_frame frame;

		assert_non_null(bytes);
		memcpy(bytes, from->bytes, from->size);
		for (unsigned i = 0; i < 3; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[(seed >> 20) % from->size] = (uint8_t)(seed >> 40);
		}
		code.pc = (seed >> 30) % (from->size + 2);
		code.known = (enum known)(round % 3);
		if (frame_at(bytes, &code, &frame))
			assert_true(frame.outermost || (frame.cfa % 8 == 0 && frame.cfa >= 8));
		free(bytes);
	}
}

static void test_call_targets(void **state)
{
	static const uint8_t bytes[] = "\x90\xe8\x0b\x00\x00\x00\xe8\xf5\xff\xff\xff\xe8\x00\x00\x00\x00\xe8\x00";
	mw_addr target = 0;
	size_t at;

	(void)state;
	at = arch->call_target(bytes, 18, BASE, 0, &target);
	assert_int_equal(at, 2);
	assert_int_equal(target, BASE + 6 + 11);
	at = arch->call_target(bytes, 18, BASE, at, &target);
	assert_int_equal(at, 7);
	assert_int_equal(target, BASE);
	/* A call of what follows is none of a function. */
	assert_int_equal(arch->call_target(bytes, 18, BASE, at, &target), 18);
	assert_int_equal(arch->call_target(bytes, 0, BASE, 0, &target), 0);
}

UNIT_GROUP(code_frame)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes), cmocka_unit_test(test_anything),
					   cmocka_unit_test(test_call_targets)};

	arch = mw_arch_find(EM_X86_64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
