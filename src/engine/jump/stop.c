// SPDX-License-Identifier: MIT
/* stop.c: have all threads of a process stand, and one of them do what is wanted of it (jump.h). */
#include "engine/jump/jump.h"

#include "base/clock.h"

#include <time.h>

#define REST_NS 5000000

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
			return NULL;
		mw_error_destroy(mw_quiesce_end(&process->quiesce));
		if (mw_error_kind(err) == MW_ERROR_GONE || mw_clock_ns() - begin >= patience_ns)
			return err;
		jump_account_stop(process, process->quiesce.stood_ns);
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
	}
}
