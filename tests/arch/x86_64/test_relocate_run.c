// SPDX-License-Identifier: MIT
/* test_relocate_run.c: an instruction where it stands and its copy elsewhere do the same. */
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

#define RSP 7
#define RDI 5
#define RCX 2

static const struct mw_arch *arch;
static struct native_arena arena;

/* Filled in when the instruction is loaded: it makes the operand arena.data. */
#define DISP "\xdd\xdd\xdd\xdd"

static const struct run_case {
	struct bytes in;
	uint64_t undefined; /* flags */
} run_cases[] = {
	{BYTES("\x48\x8b\x05" DISP), 0},                /* mov rax, [rip+d] */
	{BYTES("\x48\x89\x0d" DISP), 0},                /* mov [rip+d], rcx */
	{BYTES("\x4c\x03\x3d" DISP), 0},                /* add r15, [rip+d] */
	{BYTES("\x48\x01\x0d" DISP), 0},                /* add [rip+d], rcx */
	{BYTES("\xf0\x48\x0f\xc1\x0d" DISP), 0},        /* lock xadd [rip+d], rcx */
	{BYTES("\xf0\x0f\xb1\x0d" DISP), 0},            /* lock cmpxchg [rip+d], ecx */
	{BYTES("\xf0\xff\x05" DISP), 0},                /* lock inc dword [rip+d] */
	{BYTES("\x80\x3d" DISP "\x05"), 0},             /* cmp byte [rip+d], 5 */
	{BYTES("\x83\x3d" DISP "\x00"), 0},             /* cmp dword [rip+d], 0 */
	{BYTES("\x66\x81\x05" DISP "\x34\x12"), 0},     /* add word [rip+d], 0x1234 */
	{BYTES("\xc7\x05" DISP "\x01\x02\x03\x04"), 0}, /* mov dword [rip+d], imm32 */
	{BYTES("\xf6\x05" DISP "\x80"), 0x10},          /* test byte [rip+d], 0x80 */
	{BYTES("\x0f\xb6\x05" DISP), 0},                /* movzx eax, byte [rip+d] */
	{BYTES("\x0f\x44\x05" DISP), 0},                /* cmove eax, [rip+d] */
	{BYTES("\x48\x8d\x05" DISP), 0},                /* lea rax, [rip+d]: has a copy too */
	{BYTES("\xff\x35" DISP), 0},                    /* push [rip+d] */
	{BYTES("\x8f\x05" DISP), 0},                    /* pop [rip+d] */
	{BYTES("\x0f\x10\x05" DISP), 0},                /* movups xmm0, [rip+d] */
	{BYTES("\x0f\x11\x05" DISP), 0},                /* movups [rip+d], xmm0 */
	{BYTES("\x66\x0f\xef\x05" DISP), 0},            /* pxor xmm0, [rip+d] */
	{BYTES("\x66\x0f\x70\x05" DISP "\x1b"), 0},     /* pshufd xmm0, [rip+d], 0x1b */
	{BYTES("\xf3\x0f\x7e\x05" DISP), 0},            /* movq xmm0, [rip+d] */
	{BYTES("\x55"), 0},                             /* push rbp */
	{BYTES("\x41\x5c"), 0},                         /* pop r12 */
	{BYTES("\x6a\xff"), 0},                         /* push -1 */
	{BYTES("\x9c"), 0},                             /* pushf */
	{BYTES("\x48\x8b\x44\x24\x08"), 0},             /* mov rax, [rsp+8] */
	{BYTES("\x48\x83\x04\x24\x01"), 0},             /* add qword [rsp], 1 */
	{BYTES("\x48\x8b\x07"), 0},                     /* mov rax, [rdi] */
	{BYTES("\xf0\x48\x0f\xb1\x0f"), 0},             /* lock cmpxchg [rdi], rcx */
	{BYTES("\xf3\x48\xab"), 0},                     /* rep stosq */
	{BYTES("\xf3\xa4"), 0},                         /* rep movsb */
	{BYTES("\x48\x87\xd8"), 0},                     /* xchg rax, rbx */
	{BYTES("\x48\x0f\xc8"), 0},                     /* bswap rax */
	{BYTES("\x48\xf7\xd8"), 0},                     /* neg rax */
	{BYTES("\x48\x19\xc0"), 0},                     /* sbb rax, rax */
	{BYTES("\x48\x0f\xaf\xc1"), 0xd4},              /* imul rax, rcx */
	{BYTES("\x48\xc1\xe0\x04"), 0x810},             /* shl rax, 4 */
	{BYTES("\x0f\xba\xe0\x05"), 0x894},             /* bt eax, 5 */
	{BYTES("\x66\x0f\xef\xc0"), 0},                 /* pxor xmm0, xmm0 */
	{BYTES("\x66\x48\x0f\x6e\xc0"), 0},             /* movq xmm0, rax */
	{BYTES("\x48\x89\xe5"), 0},                     /* what is emulated has copies too */
	{BYTES("\x48\x83\xec\x28"), 0},
	{BYTES("\xf3\x0f\x1e\xfa"), 0},
};

