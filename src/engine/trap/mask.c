// SPDX-License-Identifier: MIT
/*
 * mask.c: signal masks that block SIGTRAP (trap.h).
 *
 * A breakpoint whose trap is blocked makes the kernel unblock it, forget what the process does with it, and, where
 * nobody traces the thread, kill. So while memwatch is attached no thread blocks SIGTRAP: it is taken out of every mask
 * at attach, and the C library's functions that set masks are carried out here, their entries being breakpoints. What
 * the program believes is kept, shown to it when it asks, and put back at the end. Only while a SIGTRAP of somebody's
 * is pending for a thread that is to block it, it is blocked in truth.
 *
 * Masks that are set by other means (raw system calls, the kernel for a signal's handler) are seen when a breakpoint
 * strikes under them. They end as they came, mostly, so nothing is concluded from them.
 */
#include "engine/trap/trap.h"
#include "proc/peek.h"

#include <sys/syscall.h>

/*
 * Does a thread still need the code that rescue.c has put in? Its pc may be there; or another signal has interrupted it
 * there, and that one's handler is at work: the kernel lays the frames of several signals that come together one on top
 * of the other, before the first instruction of any handler. What the code counts of itself is not enough: a handler
 * that interrupts it may never come back (siglongjmp), and has been counted, and the first and the last instructions
 * are not.
 */
#define STACK 16384 /* bytes that are looked through: the handlers' own, as a rule */
#define MOST  65536 /* … where somebody is known to be in it */

/* Words of a thread's stack from its stack pointer on, which is given as well: how many of at most `size` bytes. */
static size_t read_stack(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, uint64_t *words,
			 size_t size, mw_addr *sp)
{
	mw_addr own = regs->thread_pointer;

	*sp = regs->gpr[arch->dwarf_sp] & ~(mw_addr)(sizeof(*words) - 1);
	/* A pthread's control block lies above its stack, and other threads' stacks behind that. */
	if (own > *sp && own - *sp < size)
		size = (size_t)(own - *sp);
	return mw_touched_peek(tid, *sp, words, size) / sizeof(*words);
}

bool trap_leads_inside(pid_t tid, const struct mw_arch *arch, const struct mw_regs *regs, mw_addr base, bool counted,
		       bool shadow_stack)
{
	uint64_t words[MOST / sizeof(uint64_t)];
	mw_addr sp;
	size_t got;

	if (regs->pc - base < MW_RESCUE_CODE)
		return true;
	got = read_stack(tid, arch, regs, words, counted ? MOST : STACK, &sp);
	for (size_t i = 0; i < got; i++)
		if (words[i] - base < MW_RESCUE_CODE &&
		    (shadow_stack || arch->is_kept_pc(sp + i * sizeof(*words), words, got, i)))
			return true;
	return false;
}

/* Which threads the program believes to block SIGTRAP has changed: for the next memwatch, if this one is killed. */
static struct mw_error *write_blocked(struct trap_process *process, pid_t tid)
{
	uint32_t tids[MW_RESCUE_BLOCKED], count = 0;
	struct trap_thread *thread;

	if (!process->rescue.base)
		return NULL;
	for (size_t i = 0; count < MW_RESCUE_BLOCKED && (thread = trap_thread_next(process, &i));) {
		if (!thread->trap_blocked || thread->relation != TRAP_THREAD)
			continue;
		if (!thread->ns_tid)
			thread->ns_tid = mw_ns_tid(thread->tid);
		tids[count++] = (uint32_t)thread->ns_tid;
	}
	if (count > 0)
		MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, blocked), tids, count * sizeof(*tids)));
	return TRAP_RESCUE_PUT(process, tid, blocked_count, count);
}

/* Leave the function that a hit is the entry of, at once, with `result`: sets the registers (not written yet). False
 * where that can't be: its return address can't be read, or is checked against a shadow stack. */
static bool leave_function(struct trap_hit *hit, uint64_t result)
{
	const struct mw_arch *arch = hit->process->arch;
	mw_addr sp = hit->regs.general.gpr[arch->dwarf_sp], ret;

	if (hit->process->shadow_stack || mw_remote_read(hit->thread->tid, sp, &ret, sizeof(ret)) != sizeof(ret))
		return false;
	arch->leave(&hit->regs.general, ret, result);
	return true;
}

/* Have a thread queue a SIGTRAP to itself, as it was sent: only so the kernel believes who sent it. */
static struct mw_error *queue_trap(struct trap_thread *thread, const siginfo_t *info, bool *queued)
{
	struct trap_process *process = thread->process;
	const struct mw_inject inject = trap_inject_by(process, thread->tid);
	struct mw_status status, first;
	siginfo_t given = *info;
	int64_t result = -1;
	struct mw_error *err;

