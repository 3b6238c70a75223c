// SPDX-License-Identifier: MIT
/* engine.c: the trap engine as others see it (engine.h, trap.h). */
#include "base/clock.h"
#include "base/fault.h"
#include "engine/stale.h"
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "engine/trap/trap_engine.h"
#include "proc/peek.h"
#include "proc/program.h"
#include "proc/status.h"
#include "tracee/preflight.h"
#include "tracee/seccomp_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_NS  1000000000u
#define MOST_MOVES 20 /* of threads to where they may be stopped */
#define BREATHS    10 /* for calls that map memory */
#define BREATH_US  50

static struct trap_process *find(const struct mw_engine *base, pid_t pid)
{
	const struct trap_engine *engine = (const struct trap_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i]->pid == pid)
			return engine->processes[i];
	return NULL;
}

static struct mw_error *trap_create(const struct mw_engine_options *options, struct mw_engine **out)
{
	struct trap_engine *engine = calloc(1, sizeof(*engine));
	struct mw_error *err;

	if (!engine)
		return mw_error_nomem();
	engine->base.ops = &mw_engine_trap;
	engine->dispatch = trap_dispatch;
	engine->options = *options;
	engine->end = MW_END_INTERRUPT;
	engine->frames = calloc(options->depth, sizeof(*engine->frames));
	engine->raw_frames = calloc(options->depth, sizeof(*engine->raw_frames));
	err = engine->frames && engine->raw_frames ? trap_tick_start(engine) : mw_error_nomem();
	if (err) {
		free(engine->frames);
		free(engine->raw_frames);
		free(engine);
		return err;
	}
	engine->others = (struct mw_orphans_others){.known = trap_is_known, .context = engine};
	mw_orphans_spare(&engine->others);
	*out = &engine->base;
	return NULL;
}

static void process_destroy(struct trap_process *process)
{
	void *value;

	if (!process)
		return;
	for (size_t i = 0; mw_map_next(&process->planted.breakpoints, &i, &value);)
		free(value);
	mw_map_deinit(&process->planted.breakpoints);
	mw_map_deinit(&process->planted.slots);
	mw_map_deinit(&process->threads);
	mw_unwinder_destroy(process->unwinder);
	mw_journal_deinit(&process->journal);
	mw_journal_deinit(&process->acts.journal);
	mw_survey_deinit(&process->survey);
	trap_rescue_deinit(&process->rescue);
	mw_seccomp_policy_deinit(&process->policy);
	free(process->planted.caves);
	free(process->signals.masking);
	free(process);
}

static struct mw_error *process_create(struct trap_engine *engine, pid_t pid, bool launched,
				       const struct mw_event_sink *sink, struct trap_process **out)
{
	struct trap_process *process = calloc(1, sizeof(*process));
	struct mw_unwinder *inner = NULL;
	struct mw_error *err;

	if (!process)
		return mw_error_nomem();
	process->engine = engine;
	process->pid = pid;
	process->launched = launched;
	process->sink = *sink;
	process->arch = mw_arch_find(mw_target_machine());
	err = mw_survey_init(&process->survey, process->arch, pid, engine->options.track_heap,
			     engine->options.track_vm);
	if (!err)
		err = mw_unwinder_libunwind(process->survey.modules, process->arch, &inner);
	if (!err)
		err = mw_unwinder_memo(inner, process->arch, &process->unwinder);
	if (err) {
		process_destroy(process);
		return err;
	}
	*out = process;
	return NULL;
}

static struct mw_error *seize_sharing(struct trap_process *process)
{
	MW_TRY(trap_sharing_seize(process));
	return process->engine->options.unsafe ? NULL : trap_sharing_check(process);
}

/* Before anything is read of what its threads may change: from then on nobody runs. */
static struct mw_error *await_quiet(struct trap_process *process)
{
	for (unsigned i = 0; i < MOST_MOVES && !process->ended; i++) {
		MW_TRY(trap_await_injector(process));
		if (!trap_usable_thread(process))
			break;
		MW_TRY(trap_amidst_clear(process));
		if (trap_usable_thread(process))
			break;
	}
	return process->ended ? mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid) : NULL;
}

