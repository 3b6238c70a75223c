// SPDX-License-Identifier: MIT
/*
 * amidst.c: nobody stands amidst code that blocks SIGTRAP when breakpoints are put in (trap.h).
 *
 * A thread that has passed the entry of a function that sets masks, or has loaded one of the sets of section.c, but has
 * not made its system call, blocks SIGTRAP whatever is done to its mask before. So does one that is in such a section,
 * if it blocked SIGTRAP before: it has put that mask aside, for itself or for a thread that it makes. If memwatch is
 * killed then, the next breakpoint kills. So they go on until they have come out, while all others stand.
 */
#include "base/clock.h"
#include "base/vector.h"
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#define AROUND      64 /* bytes: the call is so near behind its set */
#define PATIENCE_NS UINT64_C(5000000000)
/*
 * For sections: where somebody is seen to block SIGTRAP, so that one who is in a section may do so, too; and elsewhere,
 * as threads may be made all the time. One that sleeps so many times in a row is in none, but blocks all for good
 * (glibc's aio).
 */
#define SECTION_NS      UINT64_C(500000000)
#define BRIEF_NS        UINT64_C(20000000)
#define SLEEPS          3
#define FIRST_BREATH_US 100
#define LAST_BREATH_US  100000

struct search {
	struct trap_process *process;
	mw_addr bias;
	struct mw_error *err;
};

static struct mw_error *add(struct trap_process *process, mw_addr start, mw_addr end)
{
	if (!MW_VECTOR_ROOM(process->signals.masking, process->signals.masking_count,
			    process->signals.masking_capacity))
		return mw_error_nomem();
	process->signals.masking[process->signals.masking_count++] = (struct trap_code){start, end};
	return NULL;
}

/* At its entry is a breakpoint, which is as good as any. */
static bool add_function(void *context, const struct mw_elf_symbol *symbol)
{
	struct search *search = context;

	if (symbol->size > 1 && trap_is_mask_function(symbol))
		search->err = add(search->process, symbol->vaddr + search->bias + 1,
				  symbol->vaddr + search->bias + symbol->size);
	return search->err == NULL;
}

/* From behind the operand of the load up to the call. */
static struct mw_error *add_section(struct trap_process *process, const uint8_t *bytes, size_t size, mw_addr base,
				    size_t operand, size_t operand_size, size_t from)
{
	size_t length, left = size - from < AROUND ? size - from : AROUND;
	const uint8_t *insn = mw_regs_syscall_insn(&length), *call = memmem(bytes + from, left, insn, length);

	return call ? add(process, base + operand + operand_size, base + (mw_addr)(call - bytes) + 1) : NULL;
}

static struct mw_error *add_sections(struct trap_process *process, const uint8_t *bytes, size_t size, mw_addr base)
{
	size_t operand;
	mw_addr set;

	for (size_t at = 0; (at = process->arch->mask_set(bytes, size, base, at, &operand, &set)) < size;)
		MW_TRY(add_section(process, bytes, size, base, operand, sizeof(int32_t), at));
	for (size_t at = 0; (at = process->arch->mask_constant(bytes, size, at, &operand)) < size;)
		MW_TRY(add_section(process, bytes, size, base, operand, sizeof(uint64_t), at));
	return NULL;
}

static struct mw_error *find_in(struct trap_process *process, const struct mw_module *module)
{
	struct search search = {.process = process, .bias = module->bias};
	const struct mw_elf_segment *segments;
	size_t count = mw_elf_segments(module->elf, &segments);
	struct mw_error *err = mw_elf_each_symbol(module->elf, add_function, &search);

	MW_TRY(search.err);
	if (err && mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	for (size_t i = 0; i < count; i++) {
		size_t size = 0;
		const uint8_t *bytes = segments[i].exec ? mw_elf_bytes(module->elf, segments[i].vaddr, &size) : NULL;

		if (bytes)
			MW_TRY(add_sections(process, bytes, size, segments[i].vaddr + module->bias));
	}
	return NULL;
}

struct mw_error *trap_amidst_find(struct trap_process *process)
{
	for (uint32_t i = 0; i < mw_modules_count(process->survey.modules); i++) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, i);

		if (!module->gone && module->elf && trap_is_library(process, module))
			MW_TRY(find_in(process, module));
	}
	return NULL;
}

/* It has made its call: most are found there. */
static bool is_behind_call(pid_t tid, mw_addr pc)
{
	uint8_t now[MW_INSN_MAX];
	size_t length;
	const uint8_t *insn = mw_regs_syscall_insn(&length);

	return mw_remote_read(tid, pc - length, now, length) == length && memcmp(now, insn, length) == 0;
}