struct world {
	struct native_state state;
	uint8_t data[NATIVE_DATA_SIZE];
	uint8_t stack[NATIVE_STACK_SIZE];
};

static void random_bytes(uint8_t *out, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = native_random();

		memcpy(out + i, &word, 8);
	}
}

static void random_world(struct world *world)
{
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		world->state.gpr[i] = native_random();
	world->state.gpr[RSP] = (uint64_t)(uintptr_t)arena.stack + NATIVE_STACK_SIZE / 2;
	/* String instructions: a few elements inside the data, both ways of the direction flag stay inside. */
	world->state.gpr[RDI] = (uint64_t)(uintptr_t)arena.data + 24;
	world->state.gpr[4] = (uint64_t)(uintptr_t)arena.data + 32;
	world->state.gpr[RCX] = native_random() % 4;
	world->state.flags = 0x202 | (native_random() & 0xcd5);
	random_bytes(world->state.xmm0, sizeof(world->state.xmm0));
	random_bytes(world->data, sizeof(world->data));
	random_bytes(world->stack, sizeof(world->stack));
}

static void run(struct world *world, const uint8_t *entry)
{
	memcpy(arena.data, world->data, sizeof(world->data));
	memcpy(arena.stack, world->stack, sizeof(world->stack));
	native_run(&world->state, entry);
	memcpy(world->data, arena.data, sizeof(world->data));
	memcpy(world->stack, arena.stack, sizeof(world->stack));
	world->state.entry = 0;
	world->state.saved_sp = 0;
}

/* The direction flag must not reach C code, and flags that an instruction leaves undefined say nothing. */
static void compare(struct world *here, struct world *there, size_t number)
{
	here->state.flags &= ~run_cases[number].undefined;
	there->state.flags &= ~run_cases[number].undefined;
	if (memcmp(&here->state, &there->state, sizeof(here->state)) != 0)
		fail_msg("case %zu: registers differ", number);
	if (memcmp(here->data, there->data, sizeof(here->data)) != 0)
		fail_msg("case %zu: data differ", number);
	if (memcmp(here->stack, there->stack, sizeof(here->stack)) != 0)
		fail_msg("case %zu: stacks differ", number);
}

static void load(size_t number, struct mw_insn_plan *plan)
{
	const struct bytes *in = &run_cases[number].in;
	uint8_t bytes[MW_INSN_MAX];

	memcpy(bytes, in->data, in->size);
	for (size_t i = 0; i + 4 <= in->size; i++) {
		if (memcmp(bytes + i, DISP, 4) == 0) {
			int32_t disp = (int32_t)(arena.data - (arena.code + in->size));

			memcpy(bytes + i, &disp, sizeof(disp));
		}
	}
	native_arena_load(&arena, bytes, in->size);
	arch->plan(arena.code, MW_INSN_MAX, (uint64_t)(uintptr_t)arena.code, plan);
	assert_int_equal(plan->length, in->size);
	assert_true(plan->can_relocate);
}

