/* SPDX-License-Identifier: MIT */
/*
 * frames.h: bounded reading of frame descriptions, .eh_frame and .debug_frame: a CIE has what several descriptions
 * share, a description (FDE) is of a piece of code. Stripped files have them too, so they also tell where functions
 * begin and end.
 */
#ifndef MW_SYMBOL_FRAMES_H
#define MW_SYMBOL_FRAMES_H

#include "symbol/elf_image.h"

#include <string.h>

/* Bytes that may lie, and where they stand. Reading beyond them gives 0 and makes `ok` false for good. */
struct mw_cursor {
	const uint8_t *at;
	size_t left;
	uint64_t vaddr; /* of `at` */
	bool ok;
};

static inline void mw_cursor_skip(struct mw_cursor *cursor, size_t size)
{
	if (!cursor->ok || size > cursor->left) {
		cursor->ok = false;
		return;
	}
	cursor->at += size;
	cursor->left -= size;
	cursor->vaddr += size;
}

/* An unsigned number of up to 8 bytes. */
static inline uint64_t mw_cursor_take(struct mw_cursor *cursor, size_t size)
{
	const uint8_t *from = cursor->at;
	uint64_t value = 0;

	mw_cursor_skip(cursor, size);
	if (cursor->ok && from)
		memcpy(&value, from, size);
	return value;
}

/* The bits of a number of variable length, how many there are, and its last byte. */
static inline uint64_t mw_cursor_leb(struct mw_cursor *cursor, unsigned *bits, uint8_t *last)
{
	uint64_t value = 0;
	uint8_t byte;

	*bits = 0;
	do {
		byte = (uint8_t)mw_cursor_take(cursor, 1);
		if (*bits >= 64)
			cursor->ok = false;
		else
			value |= (uint64_t)(byte & 0x7f) << *bits;
		*bits += 7;
	} while (cursor->ok && byte & 0x80);
	*last = byte;
	return cursor->ok ? value : 0;
}

/* Numbers of variable length. One that does not fit 64 bits is not ok. */
static inline uint64_t mw_cursor_uleb(struct mw_cursor *cursor)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = mw_cursor_leb(cursor, &bits, &last);

	if (bits > 64 && last > 1) /* of the tenth byte one bit is left */
		cursor->ok = false;
	return cursor->ok ? value : 0;
}

static inline int64_t mw_cursor_sleb(struct mw_cursor *cursor)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = mw_cursor_leb(cursor, &bits, &last);

	if (bits > 64 && last != 0 && last != 0x7f)
		cursor->ok = false;
	if (bits < 64 && last & 0x40)
		value |= UINT64_MAX << bits;
	return cursor->ok ? (int64_t)value : 0;
}

/* A pointer, absolute or relative to its own place. Other relations, and encodings of no fixed size, are not ok. */
uint64_t mw_frame_take_pointer(struct mw_cursor *cursor, uint8_t encoding);

/* Where records are. */
struct mw_frame_bytes {
	const struct mw_elf *elf;
	const uint8_t *section; /* the whole section, or NULL: what the loaded segments have */
	uint8_t *inflated;      /* … where it is compressed: its own memory */
	size_t size;            /* … its size */
	uint64_t vaddr;         /* … where it stands. What .debug_frame calls an address of its own is an offset: 0 */
	bool debug;             /* it is .debug_frame */
};

/* What descriptions share. Cursors are good as long as the bytes. */
struct mw_frame_cie {
	uint64_t vaddr;   /* where its record begins */
	bool valid;       /* false: nothing is known */
	bool signal;      /* of code that a signal handler returns to */
	bool strange;     /* has an augmentation that is not known here: what its programs mean may differ */
	uint8_t encoding; /* DW_EH_PE_… of its descriptions' pointers */
	bool augmented;   /* descriptions have augmentation data */
	uint64_t code_align, return_register;
	int64_t data_align;
	struct mw_cursor program; /* its initial instructions */
};

