/* SPDX-License-Identifier: MIT */
/*
 * rescue_cpu.h: what the handler of SIGTRAP needs of x86-64 (memwatch/rescue.h): the frame that the kernel lays for a
 * signal, and system calls. For code that runs in the target.
 */
#ifndef MW_ARCH_X86_64_RESCUE_CPU_H
#define MW_ARCH_X86_64_RESCUE_CPU_H

#include <memwatch/arch.h>

/* As the kernel lays it: struct ucontext with struct sigcontext in it. */
struct cpu_frame {
	uint64_t flags, link, stack[3];
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint64_t segments, err, trapno, oldmask, cr2, fpstate, reserved[8];
	uint64_t mask;
};

_Static_assert(__builtin_offsetof(struct cpu_frame, mask) == 296, "as the kernel has it");

#define CPU_BREAKPOINT 0xccu
#define CPU_INT        0xcdu

/* System calls by number. */
enum {
	CPU_SYS_OPEN = 2,
	CPU_SYS_CLOSE = 3,
	CPU_SYS_MPROTECT = 10,
	CPU_SYS_RT_SIGACTION = 13,
	CPU_SYS_PREAD64 = 17,
	CPU_SYS_PWRITE64 = 18,
	CPU_SYS_MINCORE = 27,
	CPU_SYS_GETPID = 39,
	CPU_SYS_GETTID = 186,
	CPU_SYS_RT_TGSIGQUEUEINFO = 297,
};

static inline int64_t cpu_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	register uint64_t r10 __asm__("r10") = d;
	int64_t result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static inline void cpu_from_frame(const struct cpu_frame *frame, struct mw_regs *out)
{
	const uint64_t gpr[MW_REG_COUNT] = {frame->rax, frame->rdx, frame->rcx, frame->rbx, frame->rsi, frame->rdi,
					    frame->rbp, frame->rsp, frame->r8,  frame->r9,  frame->r10, frame->r11,
					    frame->r12, frame->r13, frame->r14, frame->r15};

	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		out->gpr[i] = gpr[i];
	out->pc = frame->rip;
	out->flags = frame->eflags;
	out->syscall = UINT64_MAX;
	out->thread_pointer = 0;
}

static inline void cpu_to_frame(const struct mw_regs *regs, struct cpu_frame *frame)
{
	uint64_t *const to[MW_REG_COUNT] = {
		&frame->rax, &frame->rdx, &frame->rcx, &frame->rbx, &frame->rsi, &frame->rdi, &frame->rbp, &frame->rsp,
		&frame->r8,  &frame->r9,  &frame->r10, &frame->r11, &frame->r12, &frame->r13, &frame->r14, &frame->r15};

	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		*to[i] = regs->gpr[i];
	frame->rip = regs->pc;
	frame->eflags = regs->flags;
}

/* The first three arguments of a function whose first instruction is next, its result, and leaving it. */
static inline uint64_t cpu_argument(const struct cpu_frame *frame, unsigned index)
{
	return index == 0 ? frame->rdi : index == 1 ? frame->rsi : frame->rdx;
}

/* The spare registers (mw_arch.spare). */
static inline uint64_t cpu_spare(const struct cpu_frame *frame, unsigned index)
{
	return index == 0 ? frame->rcx : frame->r11;
}

/* A system call whose instruction is next; rescue_entry.S lays it, too. */
struct cpu_system_call {
	uint64_t arguments[6], number;
};

static inline struct cpu_system_call cpu_call_from_frame(const struct cpu_frame *frame)
{
	return (struct cpu_system_call){{frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9},
					frame->rax};
}

/* Make it from here. */
static inline int64_t cpu_call_same(const struct cpu_system_call *call)
{
	register uint64_t r10 __asm__("r10") = call->arguments[3];
	register uint64_t r8 __asm__("r8") = call->arguments[4];
	register uint64_t r9 __asm__("r9") = call->arguments[5];
	int64_t result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(call->number), "D"(call->arguments[0]), "S"(call->arguments[1]), "d"(call->arguments[2]),
			   "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* Go on behind the instruction at `pc`, as the kernel would have left it. */
static inline void cpu_call_done(struct cpu_frame *frame, uint64_t pc, int64_t result)
{
	frame->rax = (uint64_t)result;
	frame->rip = frame->rcx = pc + 2;
	frame->r11 = frame->eflags;
}

static inline void cpu_return(struct cpu_frame *frame, uint64_t result)
{
	frame->rax = result;
	frame->rip = *(const uint64_t *)(uintptr_t)frame->rsp;
	frame->rsp += sizeof(uint64_t);
}

#endif