static void run_copies(size_t number, uint8_t *copy, unsigned rounds)
{
	struct mw_insn_plan plan;
	size_t copy_length, length;

	load(number, &plan);
	assert_null(arch->relocate(&plan, (uint64_t)(uintptr_t)copy, copy, &copy_length, &length));
	for (unsigned i = 0; i < rounds; i++) {
		struct world here, there;

		memset(&here, 0, sizeof(here));
		random_world(&here);
		there = here;
		run(&here, arena.code);
		run(&there, copy);
		compare(&here, &there, number);
	}
}

static void test_copies_near(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(run_cases) / sizeof(run_cases[0]); i++)
		run_copies(i, arena.copy, 500);
}

/* Beyond ±2 GiB: without a pc-relative operand by the long jump back, with one refused. */
static void test_copies_far(void **unused)
{
	uint64_t want = (uint64_t)(uintptr_t)arena.code - (16ULL << 30);
	uint8_t *far = mmap((void *)(uintptr_t)want, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	assert_ptr_not_equal(far, MAP_FAILED);
	if (llabs((long long)((uint64_t)(uintptr_t)far - (uint64_t)(uintptr_t)arena.code)) < (3LL << 30))
		skip();
	for (size_t i = 0; i < sizeof(run_cases) / sizeof(run_cases[0]); i++) {
		struct mw_insn_plan plan;
		uint8_t out[MW_OOL_MAX];
		size_t copy_length, length;
		struct mw_error *err;

		load(i, &plan);
		if (!plan.disp_offset) {
			run_copies(i, far, 50);
			continue;
		}
		err = arch->relocate(&plan, (uint64_t)(uintptr_t)far, out, &copy_length, &length);
		assert_non_null(err);
		mw_error_destroy(err);
	}
	munmap(far, 4096);
}

/* Branches through memory and returns leave by themselves: the copy goes where the original goes. */
static void test_branches_from_copies(void **unused)
{
	static const struct bytes branches[] = {BYTES("\xff\x25\xfa\x0f\x00\x00"), BYTES("\xff\xe0"), BYTES("\xff\x27"),
						BYTES("\xc3")};

	(void)unused;
	for (size_t i = 0; i < sizeof(branches) / sizeof(branches[0]); i++) {
		struct mw_insn_plan plan;
		struct world world;
		uint64_t target = native_arena_taken(&arena, branches[i].size);
		size_t copy_length, length;

		native_arena_load(&arena, (const uint8_t *)branches[i].data, branches[i].size);
		arch->plan(arena.code, MW_INSN_MAX, (uint64_t)(uintptr_t)arena.code, &plan);
		assert_true(plan.can_relocate);
		assert_null(arch->relocate(&plan, (uint64_t)(uintptr_t)arena.copy, arena.copy, &copy_length, &length));
		memset(&world, 0, sizeof(world));
		random_world(&world);
		world.state.gpr[0] = target;
		/* jmp [rip+d] and jmp [rdi] find it in the data, ret on the stack. */
		if (plan.disp_offset)
			world.state.gpr[RDI] = plan.target;
		memcpy(world.data + (world.state.gpr[RDI] - (uint64_t)(uintptr_t)arena.data), &target, 8);
		memcpy(world.stack + NATIVE_STACK_SIZE / 2, &target, 8);
		run(&world, arena.copy);
		assert_int_equal(world.state.exit, NATIVE_TAKEN);
	}
}

UNIT_GROUP(relocate_run)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_near),
		cmocka_unit_test(test_copies_far),
		cmocka_unit_test(test_branches_from_copies),
	};
	int failed;

	arch = mw_arch_find(EM_X86_64);
	if (!arch)
		return 1;
	native_arena_init(&arena);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	native_arena_deinit(&arena);
	return failed;
}
