// SPDX-License-Identifier: MIT
/* engine.c: the jump engine as others see it (engine.h, jump.h). */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"
#include "engine/jump/walking.h"

#include "base/clock.h"
#include "base/fault.h"
#include "engine/jump/jump_engine.h"
#include "engine/stale.h"
#include "proc/program.h"
#include "proc/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define URGENT    (-15)
#define LOOKS     5 /* at a process whose modules come and go */
#define MOMENT_NS 2000000
#define BREATHS   10 /* for calls that map memory */
#define BREATH_NS 50000

/* Is it one that the engine (`context`) traces at the moment? */
static bool is_known(void *context, pid_t tid)
{
	const struct jump_engine *engine = context;

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i]->pid == tid || mw_quiesce_holds(&engine->processes[i]->quiesce, tid))
			return true;
	return false;
}

static struct jump_process *find(const struct mw_engine *base, pid_t pid)
{
	const struct jump_engine *engine = (const struct jump_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i]->pid == pid)
			return engine->processes[i];
	return NULL;
}

static struct mw_error *jump_create(const struct mw_engine_options *options, struct mw_engine **out)
{
	struct jump_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return mw_error_nomem();
	engine->base.ops = &mw_engine_jump;
	engine->options = *options;
	engine->end = MW_END_INTERRUPT;
	engine->frames = calloc(options->depth, sizeof(*engine->frames));
	if (!engine->frames) {
		free(engine);
		return mw_error_nomem();
	}
	engine->others = (struct mw_orphans_others){.known = is_known, .context = engine};
	mw_orphans_spare(&engine->others);
	*out = &engine->base;
	return NULL;
}

/* As processes' start times are reported. */
static uint64_t clock_ticks_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * (uint64_t)sysconf(_SC_CLK_TCK) +
	       (uint64_t)now.tv_nsec / (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

static struct mw_error *survey(struct jump_process *process)
{
	size_t added, removed;
	uint64_t bytes;
	pid_t tid = jump_live_tid(process);

	MW_TRY(mw_fault("attach.modules"));
	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	MW_TRY(mw_survey_check(&process->survey));
	MW_TRY(jump_plan(process, tid));
	MW_TRY(jump_plan_check(process));
	process->children.attach_start = clock_ticks_now();
	return jump_rows_compile(process, &bytes);
}

static struct mw_error *stop(struct jump_process *process)
{
	MW_TRY(mw_fault("attach.stop"));
	return jump_stop(process, 0);
}

static struct mw_error *let_go(struct jump_process *process)
{
	struct mw_error *err = mw_quiesce_end(&process->quiesce);

	process->stats.attach_ns += process->quiesce.stood_ns;
	jump_account_stop(process);
	return err;
}

/* All but the jumps. The process is stopped for a part of it, and runs when this returns. */
static struct mw_error *put_in(struct jump_process *process)
{
	MW_TRY(mw_stale_remove(process->pid, process->why_left, sizeof(process->why_left)));
	MW_TRY(survey(process));
	MW_TRY(stop(process));
	jump_learn_note_stacks(process);
	MW_TRY(jump_install_code(process));
	MW_TRY(let_go(process));
	MW_TRY(jump_install_data(process));
	jump_learn_from_stacks(process);
	return NULL;
}

static struct mw_error *prepare(struct jump_process *process)
{
	mw_program_read(process->pid, &process->program);
	return mw_program_explain(process->pid, &process->program, put_in(process));
}

/* Do its modules come and go? Then what was read of one may have been another's. */
static bool in_motion(struct jump_process *process)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	size_t added = 0, removed = 0;

	for (unsigned i = 0; i < LOOKS && !added && !removed; i++) {
		nanosleep(&moment, NULL);
		mw_error_destroy(mw_survey_refresh(&process->survey, jump_live_tid(process), &added, &removed));
	}
	return added || removed;
}

/* It runs as before, and is none of the engine's any more. */
static void remove_process(struct jump_engine *engine, struct jump_process *process)
{
	mw_error_destroy(jump_process_detach(process, MW_END_LOST));
	for (size_t i = 0; i < engine->process_count; i++)
		if (engine->processes[i] == process) {
			engine->process_count--;
			memmove(&engine->processes[i], &engine->processes[i + 1],
				(engine->process_count - i) * sizeof(struct jump_process *));
			break;
		}
	jump_process_destroy(process);
}

