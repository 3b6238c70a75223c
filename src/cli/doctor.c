// SPDX-License-Identifier: MIT
/* doctor.c: whether and how a process can be watched (src/cli/doctor.h). */
#include "cli/doctor.h"

#include "cli/doctor_facts.h"
#include "cli/message.h"
#include "cli/outfile.h"
#include "engine/hooks.h"
#include "engine/jump/jump_engine.h"
#include "proc/status.h"
#include "symbol/symbolizer.h"
#include "target/cage.h"
#include "target/preflight.h"
#include "target/remote.h"
#include "target/tracee.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Everything that is looked at beyond /proc's plain facts. */
struct examination {
	pid_t pid;
	const struct mw_cli_options *options;
	struct mw_maps maps;
	struct mw_modules *modules;
	struct mw_symbolizer *symbolizer;
	struct mw_hooks hooks;
	struct mw_jump_examination jump;
	size_t caged;             /* threads under seccomp */
	struct mw_error *no_trap; /* NULL: engine trap can be used, or is by the user's word; else why not */
};

static bool read_memory(void *context, mw_addr addr, void *out, size_t size)
{
	const struct examination *found = context;

	if (mw_remote_read(found->pid, addr, out, size) != size)
		return false;
	mw_leftover_hide(&found->jump.leftover, addr, out, size);
	return true;
}

static struct mw_error *examine(struct examination *found)
{
	const struct mw_memory_view memory = {found, read_memory};
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());
	const struct mw_engine_options options = {
		.track_heap = found->options->track_heap, .track_vm = found->options->track_vm, .depth = 1};
	size_t others;

	MW_TRY(mw_maps_read(found->pid, &found->maps));
	MW_TRY(mw_modules_create(&found->modules));
	MW_TRY(mw_modules_refresh(found->modules, found->pid, &found->maps, NULL, NULL));
	MW_TRY(mw_symbolizer_create(found->modules, &found->symbolizer));
	MW_TRY(mw_jump_examine(found->pid, &options, &found->jump));
	MW_TRY(mw_cage_count(found->pid, &found->caged, &others));
	if (!found->options->unsafe)
		found->no_trap = mw_cage_preflight("trap", found->pid, true);
	return mw_hooks_find(&found->hooks, found->modules, 0, arch, &memory, true, found->options->track_vm);
}

static void examination_deinit(struct examination *found)
{
	mw_error_destroy(found->no_trap);
	mw_jump_examination_deinit(&found->jump);
	mw_hooks_deinit(&found->hooks);
	mw_symbolizer_destroy(found->symbolizer);
	mw_modules_destroy(found->modules);
	mw_maps_deinit(&found->maps);
}

static void print_modules(FILE *out, const struct examination *found)
{
	size_t count = mw_modules_count(found->modules);

	fprintf(out, "\nModules, and where their debug information comes from: %zu\n", count);
	for (uint32_t number = 0; number < count; number++) {
		const struct mw_module *module = mw_modules_get(found->modules, number);

		fprintf(out, "  %016" PRIx64 "  ", module->start);
		mw_cli_put_clean(out, module->path);
		fputs(module->deleted ? " (deleted): " : ": ", out);
		if (module->elf)
			mw_cli_put_clean(out, mw_symbolizer_source(found->symbolizer, number));
		else
			mw_cli_put_clean(out, module->why ? module->why : "can't be read");
		fputc('\n', out);
	}
}

static void print_hook(FILE *out, const struct mw_hook_info *hook, const char *no_jump)
{
	fprintf(out, "  %016" PRIx64 "  %-14s  ", hook->address, mw_role_name(hook->role));
	mw_cli_put_clean(out, hook->function);
	fputs("  ", out);
	mw_cli_put_clean(out, hook->module);
	if (hook->refused) {
		fputs(": ", out);
		mw_cli_put_clean(out, hook->refused);
	}
	if (!hook->refused && no_jump) {
		fputs(": by a breakpoint only, as ", out);
		mw_cli_put_clean(out, no_jump);
	}
	fputc('\n', out);
}

static const char *no_jump(const struct examination *found, size_t number)
{
	return number < found->jump.count ? found->jump.refused[number] : NULL;
}

/* Heap functions are looked at in any case, to know what they call. */
static bool asked_for(const struct examination *found, const struct mw_hook_info *hook)
{
	return hook->kind == MW_KIND_HEAP ? found->options->track_heap : found->options->track_vm;
}

static void print_engine(FILE *out, const struct examination *found)
{
	const struct mw_cli_options *options = found->options;
	const struct mw_error *verdict = found->jump.verdict;

	if (strcmp(options->engine, "auto") != 0)
		mw_doctor_row(out, "engine", "%s (%s)", options->engine, options->engine_reason);
	else if (verdict && found->no_trap)
		mw_doctor_row(out, "engine", "trap, but only with --unsafe (auto: %s)", mw_error_text(verdict));
	else if (verdict)
		mw_doctor_row(out, "engine", "trap (auto: %s)", mw_error_text(verdict));
	else
		mw_doctor_row(out, "engine", "jump (auto: it can be used on this process%s)",
			      found->caged ? ", if its seccomp filters permit it" : "");
}

