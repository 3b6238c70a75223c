// SPDX-License-Identifier: MIT
/* journal.c: what was written into a target's text (journal.h). */
#include "tracee/journal.h"

#include "base/fault.h"
#include "base/vector.h"
#include "tracee/tracee.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more, which does not count yet: its address, size and planted bytes. */
static struct mw_error *append(struct mw_journal *journal, mw_addr addr, const void *planted, size_t size,
			       struct mw_patch **out)
{
	if (size > MW_OOL_MAX)
		return mw_error_create(MW_ERROR_DATA, 0, "a patch of %zu bytes is too long", size);
	if (!MW_VECTOR_ROOM(journal->items, journal->count, journal->capacity))
		return mw_error_nomem();
	*out = &journal->items[journal->count];
	**out = (struct mw_patch){.addr = addr, .size = (uint8_t)size};
	memcpy((*out)->planted, planted, size);
	return NULL;
}

static struct mw_error *plant(struct mw_journal *journal, pid_t tid, mw_addr addr, const void *bytes, size_t size,
			      bool data, size_t *number)
{
	struct mw_patch *patch = NULL;
	struct mw_error *err;

	MW_TRY(append(journal, addr, bytes, size, &patch));
	patch->data = data;
	MW_TRY(mw_remote_read_all(tid, addr, patch->original, size));
	/* Standing before it is written: a write that fails half way is undone as well. */
	patch->standing = true;
	if (number)
		*number = journal->count;
	journal->count++;
	err = mw_remote_poke(tid, addr, bytes, size);
	if (err)
		mw_error_destroy(mw_journal_restore(journal, tid, journal->count - 1));
	return err;
}

struct mw_error *mw_journal_plant(struct mw_journal *journal, pid_t tid, mw_addr addr, const void *bytes, size_t size,
				  size_t *number)
{
	return plant(journal, tid, addr, bytes, size, false, number);
}

struct mw_error *mw_journal_plant_word(struct mw_journal *journal, pid_t tid, mw_addr addr, uint64_t word)
{
	return plant(journal, tid, addr, &word, sizeof(word), true, NULL);
}

struct mw_error *mw_journal_adopt(struct mw_journal *journal, mw_addr addr, const void *original, const void *planted,
				  size_t size, size_t *number)
{
	struct mw_patch *patch = NULL;

	MW_TRY(append(journal, addr, planted, size, &patch));
	patch->standing = true;
	memcpy(patch->original, original, size);
	if (number)
		*number = journal->count;
	journal->count++;
	return NULL;
}

struct mw_error *mw_journal_adopt_word(struct mw_journal *journal, mw_addr addr, uint64_t original, uint64_t planted)
{
	size_t number;

	MW_TRY(mw_journal_adopt(journal, addr, &original, &planted, sizeof(planted), &number));
	journal->items[number].data = true;
	return NULL;
}

/* A place that shows neither what was there nor what was planted belongs to somebody else now, one that is not mapped
 * any more to nobody. `*there`: something of what was planted is still in it. `*denied`: it may not be looked at. */
static bool still_ours(const struct mw_patch *patch, pid_t tid, bool *there, bool *denied)
{
	uint8_t now[MW_OOL_MAX];

	*there = *denied = false;
	if (mw_remote_read(tid, patch->addr, now, patch->size) != patch->size) {
		*denied = errno == EPERM;
		return false;
	}
	for (size_t i = 0; i < patch->size; i++)
		if (now[i] != patch->planted[i] && now[i] != patch->original[i])
			return false;
	*there = memcmp(now, patch->original, patch->size) != 0;
	/* The program writes whole words. */
	if (patch->data && *there && memcmp(now, patch->planted, patch->size) != 0)
		return *there = false;
	return true;
}

static struct mw_error *undo(const struct mw_patch *patch, pid_t tid)
{
	bool there, denied, ours = still_ours(patch, tid, &there, &denied);
	struct mw_error *err;

	if (denied)
		return mw_error_create(MW_ERROR_DENIED, EPERM, "the code at 0x%llx of thread %d can't be restored",
				       (unsigned long long)patch->addr, tid);
	if (!ours || !there)
		return NULL;
	MW_TRY(mw_fault("text.restore"));
	err = mw_remote_poke(tid, patch->addr, patch->original, patch->size);
	/* It may have gone meanwhile: a file that was cut short takes its pages along. */
	if (!still_ours(patch, tid, &there, &denied) && !denied) {
		mw_error_destroy(err);
		return NULL;
	}
	if (!err && (there || denied))
		err = mw_error_create(MW_ERROR_SYSTEM, 0, "the code at 0x%llx could not be restored",
				      (unsigned long long)patch->addr);
	return err;
}

struct mw_error *mw_journal_restore(struct mw_journal *journal, pid_t tid, size_t number)
{
	struct mw_patch *patch = &journal->items[number];

	if (!patch->standing)
		return NULL;
	MW_TRY(undo(patch, tid));
	patch->standing = false;
	return NULL;
}

struct mw_error *mw_journal_rollback(struct mw_journal *journal, pid_t tid)
{
	struct mw_error *first = NULL;

	for (size_t i = journal->count; i-- > 0;)
		first = mw_error_first(first, mw_journal_restore(journal, tid, i));
	return first;
}

size_t mw_journal_disturbed(const struct mw_journal *journal, pid_t tid)
{
	size_t count = 0;

	for (size_t i = 0; i < journal->count; i++) {
		const struct mw_patch *patch = &journal->items[i];
		uint8_t now[MW_OOL_MAX];

		count += patch->standing && !patch->forgotten &&
			 mw_remote_read(tid, patch->addr, now, patch->size) == patch->size &&
			 (patch->data ? memcmp(now, patch->original, patch->size) == 0
				      : memcmp(now, patch->planted, patch->size) != 0);
	}
	return count;
}

bool mw_journal_stands(const struct mw_journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		if (journal->items[i].standing)
			return true;
	return false;
}

struct mw_error *mw_journal_clean_entry(const struct mw_journal *journal, pid_t child, size_t number)
{
	/* Also one that was lifted: the copy may have been made before. */
	return journal->items[number].forgotten ? NULL : undo(&journal->items[number], child);
}

struct mw_error *mw_journal_clean_copy(const struct mw_journal *journal, pid_t child)
{
	struct mw_error *first = NULL;

	for (size_t i = journal->count; i-- > 0;)
		first = mw_error_first(first, mw_journal_clean_entry(journal, child, i));
	return first;
}

void mw_journal_forget(struct mw_journal *journal, mw_addr start, mw_addr end)
{
	for (size_t i = 0; i < journal->count; i++)
		if (journal->items[i].addr >= start && journal->items[i].addr < end)
			journal->items[i] = (struct mw_patch){.forgotten = true};
}

void mw_journal_deinit(struct mw_journal *journal)
{
	free(journal->items);
	memset(journal, 0, sizeof(*journal));
}
