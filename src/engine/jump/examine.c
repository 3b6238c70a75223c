// SPDX-License-Identifier: MIT
/* examine.c: can the jump engine be used on a process, without touching it (jump_engine.h). */
#include "engine/jump/jump.h"
#include "engine/jump/jump_engine.h"

#include <stdlib.h>
#include <string.h>

static struct mw_error *look(struct jump_process *process, struct mw_jump_examination *out)
{
	pid_t tid = jump_live_tid(process);
	size_t added, removed;

	MW_TRY(mw_leftover_look(process->pid, &out->leftover));
	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	MW_TRY(jump_plan(process, tid));
	out->refused = calloc(process->survey.hooks.count + 1, sizeof(const char *));
	if (!out->refused)
		return mw_error_nomem();
	out->count = process->survey.hooks.count;
	for (size_t i = 0; i < process->patch_count; i++)
		if (process->patches[i].hook != JUMP_NO_HOOK)
			out->refused[process->patches[i].hook] = process->patches[i].detour.why;
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
			found.verdict = mw_cage_preflight("jump", pid, false);
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
	mw_leftover_deinit(&examination->leftover);
	free(examination->refused);
	*examination = (struct mw_jump_examination){.count = 0};
}
