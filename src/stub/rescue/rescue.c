// SPDX-License-Identifier: MIT
/*
 * rescue.c: the handler of SIGTRAP that takes over when memwatch is killed (memwatch/rescue.h). It runs in the target,
 * wherever a breakpoint stands: no libc, no lock that is waited for, no data of its own.
 *
 * A breakpoint that memwatch does not serve: put the program's bytes back, all of them, and execute what stood there.
 * Where that can't be (a system call may kill, memory may not be written), or while another thread is at it, carry out
 * the displaced instruction as memwatch would. Whatever else SIGTRAP is for, the program's own action gets.
 *
 * Setting a signal's action is done here always: memwatch sends threads to rescue_act() for it.
 *
 * It may be interrupted anywhere, by itself too.
 */
#include <memwatch/rescue.h>

#include "arch/x86_64/x86_64.h"

#include <rescue_cpu.h>
#include <rescue_layout.h>

_Static_assert(MW_RESCUE_ASM_MAGIC == MW_RESCUE_MAGIC && MW_RESCUE_ASM_LAYOUT == MW_RESCUE_LAYOUT &&
		       MW_RESCUE_ASM_CODE == MW_RESCUE_CODE,
	       "rescue_layout.h");

#define SIGTRAP_NUMBER 5
#define TRAP_BIT       MW_RESCUE_TRAP_BIT
#define LIBRARY_OWN    (UINT64_C(3) << 31) /* signals that the C library lets nobody block */
#define FROM_KERNEL    0x80
#define FROM_TRAP      1
#define HANDLER_NONE   0u
#define HANDLER_IGNORE 1u
#define MASK_SIZE      8
#define KIND(kind)     (UINT32_C(1) << (kind))

#define OPEN_READ_WRITE   (2u | 02000000u) /* close on exec */
#define PROTECT_READ_EXEC 5u
#define PROTECT_ALL       7u
#define PAGE              4096u

enum { HOW_BLOCK, HOW_UNBLOCK, HOW_SET };

extern const struct mw_rescue_header mw_rescue_image_start __attribute__((visibility("hidden")));

struct rescue_info {
	int32_t signal, errnum, code, unused;
	uint64_t sender; /* pid and uid */
};

/* Where to go on: 0 back to what was interrupted. */
struct rescue_next {
	uint64_t handler, restorer;
};

struct rescue_next rescue_handle(int signal, const struct rescue_info *info, struct cpu_frame *frame);
int64_t rescue_act(const struct cpu_system_call *call);

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

/*
 * Has memwatch served the breakpoint, and been killed before it resumed the thread? `breakpoint`: what stands before
 * the pc. It goes on in a copy, behind the instruction, or comes to the breakpoint again, which may have gaps before
 * it that a linker has filled with breakpoints; else memwatch has marked the signal (MW_RESCUE_SERVED).
 */
