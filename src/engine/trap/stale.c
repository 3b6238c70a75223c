// SPDX-License-Identifier: MIT
/*
 * stale.c: what a memwatch of engine trap that was killed has left (engine/stale.h): breakpoints, out-of-line
 * copies, exchanged return addresses, and the rescue (memwatch/rescue.h), whose tables tell of them all.
 */
#include "engine/stale.h"

#include "engine/trap/trap.h"
#include "proc/peek.h"
#include "tracee/quiesce.h"

#include <stdlib.h>
#include <string.h>

#define BREATH_NS    UINT64_C(1000000)
#define MOST_BREATHS 200
#define PATIENCE_NS  UINT64_C(10000000000) /* … which take longer where a thread gets no CPU to stop */
#define TRAP_BIT     (UINT64_C(1) << (SIGTRAP - 1))

struct remains {
	pid_t pid;
	const struct mw_arch *arch;
	struct mw_maps maps;
	mw_addr base;
	bool begun; /* it was killed while it filled the mapping: nothing leads there */
	struct mw_rescue_header header;
	struct mw_rescue *rescue; /* a copy of its data, counts bounded */
	struct mw_quiesce quiesce;
};

static void deinit(struct remains *remains)
{
	mw_maps_deinit(&remains->maps);
	mw_quiesce_deinit(&remains->quiesce);
	free(remains->rescue);
}

/* The code's mapping with its data right behind it; or one for both, until it is filled. */
static bool is_place(const struct mw_maps *maps, size_t i, bool *begun)
{
	const size_t data_size = offsetof(struct mw_rescue, pid);
	const struct mw_mapping *code = &maps->items[i], *data = code + 1;

	*begun = !code->exec && code->write;
	if (code->inode || code->shared || code->exec == code->write)
		return false;
	if (*begun)
		return code->end - code->start >= MW_RESCUE_CODE + data_size;
	return i + 1 < maps->count && code->end - code->start == MW_RESCUE_CODE && data->start == code->end &&
	       !data->inode && data->write && data->end - data->start >= data_size;
}

/* The place whose mark is there, or 0. What holds a mark was written to: of the rest no page is made resident. */
static mw_addr find_mark(struct remains *remains, pid_t tid, struct mw_rescue_header *header)
{
	struct mw_touched memory;
	mw_addr found = 0;

	mw_touched_init(&memory, tid);
	for (size_t i = 0; i < remains->maps.count && !found; i++) {
		mw_addr start = remains->maps.items[i].start;

		if (is_place(&remains->maps, i, &remains->begun) &&
		    mw_touched_read(&memory, start, header, sizeof(*header)) == sizeof(*header) &&
		    header->magic == MW_RESCUE_MAGIC)
			found = start;
	}
	mw_touched_deinit(&memory);
	return found;
}

static struct mw_error *find(struct remains *remains, pid_t tid)
{
	struct mw_rescue_header header;
	mw_addr found;

	remains->base = 0;
	MW_TRY(mw_maps_read(tid, &remains->maps));
	found = find_mark(remains, tid, &header);
	if (found && (header.layout != MW_RESCUE_LAYOUT || header.handler >= MW_RESCUE_CODE))
		return mw_stale_other_version(remains->pid);
	if (found)
		remains->header = header;
	remains->base = found;
	return NULL;
}

static void bound(struct mw_rescue *rescue)
{
	if (rescue->count > MW_RESCUE_BREAKPOINTS)
		rescue->count = MW_RESCUE_BREAKPOINTS;
	if (rescue->change_count > MW_RESCUE_CHANGES)
		rescue->change_count = MW_RESCUE_CHANGES;
	if (rescue->blocked_count > MW_RESCUE_BLOCKED)
		rescue->blocked_count = MW_RESCUE_BLOCKED;
}

static struct mw_error *read_data(struct remains *remains, pid_t tid)
{
	struct mw_rescue *rescue = remains->rescue;

	if (!rescue) /* laid out in pages: calloc() would not do */
		rescue = aligned_alloc(_Alignof(struct mw_rescue), sizeof(*rescue));
	if (!rescue)
		return mw_error_nomem();
	remains->rescue = rescue;
	memset(rescue, 0, sizeof(*rescue));
	MW_TRY(mw_remote_read_all(tid, remains->base + MW_RESCUE_CODE, rescue, sizeof(*rescue)));
	bound(rescue);
	return NULL;
}

