// SPDX-License-Identifier: MIT
/* elf_hostile_test.c: files that lie, are cut short, or change while they are read. */
#include "files.h"
#include "unit.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static volatile uint64_t sink;

static bool touch(void *context, const struct mw_elf_symbol *symbol)
{
	size_t *visits = context;

	sink += strlen(symbol->name) + symbol->vaddr;
	return ++*visits < 10000;
}

/* Ask an image for everything. */
static void use(struct mw_elf *elf)
{
	struct mw_elf_section section;
	size_t available = 0, visits = 0;
	const uint8_t *bytes;

	mw_error_destroy(mw_elf_each_symbol(elf, touch, &visits));
	for (size_t i = 0; i < elf->segment_count; i++) {
		bytes = mw_elf_bytes(elf, elf->segments[i].vaddr, &available);
		if (bytes && available)
			sink += bytes[0] + bytes[available - 1];
	}
	if (elf->eh_frame_hdr_size)
		(void)mw_elf_read(elf, elf->eh_frame_hdr, &(uint8_t[8]){0}, 8);
	section = mw_elf_section(elf, ".text");
	bytes = section.present ? mw_elf_file_bytes(elf, section.offset, section.size) : NULL;
	if (bytes)
		sink += bytes[section.size - 1];
	if (elf->soname)
		sink += strlen(elf->soname);
	sink += elf->build_id[0];
}

static void try_bytes(const uint8_t *bytes, size_t size)
{
	struct mw_elf *elf = NULL;
	struct mw_error *err = mw_elf_open_memory(bytes, size, "spoilt", &elf);

	if (err) {
		assert_null(elf);
		mw_error_destroy(err);
		return;
	}
	use(elf);
	mw_elf_unref(elf);
}

static void survives_truncation(void **state)
{
	static const char *const paths[] = {SAMPLE_GNU, SAMPLE_SYSV};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t size;
		uint8_t *bytes = file_read(paths[i], &size);

		for (size_t cut = 0; cut < size; cut += cut < 1024 ? 1 : 61)
			try_bytes(bytes, cut);
		free(bytes);
	}
}

/* Where a spoilt byte does most: headers, the dynamic section and the tables it points to. */
static size_t pick(unsigned *seed, size_t size, size_t sections)
{
	switch (rand_r(seed) % 4) {
	case 0:
		return (size_t)rand_r(seed) % 0x400;
	case 1:
		return sections + (size_t)rand_r(seed) % (size - sections);
	case 2:
		return (size_t)rand_r(seed) % 0x1000 % size;
	default:
		return (size_t)rand_r(seed) % size;
	}
}

static void survives_mutations(void **state)
{
	static const uint8_t evil[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xfe};
	static const char *const paths[] = {SAMPLE_GNU, SAMPLE_SYSV};
	unsigned seed = 12345;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t size;
		uint8_t *bytes = file_read(paths[i], &size);
		uint8_t *copy = malloc(size);
		Elf64_Ehdr header;

		assert_non_null(copy);
		memcpy(&header, bytes, sizeof(header));
		for (int n = 0; n < 10000; n++) {
			memcpy(copy, bytes, size);
			for (int k = rand_r(&seed) % 6; k >= 0; k--) {
				uint8_t value = rand_r(&seed) % 2 ? evil[(size_t)rand_r(&seed) % sizeof(evil)]
								  : (uint8_t)rand_r(&seed);

				copy[pick(&seed, size, header.e_shoff)] = value;
			}
			memcpy(copy, ELFMAG, SELFMAG);
			copy[EI_CLASS] = ELFCLASS64;
			try_bytes(copy, size);
		}
		free(copy);
		free(bytes);
	}
}

static void refuses(const void *bytes, size_t size, enum mw_error_kind kind)
{
	struct mw_elf *elf = NULL;
	struct mw_error *err = mw_elf_open_memory(bytes, size, "x", &elf);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), kind);
	mw_error_destroy(err);
}

static void says_what_it_is_not(void **state)
{
	size_t size;
	uint8_t *bytes = file_read(SAMPLE_GNU, &size);
	struct mw_elf *elf = NULL;
	struct mw_error *err;
	int ends[2];

	(void)state;
	refuses("", 0, MW_ERROR_DATA);
	refuses("#!/bin/sh\n", 10, MW_ERROR_DATA);
	refuses(bytes, 40, MW_ERROR_DATA);
	bytes[EI_DATA] = ELFDATA2MSB;
	refuses(bytes, size, MW_ERROR_UNSUPPORTED);
	bytes[EI_DATA] = ELFDATA2LSB;
	bytes[EI_CLASS] = ELFCLASS32;
	assert_null(mw_elf_open_memory(bytes, size, "32", &elf));
	assert_false(elf->is_64);
	assert_int_equal(elf->machine, ((Elf64_Ehdr *)(void *)bytes)->e_machine);
	use(elf);
	mw_elf_unref(elf);
	free(bytes);
	assert_int_equal(pipe(ends), 0);
	err = mw_elf_open(ends[0], "pipe", &elf);
	assert_non_null(err);
	mw_error_destroy(err);
	close(ends[0]);
	close(ends[1]);
	err = mw_elf_open(ends[0], "closed", &elf);
	assert_non_null(err);
	mw_error_destroy(err);
}

/* The file becomes empty after it was opened: no SIGBUS, and no made-up bytes. */
static void survives_shrinking(void **state)
{
	size_t size, visits = 0;
	uint8_t *bytes = file_read(SAMPLE_STATIC, &size);
	int fd = memfd_create("shrinks", MFD_CLOEXEC);
	struct mw_elf *elf = NULL;
	struct mw_elf_section text;
	uint8_t byte;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	assert_null(mw_elf_open(fd, "shrinks", &elf));
	text = mw_elf_section(elf, ".text");
	assert_true(text.present && text.size > 400000);
	assert_true(mw_elf_read(elf, text.vaddr, &byte, 1));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_true(mw_elf_read(elf, text.vaddr, &byte, 1));
	assert_false(mw_elf_read(elf, text.vaddr + 200000, &byte, 1));
	assert_null(mw_elf_file_bytes(elf, text.offset, text.size));
	mw_error_destroy(mw_elf_each_symbol(elf, touch, &visits));
	mw_elf_unref(elf);
	close(fd);
	free(bytes);
}

UNIT_GROUP(elf_hostile)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_truncation),
		cmocka_unit_test(survives_mutations),
		cmocka_unit_test(says_what_it_is_not),
		cmocka_unit_test(survives_shrinking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
