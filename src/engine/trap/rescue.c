// SPDX-License-Identifier: MIT
/*
 * rescue.c: what keeps a target alive if memwatch is killed (trap.h, memwatch/rescue.h).
 *
 *      attach      code and tables are mapped into the target, and its SIGTRAP is led there
 *      plant       a breakpoint is in the table before it stands
 *      window      memwatch sees every trap first; its death leaves them to the handler
 *      detach      the program's own action for SIGTRAP, then all of it is unmapped
 *
 * For the handler to be called at all no thread may block SIGTRAP: mask.c sees to that.
 */
#include "stub/rescue/rescue.h"
#include "base/clock.h"
#include "base/fault.h"
#include "engine/trap/breakpoints.h"
#include "engine/trap/rescues.h"
#include "engine/trap/threads.h"
#include "proc/status.h"
#include "tracee/inject.h"
#include "tracee/remote.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PATIENCE_NS UINT64_C(5000000000)
#define LOOKS       200 /* at who is inside, before those become longer: one may come there again and again */
#define JUMP_REACH  (UINT64_C(1) << 30)
#define TRAP_BIT    MW_RESCUE_TRAP_BIT

/* System calls that the target performs for us from now on go by code of ours. */
static struct mw_inject inject_by(const struct trap_process *process, pid_t tid)
{
	struct mw_inject inject = process->rescue.inject;

	inject.tid = tid;
	return inject;
}

static struct mw_rescue_action led_here(const struct trap_process *process)
{
	return mw_rescue_led(&process->signals.trap_action, process->rescue.base,
			     (const struct mw_rescue_header *)(const void *)mw_rescue_image);
}

struct mw_error *trap_rescue_look(struct trap_process *process, pid_t tid)
{
	struct mw_rescue_action own[2];
	uint32_t at;

	if (!process->rescue.base)
		return NULL;
	MW_TRY(mw_remote_read_all(tid, TRAP_RESCUE_AT(process, own_at), &at, sizeof(at)));
	MW_TRY(mw_remote_read_all(tid, TRAP_RESCUE_AT(process, own), own, sizeof(own)));
	process->signals.trap_action = own[at % 2];
	return NULL;
}

struct mw_error *trap_rescue_lead(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = inject_by(process, tid);
	struct mw_rescue_action action;

	MW_TRY(trap_rescue_look(process, tid));
	action = led_here(process);
	return trap_sigaction(&inject, SIGTRAP, true, &action);
}

struct mw_error *trap_rescue_clears(struct trap_process *process, pid_t tid)
{
	const uint32_t clears = 1;

	return process->rescue.base
		       ? trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, clears), &clears, sizeof(clears))
		       : NULL;
}

struct mw_error *trap_rescue_lead_cleared(struct trap_thread *child)
{
	struct trap_process *process = child->process;
	const struct mw_inject inject = inject_by(process, child->tid);
	struct mw_rescue_action ours = led_here(process);
	struct mw_status status;

	if (!process->rescue.base || !process->rescue.led ||
	    (!process->engine->options.unsafe && !trap_seccomp_policy_may_install(process, child->tid)))
		return NULL;
	MW_TRY(mw_status_read(child->tid, &status));
	if ((status.sig_caught | status.sig_ignored) & TRAP_BIT)
		return NULL;
	child->cleared = true;
	MW_TRY(trap_rescue_clears(process, child->tid));
	return trap_sigaction(&inject, SIGTRAP, true, &ours);
}

mw_addr trap_rescue_act(const struct trap_process *process)
{
	const struct mw_rescue_header *header = (const struct mw_rescue_header *)(const void *)mw_rescue_image;

	return process->rescue.base ? process->rescue.base + header->act : 0;
}

struct mw_error *trap_rescue_queue(struct trap_thread *thread, const siginfo_t *info, bool *queued)
{
	struct trap_process *process = thread->process;
	const struct mw_inject inject = inject_by(process, thread->tid);
	struct mw_status status, first;
	siginfo_t given = *info;
	int64_t result = -1;
	struct mw_error *err;

