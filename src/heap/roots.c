// SPDX-License-Identifier: MIT
#include "heap/roots.h"

#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(4096)
#define RED_ZONE                                                                                                       \
	128U /* bytes below the stack pointer that a function may use: x86-64's, no other ABI has a larger one */
/* A thread's control block is no larger, and names the thread's stack. */
#define CONTROL_BLOCK 0x900U
/* TLS modules whose places are looked at: where a thread's static TLS begins is only a name for the address. */
#define VECTOR_MAX 1024U

/* What an address may lie in. Where several begin and end, ranges of roots do. */
enum area {
	AREA_MAPPING, /* that may hold pointers */
	AREA_OWNED,   /* by a walked allocator */
	AREA_HOLE,
	AREA_DEAD, /* a stack's unused part */
	AREA_UNKNOWN,
	AREA_TLS,
	AREA_STACK,
	AREA_COUNT
};

struct edge {
	mw_addr at;
	enum area area;
	int begins; /* 1, or -1 where it ends */
	enum mw_root_kind kind;
	pid_t tid;
	bool code;
};

struct edges {
	struct edge *items;
	size_t count, capacity;
};

static struct mw_error *add_edges(struct edges *edges, mw_addr start, mw_addr end, struct edge edge)
{
	if (start >= end)
		return NULL;
	for (edge.begins = 1; edge.begins >= -1; edge.begins -= 2) {
		if (!MW_VECTOR_ROOM(edges->items, edges->count, edges->capacity))
			return mw_error_nomem();
		edge.at = edge.begins > 0 ? start : end;
		edges->items[edges->count++] = edge;
	}
	return NULL;
}

static struct mw_error *add(struct edges *edges, enum area area, mw_addr start, mw_addr end, enum mw_root_kind kind,
			    pid_t tid)
{
	return add_edges(edges, start, end, (struct edge){.area = area, .kind = kind, .tid = tid});
}

/* --- mappings ------------------------------------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Is the file one of memory only, which the process may have mapped elsewhere to write to it? */
static bool is_memory_file(const char *path)
{
	return begins_with(path, "/dev/shm/") || begins_with(path, "/memfd:") || begins_with(path, "/SYSV") ||
	       begins_with(path, "/dev/zero");
}

static bool may_hold_pointers(const struct mw_image_mapping *mapping)
{
	if (mapping->device || begins_with(mapping->path, "[v") || strcmp(mapping->path, "[uprobes]") == 0)
		return false;
	if (mapping->inode == 0 || mapping->write)
		return true;
	return mapping->shared ? is_memory_file(mapping->path) : !mapping->exec;
}

static bool is_generated_code(const struct mw_image_mapping *mapping)
{
	return mapping->exec && may_hold_pointers(mapping);
}

static bool holds_code(const struct mw_image *image, const struct mw_image_mapping *mapping)
{
	size_t number = (size_t)(mapping - image->mappings);

	if (is_generated_code(mapping))
		return true;
	return mapping->inode == 0 && ((number > 0 && mapping[-1].end == mapping->start && mapping[-1].inode == 0 &&
					is_generated_code(&mapping[-1])) ||
				       (number + 1 < image->mapping_count && mapping[1].start == mapping->end &&
					mapping[1].inode == 0 && is_generated_code(&mapping[1])));
}

static struct mw_error *add_mappings(struct edges *edges, const struct mw_image *image)
{
	MW_EACH(mapping, image->mappings, image->mapping_count) {
		struct edge edge = {.area = AREA_MAPPING, .kind = MW_ROOT_DATA, .code = holds_code(image, mapping)};
		mw_addr rest = mapping->bss_end ? mapping->bss_end : mapping->start;

		if (!may_hold_pointers(mapping))
			continue;
		MW_TRY(add_edges(edges, mapping->start, rest, edge));
		if (!mapping->inode || mapping->shared)
			edge.kind = MW_ROOT_MAPPING;
		MW_TRY(add_edges(edges, rest, mapping->end, edge));
	}
	return NULL;
}

/* --- allocators ----------------------------------------------------------------------------------------------------- */

static bool is_walked(const struct mw_blocks *blocks, uint32_t arena)
{
	size_t arenas, allocators;
	const struct mw_heap_arena *arena_of = mw_blocks_arenas(blocks, &arenas);
	const struct mw_heap_allocator *allocator_of = mw_blocks_allocators(blocks, &allocators);

	return arena < arenas && arena_of[arena].allocator < allocators &&
	       allocator_of[arena_of[arena].allocator].walked;
}

static struct mw_error *add_memory_of(struct edges *edges, bool walked, mw_addr start, mw_addr end)
{
	struct edge *last = edges->count ? &edges->items[edges->count - 1] : NULL;
	enum area area = walked ? AREA_OWNED : AREA_UNKNOWN;

