// SPDX-License-Identifier: MIT
/* walk.c: an image through a cache of windows, and the parts of mapped files (walk.h). */
#include "heap/walk.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW    (16u << 10)
#define WINDOWS   256u
#define MAX_DATA  (UINT64_C(64) << 20) /* of one mapping of data that is looked through */
#define MAX_CONST (UINT64_C(256) << 20)
#define NOWHERE   UINT64_MAX

struct mw_reader {
	const struct mw_image *image;
	struct window {
		mw_addr number;     /* address / WINDOW; NOWHERE: none */
		mw_addr start, end; /* what of it could be read */
		uint8_t *bytes;     /* from the window's start on */
	} windows[WINDOWS];
	uint8_t bytes[WINDOWS][WINDOW];
};

struct mw_error *mw_reader_create(const struct mw_image *image, struct mw_reader **out)
{
	struct mw_reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return mw_error_nomem();
	reader->image = image;
	for (size_t i = 0; i < WINDOWS; i++)
		reader->windows[i] = (struct window){.number = NOWHERE, .bytes = reader->bytes[i]};
	*out = reader;
	return NULL;
}

void mw_reader_destroy(struct mw_reader *reader)
{
	free(reader);
}

/* Read [from, to) into its place in the window; where it ends. */
static mw_addr read_part(struct mw_reader *reader, struct window *window, mw_addr from, mw_addr to)
{
	return from + mw_image_read_some(reader->image, from, window->bytes + from % WINDOW, to - from);
}

/* Read as much of the window that holds `addr` as is of its mapping. Pages of no file that are not there are zero. */
static void fill(struct mw_reader *reader, struct window *window, mw_addr addr)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(reader->image, addr);
	mw_addr base = addr / WINDOW * WINDOW, from, to, end;

	window->number = addr / WINDOW;
	window->start = window->end = addr;
	if (!mapping || !mapping->read || mapping->device)
		return;
	window->start = mapping->start > base ? mapping->start : base;
	end = mapping->end - base < WINDOW ? mapping->end : base + WINDOW;
	if (mapping->inode || mapping->shared) {
		window->end = read_part(reader, window, window->start, end);
		return;
	}
	memset(window->bytes, 0, WINDOW);
	window->end = end;
	for (mw_addr at = window->start; mw_image_next_present(reader->image, at, end, &from, &to); at = to)
		if (read_part(reader, window, from, to) != to) {
			window->end = from;
			return;
		}
}

/* `size` bytes, which may not go over the window's end, good until the next call; NULL: not all are there. */
static const void *bytes_at(struct mw_reader *reader, mw_addr addr, size_t size)
{
	struct window *window = &reader->windows[addr / WINDOW % WINDOWS];

	if (size > WINDOW - addr % WINDOW)
		return NULL;
	if (window->number != addr / WINDOW || addr < window->start || addr >= window->end)
		fill(reader, window, addr);
	if (addr < window->start || addr > window->end || size > window->end - addr)
		return NULL;
	return window->bytes + addr % WINDOW;
}

bool mw_reader_read(struct mw_reader *reader, mw_addr addr, void *out, size_t size)
{
	while (size) {
		size_t piece = WINDOW - addr % WINDOW < size ? WINDOW - addr % WINDOW : size;
		const void *bytes = bytes_at(reader, addr, piece);

		if (!bytes)
			return false;
		memcpy(out, bytes, piece);
		out = (char *)out + piece;
		addr += piece;
		size -= piece;
	}
	return true;
}

/* --- files ------------------------------------------------------------------------------------------------------------- */

static bool is_file(const struct mw_image_mapping *mapping)
{
	return mapping->inode && !mapping->shared && !mapping->device && mapping->path[0] == '/';
}

/* Is `next` of the same file, or the rest of the bss behind it? */
static bool goes_on(const struct mw_image_mapping *mapping, const struct mw_image_mapping *next, bool *bss)
{
	if (*bss)
		return false;
	if (is_file(next))
		return next->inode == mapping->inode && strcmp(next->path, mapping->path) == 0;
	*bss = next->start == mapping->end && mapping->write && next->write && !next->shared && !next->path[0];
	return *bss;
}

/* The next file that has writable data; `*at` begins as 0. */
static bool next_file(const struct mw_image *image, size_t *at, struct mw_walk_file *out)
{
	while (*at < image->mapping_count) {
		size_t first = (*at)++;
		bool writable = image->mappings[first].write, bss = false;

		if (!is_file(&image->mappings[first]))
			continue;
		for (; *at < image->mapping_count; ++*at) {
			if (!goes_on(&image->mappings[*at - 1], &image->mappings[*at], &bss))
				break;
			writable |= image->mappings[*at].write;
		}
		*out = (struct mw_walk_file){image->mappings[first].path, first, *at};
		if (writable)
			return true;
	}
	return false;
}

struct mw_error *mw_walk_files(const struct mw_image *image, struct mw_blocks *blocks, mw_walk_file_function *walk)
{
	struct mw_walk_file file;
	struct mw_reader *reader = NULL;
	struct mw_error *err = NULL;
	size_t at = 0;

	MW_TRY(mw_reader_create(image, &reader));
	while (!err && next_file(image, &at, &file))
		err = walk(image, &file, reader, blocks);
	mw_reader_destroy(reader);
	return err;
}

bool mw_walk_is_code(const struct mw_image *image, const struct mw_walk_file *file, mw_addr addr)
{
	for (size_t i = file->first; i < file->end; i++)
		if (image->mappings[i].exec && addr >= image->mappings[i].start && addr < image->mappings[i].end)
			return true;
	return false;
}

