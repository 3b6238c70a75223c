// SPDX-License-Identifier: MIT
/* change.c: two looks and a window in between (change.h). */
#include "heap/change.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define WORD 64u

struct mw_change {
	struct mw_survey_input before, after;
	uint64_t *recorded;      /* by number of the later look's segments: a block of the window's */
	uint64_t blocks, mapped; /* resident bytes of all that were given */
};

/* Of blocks that the window has not recorded. */
struct others {
	uint64_t freed;        /* that were there before, and are no more: what was resident of them then */
	int64_t touched;       /* that are there in both: what is resident of them more than it was */
	uint64_t not_recorded; /* that are new, and the window does not know of */
};

static bool has(const uint64_t *bits, uint32_t number)
{
	return bits[number / WORD] >> number % WORD & 1;
}

static void set(uint64_t *bits, uint32_t number)
{
	bits[number / WORD] |= UINT64_C(1) << number % WORD;
}

static uint64_t *bits_for(const struct mw_blocks *blocks)
{
	return calloc(mw_blocks_segments(blocks) / WORD + 1, sizeof(uint64_t));
}

struct mw_error *mw_change_create(const struct mw_survey_input *before, const struct mw_survey_input *after,
				  struct mw_change **out)
{
	struct mw_change *change = calloc(1, sizeof(*change));

	if (!change)
		return mw_error_nomem();
	*change = (struct mw_change){.before = *before, .after = *after, .recorded = bits_for(after->blocks)};
	if (!change->recorded) {
		mw_change_destroy(change);
		return mw_error_nomem();
	}
	*out = change;
	return NULL;
}

void mw_change_destroy(struct mw_change *change)
{
	if (!change)
		return;
	free(change->recorded);
	free(change);
}

static uint64_t resident_of(const struct mw_survey_input *look, mw_addr start, uint64_t size)
{
	return mw_image_residence(look->image, start, start + size).resident;
}

uint64_t mw_change_block(struct mw_change *change, mw_addr addr)
{
	struct mw_block block;
	uint64_t bytes;

	if (!mw_blocks_find(change->after.blocks, addr, &block) || block.start != addr ||
	    has(change->recorded, block.number))
		return 0;
	set(change->recorded, block.number);
	bytes = resident_of(&change->after, block.start, block.size);
	change->blocks += bytes;
	return bytes;
}

uint64_t mw_change_mapping(struct mw_change *change, mw_addr start, mw_addr end)
{
	uint64_t bytes = mw_survey_mapped(&change->after, start, end);

	change->mapped += bytes;
	return bytes;
}

/* Blocks of the later look; those that the earlier one has as well are set in `kept`, by its numbers. */
static void add_later(const struct mw_change *change, uint64_t *kept, struct others *others)
{
	const struct mw_blocks *before = change->before.blocks;
	size_t count;
	const struct mw_span *spans = mw_blocks_spans(change->after.blocks, &count);

	MW_EACH(span, spans, count) {
		struct mw_segment segment;

		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);) {
			struct mw_block old;
			uint64_t bytes;

			if (!segment.live || has(change->recorded, segment.number))
				continue;
			bytes = resident_of(&change->after, segment.start, segment.size);
			if (mw_blocks_find(before, segment.start, &old) && old.start == segment.start) {
				set(kept, old.number);
				others->touched +=
					(int64_t)bytes - (int64_t)resident_of(&change->before, old.start, old.size);
			} else {
				others->not_recorded += bytes;
			}
		}
	}
}

static void add_earlier(const struct mw_change *change, const uint64_t *kept, struct others *others)
{
	size_t count;
	const struct mw_span *spans = mw_blocks_spans(change->before.blocks, &count);

	MW_EACH(span, spans, count) {
		struct mw_segment segment;

		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			if (segment.live && !has(kept, segment.number))
				others->freed += resident_of(&change->before, segment.start, segment.size);
	}
}

static struct mw_error *add_others(const struct mw_change *change, struct others *others)
{
	uint64_t *kept = bits_for(change->before.blocks);

