// SPDX-License-Identifier: MIT
/* v8_spaces.c: what of a process's memory is V8's heap, by its spaces (v8.h). */
#include "script/v8_parts.h"

#include "base/vector.h"
#include "proc/peek.h"

#include <stdio.h>
#include <string.h>

#define WORD       8u
#define PAGE       4096u
#define ALIGNMENT  (256u << 10)        /* of a chunk, which the heap is made of */
#define HEADER_MAX (4 * PAGE)          /* bytes from its beginning to its objects */
#define REST_MAX   (2 * PAGE)          /* … from their end to its own: to the next page, and a guard page */
#define CHUNK_MAX  (UINT64_C(4) << 30) /* the largest objects have 1 GiB */
#define TRIES_MAX  (1u << 18)          /* addresses that are looked at: 64 GiB, one by one */
#define SPACES     14u

/* Words in a chunk: its flags, … */
struct layout {
	uint8_t flags;
	/* … and here, or in what this one points to: its size, its heap, the bounds of its objects, its space. */
	uint8_t metadata; /* 0: here */
	uint8_t size, heap, start, end, owner;
};
#define WORDS 11u /* … so many */

enum { V8_10, V8_12, V8_13, LAYOUTS };
static const struct layout layouts[LAYOUTS] = {
	[V8_10] = {.flags = 1, .size = 0, .heap = 2, .start = 3, .end = 4, .owner = 8},
	[V8_12] = {.metadata = 1, .size = 2, .heap = 3, .start = 4, .end = 5, .owner = 9},
	[V8_13] = {.metadata = 1, .size = 6, .heap = 8, .start = 9, .end = 7, .owner = 10},
};

/* Spaces by their numbers, as v8.getHeapSpaceStatistics() calls them. That of what is read only is the first. */
static const struct known {
	unsigned major;
	unsigned layout;
	uint32_t freed; /* the flag of what is in no space any more: it is kept for later, or is about to be unmapped */
	const char *names[SPACES];
} known[] = {
	{10,
	 V8_10,
	 3u << 19,
	 {"read_only_space", "old_space", "code_space", "map_space", "large_object_space", "code_large_object_space",
	  "new_large_object_space", "new_space"}},
	{11,
	 V8_10,
	 1u << 19,
	 {"read_only_space", "new_space", "old_space", "code_space", "shared_space", "new_large_object_space",
	  "large_object_space", "code_large_object_space", "shared_large_object_space"}},
	{12,
	 V8_12,
	 1u << 16,
	 {"read_only_space", "new_space", "old_space", "code_space", "shared_space", "trusted_space",
	  "new_large_object_space", "large_object_space", "code_large_object_space", "shared_large_object_space",
	  "trusted_large_object_space"}},
	{13,
	 V8_13,
	 1u << 19,
	 {"read_only_space", "new_space", "old_space", "code_space", "shared_space", "trusted_space",
	  "shared_trusted_space", "new_large_object_space", "large_object_space", "code_large_object_space",
	  "shared_large_object_space", "shared_trusted_large_object_space", "trusted_large_object_space"}},
};

struct chunk {
	mw_addr end;
	uint32_t flags, space;         /* the space's number */
	const struct mw_mapping *file; /* of V8's code; NULL: the chunk is read only, and no one heap's */
};

/* Memory that a chunk may begin in. */
static bool is_anonymous(const struct mw_mapping *mapping)
{
	return !mapping->inode && !mapping->shared && (!mapping->path[0] || strncmp(mapping->path, "[anon", 5) == 0);
}

/* Up to where there is nothing else from `mapping` on, as far as `end`. */
static bool reaches(const struct mw_maps *maps, const struct mw_mapping *mapping, mw_addr end)
{
	for (mw_addr at = mapping->start; mapping < maps->items + maps->count; at = mapping++->end)
		if (mapping->start != at || !is_anonymous(mapping))
			return false;
		else if (mapping->end >= end)
			return true;
	return false;
}

/* The space has the table of its class's functions, its heap and its number. */
static bool take_owner(const struct mw_touched *touched, const struct mw_maps *maps, mw_addr owner, mw_addr heap,
		       struct chunk *out)
{
	uint64_t words[3];

	if (owner % WORD || mw_touched_read(touched, owner, words, sizeof(words)) != sizeof(words) || words[1] != heap)
		return false;
	out->space = (uint32_t)words[2];
	out->file = mw_maps_find(maps, words[0]);
	return out->file && out->file->inode;
}

