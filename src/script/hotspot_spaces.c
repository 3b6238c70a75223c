// SPDX-License-Identifier: MIT
/* hotspot_spaces.c: what HotSpot has reserved memory for (hotspot.h). */
#include "script/hotspot_parts.h"

#include "base/vector.h"
#include "proc/peek.h"
#include "proc/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD        8u
#define SPACES_MAX  16384u
#define THREADS_MAX 8192u
#define LOADERS_MAX 100000u
#define NODE        (64u << 20) /* metaspace is reserved in such pieces */

struct spaces {
	struct mw_hotspot *hotspot;
	const struct hotspot_layout *layout;
	pid_t tid;
	const struct mw_maps *maps;
	struct hotspot_flags flags;
	struct mw_map names; /* of threads, by the id that they know */
	struct mw_script_spaces *out;
	struct mw_error *err; /* the first of adding one */
};

static bool overlaps(const struct spaces *spaces, mw_addr low, mw_addr high)
{
	MW_EACH(space, spaces->out->items, spaces->out->count)
		if (low < space->high && space->low < high)
			return true;
	return false;
}

/* What overlaps one that is known is invalid, or is known. */
static void add_used(struct spaces *spaces, const char *name, mw_addr low, mw_addr high, bool is_counted,
		     struct hotspot_heap_use use)
{
	struct mw_script_space space = {.runtime = "Java virtual machine",
					.low = low,
					.high = high,
					.is_counted = is_counted,
					.committed = use.committed,
					.used = use.used};

	if (low >= high || !low || overlaps(spaces, low, high) || spaces->out->count >= SPACES_MAX || spaces->err)
		return;
	space.is_stack = strncmp(name, "stack of ", 9) == 0;
	(void)snprintf(space.name, sizeof(space.name), "%s", name);
	spaces->err = mw_script_spaces_add(spaces->out, &space);
}

static void add(struct spaces *spaces, const char *name, mw_addr low, mw_addr high)
{
	add_used(spaces, name, low, high, false, (struct hotspot_heap_use){0});
}

/* A word at a field of an object, or at a static field where that is 0. False: it is not there, or 0. */
static bool word(const struct spaces *spaces, mw_addr object, enum hotspot_field_id id, uint64_t *out)
{
	const struct hotspot_field *field = &spaces->layout->fields[id];

	return field->there && (object || field->address) &&
	       hotspot_address(spaces->layout, spaces->tid, object ? object : field->address, id, out);
}

/* --- the Java heap ------------------------------------------------------------------------------------------------ */

/* No structure says where ZGC's heap is, but its file has a name; the same memory may be mapped several times. */
static void add_z_heap(struct spaces *spaces, struct hotspot_heap_use use)
{
	static const char name[] = "/memfd:java_heap";
	const struct mw_mapping *mapping = spaces->maps->items, *end = mapping + spaces->maps->count;

	while (mapping < end) {
		mw_addr low = mapping->start, high = low;

		for (; mapping < end && mapping->start == high && strncmp(mapping->path, name, strlen(name)) == 0;
		     mapping++)
			high = mapping->end;
		if (high == low) {
			mapping++;
			continue;
		}
		/* The figures are of all of them together. */
		add_used(spaces, "Java heap", low, high, true, use);
		use = (struct hotspot_heap_use){0};
	}
}

static void add_java_heap(struct spaces *spaces)
{
	uint64_t heap, region, low, words;
	struct hotspot_heap_use use;

	if (!word(spaces, 0, HOTSPOT_JAVA_HEAP, &heap) || !spaces->layout->fields[HOTSPOT_JAVA_HEAP_RESERVED].there)
		return;
	use = hotspot_heap_use(spaces->layout, spaces->tid, &spaces->flags, heap);
	if (spaces->flags.values[HOTSPOT_USES_Z])
		add_z_heap(spaces, use);
	region = heap + spaces->layout->fields[HOTSPOT_JAVA_HEAP_RESERVED].offset;
	if (!word(spaces, region, HOTSPOT_REGION_START, &low) || !word(spaces, region, HOTSPOT_REGION_WORDS, &words) ||
	    words > (UINT64_MAX - low) / WORD)
		return;
	add_used(spaces, "Java heap", low, low + words * WORD, false, use);
}

