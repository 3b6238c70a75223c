// SPDX-License-Identifier: MIT
/* hotspot_test.c: HotSpot's structures in memory of this process's own, laid out as 17 and as 25 have them; then bytes that
 * make no sense. */
#include "base/vector.h"
#include "script/hotspot_parts.h"
#include "symbol/symbolizer.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SHIFT    7
#define SEGMENT  (1u << SHIFT)
#define SEGMENTS 1024
#define BLOB_AT  300 /* segment of the blob that tests use */
#define BLOB_OF  700 /* … segments that it has */
#define CODE     512 /* offset of its code */
#define CODE_END 4096
#define STUB_AT  8
#define STUB_OF  4
#define PAGE     4096u

/* --- objects, as far as they are read ----------------------------------------------------------------------------- */

struct symbol {
	uint32_t hash;
	uint16_t length;
	char body[26];
} __attribute__((aligned(8)));

struct klass {
	uint64_t vtable;
	const struct symbol *name;
};

struct pool {
	uint64_t vtable;
	const struct klass *holder;
	int32_t length;
	uint16_t source;
	uint16_t unused;
	const struct symbol *entries[8];
};

struct const_method {
	const struct pool *constants;
	int32_t size;
	uint16_t flags, code_size, name, number;
	uint8_t unused[4];
	uint8_t code[16];
	uint8_t lines[24];
};

struct method {
	uint64_t vtable;
	const struct const_method *const_method;
};

struct space {
	uint64_t low_boundary, high_boundary, low;
};

struct code_heap {
	struct space memory, segments;
	int32_t shift;
};

struct blob {
	const char *name;
	int32_t size, code, data, frame, complete, relocation, compile_id, deopt, original, pcs, scopes, dependencies,
		metadata;
	const struct method *method;
	uint8_t *immutable, *mutable_data;
};

struct pc_desc {
	int32_t pc, scope, unused[2];
};

static const struct symbol outer_name = {.length = 5, .body = "outer"}, inner_name = {.length = 5, .body = "inner"},
			   class_name = {.length = 13, .body = "shop/cart/Box"},
			   other_name = {.length = 13, .body = "shop/cart/Can"},
			   hidden_name = {.length = 20, .body = "shop/Main$$Lambda+0x"},
			   source_name = {.length = 8, .body = "Box.java"};
static struct klass box = {.name = &class_name};
static const struct klass hidden = {.name = &hidden_name};
static struct pool pool = {
	.holder = &box, .length = 8, .source = 3, .entries = {NULL, &outer_name, &inner_name, &source_name}};
static struct pool hidden_pool = {.holder = &hidden, .length = 8, .entries = {NULL, &outer_name}};

#define METHOD(pool_, name_)                                                                                           \
	{                                                                                                              \
		.constants = (pool_), .size = sizeof(struct const_method) / 8, .flags = 1, .code_size = 16,            \
		.name = (name_), .lines = {                                                                            \
			0 << 3 | 7, /* 0: 7 */                                                                         \
			5 << 3 | 2, /* 5: 9 */                                                                         \
			0xff,       /* … 7 bytes of code, 100 lines on, as 17 packs them */                          \
			7 * 2,                                                                                         \
			200,                                                                                           \
			0,                                                                                             \
		}                                                                                                      \
	}

static struct const_method outer_const = METHOD(&pool, 1), inner_const = METHOD(&pool, 2),
			   hidden_const = METHOD(&hidden_pool, 1);
static const struct method outer = {.const_method = &outer_const}, inner = {.const_method = &inner_const},
			   of_hidden = {.const_method = &hidden_const};

/* --- the heap ----------------------------------------------------------------------------------------------------- */

static uint8_t memory[SEGMENTS * SEGMENT] __attribute__((aligned(64))), segments[SEGMENTS];
static uint8_t immutable[256] __attribute__((aligned(8))), mutable_data[64] __attribute__((aligned(8)));
static struct code_heap heap;
static const struct code_heap *heaps[] = {&heap};
static struct {
	int32_t length, capacity;
	const struct code_heap *const *data;
} heap_array = {1, 1, heaps};
static const void *heap_array_at = &heap_array;
static struct {
	uint64_t vtable, buffer;
} queue;
static const void *queue_at = &queue;
static uint64_t call_stub_return;

