// SPDX-License-Identifier: MIT
/*
 * jemalloc_extents.c: jemalloc's radix tree, and the extents that it leads to (jemalloc.h).
 *
 * The tree has two levels where jemalloc was built for addresses of 48 bits (a leaf's element is one word: the size
 * class, the edata, state and flags), and three for 57 bits (edata and the rest are two words). An extent stands in it
 * at its first and last page, a slab at each of its pages.
 */
#include "heap/jemalloc.h"

#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define EDATA_ALIGNMENT 128u
#define LEVELS          3u    /* at most */
#define MAX_NODES       8192u /* of 1 GiB and more each */
#define PIECE           8192u /* words of a node that are read at once */
#define ADDRESS_LIMIT   (UINT64_C(1) << 47)
/* Of memory that may be a leaf but has nothing in it. */
#define MAX_LOOKED ((uint64_t)256 << 20)

/* e_bits of edata_t, 5.3 */
#define BITS_ARENA(bits) ((bits)&0xfff)
#define BITS_SLAB(bits)  ((bits) >> 12 & 1)
#define BITS_STATE(bits) ((bits) >> 17 & 7)
#define BITS_CLASS(bits) ((bits) >> 20 & 0xff)
#define MAX_STATE        5u

struct edata {
	uint64_t bits, addr, size, ps, sn;
};

struct tree {
	unsigned levels;
	unsigned bits[LEVELS];  /* of a page's number, by level */
	unsigned element_words; /* of a leaf */
};

static const struct tree trees[] = {{2, {18, 18}, 1}, {3, {15, 15, 15}, 2}};

struct finder {
	struct je_heap *heap;
	const struct tree *tree;
	mw_addr root;
	uint64_t *pieces[LEVELS]; /* one for each level */
	mw_addr last;             /* edata that was looked at last */
	mw_addr nodes[MAX_NODES]; /* that were gone through */
	size_t node_count;
	uint64_t looked;
};

static bool read_edata(struct je_heap *heap, mw_addr at, struct edata *out)
{
	if (!at || at % 8 || !mw_reader_read(heap->reader, at, out, sizeof(*out)))
		return false;
	out->size &= ~(JE_PAGE - 1);
	return out->addr >= JE_PAGE && out->addr < ADDRESS_LIMIT && out->size && out->size < ADDRESS_LIMIT &&
	       BITS_STATE(out->bits) <= MAX_STATE && BITS_CLASS(out->bits) <= JE_SIZE_CLASSES;
}

static mw_addr base_of(const struct edata *edata)
{
	return edata->addr & ~(JE_PAGE - 1);
}

/* The edata that an element of a leaf leads to. */
static mw_addr edata_of(uint64_t word, const struct tree *tree)
{
	return (tree->levels == 2 ? word & ((UINT64_C(1) << 48) - 1) : word) & ~(mw_addr)(EDATA_ALIGNMENT - 1);
}

/* Memory that jemalloc itself has mapped. */
static bool is_base_memory(const struct je_heap *heap, mw_addr at)
{
	const struct mw_image_mapping *mapping = at && at % 64 == 0 ? mw_image_mapping_of(heap->image, at) : NULL;

	return mapping && mapping->write && mapping->read && !mapping->shared && !mapping->inode;
}

/* --- the root ----------------------------------------------------------------------------------------------------------- */

static size_t node_words(const struct tree *tree, unsigned level)
{
	return ((size_t)1 << tree->bits[level]) * (level + 1 == tree->levels ? tree->element_words : 1);
}