/* The maker of a vforked child would sleep where nothing stops it. */
static bool may_go_on(const struct trap_thread *thread)
{
	siginfo_t info = {.si_code = 0};

	if (!thread->in_event)
		return true;
	mw_error_destroy(mw_tracee_siginfo(thread->tid, &info));
	return info.si_code >> 8 == PTRACE_EVENT_CLONE || info.si_code >> 8 == PTRACE_EVENT_FORK;
}

enum amidst { AMIDST_NOTHING, AMIDST_SECTION, AMIDST_CALL };

static enum amidst stands_amidst(const struct trap_thread *thread, bool *masked)
{
	const struct trap_process *process = thread->process;
	struct mw_tracee_regs regs;
	enum trap_masked mask;
	struct mw_error *err;
	bool amidst = false;

	/* A vforked child has its mask from its maker, which stands or waits for it. */
	if (!thread->stopped || thread->relation != TRAP_THREAD)
		return AMIDST_NOTHING;
	mask = trap_mask_now(thread);
	*masked |= mask == TRAP_MASKED;
	if (mask == TRAP_IN_SECTION)
		return may_go_on(thread) ? AMIDST_SECTION : AMIDST_NOTHING;
	if (thread->in_event)
		return AMIDST_NOTHING;
	err = mw_tracee_get_regs(thread->tid, &regs);
	for (size_t i = 0; i < process->signals.masking_count && !err && !amidst; i++)
		amidst = regs.general.pc >= process->signals.masking[i].start &&
			 regs.general.pc < process->signals.masking[i].end;
	mw_error_destroy(err);
	return amidst && !is_behind_call(thread->tid, regs.general.pc) ? AMIDST_CALL : AMIDST_NOTHING;
}

/* Those whose process is stopped as well: for a moment. `*worst`: what there is; `*masked`: somebody blocks SIGTRAP. */
static struct mw_error *resume_all(struct trap_process *process, bool sections, enum amidst *worst, bool *masked)
{
	void *value;

	*worst = AMIDST_NOTHING;
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;
		enum amidst amidst = stands_amidst(thread, masked);

		if (amidst == AMIDST_NOTHING)
			continue;
		/* A section may be long: a process that is stopped is not to get on for that. */
		if (amidst == AMIDST_SECTION && (!sections || thread->group_stopped))
			continue;
		if (amidst > *worst)
			*worst = amidst;
		/* One that makes threads all the time would be found doing so again: it is to stop on its way out. */
		if (thread->in_event)
			MW_TRY(trap_interrupt(thread));
		thread->group_stopped = false;
		MW_TRY(trap_resume(thread));
	}
	return NULL;
}

/* Do all who may get on wait for something? */
static bool all_sleep(const struct trap_process *process)
{
	bool any = false, sleep = true;
	void *value;

	for (size_t i = 0; sleep && mw_map_next(&process->threads, &i, &value);) {
		char state;

		if (!trap_is_to_stop(value))
			continue;
		state = mw_state_read(((const struct trap_thread *)value)->tid);
		any = true;
		sleep = state == 'X' || state == 'S';
	}
	return any && sleep;
}

struct mw_error *trap_amidst_clear(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns(), waited_ns = 0;
	useconds_t breath_us = FIRST_BREATH_US;
	unsigned sleeps = 0;
	bool masked = false;
	enum amidst worst;

	for (; waited_ns <= PATIENCE_NS; waited_ns = mw_clock_ns() - begin) {
		bool sections = sleeps < SLEEPS && waited_ns <= (masked ? SECTION_NS : BRIEF_NS);

		MW_TRY(resume_all(process, sections, &worst, &masked));
		if (worst == AMIDST_NOTHING)
			return NULL;
		MW_TRY(trap_run_briefly(process, breath_us));
		sleeps = all_sleep(process) ? sleeps + 1 : 0;
		MW_TRY(trap_hold(process));
		if (process->ended)
			return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
		breath_us = breath_us * 2 < LAST_BREATH_US ? breath_us * 2 : LAST_BREATH_US;
	}
	if (process->engine->options.unsafe)
		return NULL;
	return mw_error_hint(
		mw_error_create(
			MW_ERROR_UNSUPPORTED, 0,
			"a thread of process %d is about to block SIGTRAP, and makes no progress: if memwatch were "
			"killed, the next breakpoint would end the process",
			process->pid),
		"Try again, use --engine jump, or accept the risk with --unsafe");
}
