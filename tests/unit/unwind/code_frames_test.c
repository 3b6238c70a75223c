// SPDX-License-Identifier: MIT
/*
 * code_frames_test.c: frames that are read off the code of real files never differ from what their frame descriptions
 * say of the same code. With arguments: of these files.
 */
#include "symbol/frames.h"
#include "unit.h"
#include "unwind/fallback.h"
#include "unwind/rows.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST_CALLS 20000
#define PRINTED    20
#define AROUND     65536u

enum knowledge {
	SYMBOLS, /* and calls */
	CALLS,
	NOTHING,
	KNOWLEDGE
};

struct verdict {
	size_t calls, certain, different, frame_pointers;
};

struct judge {
	const struct mw_arch *arch;
	struct mw_elf *elf;
	struct mw_row_dictionary dictionary;
	struct mw_rows rows;
	struct mw_described_code described;
	struct mw_function_starts starts[KNOWLEDGE];
	struct verdict verdicts[KNOWLEDGE];
};

static char **paths;

/* Do both lead to the same caller? Where one goes by the frame pointer and the other not, that can't be told. */
static bool agree(const struct mw_code_frame *mine, uint64_t theirs)
{
	enum mw_row_kind kind = mw_row_kind(theirs);

	if (kind != MW_ROW_SP && kind != MW_ROW_FP)
		return kind == MW_ROW_SLOW || kind == MW_ROW_FP_DEREF;
	if (mine->by_fp == (kind == MW_ROW_FP) && mine->cfa != mw_row_n(theirs))
		return false;
	if (mine->fp == MW_CODE_FP_LOST || mw_row_fp(theirs) == MW_ROW_FP_LOST)
		return true;
	if (mine->fp == MW_CODE_FP_SAME)
		return mw_row_fp(theirs) == MW_ROW_FP_SAME;
	return mw_row_fp(theirs) == MW_ROW_FP_SAVED && mine->fp_at == mw_row_fp_at(theirs);
}

static void judge_call(struct judge *judge, uint64_t pc, uint64_t low, uint64_t high)
{
	uint64_t theirs = mw_rows_find(&judge->rows, &judge->dictionary, pc - 1);
	uint64_t from = pc - low > AROUND ? pc - AROUND : low, to = high - pc > AROUND ? pc + AROUND : high;
	const uint8_t *bytes = mw_elf_span(judge->elf, from, to - from);

	for (unsigned i = 0; i < KNOWLEDGE; i++) {
		struct verdict *verdict = &judge->verdicts[i];
		struct mw_code_function known = {0};
		struct mw_code_frame frame;

		verdict->calls++;
		if (!mw_function_starts_find(&judge->starts[i], pc - 1, &known) ||
		    !judge->arch->frame_at(bytes, to - from, from, pc, &known, &frame))
			continue;
		verdict->certain++;
		verdict->frame_pointers += frame.fp != MW_CODE_FP_LOST;
		if (!agree(&frame, theirs) && verdict->different++ < PRINTED)
			print_message("  %u: at %#llx by %s + %d, frame pointer %d at %d, not %016llx\n", i,
				      (unsigned long long)pc, frame.by_fp ? "fp" : "sp", frame.cfa, (int)frame.fp,
				      frame.fp_at, (unsigned long long)theirs);
	}
}

/* The segment that holds a function. */
static bool bounds(const struct mw_elf *elf, uint64_t vaddr, uint64_t *low, uint64_t *high)
{
	const struct mw_elf_segment *segments = elf->segments;
	size_t count = elf->segment_count;

	for (size_t i = 0; i < count; i++) {
		*low = segments[i].vaddr;
		*high = *low + segments[i].file_size;
		if (segments[i].exec && vaddr >= *low && vaddr < *high)
			return true;
	}
	return false;
}

static void judge_function(struct judge *judge, const struct mw_described *function)
{
	struct mw_insn_plan plan;
	uint64_t low, high;

	if (!bounds(judge->elf, function->start, &low, &high))
		return;
	for (uint64_t at = function->start; at < function->end && at < high; at += plan.length) {
		size_t size = high - at > MW_INSN_MAX ? MW_INSN_MAX : high - at;
		const uint8_t *bytes = mw_elf_span(judge->elf, at, size);
		uint8_t op;

		memset(&plan, 0, sizeof(plan));
		judge->arch->plan(bytes, size, at, &plan);
		if (!plan.length)
			return;
		op = bytes[0] == 0x41 ? 1 : 0;
		if (bytes[0] == 0xe8 || (bytes[op] == 0xff && (bytes[op + 1] >> 3 & 7) == 2))
			judge_call(judge, at + plan.length, low, high);
	}
}

