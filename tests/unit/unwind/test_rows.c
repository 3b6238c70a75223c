// SPDX-License-Identifier: MIT
/* test_rows.c: frame descriptions made by hand, and spoilt ones, compiled to rows. */
#include "files.h"
#include "rows_image.h"
#include "rows_programs.h"

#include "unit.h"
#include "unwind/rows.h"

#include <dwarf.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CODE  IMAGE_CODE
#define NONE  mw_row(MW_ROW_NONE, 0, MW_ROW_FP_SAME, 0)
#define SLOW  mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0)
#define SP(n) mw_row(MW_ROW_SP, n, MW_ROW_FP_SAME, 0)

struct compiled {
	struct mw_row_dictionary dictionary;
	struct mw_rows rows;
};

/* What always holds. */
static void check(const struct compiled *compiled)
{
	const struct mw_rows *rows = &compiled->rows;

	for (size_t i = 0; i < rows->count; i++) {
		assert_true(rows->items[i].row < compiled->dictionary.index.count);
		assert_true(i == 0 || rows->items[i].pc > rows->items[i - 1].pc);
		assert_true(i == 0 || rows->items[i].row != rows->items[i - 1].row);
	}
	if (rows->count)
		assert_int_equal(compiled->dictionary.rows[rows->items[rows->count - 1].row], NONE);
}

static struct compiled compile_elf(struct mw_elf *elf)
{
	struct compiled compiled = {0};

	assert_null(
		mw_rows_compile(elf, MW_ROWS_OF_ALL, mw_arch_find(EM_X86_64), &compiled.dictionary, &compiled.rows));
	check(&compiled);
	return compiled;
}

static struct compiled compile(struct image *image)
{
	struct mw_elf *elf = image_open(image);
	struct compiled compiled = compile_elf(elf);

	mw_elf_unref(elf);
	return compiled;
}

static uint64_t at(const struct compiled *compiled, uint64_t vaddr)
{
	return mw_rows_find(&compiled->rows, &compiled->dictionary, vaddr);
}

static void drop(struct compiled *compiled)
{
	mw_rows_deinit(&compiled->rows);
	mw_row_dictionary_deinit(&compiled->dictionary);
}

/* An image with usual CIEs in both sections. */
static struct image *usual(void)
{
	static struct image image;

	image_init(&image);
	image_cie(&image.eh, "zR", IMAGE_USUAL);
	image_cie(&image.debug, "", IMAGE_USUAL);
	return &image;
}

static void says_what_programs_do(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *program = &programs[i];
		uint64_t row = mw_row(program->kind, program->n, program->fp, program->fp_at);

		for (unsigned kind = 0; kind < 3; kind++) { /* .eh_frame, .debug_frame of either width */
			struct image *image = usual();
			struct image_section *section = kind ? &image->debug : &image->eh;
			struct compiled compiled;

			section->wide = kind == 2;
			if (section->wide)
				image_cie(section, "", IMAGE_USUAL);
			image_describe(section, CODE, 0x40, program->bytes, program->size);
			compiled = compile(image);
			if (at(&compiled, CODE + 0x10) != row)
				fail_msg("%s (%u): %#llx", program->what, kind,
					 (unsigned long long)at(&compiled, CODE + 0x10));
			assert_int_equal(compiled.rows.functions, 1);
			assert_int_equal(at(&compiled, CODE - 1), NONE);
			assert_int_equal(at(&compiled, CODE + 0x40), NONE);
			drop(&compiled);
		}
	}
}

static void sets_locations(void **state)
{
	struct image *image = usual();
	struct compiled compiled;
	uint8_t program[32] = {DW_CFA_set_loc};
	uint64_t to = CODE + 0x20;

	(void)state;
	memcpy(program + 1, &to, sizeof(to));
	program[9] = DW_CFA_def_cfa_offset;
	program[10] = 16;
	image_describe(&image->debug, CODE, 0x40, program, 11);
	to = CODE + 0x7f; /* back */
	memcpy(program + 1, &to, sizeof(to));
	image_describe(&image->debug, CODE + 0x80, 0x40, program, 11);
	compiled = compile(image);
	assert_int_equal(at(&compiled, CODE + 0x1f), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x20), SP(16));
	assert_int_equal(at(&compiled, CODE + 0x80), SLOW);
	assert_int_equal(compiled.rows.functions, 2);
	assert_int_equal(compiled.rows.slow, 1);
	drop(&compiled);
}

