// SPDX-License-Identifier: MIT
#include "heap/scan.h"

#include "base/thread.h"
#include "base/vector.h"
#include "heap/pointer.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define PAGE   UINT64_C(4096)
#define WINDOW (UINT64_C(256) << 10) /* read at once; it stays in the second-level cache while it is scanned */
#define LARGE  (UINT64_C(1) << 20)   /* blocks of this size are cut into windows */
#define GAP    UINT64_C(2048)        /* between blocks, read with them: another call would cost as much time */
#define FEW    16u                   /* so many small blocks are read by pages, which may well be wanted again */
#define GROUP  MW_BLOCKS_AT_ONCE     /* blocks that a thread takes at once */
#define FOUND  256U
#define SHARED GROUP /* a frontier of fewer is scanned by one thread: to start others would take longer */
#define PAGES  64U
#define BATCH  64U /* pointers whose blocks are fetched at the same time */

struct word {
	mw_addr word, at;
	uint32_t source;
	const struct mw_span *span; /* NULL: it is looked at even if it was met */
};

/* A page that was read for the words in it. */
struct page {
	mw_addr addr; /* 0: none */
	size_t bytes;
	uint64_t words[PAGE / sizeof(uint64_t)];
};

struct mw_scan_worker {
	struct mw_scan *scan;
	unsigned number;
	pthread_t thread;
	mw_addr start; /* of what is in the window, where that is of one range */
	uint64_t window[WINDOW / sizeof(uint64_t) + 1];
	uint64_t scanned; /* not yet reported */
	struct word batch[BATCH];
	size_t batch_count;
	uint32_t found[FOUND];
	size_t found_count;
	struct page pages[PAGES];
};

struct mw_scan {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	const struct mw_reach_options *options;
	uint64_t mask;          /* of a word's bits but tags */
	uint64_t low;           /* of those that an address of a block has */
	mw_addr lowest, extent; /* all spans lie in [lowest, lowest + extent) */
	mw_scan_visit *visit;
	void *context;
	const _Atomic uint64_t *bits;
	const _Atomic uint32_t *cells;
	const struct mw_span *spans;
	bool once;
	/* A bit for 16 bytes of all spans, 1/128 of them: whether a word with that address was met. NULL: not kept. */
	_Atomic uint64_t *met;
	uint64_t *met_first, met_words; /* by span; the number of its first bit */
	_Atomic uint64_t scanned, unread;
	uint64_t expected;
	double reported; /* to options->progress */

	pthread_mutex_t lock; /* of what follows */
	const struct mw_scan_range *ranges;
	size_t range, range_count;
	mw_addr cursor; /* in that range; 0: not begun */
	struct mw_frontier *frontier, *next;
	struct mw_scan_range *large;
	size_t large_count, large_capacity;

	_Atomic size_t taken; /* of the frontier */
	unsigned worker_count;
	struct mw_scan_worker **workers;
};

/* --- what is found -------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void hand_in(struct mw_scan_worker *worker)
{
	struct mw_scan *scan = worker->scan;

	if (worker->found_count == 0)
		return;
	pthread_mutex_lock(&scan->lock);
	for (size_t i = 0; i < worker->found_count; i++)
		mw_frontier_add(scan->next, worker->found[i]);
	pthread_mutex_unlock(&scan->lock);
	worker->found_count = 0;
}

void mw_scan_found(struct mw_scan_worker *worker, uint32_t number)
{
	if (worker->found_count == FOUND)
		hand_in(worker);
	worker->found[worker->found_count++] = number;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* Where it is not known which pages there are, what could not be read of a file is beyond its end: the process can't read it
 * either. */
static void count_unread(struct mw_scan *scan, mw_addr addr, size_t bytes)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(scan->image, addr);

	if (mapping && (mapping->inode == 0 || scan->image->runs))
		atomic_fetch_add_explicit(&scan->unread, bytes, memory_order_relaxed);
}

/* Page by page where it fails; what can't be read is zero. */
static void read_all(struct mw_scan *scan, mw_addr addr, void *buffer, size_t size)
{
	char *out = buffer;

	while (size) {
		size_t got = mw_image_read_some(scan->image, addr, out, size);
		size_t lacking = PAGE - (addr + got) % PAGE;

		addr += got;
		out += got;
		size -= got;
		if (lacking > size)
			lacking = size;
		if (lacking == 0)
			break;
		memset(out, 0, lacking);
		count_unread(scan, addr, lacking);
		addr += lacking;
		out += lacking;
		size -= lacking;
	}
}

