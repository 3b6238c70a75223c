/* SPDX-License-Identifier: MIT */
/* hotspot_parts.h: what the parts of the reader of HotSpot share (hotspot.h). */
#ifndef MW_SCRIPT_HOTSPOT_PARTS_H
#define MW_SCRIPT_HOTSPOT_PARTS_H

#include "base/map.h"
#include "script/hotspot.h"

#include <stdbool.h>
#include <stddef.h>

#define HOTSPOT_OLDEST 17
#define HOTSPOT_NEWEST 25

/* --- where fields are (hotspot_structs.c) ------------------------------------------------------------------------- */

/* Fields by what they are for; several names of several versions may be one. */
enum hotspot_field_id {
	HOTSPOT_VERSION, /* static */
	HOTSPOT_HEAPS,   /* static: GrowableArray<CodeHeap *> * */
	HOTSPOT_INTERPRETER,
	HOTSPOT_CALL_STUB_RETURN, /* static */
	HOTSPOT_ARRAY_LENGTH,
	HOTSPOT_ARRAY_DATA,
	HOTSPOT_QUEUE_BUFFER, /* of the interpreter's code */
	HOTSPOT_SPACE_LOW,
	HOTSPOT_SPACE_LOW_BOUNDARY,
	HOTSPOT_SPACE_HIGH_BOUNDARY,
	HOTSPOT_HEAP_MEMORY,
	HOTSPOT_HEAP_SEGMENTS,
	HOTSPOT_HEAP_SEGMENT_SHIFT,
	HOTSPOT_BLOCK_USED,
	HOTSPOT_BLOB_NAME,
	HOTSPOT_BLOB_SIZE,
	HOTSPOT_BLOB_CODE_BEGIN,  /* up to 22: an address */
	HOTSPOT_BLOB_CODE_END,    /* … */
	HOTSPOT_BLOB_CODE_OFFSET, /* from 23 on: from the blob */
	HOTSPOT_BLOB_DATA_OFFSET,
	HOTSPOT_BLOB_FRAME_SIZE,
	HOTSPOT_BLOB_FRAME_COMPLETE,
	HOTSPOT_BLOB_MUTABLE, /* from 25 on */
	HOTSPOT_BLOB_RELOCATION_SIZE,
	HOTSPOT_NMETHOD_METHOD,
	HOTSPOT_NMETHOD_COMPILE_ID,
	HOTSPOT_NMETHOD_IMMUTABLE,    /* from 23 on */
	HOTSPOT_NMETHOD_METADATA,     /* up to 24; from the blob, from its data in 23 and 24 */
	HOTSPOT_NMETHOD_SCOPES_BEGIN, /* up to 22: an address */
	HOTSPOT_NMETHOD_SCOPES_OFFSET,
	HOTSPOT_NMETHOD_PCS_OFFSET,
	HOTSPOT_NMETHOD_DEPENDENCIES_OFFSET,
	HOTSPOT_NMETHOD_ORIGINAL_PC, /* in the frame */
	HOTSPOT_NMETHOD_DEOPT_BEGIN, /* up to 22: an address */
	HOTSPOT_NMETHOD_DEOPT_MH_BEGIN,
	HOTSPOT_NMETHOD_DEOPT_OFFSET,
	HOTSPOT_NMETHOD_DEOPT_MH_OFFSET,
	HOTSPOT_PC_OFFSET, /* in PcDesc */
	HOTSPOT_PC_SCOPE,
	HOTSPOT_METHOD_CONST,
	HOTSPOT_CONST_CONSTANTS,
	HOTSPOT_CONST_SIZE, /* in words */
	HOTSPOT_CONST_FLAGS,
	HOTSPOT_CONST_CODE_SIZE,
	HOTSPOT_CONST_NAME,
	HOTSPOT_CONST_NUMBER,
	HOTSPOT_POOL_HOLDER,
	HOTSPOT_POOL_LENGTH,
	HOTSPOT_POOL_SOURCE,
	HOTSPOT_KLASS_NAME,
	HOTSPOT_KLASS_LOADER,
	HOTSPOT_SYMBOL_LENGTH,
	HOTSPOT_SYMBOL_BODY,
	HOTSPOT_SYMBOL_REFERENCES, /* their number, in the lower half */
	/* For its spaces alone (hotspot_spaces.c), none of which need be there. */
	HOTSPOT_JAVA_HEAP, /* static: CollectedHeap * */
	HOTSPOT_JAVA_HEAP_RESERVED,
	HOTSPOT_REGION_START,
	HOTSPOT_REGION_WORDS,
	HOTSPOT_ARCHIVE_LOW,  /* static */
	HOTSPOT_ARCHIVE_HIGH, /* static */
	HOTSPOT_BARRIERS,     /* static */
	HOTSPOT_BARRIERS_CARDS,
	HOTSPOT_CARDS_MAP,
	HOTSPOT_CARDS_SIZE,
	HOTSPOT_LOADERS, /* static: ClassLoaderData * */
	HOTSPOT_LOADER_NEXT,
	HOTSPOT_LOADER_KLASSES,
	HOTSPOT_KLASS_LAYOUT,
	HOTSPOT_KLASS_CONSTANTS,
	HOTSPOT_THREADS, /* static: ThreadsList * */
	HOTSPOT_THREADS_LENGTH,
	HOTSPOT_THREADS_ITEMS,
	HOTSPOT_THREAD_STACK_BASE,
	HOTSPOT_THREAD_STACK_SIZE,
	HOTSPOT_THREAD_OS,
	HOTSPOT_OS_THREAD_ID,
	HOTSPOT_FLAGS,      /* static: JVMFlag * */
	HOTSPOT_FLAG_COUNT, /* static */
	HOTSPOT_FLAG_NAME,
	HOTSPOT_FLAG_VALUE, /* its address */
	/* For what of the Java heap is in use (hotspot_heap.c): of each collector those that its version has. */
	HOTSPOT_SERIAL_YOUNG,
	HOTSPOT_SERIAL_OLD,
	HOTSPOT_SERIAL_EDEN, /* of the young one */
	HOTSPOT_SERIAL_FROM,
	HOTSPOT_SERIAL_SPACE, /* of the old one */
	HOTSPOT_CONTIGUOUS_BOTTOM,
	HOTSPOT_CONTIGUOUS_TOP,
	HOTSPOT_PARALLEL_YOUNG, /* static */
	HOTSPOT_PARALLEL_OLD,   /* static */
	HOTSPOT_PARALLEL_EDEN,
	HOTSPOT_PARALLEL_FROM,
	HOTSPOT_PARALLEL_SPACE,
	HOTSPOT_MUTABLE_BOTTOM,
	HOTSPOT_MUTABLE_TOP,
	HOTSPOT_G1_MANAGER, /* in the CollectedHeap, as the table is in it */
	HOTSPOT_G1_TABLE,
	HOTSPOT_G1_TABLE_ITEMS, /* addresses of regions */
	HOTSPOT_G1_TABLE_LENGTH,
	HOTSPOT_G1_REGION_BOTTOM,
	HOTSPOT_G1_REGION_TOP,
	HOTSPOT_SHENANDOAH_USED,   /* up to 24 */
	HOTSPOT_SHENANDOAH_GLOBAL, /* from 25 on: its generation of all */
	HOTSPOT_SHENANDOAH_GENERATION_USED,
	HOTSPOT_EPSILON_SPACE,
	HOTSPOT_Z_HEAP, /* in the CollectedHeap, as the allocator is in it */
	HOTSPOT_Z_ALLOCATOR,
	HOTSPOT_Z_CAPACITY, /* up to 24 */
	HOTSPOT_Z_USED,
	HOTSPOT_Z_PARTITIONS, /* from 25 on, one for each NUMA node */
	HOTSPOT_Z_PARTITIONS_AT,
	HOTSPOT_Z_PARTITION_CAPACITY,
	HOTSPOT_Z_PARTITION_USED,
	HOTSPOT_Z_NODES, /* static */
	HOTSPOT_X_HEAP,  /* from 21 to 23 the same of ZGC without generations */
	HOTSPOT_X_ALLOCATOR,
	HOTSPOT_X_CAPACITY,
	HOTSPOT_X_USED,
	HOTSPOT_FIELDS
};

