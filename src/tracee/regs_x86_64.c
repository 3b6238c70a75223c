// SPDX-License-Identifier: MIT
/* regs_x86_64.c: x86-64 registers of the kernel to and from struct mw_regs (tracee.h). */
#include "tracee/seccomp_policy.h"
#include "tracee/tracee.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The kernel's own "restart unless a handler runs" result; it never reaches user space. */
#define KERNEL_ERESTARTNOHAND 514
/* … and "go on by restart_syscall". */
#define KERNEL_ERESTART_RESTARTBLOCK 516

/* The kernel's __USER_CS. */
#define CODE_64 0x33

void mw_regs_from_kernel(const struct user_regs_struct *raw, struct mw_regs *out)
{
	const uint64_t gpr[MW_REG_COUNT] = {raw->rax, raw->rdx, raw->rcx, raw->rbx, raw->rsi, raw->rdi,
					    raw->rbp, raw->rsp, raw->r8,  raw->r9,  raw->r10, raw->r11,
					    raw->r12, raw->r13, raw->r14, raw->r15};

	memcpy(out->gpr, gpr, sizeof(gpr));
	out->pc = raw->rip;
	out->flags = raw->eflags;
	out->syscall = raw->orig_rax;
	out->thread_pointer = raw->fs_base;
}

void mw_regs_to_kernel(const struct mw_regs *regs, struct user_regs_struct *raw)
{
	raw->rax = regs->gpr[0];
	raw->rdx = regs->gpr[1];
	raw->rcx = regs->gpr[2];
	raw->rbx = regs->gpr[3];
	raw->rsi = regs->gpr[4];
	raw->rdi = regs->gpr[5];
	raw->rbp = regs->gpr[6];
	raw->rsp = regs->gpr[7];
	raw->r8 = regs->gpr[8];
	raw->r9 = regs->gpr[9];
	raw->r10 = regs->gpr[10];
	raw->r11 = regs->gpr[11];
	raw->r12 = regs->gpr[12];
	raw->r13 = regs->gpr[13];
	raw->r14 = regs->gpr[14];
	raw->r15 = regs->gpr[15];
	raw->rip = regs->pc;
	raw->eflags = regs->flags;
	raw->orig_rax = regs->syscall;
}

void mw_regs_set_machine(struct user_regs_struct *raw)
{
	raw->cs = CODE_64;
}

size_t mw_regs_frame_mask_offset(void)
{
	/* offsetof the kernel's struct ucontext, uc_sigmask */
	return 296;
}

size_t mw_regs_pc_offset(void)
{
	return offsetof(struct user, regs) + offsetof(struct user_regs_struct, rip);
}

bool mw_regs_restart_interrupted(struct mw_regs *regs)
{
	if ((int64_t)regs->syscall < 0 || (int64_t)regs->gpr[0] != -EINTR)
		return false;
	regs->gpr[0] = (uint64_t)-KERNEL_ERESTARTNOHAND;
	return true;
}

bool mw_regs_restart_anew(struct mw_regs *regs)
{
	if ((int64_t)regs->syscall < 0 || (int64_t)regs->gpr[0] != -KERNEL_ERESTART_RESTARTBLOCK)
		return false;
	regs->gpr[0] = (uint64_t)-KERNEL_ERESTARTNOHAND;
	return true;
}

void mw_regs_set_syscall(struct mw_regs *regs, mw_addr insn, long number, const uint64_t arguments[6])
{
	/* rdi rsi rdx r10 r8 r9, by their DWARF numbers. */
	static const uint8_t order[6] = {5, 4, 1, 10, 8, 9};

	for (unsigned i = 0; i < 6; i++)
		regs->gpr[order[i]] = arguments[i];
	regs->gpr[0] = (uint64_t)number;
	regs->pc = insn;
	regs->syscall = UINT64_MAX;
}

int64_t mw_regs_syscall_result(const struct mw_regs *regs)
{
	return (int64_t)regs->gpr[0];
}

const uint8_t *mw_regs_syscall_insn(size_t *size)
{
	static const uint8_t code[] = {0x0f, 0x05};

	*size = sizeof(code);
	return code;
}

uint16_t mw_target_machine(void)
{
	return EM_X86_64;
}
