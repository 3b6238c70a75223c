// SPDX-License-Identifier: MIT
/* space.c: the summary of an address space, and sets of addresses (space.h). */
#include "view/space.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "view/arena.h"
#include "view/summary.h"

#include <stdlib.h>
#include <string.h>

struct mw_error *mw_space_ranges_add(struct mw_space_ranges *ranges, mw_addr start, mw_addr end)
{
	if (start >= end)
		return NULL;
	if (!MW_VECTOR_ROOM(ranges->items, ranges->count, ranges->capacity))
		return mw_error_nomem();
	ranges->items[ranges->count++] = (struct mw_space_range){start, end};
	return NULL;
}

void mw_space_ranges_deinit(struct mw_space_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct mw_space_ranges){0};
}

static int compare_ranges(const void *left, const void *right)
{
	const struct mw_space_range *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

void mw_space_ranges_join(struct mw_space_ranges *ranges)
{
	size_t kept = 0;

	if (!ranges->count)
		return;
	qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
	for (size_t i = 1; i < ranges->count; i++) {
		struct mw_space_range *last = &ranges->items[kept];

		if (ranges->items[i].start > last->end)
			ranges->items[++kept] = ranges->items[i];
		else if (ranges->items[i].end > last->end)
			last->end = ranges->items[i].end;
	}
	ranges->count = kept + 1;
}

/* The first range that ends behind `addr`. */
static size_t first_behind(const struct mw_space_ranges *ranges, mw_addr addr)
{
	return mw_vector_up_to(ranges->items, ranges->count, sizeof(*ranges->items),
			       offsetof(struct mw_space_range, end), addr);
}

struct mw_error *mw_space_ranges_without(const struct mw_space_ranges *ranges, mw_addr start, mw_addr end,
					 struct mw_error *(*each)(void *context, mw_addr start, mw_addr end),
					 void *context)
{
	for (size_t i = first_behind(ranges, start); i < ranges->count && ranges->items[i].start < end; i++) {
		if (ranges->items[i].start > start)
			MW_TRY(each(context, start, ranges->items[i].start));
		start = ranges->items[i].end;
		if (start >= end)
			return NULL;
	}
	return start < end ? each(context, start, end) : NULL;
}

/* --- what of an address space is what ----------------------------------------------------------------------- */

#define PAGE 4096u

/* Addresses of the kernel's half would overflow; nothing of ours is there. */
static mw_addr page_up(mw_addr addr)
{
	return addr > UINT64_MAX - PAGE ? UINT64_MAX & ~(mw_addr)(PAGE - 1) : (addr + PAGE - 1) & ~(mw_addr)(PAGE - 1);
}

static mw_addr page_down(mw_addr addr)
{
	return addr & ~(mw_addr)(PAGE - 1);
}

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
	if (*sum == MW_SIZE_UNKNOWN)
		return;
	if (bytes == MW_SIZE_UNKNOWN || __builtin_add_overflow(*sum, bytes, sum))
		*sum = MW_SIZE_UNKNOWN;
}

static const char *path_of(const struct mw_stored_mapping *mapping)
{
	return mapping->path ? mapping->path : "";
}

/* Parts of what the process sees as one: the kernel, and we, split it for their own reasons. */
static bool is_continued(const struct mw_stored_mapping *before, const struct mw_stored_mapping *mapping)
{
	return before->end == mapping->start && before->kind == mapping->kind &&
	       strcmp(path_of(before), path_of(mapping)) == 0;
}

/* `before`: the mapping before it, or NULL. */
static void add_mapping(struct mw_report_region *sum, const struct mw_stored_mapping *mapping,
			const struct mw_stored_mapping *before)
{
	sum->count += !before || !is_continued(before, mapping);
	add_bytes(&sum->reserved, mapping->end - mapping->start);
	add_bytes(&sum->resident, mapping->resident);
}

