// SPDX-License-Identifier: MIT
/* own_stack.c: the unused end of a thread's own stack (own_stack.h). */
#include "tracee/own_stack.h"

#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/remote.h"
#include "tracee/sigframe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE         4096u
#define BLOCK_WORDS  320u                 /* of a control block: glibc's struct pthread takes 290 */
#define BLOCK_MOST   UINT64_C(16384)      /* bytes from the thread pointer to the end of glibc's stack */
#define TLS_MOST     (UINT64_C(64) << 20) /* … from musl's stack to the thread pointer */
#define STACK_MOST   (UINT64_C(1) << 40)
#define LOOKED_AT    (UINT64_C(64) << 20) /* bytes of a stack from its high end */
#define BELOW        2048u                /* bytes below the stack pointer that are left alone */
#define ENTRIES      512u                 /* of pagemap, at a time */
#define IN_MEMORY    (UINT64_C(3) << 62)  /* of an entry: present, or in swap */
#define IN_SWAP      (UINT64_C(1) << 62)
#define MOST_REMAINS 64u /* of killed memwatches that are cleared at a time */

/* A stack that is looked through from its low end. */
struct look {
	pid_t tid;
	int pagemap; /* -1: there is none */
	mw_addr low, high;
	bool clears; /* nothing below `high` is in use, so what killed memwatches have left may be made zero */
};

static bool is_glibc(mw_addr thread_pointer, const uint64_t *word, mw_addr *low, mw_addr *high)
{
	uint64_t start = word[0], size = word[1], guard = word[2];

	if (start == 0 || start > thread_pointer || size > STACK_MOST || size <= thread_pointer - start ||
	    size - (thread_pointer - start) > BLOCK_MOST || guard % PAGE != 0 || guard >= thread_pointer - start)
		return false;
	*low = start + guard;
	*high = thread_pointer;
	return true;
}

static bool is_musl(mw_addr thread_pointer, const uint64_t *word, mw_addr *low, mw_addr *high)
{
	uint64_t map = word[0], map_size = word[1], top = word[2], size = word[3];

	if (map == 0 || map % PAGE != 0 || map > thread_pointer || map_size > STACK_MOST ||
	    map_size <= thread_pointer - map || top > thread_pointer || thread_pointer - top > TLS_MOST || top <= map ||
	    size == 0 || size > top - map)
		return false;
	*low = top - size;
	*high = top;
	return true;
}

bool mw_own_stack_bounds(mw_addr thread_pointer, const uint64_t *block, size_t count, mw_addr *low, mw_addr *high)
{
	for (size_t i = 0; i + 4 <= count; i++)
		if (is_glibc(thread_pointer, &block[i], low, high) || is_musl(thread_pointer, &block[i], low, high))
			return true;
	return false;
}

/* What was never touched of others may hold something. */
static bool may_hold_stack(const struct mw_mapping *mapping)
{
	return mapping && mapping->read && mapping->write && !mapping->shared && !mapping->inode;
}

/* As the thread library has it. */
static bool library_stack(pid_t tid, const struct mw_regs *regs, const struct mw_maps *maps, struct look *look)
{
	uint64_t block[BLOCK_WORDS];
	const struct mw_mapping *mapping;
	size_t got;

	/* The block may end before that, and behind it there may be memory that nobody has touched yet. */
	got = mw_touched_peek(tid, regs->thread_pointer, block, sizeof(block)) / sizeof(block[0]);
	if (!mw_own_stack_bounds(regs->thread_pointer, block, got, &look->low, &look->high))
		return false;
	mapping = mw_maps_find(maps, look->high - 1);
	if (!may_hold_stack(mapping))
		return false;
	/* A runtime may have guards of its own above that (Java). */
	if (mapping->start > look->low)
		look->low = mapping->start;
	return true;
}

/* The first thread's, whatever it runs on now; or that of a vforked child, which runs on its maker's. */
static bool first_stack(pid_t tid, mw_addr sp, const struct mw_maps *maps, struct look *look)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];
		struct mw_status status;
		struct mw_error *err;
		bool first;

		if (strcmp(mapping->path, "[stack]") != 0 || !may_hold_stack(mapping))
			continue;
		err = mw_status_read(tid, &status);
		first = !err && status.tgid == tid;
		mw_error_destroy(err);
		look->low = mapping->start;
		look->high = mapping->end;
		return first || (sp >= mapping->start && sp < mapping->end);
	}
	return false;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Is a page unused: never touched, or all zero? */
static bool is_unused(const struct look *look, mw_addr page, uint64_t entry)
{
	uint8_t bytes[PAGE];

	if (!(entry & IN_MEMORY))
		return true;
	return !(entry & IN_SWAP) && mw_remote_read(look->tid, page, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       is_zero(bytes, sizeof(bytes));
}

/* Where what is unused from `page` on ends. */
static mw_addr unused_end(const struct look *look, mw_addr page)
{
	uint64_t entries[ENTRIES];

	while (page < look->high) {
		uint64_t left = (look->high - page) / PAGE;
		size_t wanted = left < ENTRIES ? (size_t)left : ENTRIES;
		ssize_t got = pread(look->pagemap, entries, wanted * sizeof(entries[0]),
				    (off_t)(page / PAGE * sizeof(entries[0])));

		if (got < (ssize_t)sizeof(entries[0]))
			return page;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++, page += PAGE)
			if (!is_unused(look, page, entries[i]))
				return page;
	}
	return page;
}

