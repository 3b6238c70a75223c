// SPDX-License-Identifier: MIT
/* hotspot_heap.c: flags of the command line, and how much of the Java heap is in use, by its collector (hotspot_parts.h). */
#include "script/hotspot_parts.h"

#include "proc/peek.h"

#include <string.h>

#define FLAGS_MAX   8192u
#define REGIONS_MAX 65536u /* of G1, which makes about 2,048 */

/* --- flags -------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t size; /* of its value */
} known[HOTSPOT_FLAG_NAMES] = {
	[HOTSPOT_USES_SERIAL] = {"UseSerialGC", 1},
	[HOTSPOT_USES_PARALLEL] = {"UseParallelGC", 1},
	[HOTSPOT_USES_G1] = {"UseG1GC", 1},
	[HOTSPOT_USES_SHENANDOAH] = {"UseShenandoahGC", 1},
	[HOTSPOT_USES_EPSILON] = {"UseEpsilonGC", 1},
	[HOTSPOT_USES_Z] = {"UseZGC", 1},
	[HOTSPOT_USES_Z_GENERATIONS] = {"ZGenerational", 1},
	[HOTSPOT_USES_NUMA] = {"UseNUMA", 1},
	[HOTSPOT_USES_CLASS_SPACE] = {"UseCompressedClassPointers", 1},
	[HOTSPOT_CLASS_SPACE_SIZE] = {"CompressedClassSpaceSize", 8},
	[HOTSPOT_HEAP_SIZE_MAX] = {"MaxHeapSize", 8},
};

static void read_flag(const struct hotspot_layout *layout, pid_t tid, mw_addr flag, struct hotspot_flags *out)
{
	char text[32] = "";
	mw_addr at;

	if (!hotspot_address(layout, tid, flag, HOTSPOT_FLAG_NAME, &at))
		return;
	(void)mw_peek_some(tid, at, text, sizeof(text) - 1);
	for (unsigned i = 0; i < HOTSPOT_FLAG_NAMES; i++)
		if (strcmp(text, known[i].name) == 0 && hotspot_address(layout, tid, flag, HOTSPOT_FLAG_VALUE, &at))
			(void)mw_peek(tid, at, &out->values[i], known[i].size);
}

void hotspot_read_flags(const struct hotspot_layout *layout, pid_t tid, struct hotspot_flags *out)
{
	const struct hotspot_field *fields = layout->fields;
	uint32_t stride = layout->sizes[HOTSPOT_FLAG_TYPE];
	uint64_t flags, count;

	*out = (struct hotspot_flags){0};
	if (!stride || !fields[HOTSPOT_FLAGS].there || !fields[HOTSPOT_FLAG_COUNT].there ||
	    !fields[HOTSPOT_FLAG_NAME].there || !fields[HOTSPOT_FLAG_VALUE].there ||
	    !mw_peek(tid, fields[HOTSPOT_FLAGS].address, &flags, sizeof(flags)) ||
	    !mw_peek(tid, fields[HOTSPOT_FLAG_COUNT].address, &count, sizeof(count)))
		return;
	for (uint64_t i = 0; i < count && i < FLAGS_MAX; i++)
		read_flag(layout, tid, flags + i * stride, out);
}

/* --- what is in use ----------------------------------------------------------------------------------------------- */

struct reader {
	const struct hotspot_layout *layout;
	pid_t tid;
	bool failed;
};

/* A word at a field of an object, or a static one. */
static uint64_t word(struct reader *reader, mw_addr object, enum hotspot_field_id id)
{
	const struct hotspot_field *field = &reader->layout->fields[id];
	uint64_t value = 0;

	if (!field->there || !(object || field->address) ||
	    !mw_peek(reader->tid, field->address ? field->address : object + field->offset, &value, sizeof(value)))
		reader->failed = true;
	return value;
}

/* An object that is a part of another. */
static mw_addr part(struct reader *reader, mw_addr object, enum hotspot_field_id id)
{
	reader->failed |= !reader->layout->fields[id].there;
	return object + reader->layout->fields[id].offset;
}

/* Of a space that is filled from its bottom on. */
static uint64_t filled(struct reader *reader, mw_addr space, enum hotspot_field_id bottom, enum hotspot_field_id top)
{
	uint64_t from = word(reader, space, bottom), to = word(reader, space, top);

	reader->failed |= from > to;
	return to - from;
}

static uint64_t used_by_serial(struct reader *reader, mw_addr heap)
{
	mw_addr young = word(reader, heap, HOTSPOT_SERIAL_YOUNG), old = word(reader, heap, HOTSPOT_SERIAL_OLD);
	const mw_addr spaces[] = {word(reader, young, HOTSPOT_SERIAL_EDEN), word(reader, young, HOTSPOT_SERIAL_FROM),
				  word(reader, old, HOTSPOT_SERIAL_SPACE)};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		sum += filled(reader, spaces[i], HOTSPOT_CONTIGUOUS_BOTTOM, HOTSPOT_CONTIGUOUS_TOP);
	return sum;
}

