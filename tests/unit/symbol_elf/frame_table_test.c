// SPDX-License-Identifier: MIT
/* frame_table_test.c: where functions begin and end, by either table and with bytes that lie. */
#include "files.h"

#include "symbol/frames.h"
#include "unit.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The real libc, also where a sanitizer's functions stand before it. */
static const char *libc_path(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
	void *function = libc ? dlsym(libc, "qsort") : NULL;
	Dl_info info;

	if (!function || !dladdr(function, &info))
		skip();
	return info.dli_fname;
}

static Elf64_Phdr *frame_header(uint8_t *bytes)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *segments = (Elf64_Phdr *)(bytes + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_GNU_EH_FRAME)
			return &segments[i];
	fail_msg("no PT_GNU_EH_FRAME");
	return NULL;
}

static struct mw_elf *image_of(const uint8_t *bytes, size_t size)
{
	struct mw_elf *elf = NULL;

	assert_null(mw_elf_open_memory(bytes, size, "frames", &elf));
	return elf;
}

static struct mw_frame_table table_of(const struct mw_elf *elf)
{
	struct mw_frame_table table;

	assert_null(mw_frame_table_init(&table, elf));
	return table;
}

/* The table that a linker wrote and the one made from .eh_frame say the same. */
static void compare_tables(const char *path)
{
	size_t size;
	uint8_t *bytes = file_read(path, &size);
	struct mw_elf *with = image_of(bytes, size), *without;
	struct mw_frame_table own = table_of(with), made;

	frame_header(bytes)->p_type = PT_NULL;
	without = image_of(bytes, size);
	made = table_of(without);
	assert_null(own.made);
	assert_non_null(made.made);
	assert_true(own.count > 0);
	assert_int_equal(own.count, made.count);
	for (size_t i = 0; i < own.count; i++) {
		struct mw_frame_entry entry;
		uint64_t start[2], end[2], code;

		assert_true(mw_elf_read(with, own.vaddr + i * sizeof(entry), &entry, sizeof(entry)));
		code = own.base + (uint64_t)(int64_t)entry.code;
		assert_int_equal(code, made.base + (uint64_t)(int64_t)made.made[i].code);
		assert_int_equal(own.base + (uint64_t)(int64_t)entry.description,
				 made.base + (uint64_t)(int64_t)made.made[i].description);
		assert_true(mw_frame_table_find(&own, code, &start[0], &end[0]));
		assert_true(mw_frame_table_find(&made, code, &start[1], &end[1]));
		assert_int_equal(start[0], code);
		assert_int_equal(start[1], code);
		assert_int_equal(end[0], end[1]);
		assert_true(end[0] > code);
	}
	mw_frame_table_deinit(&own);
	mw_frame_table_deinit(&made);
	mw_elf_unref(with);
	mw_elf_unref(without);
	free(bytes);
}

static void tables_are_the_same(void **state)
{
	(void)state;
	compare_tables(SAMPLE_GNU);
	compare_tables(SAMPLE_CHILD);
	compare_tables(libc_path());
}

struct count {
	const struct mw_frame_table *table;
	size_t functions, found;
};

static bool check_symbol(void *context, const struct mw_elf_symbol *symbol)
{
	struct count *count = context;
	uint64_t start, end;

	if (!symbol->function || symbol->ifunc || symbol->size == 0)
		return true;
	count->functions++;
	if (mw_frame_table_find(count->table, symbol->vaddr + symbol->size / 2, &start, &end) &&
	    start == symbol->vaddr && end == symbol->vaddr + symbol->size)
		count->found++;
	return true;
}

/* What libc's symbols say of its functions' ends; some are written in assembly in several pieces. */
static void agrees_with_symbols(void **state)
{
	struct mw_elf *elf = elf_of(libc_path());
	struct mw_frame_table table = table_of(elf);
	struct count count = {.table = &table};
	uint64_t start, end;

	(void)state;
	assert_null(mw_elf_each_symbol(elf, check_symbol, &count));
	assert_true(count.functions > 1000);
	assert_true(count.found * 100 >= count.functions * 95);
	assert_false(mw_frame_table_find(&table, 0, &start, &end));
	assert_false(mw_frame_table_find(&table, UINT64_MAX, &start, &end));
	mw_frame_table_deinit(&table);
	mw_elf_unref(elf);
}

