// SPDX-License-Identifier: MIT
/* hotspot_code.c: HotSpot's code heaps, the blobs in them, and which methods stand at an address (hotspot_parts.h). */
#include "script/hotspot_parts.h"

#include "proc/peek.h"

#include <string.h>

#define HEAPS_MAX 64 /* of an array that is taken for one of code heaps */
#define HEAP_MAX  (1ull << 32)
#define CHUNK     256u /* bytes of a segment map that are read at once */
#define CHUNKS    1024 /* … for one blob: 32 MiB of it */
#define FREE      0xff /* in a segment map */
#define BLOB_MAX  (64u << 20)
#define PCS_MAX   (1u << 20) /* entries of a table of addresses */
#define FRAME_MAX (1u << 20) /* bytes of a frame */
#define WORD      8u

static int64_t of_blob(const struct mw_hotspot *hotspot, const struct hotspot_blob *blob, enum hotspot_field_id id)
{
	return hotspot_number(&hotspot->layout, blob->bytes, blob->have, id);
}

static bool has(const struct mw_hotspot *hotspot, enum hotspot_field_id id)
{
	return hotspot->layout.fields[id].there;
}

/* --- code heaps --------------------------------------------------------------------------------------------------- */

static bool take_heap(const struct mw_hotspot *hotspot, pid_t tid, mw_addr heap, struct hotspot_heap *out)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	mw_addr memory = heap + layout->fields[HOTSPOT_HEAP_MEMORY].offset;
	mw_addr segments = heap + layout->fields[HOTSPOT_HEAP_SEGMENTS].offset;
	int32_t shift;

	if (!hotspot_address(layout, tid, memory, HOTSPOT_SPACE_LOW_BOUNDARY, &out->low) ||
	    !hotspot_address(layout, tid, memory, HOTSPOT_SPACE_HIGH_BOUNDARY, &out->high) ||
	    !hotspot_address(layout, tid, segments, HOTSPOT_SPACE_LOW, &out->segments) ||
	    !mw_peek(tid, heap + layout->fields[HOTSPOT_HEAP_SEGMENT_SHIFT].offset, &shift, sizeof(shift)))
		return false;
	out->shift = (unsigned)shift;
	return shift >= 3 && shift <= 16 && out->low < out->high && out->high - out->low <= HEAP_MAX;
}

bool hotspot_take_heaps(struct mw_hotspot *hotspot, pid_t tid)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	mw_addr array, items, queue, heap;
	int32_t count;

	/* The interpreter and the call stub are made when all code heaps are there. */
	if (!hotspot_address(layout, tid, layout->fields[HOTSPOT_INTERPRETER].address, HOTSPOT_INTERPRETER, &queue) ||
	    !hotspot_address(layout, tid, queue, HOTSPOT_QUEUE_BUFFER, &hotspot->interpreter) ||
	    !hotspot_address(layout, tid, layout->fields[HOTSPOT_CALL_STUB_RETURN].address, HOTSPOT_CALL_STUB_RETURN,
			     &hotspot->call_stub_return))
		return false;
	if (!hotspot_address(layout, tid, layout->fields[HOTSPOT_HEAPS].address, HOTSPOT_HEAPS, &array) ||
	    !mw_peek(tid, array + layout->fields[HOTSPOT_ARRAY_LENGTH].offset, &count, sizeof(count)) ||
	    !hotspot_address(layout, tid, array, HOTSPOT_ARRAY_DATA, &items) || count > HEAPS_MAX)
		return false;
	hotspot->heap_count = 0;
	for (int32_t i = 0; i < count && hotspot->heap_count < MW_HOTSPOT_RANGES; i++)
		if (mw_peek(tid, items + WORD * (unsigned)i, &heap, sizeof(heap)) &&
		    take_heap(hotspot, tid, heap, &hotspot->heaps[hotspot->heap_count]))
			hotspot->heap_count++;
	return hotspot->heap_count;
}

/* --- blobs -------------------------------------------------------------------------------------------------------- */

/* The segment that the block around `segment` begins with: each byte of the map says how far to go back, at most; 0: it is
 * that one. */
