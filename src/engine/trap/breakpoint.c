// SPDX-License-Identifier: MIT
/* breakpoint.c: breakpoints and the instructions that they displace (trap.h). */
#include "engine/trap/trap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

/* Bytes of the data that have been written: their pages are the target's now. */
static void touch(struct trap_rescue *rescue, mw_addr at, size_t size)
{
	size_t first = (size_t)(at - rescue->base) / PAGE, last = (size_t)(at - rescue->base + size - 1) / PAGE;

	for (size_t i = first; i <= last; i++)
		rescue->touched[i / 64] |= UINT64_C(1) << i % 64;
}

struct mw_error *trap_rescue_put(struct trap_process *process, pid_t tid, mw_addr at, const void *bytes, size_t size)
{
	struct mw_error *err = mw_remote_write(tid, at, bytes, size);

	touch(&process->rescue, at, size);
	if (!err || mw_error_kind(err) == MW_ERROR_GONE)
		return err;
	/* One that has become another's may still be written to by its tracer. */
	mw_error_destroy(err);
	return mw_remote_poke(tid, at, bytes, size);
}

/* The number of the breakpoint at `addr`, which stays its own for good; a new one where it has none. False: no room. */
static bool number_of(struct trap_rescue *rescue, mw_addr addr, uint32_t *place, uint32_t *number)
{
	uint32_t at = mw_rescue_place(addr, MW_RESCUE_INDEX);

	while (rescue->index[at] && rescue->addrs[rescue->index[at] - 1] != addr)
		at = (at + 1) & (MW_RESCUE_INDEX - 1);
	if (!rescue->index[at]) {
		if (rescue->count == MW_RESCUE_BREAKPOINTS)
			return false;
		rescue->addrs[rescue->count] = addr;
		rescue->index[at] = ++rescue->count;
	}
	*place = at;
	*number = rescue->index[at] - 1;
	return true;
}

static uint32_t kind_of(const struct trap_breakpoint *breakpoint)
{
	if (breakpoint->trampoline)
		return MW_RESCUE_TRAMPOLINE;
	if (breakpoint->mask)
		return MW_RESCUE_MASK;
	return breakpoint->action ? MW_RESCUE_ACTION : MW_RESCUE_PLAIN;
}

/* A breakpoint that is about to stand, or what has become of it since; not `*possible` where there is no room. */
static struct mw_error *note(struct trap_process *process, pid_t tid, const struct trap_breakpoint *breakpoint,
			     bool *possible)
{
	struct trap_rescue *rescue = &process->rescue;
	struct mw_rescue_breakpoint entry = {.plan = breakpoint->plan,
					     .slot = breakpoint->slot,
					     .kind = kind_of(breakpoint),
					     .copy_length = (uint8_t)breakpoint->copy_length,
					     .slot_size = (uint8_t)breakpoint->slot_size};
	uint32_t place, number;

	*possible = true;
	if (!rescue->base)
		return NULL;
	*possible = number_of(rescue, breakpoint->addr, &place, &number);
	if (!*possible)
		return NULL;
	memcpy(entry.there, breakpoint->there, sizeof(entry.there));
	entry.plan.why = NULL;
	MW_TRY(TRAP_RESCUE_PUT(process, tid, breakpoints[number], entry));
	MW_TRY(TRAP_RESCUE_PUT(process, tid, index[place], rescue->index[place]));
	return TRAP_RESCUE_PUT(process, tid, count, rescue->count);
}

struct mw_error *trap_rescue_forget(struct trap_process *process, pid_t tid, mw_addr addr)
{
	struct trap_rescue *rescue = &process->rescue;
	uint32_t place, number;

	if (!rescue->base || !number_of(rescue, addr, &place, &number))
		return NULL;
	return TRAP_RESCUE_PUT(process, tid, breakpoints[number].plan.pc, 0);
}

struct mw_error *trap_rescue_resets(struct trap_process *process, struct trap_thread *child, bool *resets)
{
	uint32_t noted[MW_RESCUE_RESETS];

	*resets = false;
	if (!process->rescue.base)
		return NULL;
	MW_TRY(mw_remote_read_all(trap_live_tid(process), TRAP_RESCUE_AT(process, resets), noted, sizeof(noted)));
	for (size_t i = 0; i < MW_RESCUE_RESETS; i++) {
		if (!noted[i])
			continue;
		if (!child->ns_tid)
			child->ns_tid = mw_ns_tid(child->tid);
		if (noted[i] != (uint32_t)child->ns_tid)
			continue;
		*resets = true;
		MW_TRY(TRAP_RESCUE_PUT(process, trap_live_tid(process), resets[i], 0));
	}
	return NULL;
}

