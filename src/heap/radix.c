// SPDX-License-Identifier: MIT
/* radix.c: finding a radix tree, and going through it (radix.h). */
#include "heap/radix.h"

#include "base/cleanup.h"

#include <stdlib.h>

#define PIECE      8192u /* words of a node that are read at once */
#define MAX_NODES  8192u
#define MAX_TRIES  16u                  /* elements of a leaf that are asked where they stand */
#define MAX_ASKED  8192u                /* of all that may be leaves */
#define MAX_LOOKED ((uint64_t)64 << 20) /* of memory that may be a leaf, all in all */

struct finder {
	const struct mw_radix *radix;
	const struct mw_radix_shape *shape;
	mw_addr root;
	uint64_t looked, asked, bad;
	mw_addr nodes[MAX_NODES]; /* that were gone through */
	size_t node_count;
	uint64_t pieces[MW_RADIX_LEVELS][PIECE]; /* one for each level */
};

/* Memory that the allocator has mapped for itself. */
static bool may_be_node(const struct finder *finder, mw_addr at)
{
	const struct mw_image_mapping *mapping =
		at && at % 16 == 0 ? mw_image_mapping_of(finder->radix->image, at) : NULL;

	return mapping && mapping->write && mapping->read && !mapping->shared && !mapping->inode &&
	       (mapping < finder->radix->image->mappings + finder->radix->file->first ||
		mapping >= finder->radix->image->mappings + finder->radix->file->end);
}

static bool is_leaf(const struct finder *finder, unsigned level)
{
	return level + 1 >= finder->shape->levels || level + 1 >= MW_RADIX_LEVELS;
}

/* Words from one element to the next. */
static unsigned step_of(const struct finder *finder, unsigned level)
{
	return is_leaf(finder, level) ? finder->shape->element_words : 1;
}

/* A node's words that are present, piece by piece. */
struct node_words {
	mw_addr at, end;
	size_t index; /* of the first word of the piece */
	size_t count;
	bool bad; /* not all could be read */
};

static struct node_words begin_node(const struct finder *finder, mw_addr node, unsigned level)
{
	uint64_t size = (UINT64_C(8) << finder->shape->bits[level]) * step_of(finder, level);

	return (struct node_words){.at = node, .end = node + size};
}

static bool next_words(struct finder *finder, mw_addr node, unsigned level, struct node_words *words)
{
	mw_addr from, to;
	size_t size;

	if (words->bad || !mw_image_next_present(finder->radix->image, words->at, words->end, &from, &to))
		return false;
	size = to - from < PIECE * 8 ? (size_t)(to - from) : PIECE * 8;
	words->count = mw_image_read_some(finder->radix->image, from, finder->pieces[level], size) / 8;
	words->index = (from - node) / 8;
	words->at = from + size;
	words->bad = words->count * 8 < size;
	finder->looked += size;
	return true;
}

/* The first word of an element behind `*at` in a piece that is not 0; false: none. */
static bool next_element(const struct finder *finder, unsigned level, const struct node_words *words, size_t *at)
{
	unsigned step = step_of(finder, level);

	while ((words->index + *at) % step)
		++*at;
	while (*at < words->count && !finder->pieces[level][*at])
		*at += step;
	return *at < words->count;
}

/* --- the root ----------------------------------------------------------------------------------------------------------- */

/* Does an element that stands at the page `low` of those that its node's parents tell apart say where it stands? Then that
 * tells the node's place among all: *page is the element's. */
static bool tells_page(const struct finder *finder, uint64_t element, uint64_t low, unsigned bits, uint64_t *page)
{
	unsigned shift = finder->shape->page_shift;
	mw_addr start, end;

	if (!finder->radix->range(finder->radix->context, element, &start, &end))
		return false;
	*page = (start >> shift >> bits << bits) | low;
	/* What began below the node goes on in it. */
	if (*page << shift < start)
		*page += UINT64_C(1) << bits;
	return *page << shift >= start && *page << shift < end;
}