struct mw_frame_description {
	uint64_t start, length; /* the code, vaddr and bytes */
	struct mw_cursor program;
};

/*
 * Read the description at `vaddr`. `cie` is filled with what it refers to, or found to be that already
 * (zero-initialise). False where there is none, or it is invalid.
 */
bool mw_frame_describe(const struct mw_frame_bytes *bytes, uint64_t vaddr, struct mw_frame_cie *cie,
		       struct mw_frame_description *description);

/*
 * Where a file's descriptions are, sorted by the code that they describe: the search table of .eh_frame_hdr, or one
 * made from .eh_frame where there is none. Its entries are, as in .eh_frame_hdr, offsets from the table's base.
 */
struct mw_frame_entry {
	int32_t code, description;
};

struct mw_frame_table {
	const struct mw_elf *elf;
	uint64_t base;               /* vaddr that entries are offsets from */
	uint64_t vaddr;              /* where the file has its entries; means nothing where they are made */
	size_t count;                /* of entries; 0: there are no frame descriptions */
	struct mw_frame_entry *made; /* from .eh_frame, or NULL: the file's own */
	struct mw_frame_bytes bytes; /* where descriptions are: .eh_frame where the table is made */
};

/* Find or make the table. The image must outlive it. A file without descriptions, or with such as no usual compiler and
 * linker write, has an empty one. Errors: MEMORY. */
struct mw_error *mw_frame_table_init(struct mw_frame_table *table, const struct mw_elf *elf) MW_MUST_CHECK;
/* A zeroed table is fine. */
void mw_frame_table_deinit(struct mw_frame_table *table);

/* An entry, index less than count. False where the file does not have it. */
bool mw_frame_table_entry(const struct mw_frame_table *table, size_t index, struct mw_frame_entry *entry);

/* The code that `vaddr` belongs to: a function, or the cold part of one, which is described apart. False where no
 * description covers it. */
bool mw_frame_table_find(const struct mw_frame_table *table, uint64_t vaddr, uint64_t *start, uint64_t *end);

/* Code that is described. */
struct mw_described {
	uint64_t start, end; /* vaddr */
	uint64_t record;     /* where its description is */
};

/* Sorted by start; code that lies in no executable segment is left out. */
struct mw_described_list {
	struct mw_frame_bytes bytes; /* where the descriptions are; means nothing in an empty list */
	struct mw_described *items;
	size_t count, capacity;
};

/* What each of the two sections describes. */
struct mw_described_code {
	struct mw_described_list eh, debug;
};

/* List what a file describes, or what its .debug_frame does. The image must outlive the lists, which are to be deinit'ed
 * on failure as well. Errors: MEMORY. */
struct mw_error *mw_described_init(struct mw_described_code *code, const struct mw_elf *elf,
				   bool debug_only) MW_MUST_CHECK;
void mw_described_deinit(struct mw_described_code *code);

/*
 * Code that stands in a file and that no compiler has made, [start, end) as vaddr, empty where there is none: V8's
 * built-in functions, which its own code generator writes when V8 is built (its "embedded blob"). Nothing describes its
 * frames. What calls something has one of its own, by the frame pointer, but for few places.
 */
struct mw_generated_code {
	uint64_t start, end;
	uint64_t
		collector; /* V8's function in assembler through which its garbage collector is called, and which nothing
			     * describes; 0: not known */
};

/* What the file's symbols say of it, and where they have been stripped, which of its code is not described. Looked for
 * once for all who have the image. Errors: MEMORY; *out is as it was then. */
struct mw_error *mw_generated_code_find(struct mw_elf *elf, struct mw_generated_code *out) MW_MUST_CHECK;

static inline bool mw_generated_code_holds(const struct mw_generated_code *code, uint64_t vaddr)
{
	return vaddr - code->start < code->end - code->start;
}

#endif
