// SPDX-License-Identifier: MIT
/* rows_oracle.c: what rows say of a file held against what libdw says (rows_oracle.h). */
#include "rows_oracle.h"

#include "symbol/frames.h"
#include "unwind/rows.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PRINTED 20

struct judge {
	const char *path;
	struct mw_elf *elf;
	const struct mw_arch *arch;
	struct mw_row_dictionary dictionary;
	struct mw_rows rows;
	Elf *libelf;
	Dwarf *libdw;
	Dwarf_CFI *cfi, *debug_cfi; /* .eh_frame and .debug_frame; NULL: none */
	struct rows_verdict verdict;
};

/* Where libdw finds a register. */
enum place { SAME, UNDEFINED, AT, IS, ELSEWHERE };

struct found {
	enum place place;
	bool cfa;        /* from the CFA, or … */
	unsigned number; /* … from that register */
	int64_t offset;
};

/* The CFA as libdw has it. */
struct cfa {
	bool simple, deref;
	unsigned number;
	int64_t offset;
};

/* Register + offset, in either of two ways to say so. */
static bool is_register(const Dwarf_Op *op, unsigned *number, int64_t *offset)
{
	if (op->atom == DW_OP_bregx) {
		*number = (unsigned)op->number;
		*offset = (int64_t)op->number2;
		return true;
	}
	*number = (unsigned)op->atom - DW_OP_breg0;
	*offset = (int64_t)op->number;
	return op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
}

static struct cfa cfa_of(Dwarf_Frame *frame)
{
	struct cfa cfa = {0};
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0)
		return cfa;
	cfa.deref = count == 2 && ops[1].atom == DW_OP_deref;
	cfa.simple = is_register(&ops[0], &cfa.number, &cfa.offset) && (count == 1 || cfa.deref);
	return cfa;
}

static struct found register_of(Dwarf_Frame *frame, int number)
{
	struct found found = {.place = ELSEWHERE};
	Dwarf_Op memory[3], *ops;
	size_t count, next = 1;

	if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0)
		return found;
	if (count == 0) {
		found.place = ops ? UNDEFINED : SAME;
		return found;
	}
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return found;
	/* An expression begins with the CFA on its stack, and has no need of it. */
	found.cfa = count < 2 || !is_register(&ops[1], &found.number, &found.offset);
	if (!found.cfa)
		next++;
	else if (count > next && ops[next].atom == DW_OP_plus_uconst)
		found.offset = (int64_t)ops[next++].number;
	else
		found.offset = 0;
	if (next == count)
		found.place = AT;
	else if (next + 1 == count && ops[next].atom == DW_OP_stack_value)
		found.place = IS;
	return found;
}

/* Does a register lie at CFA + offset? */
static bool lies(const struct found *found, const struct cfa *cfa, int64_t offset)
{
	if (found->place != AT)
		return false;
	if (found->cfa)
		return found->offset == offset;
	return !cfa->deref && found->number == cfa->number && found->offset == cfa->offset + offset;
}

static bool agrees_on_fp(struct judge *judge, Dwarf_Frame *frame, uint64_t row, const struct cfa *cfa)
{
	struct found fp = register_of(frame, judge->arch->dwarf_fp);
	int16_t at = mw_row_fp_at(row);

	switch (mw_row_fp(row)) {
	case MW_ROW_FP_SAME:
		return fp.place == SAME;
	case MW_ROW_FP_SAVED:
		if (mw_row_kind(row) == MW_ROW_FP_DEREF)
			return fp.place == AT && !fp.cfa && fp.number == judge->arch->dwarf_fp && fp.offset == at;
		return lies(&fp, cfa, at);
	default: /* never wrong, but what can be said is to be said */
		judge->verdict.lost++;
		return fp.place != SAME && (cfa->deref || fp.place != AT || !fp.cfa || fp.offset != (int16_t)fp.offset);
	}
}

static bool agrees(struct judge *judge, Dwarf_Frame *frame, uint64_t row)
{
	enum mw_row_kind kind = mw_row_kind(row);
	struct cfa cfa = cfa_of(frame);
	struct found address, sp;
	bool is_signal;
	int number = dwarf_frame_info(frame, NULL, NULL, &is_signal);

	address = register_of(frame, number);
	sp = register_of(frame, judge->arch->dwarf_sp);
	if (number < 0 || is_signal)
		return is_signal && kind == MW_ROW_SIGNAL;
	if (kind == MW_ROW_END)
		return address.place == UNDEFINED;
	if (kind != MW_ROW_SP && kind != MW_ROW_FP && kind != MW_ROW_FP_DEREF)
		return false;
	judge->verdict.deref += kind == MW_ROW_FP_DEREF;
	return cfa.simple && cfa.deref == (kind == MW_ROW_FP_DEREF) && cfa.offset == mw_row_n(row) &&
	       cfa.number == (kind == MW_ROW_SP ? judge->arch->dwarf_sp : judge->arch->dwarf_fp) &&
	       lies(&address, &cfa, -8) && sp.place == IS && sp.cfa && sp.offset == 0 &&
	       agrees_on_fp(judge, frame, row, &cfa);
}

