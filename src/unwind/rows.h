/* SPDX-License-Identifier: MIT */
/*
 * rows.h: a file's frame descriptions (.eh_frame, .debug_frame) compiled to rows (memwatch/ring.h) that code in the
 * target can walk its stack by.
 */
#ifndef MW_UNWIND_ROWS_H
#define MW_UNWIND_ROWS_H

#include "base/index.h"
#include "symbol/elf_image.h"
#include "symbol/frames.h"

#include <memwatch/arch.h>
#include <memwatch/ring.h>

/* A dictionary of rows, each once, shared by all files of a process. Zero-initialise. */
struct mw_row_dictionary {
	uint64_t *rows; /* append-only: an index stays what it is */
	size_t capacity;
	struct mw_index index; /* of the rows */
};

void mw_row_dictionary_deinit(struct mw_row_dictionary *dictionary);
/* The index of a row, which is added where it is new. Errors: MEMORY. */
struct mw_error *mw_row_dictionary_add(struct mw_row_dictionary *dictionary, uint64_t row,
				       uint32_t *index) MW_MUST_CHECK;

/* The rows of one file, sorted by pc, which is vaddr - base; what no description covers has a row MW_ROW_NONE. */
struct mw_rows {
	struct mw_ring_row *items;
	size_t count;
	uint64_t base;    /* vaddr */
	size_t functions; /* descriptions that were compiled */
	size_t slow;      /* … of these with anything that rows can't say */
};

enum mw_rows_of {
	MW_ROWS_OF_ALL,
	MW_ROWS_OF_DEBUG_FRAME, /* alone */
};

/*
 * Compile a file. .eh_frame is the authority; code that only .debug_frame describes (in the file itself), or Go's own
 * table (which counts as .debug_frame), is added. A
 * description that is invalid gives MW_ROW_SLOW for its range, so that nothing wrong is ever said. A return
 * address register that is undefined gives MW_ROW_END; a signal frame gives MW_ROW_SIGNAL. A file without descriptions
 * has no rows. Bounded in time and memory by the size of the file. Errors: MEMORY.
 */
struct mw_error *mw_rows_compile(const struct mw_elf *elf, enum mw_rows_of of, const struct mw_arch *arch,
				 struct mw_row_dictionary *dictionary, struct mw_rows *out) MW_MUST_CHECK;

/* What is compiled of one file, with a dictionary of its own. */
struct mw_file_rows {
	struct mw_row_dictionary dictionary;
	struct mw_rows rows;
	struct mw_generated_code generated;
};

/* MW_ROWS_OF_ALL of a file, compiled once for all who have its image (mw_elf_fact), to which they belong. Errors:
 * MEMORY. */
struct mw_error *mw_file_rows_get(struct mw_elf *elf, const struct mw_arch *arch,
				  const struct mw_file_rows **out) MW_MUST_CHECK;
/* Destroy them, if there are any: nobody uses them any more. */
void mw_file_rows_drop(struct mw_elf *elf);
/* How many bytes of code the file has, and how many of them nothing describes. Errors: MEMORY. */
struct mw_error *mw_rows_undescribed(const struct mw_elf *elf, uint64_t *code, uint64_t *undescribed) MW_MUST_CHECK;
void mw_rows_deinit(struct mw_rows *rows);
/* The row for `vaddr`, or that of MW_ROW_NONE. */
uint64_t mw_rows_find(const struct mw_rows *rows, const struct mw_row_dictionary *dictionary, uint64_t vaddr);

#endif