/* Nothing is found any more then: it comes to its end. */
static bool is_interrupted(const struct mw_scan *scan)
{
	return scan->options->interrupted && *scan->options->interrupted;
}

/* What is not in memory is zero. */
static void fill_part(struct mw_scan *scan, mw_addr start, mw_addr end, char *out)
{
	mw_addr at = start, from, to;

	while (at < end) {
		if (is_interrupted(scan) || !mw_image_next_present(scan->image, at, end, &from, &to))
			from = to = end;
		memset(out + (at - start), 0, from - at);
		read_all(scan, from, out + (from - start), to - from);
		at = to;
	}
}

/* Fill the window. */
static void fill(struct mw_scan_worker *worker, mw_addr start, mw_addr end)
{
	worker->start = start;
	fill_part(worker->scan, start, end, (char *)worker->window);
}

/* The page that begins at an address. What could not be read of it has no bytes, and is zero. */
static const struct page *page_at(struct mw_scan_worker *worker, mw_addr start)
{
	const struct mw_image *image = worker->scan->image;
	struct page *page = &worker->pages[start / PAGE % PAGES];
	mw_addr from, to;

	if (page->addr == start && start != 0)
		return page;
	page->addr = start;
	page->bytes = 0;
	if (mw_image_next_present(image, start, start + PAGE, &from, &to) && from == start)
		page->bytes = mw_image_read_some(image, start, page->words, PAGE);
	return page;
}

bool mw_scan_peek(struct mw_scan_worker *worker, mw_addr addr, uint64_t *out)
{
	const struct page *page = page_at(worker, addr - addr % PAGE);

	if (addr % PAGE + sizeof(*out) > page->bytes)
		return false;
	*out = page->words[addr % PAGE / sizeof(*out)];
	return true;
}

/* --- scanning ------------------------------------------------------------------------------------------------------- */

static inline uint64_t met_number(const struct mw_scan *scan, const struct mw_span *span, uint64_t word)
{
	return scan->met_first[span - scan->spans] + (word - span->start) / 16;
}

/* Has the word been met in this pass? Where two threads meet words at the same time, both may find that it has
 * not. */
static inline bool was_met(const struct mw_scan *scan, const struct word *word)
{
	uint64_t number, bit, bits;

	if (!scan->once || !word->span || word->word % 16 != 0)
		return false;
	number = met_number(scan, word->span, word->word);
	bit = UINT64_C(1) << (number % 64);
	bits = atomic_load_explicit(&scan->met[number / 64], memory_order_relaxed);
	if (bits & bit)
		return true;
	atomic_store_explicit(&scan->met[number / 64], bits | bit, memory_order_relaxed);
	return false;
}

/* Each step waits for memory: one for all of the batch. */
static void visit_batch(struct mw_scan_worker *worker)
{
	struct mw_scan *scan = worker->scan;
	struct mw_pointer pointers[BATCH];
	size_t words = 0, count = 0;

	for (size_t i = 0; i < worker->batch_count; i++) {
		if (was_met(scan, &worker->batch[i]))
			continue;
		worker->batch[words] = worker->batch[i];
		mw_blocks_prefetch(scan->blocks, worker->batch[words++].word & scan->low);
	}
	worker->batch_count = 0;
	for (size_t i = 0; i < words; i++) {
		const struct word *word = &worker->batch[i];
		struct mw_pointer *pointer = &pointers[count];

		if (!mw_pointer_find(scan->blocks, word->word, pointer))
			continue;
		pointer->at = word->at;
		pointer->source = word->source;
		if (scan->bits)
			__builtin_prefetch((const void *)&scan->bits[pointer->block.number / 64]);
		if (scan->cells)
			__builtin_prefetch((const void *)&scan->cells[pointer->block.number], 1);
		count++;
	}
	for (size_t i = 0; i < count; i++)
		scan->visit(scan->context, worker, &pointers[i]);
}

static inline void put_in_batch(struct mw_scan_worker *worker, uint64_t word, mw_addr at, uint32_t source,
				const struct mw_span *span)
{
	worker->batch[worker->batch_count++] = (struct word){word, at, source, span};
	if (worker->batch_count == BATCH)
		visit_batch(worker);
}

