// SPDX-License-Identifier: MIT
/*
 * area.c: memory for out-of-line copies, for where the rest of a module's last page of code is too small (trap.h).
 *
 * Mapped at attach, near all code that there is: one is shared by the modules within its reach, so most processes have
 * two, by the program and by the libraries. Nothing is there before a copy is: the pages cost nothing.
 */
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "tracee/inject.h"

#include <sys/mman.h>

#define PLACE_REACH (UINT64_C(1) << 30) /* of a new one: the next library may come at its other side */
#define REACH       (UINT64_C(0x7fffffff) - MW_OOL_MAX - 16) /* of an operand relative to pc */

/* May a copy be anywhere in it, whatever the module's instruction refers to in the module? */
static bool reaches(const struct trap_area *area, const struct mw_module *module)
{
	mw_addr end = area->start + MW_RESCUE_AREA;
	mw_addr low = area->start < module->start ? area->start : module->start;
	mw_addr high = end > module->end ? end : module->end;

	return high - low <= REACH;
}

struct trap_area *trap_area_near(struct trap_process *process, const struct mw_module *module)
{
	for (size_t i = 0; i < process->rescue.area_count; i++) {
		struct trap_area *area = &process->rescue.areas[i];

		if (reaches(area, module) && area->next + MW_OOL_MAX <= area->start + MW_RESCUE_AREA)
			return area;
	}
	return NULL;
}

static struct mw_error *map_at(struct trap_process *process, const struct mw_inject *inject, mw_addr at)
{
	struct trap_rescue *rescue = &process->rescue;
	mw_addr where = TRAP_RESCUE_AT(process, areas) + rescue->area_count * sizeof(at), mapped = 0;
	const mw_addr none = 0;
	struct mw_error *err;

	/* First: whoever cleans after a memwatch that was killed is to know of it. */
	MW_TRY(trap_rescue_put(process, inject->tid, where, &at, sizeof(at)));
	err = mw_inject_map(inject, at, MW_RESCUE_AREA, PROT_READ | PROT_EXEC, &mapped);
	if (err) {
		mw_error_destroy(trap_rescue_put(process, inject->tid, where, &none, sizeof(none)));
		return err;
	}
	rescue->areas[rescue->area_count++] = (struct trap_area){.start = at, .next = at};
	return NULL;
}

static struct mw_error *map_near(struct trap_process *process, const struct mw_inject *inject,
				 const struct mw_module *module)
{
	struct mw_maps maps = {0};
	mw_addr at = 0;
	bool found;

	MW_TRY(mw_maps_read(inject->tid, &maps));
	found = mw_inject_find_gap(&maps, module->start, module->end, PLACE_REACH, MW_RESCUE_AREA, &at);
	mw_maps_deinit(&maps);
	return found ? map_at(process, inject, at) : NULL;
}

struct mw_error *trap_areas_map(struct trap_process *process, pid_t tid)
{
	struct mw_inject inject = process->rescue.inject;

	inject.tid = tid;
	if (!process->rescue.base)
		return NULL;
	for (uint32_t i = 0; i < mw_modules_count(process->survey.modules); i++) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, i);
		struct mw_error *err;

		/* The vdso has no calls of allocators. */
		if (module->gone || !module->elf || module->path[0] != '/' || trap_area_near(process, module) ||
		    process->rescue.area_count == MW_RESCUE_AREAS)
			continue;
		err = map_near(process, &inject, module);
		if (err && (mw_error_kind(err) == MW_ERROR_GONE || mw_error_kind(err) == MW_ERROR_MEMORY))
			return err;
		/* Without it there is the rest of the last page. To ask again takes time in which all threads stand. */
		if (err) {
			mw_error_destroy(err);
			return NULL;
		}
	}
	return NULL;
}

struct mw_error *trap_areas_unmap(const struct trap_process *process, const struct mw_inject *inject)
{
	struct mw_error *err = NULL;

	for (size_t i = 0; i < process->rescue.area_count; i++)
		mw_error_keep_first(&err, mw_inject_unmap(inject, process->rescue.areas[i].start, MW_RESCUE_AREA));
	return err;
}
