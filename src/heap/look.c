// SPDX-License-Identifier: MIT
/* look.c: from a process to a report of its heap (look.h). */
#include "heap/look.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vector.h"
#include "heap/advice.h"
#include "heap/holder.h"
#include "heap/snapshot.h"
#include "heap/walker.h"
#include "proc/maps.h"
#include "proc/program.h"
#include "proc/status.h"

#include <stdlib.h>
#include <string.h>

struct look {
	const struct mw_look_options *options;
	pid_t pid;
	struct mw_heap_snapshot *snapshot;
	struct mw_maps maps;
	struct mw_modules *modules;
	struct mw_blocks *blocks;
	struct mw_classes *classes;
	struct mw_reached *reached;
	struct mw_heap_report *report;
};

static void announce(const struct look *look, const char *phase, double share)
{
	if (look->options->progress)
		look->options->progress(look->options->context, phase, share);
}

static void on_scan(void *context, double share)
{
	announce(context, "following pointers", share);
}

static void identify(struct look *look)
{
	struct mw_heap_report *report = look->report;

	report->pid = look->pid;
	report->started_realtime_ns = mw_clock_realtime_ns();
	mw_comm_read(look->pid, look->pid, report->comm);
	mw_error_destroy(mw_exe_read(look->pid, &report->exe));
}

static struct mw_error *name_holders(struct look *look)
{
	size_t count = look->report->group_count;

	if (!look->reached)
		return NULL;
	if (count > look->options->named)
		count = look->options->named;
	for (size_t i = 0; i < count; i++)
		MW_TRY(mw_holder_path(mw_heap_snapshot_image(look->snapshot), look->blocks, look->classes,
				      look->reached, &look->report->groups[i]));
	return NULL;
}

static struct mw_error *examine(struct look *look)
{
	const struct mw_image *image = mw_heap_snapshot_image(look->snapshot);
	const struct mw_reach_options reach = {
		.tag_bits = look->options->tag_bits,
		.holders = look->options->holders,
		.progress = on_scan,
		.context = look,
	};
	struct mw_survey_input input = {
		.image = image,
		.by = look->options->by ? look->options->by : MW_HEAP_BY_CLASS | MW_HEAP_BY_SIZE,
	};

	announce(look, "reading the heap", -1);
	MW_TRY(mw_modules_create(&look->modules));
	MW_TRY(mw_modules_refresh(look->modules, look->pid, &look->maps, NULL, NULL));
	MW_TRY(mw_blocks_create(&look->blocks));
	MW_TRY(mw_walkers_run(image, look->modules, look->blocks));
	MW_TRY(mw_classes_create(image, look->modules, &look->classes));
	MW_TRY(mw_reach(image, look->blocks, &reach, &look->reached));
	announce(look, "adding up", -1);
	input.blocks = look->blocks;
	input.modules = look->modules;
	input.classes = look->classes;
	input.reached = look->reached;
	MW_TRY(mw_survey(&input, look->report));
	return name_holders(look);
}

static struct mw_error *look_at(struct look *look)
{
	const struct mw_heap_snapshot_options options = {.no_fork = look->options->no_fork};
	uint64_t begin = mw_clock_ns();
	struct mw_heap_report *report;
	const char *why;

	look->report = report = calloc(1, sizeof(*report));
	if (!report)
		return mw_error_nomem();
	identify(look);
	MW_TRY(mw_maps_read(mw_live_thread(look->pid), &look->maps));
	announce(look, "taking a snapshot", -1);
	MW_TRY(mw_heap_snapshot_take(look->pid, &options, &look->snapshot));
	MW_TRY(examine(look));
	report->forked = mw_heap_snapshot_is_fork(look->snapshot);
	why = mw_heap_snapshot_why(look->snapshot);
	report->why = why ? strdup(why) : NULL;
	report->scanned = mw_reached_scanned(look->reached);
	report->pause_ns = mw_heap_snapshot_pause_ns(look->snapshot);
	report->page_tables = MW_SIZE_UNKNOWN;
	report->seconds = (double)(mw_clock_ns() - begin) / 1e9;
	return mw_advise(report);
}

struct mw_error *mw_look(pid_t pid, const struct mw_look_options *options, struct mw_heap_report **out)
{
	struct look look = {.options = options, .pid = pid};
	struct mw_error *err = look_at(&look);

	mw_reached_destroy(look.reached);
	mw_classes_destroy(look.classes);
	mw_blocks_destroy(look.blocks);
	mw_modules_destroy(look.modules);
	mw_maps_deinit(&look.maps);
	err = mw_error_first(err, mw_heap_snapshot_release(look.snapshot));
	if (err) {
		mw_heap_report_destroy(look.report);
		return err;
	}
	*out = look.report;
	return NULL;
}
