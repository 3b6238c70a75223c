// SPDX-License-Identifier: MIT
/* search.c: the memory of a process looked through (jump.h). */
#include "engine/jump/jump.h"

#include "base/path.h"
#include "proc/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE      4096u
#define AT_ONCE   (1u << 20)            /* bytes */
#define MOST      (UINT64_C(256) << 20) /* bytes looked through: all threads stand meanwhile */
#define LONGEST   UINT64_C(300000000)   /* ns of CPU time: a sparse mapping may be larger than can be asked about */
#define BRIEF     UINT64_C(5000000)
#define LARGE     (UINT64_C(32) << 20) /* bytes */
#define ENTRIES   2048u                /* of pagemap, at a time */
#define IN_MEMORY (UINT64_C(3) << 62)  /* of an entry of pagemap: present, or in swap */
#define BLOCK     64u                  /* words */

/* Words of a piece of memory overlap those of the next: a mark is looked for as a whole, the word below it as well. */
#define OVERLAP (JUMP_CALL_WORDS + 1)

/* glibc, musl and Java's virtual machine all keep what lies right below a thread's stack from being touched: by a
 * mapping, or by a page of the same one. */
static bool is_guarded(const struct mw_maps *maps, const struct mw_mapping *mapping)
{
	const struct mw_mapping *below = mapping > maps->items ? mapping - 1 : NULL;

	return below && below->end == mapping->start && !below->read && !below->write && !below->exec;
}

/*
 * A pthread's control block lies above its stack. Below that of the first thread there is no stack but what the program
 * has put there; and the thread of a forked child may have been any.
 */
static bool own_stack(const struct jump_process *process, const struct mw_maps *maps, pid_t tid,
		      const struct mw_regs *regs, struct jump_running *out)
{
	mw_addr sp = regs->gpr[process->survey.arch->dwarf_sp], block = regs->thread_pointer;
	const struct mw_mapping *mapping = mw_maps_find(maps, sp);
	mw_addr end;
	bool guarded;

	if (!mapping)
		return false;
	*out = (struct jump_running){.start = mapping->start, .sp = sp};
	if (strcmp(mapping->path, "[stack]") == 0)
		return true;
	if (tid == process->pid || process->is_copy || block <= sp || block >= mapping->end)
		return false;
	end = mapping->end;
	guarded = mw_touched_clip(tid, sp, &out->start, &end) || is_guarded(maps, mapping);
	return guarded && block < end;
}

bool jump_on_own_stack(const struct jump_process *process, const struct mw_maps *maps, pid_t tid,
		       const struct mw_regs *regs)
{
	struct jump_running running;

	return own_stack(process, maps, tid, regs, &running);
}

/* Take note of the stacks of threads that run on their own. False without memory. */
static bool find_running(struct jump_search *search, const struct mw_maps *maps)
{
	const struct mw_quiesce *quiesce = &search->process->quiesce;

	search->running = calloc(quiesce->count + 1, sizeof(*search->running));
	for (size_t i = 0; search->running && i < quiesce->count; i++) {
		struct mw_tracee_regs regs;

		if (jump_regs_of(&quiesce->threads[i], &regs))
			search->running_count += own_stack(search->process, maps, quiesce->threads[i].tid,
							   &regs.general, &search->running[search->running_count]);
	}
	return search->running;
}

/* Does an address lie below the stack pointer of the thread whose stack it is, however far? */
static bool is_anywhere_below(const struct jump_search *search, mw_addr address)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (address >= search->running[i].start && address < search->running[i].sp)
			return true;
	return false;
}

static bool may_hold_stacks(const struct jump_search *search, const struct mw_mapping *mapping)
{
	const struct jump_process *process = search->process;

	if (!mapping->read || !mapping->write || strncmp(mapping->path, "/dev/", 5) == 0)
		return false;
	if (mapping->start >= process->recorder.memory.there &&
	    mapping->start < process->recorder.memory.there + process->recorder.memory.size)
		return false;
	return mapping->start != process->recorder.guard;
}

/* Does any of `count` words lead to where what is looked for leads? Most of them don't. */
static bool any_leads(const struct jump_search *search, const uint64_t *words, size_t count)
{
	uint64_t span = search->high - search->low;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= words[i] - search->low < span;
	return any;
}

static void note(struct jump_search *search, mw_addr at, enum jump_found told)
{
	struct jump_seen *seen = &search->process->seen;

	if (told == JUMP_FOUND_NOTHING)
		return;
	if (told == JUMP_FOUND_DOUBTFUL || is_anywhere_below(search, at)) {
		search->doubtful++;
		search->below += told == JUMP_FOUND;
	} else {
		search->found++;
	}
	if (seen->place_count < JUMP_PLACES)
		seen->places[seen->place_count++] = at;
}