static void sum_moment(const struct mw_space_moment *moment, struct mw_report_moment *out)
{
	out->arena_used = out->arena_free = out->arena_size = MW_SIZE_UNKNOWN;
	if (!moment)
		return;
	out->known = true;
	for (size_t i = 0; i < moment->count; i++) {
		const struct mw_stored_mapping *mapping = &moment->mappings[i];

		if (mapping->kind < MW_REGION_KIND_COUNT && mapping->end > mapping->start)
			add_mapping(&out->kinds[mapping->kind], mapping, i ? mapping - 1 : NULL);
	}
	/* They are known together or not at all. */
	if (moment->arena_size == MW_SIZE_UNKNOWN || moment->arena_used == MW_SIZE_UNKNOWN ||
	    moment->arena_free == MW_SIZE_UNKNOWN)
		return;
	out->arena_used = moment->arena_used;
	out->arena_free = moment->arena_free;
	out->arena_size = moment->arena_size;
}

/* --- anonymous mappings by name ----------------------------------------------------------------------------------- */

static bool is_named(const struct mw_stored_mapping *mapping)
{
	return mapping->kind == MW_REGION_ANONYMOUS && path_of(mapping)[0] && mapping->end > mapping->start;
}

static size_t count_named(const struct mw_space_moment *moment)
{
	size_t count = 0;

	for (size_t i = 0; moment && i < moment->count; i++)
		count += is_named(&moment->mappings[i]);
	return count;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct mw_report_named *)left)->name, ((const struct mw_report_named *)right)->name);
}

static struct mw_report_named *find_named(const struct mw_report_space *space, const struct mw_stored_mapping *mapping)
{
	const struct mw_report_named key = {.name = path_of(mapping)};

	return space->named_count && is_named(mapping)
		       ? bsearch(&key, space->named, space->named_count, sizeof(key), compare_names)
		       : NULL;
}

static void add_names(struct mw_report_space *space, const struct mw_space_moment *moment)
{
	for (size_t i = 0; moment && i < moment->count; i++)
		if (is_named(&moment->mappings[i]))
			space->named[space->named_count++].name = path_of(&moment->mappings[i]);
}

/* A sum that no process can have counts as none. */
static void add_use(uint64_t *sum, uint64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = 0;
}

static void sum_named(const struct mw_report_space *space, const struct mw_space_moment *moment, bool at_end)
{
	for (size_t i = 0; moment && i < moment->count; i++) {
		const struct mw_stored_mapping *mapping = &moment->mappings[i];
		struct mw_report_named *named = find_named(space, mapping);
		struct mw_report_use *use;

		if (!named)
			continue;
		add_mapping(at_end ? &named->end : &named->start, mapping, i ? mapping - 1 : NULL);
		use = at_end ? &named->use_at_end : &named->use_at_start;
		add_use(&use->committed, mapping->committed);
		add_use(&use->used, mapping->used);
	}
}

static struct mw_error *find_names(const struct mw_space_input *input, struct mw_arena *arena,
				   struct mw_report_space *space)
{
	size_t kept = 0;

	space->named =
		mw_arena_array(arena, count_named(input->start) + count_named(input->end), sizeof(*space->named));
	if (!space->named)
		return mw_error_nomem();
	add_names(space, input->start);
	add_names(space, input->end);
	if (space->named_count)
		qsort(space->named, space->named_count, sizeof(*space->named), compare_names);
	for (size_t i = 0; i < space->named_count; i++)
		if (!kept || strcmp(space->named[kept - 1].name, space->named[i].name) != 0)
			space->named[kept++].name = space->named[i].name;
	space->named_count = kept;
	for (size_t i = 0; i < kept; i++) {
		space->named[i].name = mw_arena_string(arena, space->named[i].name);
		if (!space->named[i].name)
			return mw_error_nomem();
	}
	sum_named(space, input->start, false);
	sum_named(space, input->end, true);
	return NULL;
}

/* What of a mapping's resident bytes is in a part of it. */
static uint64_t resident_in(const struct mw_stored_mapping *mapping, mw_addr start, mw_addr end)
{
	uint64_t size = mapping->end - mapping->start;

	if (start == mapping->start && end == mapping->end)
		return mapping->resident;
	if (!mapping->resident)
		return 0;
	return mapping->resident == size ? end - start : MW_SIZE_UNKNOWN;
}

uint64_t mw_space_resident(const struct mw_space_moment *moment, mw_addr addr, uint64_t bytes)
{
	mw_addr start = page_down(addr), end = addr + bytes < addr ? UINT64_MAX : page_up(addr + bytes);
	size_t low = 0, high = moment->count;
	uint64_t sum = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (moment->mappings[middle].end <= start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < moment->count && moment->mappings[low].start < end; low++) {
		const struct mw_stored_mapping *mapping = &moment->mappings[low];

		add_bytes(&sum, resident_in(mapping, mapping->start > start ? mapping->start : start,
					    mapping->end < end ? mapping->end : end));
	}
	return sum;
}

