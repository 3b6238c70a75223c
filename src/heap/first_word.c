// SPDX-License-Identifier: MIT
#include "heap/first_word.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)256 << 10)
#define PAGE   4096u

struct mw_error *mw_first_word(struct mw_first_words *words, const struct mw_image *image, mw_addr at, uint64_t *out)
{
	*out = 0;
	if (!words->window && !(words->window = malloc(WINDOW)))
		return mw_error_nomem();
	if (at < words->start || at + sizeof(*out) > words->start + words->size) {
		mw_addr start = at & ~(mw_addr)(PAGE - 1), from, to;

		if (!mw_image_next_present(image, at, start + WINDOW, &from, &to) || from > at)
			return NULL;
		words->start = start;
		words->size = mw_image_read_some(image, start, words->window, (size_t)(to - start));
		if (at + sizeof(*out) > start + words->size)
			return NULL;
	}
	memcpy(out, words->window + (at - words->start), sizeof(*out));
	return NULL;
}

void mw_first_words_deinit(struct mw_first_words *words)
{
	free(words->window);
	*words = (struct mw_first_words){0};
}
