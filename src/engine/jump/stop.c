// SPDX-License-Identifier: MIT
/* stop.c: have all threads of a process stand, and one of them do what is wanted of it (jump.h). */
#include "engine/jump/jump.h"

#include "base/clock.h"

#include <time.h>

#define REST_NS 5000000

/*
 * It may have become another program before it was traced. Addresses are nobody's any more then, or that one's: it is
 * treated as if the exec had been seen.
 */
static struct mw_error *check_program(struct jump_process *process)
{
	if (!process->memory.here || !jump_has_execed(process) || jump_memory_stands(process, jump_live_tid(process)))
		return NULL;
	process->quiesce.execed = true;
	return mw_error_create(MW_ERROR_GONE, 0, "process %d runs another program now", process->pid);
}

struct mw_error *jump_stop(struct jump_process *process, uint64_t patience_ns)
{
	const struct timespec rest = {.tv_nsec = REST_NS};
	uint64_t begin = mw_clock_ns();

	for (;;) {
		struct mw_error *err;

		process->quiesce.forked = jump_child_forked;
		process->quiesce.context = process;
		err = mw_quiesce_begin(&process->quiesce, process->pid);
		if (!err)
			err = mw_quiesce_await_hand(&process->quiesce);
		if (!err)
			err = check_program(process);
		if (!err)
			return NULL;
		mw_error_destroy(mw_quiesce_end(&process->quiesce));
		if (mw_error_kind(err) == MW_ERROR_GONE || mw_clock_ns() - begin >= patience_ns)
			return err;
		jump_account_stop(process);
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
	}
}
