// SPDX-License-Identifier: MIT
/* way_back.c: laying a way back on a thread's stack (way_back.h). */
#include "target/way_back.h"

#include "target/remote.h"

#include <stdlib.h>

#define ROOM 2048u /* below the stack pointer, for others */

struct mw_error *mw_way_back_lay(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, mw_addr restorer,
				 struct mw_way_back *out)
{
	mw_addr sp = regs->general.gpr[mw_arch_find(mw_target_machine())->dwarf_sp], at = 0;
	uint8_t *frame = malloc(MW_WAY_BACK_MAX);
	struct mw_error *err = NULL;
	size_t size = 0;

	out->size = 0;
	if (frame && sp > ROOM + MW_WAY_BACK_MAX)
		size = mw_regs_signal_frame(tid, regs, mask, restorer, sp - ROOM, frame, &at);
	if (size && mw_remote_read(tid, at, out->before, size) == size) {
		out->sp = at;
		out->size = size;
		/* Not by force: where the program may not write is no stack. */
		err = mw_remote_write(tid, at, frame, size);
	}
	free(frame);
	if (!err)
		return NULL;
	mw_way_back_take_up(tid, out);
	out->size = 0;
	if (mw_error_kind(err) == MW_ERROR_GONE)
		return err;
	mw_error_destroy(err);
	return NULL;
}

void mw_way_back_take_up(pid_t tid, const struct mw_way_back *way)
{
	if (way->size)
		mw_error_destroy(mw_remote_write(tid, way->sp, way->before, way->size));
}
