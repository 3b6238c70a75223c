// SPDX-License-Identifier: MIT
/*
 * install.c: put the recorder into a process (jump.h).
 *
 *      survey, plan, compile rows      the process runs
 *      stop: map memory, write code    some milliseconds
 *      fill the memory, publish rows   the process runs
 *      stop: write the jumps           some milliseconds; the window begins
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"
#include "engine/jump/recorder.h"
#include "engine/jump/walking.h"

#include "base/clock.h"
#include "base/fault.h"
#include "proc/maps.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * Modules that come and go during the window.
 *
 * The loader's thread waits in the recorder until this is done: what a new library's constructors allocate is seen.
 */

static bool anything_to_plant(const struct jump_process *process)
{
	for (size_t i = 0; i < process->patches.count; i++)
		if (!process->patches.items[i].gone && !process->patches.items[i].standing &&
		    !process->patches.items[i].detour.why)
			return true;
	return false;
}

/* What was in a module that is unmapped is no more. */
static void forget_gone(struct jump_process *process)
{
	for (size_t i = 0; i < process->patches.count; i++) {
		struct jump_patch *patch = &process->patches.items[i];
		const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);

		if (patch->gone || !module->gone)
			continue;
		patch->gone = true;
		if (patch->standing)
			mw_journal_forget(&process->patches.journal, patch->detour.at, patch->detour.at + 1);
		patch->standing = false;
	}
}

/* Entry points that came and can't be detoured: what they do will be missed. */
static void note_refused(struct jump_process *process, size_t first)
{
	for (size_t i = first; i < process->patches.count; i++)
		if (process->patches.items[i].detour.why && process->patches.items[i].hook != JUMP_NO_HOOK)
			process->survey.hooks.items[process->patches.items[i].hook].info.refused =
				process->patches.items[i].detour.why;
}

/* It has put itself under a filter since the attach, under which no memory can be had without harm. */
static void give_up_new(struct jump_process *process)
{
	for (size_t i = 0; i < process->patches.count; i++) {
		struct jump_patch *patch = &process->patches.items[i];

		if (!patch->gone && !patch->standing && !patch->detour.why)
			patch->detour.why = "the process has put itself under a seccomp filter that forbids it";
	}
	note_refused(process, 0);
}

static struct mw_error *plant_new(struct jump_process *process, const struct mw_maps *maps)
{
	struct mw_maps now = {0};
	struct mw_inject inject;
	struct mw_error *err;
	pid_t tid;

	if (process->quiesce.gone || process->quiesce.execed)
		return NULL;
	MW_TRY(jump_injector_find(&process->policy, &process->quiesce, maps, MW_CALLS_MAP | MW_CALL_BIT(MPROTECT_CODE),
				  &tid));
	if (!tid && process->engine->options.unsafe)
		tid = mw_quiesce_pick(&process->quiesce);
	if (!tid) {
		give_up_new(process);
		return NULL;
	}
	MW_TRY(mw_inject_init(&inject, tid, maps));
	MW_TRY(jump_memory_trampolines(process, &inject));
	MW_TRY(jump_context_update(process, inject.tid));
	err = jump_patch_all(process, &now);
	mw_maps_deinit(&now);
	return err;
}

static struct mw_error *stop_and_plant(struct jump_process *process, const struct mw_maps *maps)
{
	struct mw_error *err, *released;

	err = jump_stop(process, 0);
	if (!err)
		err = plant_new(process, maps);
	released = mw_quiesce_end(&process->quiesce);
	jump_account_stop(process);
	if (err) {
		mw_error_destroy(released);
		return err;
	}
	return released;
}

struct mw_error *jump_modules_changed(struct jump_process *process)
{
	size_t added = 0, removed = 0, before = process->patches.count;
	pid_t tid = jump_live_tid(process);
	struct mw_maps maps = {0};
	struct mw_error *err;

	/* … which is found out elsewhere. */
	if (jump_has_execed(process))
		return NULL;
	err = mw_survey_refresh(&process->survey, tid, &added, &removed);
	if (!err && (added || removed))
		process->unwinder->ops->flush(process->unwinder);
	if (!err)
		err = mw_survey_take_in(&process->survey, tid);
	if (!err)
		err = mw_maps_read(tid, &maps);
	if (!err)
		jump_learned_tidy(process);
	if (!err)
		err = jump_rows_publish(process, &maps, added || removed);
	if (!err) {
		forget_gone(process);
		err = jump_plan(process, tid);
	}
	if (!err) {
		note_refused(process, before);
		jump_drain_hooks(process->drain, (uint32_t)process->survey.hooks.count);
		if (anything_to_plant(process))
			err = stop_and_plant(process, &maps);
	}
	mw_maps_deinit(&maps);
	return mw_error_unless_gone(err); /* … which is found out elsewhere */
}

#define HEARTBEAT_LIMIT_NS UINT64_C(1000000000)
#define WAIT_LIMIT_NS      UINT64_C(2000000000)
#define EXIT_LIMIT_NS      UINT64_C(1000000000)

/* What a thread does to have the recorder put in. */
#define CALLS (MW_CALLS_MAP | MW_CALLS_SHARE | MW_CALL_BIT(MADVISE) | MW_CALL_BIT(MPROTECT_CODE) | MW_CALL_BIT(PRCTL))

