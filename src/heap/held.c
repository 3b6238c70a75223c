// SPDX-License-Identifier: MIT
#include "heap/held.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "heap/dominators.h"

#include <stdlib.h>
#include <string.h>

/* --- who holds a block ---------------------------------------------------------------------------------------------- */

static const struct mw_root_pointer *root_pointer_of(const struct mw_reached *reached, uint32_t number)
{
	size_t low = 0, high = reached->pointer_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (reached->pointers[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < reached->pointer_count && reached->pointers[low].number == number ? &reached->pointers[low] : NULL;
}

/* The root whose word is `at`, or with a thread, its register's number. */
static struct mw_root root_of(const struct mw_reached *reached, mw_addr at, uint32_t thread)
{
	struct mw_root root = {.kind = MW_ROOT_MOVED, .at = at};
	const struct mw_root_range *range;

	if (thread == MW_ROOT_OF_KERNEL) {
		root.kind = MW_ROOT_KERNEL;
		return root;
	}
	if (thread != MW_ROOT_NO_THREAD) {
		root.kind = at == MW_ROOT_AT_SP ? MW_ROOT_STACK : MW_ROOT_REGISTER;
		root.tid = reached->image->threads[thread].tid;
		if (at == MW_ROOT_AT_SP)
			root.at = reached->image->threads[thread].sp;
		return root;
	}
	range = mw_roots_of(&reached->roots, at);
	if (range) {
		root.kind = range->kind;
		root.tid = range->tid;
	}
	return root;
}

bool mw_reached_root_of(const struct mw_reached *reached, mw_addr addr, struct mw_root *root)
{
	if (!mw_roots_of(&reached->roots, addr))
		return false;
	*root = root_of(reached, addr, MW_ROOT_NO_THREAD);
	return true;
}

/* Of a block of an allocator whose memory is roots. */
static struct mw_root unwalked_root(const struct mw_reached *reached, uint32_t number)
{
	struct mw_block block;

	return (struct mw_root){.kind = MW_ROOT_UNKNOWN,
				.at = mw_blocks_get(reached->blocks, number, &block) ? block.start : 0};
}

/* The first pointer in `holder` to the start of a block; else the first into it. 0: it is there no more. */
static mw_addr pointer_in(const struct mw_reached *reached, uint32_t holder, uint32_t number)
{
	uint64_t words[512];
	struct mw_pointer pointer;
	struct mw_block from;
	mw_addr into = 0, end, at;

	if (!mw_blocks_get(reached->blocks, holder, &from))
		return 0;
	end = from.start + from.size;
	for (at = from.start; at < end;) {
		size_t size = end - at < sizeof(words) ? end - at : sizeof(words);
		size_t got = mw_image_read_some(reached->image, at, words, size) / sizeof(*words);

		for (size_t i = 0; i < got; i++) {
			if (!mw_pointer_find(reached->blocks, words[i] & ~reached->tag_bits, &pointer) ||
			    pointer.block.number != number)
				continue;
			if (pointer.is_start && !pointer.altered)
				return at + i * sizeof(*words);
			if (into == 0)
				into = at + i * sizeof(*words);
		}
		at += size;
	}
	return into;
}

bool mw_reached_holder(const struct mw_reached *reached, uint32_t number, uint32_t *holder, mw_addr *at,
		       struct mw_root *root)
{
	uint32_t held_by = number < reached->count ? reached->holders[number] : MW_BLOCK_NONE;

	if (held_by == MW_BLOCK_NONE)
		return false;
	if (held_by == number) {
		const struct mw_root_pointer *pointer = root_pointer_of(reached, number);

		*holder = MW_BLOCK_NONE;
		*root = pointer ? root_of(reached, pointer->at, pointer->thread) : unwalked_root(reached, number);
		*at = root->at;
		return true;
	}
	*holder = held_by;
	*at = pointer_in(reached, held_by, number);
	return true;
}

/* --- who retains how much ------------------------------------------------------------------------------------------- */

struct link {
	uint32_t from, to;
};

/* A worker's. */
struct links {
	struct link *items;
	size_t count, capacity;
};

/* A pointer from a root. */
struct root_link {
	mw_addr at;
	uint32_t to, thread;
};

struct root_links {
	struct root_link *items;
	size_t count, capacity;
};

struct graph {
	struct mw_reached *reached;
	const struct mw_reach_options *options;
	struct mw_root_words words;
	struct links *links;           /* by worker */
	struct root_links *root_links; /* likewise */
	_Atomic bool out_of_memory;
};

static void visit_link(void *context, struct mw_scan_worker *worker, const struct mw_pointer *pointer)
{
	struct graph *graph = context;
	struct links *links = &graph->links[mw_scan_worker_number(worker)];
	struct link link = {pointer->source, pointer->block.number};
	const struct link *last = links->count ? &links->items[links->count - 1] : NULL;

	if (link.from == link.to || (last && last->from == link.from && last->to == link.to))
		return;
	/* What a lost block points to as well is held by the others alone. */
	if (mw_reached_is_held(graph->reached, link.to) && !mw_reached_is_held(graph->reached, link.from))
		return;
	if (MW_VECTOR_ROOM(links->items, links->count, links->capacity))
		links->items[links->count++] = link;
	else
		graph->out_of_memory = true;
}

/* All pointers between live blocks. */
static struct mw_error *find_links(struct graph *graph, struct mw_scan *scan)
{
	const struct mw_reached *reached = graph->reached;
	struct mw_frontier all;
	struct mw_segment segment;
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);

	MW_TRY(mw_frontier_init(&all, reached->count));
	MW_EACH(span, span_of, spans)
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			if (segment.live)
				mw_frontier_add(&all, segment.number);
	mw_scan_begin(scan, visit_link, graph, NULL, false);
	mw_scan_frontier(scan, &all);
	mw_frontier_deinit(&all);
	return graph->out_of_memory ? mw_error_nomem() : NULL;
}

static void visit_root_link(void *context, struct mw_scan_worker *worker, const struct mw_pointer *pointer)
{
	struct graph *graph = context;
	struct root_links *links = &graph->root_links[mw_scan_worker_number(worker)];

	if (MW_VECTOR_ROOM(links->items, links->count, links->capacity))
		links->items[links->count++] =
			(struct root_link){pointer->at, pointer->block.number, graph->words.thread};
	else
		graph->out_of_memory = true;
}

/* What a root counts to holds a block. */
static struct mw_error *add_root_link(struct graph *graph, const struct mw_root *root, uint32_t to)
{
	struct mw_reached *reached = graph->reached;
	struct links *links = &graph->links[0];
	const struct link *last = links->count ? &links->items[links->count - 1] : NULL;
	uint32_t number;

	MW_TRY(graph->options->number_root(graph->options->number_context, root, &number));
	if (number >= MW_BLOCK_NONE - 1 - reached->count)
		return mw_error_nomem();
	if (number >= reached->root_numbers)
		reached->root_numbers = number + 1;
	number += reached->count;
	if (last && last->from == number && last->to == to)
		return NULL;
	if (!MW_VECTOR_ROOM(links->items, links->count, links->capacity))
		return mw_error_nomem();
	links->items[links->count++] = (struct link){number, to};
	return NULL;
}

/* All pointers from roots, and blocks of an allocator whose memory is roots. */
static struct mw_error *find_root_links(struct graph *graph, struct mw_scan *scan)
{
	const struct mw_reached *reached = graph->reached;
	unsigned workers = mw_scan_workers(scan);

	mw_scan_begin(scan, visit_root_link, graph, NULL, false);
	MW_TRY(mw_reach_scan_roots(reached, scan, &graph->words));
	if (graph->out_of_memory)
		return mw_error_nomem();
	for (unsigned i = 0; i < workers; i++) {
		MW_EACH(link, graph->root_links[i].items, graph->root_links[i].count) {
			struct mw_root root = root_of(reached, link->at, link->thread);

			MW_TRY(add_root_link(graph, &root, link->to));
		}
	}
	for (uint32_t number = 0; number < reached->count; number++) {
		if (reached->holders[number] == number && !root_pointer_of(reached, number)) {
			struct mw_root root = unwalked_root(reached, number);

			MW_TRY(add_root_link(graph, &root, number));
		}
	}
	return NULL;
}

/* By what they come from. */
static struct mw_error *sort_links(struct graph *graph, unsigned workers, struct mw_graph *out)
{
	uint32_t nodes = graph->reached->count + graph->reached->root_numbers;
	uint64_t *first = calloc((size_t)nodes + 2, sizeof(*first)), total = 0;

	for (unsigned i = 0; i < workers; i++)
		total += graph->links[i].count;
	out->nodes = nodes;
	out->first = first;
	out->targets = malloc((total + 1) * sizeof(*out->targets));
	if (!first || !out->targets)
		return mw_error_nomem();
	/* Two places on, so that filling leaves each where it belongs. */
	for (unsigned i = 0; i < workers; i++)
		MW_EACH(link, graph->links[i].items, graph->links[i].count)
			first[(size_t)link->from + 2]++;
	for (size_t i = 2; i < (size_t)nodes + 2; i++)
		first[i] += first[i - 1];
	for (unsigned i = 0; i < workers; i++) {
		MW_EACH(link, graph->links[i].items, graph->links[i].count)
			out->targets[first[(size_t)link->from + 1]++] = link->to;
		free(graph->links[i].items);
		graph->links[i] = (struct links){0};
	}
	return NULL;
}

/* Is a live block held by nothing but roots, or lost? Where roots have numbers, these stand for them. */
static bool is_top(const struct graph *graph, uint32_t number)
{
	const struct mw_reached *reached = graph->reached;

	if (reached->holders[number] == MW_BLOCK_NONE)
		return true;
	return !graph->options->number_root && (reached->holders[number] == number || root_pointer_of(reached, number));
}

/* What roots point to or into, or those roots, and what is definitely lost: these hold all else. */
static struct mw_error *find_tops(const struct graph *graph, uint32_t **out, size_t *count)
{
	const struct mw_reached *reached = graph->reached;
	uint32_t *tops = NULL;
	size_t capacity = 0, top_count = 0, spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);
	struct mw_segment segment;

	for (uint32_t number = 0; number < reached->root_numbers; number++) {
		if (!MW_VECTOR_ROOM(tops, top_count, capacity))
			goto no_memory;
		tops[top_count++] = reached->count + number;
	}
	MW_EACH(span, span_of, spans) {
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			if (!segment.live || !is_top(graph, segment.number))
				continue;
			if (!MW_VECTOR_ROOM(tops, top_count, capacity))
				goto no_memory;
			tops[top_count++] = segment.number;
		}
	}
	*out = tops;
	*count = top_count;
	return NULL;