static bool find_block(const struct hotspot_heap *heap, pid_t tid, uint64_t segment, uint64_t *out)
{
	uint8_t chunk[CHUNK];

	for (unsigned i = 0; i < CHUNKS; i++) {
		uint64_t from = segment < CHUNK ? 0 : segment - (CHUNK - 1);

		if (!mw_peek(tid, heap->segments + from, chunk, segment - from + 1))
			return false;
		for (;;) {
			uint8_t back = chunk[segment - from];

			if (back == FREE || back > segment)
				return false;
			if (back == 0) {
				*out = segment;
				return true;
			}
			segment -= back;
			if (segment < from)
				break;
		}
	}
	return false;
}

/* Its first bytes. */
static bool read_blob(const struct mw_hotspot *hotspot, pid_t tid, mw_addr block, struct hotspot_blob *blob)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	mw_addr name;
	uint8_t used;

	if (!mw_peek(tid, block + layout->fields[HOTSPOT_BLOCK_USED].offset, &used, sizeof(used)) || !used)
		return false;
	blob->start = block + layout->sizes[HOTSPOT_BLOCK_TYPE];
	blob->have = mw_peek_some(tid, blob->start, blob->bytes, sizeof(blob->bytes));
	name = (mw_addr)of_blob(hotspot, blob, HOTSPOT_BLOB_NAME);
	memset(blob->name, 0, sizeof(blob->name));
	(void)mw_peek_some(tid, name, blob->name, sizeof(blob->name) - 1);
	return true;
}

static bool is_method(const struct hotspot_blob *blob)
{
	return strcmp(blob->name, "nmethod") == 0 || strcmp(blob->name, "native nmethod") == 0;
}

static void set_kind(const struct mw_hotspot *hotspot, mw_addr pc, const struct hotspot_blob *blob,
		     struct mw_hotspot_code *code)
{
	if (pc == hotspot->call_stub_return || pc + 1 == hotspot->call_stub_return) {
		code->kind = MW_HOTSPOT_ENTRY;
		code->code_start = hotspot->call_stub_return - 1;
		code->code_end = hotspot->call_stub_return + 1;
		code->frame_size = code->frame_complete = 0;
	} else if (hotspot->interpreter >= code->start && hotspot->interpreter < code->end) {
		code->kind = MW_HOTSPOT_INTERPRETER;
		code->frame_size = 0;
	} else if (is_method(blob)) {
		code->kind = MW_HOTSPOT_COMPILED;
	} else {
		code->kind = code->frame_size ? MW_HOTSPOT_STUB : MW_HOTSPOT_OTHER;
	}
}

/* False: it is invalid. */
static bool read_code(const struct mw_hotspot *hotspot, struct hotspot_blob *blob)
{
	struct mw_hotspot_code *code = &blob->code;
	int64_t size = of_blob(hotspot, blob, HOTSPOT_BLOB_SIZE);
	int64_t frame = of_blob(hotspot, blob, HOTSPOT_BLOB_FRAME_SIZE);
	int64_t complete = of_blob(hotspot, blob, HOTSPOT_BLOB_FRAME_COMPLETE);

	if (size <= 0 || size > BLOB_MAX)
		return false;
	code->start = blob->start;
	code->end = blob->start + (uint64_t)size;
	if (has(hotspot, HOTSPOT_BLOB_CODE_OFFSET)) {
		code->code_start = blob->start + (uint64_t)of_blob(hotspot, blob, HOTSPOT_BLOB_CODE_OFFSET);
		code->code_end = blob->start + (uint64_t)of_blob(hotspot, blob, HOTSPOT_BLOB_DATA_OFFSET);
	} else {
		code->code_start = (mw_addr)of_blob(hotspot, blob, HOTSPOT_BLOB_CODE_BEGIN);
		code->code_end = (mw_addr)of_blob(hotspot, blob, HOTSPOT_BLOB_CODE_END);
	}
	if (code->code_start < code->start || code->code_end > code->end || code->code_start > code->code_end)
		return false;
	code->frame_size = frame > 0 && frame <= FRAME_MAX / WORD ? (uint32_t)frame * WORD : 0;
	code->frame_complete =
		complete > 0 && (uint64_t)complete < code->code_end - code->code_start ? (uint32_t)complete : 0;
	return true;
}

