/* SPDX-License-Identifier: MIT */
/*
 * stale.h: what a memwatch that was killed (SIGKILL) has left in a process, of either engine. The process lives on
 * with it; the next memwatch, of whatever engine, takes it all out before it looks at the process.
 *
 * Engine jump's is found by the shared memory, engine trap's by the mark of its code (memwatch/rescue.h), a forked copy,
 * which is a zombie by then, by its name (tracee/copy.h). The process can have written into all of it since: nothing is
 * believed that its list of mappings, the marks or the code that stands there don't confirm.
 */
#ifndef MW_ENGINE_STALE_H
#define MW_ENGINE_STALE_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_journal;

/* What a look at a process shows. */
struct mw_stale {
	bool found;
	size_t functions;           /* that still jump to the recorder, or have breakpoints */
	struct mw_journal *journal; /* of these: what stands there, and what stood there before */
};

/*
 * Look, without touching the process. Errors: DENIED where the memwatch in question is alive; UNSUPPORTED where it was
 * of another version; those of reading the process.
 */
struct mw_error *mw_stale_look(pid_t pid, struct mw_stale *out) MW_MUST_CHECK;
void mw_stale_deinit(struct mw_stale *stale);
/* Put into `bytes`, read from `addr` of the process, what was there before. */
void mw_stale_hide(const struct mw_stale *stale, mw_addr addr, uint8_t *bytes, size_t size);

/*
 * Take out what there is; most often nothing, which is quickly seen. The process is stopped for it, for some
 * milliseconds. Where calls that go through it do not come back, its code stays, unused: `left` (`size` bytes) says so,
 * and is "" otherwise. Errors: as mw_stale_look; UNSUPPORTED where the file that has a function's own bytes can't be
 * read; those of stopping and changing a process.
 */
struct mw_error *mw_stale_remove(pid_t pid, char *left, size_t size) MW_MUST_CHECK;

/*
 * What kept memwatch from attaching to the process may be the jumps or breakpoints of another that came at the same
 * time: DENIED then, which names that, in place of `err`, which is taken. To be asked when nothing of one's own is in
 * the process.
 */
struct mw_error *mw_stale_explain(pid_t pid, struct mw_error *err) MW_MUST_CHECK;

/* UNSUPPORTED: what is there is none of ours. */
struct mw_error *mw_stale_other_version(pid_t pid) MW_MUST_CHECK;

/* One engine's part. */
struct mw_error *jump_stale_look(pid_t pid, struct mw_stale *stale) MW_MUST_CHECK;
struct mw_error *jump_stale_remove(pid_t pid, char *left, size_t size) MW_MUST_CHECK;
struct mw_error *trap_stale_look(pid_t pid, struct mw_stale *stale) MW_MUST_CHECK;
/* All or an error. */
struct mw_error *trap_stale_remove(pid_t pid) MW_MUST_CHECK;

#endif