	*queued = false;
	if (!process->rescue.base || thread->relation != TRAP_THREAD ||
	    !trap_seccomp_policy_may(process, thread->tid, MW_CALL_BIT(SIGQUEUE)))
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	MW_TRY(mw_status_read(process->pid, &first));
	const uint64_t arguments[6] = {(uint64_t)first.ns_pid, (uint64_t)status.ns_pid, SIGTRAP};

	err = mw_inject_call_with(&inject, SYS_rt_tgsigqueueinfo, arguments, 3, &given, sizeof(given), &result);
	*queued = !err && result == 0;
	return err;
}

/* What it does now with SIGTRAP. */
static struct mw_error *read_own(struct trap_process *process, const struct mw_inject *inject,
				 const struct mw_status *status)
{
	if ((status->sig_caught | status->sig_ignored) & TRAP_BIT)
		MW_TRY(trap_sigaction(inject, SIGTRAP, false, &process->signals.trap_action));
	process->signals.trap_action_known = true;
	return trap_rescue_put(process, inject->tid, TRAP_RESCUE_AT(process, own), &process->signals.trap_action,
			       sizeof(process->signals.trap_action));
}

static bool is_restorer(const struct mw_arch *arch, const uint8_t *bytes, size_t size)
{
	return arch->is_signal_return(bytes, size);
}

/* What a handler of the program returns to: 0 where there is none in its code. */
static mw_addr find_restorer(const struct trap_process *process)
{
	for (uint32_t i = 0; i < mw_modules_count(process->survey.modules); i++) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, i);
		const struct mw_elf_segment *segments;
		size_t count = module->elf && !module->gone ? mw_elf_segments(module->elf, &segments) : 0;

		for (size_t j = 0; j < count; j++) {
			size_t size;
			const uint8_t *bytes =
				segments[j].exec ? mw_elf_bytes(module->elf, segments[j].vaddr, &size) : NULL;

			for (size_t at = 0; bytes && at < size; at++)
				if (is_restorer(process->arch, bytes + at, size - at))
					return segments[j].vaddr + at + module->bias;
		}
	}
	return 0;
}

mw_addr trap_restorer(struct trap_process *process)
{
	if (!process->signals.restorer)
		process->signals.restorer = find_restorer(process);
	return process->signals.restorer;
}

static struct mw_error *map_it(struct trap_process *process, const struct mw_inject *inject, const struct mw_maps *maps)
{
	mw_addr at = 0;

	mw_addr near = trap_restorer(process);

	/* It must not become one with a neighbour, and be within a jump of the C library. */
	if (!(near && mw_inject_find_gap(maps, near, near + 1, JUMP_REACH, TRAP_RESCUE_SIZE, &at)) &&
	    !mw_inject_find_gap(maps, inject->code.insn, inject->code.insn + 1, UINT64_MAX / 2, TRAP_RESCUE_SIZE, &at))
		at = 0;
	return mw_inject_map(inject, at, TRAP_RESCUE_SIZE, PROT_READ | PROT_WRITE, &process->rescue.base);
}

static struct mw_error *fill(struct trap_process *process, const struct mw_inject *inject,
			     const struct mw_status *status)
{
	const struct mw_rescue_header *header = (const struct mw_rescue_header *)(const void *)mw_rescue_image;
	const uint32_t may_call = process->may_heal;
	const uint32_t shadow_stack = status->shadow_stack;
	pid_t tid = inject->tid;
	struct mw_status first;
	uint32_t self;

	/* Before all else: by its mark it is found if memwatch is killed now. */
	MW_TRY(trap_rescue_put(process, tid, process->rescue.base, mw_rescue_image, mw_rescue_image_size));
	MW_TRY(mw_fault("attach.image"));
	MW_TRY(mw_status_read(process->pid, &first));
	self = (uint32_t)first.ns_pid;
	MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, may_call), &may_call, sizeof(may_call)));
	MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, shadow_stack), &shadow_stack,
			       sizeof(shadow_stack)));
	/* A kernel that knows nothing of it (before 4.14) takes forked children for ones that share the memory. */
	mw_error_destroy(mw_inject_advise(inject, TRAP_RESCUE_AT(process, pid), MW_RESCUE_PAGE, MADV_WIPEONFORK));
	MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, pid), &self, sizeof(self)));
	MW_TRY(mw_inject_protect(inject, process->rescue.base, MW_RESCUE_CODE, PROT_READ | PROT_EXEC));
	process->rescue.inject = (struct mw_inject){
		.code = {.insn = process->rescue.base + header->call,
			 .restorer = status->shadow_stack ? 0 : process->rescue.base + header->restorer},
		.room = {.low = TRAP_RESCUE_AT(process, room),
			 .high = TRAP_RESCUE_AT(process, room) + sizeof(((struct mw_rescue *)0)->room)}};
	return mw_fault("attach.rescue");
}

