// SPDX-License-Identifier: MIT
#include "heap/contents.h"

#include "base/vector.h"
#include "heap/pointer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN        128u /* bytes of a block */
#define WINDOW       4096u
#define LEAST_STRING 4u
#define MOST_STRING  96u /* characters */

struct notes {
	struct mw_heap_note *items;
	size_t count, capacity;
};

/* Takes the text; NULL: there was no memory for it. */
static struct mw_error *add_note(struct notes *notes, uint64_t offset, char *text)
{
	if (!text || !MW_VECTOR_ROOM(notes->items, notes->count, notes->capacity)) {
		free(text);
		return mw_error_nomem();
	}
	notes->items[notes->count++] = (struct mw_heap_note){offset, text};
	return NULL;
}

/* --- what a word points at ------------------------------------------------------------------------------------------ */

/* NULL in *out: to no live block. */
static struct mw_error *name_block(const struct mw_findings *found, uint64_t word, char **out)
{
	struct mw_pointer pointer;
	const char *name = NULL;
	struct mw_block block;
	char offset[48] = "to ";
	uint64_t first = 0;
	int length;

	*out = NULL;
	if (!mw_pointer_find(found->blocks, word, &pointer) ||
	    !mw_blocks_get(found->blocks, pointer.block.number, &block))
		return NULL;
	if (mw_image_read(found->image, block.start, &first, sizeof(first)))
		MW_TRY(mw_classes_of_block(found->classes, block.start, block.size, first, &name));
	if (!pointer.is_start) /* else other bits are the program's */
		snprintf(offset, sizeof(offset), "%" PRIu64 " bytes into ", word - block.start);
	if (name)
		length = asprintf(out, "pointer %s%s", offset, name);
	else
		length = asprintf(out, "pointer %sa block of %" PRIu64 " bytes", offset, block.size);
	return length < 0 ? mw_error_nomem() : NULL;
}

static struct mw_error *name_word(const struct mw_findings *found, uint64_t word, char **out)
{
	const char *name = NULL;
	struct mw_root root;
	char *place = NULL;
	int length;

	MW_TRY(name_block(found, word, out));
	if (*out)
		return NULL;
	MW_TRY(mw_classes_of(found->classes, word, &name));
	if (name)
		return asprintf(out, "vtable of %s", name) < 0 ? mw_error_nomem() : NULL;
	if (mw_reached_root_of(found->reached, word, &root))
		MW_TRY(mw_root_name(found->names, &root, &place));
	else
		MW_TRY(mw_root_name_code(found->names, word, &place));
	if (!place)
		return NULL;
	length = asprintf(out, "pointer to %s", place);
	free(place);
	return length < 0 ? mw_error_nomem() : NULL;
}

/* --- one block ------------------------------------------------------------------------------------------------------ */

static bool is_printable(unsigned char c)
{
	return c >= ' ' && c <= '~';
}

/* How many characters of a string begin at `bytes`: it is long enough, and ends with a zero, or what was read does. */
static size_t string_at(const unsigned char *bytes, size_t size)
{
	size_t length = 0;

	while (length < size && is_printable(bytes[length]))
		length++;
	return length >= LEAST_STRING && (length == size || bytes[length] == '\0') ? length : 0;
}

static struct mw_error *add_string(struct notes *notes, uint64_t offset, const unsigned char *bytes, size_t length)
{
	char *text;

	if (asprintf(&text, "string \"%.*s\"%s", (int)(length < MOST_STRING ? length : MOST_STRING),
		     (const char *)bytes, length > MOST_STRING ? "..." : "") < 0)
		text = NULL;
	return add_note(notes, offset, text);
}

static struct mw_error *add_notes(const struct mw_findings *found, const unsigned char *bytes, size_t size,
				  struct notes *notes)
{
	size_t shown = size < SHOWN ? size : SHOWN;

	for (size_t at = 0; at < shown;) {
		size_t length = string_at(bytes + at, size - at);
		uint64_t word;
		char *text = NULL;

		if (length) {
			MW_TRY(add_string(notes, at, bytes + at, length));
			at += length + 1;
			continue;
		}
		if (at % sizeof(word) == 0 && size - at >= sizeof(word)) {
			memcpy(&word, bytes + at, sizeof(word));
			MW_TRY(name_word(found, word, &text));
			if (text)
				MW_TRY(add_note(notes, at, text));
			at += text ? sizeof(word) : 1;
			continue;
		}
		at++;
	}
	return NULL;
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
	return size > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Is all of it zero? */
static bool is_all_zero(const struct mw_image *image, mw_addr at, uint64_t size)
{
	unsigned char bytes[WINDOW];

	while (size) {
		size_t part = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);

		if (!mw_image_read(image, at, bytes, part) || !is_zero(bytes, part))
			return false;
		at += part;
		size -= part;
	}
	return true;
}

static struct mw_error *look_into(const struct mw_findings *found, mw_addr at, uint64_t size,
				  struct mw_heap_content *out)
{
	unsigned char bytes[SHOWN + MOST_STRING + 1];
	size_t want = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	size_t got = mw_image_read_some(found->image, at, bytes, want);
	struct notes notes = {0};
	struct mw_error *err;

	out->at = at;
	out->size = size;
	out->byte_count = got < SHOWN ? got : SHOWN;
	out->bytes = malloc(out->byte_count + 1);
	if (!out->bytes)
		return mw_error_nomem();
	memcpy(out->bytes, bytes, out->byte_count);
	err = got == want && is_all_zero(found->image, at, size) ? add_note(&notes, 0, strdup("all zero"))
								 : add_notes(found, bytes, got, &notes);
	out->notes = notes.items;
	out->note_count = notes.count;
	return err;
}

struct mw_error *mw_contents(const struct mw_findings *found, struct mw_heap_group *group, size_t count)
{
	struct mw_block block;

	if (count > group->sample_count)
		count = group->sample_count;
	group->contents = calloc(count + 1, sizeof(*group->contents));
	if (!group->contents)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		if (mw_blocks_find(found->blocks, group->samples[i], &block))
			MW_TRY(look_into(found, block.start, block.size, &group->contents[group->content_count++]));
	return NULL;
}
