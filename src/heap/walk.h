/* SPDX-License-Identifier: MIT */
/* walk.h: what walkers share: reading an image word by word, and what a file's writable data and constants are. */
#ifndef MW_HEAP_WALK_H
#define MW_HEAP_WALK_H

#include "heap/blocks.h"
#include "heap/image.h"

/* --- reading here and there: an image seen through a cache of windows ---------------------------------------------------- */

struct mw_reader;

struct mw_error *mw_reader_create(const struct mw_image *image, struct mw_reader **out) MW_MUST_CHECK;
void mw_reader_destroy(struct mw_reader *reader);
/* All of it, else false. */
bool mw_reader_read(struct mw_reader *reader, mw_addr addr, void *out, size_t size);
static inline bool mw_reader_word(struct mw_reader *reader, mw_addr addr, uint64_t *out)
{
	return mw_reader_read(reader, addr, out, sizeof(*out));
}

/* 0 where there is none. */
static inline uint64_t mw_reader_word_or_0(struct mw_reader *reader, mw_addr addr)
{
	uint64_t word = 0;

	return mw_reader_read(reader, addr, &word, sizeof(word)) ? word : 0;
}

/* --- files that are mapped ------------------------------------------------------------------------------------------------ */

/* One file's mappings that follow one another, and what lies behind its data (bss). */
struct mw_walk_file {
	const char *path;  /* the image's */
	size_t first, end; /* numbers of its mappings, with the one that has the rest of its bss */
};

typedef struct mw_error *mw_walk_file_function(const struct mw_image *image, const struct mw_walk_file *file,
					       struct mw_reader *reader, struct mw_blocks *blocks);
/* Call `walk` for each file that has writable data. Errors: MEMORY, those of `walk`, which ends with one. */
struct mw_error *mw_walk_files(const struct mw_image *image, struct mw_blocks *blocks,
			       mw_walk_file_function *walk) MW_MUST_CHECK;
/* Is that in the file's code? */
bool mw_walk_is_code(const struct mw_image *image, const struct mw_walk_file *file, mw_addr addr);
/* The first place in the file's constants that has those bytes; 0: none. Errors: MEMORY. */
struct mw_error *mw_walk_find_constant(const struct mw_image *image, const struct mw_walk_file *file, const void *bytes,
				       size_t size, mw_addr *out) MW_MUST_CHECK;

/* Is all of [start, end) mapped? */
bool mw_walk_is_mapped(const struct mw_image *image, mw_addr start, mw_addr end);

/* Goes through what is present of the file's writable data, 64 KiB at most at a time, at multiples of 8. */
struct mw_walk_data {
	const struct mw_image *image;
	const struct mw_walk_file *file;
	size_t mapping; /* begins as file->first */
	mw_addr at;     /* begins as 0 */
	mw_addr start;  /* of `words` */
	size_t count;
	uint64_t words[8192];
};
bool mw_walk_next_data(struct mw_walk_data *data);

/*
 * Is a thread in the file's code, directly or by way of functions that it calls? By its registers, and the words on top of
 * its stack. Words that are no return addresses say so in error; that a thread is inside is never missed but where frames
 * are larger than what is looked at.
 */
bool mw_walk_is_inside(struct mw_reader *reader, const struct mw_image *image, const struct mw_walk_file *file,
		       const struct mw_image_thread *thread);
/* The words that such threads work with: in registers and on top of their stacks. Sorted; malloc'ed. Errors: MEMORY. */
struct mw_walk_in_flight {
	uint64_t *words;
	size_t count;
};
struct mw_error *mw_walk_in_flight_read(struct mw_reader *reader, const struct mw_image *image,
					const struct mw_walk_file *file, struct mw_walk_in_flight *out) MW_MUST_CHECK;
/* Is one of them in [start, end)? */
bool mw_walk_in_flight_has(const struct mw_walk_in_flight *in_flight, mw_addr start, mw_addr end);

/* --- what is found ---------------------------------------------------------------------------------------------------------- */

/* Add an allocator; one that could not be walked where `why` is not NULL. */
struct mw_error *mw_walk_add(struct mw_blocks *blocks, const char *name, const char *version, const char *module,
			     const char *why, uint32_t *number) MW_MUST_CHECK;

#endif
