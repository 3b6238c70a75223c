// SPDX-License-Identifier: MIT
/*
 * script.c: the frames of the interpreter that the thread runs (memwatch/script.h), read where memwatch says that memory
 * can be read, and nowhere else (recorder.h).
 */
#include "stub/recorder.h"

#define LOOKS 4 /* at reading ranges that change */

/* The range that holds the word at `addr`; false: none does, or they keep on changing. */
static bool look_up(const struct mw_ring_control *control, uint64_t addr, struct mw_ring_region *out)
{
	const struct mw_ring_script *script = &control->script;
	const struct mw_ring_region *ranges = (const void *)((const uint8_t *)control + script->ranges);

	for (unsigned attempt = 0; attempt < LOOKS; attempt++) {
		uint32_t before = __atomic_load_n(&script->sequence, __ATOMIC_ACQUIRE), low = 0;
		uint32_t high = __atomic_load_n(&script->range_count, __ATOMIC_RELAXED);
		struct mw_ring_region found = {0, 0};

		if (before & 1) {
			cpu_pause();
			continue;
		}
		if (high > MW_RING_SCRIPT_RANGES)
			return false;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (__atomic_load_n(&ranges[middle].low, __ATOMIC_RELAXED) <= addr)
				low = middle + 1;
			else
				high = middle;
		}
		if (low) {
			found.low = __atomic_load_n(&ranges[low - 1].low, __ATOMIC_RELAXED);
			found.high = __atomic_load_n(&ranges[low - 1].high, __ATOMIC_RELAXED);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&script->sequence, __ATOMIC_RELAXED) != before)
			continue;
		*out = found;
		return found.low <= addr && addr < found.high;
	}
	return false;
}

/* Ranges begin and end at pages. */
static inline bool holds(const struct mw_ring_region *region, uint64_t addr)
{
	return addr - region->low < region->high - region->low;
}

STUB_RARE void stub_script_forget(struct mw_ring_control *control, uint64_t start, uint64_t end)
{
	struct mw_ring_region *ranges = stub_at(control, control->script.ranges);
	uint32_t count = __atomic_load_n(&control->script.range_count, __ATOMIC_RELAXED);

	if (!count || count > MW_RING_SCRIPT_RANGES || start >= end)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t low = __atomic_load_n(&ranges[i].low, __ATOMIC_RELAXED);

		if (low >= end)
			return;
		if (__atomic_load_n(&ranges[i].high, __ATOMIC_RELAXED) > start)
			__atomic_store_n(&ranges[i].high, start > low ? start : low, __ATOMIC_RELAXED);
	}
}

static STUB_RARE bool find_range(struct stub_reader *reader, uint64_t addr)
{
	struct mw_ring_region found;

	if (!look_up(reader->visit->control, addr, &found)) {
		/* Once a walk: what is invalid is not asked for again and again. */
		if (reader->asked)
			return false;
		reader->asked = true;
		stub_ask_script(reader->visit, addr);
		if (!look_up(reader->visit->control, addr, &found)) {
			reader->visit->slot->ask = MW_RING_ASK_REFUSED;
			return false;
		}
	}
	reader->near[reader->next++ & (STUB_NEAR - 1)] = found;
	return true;
}

static inline bool read_word(void *context, uint64_t addr, uint64_t *word)
{
	struct stub_reader *reader = context;

	if (unlikely(addr & 7))
		return false;
	if (unlikely(!holds(&reader->near[0], addr)) && !holds(&reader->near[1], addr) &&
	    !holds(&reader->near[2], addr) && !holds(&reader->near[3], addr) && !find_range(reader, addr))
		return false;
	*word = stub_read(addr);
	return true;
}

STUB_RARE uint32_t stub_script(struct stub_visit *visit, struct mw_script_ref *refs, uint64_t *hash)
{
	const struct mw_ring_script *script = &visit->control->script;
	struct stub_reader reader = {.visit = visit};
	uint64_t state, sum = 0;
	uint32_t count = 0;
	bool cut;

	*hash = 0;
	/* No thread has said yet where its state is: it was not there when memwatch looked. */
	if (unlikely(!script->place.own && !script->place.current)) {
		stub_ask_script(visit, MW_RING_ASK_PLACE);
		if (!script->place.own && !script->place.current) {
			visit->slot->ask = MW_RING_ASK_REFUSED;
			return 0;
		}
	}
	state = mw_script_state(&script->layout, &script->place, read_word, &reader, visit->slot->owner);
	if (!state)
		return 0;
	count = mw_script_frames(&script->layout, read_word, &reader, state, refs, script->frames, &cut);
	for (uint32_t i = 0; i < count; i++)
		sum = mw_script_mix(mw_script_mix(sum, refs[i].code ^ refs[i].check), refs[i].at);
	sum = mw_script_mix(sum, cut);
	*hash = count ? sum | 1 : 0;
	return count | (count && cut ? MW_RING_SCRIPT_CUT : 0);
}

STUB_RARE void stub_script_learn(struct stub_visit *visit, const struct mw_script_ref *refs, uint32_t count)
{
	const uint64_t *codes = stub_at(visit->control, visit->control->script.codes);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = mw_script_key(&refs[i]);

		if (refs[i].code & ~MW_SCRIPT_LAST &&
		    __atomic_load_n(&codes[mw_ring_script_code(key)], __ATOMIC_RELAXED) != key) {
			stub_ask_script(visit, MW_RING_ASK_CODES | count);
			return;
		}
	}
}

STUB_RARE bool stub_javascript(struct stub_reader *reader, uint64_t fp, bool made, struct mw_javascript *out)
{
	const struct mw_javascript_layout *layout = &reader->visit->control->script.javascript;

	out->at = 0;
	if (!(stub_read(fp + (uint64_t)MW_JAVASCRIPT_CONTEXT) & 1))
		return false;
	if (!made && !mw_javascript_place(layout, read_word, reader, stub_read(fp + (uint64_t)MW_JAVASCRIPT_BYTECODE),
					  stub_read(fp + (uint64_t)MW_JAVASCRIPT_OFFSET), &out->at))
		return false;
	return mw_javascript_of(layout, read_word, reader, stub_read(fp + (uint64_t)MW_JAVASCRIPT_FUNCTION), out);
}

STUB_RARE void stub_javascript_learn(struct stub_visit *visit, const uint64_t *frames, uint32_t count)
{
	const uint64_t *codes = stub_at(visit->control, visit->control->script.codes);

	for (uint32_t i = 0; i < count; i++) {
		struct mw_javascript frame;
		uint64_t pc = frames[i], key;

		if (!(pc & MW_JAVASCRIPT_FRAME) || count - i < MW_JAVASCRIPT_KEPT)
			continue;
		frame = (struct mw_javascript){frames[i + 1], frames[i + 2], frames[i + 3]};
		i += MW_JAVASCRIPT_WORDS;
		key = mw_javascript_key(&frame, pc & ~MW_JAVASCRIPT_FRAME);
		if (__atomic_load_n(&codes[mw_ring_script_code(key)], __ATOMIC_RELAXED) != key) {
			stub_ask_javascript(visit, count);
			return;
		}
	}
}
