// SPDX-License-Identifier: MIT
/* look.c: see look.h. */
#include "doctor/look.h"

#include "session/terminal.h"
#include "tracee/preflight.h"
#include "tracee/remote.h"
#include "tracee/seccomp_policy.h"
#include "tracee/tracee.h"

#include <string.h>
#include <unistd.h>

#define WIDTH     80u /* where standard output is no terminal */
#define WIDTH_MIN 40u
#define WIDTH_MAX 100u /* longer lines are hard to read */

static bool read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	const struct mw_doctor *doctor = context;

	if (mw_remote_read(doctor->live, addr, out, size) != size)
		return false;
	mw_stale_hide(&doctor->jump.stale, addr, out, size);
	return true;
}

static bool is_go(const struct mw_doctor *doctor)
{
	for (uint32_t i = 0; i < mw_modules_count(doctor->modules); i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);

		if (module->elf && mw_elf_is_go(module->elf))
			return true;
	}
	return false;
}

/* What would make a recording fail, or NULL. */
static struct mw_error *check_hooks(const struct mw_doctor *doctor)
{
	struct mw_error *err;

	if (doctor->options->track_heap && !mw_hooks_usable(&doctor->hooks, MW_KIND_HEAP)) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "process %d has no allocator that memwatch can hook",
				      (int)doctor->pid);
		if (is_go(doctor))
			return mw_error_hint(err, "It is a Go program. " MW_ALLOC_GO_HINT);
		return mw_error_hint(err, "Functions such as malloc are found by name: a stripped static program has "
					  "none, use one that was not stripped; mmap and brk alone: --track vm");
	}
	if (!doctor->options->track_heap && !mw_hooks_usable(&doctor->hooks, MW_KIND_VM)) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "process %d has no mmap that memwatch can hook",
				      (int)doctor->pid);
		return mw_error_hint(err, "Functions are found by name: use a program that was not stripped");
	}
	return NULL;
}

static struct mw_error *look_inside(struct mw_doctor *doctor)
{
	const struct mw_memory_view memory = {.context = doctor, .read = read_memory};
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());
	const struct mw_session_options *options = doctor->options;
	const struct mw_engine_options engine = {
		.track_heap = options->track_heap, .track_vm = options->track_vm, .depth = 1};
	size_t others;

	MW_TRY(mw_maps_read(doctor->live, &doctor->maps));
	MW_TRY(mw_modules_create(&doctor->modules));
	MW_TRY(mw_modules_refresh(doctor->modules, doctor->live, &doctor->maps, NULL, NULL));
	MW_TRY(mw_jump_examine(doctor->pid, &engine, &doctor->jump));
	MW_TRY(mw_seccomp_policy_count(doctor->pid, &doctor->seccomp_filtered, &others));
	if (!options->unsafe)
		doctor->no_trap = mw_seccomp_policy_preflight("trap", doctor->pid, true);
	MW_TRY(mw_hooks_find(&doctor->hooks, doctor->modules, 0, arch, &memory, true, options->track_vm));
	MW_TRY(mw_symbolizer_create(doctor->modules, &doctor->symbolizer));
	return check_hooks(doctor);
}

static unsigned choose_width(void)
{
	unsigned width = mw_terminal_width(STDOUT_FILENO);

	if (!width)
		return WIDTH;
	if (width < WIDTH_MIN)
		return WIDTH_MIN;
	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

struct mw_error *mw_doctor_look(pid_t pid, const struct mw_session_options *options, struct mw_doctor *out)
{
	struct mw_error *err;

	out->pid = pid;
	out->live = mw_live_thread(pid);
	out->options = options;
	out->width = choose_width();
	out->refused = mw_preflight(pid);
	if (!out->refused)
		out->refused = mw_preflight_sharing(pid);
	err = mw_status_read(pid, &out->status);
	if (err && out->refused) {
		/* That says more. */
		mw_error_destroy(err);
		err = out->refused;
		out->refused = NULL;
	}
	MW_TRY(err);
	MW_TRY(mw_status_read(getpid(), &out->own));
	if (!out->refused)
		out->lacking = look_inside(out);
	return NULL;
}

void mw_doctor_deinit(struct mw_doctor *doctor)
{
	mw_error_destroy(doctor->refused);
	mw_error_destroy(doctor->no_trap);
	mw_error_destroy(doctor->lacking);
	mw_jump_examination_deinit(&doctor->jump);
	mw_hooks_deinit(&doctor->hooks);
	mw_symbolizer_destroy(doctor->symbolizer);
	mw_modules_destroy(doctor->modules);
	mw_maps_deinit(&doctor->maps);
}

const char *mw_doctor_engine(const struct mw_doctor *doctor)
{
	if (strcmp(doctor->options->engine, "auto") != 0)
		return doctor->options->engine;
	return doctor->jump.verdict ? "trap" : "jump";
}

struct mw_error **mw_doctor_verdict(struct mw_doctor *doctor)
{
	static struct mw_error *nothing;

	if (doctor->refused)
		return &doctor->refused;
	if (doctor->lacking)
		return &doctor->lacking;
	if (strcmp(doctor->options->engine, "jump") == 0)
		return &doctor->jump.verdict;
	if (strcmp(mw_doctor_engine(doctor), "trap") == 0)
		return &doctor->no_trap;
	return &nothing;
}
