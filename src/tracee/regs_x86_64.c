// SPDX-License-Identifier: MIT
/* regs_x86_64.c: registers, signal frames and code of x86-64 (tracee.h). */
#include "tracee/tracee.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#define CODE_64               0x33 /* the kernel's __USER_CS */
#define DATA_64               0x2b /* … __USER_DS */
#define ERESTARTSYS           512  /* the kernel's own results of calls that were interrupted */
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK MW_ERESTART_RESTARTBLOCK
#define SYSCALL_LENGTH        2

/* The kernel's place of each, by its DWARF number. */
#define AT(name) offsetof(struct user_regs_struct, name)
static const size_t places[MW_REG_COUNT] = {
	AT(rax), AT(rdx), AT(rcx), AT(rbx), AT(rsi), AT(rdi), AT(rbp), AT(rsp),
	AT(r8),  AT(r9),  AT(r10), AT(r11), AT(r12), AT(r13), AT(r14), AT(r15),
};

void mw_regs_from_kernel(const struct user_regs_struct *raw, struct mw_regs *out)
{
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		memcpy(&out->gpr[i], (const char *)raw + places[i], sizeof(out->gpr[i]));
	out->pc = raw->rip;
	out->flags = raw->eflags;
	out->syscall = raw->orig_rax;
	out->thread_pointer = raw->fs_base;
}

void mw_regs_to_kernel(const struct mw_regs *regs, struct user_regs_struct *raw)
{
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		memcpy((char *)raw + places[i], &regs->gpr[i], sizeof(regs->gpr[i]));
	raw->rip = regs->pc;
	raw->eflags = regs->flags;
	raw->orig_rax = regs->syscall;
}

bool mw_regs_restart(struct mw_regs *regs, int errnum)
{
	if ((int64_t)regs->syscall < 0 || (int64_t)regs->gpr[0] != -errnum)
		return false;
	/* It never reaches user space. */
	regs->gpr[0] = (uint64_t)-ERESTARTNOHAND;
	return true;
}

void mw_regs_set_syscall(struct mw_tracee_regs *regs, mw_addr insn, long number, const uint64_t arguments[6])
{
	/* rdi rsi rdx r10 r8 r9, by their DWARF numbers. */
	static const uint8_t order[6] = {5, 4, 1, 10, 8, 9};

	for (unsigned i = 0; i < 6; i++)
		regs->general.gpr[order[i]] = arguments[i];
	regs->general.gpr[0] = (uint64_t)number;
	regs->general.pc = insn;
	regs->general.syscall = UINT64_MAX;
	/* Not of another machine that its CPU knows (32-bit code). */
	regs->raw.cs = CODE_64;
}

#define UC_FP_XSTATE         1u
#define UC_SIGCONTEXT_SS     2u
#define UC_STRICT_RESTORE_SS 4u
#define NO_SUCH_FLAGS        0x7fff /* of an alternate stack: it is left as it is */

#define FX_SOFTWARE 464 /* offset of what the kernel says of the rest */
#define FX_SIZE     512
#define HEADER_SIZE 64
#define MAGIC1      0x46505853u
#define MAGIC2      0x46505845u
#define ALIGN       64
#define READ_AREA   "read the vector registers of"

/*
 * The frame that rt_sigreturn takes:
 *
 *      at        address of the restorer         where `ret` goes
 *      at + 8    struct ucontext                 the stack pointer in rt_sigreturn
 *      …         (room of a siginfo: the mark)
 *      64-aligned: what XSAVE saves, then a mark; or what FXSAVE saves
 */
struct frame {
	uint64_t restorer;
	ucontext_t context;
	uint64_t info[16];
};

struct software {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, unused[7];
};

_Static_assert(offsetof(ucontext_t, uc_mcontext) == 40, "as the kernel has it");
_Static_assert(offsetof(ucontext_t, uc_sigmask) == 296, "as the kernel has it");
_Static_assert(MW_CALL_FRAME_SIZE == offsetof(struct frame, context) + offsetof(ucontext_t, uc_sigmask) + 8,
	       "what the kernel reads of it");
_Static_assert(sizeof(struct software) == FX_SIZE - FX_SOFTWARE, "as the kernel has it");

/* Where the last of the features ends in the area. */
static size_t area_size(uint64_t features)
{
	size_t size = FX_SIZE + HEADER_SIZE;

	for (unsigned i = 2; i < 63; i++) {
		unsigned length = 0, offset = 0, flags = 0, unused = 0;

		if (!(features >> i & 1))
			continue;
		if (!__get_cpuid_count(0xd, i, &length, &offset, &flags, &unused) || flags & 1)
			return 0;
		if (offset + length > size)
			size = offset + length;
	}
	return size;
}

/* The thread's floating-point and vector registers: what XSAVE saves, or FXSAVE on a CPU without that. */
static struct mw_error *read_area(pid_t tid, void *out, size_t *size)
{
	struct iovec area = {.iov_base = out, .iov_len = *size};
	struct mw_error *err = mw_tracee_request(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &area, READ_AREA);

	if (err && mw_error_errno(err) == ENODEV && *size >= FX_SIZE) {
		mw_error_destroy(err);
		area.iov_len = FX_SIZE;
		err = mw_tracee_request(PTRACE_GETFPREGS, tid, 0, out, READ_AREA);
	}
	if (!err)
		*size = area.iov_len;
	return err;
}