/* Look for bytes in a mapping, by pieces that overlap. */
static mw_addr find_in(const struct mw_image *image, const struct mw_image_mapping *mapping, uint8_t *buffer,
		       size_t room, const void *bytes, size_t size)
{
	mw_addr at = mapping->start;

	while (at < mapping->end && at - mapping->start < MAX_CONST) {
		size_t want = mapping->end - at < room ? (size_t)(mapping->end - at) : room;
		size_t got = mw_image_read_some(image, at, buffer, want);
		const uint8_t *found = memmem(buffer, got, bytes, size);

		if (found)
			return at + (mw_addr)(found - buffer);
		if (got < want || got < room)
			break;
		at += room - size;
	}
	return 0;
}

struct mw_error *mw_walk_find_constant(const struct mw_image *image, const struct mw_walk_file *file, const void *bytes,
				       size_t size, mw_addr *out)
{
	const size_t room = (size_t)1 << 20;
	uint8_t *buffer = malloc(room);

	if (!buffer)
		return mw_error_nomem();
	*out = 0;
	/* Older linkers put constants and code into one segment. */
	for (int exec = 0; exec <= 1 && !*out; exec++)
		for (size_t i = file->first; i < file->end && !*out; i++) {
			const struct mw_image_mapping *mapping = &image->mappings[i];

			if (mapping->read && !mapping->write && mapping->exec == exec)
				*out = find_in(image, mapping, buffer, room, bytes, size);
		}
	free(buffer);
	return NULL;
}

bool mw_walk_is_mapped(const struct mw_image *image, mw_addr start, mw_addr end)
{
	while (start < end) {
		const struct mw_image_mapping *mapping = mw_image_mapping_of(image, start);

		if (!mapping)
			return false;
		start = mapping->end;
	}
	return true;
}

bool mw_walk_next_data(struct mw_walk_data *data)
{
	for (; data->mapping < data->file->end; data->mapping++, data->at = 0) {
		const struct mw_image_mapping *mapping = &data->image->mappings[data->mapping];
		mw_addr end = mapping->end, from, to;
		size_t size;

		if (!mapping->write || !mapping->read)
			continue;
		if (end - mapping->start > MAX_DATA)
			end = mapping->start + MAX_DATA;
		if (!data->at)
			data->at = mapping->start;
		if (!mw_image_next_present(data->image, data->at, end, &from, &to))
			continue;
		size = to - from < sizeof(data->words) ? (size_t)(to - from) : sizeof(data->words);
		data->start = from;
		data->at = from + size;
		data->count = mw_image_read_some(data->image, from, data->words, size) / sizeof(*data->words);
		return true;
	}
	return false;
}

/* --- threads inside -------------------------------------------------------------------------------------------------------- */

#define TOP_WORDS 512u /* of a stack */

/* The words on top of a thread's stack. */
static size_t read_top(struct mw_reader *reader, const struct mw_image_thread *thread, uint64_t words[TOP_WORDS])
{
	size_t count = 0;

	if (!thread->register_count)
		return 0;
	while (count < TOP_WORDS && mw_reader_word(reader, (thread->sp & ~UINT64_C(7)) + 8 * count, &words[count]))
		count++;
	return count;
}

bool mw_walk_is_inside(struct mw_reader *reader, const struct mw_image *image, const struct mw_walk_file *file,
		       const struct mw_image_thread *thread)
{
	uint64_t words[TOP_WORDS];
	size_t count = read_top(reader, thread, words);

	/* Nothing is known of it. */
	if (!thread->register_count || mw_walk_is_code(image, file, thread->pc))
		return true;
	for (size_t i = 0; i < count; i++)
		if (mw_walk_is_code(image, file, words[i]))
			return true;
	return false;
}

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct mw_error *mw_walk_in_flight_read(struct mw_reader *reader, const struct mw_image *image,
					const struct mw_walk_file *file, struct mw_walk_in_flight *out)
{
	struct mw_walk_in_flight found = {0};

	MW_EACH(thread, image->threads, image->thread_count) {
		uint64_t *words;
		size_t registers =
			thread->register_count < MW_IMAGE_REGISTERS ? thread->register_count : MW_IMAGE_REGISTERS;

		if (!mw_walk_is_inside(reader, image, file, thread))
			continue;
		words = reallocarray(found.words, found.count + MW_IMAGE_REGISTERS + TOP_WORDS, sizeof(*words));
		if (!words) {
			free(found.words);
			return mw_error_nomem();
		}
		found.words = words;
		memcpy(words + found.count, thread->registers, registers * sizeof(*words));
		found.count += registers;
		found.count += read_top(reader, thread, words + found.count);
	}
	if (found.count)
		qsort(found.words, found.count, sizeof(*found.words), compare_words);
	*out = found;
	return NULL;
}

bool mw_walk_in_flight_has(const struct mw_walk_in_flight *in_flight, mw_addr start, mw_addr end)
{
	size_t before = start ? mw_vector_up_to(in_flight->words, in_flight->count, sizeof(uint64_t), 0, start - 1) : 0;

	return before < in_flight->count && in_flight->words[before] < end;
}

/* --- what is found ------------------------------------------------------------------------------------------------------ */

struct mw_error *mw_walk_add(struct mw_blocks *blocks, const char *name, const char *version, const char *module,
			     const char *why, uint32_t *number)
{
	struct mw_heap_allocator allocator = {.name = name, .walked = !why, .trimmable = MW_SIZE_UNKNOWN};
	bool good = true;

	strncpy(allocator.version, version, sizeof(allocator.version) - 1);
	if (module) {
		allocator.module = strdup(module);
		good = allocator.module != NULL;
	}
	if (why) {
		allocator.why = strdup(why);
		good = good && allocator.why;
	}
	if (!good) {
		free(allocator.module);
		free(allocator.why);
		return mw_error_nomem();
	}
	return mw_blocks_add_allocator(blocks, &allocator, number);
}
