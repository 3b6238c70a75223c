/* SPDX-License-Identifier: MIT */
/*
 * journal.h: the only writer of a target's text. Each change is written down before it is made,
 * so that one rollback undoes them all: at detach, after an error, in a forked child's copy.
 */
#ifndef MW_TRACEE_JOURNAL_H
#define MW_TRACEE_JOURNAL_H

#include <memwatch/arch.h>
#include <memwatch/error.h>

#include <sys/types.h>

struct mw_patch {
	mw_addr addr;
	uint8_t size;
	bool standing;  /* in the target now */
	bool forgotten; /* its memory is gone */
	bool data;      /* the program may write there as well */
	uint8_t original[MW_OOL_MAX];
	uint8_t planted[MW_OOL_MAX];
};

/* Zero-initialise; mw_journal_deinit frees. Patch numbers are indices and stay. */
struct mw_journal {
	struct mw_patch *items;
	size_t count, capacity;
};

/*
 * Write `size` (at most MW_OOL_MAX) bytes at `addr`. `tid` must be in a ptrace stop; other threads may run if a single
 * byte of an instruction changes, or nothing executes there yet. Errors: DATA where the address can't be read, SYSTEM,
 * GONE, MEMORY. `*number`, where it is asked for: the patch's.
 */
struct mw_error *mw_journal_plant(struct mw_journal *journal, pid_t tid, mw_addr addr, const void *bytes, size_t size,
				  size_t *number) MW_MUST_CHECK;

/* The same for a word of data, which the program may change: whatever it writes there is left. */
struct mw_error *mw_journal_plant_word(struct mw_journal *journal, pid_t tid, mw_addr addr,
				       uint64_t word) MW_MUST_CHECK;

/* Write down a change that another memwatch has made: `planted` is what stands there, `original` what stood there
 * before. Errors: DATA where it is too long, MEMORY. */
struct mw_error *mw_journal_adopt(struct mw_journal *journal, mw_addr addr, const void *original, const void *planted,
				  size_t size, size_t *number) MW_MUST_CHECK;
/* The same for a word of data. */
struct mw_error *mw_journal_adopt_word(struct mw_journal *journal, mw_addr addr, uint64_t original,
				       uint64_t planted) MW_MUST_CHECK;

/* Put one patch's bytes back. A place that no longer holds what was planted is left alone and counted as not standing.
 */
struct mw_error *mw_journal_restore(struct mw_journal *journal, pid_t tid, size_t number) MW_MUST_CHECK;

/* Put all bytes back, newest first, and read them to see that they are. Goes on past a failure and returns the first.
 */
struct mw_error *mw_journal_rollback(struct mw_journal *journal, pid_t tid) MW_MUST_CHECK;

/* How many places that were written show something else now, as somebody else has written there or put back what
 * stood there before. Those that are not mapped any more don't count; of data only what stood there before. */
size_t mw_journal_disturbed(const struct mw_journal *journal, pid_t tid) MW_MUST_CHECK;

/* Is any of it in the target now: was one not put back? */
bool mw_journal_stands(const struct mw_journal *journal) MW_MUST_CHECK;

/* Undo the patches in a copy of the memory (a forked child); the journal stays as it is. */
struct mw_error *mw_journal_clean_copy(const struct mw_journal *journal, pid_t child) MW_MUST_CHECK;
/* The same for one of them. */
struct mw_error *mw_journal_clean_entry(const struct mw_journal *journal, pid_t child, size_t number) MW_MUST_CHECK;

/* The memory [start, end) is gone: nothing there is to be put back any more. */
void mw_journal_forget(struct mw_journal *journal, mw_addr start, mw_addr end);

/* The same for all of it (exec). */
static inline void mw_journal_forget_all(struct mw_journal *journal)
{
	journal->count = 0;
}

void mw_journal_deinit(struct mw_journal *journal);

#endif
