// SPDX-License-Identifier: MIT
/*
 * reach.c: in this order:
 *
 *      roots                             the blocks that a root points to
 *      breadth first from those          still reachable; what is only pointed into is put down as a candidate
 *      breadth first from candidates     possibly lost: those that were not reached after all, and all they lead to
 *      what is left                      lost; one block of each cycle, or tree, that nothing else lost leads to is
 *                                        definitely lost, the others are indirectly lost
 *
 * Each search goes level by level, so that each block's holder is one step nearer to a root than itself. For each block
 * of an allocator, live or free, three bits and the number of its holder are kept; where that pointer stands is found
 * again by looking through the holder. With the frontiers that is 5 bytes a block, beside 1/43 of the heap for the bits of
 * blocks.h and scan.c: more than 5 % of heaps whose blocks have less than 190 bytes on average.
 */
#include "heap/reach.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "heap/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A block that was pointed into, and what it was first found in. */
struct candidate {
	uint32_t number, holder;
};

/* Candidates up to `end` were found at `level`. */
struct level {
	uint32_t level;
	size_t end;
};

struct search {
	struct mw_reached *reached;
	struct mw_scan *scan;
	struct mw_frontier frontiers[2];
	unsigned now; /* of the two, the one that is scanned */
	bool from_roots;
	bool strongly; /* pointers into blocks make candidates only */
	struct mw_root_words words;

	pthread_mutex_t lock; /* of candidates, and of the roots' pointers */
	struct candidate *candidates;
	size_t candidate_count, candidate_capacity;
	struct level *levels;
	size_t level_count, level_capacity;
	_Atomic bool out_of_memory;
};

/* --- roots and what is reachable ------------------------------------------------------------------------------------ */

static void keep_root(struct search *search, uint32_t number, mw_addr at, bool interior)
{
	struct mw_reached *reached = search->reached;

	pthread_mutex_lock(&search->lock);
	if (MW_VECTOR_ROOM(reached->pointers, reached->pointer_count, reached->pointer_capacity))
		reached->pointers[reached->pointer_count++] =
			(struct mw_root_pointer){at, number, search->words.thread & MW_ROOT_NO_THREAD, interior};
	else
		search->out_of_memory = true;
	pthread_mutex_unlock(&search->lock);
}

static void keep_candidate(struct search *search, uint32_t number, uint32_t holder)
{
	pthread_mutex_lock(&search->lock);
	if (MW_VECTOR_ROOM(search->candidates, search->candidate_count, search->candidate_capacity))
		search->candidates[search->candidate_count++] = (struct candidate){number, holder};
	else
		search->out_of_memory = true;
	pthread_mutex_unlock(&search->lock);
}

static void visit(void *context, struct mw_scan_worker *worker, const struct mw_pointer *pointer)
{
	struct search *search = context;
	struct mw_reached *reached = search->reached;
	uint32_t number = pointer->block.number, holder = search->from_roots ? number : pointer->source;

	if (mw_bits_test(reached->reachable, number))
		return;
	if (search->strongly && (search->words.exact || mw_pointer_holds(worker, reached->image, pointer))) {
		if (!mw_bits_set(reached->reachable, number))
			return;
		reached->holders[number] = holder;
		mw_scan_found(worker, number);
		if (search->from_roots)
			keep_root(search, number, pointer->at, false);
	} else if (mw_bits_set(reached->possible, number)) {
		if (search->strongly) {
			keep_candidate(search, number, holder);
		} else {
			reached->holders[number] = holder;
			mw_scan_found(worker, number);
		}
		if (search->from_roots)
			keep_root(search, number, pointer->at, true);
	}
}

static struct mw_frontier *now(struct search *search)
{
	return &search->frontiers[search->now];
}

/* Scan what was found last; what is found by that is `now` then. */
static void step(struct search *search)
{
	struct mw_frontier *frontier = now(search);

	search->now ^= 1;
	mw_scan_set_next(search->scan, now(search));
	mw_scan_frontier(search->scan, frontier);
}