static struct mw_error *put_in(struct trap_process *process, pid_t tid)
{
	struct mw_inject inject;
	struct mw_maps maps = {0};
	struct mw_status status;
	struct mw_error *err;

	MW_TRY(mw_status_read(tid, &status));
	MW_TRY(mw_maps_read(tid, &maps));
	err = mw_inject_init(&inject, tid, &maps);
	process->rescue.no_sigframe = !err && !process->launched && !mw_inject_leads_back(&inject);
	if (process->rescue.no_sigframe)
		err = mw_inject_no_sigframe(&inject, process->pid);
	if (!err)
		err = map_it(process, &inject, &maps);
	mw_maps_deinit(&maps);
	MW_TRY(err);
	process->rescue.outside = inject;
	MW_TRY(fill(process, &inject, &status));
	inject = inject_by(process, tid);
	MW_TRY(trap_rescue_blocked(process, tid));
	return read_own(process, &inject, &status);
}

static struct mw_error *install(struct trap_process *process, pid_t tid)
{
	MW_TRY(trap_rescue_prepare(&process->rescue));
	return put_in(process, tid);
}

/* One that does something else with SIGTRAP than its maker goes on with that. */
static struct mw_error *lead_child(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = inject_by(process, tid);
	struct trap_thread *child = mw_map_get(&process->threads, (uint64_t)tid);
	struct mw_rescue_action now, ours = led_here(process);

	if (!process->engine->options.unsafe && !trap_seccomp_policy_may_install(process, tid))
		return NULL;
	MW_TRY(trap_sigaction(&inject, SIGTRAP, false, &now));
	child->own_action = now.handler != process->signals.trap_action.handler;
	if (child->own_action)
		return NULL;
	MW_TRY(trap_sigaction(&inject, SIGTRAP, true, &ours));
	return trap_actions_strip(process, &inject);
}

struct mw_error *trap_rescue_begin(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = inject_by(process, tid);
	const uint32_t led = 1;

	if (!process->rescue.base)
		return NULL;
	MW_TRY(trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, led), &led, sizeof(led)));
	MW_TRY(trap_rescue_lead(process, tid));
	process->rescue.led = true;
	MW_TRY(trap_sharing_each(process, lead_child));
	return trap_actions_strip(process, &inject);
}

mw_addr trap_rescue_trampoline(const struct trap_process *process, size_t number)
{
	return process->rescue.base + MW_RESCUE_CODE - (number + 1) * MW_ACTION_TRAMPOLINE;
}

struct mw_error *trap_rescue_put_trampoline(struct trap_process *process, pid_t tid, mw_addr addr,
					    const uint8_t trampoline[MW_ACTION_TRAMPOLINE])
{
	return trap_rescue_put(process, tid, addr, trampoline, MW_ACTION_TRAMPOLINE);
}

static const char *way_out(const struct trap_process *process, const struct mw_error *why, bool able)
{
	if (process->rescue.no_sigframe)
		return "Accept that risk with --unsafe";
	if (!able)
		return "Attach again when it is less busy with starting processes; or accept the risk with --unsafe";
	switch (mw_error_errno(why)) {
	case ENOMEM:
	case EAGAIN:
		return "Raise that limit (prlimit, sysctl); or accept the risk with --unsafe";
	default:
		return "Run memwatch as root and outside of containers; or accept the risk with --unsafe";
	}
}

