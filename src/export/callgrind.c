// SPDX-License-Identifier: MIT
/*
 * callgrind.c: a call graph with costs, as kcachegrind and callgrind_annotate read it.
 *
 * Costs of a function are those of the stacks that end in it; costs of a call are those of all stacks that it is on. A
 * function that is on a stack several times is one with a number behind its name from the second time on, as callgrind
 * names it with --separate-recs: so nothing counts twice in sums that include what is called. Outermost is the process,
 * which calls what stacks begin with: readers take the calls of a function for all that it costs.
 */
#include "export/frames.h"

#include "base/vector.h"
#include "output/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define HEAD "# callgrind format\nversion: 1\ncreator: memwatch\n"
#define SELF UINT32_MAX

/* A function, and how many of the same are further out on the stack. */
struct node {
	uint32_t frame, level;
};

/* What a line costs itself, or by the calls of a function. */
struct cost {
	uint32_t node, callee, line; /* callee SELF: no call */
	uint64_t amounts[MW_EXPORT_MEASURES];
};

struct graph {
	const struct mw_export *export;
	struct mw_export_frames frames;
	struct mw_map labels; /* names with files, to numbers */
	uint32_t *levels;     /* by label: how many are further out on this stack */
	size_t level_capacity;
	struct mw_map node_numbers;
	struct node *nodes;
	size_t node_capacity;
	struct mw_map cost_numbers;
	struct cost *costs;
	size_t cost_capacity;
	struct mw_map written[3]; /* names of objects, files and functions that have numbers already */
	uint64_t totals[MW_EXPORT_MEASURES];
	struct mw_line text;
};

/* In the order of the events. */
static const enum mw_export_measure order[MW_EXPORT_MEASURES] = {MW_EXPORT_INUSE_SPACE, MW_EXPORT_INUSE_OBJECTS,
								 MW_EXPORT_ALLOC_SPACE, MW_EXPORT_ALLOC_OBJECTS};

/* The number of what calls a frame by its name, whatever module it is of. */
static bool label_of(struct graph *graph, const struct mw_export_frame *frame, uint32_t *label)
{
	uint64_t key = XXH64(frame->name, strlen(frame->name), (uintptr_t)frame->file);
	size_t before = graph->labels.count;

	if (!mw_map_number(&graph->labels, key, label))
		return false;
	if (graph->labels.count == before)
		return true;
	if (!MW_VECTOR_ROOM(graph->levels, *label, graph->level_capacity))
		return false;
	graph->levels[*label] = 0;
	return true;
}

static bool node_of(struct graph *graph, uint32_t number, uint32_t *node)
{
	const struct mw_export_frame *frame = &graph->frames.items[number];
	size_t before = graph->node_numbers.count;
	uint64_t key[3] = {0, 0, (uintptr_t)frame->module};
	uint32_t label;

	if (!label_of(graph, frame, &label))
		return false;
	key[0] = label;
	key[1] = graph->levels[label]++;
	if (!mw_map_number(&graph->node_numbers, XXH64(key, sizeof(key), 0), node))
		return false;
	if (graph->node_numbers.count == before)
		return true;
	if (!MW_VECTOR_ROOM(graph->nodes, *node, graph->node_capacity))
		return false;
	graph->nodes[*node] = (struct node){number, (uint32_t)key[1]};
	return true;
}

static bool add_cost(struct graph *graph, uint32_t node, uint32_t line, uint32_t callee,
		     const struct mw_export_sample *sample)
{
	const uint64_t key[2] = {(uint64_t)node << 32 | callee, line};
	size_t before = graph->cost_numbers.count;
	struct cost *cost;
	uint32_t number;

	if (!mw_map_number(&graph->cost_numbers, XXH64(key, sizeof(key), 0), &number))
		return false;
	if (graph->cost_numbers.count > before) {
		if (!MW_VECTOR_ROOM(graph->costs, number, graph->cost_capacity))
			return false;
		graph->costs[number] = (struct cost){.node = node, .callee = callee, .line = line};
	}
	cost = &graph->costs[number];
	for (size_t i = 0; i < MW_EXPORT_MEASURES; i++)
		cost->amounts[i] += mw_export_measure_of(order[i], sample);
	return true;
}

/* From the outermost frame on. */
static bool add_stack(struct graph *graph, const struct mw_export_sample *sample)
{
	const struct mw_export_frames *frames = &graph->frames;
	uint32_t node = 0, callee, label;

	for (size_t i = frames->count; i-- > 0; node = callee) {
		if (!node_of(graph, frames->numbers[i], &callee))
			return false;
		if (i + 1 < frames->count &&
		    !add_cost(graph, node, frames->items[frames->numbers[i + 1]].line, callee, sample))
			return false;
	}
	if (!add_cost(graph, node, frames->items[frames->numbers[0]].line, SELF, sample))
		return false;
	for (size_t i = 0; i < frames->count; i++)
		if (label_of(graph, &frames->items[frames->numbers[i]], &label))
			graph->levels[label] = 0;
	return true;
}

static struct mw_error *add_sample(struct graph *graph, const struct mw_export_process *process,
				   const struct mw_export_sample *sample)
{
	if (!mw_sums_size(&sample->sums).count && !mw_sums_size(&sample->sums).bytes)
		return NULL;
	MW_TRY(mw_export_frames_of(&graph->frames, process, sample));
	for (size_t i = 0; i < MW_EXPORT_MEASURES; i++)
		graph->totals[i] += mw_export_measure_of(order[i], sample);
	return add_stack(graph, sample) ? NULL : mw_error_nomem();
}