static void scan_single_words(const struct mw_image *image, struct mw_scan *scan, struct mw_root_words *words)
{
	mw_addr at, block;

	for (size_t i = 0; i < image->thread_count; i++) {
		const struct mw_image_thread *thread = &image->threads[i];

		words->thread = (uint32_t)i;
		for (size_t number = 0; number < thread->register_count && number < MW_IMAGE_REGISTERS; number++)
			mw_scan_word(scan, thread->registers[number], number, MW_BLOCK_NONE);
		/* A block that it has for its stack is in use, wherever the stack pointer is in it. */
		words->exact = true;
		mw_scan_word(scan, thread->sp, MW_ROOT_AT_SP, MW_BLOCK_NONE);
		/* Pointers to it lead to its third word: it would be taken for possibly lost. */
		words->thread = MW_ROOT_NO_THREAD;
		if (mw_roots_thread_vector(image, thread, &at, &block))
			mw_scan_word(scan, block, at, MW_BLOCK_NONE);
		words->exact = false;
	}
	words->thread = MW_ROOT_OF_KERNEL;
	for (size_t i = 0; i < image->kernel_word_count; i++) {
		words->exact = image->kernel_words[i].kind == MW_KERNEL_SIGNAL_STACK;
		mw_scan_word(scan, image->kernel_words[i].word, i, MW_BLOCK_NONE);
	}
	words->exact = false;
	words->thread = MW_ROOT_NO_THREAD;
}

struct mw_error *mw_reach_scan_roots(const struct mw_reached *reached, struct mw_scan *scan,
				     struct mw_root_words *words)
{
	const struct mw_roots *roots = &reached->roots;
	MW_FREE struct mw_scan_range *ranges = malloc((roots->count + 1) * sizeof(*ranges));

	if (!ranges)
		return mw_error_nomem();
	for (size_t i = 0; i < roots->count; i++)
		ranges[i] = (struct mw_scan_range){roots->ranges[i].start, roots->ranges[i].end, MW_BLOCK_NONE,
						   roots->ranges[i].code};
	*words = (struct mw_root_words){.thread = MW_ROOT_NO_THREAD};
	scan_single_words(reached->image, scan, words);
	words->exact = true;
	MW_EACH(block, reached->moved, reached->moved_count)
		mw_scan_word(scan, *block, *block, MW_BLOCK_NONE);
	words->exact = false;
	mw_scan_ranges(scan, ranges, roots->count);
	return NULL;
}

/* The blocks of an allocator whose blocks are not all known are roots' memory, and are scanned with it. */
static void hold_unwalked(struct mw_reached *reached)
{
	size_t spans, arenas, allocators;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);
	const struct mw_heap_arena *arena_of = mw_blocks_arenas(reached->blocks, &arenas);
	const struct mw_heap_allocator *allocator_of = mw_blocks_allocators(reached->blocks, &allocators);
	struct mw_segment segment;

	MW_EACH(span, span_of, spans) {
		if (allocator_of[arena_of[span->arena].allocator].walked)
			continue;
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			if (!segment.live)
				continue;
			mw_bits_set(reached->reachable, segment.number);
			reached->holders[segment.number] = segment.number;
		}
	}
}

static struct mw_error *scan_roots(struct search *search)
{
	struct mw_error *err;

	mw_scan_begin(search->scan, visit, search, search->reached->reachable, true);
	mw_scan_set_next(search->scan, now(search));
	search->from_roots = true;
	err = mw_reach_scan_roots(search->reached, search->scan, &search->words);
	search->from_roots = false;
	return err;
}

static struct mw_error *end_level(struct search *search, uint32_t level)
{
	size_t before = search->level_count ? search->levels[search->level_count - 1].end : 0;

	if (search->out_of_memory)
		return mw_error_nomem();
	if (search->candidate_count == before)
		return NULL;
	if (!MW_VECTOR_ROOM(search->levels, search->level_count, search->level_capacity))
		return mw_error_nomem();
	search->levels[search->level_count++] = (struct level){level, search->candidate_count};
	return NULL;
}

static bool is_suspect(const struct mw_reach_options *options, mw_addr start)
{
	size_t count = mw_vector_up_to(options->suspects, options->suspect_count, sizeof(start), 0, start);

	return count && options->suspects[count - 1] == start;
}

