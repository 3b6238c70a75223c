// SPDX-License-Identifier: MIT
/*
 * retained.c: in this order:
 *
 *      keys        of each block the number of its class and size
 *      parents     of each block that which dominates it and is not of its group: the dominator, or where that has the
 *                  same key, its parent
 *      level by level   a block's node is found by its parent's node and its key. What a group retains is the sum of what
 *                  those of its blocks retain that no other one of it dominates
 *
 * Only the largest nodes of a level are followed, so that there are never many: 12 bytes a block are all that is needed.
 */
#include "heap/retained.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vector.h"
#include "heap/first_word.h"
#include "heap/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOWED 100u /* nodes of a level */
#define CHILDREN 20u  /* kept of a node */
#define NOBODY   UINT32_MAX

struct key {
	const char *class_name;
	uint64_t size;
};

struct keys {
	struct mw_index index;
	struct key *items;
	size_t capacity;
};

struct node {
	uint32_t parent; /* of level 0: NOBODY */
	uint32_t key;    /* of level 0: the number of what roots count to, or one of those behind */
	uint32_t level;
	bool followed;
	struct mw_amount retained, own;
};

struct tree {
	const struct mw_findings *found;
	size_t width; /* of roots so many are kept */
	struct keys keys;
	uint32_t *key_of, *parents, *nodes_of; /* by block */
	struct node *nodes;
	size_t node_count, node_capacity;
	struct mw_index index; /* of the nodes from `first` on, by parent and key */
	uint32_t first;
	uint32_t several, lost; /* the nodes of level 0 behind those of roots */
	/* Those that are kept, by their order in the tree. */
	uint32_t *kept;
	size_t kept_count, kept_capacity;
};

/* --- keys ----------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of_key(const void *context, uint32_t number)
{
	const struct key *key = &((const struct key *)context)[number];

	return (uint32_t)mw_hash_mix(mw_hash_add(mw_hash_add(0, (uintptr_t)key->class_name), key->size));
}

static struct mw_error *number_of_key(struct keys *keys, struct key key, uint32_t *out)
{
	uint32_t hash = hash_of_key(&key, 0);

	MW_INDEX_EACH(&keys->index, hash, *out)
		if (keys->items[*out].class_name == key.class_name && keys->items[*out].size == key.size)
			return NULL;
	if (!mw_index_reserve(&keys->index, hash_of_key, keys->items) ||
	    !MW_VECTOR_ROOM(keys->items, keys->index.count, keys->capacity))
		return mw_error_nomem();
	*out = mw_index_put(&keys->index, hash);
	keys->items[*out] = key;
	return NULL;
}

static struct mw_error *find_keys(struct tree *tree, struct mw_first_words *words)
{
	const struct mw_findings *found = tree->found;
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(found->blocks, &spans);
	struct mw_segment segment;

	MW_EACH(span, span_of, spans) {
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			struct key key = {.size = segment.size};
			uint64_t word;

			if (!segment.live)
				continue;
			MW_TRY(mw_first_word(words, found->image, segment.start, &word));
			MW_TRY(mw_classes_of_block(found->classes, segment.start, segment.size, word, &key.class_name));
			MW_TRY(number_of_key(&tree->keys, key, &tree->key_of[segment.number]));
		}
	}
	return NULL;
}

/* --- nodes ---------------------------------------------------------------------------------------------------------- */

static void find_parents(struct tree *tree)
{
	const struct mw_reached *reached = tree->found->reached;

	for (uint32_t i = 1; i < reached->order_count; i++) {
		uint32_t number = reached->order[i], dominator;

		if (number >= reached->count)
			continue;
		dominator = reached->dominators[number];
		tree->parents[number] = dominator < reached->count && tree->key_of[dominator] == tree->key_of[number]
						? tree->parents[dominator]
						: dominator;
	}
}

static uint32_t hash_of_node(const void *context, uint32_t number)
{
	const struct tree *tree = context;
	const struct node *node = &tree->nodes[tree->first + number];

	return (uint32_t)mw_hash_mix(mw_hash_add(mw_hash_add(0, node->parent), node->key));
}

/* A node of the level that is being made. */
static struct mw_error *node_of(struct tree *tree, uint32_t parent, uint32_t key, uint32_t *out)
{
	uint32_t hash = (uint32_t)mw_hash_mix(mw_hash_add(mw_hash_add(0, parent), key)), number;

	MW_INDEX_EACH(&tree->index, hash, number) {
		*out = tree->first + number;
		if (tree->nodes[*out].parent == parent && tree->nodes[*out].key == key)
			return NULL;
	}
	if (!mw_index_reserve(&tree->index, hash_of_node, tree) ||
	    !MW_VECTOR_ROOM(tree->nodes, tree->node_count, tree->node_capacity))
		return mw_error_nomem();
	*out = tree->first + mw_index_put(&tree->index, hash);
	tree->nodes[tree->node_count++] =
		(struct node){.parent = parent, .key = key, .level = tree->nodes[parent].level + 1};
	return NULL;
}