struct rig {
	struct mw_modules *modules;
	struct mw_hotspot *hotspot;
	struct blob *blob;
};

static void set_field(struct rig *rig, enum hotspot_field_id id, size_t offset, size_t size)
{
	rig->hotspot->layout.fields[id] = (struct hotspot_field){
		.there = true, .is_signed = size == 4, .size = (uint8_t)size, .offset = (uint32_t)offset};
}

static void set_static(struct rig *rig, enum hotspot_field_id id, const void *at)
{
	rig->hotspot->layout.fields[id] = (struct hotspot_field){.there = true, .size = 8, .address = (uintptr_t)at};
}

#define FIELD(rig, id, type, member) set_field(rig, id, offsetof(type, member), sizeof(((type *)NULL)->member))

static void lay_out(struct rig *rig, unsigned version)
{
	struct hotspot_layout *layout = &rig->hotspot->layout;

	layout->version = version;
	layout->has_lines = 1;
	layout->sizes[HOTSPOT_BLOCK_TYPE] = 16;
	layout->sizes[HOTSPOT_POOL_TYPE] = offsetof(struct pool, entries);
	layout->sizes[HOTSPOT_CONST_TYPE] = offsetof(struct const_method, code);
	layout->sizes[HOTSPOT_PC_TYPE] = sizeof(struct pc_desc);
	set_static(rig, HOTSPOT_HEAPS, &heap_array_at);
	set_static(rig, HOTSPOT_INTERPRETER, &queue_at);
	set_static(rig, HOTSPOT_CALL_STUB_RETURN, &call_stub_return);
	set_field(rig, HOTSPOT_ARRAY_LENGTH, 0, 4);
	set_field(rig, HOTSPOT_ARRAY_DATA, 8, 8);
	set_field(rig, HOTSPOT_QUEUE_BUFFER, 8, 8);
	FIELD(rig, HOTSPOT_SPACE_LOW, struct space, low);
	FIELD(rig, HOTSPOT_SPACE_LOW_BOUNDARY, struct space, low_boundary);
	FIELD(rig, HOTSPOT_SPACE_HIGH_BOUNDARY, struct space, high_boundary);
	FIELD(rig, HOTSPOT_HEAP_MEMORY, struct code_heap, memory);
	FIELD(rig, HOTSPOT_HEAP_SEGMENTS, struct code_heap, segments);
	FIELD(rig, HOTSPOT_HEAP_SEGMENT_SHIFT, struct code_heap, shift);
	set_field(rig, HOTSPOT_BLOCK_USED, 8, 1);
	FIELD(rig, HOTSPOT_BLOB_NAME, struct blob, name);
	FIELD(rig, HOTSPOT_BLOB_SIZE, struct blob, size);
	FIELD(rig, HOTSPOT_BLOB_CODE_OFFSET, struct blob, code);
	FIELD(rig, HOTSPOT_BLOB_DATA_OFFSET, struct blob, data);
	FIELD(rig, HOTSPOT_BLOB_FRAME_SIZE, struct blob, frame);
	FIELD(rig, HOTSPOT_BLOB_FRAME_COMPLETE, struct blob, complete);
	FIELD(rig, HOTSPOT_NMETHOD_METHOD, struct blob, method);
	FIELD(rig, HOTSPOT_NMETHOD_COMPILE_ID, struct blob, compile_id);
	FIELD(rig, HOTSPOT_NMETHOD_SCOPES_OFFSET, struct blob, scopes);
	FIELD(rig, HOTSPOT_NMETHOD_PCS_OFFSET, struct blob, pcs);
	FIELD(rig, HOTSPOT_NMETHOD_ORIGINAL_PC, struct blob, original);
	FIELD(rig, HOTSPOT_NMETHOD_DEOPT_OFFSET, struct blob, deopt);
	if (version >= 25) {
		FIELD(rig, HOTSPOT_NMETHOD_IMMUTABLE, struct blob, immutable);
		FIELD(rig, HOTSPOT_BLOB_MUTABLE, struct blob, mutable_data);
		FIELD(rig, HOTSPOT_BLOB_RELOCATION_SIZE, struct blob, relocation);
	} else {
		FIELD(rig, HOTSPOT_NMETHOD_DEPENDENCIES_OFFSET, struct blob, dependencies);
		FIELD(rig, HOTSPOT_NMETHOD_METADATA, struct blob, metadata);
	}
	FIELD(rig, HOTSPOT_PC_OFFSET, struct pc_desc, pc);
	FIELD(rig, HOTSPOT_PC_SCOPE, struct pc_desc, scope);
	FIELD(rig, HOTSPOT_METHOD_CONST, struct method, const_method);
	FIELD(rig, HOTSPOT_CONST_CONSTANTS, struct const_method, constants);
	FIELD(rig, HOTSPOT_CONST_SIZE, struct const_method, size);
	FIELD(rig, HOTSPOT_CONST_FLAGS, struct const_method, flags);
	FIELD(rig, HOTSPOT_CONST_CODE_SIZE, struct const_method, code_size);
	FIELD(rig, HOTSPOT_CONST_NAME, struct const_method, name);
	FIELD(rig, HOTSPOT_CONST_NUMBER, struct const_method, number);
	FIELD(rig, HOTSPOT_POOL_HOLDER, struct pool, holder);
	FIELD(rig, HOTSPOT_POOL_LENGTH, struct pool, length);
	FIELD(rig, HOTSPOT_POOL_SOURCE, struct pool, source);
	FIELD(rig, HOTSPOT_KLASS_NAME, struct klass, name);
	FIELD(rig, HOTSPOT_SYMBOL_LENGTH, struct symbol, length);
	FIELD(rig, HOTSPOT_SYMBOL_BODY, struct symbol, body);
}