static uint64_t used_by_parallel(struct reader *reader)
{
	mw_addr young = word(reader, 0, HOTSPOT_PARALLEL_YOUNG), old = word(reader, 0, HOTSPOT_PARALLEL_OLD);
	const mw_addr spaces[] = {word(reader, young, HOTSPOT_PARALLEL_EDEN),
				  word(reader, young, HOTSPOT_PARALLEL_FROM),
				  word(reader, old, HOTSPOT_PARALLEL_SPACE)};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		sum += filled(reader, spaces[i], HOTSPOT_MUTABLE_BOTTOM, HOTSPOT_MUTABLE_TOP);
	return sum;
}

/* Its own sum (_summary_bytes_used) lacks the region that is allocated from. */
static uint64_t used_by_g1(struct reader *reader, mw_addr heap)
{
	mw_addr table = part(reader, part(reader, heap, HOTSPOT_G1_MANAGER), HOTSPOT_G1_TABLE);
	mw_addr items = word(reader, table, HOTSPOT_G1_TABLE_ITEMS), region;
	uint64_t length = word(reader, table, HOTSPOT_G1_TABLE_LENGTH), sum = 0;

	reader->failed |= length > REGIONS_MAX;
	for (uint64_t i = 0; i < length && !reader->failed; i++) {
		reader->failed = !mw_peek(reader->tid, items + i * sizeof(region), &region, sizeof(region));
		/* There is none where memory was never committed. */
		if (!reader->failed && region)
			sum += filled(reader, region, HOTSPOT_G1_REGION_BOTTOM, HOTSPOT_G1_REGION_TOP);
	}
	return sum;
}

static uint64_t used_by_shenandoah(struct reader *reader, mw_addr heap)
{
	if (reader->layout->fields[HOTSPOT_SHENANDOAH_USED].there)
		return word(reader, heap, HOTSPOT_SHENANDOAH_USED);
	return word(reader, word(reader, heap, HOTSPOT_SHENANDOAH_GLOBAL), HOTSPOT_SHENANDOAH_GENERATION_USED);
}

/* Of one NUMA node: how several add up is not exported. */
static struct hotspot_heap_use use_of_z(struct reader *reader, mw_addr heap, bool generations)
{
	const struct hotspot_field *fields = reader->layout->fields;
	struct hotspot_heap_use use;
	mw_addr at;

	if (fields[HOTSPOT_X_HEAP].there && !generations) {
		at = part(reader, part(reader, heap, HOTSPOT_X_HEAP), HOTSPOT_X_ALLOCATOR);
		use.committed = word(reader, at, HOTSPOT_X_CAPACITY);
		use.used = word(reader, at, HOTSPOT_X_USED);
		return use;
	}
	at = part(reader, part(reader, heap, HOTSPOT_Z_HEAP), HOTSPOT_Z_ALLOCATOR);
	if (fields[HOTSPOT_Z_USED].there) {
		use.committed = word(reader, at, HOTSPOT_Z_CAPACITY);
		use.used = word(reader, at, HOTSPOT_Z_USED);
		return use;
	}
	reader->failed |= (uint32_t)word(reader, 0, HOTSPOT_Z_NODES) != 1;
	at = word(reader, part(reader, at, HOTSPOT_Z_PARTITIONS), HOTSPOT_Z_PARTITIONS_AT);
	use.committed = word(reader, at, HOTSPOT_Z_PARTITION_CAPACITY);
	use.used = word(reader, at, HOTSPOT_Z_PARTITION_USED);
	return use;
}

struct hotspot_heap_use hotspot_heap_use(const struct hotspot_layout *layout, pid_t tid,
					 const struct hotspot_flags *flags, mw_addr heap)
{
	const uint64_t *values = flags->values;
	struct reader reader = {.layout = layout, .tid = tid};
	struct hotspot_heap_use use = {0};

	if (values[HOTSPOT_USES_SERIAL])
		use.used = used_by_serial(&reader, heap);
	else if (values[HOTSPOT_USES_PARALLEL] && !values[HOTSPOT_USES_NUMA]) /* then eden is many spaces */
		use.used = used_by_parallel(&reader);
	else if (values[HOTSPOT_USES_G1])
		use.used = used_by_g1(&reader, heap);
	else if (values[HOTSPOT_USES_SHENANDOAH])
		use.used = used_by_shenandoah(&reader, heap);
	else if (values[HOTSPOT_USES_EPSILON])
		use.used = filled(&reader, word(&reader, heap, HOTSPOT_EPSILON_SPACE), HOTSPOT_CONTIGUOUS_BOTTOM,
				  HOTSPOT_CONTIGUOUS_TOP);
	else if (values[HOTSPOT_USES_Z])
		use = use_of_z(&reader, heap, values[HOTSPOT_USES_Z_GENERATIONS]);
	if (reader.failed || use.used > values[HOTSPOT_HEAP_SIZE_MAX] || use.committed > values[HOTSPOT_HEAP_SIZE_MAX])
		use = (struct hotspot_heap_use){0};
	return use;
}