/* What was not found, and is no suspect, is held by a pointer that was missed. */
static struct mw_error *hold_others(struct search *search, const struct mw_reach_options *options)
{
	struct mw_reached *reached = search->reached;
	struct mw_segment segment;
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);

	MW_EACH(span, span_of, options->suspects ? spans : 0) {
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			if (!segment.live || mw_reached_is_held(reached, segment.number) ||
			    is_suspect(options, segment.start))
				continue;
			if (!MW_VECTOR_ROOM(reached->moved, reached->moved_count, reached->moved_capacity))
				return mw_error_nomem();
			reached->moved[reached->moved_count++] = segment.start;
			mw_bits_set(reached->reachable, segment.number);
			reached->holders[segment.number] = segment.number;
			keep_root(search, segment.number, segment.start, false);
			mw_frontier_add(now(search), segment.number);
		}
	}
	return NULL;
}

static struct mw_error *find_reachable(struct search *search, const struct mw_reach_options *options)
{
	uint32_t level = 0;

	search->strongly = true;
	MW_TRY(scan_roots(search));
	MW_TRY(end_level(search, level));
	for (;;) {
		if (mw_frontier_is_empty(now(search)))
			MW_TRY(hold_others(search, options));
		if (mw_frontier_is_empty(now(search)))
			return NULL;
		step(search);
		MW_TRY(end_level(search, ++level));
	}
}

/* Those of one level that nothing else has led to join those that were found at it. */
static void join(struct search *search, size_t from, size_t to)
{
	struct mw_reached *reached = search->reached;

	for (size_t i = from; i < to; i++) {
		const struct candidate *candidate = &search->candidates[i];

		if (mw_bits_test(reached->reachable, candidate->number) ||
		    !mw_bits_set(reached->possible, candidate->number))
			continue;
		reached->holders[candidate->number] = candidate->holder;
		mw_frontier_add(now(search), candidate->number);
	}
}

/* Candidates join at the level at which they were found, so that the fewest steps lead to each block. */
static struct mw_error *find_possible(struct search *search)
{
	struct mw_reached *reached = search->reached;
	size_t next = 0, at = 0;
	uint32_t level = 0;

	search->strongly = false;
	mw_scan_begin(search->scan, visit, search, reached->reachable, true);
	memset((void *)reached->possible, 0, mw_bits_words(reached->count) * sizeof(*reached->possible));
	while (next < search->level_count || !mw_frontier_is_empty(now(search))) {
		if (mw_frontier_is_empty(now(search)))
			level = search->levels[next].level;
		if (next < search->level_count && search->levels[next].level == level) {
			join(search, at, search->levels[next].end);
			at = search->levels[next++].end;
		}
		step(search);
		level++;
	}
	return NULL;
}

/* --- what is lost --------------------------------------------------------------------------------------------------- */

struct losses {
	struct mw_reached *reached;
	struct mw_scan *scan;
	_Atomic uint64_t *come_to;
	uint32_t *heads;
	size_t head_count, head_capacity;
	uint32_t *queue;
	size_t queue_count, queue_capacity;
	bool set_holders;
	bool out_of_memory;
};

static void visit_lost(void *context, struct mw_scan_worker *worker, const struct mw_pointer *pointer)
{
	struct losses *losses = context;
	struct mw_reached *reached = losses->reached;
	uint32_t number = pointer->block.number;

	(void)worker;
	if (mw_reached_is_held(reached, number) || !mw_bits_set(losses->come_to, number))
		return;
	if (losses->set_holders) {
		mw_bits_set(reached->indirect, number);
		reached->holders[number] = pointer->source;
	}
	if (MW_VECTOR_ROOM(losses->queue, losses->queue_count, losses->queue_capacity))
		losses->queue[losses->queue_count++] = number;
	else
		losses->out_of_memory = true;
}

/* False: another one has led to it. */
static bool search_from(struct losses *losses, uint32_t number)
{
	if (!mw_bits_set(losses->come_to, number))
		return false;
	losses->queue_count = 0;
	mw_scan_block(losses->scan, number);
	for (size_t i = 0; i < losses->queue_count; i++)
		mw_scan_block(losses->scan, losses->queue[i]);
	return true;
}

