// SPDX-License-Identifier: MIT
/*
 * modules.c: modules that come and go during the window (jump.h).
 *
 * The loader's thread waits in the recorder until this is done: what a new library's constructors allocate is seen.
 */
#include "engine/jump/jump.h"

#include "proc/maps.h"

#include <string.h>

static bool anything_to_plant(const struct jump_process *process)
{
	for (size_t i = 0; i < process->patch_count; i++)
		if (!process->patches[i].gone && !process->patches[i].standing && !process->patches[i].detour.why)
			return true;
	return false;
}

/* What was in a module that is unmapped is no more. */
static void forget_gone(struct jump_process *process)
{
	for (size_t i = 0; i < process->patch_count; i++) {
		struct jump_patch *patch = &process->patches[i];
		const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);

		if (patch->gone || !module->gone)
			continue;
		patch->gone = true;
		if (patch->standing)
			mw_journal_forget(&process->journal, patch->detour.at, patch->detour.at + 1);
		patch->standing = false;
	}
}

/* Entry points that came and can't be detoured: what they do will be missed. */
static void note_refused(struct jump_process *process, size_t first)
{
	for (size_t i = first; i < process->patch_count; i++)
		if (process->patches[i].detour.why && process->patches[i].hook != JUMP_NO_HOOK)
			process->survey.hooks.items[process->patches[i].hook].info.refused =
				process->patches[i].detour.why;
}

/* It has put itself under a filter since the attach, under which no memory can be had without harm. */
static void give_up_new(struct jump_process *process)
{
	for (size_t i = 0; i < process->patch_count; i++) {
		struct jump_patch *patch = &process->patches[i];

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
	MW_TRY(jump_hand_find(&process->cage, &process->quiesce, maps, MW_CALLS_MAP | MW_CALL_BIT(MPROTECT_CODE),
			      &tid));
	if (!tid && process->engine->options.unsafe)
		tid = mw_quiesce_pick(&process->quiesce);
	if (!tid) {
		give_up_new(process);
		return NULL;
	}
	MW_TRY(mw_inject_init(&inject, tid, maps));
	MW_TRY(jump_memory_pads(process, &inject));
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
	size_t added = 0, removed = 0, before = process->patch_count;
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