/* A block of segments, with a blob. */
static struct blob *add_blob(unsigned at, unsigned of, const char *name)
{
	uint8_t *block = memory + (size_t)at * SEGMENT;
	struct blob *blob = (struct blob *)(block + 16);

	for (unsigned i = 0; i < of && at + i < SEGMENTS; i++)
		segments[at + i] = (uint8_t)(i < 254 ? i : 254);
	block[8] = 1;
	*blob = (struct blob){
		.name = name, .size = (int32_t)(of * SEGMENT - 16), .code = 128, .data = (int32_t)(of * SEGMENT - 16)};
	return blob;
}

/* A method in which another one is inlined at one place. */
static void add_method(struct rig *rig, unsigned version)
{
	struct blob *blob = add_blob(BLOB_AT, BLOB_OF, "nmethod");
	unsigned one = version >= 20 ? 1 : 0;
	uint8_t *base = version >= 25 ? immutable : (uint8_t *)blob;
	struct pc_desc *pcs = (struct pc_desc *)(base + (version >= 25 ? 0x20 : 0x100));
	uint8_t *scopes = base + 0x80;
	const struct method **metadata =
		(const struct method **)(version >= 25 ? mutable_data + 16 : (uint8_t *)blob + 0xe0);

	rig->blob = blob;
	blob->code = CODE;
	blob->data = CODE_END;
	blob->frame = 6;
	blob->complete = 12;
	blob->compile_id = 1;
	blob->method = &outer;
	blob->immutable = immutable;
	blob->mutable_data = mutable_data;
	blob->relocation = 16;
	blob->metadata = 0xe0;
	blob->deopt = CODE_END - 16;
	blob->original = 16;
	blob->scopes = 0x80;
	blob->pcs = (int32_t)((uint8_t *)pcs - base);
	pcs[0] = (struct pc_desc){.pc = -1};
	pcs[1] = (struct pc_desc){.pc = 40, .scope = 1};
	pcs[2] = (struct pc_desc){.pc = 80, .scope = 8};
	pcs[3] = (struct pc_desc){.pc = INT32_MAX};
	blob->dependencies = blob->pcs + 4 * (int32_t)sizeof(*pcs);
	/* The caller's scope, the method, the bytecode plus 1. */
	memcpy(scopes + 1, (uint8_t[]){(uint8_t)(0 + one), (uint8_t)(1 + one), (uint8_t)(5 + 1 + one)}, 3);
	memcpy(scopes + 8, (uint8_t[]){(uint8_t)(1 + one), (uint8_t)(2 + one), (uint8_t)(0 + one)}, 3);
	metadata[0] = &outer;
	metadata[1] = &inner;
	/* In version 25 the addresses end where the scopes begin. */
	assert_true(version < 25 || blob->pcs + 4 * (int32_t)sizeof(*pcs) <= blob->scopes);
}