enum hotspot_type_id {
	HOTSPOT_BLOCK_TYPE,
	HOTSPOT_POOL_TYPE,
	HOTSPOT_CONST_TYPE,
	HOTSPOT_PC_TYPE,
	HOTSPOT_FLAG_TYPE,
	HOTSPOT_TYPES
};

struct hotspot_field {
	bool there, is_signed;
	uint8_t size;    /* of a number */
	uint32_t offset; /* in its object */
	mw_addr address; /* of a static one */
};

struct hotspot_layout {
	unsigned version;
	struct hotspot_field fields[HOTSPOT_FIELDS];
	uint32_t sizes[HOTSPOT_TYPES];
	uint32_t has_lines; /* the flag of ConstMethod */
};

/* What libjvm.so exports: where its tables stand, as vaddr in the file. 0: it has not. */
enum hotspot_export {
	HOTSPOT_STRUCTS,
	HOTSPOT_STRUCT_STRIDE,
	HOTSPOT_STRUCT_TYPE,
	HOTSPOT_STRUCT_FIELD,
	HOTSPOT_STRUCT_FIELD_TYPE,
	HOTSPOT_STRUCT_IS_STATIC,
	HOTSPOT_STRUCT_OFFSET,
	HOTSPOT_STRUCT_ADDRESS,
	HOTSPOT_TYPES_TABLE,
	HOTSPOT_TYPE_STRIDE,
	HOTSPOT_TYPE_NAME,
	HOTSPOT_TYPE_SIZE,
	HOTSPOT_CONSTANTS,
	HOTSPOT_CONSTANT_STRIDE,
	HOTSPOT_CONSTANT_NAME,
	HOTSPOT_CONSTANT_VALUE,
	HOTSPOT_EXPORTS
};

