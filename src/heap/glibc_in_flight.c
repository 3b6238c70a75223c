// SPDX-License-Identifier: MIT
/* glibc_in_flight.c: what threads inside glibc's malloc work on (glibc.h). */
#include "heap/glibc.h"

#include "alloc/glibc_layout.h"
#include "base/vector.h"

#include <string.h>

#define HAND_BYTES 1024u /* of a thread's stack, where functions of malloc keep what they work on */

bool mw_glibc_is_locked(const struct mw_glibc_walk *walk)
{
	uint32_t lock;

	if (glibc_read(&walk->process, walk->arenas.main.state, &lock, sizeof(lock)) && lock)
		return true;
	MW_EACH(arena, walk->arenas.arenas, walk->arenas.arena_count)
		if (glibc_read(&walk->process, arena->state, &lock, sizeof(lock)) && lock)
			return true;
	return false;
}

/* May the thread be inside malloc or free? One that waits in a system call is not, but for a lock. */
static bool may_be_inside(const struct mw_glibc_walk *walk, const struct mw_image_thread *thread)
{
	static const unsigned char syscall[] = {0x0f, 0x05};
	const struct mw_image_mapping *code = mw_image_mapping_of(walk->image, thread->pc);
	size_t count;
	const struct mw_heap_allocator *allocators = mw_blocks_allocators(walk->blocks, &count);
	bool inside = false;
	unsigned char before[2];

	MW_EACH(allocator, allocators, count)
		inside = inside || (code && allocator->walked && strcmp(allocator->module, code->path) == 0);
	if (!inside)
		return false;
	return walk->locked || !mw_image_read(walk->image, thread->pc - 2, before, sizeof(before)) ||
	       memcmp(before, syscall, sizeof(before)) != 0;
}

static bool begins(const struct mw_span *span, mw_addr at)
{
	uint64_t grain = (at - span->start) / GLIBC_ALIGNMENT;

	return span->begins && (at - span->start) % GLIBC_ALIGNMENT == 0 &&
	       span->begins[grain / 64] >> (grain % 64) & 1;
}

static struct mw_error *take_word(struct mw_glibc_walk *walk, uint64_t word)
{
	mw_addr block = word + MW_GLIBC_HEADER;
	size_t count;
	const struct mw_span *spans = mw_blocks_spans(walk->blocks, &count);

	if (word % GLIBC_ALIGNMENT || !mw_blocks_may_hold(walk->blocks, block))
		return NULL;
	MW_EACH(span, spans, count) {
		struct mw_segment segment = {0};
		mw_addr at = block;

		if (block < span->start || block >= span->end)
			continue;
		if (begins(span, block) && mw_span_next(span, &at, &segment) && segment.live) {
			(void)mw_blocks_set_live(walk->blocks, block, false);
			return mw_glibc_skip(walk, block, block + segment.size, "a thread allocates or frees it");
		}
		return NULL;
	}
	return NULL;
}

struct mw_error *mw_glibc_take_in_flight(struct mw_glibc_walk *walk)
{
	MW_EACH(thread, walk->image->threads, walk->image->thread_count) {
		uint64_t words[HAND_BYTES / 8];
		size_t count;

		if (!may_be_inside(walk, thread))
			continue;
		for (size_t i = 0; i < thread->register_count && i < MW_IMAGE_REGISTERS; i++)
			MW_TRY(take_word(walk, thread->registers[i]));
		count = mw_image_read_some(walk->image, thread->sp & ~UINT64_C(7), words, sizeof(words)) / 8;
		for (size_t i = 0; i < count; i++)
			MW_TRY(take_word(walk, words[i]));
	}
	return NULL;
}
