// SPDX-License-Identifier: MIT
/* look.c: from a process to a report of its heap (look.h). */
#include "heap/look.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vector.h"
#include "heap/advice.h"
#include "heap/contents.h"
#include "heap/holder.h"
#include "heap/kernel_words.h"
#include "heap/passes.h"
#include "heap/retained.h"
#include "heap/snapshot.h"
#include "heap/walker.h"
#include "proc/file.h"
#include "proc/maps.h"
#include "proc/program.h"
#include "proc/status.h"
#include "tracee/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_WAIT_US       20000 /* between passes */
#define LEAST_SIGNAL_STACK 2048u /* bytes: what the kernel takes (MINSIGSTKSZ) */

struct mw_look {
	struct mw_look_options options;
	pid_t pid;
	char *exe; /* the path by which the program was executed; NULL: not known, or in the report */
	int64_t started_realtime_ns;
	uint64_t begin_ns;
	struct mw_heap_snapshot *snapshot;
	struct mw_maps maps;
	struct mw_script_spaces spaces; /* of runtimes */
	struct mw_modules *modules;
	struct mw_blocks *blocks;
	struct mw_classes *classes;
	struct mw_root_names *names;
	struct mw_reached *reached;
	struct mw_passes passes; /* over a running process */
	char *why;               /* the first of these could not be a copy; NULL: not known, or in the report */
	uint64_t pause_ns;       /* of all snapshots but the last */
	unsigned seed;
};

static void announce(const struct mw_look *look, const char *phase, double share)
{
	if (look->options.progress)
		look->options.progress(look->options.context, phase, share);
}

static void on_scan(void *context, double share)
{
	announce(context, "following pointers", share);
}

