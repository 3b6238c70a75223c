// SPDX-License-Identifier: MIT
/* living.c: a process that lives, as unwinders see it (living.h). */
#include "living.h"

#include "tracee/tracee.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool read_living(void *context, mw_addr addr, void *out, size_t size)
{
	return mw_remote_read(*(pid_t *)context, addr, out, size) == size;
}

struct mw_memory_view living_memory(pid_t *pid)
{
	return (struct mw_memory_view){.context = pid, .read = read_living};
}

const struct mw_arch *living_arch(void)
{
	const struct mw_arch *arch = mw_arch_find(mw_target_machine());

	assert_non_null(arch);
	return arch;
}

struct mw_modules *living_modules(pid_t pid)
{
	struct mw_modules *modules = NULL;
	struct mw_maps maps = {0};
	size_t added, removed;

	assert_null(mw_modules_create(&modules));
	assert_null(mw_maps_read(pid, &maps));
	assert_null(mw_modules_refresh(modules, pid, &maps, &added, &removed));
	mw_maps_deinit(&maps);
	return modules;
}