/* Is a thread in a call that maps memory, and was made before there was a hook to see it? */
static bool any_maps(const struct trap_process *process)
{
	bool any = false;
	void *value;

	for (size_t i = 0; !any && mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;
		struct mw_tracee_regs regs;
		struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;

		any = thread->stopped && !err && mw_survey_is_mapping(&process->survey, regs.general.pc);
		mw_error_destroy(err);
	}
	return any;
}

/* What such a call maps would be nobody's. They are short; where new ones are made all the time it is let be. */
static struct mw_error *await_mappings(struct trap_process *process)
{
	for (unsigned i = 0; i < BREATHS && !process->ended && any_maps(process); i++) {
		MW_TRY(trap_release(process));
		usleep(BREATH_US);
		MW_TRY(trap_hold(process));
	}
	return process->ended ? mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid) : NULL;
}

static struct mw_error *stop_process(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns();
	bool fresh;

	MW_TRY(trap_seize_all(process, &fresh));
	MW_TRY(mw_fault("attach.stop"));
	while (fresh) {
		MW_TRY(trap_hold(process));
		if (process->ended)
			return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
		MW_TRY(trap_seize_all(process, &fresh));
	}
	MW_TRY(await_mappings(process));
	MW_TRY(seize_sharing(process));
	MW_TRY(await_quiet(process));
	MW_TRY(seize_sharing(process));
	MW_TRY(trap_rescue_install(process, 0));
	process->stats.attach_ns = mw_clock_ns() - begin;
	return NULL;
}

/* That there is nothing to watch is the better reason. */
static struct mw_error *prefer(struct mw_error *nothing, struct mw_error *err)
{
	if (!nothing)
		return err;
	mw_error_destroy(err);
	return nothing;
}

/* The jumps of another memwatch would look like another tool's. */
static struct mw_error *remove_stale(struct trap_process *process)
{
	MW_TRY(mw_stale_remove(process->pid, process->left, sizeof(process->left)));
	process->stats.left_behind = *process->left ? process->left : NULL;
	return NULL;
}

/* It runs as before, and is none of the engine's any more. */
static struct mw_error *remove_process(struct trap_engine *engine, struct trap_process *process)
{
	struct mw_error *err = trap_process_detach(process, MW_END_LOST);

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i] == process) {
			engine->process_count--;
			memmove(&engine->processes[i], &engine->processes[i + 1],
				(engine->process_count - i) * sizeof(struct trap_process *));
			break;
		}
	process_destroy(process);
	return err;
}

/* Nobody is stopped for it; but a launched one is seized, as its exec is to be seen. */
static struct mw_error *prepare(struct trap_process *process)
{
	bool fresh;

	if (process->launched)
		return trap_seize_all(process, &fresh);
	MW_TRY(remove_stale(process));
	MW_TRY(trap_survey(process));
	return trap_amidst_find(process);
}

static struct mw_error *trap_attach(struct mw_engine *base, pid_t pid, bool launched, const struct mw_event_sink *sink)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	struct trap_process **processes;
	struct trap_process *process = NULL;
	struct mw_program before;
	struct mw_status status;
	struct mw_error *err;

	mw_program_read(pid, &before);
	MW_TRY(mw_program_explain(pid, &before, mw_status_read(pid, &status)));
	if (!launched && engine->options.unsafe)
		mw_seccomp_prepare(pid);
	else if (!launched)
		MW_TRY(mw_seccomp_policy_preflight("trap", pid, true));
	processes = realloc(engine->processes, (engine->process_count + 1) * sizeof(struct trap_process *));
	if (!processes)
		return mw_error_nomem();
	engine->processes = processes;
	MW_TRY(process_create(engine, pid, launched, sink, &process));
	process->program = before;
	process->shadow_stack = status.shadow_stack;
	engine->processes[engine->process_count++] = process;
	err = prepare(process);
	if (err) {
		err = mw_error_worse(err, remove_process(engine, process));
		err = launched ? err : mw_stale_explain(pid, err);
	}
	return mw_program_explain(pid, &before, err);
}

