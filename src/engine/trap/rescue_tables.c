// SPDX-License-Identifier: MIT
/*
 * rescue_tables.c: what the rescue knows of breakpoints, changed bytes, exchanged returns and masks (trap.h).
 *
 * An entry is in the target before what it tells of is.
 */
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdlib.h>
#include <string.h>

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

struct mw_error *trap_rescue_write(struct trap_process *process, pid_t tid, size_t offset, const void *bytes,
				   size_t size)
{
	return trap_rescue_put(process, tid, process->rescue.base + MW_RESCUE_CODE + offset, bytes, size);
}

void trap_rescue_own(const struct trap_process *process, uint64_t *resident, uint64_t *mapped)
{
	*resident = 0;
	*mapped = process->rescue.base ? TRAP_RESCUE_SIZE + process->rescue.area_count * MW_RESCUE_AREA : 0;
	for (size_t i = 0; process->rescue.base && i < TRAP_RESCUE_PAGES; i++)
		*resident += (process->rescue.touched[i / 64] >> i % 64 & 1) * PAGE;
	for (size_t i = 0; process->rescue.base && i < process->rescue.area_count; i++)
		*resident += (process->rescue.areas[i].next - process->rescue.areas[i].start + PAGE - 1) / PAGE * PAGE;
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

struct mw_error *trap_rescue_note(struct trap_process *process, pid_t tid, const struct trap_breakpoint *breakpoint,
				  bool *possible)
{
	struct trap_rescue *rescue = &process->rescue;
	struct mw_rescue_breakpoint entry = {.plan = breakpoint->plan,
					     .slot = breakpoint->slot,
					     .kind = kind_of(breakpoint),
					     .copy_length = (uint8_t)breakpoint->copy_length,
					     .slot_size = (uint8_t)breakpoint->slot_size};
	uint32_t place, number;
	mw_addr at;

	*possible = true;
	if (!rescue->base)
		return NULL;
	*possible = number_of(rescue, breakpoint->addr, &place, &number);
	if (!*possible)
		return NULL;
	memcpy(entry.there, breakpoint->there, sizeof(entry.there));
	entry.plan.why = NULL;
	at = TRAP_RESCUE_AT(process, breakpoints) + number * sizeof(entry);
	MW_TRY(trap_rescue_put(process, tid, at, &entry, sizeof(entry)));
	at = TRAP_RESCUE_AT(process, index) + place * sizeof(uint32_t);
	MW_TRY(trap_rescue_put(process, tid, at, &rescue->index[place], sizeof(uint32_t)));
	return trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, count), &rescue->count, sizeof(rescue->count));
}

struct mw_error *trap_rescue_forget(struct trap_process *process, pid_t tid, mw_addr addr)
{
	struct trap_rescue *rescue = &process->rescue;
	const uint64_t none = 0;
	uint32_t place, number;

	if (!rescue->base || !number_of(rescue, addr, &place, &number))
		return NULL;
	return trap_rescue_put(process, tid,
			       TRAP_RESCUE_AT(process, breakpoints) + number * sizeof(struct mw_rescue_breakpoint) +
				       offsetof(struct mw_rescue_breakpoint, plan.pc),
			       &none, sizeof(none));
}

struct mw_error *trap_rescue_bytes(struct trap_process *process, pid_t tid, mw_addr addr, const void *bytes,
				   size_t size, bool last, bool *possible)
{
	struct trap_rescue *rescue = &process->rescue;
	struct mw_rescue_bytes entry = {.addr = addr, .size = (uint8_t)size, .last = last};

	*possible = rescue->base && rescue->change_count < MW_RESCUE_CHANGES && size <= sizeof(entry.after);
	if (!*possible)
		return NULL;
	memcpy(entry.after, bytes, size);
	MW_TRY(mw_remote_read_all(tid, addr, entry.before, size));
	MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, changes) + rescue->change_count * sizeof(entry),
			       &entry, sizeof(entry)));
	rescue->change_count++;
	return trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, change_count), &rescue->change_count,
			       sizeof(rescue->change_count));
}