	/* Thousands of slabs lie next to one another. */
	if (last && last->area == area && last->begins < 0 && last->at == start && start < end) {
		last->at = end;
		return NULL;
	}
	return add(edges, area, start, end, MW_ROOT_UNKNOWN, 0);
}

static struct mw_error *add_allocators(struct edges *edges, const struct mw_blocks *blocks)
{
	size_t spans, parts, areas;
	const struct mw_span *span_of = mw_blocks_spans(blocks, &spans);
	const struct mw_bookkeeping *part_of = mw_blocks_bookkeeping(blocks, &parts);
	const struct mw_heap_skipped *area_of = mw_blocks_skipped(blocks, &areas);

	MW_EACH(span, span_of, spans)
		MW_TRY(add_memory_of(edges, is_walked(blocks, span->arena), span->start, span->end));
	MW_EACH(part, part_of, parts)
		MW_TRY(add_memory_of(edges, is_walked(blocks, part->arena), part->start, part->end));
	MW_EACH(skipped, area_of, areas)
		MW_TRY(add(edges, AREA_UNKNOWN, skipped->start, skipped->start + skipped->bytes, MW_ROOT_UNKNOWN, 0));
	return NULL;
}

/* --- stacks and TLS ------------------------------------------------------------------------------------------------- */

/*
 * The bounds of a thread's stack, as its control block has them: an address and, next to it, the size of the memory in
 * which the control block itself lies (glibc: stackblock and stackblock_size, musl: map_base and map_size). Both are
 * multiples of a page; else, as with stacks that a program has made for its threads by itself, they are not taken.
 */
static bool stack_by_control_block(const struct mw_image *image, mw_addr thread_pointer, mw_addr *low, mw_addr *high)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(image, thread_pointer);
	uint64_t words[CONTROL_BLOCK / sizeof(uint64_t)];
	size_t count;

	if (!mapping || thread_pointer % sizeof(uint64_t) != 0)
		return false;
	count = mw_image_read_some(image, thread_pointer, words,
				   mapping->end - thread_pointer < sizeof(words) ? mapping->end - thread_pointer
										 : sizeof(words)) /
		sizeof(words[0]);
	for (size_t i = 0; i + 1 < count; i++) {
		mw_addr start = words[i];
		uint64_t size = words[i + 1];

		if (start == 0 || start % PAGE != 0 || size == 0 || size % PAGE != 0)
			continue;
		if (start <= thread_pointer && size <= mapping->end - start && thread_pointer - start < size) {
			*low = start;
			*high = start + size;
			return true;
		}
	}
	return false;
}

/* Has another thread its stack pointer or its control block in there? */
static bool is_shared(const struct mw_image *image, const struct mw_image_thread *owner, mw_addr start, mw_addr end)
{
	MW_EACH(thread, image->threads, image->thread_count)
		if (thread != owner && ((thread->sp >= start && thread->sp < end) ||
					(thread->thread_pointer >= start && thread->thread_pointer < end)))
			return true;
	return false;
}

/* Where a thread's static TLS begins: the lowest of the blocks that its vector has near below its control block. */
static mw_addr tls_start(const struct mw_image *image, const struct mw_image_thread *thread)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(image, thread->thread_pointer);
	mw_addr at, block, lowest, start = thread->thread_pointer;
	uint64_t entry[2], count;

	if (!mapping || !mw_roots_thread_vector(image, thread, &at, &block) ||
	    !mw_image_read(image, block, &count, sizeof(count)) || count > VECTOR_MAX)
		return start;
	/* It lies behind the stack, or in memory of its own. */
	lowest = thread->sp > mapping->start && thread->sp < start ? thread->sp : mapping->start;
	for (uint64_t i = 1; i <= count; i++) {
		if (!mw_image_read(image, block + 16 + i * sizeof(entry), entry, sizeof(entry)))
			break;
		if (entry[0] >= lowest && entry[0] < start)
			start = entry[0];
	}
	return start;
}

bool mw_roots_thread_vector(const struct mw_image *image, const struct mw_image_thread *thread, mw_addr *at,
			    mw_addr *block)
{
	mw_addr vector;

	*at = thread->thread_pointer + sizeof(uint64_t);
	if (thread->thread_pointer == 0 || !mw_image_read(image, *at, &vector, sizeof(vector)) || vector < 16)
		return false;
	*block = vector - 16; /* what is at the address is of module 0; before it stands how many there are */
	return true;
}

/* The stack that is certainly the thread's own. */
static bool stack_of(const struct mw_image *image, const struct mw_image_thread *thread, mw_addr *low, mw_addr *high)
{
	if (stack_by_control_block(image, thread->thread_pointer, low, high))
		return true;
	if (thread->tid != image->pid)
		return false;
	MW_EACH(mapping, image->mappings, image->mapping_count) {
		if (strcmp(mapping->path, "[stack]") == 0) {
			*low = mapping->start;
			*high = mapping->end;
			return true;
		}
	}
	return false;
}

