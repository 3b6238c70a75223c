// SPDX-License-Identifier: MIT
/* heap_looks.c: looks at the heap at a window's ends (recorder.h). */
#include "session/recorder.h"

#include "heap/change.h"
#include "heap/look.h"
#include "session/process_setup.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>

static bool ask_reach(void *context, mw_addr addr, enum mw_reach *out)
{
	return mw_look_reach(context, addr, out);
}

static struct mw_error *ask_holder(void *context, mw_addr addr, char ***holder, size_t *count)
{
	return mw_look_holder(context, addr, holder, count);
}

static void show_look(void *context, const char *phase, double share)
{
	if (share < 0)
		mw_progress_phase(context, phase);
	else
		mw_progress_share(context, phase, (uint64_t)(share * 1000), 1000);
}

static void report_no_look(const struct mw_recorder *recorder, struct mw_error *err)
{
	fprintf(stderr, "memwatch: the heap of process %d was not looked at: ", (int)recorder->pid);
	mw_message_put(stderr, mw_error_text(err));
	fputc('\n', stderr);
	mw_error_destroy(err);
}

static struct mw_error *look_before(const struct mw_recorder *recorder, struct mw_recorder_heap *heap)
{
	const struct mw_look_options options = {.blocks_only = true,
						.progress = show_look,
						.context = &recorder->session->progress,
						.interrupted = mw_process_setup_interrupted()};

	MW_TRY(mw_look_take(recorder->pid, &options, &heap->look));
	MW_TRY(mw_look_examine(heap->look));
	return mw_look_report(heap->look, MW_HEAP_BY_SIZE, 0, &heap->before);
}

/* Errors: what could not be taken back. */
static struct mw_error *forget_before(struct mw_recorder_heap *heap)
{
	struct mw_error *err;

	mw_change_destroy(heap->change);
	mw_heap_report_destroy(heap->before);
	mw_heap_report_destroy(heap->after);
	err = mw_look_release(heap->look);
	*heap = (struct mw_recorder_heap){.look = NULL};
	return err;
}

void mw_recorder_look_at_heap_before(struct mw_recorder *recorder)
{
	struct mw_error *err = look_before(recorder, &recorder->heap);

	mw_progress_clear(&recorder->session->progress);
	if (!err)
		return;
	report_no_look(recorder, err);
	mw_error_destroy(forget_before(&recorder->heap));
}

void mw_recorder_look_at_heap(struct mw_recorder *recorder)
{
	struct mw_session *session = recorder->session;
	struct mw_engine_range ranges[MW_RECORDER_RANGES];
	struct mw_reach_hole holes[MW_RECORDER_RANGES];
	struct mw_look_options options = {.holes = holes, .progress = NULL};
	struct mw_error *err;

	recorder->to_look = false;
	options.hole_count =
		session->engine->ops->own_ranges(session->engine, recorder->key, ranges, MW_RECORDER_RANGES);
	if (options.hole_count > MW_RECORDER_RANGES)
		options.hole_count = MW_RECORDER_RANGES;
	for (size_t i = 0; i < options.hole_count; i++)
		holes[i] = (struct mw_reach_hole){ranges[i].start, ranges[i].end};
	err = mw_look_take(recorder->pid, &options, &recorder->look);
	if (err)
		report_no_look(recorder, err);
}

/* --- what is between two looks -------------------------------------------------------------------------------------- */

static uint64_t ask_block(void *context, mw_addr addr)
{
	const struct mw_recorder *recorder = context;

	return mw_change_block(recorder->heap.change, addr);
}

static uint64_t ask_mapping(void *context, mw_addr start, mw_addr end)
{
	const struct mw_recorder *recorder = context;

	return mw_change_mapping(recorder->heap.change, start, end);
}

/* The last question: the copy is not read any more. */
static struct mw_error *ask_rest(void *context,
				 struct mw_error *(*visit)(void *visitor, const struct mw_heap_change *part),
				 void *visitor, uint64_t *before, uint64_t *after)
{
	struct mw_recorder *recorder = context;
	struct mw_recorder_heap *heap = &recorder->heap;

	if (!heap->after)
		MW_TRY(mw_look_report(recorder->look, MW_HEAP_BY_SIZE, 0, &heap->after));
	*before = heap->before->rss;
	*after = heap->after->rss;
	return mw_change_rest(heap->change, heap->before, heap->after, visit, visitor);
}

static struct mw_error *compare(struct mw_recorder *recorder)
{
	struct mw_recorder_heap *heap = &recorder->heap;
	struct mw_survey_input before, after;

	if (!heap->before)
		return NULL;
	before = mw_look_survey(heap->look);
	after = mw_look_survey(recorder->look);
	MW_TRY(mw_change_create(&before, &after, &heap->change));
	heap->asked = (struct mw_summary_change){ask_block, ask_mapping, ask_rest, recorder};
	recorder->watched->change = &heap->asked;
	return NULL;
}

void mw_recorder_examine_heap(struct mw_recorder *recorder)
{
	struct mw_error *err;

	if (!recorder->look)
		return;
	mw_look_show(recorder->look, show_look, &recorder->session->progress);
	err = mw_look_examine(recorder->look);
	if (!err)
		err = compare(recorder);
	mw_progress_clear(&recorder->session->progress);
	if (err) {
		report_no_look(recorder, err);
		return;
	}
	recorder->leaks = (struct mw_summary_leaks){ask_reach, ask_holder, recorder->look};
	recorder->watched->leaks = &recorder->leaks;
}

struct mw_error *mw_recorder_end_look(struct mw_recorder *recorder)
{
	struct mw_error *err = forget_before(&recorder->heap);

	err = mw_error_first(err, mw_look_release(recorder->look));
	recorder->look = NULL;
	if (recorder->watched) {
		recorder->watched->leaks = NULL;
		recorder->watched->change = NULL;
	}
	return err;
}