/* What a file that has the tables exports: vaddr. */
struct hotspot_file {
	uint64_t exports[HOTSPOT_EXPORTS];
};

/* Does the file export all of them? Errors: MEMORY. */
struct mw_error *hotspot_find_exports(struct mw_elf *elf, struct hotspot_file *out, bool *has) MW_MUST_CHECK;
/* Read the tables. False: they can't be read, or are not complete; `out->version` is 0 where not even that is known. */
bool hotspot_read_layout(const struct hotspot_file *file, uint64_t bias, pid_t tid, struct hotspot_layout *out);
/* A number in an object of which `have` bytes were read; 0 where the field is not there. */
int64_t hotspot_number(const struct hotspot_layout *layout, const uint8_t *object, size_t have,
		       enum hotspot_field_id id);
/* An address in an object of the process; false where it is 0, or can't be read. */
bool hotspot_address(const struct hotspot_layout *layout, pid_t tid, mw_addr object, enum hotspot_field_id id,
		     mw_addr *out);

/* --- blobs (hotspot_code.c) --------------------------------------------------------------------------------------- */

struct hotspot_heap {
	mw_addr low, high; /* reserved */
	mw_addr segments;  /* a byte for each segment of it */
	unsigned shift;    /* of a segment's size */
};

#define HOTSPOT_BLOB_BYTES 512 /* of a blob's head that are read, all fields among them */

struct hotspot_blob {
	mw_addr start;
	uint8_t bytes[HOTSPOT_BLOB_BYTES];
	size_t have;
	char name[64];
	struct mw_hotspot_code code;
};

/* Look for the code heaps. False: they are not complete yet. */
bool hotspot_take_heaps(struct mw_hotspot *hotspot, pid_t tid);
bool hotspot_find_blob(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, struct hotspot_blob *blob);

#define HOTSPOT_NO_BCI UINT32_MAX

struct hotspot_scope {
	mw_addr method;
	uint32_t bci; /* of the bytecode */
};