/* The first word of a node that is not 0, and its index; false: none. */
static bool first_word(struct finder *finder, mw_addr node, unsigned level, size_t *index, uint64_t *word)
{
	mw_addr end = node + node_words(finder->tree, level) * 8, from, to;
	uint64_t *piece = finder->pieces[level];

	for (mw_addr at = node;
	     mw_image_next_present(finder->heap->image, at, end, &from, &to) && finder->looked < MAX_LOOKED;) {
		size_t size = to - from < PIECE * 8 ? (size_t)(to - from) : PIECE * 8;
		size_t got = mw_image_read_some(finder->heap->image, from, piece, size) / 8;

		finder->looked += size;
		for (size_t i = 0; i < got; i++)
			if (piece[i]) {
				*index = (from - node) / 8 + i;
				*word = piece[i];
				return true;
			}
		if (got * 8 < size)
			return false;
		at = from + size;
	}
	return false;
}

/*
 * Is the word at `at` an element of the root, whose value is `node`? Then the first extent that it leads to says where
 * in the tree it stands, and so where the root begins.
 */
static bool leads_to_root(struct finder *finder, mw_addr at, mw_addr node)
{
	uint64_t page = 0, word = node;
	struct edata edata;
	unsigned low = 0;

	for (unsigned level = 1; level < finder->tree->levels; level++) {
		size_t index;

		if (!is_base_memory(finder->heap, word) || !first_word(finder, word, level, &index, &word))
			return false;
		if (level + 1 == finder->tree->levels) {
			if (index % finder->tree->element_words)
				return false;
			index /= finder->tree->element_words;
		}
		page = page << finder->tree->bits[level] | index;
		low += finder->tree->bits[level];
	}
	if (!read_edata(finder->heap, edata_of(word, finder->tree), &edata))
		return false;
	page |= (base_of(&edata) / JE_PAGE) >> low << low;
	/* The first page there is its first one, or its last where it began below the node. */
	if (page * JE_PAGE != base_of(&edata)) {
		page += UINT64_C(1) << low;
		if (page * JE_PAGE < base_of(&edata) || page * JE_PAGE >= base_of(&edata) + edata.size)
			return false;
	}
	finder->root = at - (page >> low) * 8;
	return true;
}

/* All of the root is in the data, and what is not 0 in it is a node. */
static bool is_root(struct finder *finder)
{
	const struct mw_image *image = finder->heap->image;
	mw_addr end = finder->root + node_words(finder->tree, 0) * 8, from, to;
	const struct mw_image_mapping *first = mw_image_mapping_of(image, finder->root);
	const struct mw_image_mapping *last = mw_image_mapping_of(image, end - 1);
	uint64_t *piece = finder->pieces[0];

	if (!first || !last || first < image->mappings + finder->heap->file->first ||
	    last >= image->mappings + finder->heap->file->end)
		return false;
	for (mw_addr at = finder->root; mw_image_next_present(image, at, end, &from, &to);) {
		size_t size = to - from < PIECE * 8 ? (size_t)(to - from) : PIECE * 8;
		size_t got = mw_image_read_some(image, from, piece, size) / 8;

		for (size_t i = 0; i < got; i++)
			if (piece[i] && !is_base_memory(finder->heap, piece[i]))
				return false;
		if (got * 8 < size)
			return false;
		at = from + size;
	}
	return true;
}

static bool find_root(struct finder *finder, struct mw_walk_data *data)
{
	*data = (struct mw_walk_data){
		.image = finder->heap->image, .file = finder->heap->file, .mapping = finder->heap->file->first};
	while (mw_walk_next_data(data))
		for (size_t i = 0; i < data->count; i++)
			if (data->words[i] && data->words[i] % 64 == 0 &&
			    leads_to_root(finder, data->start + i * 8, data->words[i]) && is_root(finder))
				return true;
	return false;
}

/* --- all extents ---------------------------------------------------------------------------------------------------------- */

static struct mw_error *add_extent(struct je_heap *heap, mw_addr at, const struct edata *edata)
{
	mw_addr start = base_of(edata);

