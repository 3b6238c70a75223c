// SPDX-License-Identifier: MIT
/*
 * act.c: the C library's system calls that set the actions of signals (trap.h).
 *
 * They are made by code of ours (stub/rescue/rescue.c): in the thread that makes them, so that they are made or not
 * made, but never half, whatever becomes of memwatch. Where it can be, the library's code jumps there, which needs no
 * signal and nobody who serves it; else a breakpoint is put there.
 *
 *      attach      jumps stand before SIGTRAP is led to ours
 *      detach      … and go when it leads to the program's own action again, after the last breakpoint
 */
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "tracee/remote.h"

#include <string.h>

typedef struct mw_error *found(struct trap_process *process, pid_t tid, mw_addr insn);

static struct mw_error *each_call(struct trap_process *process, pid_t tid, const struct mw_module *module,
				  found *function)
{
	const struct mw_elf_segment *segments;
	size_t count = trap_rescue_act(process) ? mw_elf_segments(module->elf, &segments) : 0, length;
	const uint8_t *call = mw_regs_syscall_insn(&length);

	for (size_t i = 0; i < count; i++) {
		size_t size = 0, insn, at = 0;
		const uint8_t *bytes = segments[i].exec ? mw_elf_bytes(module->elf, segments[i].vaddr, &size) : NULL;

		while (bytes && (at = process->arch->action_call(bytes, size, at, &insn)) < size) {
			mw_addr addr = segments[i].vaddr + insn + module->bias;
			uint8_t now[MW_INSN_MAX];

			/* What stands there, not what the file says. */
			if (mw_remote_read(tid, addr, now, length) == length && memcmp(now, call, length) == 0)
				MW_TRY(function(process, tid, addr));
		}
	}
	return NULL;
}

/* The code that jumps to ours is written down before it is changed, as all that is. */
static struct mw_error *redirect(struct trap_process *process, pid_t tid, mw_addr insn)
{
	struct trap_acts *acts = &process->acts;
	mw_addr at = insn - MW_ACTION_JUMP, trampoline_at = trap_rescue_trampoline(process, acts->count);
	uint8_t before[MW_ACTION_JUMP], jump[MW_ACTION_JUMP], trampoline[MW_ACTION_TRAMPOLINE];
	bool possible;
	size_t number;

	if (acts->count == TRAP_ACTS || mw_remote_read(tid, at, before, sizeof(before)) != sizeof(before) ||
	    !process->arch->action_jump(before, insn, trampoline_at, trap_rescue_act(process), jump, trampoline))
		return NULL;
	MW_TRY(trap_rescue_put_trampoline(process, tid, trampoline_at, trampoline));
	MW_TRY(trap_rescue_bytes(process, tid, at, jump, sizeof(jump), true, &possible));
	if (!possible)
		return NULL;
	acts->insns[acts->count++] = insn;
	/* Nobody is notified of it when the program does. */
	process->signals.trap_action_changes = true;
	return mw_journal_plant(&acts->journal, tid, at, jump, sizeof(jump), &number);
}

static bool is_redirected(const struct trap_process *process, mw_addr insn)
{
	for (size_t i = 0; i < process->acts.count; i++)
		if (process->acts.insns[i] == insn)
			return true;
	return false;
}

/* It can't be displaced, and need not be: it is carried out elsewhere. */
static struct mw_error *catch (struct trap_process *process, pid_t tid, mw_addr insn)
{
	struct trap_breakpoint *breakpoint;
	uint8_t code[MW_INSN_MAX];
	size_t length;

	if (is_redirected(process, insn))
		return NULL;
	memcpy(code, mw_regs_syscall_insn(&length), sizeof(uint16_t));
	MW_TRY(trap_breakpoint_get(process, insn, &breakpoint));
	process->arch->plan(code, length, insn, &breakpoint->plan);
	breakpoint->action = true;
	return trap_breakpoint_plant(process, tid, breakpoint);
}

/* A thread that stands between the number's load and the call would make it by itself. */
static struct mw_error *send_back(struct trap_process *process)
{
	void *value;

	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		const struct trap_thread *thread = value;
		struct mw_tracee_regs regs;

		if (!thread->stopped)
			continue;
		MW_TRY(mw_error_unless_gone(mw_tracee_get_regs(thread->tid, &regs)));
		if (is_redirected(process, regs.general.pc))
			MW_TRY(mw_error_unless_gone(mw_tracee_set_pc(thread->tid, regs.general.pc - MW_ACTION_JUMP)));
	}
	return NULL;
}

struct mw_error *trap_acts_redirect(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	MW_TRY(each_call(process, tid, module, redirect));
	return process->acts.count > 0 ? send_back(process) : NULL;
}

struct mw_error *trap_acts_catch(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	return each_call(process, tid, module, catch);
}