/* --- what is unattributed --------------------------------------------------------------------------------------- */

/* Memory that somebody asked for: the heap, arenas and the stack of the first thread grow as the C library and the
 * kernel see fit, and are known from their kind. */
static bool may_be_unattributed(const struct mw_stored_mapping *mapping)
{
	switch ((enum mw_region_kind)mapping->kind) {
	case MW_REGION_ANONYMOUS:
	case MW_REGION_FILE_TEXT:
	case MW_REGION_FILE_DATA:
	case MW_REGION_SHARED:
		return true;
	case MW_REGION_STACK:
		return path_of(mapping)[0] != '[';
	case MW_REGION_HEAP:
	case MW_REGION_ARENA:
	case MW_REGION_OWN:
	case MW_REGION_SPECIAL:
	case MW_REGION_KIND_COUNT:
		break;
	}
	return false;
}

struct adding {
	struct mw_space_ranges *ranges;
	struct mw_error *err;
};

static bool add_block(void *context, const struct mw_track_block *block, bool first)
{
	struct adding *adding = context;

	(void)first;
	if (block->kind == MW_KIND_HEAP || block->addr + block->bytes < block->addr)
		return true;
	adding->err = mw_space_ranges_add(adding->ranges, page_down(block->addr), page_up(block->addr + block->bytes));
	return !adding->err;
}

struct mw_error *mw_space_ranges_add_blocks(struct mw_space_ranges *ranges, const struct mw_track *track)
{
	struct adding adding = {.ranges = ranges};

	mw_track_each_block(track, add_block, &adding);
	return adding.err;
}

struct mw_error *mw_space_accounted(const struct mw_space_input *input, const struct mw_track *track,
				    struct mw_space_ranges *out)
{
	for (size_t i = 0; input->start && i < input->start->count; i++)
		MW_TRY(mw_space_ranges_add(out, input->start->mappings[i].start, input->start->mappings[i].end));
	for (size_t i = 0; i < input->before_count; i++)
		MW_TRY(mw_space_ranges_add(out, input->before[i].start, input->before[i].end));
	MW_TRY(mw_space_ranges_add_blocks(out, track));
	mw_space_ranges_join(out);
	return NULL;
}

struct search {
	struct mw_space_ranges known;
	const struct mw_stored_mapping *mapping; /* that is looked at */
	struct mw_arena *arena;
	struct mw_report_unattributed *items;
	size_t count, capacity;
};

static struct mw_error *add_unattributed(void *context, mw_addr start, mw_addr end)
{
	struct search *search = context;
	const struct mw_stored_mapping *mapping = search->mapping;
	struct mw_report_unattributed *last = search->count ? &search->items[search->count - 1] : NULL;
	uint64_t resident = resident_in(mapping, start, end);

	if (last && last->address + last->bytes == start && last->kind == (enum mw_region_kind)mapping->kind &&
	    strcmp(last->path, path_of(mapping)) == 0) {
		last->bytes += end - start;
		add_bytes(&last->resident, resident);
		return NULL;
	}
	if (!MW_VECTOR_ROOM(search->items, search->count, search->capacity))
		return mw_error_nomem();
	search->items[search->count] = (struct mw_report_unattributed){
		.address = start,
		.bytes = end - start,
		.resident = resident,
		.kind = (enum mw_region_kind)mapping->kind,
		.path = mw_arena_string(search->arena, path_of(mapping)),
	};
	/* Of no use without its path. */
	if (!search->items[search->count].path)
		return mw_error_nomem();
	search->count++;
	return NULL;
}

static int compare_unattributed(const void *left, const void *right)
{
	const struct mw_report_unattributed *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return (a->address > b->address) - (a->address < b->address);
}

static struct mw_error *search_all(const struct mw_space_input *input, const struct mw_track *track,
				   struct search *search)
{
	MW_TRY(mw_space_accounted(input, track, &search->known));
	for (size_t i = 0; i < input->end->count; i++) {
		search->mapping = &input->end->mappings[i];
		if (may_be_unattributed(search->mapping))
			MW_TRY(mw_space_ranges_without(&search->known, search->mapping->start, search->mapping->end,
						       add_unattributed, search));
	}
	return NULL;
}

