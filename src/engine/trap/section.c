// SPDX-License-Identifier: MIT
/*
 * section.c: the C library's own sections under which every signal is blocked (trap.h).
 *
 * It makes threads and starts programs with all signals blocked, and gives memory back there. The set of all signals is
 * a constant that it refers to, and the compiler may have others refer to it; so these system calls are made to refer
 * to one of ours, which lacks SIGTRAP:
 *
 *      before                                 after
 *      lea  all(%rip), %rsi                   lea  ours(%rip), %rsi
 *      mov  $14, %eax                         mov  $14, %eax
 *      syscall                                syscall
 *
 * Threads end under a set that is made there, or that lacks some of the library's own signals.
 *
 * All threads are held; none stands amidst an instruction.
 */
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "tracee/remote.h"

#include <string.h>

#define SETS        4                   /* different ones */
#define LIBRARY_OWN (UINT64_C(7) << 31) /* signals of the C libraries' own */
#define TRAP_BIT    (UINT64_C(1) << (SIGTRAP - 1))

struct set {
	uint64_t theirs; /* 0: none yet */
	mw_addr ours;    /* 0: there is no room */
};

static struct mw_error *patch(struct trap_process *process, pid_t tid, mw_addr addr, const void *bytes, size_t size,
			      bool *done)
{
	size_t number;

	MW_TRY(trap_rescue_bytes(process, tid, addr, bytes, size, false, done));
	return *done ? mw_journal_plant(&process->journal, tid, addr, bytes, size, &number) : NULL;
}

/* Our set in the place of `theirs`, near to the module's code; 0 where there is no room. */
static struct mw_error *make_set(struct trap_process *process, pid_t tid, uint32_t module, uint64_t theirs,
				 struct set *out)
{
	const uint64_t set = theirs & ~TRAP_BIT;
	bool done = false;
	mw_addr at;

	*out = (struct set){.theirs = theirs};
	MW_TRY(trap_cave_take(process, module, &at));
	if (at)
		MW_TRY(patch(process, tid, at, &set, sizeof(set), &done));
	out->ours = done ? at : 0;
	return NULL;
}

static struct mw_error *redirect(struct trap_process *process, pid_t tid, mw_addr operand, mw_addr set)
{
	int64_t far = (int64_t)(set - (operand + sizeof(int32_t)));
	int32_t displacement = (int32_t)far;
	bool done;

	return far == displacement ? patch(process, tid, operand, &displacement, sizeof(displacement), &done) : NULL;
}

/* A set that is made by an instruction: one byte of it has the bit. */
static struct mw_error *change_constants(struct trap_process *process, pid_t tid, const uint8_t *bytes, size_t size,
					 mw_addr base)
{
	size_t operand, at = 0;

	while (bytes && (at = process->arch->mask_constant(bytes, size, at, &operand)) < size) {
		const uint8_t changed = bytes[operand] & (uint8_t)~TRAP_BIT;
		uint8_t now[sizeof(uint64_t)];
		bool done;

		if (mw_remote_read(tid, base + operand, now, sizeof(now)) == sizeof(now) &&
		    memcmp(now, bytes + operand, sizeof(now)) == 0)
			MW_TRY(patch(process, tid, base + operand, &changed, sizeof(changed), &done));
	}
	return NULL;
}

/* The place of a set in `sets`, made where it is a new one; NULL where there is no room. */
static struct mw_error *our_set(struct trap_process *process, pid_t tid, uint32_t module, uint64_t theirs,
				struct set sets[SETS], mw_addr *out)
{
	*out = 0;
	for (size_t i = 0; i < SETS; i++) {
		if (!sets[i].theirs)
			MW_TRY(make_set(process, tid, module, theirs, &sets[i]));
		if (sets[i].theirs != theirs)
			continue;
		*out = sets[i].ours;
		return NULL;
	}
	return NULL;
}

static struct mw_error *redirect_all(struct trap_process *process, pid_t tid, uint32_t module, const uint8_t *bytes,
				     size_t size, mw_addr base, struct set sets[SETS])
{
	size_t operand, at = 0;
	mw_addr set, ours;

	while (bytes && (at = process->arch->mask_set(bytes, size, base, at, &operand, &set)) < size) {
		uint64_t signals;
		int32_t now;

		/* What stands there, not what the file says. */
		if (mw_remote_read(tid, set, &signals, sizeof(signals)) != sizeof(signals) ||
		    (signals | LIBRARY_OWN) != UINT64_MAX ||
		    mw_remote_read(tid, base + operand, &now, sizeof(now)) != sizeof(now) ||
		    memcmp(&now, bytes + operand, sizeof(now)) != 0)
			continue;
		MW_TRY(our_set(process, tid, module, signals, sets, &ours));
		if (ours)
			MW_TRY(redirect(process, tid, base + operand, ours));
	}
	return NULL;
}

struct mw_error *trap_sections_open(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(module->elf, &segments);
	struct set sets[SETS] = {{0}};

	for (size_t i = 0; i < count; i++) {
		size_t size = 0;
		const uint8_t *bytes = segments[i].exec ? mw_elf_bytes(module->elf, segments[i].vaddr, &size) : NULL;
		mw_addr base = segments[i].vaddr + module->bias;

		MW_TRY(redirect_all(process, tid, module->number, bytes, size, base, sets));
		MW_TRY(change_constants(process, tid, bytes, size, base));
	}
	return NULL;
}