	*queued = false;
	if (!process->rescue.base || thread->relation != TRAP_THREAD ||
	    !trap_seccomp_policy_may(process, thread->tid, MW_CALL_BIT(SIGQUEUE)))
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	MW_TRY(mw_status_read(process->pid, &first));
	const uint64_t arguments[6] = {(uint64_t)first.ns_pid, (uint64_t)status.ns_pid, SIGTRAP};

	err = mw_inject_call_with(&inject, SYS_rt_tgsigqueueinfo, arguments, 3, &given, sizeof(given), &result);
	*queued = !err && result == 0;
	return err;
}

#define TRAP_BIT MW_RESCUE_TRAP_BIT

#define HANDLER_STACK 32768 /* bytes that are looked through for a handler's frame */

static bool is_library_section(uint64_t mask)
{
	return (mask | TRAP_BIT | TRAP_UNBLOCKABLE) == UINT64_MAX;
}

static bool had_mask(const struct trap_thread *thread, uint64_t mask)
{
	for (size_t i = 0; i < TRAP_MASKS && i < thread->next_mask; i++)
		if (thread->masks[i] == mask)
			return true;
	return false;
}

static struct mw_error *note_blocked(struct trap_thread *thread, bool blocked)
{
	if (thread->trap_blocked == blocked)
		return NULL;
	thread->trap_blocked = blocked;
	return write_blocked(thread->process, thread->tid);
}

/*
 * Does a thread that was never looked at before run a handler, for which the kernel blocks more? Then its mask says
 * nothing of what the program wants: it has another when the handler ends. The handler's return address is known, and
 * above it lies the frame with that mask.
 */
static bool in_handler(const struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	mw_addr restorer = trap_restorer(process);
	uint64_t words[HANDLER_STACK / sizeof(uint64_t)], mask;
	struct mw_tracee_regs regs;
	mw_addr sp;
	size_t got;

	if (!restorer || !mw_error_none(mw_tracee_get_regs(thread->tid, &regs)))
		return false;
	got = read_stack(thread->tid, process->arch, &regs.general, words, sizeof(words), &sp);
	for (size_t i = 0; i < got; i++) {
		mw_addr at = sp + (i + 1) * sizeof(*words) + mw_machine.frame_mask;

		if (words[i] == restorer && mw_remote_read(thread->tid, at, &mask, sizeof(mask)) == sizeof(mask) &&
		    !(mask & TRAP_BIT))
			return true;
	}
	return false;
}

struct mw_error *trap_mask_look(struct trap_thread *thread)
{
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	/* Before that begins, what the kernel has is what the program wants; it may have got on since it was looked at.
	 */
	if (!(mask & TRAP_BIT) && !thread->process->signals.masks_open)
		MW_TRY(note_blocked(thread, false));
	if (mask & TRAP_BIT && thread->trap_pending) {
		struct mw_status status;

		MW_TRY(mw_status_read(thread->tid, &status));
		thread->trap_pending = status.sig_pending & TRAP_BIT;
	}
	if (mask & TRAP_BIT && !thread->trap_pending) {
		if (thread->process->signals.masks_open)
			MW_TRY(mw_tracee_set_sigmask(thread->tid, mask & ~TRAP_BIT));
		/* Those of the window are known from their first instruction. */
		if (!is_library_section(mask) && (thread->process->windowed || !in_handler(thread)))
			MW_TRY(note_blocked(thread, true));
	}
	thread->mask = mask & ~TRAP_BIT;
	thread->mask_known = true;
	return NULL;
}

struct mw_error *trap_masks_open(struct trap_process *process, pid_t tid)
{
	struct trap_thread *thread;

	/* They may have got on, and have stopped for a signal since. */
	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		if (thread->stopped)
			MW_TRY(mw_error_unless_gone(trap_mask_look(thread)));
	MW_TRY(write_blocked(process, tid));
	process->signals.masks_open = true;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		uint64_t mask = 0;

		if (!thread->stopped)
			continue;
		MW_TRY(mw_error_unless_gone(mw_tracee_get_sigmask(thread->tid, &mask)));
		if (mask & TRAP_BIT)
			MW_TRY(mw_error_unless_gone(mw_tracee_set_sigmask(thread->tid, mask & ~TRAP_BIT)));
	}
	return NULL;
}

struct mw_error *trap_mark_served(const struct trap_thread *thread, const struct mw_regs *next)
{
	uint64_t mark = mw_rescue_served(next->pc, next->gpr[thread->process->arch->dwarf_sp]);
	siginfo_t served = {.si_signo = SIGTRAP, .si_code = SI_KERNEL, .si_errno = MW_RESCUE_SERVED};

	served.si_pid = (pid_t)(uint32_t)mark;
	served.si_uid = (uid_t)(mark >> 32);
	return mw_tracee_set_siginfo(thread->tid, &served);
}

