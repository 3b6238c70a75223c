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
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <errno.h>
#include <sys/uio.h>

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

enum trap_masked trap_mask_now(const struct trap_thread *thread)
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
	return trap_rescue_blocked(thread->process, thread->tid);
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
	struct mw_error *err = mw_tracee_get_regs(thread->tid, &regs);
	mw_addr sp;
	size_t got;

	if (err || !restorer) {
		mw_error_destroy(err);
		return false;
	}
	got = trap_read_stack(thread->tid, process->arch, &regs.general, words, sizeof(words), &sp);
	for (size_t i = 0; i < got; i++) {
		mw_addr at = sp + (i + 1) * sizeof(*words) + mw_regs_frame_mask_offset();

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

struct mw_error *trap_masks_open(struct trap_process *process)
{
	void *value;

	/* They may have got on, and have stopped for a signal since. */
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);)
		if (((struct trap_thread *)value)->stopped)
			MW_TRY(mw_error_unless_gone(trap_mask_look(value)));
	process->signals.masks_open = true;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;
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

struct mw_error *trap_mask_put_off(struct trap_thread *thread, siginfo_t *info)
{
	bool queued = false;
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	MW_TRY(mw_tracee_set_sigmask(thread->tid, mask | TRAP_BIT));
	thread->trap_pending = true;
	MW_TRY(trap_rescue_queue(thread, info, &queued));
	if (!queued)
		mw_tracee_requeue(thread->process->pid, thread->tid, info);
	return NULL;
}

static bool write_there(pid_t tid, mw_addr addr, uint64_t word)
{
	struct iovec local = {&word, sizeof(word)};
	struct iovec remote = {(void *)(uintptr_t)addr, sizeof(word)};

	return process_vm_writev(tid, &local, 1, &remote, 1, 0) == sizeof(word);
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
	return process->rescue.base
		       ? trap_rescue_write(process, tid, offsetof(struct mw_rescue, masking), &threads, sizeof(threads))
		       : NULL;
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
	if (!old_at || write_there(thread->tid, old_at, before)) {
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
	if (!trap_leave_function(hit, 0))
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