static struct mw_error *plant_all(struct trap_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;
	uint64_t begin;
	pid_t tid;

	if (options->stopped)
		MW_TRY(options->stopped(options->stopped_context, process->pid));
	begin = mw_clock_ns();
	tid = trap_stopped_tid(process);
	if (!tid)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "no thread of process %d could be stopped", process->pid);
	MW_TRY(trap_plant(process, tid));
	MW_TRY(mw_fault("attach.resume"));
	process->start_ns = mw_clock_ns();
	process->window.started_realtime_ns = mw_clock_realtime_ns();
	process->windowed = true;
	process->stats.attach_ns += mw_clock_ns() - begin;
	process->stats.stood_ns = process->stats.attach_ns;
	process->standstill.until_ns = mw_clock_ns();
	if (process->stats.attach_ns > process->stats.longest_stop_ns)
		process->stats.longest_stop_ns = process->stats.attach_ns;
	return trap_release(process);
}

static struct mw_error *begin_window(struct trap_process *process)
{
	struct mw_error *err = stop_process(process);

	if (err && process->rescue.no_sigframe)
		err = prefer(mw_survey_check(&process->survey), err);
	return err ? err : plant_all(process);
}

static struct mw_error *trap_start(struct mw_engine *base, pid_t pid)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	struct trap_process *process = find(base, pid);
	struct mw_program before = process->program;
	struct mw_error *err;

	if (process->launched || process->ended)
		return NULL;
	/* What was surveyed of another program is looked at anew when the breakpoints are planted. */
	err = begin_window(process);
	if (err)
		err = mw_stale_explain(pid, mw_error_worse(err, remove_process(engine, process)));
	return mw_program_explain(pid, &before, err);
}

/* To let a process go takes a while, in which the others are served. */
static void end_windows(struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			trap_window_close(engine->processes[i]);
}

static void trap_end(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;

	end_windows(engine);
	engine->windows_ended = true;
}

static void come_back(struct trap_engine *engine, enum mw_window_end end)
{
	if (!engine->windows_ended)
		engine->end = end;
}

static struct mw_error *detach_all(struct trap_engine *engine, enum mw_window_end end)
{
	struct mw_error *first = NULL;
	bool gone = false;

	trap_pace_end(engine);
	end_windows(engine);
	for (size_t i = 0; i < engine->process_count; i++) {
		struct mw_error *err = trap_process_detach(engine->processes[i], end);

		mw_error_keep_first(&first, err);
		gone |= engine->processes[i]->window.gone;
	}
	/* It may have had children that it could not tell of any more. */
	if (gone || engine->orphans.count > 0)
		mw_error_keep_first(&first, trap_orphans_free(engine));
	return first;
}

static bool anything_left(const struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			return true;
	return false;
}

static void take_samples(struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count && engine->options.sample; i++) {
		struct trap_process *process = engine->processes[i];
		uint64_t now;

		if (process->ended || !process->windowed)
			continue;
		now = trap_now(process);
		if (now - process->last_sample_ns < SAMPLE_NS)
			continue;
		process->last_sample_ns = now;
		trap_disposition_look(process);
		mw_peek_look(process->pid);
		engine->options.sample(engine->options.sample_context, process->pid, trap_live_tid(process), now,
				       false);
	}
}

static struct mw_error *let_go_of_still_ones(struct trap_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++) {
		struct trap_process *process = engine->processes[i];

		if (process->windowed && !process->ended && trap_stands_too_long(process))
			MW_TRY(trap_process_detach(process, MW_END_LIMIT));
	}
	return NULL;
}

static struct mw_error *serve(struct trap_engine *engine, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	while (anything_left(engine)) {
		int status;
		pid_t tid;

		MW_TRY(trap_wait(engine, &tid, &status));
		if (tid)
			MW_TRY(trap_dispatch(engine, tid, status));
		/* Others may have news all the time. */
		if (!tid || engine->orphans.count > 0)
			MW_TRY(trap_orphans_resolve(engine));
		take_samples(engine);
		MW_TRY(let_go_of_still_ones(engine));
		if (interrupt && *interrupt) {
			come_back(engine, *interrupt == MW_STOP_LIMIT ? MW_END_LIMIT : MW_END_INTERRUPT);
			return NULL;
		}
		if (deadline_ns && mw_clock_ns() >= deadline_ns) {
			come_back(engine, MW_END_DURATION);
			return NULL;
		}
	}
	come_back(engine, MW_END_EXIT);
	return NULL;
}

