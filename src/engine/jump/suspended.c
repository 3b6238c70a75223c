// SPDX-License-Identifier: MIT
/*
 * suspended.c: what threads of the program's own making will come back to (jump.h).
 *
 * A signal handler that switches to another stack (swapcontext) leaves behind what the signal has struck, and may come
 * back to it at any time. The place to go back to, or the mark of a call, lies in memory then: all that may be a stack
 * is looked through. That takes time, so there has to be a reason: the recorder's count of what has come in and not
 * left, which calls that a handler has jumped out of for good (longjmp) are in as well; or, for the few instructions
 * before it is counted and after, that the program has been seen on a stack that is not a thread's own, or that it has
 * handlers and a frame of a signal's is somewhere. That is looked for while the process runs.
 */
#include "engine/jump/jump.h"

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/status.h"
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
#define ENTRIES   2048u               /* of pagemap, at a time */
#define IN_MEMORY (UINT64_C(3) << 62) /* of an entry of pagemap: present, or in swap */

#define LONGEST     UINT64_C(300000000) /* ns: a sparse mapping may be larger than can be asked about */
#define OWN_SIGNALS (UINT64_C(3) << 31) /* 32 and 33 */
#define DOUBT_NS    UINT64_C(300000000)
#define BLOCK       64u /* words */

/* Words of a piece of memory overlap those of the next: a mark is looked for as a whole, the word below it as well. */
#define OVERLAP (CALL + 1)

/* A thread's own stack, and the stack pointer of the thread on it. */
struct running {
	mw_addr start, sp;
};

struct search {
	struct jump_process *process;
	pid_t tid;
	/* Does word `i` of the `count` at `start` tell of what is looked for? */
	bool (*tells)(const struct search *search, mw_addr start, size_t count, size_t i);
	mw_addr low, high; /* what is looked for leads to [low, high) */
	bool counted;      /* the recorder's count says that there is something */
	int pagemap;       /* -1: none, all is taken for present */
	uint64_t *words;   /* AT_ONCE bytes and OVERLAP words */
	uint64_t left;     /* bytes that may still be looked through */
	uint64_t until;    /* … before that time */
	struct running *running;
	size_t running_count, found, doubtful;
	bool first; /* that there is anything is all that is asked */
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

/* glibc, musl and Java's virtual machine all keep what lies right below a thread's stack from being touched. */
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
		      const struct mw_regs *regs, struct running *out)
{
	mw_addr sp = regs->gpr[process->survey.arch->dwarf_sp], block = regs->thread_pointer;
	const struct mw_mapping *mapping = mw_maps_find(maps, sp);

	if (!mapping)
		return false;
	*out = (struct running){.start = mapping->start, .sp = sp};
	if (strcmp(mapping->path, "[stack]") == 0)
		return true;
	return tid != process->pid && !process->is_copy && block > sp && block < mapping->end &&
	       is_guarded(maps, mapping);
}

bool jump_on_own_stack(const struct jump_process *process, const struct mw_maps *maps, pid_t tid,
		       const struct mw_regs *regs)
{
	struct running running;

	return own_stack(process, maps, tid, regs, &running);
}

/* Take note of the stacks of threads that run on their own. False without memory. */
static bool find_running(struct search *search, const struct mw_maps *maps)
{
	const struct mw_quiesce *quiesce = &search->process->quiesce;

	search->running = calloc(quiesce->count + 1, sizeof(*search->running));
	for (size_t i = 0; search->running && i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];
		struct mw_tracee_regs regs;
		struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;

		if (!err && thread->stopped)
			search->running_count += own_stack(search->process, maps, thread->tid, &regs.general,
							   &search->running[search->running_count]);
		mw_error_destroy(err);
	}
	return search->running;
}

/* Nobody comes back to a stack pointer right below that of the thread whose stack it is. Further down there may be
 * stacks of the program's own making, in a variable of a function that has called what runs. */
static bool is_below_running(const struct search *search, mw_addr sp)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (sp >= search->running[i].start && sp < search->running[i].sp &&
		    search->running[i].sp - sp <= JUMP_STACK_BELOW)
			return true;
	return false;
}

/* Does an address lie below the stack pointer of the thread whose stack it is, however far? */
static bool is_anywhere_below(const struct search *search, mw_addr address)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (address >= search->running[i].start && address < search->running[i].sp)
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
	return mapping->start != process->guard;
}

