// SPDX-License-Identifier: MIT
/*
 * disposition.c: what the target does with SIGTRAP (trap.h).
 *
 * The kernel sets a trap's action back to the default when the trap strikes a thread that blocks or ignores it, as our
 * breakpoints may. A target that has an action of its own for SIGTRAP gets it back at detach.
 */
#include "engine/trap/trap.h"
#include "proc/status.h"
#include "target/remote.h"
#include "target/syscall.h"

#include <string.h>
#include <sys/syscall.h>

#define TRAP_BIT  (1ull << (SIGTRAP - 1))
#define RED_ZONE  128
#define MASK_SIZE 8 /* the kernel's sigset_t */

/* A system call instruction somewhere in the process's code. */
static mw_addr find_syscall(const struct trap_process *process)
{
	size_t length;
	const uint8_t *code = mw_regs_syscall_insn(&length);

	for (uint32_t i = 0; i < mw_modules_count(process->modules); i++) {
		const struct mw_module *module = mw_modules_get(process->modules, i);
		const struct mw_elf_segment *segments;
		size_t count = module->elf && !module->gone ? mw_elf_segments(module->elf, &segments) : 0;

		for (size_t j = 0; j < count; j++) {
			size_t available;
			const uint8_t *bytes, *at;

			if (!segments[j].exec)
				continue;
			bytes = mw_elf_bytes(module->elf, segments[j].vaddr, &available);
			at = bytes ? memmem(bytes, available, code, length) : NULL;
			if (at)
				return segments[j].vaddr + module->bias + (mw_addr)(at - bytes);
		}
	}
	return 0;
}

static struct trap_thread *usable_thread(const struct trap_process *process)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		/* A held signal would be lost, and a group stop left. */
		if (thread->stopped && !thread->group_stopped && thread->signal == 0 && thread->relation == TRAP_THREAD)
			return thread;
	}
	return NULL;
}

/* rt_sigaction(SIGTRAP, …) in the target; its structure lies below the thread's stack meanwhile. */
static struct mw_error *sigaction_there(struct trap_process *process, bool set, struct trap_action *action, bool *done)
{
	struct trap_thread *thread = usable_thread(process);
	mw_addr insn = find_syscall(process);
	struct mw_tracee_regs regs;
	struct trap_action scratch;
	mw_addr at;
	int64_t result = -1;
	struct mw_error *err;

	*done = false;
	if (!thread || !insn)
		return NULL;
	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	at = (regs.general.gpr[process->arch->dwarf_sp] - RED_ZONE - 2 * sizeof(scratch)) & ~(mw_addr)15;
	if (mw_remote_read(thread->tid, at, &scratch, sizeof(scratch)) != sizeof(scratch))
		return NULL;
	if (set)
		MW_TRY(mw_remote_poke(thread->tid, at, action, sizeof(*action)));
	const uint64_t arguments[6] = {SIGTRAP, set ? at : 0, set ? 0 : at, MASK_SIZE, 0, 0};

	err = mw_remote_syscall(thread->tid, insn, SYS_rt_sigaction, arguments, &result);
	if (!err && !set && result == 0)
		err = mw_remote_read_all(thread->tid, at, action, sizeof(*action));
	mw_error_destroy(mw_remote_poke(thread->tid, at, &scratch, sizeof(scratch)));
	*done = !err && result == 0;
	return trap_ignore_gone(err);
}

struct mw_error *trap_disposition_save(struct trap_process *process)
{
	struct mw_status status;

	MW_TRY(mw_status_read(trap_live_tid(process), &status));
	/* A filter may kill for a system call that the program never makes. */
	if (!((status.sig_caught | status.sig_ignored) & TRAP_BIT) || status.seccomp != 0)
		return NULL;
	process->trap_ignored = (status.sig_ignored & TRAP_BIT) != 0;
	return sigaction_there(process, false, &process->trap_action, &process->trap_action_saved);
}

bool trap_disposition_ignores(const struct trap_process *process)
{
	struct mw_status status;
	struct mw_error *err;
	bool caught;

	if (!process->trap_ignored)
		return false;
	err = mw_status_read(trap_live_tid(process), &status);
	caught = !err && (status.sig_caught & TRAP_BIT);
	mw_error_destroy(err);
	return !caught;
}

struct mw_error *trap_disposition_restore(struct trap_process *process)
{
	struct mw_status status;
	bool done;

	if (!process->trap_action_saved || !(process->trap_forced || process->trap_ignored))
		return NULL;
	MW_TRY(mw_status_read(trap_live_tid(process), &status));
	/* Still there, or replaced by the program itself. */
	if ((status.sig_caught | status.sig_ignored) & TRAP_BIT)
		return NULL;
	return sigaction_there(process, true, &process->trap_action, &done);
}