static int by_address(const void *a, const void *b)
{
	const struct mw_reach_hole *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static struct mw_error *copy_holes(struct mw_look *look)
{
	struct mw_reach_hole *holes = reallocarray(NULL, look->options.hole_count + 1, sizeof(*holes));

	if (!holes)
		return mw_error_nomem();
	for (size_t i = 0; i < look->options.hole_count; i++)
		holes[i] = look->options.holes[i];
	qsort(holes, look->options.hole_count, sizeof(*holes), by_address);
	look->options.holes = holes;
	return NULL;
}

/* Where they can't be read, nobody knows that memory is theirs. */
static struct mw_error *find_spaces(struct mw_look *look)
{
	mw_script_spaces_deinit(&look->spaces);
	return mw_error_if_memory(mw_script_spaces_of(mw_live_thread(look->pid), &look->spaces));
}

static struct mw_error *snap(struct mw_look *look)
{
	const struct mw_heap_snapshot_options options = {.no_fork = look->options.no_fork};

	announce(look, "taking a snapshot", -1);
	MW_TRY(mw_heap_snapshot_take(look->pid, &options, &look->snapshot));
	MW_TRY(mw_maps_read(mw_live_thread(look->pid), &look->maps));
	return look->options.blocks_only ? NULL : find_spaces(look);
}

static struct mw_error *take(struct mw_look *look)
{
	MW_TRY(copy_holes(look));
	MW_TRY(mw_preflight(look->pid));
	MW_TRY(mw_preflight_heap(look->pid));
	return snap(look);
}

struct mw_error *mw_look_take(pid_t pid, const struct mw_look_options *options, struct mw_look **out)
{
	struct mw_look *look = calloc(1, sizeof(*look));
	struct mw_error *err;

	if (!look)
		return mw_error_nomem();
	*look = (struct mw_look){.options = *options,
				 .pid = pid,
				 .started_realtime_ns = mw_clock_realtime_ns(),
				 .begin_ns = mw_clock_ns()};
	err = take(look);
	if (err)
		return mw_error_first(err, mw_look_release(look));
	*out = look;
	return NULL;
}

void mw_look_show(struct mw_look *look, void (*progress)(void *context, const char *phase, double share), void *context)
{
	look->options.progress = progress;
	look->options.context = context;
}

/* The program's module gets the path by which it was executed, where it has several. */
static void name_program(struct mw_look *look)
{
	char *exe = NULL, *executed;

	free(look->exe);
	look->exe = NULL;
	if (!mw_error_none(mw_exe_read(look->pid, &exe)))
		return;
	executed = mw_exe_executed(look->pid, exe);
	look->exe = executed ? executed : exe;
	if (!executed)
		return;
	for (uint32_t i = 0; i < mw_modules_count(look->modules); i++) {
		struct mw_module *module = mw_modules_get(look->modules, i);
		char *path = module->path && strcmp(module->path, exe) == 0 ? strdup(executed) : NULL;

		if (path) {
			free(module->path);
			module->path = path;
		}
	}
	free(exe);
}

/* Is the interpreter, its library or a module of it mapped? */
static bool runs_python(const struct mw_image *image)
{
	MW_EACH(mapping, image->mappings, image->mapping_count) {
		const char *name = strrchr(mapping->path, '/');

		if (name && strstr(name, "python"))
			return true;
	}
	return false;
}

static struct mw_reach_options reach_options(struct mw_look *look)
{
	return (struct mw_reach_options){
		.tag_bits = look->options.tag_bits,
		.holders = look->options.holders,
		.number_root = mw_root_number,
		.number_context = look->names,
		.holes = look->options.holes,
		.hole_count = look->options.hole_count,
		.python_ints = runs_python(mw_heap_snapshot_image(look->snapshot)),
		.suspects = look->passes.lost,
		.suspect_count = look->passes.lost_count,
		.progress = on_scan,
		.context = look,
		.interrupted = look->options.interrupted,
	};
}

/* Is a block lost that a thread could have as its alternate signal stack? Then only the kernel may know of it. */
static bool may_lose_signal_stack(const struct mw_look *look)
{
	struct mw_segment segment;
	size_t spans;
	const struct mw_span *span_of = mw_blocks_spans(look->blocks, &spans);

	MW_EACH(span, span_of, mw_reached_sums(look->reached)[MW_REACH_DEFINITE].count ? spans : 0)
		for (mw_addr at = span->start; mw_span_next(span, &at, &segment);)
			if (segment.live && segment.size >= LEAST_SIGNAL_STACK &&
			    mw_reached_of(look->reached, segment.number) == MW_REACH_DEFINITE)
				return true;
	return false;
}

/* Find the blocks, and follow pointers to them. */
static struct mw_error *run_pass(struct mw_look *look)
{
	const struct mw_image *image = mw_heap_snapshot_image(look->snapshot);
	struct mw_reach_options reach;

	announce(look, "reading the heap", -1);
	MW_TRY(mw_modules_refresh(look->modules, look->pid, &look->maps, NULL, NULL));
	name_program(look);
	mw_heap_snapshot_find_bss(look->snapshot, look->modules);
	MW_TRY(mw_blocks_create(&look->blocks));
	MW_TRY(mw_walkers_run(image, look->modules, look->blocks));
	if (look->options.blocks_only)
		return NULL;
	MW_TRY(mw_classes_create(image, look->modules, &look->classes));
	MW_TRY(mw_root_names_create(image, look->classes, look->modules, &look->names));
	reach = reach_options(look);
	MW_TRY(mw_reach(image, look->blocks, &reach, &look->reached));
	if (!may_lose_signal_stack(look))
		return NULL;
	MW_TRY(mw_heap_snapshot_ask_signal_stacks(look->snapshot));
	mw_reached_destroy(look->reached);
	look->reached = NULL;
	return mw_reach(image, look->blocks, &reach, &look->reached);
}

/* What was found of one snapshot. */
static void drop_pass(struct mw_look *look)
{
	mw_reached_destroy(look->reached);
	mw_root_names_destroy(look->names);
	mw_classes_destroy(look->classes);
	mw_blocks_destroy(look->blocks);
	look->reached = NULL;
	look->names = NULL;
	look->classes = NULL;
	look->blocks = NULL;
}

/* Why the first snapshot is no copy: none is tried for the others. */
static void keep_why(struct mw_look *look)
{
	const char *why = mw_heap_snapshot_why(look->snapshot);

	if (why && !look->why)
		look->why = strdup(why);
}

static struct mw_error *take_again(struct mw_look *look)
{
	struct mw_heap_snapshot *last = look->snapshot;

	keep_why(look);
	drop_pass(look);
	mw_maps_deinit(&look->maps);
	look->snapshot = NULL;
	look->pause_ns += mw_heap_snapshot_pause_ns(last);
	MW_TRY(mw_heap_snapshot_release(last));
	look->options.no_fork = true;
	MW_TRY(snap(look));
	/* The stop for its registers has brought its threads into step with this one: not for the next pass as for the last. */
	usleep((unsigned)rand_r(&look->seed) % MOST_WAIT_US);
	return NULL;
}

/* Over a running process: it must be one program to the end. */
static struct mw_error *run_live_pass(struct mw_look *look)
{
	struct mw_error *err = run_pass(look);

	if (!err && mw_heap_snapshot_is_stale(look->snapshot))
		err = mw_error_create(MW_ERROR_GONE, 0,
				      "process %d ended or executed another program while its heap was read",
				      (int)look->pid);
	return err;
}

struct mw_error *mw_look_examine(struct mw_look *look)
{
	MW_TRY(mw_modules_create(&look->modules));
	if (mw_heap_snapshot_image(look->snapshot)->consistent)
		return run_pass(look);
	MW_TRY(run_live_pass(look));
	if (look->options.blocks_only)
		return NULL;
	MW_TRY(mw_passes_add(&look->passes, look->blocks, look->reached));
	while (mw_passes_need_more(&look->passes)) {
		MW_TRY(take_again(look));
		MW_TRY(run_live_pass(look));
		MW_TRY(mw_passes_add(&look->passes, look->blocks, look->reached));
	}
	return NULL;
}

static struct mw_findings findings(const struct mw_look *look)
{
	return (struct mw_findings){mw_heap_snapshot_image(look->snapshot), look->blocks, look->classes, look->names,
				    look->reached};
}

/* The block that begins there. */
static bool find(const struct mw_look *look, mw_addr addr, struct mw_block *out)
{
	return look->reached && mw_blocks_find(look->blocks, addr, out) && out->start == addr;
}

bool mw_look_reach(const struct mw_look *look, mw_addr addr, enum mw_reach *out)
{
	struct mw_block block;

	if (!find(look, addr, &block))
		return false;
	*out = mw_reached_of(look->reached, block.number);
	return true;
}

struct mw_error *mw_look_holder(struct mw_look *look, mw_addr addr, char ***holder, size_t *count)
{
	const struct mw_findings found = findings(look);
	struct mw_block block;

	*holder = NULL;
	*count = 0;
	return find(look, addr, &block) ? mw_holder_path(&found, block, holder, count) : NULL;
}

/* Bytes, as the kernel counts them. */
static uint64_t page_tables_of(pid_t pid)
{
	static const char name[] = "\nVmPTE:";
	char text[8192];
	const char *line = NULL;

	if (mw_error_none(mw_proc_file_read_small(text, sizeof(text), NULL, "/proc/%d/status", (int)pid)))
		line = strstr(text, name);
	return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : MW_SIZE_UNKNOWN;
}

/* Of the file of that path, in hexadecimal digits; NULL: not known. */
static char *build_id_of(const struct mw_modules *modules, const char *path)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(modules, &i));) {
		size_t size = module->elf->build_id_size;
		char *text = strcmp(module->path, path) == 0 && size ? malloc(2 * size + 1) : NULL;

		for (size_t j = 0; text && j < size; j++)
			snprintf(text + 2 * j, 3, "%02x", module->elf->build_id[j]);
		if (text)
			return text;
	}
	return NULL;
}

