// SPDX-License-Identifier: MIT
/*
 * glibc_mapped.c: blocks that glibc has made a mapping of their own for (glibc.h). No list has them: they are known by
 * their headers, at the beginning of mappings, which the kernel joins with their neighbours. How many there are stands in
 * malloc_par, whose fields in question have had this order since 2.26:
 *
 *      … thp_pagesize, hp_pagesize, int hp_flags      from 2.35 on
 *      int n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold
 *      mmapped_mem, max_mmapped_mem                   at a multiple of 8
 *      sbrk_base
 *      tcache_bins, tcache_max_bytes, tcache_count, …
 */
#include "heap/glibc.h"

#include "alloc/families.h"
#include "alloc/glibc_layout.h"
#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DATA    ((size_t)8 << 20) /* of one file's data that is looked through: its end */
#define MOST_MAPPED 65536u            /* what n_mmaps_max is unless a program sets it */
#define MOST_BINS   76u
#define MOST_CACHED (UINT64_C(8) << 20)
#define BEFORE      40u         /* bytes before mmapped_mem that are looked at … */
#define BEHIND      40u         /* … and from it on */
#define HUGE_PAGES  UINT64_C(1) /* in prev_size */
#define ALIGNMENTS  40u

/* --- malloc_par ---------------------------------------------------------------------------------------------------------- */