static int set_up_version(void **state, unsigned version)
{
	static struct rig rig;

	memset(memory, 0, sizeof(memory));
	memset(segments, 0xff, sizeof(segments));
	assert_null(mw_modules_create(&rig.modules));
	assert_null(mw_hotspot_create(rig.modules, &rig.hotspot));
	assert_null(mw_modules_add_named(rig.modules, MW_NAMED_FRAMES_JAVA, &rig.hotspot->named, &rig.hotspot->module));
	lay_out(&rig, version);
	heap.memory = (struct space){(uintptr_t)memory, (uintptr_t)memory + sizeof(memory), (uintptr_t)memory};
	heap.segments.low = (uintptr_t)segments;
	heap.shift = SHIFT;
	queue.buffer = (uintptr_t)add_blob(0, 4, "Interpreter") + 128;
	call_stub_return = (uintptr_t)add_blob(STUB_AT, STUB_OF, "StubRoutines (1)") + 200;
	add_method(&rig, version);
	assert_true(hotspot_take_heaps(rig.hotspot, getpid()));
	rig.hotspot->has_layout = rig.hotspot->is_there = true;
	*state = &rig;
	return 0;
}

static int set_up_17(void **state)
{
	return set_up_version(state, 17);
}

static int set_up_25(void **state)
{
	return set_up_version(state, 25);
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	mw_hotspot_destroy(rig->hotspot);
	mw_modules_destroy(rig->modules);
	return 0;
}

static mw_addr code_of(const struct rig *rig)
{
	return (uintptr_t)rig->blob + CODE;
}

static const struct mw_symbol_frame *frame(const struct rig *rig, uint32_t number)
{
	const struct mw_symbol_frame *found = mw_named_frames_get(rig->hotspot->named, number);

	assert_non_null(found);
	return found;
}

static unsigned name(const struct rig *rig, mw_addr pc, uint32_t numbers[4])
{
	unsigned count = 99;

	assert_null(mw_hotspot_name_compiled(rig->hotspot, getpid(), pc, numbers, 4, &count));
	assert_true(count <= 4);
	return count;
}