/* Go down from a node of the second level to the first leaf that has something, and ask that; the page's number. */
static bool ask_leaf(struct finder *finder, mw_addr node, unsigned *bits, uint64_t *page)
{
	uint64_t low = 0;
	unsigned tries = 0;

	*bits = 0;
	for (unsigned level = 1; level < MW_RADIX_LEVELS; level++) {
		struct node_words words = begin_node(finder, node, level);
		bool down = false;

		*bits += finder->shape->bits[level];
		low <<= finder->shape->bits[level];
		while (!down && finder->looked < MAX_LOOKED && finder->asked <= MAX_ASKED &&
		       next_words(finder, node, level, &words))
			for (size_t i = 0; !down && next_element(finder, level, &words, &i); i++) {
				uint64_t word = finder->pieces[level][i];
				uint64_t index = (words.index + i) / step_of(finder, level);

				if (is_leaf(finder, level)) {
					if (tells_page(finder, word, low | index, *bits, page))
						return true;
					if (++tries == MAX_TRIES || ++finder->asked > MAX_ASKED)
						return false;
				} else if (may_be_node(finder, word)) {
					node = word;
					low |= index;
					down = true;
				}
			}
		if (!down)
			return false;
	}
	return false;
}

/* All of the root is in the file's data, and what is not 0 in it may be a node. */
static bool is_root(struct finder *finder)
{
	const struct mw_image *image = finder->radix->image;
	struct node_words words = begin_node(finder, finder->root, 0);
	const struct mw_image_mapping *first = mw_image_mapping_of(image, finder->root);
	const struct mw_image_mapping *last = mw_image_mapping_of(image, words.end - 1);

	if (!first || !last || first < image->mappings + finder->radix->file->first ||
	    last >= image->mappings + finder->radix->file->end)
		return false;
	while (next_words(finder, finder->root, 0, &words))
		for (size_t i = 0; next_element(finder, 0, &words, &i); i++)
			if (!may_be_node(finder, finder->pieces[0][i]))
				return false;
	return !words.bad;
}

static bool leads_to_root(struct finder *finder, mw_addr at, mw_addr node)
{
	uint64_t page;
	unsigned bits;

	if (!may_be_node(finder, node) || !ask_leaf(finder, node, &bits, &page))
		return false;
	finder->root = at - (page >> bits) * 8;
	return is_root(finder);
}

static bool find_root(struct finder *finder, struct mw_walk_data *data)
{
	*data = (struct mw_walk_data){
		.image = finder->radix->image, .file = finder->radix->file, .mapping = finder->radix->file->first};
	while (mw_walk_next_data(data))
		for (size_t i = 0; i < data->count; i++)
			if (data->words[i] && leads_to_root(finder, data->start + i * 8, data->words[i]))
				return true;
	return false;
}

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

/* Is a node gone through for the first time? In a tree each is. */
static bool is_new(struct finder *finder, mw_addr node)
{
	if (finder->node_count == MAX_NODES)
		return false;
	for (size_t i = 0; i < finder->node_count; i++)
		if (finder->nodes[i] == node)
			return false;
	finder->nodes[finder->node_count++] = node;
	return true;
}

/* `page` is what the levels above say of the pages' numbers. Goes down no deeper than the levels. */
static struct mw_error *take_node(struct finder *finder, mw_addr node, unsigned level, uint64_t page)
{
	struct node_words words = begin_node(finder, node, level);
	const struct mw_radix *radix = finder->radix;

	page <<= finder->shape->bits[level];
	while (next_words(finder, node, level, &words))
		for (size_t i = 0; next_element(finder, level, &words, &i); i++) {
			uint64_t word = finder->pieces[level][i],
				 at = page | (words.index + i) / step_of(finder, level);

			if (is_leaf(finder, level))
				MW_TRY(radix->take(radix->context, word, at << finder->shape->page_shift));
			else if (may_be_node(finder, word) && is_new(finder, word))
				MW_TRY(take_node(finder, word, level + 1, at));
			else
				finder->bad++;
		}
	finder->bad += words.bad;
	return NULL;
}

struct mw_error *mw_radix_walk(const struct mw_radix *radix, const struct mw_radix_shape *shapes, size_t count,
			       const struct mw_radix_shape **found, uint64_t *bad)
{
	MW_FREE struct mw_walk_data *data = malloc(sizeof(*data));
	MW_FREE struct finder *finder = calloc(1, sizeof(*finder));
	struct mw_error *err;

	if (!data || !finder)
		return mw_error_nomem();
	*found = NULL;
	*bad = 0;
	finder->radix = radix;
	for (size_t i = 0; i < count; i++) {
		finder->shape = &shapes[i];
		finder->looked = finder->asked = 0;
		if (!find_root(finder, data))
			continue;
		*found = finder->shape;
		err = take_node(finder, finder->root, 0, 0);
		*bad = finder->bad;
		return err;
	}
	return NULL;
}
