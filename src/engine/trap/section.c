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
 * All threads are held; none stands amidst an instruction.
 */
#include "engine/trap/trap.h"
#include "target/remote.h"

#include <string.h>

#define TRAP_BIT (UINT64_C(1) << (SIGTRAP - 1))

static struct mw_error *patch(struct trap_process *process, pid_t tid, mw_addr addr, const void *bytes, size_t size,
			      bool *done)
{
	size_t number;

	MW_TRY(trap_rescue_bytes(process, tid, addr, bytes, size, false, done));
	return *done ? mw_journal_plant(&process->journal, tid, addr, bytes, size, &number) : NULL;
}

/* Our set, near to the module's code; 0 where there is no room. */
static struct mw_error *make_set(struct trap_process *process, pid_t tid, uint32_t module, mw_addr *out)
{
	const uint64_t all = UINT64_MAX & ~TRAP_BIT;
	bool done = false;
	mw_addr at;

	*out = 0;
	MW_TRY(trap_cave_take(process, module, &at));
	if (at)
		MW_TRY(patch(process, tid, at, &all, sizeof(all), &done));
	*out = done ? at : 0;
	return NULL;
}

static struct mw_error *redirect(struct trap_process *process, pid_t tid, mw_addr operand, mw_addr set)
{
	int64_t far = (int64_t)(set - (operand + sizeof(int32_t)));
	int32_t displacement = (int32_t)far;
	bool done;

	return far == displacement ? patch(process, tid, operand, &displacement, sizeof(displacement), &done) : NULL;
}

struct mw_error *trap_sections_open(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(module->elf, &segments);
	mw_addr ours = 0;

	for (size_t i = 0; i < count; i++) {
		size_t size = 0, operand, at = 0;
		const uint8_t *bytes = segments[i].exec ? mw_elf_bytes(module->elf, segments[i].vaddr, &size) : NULL;
		mw_addr base = segments[i].vaddr + module->bias, set;

		while (bytes && (at = process->arch->mask_set(bytes, size, base, at, &operand, &set)) < size) {
			uint64_t signals;
			int32_t now;

			/* What stands there, not what the file says. */
			if (mw_remote_read(tid, set, &signals, sizeof(signals)) != sizeof(signals) ||
			    signals != UINT64_MAX ||
			    mw_remote_read(tid, base + operand, &now, sizeof(now)) != sizeof(now) ||
			    memcmp(&now, bytes + operand, sizeof(now)) != 0)
				continue;
			if (!ours)
				MW_TRY(make_set(process, tid, module->number, &ours));
			if (!ours)
				return NULL;
			MW_TRY(redirect(process, tid, base + operand, ours));
		}
	}
	return NULL;
}