/* What the program goes on with: its actions, and who blocks SIGTRAP. */
static struct mw_error *read_again(struct remains *remains, pid_t tid)
{
	const mw_addr data = remains->base + MW_RESCUE_CODE;
	struct mw_rescue *rescue = remains->rescue;

	MW_TRY(mw_remote_read_all(tid, data, rescue, offsetof(struct mw_rescue, changes)));
	bound(rescue);
	return mw_remote_read_all(tid, data + offsetof(struct mw_rescue, blocked), rescue->blocked,
				  sizeof(rescue->blocked));
}

/* Code of a file: only there has memwatch planted anything. */
static bool is_code(const struct remains *remains, mw_addr addr, size_t size)
{
	const struct mw_mapping *mapping = mw_maps_find(&remains->maps, addr);

	return mapping && mapping->exec && !mapping->write && mapping->inode && size <= mapping->end - addr;
}

/* An area for out-of-line copies: nobody else maps such. */
static bool is_area(const struct remains *remains, mw_addr start)
{
	const struct mw_mapping *mapping = start ? mw_maps_find(&remains->maps, start) : NULL;

	return mapping && mapping->start == start && mapping->end - start == MW_RESCUE_AREA && mapping->exec &&
	       !mapping->write && !mapping->inode;
}

/* May a copy of `size` bytes be at `addr`? */
static bool is_room(const struct remains *remains, mw_addr addr, size_t size)
{
	for (size_t i = 0; i < MW_RESCUE_AREAS; i++) {
		mw_addr start = remains->rescue->areas[i];

		if (addr - start < MW_RESCUE_AREA && size <= MW_RESCUE_AREA - (addr - start) && is_area(remains, start))
			return true;
	}
	return is_code(remains, addr, size);
}

/* Does its breakpoint still stand, and before the rest of the instruction that it was put on? */
static bool stands(const struct remains *remains, pid_t tid, const struct mw_rescue_breakpoint *entry)
{
	const struct mw_arch *arch = remains->arch;
	size_t length = entry->plan.length, planted = arch->breakpoint_length;
	uint8_t now[MW_INSN_MAX];

	return entry->plan.pc && length >= planted && length <= MW_INSN_MAX &&
	       is_code(remains, entry->plan.pc, length) && mw_remote_read(tid, entry->plan.pc, now, length) == length &&
	       memcmp(now, arch->breakpoint, planted) == 0 &&
	       memcmp(now + planted, entry->plan.bytes + planted, length - planted) == 0;
}

/* `last`: those that the actions of signals must be put back before. */
static struct mw_error *take_back(const struct remains *remains, pid_t tid, struct mw_journal *journal, bool last)
{
	MW_EACH(entry, remains->rescue->changes, remains->rescue->change_count) {
		uint8_t now[sizeof(entry->after)];

		if ((entry->last != 0) == last && entry->size <= sizeof(now) &&
		    is_code(remains, entry->addr, entry->size) &&
		    mw_remote_read(tid, entry->addr, now, entry->size) == entry->size &&
		    memcmp(now, entry->after, entry->size) == 0)
			MW_TRY(mw_journal_adopt(journal, entry->addr, entry->before, entry->after, entry->size, NULL));
	}
	return NULL;
}

/* `last`: the trampoline's, as a thread may stand before it that has just returned there. */
static struct mw_error *take_down(const struct remains *remains, pid_t tid, struct mw_journal *journal, bool last)
{
	MW_EACH(entry, remains->rescue->breakpoints, remains->rescue->count) {
		if ((entry->kind == MW_RESCUE_TRAMPOLINE) == last && stands(remains, tid, entry))
			MW_TRY(mw_journal_adopt(journal, entry->plan.pc, entry->plan.bytes, remains->arch->breakpoint,
						remains->arch->breakpoint_length, NULL));
	}
	return take_back(remains, tid, journal, last);
}

