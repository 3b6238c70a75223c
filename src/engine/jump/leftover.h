/* SPDX-License-Identifier: MIT */
/*
 * leftover.h: what a memwatch that was killed (SIGKILL) has left in a process: jumps, code, guard, shared memory. The
 * recorder there turns itself off when it no longer hears of memwatch, and the process runs on; the next memwatch, of
 * whatever engine, takes it all out before it looks at the process.
 *
 * It is found by the shared memory, whose control block says where the rest is (mw_ring_control.owned), and by the
 * image's header and context. The process can have written into all of it since: nothing is believed that its list of
 * mappings, the image's mark or the files of its modules don't confirm.
 */
#ifndef MW_ENGINE_JUMP_LEFTOVER_H
#define MW_ENGINE_JUMP_LEFTOVER_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_journal;

/* What a look at a process shows. */
struct mw_leftover {
	bool found;
	size_t functions;           /* that still jump to the recorder */
	struct mw_journal *journal; /* of these: what stands there, and what stood there before */
};

/*
 * Look, without touching the process. Errors: DENIED where the memwatch in question is alive; UNSUPPORTED where it was
 * of another version; those of reading the process.
 */
struct mw_error *mw_leftover_look(pid_t pid, struct mw_leftover *out) MW_MUST_CHECK;
void mw_leftover_deinit(struct mw_leftover *leftover);
/* Put into `bytes`, read from `addr` of the process, what was there before the jumps. */
void mw_leftover_hide(const struct mw_leftover *leftover, mw_addr addr, uint8_t *bytes, size_t size);

/*
 * Take out what there is; most often nothing, which is quickly seen. The process is stopped for it, for some
 * milliseconds. Where calls that go through the recorder do not come back, its code stays, unused: `left` (`size`
 * bytes) says so, and is "" otherwise. Errors: as mw_leftover_look; UNSUPPORTED where the file that has a function's
 * own bytes can't be read; those of stopping and changing a process.
 */
struct mw_error *mw_leftover_remove(pid_t pid, char *left, size_t size) MW_MUST_CHECK;

#endif