/* What has come until now: each thread has had its turn by then, some of them several times. */
static struct mw_error *serve_pending(struct trap_engine *engine)
{
	for (size_t i = 0; i <= engine->threads.count; i++) {
		int status;
		pid_t tid;

		trap_wait_no_time(engine, &tid, &status);
		if (!tid)
			break;
		MW_TRY(trap_dispatch(engine, tid, status));
	}
	return NULL;
}

static struct mw_error *trap_run(struct mw_engine *base, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	struct mw_error *err, *left = NULL;

	if (deadline_ns && mw_clock_ns() >= deadline_ns) {
		err = serve_pending(engine);
	} else {
		trap_pace_begin(engine);
		err = serve(engine, deadline_ns, interrupt);
	}
	if (err) {
		engine->end = MW_END_LOST;
		engine->windows_ended = false;
		left = detach_all(engine, MW_END_LOST);
	}
	return mw_error_worse(err, left);
}

static struct mw_error *trap_detach(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;

	return detach_all(engine, engine->end);
}

static void trap_destroy(struct mw_engine *base)
{
	struct trap_engine *engine = (struct trap_engine *)base;
	void *value;

	if (!engine)
		return;
	mw_error_destroy(detach_all(engine, MW_END_LOST));
	mw_orphans_spare_no_more(&engine->others);
	trap_tick_stop(engine);
	for (size_t i = 0; i < engine->process_count; i++)
		process_destroy(engine->processes[i]);
	for (size_t i = 0; mw_map_next(&engine->orphans, &i, &value);)
		free(value);
	mw_map_deinit(&engine->orphans);
	mw_map_deinit(&engine->threads);
	free(engine->processes);
	free(engine->frames);
	free(engine->raw_frames);
	free(engine);
}

static size_t trap_hook_infos(const struct mw_engine *base, pid_t pid, const struct mw_hook_info **out)
{
	struct trap_process *process = find(base, pid);

	*out = NULL;
	return process ? mw_survey_infos(&process->survey, out) : 0;
}

static const struct mw_engine_stats *trap_stats(const struct mw_engine *base, pid_t pid)
{
	const struct trap_process *process = find(base, pid);

	return process ? &process->stats : NULL;
}

static const struct mw_window_info *trap_window(const struct mw_engine *base, pid_t pid)
{
	const struct trap_process *process = find(base, pid);

	return process ? &process->window : NULL;
}

static struct mw_modules *trap_module_table(const struct mw_engine *base, pid_t pid)
{
	struct trap_process *process = find(base, pid);

	return process ? process->survey.modules : NULL;
}

static const char *trap_used(const struct mw_engine *base, pid_t pid, const char **reason)
{
	(void)base, (void)pid;
	*reason = NULL;
	return "trap";
}

static void trap_own_memory(const struct mw_engine *base, pid_t pid, uint64_t *resident, uint64_t *mapped)
{
	const struct trap_process *process = find(base, pid);

	*resident = *mapped = 0;
	if (process)
		trap_rescue_own(process, resident, mapped);
}

static size_t trap_own_ranges(const struct mw_engine *base, pid_t pid, struct mw_engine_range *out, size_t capacity)
{
	const struct trap_process *process = find(base, pid);
	size_t count = 0;

	if (!process || !process->rescue.base)
		return 0;
	if (count++ < capacity)
		*out = (struct mw_engine_range){.start = process->rescue.base,
						.end = process->rescue.base + TRAP_RESCUE_SIZE};
	for (size_t i = 0; i < process->rescue.area_count; i++) {
		mw_addr start = process->rescue.areas[i].start;

		if (count++ < capacity)
			out[count - 1] = (struct mw_engine_range){.start = start, .end = start + MW_RESCUE_AREA};
	}
	return count;
}

const struct mw_engine_ops mw_engine_trap = {
	.name = "trap",
	.create = trap_create,
	.attach = trap_attach,
	.start = trap_start,
	.run = trap_run,
	.end = trap_end,
	.detach = trap_detach,
	.destroy = trap_destroy,
	.hooks = trap_hook_infos,
	.stats = trap_stats,
	.window = trap_window,
	.modules = trap_module_table,
	.used = trap_used,
	.own_memory = trap_own_memory,
	.own_ranges = trap_own_ranges,
};
