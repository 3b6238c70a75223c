// SPDX-License-Identifier: MIT
/* json_stack.c: the values that a report's objects are made of, up to a whole stack. */
#include "output/json.h"
#include "output/json_frames.h"
#include "output/utf8.h"

#include <stdlib.h>
#include <string.h>

json_t *mw_json_text(const char *text)
{
	json_t *value;
	char *repaired;

	if (!text)
		return json_null();
	/* jansson checks: it refuses what needs repair, which is rare. */
	value = json_string(text);
	if (value)
		return value;
	repaired = mw_utf8_repair(text);
	if (!repaired)
		return NULL;
	value = json_string(repaired);
	free(repaired);
	return value;
}

json_t *mw_json_number(uint64_t number)
{
	return number > INT64_MAX ? json_null() : json_integer((json_int_t)number);
}

json_t *mw_json_amount(const struct mw_amount *amount)
{
	return json_pack("{s:o, s:o}", "count", mw_json_number(amount->count), "bytes", mw_json_number(amount->bytes));
}

json_t *mw_json_peak(const struct mw_report_peak *peak)
{
	return json_pack("{s:o, s:o, s:f}", "bytes", mw_json_number(peak->bytes), "count", mw_json_number(peak->count),
			 "at", peak->at);
}

const char *mw_json_kind(enum mw_kind kind)
{
	switch (kind) {
	case MW_KIND_HEAP:
		return "heap";
	case MW_KIND_VM:
		return "vm";
	case MW_KIND_VM_INTERNAL:
		return "vm-internal";
	case MW_KIND_COUNT:
		break;
	}
	return "unknown";
}

json_t *mw_json_frame(const struct mw_report_frame *frame)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "function", mw_json_text(frame->function), "module",
			 mw_json_text(frame->module), "offset", mw_json_number(frame->offset), "address",
			 mw_json_number(frame->address), "file", mw_json_text(frame->file), "line",
			 frame->line ? mw_json_number(frame->line) : json_null(), "inlined", frame->inlined);
}

json_t *mw_json_frames(const struct mw_report_frame *frames, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < count; i++) {
		if (json_array_append_new(array, mw_json_frame(&frames[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *threads_value(const struct mw_report_stack *stack)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < stack->thread_count; i++) {
		const struct mw_report_thread *thread = &stack->threads[i];
		json_t *value = json_pack("{s:i, s:o, s:o}", "tid", thread->tid, "name", mw_json_text(thread->name),
					  "impacting", mw_json_amount(&thread->impacting));

		if (json_array_append_new(array, value) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *lifetime_value(const struct mw_report_stack *stack)
{
	if (!stack->has_lifetime)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "min", mw_json_number(stack->lifetime_min_ns), "median",
			 mw_json_number(stack->lifetime_median_ns), "p99", mw_json_number(stack->lifetime_p99_ns),
			 "max", mw_json_number(stack->lifetime_max_ns));
}

static json_t *cut_value(enum mw_stack_cut cut)
{
	switch (cut) {
	case MW_STACK_TRUNCATED:
		return json_string("depth");
	case MW_STACK_BROKEN:
		return json_string("no unwind information");
	case MW_STACK_COMPLETE:
		break;
	}
	return json_null();
}

static json_t *age_value(const struct mw_report_stack *stack, double at)
{
	return stack->has_ages ? json_real(at) : json_null();
}

static json_t *growth_value(const struct mw_report_growth *growth)
{
	if (!growth->known)
		return json_null();
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "verdict",
			 mw_growth_name(growth->verdict), "bytes_per_second", growth->bytes_per_second, "steadiness",
			 growth->steadiness, "floor_start", growth->floor_start, "floor_end", growth->floor_end,
			 "growing_until", growth->growing_until, "freed_share", growth->freed_share, "oldest_age",
			 growth->oldest_age, "newest_age", growth->newest_age, "settle_age", growth->settle_age,
			 "settled", mw_json_amount(&growth->settled));
}

/* Whether a block of the heap is resident is the allocator's affair. */
static json_t *resident_value(const struct mw_report_stack *stack)
{
	return stack->kind == MW_KIND_HEAP ? json_null() : mw_json_number(stack->resident);
}

static json_t *numbers_value(const struct mw_report_stack *stack, const struct mw_json_frames *shared)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < stack->frame_count; i++) {
		uint32_t number = mw_json_frames_number(shared, &stack->frames[i]);

		if (json_array_append_new(array, json_integer(number)) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

json_t *mw_json_stack(const struct mw_report_stack *stack, const struct mw_json_frames *shared)
{
	json_t *head = json_pack(
		"{s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "id", stack->id, "kind", mw_json_kind(stack->kind), "api",
		mw_json_text(stack->api), "truncated", stack->cut == MW_STACK_TRUNCATED, "cut", cut_value(stack->cut),
		"end", mw_json_text(mw_stack_end_name(stack->end)), "suspect", mw_json_text(stack->suspect), "frames",
		shared ? numbers_value(stack, shared) : mw_json_frames(stack->frames, stack->frame_count));
	json_t *sums = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "size", mw_json_amount(&stack->size),
		"impacting", mw_json_amount(&stack->impacting), "transient", mw_json_amount(&stack->transient), "aofi",
		mw_json_amount(&stack->aofi), "aofi_unknown", mw_json_number(stack->aofi_unknown), "aofo",
		mw_json_amount(&stack->aofo), "peak", mw_json_peak(&stack->peak), "lifetime_ns", lifetime_value(stack),
		"oldest", age_value(stack, stack->oldest), "newest", age_value(stack, stack->newest), "threads",
		threads_value(stack), "growth", growth_value(&stack->growth));

	if (!head || !sums || json_object_set_new(sums, "resident", resident_value(stack)) != 0 ||
	    json_object_update(head, sums) != 0) {
		json_decref(head);
		head = NULL;
	}
	json_decref(sums);
	return head;
}