/* Headers in other forms are not read; the table is made. */
static void unusual_headers_are_replaced(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} changes[] = {
		{0, 2},                                  /* version */
		{1, DW_EH_PE_uleb128},                   /* how .eh_frame's address is encoded */
		{2, DW_EH_PE_omit},                      /* how the count is */
		{3, DW_EH_PE_datarel | DW_EH_PE_sdata8}, /* how the entries are */
		{11, 0x7f},                              /* a count that is too large */
	};
	size_t size;
	uint8_t *bytes = file_read(SAMPLE_GNU, &size), *header = bytes + frame_header(bytes)->p_offset;

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint8_t before = header[changes[i].at];
		struct mw_frame_table table;
		struct mw_elf *elf;

		header[changes[i].at] = changes[i].byte;
		elf = image_of(bytes, size);
		table = table_of(elf);
		assert_non_null(table.made);
		assert_true(table.count > 0);
		mw_frame_table_deinit(&table);
		mw_elf_unref(elf);
		header[changes[i].at] = before;
	}
	free(bytes);
}

/* Ask for addresses all over a file. */
static void ask(const uint8_t *bytes, size_t size)
{
	struct mw_elf *elf = NULL;
	struct mw_error *err = mw_elf_open_memory(bytes, size, "spoilt", &elf);
	struct mw_frame_table table;

	if (err) {
		mw_error_destroy(err);
		return;
	}
	table = table_of(elf);
	for (uint64_t vaddr = 0; vaddr < 0x4000; vaddr += 16) {
		uint64_t start, end;

		if (mw_frame_table_find(&table, vaddr, &start, &end))
			assert_true(start <= vaddr && vaddr < end);
	}
	mw_frame_table_deinit(&table);
	mw_elf_unref(elf);
}

static void spoil(const char *path, bool without_header)
{
	size_t size;
	uint8_t *bytes = file_read(path, &size);
	Elf64_Phdr *segment = frame_header(bytes);
	/* .eh_frame follows its header. */
	size_t first = segment->p_offset, last = first + segment->p_filesz + 1024;

	if (without_header)
		segment->p_type = PT_NULL;
	for (size_t at = first; at < last && at < size; at++) {
		uint8_t before = bytes[at];

		for (unsigned i = 0; i < 4; i++) {
			bytes[at] = (uint8_t[]){0, 0xff, 0x80, (uint8_t)(before + 1)}[i];
			ask(bytes, size);
		}
		bytes[at] = before;
	}
	for (size_t cut = first; cut < last && cut < size; cut++)
		ask(bytes, cut);
	free(bytes);
}

static void survives_lies(void **state)
{
	(void)state;
	spoil(SAMPLE_GNU, false);
	spoil(SAMPLE_GNU, true);
}

static void nothing_to_find(void **state)
{
	size_t size;
	uint8_t *bytes = file_read(SAMPLE_GNU, &size);
	struct mw_frame_table table;
	uint64_t start, end;
	struct mw_elf *elf;

	(void)state;
	frame_header(bytes)->p_type = PT_NULL;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	elf = image_of(bytes, size);
	table = table_of(elf);
	assert_int_equal(table.count, 0);
	assert_false(mw_frame_table_find(&table, 0x1000, &start, &end));
	mw_frame_table_deinit(&table);
	mw_elf_unref(elf);
	free(bytes);
}

UNIT_GROUP(frame_table)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_the_same),
		cmocka_unit_test(agrees_with_symbols),
		cmocka_unit_test(unusual_headers_are_replaced),
		cmocka_unit_test(survives_lies),
		cmocka_unit_test(nothing_to_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
