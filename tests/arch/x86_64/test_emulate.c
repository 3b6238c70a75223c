// SPDX-License-Identifier: MIT
/* test_emulate.c: emulation against the processor, over all encodings of what is emulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#include "bytes.h"
#include "native.h"
#include "unit.h"

#define RSP        7
#define ARITHMETIC 0x8d5ULL
#define AF         0x10ULL

static const struct mw_arch *arch;
static struct native_arena arena;
static unsigned long compared;

static void fail_on(const struct mw_insn_plan *plan, const char *what, uint64_t want, uint64_t got)
{
	print_message("bytes:");
	for (uint8_t i = 0; i < plan->length; i++)
		print_message(" %02x", plan->bytes[i]);
	fail_msg(": %s is %llx on the processor, %llx emulated", what, (unsigned long long)want,
		 (unsigned long long)got);
}

static void random_state(struct native_state *state)
{
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		state->gpr[i] = native_random();
	state->gpr[RSP] = (uint64_t)(uintptr_t)arena.stack + NATIVE_STACK_SIZE / 2 + native_random() % 4 * 8;
	state->flags = 0x202 | (native_random() & ARITHMETIC);
	for (unsigned i = 0; i < NATIVE_STACK_SIZE; i += 8) {
		uint64_t word = native_random();

		memcpy(arena.stack + i, &word, sizeof(word));
	}
}

static void compare(const struct mw_insn_plan *plan, const struct native_state *native, const struct mw_regs *regs,
		    uint64_t undefined)
{
	uint64_t pc = native->exit == NATIVE_TAKEN ? native_arena_taken(&arena, plan->length) : plan->pc + plan->length;
	static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

	for (unsigned i = 0; i < MW_REG_COUNT; i++) {
		if (native->gpr[i] != regs->gpr[i])
			fail_on(plan, names[i], native->gpr[i], regs->gpr[i]);
	}
	if ((native->flags ^ regs->flags) & ~undefined)
		fail_on(plan, "flags", native->flags, regs->flags);
	if (pc != regs->pc)
		fail_on(plan, "pc", pc, regs->pc);
	compared++;
}

/* Emulate on a register set and on a copy of the stack, run for real, compare all. */
static void run_both(const struct mw_insn_plan *plan, const struct native_state *start, uint64_t undefined)
{
	struct native_state native = *start;
	struct mw_regs regs = {.flags = start->flags, .pc = plan->pc, .syscall = 7, .thread_pointer = 8};
	uint8_t stack[NATIVE_STACK_SIZE];
	uint64_t word = 0x5a5a5a5a5a5a5a5a;
	mw_addr at = 0;
	size_t offset = 0;

	memcpy(regs.gpr, start->gpr, sizeof(regs.gpr));
	memcpy(stack, arena.stack, sizeof(stack));
	if (plan->memory == MW_MEMORY_DATA) {
		memcpy(&word, (const void *)(uintptr_t)arch->memory_address(plan, &regs), plan->width);
	} else if (plan->memory != MW_MEMORY_NONE) {
		at = arch->memory_address(plan, &regs);
		offset = at - (uint64_t)(uintptr_t)arena.stack;
		assert_true(offset <= sizeof(stack) - 8);
		if (plan->memory != MW_MEMORY_PUSH)
			memcpy(&word, stack + offset, sizeof(word));
	}
	arch->emulate(plan, &regs, &word);
	if (plan->memory == MW_MEMORY_PUSH)
		memcpy(stack + offset, &word, sizeof(word));
	native_run(&native, arena.code);
	compare(plan, &native, &regs, undefined);
	if (memcmp(stack, arena.stack, sizeof(stack)) != 0)
		fail_on(plan, "stack", 0, 0);
	assert_int_equal(regs.syscall, 7);
	assert_int_equal(regs.thread_pointer, 8);
}

static void plan_here(const uint8_t *bytes, size_t size, struct mw_insn_plan *plan)
{
	native_arena_load(&arena, bytes, size);
	arch->plan(arena.code, MW_INSN_MAX, (uint64_t)(uintptr_t)arena.code, plan);
}