static bool is_served(const struct mw_rescue *rescue, const struct mw_rescue_breakpoint *breakpoint,
		      const struct rescue_info *info, const struct cpu_frame *frame)
{
	uint64_t pc = frame->rip;

	if (info->errnum == MW_RESCUE_SERVED && info->sender == mw_rescue_served(pc, frame->rsp))
		return true;
	if (breakpoint)
		return false;
	if (find(rescue, pc) || !breakpoint_before(pc))
		return true;
	for (uint32_t i = 0; i < rescue->count && i < MW_RESCUE_BREAKPOINTS; i++) {
		const struct mw_rescue_breakpoint *other = &rescue->breakpoints[i];

		if (other->plan.pc != 0 && (other->slot == pc || other->plan.pc + other->plan.length == pc))
			return true;
	}
	return false;
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

/* What the program wants done with SIGTRAP. */
static struct mw_rescue_action *own_now(struct mw_rescue *rescue)
{
	return &rescue->own[__atomic_load_n(&rescue->own_at, __ATOMIC_ACQUIRE) % 2];
}

/*
 * Another process that lives in the memory (vfork) has actions of its own: which one, 0 where it is the process itself.
 * A forked one has all this of its own.
 */
static uint32_t child_self(struct mw_rescue *rescue)
{
	uint32_t self = rescue->may_call ? (uint32_t)cpu_call(CPU_SYS_GETPID, 0, 0, 0, 0) : rescue->pid;

	if (rescue->pid == 0)
		rescue->pid = self;
	return rescue->pid != self ? self : 0;
}

static bool is_child(struct mw_rescue *rescue)
{
	return child_self(rescue) != 0;
}

/* SIGTRAP back into the masks of actions: no breakpoint is left that might strike under them. */
static void unstrip(struct mw_rescue *rescue)
{
	for (uint64_t i = 0; i < MW_RESCUE_SIGNALS; i++) {
		struct mw_rescue_action now = {0};

		if (!(rescue->marks.stripped[i] | rescue->marks.coming[i]) ||
		    cpu_call(CPU_SYS_RT_SIGACTION, i + 1, 0, (uint64_t)(uintptr_t)&now, MASK_SIZE) != 0 ||
		    !mw_rescue_is_stripped(&now, rescue->marks.stripped[i], rescue->marks.coming[i]))
			continue;
		now.mask |= TRAP_BIT;
		cpu_call(CPU_SYS_RT_SIGACTION, i + 1, (uint64_t)(uintptr_t)&now, 0, MASK_SIZE);
		rescue->marks.stripped[i] = rescue->marks.coming[i] = 0;
	}
}

/*
 * Until somebody cleans, a program that has an action of its own for SIGTRAP is shown it, and keeps ours; and one that
 * believes SIGTRAP to be blocked is shown that.
 */
static bool must_pretend(struct mw_rescue *rescue)
{
	bool blocked = rescue->masking != 0;

	for (uint32_t i = 0; i < rescue->blocked_count && i < MW_RESCUE_BLOCKED; i++)
		blocked |= rescue->blocked[i] != 0;
	return blocked || own_now(rescue)->handler != HANDLER_NONE;
}

/* Those of these kinds, a bit each. */
static bool lift(const struct mw_rescue *rescue, int64_t file, uint32_t kinds)
{
	bool all = true;

	for (uint32_t i = 0; i < rescue->count && i < MW_RESCUE_BREAKPOINTS; i++) {
		const struct mw_rescue_breakpoint *breakpoint = &rescue->breakpoints[i];

		if (breakpoint->plan.pc == 0 || !(kinds & KIND(breakpoint->kind)))
			continue;
		if (file >= 0 && lift_by_file(file, breakpoint))
			continue;
		all &= lift_by_protection(breakpoint);
	}
	return all;
}

/*
 * As long as any other stands those stay by which SIGTRAP is kept out of masks: a thread that blocks it meanwhile would
 * die of the next that it comes to. `*pretend` where they stay for good: but not where children would die of them,
 * which is worse than a mask that is shown without SIGTRAP.
 */
static bool lift_all(struct mw_rescue *rescue, bool *pretend)
{
	static const char path[] = "/proc/self/mem";
	int64_t file = cpu_call(CPU_SYS_OPEN, (uint64_t)(uintptr_t)path, OPEN_READ_WRITE, 0, 0);
	bool all = lift(rescue, file, KIND(MW_RESCUE_PLAIN));
	uint32_t others = KIND(MW_RESCUE_MASK) | KIND(MW_RESCUE_ACTION);

	*pretend = must_pretend(rescue);
	if (*pretend)
		others = rescue->clears && !rescue->masking ? KIND(MW_RESCUE_MASK) : 0;
	if (all)
		all = lift(rescue, file, others);
	if (file >= 0)
		cpu_call(CPU_SYS_CLOSE, (uint64_t)file, 0, 0, 0);
	return all;
}

/* Take the breakpoints out, as far as that can be. Exchanged return addresses still lead to the trampoline. */
static void heal(struct mw_rescue *rescue)
{
	bool pretend, all;

	/* One that failed is not tried again: the breakpoints are passed one by one. */
	if (!rescue->may_call || is_child(rescue) || __atomic_exchange_n(&rescue->healing, 1, __ATOMIC_ACQ_REL))
		return;
	all = lift_all(rescue, &pretend);
	if (all && !pretend)
		unstrip(rescue);
	__atomic_store_n(&rescue->healed, all, __ATOMIC_RELEASE);
}

static uint64_t read_data(uint64_t at, uint8_t width)
{
	switch (width) {
	case 1:
		return *(const volatile uint8_t *)(uintptr_t)at;
	case 2:
		return *(const volatile uint16_t *)(uintptr_t)at;
	case 4:
		return *(const volatile uint32_t *)(uintptr_t)at;
	default:
		return *(const volatile uint64_t *)(uintptr_t)at;
	}
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
	else if (plan->memory == MW_MEMORY_DATA)
		word = read_data(mw_x86_memory_address(plan, &regs), plan->width);
	mw_x86_emulate(plan, &regs, &word);
	if (plan->memory == MW_MEMORY_PUSH)
		*(volatile uint64_t *)(uintptr_t)regs.gpr[MW_X86_RSP] = word;
	cpu_to_frame(&regs, frame);
}

/* Its place among the threads that believe SIGTRAP to be blocked, or NULL. */
static uint32_t *place_of_blocked(struct mw_rescue *rescue, uint32_t tid)
{
	for (uint32_t i = 0; i < rescue->blocked_count && i < MW_RESCUE_BLOCKED; i++)
		if (__atomic_load_n(&rescue->blocked[i], __ATOMIC_RELAXED) == tid)
			return &rescue->blocked[i];
	return (uint32_t *)0;
}

static void note_blocked(struct mw_rescue *rescue, uint32_t tid)
{
	uint32_t number, none = 0;

	for (uint32_t i = 0; i < rescue->blocked_count && i < MW_RESCUE_BLOCKED; i++, none = 0)
		if (__atomic_compare_exchange_n(&rescue->blocked[i], &none, tid, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
	number = __atomic_fetch_add(&rescue->blocked_count, 1, __ATOMIC_ACQ_REL);
	if (number < MW_RESCUE_BLOCKED)
		__atomic_store_n(&rescue->blocked[number], tid, __ATOMIC_RELEASE);
	else
		__atomic_fetch_sub(&rescue->blocked_count, 1, __ATOMIC_ACQ_REL);
}

/* What the mask will be; false where the call will fail. */
static bool asked_mask(uint64_t before, int how, uint64_t set, uint64_t *after)
{
	set &= ~LIBRARY_OWN;
	if (how != HOW_BLOCK && how != HOW_UNBLOCK && how != HOW_SET)
		return false;
	*after = how == HOW_BLOCK ? before | set : how == HOW_UNBLOCK ? before & ~set : set;
	return true;
}

/*
 * pthread_sigmask(how, set, old) that has to do with SIGTRAP: done here, so that it is blocked only for all that the
 * program knows. The thread gets its mask when the handler returns.
 */
static bool set_mask(struct mw_rescue *rescue, struct cpu_frame *frame)
{
	const uint64_t *set = (const uint64_t *)(uintptr_t)cpu_argument(frame, 1);
	uint64_t *old = (uint64_t *)(uintptr_t)cpu_argument(frame, 2);
	uint32_t tid = rescue->may_call ? (uint32_t)cpu_call(CPU_SYS_GETTID, 0, 0, 0, 0) : 0;
	uint32_t *place = tid ? place_of_blocked(rescue, tid) : (uint32_t *)0;
	bool begun = cpu_spare(frame, 1) == MW_RESCUE_BEGUN;
	uint64_t before = begun ? cpu_spare(frame, 0) : frame->mask | (place ? TRAP_BIT : 0), after = before;

	if ((set && !asked_mask(before, (int)cpu_argument(frame, 0), *set, &after)) ||
	    (!begun && !((before | after) & TRAP_BIT)))
		return false;
	if (!place && tid && after & TRAP_BIT)
		note_blocked(rescue, tid);
	for (; place && !(after & TRAP_BIT); place = place_of_blocked(rescue, tid))
		__atomic_store_n(place, 0, __ATOMIC_RELEASE);
	frame->mask = after & ~TRAP_BIT;
	if (old)
		*old = before;
	cpu_return(frame, 0);
	return true;
}

static int64_t call_action(uint64_t signal, const struct mw_rescue_action *asked, struct mw_rescue_action *old)
{
	return cpu_call(CPU_SYS_RT_SIGACTION, signal, (uint64_t)(uintptr_t)asked, (uint64_t)(uintptr_t)old, MASK_SIZE);
}

static void note_reset(struct mw_rescue *rescue, uint32_t child, bool resets)
{
	uint32_t none = 0;

	for (uint32_t i = 0; i < MW_RESCUE_RESETS; i++)
		if (__atomic_load_n(&rescue->resets[i], __ATOMIC_RELAXED) == child)
			__atomic_store_n(&rescue->resets[i], 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; resets && i < MW_RESCUE_RESETS; i++, none = 0)
		if (__atomic_compare_exchange_n(&rescue->resets[i], &none, child, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
}

/*
 * A child that lives in the memory resets all actions before it runs another program, which that does by itself: but
 * not what is ignored. So whether it ignores SIGTRAP is all that matters.
 */
static int64_t set_child_action(struct mw_rescue *rescue, uint32_t child, const struct mw_rescue_action *asked)
{
	const struct mw_rescue_header *header = &mw_rescue_image_start;
	const struct mw_rescue_action led = mw_rescue_led(asked, (uint64_t)(uintptr_t)header, header);
	bool ignores = asked->handler == HANDLER_IGNORE;
	int64_t result = call_action(SIGTRAP_NUMBER, ignores ? asked : &led, (struct mw_rescue_action *)0);

	if (result == 0)
		note_reset(rescue, child, !ignores);
	return result;
}

/* Of SIGTRAP: what the program asks for is noted, what the kernel has leads here. */
static int64_t set_own_action(struct mw_rescue *rescue, const struct mw_rescue_action *asked,
			      struct mw_rescue_action *old)
{
	const struct mw_rescue_action before = *own_now(rescue);
	const struct mw_rescue_header *header = &mw_rescue_image_start;
	uint32_t child = asked ? child_self(rescue) : 0;
	int64_t result = 0;

	if (child) {
		result = set_child_action(rescue, child, asked);
	} else if (asked) {
		struct mw_rescue_action led = mw_rescue_led(asked, (uint64_t)(uintptr_t)header, header);
		uint32_t next = rescue->own_at + 1;

		result = call_action(SIGTRAP_NUMBER, &led, (struct mw_rescue_action *)0);
		if (result == 0) {
			rescue->own[next % 2] = *asked;
			__atomic_store_n(&rescue->own_at, next, __ATOMIC_RELEASE);
		}
	}
	if (old && result == 0)
		*old = before;
	return result;
}

/* Of another signal: without SIGTRAP in the mask, which the program is not to know. */
static int64_t set_other_action(struct mw_rescue *rescue, uint64_t signal, const struct mw_rescue_action *asked,
				struct mw_rescue_action *old)
{
	const uint64_t stripped = rescue->marks.stripped[signal - 1], coming = rescue->marks.coming[signal - 1];
	/* A child that lives in the memory gets what it asks for. */
	bool ours = asked && !is_child(rescue), strip = ours && asked->mask & TRAP_BIT;
	struct mw_rescue_action wanted, was = {0};
	int64_t result;

	if (asked)
		wanted = *asked;
	if (strip) {
		wanted.mask &= ~TRAP_BIT;
		rescue->marks.coming[signal - 1] = mw_rescue_mark(&wanted);
	}
	result = call_action(signal, asked ? &wanted : asked, &was);
	if (result == 0 && ours)
		rescue->marks.stripped[signal - 1] = strip ? rescue->marks.coming[signal - 1] : 0;
	if (ours)
		rescue->marks.coming[signal - 1] = 0;
	if (old && result == 0) {
		*old = was;
		if (mw_rescue_is_stripped(&was, stripped, coming))
			old->mask |= TRAP_BIT;
	}
	return result;
}

/*
 * The system call rt_sigaction(signal, asked, old, size), whoever serves breakpoints: it is carried out in the thread
 * that makes it, so that all of it is done or nothing, whatever becomes of memwatch.
 */
int64_t rescue_act(const struct cpu_system_call *call)
{
	const struct mw_rescue_action *asked = (const struct mw_rescue_action *)(uintptr_t)call->arguments[1];
	struct mw_rescue_action *old = (struct mw_rescue_action *)(uintptr_t)call->arguments[2];
	uint64_t signal = (uint32_t)call->arguments[0];

	if (!rescue_data()->led || call->number != CPU_SYS_RT_SIGACTION || call->arguments[3] != MASK_SIZE ||
	    signal == 0 || signal > MW_RESCUE_SIGNALS)
		return cpu_call_same(call);
	return signal == SIGTRAP_NUMBER ? set_own_action(rescue_data(), asked, old)
					: set_other_action(rescue_data(), signal, asked, old);
}

/* Get over a breakpoint of ours. */
static void pass(struct mw_rescue *rescue, const struct mw_rescue_breakpoint *breakpoint, struct cpu_frame *frame)
{
	uint64_t ret = breakpoint->kind == MW_RESCUE_TRAMPOLINE ? true_return(rescue, frame->rsp) : 0;

	if (breakpoint->kind == MW_RESCUE_ACTION) {
		const struct cpu_system_call call = cpu_call_from_frame(frame);

		cpu_call_done(frame, breakpoint->plan.pc, rescue_act(&call));
		return;
	}
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
	if (breakpoint->kind == MW_RESCUE_MASK && !rescue->shadow_stack && set_mask(rescue, frame))
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
	struct mw_rescue_action *const now = own_now(rescue), own = *now;
	struct rescue_next next = {0, 0};

	if (own.handler == HANDLER_NONE || (own.handler == HANDLER_IGNORE && forced)) {
		end_program(info, frame);
		return next;
	}
	if (own.handler == HANDLER_IGNORE)
		return next;
	if (own.flags & MW_RESCUE_RESETHAND)
		now->handler = HANDLER_NONE;
	next.handler = own.handler;
	if (own.flags & MW_RESCUE_RESTORER && !rescue->shadow_stack)
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
	if (info->code == FROM_KERNEL && is_served(rescue, breakpoint, info, frame))
		return back;
	/*
	 * Where another's SIGTRAP was pending, the breakpoint's is dropped for it: both have come, then. Behind an
	 * instruction of one byte the thread may stand by itself.
	 */
	if (breakpoint && (trapped || breakpoint->plan.length > 1)) {
		pass(rescue, breakpoint, frame);
		if (trapped)
			return back;
	}
	return hand_on(rescue, info, frame, trapped);
}