static void differ(struct judge *judge, uint64_t pc, uint64_t row, const char *what)
{
	if (judge->verdict.different++ < PRINTED)
		print_message("%s: %#" PRIx64 ": %s: row %#" PRIx64 "\n", judge->path, pc, what, row);
}

/* Judge what begins at pc; returns where it ends. */
static uint64_t judge_step(struct judge *judge, uint64_t pc, uint64_t end, uint64_t row)
{
	Dwarf_Frame *frame;
	Dwarf_Addr until = 0;

	if ((!judge->cfi || dwarf_cfi_addrframe(judge->cfi, pc, &frame) != 0) &&
	    (!judge->debug_cfi || dwarf_cfi_addrframe(judge->debug_cfi, pc, &frame) != 0)) {
		if (mw_row_kind(row) != MW_ROW_NONE && mw_row_kind(row) != MW_ROW_SLOW)
			differ(judge, pc, row, "libdw has no description");
		return end;
	}
	judge->verdict.steps++;
	if (mw_row_kind(row) == MW_ROW_NONE)
		judge->verdict.missing++;
	else if (mw_row_kind(row) == MW_ROW_SLOW)
		judge->verdict.slow++;
	else if (!agrees(judge, frame, row))
		differ(judge, pc, row, "libdw says something else");
	if (dwarf_frame_info(frame, NULL, &until, NULL) < 0 || until <= pc || until > end)
		until = end;
	free(frame);
	return until;
}

static void judge_rows(struct judge *judge)
{
	const struct mw_rows *rows = &judge->rows;

	for (size_t i = 0; i < rows->count; i++) {
		uint64_t pc = rows->base + rows->items[i].pc, row = mw_rows_find(rows, &judge->dictionary, pc), end;

		assert_int_equal(row, judge->dictionary.rows[rows->items[i].row]);
		assert_true(i == 0 || rows->items[i - 1].pc < rows->items[i].pc);
		assert_true(i == 0 || rows->items[i - 1].row != rows->items[i].row);
		if (i + 1 == rows->count) {
			assert_int_equal(mw_row_kind(row), MW_ROW_NONE);
			break;
		}
		end = rows->base + rows->items[i + 1].pc;
		while (pc < end) {
			uint64_t next = judge_step(judge, pc, end, row);

			assert_int_equal(mw_rows_find(rows, &judge->dictionary, pc + (next - pc) / 2), row);
			pc = next;
		}
	}
}

/* Nothing that the search table has is left out. */
static void judge_table(struct judge *judge)
{
	struct mw_frame_table table;
	struct mw_frame_entry entry;

	assert_null(mw_frame_table_init(&table, judge->elf));
	for (size_t i = 0; i < table.count && mw_frame_table_entry(&table, i, &entry); i++) {
		uint64_t pc = table.base + (uint64_t)(int64_t)entry.code, start, end;

		if (mw_frame_table_find(&table, pc, &start, &end) &&
		    mw_row_kind(mw_rows_find(&judge->rows, &judge->dictionary, pc)) == MW_ROW_NONE) {
			judge->verdict.missing++;
			print_message("%s: %#" PRIx64 " has no row\n", judge->path, pc);
		}
	}
	mw_frame_table_deinit(&table);
}

struct rows_verdict rows_judge(const char *path)
{
	struct judge judge = {.path = path};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct timespec from, to;

	assert_true(fd >= 0);
	assert_null(mw_elf_open(fd, path, &judge.elf));
	judge.arch = mw_arch_find(judge.elf->machine);
	assert_non_null(judge.arch);
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_null(mw_rows_compile(judge.elf, MW_ROWS_OF_ALL, judge.arch, &judge.dictionary, &judge.rows));
	clock_gettime(CLOCK_MONOTONIC, &to);
	judge.verdict.seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	judge.verdict.functions = judge.rows.functions;
	judge.verdict.rows = judge.rows.count;
	elf_version(EV_CURRENT);
	judge.libelf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	judge.libdw = dwarf_begin_elf(judge.libelf, DWARF_C_READ, NULL);
	judge.cfi = dwarf_getcfi_elf(judge.libelf);
	judge.debug_cfi = judge.libdw ? dwarf_getcfi(judge.libdw) : NULL; /* libdw's to free */
	judge_rows(&judge);
	judge_table(&judge);
	if (judge.cfi)
		dwarf_cfi_end(judge.cfi);
	dwarf_end(judge.libdw);
	elf_end(judge.libelf);
	mw_rows_deinit(&judge.rows);
	mw_row_dictionary_deinit(&judge.dictionary);
	mw_elf_unref(judge.elf);
	close(fd);
	return judge.verdict;
}