/* Opcodes with a ModRM byte that names registers only. */
static const struct form {
	uint8_t opcode[2]; /* {0x0f, x} or {x} */
	int8_t extension;  /* the ModRM reg field, or -1 for any */
	uint8_t imm;       /* bytes; 4 is 2 under a 66 prefix */
	bool af_undefined;
} forms[] = {
	{{0x00}, -1, 0, false},       {{0x01}, -1, 0, false},       {{0x02}, -1, 0, false},
	{{0x03}, -1, 0, false}, /* add */
	{{0x08}, -1, 0, true},        {{0x09}, -1, 0, true},        {{0x0a}, -1, 0, true},
	{{0x0b}, -1, 0, true}, /* or */
	{{0x20}, -1, 0, true},        {{0x21}, -1, 0, true},        {{0x22}, -1, 0, true},
	{{0x23}, -1, 0, true}, /* and */
	{{0x28}, -1, 0, false},       {{0x29}, -1, 0, false},       {{0x2a}, -1, 0, false},
	{{0x2b}, -1, 0, false}, /* sub */
	{{0x30}, -1, 0, true},        {{0x31}, -1, 0, true},        {{0x32}, -1, 0, true},
	{{0x33}, -1, 0, true}, /* xor */
	{{0x38}, -1, 0, false},       {{0x39}, -1, 0, false},       {{0x3a}, -1, 0, false},
	{{0x3b}, -1, 0, false}, /* cmp */
	{{0x80}, 0, 1, false},        {{0x80}, 1, 1, true},         {{0x80}, 4, 1, true},
	{{0x80}, 5, 1, false},        {{0x80}, 6, 1, true},         {{0x80}, 7, 1, false},
	{{0x81}, 0, 4, false},        {{0x81}, 1, 4, true},         {{0x81}, 4, 4, true},
	{{0x81}, 5, 4, false},        {{0x81}, 6, 4, true},         {{0x81}, 7, 4, false},
	{{0x83}, 0, 1, false},        {{0x83}, 1, 1, true},         {{0x83}, 4, 1, true},
	{{0x83}, 5, 1, false},        {{0x83}, 6, 1, true},         {{0x83}, 7, 1, false},
	{{0x84}, -1, 0, true},        {{0x85}, -1, 0, true}, /* test */
	{{0xf6}, 0, 1, true},         {{0xf7}, 0, 4, true},         {{0x88}, -1, 0, false},
	{{0x89}, -1, 0, false}, /* mov */
	{{0x8a}, -1, 0, false},       {{0x8b}, -1, 0, false},       {{0xc6}, 0, 1, false},
	{{0xc7}, 0, 4, false},        {{0xfe}, 0, 0, false},        {{0xfe}, 1, 0, false},
	{{0xff}, 0, 0, false},        {{0xff}, 1, 0, false}, /* inc, dec */
	{{0x63}, -1, 0, false},       {{0x0f, 0xb6}, -1, 0, false}, {{0x0f, 0xb7}, -1, 0, false},
	{{0x0f, 0xbe}, -1, 0, false}, {{0x0f, 0xbf}, -1, 0, false}, /* movsxd, movzx, movsx */
	{{0x0f, 0x40}, -1, 0, false}, {{0x0f, 0x41}, -1, 0, false}, {{0x0f, 0x42}, -1, 0, false}, /* cmovcc */
	{{0x0f, 0x43}, -1, 0, false}, {{0x0f, 0x44}, -1, 0, false}, {{0x0f, 0x45}, -1, 0, false},
	{{0x0f, 0x46}, -1, 0, false}, {{0x0f, 0x47}, -1, 0, false}, {{0x0f, 0x48}, -1, 0, false},
	{{0x0f, 0x49}, -1, 0, false}, {{0x0f, 0x4a}, -1, 0, false}, {{0x0f, 0x4b}, -1, 0, false},
	{{0x0f, 0x4c}, -1, 0, false}, {{0x0f, 0x4d}, -1, 0, false}, {{0x0f, 0x4e}, -1, 0, false},
	{{0x0f, 0x4f}, -1, 0, false}, {{0x0f, 0x90}, 0, 0, false},  {{0x0f, 0x91}, 0, 0, false}, /* setcc */
	{{0x0f, 0x92}, 0, 0, false},  {{0x0f, 0x93}, 0, 0, false},  {{0x0f, 0x94}, 0, 0, false},
	{{0x0f, 0x95}, 0, 0, false},  {{0x0f, 0x96}, 0, 0, false},  {{0x0f, 0x97}, 0, 0, false},
	{{0x0f, 0x98}, 0, 0, false},  {{0x0f, 0x99}, 0, 0, false},  {{0x0f, 0x9a}, 0, 0, false},
	{{0x0f, 0x9b}, 0, 0, false},  {{0x0f, 0x9c}, 0, 0, false},  {{0x0f, 0x9d}, 0, 0, false},
	{{0x0f, 0x9e}, 0, 0, false},  {{0x0f, 0x9f}, 0, 0, false},
};

