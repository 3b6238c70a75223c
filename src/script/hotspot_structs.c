// SPDX-License-Identifier: MIT
/* hotspot_structs.c: what libjvm.so says of its structures (hotspot_parts.h). */
#include "script/hotspot_parts.h"

#include "proc/peek.h"

#include <stdlib.h>
#include <string.h>

#define PAGE       4096u
#define PAGES      64     /* kept while the tables are read */
#define ENTRIES    16384u /* of a table, at most */
#define ENTRY      128u   /* bytes of an entry, at most */
#define NAME       96     /* characters of a name, those of longer ones are none of ours */
#define OFFSET_MAX 4096u  /* of a field in its object */

/* --- what the file exports ---------------------------------------------------------------------------------------- */

static const char *const exports[HOTSPOT_EXPORTS] = {
	[HOTSPOT_STRUCTS] = "gHotSpotVMStructs",
	[HOTSPOT_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[HOTSPOT_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[HOTSPOT_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[HOTSPOT_STRUCT_FIELD_TYPE] = "gHotSpotVMStructEntryTypeStringOffset",
	[HOTSPOT_STRUCT_IS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[HOTSPOT_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[HOTSPOT_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[HOTSPOT_TYPES_TABLE] = "gHotSpotVMTypes",
	[HOTSPOT_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[HOTSPOT_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[HOTSPOT_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[HOTSPOT_CONSTANTS] = "gHotSpotVMIntConstants",
	[HOTSPOT_CONSTANT_STRIDE] = "gHotSpotVMIntConstantEntryArrayStride",
	[HOTSPOT_CONSTANT_NAME] = "gHotSpotVMIntConstantEntryNameOffset",
	[HOTSPOT_CONSTANT_VALUE] = "gHotSpotVMIntConstantEntryValueOffset",
};

struct mw_error *hotspot_find_exports(struct mw_elf *elf, struct hotspot_file *out, bool *has)
{
	struct mw_named_symbol named[HOTSPOT_EXPORTS] = {{NULL, 0, 0}};

	for (unsigned i = 0; i < HOTSPOT_EXPORTS; i++)
		named[i].name = exports[i];
	MW_TRY(mw_error_if_memory(mw_elf_find_named(elf, named, HOTSPOT_EXPORTS)));
	*has = true;
	for (unsigned i = 0; i < HOTSPOT_EXPORTS; i++) {
		out->exports[i] = named[i].vaddr;
		*has = *has && named[i].vaddr;
	}
	return NULL;
}

/* --- which fields are wanted -------------------------------------------------------------------------------------- */

struct wanted {
	const char *type, *field;
	enum hotspot_field_id id;
	bool needed;
};

static const struct wanted wanted[] = {
	{"Abstract_VM_Version", "_vm_major_version", HOTSPOT_VERSION, true},
	{"CodeCache", "_heaps", HOTSPOT_HEAPS, true},
	{"AbstractInterpreter", "_code", HOTSPOT_INTERPRETER, true},
	{"StubRoutines", "_call_stub_return_address", HOTSPOT_CALL_STUB_RETURN, true},
	{"GrowableArrayBase", "_len", HOTSPOT_ARRAY_LENGTH, true},
	{"GrowableArray<int>", "_data", HOTSPOT_ARRAY_DATA, true},
	{"StubQueue", "_stub_buffer", HOTSPOT_QUEUE_BUFFER, true},
	{"VirtualSpace", "_low", HOTSPOT_SPACE_LOW, true},
	{"VirtualSpace", "_low_boundary", HOTSPOT_SPACE_LOW_BOUNDARY, true},
	{"VirtualSpace", "_high_boundary", HOTSPOT_SPACE_HIGH_BOUNDARY, true},
	{"CodeHeap", "_memory", HOTSPOT_HEAP_MEMORY, true},
	{"CodeHeap", "_segmap", HOTSPOT_HEAP_SEGMENTS, true},
	{"CodeHeap", "_log2_segment_size", HOTSPOT_HEAP_SEGMENT_SHIFT, true},
	{"HeapBlock::Header", "_used", HOTSPOT_BLOCK_USED, true},
	{"CodeBlob", "_name", HOTSPOT_BLOB_NAME, true},
	{"CodeBlob", "_size", HOTSPOT_BLOB_SIZE, true},
	{"CodeBlob", "_code_begin", HOTSPOT_BLOB_CODE_BEGIN, false},
	{"CodeBlob", "_code_end", HOTSPOT_BLOB_CODE_END, false},
	{"CodeBlob", "_code_offset", HOTSPOT_BLOB_CODE_OFFSET, false},
	{"CodeBlob", "_data_offset", HOTSPOT_BLOB_DATA_OFFSET, true},
	{"CodeBlob", "_frame_size", HOTSPOT_BLOB_FRAME_SIZE, true},
	{"CodeBlob", "_frame_complete_offset", HOTSPOT_BLOB_FRAME_COMPLETE, true},
	{"CodeBlob", "_mutable_data", HOTSPOT_BLOB_MUTABLE, false},
	{"CodeBlob", "_relocation_size", HOTSPOT_BLOB_RELOCATION_SIZE, false},
	{"CompiledMethod", "_method", HOTSPOT_NMETHOD_METHOD, true},
	{"nmethod", "_method", HOTSPOT_NMETHOD_METHOD, true},
	{"nmethod", "_compile_id", HOTSPOT_NMETHOD_COMPILE_ID, true},
	{"nmethod", "_immutable_data", HOTSPOT_NMETHOD_IMMUTABLE, false},
	{"nmethod", "_metadata_offset", HOTSPOT_NMETHOD_METADATA, false},
	{"CompiledMethod", "_scopes_data_begin", HOTSPOT_NMETHOD_SCOPES_BEGIN, false},
	{"nmethod", "_scopes_data_begin", HOTSPOT_NMETHOD_SCOPES_BEGIN, false},
	{"nmethod", "_scopes_data_offset", HOTSPOT_NMETHOD_SCOPES_OFFSET, false},
	{"nmethod", "_scopes_pcs_offset", HOTSPOT_NMETHOD_PCS_OFFSET, true},
	{"nmethod", "_dependencies_offset", HOTSPOT_NMETHOD_DEPENDENCIES_OFFSET, false},
	{"nmethod", "_orig_pc_offset", HOTSPOT_NMETHOD_ORIGINAL_PC, false},
	{"CompiledMethod", "_deopt_handler_begin", HOTSPOT_NMETHOD_DEOPT_BEGIN, false},
	{"CompiledMethod", "_deopt_mh_handler_begin", HOTSPOT_NMETHOD_DEOPT_MH_BEGIN, false},
	{"nmethod", "_deopt_handler_begin", HOTSPOT_NMETHOD_DEOPT_BEGIN, false},
	{"nmethod", "_deopt_mh_handler_begin", HOTSPOT_NMETHOD_DEOPT_MH_BEGIN, false},
	{"nmethod", "_deopt_handler_offset", HOTSPOT_NMETHOD_DEOPT_OFFSET, false},
	{"nmethod", "_deopt_mh_handler_offset", HOTSPOT_NMETHOD_DEOPT_MH_OFFSET, false},
	{"PcDesc", "_pc_offset", HOTSPOT_PC_OFFSET, true},
	{"PcDesc", "_scope_decode_offset", HOTSPOT_PC_SCOPE, true},
	{"Method", "_constMethod", HOTSPOT_METHOD_CONST, true},
	{"ConstMethod", "_constants", HOTSPOT_CONST_CONSTANTS, true},
	{"ConstMethod", "_constMethod_size", HOTSPOT_CONST_SIZE, true},
	{"ConstMethod", "_flags", HOTSPOT_CONST_FLAGS, true},
	{"ConstMethod", "_flags._flags", HOTSPOT_CONST_FLAGS, true},
	{"ConstMethod", "_code_size", HOTSPOT_CONST_CODE_SIZE, true},
	{"ConstMethod", "_name_index", HOTSPOT_CONST_NAME, true},
	{"ConstMethod", "_method_idnum", HOTSPOT_CONST_NUMBER, true},
	{"ConstantPool", "_pool_holder", HOTSPOT_POOL_HOLDER, true},
	{"ConstantPool", "_length", HOTSPOT_POOL_LENGTH, true},
	{"ConstantPool", "_source_file_name_index", HOTSPOT_POOL_SOURCE, false},
	{"Klass", "_name", HOTSPOT_KLASS_NAME, true},
	{"Klass", "_class_loader_data", HOTSPOT_KLASS_LOADER, false},
	{"Symbol", "_length", HOTSPOT_SYMBOL_LENGTH, true},
	{"Symbol", "_body", HOTSPOT_SYMBOL_BODY, true},
	{"Symbol", "_hash_and_refcount", HOTSPOT_SYMBOL_REFERENCES, false},
	{"Universe", "_collectedHeap", HOTSPOT_JAVA_HEAP, false},
	{"CollectedHeap", "_reserved", HOTSPOT_JAVA_HEAP_RESERVED, false},
	{"MemRegion", "_start", HOTSPOT_REGION_START, false},
	{"MemRegion", "_word_size", HOTSPOT_REGION_WORDS, false},
	{"MetaspaceObj", "_shared_metaspace_base", HOTSPOT_ARCHIVE_LOW, false},
	{"MetaspaceObj", "_shared_metaspace_top", HOTSPOT_ARCHIVE_HIGH, false},
	{"BarrierSet", "_barrier_set", HOTSPOT_BARRIERS, false},
	{"CardTableBarrierSet", "_card_table", HOTSPOT_BARRIERS_CARDS, false},
	{"CardTable", "_byte_map", HOTSPOT_CARDS_MAP, false},
	{"CardTable", "_byte_map_size", HOTSPOT_CARDS_SIZE, false},
	{"ClassLoaderDataGraph", "_head", HOTSPOT_LOADERS, false},
	{"ClassLoaderData", "_next", HOTSPOT_LOADER_NEXT, false},
	{"ClassLoaderData", "_klasses", HOTSPOT_LOADER_KLASSES, false},
	{"Klass", "_layout_helper", HOTSPOT_KLASS_LAYOUT, false},
	{"InstanceKlass", "_constants", HOTSPOT_KLASS_CONSTANTS, false},
	{"ThreadsSMRSupport", "_java_thread_list", HOTSPOT_THREADS, false},
	{"ThreadsList", "_length", HOTSPOT_THREADS_LENGTH, false},
	{"ThreadsList", "_threads", HOTSPOT_THREADS_ITEMS, false},
	{"JavaThread", "_stack_base", HOTSPOT_THREAD_STACK_BASE, false},
	{"Thread", "_stack_base", HOTSPOT_THREAD_STACK_BASE, false},
	{"JavaThread", "_stack_size", HOTSPOT_THREAD_STACK_SIZE, false},
	{"Thread", "_stack_size", HOTSPOT_THREAD_STACK_SIZE, false},
	{"JavaThread", "_osthread", HOTSPOT_THREAD_OS, false},
	{"Thread", "_osthread", HOTSPOT_THREAD_OS, false},
	{"OSThread", "_thread_id", HOTSPOT_OS_THREAD_ID, false},
	{"JVMFlag", "flags", HOTSPOT_FLAGS, false},
	{"JVMFlag", "numFlags", HOTSPOT_FLAG_COUNT, false},
	{"JVMFlag", "_name", HOTSPOT_FLAG_NAME, false},
	{"JVMFlag", "_addr", HOTSPOT_FLAG_VALUE, false},
	{"GenCollectedHeap", "_young_gen", HOTSPOT_SERIAL_YOUNG, false},
	{"SerialHeap", "_young_gen", HOTSPOT_SERIAL_YOUNG, false},
	{"GenCollectedHeap", "_old_gen", HOTSPOT_SERIAL_OLD, false},
	{"SerialHeap", "_old_gen", HOTSPOT_SERIAL_OLD, false},
	{"DefNewGeneration", "_eden_space", HOTSPOT_SERIAL_EDEN, false},
	{"DefNewGeneration", "_from_space", HOTSPOT_SERIAL_FROM, false},
	{"TenuredGeneration", "_the_space", HOTSPOT_SERIAL_SPACE, false},
	{"Space", "_bottom", HOTSPOT_CONTIGUOUS_BOTTOM, false},
	{"ContiguousSpace", "_bottom", HOTSPOT_CONTIGUOUS_BOTTOM, false},
	{"ContiguousSpace", "_top", HOTSPOT_CONTIGUOUS_TOP, false},
	{"ParallelScavengeHeap", "_young_gen", HOTSPOT_PARALLEL_YOUNG, false},
	{"ParallelScavengeHeap", "_old_gen", HOTSPOT_PARALLEL_OLD, false},
	{"PSYoungGen", "_eden_space", HOTSPOT_PARALLEL_EDEN, false},
	{"PSYoungGen", "_from_space", HOTSPOT_PARALLEL_FROM, false},
	{"PSOldGen", "_object_space", HOTSPOT_PARALLEL_SPACE, false},
	{"MutableSpace", "_bottom", HOTSPOT_MUTABLE_BOTTOM, false},
	{"MutableSpace", "_top", HOTSPOT_MUTABLE_TOP, false},
	{"G1CollectedHeap", "_hrm", HOTSPOT_G1_MANAGER, false},
	{"HeapRegionManager", "_regions", HOTSPOT_G1_TABLE, false},
	{"G1HeapRegionManager", "_regions", HOTSPOT_G1_TABLE, false},
	{"G1HeapRegionTable", "_base", HOTSPOT_G1_TABLE_ITEMS, false},
	{"G1HeapRegionTable", "_length", HOTSPOT_G1_TABLE_LENGTH, false},
	{"HeapRegion", "_bottom", HOTSPOT_G1_REGION_BOTTOM, false},
	{"G1HeapRegion", "_bottom", HOTSPOT_G1_REGION_BOTTOM, false},
	{"HeapRegion", "_top", HOTSPOT_G1_REGION_TOP, false},
	{"G1HeapRegion", "_top", HOTSPOT_G1_REGION_TOP, false},
	{"ShenandoahHeap", "_used", HOTSPOT_SHENANDOAH_USED, false},
	{"ShenandoahHeap", "_global_generation", HOTSPOT_SHENANDOAH_GLOBAL, false},
	{"ShenandoahGeneration", "_used", HOTSPOT_SHENANDOAH_GENERATION_USED, false},
	{"EpsilonHeap", "_space", HOTSPOT_EPSILON_SPACE, false},
	{"ZCollectedHeap", "_heap", HOTSPOT_Z_HEAP, false},
	{"ZHeap", "_page_allocator", HOTSPOT_Z_ALLOCATOR, false},
	{"ZPageAllocator", "_capacity", HOTSPOT_Z_CAPACITY, false},
	{"ZPageAllocator", "_used", HOTSPOT_Z_USED, false},
	{"ZPageAllocator", "_partitions", HOTSPOT_Z_PARTITIONS, false},
	{"ZPerNUMAZPartition", "_addr", HOTSPOT_Z_PARTITIONS_AT, false},
	{"ZPartition", "_capacity", HOTSPOT_Z_PARTITION_CAPACITY, false},
	{"ZPartition", "_used", HOTSPOT_Z_PARTITION_USED, false},
	{"ZNUMA", "_count", HOTSPOT_Z_NODES, false},
	{"XCollectedHeap", "_heap", HOTSPOT_X_HEAP, false},
	{"XHeap", "_page_allocator", HOTSPOT_X_ALLOCATOR, false},
	{"XPageAllocator", "_capacity", HOTSPOT_X_CAPACITY, false},
	{"XPageAllocator", "_used", HOTSPOT_X_USED, false},
};

static const char *const types[HOTSPOT_TYPES] = {
	[HOTSPOT_BLOCK_TYPE] = "HeapBlock", [HOTSPOT_POOL_TYPE] = "ConstantPool", [HOTSPOT_CONST_TYPE] = "ConstMethod",
	[HOTSPOT_PC_TYPE] = "PcDesc",       [HOTSPOT_FLAG_TYPE] = "JVMFlag",
};

/* How a number of such a type is read. What is neither here nor has an address is an int. */
static void set_kind(struct hotspot_field *field, const char *type)
{
	static const struct {
		const char *type;
		uint8_t size;
		bool is_signed;
	} kinds[] = {
		{"bool", 1, false},    {"u1", 1, false},           {"u2", 2, false},     {"jushort", 2, false},
		{"int16_t", 2, true},  {"uint16_t", 2, false},     {"u4", 4, false},     {"uint32_t", 4, false},
		{"address", 8, false}, {"unsigned int", 4, false}, {"size_t", 8, false},
	};
	size_t length = strlen(type);

	field->size = 4;
	field->is_signed = true;
	if (length && type[length - 1] == '*') {
		field->size = 8;
		field->is_signed = false;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(type, kinds[i].type) == 0) {
			field->size = kinds[i].size;
			field->is_signed = kinds[i].is_signed;
		}
}

/* --- reading the tables ------------------------------------------------------------------------------------------- */

struct reader {
	pid_t tid;
	unsigned next;
	mw_addr at[PAGES];
	uint8_t pages[PAGES][PAGE];
};

static const uint8_t *page_of(struct reader *reader, mw_addr page)
{
	unsigned number;

	/* Empty ones have the page 0. */
	for (unsigned i = 0; page && i < PAGES; i++)
		if (reader->at[i] == page)
			return reader->pages[i];
	number = reader->next++ % PAGES;
	reader->at[number] = 0;
	if (!page || !mw_peek(reader->tid, page, reader->pages[number], PAGE))
		return NULL;
	reader->at[number] = page;
	return reader->pages[number];
}

static bool read_bytes(struct reader *reader, mw_addr addr, void *out, size_t size)
{
	for (size_t done = 0; done < size;) {
		size_t offset = (addr + done) % PAGE, part = PAGE - offset < size - done ? PAGE - offset : size - done;
		const uint8_t *page = page_of(reader, addr + done - offset);

		if (!page)
			return false;
		memcpy((uint8_t *)out + done, page + offset, part);
		done += part;
	}
	return true;
}

/* Longer text is cut. False: there is none. */
static bool read_text(struct reader *reader, mw_addr addr, char out[NAME])
{
	for (size_t done = 0; done < NAME - 1;) {
		size_t offset = (addr + done) % PAGE,
		       part = PAGE - offset < NAME - 1 - done ? PAGE - offset : NAME - 1 - done;
		const uint8_t *page = page_of(reader, addr + done - offset);

		if (!page)
			return false;
		memcpy(out + done, page + offset, part);
		if (memchr(out + done, 0, part))
			return true;
		done += part;
	}
	out[NAME - 1] = '\0';
	return true;
}

struct table {
	struct reader *reader;
	uint64_t exports[HOTSPOT_EXPORTS]; /* as they are in the process */
	mw_addr at;                        /* of the entry */
	uint64_t stride;
	unsigned left;
	uint8_t entry[ENTRY];
};

static bool read_exports(struct table *table, const struct hotspot_file *file, uint64_t bias)
{
	for (unsigned i = 0; i < HOTSPOT_EXPORTS; i++)
		if (!read_bytes(table->reader, bias + file->exports[i], &table->exports[i], sizeof(table->exports[i])))
			return false;
	return true;
}

static bool open_table(struct table *table, enum hotspot_export array, enum hotspot_export stride)
{
	table->stride = table->exports[stride];
	table->at = table->exports[array] - table->stride;
	table->left = ENTRIES;
	return table->stride >= 8 && table->stride <= ENTRY;
}

static bool next_entry(struct table *table)
{
	table->at += table->stride;
	return table->left-- && read_bytes(table->reader, table->at, table->entry, table->stride);
}

/* A member of the entry, `size` bytes of it. */
static uint64_t member(const struct table *table, enum hotspot_export id, size_t size)
{
	uint64_t offset = table->exports[id], value = 0;

	if (offset <= table->stride - size)
		memcpy(&value, table->entry + offset, size);
	return value;
}

static bool text_member(const struct table *table, enum hotspot_export id, char out[NAME])
{
	return read_text(table->reader, member(table, id, 8), out);
}

static void read_structs(struct table *table, struct hotspot_layout *layout)
{
	char type[NAME], name[NAME], kind[NAME];

	if (!open_table(table, HOTSPOT_STRUCTS, HOTSPOT_STRUCT_STRIDE))
		return;
	while (next_entry(table) && text_member(table, HOTSPOT_STRUCT_TYPE, type) &&
	       text_member(table, HOTSPOT_STRUCT_FIELD, name)) {
		uint64_t offset = member(table, HOTSPOT_STRUCT_OFFSET, 8);

		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			struct hotspot_field *field = &layout->fields[wanted[i].id];

			if (field->there || offset > OFFSET_MAX || strcmp(name, wanted[i].field) != 0 ||
			    strcmp(type, wanted[i].type) != 0)
				continue;
			field->there = true;
			if (member(table, HOTSPOT_STRUCT_IS_STATIC, 4))
				field->address = member(table, HOTSPOT_STRUCT_ADDRESS, 8);
			else
				field->offset = (uint32_t)offset;
			set_kind(field, text_member(table, HOTSPOT_STRUCT_FIELD_TYPE, kind) ? kind : "");
		}
	}
}

static void read_types(struct table *table, struct hotspot_layout *layout)
{
	char name[NAME];

	if (!open_table(table, HOTSPOT_TYPES_TABLE, HOTSPOT_TYPE_STRIDE))
		return;
	while (next_entry(table) && text_member(table, HOTSPOT_TYPE_NAME, name))
		for (unsigned i = 0; i < HOTSPOT_TYPES; i++)
			if (strcmp(name, types[i]) == 0)
				layout->sizes[i] = (uint32_t)member(table, HOTSPOT_TYPE_SIZE, 8);
}

static void read_constants(struct table *table, struct hotspot_layout *layout)
{
	char name[NAME];

	if (!open_table(table, HOTSPOT_CONSTANTS, HOTSPOT_CONSTANT_STRIDE))
		return;
	while (next_entry(table) && text_member(table, HOTSPOT_CONSTANT_NAME, name))
		if (strcmp(name, "ConstMethod::_has_linenumber_table") == 0 ||
		    strcmp(name, "ConstMethodFlags::_misc_has_linenumber_table") == 0)
			layout->has_lines = (uint32_t)member(table, HOTSPOT_CONSTANT_VALUE, 4);
}

#define OBJECT_MAX 4096u /* bytes of an object */

/* Is all there that the code of that version is read by? */
static bool is_complete(const struct hotspot_layout *layout)
{
	const struct hotspot_field *fields = layout->fields;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (wanted[i].needed && !fields[wanted[i].id].there)
			return false;
	for (unsigned i = 0; i < HOTSPOT_TYPES; i++)
		if (layout->sizes[i] > OBJECT_MAX || (!layout->sizes[i] && i != HOTSPOT_FLAG_TYPE))
			return false;
	return layout->has_lines &&
	       (fields[HOTSPOT_BLOB_CODE_OFFSET].there ||
		(fields[HOTSPOT_BLOB_CODE_BEGIN].there && fields[HOTSPOT_BLOB_CODE_END].there)) &&
	       (fields[HOTSPOT_NMETHOD_SCOPES_OFFSET].there || fields[HOTSPOT_NMETHOD_SCOPES_BEGIN].there) &&
	       (fields[HOTSPOT_NMETHOD_METADATA].there ||
		(fields[HOTSPOT_BLOB_MUTABLE].there && fields[HOTSPOT_BLOB_RELOCATION_SIZE].there)) &&
	       (fields[HOTSPOT_NMETHOD_IMMUTABLE].there ? fields[HOTSPOT_NMETHOD_SCOPES_OFFSET].there
							: fields[HOTSPOT_NMETHOD_DEPENDENCIES_OFFSET].there);
}

bool hotspot_read_layout(const struct hotspot_file *file, uint64_t bias, pid_t tid, struct hotspot_layout *out)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	struct table table = {.reader = reader};
	int32_t version = 0;

	memset(out, 0, sizeof(*out));
	if (!reader)
		return false;
	reader->tid = tid;
	if (read_exports(&table, file, bias)) {
		read_structs(&table, out);
		read_types(&table, out);
		read_constants(&table, out);
	}
	if (mw_peek(tid, out->fields[HOTSPOT_VERSION].address, &version, sizeof(version)) && version > 0)
		out->version = (unsigned)version;
	free(reader);
	return out->version && is_complete(out);
}

/* --- reading by it ------------------------------------------------------------------------------------------------ */

int64_t hotspot_number(const struct hotspot_layout *layout, const uint8_t *object, size_t have,
		       enum hotspot_field_id id)
{
	const struct hotspot_field *field = &layout->fields[id];
	uint64_t value = 0;

	if (!field->there || field->offset > have || field->size > have - field->offset)
		return 0;
	memcpy(&value, object + field->offset, field->size);
	if (field->is_signed && field->size < 8 && value >> (8 * field->size - 1))
		value |= ~UINT64_C(0) << (8 * field->size);
	return (int64_t)value;
}

bool hotspot_address(const struct hotspot_layout *layout, pid_t tid, mw_addr object, enum hotspot_field_id id,
		     mw_addr *out)
{
	return mw_peek(tid, object + layout->fields[id].offset, out, sizeof(*out)) && *out;
}