static inline void look_at(struct mw_scan_worker *worker, uint64_t word, mw_addr at, uint32_t source)
{
	const struct mw_scan *scan = worker->scan;
	const struct mw_span *span;
	uint64_t addr;

	word &= scan->mask;
	addr = word & scan->low;
	if (addr - scan->lowest >= scan->extent)
		return;
	span = mw_blocks_span_of(scan->blocks, addr);
	if (!span)
		return;
	if (addr != word) /* it may hold less than the address itself */
		span = NULL;
	else if (scan->once)
		__builtin_prefetch((const void *)&scan->met[met_number(scan, span, word) / 64], 1);
	put_in_batch(worker, word, at, source, span);
}

static void report(struct mw_scan *scan, uint64_t scanned)
{
	double share = scan->expected ? (double)scanned / (double)scan->expected : 0;

	if (!scan->options->progress || share < scan->reported + 0.01 || scan->reported >= 1)
		return;
	scan->reported = share > 1 ? 1 : share;
	scan->options->progress(scan->options->context, scan->reported);
}

/* Most words are no pointers: four at a time need one branch. */
static void look_at_all(struct mw_scan_worker *worker, const uint64_t *words, size_t count, mw_addr at, uint32_t source)
{
	uint64_t mask = worker->scan->mask & worker->scan->low, lowest = worker->scan->lowest,
		 extent = worker->scan->extent;
	size_t i = 0;

#define IN(word) (((word)&mask) - lowest < extent)
	for (; i + 4 <= count; i += 4)
		if (IN(words[i]) | IN(words[i + 1]) | IN(words[i + 2]) | IN(words[i + 3]))
			for (size_t k = i; k < i + 4; k++)
				look_at(worker, words[k], at + k * sizeof(*words), source);
	for (; i < count; i++)
		look_at(worker, words[i], at + i * sizeof(*words), source);
#undef IN
}

/* An address in an int of Python's; bits above MW_POINTER_BITS say that a word is not the address itself. */
static void look_at_ints(struct mw_scan_worker *worker, const uint64_t *words, size_t count, mw_addr at,
			 uint32_t source)
{
	const struct mw_scan *scan = worker->scan;

	for (size_t i = 0; i < count; i++) {
		mw_addr addr = words[i] >> 32 << 30 | (uint32_t)words[i];

		if ((uint32_t)words[i] >> 30 == 0 && words[i] >> 32 && addr <= MW_POINTER_MASK &&
		    addr - scan->lowest < scan->extent && mw_blocks_span_of(scan->blocks, addr))
			put_in_batch(worker, addr | ~MW_POINTER_MASK, at + i * sizeof(*words), source, NULL);
	}
}

static void count_scanned(struct mw_scan_worker *worker, uint64_t bytes)
{
	uint64_t scanned;

	worker->scanned += bytes;
	if (worker->scanned < WINDOW)
		return;
	scanned = atomic_fetch_add_explicit(&worker->scan->scanned, worker->scanned, memory_order_relaxed);
	worker->scanned = 0;
	if (worker->number == 0)
		report(worker->scan, scanned);
}

/* `words` begin at `start`, a multiple of 8. */
static void scan_words(struct mw_scan_worker *worker, const uint64_t *words, mw_addr start, mw_addr from, mw_addr to,
		       uint32_t source)
{
	mw_addr at = (from + 7) & ~UINT64_C(7);

	if (at < to) {
		size_t count = (to - at) / sizeof(*words);

		words += (at - start) / sizeof(*words);
		look_at_all(worker, words, count, at, source);
		if (worker->scan->options->python_ints)
			look_at_ints(worker, words, count, at, source);
	}
	count_scanned(worker, to - from);
}

static void scan_window(struct mw_scan_worker *worker, mw_addr from, mw_addr to, uint32_t source)
{
	scan_words(worker, worker->window, worker->start, from, to, source);
}

/* Of a window that begins with the word that `from` is in. */
static mw_addr window_end(mw_addr from, mw_addr to)
{
	mw_addr end = (from & ~UINT64_C(7)) + WINDOW;

	return to < end ? to : end;
}

static bool next_window(struct mw_scan *scan, struct mw_scan_range *window)
{
	bool found = false;

	pthread_mutex_lock(&scan->lock);
	while (!found && scan->range < scan->range_count) {
		const struct mw_scan_range *range = &scan->ranges[scan->range];
		mw_addr from, to;

		if (scan->cursor < range->start)
			scan->cursor = range->start;
		if (scan->cursor < range->end &&
		    mw_image_next_present(scan->image, scan->cursor, range->end, &from, &to)) {
			*window = (struct mw_scan_range){from, window_end(from, to), range->source, range->code};
			scan->cursor = window->end;
			found = true;
		} else {
			scan->range++;
			scan->cursor = 0;
		}
	}
	pthread_mutex_unlock(&scan->lock);
	return found;
}

