// SPDX-License-Identifier: MIT
/* stale.c: what killed memwatches have left, of both engines and of looks at the heap (stale.h). */
#include "engine/stale.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vector.h"
#include "proc/status.h"
#include "tracee/copy.h"
#include "tracee/journal.h"
#include "tracee/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOMENT_NS   20000000
#define PATIENCE_NS UINT64_C(2000000000)
#define GUARD_NS    UINT64_C(10000000000) /* … with a guard */
#define ALONE_NS    UINT64_C(1000000000)  /* … or nobody else at it, */
#define MOST_ALONE  5                     /* and so many attempts */

static struct mw_error *look_for_copies(pid_t pid, struct mw_stale *stale)
{
	MW_FREE pid_t *copies = NULL;
	size_t count = 0;

	MW_TRY(mw_copies_find(pid, &copies, &count));
	stale->found |= count > 0;
	return NULL;
}

struct mw_error *mw_stale_look(pid_t pid, struct mw_stale *out)
{
	struct mw_stale stale = {.journal = calloc(1, sizeof(struct mw_journal))};
	struct mw_error *err;

	if (!stale.journal)
		return mw_error_nomem();
	err = jump_stale_look(pid, &stale);
	if (!err)
		err = trap_stale_look(pid, &stale);
	if (!err)
		err = look_for_copies(pid, &stale);
	stale.functions = stale.journal->count;
	if (err)
		mw_stale_deinit(&stale);
	else
		*out = stale;
	return err;
}

struct mw_error *mw_stale_other_version(pid_t pid)
{
	return MW_REFUSE("That version removes it when it is attached again; or restart the process",
			 "process %d contains remains of another version of memwatch", (int)pid);
}

void mw_stale_deinit(struct mw_stale *stale)
{
	if (stale->journal)
		mw_journal_deinit(stale->journal);
	free(stale->journal);
	*stale = (struct mw_stale){.found = false};
}

void mw_stale_hide(const struct mw_stale *stale, mw_addr addr, uint8_t *bytes, size_t size)
{
	if (!stale->journal)
		return;
	MW_EACH(patch, stale->journal->items, stale->journal->count)
		for (size_t j = 0; j < patch->size; j++)
			if (patch->addr + j - addr < size)
				bytes[patch->addr + j - addr] = patch->original[j];
}

static struct mw_error *remove_all(pid_t pid, char *left, size_t size)
{
	struct mw_error *err;
	uint64_t stood_ns;
	unsigned count;

	MW_TRY(jump_stale_remove(pid, left, size));
	if (*left)
		return NULL;
	MW_TRY(trap_stale_remove(pid));
	err = mw_copies_reap(pid, &count, &stood_ns);
	if (!err || mw_error_kind(err) != MW_ERROR_UNSUPPORTED)
		return err;
	/* It is in nobody's way. */
	(void)snprintf(left, size, "a copy of it stays as a zombie: %s", mw_error_text(err));
	mw_error_destroy(err);
	return NULL;
}

/* What another takes out meanwhile fails here in any way; when it is done, there is nothing left to do. */
struct mw_error *mw_stale_remove(pid_t pid, char *left, size_t size)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	struct mw_error *err = remove_all(pid, left, size);
	uint64_t begin = mw_clock_ns(), patience = PATIENCE_NS;
	bool last = false;

	for (unsigned alone = 0; err && !last;) {
		if (mw_error_kind(err) == MW_ERROR_MEMORY || mw_error_kind(err) == MW_ERROR_UNSUPPORTED ||
		    (mw_error_kind(err) == MW_ERROR_GONE && mw_process_is_over(pid)))
			break;
		if (mw_preflight_await_guard(pid))
			patience = GUARD_NS;
		else if (mw_error_none(mw_preflight_rival(pid)) && ++alone > MOST_ALONE &&
			 mw_clock_ns() - begin > ALONE_NS)
			break;
		/* It may have come to its end amidst the attempt that came to this error. */
		last = mw_clock_ns() - begin >= patience;
		if (last && mw_error_kind(err) == MW_ERROR_DENIED)
			break;
		nanosleep(&moment, NULL);
		mw_error_destroy(err);
		err = remove_all(pid, left, size);
	}
	return err;
}

struct mw_error *mw_stale_explain(pid_t pid, struct mw_error *err)
{
	struct mw_stale stale = {.found = false};
	struct mw_error *better;

	if (!err || (mw_error_kind(err) != MW_ERROR_UNSUPPORTED && mw_error_kind(err) != MW_ERROR_SYSTEM))
		return err;
	better = mw_preflight_rival(pid);
	if (!better) {
		better = mw_stale_look(pid, &stale);
		mw_stale_deinit(&stale);
	}
	if (better && mw_error_kind(better) == MW_ERROR_DENIED) {
		mw_error_destroy(err);
		return better;
	}
	mw_error_destroy(better);
	return err;
}