static void assert_frame(const struct rig *rig, uint32_t number, const char *function, const char *file, uint32_t line)
{
	const struct mw_symbol_frame *found = frame(rig, number);

	assert_string_equal(found->function, function);
	assert_true(file ? found->file && strcmp(found->file, file) == 0 : !found->file);
	assert_int_equal(found->line, line);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void blobs_are_found(void **state)
{
	struct rig *rig = *state;
	struct mw_hotspot_range ranges[MW_HOTSPOT_RANGES];
	struct mw_hotspot_code code;
	mw_addr start = (uintptr_t)rig->blob;

	assert_int_equal(mw_hotspot_ranges(rig->hotspot, ranges, MW_HOTSPOT_RANGES), 1);
	assert_true(ranges[0].low == (uintptr_t)memory && ranges[0].high == (uintptr_t)memory + sizeof(memory));
	/* The first and the last instruction, which is more segments on than a byte says, and more than are read at once. */
	rig->blob->data = rig->blob->size;
	for (int last = 0; last < 2; last++) {
		assert_true(mw_hotspot_find(rig->hotspot, getpid(),
					    start + (last ? (uint32_t)rig->blob->size - 1 : CODE), &code));
		assert_int_equal(code.kind, MW_HOTSPOT_COMPILED);
		assert_true(code.start == start && code.end == start + (uint32_t)rig->blob->size);
		assert_true(code.code_start == start + CODE && code.code_end == code.end);
		assert_int_equal(code.frame_size, 48);
		assert_int_equal(code.frame_complete, 12);
	}
	assert_false(mw_hotspot_find(rig->hotspot, getpid(), start + CODE - 1, &code));
	assert_false(mw_hotspot_find(rig->hotspot, getpid(), (uintptr_t)memory - 1, &code));
	assert_false(mw_hotspot_find(rig->hotspot, getpid(), (uintptr_t)memory + sizeof(memory), &code));
	/* Free segments. */
	assert_false(mw_hotspot_find(rig->hotspot, getpid(), (uintptr_t)memory + 100 * SEGMENT, &code));
	/* A block that is free again. */
	((uint8_t *)rig->blob)[-8] = 0;
	assert_false(mw_hotspot_find(rig->hotspot, getpid(), start + CODE, &code));
}

static void other_code_has_its_kind(void **state)
{
	struct rig *rig = *state;
	struct mw_hotspot_code code;
	struct blob *stub = (struct blob *)(memory + (size_t)STUB_AT * SEGMENT + 16);
	uint32_t number;

	assert_true(mw_hotspot_find(rig->hotspot, getpid(), queue.buffer + 50, &code));
	assert_int_equal(code.kind, MW_HOTSPOT_INTERPRETER);
	for (unsigned back = 0; back < 2; back++) {
		assert_true(mw_hotspot_find(rig->hotspot, getpid(), call_stub_return - back, &code));
		assert_int_equal(code.kind, MW_HOTSPOT_ENTRY);
		assert_true(code.code_start < call_stub_return && code.code_end == call_stub_return + 1);
	}
	assert_true(mw_hotspot_find(rig->hotspot, getpid(), call_stub_return + 1, &code));
	assert_int_equal(code.kind, MW_HOTSPOT_OTHER);
	stub->frame = 3;
	assert_true(mw_hotspot_find(rig->hotspot, getpid(), call_stub_return + 1, &code));
	assert_int_equal(code.kind, MW_HOTSPOT_STUB);
	assert_int_equal(code.frame_size, 24);
	assert_null(mw_hotspot_name_stub(rig->hotspot, getpid(), call_stub_return + 1, &number));
	assert_frame(rig, number, "~StubRoutines (1)", NULL, 0);
	assert_null(mw_hotspot_name_stub(rig->hotspot, getpid(), call_stub_return, &number));
	assert_frame(rig, number, "~StubRoutines::call_stub", NULL, 0);
	assert_null(mw_hotspot_name_stub(rig->hotspot, getpid(), (uintptr_t)memory + 100 * SEGMENT, &number));
	assert_int_equal(number, 0);
}

static void inlined_methods_are_named(void **state)
{
	struct rig *rig = *state;
	uint32_t numbers[4];

	assert_int_equal(name(rig, code_of(rig) + 40, numbers), 1);
	assert_frame(rig, numbers[0], "shop.cart.Box.outer", "Box.java", 9);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(name(rig, code_of(rig) + 80, numbers), 2);
		assert_frame(rig, numbers[0], "shop.cart.Box.inner", "Box.java", 7);
		assert_frame(rig, numbers[1], "shop.cart.Box.outer", "Box.java", 9);
	}
	/* Where nothing is known of the address: the method alone. */
	assert_int_equal(name(rig, code_of(rig) + 81, numbers), 1);
	assert_frame(rig, numbers[0], "shop.cart.Box.outer", "Box.java", 0);
	assert_int_equal(name(rig, call_stub_return, numbers), 0);
}

/* An address is another method's when what was there is gone. */
static void replaced_code_is_named_anew(void **state)
{
	struct rig *rig = *state;
	uint32_t numbers[4];

	assert_int_equal(name(rig, code_of(rig) + 81, numbers), 1);
	rig->blob->method = &inner;
	assert_int_equal(name(rig, code_of(rig) + 81, numbers), 1);
	assert_frame(rig, numbers[0], "shop.cart.Box.inner", "Box.java", 0);
	rig->blob->name = "AdapterBlob";
	assert_int_equal(name(rig, code_of(rig) + 81, numbers), 0);
}

static void a_frame_that_is_to_be_interpreted_keeps_its_address(void **state)
{
	struct rig *rig = *state;
	mw_addr deopt = (uintptr_t)rig->blob + (uint32_t)rig->blob->deopt;
	struct mw_hotspot_code code;

	assert_true(mw_hotspot_find(rig->hotspot, getpid(), deopt, &code));
	assert_int_equal(code.original_at, 16);
	assert_true(mw_hotspot_find(rig->hotspot, getpid(), deopt - 1, &code));
	assert_int_equal(code.original_at, -1);
}