/*
 * A signal's frame on the alternate stack that it names is the last handler's, which has returned where no thread is on
 * that stack: the next signal will begin at the same place.
 */
static bool is_stale(const struct search *search, mw_addr at)
{
	const struct mw_arch *arch = search->process->survey.arch;
	uint64_t words[MW_KEPT_BELOW], size;
	mw_addr start;

	if (search->counted || mw_remote_read(search->tid, at - sizeof(words), words, sizeof(words)) != sizeof(words))
		return false;
	return arch->kept_altstack(words, &start, &size) && at - start < size;
}

/* What a signal has struck is kept with its stack pointer right before the program counter. */
static bool is_live(const struct search *search, mw_addr start, size_t i)
{
	return !(i > 0 && is_below_running(search, search->words[i - 1])) &&
	       !is_stale(search, start + i * sizeof(*search->words));
}

static bool comes_back(const struct search *search, mw_addr start, size_t count, size_t i)
{
	const uint64_t *words = search->words;

	/* A call that was jumped out of leaves its mark. */
	if (i + CALL <= count && jump_call_stands(search->process, start, words, i))
		return !is_below_running(search, start + i * sizeof(*words));
	return jump_struck_in_ours(search->process, start, words, count, i) && is_live(search, start, i);
}

/* Has a signal struck anything? */
static bool is_frame(const struct search *search, mw_addr start, size_t count, size_t i)
{
	return i > 0 && search->process->survey.arch->is_struck_pc(search->words, count, i) &&
	       !is_stale(search, start + i * sizeof(*search->words));
}

static bool goes_back(const struct search *search, mw_addr start, size_t count, size_t i)
{
	return jump_struck_overwritten(search->process, start, search->words, count, i) && is_live(search, start, i);
}

/* Does any of `count` words lead to where what is looked for leads? Most of them don't. */
static bool any_leads(const struct search *search, const uint64_t *words, size_t count)
{
	uint64_t span = search->high - search->low;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= words[i] - search->low < span;
	return any;
}

static void found(struct search *search, mw_addr at)
{
	struct jump_seen *seen = &search->process->seen;

	if (is_anywhere_below(search, at))
		search->doubtful++;
	else
		search->found++;
	if (seen->place_count < JUMP_PLACES)
		seen->places[seen->place_count++] = at;
}

/* `size` bytes, and OVERLAP words behind them. */
static void look_through(struct search *search, mw_addr start, uint64_t size)
{
	const uint64_t *words = search->words;
	size_t there =
		mw_remote_read(search->tid, start, search->words, size + OVERLAP * sizeof(*words)) / sizeof(*words);
	/* The first word behind them is the next piece's first, which lacks what lies below it. */
	size_t count = there < size / sizeof(*words) + 1 ? there : size / sizeof(*words) + 1;

	for (size_t i = 0, end; i < count; i = end) {
		end = count - i < BLOCK ? count : i + BLOCK;
		/* A call's mark lies above the word that leads to us. */
		if (!any_leads(search, &words[i - (i > 0)], end - i + (i > 0)))
			continue;
		for (; i < end; i++)
			if (search->tells(search, start, there, i))
				found(search, start + i * sizeof(*words));
	}
}

/* Pages [page, page + count) hold something. */
static bool look_at_pages(struct search *search, uint64_t page, uint64_t count)
{
	for (uint64_t done = 0; done < count * PAGE; done += AT_ONCE) {
		uint64_t size = count * PAGE - done < AT_ONCE ? count * PAGE - done : AT_ONCE;

		if (size > search->left || mw_clock_ns() > search->until || (search->first && search->found))
			return false;
		search->left -= size;
		look_through(search, page * PAGE + done, size);
	}
	return true;
}

