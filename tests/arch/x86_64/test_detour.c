// SPDX-License-Identifier: MIT
/* test_detour.c: which functions can be detoured, what is displaced, and the bytes of their trampolines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#include "bytes.h"
#include "unit.h"

#define BASE     UINT64_C(0x400000)
#define FUNCTION 0x100 /* where the function lies in the code around it, which is int3 */
#define AROUND   0x400
#define PC       (BASE + FUNCTION)

static const struct mw_arch *arch;
static uint8_t around[AROUND];

static void put_function(const struct bytes *code)
{
	memset(around, 0xcc, sizeof(around));
	memcpy(around + FUNCTION, code->data, code->size);
}

static void detour(uint64_t function_size, struct mw_detour *out)
{
	memset(out, 0xee, sizeof(*out));
	arch->detour(around, sizeof(around), BASE, PC, function_size, out);
}

#define NOPS3  "\x0f\x1f\x00"
#define NOPS9  "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"
#define ENDBR  "\xf3\x0f\x1e\xfa"
#define BODY   "\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\xc3" /* mov rax, rdi, often; ret */
#define JE(to) "\x74" to
#define PUSH   "\x55\x48\x89\xe5" /* push rbp; mov rbp, rsp */

static const struct detour_case {
	const char *text;
	struct bytes code;
	uint8_t skipped, length, count;
	bool ends;
} accepted[] = {
	{"push; mov; sub", BYTES(PUSH "\x48\x83\xec\x08" BODY), 0, 8, 3, false},
	{"endbr64 stays", BYTES(ENDBR PUSH "\x48\x83\xec\x08" BODY), 4, 8, 3, false},
	{"five pushes", BYTES("\x50\x53\x51\x52\x55" BODY), 0, 5, 5, false},
	{"one of 15 bytes behind four", BYTES("\x50\x53\x51\x52\x66\x66\x66\x2e\x0f\x1f\x84\x90\x00\x00\x00\x00" BODY),
	 0, 16, 5, false},
	{"a short jcc", BYTES("\x48\x85\xff" JE("\x04") "\x48\x89\xf8\xc3\x31\xc0\xc3"), 0, 5, 2, false},
	{"a near jcc", BYTES("\x48\x85\xff\x0f\x84\x04\x00\x00\x00\x48\x89\xf8\xc3\x31\xc0\xc3"), 0, 9, 2, false},
	{"a jump away", BYTES("\xe9\x00\x10\x00\x00"), 0, 5, 1, true},
	{"mov; jump away", BYTES("\x31\xff\xe9\x00\x10\x00\x00"), 0, 7, 2, true},
	{"a jump through memory", BYTES("\xff\x25\x00\x10\x00\x00"), 0, 6, 1, true},
	{"a short jump over padding", BYTES("\xeb\x0e" NOPS9 NOPS3 "\x66\x90" BODY), 0, 5, 1, true},
	{"a call", BYTES("\x53\xe8\x00\x10\x00\x00\x5b\xc3"), 0, 6, 2, true},
	{"a call through memory", BYTES("\x53\xff\x15\x00\x10\x00\x00\x5b\xc3"), 0, 7, 2, true},
	{"a load relative to pc", BYTES("\x48\x8b\x05\x00\x10\x00\x00\xc3"), 0, 7, 1, false},
	{"ret and padding", BYTES("\xc3" NOPS9 NOPS3 NOPS3), 0, 5, 1, true},
	{"ret and wild nops", BYTES("\xc3\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x40\x00"), 0, 5, 1, true},
	{"ret and int3", BYTES("\xc3"), 0, 5, 1, true},
	{"xchg ax, ax is padding", BYTES("\x31\xc0\xc3\x66\x90" NOPS9 "\x66\x90"), 0, 5, 2, true},
	{"endbr64; ret", BYTES(ENDBR "\xc3\x0f\x1f\x80\x00\x00\x00\x00" NOPS3 "\x90"), 4, 5, 1, true},
	{"a loop to its entry", BYTES(PUSH "\x48\x85\xff\x75\xf7\xc3"), 0, 7, 3, false},
	{"a loop behind the jump", BYTES(PUSH "\x90\x48\xff\xcf\x75\xfb\xc3"), 0, 5, 3, false},
	{"a loop to displaced bytes that stay", BYTES("\x48\x89\xf8\x90\x90\x48\xff\xcf\x75\xfb\xc3"), 0, 5, 3, false},
	{"a jump of its own first", BYTES("\xe9\x04\x00\x00\x00\x90\x90\x31\xc0" BODY), 0, 5, 1, true},
};