	if (heap->extent_count && heap->extents[heap->extent_count - 1].end > start) {
		heap->strange++;
		return NULL;
	}
	if (!MW_VECTOR_ROOM(heap->extents, heap->extent_count, heap->extent_capacity))
		return mw_error_nomem();
	heap->extents[heap->extent_count++] = (struct je_extent){
		.start = start,
		.end = start + edata->size,
		.block = edata->addr,
		.edata = at,
		.span = MW_BLOCK_NONE,
		.arena = (uint16_t)BITS_ARENA(edata->bits),
		.size_class = (uint8_t)BITS_CLASS(edata->bits),
		.state = (uint8_t)BITS_STATE(edata->bits),
		.slab = BITS_SLAB(edata->bits),
	};
	return NULL;
}

/* An element of a leaf, which is for `page`. */
static struct mw_error *take_element(struct finder *finder, uint64_t word, uint64_t page)
{
	mw_addr at = edata_of(word, finder->tree), start = page * JE_PAGE;
	struct edata edata;

	/* One that was cleared has a size class of none. */
	if (!at || at == finder->last)
		return NULL;
	finder->last = at;
	if (!read_edata(finder->heap, at, &edata)) {
		finder->heap->strange++;
		return NULL;
	}
	if (base_of(&edata) == start)
		return add_extent(finder->heap, at, &edata);
	/* Its first page did not lead to it, or it is no longer what was here. */
	finder->heap->strange++;
	return NULL;
}

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

/* Goes through a node; `page` is what the levels above say of the pages' numbers. */
static struct mw_error *take_node(struct finder *finder, mw_addr node, unsigned level, uint64_t page)
{
	const struct tree *tree = finder->tree;
	bool leaf = level + 1 >= tree->levels || level + 1 >= LEVELS;
	size_t step = leaf ? tree->element_words : 1;
	mw_addr end = node + node_words(tree, level) * 8, from, to;
	uint64_t *piece = finder->pieces[level];

	page <<= tree->bits[level];
	for (mw_addr at = node; mw_image_next_present(finder->heap->image, at, end, &from, &to);) {
		size_t size = to - from < PIECE * 8 ? (size_t)(to - from) : PIECE * 8;
		size_t got = mw_image_read_some(finder->heap->image, from, piece, size) / 8;
		uint64_t index = (from - node) / 8;

		for (size_t i = index % step; i < got; i += step) {
			if (!piece[i])
				continue;
			if (leaf)
				MW_TRY(take_element(finder, piece[i], page | (index + i) / step));
			else if (is_base_memory(finder->heap, piece[i]) && is_new(finder, piece[i]))
				MW_TRY(take_node(finder, piece[i], level + 1, page | (index + i)));
			else
				finder->heap->strange++;
		}
		if (got * 8 < size) {
			finder->heap->strange++;
			break;
		}
		at = from + size;
	}
	return NULL;
}

static struct mw_error *find(struct finder *finder, bool *found)
{
	MW_FREE struct mw_walk_data *data = malloc(sizeof(*data));

	if (!data)
		return mw_error_nomem();
	*found = false;
	for (size_t i = 0; i < sizeof(trees) / sizeof(*trees) && !*found; i++) {
		finder->tree = &trees[i];
		*found = find_root(finder, data);
	}
	return *found ? take_node(finder, finder->root, 0, 0) : NULL;
}

struct mw_error *je_extents_find(struct je_heap *heap, bool *found)
{
	MW_FREE uint64_t *pieces = malloc(LEVELS * PIECE * sizeof(*pieces));
	MW_FREE struct finder *finder = calloc(1, sizeof(*finder));

	if (!pieces || !finder)
		return mw_error_nomem();
	finder->heap = heap;
	for (size_t i = 0; i < LEVELS; i++)
		finder->pieces[i] = pieces + i * PIECE;
	return find(finder, found);
}

const struct je_extent *je_extent_of(const struct je_heap *heap, mw_addr addr)
{
	size_t count = mw_vector_up_to(heap->extents, heap->extent_count, sizeof(*heap->extents),
				       offsetof(struct je_extent, start), addr);

	return count && addr < heap->extents[count - 1].end ? &heap->extents[count - 1] : NULL;
}