/*
 * Memory for out-of-line copies, for where the rest of a module's last page of code is too small. Mapped at attach, near
 * all code that there is: one is shared by the modules within its reach, so most processes have two, by the program and
 * by the libraries. Nothing is there before a copy is: the pages cost nothing.
 */
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

/* One that a module's copies may be in and that has room for one, or NULL. */
static struct trap_area *area_near(struct trap_process *process, const struct mw_module *module)
{
	MW_EACH_MUTABLE(area, process->rescue.areas, process->rescue.area_count)
		if (reaches(area, module) && area->next + MW_OOL_MAX <= area->start + MW_RESCUE_AREA)
			return area;
	return NULL;
}

static struct mw_error *map_at(struct trap_process *process, const struct mw_inject *inject, mw_addr at)
{
	struct trap_rescue *rescue = &process->rescue;
	mw_addr mapped = 0;
	struct mw_error *err;

	/* First: whoever cleans after a memwatch that was killed is to know of it. */
	MW_TRY(TRAP_RESCUE_PUT(process, inject->tid, areas[rescue->area_count], at));
	err = mw_inject_map(inject, at, MW_RESCUE_AREA, PROT_READ | PROT_EXEC, &mapped);
	if (err) {
		mw_error_destroy(TRAP_RESCUE_PUT(process, inject->tid, areas[rescue->area_count], 0));
		return err;
	}
	rescue->areas[rescue->area_count++] = (struct trap_area){.start = at, .next = at};
	return NULL;
}

static struct mw_error *map_near(struct trap_process *process, const struct mw_inject *inject,
				 const struct mw_module *module)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	mw_addr at = 0;

	MW_TRY(mw_maps_read(inject->tid, &maps));
	return mw_inject_find_gap(&maps, module->start, module->end, PLACE_REACH, MW_RESCUE_AREA, &at)
		       ? map_at(process, inject, at)
		       : NULL;
}

struct mw_error *trap_areas_map(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = trap_inject_by(process, tid);
	const struct mw_module *module;

	if (!process->rescue.base)
		return NULL;
	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));) {
		struct mw_error *err;

		/* The vdso has no calls of allocators. */
		if (module->path[0] != '/' || area_near(process, module) ||
		    process->rescue.area_count == MW_RESCUE_AREAS)
			continue;
		err = map_near(process, &inject, module);
		if (err && (mw_error_kind(err) == MW_ERROR_GONE || mw_error_kind(err) == MW_ERROR_MEMORY))
			return err;
		/* Without it there is the rest of the last page. To ask again takes time in which all threads stand. */
		if (!mw_error_none(err))
			return NULL;
	}
	return NULL;
}

struct mw_error *trap_breakpoint_get(struct trap_process *process, mw_addr addr, struct trap_breakpoint **out)
{
	MW_FREE struct trap_breakpoint *fresh = NULL;

	*out = mw_map_get(&process->planted.breakpoints, addr);
	if (*out)
		return NULL;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return mw_error_nomem();
	fresh->addr = addr;
	fresh->hook = TRAP_NO_HOOK;
	MW_TRY(mw_map_set(&process->planted.breakpoints, addr, fresh));
	*out = MW_TAKE(fresh);
	return NULL;
}

/*
 * The unused rest of the last page of a module's code is mapped, executable and used by nobody: room for out-of-line
 * copies that needs no system call in the target and is near enough for relative operands.
 */
static struct mw_error *find_cave(struct trap_process *process, uint32_t number, struct trap_cave **out)
{
	const struct mw_module *module = mw_modules_get(process->survey.modules, number);

	MW_EACH_MUTABLE(cave, process->planted.caves, process->planted.cave_count) {
		*out = cave;
		if (cave->module == number)
			return NULL;
	}
	*out = MW_VECTOR_AT(process->planted.caves, process->planted.cave_count, process->planted.cave_count);
	if (!*out)
		return mw_error_nomem();
	(*out)->module = number;
	MW_EACH(segment, module->elf->segments, module->elf->segment_count) {
		mw_addr used = segment->vaddr + module->bias + segment->memory_size, end;

		if (!segment->exec || segment->write || segment->file_size < segment->memory_size)
			continue;
		used = (used + MW_OOL_MAX - 1) & ~(mw_addr)(MW_OOL_MAX - 1);
		end = (used + PAGE - 1) & ~(mw_addr)(PAGE - 1);
		if (end - used > (*out)->end - (*out)->next) {
			(*out)->next = used;
			(*out)->end = end;
		}
	}
	return NULL;
}

struct mw_error *trap_cave_take(struct trap_process *process, uint32_t module, mw_addr *out)
{
	struct trap_cave *cave = NULL;

