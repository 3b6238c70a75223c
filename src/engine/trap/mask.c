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

#include <string.h>
#include <sys/ptrace.h>
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

/* What nobody can block. */
#define UNBLOCKABLE ((UINT64_C(1) << (SIGKILL - 1)) | (UINT64_C(1) << (SIGSTOP - 1)))

/* What the C library keeps for itself, and blocks only in sections of its own, together with all others. */
#define LIBRARY_OWN (UINT64_C(3) << 31)

static bool is_library_section(uint64_t mask)
{
	return (mask | TRAP_BIT | UNBLOCKABLE) == UINT64_MAX;
}

/* Does a stopped thread block SIGTRAP? Or is it in a section of the C library's own, in which all signals are blocked,
 * as nobody else can? When it leaves that it sets the mask which it had before. Nothing may have been taken out of
 * masks yet. */
enum trap_masked { TRAP_UNMASKED, TRAP_MASKED, TRAP_IN_SECTION };

static enum trap_masked mask_now(const struct trap_thread *thread)
{
	uint64_t mask = 0;

	mw_error_destroy(mw_tracee_get_sigmask(thread->tid, &mask));
	if ((mask | UNBLOCKABLE) == UINT64_MAX)
		return TRAP_IN_SECTION;
	/* A thread ends with one of the library's own let through. */
	return mask & TRAP_BIT && !(mask & LIBRARY_OWN) ? TRAP_MASKED : TRAP_UNMASKED;
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
	set &= ~(LIBRARY_OWN | UNBLOCKABLE);
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

/*
 * Nobody stands amidst code that blocks SIGTRAP when breakpoints are put in. A thread that has passed the entry of a
 * function that sets masks, or has loaded one of the sets that plant.c redirects, but has not made its system call,
 * blocks SIGTRAP whatever is done to its mask before. So does one that is in such a section, if it blocked SIGTRAP
 * before: it has put that mask aside, for itself or for a thread that it makes. If memwatch is killed then, the next
 * breakpoint kills. So they go on until they have come out, while all others stand.
 */
#define PATIENCE_NS UINT64_C(5000000000)
/*
 * For sections: where somebody is seen to block SIGTRAP, so that one who is in a section may do so, too; and elsewhere,
 * as threads may be made all the time. One that sleeps so many times in a row is in none, but blocks all for good
 * (glibc's aio).
 */
#define SECTION_NS      UINT64_C(500000000)
#define BRIEF_NS        UINT64_C(20000000)
#define SLEEPS          3
#define FIRST_BREATH_US 100
#define LAST_BREATH_US  100000

/* It has made its call: most are found there. */
static bool is_behind_call(pid_t tid, mw_addr pc)
{
	uint8_t now[MW_INSN_MAX];
	size_t length;
	const uint8_t *insn = mw_regs_syscall_insn(&length);

	return mw_remote_read(tid, pc - length, now, length) == length && memcmp(now, insn, length) == 0;
}

/* The maker of a vforked child would sleep where nothing stops it. */
static bool may_go_on(const struct trap_thread *thread)
{
	siginfo_t info = {.si_code = 0};

	if (!thread->in_event)
		return true;
	mw_error_destroy(mw_tracee_siginfo(thread->tid, &info));
	return info.si_code >> 8 == PTRACE_EVENT_CLONE || info.si_code >> 8 == PTRACE_EVENT_FORK;
}

enum amidst { AMIDST_NOTHING, AMIDST_SECTION, AMIDST_CALL };

static enum amidst stands_amidst(const struct trap_thread *thread, bool *masked)
{
	const struct trap_process *process = thread->process;
	struct mw_tracee_regs regs;
	enum trap_masked mask;

	/* A vforked child has its mask from its maker, which stands or waits for it. */
	if (!thread->stopped || thread->relation != TRAP_THREAD)
		return AMIDST_NOTHING;
	mask = mask_now(thread);
	*masked |= mask == TRAP_MASKED;
	if (mask == TRAP_IN_SECTION)
		return may_go_on(thread) ? AMIDST_SECTION : AMIDST_NOTHING;
	if (thread->in_event || !mw_error_none(mw_tracee_get_regs(thread->tid, &regs)))
		return AMIDST_NOTHING;
	for (size_t i = 0; i < process->signals.masking_count; i++)
		if (regs.general.pc >= process->signals.masking[i].start &&
		    regs.general.pc < process->signals.masking[i].end)
			return is_behind_call(thread->tid, regs.general.pc) ? AMIDST_NOTHING : AMIDST_CALL;
	return AMIDST_NOTHING;
}

/* Those whose process is stopped as well: for a moment. `*worst`: what there is; `*masked`: somebody blocks SIGTRAP. */
static struct mw_error *resume_all(struct trap_process *process, bool sections, enum amidst *worst, bool *masked)
{
	struct trap_thread *thread;

	*worst = AMIDST_NOTHING;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		enum amidst amidst = stands_amidst(thread, masked);

		if (amidst == AMIDST_NOTHING)
			continue;
		/* A section may be long: a process that is stopped is not to get on for that. */
		if (amidst == AMIDST_SECTION && (!sections || thread->group_stopped))
			continue;
		if (amidst > *worst)
			*worst = amidst;
		/* One that makes threads all the time would be found doing so again: it is to stop on its way out. */
		if (thread->in_event)
			MW_TRY(trap_interrupt(thread));
		thread->group_stopped = false;
		MW_TRY(trap_resume(thread));
	}
	return NULL;
}

/* Do all who may get on wait for something? */
static bool all_sleep(const struct trap_process *process)
{
	const struct trap_thread *thread;
	bool any = false;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		char state = trap_is_to_stop(thread) ? mw_state_read(thread->tid) : '\0';

		if (state && state != 'X' && state != 'S')
			return false;
		any |= state != '\0';
	}
	return any;
}

struct mw_error *trap_amidst_clear(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns(), waited_ns = 0;
	useconds_t breath_us = FIRST_BREATH_US;
	unsigned sleeps = 0;
	bool masked = false;
	enum amidst worst;

	for (; waited_ns <= PATIENCE_NS; waited_ns = mw_clock_ns() - begin) {
		bool sections = sleeps < SLEEPS && waited_ns <= (masked ? SECTION_NS : BRIEF_NS);

		MW_TRY(resume_all(process, sections, &worst, &masked));
		if (worst == AMIDST_NOTHING)
			return NULL;
		MW_TRY(trap_run_briefly(process, breath_us));
		sleeps = all_sleep(process) ? sleeps + 1 : 0;
		MW_TRY(trap_hold(process));
		MW_TRY(trap_still_there(process));
		breath_us = breath_us * 2 < LAST_BREATH_US ? breath_us * 2 : LAST_BREATH_US;
	}
	if (process->engine->options.unsafe)
		return NULL;
	return MW_REFUSE("Try again, use --engine jump, or accept the risk with --unsafe",
			 "a thread of process %d is about to block SIGTRAP, and makes no progress: if memwatch were "
			 "killed, the next breakpoint would end the process",
			 process->pid);
}
