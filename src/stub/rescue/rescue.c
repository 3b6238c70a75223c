// SPDX-License-Identifier: MIT
/*
 * rescue.c: the handler of SIGTRAP that takes over when memwatch is killed (memwatch/rescue.h). It runs in the target,
 * wherever a breakpoint stands: no libc, no lock that is waited for, no data of its own.
 *
 * A breakpoint that memwatch does not serve: put the program's bytes back, all of them, and execute what stood there.
 * Where that can't be (a system call may kill, memory may not be written), or while another thread is at it, carry out
 * the displaced instruction as memwatch would. Whatever else SIGTRAP is for, the program's own action gets.
 *
 * It may be interrupted anywhere, by itself too.
 */
#include <memwatch/rescue.h>

#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

#include <rescue_cpu.h>
#include <rescue_layout.h>

_Static_assert(MW_RESCUE_ASM_MAGIC == MW_RESCUE_MAGIC && MW_RESCUE_ASM_LAYOUT == MW_RESCUE_LAYOUT &&
		       MW_RESCUE_ASM_CODE == MW_RESCUE_CODE,
	       "rescue_layout.h");

#define SIGTRAP_NUMBER 5
#define TRAP_BIT       (UINT64_C(1) << (SIGTRAP_NUMBER - 1))
#define LIBRARY_OWN    (UINT64_C(3) << 31) /* signals that the C library lets nobody block */
#define FROM_KERNEL    0x80
#define FROM_TRAP      1
#define HANDLER_NONE   0u
#define HANDLER_IGNORE 1u
#define RESTORER       0x04000000u
#define RESET_HANDLER  0x80000000u
#define MASK_SIZE      8

#define OPEN_READ_WRITE   (2u | 02000000u) /* close on exec */
#define PROTECT_READ_EXEC 5u
#define PROTECT_ALL       7u
#define PAGE              4096u

enum { HOW_BLOCK, HOW_UNBLOCK, HOW_SET };

extern const struct mw_rescue_header mw_rescue_image_start __attribute__((visibility("hidden")));

struct rescue_info {
	int32_t signal, errnum, code;
};

/* Where to go on: 0 back to what was interrupted. */
struct rescue_next {
	uint64_t handler, restorer;
};

/* As the C libraries have it. */
struct library_action {
	uint64_t handler;
	uint64_t mask[16];
	int32_t flags;
	uint64_t restorer;
};

struct rescue_next rescue_handle(int signal, const struct rescue_info *info, struct cpu_frame *frame);

static struct mw_rescue *rescue_data(void)
{
	return (struct mw_rescue *)((uintptr_t)&mw_rescue_image_start + MW_RESCUE_CODE);
}

static const struct mw_rescue_breakpoint *find(const struct mw_rescue *rescue, uint64_t addr)
{
	uint32_t at = mw_rescue_place(addr, MW_RESCUE_INDEX);

	for (uint32_t i = 0; i < MW_RESCUE_INDEX; i++, at = (at + 1) & (MW_RESCUE_INDEX - 1)) {
		uint32_t number = rescue->index[at];

		if (number == 0 || number > MW_RESCUE_BREAKPOINTS)
			return NULL;
		if (rescue->breakpoints[number - 1].plan.pc == addr)
			return &rescue->breakpoints[number - 1];
	}
	return NULL;
}

static uint64_t true_return(const struct mw_rescue *rescue, uint64_t sp)
{
	uint32_t at = mw_rescue_place(sp, MW_RESCUE_RETURNS);

	for (uint32_t i = 0; i < MW_RESCUE_RETURNS; i++, at = (at + 1) & (MW_RESCUE_RETURNS - 1)) {
		if (rescue->returns[at].sp == sp)
			return rescue->returns[at].ret;
		if (rescue->returns[at].sp == 0)
			return 0;
	}
	return 0;
}

static bool is_breakpoint(uint64_t addr)
{
	return *(const volatile uint8_t *)(uintptr_t)addr == CPU_BREAKPOINT;
}

/* Has the program executed one of its own? It may be one of two bytes. */
static bool breakpoint_before(uint64_t pc)
{
	if ((pc & (PAGE - 1)) < 2)
		return true; /* what is before may not be mapped */
	return is_breakpoint(pc - 1) || (*(const volatile uint8_t *)(uintptr_t)(pc - 2) == CPU_INT &&
					 *(const volatile uint8_t *)(uintptr_t)(pc - 1) == 3);
}

