// SPDX-License-Identifier: MIT
/* named_frames.c: frames by number (named_frames.h). */
#include "symbol/named_frames.h"

#include "base/index.h"
#include "base/shared_list.h"
#include "symbol/symbolizer.h"

#include <stdlib.h>
#include <string.h>

/* Its strings follow it. */
struct named {
	struct mw_symbol_frame frame;
	uint32_t hash;
	char strings[];
};

struct mw_named_frames {
	struct mw_shared_list list; /* of struct named */
	struct mw_index index;
};

struct mw_error *mw_named_frames_create(struct mw_named_frames **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? NULL : mw_error_nomem();
}

void mw_named_frames_destroy(struct mw_named_frames *frames)
{
	if (!frames)
		return;
	for (uint32_t i = 0; i < mw_shared_list_count(&frames->list); i++)
		free(mw_shared_list_get(&frames->list, i));
	mw_shared_list_deinit(&frames->list);
	mw_index_deinit(&frames->index);
	free(frames);
}

static uint32_t hash_of(const void *context, uint32_t number)
{
	const struct mw_named_frames *frames = context;
	const struct named *named = mw_shared_list_get(&frames->list, number);

	return named->hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = mw_hash_add(hash, (unsigned char)*text);
	return mw_hash_add(hash, text ? 256 : 257);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct named *make(const char *function, const char *file, uint32_t line, uint32_t hash)
{
	size_t function_size = strlen(function) + 1, file_size = file ? strlen(file) + 1 : 0;
	struct named *named = calloc(1, sizeof(*named) + function_size + file_size);

	if (!named)
		return NULL;
	memcpy(named->strings, function, function_size);
	if (file)
		memcpy(named->strings + function_size, file, file_size);
	named->hash = hash;
	named->frame.function = named->strings;
	named->frame.file = file ? named->strings + function_size : NULL;
	named->frame.line = line;
	return named;
}

struct mw_error *mw_named_frames_add(struct mw_named_frames *frames, const char *function, const char *file,
				     uint32_t line, uint32_t *number)
{
	struct named *named;
	uint32_t hash;

	if (frames->index.count >= MW_NAMED_FRAMES_MAX) {
		function = "(more frames than are kept)";
		file = NULL;
		line = 0;
	}
	hash = (uint32_t)mw_hash_mix(hash_text(hash_text(line, function), file));
	MW_INDEX_EACH(&frames->index, hash, *number) {
		const struct mw_symbol_frame *frame = mw_named_frames_get(frames, ++*number);

		if (frame->line == line && same_text(frame->function, function) && same_text(frame->file, file))
			return NULL;
	}
	named = make(function, file, line, hash);
	if (!named || !mw_index_reserve(&frames->index, hash_of, frames) || !mw_shared_list_add(&frames->list, named)) {
		free(named);
		return mw_error_nomem();
	}
	*number = mw_index_put(&frames->index, hash) + 1;
	return NULL;
}

const struct mw_symbol_frame *mw_named_frames_get(const struct mw_named_frames *frames, uint64_t number)
{
	const struct named *named;

	if (number == 0 || number > UINT32_MAX)
		return NULL;
	named = mw_shared_list_get(&frames->list, (uint32_t)number - 1);
	return named ? &named->frame : NULL;
}