bool hotspot_find_blob(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, struct hotspot_blob *blob)
{
	const struct hotspot_heap *heap = NULL;
	uint64_t segment;

	for (unsigned i = 0; i < hotspot->heap_count; i++)
		if (pc >= hotspot->heaps[i].low && pc < hotspot->heaps[i].high)
			heap = &hotspot->heaps[i];
	if (!heap || !find_block(heap, tid, (pc - heap->low) >> heap->shift, &segment) ||
	    !read_blob(hotspot, tid, heap->low + (segment << heap->shift), blob) || !read_code(hotspot, blob))
		return false;
	/* A call may be the last instruction. */
	if (pc < blob->code.code_start || pc > blob->code.code_end || blob->code.end > heap->high)
		return false;
	set_kind(hotspot, pc, blob, &blob->code);
	return true;
}

unsigned mw_hotspot_ranges(const struct mw_hotspot *hotspot, struct mw_hotspot_range *out, unsigned capacity)
{
	unsigned count = hotspot->heap_count < capacity ? hotspot->heap_count : capacity;

	for (unsigned i = 0; i < count; i++)
		out[i] = (struct mw_hotspot_range){hotspot->heaps[i].low, hotspot->heaps[i].high};
	return count;
}

static bool is_deopt(const struct mw_hotspot *hotspot, const struct hotspot_blob *blob, mw_addr pc,
		     enum hotspot_field_id address, enum hotspot_field_id offset)
{
	if (has(hotspot, address))
		return pc == (mw_addr)of_blob(hotspot, blob, address);
	return has(hotspot, offset) && pc == blob->start + (uint64_t)of_blob(hotspot, blob, offset);
}

static int32_t original_at(const struct mw_hotspot *hotspot, const struct hotspot_blob *blob, mw_addr pc)
{
	int64_t offset = of_blob(hotspot, blob, HOTSPOT_NMETHOD_ORIGINAL_PC);

	if (!has(hotspot, HOTSPOT_NMETHOD_ORIGINAL_PC) || blob->code.kind != MW_HOTSPOT_COMPILED || offset < 0 ||
	    offset >= blob->code.frame_size || offset % WORD)
		return -1;
	return is_deopt(hotspot, blob, pc, HOTSPOT_NMETHOD_DEOPT_BEGIN, HOTSPOT_NMETHOD_DEOPT_OFFSET) ||
			       is_deopt(hotspot, blob, pc, HOTSPOT_NMETHOD_DEOPT_MH_BEGIN,
					HOTSPOT_NMETHOD_DEOPT_MH_OFFSET)
		       ? (int32_t)offset
		       : -1;
}

bool mw_hotspot_find(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, struct mw_hotspot_code *out)
{
	struct hotspot_blob blob;

	if (!hotspot_find_blob(hotspot, tid, pc, &blob))
		return false;
	*out = blob.code;
	out->original_at = original_at(hotspot, &blob, pc);
	return true;
}

/* --- which methods ------------------------------------------------------------------------------------------------ */

/* Where the tables of a compiled method are. */
struct tables {
	mw_addr pcs, scopes, metadata;
	uint64_t pc_count;
};

