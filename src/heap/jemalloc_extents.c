// SPDX-License-Identifier: MIT
/*
 * jemalloc_extents.c: the extents that jemalloc's radix tree leads to (jemalloc.h).
 *
 * The tree has two levels where jemalloc was built for addresses of 48 bits (a leaf's element is one word: the size
 * class, the edata, state and flags), and three for 57 bits (edata and the rest are two words). An extent stands in it
 * at its first and last page, a slab at each of its pages; one that is gone has left elements without an edata.
 */
#include "heap/jemalloc.h"
#include "heap/radix.h"

#include "base/vector.h"

#include <stdlib.h>

#define EDATA_ALIGNMENT 128u
#define ADDRESS_LIMIT   (UINT64_C(1) << 47)

/* e_bits of edata_t, 5.3 */
#define BITS_ARENA(bits) ((bits)&0xfff)
#define BITS_SLAB(bits)  ((bits) >> 12 & 1)
#define BITS_STATE(bits) ((bits) >> 17 & 7)
#define BITS_CLASS(bits) ((bits) >> 20 & 0xff)
#define MAX_STATE        5u

struct edata {
	uint64_t bits, addr, size, ps, sn;
};

static bool read_edata(struct je_heap *heap, mw_addr at, struct edata *out)
{
	if (!at || !mw_reader_read(heap->reader, at, out, sizeof(*out)))
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
static mw_addr edata_of(uint64_t element)
{
	return element & ((UINT64_C(1) << 48) - 1) & ~(mw_addr)(EDATA_ALIGNMENT - 1);
}

static bool range_of(void *context, uint64_t element, mw_addr *start, mw_addr *end)
{
	struct edata edata;

	if (!read_edata(context, edata_of(element), &edata))
		return false;
	*start = base_of(&edata);
	*end = *start + edata.size;
	return true;
}

static struct mw_error *add_extent(struct je_heap *heap, mw_addr at, const struct edata *edata)
{
	mw_addr start = base_of(edata);

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

static struct mw_error *take_element(void *context, uint64_t element, mw_addr page)
{
	struct je_heap *heap = context;
	mw_addr at = edata_of(element);
	struct edata edata;

	if (!at || (heap->extent_count && page < heap->extents[heap->extent_count - 1].end))
		return NULL;
	if (read_edata(heap, at, &edata) && base_of(&edata) == page &&
	    mw_walk_is_mapped(heap->image, page, page + edata.size))
		return add_extent(heap, at, &edata);
	heap->strange++;
	return NULL;
}

struct mw_error *je_extents_find(struct je_heap *heap, bool *found)
{
	static const struct mw_radix_shape shapes[] = {{2, {18, 18}, 1, 12}, {3, {15, 15, 15}, 2, 12}};
	const struct mw_radix radix = {heap->image, heap->file, range_of, take_element, heap};
	const struct mw_radix_shape *shape;
	uint64_t bad;

	MW_TRY(mw_radix_walk(&radix, shapes, sizeof(shapes) / sizeof(*shapes), &shape, &bad));
	heap->strange += bad;
	*found = shape != NULL;
	return NULL;
}

const struct je_extent *je_extent_of(const struct je_heap *heap, mw_addr addr)
{
	size_t count = mw_vector_up_to(heap->extents, heap->extent_count, sizeof(*heap->extents),
				       offsetof(struct je_extent, start), addr);

	return count && addr < heap->extents[count - 1].end ? &heap->extents[count - 1] : NULL;
}
