// SPDX-License-Identifier: MIT
/* test_plan.c: bytes in, plan out; what must be refused; which bytes are a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <memwatch/arch.h>

#include "bytes.h"
#include "unit.h"

#define PC 0x7f0000001000ULL
#define E  MW_INSN_EMULATE
#define O  MW_INSN_OUT_OF_LINE
#define R  MW_INSN_REFUSE

static const struct plan_case {
	struct bytes in;
	enum mw_insn_how how;
	bool emulate, relocate;
	enum mw_insn_memory memory;
	uint64_t target; /* distance from PC, 0 for none */
} plan_cases[] = {
	/* No memory: emulated, and could run elsewhere too. */
	{BYTES("\xf3\x0f\x1e\xfa"), E, true, true, MW_MEMORY_NONE, 0}, /* endbr64 */
	{BYTES("\x90"), E, true, true, MW_MEMORY_NONE, 0},
	{BYTES("\x66\x90"), E, true, true, MW_MEMORY_NONE, 0},
	{BYTES("\x0f\x1f\x44\x00\x00"), E, true, true, MW_MEMORY_NONE, 0},
	{BYTES("\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"), E, true, true, MW_MEMORY_NONE, 0},
	{BYTES("\x48\x89\xe5"), E, true, true, MW_MEMORY_NONE, 0},                             /* mov rbp, rsp */
	{BYTES("\xb8\xff\xff\xff\xff"), E, true, true, MW_MEMORY_NONE, 0},                     /* mov eax, -1 */
	{BYTES("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08"), E, true, true, MW_MEMORY_NONE, 0}, /* movabs */
	{BYTES("\x48\x83\xec\x08"), E, true, true, MW_MEMORY_NONE, 0},                         /* sub rsp, 8 */
	{BYTES("\x48\x85\xff"), E, true, true, MW_MEMORY_NONE, 0},                             /* test rdi, rdi */
	{BYTES("\x41\xf7\xc1\xff\x0f\x00\x00"), E, true, true, MW_MEMORY_NONE, 0},             /* test r9d, 0xfff */
	{BYTES("\x48\x81\xff\x00\x04\x00\x00"), E, true, true, MW_MEMORY_NONE, 0},             /* cmp rdi, 0x400 */
	{BYTES("\x48\x8d\x47\xff"), E, true, true, MW_MEMORY_NONE, 0},                         /* lea rax, [rdi-1] */
	{BYTES("\x48\x8d\x3d\x10\x00\x00\x00"), E, true, true, MW_MEMORY_NONE, 0x17},          /* lea rdi, [rip+16] */
	{BYTES("\x48\x63\xc7"), E, true, true, MW_MEMORY_NONE, 0},                             /* movsxd rax, edi */
	{BYTES("\xff\xe0"), E, true, true, MW_MEMORY_NONE, 0},                                 /* jmp rax */
	{BYTES("\x3e\xff\xe0"), E, true, true, MW_MEMORY_NONE, 0},                             /* notrack jmp rax */
	/* Branches relative to pc: emulated only. */
	{BYTES("\xeb\x10"), E, true, false, MW_MEMORY_NONE, 0x12},
	{BYTES("\xe9\x00\x01\x00\x00"), E, true, false, MW_MEMORY_NONE, 0x105},
	{BYTES("\xf2\xe9\x00\x01\x00\x00"), E, true, false, MW_MEMORY_NONE, 0x106}, /* bnd jmp */
	{BYTES("\x74\xfe"), E, true, false, MW_MEMORY_NONE, 0},                     /* je to itself */
	{BYTES("\x2e\x74\x10"), E, true, false, MW_MEMORY_NONE, 0x13},              /* with a branch hint */
	{BYTES("\x0f\x8f\xfa\xff\xff\xff"), E, true, false, MW_MEMORY_NONE, 0},
	{BYTES("\xe8\x00\x01\x00\x00"), E, true, false, MW_MEMORY_PUSH, 0x105},
	{BYTES("\x67\xe8\x00\x01\x00\x00"), E, true, false, MW_MEMORY_PUSH, 0x106},         /* ld's padding */
	{BYTES("\x66\x66\x48\xe8\x00\x01\x00\x00"), E, true, false, MW_MEMORY_PUSH, 0x108}, /* TLS call */
	{BYTES("\xff\xd0"), E, true, false, MW_MEMORY_PUSH, 0},                             /* call rax */
	{BYTES("\x41\xff\xd3"), E, true, false, MW_MEMORY_PUSH, 0},                         /* call r11 */
	{BYTES("\x48\x2e\xff\xd0"), E, true, false, MW_MEMORY_PUSH, 0}, /* call rax, its REX prefix void */
	/* The own stack: rather as a copy, but can be emulated. */
	{BYTES("\x55"), O, true, true, MW_MEMORY_PUSH, 0},
	{BYTES("\x41\x57"), O, true, true, MW_MEMORY_PUSH, 0},
	{BYTES("\x6a\xff"), O, true, true, MW_MEMORY_PUSH, 0},
	{BYTES("\x5f"), O, true, true, MW_MEMORY_POP, 0},
	{BYTES("\xc3"), O, true, true, MW_MEMORY_POP, 0},
	{BYTES("\xc2\x08\x00"), O, true, true, MW_MEMORY_POP, 0},
	{BYTES("\x48\x8b\x44\x24\x08"), O, true, true, MW_MEMORY_LOAD, 0}, /* mov rax, [rsp+8] */
	{BYTES("\x8b\x04\x24"), O, true, true, MW_MEMORY_LOAD, 0},
	/* Data relative to pc: the same. */
	{BYTES("\x48\x8b\x05\x10\x00\x00\x00"), O, true, true, MW_MEMORY_DATA, 0x17}, /* [rip+16] */
	{BYTES("\x8a\x25\x10\x00\x00\x00"), O, true, true, MW_MEMORY_DATA, 0x16},     /* mov ah */
	{BYTES("\x66\x8b\x0d\x10\x00\x00\x00"), O, true, true, MW_MEMORY_DATA, 0x17}, /* mov cx */
	{BYTES("\x80\x3d\x10\x00\x00\x00\x05"), O, true, true, MW_MEMORY_DATA, 0x17}, /* cmp byte, imm8 */
	{BYTES("\x83\x3d\x10\x00\x00\x00\xff"), O, true, true, MW_MEMORY_DATA, 0x17}, /* cmp dword, imm8 */
	{BYTES("\x48\x81\x3d\x10\x00\x00\x00\x01\x02\x03\x04"), O, true, true, MW_MEMORY_DATA, 0x1b},
	{BYTES("\x48\x3b\x3d\x10\x00\x00\x00"), O, true, true, MW_MEMORY_DATA, 0x17},      /* cmp rdi, [rip+16] */
	{BYTES("\x39\x05\x10\x00\x00\x00"), O, true, true, MW_MEMORY_DATA, 0x16},          /* cmp [rip+16], eax */
	{BYTES("\xf6\x05\x10\x00\x00\x00\x01"), O, true, true, MW_MEMORY_DATA, 0x17},      /* test byte, imm8 */
	{BYTES("\x85\x05\x10\x00\x00\x00"), O, true, true, MW_MEMORY_DATA, 0x16},          /* test */
	{BYTES("\x64\x48\x8b\x05\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x18}, /* fs: */
	{BYTES("\x48\x89\x05\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x17},     /* mov [rip+16], rax */
	{BYTES("\x48\x03\x05\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x17},     /* add rax, [rip+16] */
	/* Other memory, and whatever emulation does not know: as a copy. */
	{BYTES("\x48\x8b\x07"), O, false, true, MW_MEMORY_NONE, 0},                         /* mov rax, [rdi] */
	{BYTES("\x48\x8b\x45\xf8"), O, false, true, MW_MEMORY_NONE, 0},                     /* mov rax, [rbp-8] */
	{BYTES("\x67\x48\x8b\x04\x24"), O, false, true, MW_MEMORY_NONE, 0},                 /* mov rax, [esp] */
	{BYTES("\x64\x48\x8b\x04\x24"), O, false, true, MW_MEMORY_NONE, 0},                 /* fs:[rsp] */
	{BYTES("\x64\x48\x8b\x04\x25\x28\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0}, /* fs:[0x28] */
	{BYTES("\xc7\x05\x10\x00\x00\x00\x01\x02\x03\x04"), O, false, true, MW_MEMORY_NONE, 0x1a}, /* mov imm32 */
	{BYTES("\xf0\x0f\xb1\x0d\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x18},         /* lock cmpxchg */
	{BYTES("\xff\x25\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x16},                 /* jmp [rip+16] */
	{BYTES("\xf2\xff\x25\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x17},             /* bnd jmp */
	{BYTES("\xff\x35\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x16},                 /* push [rip+16] */
	{BYTES("\x66\x0f\x6f\x05\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x18},         /* movdqa */
	{BYTES("\xc5\xfd\x6f\x05\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x18},         /* vmovdqa */
	{BYTES("\x62\xf1\xfd\x48\x6f\x05\x10\x00\x00\x00"), O, false, true, MW_MEMORY_NONE, 0x1a}, /* EVEX */
	{BYTES("\x66\x0f\x3a\x0f\x05\x10\x00\x00\x00\x05"), O, false, true, MW_MEMORY_NONE, 0x1a}, /* palignr */
	{BYTES("\xf3\x48\xab"), O, false, true, MW_MEMORY_NONE, 0},                                /* rep stosq */
	{BYTES("\xc9"), O, false, true, MW_MEMORY_NONE, 0},                                        /* leave */
	{BYTES("\x66\x50"), O, false, true, MW_MEMORY_NONE, 0},                                    /* push ax */
	{BYTES("\xf3\x90"), O, false, true, MW_MEMORY_NONE, 0},                                    /* pause */
	{BYTES("\x87\xc0"), O, false, true, MW_MEMORY_NONE, 0},                                    /* xchg eax, eax */
	{BYTES("\x41\x90"), O, false, true, MW_MEMORY_NONE, 0},                                    /* xchg eax, r8d */
	{BYTES("\x48\xc1\xe0\x04"), O, false, true, MW_MEMORY_NONE, 0},                            /* shl rax, 4 */
	{BYTES("\xf3\x48\x0f\xb8\xc7"), O, false, true, MW_MEMORY_NONE, 0},                        /* popcnt */
	/* Neither. */
	{BYTES("\xff\x15\x10\x00\x00\x00"), R, false, false, MW_MEMORY_NONE, 0x16}, /* call [rip+16] */
	{BYTES("\xff\x50\x08"), R, false, false, MW_MEMORY_NONE, 0},                /* call [rax+8] */
	{BYTES("\xff\x18"), R, false, false, MW_MEMORY_NONE, 0},                    /* far call */
	{BYTES("\x48\xff\x5c\x24\x08"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\xff\x28"), R, false, false, MW_MEMORY_NONE, 0}, /* far jmp */
	{BYTES("\x48\xff\x2d\x10\x00\x00\x00"), R, false, false, MW_MEMORY_NONE, 0x17},
	{BYTES("\x41\xff\x6c\x24\x08"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\xcb"), R, false, false, MW_MEMORY_NONE, 0}, /* far ret */
	{BYTES("\x48\xca\x08\x00"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\x0f\x05"), R, false, false, MW_MEMORY_NONE, 0}, /* syscall */
	{BYTES("\x0f\x34"), R, false, false, MW_MEMORY_NONE, 0}, /* sysenter */
	{BYTES("\xcc"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\xcd\x80"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\xf1"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\x0f\x0b"), R, false, false, MW_MEMORY_NONE, 0},     /* ud2 */
	{BYTES("\xf3\x0f\x09"), R, false, false, MW_MEMORY_NONE, 0}, /* wbnoinvd */
	{BYTES("\xf4"), R, false, false, MW_MEMORY_NONE, 0},
	{BYTES("\x48\xcf"), R, false, false, MW_MEMORY_NONE, 0},    /* iretq */
	{BYTES("\xe2\x10"), R, false, false, MW_MEMORY_NONE, 0x12}, /* loop */
	{BYTES("\xe3\x10"), R, false, false, MW_MEMORY_NONE, 0x12}, /* jrcxz */
	{BYTES("\x67\xe3\x10"), R, false, false, MW_MEMORY_NONE, 0x13},
	{BYTES("\xc7\xf8\x00\x01\x00\x00"), R, false, false, MW_MEMORY_NONE, 0x106}, /* xbegin */
	{BYTES("\x67\x8d\x05\x01\x00\x00\x00"), R, false, false, MW_MEMORY_NONE, 0}, /* lea eax, [eip+1] */
	{BYTES("\x0f\x01\xd7"), R, false, false, MW_MEMORY_NONE, 0},                 /* enclu */
	{BYTES("\x0f\x20\xc0"), R, false, false, MW_MEMORY_NONE, 0},                 /* mov rax, cr0 */
};

static const struct mw_arch *arch;

static void describe(const struct plan_case *c, const struct mw_insn_plan *plan)
{
	print_message("bytes:");
	for (uint8_t i = 0; i < c->in.size; i++)
		print_message(" %02x", (uint8_t)c->in.data[i]);
	print_message(" -> how %d emulate %d relocate %d memory %d length %u target +%llx (%s)\n", (int)plan->how,
		      plan->can_emulate, plan->can_relocate, (int)plan->memory, plan->length,
		      (unsigned long long)(plan->target - PC), plan->why ? plan->why : "-");
}

static void test_plan(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(plan_cases) / sizeof(plan_cases[0]); i++) {
		const struct plan_case *c = &plan_cases[i];
		uint8_t bytes[MW_INSN_MAX];
		struct mw_insn_plan plan;

		memset(bytes, 0x90, sizeof(bytes));
		memcpy(bytes, c->in.data, c->in.size);
		arch->plan(bytes, sizeof(bytes), PC, &plan);
		if (plan.how != c->how || plan.can_emulate != c->emulate || plan.can_relocate != c->relocate ||
		    plan.memory != c->memory || plan.length != c->in.size || plan.pc != PC ||
		    memcmp(plan.bytes, c->in.data, c->in.size) != 0 || !plan.why != c->relocate ||
		    (c->target && plan.target != PC + c->target)) {
			describe(c, &plan);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* Every prefix of every instruction in the table is refused or a shorter instruction, never read beyond. */
static void test_plan_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plan_cases) / sizeof(plan_cases[0]); i++) {
		for (size_t size = 0; size < plan_cases[i].in.size; size++) {
			uint8_t *exact = test_malloc(size + 1); /* cmocka guards the end of it */
			struct mw_insn_plan plan;

			memcpy(exact, plan_cases[i].in.data, size);
			arch->plan(exact, size, PC, &plan);
			assert_true(plan.length <= size);
			if (plan.length == 0) {
				assert_int_equal(plan.how, MW_INSN_REFUSE);
				assert_non_null(plan.why);
			}
			test_free(exact);
		}
	}
}

static void test_plan_undecodable(void **state)
{
	static const uint8_t bad[][MW_INSN_MAX] = {
		{0x06},                               /* push es: not in 64-bit mode */
		{0xd6},                               /* salc */
		{0x0f, 0x04},                         /* no such opcode */
		{0x63, 0xc7},                         /* movsxd eax, edi: a mov */
		{0x66, 0x63, 0xc7},                   /* movsxd ax, edi */
		{0x66, 0xe8, 0x00, 0x00, 0x90, 0x90}, /* 4 bytes for AMD, 6 for Intel */
		{0x66, 0xe9, 0x00, 0x00, 0x90, 0x90},
		{0x66, 0x0f, 0x84, 0x00, 0x00, 0x90, 0x90},
		{0x66, 0x41, 0xe8, 0x00, 0x00, 0x90, 0x90},
		{0x0f, 0xb9, 0xc0}, /* ud1, ud0 */
		{0x0f, 0xff, 0xc0},
		{0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, /* longer than 15 bytes */
		 0x66, 0x66, 0x66, 0x66, 0x66, 0x90},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mw_insn_plan plan;

		arch->plan(bad[i], sizeof(bad[i]), PC, &plan);
		assert_int_equal(plan.how, MW_INSN_REFUSE);
		assert_int_equal(plan.length, 0);
		assert_false(plan.can_emulate);
		assert_false(plan.can_relocate);
		assert_non_null(plan.why);
	}
}

static const struct {
	struct bytes in;
	bool call;
} call_cases[] = {
	{BYTES("\xe8\x01\x02\x03\x04"), true},
	{BYTES("\xff\xd0"), true},                          /* call rax */
	{BYTES("\x41\xff\xd3"), true},                      /* call r11 */
	{BYTES("\xff\x10"), true},                          /* call [rax] */
	{BYTES("\xff\x14\x24"), true},                      /* call [rsp] */
	{BYTES("\xff\x50\x08"), true},                      /* call [rax+8] */
	{BYTES("\x41\xff\x52\x08"), true},                  /* call [r10+8] */
	{BYTES("\xff\x54\x24\x08"), true},                  /* call [rsp+8] */
	{BYTES("\xff\x15\x01\x02\x03\x04"), true},          /* call [rip+d] */
	{BYTES("\xff\x90\x01\x02\x03\x04"), true},          /* call [rax+d32] */
	{BYTES("\xff\x14\xc5\x01\x02\x03\x04"), true},      /* call [rax*8+d32] */
	{BYTES("\xff\x94\x24\x01\x02\x03\x04"), true},      /* call [rsp+d32] */
	{BYTES("\x42\xff\x94\xe0\x01\x02\x03\x04"), true},  /* call [rax+r12*8+d32] */
	{BYTES("\x66\x48\xe8\x01\x02\x03\x04"), true},      /* call with padding */
	{BYTES("\x90\x90\x90\x90\x90\x90\x90\x90"), false}, /* nops */
	{BYTES("\xff\xe0"), false},                         /* jmp rax */
	{BYTES("\xff\x25\x01\x02\x03\x04"), false},         /* jmp [rip+d] */
	{BYTES("\xe9\x01\x02\x03\x04"), false},             /* jmp */
	{BYTES("\xe8\x01\x02\x03"), false},                 /* cut short */
	{BYTES("\xff\x14"), false},                         /* its index byte is missing */
	{BYTES("\xff\x14\x25\x01\x02"), false},
	{BYTES("\xd0"), false},
	{BYTES(""), false},
};

static void test_is_call_before(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(call_cases) / sizeof(call_cases[0]); i++) {
		const struct bytes *in = &call_cases[i].in;

		if (arch->is_call_before((const uint8_t *)in->data, in->size) != call_cases[i].call)
			fail_msg("call case %zu", i);
	}
}

static void test_vtable(void **state)
{
	struct mw_regs regs = {.gpr = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109}};

	(void)state;
	assert_null(mw_arch_find(EM_NONE));
	assert_string_equal(arch->name, "x86_64");
	assert_int_equal(arch->elf_machine, EM_X86_64);
	assert_int_equal(arch->breakpoint[0], 0xcc);
	assert_int_equal(arch->breakpoint_length, 1);
	assert_int_equal(arch->breakpoint_advance, 1);
	assert_int_equal(regs.gpr[arch->dwarf_sp], 107);
	assert_int_equal(regs.gpr[arch->dwarf_fp], 106);
	assert_int_equal(arch->argument(&regs, 0), 105); /* rdi */
	assert_int_equal(arch->argument(&regs, 1), 104); /* rsi */
	assert_int_equal(arch->argument(&regs, 2), 101); /* rdx */
	assert_int_equal(arch->argument(&regs, 3), 102); /* rcx */
	assert_int_equal(arch->argument(&regs, 4), 108);
	assert_int_equal(arch->argument(&regs, 5), 109);
	assert_int_equal(arch->argument(&regs, 6), 0);
	assert_int_equal(arch->result(&regs), 100);
}

UNIT_GROUP(plan)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_plan_cut_short),
		cmocka_unit_test(test_plan_undecodable),
		cmocka_unit_test(test_is_call_before),
		cmocka_unit_test(test_vtable),
	};

	arch = mw_arch_find(EM_X86_64);
	return arch ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