no_memory:
	free(tops);
	return mw_error_nomem();
}

static void add_retained(struct mw_reached *reached, const struct mw_dominators *dominators)
{
	struct mw_block block;

	for (uint32_t i = dominators->count; i-- > 1;) {
		uint32_t number = dominators->nodes[i], dominator = dominators->nodes[dominators->of[i]];

		reached->dominators[number] = dominator;
		if (number < reached->count && mw_blocks_get(reached->blocks, number, &block)) {
			reached->retained[number] += block.size;
			reached->retained_blocks[number]++;
		}
		if (dominator != MW_BLOCK_NONE) {
			reached->retained[dominator] += reached->retained[number];
			reached->retained_blocks[dominator] += reached->retained_blocks[number];
		}
	}
}

static struct mw_error *keep(struct mw_reached *reached, struct mw_dominators *dominators)
{
	size_t count = (size_t)reached->count + reached->root_numbers + 1;

	reached->dominators = malloc(count * sizeof(*reached->dominators));
	reached->retained = calloc(count, sizeof(*reached->retained));
	reached->retained_blocks = calloc(count, sizeof(*reached->retained_blocks));
	if (!reached->dominators || !reached->retained || !reached->retained_blocks)
		return mw_error_nomem();
	memset(reached->dominators, 0xff, count * sizeof(*reached->dominators));
	add_retained(reached, dominators);
	/* Number 0 stands for what holds the roots. */
	reached->order = dominators->nodes;
	reached->order_count = dominators->count;
	dominators->nodes = NULL;
	return NULL;
}