struct mw_error *trap_rescue_blocked(struct trap_process *process, pid_t tid)
{
	uint32_t tids[MW_RESCUE_BLOCKED], count = 0;
	void *value;

	if (!process->rescue.base)
		return NULL;
	for (size_t i = 0; count < MW_RESCUE_BLOCKED && mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		if (!thread->trap_blocked || thread->relation != TRAP_THREAD)
			continue;
		if (!thread->ns_tid)
			thread->ns_tid = mw_ns_tid(thread->tid);
		tids[count++] = (uint32_t)thread->ns_tid;
	}
	if (count > 0)
		MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, blocked), tids, count * sizeof(*tids)));
	return trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, blocked_count), &count, sizeof(count));
}

struct mw_error *trap_rescue_resets(struct trap_process *process, struct trap_thread *child, bool *resets)
{
	const uint32_t none = 0;
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
		MW_TRY(trap_rescue_put(process, trap_live_tid(process), TRAP_RESCUE_AT(process, resets[i]), &none,
				       sizeof(none)));
	}
	return NULL;
}

static uint32_t place_of_return(const struct trap_rescue *rescue, mw_addr sp)
{
	uint32_t at = mw_rescue_place(sp, MW_RESCUE_RETURNS);

	while (rescue->return_sps[at] && rescue->return_sps[at] != sp)
		at = (at + 1) & (MW_RESCUE_RETURNS - 1);
	return at;
}

/* Nearly full of what has long returned: only what is in flight now. */
static struct mw_error *renew_returns(struct trap_process *process, pid_t tid)
{
	struct trap_rescue *rescue = &process->rescue;
	struct mw_rescue_return *all = calloc(MW_RESCUE_RETURNS, sizeof(*all));
	struct mw_error *err;
	void *value;

	if (!all)
		return mw_error_nomem();
	memset(rescue->return_sps, 0, MW_RESCUE_RETURNS * sizeof(*rescue->return_sps));
	rescue->return_count = 0;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;

		for (size_t j = 0; j < thread->call_count && rescue->return_count < MW_RESCUE_RETURNS / 2; j++) {
			const struct trap_call *call = &thread->calls[j];
			uint32_t at = place_of_return(rescue, call->sp);

			if (!call->exchanged)
				continue;
			rescue->return_count += rescue->return_sps[at] == 0;
			rescue->return_sps[at] = call->sp;
			all[at] = (struct mw_rescue_return){.sp = call->sp, .ret = call->ret};
		}
	}
	err = trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, returns), all, MW_RESCUE_RETURNS * sizeof(*all));
	free(all);
	return err;
}

struct mw_error *trap_rescue_exchange(struct trap_process *process, pid_t tid, mw_addr sp, mw_addr ret, bool *possible)
{
	struct trap_rescue *rescue = &process->rescue;
	const struct mw_rescue_return entry = {.sp = sp, .ret = ret};
	uint32_t at;

	*possible = true;
	if (!rescue->base)
		return NULL;
	if (rescue->return_count >= MW_RESCUE_RETURNS / 4 * 3)
		MW_TRY(renew_returns(process, tid));
	*possible = rescue->return_count < MW_RESCUE_RETURNS / 4 * 3;
	if (!*possible)
		return NULL;
	at = place_of_return(rescue, sp);
	rescue->return_count += rescue->return_sps[at] == 0;
	rescue->return_sps[at] = sp;
	return trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, returns) + at * sizeof(entry), &entry,
			       sizeof(entry));
}

struct mw_error *trap_rescue_prepare(struct trap_rescue *rescue)
{
	rescue->index = calloc(MW_RESCUE_INDEX, sizeof(*rescue->index));
	rescue->addrs = calloc(MW_RESCUE_BREAKPOINTS, sizeof(*rescue->addrs));
	rescue->return_sps = calloc(MW_RESCUE_RETURNS, sizeof(*rescue->return_sps));
	return rescue->index && rescue->addrs && rescue->return_sps ? NULL : mw_error_nomem();
}

void trap_rescue_deinit(struct trap_rescue *rescue)
{
	free(rescue->index);
	free(rescue->addrs);
	free(rescue->return_sps);
}