struct mw_error *trap_mask_on_hit(struct trap_thread *thread, mw_addr addr)
{
	bool dropped = false;
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	if (thread->mask_known && mask == thread->mask && !thread->trap_pending && !is_library_section(mask) &&
	    !had_mask(thread, mask))
		return NULL;
	/* Whatever happens to memwatch meanwhile: the breakpoint is to be executed once more. */
	MW_TRY(mw_tracee_set_pc(thread->tid, addr));
	MW_TRY(trap_disposition_put_back(thread, &dropped));
	if (dropped && !thread->trap_pending && !had_mask(thread, mask))
		thread->masks[thread->next_mask++ % TRAP_MASKS] = mask;
	thread->trap_pending = false;
	thread->mask = mask;
	thread->mask_known = true;
	return NULL;
}

struct mw_error *trap_signal_put_back(struct trap_thread *thread, siginfo_t *info)
{
	bool queued = false;
	uint64_t mask;

	if (thread->trap_blocked) {
		MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
		MW_TRY(mw_tracee_set_sigmask(thread->tid, mask | TRAP_BIT));
		thread->trap_pending = true;
	}
	MW_TRY(queue_trap(thread, info, &queued));
	if (!queued)
		mw_tracee_requeue(thread->process->pid, thread->tid, info);
	return NULL;
}

/* What the mask will be; false where the call will fail. */
static bool asked_mask(uint64_t before, int how, uint64_t set, uint64_t *after)
{
	/* The C library takes its own signals out of what it is given. */
	set &= ~(TRAP_LIBRARY_OWN | TRAP_UNBLOCKABLE);
	switch (how) {
	case SIG_BLOCK:
		*after = before | set;
		return true;
	case SIG_UNBLOCK:
		*after = before & ~set;
		return true;
	case SIG_SETMASK:
		*after = set;
		return true;
	default:
		return false;
	}
}

static struct mw_error *note_masking(struct trap_process *process, pid_t tid, uint32_t threads)
{
	return process->rescue.base ? TRAP_RESCUE_PUT(process, tid, masking, threads) : NULL;
}

/*
 * Carry the call out: `*hit` is where the thread goes on. Whenever memwatch is killed meanwhile, the thread stands at
 * the breakpoint with word of what its mask was, and the call is made once more by what rescue.c has put in; or it has
 * left the function.
 */
static struct mw_error *carry_out(struct trap_hit *hit, struct mw_tracee_regs *entry, uint64_t before, uint64_t after)
{
	struct trap_thread *thread = hit->thread;
	mw_addr old_at = hit->process->arch->argument(&entry->general, 2);

	hit->process->arch->spare(&entry->general, before, MW_RESCUE_BEGUN);
	MW_TRY(note_masking(hit->process, thread->tid, 1));
	MW_TRY(mw_tracee_set_regs(thread->tid, entry));
	/* One that can't be written the program would have got EFAULT for. */
	if (!old_at || trap_write_word(thread->tid, old_at, before)) {
		MW_TRY(note_blocked(thread, after & TRAP_BIT));
		thread->trap_pending &= thread->trap_blocked;
		thread->mask = after & ~TRAP_BIT;
		thread->mask_known = true;
		MW_TRY(mw_tracee_set_sigmask(thread->tid, thread->trap_pending ? after : thread->mask));
	}
	MW_TRY(trap_mark_served(thread, &hit->regs.general));
	MW_TRY(mw_tracee_set_regs(thread->tid, &hit->regs));
	return note_masking(hit->process, thread->tid, 0);
}

struct mw_error *trap_mask_set(struct trap_hit *hit, bool *done)
{
	const struct mw_arch *arch = hit->process->arch;
	struct trap_thread *thread = hit->thread;
	struct mw_tracee_regs entry = hit->regs;
	mw_addr set_at = arch->argument(&hit->regs.general, 1);
	uint64_t mask, before, after, set;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	before = after = (mask & ~TRAP_BIT) | (thread->trap_blocked ? TRAP_BIT : 0);
	if (set_at && (mw_remote_read(thread->tid, set_at, &set, sizeof(set)) != sizeof(set) ||
		       !asked_mask(before, (int)arch->argument(&hit->regs.general, 0), set, &after)))
		return NULL;
	/* What has nothing to do with SIGTRAP the function itself does best. */
	if (!((before | after) & TRAP_BIT)) {
		thread->mask = after;
		thread->mask_known = true;
		return NULL;
	}
	if (!leave_function(hit, 0))
		return NULL;
	*done = true;
	return carry_out(hit, &entry, before, after);
}

struct mw_error *trap_mask_restore(struct trap_thread *thread)
{
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	if (!(mask & TRAP_BIT) && (thread->trap_blocked || is_library_section(mask)))
		MW_TRY(mw_tracee_set_sigmask(thread->tid, mask | TRAP_BIT));
	return NULL;
}