/* Make what a killed memwatch has left in the used page at `page` zero. False: there is nothing of that kind. */
static bool clear_remains(const struct look *look, mw_addr page)
{
	static const uint8_t zero[PAGE];
	mw_addr start;
	size_t size;

	if (!mw_sigframe_find_remains(look->tid, page, look->high, &start, &size) || start < page ||
	    start - page >= PAGE || size > look->high - start)
		return false;
	for (size_t done = 0, piece; done < size; done += piece) {
		struct mw_error *err;

		piece = size - done < PAGE ? size - done : PAGE;
		err = mw_remote_write(look->tid, start + done, zero, piece);
		if (err) {
			mw_error_destroy(err);
			return false;
		}
	}
	return true;
}

/* The end of the stack that has never been used, up to look->high; its last bytes are nearest to what is. */
static bool unused_room(struct look *look, size_t size, struct mw_room *out)
{
	mw_addr start = (look->low + PAGE - 1) & ~(mw_addr)(PAGE - 1), end = start;
	char path[64];

	/* What is not there yet may have to be provided by a thread that stands still. */
	if (mw_peek_is_careful())
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)look->tid);
	look->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (look->pagemap < 0)
		return false;
	for (unsigned i = 0; i < MOST_REMAINS && end < look->high; i++) {
		end = unused_end(look, end);
		if (end >= look->high || !look->clears || !clear_remains(look, end))
			break;
	}
	close(look->pagemap);
	if (end < start || end - start < size)
		return false;
	*out = (struct mw_room){.low = end - size, .high = end, .zero = true};
	return true;
}

/* As the maps have it. `*grows`: it is a stack that the kernel makes longer. */
static bool find_room(pid_t tid, const struct mw_maps *maps, size_t size, struct mw_room *out, bool *grows)
{
	struct look look = {.tid = tid};
	struct mw_tracee_regs regs;
	struct mw_error *err = mw_tracee_get_regs(tid, &regs);
	mw_addr sp;
	bool runs_there;

	*grows = false;
	if (err) {
		mw_error_destroy(err);
		return false;
	}
	sp = regs.general.gpr[mw_arch_find(mw_target_machine())->dwarf_sp];
	if (!library_stack(tid, &regs.general, maps, &look)) {
		if (!first_stack(tid, sp, maps, &look))
			return false;
		*grows = true;
	}
	runs_there = sp > look.low && sp <= look.high;
	if (runs_there)
		look.high = sp > BELOW ? sp - BELOW : 0;
	/* Else the frames that wait there may lie on the upper part of what was left. */
	look.clears = runs_there;
	if (look.high > look.low && look.high - look.low > LOOKED_AT)
		look.low = look.high - LOOKED_AT;
	look.high &= ~(mw_addr)(PAGE - 1);
	if (look.high > look.low && unused_room(&look, size, out))
		return true;
	if (!runs_there || sp - look.low < BELOW + size)
		return false;
	*out = (struct mw_room){.low = sp - BELOW - size, .high = sp - BELOW};
	return true;
}

/* Touch what lies below the first thread's stack, as a deeper call would: the kernel makes it longer where it may. What
 * is left alone below the stack pointer may reach into it. */
static bool grow(pid_t tid, const struct mw_maps *maps, size_t size)
{
	static const uint64_t zero;
	const size_t more = size + BELOW + PAGE;

	for (size_t i = 0; i < maps->count; i++) {
		const struct mw_mapping *mapping = &maps->items[i];
		struct mw_error *err;
		bool grown;

		if (strcmp(mapping->path, "[stack]") != 0 || mapping->start <= more + PAGE)
			continue;
		err = mw_remote_poke(tid, (mapping->start - more) & ~(mw_addr)(PAGE - 1), &zero, sizeof(zero));
		grown = !err;
		mw_error_destroy(err);
		return grown;
	}
	return false;
}

bool mw_own_stack_room(pid_t tid, const struct mw_maps *maps, size_t size, struct mw_room *out)
{
	struct mw_maps now = {0};
	struct mw_error *err;
	bool grows, found = false;

	if (find_room(tid, maps, size, out, &grows))
		return true;
	if (!grows || mw_peek_is_careful())
		return false;
	/* It may have grown since. */
	err = mw_maps_read(tid, &now);
	if (!err && !find_room(tid, &now, size, out, &grows) && grow(tid, &now, size)) {
		mw_maps_deinit(&now);
		err = mw_maps_read(tid, &now);
	}
	found = !err && find_room(tid, &now, size, out, &grows);
	mw_error_destroy(err);
	mw_maps_deinit(&now);
	return found;
}