static void test_accepted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
		const struct detour_case *c = &accepted[i];
		struct mw_detour found;

		put_function(&c->code);
		for (unsigned known = 0; known < 2; known++) {
			detour(known ? c->code.size : 0, &found);
			if (found.why)
				fail_msg("%s: %s", c->text, found.why);
			if (found.at != PC + c->skipped || found.jump != 5 || found.length != c->length ||
			    found.count != c->count || found.ends != c->ends)
				fail_msg("%s: length %u, count %u, ends %d", c->text, found.length, found.count,
					 found.ends);
			assert_memory_equal(found.bytes, around + FUNCTION + c->skipped, found.length);
			assert_int_equal(found.offset[0], 0);
			for (unsigned n = 1; n < found.count; n++)
				assert_true(found.offset[n] > found.offset[n - 1]);
		}
	}
}

static const struct refused_case {
	const char *why;
	struct bytes code;
	bool size_known;
} refused[] = {
	{"no complete instruction", BYTES("\x06" BODY), false},
	{"no complete instruction", BYTES("\x55\x06" BODY), true},
	{"syscall", BYTES("\x89\xc0\x0f\x05" BODY), true},
	{"breakpoint", BYTES("\xcc" BODY), true},
	{"breakpoint", BYTES(ENDBR "\xcc" BODY), false},
	{"undefined", BYTES("\x31\xc0\x0f\x0b" BODY), true},
	{"loop has", BYTES("\x90\xe2\x10" BODY BODY), true},
	{"jrcxz has", BYTES("\xe3\x10" BODY BODY), true},
	{"a call run elsewhere", BYTES("\x53\xff\xd0" BODY), true},
	{"a call run elsewhere", BYTES("\x53\xff\x54\x24\x08" BODY), true},
	{"a call run elsewhere", BYTES("\x53\x66\xff\x15\x00\x10\x00\x00" BODY), true},
	{"32 bits", BYTES("\x67\x48\x8b\x05\x00\x10\x00\x00" BODY), true},
	/* too short */
	{"too short", BYTES("\xc3\x55" BODY), false},
	{"too short", BYTES("\x31\xc0\xc3\x90\x55" BODY), true},
	{"too short", BYTES("\x31\xc0\xc3\x90\x90\x55" BODY), true},
	{"too short", BYTES("\x31\xc0\xc3\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x55" BODY), true},
	{"too short", BYTES("\xeb\x03\x55\x55\x55" BODY), true},
	{"too short", BYTES("\x31\xc0"), true},
	/* branches to inside: from displaced bytes, behind, calls, short and near, loops, and a taken address */
	{"lands inside", BYTES("\x48\x89\xf8\x48\xff\xcf\x75\xfb\xc3"), true},
	{"lands inside", BYTES("\x48\x89\xf8\x48\xff\xcf\x75\xfb\xc3"), false},
	{"lands inside", BYTES("\x55\x48\x89\xe5\x48\xff\xcf\x0f\x85\xf4\xff\xff\xff\xc3"), true},
	{"lands inside", BYTES("\x55\x48\x89\xe5\x48\xff\xcf\x0f\x85\xf4\xff\xff\xff\xc3"), false},
	{"lands inside", BYTES("\x55\x48\x89\xe5\x31\xc0\x90\xe2\xf8\xc3"), true},
	{"lands inside", BYTES("\x55\x48\x89\xe5\x31\xc0\x90\xe8\xf5\xff\xff\xff\xc3"), true},
	{"lands inside", BYTES("\x55\x48\x89\xe5\x48\x8d\x05\xf6\xff\xff\xff\xff\xe0"), true},
	{"lands inside", BYTES("\xeb\x01\x90" NOPS3 "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"), true},
	/* behind an indirect jump only the whole function's bytes show it */
	{"lands inside", BYTES("\x55\x48\x89\xe5\x31\xc0\xff\xe0\xeb\xf7"), true},
	/* and where capstone gives up, its looks */
	{"lands inside", BYTES("\x55\x48\x89\xe5\x31\xc0\x06\xeb\xf8"), true},
	/* a jump in front of code that nothing leads to */
	{"hooked already", BYTES("\xe9\x00\x10\x00\x00" BODY), true},
	{"hooked already", BYTES("\xff\x25\x00\x10\x00\x00" BODY), true},
	{"hooked already", BYTES(ENDBR "\xe9\x00\xf0\xff\xff" BODY), true},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct mw_detour found;
		struct mw_trampoline_frame frame = {.frame_size = 72};
		struct mw_trampoline trampoline;
		struct mw_error *err;

		put_function(&refused[i].code);
		detour(refused[i].size_known ? refused[i].code.size : 0, &found);
		if (!found.why || !strstr(found.why, refused[i].why))
			fail_msg("case %zu is not '%s' but '%s'", i, refused[i].why, found.why ? found.why : "fine");
		err = arch->trampoline(&found, &frame, PC + 0x1000, &trampoline);
		assert_non_null(err);
		mw_error_destroy(err);
	}
}

