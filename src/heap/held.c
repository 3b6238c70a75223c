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

static void describe_root(const struct mw_reached *reached, uint32_t number, mw_addr *at, struct mw_root *root)
{
	const struct mw_root_pointer *pointer = root_pointer_of(reached, number);
	const struct mw_root_range *range;
	struct mw_block block;

	*root = (struct mw_root){.kind = MW_ROOT_UNKNOWN};
	if (!pointer) { /* a block of an allocator whose memory is roots */
		*at = root->at = mw_blocks_get(reached->blocks, number, &block) ? block.start : 0;
		return;
	}
	*at = root->at = pointer->at;
	if (pointer->thread != MW_ROOT_NO_THREAD) {
		root->kind = pointer->at == MW_ROOT_AT_SP ? MW_ROOT_STACK : MW_ROOT_REGISTER;
		root->tid = reached->image->threads[pointer->thread].tid;
		if (pointer->at == MW_ROOT_AT_SP)
			*at = root->at = reached->image->threads[pointer->thread].sp;
		return;
	}
	range = mw_roots_of(&reached->roots, pointer->at);
	if (range) {
		root->kind = range->kind;
		root->tid = range->tid;
	}
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
			if (pointer.is_start)
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
		*holder = MW_BLOCK_NONE;
		describe_root(reached, number, at, root);
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

struct graph {
	struct mw_reached *reached;
	struct links *links;
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
	if (MW_VECTOR_ROOM(links->items, links->count, links->capacity))
		links->items[links->count++] = link;
	else
		graph->out_of_memory = true;
}

/* All pointers from live blocks. */
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

/* By the block that they come from. */
static struct mw_error *sort_links(struct graph *graph, unsigned workers, struct mw_graph *out)
{
	uint32_t nodes = graph->reached->count;
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

/* What roots point to or into, and what is definitely lost: all else hangs off these. */
static struct mw_error *find_tops(const struct mw_reached *reached, uint32_t **out, size_t *count)
{
	uint32_t *tops = NULL;
	size_t capacity = 0, top_count = 0, spans;
	const struct mw_span *span_of = mw_blocks_spans(reached->blocks, &spans);
	struct mw_segment segment;

	MW_EACH(span, span_of, spans) {
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			if (!segment.live || (reached->holders[segment.number] != segment.number &&
					      reached->holders[segment.number] != MW_BLOCK_NONE &&
					      !root_pointer_of(reached, segment.number)))
				continue;
			if (!MW_VECTOR_ROOM(tops, top_count, capacity)) {
				free(tops);
				return mw_error_nomem();
			}
			tops[top_count++] = segment.number;
		}
	}
	*out = tops;
	*count = top_count;
	return NULL;
}

static void add_retained(struct mw_reached *reached, const struct mw_dominators *dominators)
{
	struct mw_block block;

	for (uint32_t i = dominators->count; i-- > 1;) {
		uint32_t number = dominators->nodes[i], dominator = dominators->nodes[dominators->of[i]];

		reached->dominators[number] = dominator;
		if (mw_blocks_get(reached->blocks, number, &block))
			reached->retained[number] += block.size;
		if (dominator != MW_BLOCK_NONE)
			reached->retained[dominator] += reached->retained[number];
	}
}

static struct mw_error *compute(struct graph *graph, struct mw_scan *scan)
{
	struct mw_reached *reached = graph->reached;
	MW_FREE uint32_t *tops = NULL;
	struct mw_graph links = {0};
	struct mw_dominators dominators;
	struct mw_error *err;

	MW_TRY(find_links(graph, scan));
	MW_TRY(find_tops(reached, &tops, &links.root_count));
	links.roots = tops;
	err = sort_links(graph, mw_scan_workers(scan), &links);
	if (err) {
		free(links.first);
		free(links.targets);
		return err;
	}
	MW_TRY(mw_dominators_compute(&links, &dominators));
	reached->dominators = malloc(((size_t)reached->count + 1) * sizeof(*reached->dominators));
	reached->retained = calloc((size_t)reached->count + 1, sizeof(*reached->retained));
	if (reached->dominators && reached->retained) {
		memset(reached->dominators, 0xff, ((size_t)reached->count + 1) * sizeof(*reached->dominators));
		add_retained(reached, &dominators);
	} else {
		err = mw_error_nomem();
	}
	mw_dominators_deinit(&dominators);
	return err;
}

struct mw_error *mw_held_compute(struct mw_reached *reached, struct mw_scan *scan)
{
	unsigned workers = mw_scan_workers(scan);
	struct graph graph = {.reached = reached, .links = calloc(workers, sizeof(*graph.links))};
	struct mw_error *err = graph.links ? compute(&graph, scan) : mw_error_nomem();

	for (unsigned i = 0; graph.links && i < workers; i++)
		free(graph.links[i].items);
	free(graph.links);
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
