// SPDX-License-Identifier: MIT
/*
 * disposition.c: what the target does with SIGTRAP (trap.h).
 *
 * The kernel sets a trap's action back to the default when the trap strikes a thread that blocks or ignores it, as our
 * breakpoints may. A target that has an action of its own gets it back at once, by a system call in the thread that was
 * struck. What the action is, is read at attach and followed through the C library's sigaction().
 */
#include "engine/trap/trap.h"
#include "proc/status.h"
#include "target/remote.h"
#include "target/syscall.h"

#include <string.h>
#include <sys/syscall.h>

#define TRAP_BIT    (1ull << (SIGTRAP - 1))
#define TRIES       8
#define RED_ZONE    128
#define MASK_SIZE   8 /* the kernel's sigset_t */
#define SA_RESTORER 0x04000000

/* The kernel's structure, as words. */
enum { ACTION_HANDLER, ACTION_FLAGS, ACTION_RESTORER, ACTION_MASK };

/* The C libraries' structure. */
struct library_action {
	uint64_t handler;
	uint64_t mask[16];
	int32_t flags;
	uint64_t restorer;
};

/* Where `suits` first holds in the process's code; 0 where it does nowhere. */
static mw_addr find_code(const struct trap_process *process,
			 bool (*suits)(const struct mw_arch *arch, const uint8_t *bytes, size_t size))
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
				if (suits(process->arch, bytes + at, size - at))
					return segments[j].vaddr + at + module->bias;
		}
	}
	return 0;
}

static bool is_syscall(const struct mw_arch *arch, const uint8_t *bytes, size_t size)
{
	size_t length;
	const uint8_t *code = mw_regs_syscall_insn(&length);

	(void)arch;
	return size >= length && memcmp(bytes, code, length) == 0;
}

static bool is_restorer(const struct mw_arch *arch, const uint8_t *bytes, size_t size)
{
	return arch->is_signal_return(bytes, size);
}

static struct trap_thread *usable_thread(const struct trap_process *process)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		/* A held signal would be lost, a group stop left, and a system call's own stops taken for ours. */
		if (thread->stopped && !thread->group_stopped && !thread->in_event && thread->signal == 0 &&
		    thread->relation == TRAP_THREAD)
			return thread;
	}
	return NULL;
}

/* rt_sigaction(SIGTRAP, …) in the target; its structure lies below the thread's stack meanwhile. */
static struct mw_error *sigaction_there(struct trap_thread *thread, bool set, struct trap_action *action, bool *done)
{
	struct trap_process *process = thread->process;
	struct mw_tracee_regs regs;
	struct trap_action scratch;
	uint8_t code[2];
	mw_addr at;
	int64_t result = -1;
	struct mw_error *err;

	*done = false;
	if (!process->syscall_insn)
		process->syscall_insn = find_code(process, is_syscall);
	/* What stands there now, not what a file says that may not be mapped any more. */
	if (!process->syscall_insn ||
	    mw_remote_read(thread->tid, process->syscall_insn, code, sizeof(code)) != sizeof(code) ||
	    !is_syscall(process->arch, code, sizeof(code)))
		return NULL;
	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	at = (regs.general.gpr[process->arch->dwarf_sp] - RED_ZONE - 2 * sizeof(scratch)) & ~(mw_addr)15;
	if (mw_remote_read(thread->tid, at, &scratch, sizeof(scratch)) != sizeof(scratch))
		return NULL;
	if (set)
		MW_TRY(mw_remote_poke(thread->tid, at, action, sizeof(*action)));
	const uint64_t arguments[6] = {SIGTRAP, set ? at : 0, set ? 0 : at, MASK_SIZE, 0, 0};

	err = mw_remote_syscall(thread->tid, process->syscall_insn, 0, SYS_rt_sigaction, arguments, &result);
	if (!err && !set && result == 0)
		err = mw_remote_read_all(thread->tid, at, action, sizeof(*action));
	mw_error_destroy(mw_remote_poke(thread->tid, at, &scratch, sizeof(scratch)));
	*done = !err && result == 0;
	return trap_ignore_gone(err);
}

/* Let the threads that were stopped with a signal take it, and stop again. */
static struct mw_error *deliver_held(struct trap_process *process)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		if (thread->stopped && !thread->group_stopped)
			MW_TRY(trap_resume(thread));
	}
	return trap_hold(process);
}

struct mw_error *trap_disposition_save(struct trap_process *process)
{
	struct trap_thread *thread;
	struct mw_status status;

	MW_TRY(mw_status_read(trap_live_tid(process), &status));
	/* A filter may kill for a system call that the program never makes. */
	if (status.seccomp != 0)
		return NULL;
	if (!((status.sig_caught | status.sig_ignored) & TRAP_BIT)) {
		process->trap_action_known = true;
		return NULL;
	}
	thread = usable_thread(process);
	for (unsigned i = 0; !thread && i < TRIES && !process->ended; i++) {
		MW_TRY(deliver_held(process));
		thread = usable_thread(process);
	}
	if (!thread)
		return NULL;
	/* The program may have exec'd another since its modules were looked at. */
	MW_TRY(trap_modules_look(process, thread->tid));
	return sigaction_there(thread, false, &process->trap_action, &process->trap_action_known);
}

static bool has_own_action(const struct trap_process *process)
{
	return process->trap_action_known && process->trap_action.words[ACTION_HANDLER] != 0;
}

/* Has the kernel dropped the action? */
static bool dropped(const struct trap_process *process)
{
	struct mw_status status;
	struct mw_error *err;
	bool set;

	if (!has_own_action(process))
		return false;
	err = mw_status_read(trap_live_tid(process), &status);
	set = err || ((status.sig_caught | status.sig_ignored) & TRAP_BIT);
	mw_error_destroy(err);
	return !set;
}

struct mw_error *trap_disposition_put_back(struct trap_thread *thread, bool *was_dropped)
{
	bool done;

	*was_dropped = dropped(thread->process);
	if (!*was_dropped)
		return NULL;
	return sigaction_there(thread, true, &thread->process->trap_action, &done);
}

struct mw_error *trap_disposition_restore(struct trap_process *process)
{
	struct trap_thread *thread = usable_thread(process);

	bool was_dropped;

	return thread ? trap_disposition_put_back(thread, &was_dropped) : NULL;
}

bool trap_disposition_ignores(const struct trap_process *process)
{
	return has_own_action(process) && process->trap_action.words[ACTION_HANDLER] == (uint64_t)(uintptr_t)SIG_IGN;
}

void trap_disposition_asked(struct trap_hit *hit)
{
	struct trap_process *process = hit->process;
	const struct mw_arch *arch = process->arch;
	mw_addr action_at = arch->argument(&hit->regs.general, 1);
	struct library_action asked;
	uint64_t *words = process->trap_action.words;

	if ((int)arch->argument(&hit->regs.general, 0) != SIGTRAP || !action_at || !process->trap_action_known ||
	    mw_remote_read(hit->thread->tid, action_at, &asked, sizeof(asked)) != sizeof(asked))
		return;
	if (!process->restorer)
		process->restorer = find_code(process, is_restorer);
	words[ACTION_HANDLER] = asked.handler;
	words[ACTION_FLAGS] = (uint64_t)(uint32_t)asked.flags | SA_RESTORER;
	words[ACTION_RESTORER] = process->restorer;
	words[ACTION_MASK] = asked.mask[0];
}