/* An optional prefix (66) and REX byte (0 for none): all 34 combinations by number. */
static size_t put_prefixes(uint8_t *bytes, unsigned number, bool *opsize, uint8_t *rex)
{
	size_t size = 0;

	*opsize = number % 2;
	*rex = number / 2 ? (uint8_t)(0x40 + number / 2 - 1) : 0;
	if (*opsize)
		bytes[size++] = 0x66;
	if (*rex)
		bytes[size++] = *rex;
	return size;
}

static void run_form(const struct form *form, unsigned prefixes, uint8_t modrm)
{
	uint8_t bytes[MW_INSN_MAX] = {0}, rex, imm_size = form->imm;
	uint64_t imm = native_random();
	struct mw_insn_plan plan;
	bool opsize;
	size_t size = put_prefixes(bytes, prefixes, &opsize, &rex);

	bytes[size++] = form->opcode[0];
	if (form->opcode[0] == 0x0f)
		bytes[size++] = form->opcode[1];
	bytes[size++] = modrm;
	if (imm_size == 4 && opsize && !(rex & 8))
		imm_size = 2;
	memcpy(bytes + size, &imm, imm_size);
	size += imm_size;
	plan_here(bytes, size, &plan);
	assert_int_equal(plan.pc, (uint64_t)(uintptr_t)arena.code);
	/* movsxd without REX.W is a mov that no compiler makes: not read at all. */
	if (form->opcode[0] == 0x63 && !(rex & 8)) {
		assert_int_equal(plan.length, 0);
		return;
	}
	if (plan.length != size)
		fail_on(&plan, "length", size, plan.length);
	if (plan.how != MW_INSN_EMULATE || plan.memory != MW_MEMORY_NONE)
		fail_on(&plan, "how", MW_INSN_EMULATE, plan.how);
	for (unsigned i = 0; i < 4; i++) {
		struct native_state state;

		random_state(&state);
		run_both(&plan, &state, form->af_undefined ? AF : 0);
	}
}

static void test_register_forms(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct form *form = &forms[i];

		for (unsigned prefixes = 0; prefixes < 34; prefixes++) {
			for (unsigned modrm = 0xc0; modrm <= 0xff; modrm++) {
				if (form->extension < 0 || (modrm >> 3 & 7) == (unsigned)form->extension)
					run_form(form, prefixes, (uint8_t)modrm);
			}
		}
	}
	print_message("%lu runs compared\n", compared);
}

static void run_bytes(const uint8_t *bytes, size_t size, enum mw_insn_memory memory, int branch_register, bool to_taken,
		      uint64_t undefined)
{
	struct mw_insn_plan plan;

	plan_here(bytes, size, &plan);
	if (plan.length != size || !plan.can_emulate || plan.memory != memory)
		fail_on(&plan, "plan", size, plan.length);
	for (unsigned i = 0; i < 200; i++) {
		struct native_state state;

		random_state(&state);
		if (branch_register >= 0)
			state.gpr[branch_register] = native_arena_taken(&arena, size);
		if (to_taken) {
			uint64_t target = native_arena_taken(&arena, size);

			memcpy((void *)(uintptr_t)state.gpr[RSP], &target, sizeof(target));
		}
		run_both(&plan, &state, undefined);
	}
}