/* The same, as a frame has them. Returns the size, the mark included; 0 where they can't be read. */
static size_t put_area(pid_t tid, uint8_t *out, size_t capacity)
{
	struct software software = {.magic = MAGIC1};
	const uint32_t mark = MAGIC2;
	uint64_t features;
	size_t size, got = capacity;

	if (!mw_error_none(read_area(tid, out, &got)))
		return 0;
	if (got == FX_SIZE)
		return got;
	if (got < FX_SIZE + HEADER_SIZE)
		return 0;
	memcpy(&features, out + FX_SIZE, sizeof(features));
	size = area_size(features);
	if (size == 0 || size > got || size + sizeof(mark) > capacity)
		return 0;
	software.features = features | 3;
	software.size = (uint32_t)size;
	software.extended_size = (uint32_t)(size + sizeof(mark));
	memcpy(out + FX_SOFTWARE, &software, sizeof(software));
	memcpy(out + size, &mark, sizeof(mark));
	return size + sizeof(mark);
}

/* A call that is to be restarted begins anew, with all of its time where it waits for some. One that has been restarted
 * to wait for the rest of it has been interrupted: the kernel forgets what that was when a handler returns. */
static void settle_call(struct mw_regs *regs)
{
	int64_t result = (int64_t)regs->gpr[0];

	if ((int64_t)regs->syscall < 0)
		return;
	if (result == -ERESTART_RESTARTBLOCK && regs->syscall == SYS_restart_syscall) {
		regs->gpr[0] = (uint64_t)-EINTR;
	} else if (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
		   result == -ERESTART_RESTARTBLOCK) {
		regs->gpr[0] = regs->syscall;
		regs->pc -= SYSCALL_LENGTH;
	}
}

static void put_context(const struct mw_tracee_regs *regs, uint64_t mask, mw_addr area, ucontext_t *context)
{
	/* By DWARF number. */
	static const uint8_t order[MW_REG_COUNT] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						    REG_R12, REG_R13, REG_R14, REG_R15};
	const uint64_t segments = (regs->raw.cs & 0xffff) | (regs->raw.ss & 0xffff) << 48;
	greg_t *to = context->uc_mcontext.gregs;
	struct mw_regs now = regs->general;

	settle_call(&now);
	for (unsigned i = 0; i < MW_REG_COUNT; i++)
		to[order[i]] = (greg_t)now.gpr[i];
	to[REG_RIP] = (greg_t)now.pc;
	to[REG_EFL] = (greg_t)now.flags;
	to[REG_CSGSFS] = (greg_t)segments;
	context->uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	context->uc_stack.ss_flags = NO_SUCH_FLAGS;
	memcpy(&context->uc_mcontext.fpregs, &area, sizeof(area));
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
}

size_t mw_regs_signal_frame(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, mw_addr restorer,
			    mw_addr below, uint8_t *out, mw_addr *at)
{
	const size_t head = (sizeof(struct frame) + ALIGN - 1) / ALIGN * ALIGN;
	struct frame frame;
	size_t area = put_area(tid, out + head, MW_SIGFRAME_MAX - head);

	if (area == 0)
		return 0;
	*at = (below - head - area) & ~(mw_addr)(ALIGN - 1);
	memset(out, 0, head);
	memset(&frame, 0, sizeof(frame));
	frame.restorer = restorer;
	put_context(regs, mask, *at + head, &frame.context);
	memcpy(out, &frame, sizeof(frame));
	return head + area;
}

size_t mw_regs_call_frame(long number, const uint64_t arguments[6], mw_addr insn, mw_addr sp, mw_addr restorer,
			  uint8_t *out)
{
	struct mw_tracee_regs regs = {.raw = {.cs = CODE_64, .ss = DATA_64}};
	struct frame frame;

	mw_regs_set_syscall(&regs, insn, number, arguments);
	regs.general.gpr[mw_machine.sp] = sp;
	memset(&frame, 0, sizeof(frame));
	frame.restorer = restorer;
	put_context(&regs, UINT64_MAX, 0, &frame.context);
	frame.context.uc_flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	memcpy(out, &frame, MW_CALL_FRAME_SIZE);
	return MW_CALL_FRAME_SIZE;
}

/* What XSAVE saves up to AVX-512 and the protection keys; behind it is AMX, whose tiles hold no pointers. */
#define AREA_OF_POINTERS 2696u

static size_t put_word(uint64_t word, uint64_t *out, size_t count, size_t room)
{
	for (size_t i = 0; word && i < count; i++)
		if (out[i] == word)
			return count;
	if (word && count < room)
		out[count++] = word;
	return count;
}

struct mw_error *mw_regs_words(pid_t tid, const struct mw_tracee_regs *regs, uint64_t *out, size_t room, size_t *count)
{
	uint64_t area[AREA_OF_POINTERS / sizeof(uint64_t)], word;
	size_t found = 0, size = sizeof(area);

	MW_TRY(read_area(tid, area, &size));
	for (size_t i = 0; i < sizeof(regs->raw) / sizeof(word); i++) {
		memcpy(&word, (const char *)&regs->raw + i * sizeof(word), sizeof(word));
		found = put_word(word, out, found, room);
	}
	for (size_t i = 0; i < size / sizeof(area[0]); i++)
		found = put_word(area[i], out, found, room);
	*count = found;
	return NULL;
}

const struct mw_machine mw_machine = {
	.elf = EM_X86_64,
	.result = 0,
	.sp = 7,
	.pc = offsetof(struct user, regs) + offsetof(struct user_regs_struct, rip),
	.frame_mask = offsetof(ucontext_t, uc_sigmask),
	.frame_align = ALIGN,
	.frame_spare = offsetof(struct frame, info),
	.syscall_insn = {2, {0x0f, 0x05}},
	.syscall_return = {3, {0x0f, 0x05, 0xc3}},
	.restorer = {9, {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}}, /* mov $15,%rax; syscall */
	.sigreturn_gadget = {2, {0x58, 0xc3}},                                   /* pop %rax; ret */
};