static void interpreted_methods_are_named(void **state)
{
	struct rig *rig = *state;
	uint32_t number;

	assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), (uintptr_t)&outer,
						(uintptr_t)outer_const.code + 13, &number));
	/* 12 is 109, in the encoding of 17. */
	if (rig->hotspot->layout.version == 17)
		assert_frame(rig, number, "shop.cart.Box.outer", "Box.java", 109);
	/* A native method has no instruction. */
	assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), (uintptr_t)&outer, 0, &number));
	assert_frame(rig, number, "shop.cart.Box.outer", "Box.java", 0);
	assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), (uintptr_t)&of_hidden,
						(uintptr_t)hidden_const.code, &number));
	assert_frame(rig, number, "shop.Main$$Lambda.outer", NULL, 7);
	/* What is no method. */
	for (mw_addr addr = 0; addr < 64; addr += 8) {
		assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), addr, 0, &number));
		assert_frame(rig, number, "(Java code that is gone)", NULL, 0);
	}
	assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), (uintptr_t)&outer + 1, 0, &number));
	assert_frame(rig, number, "(Java code that is gone)", NULL, 0);
}

/* A class stands where another of its shape has been: all but its name is the same. */
static void a_class_in_another_s_place_has_its_own_name(void **state)
{
	struct rig *rig = *state;
	mw_addr at = (uintptr_t)outer_const.code;
	uint32_t number;

	assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), (uintptr_t)&outer, at, &number));
	assert_frame(rig, number, "shop.cart.Box.outer", "Box.java", 7);
	assert_false(mw_hotspot_has_changed(rig->hotspot, getpid()));
	box.name = &other_name;
	assert_true(mw_hotspot_has_changed(rig->hotspot, getpid()));
	assert_null(mw_hotspot_name_interpreted(rig->hotspot, getpid(), (uintptr_t)&outer, at, &number));
	assert_frame(rig, number, "shop.cart.Can.outer", "Box.java", 7);
	assert_false(mw_hotspot_has_changed(rig->hotspot, getpid()));
	box.name = &class_name;
}

static void compiled_code_in_other_s_place_is_noticed(void **state)
{
	struct rig *rig = *state;
	uint32_t numbers[4];

	(void)name(rig, code_of(rig) + 80, numbers);
	assert_false(mw_hotspot_has_changed(rig->hotspot, getpid()));
	rig->blob->compile_id++;
	assert_true(mw_hotspot_has_changed(rig->hotspot, getpid()));
	assert_false(mw_hotspot_has_changed(rig->hotspot, getpid()));
}

/* Scopes that are their own callers, and the like, end. */
static void circles_end(void **state)
{
	struct rig *rig = *state;
	uint8_t *scopes = (rig->hotspot->layout.version >= 25 ? immutable : (uint8_t *)rig->blob) + 0x80;
	uint32_t numbers[4];

	scopes[8] = scopes[1] = (uint8_t)(8 + (rig->hotspot->layout.version >= 20 ? 1 : 0));
	assert_int_equal(name(rig, code_of(rig) + 80, numbers), 1);
	assert_int_equal(name(rig, code_of(rig) + 40, numbers), 1);
	for (unsigned i = 0; i < SEGMENTS; i++)
		segments[i] = 200;
	assert_int_equal(name(rig, code_of(rig) + 80, numbers), 0);
}

static void numbers_are_unpacked(void **state)
{
	static const uint8_t old[] = {191, 192, 0, 255, 255, 255, 255, 255, 200},
			     new[] = {1, 192, 1, 193, 192, 1, 0, 1};
	struct hotspot_packed packed = {old, old + sizeof(old), 0};
	uint32_t value;

	(void)state;
	assert_true(hotspot_unpack(&packed, &value));
	assert_int_equal(value, 191);
	assert_true(hotspot_unpack(&packed, &value));
	assert_int_equal(value, 192);
	/* No more than five bytes. */
	assert_true(hotspot_unpack(&packed, &value));
	assert_int_equal(packed.at - old, 8);
	/* It ends amid one. */
	assert_false(hotspot_unpack(&packed, &value));
	packed = (struct hotspot_packed){new, new + sizeof(new), 1};
	assert_true(hotspot_unpack(&packed, &value));
	assert_int_equal(value, 0);
	assert_true(hotspot_unpack(&packed, &value));
	assert_int_equal(value, 191);
	assert_true(hotspot_unpack(&packed, &value));
	assert_int_equal(value, 192 + (191 << 6));
	/* No number has a 0 since 20. */
	assert_false(hotspot_unpack(&packed, &value));
}