/* The node of what holds a block's group; NOBODY: it has none yet. */
static uint32_t holder_of(const struct tree *tree, uint32_t number)
{
	const struct mw_reached *reached = tree->found->reached;
	uint32_t parent = tree->parents[number];

	if (parent == MW_BLOCK_NONE)
		return mw_reached_is_held(reached, number) ? tree->several : tree->lost;
	return parent < reached->count ? tree->nodes_of[parent] : parent - reached->count;
}

static struct mw_amount retained_by(const struct mw_reached *reached, uint32_t number)
{
	return (struct mw_amount){reached->retained_blocks[number], reached->retained[number]};
}

/* Those of one level more. */
static struct mw_error *add_level(struct tree *tree, uint32_t level)
{
	const struct mw_reached *reached = tree->found->reached;

	mw_index_clear(&tree->index);
	tree->first = (uint32_t)tree->node_count;
	for (uint32_t number = 0; number < reached->count; number++) {
		uint32_t holder, node = NOBODY;

		if (tree->nodes_of[number] != NOBODY || tree->key_of[number] == NOBODY)
			continue;
		holder = holder_of(tree, number);
		if (holder == NOBODY || tree->nodes[holder].level != level - 1 || !tree->nodes[holder].followed)
			continue;
		MW_TRY(node_of(tree, holder, tree->key_of[number], &node));
		tree->nodes_of[number] = node;
		mw_amount_add(&tree->nodes[node].own,
			      (struct mw_amount){1, tree->keys.items[tree->key_of[number]].size});
		if (tree->parents[number] == reached->dominators[number])
			mw_amount_add(&tree->nodes[node].retained, retained_by(reached, number));
	}
	return NULL;
}

/* What roots retain, all together of several roots, and what is lost. */
static struct mw_error *add_roots(struct tree *tree)
{
	const struct mw_reached *reached = tree->found->reached;
	uint32_t count = reached->root_numbers + 2;

	tree->nodes = calloc(count, sizeof(*tree->nodes));
	if (!tree->nodes)
		return mw_error_nomem();
	tree->node_count = tree->node_capacity = count;
	tree->several = reached->root_numbers;
	tree->lost = reached->root_numbers + 1;
	for (uint32_t i = 0; i < count; i++) {
		tree->nodes[i] = (struct node){.parent = NOBODY, .key = i};
		if (i < reached->root_numbers)
			tree->nodes[i].retained = retained_by(reached, reached->count + i);
	}
	for (uint32_t number = 0; number < reached->count; number++)
		if (tree->key_of[number] != NOBODY && reached->dominators[number] == MW_BLOCK_NONE)
			mw_amount_add(&tree->nodes[holder_of(tree, number)].retained, retained_by(reached, number));
	return NULL;
}

/* --- the largest ---------------------------------------------------------------------------------------------------- */

/* The numbers of what roots count to are in no order: names are. */
static int by_size(const struct tree *tree, const struct node *x, const struct node *y)
{
	if (x->retained.bytes != y->retained.bytes)
		return x->retained.bytes > y->retained.bytes ? -1 : 1;
	if (x->retained.count != y->retained.count)
		return x->retained.count > y->retained.count ? -1 : 1;
	if (x->level == 0 && x->key < tree->several && y->key < tree->several)
		return strcmp(mw_root_name_of(tree->found->names, x->key), mw_root_name_of(tree->found->names, y->key));
	return x->key < y->key ? -1 : x->key > y->key;
}

static int by_retained(const void *a, const void *b, void *context)
{
	const struct tree *tree = context;

	return by_size(tree, &tree->nodes[*(const uint32_t *)a], &tree->nodes[*(const uint32_t *)b]);
}