/* `size` bytes, and what marks hold that begin in them, where there is `more`. Returns how many of them can be read. */
static uint64_t look_through(struct jump_search *search, mw_addr start, uint64_t size, bool more)
{
	const uint64_t *words = search->words;
	uint64_t wanted = size + (more ? OVERLAP * sizeof(*words) : 0);
	size_t got = mw_remote_read(search->tid, start, search->words, wanted), there = got / sizeof(*words);
	/* The first word behind them is the next piece's first, which lacks what lies below it. */
	size_t count = there < size / sizeof(*words) + 1 ? there : size / sizeof(*words) + 1;

	for (size_t i = 0, end; i < count; i = end) {
		end = count - i < BLOCK ? count : i + BLOCK;
		/* A call's mark lies above the word that leads to us. */
		if (!any_leads(search, &words[i - (i > 0)], end - i + (i > 0)))
			continue;
		for (; i < end; i++)
			note(search, start + i * sizeof(*words), search->tells(search, start, there, i));
	}
	return got < size ? got : size;
}

/* Pages [page, page + count) hold something, the one behind them does not: to read it would be to ask for it. */
static bool look_at_pages(struct jump_search *search, uint64_t page, uint64_t count)
{
	for (uint64_t done = 0, there; done < count * PAGE;) {
		uint64_t size = count * PAGE - done < AT_ONCE ? count * PAGE - done : AT_ONCE;

		search->process->seen.reached = page * PAGE + done;
		if (size > search->left || mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) > search->until ||
		    (search->first && search->found))
			return false;
		there = look_through(search, page * PAGE + done, size, done + size < count * PAGE);
		/* Guards look as if they held something, and other stacks lie behind them. */
		if (there < size)
			size = there / PAGE * PAGE + PAGE;
		search->left -= size;
		done += size;
	}
	return true;
}

/* Pages of [start, end) that hold something. False: there is more than can be looked through. */
static bool look_at(struct jump_search *search, mw_addr start, mw_addr end)
{
	uint64_t entries[ENTRIES], first = 0, run = 0;

	if (search->pagemap < 0)
		return look_at_pages(search, start / PAGE, (end - start) / PAGE);
	for (uint64_t page = start / PAGE; page < end / PAGE;) {
		uint64_t left = end / PAGE - page;
		size_t wanted = left < ENTRIES ? (size_t)left : ENTRIES;
		ssize_t got = pread(search->pagemap, entries, wanted * sizeof(entries[0]),
				    (off_t)(page * sizeof(entries[0])));

		if (!run)
			search->process->seen.reached = page * PAGE;
		if (got < (ssize_t)sizeof(entries[0]) || mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) > search->until)
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

/* Look at what was found the last time: as long as it is there, there is no need to look everywhere. */
static bool look_again(struct jump_search *search)
{
	struct jump_seen *seen = &search->process->seen;
	size_t count = seen->place_count;

	seen->place_count = 0;
	for (size_t i = 0; i < count; i++) {
		mw_addr start = seen->places[i] - sizeof(*search->words);
		size_t there = mw_remote_read(search->tid, start, search->words, BLOCK * sizeof(*search->words));

		if (there > sizeof(*search->words))
			note(search, seen->places[i], search->tells(search, start, there / sizeof(*search->words), 1));
	}
	return search->found + search->doubtful > 0;
}

/* Mappings of one size: stacks are rarely large, and those that are come last. */
static bool look_at_some(struct jump_search *search, const struct mw_maps *maps, bool large)
{
	struct jump_seen *seen = &search->process->seen;

	MW_EACH(mapping, maps->items, maps->count) {
		mw_addr start = mapping->start > seen->reached ? mapping->start : seen->reached;

		if ((mapping->end - mapping->start > LARGE) != large || mapping->end <= start ||
		    !may_hold_stacks(search, mapping))
			continue;
		if (!look_at(search, start, mapping->end))
			return false;
	}
	return true;
}

/* False: there is more of it than can be looked through now. */
static bool look_everywhere(struct jump_search *search, const struct mw_maps *maps)
{
	struct jump_seen *seen = &search->process->seen;
	bool all = true;

	search->left = MOST;
	/* Where others have the CPU, that is not to leave anything out. */
	search->until = mw_clock_ns_of(CLOCK_THREAD_CPUTIME_ID) + (search->brief ? BRIEF : LONGEST);
	search->pagemap = open(mw_path("/proc/%d/pagemap", (int)search->tid).text, O_RDONLY | O_CLOEXEC);
	if (!seen->at_large)
		all = look_at_some(search, maps, false);
	if (all && !seen->at_large) {
		seen->at_large = true;
		seen->reached = 0;
	}
	all = all && look_at_some(search, maps, true);
	if (search->pagemap >= 0)
		close(search->pagemap);
	if (all)
		jump_seen_anew(seen);
	return all;
}

bool jump_search(struct jump_search *search, const struct mw_maps *maps)
{
	bool all = false;

	search->words = malloc(AT_ONCE + OVERLAP * sizeof(uint64_t));
	if (search->words && find_running(search, maps))
		all = look_again(search) || look_everywhere(search, maps);
	free(search->running);
	free(search->words);
	return all;
}