static uint32_t half(const unsigned char *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* In memory that may be an arena? */
static bool in_anonymous(const struct mw_glibc_process *process, mw_addr addr)
{
	MW_EACH(span, process->anonymous, process->anonymous_count)
		if (addr >= span->start && addr < span->end)
			return true;
	return addr >= process->heap.start && addr < process->heap.end;
}

/* Is mmapped_mem at `at`? */
static bool are_parameters(const struct mw_glibc_process *process, const unsigned char *at,
			   struct mw_glibc_parameters *out)
{
	mw_addr first = glibc_word(at, 16);
	const unsigned char *count;

	if (!first || glibc_word(at, 0) > glibc_word(at, 8) || glibc_word(at, 24) > MOST_BINS ||
	    glibc_word(at, 32) > MOST_CACHED || !in_anonymous(process, first))
		return false;
	if (half(at - 16) == MOST_MAPPED) {
		count = at - 20;
		out->huge_pages = glibc_word(at - 40, 0);
	} else if (half(at - 12) == MOST_MAPPED) {
		count = at - 16;
		out->huge_pages = 0;
	} else {
		return false;
	}
	out->mapped = half(count);
	out->first = first;
	out->known = out->mapped <= half(count + 8) && half(count + 12) <= 1;
	return out->known;
}

struct mw_error *mw_glibc_parameters_find(struct mw_glibc_walk *walk)
{
	const struct mw_glibc_process *process = &walk->process;

	MW_EACH(data, process->data, process->data_count) {
		size_t size = data->end - data->start < MAX_DATA ? (size_t)(data->end - data->start) : MAX_DATA, got;
		MW_FREE unsigned char *bytes = NULL;

		if (walk->arenas.main.state < data->start || walk->arenas.main.state >= data->end)
			continue;
		bytes = malloc(size);
		if (!bytes)
			return mw_error_nomem();
		got = process->read(process->context, data->end - size, bytes, size);
		for (size_t at = BEFORE; at + BEHIND <= got; at += 8)
			if (are_parameters(process, bytes + at, &walk->parameters))
				return NULL;
	}
	walk->parameters = (struct mw_glibc_parameters){0};
	return NULL;
}

/* --- blocks -------------------------------------------------------------------------------------------------------------- */

struct mapped {
	mw_addr start, end; /* of its mapping */
	mw_addr block;
	uint64_t usable;
};

struct mapped_list {
	struct mapped *items;
	size_t count, capacity;
};

static void mapped_deinit(struct mapped_list *list)
{
	free(list->items);
}

static bool read_header(void *context, mw_addr addr, void *out, size_t size)
{
	struct mw_glibc_walk *walk = context;
	const void *bytes = mw_glibc_window_at(&walk->window, addr, size, 0);

	if (bytes)
		memcpy(out, bytes, size);
	return bytes != NULL;
}

/* Is there the chunk of a block with a mapping of its own at `at`, in one that begins at `start` and ends by `limit`? */
static bool is_mapped(struct mw_glibc_walk *walk, mw_addr start, mw_addr at, mw_addr limit, struct mapped *out)
{
	uint64_t header[2], usable;
	mw_addr end;

	if (limit - at < GLIBC_LEAST || !read_header(walk, at, header, sizeof(header)) ||
	    (header[0] & ~HUGE_PAGES) != at - start || (header[1] & GLIBC_FLAGS) != GLIBC_MMAPPED)
		return false;
	usable = mw_glibc_usable_size(at + MW_GLIBC_HEADER, read_header, walk);
	if (usable == MW_SIZE_UNKNOWN || usable > limit - at)
		return false;
	end = (at + MW_GLIBC_HEADER + usable + MW_GLIBC_PAGE - 1) & ~(mw_addr)(MW_GLIBC_PAGE - 1);
	if (end > limit)
		return false;
	*out = (struct mapped){start, end, at + MW_GLIBC_HEADER, usable};
	return true;
}

/*
 * The block whose mapping begins at `start`. One that was aligned stands somewhere behind, and the first header is what
 * was there before:
 *
 *      start                     start + lead
 *      | 0 | old size|M | …      | lead | size|M | block, at a multiple of its alignment
 */
static bool find_mapped(struct mw_glibc_walk *walk, mw_addr start, mw_addr limit, struct mapped *out)
{
	uint64_t header[2];
	mw_addr tried = 0;

	if (!read_header(walk, start, header, sizeof(header)) || header[0] & ~HUGE_PAGES ||
	    (header[1] & GLIBC_FLAGS) != GLIBC_MMAPPED)
		return false;
	for (unsigned i = 5; i < ALIGNMENTS; i++) {
		mw_addr alignment = UINT64_C(1) << i;
		mw_addr block = (start + MW_GLIBC_HEADER + alignment - 1) & ~(alignment - 1);

		/* glibc before 2.43 leaves room for a chunk before it. */
		for (unsigned more = 0; more < 2; more++, block += alignment) {
			if (block <= tried || block >= limit)
				continue;
			tried = block;
			if (is_mapped(walk, start, block - MW_GLIBC_HEADER, limit, out))
				return true;
		}
	}
	return is_mapped(walk, start, start, limit, out);
}

static struct mw_error *add_mapped(struct mapped_list *list, const struct mapped *mapped)
{
	if (!MW_VECTOR_ROOM(list->items, list->count, list->capacity))
		return mw_error_nomem();
	list->items[list->count++] = *mapped;
	return NULL;
}

/* Those that stand at the beginning of mappings, and behind one another. */
static struct mw_error *find_first(struct mw_glibc_walk *walk, struct mapped_list *list)
{
	MW_EACH(span, walk->process.anonymous, walk->process.anonymous_count) {
		struct mapped mapped;

		for (mw_addr at = span->start; at < span->end && !mw_blocks_may_hold(walk->blocks, at);
		     at = mapped.end) {
			if (!find_mapped(walk, at, span->end, &mapped))
				break;
			MW_TRY(add_mapped(list, &mapped));
		}
	}
	return NULL;
}

/* Those within memory of others: any page may be the first of one. Adds what the list has not. */
static struct mw_error *find_all(struct mw_glibc_walk *walk, struct mapped_list *list)
{
	size_t known = 0, first = list->count;

	MW_EACH(span, walk->process.anonymous, walk->process.anonymous_count) {
		mw_addr at = span->start, from, to;

		while (mw_image_next_present(walk->image, at, span->end, &from, &to)) {
			struct mapped mapped;

			at = from + MW_GLIBC_PAGE;
			while (known < first && list->items[known].end <= from)
				known++;
			if (known < first && list->items[known].start <= from) {
				at = list->items[known].end;
				continue;
			}
			if (mw_blocks_may_hold(walk->blocks, from) || !find_mapped(walk, from, span->end, &mapped) ||
			    (known < first && mapped.end > list->items[known].start))
				continue;
			MW_TRY(add_mapped(list, &mapped));
			at = mapped.end;
		}
	}
	return NULL;
}

struct mw_error *mw_glibc_add_mapped(struct mw_glibc_walk *walk, uint64_t count)
{
	MW_CLEANUP(mapped_deinit) struct mapped_list list = {0};
	uint32_t arena, span;
	size_t first;

	MW_TRY(find_first(walk, &list));
	first = list.count;
	if (count != MW_SIZE_UNKNOWN && list.count < count)
		MW_TRY(find_all(walk, &list));
	/* More than there are: some only look like it. */
	if (count != MW_SIZE_UNKNOWN && list.count > count)
		list.count = first;
	if (count != MW_SIZE_UNKNOWN && list.count > count + walk->image->thread_count) {
		MW_EACH(mapped, list.items, list.count)
			MW_TRY(mw_glibc_skip(walk, mapped->start, mapped->end,
					     "more mappings look like blocks than glibc has made"));
		return NULL;
	}
	if (list.count)
		MW_TRY(mw_blocks_add_arena(walk->blocks, walk->allocator, "mmapped", &arena));
	MW_EACH(mapped, list.items, list.count) {
		MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, arena, mapped->start, mapped->block));
		MW_TRY(mw_blocks_add_span(walk->blocks, arena, mapped->block, mapped->block + mapped->usable,
					  mapped->usable, 0, &span));
		(void)mw_span_set_live(walk->blocks, span, mapped->block, true);
		MW_TRY(mw_blocks_add_bookkeeping(walk->blocks, arena, mapped->block + mapped->usable, mapped->end));
	}
	return NULL;
}