/* What identifies the program and the process. */
static void identify(struct mw_look *look, struct mw_heap_report *report)
{
	struct mw_program program;

	mw_program_read(look->pid, &program);
	report->start_ticks = program.known ? program.started : 0;
	if (mw_error_none(mw_proc_file_read_small(report->boot_id, sizeof(report->boot_id), NULL,
						  "/proc/sys/kernel/random/boot_id")))
		report->boot_id[strcspn(report->boot_id, "\n")] = '\0';
	else
		report->boot_id[0] = '\0';
	if (!look->exe)
		return;
	report->build_id = build_id_of(look->modules, look->exe);
	report->exe = look->exe;
	look->exe = NULL;
}

/* The first of each verdict, by which they are sorted. */
static struct mw_error *describe_groups(struct mw_look *look, size_t named, struct mw_heap_report *report)
{
	const struct mw_findings found = findings(look);
	size_t of_verdict = 0;

	for (size_t i = 0; i < report->group_count; i++) {
		struct mw_heap_group *group = &report->groups[i];

		of_verdict = i > 0 && group[-1].verdict == group->verdict ? of_verdict + 1 : 0;
		if (of_verdict >= named)
			continue;
		MW_TRY(mw_look_holder(look, group->samples[0], &group->holder, &group->holder_count));
		if (look->options.show)
			MW_TRY(mw_contents(&found, group, look->options.show));
	}
	return NULL;
}