static struct mw_error *find_unattributed(const struct mw_space_input *input, const struct mw_track *track,
					  struct mw_arena *arena, struct mw_report_space *space)
{
	struct search search = {.arena = arena};
	struct mw_error *err;

	if (!input->at_end || !input->track_vm || !input->start || !input->end)
		return NULL;
	err = search_all(input, track, &search);
	if (!err) {
		space->unattributed = mw_arena_array(arena, search.count, sizeof(*search.items));
		err = space->unattributed ? NULL : mw_error_nomem();
	}
	if (!err && search.count) {
		memcpy(space->unattributed, search.items, search.count * sizeof(*search.items));
		qsort(space->unattributed, search.count, sizeof(*search.items), compare_unattributed);
	}
	space->unattributed_count = search.count;
	space->has_unattributed = !err;
	mw_space_ranges_deinit(&search.known);
	free(search.items);
	return err;
}

/* --- what of named mappings are blocks ------------------------------------------------------------------------------ */

static void add_range(const struct mw_space_moment *moment, const struct mw_space_range *range, size_t *next,
		      const struct mw_report_space *space)
{
	while (*next < moment->count && moment->mappings[*next].end <= range->start)
		++*next;
	for (size_t i = *next; i < moment->count && moment->mappings[i].start < range->end; i++) {
		const struct mw_stored_mapping *mapping = &moment->mappings[i];
		struct mw_report_named *named = find_named(space, mapping);

		if (named)
			add_bytes(&named->blocks,
				  resident_in(mapping, mapping->start > range->start ? mapping->start : range->start,
					      mapping->end < range->end ? mapping->end : range->end));
	}
}

static struct mw_error *find_named_blocks(const struct mw_space_input *input, const struct mw_track *track,
					  const struct mw_report_space *space)
{
	MW_CLEANUP(mw_space_ranges_deinit) struct mw_space_ranges ranges = {0};
	bool known = input->at_end && input->end;
	size_t next = 0;

	for (size_t i = 0; i < space->named_count; i++)
		space->named[i].blocks = known ? 0 : MW_SIZE_UNKNOWN;
	if (!known || !space->named_count)
		return NULL;
	MW_TRY(mw_space_ranges_add_blocks(&ranges, track));
	mw_space_ranges_join(&ranges);
	for (size_t i = 0; i < ranges.count; i++)
		add_range(input->end, &ranges.items[i], &next, space);
	return NULL;
}

/* --- what of vm blocks is resident ------------------------------------------------------------------------------ */

struct walk {
	const struct mw_space_moment *end;
	struct mw_report *report;
};

static void add_resident(void *context, uint32_t group, const struct mw_track_block *block, bool first)
{
	struct walk *walk = context;

	(void)first;
	if (block->kind != MW_KIND_HEAP)
		add_bytes(&walk->report->stacks[group].resident,
			  mw_space_resident(walk->end, block->addr, block->bytes));
}

static void find_resident(const struct mw_space_input *input, const struct mw_track *track, struct mw_report *report,
			  const uint32_t *group_of)
{
	struct walk walk = {.report = report};
	bool known = input && input->at_end && input->end;

	for (size_t i = 0; i < report->stack_count; i++)
		report->stacks[i].resident = known && report->stacks[i].kind != MW_KIND_HEAP ? 0 : MW_SIZE_UNKNOWN;
	if (!known)
		return;
	walk.end = input->end;
	mw_view_each_block(track, group_of, add_resident, &walk);
}

struct mw_error *mw_view_space(const struct mw_space_input *input, const struct mw_track *track, struct mw_arena *arena,
			       struct mw_report *report, const uint32_t *group_of)
{
	struct mw_report_space *space;

	find_resident(input, track, report, group_of);
	if (!input)
		return NULL;
	space = mw_arena_array(arena, 1, sizeof(*space));
	if (!space)
		return mw_error_nomem();
	sum_moment(input->start, &space->start);
	sum_moment(input->end, &space->end);
	MW_TRY(find_names(input, arena, space));
	MW_TRY(find_named_blocks(input, track, space));
	MW_TRY(find_unattributed(input, track, arena, space));
	report->space = space;
	return NULL;
}