/* Which bytes of the heap were written to, for collectors that have generations. */
static void add_card_table(struct spaces *spaces)
{
	uint64_t barriers, cards, map, size;

	const uint64_t *flags = spaces->flags.values;

	if ((flags[HOTSPOT_USES_G1] || flags[HOTSPOT_USES_PARALLEL] || flags[HOTSPOT_USES_SERIAL]) &&
	    word(spaces, 0, HOTSPOT_BARRIERS, &barriers) && word(spaces, barriers, HOTSPOT_BARRIERS_CARDS, &cards) &&
	    word(spaces, cards, HOTSPOT_CARDS_MAP, &map) && word(spaces, cards, HOTSPOT_CARDS_SIZE, &size) &&
	    size <= UINT64_MAX - map)
		add(spaces, "card table", map, map + size);
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static bool is_anonymous(const struct mw_mapping *mapping)
{
	return !mapping->inode && !mapping->shared && !mapping->exec;
}

/* What lies between the known spaces around an address. The kernel may have joined mappings of several. */
static struct mw_hotspot_range room_at(const struct spaces *spaces, mw_addr addr)
{
	struct mw_hotspot_range room = {0, UINT64_MAX};

	MW_EACH(space, spaces->out->items, spaces->out->count) {
		if (space->high <= addr && space->high > room.low)
			room.low = space->high;
		if (space->low > addr && space->low < room.high)
			room.high = space->low;
	}
	return room;
}

/* Where the anonymous memory around a mapping begins that no other kind of memory cuts off from it, `within` bytes of
 * `addr`; metaspace is reserved at multiples of 16 MiB, or of 4 MiB in older versions. */
static mw_addr begin_of(const struct spaces *spaces, const struct mw_mapping *mapping, mw_addr addr, mw_addr floor,
			uint64_t within)
{
	mw_addr low = mapping->start, start = mapping->start > floor ? mapping->start : floor;

	for (const struct mw_mapping *before = mapping; before > spaces->maps->items; before--, low = before->start)
		if (before[-1].end != before->start || !is_anonymous(&before[-1]) || addr - before[-1].start > within)
			break;
	if (low < floor)
		low = floor;
	for (unsigned shift = 24; shift >= 22; shift -= 2) {
		mw_addr aligned = (low + ((1u << shift) - 1)) >> shift << shift;

		if (aligned <= start && aligned >= low)
			return aligned;
	}
	return start;
}

/* Classes are where one was found, and in what is reserved for more of them. */
static void add_classes(struct spaces *spaces, const char *name, mw_addr addr, uint64_t reserved)
{
	const struct mw_mapping *mapping = mw_maps_find(spaces->maps, addr), *end;
	struct mw_hotspot_range room = room_at(spaces, addr);
	mw_addr low, high;

	if (!mapping || !is_anonymous(mapping) || !mapping->write || overlaps(spaces, addr, addr + 1))
		return;
	low = begin_of(spaces, mapping, addr, room.low, reserved);
	end = spaces->maps->items + spaces->maps->count;
	for (high = mapping->start; mapping < end && mapping->start == high && is_anonymous(mapping); mapping++)
		high = mapping->end;
	if (high > room.high)
		high = room.high;
	if (high - low > reserved)
		high = low + reserved;
	if (addr < high)
		add(spaces, name, low, high);
}

/* The first class of each loader: it stands in the class space, its constants in metaspace. */
static void add_metaspace(struct spaces *spaces)
{
	uint64_t loader, klass, constants, low, high;
	const uint64_t *flags = spaces->flags.values;
	uint64_t class_space = flags[HOTSPOT_USES_CLASS_SPACE] ? flags[HOTSPOT_CLASS_SPACE_SIZE] : 0;
	const struct hotspot_field *layout = &spaces->layout->fields[HOTSPOT_KLASS_LAYOUT];

	if (word(spaces, 0, HOTSPOT_ARCHIVE_LOW, &low) && word(spaces, 0, HOTSPOT_ARCHIVE_HIGH, &high))
		add(spaces, "shared classes", low, high);
	if (!word(spaces, 0, HOTSPOT_LOADERS, &loader))
		return;
	for (unsigned i = 0; i < LOADERS_MAX; i++) {
		int32_t helper;

		/* That of an array is negative. */
		if (word(spaces, loader, HOTSPOT_LOADER_KLASSES, &klass) && layout->there &&
		    mw_peek(spaces->tid, klass + layout->offset, &helper, sizeof(helper)) && helper > 0) {
			add_classes(spaces, class_space ? "class space" : "metaspace", klass,
				    class_space ? class_space : NODE);
			if (word(spaces, klass, HOTSPOT_KLASS_CONSTANTS, &constants))
				add_classes(spaces, "metaspace", constants, NODE);
		}
		if (!word(spaces, loader, HOTSPOT_LOADER_NEXT, &loader))
			break;
	}
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* Names of all threads. Without memory there are none. */
static void read_names(struct spaces *spaces)
{
	struct mw_status status;
	pid_t *tids = NULL;
	size_t count = 0;

	if (!mw_error_none(mw_tasks_read(spaces->tid, &tids, &count)))
		return;
	for (size_t i = 0; i < count; i++) {
		char *name = mw_error_none(mw_status_read(tids[i], &status)) ? strdup(status.name) : NULL;

		if (name && mw_map_get(&spaces->names, (uint64_t)status.ns_pid)) {
			free(name);
		} else if (name && !mw_error_none(mw_map_set(&spaces->names, (uint64_t)status.ns_pid, name))) {
			free(name);
			break;
		}
	}
	free(tids);
}

static void add_stack(struct spaces *spaces, mw_addr thread)
{
	char name[64] = "stack of a Java thread";
	const struct hotspot_field *id = &spaces->layout->fields[HOTSPOT_OS_THREAD_ID];
	uint64_t base, size, os_thread;
	int32_t tid;

	if (!word(spaces, thread, HOTSPOT_THREAD_STACK_BASE, &base) ||
	    !word(spaces, thread, HOTSPOT_THREAD_STACK_SIZE, &size) || size > base)
		return;
	if (id->there && word(spaces, thread, HOTSPOT_THREAD_OS, &os_thread) &&
	    mw_peek(spaces->tid, os_thread + id->offset, &tid, sizeof(tid)) && tid > 0) {
		const char *known = mw_map_get(&spaces->names, (uint64_t)tid);

		if (known)
			(void)snprintf(name, sizeof(name), "stack of %s", known);
	}
	add(spaces, name, base - size, base);
}

static void add_stacks(struct spaces *spaces)
{
	const struct hotspot_field *length = &spaces->layout->fields[HOTSPOT_THREADS_LENGTH];
	uint64_t list, items, thread;
	uint32_t count;

	if (!word(spaces, 0, HOTSPOT_THREADS, &list) || !word(spaces, list, HOTSPOT_THREADS_ITEMS, &items) ||
	    !length->there || !mw_peek(spaces->tid, list + length->offset, &count, sizeof(count)))
		return;
	read_names(spaces);
	for (uint32_t i = 0; i < count && i < THREADS_MAX; i++)
		if (mw_peek(spaces->tid, items + WORD * (uint64_t)i, &thread, WORD) && thread)
			add_stack(spaces, thread);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

struct mw_error *mw_hotspot_spaces(struct mw_hotspot *hotspot, pid_t tid, const struct mw_maps *maps,
				   struct mw_script_spaces *out)
{
	struct spaces spaces = {.hotspot = hotspot, .layout = &hotspot->layout, .tid = tid, .maps = maps, .out = out};
	void *name;

	hotspot_read_flags(spaces.layout, tid, &spaces.flags);
	add_java_heap(&spaces);
	for (unsigned i = 0; i < hotspot->heap_count; i++)
		add(&spaces, "code cache", hotspot->heaps[i].low, hotspot->heaps[i].high);
	add_card_table(&spaces);
	add_metaspace(&spaces);
	add_stacks(&spaces);
	for (size_t i = 0; mw_map_next(&spaces.names, &i, &name);)
		free(name);
	mw_map_deinit(&spaces.names);
	return spaces.err;
}