/* Put one byte back by way of a file that heeds no protection. */
static bool lift_by_file(int64_t file, const struct mw_rescue_breakpoint *breakpoint)
{
	uint64_t addr = breakpoint->plan.pc;
	uint8_t now = 0;

	/* What is not mapped any more needs nothing. */
	if (cpu_call(CPU_SYS_PREAD64, (uint64_t)file, (uint64_t)(uintptr_t)&now, 1, addr) != 1 || now != CPU_BREAKPOINT)
		return true;
	return cpu_call(CPU_SYS_PWRITE64, (uint64_t)file, (uint64_t)(uintptr_t)&breakpoint->plan.bytes[0], 1, addr) ==
	       1;
}

/* The same where there is no such file. */
static bool lift_by_protection(const struct mw_rescue_breakpoint *breakpoint)
{
	volatile uint8_t *code = (volatile uint8_t *)(uintptr_t)breakpoint->plan.pc;
	uint64_t page = breakpoint->plan.pc & ~(uint64_t)(PAGE - 1);
	bool whole = (breakpoint->plan.pc & (PAGE - 1)) + breakpoint->plan.length <= PAGE;
	uint8_t resident = 0;

	if (cpu_call(CPU_SYS_MINCORE, page, PAGE, (uint64_t)(uintptr_t)&resident, 0) != 0 || *code != CPU_BREAKPOINT)
		return true;
	/* Something else may have been mapped there. */
	for (unsigned i = 1; whole && i < breakpoint->plan.length; i++)
		if (code[i] != breakpoint->plan.bytes[i])
			return true;
	if (cpu_call(CPU_SYS_MPROTECT, page, PAGE, PROTECT_ALL, 0) != 0)
		return false;
	*code = breakpoint->plan.bytes[0];
	return cpu_call(CPU_SYS_MPROTECT, page, PAGE, PROTECT_READ_EXEC, 0) == 0;
}

/* Take the breakpoints out, as far as that can be. Exchanged return addresses still lead to the pad. */
static void heal(struct mw_rescue *rescue)
{
	static const char path[] = "/proc/self/mem";
	/* A program that has an action of its own for SIGTRAP is shown it, and keeps ours, until somebody cleans. */
	const bool stays = rescue->own.handler != HANDLER_NONE;
	bool all = true;
	int64_t file;

	/* One that failed is not tried again: the breakpoints are passed one by one. */
	if (!rescue->may_call || __atomic_exchange_n(&rescue->healing, 1, __ATOMIC_ACQ_REL))
		return;
	file = cpu_call(CPU_SYS_OPEN, (uint64_t)(uintptr_t)path, OPEN_READ_WRITE, 0, 0);
	for (uint32_t i = 0; i < rescue->count && i < MW_RESCUE_BREAKPOINTS; i++) {
		const struct mw_rescue_breakpoint *breakpoint = &rescue->breakpoints[i];

		if (breakpoint->plan.pc == 0 || breakpoint->kind == MW_RESCUE_PAD ||
		    (stays && breakpoint->kind != MW_RESCUE_PLAIN))
			continue;
		if (file >= 0 && lift_by_file(file, breakpoint))
			continue;
		all &= lift_by_protection(breakpoint);
	}
	if (file >= 0)
		cpu_call(CPU_SYS_CLOSE, (uint64_t)file, 0, 0, 0);
	__atomic_store_n(&rescue->healed, all, __ATOMIC_RELEASE);
}

static void emulate(const struct mw_rescue_breakpoint *breakpoint, struct cpu_frame *frame)
{
	const struct mw_insn_plan *plan = &breakpoint->plan;
	struct mw_regs regs;
	uint64_t word = 0;

	if (breakpoint->slot) {
		frame->rip = breakpoint->slot;
		return;
	}
	cpu_from_frame(frame, &regs);
	regs.pc = plan->pc;
	if (plan->memory == MW_MEMORY_POP || plan->memory == MW_MEMORY_LOAD)
		word = *(const volatile uint64_t *)(uintptr_t)mw_x86_memory_address(plan, &regs);
	mw_x86_emulate(plan, &regs, &word);
	if (plan->memory == MW_MEMORY_PUSH)
		*(volatile uint64_t *)(uintptr_t)regs.gpr[MW_X86_RSP] = word;
	cpu_to_frame(&regs, frame);
}

/*
 * pthread_sigmask(how, set, old) that would block SIGTRAP: done here, but for SIGTRAP. The thread gets its mask when
 * the handler returns.
 */
static bool set_mask(struct cpu_frame *frame)
{
	const uint64_t *set = (const uint64_t *)(uintptr_t)cpu_argument(frame, 1);
	uint64_t *old = (uint64_t *)(uintptr_t)cpu_argument(frame, 2);
	uint64_t before = frame->mask, wanted = set ? *set : 0;
	int how = (int)cpu_argument(frame, 0);

	if (!(wanted & TRAP_BIT) || (how != HOW_BLOCK && how != HOW_SET))
		return false;
	wanted &= ~(TRAP_BIT | LIBRARY_OWN);
	frame->mask = how == HOW_BLOCK ? before | wanted : wanted;
	if (old)
		*old = before;
	cpu_return(frame, 0);
	return true;
}

