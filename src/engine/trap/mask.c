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

#define TRAP_BIT   (1ull << (SIGTRAP - 1))
#define LOOK_EVERY 64

/* What nobody can block, and what the C library keeps for itself. */
#define NEVER ((1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1)) | (3ull << 31))

static void note_mask(struct trap_process *process, uint64_t mask)
{
	/* One that blocks everything needs no noting (guess()), and every new thread begins with it. */
	if (!(mask & TRAP_BIT) || (mask | NEVER) == UINT64_MAX)
		return;
	for (size_t i = 0; i < process->mask_count; i++)
		if (process->masks[i] == mask)
			return;
	process->masks[process->next_mask++ % TRAP_MASKS] = mask;
	if (process->mask_count < TRAP_MASKS)
		process->mask_count++;
}

struct mw_error *trap_mask_look(struct trap_thread *thread)
{
	MW_TRY(mw_tracee_get_sigmask(thread->tid, &thread->mask));
	thread->mask_known = true;
	note_mask(thread->process, thread->mask);
	return NULL;
}

/* Where nothing certain is known of `mask`, which lacks SIGTRAP: did it have it? */
static bool guess(const struct trap_thread *thread, uint64_t mask)
{
	const struct trap_process *process = thread->process;

	if ((mask | TRAP_BIT | NEVER) == UINT64_MAX)
		return true;
	/* A signal handler runs with what was blocked before, and more. */
	if (thread->mask_known && (thread->mask & TRAP_BIT) && (thread->mask & ~mask) == TRAP_BIT)
		return true;
	for (size_t i = 0; i < process->mask_count; i++)
		if (((process->masks[i] ^ mask) & ~(TRAP_BIT | NEVER)) == 0)
			return true;
	return false;
}

static bool blocked_before(const struct trap_thread *thread, uint64_t mask)
{
	if (thread->mask_asked_known && ((thread->mask_asked ^ mask) & ~(TRAP_BIT | NEVER)) == 0)
		return thread->mask_asked & TRAP_BIT;
	if (thread->mask_known && (thread->mask | TRAP_BIT) == (mask | TRAP_BIT))
		return thread->mask & TRAP_BIT;
	return guess(thread, mask);
}

/*
 * The mask costs a system call, at every stop, for what nearly no program does. It is looked at where SIGTRAP was
 * blocked by anybody, may have been since, and now and then.
 */
static bool needs_look(const struct trap_thread *thread)
{
	const struct trap_process *process = thread->process;

	return process->mask_count > 0 || !thread->mask_known || (thread->mask & TRAP_BIT) ||
	       thread->mask_asked_known || thread->stops % LOOK_EVERY == 0 ||
	       process->trap_action.words[0] == (uint64_t)(uintptr_t)SIG_IGN;
}

struct mw_error *trap_mask_mend(struct trap_thread *thread)
{
	uint64_t mask;

	if (!needs_look(thread))
		return NULL;

	MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
	if (!(mask & TRAP_BIT) && blocked_before(thread, mask)) {
		mask |= TRAP_BIT;
		MW_TRY(mw_tracee_set_sigmask(thread->tid, mask));
		note_mask(thread->process, mask);
	}
	thread->mask = mask;
	thread->mask_known = true;
	if (thread->mask_asked_known && ((thread->mask_asked ^ mask) & ~NEVER) == 0)
		thread->mask_asked_known = false;
	if ((mask & TRAP_BIT) || thread->process->trap_action.words[0] == (uint64_t)(uintptr_t)SIG_IGN)
		return trap_disposition_put_back(thread);
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
	note_mask(thread->process, thread->mask_asked);
}