/* In any order, with gaps, and one beside the other. */
static void sorts_and_merges(void **state)
{
	struct image *image = usual();
	struct compiled compiled;

	(void)state;
	image_describe(&image->eh, CODE + 0x100, 0x40, IMAGE_PROGRAM(STEP, DW_CFA_def_cfa_offset, 16));
	image_put(&image->eh, 0, 4); /* an end in the middle */
	image_put(&image->eh, 0, 4);
	image_describe(&image->eh, CODE + 0x20, 0x20, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE, 0x20, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE + 0x200, 0, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE - 0x100, 0x10, IMAGE_PROGRAM(DW_CFA_nop)); /* no code there */
	image_describe(&image->eh, CODE + IMAGE_CODE_SIZE - 8, 9, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE + UINT32_MAX, 1, IMAGE_PROGRAM(DW_CFA_nop)); /* too far from the others */
	compiled = compile(image);
	assert_int_equal(compiled.rows.base, CODE);
	assert_int_equal(compiled.rows.functions, 3);
	assert_int_equal(compiled.rows.slow, 0);
	assert_int_equal(compiled.rows.count, 5);
	assert_int_equal(at(&compiled, CODE + 0x3f), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x40), NONE);
	assert_int_equal(at(&compiled, CODE + 0x10f), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x110), SP(16));
	assert_int_equal(at(&compiled, CODE + 0x140), NONE);
	assert_int_equal(at(&compiled, CODE + UINT32_MAX), NONE);
	assert_int_equal(at(&compiled, UINT64_MAX), NONE);
	drop(&compiled);
}

/* Where two descriptions are of the same code, neither is believed, unless they are the same. */
static void overlaps_are_slow(void **state)
{
	struct image *image = usual();
	struct compiled compiled;

	(void)state;
	image_describe(&image->eh, CODE, 0x40, IMAGE_PROGRAM(STEP, DW_CFA_def_cfa_offset, 16));
	image_describe(&image->eh, CODE + 0x20, 0x40, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE + 0x80, 0x40, IMAGE_PROGRAM(DW_CFA_def_cfa_offset, 16));
	image_describe(&image->eh, CODE + 0x80, 0x40, IMAGE_PROGRAM(DW_CFA_def_cfa_offset, 16));
	image_describe(&image->eh, CODE + 0x100, 0x40, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE + 0x108, 8, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE + 0x130, 0x20, IMAGE_PROGRAM(DW_CFA_nop));
	compiled = compile(image);
	assert_int_equal(at(&compiled, CODE), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x10), SP(16));
	assert_int_equal(at(&compiled, CODE + 0x20), SLOW);
	assert_int_equal(at(&compiled, CODE + 0x5f), SLOW);
	assert_int_equal(at(&compiled, CODE + 0x60), NONE);
	assert_int_equal(at(&compiled, CODE + 0x80), SP(16));
	assert_int_equal(at(&compiled, CODE + 0x107), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x108), SLOW);
	assert_int_equal(at(&compiled, CODE + 0x14f), SLOW);
	assert_int_equal(at(&compiled, CODE + 0x150), NONE);
	drop(&compiled);
}

