// SPDX-License-Identifier: MIT
/*
 * exits.c: a process that ends by itself can be looked at before (jump.h).
 *
 * Its thread waits in the recorder, at the entry of _exit, until this has been done, for a second at most.
 * What is looked at is the last only if the process ends then, which a task of its own kind that shares its memory may
 * seem to do and not do.
 */
#include "engine/jump/jump.h"

#include "base/clock.h"
#include "proc/file.h"

#include <stdlib.h>

#define CATCH_UP_NS UINT64_C(50000000) /* for what was recorded before */

/*
 * Is the thread in a system call? Then it is not the one that waits in the recorder: a vfork or posix_spawn child does,
 * which runs in the thread's memory with the thread's control block, and for which the thread waits in the kernel.
 */
static bool in_system_call(const struct jump_process *process, pid_t tid)
{
	char *text = NULL, *end;
	size_t size = 0;
	bool is;
	/* "running", "-1 SP PC" of a thread that was interrupted elsewhere, or a call's number and arguments */
	struct mw_error *err = mw_proc_file_read(&text, &size, "/proc/%d/task/%d/syscall", (int)process->pid, (int)tid);

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	is = strtol(text, &end, 10) >= 0 && end != text;
	free(text);
	return is;
}

static struct mw_error *catch_up(struct jump_process *process)
{
	uint64_t begin = mw_clock_ns();
	size_t events = 1;

	while (events && mw_clock_ns() - begin < CATCH_UP_NS)
		MW_TRY(jump_drain_round(process->drain, &events));
	return NULL;
}

struct mw_error *jump_serve_exits(struct jump_process *process, void (*look)(struct jump_process *process, bool last))
{
	struct mw_ring_control *control = jump_control(&process->shared);
	uint64_t exits = __atomic_load_n(&control->exits, __ATOMIC_ACQUIRE);
	uint32_t number = mw_ring_exit_count(exits), served = control->exits_served;
	struct mw_error *err = NULL;

	if (number == served)
		return NULL;
	/* Of several that came at once only the last has left its name. */
	if (number - served > 1 || !in_system_call(process, jump_thread_of(process, mw_ring_exit_tid(exits)))) {
		process->exiting = true;
		err = catch_up(process);
		if (!err)
			look(process, true);
	}
	__atomic_store_n(&control->exits_served, number, __ATOMIC_RELEASE);
	return err;
}