/* A word may end behind the window. */
static void scan_code(struct mw_scan_worker *worker, const struct mw_scan_range *window)
{
	const unsigned char *bytes = (const unsigned char *)worker->window;
	bool may_be_short = worker->scan->lowest <= UINT32_MAX;
	mw_addr from, to, end = window->end;
	uint64_t word;

	if (mw_image_next_present(worker->scan->image, end, end + sizeof(word), &from, &to) && from == end)
		end += sizeof(word) - 1;
	fill(worker, window->start & ~UINT64_C(7), end);
	memset((char *)worker->window + (end - worker->start), 0, sizeof(worker->window) - (end - worker->start));
	for (mw_addr at = window->start; at < window->end; at++) {
		memcpy(&word, bytes + (at - worker->start), sizeof(word));
		look_at(worker, word, at, window->source);
		if (may_be_short)
			look_at(worker, (uint32_t)word, at, window->source);
	}
	count_scanned(worker, window->end - window->start);
}

static void scan_ranges(struct mw_scan_worker *worker)
{
	struct mw_scan_range window;

	while (next_window(worker->scan, &window)) {
		if (window.code) {
			scan_code(worker, &window);
			continue;
		}
		fill(worker, window.start & ~UINT64_C(7), window.end);
		scan_window(worker, window.start, window.end, window.source);
	}
	visit_batch(worker);
	hand_in(worker);
}

/* Without help: where there is no memory to share the work. */
static void scan_large(struct mw_scan_worker *worker, const struct mw_block *block)
{
	struct mw_scan *scan = worker->scan;
	mw_addr end = block->start + block->size, at = block->start, from, to;

	for (; at < end && mw_image_next_present(scan->image, at, end, &from, &to); at = to) {
		to = window_end(from, to);
		fill(worker, from & ~UINT64_C(7), to);
		scan_window(worker, from, to, block->number);
	}
}

static void put_off(struct mw_scan_worker *worker, const struct mw_block *block)
{
	struct mw_scan *scan = worker->scan;
	bool room;

	pthread_mutex_lock(&scan->lock);
	room = MW_VECTOR_ROOM(scan->large, scan->large_count, scan->large_capacity);
	if (room)
		scan->large[scan->large_count++] =
			(struct mw_scan_range){block->start, block->start + block->size, block->number, false};
	pthread_mutex_unlock(&scan->lock);
	if (!room)
		scan_large(worker, block);
}

/* A small block by itself: those next to it may well be wanted soon. False: a page of it can't be read as a whole. What a
 * visit peeks at may take the place of its pages. */
static bool scan_in_pages(struct mw_scan_worker *worker, const struct mw_block *block)
{
	mw_addr start = block->start & ~UINT64_C(7), end = block->start + block->size, next;

	for (mw_addr at = start; at < end; at = next) {
		const struct page *page = page_at(worker, at & ~(PAGE - 1));

		if (page->bytes < PAGE)
			return false;
		next = page->addr + PAGE < end ? page->addr + PAGE : end;
		memcpy((char *)worker->window + (at - start), (const char *)page->words + at % PAGE, next - at);
	}
	scan_words(worker, worker->window, start, block->start, end, block->number);
	return true;
}

/* By address, as many as the window has room for, each of which is less than the window. Returns how many. */
static size_t scan_some(struct mw_scan_worker *worker, const struct mw_block *blocks, size_t count)
{
	char *out = (char *)worker->window;
	uint32_t places[GROUP];   /* where blocks begin in the window */
	mw_addr from = 0, to = 0; /* what is read next: blocks and the gaps between them */
	size_t done, size = 0;    /* of what is read before it */

	for (done = 0; done < count; done++) {
		mw_addr start = blocks[done].start & ~UINT64_C(7);
		mw_addr end = (blocks[done].start + blocks[done].size + 7) & ~UINT64_C(7);
		bool joins = start >= from && start <= to + GAP;

		if (size + (joins ? end - from : to - from + end - start) > WINDOW)
			break;
		if (!joins) {
			fill_part(worker->scan, from, to, out + size);
			size += to - from;
			from = start;
		}
		to = end > to ? end : to;
		places[done] = (uint32_t)(size + (start - from));
	}
	fill_part(worker->scan, from, to, out + size);
	for (size_t i = 0; i < done; i++)
		scan_words(worker, worker->window + places[i] / sizeof(*worker->window), blocks[i].start & ~UINT64_C(7),
			   blocks[i].start, blocks[i].start + blocks[i].size, blocks[i].number);
	return done;
}