static void lines_are_found_in_any_order(void **state)
{
	/* 4: 10, 20: 10 - 6, 8: 4 + 20, then nothing more, whatever follows. */
	static const uint8_t pairs[] = {0xff, 8, 20, 0xff, 32, 11, 0xff, 23, 40, 0, 9 << 3 | 1};
	struct hotspot_packed table = {pairs, pairs + sizeof(pairs), 0};

	(void)state;
	assert_int_equal(hotspot_line(table, 3), 0);
	assert_int_equal(hotspot_line(table, 4), 10);
	assert_int_equal(hotspot_line(table, 7), 10);
	assert_int_equal(hotspot_line(table, 8), 24);
	assert_int_equal(hotspot_line(table, 19), 24);
	assert_int_equal(hotspot_line(table, 1000), 4);
	table.end = table.at;
	assert_int_equal(hotspot_line(table, 1000), 0);
}

struct struct_entry {
	const char *type, *field, *kind;
	int32_t is_static;
	uint64_t offset;
	const void *address;
};

/* What follows the end of a table is no part of it; and without all the fields there is no layout. */
static void tables_end(void **state)
{
	static const int32_t version = 25, wrong = 17;
	static const struct struct_entry entries[] =
		{
			{"CodeBlob", "_size", "int", 0, 24, NULL},
			{"CodeBlob", "_frame_complete_offset", "int16_t", 0, 54, NULL},
			{NULL, NULL, NULL, 0, 0, NULL},
			{"Abstract_VM_Version", "_vm_major_version", "int", 1, 0, &wrong},
			{"CodeBlob", "_frame_size", "int", 0, 44, NULL},
		},
					 good[] = {
						 {"Abstract_VM_Version", "_vm_major_version", "int", 1, 0, &version},
						 {NULL, NULL, NULL, 0, 0, NULL},
					 };
	uint64_t at = (uintptr_t)entries, strides = sizeof(entries[0]), words[7] = {0, 8, 16, 24, 32, 40, 16};
	struct hotspot_file file;
	struct hotspot_layout layout;
	uint8_t object[64] = {[24] = 0xff, [25] = 0xff, [26] = 0xff, [27] = 0xff, [54] = 0xfe, [55] = 0xff};

	(void)state;
	for (unsigned i = 0; i < HOTSPOT_EXPORTS; i++)
		file.exports[i] = (uintptr_t)&words[0];
	file.exports[HOTSPOT_STRUCTS] = (uintptr_t)&at;
	file.exports[HOTSPOT_STRUCT_STRIDE] = (uintptr_t)&strides;
	for (unsigned i = 0; i < 6; i++)
		file.exports[HOTSPOT_STRUCT_TYPE + i] = (uintptr_t)&words[i];
	assert_false(hotspot_read_layout(&file, 0, getpid(), &layout));
	assert_int_equal(layout.version, 0);
	assert_true(layout.fields[HOTSPOT_BLOB_SIZE].there && !layout.fields[HOTSPOT_BLOB_FRAME_SIZE].there);
	assert_true(hotspot_number(&layout, object, sizeof(object), HOTSPOT_BLOB_SIZE) == -1);
	assert_true(hotspot_number(&layout, object, sizeof(object), HOTSPOT_BLOB_FRAME_COMPLETE) == -2);
	assert_true(hotspot_number(&layout, object, 55, HOTSPOT_BLOB_FRAME_COMPLETE) == 0);
	at = (uintptr_t)good;
	assert_false(hotspot_read_layout(&file, 0, getpid(), &layout));
	assert_int_equal(layout.version, 25);
}

/* Any bytes where structures are: all reads end, and stay in bounds. */
static void any_bytes_are_survived(void **state)
{
	struct rig *rig = *state;
	static uint8_t whole[sizeof(memory)];
	uint8_t map[sizeof(segments)];
	struct blob *blob = rig->blob;
	struct mw_hotspot_code code;
	unsigned seed = 1;

	memcpy(whole, memory, sizeof(memory));
	memcpy(map, segments, sizeof(segments));
	for (unsigned round = 0; round < 3000; round++) {
		uint32_t numbers[4];

		for (unsigned i = 0; i < 4; i++) {
			((uint8_t *)blob)[(unsigned)rand_r(&seed) % 0x150] = (uint8_t)rand_r(&seed);
			immutable[(unsigned)rand_r(&seed) % sizeof(immutable)] = (uint8_t)rand_r(&seed);
			segments[(unsigned)rand_r(&seed) % SEGMENTS] = (uint8_t)rand_r(&seed);
		}
		blob->name = "nmethod";
		(void)name(rig, code_of(rig) + 40, numbers);
		(void)name(rig, code_of(rig) + 80, numbers);
		(void)mw_hotspot_find(rig->hotspot, getpid(), code_of(rig) + 40, &code);
		if (round % 8 == 0) {
			memcpy(memory, whole, sizeof(memory));
			memcpy(segments, map, sizeof(segments));
		}
	}
}

