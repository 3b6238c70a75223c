// SPDX-License-Identifier: MIT
/* test_detour_run.c: a function does the same with a jump at its entry and its first instructions in a trampoline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>
#include <sys/mman.h>

#include "bytes.h"
#include "native.h"
#include "unit.h"

#define PAGE UINT64_C(4096)
#define RSP  7
#define RUNS 64

/*
 * What the code reaches, in a mapping of almost 4 GiB so that things can be far apart:
 *
 *	0             a far trampoline
 *	DISTANCE      the function, near trampoline, entry, callee and exits (one page); data, what was seen, stack
 *	2 * DISTANCE  a callee that a far trampoline cannot reach by 32 bits
 */
#define DISTANCE   UINT64_C(0x70000000)
#define TRAMPOLINE 0x200
#define ENTRY      0x300
#define CALLEE     0x380
#define EXIT       0x3c0
#define SEEN       0x200 /* in the page of the data */
#define FRAME      72
#define HOOK       0x5eed

static const struct mw_arch *arch;
static struct native_arena arena;
static uint8_t *map;

/* Displacements that are filled in; each is the last of its instruction. */
#define DATA_DISP   "\xd0\xd0\xd0\xd0" /* to 8 bytes of data: the address of the callee */
#define CALLEE_DISP "\xd1\xd1\xd1\xd1"
#define FAR_DISP    "\xd2\xd2\xd2\xd2"
#define NOPS12      "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x00"

/* inc rax; ret; dec rax; ret: what is branched over and what to, 4 bytes on. */
#define EITHER "\x48\xff\xc0\xc3\x48\xff\xc8\xc3"

static const struct run_case {
	const char *text;
	struct bytes code;
	uint8_t condition; /* offset of an opcode byte that all 16 conditions are put in, 0: none */
	bool anywhere;     /* each displaced instruction may be the first to run */
} cases[] = {
	{"prologue", BYTES("\x55\x48\x89\xe5\x48\x83\xec\x08\x48\x89\x7d\xf8\x48\x8b\x45\xf8\xc9\xc3"), 0, false},
	{"endbr64", BYTES("\xf3\x0f\x1e\xfa\x53\x48\x89\xfb\x48\x8d\x44\x1b\x07\x5b\xc3"), 0, false},
	{"endbr64; ret", BYTES("\xf3\x0f\x1e\xfa\xc3\x0f\x1f\x80\x00\x00\x00\x00\x0f\x1f\x40\x00"), 0, true},
	{"ret", BYTES("\xc3" NOPS12 "\x0f\x1f\x00"), 0, true},
	{"xor; ret", BYTES("\x31\xc0\xc3" NOPS12 "\x90"), 0, true},
	{"load", BYTES("\x48\x8b\x05" DATA_DISP "\x48\x01\xf8\xc3"), 0, true},
	{"add and lea", BYTES("\x48\x03\x05" DATA_DISP "\x48\x8d\x15" DATA_DISP "\xc3"), 0, true},
	{"short jcc", BYTES("\x90\x70\x04" EITHER), 1, true},
	{"two short jcc", BYTES("\x74\x06\x70\x04\x90" EITHER), 2, true},
	{"near jcc", BYTES("\x0f\x80\x04\x00\x00\x00" EITHER), 1, true},
	{"far jcc", BYTES("\x0f\x80" FAR_DISP EITHER), 1, true},
	{"short jump", BYTES("\xf5\xeb\x0d" NOPS12 "\x90" EITHER), 0, true},
	{"jump", BYTES("\x31\xff\xe9" CALLEE_DISP), 0, true},
	{"far jump", BYTES("\xe9" FAR_DISP), 0, true},
	{"jump through memory", BYTES("\xff\x25" DATA_DISP), 0, true},
	{"call", BYTES("\x53\xe8" CALLEE_DISP "\x5b\xc3"), 0, false},
	{"call first", BYTES("\xe8" CALLEE_DISP "\xf5\xc3"), 0, true},
	{"far call", BYTES("\x53\xe8" FAR_DISP "\x5b\xc3"), 0, false},
	{"call through memory", BYTES("\x53\xff\x15" DATA_DISP "\x5b\xc3"), 0, false},
	{"flags kept", BYTES("\x48\x11\xf8\x9c\x59\x48\x19\xc0\xc3"), 0, false},
};

static uint64_t address(const uint8_t *at)
{
	return (uint64_t)(uintptr_t)at;
}