/* `able`: one of its threads can perform a system call. */
static struct mw_error *refuse(const struct trap_process *process, struct mw_error *why, bool able)
{
	const char *hint = way_out(process, why, able);
	struct mw_error *err =
		mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				"the handler that keeps process %d alive if memwatch is killed can't be installed: %s",
				process->pid, mw_error_text(why));

	mw_error_destroy(why);
	return mw_error_hint(err, "%s", hint);
}

static struct mw_error *unmap(struct trap_process *process, pid_t tid);

struct mw_error *trap_rescue_install(struct trap_process *process, pid_t tid)
{
	const struct trap_thread *thread = tid ? NULL : trap_best_thread(process);
	struct mw_error *err;

	if (process->ended)
		return NULL;
	if (thread)
		tid = thread->tid;
	if (tid)
		MW_TRY(trap_seccomp_policy_check(process, tid));
	err = tid ? install(process, tid)
		  : mw_error_create(MW_ERROR_SYSTEM, 0, "none of its threads can perform a system call now");
	if (!err)
		return NULL;
	if (process->rescue.base)
		mw_error_destroy(unmap(process, tid)); /* SIGTRAP is not led there yet */
	process->rescue.base = 0;
	if (mw_error_kind(err) == MW_ERROR_GONE || mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	if (!process->engine->options.unsafe)
		return refuse(process, err, tid != 0);
	mw_error_destroy(err);
	return NULL;
}

/* A thread that stands in our code, or will come back to it, comes out by itself. Those whose process is stopped are
 * marked to run all the same, for as long as it takes. */
static bool anybody_inside(struct trap_process *process)
{
	pid_t tid = trap_stopped_tid(process);
	uint32_t inside = 0;
	bool any = false;
	void *value;

	if (tid)
		mw_error_destroy(mw_remote_read_all(tid, TRAP_RESCUE_AT(process, inside), &inside, sizeof(inside)));
	for (size_t i = 0; mw_map_next(&process->threads, &i, &value);) {
		struct trap_thread *thread = value;

		if (!thread->stopped || !trap_is_inside(thread->tid, process->arch, process->rescue.base, inside != 0,
							process->shadow_stack))
			continue;
		any = true;
		thread->group_stopped = false;
	}
	return any;
}

/* The program's own action, where the kernel's is ours or, with `dropped`, was dropped with a trap; one that it has set
 * past us stays. */
static struct mw_error *give_back(struct trap_process *process, const struct mw_inject *inject, bool dropped)
{
	const uint64_t ours = led_here(process).handler;
	struct mw_rescue_action now;
	struct mw_rescue_marks marks;

	MW_TRY(mw_remote_read_all(inject->tid, TRAP_RESCUE_AT(process, marks), &marks, sizeof(marks)));
	MW_TRY(trap_actions_restore(inject, &marks));
	MW_TRY(trap_sigaction(inject, SIGTRAP, false, &now));
	MW_TRY(trap_rescue_look(process, inject->tid));
	if ((now.handler != ours && !(dropped && now.handler == (uint64_t)(uintptr_t)SIG_DFL)) ||
	    now.handler == process->signals.trap_action.handler)
		return NULL;
	return trap_sigaction(inject, SIGTRAP, true, &process->signals.trap_action);
}

/* By code and memory that are not in what is unmapped. */
static struct mw_error *unmap(struct trap_process *process, pid_t tid)
{
	struct mw_inject *outside = &process->rescue.outside;
	struct mw_maps maps = {0};
	struct mw_inject better = {0};
	struct mw_error *err = mw_maps_read(tid, &maps);

