// SPDX-License-Identifier: MIT
/*
 * suspended.c: calls of ours that no thread is in (jump.h).
 *
 * A signal handler that switches to another stack (swapcontext) leaves behind what the signal has struck, and may come
 * back to it at any time. The recorder's count of what has come in and not left tells that there is such a call; or
 * one that a handler has jumped out of for good (longjmp). Where there is one that will come back, the place to go back
 * to, or the mark of the call, lies in memory: all that may be a stack is looked through.
 */
#include "engine/jump/jump.h"

#include "proc/maps.h"
#include "target/remote.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE      4096u
#define AT_ONCE   (1u << 20)            /* bytes */
#define MOST      (UINT64_C(256) << 20) /* bytes looked through: all threads stand meanwhile */
#define CALL      (sizeof(struct mw_stub_call) / sizeof(uint64_t))
#define IN_MEMORY (UINT64_C(3) << 62) /* of an entry of pagemap: present, or in swap */

/* Words of a piece of memory overlap those of the next: a mark is looked for as a whole, the word below it as well. */
#define OVERLAP (CALL + 1)

/* A stack, and the stack pointer of the thread on it. */
struct running {
	mw_addr start, sp;
};

struct search {
	const struct jump_process *process;
	pid_t tid;
	int pagemap;     /* -1: none, all is taken for present */
	uint64_t *words; /* AT_ONCE bytes and OVERLAP words */
	uint64_t left;   /* bytes that may still be looked through */
	struct running *running;
	size_t running_count, found;
};

/* Nobody comes back to calls of a thread that has ended. */
static uint32_t open_calls(const struct jump_process *process)
{
	uint32_t open = process->open_elsewhere;

	for (uint32_t i = 0; i < process->shared.geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->shared, i);

		if (__atomic_load_n(&slot->tid, __ATOMIC_RELAXED) != MW_RING_NO_TID)
			open += __atomic_load_n(&slot->open, __ATOMIC_RELAXED);
	}
	return open;
}

/* Take note of the stacks of threads that run on their own. False without memory. */
static bool find_running(struct search *search, const struct mw_maps *maps)
{
	const struct mw_quiesce *quiesce = &search->process->quiesce;

	search->running = calloc(quiesce->count + 1, sizeof(*search->running));
	for (size_t i = 0; search->running && i < quiesce->count; i++) {
		struct mw_tracee_regs regs;
		struct mw_error *err =
			quiesce->threads[i].stopped ? mw_tracee_get_regs(quiesce->threads[i].tid, &regs) : NULL;
		const struct mw_mapping *mapping;
		mw_addr sp, own;

		if (err || !quiesce->threads[i].stopped) {
			mw_error_destroy(err);
			continue;
		}
		sp = regs.general.gpr[search->process->survey.arch->dwarf_sp];
		own = regs.general.thread_pointer;
		mapping = mw_maps_find(maps, sp);
		/* A pthread's control block lies above its stack. */
		if (mapping && (strcmp(mapping->path, "[stack]") == 0 || (own > sp && own < mapping->end)))
			search->running[search->running_count++] = (struct running){.start = mapping->start, .sp = sp};
	}
	return search->running;
}

/* Is the mapping the stack of a thread that runs on it? From the stack pointer up it has been looked through, and below
 * there is nothing that anyone comes back to. */
static bool is_running_stack(const struct search *search, const struct mw_mapping *mapping)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (search->running[i].start == mapping->start)
			return true;
	return false;
}

/* Nobody comes back to a stack pointer below that of the thread whose stack it is. */
static bool is_below_running(const struct search *search, mw_addr sp)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (sp >= search->running[i].start && sp < search->running[i].sp)
			return true;
	return false;
}

static bool may_hold_stacks(const struct search *search, const struct mw_mapping *mapping)
{
	const struct jump_process *process = search->process;

	if (!mapping->read || !mapping->write || strncmp(mapping->path, "/dev/", 5) == 0)
		return false;
	if (mapping->start >= process->memory.there && mapping->start < process->memory.there + process->memory.size)
		return false;
	return mapping->start != process->guard && !is_running_stack(search, mapping);
}

static bool is_struck(const struct search *search, mw_addr start, size_t count, size_t i)
{
	const uint64_t *words = search->words;

	/* What a signal has struck is kept with its stack pointer right before the program counter. */
	return jump_struck_in_ours(search->process, start + i * sizeof(*words), words, count, i) &&
	       !(i > 0 && is_below_running(search, words[i - 1]));
}

/* `size` bytes, and OVERLAP words behind them. */
static void look_through(struct search *search, mw_addr start, uint64_t size)
{
	const struct jump_process *process = search->process;
	size_t count =
		mw_remote_read(search->tid, start, search->words, size + OVERLAP * sizeof(uint64_t)) / sizeof(uint64_t);

	/* The first word behind them is the next piece's first, which lacks what lies below it. */
	for (size_t i = 0; i < count && i <= size / sizeof(uint64_t); i++)
		search->found += is_struck(search, start, count, i) ||
				 (i + CALL <= count && jump_call_stands(process, start, search->words, i));
}

/* Pages [page, page + count) hold something. */
static bool look_at_pages(struct search *search, uint64_t page, uint64_t count)
{
	for (uint64_t done = 0; done < count * PAGE; done += AT_ONCE) {
		uint64_t size = count * PAGE - done < AT_ONCE ? count * PAGE - done : AT_ONCE;

		if (size > search->left)
			return false;
		search->left -= size;
		look_through(search, page * PAGE + done, size);
	}
	return true;
}

/* False: there is more than can be looked through. */
static bool look_at(struct search *search, const struct mw_mapping *mapping)
{
	uint64_t entries[512], first = 0, run = 0;

	if (search->pagemap < 0)
		return look_at_pages(search, mapping->start / PAGE, (mapping->end - mapping->start) / PAGE);
	for (uint64_t page = mapping->start / PAGE; page < mapping->end / PAGE;) {
		uint64_t left = mapping->end / PAGE - page;
		size_t wanted = left < 512 ? (size_t)left : 512;
		ssize_t got = pread(search->pagemap, entries, wanted * sizeof(entries[0]),
				    (off_t)(page * sizeof(entries[0])));

		if (got < (ssize_t)sizeof(entries[0]))
			return false;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++, page++) {
			if (entries[i] & IN_MEMORY) {
				first = run++ ? first : page;
				continue;
			}
			if (run && !look_at_pages(search, first, run))
				return false;
			run = 0;
		}
	}
	return !run || look_at_pages(search, first, run);
}

size_t jump_suspended(const struct jump_process *process, const struct mw_maps *maps)
{
	uint32_t count = open_calls(process);
	struct search search = {.process = process, .tid = jump_live_tid(process), .pagemap = -1, .left = MOST};
	char path[64];
	bool all;

	if (count == 0)
		return 0;
	search.words = malloc(AT_ONCE + OVERLAP * sizeof(uint64_t));
	all = search.words && find_running(&search, maps);
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)search.tid);
	search.pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < maps->count && all; i++)
		if (may_hold_stacks(&search, &maps->items[i]))
			all = look_at(&search, &maps->items[i]);
	if (search.pagemap >= 0)
		close(search.pagemap);
	free(search.running);
	free(search.words);
	/* What can't be looked for may be there. */
	return all ? search.found : count;
}