/* What other functions do to this one: BODY at PC, and this at `at` around it. */
static const struct around_case {
	size_t at;
	struct bytes code;
	bool refused;
} arounds[] = {
	{0x80, BYTES("\x31\xc0\xe9\x7b\x00\x00\x00"), true},      /* jmp PC + 2 */
	{0x80, BYTES("\x31\xc0\xe9\x79\x00\x00\x00"), false},     /* jmp PC */
	{0x80, BYTES("\x31\xc0\xe9\x7a\x00\x00\x00"), true},      /* jmp PC + 1 */
	{0x80, BYTES("\x31\xc0\xe9\x7d\x00\x00\x00"), true},      /* jmp PC + 4 */
	{0x80, BYTES("\x31\xc0\xe9\x7e\x00\x00\x00"), false},     /* jmp PC + 5 */
	{0x180, BYTES("\x31\xc0\x0f\x85\x7b\xff\xff\xff"), true}, /* jne PC + 3 */
	{0x180, BYTES("\x31\xc0\xe8\x7b\xff\xff\xff"), true},     /* call PC + 2 */
	/* the same bytes as another instruction's: mov eax, imm32, and what ends in its displacement */
	{0x180, BYTES("\x48\xb8\x31\xc0\xe9\x7b\xff\xff\xff\x90"), false},
	{0x80, BYTES("\x4d\x01\xe9\x7c\x00\x00\x00"), false},
	/* eight bits, in another function */
	{0x110, BYTES("\xeb\xf0"), false},
	/* at the very edges of what was read */
	{0, BYTES("\xe9\xfd\x00\x00\x00"), true},
	{AROUND - 5, BYTES("\xe9\x02\xfd\xff\xff"), true},
};

static void test_around(void **state)
{
	static const struct bytes body = BYTES(BODY);

	(void)state;
	for (size_t i = 0; i < sizeof(arounds) / sizeof(arounds[0]); i++) {
		struct mw_detour found;

		put_function(&body);
		memcpy(around + arounds[i].at, arounds[i].code.data, arounds[i].code.size);
		for (unsigned known = 0; known < 2; known++) {
			detour(known ? body.size : 0, &found);
			if ((found.why != NULL) != arounds[i].refused)
				fail_msg("case %zu: %s", i, found.why ? found.why : "accepted");
		}
	}
}

/* Whatever is cut off is refused, and nothing outside of the bytes is read (sanitizers see it). */
static void test_bounds(void **state)
{
	static const uint8_t code[] = PUSH "\x48\x83\xec\x08";
	struct mw_detour found;

	(void)state;
	for (size_t size = 0; size < 8; size++) {
		uint8_t *copy = test_malloc(size + 1);

		memcpy(copy + 1, code, size);
		arch->detour(copy + 1, size, BASE, BASE, 100, &found);
		assert_non_null(found.why);
		test_free(copy);
	}
	arch->detour(code, 8, BASE, BASE, UINT64_MAX, &found);
	assert_null(found.why);
	arch->detour(code, 8, BASE, BASE + 8, 0, &found);
	assert_non_null(found.why);
	arch->detour(code, 8, BASE, BASE - 1, 0, &found);
	assert_non_null(found.why);
	arch->detour(code, 8, BASE, 0, UINT64_MAX, &found);
	assert_non_null(found.why);
}

#define FRAME_BYTES                                                                                                    \
	"\x48\x8d\x64\x24\xb8\xc7\x04\x24\x78\x56\x34\x12\xff\x25\x00\x00\x00\x00\x88\x77\x66\x55\x44\x33\x22\x11"

static const struct mw_trampoline_frame frame72 = {0x1122334455667788, 0x12345678, 72};