static void find_tables(const struct mw_hotspot *hotspot, const struct hotspot_blob *blob, struct tables *out)
{
	bool apart = has(hotspot, HOTSPOT_NMETHOD_IMMUTABLE);
	mw_addr base = apart ? (mw_addr)of_blob(hotspot, blob, HOTSPOT_NMETHOD_IMMUTABLE) : blob->start;
	int64_t begin = of_blob(hotspot, blob, HOTSPOT_NMETHOD_PCS_OFFSET);
	int64_t scopes = of_blob(hotspot, blob, HOTSPOT_NMETHOD_SCOPES_OFFSET);
	/* What comes next. */
	int64_t end = apart ? scopes : of_blob(hotspot, blob, HOTSPOT_NMETHOD_DEPENDENCIES_OFFSET);
	uint64_t size = hotspot->layout.sizes[HOTSPOT_PC_TYPE];

	*out = (struct tables){.pcs = base + (uint64_t)begin, .scopes = base + (uint64_t)scopes};
	if (begin > 0 && end > begin && base)
		out->pc_count = (uint64_t)(end - begin) / size;
	if (has(hotspot, HOTSPOT_NMETHOD_SCOPES_BEGIN))
		out->scopes = (mw_addr)of_blob(hotspot, blob, HOTSPOT_NMETHOD_SCOPES_BEGIN);
	if (out->pc_count > PCS_MAX)
		out->pc_count = 0;
	if (has(hotspot, HOTSPOT_BLOB_MUTABLE))
		out->metadata = (mw_addr)of_blob(hotspot, blob, HOTSPOT_BLOB_MUTABLE) +
				(uint64_t)of_blob(hotspot, blob, HOTSPOT_BLOB_RELOCATION_SIZE);
	else
		out->metadata = blob->start + (uint64_t)of_blob(hotspot, blob, HOTSPOT_NMETHOD_METADATA) +
				(apart ? (uint64_t)of_blob(hotspot, blob, HOTSPOT_BLOB_DATA_OFFSET) : 0);
}

/* Where in the scopes that of an address is: of the first entry of the table that is not before it. 0: none. */
static uint32_t find_scope(const struct mw_hotspot *hotspot, pid_t tid, const struct tables *tables, int64_t at)
{
	const struct hotspot_layout *layout = &hotspot->layout;
	uint64_t low = 0, high = tables->pc_count, size = layout->sizes[HOTSPOT_PC_TYPE];
	uint32_t scope = 0;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint8_t entry[64] = {0};
		size_t have = mw_peek_some(tid, tables->pcs + middle * size, entry, size < 64 ? size : 64);

		if (!have)
			return 0;
		if (hotspot_number(layout, entry, have, HOTSPOT_PC_OFFSET) < at) {
			low = middle + 1;
		} else {
			high = middle;
			scope = (uint32_t)hotspot_number(layout, entry, have, HOTSPOT_PC_SCOPE);
		}
	}
	return scope;
}

/* A scope says where its caller's is, which method it is, and which bytecode. */
static bool read_scope(const struct mw_hotspot *hotspot, pid_t tid, const struct tables *tables, uint32_t at,
		       uint32_t *caller, struct hotspot_scope *out)
{
	uint8_t bytes[16];
	size_t have = mw_peek_some(tid, tables->scopes + at, bytes, sizeof(bytes));
	struct hotspot_packed packed = {bytes, bytes + have, hotspot_packed_base(&hotspot->layout)};
	uint32_t method, bci;

	if (!hotspot_unpack(&packed, caller) || !hotspot_unpack(&packed, &method) || !hotspot_unpack(&packed, &bci) ||
	    !method || !mw_peek(tid, tables->metadata + WORD * (uint64_t)(method - 1), &out->method, WORD))
		return false;
	/* From -1 on, which is where it is entered. */
	out->bci = bci ? bci - 1 : 0;
	return true;
}

unsigned hotspot_scopes(const struct mw_hotspot *hotspot, pid_t tid, const struct hotspot_blob *blob, mw_addr pc,
			struct hotspot_scope *out, unsigned capacity)
{
	struct tables tables;
	uint32_t at;
	unsigned count = 0;

	find_tables(hotspot, blob, &tables);
	at = find_scope(hotspot, tid, &tables, (int64_t)(pc - blob->code.code_start));
	while (at && count < capacity) {
		uint32_t caller;

		if (!read_scope(hotspot, tid, &tables, at, &caller, &out[count]))
			break;
		count++;
		/* Callers are written before those that they call. */
		if (caller >= at)
			break;
		at = caller;
	}
	if (count)
		return count;
	/* The wrapper of a native method has no scopes. */
	*out = (struct hotspot_scope){(mw_addr)of_blob(hotspot, blob, HOTSPOT_NMETHOD_METHOD), HOTSPOT_NO_BCI};
	return 1;
}
