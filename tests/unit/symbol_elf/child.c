// SPDX-License-Identifier: MIT
/* child.c: a live child to look at, and its table of modules. */
#include "child.h"

#include "files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

bool child_start(struct child *child, const char *path, child_setup setup, void *context)
{
	int in[2], out[2];
	char line[64] = "";

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!setup || setup(context))
			(void)execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child->in = fdopen(in[1], "w");
	child->out = fdopen(out[0], "r");
	assert_true(child->in && child->out);
	if (!fgets(line, sizeof(line), child->out) || strncmp(line, "ready ", 6) != 0) {
		child_end(child);
		return false;
	}
	child->function = strtoull(line + 6, NULL, 16);
	return true;
}

void child_tell(struct child *child, const char *command, const char *argument)
{
	char line[512] = "";

	(void)fprintf(child->in, "%s %s\n", command, argument);
	assert_int_equal(fflush(child->in), 0);
	assert_non_null(fgets(line, sizeof(line), child->out));
	assert_string_equal(line, "ok\n");
}

void child_end(struct child *child)
{
	(void)fclose(child->in);
	(void)fclose(child->out);
	(void)kill(child->pid, SIGKILL);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

void child_refresh(const struct child *child, struct mw_modules *modules, size_t *added, size_t *removed)
{
	struct mw_maps maps = {0};

	assert_null(mw_maps_read(child->pid, &maps));
	assert_null(mw_modules_refresh(modules, child->pid, &maps, added, removed));
	mw_maps_deinit(&maps);
}

struct mw_module *child_program(const struct child *child, struct mw_modules *modules)
{
	struct mw_module *module;

	child_refresh(child, modules, NULL, NULL);
	module = mw_modules_find(modules, child->function);
	assert_non_null(module);
	assert_true(module->start <= child->function && child->function < module->end);
	if (module->elf)
		assert_int_equal(symbol_of(module->elf, "sample_function") + module->bias, child->function);
	else
		assert_non_null(module->why);
	return module;
}
