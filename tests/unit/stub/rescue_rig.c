// SPDX-License-Identifier: MIT
/* rescue_rig.c: see rescue_rig.h. */
#include "rescue_rig.h"

#include "arch/x86_64/x86_64.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESTORER UINT64_C(0x04000000)

const struct rig_function rig_functions[] = {
	{"push rbp", {0x55, 0x48, 0x8d, 0x04, 0x37, 0x5d, 0xc3}, false},
	{"push r12", {0x41, 0x54, 0x48, 0x8d, 0x04, 0x37, 0x41, 0x5c, 0xc3}, false},
	{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"sub rsp", {0x48, 0x83, 0xec, 0x18, 0x48, 0x8d, 0x04, 0x37, 0x48, 0x8d, 0x64, 0x24, 0x18, 0xc3}, false},
	{"mov", {0x48, 0x89, 0xf8, 0x48, 0x8d, 0x04, 0x30, 0xc3}, false},
	{"mov32", {0x89, 0xf9, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"lea", {0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"nop", {0x90, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	/* test rdi, rdi; je 1f; lea; ret; 1: mov rax, rsi; ret */
	{"test", {0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8d, 0x04, 0x37, 0xc3, 0x48, 0x89, 0xf0, 0xc3}, false},
	/* jc 1f; lea; ret; 1: lea; ret */
	{"jc", {0x72, 0x05, 0x48, 0x8d, 0x04, 0x37, 0xc3, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"cmp", {0x48, 0x39, 0xf7, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	/* jmp 1f; 1: lea; ret */
	{"jmp", {0xeb, 0x00, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"load", {0x48, 0x8b, 0x0c, 0x24, 0x48, 0x8d, 0x04, 0x37, 0xc3}, false},
	{"in a slot", {0x48, 0x8d, 0x04, 0x37, 0xc3}, true},
	{"push in a slot", {0x55, 0x48, 0x8d, 0x04, 0x37, 0x5d, 0xc3}, true},
	/* bt rdi, 3; lea; ret: no emulation knows it */
	{"bt", {0x48, 0x0f, 0xba, 0xe7, 0x03, 0x48, 0x8d, 0x04, 0x37, 0xc3}, true},
};

const size_t rig_function_count = COUNT(rig_functions);

struct rig rig;

static size_t rig_data_size(void)
{
	return sizeof(struct mw_rescue);
}

const struct mw_rescue_header *rig_header(void)
{
	return (const struct mw_rescue_header *)(const void *)mw_rescue_image;
}

void rig_action(const struct mw_rescue_action *set, struct mw_rescue_action *old)
{
	assert_int_equal(syscall(SYS_rt_sigaction, SIGTRAP, set, old, MASK_SIZE), 0);
}

/* SIGTRAP goes to the rescue; the program's own action is that which is set now. */
void rig_lead_here(void)
{
	struct mw_rescue_action here = {
		.handler = (uint64_t)(uintptr_t)rig.base + rig_header()->handler,
		.flags = SA_SIGINFO | SA_NODEFER | RESTORER | SA_RESTART | SA_ONSTACK,
		.restorer = (uint64_t)(uintptr_t)rig.base + rig_header()->restorer,
	};

	rig_action(&here, &rig.rescue->own[rig.rescue->own_at % 2]);
	rig.rescue->led = 1;
	rig.rescue->pid = (uint32_t)getpid();
}

int rig_setup(void **state)
{
	(void)state;
	rig.base = mmap(NULL, MW_RESCUE_CODE + rig_data_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	rig.code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(rig.base, MAP_FAILED);
	assert_ptr_not_equal(rig.code, MAP_FAILED);
	assert_true(mw_rescue_image_size <= MW_RESCUE_CODE);
	memcpy(rig.base, mw_rescue_image, mw_rescue_image_size);
	assert_int_equal(mprotect(rig.base, MW_RESCUE_CODE, PROT_READ | PROT_EXEC), 0);
	rig.rescue = (struct mw_rescue *)(void *)(rig.base + MW_RESCUE_CODE);
	for (size_t i = 0; i < COUNT(rig_functions); i++)
		memcpy(rig.code + i * STEP, rig_functions[i].bytes, sizeof(rig_functions[i].bytes));
	assert_int_equal(mprotect(rig.code, CODE_SIZE, PROT_READ | PROT_EXEC), 0);
	rig_action(NULL, &rig.program);
	rig_lead_here();
	return 0;
}

int rig_teardown(void **state)
{
	(void)state;
	assert_int_equal(rig.rescue->inside, 0);
	rig_action(&rig.program, NULL);
	assert_int_equal(munmap(rig.base, MW_RESCUE_CODE + rig_data_size()), 0);
	assert_int_equal(munmap(rig.code, CODE_SIZE), 0);
	return 0;
}

void rig_write_code(size_t at, const uint8_t *bytes, size_t size)
{
	assert_int_equal(mprotect(rig.code, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(rig.code + at, bytes, size);
	assert_int_equal(mprotect(rig.code, CODE_SIZE, PROT_READ | PROT_EXEC), 0);
}

/* A breakpoint at an offset of the code, and all that engine trap leaves word of for it. */
void rig_plant(size_t at, bool slot, uint32_t kind)
{
	struct mw_rescue_breakpoint *entry = &rig.rescue->breakpoints[rig.rescue->count];
	mw_addr pc = (mw_addr)(uintptr_t)(rig.code + at);
	uint32_t place = mw_rescue_place(pc, MW_RESCUE_INDEX);
	uint8_t copy[MW_OOL_MAX], breakpoint = 0xcc;
	size_t copy_length, length;

	mw_arch_x86_64.plan(rig.code + at, STEP, pc, &entry->plan);
	assert_string_not_equal(entry->plan.can_relocate || entry->plan.can_emulate ? "" : "refused", "refused");
	if (slot) {
		size_t to = SLOTS + rig.rescue->count * MW_OOL_MAX;

		entry->slot = (uint64_t)(uintptr_t)(rig.code + to);
		assert_null(mw_arch_x86_64.relocate(&entry->plan, entry->slot, copy, &copy_length, &length));
		entry->copy_length = (uint8_t)copy_length;
		entry->slot_size = (uint8_t)length;
		rig_write_code(to, copy, length);
	} else {
		assert_true(entry->plan.can_emulate);
	}
	entry->kind = kind;
	while (rig.rescue->index[place])
		place = (place + 1) & (MW_RESCUE_INDEX - 1);
	rig.rescue->index[place] = ++rig.rescue->count;
	rig_write_code(at, &breakpoint, 1);
}

void rig_plant_all(void)
{
	for (size_t i = 0; i < COUNT(rig_functions); i++)
		rig_plant(i * STEP, rig_functions[i].slot, MW_RESCUE_PLAIN);
}

void *rig_function_at(size_t at)
{
	return rig.code + at;
}

sum *rig_sum_at(size_t at)
{
	union {
		void *data;
		sum *code;
	} cast = {rig_function_at(at)};

	return cast.code;
}

void rig_assert_child(void (*body)(void), int expected)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		const struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, expected);
}

uint64_t rig_random_word(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

void rig_random_regs(struct regs *regs)
{
	uint64_t *words = (uint64_t *)(void *)regs;

	for (size_t i = 0; i < sizeof(*regs) / 8; i++)
		words[i] = rig_random_word();
	/* Carry, parity, adjust, zero, sign, overflow. */
	regs->flags = (regs->flags & 0x8d5) | 0x202;
	if (rig_random_word() % 4 == 0)
		regs->gpr[5] = 0;
}