static int setup(void **state)
{
	static const uint8_t callee[] = {0x48, 0x8b, 0x04, 0x24, 0xc3}; /* mov rax, [rsp]; ret */
	struct native_arena exits = {0};

	(void)state;
	map = mmap(NULL, 2 * DISTANCE + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED || mprotect(map, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 ||
	    mprotect(map + DISTANCE, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 ||
	    mprotect(map + 2 * DISTANCE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		return 1;
	arena.code = map + DISTANCE;
	arena.copy = arena.code + TRAMPOLINE;
	arena.data = arena.code + PAGE;
	arena.stack = arena.data + 1024;
	memset(arena.code, 0xcc, PAGE);
	memcpy(arena.code + CALLEE, callee, sizeof(callee));
	memcpy(map + 2 * DISTANCE, callee, sizeof(callee));
	exits.code = arena.code + EXIT;
	native_arena_load(&exits, callee, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(map, 2 * DISTANCE + PAGE);
}

static void fill_in(uint8_t *code, size_t size, const char *mark, const uint8_t *target)
{
	for (size_t i = 0; i + 4 <= size; i++) {
		int32_t disp = (int32_t)(target - (code + i + 4));

		if (memcmp(code + i, mark, 4) == 0)
			memcpy(code + i, &disp, 4);
	}
}

static void load(const struct run_case *c, uint8_t condition)
{
	memset(arena.code, 0xcc, TRAMPOLINE);
	memcpy(arena.code, c->code.data, c->code.size);
	fill_in(arena.code, c->code.size, DATA_DISP, arena.data);
	fill_in(arena.code, c->code.size, CALLEE_DISP, arena.code + CALLEE);
	fill_in(arena.code, c->code.size, FAR_DISP, map + 2 * DISTANCE);
	if (c->condition)
		arena.code[c->condition] |= condition;
}

/* The common entry: notes the hook, takes the frame away, goes on with the original. */
static void write_entry(const uint8_t *original)
{
	uint8_t code[] = {
		0xff, 0x34, 0x24,                 /* push [rsp] */
		0x8f, 0x05, 0,    0,    0,     0, /* pop [rip + seen] */
		0x48, 0x8d, 0x64, 0x24, FRAME,    /* lea rsp, [rsp + FRAME] */
		0xff, 0x25, 0,    0,    0,     0, /* jmp [rip] */
	};
	int32_t disp = (int32_t)(PAGE + SEEN - (ENTRY + 9));
	uint64_t to = address(original);

	memcpy(code + 5, &disp, sizeof(disp));
	memcpy(arena.code + ENTRY, code, sizeof(code));
	memcpy(arena.code + ENTRY + sizeof(code), &to, sizeof(to));
}

struct world {
	struct native_state state;
	uint8_t stack[NATIVE_STACK_SIZE];
};

static void random_world(struct world *world)
{
	uint64_t back = address(arena.code + EXIT);

	memset(world, 0, sizeof(*world));
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		world->state.gpr[i] = native_random();
	world->state.gpr[RSP] = address(arena.stack) + NATIVE_STACK_SIZE / 2;
	world->state.flags = 0x202 | (native_random() & 0xcd5);
	for (size_t i = 0; i < sizeof(world->stack); i += 8)
		memcpy(world->stack + i, &(uint64_t){native_random()}, 8);
	memcpy(world->stack + sizeof(world->stack) / 2, &back, sizeof(back));
}

/* What lies below the stack pointer at the end is nobody's. */
static void run(struct world *world, const uint8_t *entry)
{
	uint64_t callee = address(arena.code + CALLEE);
	size_t below;

	memcpy(arena.data, &callee, sizeof(callee));
	memcpy(arena.stack, world->stack, sizeof(world->stack));
	native_run(&world->state, entry);
	memcpy(world->stack, arena.stack, sizeof(world->stack));
	below = (size_t)(world->state.gpr[RSP] - address(arena.stack));
	assert_true(below <= sizeof(world->stack));
	memset(world->stack, 0, below);
	world->state.entry = 0;
	world->state.saved_sp = 0;
}

static void compare(const struct run_case *c, const struct world *start, const uint8_t *here, const uint8_t *there,
		    struct world *result)
{
	struct world other = *start;

	*result = *start;
	run(result, here);
	run(&other, there);
	if (memcmp(&result->state, &other.state, sizeof(other.state)) != 0)
		fail_msg("%s: registers differ", c->text);
	if (memcmp(result->stack, other.stack, sizeof(other.stack)) != 0)
		fail_msg("%s: stacks differ", c->text);
}

/* As it was, then with the jump at its entry; every displaced instruction and its copy are the same place. */
static void check(const struct run_case *c, uint8_t *trampoline_at)
{
	struct mw_trampoline_frame frame = {address(arena.code + ENTRY), HOOK, FRAME};
	struct mw_detour detour;
	struct mw_trampoline trampoline;
	uint8_t jump[8];

	arch->detour(arena.code, TRAMPOLINE, address(arena.code), address(arena.code), c->code.size, &detour);
	if (detour.why)
		fail_msg("%s: %s", c->text, detour.why);
	assert_null(arch->trampoline(&detour, &frame, address(trampoline_at), &trampoline));
	assert_null(arch->detour_jump(&detour, address(trampoline_at), jump));
	memcpy(trampoline_at, trampoline.bytes, trampoline.size);
	write_entry(trampoline_at + trampoline.original);
	for (unsigned n = 0; n < RUNS; n++) {
		const uint8_t *at = arena.code + (detour.at - address(arena.code));
		struct world start, before, after;
		uint32_t seen = 0;

		random_world(&start);
		for (unsigned i = 0; i < (c->anywhere ? detour.count : 1u); i++)
			compare(c, &start, at + detour.offset[i], trampoline_at + trampoline.copied[i], &before);
		compare(c, &start, arena.code, at, &before);
		memcpy(arena.code + (at - arena.code), jump, detour.jump);
		memcpy(arena.data + SEEN, &seen, sizeof(seen));
		compare(c, &start, arena.code, trampoline_at, &after);
		memcpy(&seen, arena.data + SEEN, sizeof(seen));
		assert_int_equal(seen, HOOK);
		assert_memory_equal(&before, &after, sizeof(before));
		memcpy(arena.code + (at - arena.code), detour.bytes, detour.jump);
	}
}

static void check_all(uint8_t *trampoline_at)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned condition = 0; condition < (cases[i].condition ? 16U : 1U); condition++) {
			load(&cases[i], (uint8_t)condition);
			check(&cases[i], trampoline_at);
		}
	}
}

static void test_near(void **state)
{
	(void)state;
	check_all(arena.copy);
}

static void test_far(void **state)
{
	(void)state;
	check_all(map);
}

UNIT_GROUP(detour_run)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_far),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, setup, teardown) : 1;
}
