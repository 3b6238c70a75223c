// SPDX-License-Identifier: MIT
/*
 * mask.c: signal masks that block SIGTRAP (trap.h).
 *
 * A breakpoint whose trap is blocked makes the kernel unblock it. So at each breakpoint the thread's mask lacks
 * SIGTRAP, and whether it had it before has to be known from elsewhere: from what the mask was at the thread's last
 * stop, and from what the thread asked for since, as the C library's functions that set masks are watched (at their
 * entry: what they will set is in their arguments). Where the mask is none of these (raw system calls, signal handlers)
 * it is compared with those that were seen to block SIGTRAP.
 */
#include "engine/trap/trap.h"
#include "target/remote.h"

#define TRAP_BIT (1ull << (SIGTRAP - 1))

/* What nobody can block, and what the C library keeps for itself. */
#define NEVER ((1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1)) | (3ull << 31))

/* Remember a mask that the thread truly had. */
static void note_mask(struct trap_thread *thread, uint64_t mask)
{
	for (size_t i = 0; i < TRAP_MASKS; i++)
		if (thread->masks[i] == mask)
			return;
	thread->masks[thread->next_mask++ % TRAP_MASKS] = mask;
}

static bool had_mask(const struct trap_thread *thread, uint64_t mask)
{
	for (size_t i = 0; i < TRAP_MASKS; i++)
		if (((thread->masks[i] ^ mask) & ~NEVER) == 0)
			return true;
	return false;
}

struct mw_error *trap_mask_look(struct trap_thread *thread)
{
	MW_TRY(mw_tracee_get_sigmask(thread->tid, &thread->mask));
	thread->mask_known = true;
	note_mask(thread, thread->mask);
	return NULL;
}

/*
 * Where nothing certain is known of `mask`, which lacks SIGTRAP: did it have it? A wrong yes would stay, a wrong no
 * mostly ends with the handler that it is about: in doubt, no.
 */
static bool guess(const struct trap_thread *thread, uint64_t mask)
{
	if ((mask | TRAP_BIT | NEVER) == UINT64_MAX)
		return true;
	/* A signal handler runs with what was blocked before, and more. */
	if (thread->mask_known && (thread->mask & TRAP_BIT) && (thread->mask & ~mask) == TRAP_BIT)
		return true;
	/* What a thread had before it has again after a handler or a jump. */
	return mask != 0 && had_mask(thread, mask | TRAP_BIT) && !had_mask(thread, mask);
}

/*
 * sigprocmask() calls pthread_sigmask(), and both are watched: at the second breakpoint what was asked for at the first
 * is still to be done.
 */
static bool is_forwarded(const struct trap_thread *thread, const struct trap_breakpoint *breakpoint,
			 const struct mw_regs *regs)
{
	const struct mw_arch *arch = thread->process->arch;

	return breakpoint->mask && thread->mask_asked_known && thread->stops == thread->mask_asking.stop &&
	       regs->gpr[arch->dwarf_sp] < thread->mask_asking.sp &&
	       arch->argument(regs, 0) == thread->mask_asking.how && arch->argument(regs, 1) == thread->mask_asking.set;
}

static bool blocked_before(const struct trap_thread *thread, uint64_t mask, bool asked_done)
{
	if (asked_done && thread->mask_asked_known && ((thread->mask_asked ^ mask) & ~(TRAP_BIT | NEVER)) == 0)
		return thread->mask_asked & TRAP_BIT;
	if (thread->mask_known && (thread->mask | TRAP_BIT) == (mask | TRAP_BIT))
		return thread->mask & TRAP_BIT;
	return guess(thread, mask);
}

struct mw_error *trap_mask_mend(struct trap_thread *thread, const struct trap_breakpoint *breakpoint,
				const struct mw_regs *regs)
{
	bool asked_done = !is_forwarded(thread, breakpoint, regs);
	bool dropped = false;
	uint64_t mask;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	/* The kernel forgets an action only with a trap that was blocked or ignored: where there is one, that tells. */
	MW_TRY(trap_disposition_put_back(thread, &dropped));
	if (!(mask & TRAP_BIT) &&
	    ((dropped && !trap_disposition_ignores(thread->process)) || blocked_before(thread, mask, asked_done))) {
		mask |= TRAP_BIT;
		MW_TRY(mw_tracee_set_sigmask(thread->tid, mask));
	}
	note_mask(thread, mask);
	thread->mask = mask;
	thread->mask_known = true;
	if (asked_done && thread->mask_asked_known && ((thread->mask_asked ^ mask) & ~NEVER) == 0)
		thread->mask_asked_known = false;
	return NULL;
}

void trap_mask_asked(struct trap_hit *hit)
{
	const struct mw_arch *arch = hit->process->arch;
	struct trap_thread *thread = hit->thread;
	uint64_t how = arch->argument(&hit->regs.general, 0);
	mw_addr set_at = arch->argument(&hit->regs.general, 1);
	uint64_t set;

	if (set_at == 0 || mw_remote_read(thread->tid, set_at, &set, sizeof(set)) != sizeof(set))
		return;
	switch ((int)how) {
	case SIG_BLOCK:
		set |= thread->mask;
		break;
	case SIG_UNBLOCK:
		set = thread->mask & ~set;
		break;
	case SIG_SETMASK:
		break;
	default:
		return;
	}
	/* glibc takes its own two signals out of what it is given, and the kernel those that nobody can block. */
	thread->mask_asked = set & ~NEVER;
	thread->mask_asked_known = true;
	thread->mask_asking.how = how;
	thread->mask_asking.set = set_at;
	thread->mask_asking.stop = thread->stops;
	thread->mask_asking.sp = hit->regs.general.gpr[arch->dwarf_sp];
}