/* .debug_frame says what .eh_frame does not, and nothing else. */
static void debug_frame_fills_gaps(void **state)
{
	struct image *image = usual();
	struct compiled compiled;

	(void)state;
	image_describe(&image->eh, CODE + 0x100, 0x40, IMAGE_PROGRAM(DW_CFA_nop));
	image_describe(&image->eh, CODE + 0x180, 0x40, IMAGE_PROGRAM(0x3f));
	image_describe(&image->debug, 0, 0x1000000, IMAGE_PROGRAM(DW_CFA_nop)); /* of code that is gone */
	image_describe(&image->debug, CODE, 0x20, IMAGE_PROGRAM(DW_CFA_def_cfa_offset, 24));
	image_describe(&image->debug, CODE + 0x100, 0x40, IMAGE_PROGRAM(DW_CFA_def_cfa_offset, 24));
	image_describe(&image->debug, CODE + 0x130, 0x60, IMAGE_PROGRAM(DW_CFA_def_cfa_offset, 32));
	image_describe(&image->debug, CODE + 0x200, 0x20, IMAGE_PROGRAM(STEP, DW_CFA_def_cfa_offset, 24));
	compiled = compile(image);
	assert_int_equal(compiled.rows.base, CODE);
	assert_int_equal(compiled.rows.functions, 4); /* what is known at its first and last byte isn't read again */
	assert_int_equal(at(&compiled, CODE), SP(24));
	assert_int_equal(at(&compiled, CODE + 0x20), NONE);
	assert_int_equal(at(&compiled, CODE + 0x100), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x13f), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x140), NONE);
	assert_int_equal(at(&compiled, CODE + 0x180), SLOW);
	assert_int_equal(at(&compiled, CODE + 0x1c0), NONE);
	assert_int_equal(at(&compiled, CODE + 0x200), SP(8));
	assert_int_equal(at(&compiled, CODE + 0x210), SP(24));
	assert_int_equal(at(&compiled, CODE + 0x220), NONE);
	drop(&compiled);
}

/* An image of which .debug_frame alone says what there is at CODE: much alike, so that it becomes less. */
static struct image *described_by_debug_frame(void)
{
	struct image *image = usual();

	for (unsigned i = 0; i < 32; i++)
		image_describe(&image->debug, CODE + 0x40 * i, 0x40, IMAGE_PROGRAM(DW_CFA_def_cfa_offset, 24));
	return image;
}

static void reads_compressed_sections(void **state)
{
	static const uint32_t types[] = {ELFCOMPRESS_ZLIB, IMAGE_ZSTD};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct image *image = described_by_debug_frame();
		size_t size = image->debug.size;
		struct compiled compiled;

		image_compress(image, types[i]);
		assert_true(image->debug.size < size);
		compiled = compile(image);
		assert_int_equal(compiled.rows.functions, 32);
		assert_int_equal(at(&compiled, CODE + 0x40 * 31), SP(24));
		assert_int_equal(at(&compiled, CODE + 0x40 * 32), NONE);
		drop(&compiled);
	}
}

/* A compressed section whose header or bytes, `size` of them at `offset`, are others. */
static void expect_unread(uint32_t type, size_t offset, const void *bytes, size_t size)
{
	struct image *image = described_by_debug_frame();
	struct compiled compiled;

	image_compress(image, type);
	memcpy(image->debug.bytes + offset, bytes, size);
	compiled = compile(image);
	assert_int_equal(compiled.rows.count, 0);
	drop(&compiled);
}

static void refuses_bad_compression(void **state)
{
	const uint64_t huge = UINT64_C(1) << 40, none = 0;
	const uint32_t unknown = 99;

	(void)state;
	for (uint32_t type = ELFCOMPRESS_ZLIB; type <= IMAGE_ZSTD; type++) {
		struct image *image = described_by_debug_frame();
		uint64_t more = image->debug.size + 1, less = image->debug.size - 1;
		struct compiled compiled;

		expect_unread(type, sizeof(Elf64_Chdr), "damaged", 7);
		expect_unread(type, offsetof(Elf64_Chdr, ch_size), &more, sizeof(more));
		expect_unread(type, offsetof(Elf64_Chdr, ch_size), &less, sizeof(less));
		expect_unread(type, offsetof(Elf64_Chdr, ch_size), &huge, sizeof(huge));
		expect_unread(type, offsetof(Elf64_Chdr, ch_size), &none, sizeof(none));
		expect_unread(type, offsetof(Elf64_Chdr, ch_type), &unknown, sizeof(unknown));
		image_compress(image, type);
		image->debug.size = sizeof(Elf64_Chdr) - 1;
		compiled = compile(image);
		assert_int_equal(compiled.rows.count, 0);
		drop(&compiled);
	}
}

