// SPDX-License-Identifier: MIT
/*
 * launch.c: a command from before its exec to where its libraries are mapped (jump.h).
 *
 *      exec            a breakpoint at the function that the loader calls for debuggers
 *      … first time    it begins to map libraries
 *      … second time   all are mapped and relocated, none has been initialised: the recorder is put in
 *
 * musl's loader, which is its C library, tells the second only.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"

#include "base/clock.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

struct loader {
	mw_addr vaddr;
	bool is_libc; /* a loader that is nothing else starts no threads */
};

static bool see(void *context, const struct mw_elf_symbol *symbol)
{
	struct loader *loader = context;

	if (symbol->function && strcmp(symbol->name, "_dl_debug_state") == 0)
		loader->vaddr = symbol->vaddr;
	loader->is_libc |= symbol->function && strcmp(symbol->name, "pthread_create") == 0;
	return true;
}

static void find_loader(struct jump_process *process)
{
	for (uint32_t i = 0; i < mw_modules_count(process->survey.modules); i++) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, i);
		struct loader loader = {0};

		if (module->gone || !module->elf)
			continue;
		mw_error_destroy(mw_elf_each_symbol(module->elf, see, &loader));
		if (!loader.vaddr)
			continue;
		process->launch.loader = loader.vaddr + module->bias;
		process->launch.tells = loader.is_libc ? 1 : 2;
		return;
	}
	process->launch.loader = 0;
}

/* A static program has no loader that tells when it is ready. */
static struct mw_error *check_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mw_elf *elf = NULL;
	struct mw_error *err = fd >= 0 ? mw_elf_open(fd, path, &elf) : NULL;
	bool is_static = !err && elf && elf->is_static;

	/* What it is that can't be read, its exec will show. */
	mw_error_destroy(err);
	mw_elf_unref(elf);
	if (fd >= 0)
		close(fd);
	if (!is_static)
		return NULL;
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "'%s' is a static program: no loader shows when it is ready for the jump engine", path);
	return mw_error_hint(err, "--engine trap can launch it; once it runs, --engine jump can be attached");
}

struct mw_error *jump_launch_begin(struct jump_process *process)
{
	if (process->engine->options.program)
		MW_TRY(check_program(process->engine->options.program));
	process->launched_by_us = true;
	return mw_tracee_seize(process->pid);
}

static struct mw_error *on_exec(struct jump_process *process)
{
	const struct mw_arch *arch = process->survey.arch;
	size_t added, removed;

	if (process->launch.execed) {
		/* The command runs another before its loader is done (a script's interpreter). */
		mw_journal_forget_all(&process->patches.journal);
		process->launch.told = 0;
	}
	process->launch.execed = true;
	MW_TRY(mw_survey_refresh(&process->survey, process->pid, &added, &removed));
	find_loader(process);
	if (!process->launch.loader)
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "the command is a static program: it has no loader that shows "
						     "when it is ready for the jump engine"),
				     "--engine trap can launch it");
	return mw_journal_plant(&process->patches.journal, process->pid, process->launch.loader, arch->breakpoint,
				arch->breakpoint_length, &process->launch.patch);
}

/* The function is empty: to return from it is all it does. */
static struct mw_error *return_from_loader(struct jump_process *process, struct mw_tracee_regs *regs)
{
	uint64_t *sp = &regs->general.gpr[process->survey.arch->dwarf_sp];
	mw_addr ret;

	MW_TRY(mw_remote_read_all(process->pid, *sp, &ret, sizeof(ret)));
	regs->general.pc = ret;
	*sp += sizeof(ret);
	return mw_tracee_set_regs(process->pid, regs);
}

static struct mw_error *install(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;
	size_t added, removed;

	MW_TRY(mw_survey_refresh(&process->survey, process->pid, &added, &removed));
	process->unwinder->ops->flush(process->unwinder);
	MW_TRY(mw_survey_take_in(&process->survey, process->pid));
	MW_TRY(mw_survey_check(&process->survey));
	MW_TRY(jump_plan(process, process->pid));
	MW_TRY(jump_plan_check(process));
	MW_TRY(jump_install_code(process));
	MW_TRY(jump_install_data(process));
	MW_TRY(jump_install_jumps(process));
	process->launched = false;
	if (options->sample)
		options->sample(options->sample_context, process->pid, process->pid, 0, false);
	return NULL;
}

static struct mw_error *ready(struct jump_process *process, struct mw_tracee_regs *regs)
{
	struct mw_error *err, *released;

	MW_TRY(mw_journal_restore(&process->patches.journal, process->pid, process->launch.patch));
	mw_journal_forget_all(&process->patches.journal);
	/* It was memwatch's child before, and had its name. */
	mw_comm_read(process->pid, process->pid, process->name);
	regs->general.pc = process->launch.loader;
	MW_TRY(mw_tracee_set_regs(process->pid, regs));
	process->quiesce = (struct mw_quiesce){.forked = jump_child_forked, .context = process};
	err = mw_quiesce_take(&process->quiesce, process->pid);
	if (!err)
		err = install(process);
	released = err ? NULL : mw_quiesce_end(&process->quiesce);
	process->stats.attach_ns = process->quiesce.stood_ns;
	jump_account_stop(process);
	if (err) {
		if (process->engine->options.stop_unfit && mw_error_kind(err) == MW_ERROR_UNSUPPORTED)
			kill(process->pid, SIGSTOP);
		return err; /* detach lets it go */
	}
	return released;
}

/* `*resume` is false where it has been let go or is to stay stopped. */
static struct mw_error *on_trap(struct jump_process *process, bool *resume, int *signal)
{
	const struct mw_arch *arch = process->survey.arch;
	struct mw_tracee_regs regs;

	MW_TRY(mw_tracee_get_regs(process->pid, &regs));
	if (!process->launch.loader || regs.general.pc != process->launch.loader + arch->breakpoint_advance) {
		*signal = SIGTRAP;
		return NULL;
	}
	mw_tracee_take_signal(process->pid);
	if (++process->launch.told < process->launch.tells)
		return return_from_loader(process, &regs);
	*resume = false;
	return ready(process, &regs);
}

static struct mw_error *on_stop(struct jump_process *process, int status)
{
	int signal = 0;
	bool resume = true;

	switch (status >> 16) {
	case 0:
		if (WSTOPSIG(status) == SIGTRAP)
			MW_TRY(on_trap(process, &resume, &signal));
		else
			signal = WSTOPSIG(status);
		break;
	case PTRACE_EVENT_EXEC:
		MW_TRY(on_exec(process));
		break;
	case PTRACE_EVENT_STOP:
		if (WSTOPSIG(status) != SIGTRAP)
			return mw_tracee_listen(process->pid);
		break;
	default:
		break;
	}
	return resume ? mw_tracee_resume(process->pid, signal) : NULL;
}

struct mw_error *jump_launch_go_on(struct jump_process *process)
{
	for (;;) {
		int status;
		struct mw_error *err;
		pid_t got = mw_tracee_wait(process->pid, &status, WNOHANG);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return NULL;
		if (!WIFSTOPPED(status)) {
			jump_exit_status(process, status);
			return jump_process_end(process, MW_END_EXIT);
		}
		err = on_stop(process, status);
		if (err && mw_error_kind(err) == MW_ERROR_GONE && !process->quiesce.standing) {
			mw_error_destroy(err); /* its end is still to come */
			err = NULL;
		}
		if (err || !process->launched)
			return err;
	}
}