/* What holds blocks in the kernel, and can't be known. */
static struct mw_error *add_gap(const struct mw_image *image, struct mw_heap_report *report)
{
	const struct mw_image_mapping *mapping = mw_kernel_words_unknown(image);
	struct mw_heap_gap *gaps, *gap;

	if (!image->kernel_words_hidden)
		return NULL;
	gaps = reallocarray(report->gaps, report->gap_count + 1, sizeof(*gaps));
	if (!gaps)
		return mw_error_nomem();
	gap = &gaps[report->gap_count++];
	*gap = (struct mw_heap_gap){.start = mapping ? mapping->start : 0,
				    .bytes = mapping ? mapping->end - mapping->start : 0,
				    .why = image->requests_hidden ? "requests to the kernel (io_uring, aio) may hold "
								    "blocks: none is called lost for certain"
								  : "descriptors, pipes, sockets or alternate signal "
								    "stacks, which may hold blocks, could not all "
								    "be read: none is called lost for certain"};
	report->gaps = gaps;
	return NULL;
}

struct mw_survey_input mw_look_survey(const struct mw_look *look)
{
	return (struct mw_survey_input){
		.image = mw_heap_snapshot_image(look->snapshot),
		.blocks = look->blocks,
		.modules = look->modules,
		.classes = look->classes,
		.reached = look->reached,
		.by = MW_HEAP_BY_CLASS | MW_HEAP_BY_SIZE,
		.holes = look->options.holes,
		.hole_count = look->options.hole_count,
		.spaces = look->spaces.items,
		.space_count = look->spaces.count,
	};
}

static struct mw_error *fill(struct mw_look *look, unsigned by, size_t named, struct mw_heap_report *report)
{
	struct mw_survey_input input = mw_look_survey(look);
	const struct mw_findings found = findings(look);

	announce(look, "adding up", -1);
	input.by = by ? by : input.by;
	MW_TRY(mw_survey(&input, report));
	MW_TRY(add_gap(input.image, report));
	MW_TRY(describe_groups(look, named, report));
	if (look->options.holders)
		MW_TRY(mw_retained(&found, named, report));
	MW_TRY(mw_heap_snapshot_end_copy(look->snapshot));
	report->pid = look->pid;
	mw_comm_read(look->pid, look->pid, report->comm);
	identify(look, report);
	report->by = input.by;
	report->started_realtime_ns = look->started_realtime_ns;
	report->forked = mw_heap_snapshot_is_fork(look->snapshot);
	keep_why(look);
	report->why = look->why;
	look->why = NULL;
	if (look->reached) {
		report->scanned = mw_reached_scanned(look->reached);
		report->unread = mw_reached_unread(look->reached);
	}
	report->passes = look->passes.count ? look->passes.count : 1;
	report->pause_ns = look->pause_ns + mw_heap_snapshot_pause_ns(look->snapshot);
	report->page_tables = page_tables_of(look->pid);
	report->seconds = (double)(mw_clock_ns() - look->begin_ns) / 1e9;
	return mw_advise(report);
}

struct mw_error *mw_look_report(struct mw_look *look, unsigned by, size_t named, struct mw_heap_report **out)
{
	struct mw_heap_report *report = calloc(1, sizeof(*report));
	struct mw_error *err;

	if (!report)
		return mw_error_nomem();
	err = fill(look, by, named, report);
	if (err) {
		mw_heap_report_destroy(report);
		return err;
	}
	*out = report;
	return NULL;
}

struct mw_error *mw_look_release(struct mw_look *look)
{
	struct mw_error *err;

	if (!look)
		return NULL;
	drop_pass(look);
	mw_passes_deinit(&look->passes);
	mw_modules_destroy(look->modules);
	mw_maps_deinit(&look->maps);
	mw_script_spaces_deinit(&look->spaces);
	err = mw_heap_snapshot_release(look->snapshot);
	free((struct mw_reach_hole *)(uintptr_t)look->options.holes);
	free(look->exe);
	free(look->why);
	free(look);
	return err;
}