/* The methods at a return address in a blob that is MW_HOTSPOT_COMPILED, innermost first, `capacity` at most, 1 at least. */
unsigned hotspot_scopes(const struct mw_hotspot *hotspot, pid_t tid, const struct hotspot_blob *blob, mw_addr pc,
			struct hotspot_scope *out, unsigned capacity);

/* --- the Java heap (hotspot_heap.c) ------------------------------------------------------------------------------- */

/* Flags of the command line, as the virtual machine has settled them. */
enum hotspot_flag {
	HOTSPOT_USES_SERIAL,
	HOTSPOT_USES_PARALLEL,
	HOTSPOT_USES_G1,
	HOTSPOT_USES_SHENANDOAH,
	HOTSPOT_USES_EPSILON,
	HOTSPOT_USES_Z,
	HOTSPOT_USES_Z_GENERATIONS,
	HOTSPOT_USES_NUMA,
	HOTSPOT_USES_CLASS_SPACE,
	HOTSPOT_CLASS_SPACE_SIZE,
	HOTSPOT_HEAP_SIZE_MAX,
	HOTSPOT_FLAG_NAMES
};

/* 0 where there is none of that name, or it can't be read. */
struct hotspot_flags {
	uint64_t values[HOTSPOT_FLAG_NAMES];
};
void hotspot_read_flags(const struct hotspot_layout *layout, pid_t tid, struct hotspot_flags *out);

/* Bytes of the heap; 0 where it does not say so. */
struct hotspot_heap_use {
	uint64_t committed; /* only ZGC's, whose heap may be mapped several times */
	uint64_t used;
};
/* What the collector counts, as `jcmd PID GC.heap_info` has it. `heap`: the CollectedHeap. */
struct hotspot_heap_use hotspot_heap_use(const struct hotspot_layout *layout, pid_t tid,
					 const struct hotspot_flags *flags, mw_addr heap);

/* --- packed numbers (hotspot_packed.c) ---------------------------------------------------------------------------- */

/* Bytes of a packed stream. */
struct hotspot_packed {
	const uint8_t *at, *end;
	unsigned base; /* the lowest byte that is used: 1 from version 20 on */
};

/* False: it ends amid it. */
bool hotspot_unpack(struct hotspot_packed *packed, uint32_t *value);
/* The line of a bytecode index in a compressed table of lines; 0: it has none. */
uint32_t hotspot_line(struct hotspot_packed table, uint32_t bci);

static inline unsigned hotspot_packed_base(const struct hotspot_layout *layout)
{
	return layout->version >= 20 ? 1 : 0;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

struct mw_hotspot {
	struct mw_modules *modules;
	uint32_t seen;   /* modules that were looked at */
	uint32_t module; /* that stands for the language */
	struct mw_named_frames *named;
	struct hotspot_file file; /* of the one that has the tables */
	uint64_t bias;
	unsigned tries; /* that are left to read these */
	bool has_layout, is_there;
	struct hotspot_layout layout;
	struct hotspot_heap heaps[MW_HOTSPOT_RANGES];
	unsigned heap_count;
	mw_addr interpreter;           /* its code begins there */
	mw_addr call_stub_return;      /* behind the call of Java by native code */
	struct mw_map answers;         /* struct hotspot_answer by what was asked (hotspot_names.c) */
	struct hotspot_watch *watches; /* (hotspot_watch.c) */
	size_t watch_count, watch_capacity;
	bool unnamed;          /* something had no name since these were last looked at */
	struct mw_map watched; /* what is among these, by address: not NULL */
};

/* Memory that a name was made of, and what it held. */
struct hotspot_watch {
	mw_addr at;
	uint32_t size;
	uint64_t hash;
};

/* Watch `size` bytes, of which only the first few hundred count. Without memory they are not watched. */
void hotspot_watch(struct mw_hotspot *hotspot, pid_t tid, mw_addr at, uint32_t size);
void hotspot_watches_deinit(struct mw_hotspot *hotspot);

/* Free the answers. */
void hotspot_answers_deinit(struct mw_map *answers);

#endif