/* By address. */
static void scan_blocks(struct mw_scan_worker *worker, const struct mw_block *blocks, size_t count)
{
	size_t done = 0;

	for (; count <= FEW && done < count; done++)
		if (blocks[done].size >= PAGE || !scan_in_pages(worker, &blocks[done]))
			break;
	while (done < count)
		done += scan_some(worker, blocks + done, count - done);
}

/* The next numbers of the frontier. 0: there are no more. */
static size_t take(struct mw_scan *scan, uint32_t numbers[GROUP])
{
	const struct mw_frontier *frontier = scan->frontier;
	size_t count = 0, at, limit = frontier->wide ? frontier->words : frontier->count;

	if (!frontier->wide) {
		at = atomic_fetch_add(&scan->taken, GROUP);
		for (; at < limit && count < GROUP; at++)
			numbers[count++] = frontier->list[at];
		return count;
	}
	while (count == 0 && (at = atomic_fetch_add(&scan->taken, GROUP / 64)) < limit) {
		for (size_t word = at; word < limit && word < at + GROUP / 64; word++)
			for (uint64_t bits = frontier->bits[word]; bits; bits &= bits - 1)
				numbers[count++] = (uint32_t)(word * 64 + (unsigned)__builtin_ctzll(bits));
	}
	return count;
}

static void scan_frontier(struct mw_scan_worker *worker)
{
	struct mw_scan *scan = worker->scan;
	struct mw_block blocks[GROUP];
	uint32_t numbers[GROUP];
	size_t count, small;

	while ((count = take(scan, numbers)) > 0) {
		count = mw_blocks_get_all(scan->blocks, numbers, count, blocks);
		small = 0;
		for (size_t i = 0; i < count; i++) {
			if (blocks[i].size >= WINDOW - PAGE)
				put_off(worker, &blocks[i]);
			else
				blocks[small++] = blocks[i];
		}
		scan_blocks(worker, blocks, small);
	}
	visit_batch(worker);
	hand_in(worker);
}

/* --- threads -------------------------------------------------------------------------------------------------------- */

struct job {
	struct mw_scan_worker *worker;
	void (*work)(struct mw_scan_worker *worker);
};

static void *run_job(void *context)
{
	const struct job *job = context;

	job->work(job->worker);
	return NULL;
}

/* By all workers, or by as many as threads can be had for; the first is this thread. */
static void run(struct mw_scan *scan, void (*work)(struct mw_scan_worker *worker), bool together)
{
	struct job jobs[CPU_SETSIZE];
	unsigned started = 1, count = together ? scan->worker_count : 1;

	for (; started < count; started++) {
		jobs[started] = (struct job){scan->workers[started], work};
		if (mw_thread_create(&scan->workers[started]->thread, NULL, run_job, &jobs[started]) != 0)
			break;
	}
	work(scan->workers[0]);
	while (--started > 0)
		pthread_join(scan->workers[started]->thread, NULL);
}

void mw_scan_ranges(struct mw_scan *scan, const struct mw_scan_range *ranges, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count && bytes < LARGE; i++)
		bytes += ranges[i].end - ranges[i].start;
	scan->ranges = ranges;
	scan->range_count = count;
	scan->range = 0;
	scan->cursor = 0;
	run(scan, scan_ranges, bytes >= LARGE);
}

void mw_scan_frontier(struct mw_scan *scan, struct mw_frontier *frontier)
{
	scan->frontier = frontier;
	scan->large_count = 0;
	atomic_store(&scan->taken, 0);
	if (!frontier->wide && frontier->count > 1)
		qsort(frontier->list, frontier->count, sizeof(*frontier->list), by_number);
	run(scan, scan_frontier, frontier->wide || frontier->count >= SHARED);
	if (scan->large_count)
		mw_scan_ranges(scan, scan->large, scan->large_count);
	mw_frontier_empty(frontier);
}

