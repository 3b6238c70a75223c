// SPDX-License-Identifier: MIT
/* elf_test.c: images of files as compilers make them, and as strip and their like leave them. */
#include "files.h"
#include "unit.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

struct tally {
	size_t dynamic, fixed, functions, ifuncs, locals, versioned, bad;
	bool variable, local, missing, thread_local_, chosen_ifunc;
};

static bool count(void *context, const struct mw_elf_symbol *symbol)
{
	struct tally *tally = context;

	tally->dynamic += symbol->dynamic;
	tally->fixed += !symbol->dynamic;
	tally->functions += symbol->function;
	tally->ifuncs += symbol->ifunc;
	tally->locals += symbol->local;
	tally->versioned += strcmp(symbol->name, "sample_versioned") == 0 && symbol->dynamic;
	tally->bad += strchr(symbol->name, '@') != NULL || !*symbol->name || !symbol->vaddr;
	tally->variable |= strcmp(symbol->name, "sample_variable") == 0 && !symbol->function;
	tally->local |= strcmp(symbol->name, "sample_local") == 0 && symbol->local && symbol->function;
	tally->missing |= strcmp(symbol->name, "sample_missing") == 0;
	tally->thread_local_ |= strcmp(symbol->name, "sample_thread_local") == 0;
	tally->chosen_ifunc |= strcmp(symbol->name, "sample_chosen") == 0 && symbol->ifunc;
	return true;
}

static struct tally tally_of(struct mw_elf *elf)
{
	struct tally tally = {0};

	assert_null(mw_elf_each_symbol(elf, count, &tally));
	return tally;
}

static void reads_library(void **state)
{
	static const char *const paths[] = {SAMPLE_GNU, SAMPLE_SYSV};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct mw_elf *elf = elf_of(paths[i]);
		struct tally tally = tally_of(elf);

		assert_true(elf->is_64);
		assert_false(elf->is_executable);
		assert_string_equal(elf->soname, "libsample.so.7");
		assert_int_equal(elf->build_id_size, 20);
		assert_true(elf->segment_count >= 2);
		assert_true(elf->eh_frame_hdr && elf->eh_frame_hdr_size);
		assert_true(elf->bytes.fd >= 0);
		assert_int_equal(tally.bad, 0);
		assert_int_equal(tally.versioned, 2);
		assert_true(tally.variable && tally.local && tally.chosen_ifunc);
		assert_false(tally.missing || tally.thread_local_);
		assert_true(tally.ifuncs >= 1 && tally.fixed > tally.dynamic);
		mw_elf_unref(elf);
	}
}

static void reads_sections(void **state)
{
	struct mw_elf *elf = elf_of(SAMPLE_GNU);
	struct mw_elf_section text = mw_elf_section(elf, ".text");
	struct mw_elf_section comment = mw_elf_section(elf, ".comment");
	uint8_t copy[16];
	const uint8_t *bytes;
	size_t available = 0;

	(void)state;
	assert_true(text.present && text.size > 0 && text.vaddr);
	assert_true(comment.present && !comment.vaddr);
	assert_false(mw_elf_section(elf, ".nothing").present);
	assert_false(mw_elf_section(elf, "").present);
	bytes = mw_elf_bytes(elf, text.vaddr, &available);
	assert_non_null(bytes);
	assert_true(available >= text.size);
	assert_true(mw_elf_read(elf, text.vaddr, copy, sizeof(copy)));
	assert_memory_equal(bytes, copy, sizeof(copy));
	assert_memory_equal(bytes, mw_elf_file_bytes(elf, text.offset, text.size), text.size);
	assert_ptr_equal(bytes, mw_elf_span(elf, text.vaddr, text.size));
	assert_null(mw_elf_span(elf, text.vaddr, available + 1));
	assert_null(mw_elf_file_bytes(elf, UINT64_MAX, 1));
	assert_null(mw_elf_file_bytes(elf, 1, SIZE_MAX));
	assert_null(mw_elf_bytes(elf, UINT64_MAX, &available));
	/* What can be written may have changed in the target: the file does not speak for it. */
	assert_false(mw_elf_read(elf, symbol_of(elf, "sample_variable"), copy, 4));
	mw_elf_unref(elf);
}

static void reads_programs(void **state)
{
	struct mw_elf *elf = elf_of(SAMPLE_STATIC);

	(void)state;
	assert_true(elf->is_static);
	assert_true(elf->is_executable);
	assert_null(elf->soname);
	assert_true(symbol_of(elf, "sample_function") > 0x400000);
	assert_true(symbol_of(elf, "malloc") > 0x400000);
	mw_elf_unref(elf);
	elf = elf_of("/proc/self/exe");
	assert_false(elf->is_static);
	assert_true(symbol_of(elf, "main") > 0);
	mw_elf_unref(elf);
}

/* The same symbols, when only the loader's tables are left. */
static void reads_without_sections(void **state)
{
	static const char *const paths[] = {SAMPLE_GNU, SAMPLE_SYSV, SAMPLE_CHILD};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		size_t size;
		uint8_t *bytes = file_read(paths[i], &size);
		struct mw_elf *whole = elf_of(paths[i]), *bare = NULL;
		struct tally expected = tally_of(whole), tally;

		memset(bytes + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
		memset(bytes + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
		assert_null(mw_elf_open_memory(bytes, size, "bare", &bare));
		free(bytes);
		tally = tally_of(bare);
		assert_int_equal(tally.dynamic, expected.dynamic);
		assert_int_equal(tally.fixed, 0);
		assert_int_equal(tally.bad, 0);
		assert_false(mw_elf_section(bare, ".text").present);
		assert_int_equal(bare->build_id_size, 20);
		assert_int_equal(bare->bytes.fd, -1);
		mw_elf_unref(bare);
		mw_elf_unref(whole);
	}
}

/* The vdso has no file. */
static void reads_from_memory(void **state)
{
	const void *at = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct mw_elf *elf = NULL;

	(void)state;
	if (!at)
		skip();
	assert_null(mw_elf_open_memory(at, 4096, "[vdso]", &elf));
	assert_true(elf->is_static);
	assert_true(tally_of(elf).functions > 0);
	assert_ptr_equal(mw_elf_ref(elf), elf);
	mw_elf_unref(elf);
	mw_elf_unref(elf);
	mw_elf_unref(NULL);
	assert_null(mw_elf_ref(NULL));
}

static bool stop_at_third(void *context, const struct mw_elf_symbol *symbol)
{
	(void)symbol;
	return ++*(int *)context < 3;
}

static void stops_when_told(void **state)
{
	struct mw_elf *elf = elf_of(SAMPLE_STATIC);
	int visits = 0;

	(void)state;
	assert_null(mw_elf_each_symbol(elf, stop_at_third, &visits));
	assert_int_equal(visits, 3);
	mw_elf_unref(elf);
}

UNIT_GROUP(elf)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_library),     cmocka_unit_test(reads_sections),
		cmocka_unit_test(reads_programs),    cmocka_unit_test(reads_without_sections),
		cmocka_unit_test(reads_from_memory), cmocka_unit_test(stops_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