/* Does a chunk begin at `at`? What it says of itself in several ways is to be the same. */
static bool take_chunk(const struct mw_touched *touched, const struct mw_maps *maps, const struct mw_mapping *mapping,
		       mw_addr at, const struct layout *layout, struct chunk *out)
{
	uint64_t head[2], words[WORDS], metadata, size, end;

	if (mw_touched_read(touched, at, head, sizeof(head)) != sizeof(head))
		return false;
	metadata = layout->metadata ? head[layout->metadata] : at;
	if (metadata % WORD || mw_touched_read(touched, metadata, words, sizeof(words)) != sizeof(words))
		return false;
	size = words[layout->size];
	end = words[layout->end] - at;
	if (!size || size % PAGE || size > CHUNK_MAX || words[layout->start] <= at ||
	    words[layout->start] - at > HEADER_MAX || words[layout->end] <= words[layout->start] || end > size ||
	    size - end > REST_MAX || !reaches(maps, mapping, at + size))
		return false;
	*out = (struct chunk){.end = at + size, .flags = (uint32_t)head[layout->flags]};
	if (words[layout->heap])
		return take_owner(touched, maps, words[layout->owner], words[layout->heap], out);
	return !words[layout->owner] && !mapping->write && mapping->start == at && mapping->end == out->end;
}

const struct mw_mapping *mw_v8_file(pid_t tid, const struct mw_maps *maps)
{
	const struct mw_mapping *file = NULL;
	struct mw_touched touched;
	struct chunk chunk;

	mw_touched_init(&touched, tid);
	for (size_t i = 0; i < maps->count && !file; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (mapping->start % ALIGNMENT || !mapping->read || !is_anonymous(mapping))
			continue;
		for (unsigned j = 0; j < LAYOUTS && !file; j++)
			if (take_chunk(&touched, maps, mapping, mapping->start, &layouts[j], &chunk))
				file = chunk.file;
	}
	mw_touched_deinit(&touched);
	return file;
}

static struct mw_error *add(struct mw_script_spaces *out, const char *name, mw_addr low, mw_addr high)
{
	struct mw_script_space space = {.runtime = "JavaScript heap", .low = low, .high = high};
	struct mw_script_space *last = out->count ? &out->items[out->count - 1] : NULL;

	(void)snprintf(space.name, sizeof(space.name), "V8 %s", name);
	if (!last || last->high != low || strcmp(last->name, space.name) != 0)
		return mw_script_spaces_add(out, &space);
	last->high = high;
	return NULL;
}

/* How it is called, and where it ends; NULL: `at` is none of the heap's. */
static const char *name_chunk(const struct mw_touched *touched, const struct mw_maps *maps,
			      const struct mw_mapping *mapping, mw_addr at, const struct known *version, mw_addr *end)
{
	struct chunk chunk;

	for (unsigned i = 0; i < LAYOUTS; i++) {
		if ((version && version->layout != i) || !take_chunk(touched, maps, mapping, at, &layouts[i], &chunk))
			continue;
		*end = chunk.end;
		if (!version)
			return "heap";
		/* What is read only has the flag as well: no heap frees it. */
		if (chunk.file && chunk.flags & version->freed)
			return "freed chunks";
		return chunk.space < SPACES ? version->names[chunk.space] : NULL;
	}
	return NULL;
}

struct mw_error *mw_v8_spaces(const struct mw_v8 *v8, pid_t tid, const struct mw_maps *maps,
			      struct mw_script_spaces *out)
{
	const struct known *version = NULL;
	struct mw_touched touched;
	struct mw_error *err = NULL;
	unsigned tries = 0;
	mw_addr end = 0;

	for (size_t i = 0; v8->version && i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].major == v8->version->major)
			version = &known[i];
	mw_touched_init(&touched, tid);
	for (size_t i = 0; i < maps->count && !err; i++) {
		const struct mw_mapping *mapping = &maps->items[i];
		mw_addr at = end > mapping->start ? end : mapping->start;

		if (!mapping->read || !is_anonymous(mapping))
			continue;
		for (at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; at < mapping->end && tries < TRIES_MAX && !err;
		     tries++) {
			const char *name = name_chunk(&touched, maps, mapping, at, version, &end);

			if (name)
				err = add(out, name, at, end);
			at = name ? (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : at + ALIGNMENT;
		}
	}
	mw_touched_deinit(&touched);
	return err;
}