	if (!kept)
		return mw_error_nomem();
	add_later(change, kept, others);
	add_earlier(change, kept, others);
	free(kept);
	return NULL;
}

/* --- lines of the accounts that are no blocks ------------------------------------------------------------------------ */

static enum mw_heap_change_kind kind_of(const struct mw_heap_line *line)
{
	if (line->name == mw_survey_free || line->name == mw_survey_bookkeeping)
		return MW_HEAP_CHANGE_ALLOCATOR;
	return line->name == mw_survey_own ? MW_HEAP_CHANGE_REST : MW_HEAP_CHANGE_MAPPINGS;
}

static const struct mw_heap_line *find_line(const struct mw_heap_report *report, const struct mw_heap_line *like)
{
	MW_EACH(line, report->lines, report->line_count)
		if (line->name == like->name && strcmp(line->detail, like->detail) == 0)
			return line;
	return NULL;
}

struct visit {
	struct mw_error *(*visit)(void *context, const struct mw_heap_change *part);
	void *context;
	int64_t sum; /* of what was visited */
};

static struct mw_error *give(struct visit *to, enum mw_heap_change_kind kind, const char *name, const char *detail,
			     int64_t bytes)
{
	const struct mw_heap_change part = {.kind = kind, .name = name, .detail = detail, .bytes = bytes};

	to->sum += bytes;
	return bytes ? to->visit(to->context, &part) : NULL;
}

static bool is_apart(const struct mw_heap_line *line)
{
	return line->name == mw_survey_live || line->name == mw_survey_anonymous;
}

static int64_t sum_of(const struct mw_heap_report *report, const char *name)
{
	int64_t sum = 0;

	MW_EACH(line, report->lines, report->line_count)
		sum += line->name == name ? (int64_t)line->bytes : 0;
	return sum;
}

static struct mw_error *give_lines(const struct mw_change *change, const struct mw_heap_report *old_report,
				   const struct mw_heap_report *new_report, struct visit *to)
{
	MW_EACH(line, new_report->lines, new_report->line_count) {
		const struct mw_heap_line *old = find_line(old_report, line);

		if (!is_apart(line))
			MW_TRY(give(to, kind_of(line), line->name, line->detail,
				    (int64_t)line->bytes - (int64_t)(old ? old->bytes : 0)));
	}
	MW_EACH(line, old_report->lines, old_report->line_count)
		if (!is_apart(line) && !find_line(new_report, line))
			MW_TRY(give(to, kind_of(line), line->name, line->detail, -(int64_t)line->bytes));
	/* What the window has recorded of it is known by who made it. */
	return give(to, MW_HEAP_CHANGE_MAPPINGS, mw_survey_anonymous, "",
		    sum_of(new_report, mw_survey_anonymous) - sum_of(old_report, mw_survey_anonymous) -
			    (int64_t)change->mapped);
}

struct mw_error *mw_change_rest(const struct mw_change *change, const struct mw_heap_report *old,
				const struct mw_heap_report *new,
				struct mw_error *(*visit)(void *context, const struct mw_heap_change *part),
				void *context)
{
	struct visit to = {visit, context, (int64_t)(change->blocks + change->mapped)};
	struct others others = {0};

	MW_TRY(add_others(change, &others));
	MW_TRY(give(&to, MW_HEAP_CHANGE_FREED, "older blocks freed", "", -(int64_t)others.freed));
	MW_TRY(give_lines(change, old, new, &to));
	MW_TRY(give(&to, MW_HEAP_CHANGE_REST, "older blocks, touched since or swapped", "", others.touched));
	MW_TRY(give(&to, MW_HEAP_CHANGE_REST, "new blocks that the window has not recorded", "",
		    (int64_t)others.not_recorded));
	/* Nothing, unless the looks themselves do not add up. */
	return give(&to, MW_HEAP_CHANGE_REST, "not explained", "", (int64_t) new->rss - (int64_t)old->rss - to.sum);
}
