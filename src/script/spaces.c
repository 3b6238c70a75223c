// SPDX-License-Identifier: MIT
/* spaces.c: what runtimes have memory for (spaces.h). */
#include "script/spaces.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "script/hotspot.h"
#include "script/v8.h"

#include <stdlib.h>
#include <string.h>

struct mw_error *mw_script_spaces_add(struct mw_script_spaces *spaces, const struct mw_script_space *space)
{
	if (!MW_VECTOR_ROOM(spaces->items, spaces->count, spaces->capacity))
		return mw_error_nomem();
	spaces->items[spaces->count++] = *space;
	return NULL;
}

void mw_script_spaces_deinit(struct mw_script_spaces *spaces)
{
	free(spaces->items);
	*spaces = (struct mw_script_spaces){0};
}

/* The file of a runtime, as the only module. */
static struct mw_error *open_file(pid_t tid, const struct mw_maps *maps, const struct mw_mapping *file,
				  struct mw_modules **out)
{
	MW_FREE struct mw_mapping *items = calloc(maps->count, sizeof(*items));
	struct mw_maps its = {.items = items};
	struct mw_error *err;

	if (!items)
		return mw_error_nomem();
	MW_EACH(mapping, maps->items, maps->count)
		if (mapping->inode == file->inode && mapping->major == file->major && mapping->minor == file->minor)
			items[its.count++] = *mapping;
	MW_TRY(mw_modules_create(out));
	err = mw_modules_refresh(*out, tid, &its, NULL, NULL);
	if (err)
		mw_modules_destroy(*out);
	return err;
}

static struct mw_error *add_java(pid_t tid, const struct mw_maps *maps, struct mw_script_spaces *out)
{
	const struct mw_mapping *file = maps->items, *end = maps->items + maps->count;
	struct mw_modules *modules;
	struct mw_hotspot *hotspot = NULL;
	struct mw_error *err;

	while (file < end && !(file->inode && strcmp(mw_path_name(file->path), "libjvm.so") == 0))
		file++;
	if (file == end)
		return NULL;
	MW_TRY(open_file(tid, maps, file, &modules));
	err = mw_hotspot_create(modules, &hotspot);
	if (!err)
		err = mw_hotspot_take_in(hotspot, tid);
	if (!err && mw_hotspot_is_there(hotspot))
		err = mw_hotspot_spaces(hotspot, tid, maps, out);
	mw_hotspot_destroy(hotspot);
	mw_modules_destroy(modules);
	return err;
}

static struct mw_error *add_javascript(pid_t tid, const struct mw_maps *maps, struct mw_script_spaces *out)
{
	const struct mw_mapping *file = mw_v8_file(tid, maps);
	struct mw_modules *modules;
	struct mw_v8 *v8 = NULL;
	struct mw_error *err;

	if (!file)
		return NULL;
	MW_TRY(open_file(tid, maps, file, &modules));
	err = mw_v8_create(modules, &v8);
	if (!err)
		err = mw_v8_take_in(v8, tid);
	if (!err)
		err = mw_v8_spaces(v8, tid, maps, out);
	mw_v8_destroy(v8);
	mw_modules_destroy(modules);
	return err;
}

/* What of them mappings let one access. Both are by address. */
static void find_committed(struct mw_script_spaces *spaces, const struct mw_maps *maps)
{
	const struct mw_mapping *first = maps->items, *end = maps->items + maps->count;

	for (size_t i = 0; i < spaces->count; i++) {
		struct mw_script_space *space = &spaces->items[i];

		while (first < end && first->end <= space->low)
			first++;
		for (const struct mw_mapping *mapping = first; mapping < end && mapping->start < space->high; mapping++)
			if (!space->is_counted && (mapping->read || mapping->write || mapping->exec))
				space->committed += (mapping->end < space->high ? mapping->end : space->high) -
						    (mapping->start > space->low ? mapping->start : space->low);
		if (space->used > space->committed)
			space->used = 0;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct mw_script_space *left = a, *right = b;

	return (left->low > right->low) - (left->low < right->low);
}

struct mw_error *mw_script_spaces_of(pid_t tid, struct mw_script_spaces *out)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_error *err = mw_maps_read(tid, &maps);
	size_t kept = 0;

	*out = (struct mw_script_spaces){0};
	if (!err)
		err = add_java(tid, &maps, out);
	if (!err)
		err = add_javascript(tid, &maps, out);
	if (err) {
		mw_script_spaces_deinit(out);
		return err;
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_address);
	for (size_t i = 0; i < out->count; i++)
		if (!kept || out->items[kept - 1].high <= out->items[i].low)
			out->items[kept++] = out->items[i];
	out->count = kept;
	find_committed(out, &maps);
	return NULL;
}