static struct mw_error *attach_once(struct jump_engine *engine, pid_t pid, bool launched,
				    const struct mw_event_sink *sink, bool *again)
{
	struct jump_process **processes;
	struct jump_process *process = NULL;
	struct mw_error *err;

	*again = false;
	processes = realloc(engine->processes, (engine->process_count + 1) * sizeof(struct jump_process *));
	if (!processes)
		return mw_error_nomem();
	engine->processes = processes;
	MW_TRY(jump_process_create(engine, pid, sink, &process));
	process->launched = launched;
	engine->processes[engine->process_count++] = process;
	err = launched ? jump_launch_begin(process) : prepare(process);
	if (!err)
		return NULL;
	*again = !launched && mw_error_kind(err) == MW_ERROR_UNSUPPORTED && in_motion(process);
	remove_process(engine, process);
	return err;
}

static struct mw_error *jump_attach(struct mw_engine *base, pid_t pid, bool launched, const struct mw_event_sink *sink)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	struct mw_error *err;
	bool again;

	MW_TRY(jump_machine_check(engine));
	if (!launched)
		MW_TRY(mw_seccomp_policy_preflight("jump", pid, false));
	err = attach_once(engine, pid, launched, sink, &again);
	for (unsigned i = 0; err && again && i < LOOKS; i++) {
		mw_error_destroy(err);
		err = attach_once(engine, pid, launched, sink, &again);
	}
	return launched ? err : mw_stale_explain(pid, err);
}

static void jump_end(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;

	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			jump_window_close(engine->processes[i]);
	engine->windows_ended = true;
}

static struct mw_error *detach_all(struct jump_engine *engine, enum mw_window_end end)
{
	struct mw_error *first = NULL;

	/* All windows end at one time: to take everything out of a process, and read what is left, takes a while. Where
	 * that can't be done now it is tried again. */
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->quiesce.standing)
			mw_error_destroy(jump_window_end(engine->processes[i]));
	for (size_t i = 0; i < engine->process_count; i++) {
		struct mw_error *err = jump_process_detach(engine->processes[i], end);

		if (first)
			mw_error_destroy(err);
		else
			first = err;
	}
	return first;
}

/* Is a thread in a call that maps memory, and was made before there was a hook to see it? */
static bool any_maps(const struct jump_process *process)
{
	bool any = false;

	for (size_t i = 0; i < process->quiesce.count && !any; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];
		struct mw_tracee_regs regs;
		struct mw_error *err = thread->stopped ? mw_tracee_get_regs(thread->tid, &regs) : NULL;

		any = thread->stopped && !err && mw_survey_is_mapping(&process->survey, regs.general.pc);
		mw_error_destroy(err);
	}
	return any;
}

/* What such a call maps would be nobody's. They are short; where new ones are made all the time it is let be. */
static struct mw_error *await_mappings(struct jump_process *process)
{
	for (unsigned i = 0; i < BREATHS && any_maps(process); i++) {
		MW_TRY(mw_quiesce_run_briefly(&process->quiesce, BREATH_NS));
		if (!jump_still_there(process))
			return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
	}
	return NULL;
}

/* What was found and put into one program is nothing to another: stopped, it stays what it is. */
static struct mw_error *begin_window(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;

	/* What was found when it was prepared is old by now. */
	jump_look_for_frames(process);
	MW_TRY(stop(process));
	MW_TRY(mw_program_check(process->pid, &process->program));
	MW_TRY(await_mappings(process));
	MW_TRY(jump_await_handlers(process));
	if (options->stopped)
		MW_TRY(options->stopped(options->stopped_context, process->pid));
	MW_TRY(jump_install_jumps(process));
	return let_go(process);
}

static struct mw_error *jump_start(struct mw_engine *base, pid_t pid)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	struct jump_process *process = find(base, pid);
	struct mw_error *err;

	prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	if (process->launched || process->ended)
		return NULL;
	err = mw_program_explain(pid, &process->program, begin_window(process));
	if (!err)
		return NULL;
	remove_process(engine, process);
	return mw_stale_explain(pid, err);
}

static struct mw_error *jump_run(struct mw_engine *base, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	struct jump_engine *engine = (struct jump_engine *)base;
	int before = getpriority(PRIO_PROCESS, 0);
	struct mw_error *err, *left = NULL;

	/* Where all CPUs are busy, threads that wait for room in their rings wait for this one. Best effort. */
	(void)setpriority(PRIO_PROCESS, 0, URGENT);
	err = jump_run_until(engine, deadline_ns, interrupt);
	(void)setpriority(PRIO_PROCESS, 0, before);

	if (err) {
		engine->end = MW_END_LOST;
		engine->windows_ended = false;
		left = detach_all(engine, MW_END_LOST);
	}
	return mw_error_worse(err, left);
}

static struct mw_error *jump_detach(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;

	return detach_all(engine, engine->end);
}