static const struct single {
	struct bytes in;
	enum mw_insn_memory memory;
	int branch_register; /* holds the branch target, or -1 */
	bool returns;        /* the stack's top does */
	bool af_undefined;
} singles[] = {
	{BYTES("\xf3\x0f\x1e\xfa"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x90"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\x90"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x0f\x1f\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x0f\x1f\x40\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x0f\x1f\x44\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\x0f\x1f\x44\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x0f\x1f\x80\x00\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x0f\x1f\x84\x00\x00\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\x98"), MW_MEMORY_NONE, -1, false, false}, /* cbw, cwde, cdqe */
	{BYTES("\x98"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x98"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\x99"), MW_MEMORY_NONE, -1, false, false}, /* cwd, cdq, cqo */
	{BYTES("\x99"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x99"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x04\x80"), MW_MEMORY_NONE, -1, false, false}, /* the accumulator's short forms */
	{BYTES("\x66\x05\xff\x7f"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x05\xff\xff\xff\x7f"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x05\x00\x00\x00\x80"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x25\x00\x00\x00\x80"), MW_MEMORY_NONE, -1, false, true},
	{BYTES("\x48\x2d\x00\x00\x00\x80"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x3d\x01\xf0\xff\xff"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\xa8\x80"), MW_MEMORY_NONE, -1, false, true},
	{BYTES("\x48\xa9\x00\x00\x00\x80"), MW_MEMORY_NONE, -1, false, true},
	{BYTES("\xb4\x81"), MW_MEMORY_NONE, -1, false, false}, /* mov with an immediate */
	{BYTES("\x40\xb6\x81"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x66\xb8\xff\xff"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x41\xbf\xff\xff\xff\xff"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x49\xbc\x01\x02\x03\x04\x05\x06\x07\x88"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\xeb\x40"), MW_MEMORY_NONE, -1, false, false}, /* branches */
	{BYTES("\xe9\x40\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\xf2\xe9\x40\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x2e\x74\x40"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\xff\xe0"), MW_MEMORY_NONE, 0, false, false},
	{BYTES("\x41\xff\xe7"), MW_MEMORY_NONE, 15, false, false},
	{BYTES("\x3e\xff\xe2"), MW_MEMORY_NONE, 1, false, false},
	{BYTES("\xe8\x40\x00\x00\x00"), MW_MEMORY_PUSH, -1, false, false},
	{BYTES("\x67\xe8\x40\x00\x00\x00"), MW_MEMORY_PUSH, -1, false, false},
	{BYTES("\x66\x66\x48\xe8\x40\x00\x00\x00"), MW_MEMORY_PUSH, -1, false, false},
	{BYTES("\xff\xd0"), MW_MEMORY_PUSH, 0, false, false},
	{BYTES("\x41\xff\xd3"), MW_MEMORY_PUSH, 11, false, false},
	{BYTES("\xc3"), MW_MEMORY_POP, -1, true, false},
	{BYTES("\xf3\xc3"), MW_MEMORY_POP, -1, true, false},
	{BYTES("\xf2\xc3"), MW_MEMORY_POP, -1, true, false},
	{BYTES("\xc2\x18\x00"), MW_MEMORY_POP, -1, true, false},
	{BYTES("\xc2\x00\xff"), MW_MEMORY_POP, -1, true, false},
	{BYTES("\x6a\x80"), MW_MEMORY_PUSH, -1, false, false}, /* push and pop */
	{BYTES("\x6a\x7f"), MW_MEMORY_PUSH, -1, false, false},
	{BYTES("\x68\x00\x00\x00\x80"), MW_MEMORY_PUSH, -1, false, false},
	{BYTES("\xff\xf3"), MW_MEMORY_PUSH, -1, false, false},
	{BYTES("\x8f\xc3"), MW_MEMORY_POP, -1, false, false},
	{BYTES("\x48\x8b\x04\x24"), MW_MEMORY_LOAD, -1, false, false}, /* loads from the stack */
	{BYTES("\x48\x8b\x44\x24\x08"), MW_MEMORY_LOAD, -1, false, false},
	{BYTES("\x8b\x44\x24\xf0"), MW_MEMORY_LOAD, -1, false, false},
	{BYTES("\x4c\x8b\xbc\x24\x40\x00\x00\x00"), MW_MEMORY_LOAD, -1, false, false},
	{BYTES("\x44\x8b\x7c\x24\x04"), MW_MEMORY_LOAD, -1, false, false},
	{BYTES("\x48\x8b\x64\x24\x08"), MW_MEMORY_LOAD, -1, false, false}, /* into rsp itself */
	{BYTES("\x48\x8d\x74\x26\x00"), MW_MEMORY_NONE, -1, false, false}, /* lea with a void index */
	{BYTES("\x48\x8d\x05\x10\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x8d\x3d\xf0\xff\xff\xff"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x8d\x05\x10\x00\x00\x00"), MW_MEMORY_NONE, -1, false, false},
	{BYTES("\x48\x8b\x05\x00\x00\x00\x00"), MW_MEMORY_DATA, -1, false, false}, /* data relative to pc */
	{BYTES("\x4c\x8b\x3d\xf9\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x8b\x2d\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x66\x8b\x0d\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x8a\x25\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false}, /* ah */
	{BYTES("\x40\x8a\x35\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x80\x3d\xf9\xff\xff\xff\x80"), MW_MEMORY_DATA, -1, false, false}, /* its own first byte: equal */
	{BYTES("\x80\x3d\xfa\xff\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x83\x3d\xf9\xff\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x66\x83\x3d\xf9\xff\xff\xff\x7f"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x48\x83\x3d\xf8\xff\xff\xff\x00"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x66\x81\x3d\xf7\xff\xff\xff\x66\x81"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x48\x81\x3d\xf5\xff\xff\xff\x00\x00\x00\x80"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x48\x3b\x3d\xf9\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x3a\x25\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x39\x05\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\x4c\x39\x2d\xf9\xff\xff\xff"), MW_MEMORY_DATA, -1, false, false},
	{BYTES("\xf6\x05\xf9\xff\xff\xff\x01"), MW_MEMORY_DATA, -1, false, true},
	{BYTES("\x48\xf7\x05\xf5\xff\xff\xff\x00\x00\x00\x80"), MW_MEMORY_DATA, -1, false, true},
	{BYTES("\x84\x25\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, true},
	{BYTES("\x85\x05\xfa\xff\xff\xff"), MW_MEMORY_DATA, -1, false, true},
};

static void test_single_instructions(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++) {
		const struct single *s = &singles[i];

		run_bytes((const uint8_t *)s->in.data, s->in.size, s->memory, s->branch_register, s->returns,
			  s->af_undefined ? AF : 0);
	}
}

/* push and pop of all sixteen registers, rsp too, and every jcc in both lengths. */
static void test_numbered_instructions(void **unused)
{
	(void)unused;
	for (uint8_t reg = 0; reg < 16; reg++) {
		uint8_t push[] = {(uint8_t)(0x40 | reg >> 3), (uint8_t)(0x50 | (reg & 7))};
		uint8_t pop[] = {(uint8_t)(0x40 | reg >> 3), (uint8_t)(0x58 | (reg & 7))};

		run_bytes(push, sizeof(push), MW_MEMORY_PUSH, -1, false, 0);
		run_bytes(pop, sizeof(pop), MW_MEMORY_POP, -1, false, 0);
	}
	for (uint8_t cc = 0; cc < 16; cc++) {
		uint8_t near_jump[] = {0x0f, (uint8_t)(0x80 | cc), NATIVE_TAKEN_DISP, 0, 0, 0};
		uint8_t short_jump[] = {(uint8_t)(0x70 | cc), NATIVE_TAKEN_DISP};

		run_bytes(near_jump, sizeof(near_jump), MW_MEMORY_NONE, -1, false, 0);
		run_bytes(short_jump, sizeof(short_jump), MW_MEMORY_NONE, -1, false, 0);
	}
}

/* lea in every addressing form: all ModRM bytes of memory, all index bytes, random displacements. */
static void test_lea_forms(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 60000; i++) {
		uint8_t bytes[MW_INSN_MAX], rex;
		uint64_t tail = native_random();
		struct native_state state;
		struct mw_insn_plan plan;
		bool opsize;
		size_t size = put_prefixes(bytes, (unsigned)(native_random() % 34), &opsize, &rex);

		bytes[size++] = 0x8d;
		bytes[size++] = (uint8_t)(i % 0xc0);
		memcpy(bytes + size, &tail, 5);
		memset(bytes + size + 5, 0x90, sizeof(bytes) - size - 5);
		arch->plan(bytes, sizeof(bytes), (uint64_t)(uintptr_t)arena.code, &plan);
		assert_int_equal(plan.how, MW_INSN_EMULATE);
		plan_here(bytes, plan.length, &plan);
		random_state(&state);
		run_both(&plan, &state, 0);
	}
}

UNIT_GROUP(emulate)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single_instructions),
		cmocka_unit_test(test_numbered_instructions),
		cmocka_unit_test(test_lea_forms),
		cmocka_unit_test(test_register_forms),
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