static void print_leftover(FILE *out, const struct examination *found)
{
	if (found->jump.leftover.found)
		mw_doctor_row(out, "left behind",
			      "by a memwatch that was killed: %zu functions still lead to what it has put in, which is "
			      "off; the next \"memwatch -p %d\" takes it out, and so does --clean",
			      found->jump.leftover.functions, (int)found->pid);
}

static void print_hooks(FILE *out, const struct examination *found)
{
	const struct mw_hooks *hooks = &found->hooks;
	size_t usable = 0, refused = 0;

	for (size_t i = 0; i < hooks->count; i++) {
		const struct mw_hook_info *hook = &hooks->items[i].info;

		usable += asked_for(found, hook) && !hook->refused;
		refused += asked_for(found, hook) && hook->refused;
	}
	fprintf(out, "\nWould be hooked: %zu\n", usable);
	for (size_t i = 0; i < hooks->count; i++)
		if (asked_for(found, &hooks->items[i].info) && !hooks->items[i].info.refused)
			print_hook(out, &hooks->items[i].info, no_jump(found, i));
	if (!refused)
		return;
	fprintf(out, "\nWould not be hooked: %zu\n", refused);
	for (size_t i = 0; i < hooks->count; i++)
		if (asked_for(found, &hooks->items[i].info) && hooks->items[i].info.refused)
			print_hook(out, &hooks->items[i].info, NULL);
}

/* What would make a recording fail, or NULL. */
static struct mw_error *judge(const struct examination *found)
{
	struct mw_error *err;

	if (found->options->track_heap && !mw_hooks_usable(&found->hooks, MW_KIND_HEAP)) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "process %d has no allocator that memwatch can hook",
				      (int)found->pid);
		return mw_error_hint(err, "Functions such as malloc are found by name: a stripped static program has "
					  "none, use one that was not stripped; mmap and brk alone: --track vm");
	}
	if (!found->options->track_heap && !mw_hooks_usable(&found->hooks, MW_KIND_VM)) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "process %d has no mmap that memwatch can hook",
				      (int)found->pid);
		return mw_error_hint(err, "Functions are found by name: use a program that was not stripped");
	}
	return NULL;
}

static struct mw_error *print_examination(FILE *out, pid_t pid, const struct mw_cli_options *options)
{
	struct examination found = {.pid = pid, .options = options};
	struct mw_error *err = examine(&found);

	if (!err) {
		print_leftover(out, &found);
		print_engine(out, &found);
		print_hooks(out, &found);
		print_modules(out, &found);
		err = judge(&found);
		if (!err && strcmp(options->engine, "jump") == 0) {
			err = found.jump.verdict;
			found.jump.verdict = NULL;
		} else if (!err && (found.jump.verdict || strcmp(options->engine, "trap") == 0)) {
			err = found.no_trap;
			found.no_trap = NULL;
		}
	}
	examination_deinit(&found);
	return err;
}

static const char *permission_text(const struct mw_error *verdict, const struct mw_status *status)
{
	if (!verdict)
		return "granted";
	/* What is traced has one tracer, whoever asks. */
	if (mw_error_kind(verdict) != MW_ERROR_DENIED || status->tracer)
		return "not asked for, as something else stands in the way";
	return "refused";
}

/* --clean */
static struct mw_error *clean(pid_t pid)
{
	struct mw_leftover leftover;
	struct mw_outfile *file = NULL;
	char left[160];
	bool found;
	FILE *out;

	MW_TRY(mw_preflight(pid));
	MW_TRY(mw_leftover_look(pid, &leftover));
	found = leftover.found;
	mw_leftover_deinit(&leftover);
	MW_TRY(mw_leftover_remove(pid, left, sizeof(left)));
	if (*left)
		return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0, "process %d: %s", (int)pid, left),
				     "The process is none the worse for it; try again later");
	MW_TRY(mw_outfile_open("-", &file));
	out = mw_outfile_stream(file);
	if (found)
		fprintf(out, "Process %d: what a killed memwatch had left is taken out.\n", (int)pid);
	else
		fprintf(out, "Process %d: no memwatch has left anything in it.\n", (int)pid);
	return mw_outfile_commit(file);
}

struct mw_error *mw_cli_doctor(const struct mw_cli_options *options)
{
	pid_t pid = options->pids.items[0];
	struct mw_outfile *file = NULL;
	struct mw_status status;
	struct mw_error *verdict;
	struct mw_error *err;
	FILE *out;

	if (options->clean)
		return clean(pid);
	MW_TRY(mw_outfile_open("-", &file));
	out = mw_outfile_stream(file);
	verdict = mw_preflight(pid);
	err = mw_status_read(pid, &status);
	if (err) {
		mw_outfile_abort(file);
		mw_error_destroy(verdict ? err : NULL);
		return verdict ? verdict : err;
	}
	mw_doctor_facts(out, pid, &status, permission_text(verdict, &status));
	if (!verdict)
		verdict = print_examination(out, pid, options);
	fprintf(out, "\nProcess %d %s be watched.\n", (int)pid, verdict ? "can't" : "can");
	err = mw_outfile_commit(file);
	if (!verdict)
		return err;
	mw_error_destroy(err);
	return verdict;
}