static bool is_start(const struct judge *judge, uint64_t vaddr)
{
	uint64_t low, high;

	return bounds(judge->elf, vaddr, &low, &high);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct mw_function_start *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* The same without what symbols say. */
static void forget_symbols(struct judge *judge)
{
	const struct mw_elf_segment *segments = judge->elf->segments;
	size_t count = judge->elf->segment_count, all = 0, room = 0;
	struct mw_function_starts *starts = &judge->starts[CALLS];

	for (size_t i = 0; i < count; i++)
		room += segments[i].exec ? segments[i].file_size / 5 : 0;
	starts->items = calloc(room + 1, sizeof(*starts->items));
	assert_non_null(starts->items);
	for (size_t i = 0; i < count; i++) {
		size_t size = (size_t)segments[i].file_size;
		const uint8_t *bytes = segments[i].exec ? mw_elf_span(judge->elf, segments[i].vaddr, size) : NULL;
		mw_addr target;

		for (size_t at = 0;
		     bytes && all < room &&
		     (at = judge->arch->call_target(bytes, size, segments[i].vaddr, at, &target)) < size;)
			if (is_start(judge, target))
				starts->items[all++].vaddr = target;
	}
	qsort(starts->items, all, sizeof(*starts->items), by_vaddr);
	starts->count = all;
}

static void judge_file(const char *path, struct judge *judge)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t step;

	*judge = (struct judge){.arch = mw_arch_find(62)};
	assert_true(fd >= 0);
	assert_null(mw_elf_open(fd, path, &judge->elf));
	close(fd);
	assert_null(mw_rows_compile(judge->elf, MW_ROWS_OF_ALL, judge->arch, &judge->dictionary, &judge->rows));
	assert_null(mw_described_init(&judge->described, judge->elf, false));
	mw_function_starts_init(&judge->starts[SYMBOLS], judge->elf, judge->arch);
	forget_symbols(judge);
	/* Not each, where there are many. */
	step = judge->described.eh.count / (paths ? 2000 : 300) + 1;
	for (size_t i = 0; i < judge->described.eh.count && judge->verdicts[0].calls < MOST_CALLS; i += step)
		judge_function(judge, &judge->described.eh.items[i]);
	for (unsigned i = 0; i < KNOWLEDGE; i++)
		print_message("%s: %u: %zu calls, %zu certain (%.0f %%), of these frame pointer %zu, %zu different\n",
			      path, i, judge->verdicts[i].calls, judge->verdicts[i].certain,
			      100.0 * (double)judge->verdicts[i].certain / (double)(judge->verdicts[i].calls + 1),
			      judge->verdicts[i].frame_pointers, judge->verdicts[i].different);
	for (unsigned i = 0; i < KNOWLEDGE; i++)
		mw_function_starts_deinit(&judge->starts[i]);
	mw_described_deinit(&judge->described);
	mw_rows_deinit(&judge->rows);
	mw_row_dictionary_deinit(&judge->dictionary);
	mw_elf_unref(judge->elf);
}

static void judge_library(const char *name)
{
	void *library = dlopen(name, RTLD_LAZY);
	struct link_map *map = NULL;
	struct judge judge;

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		skip();
	judge_file(map->l_name, &judge);
	dlclose(library);
	for (unsigned i = 0; i < KNOWLEDGE; i++)
		assert_int_equal(judge.verdicts[i].different, 0);
	assert_true(judge.verdicts[SYMBOLS].certain * 2 > judge.verdicts[SYMBOLS].calls);
}

static void libc(void **state)
{
	(void)state;
	judge_library("libc.so.6");
}

static void libstdcxx(void **state)
{
	(void)state;
	judge_library("libstdc++.so.6");
}

static void named(void **state)
{
	struct judge judge;
	size_t different = 0;

	(void)state;
	if (!paths)
		skip();
	for (char **path = paths; *path; path++) {
		judge_file(*path, &judge);
		for (unsigned i = 0; i < KNOWLEDGE; i++)
			different += judge.verdicts[i].different;
	}
	assert_int_equal(different, 0);
}

UNIT_GROUP(code_frames)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(libc), cmocka_unit_test(libstdcxx)};
	const struct CMUnitTest one[] = {cmocka_unit_test(named)};

	if (argc > 1) {
		paths = argv + 1;
		return cmocka_run_group_tests(one, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