static void jump_destroy(struct mw_engine *base)
{
	struct jump_engine *engine = (struct jump_engine *)base;

	if (!engine)
		return;
	mw_error_destroy(detach_all(engine, MW_END_LOST));
	mw_orphans_spare_no_more(&engine->others);
	for (size_t i = 0; i < engine->process_count; i++)
		jump_process_destroy(engine->processes[i]);
	jump_heart_stop(engine);
	free(engine->processes);
	free(engine->frames);
	free(engine);
}

static size_t jump_hook_infos(const struct mw_engine *base, pid_t pid, const struct mw_hook_info **out)
{
	struct jump_process *process = find(base, pid);

	*out = NULL;
	return process ? mw_survey_infos(&process->survey, out) : 0;
}

static const struct mw_engine_stats *jump_stats(const struct mw_engine *base, pid_t pid)
{
	struct jump_process *process = find(base, pid);

	if (!process)
		return NULL;
	jump_stats_take(process);
	return &process->stats;
}

static const struct mw_window_info *jump_window(const struct mw_engine *base, pid_t pid)
{
	const struct jump_process *process = find(base, pid);

	return process ? &process->window : NULL;
}

static struct mw_modules *jump_module_table(const struct mw_engine *base, pid_t pid)
{
	struct jump_process *process = find(base, pid);

	return process ? process->survey.modules : NULL;
}

static void jump_own_memory(const struct mw_engine *base, pid_t pid, uint64_t *resident, uint64_t *mapped)
{
	struct jump_process *process = find(base, pid);

	*resident = *mapped = 0;
	if (!process || process->ended)
		return;
	jump_memory_measure(process, jump_live_tid(process), resident, mapped);
	process->stats.own_resident = *resident;
}

static size_t jump_own_ranges(const struct mw_engine *base, pid_t pid, struct mw_engine_range *out, size_t capacity)
{
	const struct jump_process *process = find(base, pid);

	return process && !process->ended && process->recorder.mapped ? jump_memory_ranges(process, out, capacity) : 0;
}

static const char *jump_used(const struct mw_engine *base, pid_t pid, const char **reason)
{
	(void)base, (void)pid;
	*reason = NULL;
	return "jump";
}

static const char *jump_difference(const struct mw_engine *base, pid_t pid, size_t index)
{
	const struct jump_process *process = find(base, pid);

	const char *const *texts;

	return process && process->drain && index < jump_drain_differences(process->drain, &texts) ? texts[index]
												   : NULL;
}

const struct mw_engine_ops mw_engine_jump = {
	.name = "jump",
	.create = jump_create,
	.attach = jump_attach,
	.start = jump_start,
	.run = jump_run,
	.end = jump_end,
	.detach = jump_detach,
	.destroy = jump_destroy,
	.hooks = jump_hook_infos,
	.stats = jump_stats,
	.window = jump_window,
	.modules = jump_module_table,
	.used = jump_used,
	.own_memory = jump_own_memory,
	.own_ranges = jump_own_ranges,
	.difference = jump_difference,
};

/* Can the jump engine be used on a process, without touching it (jump_engine.h). */

static struct mw_error *look(struct jump_process *process, struct mw_jump_examination *out)
{
	pid_t tid = jump_live_tid(process);
	size_t added, removed;

	MW_TRY(mw_stale_look(process->pid, &out->stale));
	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	MW_TRY(jump_plan(process, tid));
	out->refused = calloc(process->survey.hooks.count + 1, sizeof(const char *));
	if (!out->refused)
		return mw_error_nomem();
	out->count = process->survey.hooks.count;
	for (size_t i = 0; i < process->patches.count; i++)
		if (process->patches.items[i].hook != JUMP_NO_HOOK)
			out->refused[process->patches.items[i].hook] = process->patches.items[i].detour.why;
	return NULL;
}

struct mw_error *mw_jump_examine(pid_t pid, const struct mw_engine_options *options, struct mw_jump_examination *out)
{
	static const struct mw_event_sink nobody = {.context = NULL};
	struct jump_engine engine = {.options = *options};
	struct mw_jump_examination found = {.count = 0};
	struct jump_process *process = NULL;
	struct mw_error *err;

	MW_TRY(jump_process_create(&engine, pid, &nobody, &process));
	err = look(process, &found);
	if (!err) {
		found.verdict = jump_machine_check(&engine);
		if (!found.verdict)
			found.verdict = jump_plan_check(process);
		if (!found.verdict)
			found.verdict = mw_seccomp_policy_preflight("jump", pid, false);
	}
	jump_process_destroy(process);
	if (err) {
		mw_jump_examination_deinit(&found);
		return err;
	}
	*out = found;
	return NULL;
}

void mw_jump_examination_deinit(struct mw_jump_examination *examination)
{
	mw_error_destroy(examination->verdict);
	mw_stale_deinit(&examination->stale);
	free(examination->refused);
	*examination = (struct mw_jump_examination){.count = 0};
}