/* Go's runtime changes stacks inside functions that are described as if it did not. */
static void ignores_go(void **state)
{
	struct image *image = described_by_debug_frame();
	struct compiled compiled;

	(void)state;
	image_describe(&image->eh, CODE + 0x1000, 0x40, IMAGE_PROGRAM(DW_CFA_nop));
	image->go = true;
	compiled = compile(image);
	assert_int_equal(compiled.rows.functions, 1);
	assert_int_equal(at(&compiled, CODE), NONE);
	assert_int_equal(at(&compiled, CODE + 0x1000), SP(8)); /* of C */
	drop(&compiled);
}

static uint64_t row_with(const char *letters, const uint8_t *program, size_t size, uint16_t type)
{
	struct image *image = usual();
	struct compiled compiled;
	uint64_t row;

	image->type = type;
	image_cie(&image->eh, letters, program, size);
	image_describe(&image->eh, CODE, 0x40, IMAGE_PROGRAM(DW_CFA_nop));
	compiled = compile(image);
	row = at(&compiled, CODE);
	drop(&compiled);
	return row;
}

static void reads_what_is_shared(void **state)
{
	uint8_t program[200] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset + 16, 1};

	(void)state;
	assert_int_equal(row_with("zR", IMAGE_USUAL, ET_DYN), SP(8));
	assert_int_equal(row_with("zRS", IMAGE_USUAL, ET_DYN), mw_row(MW_ROW_SIGNAL, 0, MW_ROW_FP_SAME, 0));
	assert_int_equal(row_with("zRB", IMAGE_USUAL, ET_DYN), SP(8));
	assert_int_equal(row_with("zRQ", IMAGE_USUAL, ET_DYN), SLOW);
	assert_int_equal(row_with("", IMAGE_USUAL, ET_EXEC), SP(8));
	assert_int_equal(row_with("", IMAGE_USUAL, ET_DYN), NONE); /* relocated when it is loaded */
	assert_int_equal(row_with("zRxxxxxxxxxxxxxxxxxx", IMAGE_USUAL, ET_DYN), NONE);
	assert_int_equal(row_with("zR", IMAGE_PROGRAM(DW_CFA_def_cfa, 7, 8), ET_DYN),
			 SLOW); /* where is it to return? */
	assert_int_equal(row_with("zR", IMAGE_PROGRAM(DW_CFA_offset + 16, 1), ET_DYN), SLOW);
	assert_int_equal(row_with("zR", IMAGE_PROGRAM(DW_CFA_def_cfa, 7, 8, STEP, DW_CFA_offset + 16, 1), ET_DYN),
			 SLOW);
	assert_int_equal(row_with("zR", IMAGE_PROGRAM(DW_CFA_def_cfa, 7, 8, DW_CFA_restore + 16), ET_DYN), SLOW);
	assert_int_equal(row_with("zR", program, 100, ET_DYN), SP(8));
	assert_int_equal(row_with("zR", program, sizeof(program), ET_DYN), SLOW); /* many could have it run in turn */
}

static void keeps_each_row_once(void **state)
{
	size_t size;
	uint8_t *bytes = file_read(SAMPLE, &size);
	struct mw_elf *elf = NULL;
	struct compiled once;
	struct mw_rows again;
	uint32_t count;

	(void)state;
	assert_null(mw_elf_open_memory(bytes, size, "sample", &elf));
	once = compile_elf(elf);
	count = once.dictionary.index.count;
	assert_true(count > 5);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(once.dictionary.rows[i], once.dictionary.rows[j]);
	assert_null(mw_rows_compile(elf, MW_ROWS_OF_ALL, mw_arch_find(EM_X86_64), &once.dictionary, &again));
	assert_int_equal(once.dictionary.index.count, count);
	assert_int_equal(again.count, once.rows.count);
	assert_memory_equal(again.items, once.rows.items, again.count * sizeof(*again.items));
	mw_rows_deinit(&again);
	drop(&once);
	drop(&once);
	mw_elf_unref(elf);
	free(bytes);
}