	*out = 0;
	MW_TRY(find_cave(process, module, &cave));
	if (cave->end - cave->next < MW_OOL_MAX)
		return NULL;
	*out = cave->next;
	cave->next += MW_OOL_MAX;
	return NULL;
}

/* Where the next copy of the module's goes; NULL: there is no room. */
static mw_addr *room_for(struct trap_process *process, const struct mw_module *module, struct trap_cave *cave)
{
	struct trap_area *area;

	if (cave->end - cave->next >= MW_OOL_MAX)
		return &cave->next;
	area = area_near(process, module);
	return area ? &area->next : NULL;
}

/* Make the copy; `*made` stays false where there is no room or the instruction can't be moved there. */
static struct mw_error *make_copy(struct trap_process *process, pid_t tid, struct trap_breakpoint *breakpoint,
				  bool *made)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, breakpoint->addr);
	struct trap_cave *cave = NULL;
	uint8_t code[MW_OOL_MAX], there[MW_OOL_MAX];
	size_t copy_length, length;
	struct mw_error *err;
	mw_addr *room, at;

	*made = false;
	if (!module || !module->elf)
		return NULL;
	MW_TRY(find_cave(process, module->number, &cave));
	room = room_for(process, module, cave);
	if (!room || mw_remote_read(tid, *room, there, sizeof(there)) != sizeof(there))
		return NULL;
	at = *room;
	err = process->arch->relocate(&breakpoint->plan, at, code, &copy_length, &length);
	if (err)
		return mw_error_if_memory(err);
	breakpoint->slot = at;
	breakpoint->copy_length = copy_length;
	breakpoint->slot_size = length;
	memcpy(breakpoint->there, there, sizeof(there));
	/* First: whoever cleans after a memwatch that was killed is to know of it. */
	err = note(process, tid, breakpoint, made);
	if (!err && *made)
		err = mw_journal_plant(&process->journal, tid, at, code, length, NULL);
	if (!err && *made)
		err = mw_map_set(&process->planted.slots, at, breakpoint);
	if (err || !*made) {
		breakpoint->slot = 0;
		return err;
	}
	*room += MW_OOL_MAX;
	return NULL;
}

/* Can its instruction be carried out while the breakpoint stands? Makes the out-of-line copy where one is needed. */
static struct mw_error *prepare(struct trap_process *process, pid_t tid, struct trap_breakpoint *breakpoint,
				bool *possible)
{
	const struct mw_insn_plan *plan = &breakpoint->plan;

	*possible = true;
	if (breakpoint->slot || breakpoint->action || plan->how == MW_INSN_EMULATE)
		return NULL;
	*possible = false;
	if (plan->can_relocate)
		MW_TRY(make_copy(process, tid, breakpoint, possible));
	if (!*possible)
		*possible = plan->can_emulate;
	return NULL;
}

struct mw_error *trap_breakpoint_plant(struct trap_process *process, pid_t tid, struct trap_breakpoint *breakpoint,
				       bool *possible)
{
	if (breakpoint->standing)
		return note(process, tid, breakpoint, possible);
	MW_TRY(prepare(process, tid, breakpoint, possible));
	if (*possible)
		MW_TRY(note(process, tid, breakpoint, possible));
	if (!*possible)
		return NULL;
	MW_TRY(mw_journal_plant(&process->journal, tid, breakpoint->addr, process->arch->breakpoint,
				process->arch->breakpoint_length, &breakpoint->patch));
	breakpoint->standing = true;
	return NULL;
}

struct mw_error *trap_breakpoint_lift(struct trap_process *process, pid_t tid, struct trap_breakpoint *breakpoint)
{
	if (!breakpoint->standing)
		return NULL;
	MW_TRY(mw_journal_restore(&process->journal, tid, breakpoint->patch));
	breakpoint->standing = false;
	return NULL;
}

struct mw_error *trap_leave_slot(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct trap_breakpoint *breakpoint;
	struct mw_tracee_regs regs;
	mw_addr pc;

	if (process->planted.slots.count == 0)
		return NULL;
	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	pc = regs.general.pc;
	breakpoint = mw_map_get(&process->planted.slots, pc & ~(mw_addr)(MW_OOL_MAX - 1));
	if (!breakpoint)
		return NULL;
	if (pc == breakpoint->slot) {
		/* Not executed yet: it will come to the breakpoint again. */
		regs.general.pc = breakpoint->addr;
		thread->last_free.again = breakpoint->hook == thread->last_free.last;
	} else if (pc == breakpoint->slot + breakpoint->copy_length) {
		regs.general.pc = breakpoint->addr + breakpoint->plan.length;
	} else {
		return NULL;
	}
	return mw_tracee_set_regs(thread->tid, &regs);
}