static struct mw_error *open_remains(struct remains *remains, pid_t pid, bool *found)
{
	remains->arch = mw_arch_find(mw_target_machine());
	/* A first thread that has ended has no memory. */
	pid = mw_live_thread(pid);
	MW_TRY(find(remains, pid));
	*found = remains->base != 0;
	return *found && !remains->begun ? read_data(remains, pid) : NULL;
}

struct mw_error *trap_stale_look(pid_t pid, struct mw_stale *stale)
{
	MW_CLEANUP(deinit) struct remains remains = {.pid = pid};
	bool found = false;
	struct mw_error *err = open_remains(&remains, pid, &found);

	stale->found |= found;
	if (err || !remains.rescue)
		return err;
	MW_TRY(take_down(&remains, mw_live_thread(pid), stale->journal, false));
	return take_down(&remains, mw_live_thread(pid), stale->journal, true);
}

/* 0: there is none. */
static mw_addr trampoline_of(const struct remains *remains)
{
	for (uint32_t i = 0; i < remains->rescue->count; i++)
		if (remains->rescue->breakpoints[i].kind == MW_RESCUE_TRAMPOLINE)
			return remains->rescue->breakpoints[i].plan.pc;
	return 0;
}

/* The return addresses that lead to the trampoline, wherever they still stand. */
static struct mw_error *restore_returns(const struct remains *remains, pid_t tid)
{
	const struct mw_rescue *rescue = remains->rescue;
	const mw_addr trampoline = trampoline_of(remains);

	for (uint32_t i = 0; trampoline && i < MW_RESCUE_RETURNS; i++) {
		const struct mw_rescue_return *entry = &rescue->returns[i];
		mw_addr at = entry->sp - sizeof(mw_addr), now;

		if (!entry->sp || !entry->ret || mw_remote_read(tid, at, &now, sizeof(now)) != sizeof(now) ||
		    now != trampoline)
			continue;
		MW_TRY(mw_remote_write(tid, at, &entry->ret, sizeof(entry->ret)));
	}
	return NULL;
}

static pid_t any_stopped(const struct remains *remains)
{
	MW_EACH(thread, remains->quiesce.threads, remains->quiesce.count)
		if (thread->stopped)
			return thread->tid;
	return mw_live_thread(remains->pid);
}

/* Is its out-of-line copy there? The library that it was made in may have gone, and another have come. */
static bool has_copy(const struct remains *remains, pid_t tid, const struct mw_rescue_breakpoint *entry)
{
	uint8_t now[MW_OOL_MAX], copy[MW_OOL_MAX];
	size_t copy_length, length;
	struct mw_insn_plan plan;

	if (!entry->slot || entry->slot_size > MW_OOL_MAX || entry->plan.length > MW_INSN_MAX ||
	    !is_room(remains, entry->slot, entry->slot_size))
		return false;
	remains->arch->plan(entry->plan.bytes, entry->plan.length, entry->plan.pc, &plan);
	if (!plan.can_relocate)
		return false;
	if (!mw_error_none(remains->arch->relocate(&plan, entry->slot, copy, &copy_length, &length)))
		return false;
	return length == entry->slot_size && copy_length == entry->copy_length &&
	       mw_remote_read(tid, entry->slot, now, length) == length && memcmp(now, copy, length) == 0;
}

/* The breakpoint whose out-of-line copy `pc` is in, or NULL. */
static const struct mw_rescue_breakpoint *slot_of(const struct remains *remains, pid_t tid, mw_addr pc)
{
	MW_EACH(entry, remains->rescue->breakpoints, remains->rescue->count)
		if (entry->slot && pc - entry->slot < entry->slot_size && has_copy(remains, tid, entry))
			return entry;
	return NULL;
}

/* Has it executed a breakpoint, and not taken the signal yet? That is for our handler. */
static struct mw_error *awaits_trap(pid_t tid, bool *out)
{
	struct mw_status status;

	MW_TRY(mw_status_read(tid, &status));
	*out = status.sig_pending & ~status.sig_blocked & TRAP_BIT;
	return NULL;
}

/* A thread is about to enter our handler, perhaps with the program's own signal: one that comes again and again would
 * be found there whenever it is stopped. It enters the program's handler instead. */