/* Without section headers the search table tells where descriptions are. */
static void needs_no_sections(void **state)
{
	size_t size;
	uint8_t *bytes = file_read(SAMPLE, &size);
	struct mw_elf *with = NULL, *without = NULL;
	struct compiled expected, compiled;

	(void)state;
	assert_null(mw_elf_open_memory(bytes, size, "with", &with));
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	assert_null(mw_elf_open_memory(bytes, size, "without", &without));
	expected = compile_elf(with);
	compiled = compile_elf(without);
	assert_true(expected.rows.count > 10);
	assert_int_equal(compiled.rows.count, expected.rows.count);
	assert_int_equal(compiled.rows.base, expected.rows.base);
	assert_memory_equal(compiled.rows.items, expected.rows.items,
			    expected.rows.count * sizeof(*expected.rows.items));
	drop(&expected);
	drop(&compiled);
	mw_elf_unref(with);
	mw_elf_unref(without);
	free(bytes);
}

static void nothing_to_compile(void **state)
{
	static struct image image;
	struct compiled compiled;

	(void)state;
	image_init(&image);
	compiled = compile(&image);
	assert_int_equal(compiled.rows.count, 0);
	assert_int_equal(at(&compiled, CODE), NONE);
	drop(&compiled);
}

static uint64_t random_state = 42;

static uint32_t random_below(size_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % limit);
}

/* Spoil a few bytes of [first, last), compile, put them back. */
static void spoil(uint8_t *bytes, size_t size, size_t first, size_t last, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		size_t places[4], count = 1 + random_below(4);
		uint8_t before[4];
		struct mw_elf *elf = NULL;
		struct compiled compiled;

		for (size_t j = 0; j < count; j++) {
			static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
			unsigned value = random_below(10);

			places[j] = first + random_below(last - first);
			before[j] = bytes[places[j]];
			bytes[places[j]] = value < 5 ? values[value] : (uint8_t)random_below(256);
		}
		assert_null(mw_elf_open_memory(bytes, size, "spoilt", &elf));
		compiled = compile_elf(elf);
		drop(&compiled);
		mw_elf_unref(elf);
		while (count--)
			bytes[places[count]] = before[count];
	}
}

static void survives_lies(void **state)
{
	struct image *image = usual();
	size_t size;
	uint8_t *bytes = file_read(SAMPLE, &size);
	struct mw_elf *elf = NULL;
	struct mw_elf_section section;
	uint64_t table;

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		image_describe(&image->eh, CODE + 0x80 * i, 0x40, programs[i].bytes, programs[i].size);
		image_describe(&image->debug, CODE + 0x80 * i + 0x20, 0x40, programs[i].bytes, programs[i].size);
	}
	elf = image_open(image);
	mw_elf_unref(elf);
	spoil(image->bytes, IMAGE_SIZE, IMAGE_EH, IMAGE_EH + image->eh.size, 5000);
	spoil(image->bytes, IMAGE_SIZE, IMAGE_DEBUG, IMAGE_DEBUG + image->debug.size, 5000);

	assert_null(mw_elf_open_memory(bytes, size, "sample", &elf));
	section = mw_elf_section(elf, ".eh_frame");
	table = elf->eh_frame_hdr;
	assert_true(elf->eh_frame_hdr_size > 0);
	mw_elf_unref(elf);
	assert_true(section.present && section.offset + section.size <= size && table < section.vaddr);
	spoil(bytes, size, section.offset, section.offset + section.size, 5000);
	((Elf64_Ehdr *)bytes)->e_shnum = 0; /* the search table stands before .eh_frame, in the same segment */
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	spoil(bytes, size, section.offset - (section.vaddr - table), section.offset + section.size, 5000);
	free(bytes);
}

UNIT_GROUP(rows)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_programs_do),
		cmocka_unit_test(sets_locations),
		cmocka_unit_test(sorts_and_merges),
		cmocka_unit_test(overlaps_are_slow),
		cmocka_unit_test(debug_frame_fills_gaps),
		cmocka_unit_test(reads_what_is_shared),
		cmocka_unit_test(keeps_each_row_once),
		cmocka_unit_test(needs_no_sections),
		cmocka_unit_test(nothing_to_compile),
		cmocka_unit_test(survives_lies),
		cmocka_unit_test(reads_compressed_sections),
		cmocka_unit_test(refuses_bad_compression),
		cmocka_unit_test(ignores_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
