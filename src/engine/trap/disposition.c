// SPDX-License-Identifier: MIT
/*
 * disposition.c: what the target wants done with SIGTRAP (trap.h).
 *
 * The kernel leads SIGTRAP to what rescue.c has put in; the program's own action is read at attach, and kept as the
 * program changes it by the C library's sigaction(), whose entry is a breakpoint: where it asks about SIGTRAP the call
 * is carried out here. A child that lives in its memory (vfork) has actions of its own, but the same breakpoints: its
 * action for SIGTRAP stays as well.
 *
 * The kernel sets a trap's action back to the default when the trap strikes a thread that blocks or ignores it, as our
 * breakpoints may. Then it is put back at once, by a system call in the thread that was struck.
 */
#include "engine/trap/trap.h"
#include "proc/status.h"
#include "target/remote.h"

#include <string.h>

#define TRAP_BIT (UINT64_C(1) << (SIGTRAP - 1))

/* The C libraries' structure. */
struct library_action {
	uint64_t handler;
	uint64_t mask[16];
	int32_t flags;
	uint64_t restorer;
};

static bool is_restorer(const struct mw_arch *arch, const uint8_t *bytes, size_t size)
{
	return arch->is_signal_return(bytes, size);
}

/* What a handler of the program returns to: 0 where there is none in its code. */
static mw_addr find_restorer(const struct trap_process *process)
{
	for (uint32_t i = 0; i < mw_modules_count(process->survey.modules); i++) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, i);
		const struct mw_elf_segment *segments;
		size_t count = module->elf && !module->gone ? mw_elf_segments(module->elf, &segments) : 0;

		for (size_t j = 0; j < count; j++) {
			size_t size;
			const uint8_t *bytes =
				segments[j].exec ? mw_elf_bytes(module->elf, segments[j].vaddr, &size) : NULL;

			for (size_t at = 0; bytes && at < size; at++)
				if (is_restorer(process->arch, bytes + at, size - at))
					return segments[j].vaddr + at + module->bias;
		}
	}
	return 0;
}

mw_addr trap_restorer(const struct trap_process *process)
{
	return process->restorer ? process->restorer : find_restorer(process);
}

struct mw_error *trap_disposition_put_back(struct trap_thread *thread, bool *was_dropped)
{
	struct trap_process *process = thread->process;
	struct mw_status status;

	*was_dropped = false;
	/* One that shares the memory only has actions of its own. */
	if (!process->rescue.base || thread->relation != TRAP_THREAD)
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	*was_dropped = !(status.sig_caught & TRAP_BIT);
	return *was_dropped ? trap_rescue_lead(process, thread->tid) : NULL;
}

bool trap_disposition_ignores(const struct trap_process *process)
{
	return process->trap_action_known && process->trap_action.handler == (uint64_t)(uintptr_t)SIG_IGN;
}

static void note(struct trap_process *process, const struct library_action *asked)
{
	process->restorer = trap_restorer(process);
	process->trap_action = (struct mw_rescue_action){.handler = asked->handler,
							 .flags = (uint32_t)asked->flags | SA_RESTORER_FLAG,
							 .restorer = process->restorer,
							 .mask = asked->mask[0]};
}

struct mw_error *trap_disposition_set(struct trap_hit *hit, bool *done)
{
	struct trap_process *process = hit->process;
	const struct mw_arch *arch = process->arch;
	mw_addr asked_at = arch->argument(&hit->regs.general, 1), old_at = arch->argument(&hit->regs.general, 2);
	struct library_action asked, old = {0};
	bool sharing = hit->thread->relation == TRAP_SHARING_CHILD;
	pid_t tid = hit->thread->tid;

	if ((int)arch->argument(&hit->regs.general, 0) != SIGTRAP || !process->rescue.base ||
	    (asked_at && mw_remote_read(tid, asked_at, &asked, sizeof(asked)) != sizeof(asked)))
		return NULL;
	/* Children reset all actions before they run another program, which does that by itself: but not what they
	 * ignore. */
	if (sharing && asked_at && asked.handler == (uint64_t)(uintptr_t)SIG_IGN)
		return NULL;
	if (!trap_leave_function(hit, 0))
		return NULL;
	*done = true;
	MW_TRY(trap_rescue_look(process, tid));
	old.handler = process->trap_action.handler;
	old.flags = (int32_t)(process->trap_action.flags & ~SA_RESTORER_FLAG);
	old.mask[0] = process->trap_action.mask;
	if (asked_at && !sharing) {
		note(process, &asked);
		/* Whatever happens to memwatch meanwhile: the call is made once more. */
		MW_TRY(mw_tracee_set_pc(tid, hit->breakpoint->addr));
		MW_TRY(trap_rescue_lead(process, tid));
	}
	return old_at ? mw_remote_write(tid, old_at, &old, sizeof(old)) : NULL;
}