/*
 * Searched from one lost block after another, each component that no other one leads to gives one head, the first of its
 * blocks; others that lead to each other give one each time that one was searched from before what leads to it. Searched
 * from those heads the other way round, these are come to before their turn.
 */
static struct mw_error *find_heads(struct losses *losses)
{
	struct mw_reached *reached = losses->reached;
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);
	struct mw_segment segment;

	mw_scan_begin(losses->scan, visit_lost, losses, reached->reachable, true);
	MW_EACH(span, span_of, spans) {
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			if (!segment.live || mw_reached_is_held(reached, segment.number) ||
			    !search_from(losses, segment.number))
				continue;
			if (!MW_VECTOR_ROOM(losses->heads, losses->head_count, losses->head_capacity))
				return mw_error_nomem();
			losses->heads[losses->head_count++] = segment.number;
		}
	}
	memset((void *)losses->come_to, 0, mw_bits_words(reached->count) * sizeof(*losses->come_to));
	losses->set_holders = true;
	mw_scan_begin(losses->scan, visit_lost, losses, reached->reachable, true);
	for (size_t i = losses->head_count; i-- > 0;)
		search_from(losses, losses->heads[i]);
	return losses->out_of_memory ? mw_error_nomem() : NULL;
}

static struct mw_error *find_lost(struct mw_reached *reached, struct mw_scan *scan)
{
	struct losses losses = {.reached = reached, .scan = scan};
	struct mw_error *err;

	losses.come_to = calloc(mw_bits_words(reached->count), sizeof(*losses.come_to));
	err = losses.come_to ? find_heads(&losses) : mw_error_nomem();
	free((void *)losses.come_to);
	free(losses.heads);
	free(losses.queue);
	return err;
}

/* --- the whole ------------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const struct mw_root_pointer *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (int)x->interior - (int)y->interior;
}

/* Something that may hold pointers could not be read. What has gone from a process that runs on holds nothing any more: a thread
 * without a stack pointer has. */
static bool is_incomplete(const struct mw_reached *reached)
{
	const struct mw_image *image = reached->image;

	MW_EACH(thread, image->threads, image->thread_count)
		if (thread->register_count == 0 && (image->consistent || thread->sp))
			return true;
	return image->kernel_words_hidden || image->unreadable || (image->consistent && reached->unread != 0);
}

static void add_up(struct mw_reached *reached)
{
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);
	struct mw_segment segment;

	reached->incomplete = is_incomplete(reached);
	MW_EACH(span, span_of, spans)
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			if (segment.live)
				mw_amount_add(&reached->sums[mw_reached_of(reached, segment.number)],
					      (struct mw_amount){1, segment.size});
}

static struct mw_error *alloc_bits(_Atomic uint64_t **bits, uint32_t count)
{
	*bits = calloc(mw_bits_words(count), sizeof(**bits));
	return *bits ? NULL : mw_error_nomem();
}

static struct mw_error *prepare(struct mw_reached *reached, const struct mw_reach_options *options)
{
	MW_TRY(alloc_bits(&reached->reachable, reached->count));
	MW_TRY(alloc_bits(&reached->possible, reached->count));
	MW_TRY(alloc_bits(&reached->indirect, reached->count));
	reached->holders = malloc(((size_t)reached->count + 1) * sizeof(*reached->holders));
	if (!reached->holders)
		return mw_error_nomem();
	memset((void *)reached->holders, 0xff, ((size_t)reached->count + 1) * sizeof(*reached->holders));
	return mw_roots_find(reached->image, reached->blocks, options, &reached->roots);
}

static uint64_t bytes_of_roots(const struct mw_reached *reached)
{
	uint64_t bytes = 0;

	MW_EACH(range, reached->roots.ranges, reached->roots.count) {
		struct mw_image_residence there = mw_image_residence(reached->image, range->start, range->end);

		bytes += there.resident + there.swapped;
	}
	return bytes;
}

