/* SPDX-License-Identifier: MIT */
/*
 * named_frames.h: frames of code that has no address of its own, as an interpreter's: function, file and line by number.
 *
 * One thread adds, any thread reads. What is added stays as long as the whole.
 */
#ifndef MW_SYMBOL_NAMED_FRAMES_H
#define MW_SYMBOL_NAMED_FRAMES_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MW_NAMED_FRAMES_PYTHON     "[python]"
#define MW_NAMED_FRAMES_JAVA       "[java]"
#define MW_NAMED_FRAMES_JAVASCRIPT "[javascript]"

struct mw_symbol_frame;
struct mw_named_frames;

/* Errors: MEMORY. */
struct mw_error *mw_named_frames_create(struct mw_named_frames **out) MW_MUST_CHECK;
void mw_named_frames_destroy(struct mw_named_frames *frames); /* NULL is fine */
/* The number of a frame, from 1, which is added where it is new: equal frames have one number. Strings are copied; a file
 * may be NULL, a line 0. Beyond MW_NAMED_FRAMES_MAX all are one frame that says so. Errors: MEMORY. */
struct mw_error *mw_named_frames_add(struct mw_named_frames *frames, const char *function, const char *file,
				     uint32_t line, uint32_t *number) MW_MUST_CHECK;
/* NULL: there is none of that number. */
const struct mw_symbol_frame *mw_named_frames_get(const struct mw_named_frames *frames, uint64_t number);

/* Is that the name of a module that stands for a language, whose frames are such? */
static inline bool mw_named_frames_are_of(const char *path)
{
	return path && (strcmp(path, MW_NAMED_FRAMES_PYTHON) == 0 || strcmp(path, MW_NAMED_FRAMES_JAVA) == 0 ||
			strcmp(path, MW_NAMED_FRAMES_JAVASCRIPT) == 0);
}

#define MW_NAMED_FRAMES_MAX 1000000u

#endif