void mw_scan_block(struct mw_scan *scan, uint32_t number)
{
	struct mw_block block;

	if (!mw_blocks_get(scan->blocks, number, &block))
		return;
	if (block.size >= WINDOW - PAGE)
		scan_large(scan->workers[0], &block);
	else
		scan_blocks(scan->workers[0], &block, 1);
	visit_batch(scan->workers[0]);
}

void mw_scan_word(struct mw_scan *scan, mw_addr word, mw_addr at, uint32_t source)
{
	put_in_batch(scan->workers[0], word & scan->mask, at, source, NULL);
	visit_batch(scan->workers[0]);
	hand_in(scan->workers[0]);
}

/* --- the whole ------------------------------------------------------------------------------------------------------ */

/* Without memory for it, all words are looked up. */
static void keep_met(struct mw_scan *scan, size_t spans)
{
	uint64_t bits = 0;

	scan->met_first = calloc(spans + 1, sizeof(*scan->met_first));
	if (!scan->met_first)
		return;
	for (size_t i = 0; i < spans; i++) {
		scan->met_first[i] = bits;
		bits += (scan->spans[i].end - scan->spans[i].start) / 16 + 1;
	}
	scan->met_words = bits / 64 + 1;
	scan->met = calloc(scan->met_words, sizeof(*scan->met));
}

struct mw_error *mw_scan_create(const struct mw_image *image, const struct mw_blocks *blocks,
				const struct mw_reach_options *options, unsigned threads, struct mw_scan **out)
{
	struct mw_scan *scan = calloc(1, sizeof(*scan));
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(blocks, &spans);

	if (!scan)
		return mw_error_nomem();
	pthread_mutex_init(&scan->lock, NULL);
	if (threads == 0)
		threads = mw_thread_cpus();
	if (threads > CPU_SETSIZE)
		threads = CPU_SETSIZE;
	scan->image = image;
	scan->blocks = blocks;
	scan->options = options;
	scan->mask = ~options->tag_bits;
	scan->low = spans && span_of[spans - 1].end - 1 > MW_POINTER_MASK ? UINT64_MAX : MW_POINTER_MASK;
	scan->spans = span_of;
	keep_met(scan, spans);
	if (spans) {
		scan->lowest = span_of[0].start;
		scan->extent = span_of[spans - 1].end - scan->lowest;
	}
	scan->workers = calloc(threads, sizeof(*scan->workers));
	for (; scan->workers && scan->worker_count < threads; scan->worker_count++) {
		struct mw_scan_worker *worker = calloc(1, sizeof(*worker));

		if (!worker)
			break;
		worker->scan = scan;
		worker->number = scan->worker_count;
		scan->workers[scan->worker_count] = worker;
	}
	if (scan->worker_count == 0) {
		mw_scan_destroy(scan);
		return mw_error_nomem();
	}
	*out = scan;
	return NULL;
}

void mw_scan_destroy(struct mw_scan *scan)
{
	if (!scan)
		return;
	for (unsigned i = 0; i < scan->worker_count; i++)
		free(scan->workers[i]);
	free((void *)scan->workers);
	free(scan->large);
	free((void *)scan->met);
	free(scan->met_first);
	pthread_mutex_destroy(&scan->lock);
	free(scan);
}

void mw_scan_begin(struct mw_scan *scan, mw_scan_visit *visit, void *context, const _Atomic uint64_t *bits, bool once)
{
	scan->visit = visit;
	scan->context = context;
	scan->bits = bits;
	scan->once = once && scan->met;
	if (scan->once)
		memset((void *)scan->met, 0, scan->met_words * sizeof(*scan->met));
}

void mw_scan_set_cells(struct mw_scan *scan, const _Atomic uint32_t *cells)
{
	scan->cells = cells;
}

void mw_scan_set_next(struct mw_scan *scan, struct mw_frontier *next)
{
	scan->next = next;
}

void mw_scan_expect(struct mw_scan *scan, uint64_t bytes)
{
	scan->expected += bytes;
}

unsigned mw_scan_worker_number(const struct mw_scan_worker *worker)
{
	return worker->number;
}

unsigned mw_scan_workers(const struct mw_scan *scan)
{
	return scan->worker_count;
}

uint64_t mw_scan_bytes(const struct mw_scan *scan)
{
	uint64_t bytes = scan->scanned;

	for (unsigned i = 0; i < scan->worker_count; i++)
		bytes += scan->workers[i]->scanned;
	return bytes;
}

uint64_t mw_scan_unread(const struct mw_scan *scan)
{
	return scan->unread;
}