/* sigaction(SIGTRAP, new, old): what the program asks for is noted, what the kernel has stays. */
static bool set_action(struct mw_rescue *rescue, struct cpu_frame *frame)
{
	const struct library_action *asked = (const struct library_action *)(uintptr_t)cpu_argument(frame, 1);
	struct library_action *old = (struct library_action *)(uintptr_t)cpu_argument(frame, 2);
	struct mw_rescue_action before = rescue->own;

	if ((int)cpu_argument(frame, 0) != SIGTRAP_NUMBER)
		return false;
	if (asked) {
		rescue->own.handler = asked->handler;
		rescue->own.flags = (uint32_t)asked->flags;
		rescue->own.mask = asked->mask[0];
	}
	if (old) {
		old->handler = before.handler;
		old->flags = (int32_t)before.flags;
		old->mask[0] = before.mask;
		for (unsigned i = 1; i < sizeof(old->mask) / sizeof(old->mask[0]); i++)
			old->mask[i] = 0;
	}
	cpu_return(frame, 0);
	return true;
}

/* Get over a breakpoint of ours. */
static void pass(struct mw_rescue *rescue, const struct mw_rescue_breakpoint *breakpoint, struct cpu_frame *frame)
{
	uint64_t ret = breakpoint->kind == MW_RESCUE_PAD ? true_return(rescue, frame->rsp) : 0;

	__atomic_fetch_add(&rescue->hits, 1, __ATOMIC_RELAXED);
	if (ret) {
		frame->rip = ret;
		return;
	}
	heal(rescue);
	if (!is_breakpoint(breakpoint->plan.pc)) {
		frame->rip = breakpoint->plan.pc;
		return;
	}
	/* Leaving a function at once would be seen by a shadow stack. */
	if (breakpoint->kind == MW_RESCUE_MASK && !rescue->shadow_stack && set_mask(frame))
		return;
	if (breakpoint->kind == MW_RESCUE_ACTION && !rescue->shadow_stack && set_action(rescue, frame))
		return;
	emulate(breakpoint, frame);
}

/* The default action: end the program, with a signal that says what this one said. */
static void end_program(const struct rescue_info *info, struct cpu_frame *frame)
{
	const struct mw_rescue_action nothing = {0};

	cpu_call(CPU_SYS_RT_SIGACTION, SIGTRAP_NUMBER, (uint64_t)(uintptr_t)&nothing, 0, MASK_SIZE);
	frame->mask &= ~TRAP_BIT;
	cpu_call(CPU_SYS_RT_TGSIGQUEUEINFO, (uint64_t)cpu_call(CPU_SYS_GETPID, 0, 0, 0, 0),
		 (uint64_t)cpu_call(CPU_SYS_GETTID, 0, 0, 0, 0), SIGTRAP_NUMBER, (uint64_t)(uintptr_t)info);
}

static struct rescue_next hand_on(struct mw_rescue *rescue, const struct rescue_info *info, struct cpu_frame *frame,
				  bool forced)
{
	const struct mw_rescue_action own = rescue->own;
	struct rescue_next next = {0, 0};

	if (own.handler == HANDLER_NONE || (own.handler == HANDLER_IGNORE && forced)) {
		end_program(info, frame);
		return next;
	}
	if (own.handler == HANDLER_IGNORE)
		return next;
	if (own.flags & RESET_HANDLER)
		rescue->own.handler = HANDLER_NONE;
	next.handler = own.handler;
	if (own.flags & RESTORER && !rescue->shadow_stack)
		next.restorer = own.restorer;
	return next;
}

struct rescue_next rescue_handle(int signal, const struct rescue_info *info, struct cpu_frame *frame)
{
	struct mw_rescue *rescue = rescue_data();
	const struct rescue_next back = {0, 0};
	bool trapped = info->code == FROM_KERNEL || info->code == FROM_TRAP;
	const struct mw_rescue_breakpoint *breakpoint = find(rescue, frame->rip - 1);

	(void)signal;
	/*
	 * Where another's SIGTRAP was pending, the breakpoint's is dropped for it: both have come, then. Behind an
	 * instruction of one byte the thread may stand by itself.
	 */
	if (breakpoint && (trapped || breakpoint->plan.length > 1)) {
		pass(rescue, breakpoint, frame);
		if (trapped)
			return back;
	} else if (info->code == FROM_KERNEL && !breakpoint_before(frame->rip)) {
		/* memwatch had served this one already, and was killed before it let the thread go on. */
		return back;
	}
	return hand_on(rescue, info, frame, trapped);
}