static uint64_t bytes_of_blocks(const struct mw_reached *reached)
{
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);
	struct mw_segment segment;
	uint64_t bytes = 0;

	MW_EACH(span, span_of, spans)
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			bytes += segment.live ? segment.size : 0;
	return bytes;
}

static struct mw_error *search_all(struct search *search, const struct mw_reach_options *options)
{
	struct mw_reached *reached = search->reached;
	uint64_t bytes = options->progress ? bytes_of_blocks(reached) : 0;

	MW_TRY(mw_frontier_init(&search->frontiers[0], reached->count));
	MW_TRY(mw_frontier_init(&search->frontiers[1], reached->count));
	if (options->progress)
		mw_scan_expect(search->scan, bytes_of_roots(reached) + (options->holders ? 2 : 1) * bytes);
	hold_unwalked(reached);
	MW_TRY(find_reachable(search, options));
	MW_TRY(find_possible(search));
	return find_lost(reached, search->scan);
}

static struct mw_error *reach(struct mw_reached *reached, const struct mw_reach_options *options)
{
	struct search search = {.reached = reached};
	struct mw_scan *scan = NULL;
	struct mw_error *err;

	MW_TRY(prepare(reached, options));
	MW_TRY(mw_scan_create(reached->image, reached->blocks, options, options->threads, &scan));
	search.scan = scan;
	mw_scan_set_cells(scan, reached->holders);
	pthread_mutex_init(&search.lock, NULL);
	err = search_all(&search, options);
	if (!err && options->interrupted && *options->interrupted)
		err = mw_error_create(MW_ERROR_SYSTEM, EINTR, "interrupted before the heap was looked through");
	pthread_mutex_destroy(&search.lock);
	mw_frontier_deinit(&search.frontiers[0]);
	mw_frontier_deinit(&search.frontiers[1]);
	free(search.candidates);
	free(search.levels);
	if (!err && reached->pointer_count)
		qsort(reached->pointers, reached->pointer_count, sizeof(*reached->pointers), by_number);
	if (!err && options->holders)
		err = mw_held_compute(reached, scan, options);
	reached->scanned = mw_scan_bytes(scan);
	reached->unread = mw_scan_unread(scan);
	mw_scan_destroy(scan);
	return err;
}

struct mw_error *mw_reach(const struct mw_image *image, const struct mw_blocks *blocks,
			  const struct mw_reach_options *options, struct mw_reached **out)
{
	struct mw_reached *reached = calloc(1, sizeof(*reached));
	struct mw_error *err;

	if (!reached)
		return mw_error_nomem();
	reached->image = image;
	reached->blocks = blocks;
	reached->count = mw_blocks_segments(blocks);
	reached->tag_bits = options->tag_bits;
	err = reach(reached, options);
	if (err) {
		mw_reached_destroy(reached);
		return err;
	}
	add_up(reached);
	if (options->progress)
		options->progress(options->context, 1);
	*out = reached;
	return NULL;
}

void mw_reached_destroy(struct mw_reached *reached)
{
	if (!reached)
		return;
	free((void *)reached->reachable);
	free((void *)reached->possible);
	free((void *)reached->indirect);
	free((void *)reached->holders);
	free(reached->pointers);
	free(reached->moved);
	free(reached->dominators);
	free(reached->retained);
	free(reached->retained_blocks);
	free(reached->order);
	mw_roots_deinit(&reached->roots);
	free(reached);
}

enum mw_reach mw_reached_of(const struct mw_reached *reached, uint32_t number)
{
	if (mw_bits_test(reached->reachable, number))
		return MW_REACH_REACHABLE;
	if (mw_bits_test(reached->possible, number) || reached->incomplete)
		return MW_REACH_POSSIBLE;
	return mw_bits_test(reached->indirect, number) ? MW_REACH_INDIRECT : MW_REACH_DEFINITE;
}

const struct mw_amount *mw_reached_sums(const struct mw_reached *reached)
{
	return reached->sums;
}

uint64_t mw_reached_scanned(const struct mw_reached *reached)
{
	return reached->scanned;
}

uint64_t mw_reached_unread(const struct mw_reached *reached)
{
	return reached->unread;
}