/* By their holder, the largest first. */
static int by_parent(const void *a, const void *b, void *context)
{
	const struct tree *tree = context;
	const struct node *x = &tree->nodes[*(const uint32_t *)a], *y = &tree->nodes[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return by_size(tree, x, y);
}

/* Of the nodes from `first` on, those of each holder that are kept, as `numbers`. */
static size_t keep_largest(struct tree *tree, uint32_t first, uint32_t *numbers)
{
	size_t all = tree->node_count - first, limit = first ? CHILDREN : tree->width, kept = 0, of_one = 0;

	for (uint32_t i = 0; i < all; i++)
		numbers[i] = first + i;
	qsort_r(numbers, all, sizeof(*numbers), by_parent, tree);
	for (size_t i = 0; i < all; i++) {
		const struct node *node = &tree->nodes[numbers[i]];

		of_one = i > 0 && tree->nodes[numbers[i - 1]].parent == node->parent ? of_one + 1 : 0;
		if (of_one < limit && node->retained.count)
			numbers[kept++] = numbers[i];
	}
	return kept;
}

static struct mw_error *keep_and_follow(struct tree *tree, uint32_t first)
{
	size_t all = tree->node_count - first, count;
	MW_FREE uint32_t *numbers = malloc((all + 1) * sizeof(*numbers));

	if (!numbers)
		return mw_error_nomem();
	count = keep_largest(tree, first, numbers);
	qsort_r(numbers, count, sizeof(*numbers), by_retained, tree);
	for (size_t i = 0; i < count; i++) {
		if (!MW_VECTOR_ROOM(tree->kept, tree->kept_count, tree->kept_capacity))
			return mw_error_nomem();
		tree->kept[tree->kept_count++] = numbers[i];
		tree->nodes[numbers[i]].followed = i < FOLLOWED;
	}
	return NULL;
}

/* --- the report ----------------------------------------------------------------------------------------------------- */

static char *name_of(const struct tree *tree, const struct node *node)
{
	const struct key *key = &tree->keys.items[node->key];
	char *text = NULL;

	if (node->level == 0 && node->key == tree->several)
		return strdup("several roots");
	if (node->level == 0 && node->key == tree->lost)
		return strdup("nothing: lost blocks");
	if (node->level == 0)
		return strdup(mw_root_name_of(tree->found->names, node->key));
	if (key->class_name)
		return strdup(key->class_name);
	return asprintf(&text, "block of %" PRIu64 " bytes", key->size) < 0 ? NULL : text;
}

static struct mw_error *put(const struct tree *tree, uint32_t number, struct mw_heap_report *report)
{
	const struct node *node = &tree->nodes[number];
	struct mw_heap_holder *holder = &report->holders[report->holder_count];

	*holder = (struct mw_heap_holder){
		.name = name_of(tree, node), .depth = node->level, .retained = node->retained, .own = node->own};
	if (!holder->name)
		return mw_error_nomem();
	report->holder_count++;
	return NULL;
}

/* Each before what it holds. Of each level they are by size; a stack of where the search is in each. */
static struct mw_error *report_nodes(const struct tree *tree, struct mw_heap_report *report)
{
	size_t at[MW_HEAP_HOLDER_LEVELS] = {0}, end[MW_HEAP_HOLDER_LEVELS] = {0}, begin[MW_HEAP_HOLDER_LEVELS] = {0};
	uint32_t holder[MW_HEAP_HOLDER_LEVELS] = {NOBODY}, level = 0;

	report->holders = calloc(tree->kept_count + 1, sizeof(*report->holders));
	if (!report->holders)
		return mw_error_nomem();
	for (size_t i = 0; i < tree->kept_count; i++)
		end[tree->nodes[tree->kept[i]].level]++;
	for (unsigned i = 0; i < MW_HEAP_HOLDER_LEVELS; i++) {
		begin[i] = i ? end[i - 1] : 0;
		end[i] += begin[i];
	}
	while (true) {
		while (at[level] < end[level] && tree->nodes[tree->kept[at[level]]].parent != holder[level])
			at[level]++;
		if (at[level] < end[level]) {
			uint32_t number = tree->kept[at[level]++];

			MW_TRY(put(tree, number, report));
			if (level + 1 < MW_HEAP_HOLDER_LEVELS) {
				holder[++level] = number;
				at[level] = begin[level];
			}
		} else if (level-- == 0) {
			return NULL;
		}
	}
}

static struct mw_error *build(struct tree *tree, struct mw_heap_report *report)
{
	MW_TRY(add_roots(tree));
	MW_TRY(keep_and_follow(tree, 0));
	for (uint32_t level = 1; level < MW_HEAP_HOLDER_LEVELS; level++) {
		MW_TRY(add_level(tree, level));
		if (tree->node_count == tree->first)
			break;
		MW_TRY(keep_and_follow(tree, tree->first));
	}
	return report_nodes(tree, report);
}

static uint32_t *alloc_numbers(uint32_t count)
{
	uint32_t *numbers = malloc(((size_t)count + 1) * sizeof(*numbers));

	if (numbers)
		memset(numbers, 0xff, ((size_t)count + 1) * sizeof(*numbers));
	return numbers;
}

struct mw_error *mw_retained(const struct mw_findings *found, size_t width, struct mw_heap_report *report)
{
	struct tree tree = {.found = found, .width = width};
	struct mw_first_words words = {0};
	struct mw_error *err = mw_error_nomem();

	tree.key_of = alloc_numbers(found->reached->count);
	tree.parents = alloc_numbers(found->reached->count);
	tree.nodes_of = alloc_numbers(found->reached->count);
	if (tree.key_of && tree.parents && tree.nodes_of) {
		mw_error_destroy(err);
		err = find_keys(&tree, &words);
		if (!err) {
			find_parents(&tree);
			err = build(&tree, report);
		}
	}
	mw_first_words_deinit(&words);
	mw_index_deinit(&tree.keys.index);
	free(tree.keys.items);
	free(tree.key_of);
	free(tree.parents);
	free(tree.nodes_of);
	free(tree.nodes);
	mw_index_deinit(&tree.index);
	free(tree.kept);
	return err;
}
