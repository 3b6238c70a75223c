// SPDX-License-Identifier: MIT
/* holder.c: paths of holders in words (holder.h). */
#include "heap/holder.h"

#include "base/vector.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 1000000u /* of a path that is followed: a long list's */
#define NAMED_MAX 24u      /* steps that are named; those in the middle are not */

/* Steps from the block to its root, each as a text. */
struct path {
	struct step {
		const char *class_name; /* NULL: by its size */
		uint64_t size;
		uint64_t times; /* in a row */
	} * items;
	size_t count, capacity;
	uint64_t dropped;
};

static struct mw_error *add_step(struct path *path, const char *class_name, uint64_t size)
{
	struct step *last = path->count ? &path->items[path->count - 1] : NULL;

	if (last && last->class_name == class_name && last->size == size) {
		last->times++;
		return NULL;
	}
	if (!MW_VECTOR_ROOM(path->items, path->count, path->capacity))
		return mw_error_nomem();
	path->items[path->count++] = (struct step){class_name, size, 1};
	return NULL;
}

static struct mw_error *class_of(const struct mw_findings *found, const struct mw_block *block, const char **out)
{
	uint64_t word = 0;

	*out = NULL;
	if (!mw_image_read(found->image, block->start, &word, sizeof(word)))
		return NULL;
	return mw_classes_of_block(found->classes, block->start, block->size, word, out);
}

/* NULL without memory. */
static MW_PRINTF(1, 2) char *text_of(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	return text;
}

static char *name_step(const struct step *step)
{
	char *text = NULL;
	char times[32] = "";

	if (step->times > 1)
		snprintf(times, sizeof(times), " x %" PRIu64, step->times);
	if (step->class_name)
		text = text_of("%s%s", step->class_name, times);
	else
		text = text_of("block of %" PRIu64 " bytes%s", step->size, times);
	return text;
}

/* From the block up: its own step first. False in *held where nothing leads to it. */
static struct mw_error *climb(const struct mw_findings *found, struct mw_block block, struct path *path,
			      struct mw_root *root, bool *held)
{
	for (uint32_t i = 0; i < STEPS_MAX; i++) {
		const char *class_name;
		uint32_t holder;
		mw_addr at;

		MW_TRY(class_of(found, &block, &class_name));
		MW_TRY(add_step(path, class_name, block.size));
		*held = mw_reached_holder(found->reached, block.number, &holder, &at, root);
		if (!*held || holder == MW_BLOCK_NONE)
			return NULL;
		*held = mw_blocks_get(found->blocks, holder, &block);
		if (!*held)
			return NULL;
	}
	*held = false;
	return NULL;
}

/* Root first; of a long path the steps in the middle are left out. */
static struct mw_error *write_path(const struct path *path, char *root, char ***holder, size_t *count)
{
	size_t shown = path->count > NAMED_MAX ? NAMED_MAX : path->count;

	*holder = calloc(shown + 2, sizeof(**holder));
	if (!*holder) {
		free(root);
		return mw_error_nomem();
	}
	(*holder)[(*count)++] = root;
	for (size_t i = 0; i < shown; i++) {
		/* The first half from the root's end of the path, the second from the block's. */
		size_t from_end = i < shown / 2 ? path->count - 1 - i : shown - 1 - i;
		char *text = i == shown / 2 && shown < path->count ? strdup("...") : name_step(&path->items[from_end]);

		if (!text)
			return mw_error_nomem();
		(*holder)[(*count)++] = text;
	}
	return NULL;
}

struct mw_error *mw_holder_path(const struct mw_findings *found, struct mw_block block, char ***holder, size_t *count)
{
	struct path path = {0};
	struct mw_root root;
	struct mw_error *err;
	bool held = false;
	char *name = NULL;

	err = climb(found, block, &path, &root, &held);
	if (!err && held)
		err = mw_root_name(found->names, &root, &name);
	if (!err && name)
		err = write_path(&path, name, holder, count);
	free(path.items);
	return err;
}