/* Pages of [start, end) that hold something. False: there is more than can be looked through. */
static bool look_at(struct search *search, mw_addr start, mw_addr end)
{
	uint64_t entries[ENTRIES], first = 0, run = 0;

	if (search->pagemap < 0)
		return look_at_pages(search, start / PAGE, (end - start) / PAGE);
	for (uint64_t page = start / PAGE; page < end / PAGE;) {
		uint64_t left = end / PAGE - page;
		size_t wanted = left < ENTRIES ? (size_t)left : ENTRIES;
		ssize_t got = pread(search->pagemap, entries, wanted * sizeof(entries[0]),
				    (off_t)(page * sizeof(entries[0])));

		if (got < (ssize_t)sizeof(entries[0]) || mw_clock_ns() > search->until)
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
static bool look_again(struct search *search)
{
	struct jump_seen *seen = &search->process->seen;
	size_t count = seen->place_count;

	seen->place_count = 0;
	for (size_t i = 0; i < count; i++) {
		mw_addr start = seen->places[i] - sizeof(*search->words);
		size_t there = mw_remote_read(search->tid, start, search->words, BLOCK * sizeof(*search->words));

		if (there > sizeof(*search->words) && search->tells(search, start, there / sizeof(*search->words), 1))
			found(search, seen->places[i]);
	}
	return search->found + search->doubtful > 0;
}

/* False: that was not possible, for want of memory, or as there is too much of it. */
static bool look_everywhere(struct search *search, const struct mw_maps *maps)
{
	char path[64];
	bool all = true;

	search->left = MOST;
	search->until = mw_clock_ns() + LONGEST;
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)search->tid);
	search->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < maps->count && all; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (may_hold_stacks(search, mapping))
			all = look_at(search, mapping->start, mapping->end);
	}
	if (search->pagemap >= 0)
		close(search->pagemap);
	return all;
}

pid_t jump_any_stopped(const struct jump_process *process)
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];

		if (thread->stopped && !thread->newborn)
			return thread->tid;
	}
	return 0;
}

/* False: not everything could be looked at. */
static bool look(struct search *search, const struct mw_maps *maps)
{
	bool all = false;

	search->words = malloc(AT_ONCE + OVERLAP * sizeof(uint64_t));
	if (search->words && find_running(search, maps))
		all = look_again(search) || look_everywhere(search, maps);
	free(search->running);
	free(search->words);
	return all;
}

size_t jump_suspended(struct jump_process *process, const struct mw_maps *maps, bool copy)
{
	uint32_t count = copy ? 0 : open_calls(process);
	struct search search = {
		.process = process, .tells = comes_back, .counted = count > 0, .tid = jump_any_stopped(process)};

	if (count == 0 && !jump_may_be_suspended(process))
		return 0;
	/* It is looked again when one has stopped. */
	if (!search.tid)
		return count ? count : 1;
	jump_memory_bounds(process, &search.low, &search.high);
	/* What is counted and can't be looked for may be there. */
	if (!look(&search, maps) && search.found + search.doubtful == 0)
		return count;
	/* Where nothing is counted, what lies deep below is a handler's that has long returned, if it stays. */
	if (count == 0 && search.found == 0 && mw_clock_ns() - process->seen.since_ns > DOUBT_NS)
		return 0;
	return search.found + search.doubtful;
}

bool jump_suspended_goes_back(struct jump_process *process, const struct mw_maps *maps)
{
	struct search search = {.process = process, .tells = goes_back, .tid = jump_any_stopped(process)};

	jump_overwritten_bounds(process, &search.low, &search.high);
	if (!jump_may_be_suspended(process) || search.low >= search.high)
		return false;
	if (!search.tid)
		return true;
	(void)look(&search, maps);
	return search.found + search.doubtful > 0;
}

/* Two signals are the C library's own. */
static bool handles_signals(const struct jump_process *process)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(jump_live_tid(process), &status);
	bool handles = !err && status.sig_caught & ~OWN_SIGNALS;

	mw_error_destroy(err);
	return handles;
}

void jump_look_for_frames(struct jump_process *process)
{
	struct search search = {.process = process,
				.tells = is_frame,
				.high = UINT64_MAX,
				.tid = jump_live_tid(process),
				.first = true};
	struct mw_maps maps = {0};
	struct mw_error *err;

	if (jump_may_be_suspended(process) || !handles_signals(process))
		return;
	jump_seen_nothing(process);
	err = mw_maps_read(search.tid, &maps);
	search.words = malloc(AT_ONCE + OVERLAP * sizeof(uint64_t));
	if (!err && search.words)
		(void)look_everywhere(&search, &maps);
	process->has_frames = search.found > 0;
	free(search.words);
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
}