static struct mw_error *unsupported(const struct jump_process *process, const char *why)
{
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0, "the jump engine can't be used on process %d: %s",
					     process->pid, why),
			     "--engine trap can watch it");
}

/* A target may have forbidden itself to read the time stamp counter. */
static struct mw_error *check_counter(const struct jump_process *process, const struct mw_inject *inject)
{
	const uint64_t arguments[6] = {PR_GET_TSC};
	uint32_t flag = 0;
	int64_t result;

	MW_TRY(mw_inject_call_with(inject, SYS_prctl, arguments, 1, &flag, sizeof(flag), &result));
	return result == 0 && flag == PR_TSC_SIGSEGV ? unsupported(process, "it may not read the time stamp counter")
						     : NULL;
}

/* Calls of ours that a stack passes through are no frames of the program's. */
static void emit_unwinder(struct jump_process *process)
{
	const struct mw_stub_header *header = mw_stub_header();
	const struct mw_unwinder_code code = {.start = process->recorder.image,
					      .end = process->recorder.image + process->recorder.image_size,
					      .base = process->recorder.image,
					      .table = process->recorder.image + header->table,
					      .entries = 1};

	mw_unwinder_libunwind_pass_over(process->inner, &code);
}

static struct mw_error *put_in(struct jump_process *process, const struct mw_maps *maps, uint64_t rows_bytes)
{
	struct mw_inject inject;
	uint32_t calls = CALLS;
	pid_t tid = mw_quiesce_pick(&process->quiesce);

	if (!tid)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "no thread of process %d could be stopped", process->pid);
	if (mw_shared_memory_locks(tid))
		calls |= MW_CALLS_LOCKED;
	MW_TRY(jump_injector_wanted(process, calls, maps, &tid));
	MW_TRY(jump_find_tid_offset(process));
	jump_note_stacks(process, maps);
	MW_TRY(mw_fault("attach.inject"));
	MW_TRY(mw_inject_init(&inject, tid, maps));
	if (!process->engine->options.unsafe && !process->launched && !mw_inject_leads_back(&inject))
		return mw_inject_no_sigframe(&inject, process->pid);
	MW_TRY(check_counter(process, &inject));
	MW_TRY(jump_memory_map(process, &inject, maps, rows_bytes));
	MW_TRY(jump_context_fill(process, maps));
	emit_unwinder(process);
	MW_TRY(jump_memory_trampolines(process, &inject));
	return jump_memory_write_image(process, &inject);
}

struct mw_error *jump_install_code(struct jump_process *process)
{
	struct mw_maps maps = {0};
	uint64_t rows_bytes;
	struct mw_error *err = jump_rows_compile(process, &rows_bytes);

	if (!err)
		err = mw_maps_read(jump_live_tid(process), &maps);
	if (!err)
		err = put_in(process, &maps, rows_bytes);
	mw_maps_deinit(&maps);
	return err;
}

static mw_addr heap_end(const struct mw_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strcmp(maps->items[i].path, "[heap]") == 0)
			return maps->items[i].end;
	return 0;
}

struct mw_error *jump_install_data(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	const struct jump_drain_help help = jump_help(process);
	struct mw_maps maps = {0};
	struct mw_error *err;

	MW_TRY(jump_memory_prepare(process));
	jump_clock_init(&process->clock);
	control->heartbeat_limit = jump_clock_ticks(&process->clock, HEARTBEAT_LIMIT_NS);
	control->wait_limit = jump_clock_ticks(&process->clock, WAIT_LIMIT_NS);
	control->exit_limit = jump_clock_ticks(&process->clock, EXIT_LIMIT_NS);
	control->compare = process->engine->options.compare;
	MW_TRY(jump_drain_create(&process->recorder.shared, &process->clock, &process->sink, &help, &process->drain));
	jump_drain_hooks(process->drain, (uint32_t)process->survey.hooks.count);
	MW_TRY(mw_maps_read(jump_live_tid(process), &maps));
	err = jump_rows_publish(process, &maps, false);
	mw_maps_deinit(&maps);
	return err;
}

struct mw_error *jump_install_jumps(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	struct mw_maps maps = {0};
	struct mw_error *err;

	process->installed = true;
	jump_introduce_threads(process);
	err = jump_patch_all(process, &maps);
	jump_drain_set_break(process->drain, heap_end(&maps));
	mw_maps_deinit(&maps);
	MW_TRY(err);
	MW_TRY(mw_fault("attach.resume"));
	for (size_t i = 0; i < process->patches.count; i++)
		process->patches.loader_hooked |=
			process->patches.items[i].standing && process->patches.items[i].role == MW_STUB_LOADER;
	/* Libraries may have come and gone since they were looked at: so that is done again at once. */
	__atomic_fetch_add(&control->loader_changes, 1, __ATOMIC_RELEASE);
	jump_clock_start(&process->clock);
	process->window.started_realtime_ns = mw_clock_realtime_ns();
	__atomic_store_n(&control->recording, 1, __ATOMIC_RELEASE);
	MW_TRY(jump_guard_set(process, jump_live_tid(process), MW_STUB_GUARD_ON));
	process->windowed = true;
	return NULL;
}
