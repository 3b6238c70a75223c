/* SPDX-License-Identifier: MIT */
/* first_word.h: the first words of blocks, asked for by address: memory is read in windows. */
#ifndef MW_HEAP_FIRST_WORD_H
#define MW_HEAP_FIRST_WORD_H

#include "heap/image.h"

#include <memwatch/error.h>

/* What was read last. Zero-initialise. */
struct mw_first_words {
	unsigned char *window;
	mw_addr start;
	size_t size;
};

/* 0 where the word can't be had. Errors: MEMORY. */
struct mw_error *mw_first_word(struct mw_first_words *words, const struct mw_image *image, mw_addr at,
			       uint64_t *out) MW_MUST_CHECK;
void mw_first_words_deinit(struct mw_first_words *words);

#endif