static const struct trampoline_case {
	const char *text;
	struct bytes in;
	mw_addr dest;
	struct bytes out; /* from trampoline.original on */
	uint8_t copied[3];
} trampolines[] = {
	{"jump back",
	 BYTES("\x55\x48\x89\xe5\x90\xc3"),
	 PC + 0x1000,
	 BYTES("\x55\x48\x89\xe5\x90\xe9\xdb\xef\xff\xff"),
	 {0, 1, 4}},
	{"a load",
	 BYTES("\x48\x8b\x05\x00\x10\x00\x00\xc3"),
	 PC + 0x1000,
	 BYTES("\x48\x8b\x05\xe0\xff\xff\xff\xe9\xdb\xef\xff\xff"),
	 {0}},
	{"a short jcc",
	 BYTES("\x48\x85\xff\x74\x04\x48\x89\xf8\xc3\x31\xc0\xc3"),
	 PC + 0x1000,
	 BYTES("\x48\x85\xff\x0f\x84\xe0\xef\xff\xff\xe9\xd7\xef\xff\xff"),
	 {0, 3}},
	{"a near jcc",
	 BYTES("\x0f\x89\x04\x00\x00\x00\x48\x89\xf8\xc3\x31\xc0\xc3"),
	 PC + 0x1000,
	 BYTES("\x0f\x89\xe4\xef\xff\xff\xe9\xdb\xef\xff\xff"),
	 {0}},
	{"a jcc out of reach",
	 BYTES("\x0f\x84\x00\x00\x00\x70\x90"),
	 PC - 0x70000000,
	 BYTES("\x75\x0e\xff\x25\x00\x00\x00\x00\x06\x01\x40\x70\x00\x00\x00\x00\xe9\xd1\xff\xff\x6f"),
	 {0}},
	{"a short jump",
	 BYTES("\x90\xeb\x0d" NOPS9 NOPS3 "\x90" BODY),
	 PC + 0x1000,
	 BYTES("\x90\xe9\xea\xef\xff\xff"),
	 {0, 1}},
	{"a jump", BYTES("\xe9\x00\x10\x00\x00"), PC + 0x1000, BYTES("\xe9\xe0\xff\xff\xff"), {0}},
	{"a jump out of reach",
	 BYTES("\xe9\x00\x00\x00\x70"),
	 PC - 0x70000000,
	 BYTES("\xff\x25\x00\x00\x00\x00\x05\x01\x40\x70\x00\x00\x00\x00"),
	 {0}},
	{"a jump through memory",
	 BYTES("\xff\x25\x00\x10\x00\x00"),
	 PC + 0x1000,
	 BYTES("\xff\x25\xe0\xff\xff\xff"),
	 {0}},
	{"a call",
	 BYTES("\x53\xe8\x00\x10\x00\x00\x5b\xc3"),
	 PC + 0x1000,
	 BYTES("\x53\xff\x35\x05\x00\x00\x00\xe9\xda\xff\xff\xff\x06\x01\x40\x00\x00\x00\x00\x00"),
	 {0, 1}},
	{"a call out of reach",
	 BYTES("\xe8\x00\x00\x00\x70\x5b\xc3"),
	 PC - 0x70000000,
	 BYTES("\xff\x35\x0e\x00\x00\x00\xff\x25\x00\x00\x00\x00\x05\x01\x40\x70\x00\x00\x00\x00"
	       "\x05\x01\x40\x00\x00\x00\x00\x00"),
	 {0}},
	{"a call through memory",
	 BYTES("\xff\x15\x00\x10\x00\x00\x5b\xc3"),
	 PC + 0x1000,
	 BYTES("\xff\x35\x06\x00\x00\x00\xff\x25\xda\xff\xff\xff\x06\x01\x40\x00\x00\x00\x00\x00"),
	 {0}},
	{"ret and padding", BYTES("\x31\xc0\xc3" NOPS9 NOPS3 "\x90"), PC + 0x1000, BYTES("\x31\xc0\xc3"), {0, 2}},
};