static struct mw_error *compute(struct graph *graph, struct mw_scan *scan)
{
	struct mw_reached *reached = graph->reached;
	MW_FREE uint32_t *tops = NULL;
	struct mw_graph links = {0};
	struct mw_dominators dominators;
	struct mw_error *err;

	MW_TRY(find_links(graph, scan));
	if (graph->options->number_root)
		MW_TRY(find_root_links(graph, scan));
	MW_TRY(find_tops(graph, &tops, &links.root_count));
	links.roots = tops;
	err = sort_links(graph, mw_scan_workers(scan), &links);
	if (err) {
		free(links.first);
		free(links.targets);
		return err;
	}
	MW_TRY(mw_dominators_compute(&links, &dominators));
	err = keep(reached, &dominators);
	mw_dominators_deinit(&dominators);
	return err;
}

struct mw_error *mw_held_compute(struct mw_reached *reached, struct mw_scan *scan,
				 const struct mw_reach_options *options)
{
	unsigned workers = mw_scan_workers(scan);
	struct graph graph = {
		.reached = reached,
		.options = options,
		.links = calloc(workers, sizeof(*graph.links)),
		.root_links = calloc(workers, sizeof(*graph.root_links)),
	};
	struct mw_error *err = graph.links && graph.root_links ? compute(&graph, scan) : mw_error_nomem();

	for (unsigned i = 0; graph.links && i < workers; i++)
		free(graph.links[i].items);
	for (unsigned i = 0; graph.root_links && i < workers; i++)
		free(graph.root_links[i].items);
	free(graph.links);
	free(graph.root_links);
	return err;
}

uint64_t mw_reached_retained(const struct mw_reached *reached, uint32_t number)
{
	return reached->retained && number < reached->count ? reached->retained[number] : 0;
}

uint32_t mw_reached_dominator(const struct mw_reached *reached, uint32_t number)
{
	return reached->dominators && number < reached->count ? reached->dominators[number] : MW_BLOCK_NONE;
}