/* What overlaps is said once. */
static void spaces_are_told(void **state)
{
	struct rig *rig = *state;
	uint64_t *java_heap = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t region[2] = {(uintptr_t)java_heap, 8 * PAGE / 8}, thread[2], *threads[] = {thread, NULL, thread};
	const uint64_t *region_at = region;
	struct {
		uint64_t *const *items;
		uint32_t length;
	} list = {threads, 3}, *list_at = &list;
	struct mw_script_spaces spaces = {0};
	struct mw_maps maps = {0};
	size_t code = 0, heap_at = 0, stacks = 0;

	assert_true(java_heap != MAP_FAILED);
	assert_null(mw_maps_read(getpid(), &maps));
	thread[0] = (uintptr_t)java_heap + 8 * PAGE; /* a stack in the heap is invalid */
	thread[1] = PAGE;
	set_static(rig, HOTSPOT_JAVA_HEAP, &region_at);
	set_field(rig, HOTSPOT_JAVA_HEAP_RESERVED, 0, 8);
	set_field(rig, HOTSPOT_REGION_START, 0, 8);
	set_field(rig, HOTSPOT_REGION_WORDS, 8, 8);
	set_static(rig, HOTSPOT_THREADS, &list_at);
	set_field(rig, HOTSPOT_THREADS_ITEMS, 0, 8);
	set_field(rig, HOTSPOT_THREADS_LENGTH, 8, 4);
	set_field(rig, HOTSPOT_THREAD_STACK_BASE, 0, 8);
	set_field(rig, HOTSPOT_THREAD_STACK_SIZE, 8, 8);
	for (int round = 0; round < 2; round++) {
		assert_null(mw_hotspot_spaces(rig->hotspot, getpid(), &maps, &spaces));
		code = heap_at = stacks = 0;
		MW_EACH(space, spaces.items, spaces.count) {
			assert_true(space->low < space->high);
			MW_EACH(other, spaces.items, spaces.count)
				assert_true(other == space || other->high <= space->low || space->high <= other->low);
			code += strcmp(space->name, "code cache") == 0 && space->low == (uintptr_t)memory;
			heap_at += strcmp(space->name, "Java heap") == 0 && space->low == (uintptr_t)java_heap;
			stacks += strncmp(space->name, "stack of", 8) == 0;
		}
		assert_true(code == 1 && heap_at == 1 && stacks == (size_t)round);
		mw_script_spaces_deinit(&spaces);
		thread[0] = (uintptr_t)java_heap - PAGE;
	}
	mw_maps_deinit(&maps);
	assert_int_equal(munmap(java_heap, 8 * PAGE), 0);
}

#define OF_BOTH(test)                                                                                                  \
	cmocka_unit_test_setup_teardown(test, set_up_17, tear_down),                                                   \
		cmocka_unit_test_setup_teardown(test, set_up_25, tear_down)

UNIT_GROUP(hotspot)
{
	const struct CMUnitTest tests[] = {
		OF_BOTH(blobs_are_found),
		OF_BOTH(other_code_has_its_kind),
		OF_BOTH(inlined_methods_are_named),
		OF_BOTH(replaced_code_is_named_anew),
		OF_BOTH(a_frame_that_is_to_be_interpreted_keeps_its_address),
		OF_BOTH(interpreted_methods_are_named),
		OF_BOTH(a_class_in_another_s_place_has_its_own_name),
		OF_BOTH(compiled_code_in_other_s_place_is_noticed),
		OF_BOTH(circles_end),
		OF_BOTH(any_bytes_are_survived),
		OF_BOTH(spaces_are_told),
		cmocka_unit_test(tables_end),
		cmocka_unit_test(numbers_are_unpacked),
		cmocka_unit_test(lines_are_found_in_any_order),
	};

	return cmocka_run_group_tests_name("hotspot", tests, NULL, NULL);
}