static bool hand_on(const struct remains *remains, pid_t tid, struct mw_tracee_regs *regs)
{
	const struct mw_rescue_action *own = &remains->rescue->own[remains->rescue->own_at % 2];
	mw_addr sp = regs->general.gpr[remains->arch->dwarf_sp], pc = regs->general.pc;
	mw_addr info_at = remains->arch->argument(&regs->general, 1);
	siginfo_t info;

	/* One that the kernel sent may be a breakpoint's of ours. */
	if (own->handler <= 1 || own->flags & MW_RESCUE_RESETHAND || !(own->flags & MW_RESCUE_RESTORER) ||
	    remains->rescue->shadow_stack || mw_remote_read(tid, info_at, &info, sizeof(info)) != sizeof(info) ||
	    info.si_code > 0)
		return false;
	regs->general.pc = own->handler;
	if (mw_error_none(mw_remote_write(tid, sp, &own->restorer, sizeof(own->restorer))) &&
	    mw_error_none(mw_tracee_set_regs(tid, regs)))
		return true;
	regs->general.pc = pc;
	return false;
}

/* One that was to stand, and may be in what was left: it has had no CPU for that, or waits in the kernel. */
static bool may_be_inside(const struct remains *remains, pid_t tid)
{
	struct mw_regs regs = {0};
	char state = mw_state_read(tid);
	mw_addr sp;

	if (mw_state_is_end(state))
		return false;
	if (state != 'D' || !mw_waiting_read(tid, &sp, &regs.pc))
		return true;
	regs.gpr[remains->arch->dwarf_sp] = sp;
	return regs.pc == trampoline_of(remains) || slot_of(remains, tid, regs.pc) ||
	       trap_leads_inside(tid, remains->arch, &regs, remains->base, true, remains->rescue->shadow_stack != 0);
}

/* Threads come out of copies into the program's own code, and go on from the trampoline where they should have
 * returned to. */
static struct mw_error *move_out(struct remains *remains, bool *inside)
{
	MW_TRY(read_again(remains, any_stopped(remains)));
	*inside = false;
	MW_EACH_MUTABLE(thread, remains->quiesce.threads, remains->quiesce.count) {
		const struct mw_rescue_breakpoint *entry;
		struct mw_tracee_regs regs;
		bool interrupted;
		mw_addr pc;

		if (!thread->stopped) {
			*inside |= may_be_inside(remains, thread->tid);
			continue;
		}
		MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
		MW_TRY(awaits_trap(thread->tid, &interrupted));
		pc = regs.general.pc;
		if (pc == remains->base + remains->header.handler && hand_on(remains, thread->tid, &regs))
			pc = regs.general.pc;
		thread->urged = interrupted || pc == trampoline_of(remains) ||
				trap_leads_inside(thread->tid, remains->arch, &regs.general, remains->base,
						  remains->rescue->inside != 0, remains->rescue->shadow_stack != 0);
		*inside |= thread->urged;
		entry = slot_of(remains, thread->tid, pc);
		if (!entry)
			continue;
		if (pc == entry->slot) {
			regs.general.pc = entry->plan.pc;
		} else if (pc == entry->slot + entry->copy_length) {
			regs.general.pc = entry->plan.pc + entry->plan.length;
		} else {
			*inside = thread->urged = true;
			continue;
		}
		MW_TRY(mw_tracee_set_regs(thread->tid, &regs));
	}
	return NULL;
}

/* What stood where the out-of-line copies are. */
static struct mw_error *restore_copies(const struct remains *remains, pid_t tid)
{
	MW_EACH(entry, remains->rescue->breakpoints, remains->rescue->count) {
		if (!has_copy(remains, tid, entry))
			continue;
		MW_TRY(mw_remote_poke(tid, entry->slot, entry->there, entry->slot_size));
	}
	return NULL;
}

/* SIGTRAP was taken out of their masks. */
static struct mw_error *restore_masks(const struct remains *remains)
{
	const struct mw_rescue *rescue = remains->rescue;