static void test_trampolines(void **state)
{
	static const struct bytes start = BYTES(FRAME_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(trampolines) / sizeof(trampolines[0]); i++) {
		const struct trampoline_case *c = &trampolines[i];
		struct mw_detour found;
		struct mw_trampoline trampoline;

		put_function(&c->in);
		detour(0, &found);
		if (found.why)
			fail_msg("%s: %s", c->text, found.why);
		assert_null(arch->trampoline(&found, &frame72, c->dest, &trampoline));
		assert_int_equal(trampoline.original, 32);
		assert_memory_equal(trampoline.bytes, start.data, start.size);
		if (trampoline.size != 32 + c->out.size ||
		    memcmp(trampoline.bytes + 32, c->out.data, c->out.size) != 0) {
			for (size_t n = 32; n < trampoline.size; n++)
				print_message("%02x ", trampoline.bytes[n]);
			fail_msg("%s: not the bytes", c->text);
		}
		for (unsigned n = 0; n < found.count && n < sizeof(c->copied); n++)
			assert_int_equal(trampoline.copied[n], 32 + c->copied[n]);
	}
}

static void plan_body(struct mw_detour *found)
{
	static const struct bytes body = BYTES(BODY);

	put_function(&body);
	detour(body.size, found);
	assert_null(found->why);
}

static void test_frames(void **state)
{
	static const struct {
		uint32_t size;
		struct bytes lea;
	} frames[] = {
		{4, BYTES("\x48\x8d\x64\x24\xfc\xc7")},
		{128, BYTES("\x48\x8d\x64\x24\x80\xc7")},
		{129, BYTES("\x48\x8d\xa4\x24\x7f\xff\xff\xff\xc7")},
		{0x7fffffff, BYTES("\x48\x8d\xa4\x24\x01\x00\x00\x80\xc7")},
	};
	struct mw_detour found;

	(void)state;
	plan_body(&found);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct mw_trampoline_frame frame = {.frame_size = frames[i].size};
		struct mw_trampoline trampoline;

		assert_null(arch->trampoline(&found, &frame, PC + 0x1000, &trampoline));
		assert_memory_equal(trampoline.bytes, frames[i].lea.data, frames[i].lea.size);
		assert_int_equal(trampoline.original % 16, 0);
	}
}

static void expect_no_trampoline(const struct mw_detour *found, uint32_t frame_size, mw_addr dest)
{
	struct mw_trampoline_frame frame = {.frame_size = frame_size};
	struct mw_trampoline trampoline, untouched;
	struct mw_error *err;

	memset(&trampoline, 0xa5, sizeof(trampoline));
	memset(&untouched, 0xa5, sizeof(untouched));
	err = arch->trampoline(found, &frame, dest, &trampoline);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_UNSUPPORTED);
	assert_memory_equal(&trampoline, &untouched, sizeof(trampoline));
	mw_error_destroy(err);
}

/* The last address that the jump reaches, the first that it doesn't; the load that the trampoline is too far from. */
static void test_reach(void **state)
{
	static const struct bytes load = BYTES("\x48\x8b\x05\x00\x00\x00\x70\xc3");
	const mw_addr highest = PC + 5 + INT32_MAX;
	uint8_t jump[5], untouched[5] = {1, 2, 3, 4, 5};
	struct mw_detour found;
	struct mw_error *err;
	struct mw_trampoline trampoline;

	(void)state;
	plan_body(&found);
	assert_null(arch->detour_jump(&found, highest, jump));
	assert_memory_equal(jump, "\xe9\xff\xff\xff\x7f", 5);
	memcpy(jump, untouched, 5);
	err = arch->detour_jump(&found, highest + 1, jump);
	assert_non_null(err);
	mw_error_destroy(err);
	assert_memory_equal(jump, untouched, 5);
	expect_no_trampoline(&found, 72, highest + 1);
	expect_no_trampoline(&found, 3, PC + 0x1000);
	expect_no_trampoline(&found, 0x80000000, PC + 0x1000);
	/* within the reach that is promised, all goes */
	assert_null(arch->trampoline(&found, &frame72, PC + arch->trampoline_reach, &trampoline));
	assert_null(arch->detour_jump(&found, PC + arch->trampoline_reach, jump));
	assert_null(arch->trampoline(&found, &frame72, PC - arch->trampoline_reach, &trampoline));
	assert_null(arch->detour_jump(&found, PC - arch->trampoline_reach, jump));

	put_function(&load);
	detour(load.size, &found);
	assert_null(found.why);
	assert_null(arch->trampoline(&found, &frame72, PC + 0x1000, &trampoline));
	expect_no_trampoline(&found, 72, PC - 0x70000000);
}

UNIT_GROUP(detour)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),     cmocka_unit_test(test_around),
		cmocka_unit_test(test_bounds),   cmocka_unit_test(test_trampolines), cmocka_unit_test(test_frames),
		cmocka_unit_test(test_reach),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