	outside->tid = tid;
	outside->room = (struct mw_room){.low = 0};
	if (!err)
		mw_inject_use(outside, tid, &maps);
	/* One that was launched had no C library then. */
	if (!err && !outside->code.restorer && !outside->code.gadget) {
		err = mw_inject_init(&better, tid, &maps);
		if (!err)
			*outside = better;
	}
	mw_error_destroy(err);
	mw_maps_deinit(&maps);
	MW_TRY(trap_areas_unmap(process, outside));
	return mw_inject_unmap(outside, process->rescue.base, TRAP_RESCUE_SIZE);
}

struct mw_error *trap_rescue_clean_child(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = inject_by(process, tid);

	/* Where its filter would end it for that, it keeps what does no harm. */
	if (!process->rescue.base ||
	    (!process->engine->options.unsafe && !trap_seccomp_policy_may_install(process, tid)))
		return NULL;
	/* It may have been made without actions (CLONE_CLEAR_SIGHAND). */
	MW_TRY(give_back(process, &inject, false));
	return unmap(process, tid);
}

/* Children that share the memory have actions of their own, made from the process's, or none. */
static struct mw_error *give_back_of_child(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = inject_by(process, tid);
	struct trap_thread *child = mw_map_get(&process->threads, (uint64_t)tid);
	struct mw_rescue_action none = {.handler = (uint64_t)(uintptr_t)SIG_DFL};
	bool resets = false;

	MW_TRY(trap_rescue_look(process, tid));
	if (process->signals.trap_action.handler == (uint64_t)(uintptr_t)SIG_IGN)
		MW_TRY(trap_rescue_resets(process, child, &resets));
	else
		resets = child->cleared;
	return resets ? trap_sigaction(&inject, SIGTRAP, true, &none) : give_back(process, &inject, true);
}

struct mw_error *trap_rescue_settle(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns();
	useconds_t breath_us = TRAP_FIRST_BREATH_US, moment_us;
	unsigned looks = 0;

	if (!process->rescue.base)
		return NULL;
	while (!process->ended && anybody_inside(process) && mw_clock_ns() - begin < PATIENCE_NS &&
	       !trap_any_starved(process)) {
		moment_us = TRAP_FIRST_BREATH_US;
		MW_TRY(trap_deliver_held(process, looks++ < LOOKS ? &moment_us : &breath_us));
	}
	return process->ended ? NULL : trap_await_injector(process);
}

/* Why it can't be removed, or NULL. */
static const char *kept_for(struct trap_process *process, const struct trap_thread *usable)
{
	if (trap_any_starved(process))
		return "a thread got no CPU, and may be anywhere: copies of instructions behind the code of libraries "
		       "stay, and what keeps the process alive if memwatch is killed";
	if (!usable)
		return "no thread could be stopped that gives back the action of SIGTRAP: what keeps the process alive "
		       "if memwatch is killed stays mapped";
	if (anybody_inside(process))
		return "a thread was still in what keeps the process alive if memwatch is killed: it stays mapped, and "
		       "what a signal's action is set by leads there";
	return NULL;
}

struct mw_error *trap_rescue_remove(struct trap_process *process)
{
	struct trap_thread *thread = process->rescue.base ? trap_best_thread(process) : NULL;
	const char *why;
	struct mw_error *err;

	if (!process->rescue.base || process->ended)
		return NULL;
	/* An error has told of it. Who comes to a breakpoint before it is cleaned away needs all of this. Where
	 * somebody gets no CPU, some of it stands on purpose. */
	if (mw_journal_stands(&process->journal) && !trap_any_starved(process))
		return NULL;
	why = kept_for(process, thread);
	if (why) {
		process->stats.left_behind = why;
		return NULL;
	}
	process->rescue.led = false;
	MW_TRY(trap_sharing_each(process, give_back_of_child));
	if (thread->relation == TRAP_THREAD) {
		const struct mw_inject inject = inject_by(process, thread->tid);

		MW_TRY(give_back(process, &inject, true));
	}
	MW_TRY(mw_journal_rollback(&process->acts.journal, thread->tid));
	err = unmap(process, thread->tid);
	if (!err)
		process->rescue.base = 0;
	return err;
}