	for (size_t i = 0; i < remains->quiesce.count && rescue->blocked_count > 0; i++) {
		const struct mw_quiet_thread *thread = &remains->quiesce.threads[i];
		uint32_t self = (uint32_t)mw_ns_tid(thread->tid);
		bool blocked = false;
		uint64_t mask;

		MW_EACH(tid, rescue->blocked, rescue->blocked_count)
			blocked |= *tid == self;
		if (!blocked || !thread->stopped)
			continue;
		MW_TRY(mw_tracee_get_sigmask(thread->tid, &mask));
		MW_TRY(mw_tracee_set_sigmask(thread->tid, mask | TRAP_BIT));
	}
	return NULL;
}

static struct mw_error *put_back(struct remains *remains, struct mw_journal *journal, const struct mw_inject *inject)
{
	const pid_t tid = inject->tid;

	MW_TRY(read_again(remains, tid));
	MW_TRY(restore_copies(remains, tid));
	MW_TRY(restore_masks(remains));
	MW_TRY(trap_actions_give_back(inject, &remains->rescue->marks,
				      &remains->rescue->own[remains->rescue->own_at % 2],
				      remains->base + remains->header.handler, false));
	MW_TRY(take_down(remains, tid, journal, true));
	MW_TRY(mw_journal_rollback(journal, tid));
	for (size_t i = 0; i < MW_RESCUE_AREAS; i++)
		if (is_area(remains, remains->rescue->areas[i]))
			MW_TRY(mw_inject_unmap(inject, remains->rescue->areas[i], MW_RESCUE_AREA));
	return NULL;
}

static struct mw_error *unmap(struct remains *remains, struct mw_journal *journal)
{
	struct mw_inject inject;
	pid_t tid;

	MW_TRY(mw_quiesce_await_injector(&remains->quiesce));
	MW_TRY(mw_seccomp_policy_pick_best(&remains->quiesce, &remains->maps,
					   MW_CALLS_MAP | (remains->begun ? 0 : MW_CALL_BIT(SIGACTION)), &tid));
	MW_TRY(mw_inject_init(&inject, tid, &remains->maps));
	if (!remains->begun)
		MW_TRY(put_back(remains, journal, &inject));
	return mw_inject_unmap(&inject, remains->base, TRAP_RESCUE_SIZE);
}

/* All of it; `*inside` where a thread does not come out of our code. */
static struct mw_error *take_out(struct remains *remains, struct mw_journal *journal, bool *inside)
{
	uint64_t begin = mw_clock_ns();
	pid_t tid = any_stopped(remains);

	/* It may have gone on with it since it was found. */
	mw_maps_deinit(&remains->maps);
	MW_TRY(find(remains, tid));
	if (!remains->base)
		return NULL;
	if (remains->begun)
		return unmap(remains, journal);
	MW_TRY(read_data(remains, tid));
	MW_TRY(take_down(remains, tid, journal, false));
	MW_TRY(mw_survey_adopt_pointers(tid, journal));
	MW_TRY(mw_journal_rollback(journal, tid));
	MW_TRY(restore_returns(remains, tid));
	MW_TRY(move_out(remains, inside));
	for (unsigned i = 0; *inside && i < MOST_BREATHS && mw_clock_ns() - begin < PATIENCE_NS; i++) {
		MW_TRY(mw_quiesce_run_briefly(&remains->quiesce, BREATH_NS));
		if (remains->quiesce.gone || remains->quiesce.execed)
			return NULL;
		MW_TRY(move_out(remains, inside));
	}
	return *inside ? NULL : unmap(remains, journal);
}

struct mw_error *trap_stale_remove(pid_t pid)
{
	MW_CLEANUP(deinit) struct remains remains = {.pid = pid};
	MW_CLEANUP(mw_journal_deinit) struct mw_journal journal = {0};
	bool found = false, inside = false;
	struct mw_error *err;

	MW_TRY(open_remains(&remains, pid, &found));
	if (!found)
		return NULL;
	err = mw_quiesce_begin(&remains.quiesce, pid);
	if (!err)
		err = take_out(&remains, &journal, &inside);
	err = mw_error_first(err, mw_quiesce_end(&remains.quiesce));
	if (err || !inside)
		return mw_error_prefix(err, "cannot remove what a killed memwatch left");
	/* A second one on top of it would lead to the first for ever. */
	return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0,
					     "a thread of process %d does not come out of what a killed memwatch "
					     "has left in it",
					     (int)pid),
			     "The process is unharmed; try again later");
}
