/* SPDX-License-Identifier: MIT */
/*
 * gopclntab.h: the table that Go's linker puts into every program, stripped or not, for the runtime's own tracebacks:
 * functions, files and lines, what was inlined, and how large a frame is at each place. Of Go 1.16 and later.
 *
 * Everything in it is hostile.
 */
#ifndef MW_SYMBOL_GOPCLNTAB_H
#define MW_SYMBOL_GOPCLNTAB_H

#include "symbol/elf_image.h"

/* Points into the image, which must outlive it; nothing to free. Offsets are from the table's start. */
struct mw_go_table {
	const struct mw_elf *elf;
	const uint8_t *bytes;
	uint64_t size;
	bool absolute;    /* functions by their addresses (1.16), not by 32 bits from `text` */
	bool start_lines; /* since 1.20 */
	uint64_t text;    /* vaddr */
	uint64_t count;   /* functions */
	uint64_t step;    /* bytes of code that a pc is a multiple of */
	uint64_t names, units, files, pcs, functions;
	uint64_t inlined; /* vaddr that the functions' data is counted from; 0: it can't be told what was inlined */
};

/* A function. */
struct mw_go_function {
	uint64_t start, end; /* vaddr */
	const char *name;
	bool outermost;  /* a thread or a goroutine begins with it */
	uint64_t record; /* of it, in the table */
};

/* False: there is no such table, or none that is understood. */
bool mw_go_table_init(struct mw_go_table *table, const struct mw_elf *elf);
/* The table of a file, looked for once for all who have the image; NULL: as above. Errors: MEMORY. */
struct mw_error *mw_go_table_of(struct mw_elf *elf, const struct mw_go_table **out) MW_MUST_CHECK;
/* The one with that number, in order of address. False: its record is invalid. */
bool mw_go_function_at(const struct mw_go_table *table, uint64_t number, struct mw_go_function *out);
bool mw_go_function_find(const struct mw_go_table *table, uint64_t vaddr, struct mw_go_function *out);

/* Bytes of code that it is of. */
uint64_t mw_go_code_size(const struct mw_go_table *table);

/* Places of a function with one value each: zero-initialise but for the first two. */
struct mw_go_values {
	const struct mw_go_table *table;
	uint64_t at;    /* what comes next */
	uint64_t start; /* the value is good from here on, as vaddr … */
	uint64_t end;   /* … to here */
	int32_t value;
};

/* Bytes between the stack pointer and the return address. */
struct mw_go_values mw_go_frame_sizes(const struct mw_go_table *table, const struct mw_go_function *function);
/* False: there are no more. */
bool mw_go_values_next(struct mw_go_values *values);

/* A frame of what stands at an address. */
struct mw_go_frame {
	const char *function, *file; /* file: NULL where not known; good as long as the image */
	uint32_t line;
};

#define MW_GO_INLINED 64u /* frames in each other, at most */

/* The frames at `vaddr` in that function, innermost inlined one first; how many, at least one. */
size_t mw_go_frames(const struct mw_go_table *table, const struct mw_go_function *function, uint64_t vaddr,
		    struct mw_go_frame out[MW_GO_INLINED]);

#endif
