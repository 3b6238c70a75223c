// SPDX-License-Identifier: MIT
/* way_back.c: laying a way back on a thread's stack (way_back.h). */
#include "target/way_back.h"

#include "target/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define ROOM 2048u /* below the stack pointer, for others */

/* The words below the frame; returns their size. */
static size_t put_first(const struct mw_way_code *code, uint8_t *out)
{
	const uint64_t words[] = {code->popper, SYS_rt_sigreturn};

	_Static_assert(sizeof(words) == MW_WAY_BACK_FIRST, "what is popped");
	if (code->restorer)
		return 0;
	memcpy(out, words, sizeof(words));
	return sizeof(words);
}

struct mw_error *mw_way_back_lay(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask,
				 const struct mw_way_code *code, struct mw_way_back *out)
{
	mw_addr sp = regs->general.gpr[mw_arch_find(mw_target_machine())->dwarf_sp], at = 0;
	uint8_t *frame = malloc(sizeof(out->before));
	struct mw_error *err = NULL;
	size_t size = 0, first;

	out->size = 0;
	if (frame && (code->restorer || code->popper) && sp > ROOM + sizeof(out->before)) {
		first = put_first(code, frame);
		size = mw_regs_signal_frame(tid, regs, mask, code->restorer ? code->restorer : code->insn, sp - ROOM,
					    frame + first, &at);
		size += size ? first : 0;
		at -= first;
	}
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