static struct mw_error *add_thread(struct edges *edges, const struct mw_image *image,
				   const struct mw_image_thread *thread)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(image, thread->sp);
	mw_addr low, high, used = thread->sp > RED_ZONE ? thread->sp - RED_ZONE : 0;

	if (thread->thread_pointer != 0)
		MW_TRY(add(edges, AREA_TLS, tls_start(image, thread), thread->thread_pointer + CONTROL_BLOCK,
			   MW_ROOT_TLS, thread->tid));
	if (!stack_of(image, thread, &low, &high))
		return mapping ? add(edges, AREA_STACK, used, mapping->end, MW_ROOT_STACK, thread->tid) : NULL;
	if (!mapping || thread->sp < low || thread->sp >= high) /* it has left it */
		return add(edges, AREA_STACK, low, high, MW_ROOT_STACK, thread->tid);
	if (low < mapping->start) /* the guard */
		low = mapping->start;
	if (!is_shared(image, thread, low, used))
		MW_TRY(add(edges, AREA_DEAD, low, used, MW_ROOT_STACK, thread->tid));
	return add(edges, AREA_STACK, used, high, MW_ROOT_STACK, thread->tid);
}

/* --- all of it ------------------------------------------------------------------------------------------------------ */

static int by_address(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* What begins and ends at one address is taken together before the range behind it is judged. */
static struct mw_error *sweep(const struct edges *edges, struct mw_roots *roots)
{
	int depth[AREA_COUNT] = {0};
	struct mw_root_range now[AREA_COUNT] = {0};

	for (size_t i = 0; i + 1 < edges->count; i++) {
		const struct edge *edge = &edges->items[i];
		struct mw_root_range *last = roots->count ? &roots->ranges[roots->count - 1] : NULL;
		struct mw_root_range range = {.start = edge->at, .end = edge[1].at};

		depth[edge->area] += edge->begins;
		if (edge->begins > 0)
			now[edge->area] =
				(struct mw_root_range){.kind = edge->kind, .tid = edge->tid, .code = edge->code};
		if (range.start == range.end || !depth[AREA_MAPPING] || depth[AREA_HOLE])
			continue;
		if ((depth[AREA_OWNED] || depth[AREA_DEAD]) && !depth[AREA_UNKNOWN])
			continue;
		range.kind = now[AREA_MAPPING].kind;
		range.code = now[AREA_MAPPING].code;
		for (unsigned area = AREA_UNKNOWN; area < AREA_COUNT; area++) {
			if (depth[area]) {
				range.kind = now[area].kind;
				range.tid = now[area].tid;
				break;
			}
		}
		if (last && last->end == range.start && last->kind == range.kind && last->tid == range.tid &&
		    last->code == range.code) {
			last->end = range.end;
			continue;
		}
		if (!MW_VECTOR_ROOM(roots->ranges, roots->count, roots->capacity))
			return mw_error_nomem();
		roots->ranges[roots->count++] = range;
	}
	return NULL;
}

static struct mw_error *collect(struct edges *edges, const struct mw_image *image, const struct mw_blocks *blocks,
				const struct mw_reach_options *options)
{
	MW_TRY(add_mappings(edges, image));
	MW_TRY(add_allocators(edges, blocks));
	MW_EACH(thread, image->threads, image->thread_count)
		MW_TRY(add_thread(edges, image, thread));
	MW_EACH(hole, options->holes, options->hole_count)
		MW_TRY(add(edges, AREA_HOLE, hole->start, hole->end, MW_ROOT_MAPPING, 0));
	return NULL;
}

struct mw_error *mw_roots_find(const struct mw_image *image, const struct mw_blocks *blocks,
			       const struct mw_reach_options *options, struct mw_roots *out)
{
	struct edges edges = {0};
	struct mw_roots roots = {0};
	struct mw_error *err = collect(&edges, image, blocks, options);

	if (!err && edges.count) {
		qsort(edges.items, edges.count, sizeof(*edges.items), by_address);
		err = sweep(&edges, &roots);
	}
	free(edges.items);
	if (err) {
		mw_roots_deinit(&roots);
		return err;
	}
	*out = roots;
	return NULL;
}

void mw_roots_deinit(struct mw_roots *roots)
{
	free(roots->ranges);
	*roots = (struct mw_roots){0};
}

const struct mw_root_range *mw_roots_of(const struct mw_roots *roots, mw_addr addr)
{
	size_t before = mw_vector_up_to(roots->ranges, roots->count, sizeof(*roots->ranges),
					offsetof(struct mw_root_range, start), addr);

	return before && addr < roots->ranges[before - 1].end ? &roots->ranges[before - 1] : NULL;
}