static int compare_costs(const void *left, const void *right)
{
	const struct cost *a = left, *b = right;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	/* What is no call comes first. */
	if (a->callee != b->callee)
		return a->callee + 1 < b->callee + 1 ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

enum name { OBJECT, FILE_NAME, FUNCTION };

/* "fn=(3) name", and "fn=(3)" from then on. */
static bool put_name(struct graph *graph, FILE *stream, const char *key, enum name kind, const char *name,
		     uint32_t level)
{
	struct mw_map *written = &graph->written[kind];
	size_t before = written->count;
	uint32_t number;

	if (!mw_map_number(written, XXH64(name, strlen(name), level), &number))
		return false;
	fprintf(stream, "%s=(%" PRIu32 ")", key, number + 1);
	if (written->count > before) {
		mw_line_cut(&graph->text, 0);
		mw_line_name(&graph->text, name);
		if (graph->text.failed)
			return false;
		fprintf(stream, " %s", graph->text.length ? graph->text.data : "???");
		if (level)
			fprintf(stream, "'%" PRIu32, level + 1);
	}
	putc('\n', stream);
	return true;
}

static bool put_node(struct graph *graph, FILE *stream, uint32_t number, bool called)
{
	const struct node *node = &graph->nodes[number];
	const struct mw_export_frame *frame = &graph->frames.items[node->frame];

	return put_name(graph, stream, called ? "cob" : "ob", OBJECT, frame->module ? frame->module : "???", 0) &&
	       put_name(graph, stream, called ? "cfi" : "fl", FILE_NAME, frame->file ? frame->file : "???", 0) &&
	       put_name(graph, stream, called ? "cfn" : "fn", FUNCTION, frame->name, node->level);
}

static void put_amounts(FILE *stream, const uint64_t amounts[MW_EXPORT_MEASURES])
{
	for (size_t i = 0; i < MW_EXPORT_MEASURES; i++)
		fprintf(stream, "%s%" PRIu64, i ? " " : "", amounts[i]);
	putc('\n', stream);
}

static bool put_costs(struct graph *graph, FILE *stream)
{
	size_t count = graph->cost_numbers.count;

	if (count)
		qsort(graph->costs, count, sizeof(*graph->costs), compare_costs);
	for (size_t i = 0; i < count; i++) {
		const struct cost *cost = &graph->costs[i];
		uint64_t calls = cost->amounts[MW_EXPORT_MEASURES - 1];

		if (i == 0 || cost->node != cost[-1].node) {
			putc('\n', stream);
			if (!put_node(graph, stream, cost->node, false))
				return false;
		}
		if (cost->callee != SELF) {
			if (!put_node(graph, stream, cost->callee, true))
				return false;
			/* None would be no call to its readers. */
			fprintf(stream, "calls=%" PRIu64 " 0\n", calls ? calls : 1);
		}
		fprintf(stream, "%" PRIu32 " ", cost->line);
		put_amounts(stream, cost->amounts);
	}
	return true;
}

static struct mw_error *put_head(struct graph *graph, FILE *stream)
{
	const struct mw_export *export = graph->export;

	fputs(HEAD, stream);
	if (export->count == 1) {
		fprintf(stream, "pid: %d\n", (int)export->processes[0].report->target.pid);
		MW_TRY(mw_export_command(export->processes[0].report, &graph->text));
		fprintf(stream, "cmd: %s\n", graph->text.data);
	}
	fputs("positions: line\n"
	      "event: Impacting : Bytes not freed\nevent: ImpactingBlocks : Blocks not freed\n"
	      "event: Allocated : Bytes allocated\nevent: AllocatedBlocks : Blocks allocated\n"
	      "events: Impacting ImpactingBlocks Allocated AllocatedBlocks\nsummary: ",
	      stream);
	put_amounts(stream, graph->totals);
	return NULL;
}

static struct mw_error *put_graph(struct graph *graph, FILE *stream)
{
	for (size_t i = 0; i < graph->export->count; i++)
		for (size_t j = 0; j < graph->export->processes[i].sample_count; j++)
			MW_TRY(add_sample(graph, &graph->export->processes[i],
					  &graph->export->processes[i].samples[j]));
	MW_TRY(put_head(graph, stream));
	return put_costs(graph, stream) ? NULL : mw_error_nomem();
}

static struct mw_error *write_callgrind(const struct mw_export *export, FILE *stream)
{
	struct graph graph = {.export = export, .frames = {.export = export, .root = MW_EXPORT_ROOT_ALWAYS}};
	struct mw_error *err = put_graph(&graph, stream);

	mw_export_frames_deinit(&graph.frames);
	mw_map_deinit(&graph.labels);
	mw_map_deinit(&graph.node_numbers);
	mw_map_deinit(&graph.cost_numbers);
	for (size_t i = 0; i < sizeof(graph.written) / sizeof(graph.written[0]); i++)
		mw_map_deinit(&graph.written[i]);
	mw_line_deinit(&graph.text);
	free(graph.levels);
	free(graph.nodes);
	free(graph.costs);
	return err;
}

static bool is_own(const char *head, size_t size)
{
	return size >= sizeof(HEAD) - 1 && memcmp(head, HEAD, sizeof(HEAD) - 1) == 0;
}

const struct mw_export_format mw_export_callgrind = {
	.name = "callgrind",
	.what = "a callgrind profile",
	.about = "kcachegrind, callgrind_annotate",
	.is_own = is_own,
	.write = write_callgrind,
};
