// SPDX-License-Identifier: MIT
/* rows.c: the row of a pc, found in what memwatch has published (recorder.h, memwatch/ring.h). */
#include "stub/recorder.h"

/* Nothing outside the shared memory is read, whatever stands there. */
const struct mw_ring_code *stub_code_find(struct mw_ring_control *control, uint64_t at)
{
	uint64_t offset = __atomic_load_n(&control->index, __ATOMIC_ACQUIRE), size = control->size, low = 0, high;
	const struct mw_ring_index *index;

	if (offset == 0 || offset & 7 || size < sizeof(*index) || offset > size - sizeof(*index))
		return NULL;
	index = stub_at(control, offset);
	high = (size - offset - sizeof(*index)) / sizeof(index->code[0]);
	if (index->count < high)
		high = index->count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (index->code[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && at < index->code[low - 1].end ? &index->code[low - 1] : NULL;
}

/* NONE where the code's rows don't say. */
static uint64_t find_in(struct mw_ring_control *control, const struct mw_ring_code *code, uint64_t at)
{
	uint64_t size = control->size, offset = code->rows, low = 0, high, dictionary_count = control->dictionary_count;
	const uint64_t *dictionary = stub_at(control, control->dictionary);
	const struct mw_ring_row *rows;

	if (code->count == 0)
		return MW_ROW_NONE;
	if (offset & 3 || offset > size || at < code->base || at - code->base > UINT32_MAX)
		return MW_ROW_NONE;
	rows = stub_at(control, offset);
	high = (size - offset) / sizeof(*rows);
	if (code->count < high)
		high = code->count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (rows[middle].pc <= at - code->base)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || rows[low - 1].row >= dictionary_count ||
	    rows[low - 1].row >= (size - control->dictionary) / sizeof(uint64_t))
		return MW_ROW_NONE;
	return dictionary[rows[low - 1].row];
}

/* What memwatch has found of a pc since; else `row`. */
static uint64_t find_learned(struct mw_ring_control *control, uint64_t pc, uint64_t row)
{
	const struct mw_ring_cached_row *learned = stub_at(control, control->learned);
	uint32_t first = mw_ring_learned_first(pc);

	if (!__atomic_load_n(&control->learned_any, __ATOMIC_ACQUIRE))
		return row;
	for (uint32_t i = 0; i < MW_RING_PROBES; i++) {
		const struct mw_ring_cached_row *entry = &learned[(first + i) & (MW_RING_LEARNED - 1)];
		uint64_t known = __atomic_load_n(&entry->row, __ATOMIC_RELAXED);
		uint64_t tag = __atomic_load_n(&entry->tag, __ATOMIC_RELAXED);

		if (!known && !tag)
			break;
		if ((tag ^ known) == pc)
			return known;
	}
	return row;
}

STUB_RARE uint64_t stub_row_find(struct mw_ring_control *control, uint64_t pc)
{
	struct mw_ring_cached_row *cache = stub_at(control, control->cache);
	struct mw_ring_cached_row *entry = &cache[(pc ^ pc >> 16) & (control->cache_count - 1)];
	uint64_t generation = __atomic_load_n(&control->generation, __ATOMIC_ACQUIRE), row = MW_ROW_NONE;
	const struct mw_ring_code *code;

	if (pc == (uint64_t)(uintptr_t)mw_stub_returned) {
		row = mw_row(MW_ROW_OURS, STUB_LINK_SIZE, MW_ROW_FP_SAME, 0);
	} else if ((code = stub_code_find(control, pc - 1))) {
		row = find_in(control, code, pc - 1);
		if (mw_row_kind(row) == MW_ROW_NONE)
			row = code->whole;
		row = find_learned(control, pc, row);
	}
	/* A frame has its return address, and a stack pointer is a multiple of 8. */
	if (mw_row_kind(row) == MW_ROW_SP && (mw_row_n(row) < 8 || mw_row_n(row) & 7))
		return mw_row(MW_ROW_SLOW, 0, MW_ROW_FP_SAME, 0);
	/* That may be learned at any time. */
	if (mw_row_kind(row) == MW_ROW_SLOW || mw_row_kind(row) == MW_ROW_ASK)
		return row;
	__atomic_store_n(&entry->row, row, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->tag, row ^ pc ^ generation << 48, __ATOMIC_RELAXED);
	return row;
}
