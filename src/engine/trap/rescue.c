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
#include "base/fault.h"
#include "engine/trap/trap.h"
#include "proc/maps.h"
#include "stub/stub.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/*
 * One thread has the rescue mapped. All of them return from its handler, may be interrupted where the kernel drops the
 * action for SIGTRAP, which they then set again, and are stopped: so all must live through that.
 */
static const struct mw_seccomp_policy_need one = {.harmless = TRAP_CALLS_INSTALL, .made = MW_CALLS_BACK};
static const struct mw_seccomp_policy_need all = {.harmless = MW_CALL_BIT(SIGACTION) | MW_CALLS_BACK,
						  .made = MW_CALLS_BACK | MW_CALL_BIT(RESTART)};

bool trap_seccomp_policy_may(struct trap_process *process, pid_t tid, uint32_t calls)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	struct mw_permit permit;

	return mw_error_none(mw_seccomp_policy_look(&process->policy, tid, true, &permit)) &&
	       mw_permit_suits(&permit, &need);
}

static bool may_or_unsafe(struct trap_process *process, pid_t tid, uint32_t calls)
{
	return process->engine->options.unsafe || trap_seccomp_policy_may(process, tid, calls);
}

/* What all may do; one in a wait that nothing interrupts, a vfork's maker, can't be looked at, and is as the others. */
static struct mw_error *look_at_all(struct trap_process *process, struct mw_permit *everyone)
{
	const struct trap_thread *thread;

	*everyone = (struct mw_permit){.known = true, .harmless = MW_CALLS_ALL, .made = MW_CALLS_ALL};
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		struct mw_permit permit;

		if (!thread->stopped)
			continue;
		MW_TRY(mw_error_unless_gone(mw_seccomp_policy_look(&process->policy, thread->tid, true, &permit)));
		everyone->known &= permit.known;
		everyone->harmless &= permit.harmless;
		everyone->made &= permit.made;
	}
	return NULL;
}

/* All stand. May `tid` put the rescue in, and may all threads use it? UNSUPPORTED, unless that is accepted (--unsafe).
 */
static struct mw_error *seccomp_check(struct trap_process *process, pid_t tid)
{
	struct mw_permit everyone, permit;

	MW_TRY(look_at_all(process, &everyone));
	process->may_heal = (MW_CALLS_HEAL & ~everyone.made) == 0;
	if (process->engine->options.unsafe)
		return NULL;
	if (!everyone.known)
		return mw_seccomp_policy_unreadable("trap", process->pid);
	if (!mw_permit_suits(&everyone, &all))
		return mw_seccomp_policy_refuse("trap", process->pid, &everyone, &all);
	MW_TRY(mw_seccomp_policy_look(&process->policy, tid, true, &permit));
	return mw_permit_suits(&permit, &one) ? NULL : mw_seccomp_policy_refuse("trap", process->pid, &permit, &one);
}

/*
 * Actions of other signals whose mask holds SIGTRAP, as that of every handler does which is not to be interrupted. The
 * kernel blocks what is in it for the handler's time. A breakpoint that strikes there, with nobody tracing, makes the
 * kernel forget what SIGTRAP leads to, and kill. So while memwatch is attached the kernel's actions lack it: they are
 * gone through at attach, and the C library's system call that sets them is carried out by code of ours
 * (stub/rescue/rescue.c), which takes it out and shows it to the program when that asks. A mark of each such action
 * (memwatch/rescue.h) says what is to be put back, by whoever is the one to do it.
 *
 * A mark stands before the kernel has its action: an action without it would stay as it is.
 */
#define MASK_SIZE 8 /* the kernel's sigset_t */

/*
 * rt_sigaction in the target: what a signal has, or, with `set`, what it is to have. `inject->tid` is in a stop from
 * which it can perform system calls. Errors: GONE, SYSTEM, DATA.
 */
static struct mw_error *target_sigaction(const struct mw_inject *inject, unsigned signal, bool set,
					 struct mw_rescue_action *action)
{
	const uint64_t arguments[6] = {signal, 0, 0, MASK_SIZE};
	struct mw_rescue_action given = {.handler = 0};
	int64_t result = -1;

	if (set)
		given = *action;
	MW_TRY(mw_inject_call_with(inject, SYS_rt_sigaction, arguments, set ? 1 : 2, &given, sizeof(given), &result));
	if (result != 0)
		return mw_error_create(MW_ERROR_SYSTEM, (int)-result, "process %d can't %s its action for signal %u",
				       (int)inject->tid, set ? "set" : "tell", signal);
	if (!set)
		*action = given;
	return NULL;
}

static struct mw_error *strip(struct trap_process *process, const struct mw_inject *inject, unsigned signal)
{
	struct mw_rescue_action now;

	MW_TRY(target_sigaction(inject, signal, false, &now));
	if (!(now.mask & MW_RESCUE_TRAP_BIT))
		return NULL;
	now.mask &= ~MW_RESCUE_TRAP_BIT;
	MW_TRY(TRAP_RESCUE_PUT(process, inject->tid, marks.stripped[signal - 1], mw_rescue_mark(&now)));
	return target_sigaction(inject, signal, true, &now);
}

/* Take it out of all of them, leaving marks of them; nothing else may set any meanwhile. Errors: as those of
 * target_sigaction(). */
static struct mw_error *actions_strip(struct trap_process *process, const struct mw_inject *inject)
{
	struct mw_status status;
	uint64_t left;

	MW_TRY(mw_status_read(inject->tid, &status));
	left = status.sig_caught & ~(TRAP_UNBLOCKABLE | MW_RESCUE_TRAP_BIT);
	for (unsigned signal = 1; signal <= MW_RESCUE_SIGNALS; signal++)
		if (left >> (signal - 1) & 1)
			MW_TRY(strip(process, inject, signal));
	return NULL;
}

/* Put it back into those that are still as their marks say. */
static struct mw_error *actions_restore(const struct mw_inject *inject, const struct mw_rescue_marks *marks)
{
	for (unsigned signal = 1; signal <= MW_RESCUE_SIGNALS; signal++) {
		const uint64_t stripped = marks->stripped[signal - 1], coming = marks->coming[signal - 1];
		struct mw_rescue_action now = {0};

		if (!(stripped | coming))
			continue;
		MW_TRY(target_sigaction(inject, signal, false, &now));
		if (!mw_rescue_is_stripped(&now, stripped, coming))
			continue;
		now.mask |= MW_RESCUE_TRAP_BIT;
		MW_TRY(target_sigaction(inject, signal, true, &now));
	}
	return NULL;
}

struct mw_error *trap_actions_give_back(const struct mw_inject *inject, const struct mw_rescue_marks *marks,
					struct mw_rescue_action *own, mw_addr ours, bool dropped)
{
	struct mw_rescue_action now;

	MW_TRY(actions_restore(inject, marks));
	MW_TRY(target_sigaction(inject, SIGTRAP, false, &now));
	if ((now.handler != ours && !(dropped && now.handler == (uint64_t)(uintptr_t)SIG_DFL)) ||
	    now.handler == own->handler)
		return NULL;
	return target_sigaction(inject, SIGTRAP, true, own);
}

/* Do something with each child that shares the memory and can perform a system call; one that ends meanwhile is no
 * error. */
static struct mw_error *sharing_each(struct trap_process *process,
				     struct mw_error *(*each)(struct trap_process *process, pid_t tid))
{
	const struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		if (thread->relation == TRAP_SHARING_CHILD && trap_is_usable(thread))
			MW_TRY(mw_error_unless_gone(each(process, thread->tid)));
	return NULL;
}

#define PATIENCE_NS UINT64_C(5000000000)
#define LOOKS       200 /* at who is inside, before those become longer: one may come there again and again */
#define JUMP_REACH  (UINT64_C(1) << 30)
#define TRAP_BIT    MW_RESCUE_TRAP_BIT

static struct mw_rescue_action led_here(const struct trap_process *process)
{
	return mw_rescue_led(&process->signals.trap_action, process->rescue.base,
			     (const struct mw_rescue_header *)(const void *)mw_rescue_image);
}

static struct mw_error *rescue_look(struct trap_process *process, pid_t tid)
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

/* Have the kernel lead SIGTRAP to it (again), as the program wants it done. `tid` can perform a system call. */
static struct mw_error *lead(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = trap_inject_by(process, tid);
	struct mw_rescue_action action;

	MW_TRY(rescue_look(process, tid));
	action = led_here(process);
	return target_sigaction(&inject, SIGTRAP, true, &action);
}

struct mw_error *trap_rescue_lead_cleared(struct trap_thread *child)
{
	struct trap_process *process = child->process;
	const struct mw_inject inject = trap_inject_by(process, child->tid);
	struct mw_rescue_action ours = led_here(process);
	struct mw_status status;

	if (!process->rescue.base || !process->rescue.led || !may_or_unsafe(process, child->tid, TRAP_CALLS_INSTALL))
		return NULL;
	MW_TRY(mw_status_read(child->tid, &status));
	if ((status.sig_caught | status.sig_ignored) & TRAP_BIT)
		return NULL;
	child->cleared = true;
	MW_TRY(TRAP_RESCUE_PUT(process, child->tid, clears, 1));
	return target_sigaction(&inject, SIGTRAP, true, &ours);
}

/* What it does now with SIGTRAP. */
static struct mw_error *read_own(struct trap_process *process, const struct mw_inject *inject,
				 const struct mw_status *status)
{
	if ((status->sig_caught | status->sig_ignored) & TRAP_BIT)
		MW_TRY(target_sigaction(inject, SIGTRAP, false, &process->signals.trap_action));
	process->signals.trap_action_known = true;
	return TRAP_RESCUE_PUT(process, inject->tid, own[0], process->signals.trap_action);
}

static struct mw_error *map_it(struct trap_process *process, const struct mw_inject *inject, const struct mw_maps *maps)
{
	mw_addr near = trap_restorer(process), at = 0;

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
	pid_t tid = inject->tid;
	struct mw_status first;

	/* Before all else: by its mark it is found if memwatch is killed now. */
	MW_TRY(trap_rescue_put(process, tid, process->rescue.base, mw_rescue_image, mw_rescue_image_size));
	MW_TRY(mw_fault("attach.image"));
	MW_TRY(mw_status_read(process->pid, &first));
	MW_TRY(TRAP_RESCUE_PUT(process, tid, may_call, process->may_heal));
	MW_TRY(TRAP_RESCUE_PUT(process, tid, shadow_stack, status->shadow_stack));
	/* A kernel that knows nothing of it (before 4.14) takes forked children for ones that share the memory. */
	mw_error_destroy(mw_inject_advise(inject, TRAP_RESCUE_AT(process, pid), MW_RESCUE_PAGE, MADV_WIPEONFORK));
	MW_TRY(TRAP_RESCUE_PUT(process, tid, pid, (uint32_t)first.ns_pid));
	MW_TRY(mw_inject_protect(inject, process->rescue.base, MW_RESCUE_CODE, PROT_READ | PROT_EXEC));
	process->rescue.act = process->rescue.base + header->act;
	process->rescue.inject = (struct mw_inject){
		.code = {.insn = process->rescue.base + header->call,
			 .restorer = status->shadow_stack ? 0 : process->rescue.base + header->restorer},
		.room = {.low = TRAP_RESCUE_AT(process, room),
			 .high = TRAP_RESCUE_AT(process, room) + sizeof(((struct mw_rescue *)0)->room)}};
	return mw_fault("attach.rescue");
}

static struct mw_error *put_in(struct trap_process *process, pid_t tid)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_inject inject;
	struct mw_status status;

	process->rescue.no_sigframe = false;
	MW_TRY(mw_status_read(tid, &status));
	MW_TRY(mw_maps_read(tid, &maps));
	MW_TRY(mw_inject_init(&inject, tid, &maps));
	process->rescue.no_sigframe = !process->launched && !mw_inject_leads_back(&inject);
	if (process->rescue.no_sigframe)
		return mw_inject_no_sigframe(&inject, process->pid);
	MW_TRY(map_it(process, &inject, &maps));
	process->rescue.outside = inject;
	MW_TRY(fill(process, &inject, &status));
	inject = trap_inject_by(process, tid);
	return read_own(process, &inject, &status);
}

static struct mw_error *install(struct trap_process *process, pid_t tid)
{
	struct trap_rescue *rescue = &process->rescue;

	rescue->index = calloc(MW_RESCUE_INDEX, sizeof(*rescue->index));
	rescue->addrs = calloc(MW_RESCUE_BREAKPOINTS, sizeof(*rescue->addrs));
	rescue->return_sps = calloc(MW_RESCUE_RETURNS, sizeof(*rescue->return_sps));
	return rescue->index && rescue->addrs && rescue->return_sps ? put_in(process, tid) : mw_error_nomem();
}

/* One that does something else with SIGTRAP than its maker goes on with that. */
static struct mw_error *lead_child(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = trap_inject_by(process, tid);
	struct trap_thread *child = mw_map_get(&process->threads, (uint64_t)tid);
	struct mw_rescue_action now, ours = led_here(process);

	if (!may_or_unsafe(process, tid, TRAP_CALLS_INSTALL))
		return NULL;
	MW_TRY(target_sigaction(&inject, SIGTRAP, false, &now));
	child->own_action = now.handler != process->signals.trap_action.handler;
	if (child->own_action)
		return NULL;
	MW_TRY(target_sigaction(&inject, SIGTRAP, true, &ours));
	return actions_strip(process, &inject);
}

struct mw_error *trap_rescue_begin(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = trap_inject_by(process, tid);

	if (!process->rescue.base)
		return NULL;
	MW_TRY(TRAP_RESCUE_PUT(process, tid, led, 1));
	MW_TRY(lead(process, tid));
	process->rescue.led = true;
	MW_TRY(sharing_each(process, lead_child));
	return actions_strip(process, &inject);
}

static const char *way_out(const struct trap_process *process, const struct mw_error *why, bool able)
{
	if (process->rescue.no_sigframe)
		return "Accept that risk with --unsafe";
	if (!able)
		return "Attach again when it is less busy with starting processes; or accept the risk with --unsafe";
	if (mw_error_errno(why) == ENOMEM || mw_error_errno(why) == EAGAIN)
		return "Raise that limit (prlimit, sysctl); or accept the risk with --unsafe";
	return "Run memwatch as root and outside of containers; or accept the risk with --unsafe";
}

/* `able`: one of its threads can perform a system call. */
static struct mw_error *refuse(const struct trap_process *process, struct mw_error *why, bool able)
{
	struct mw_error *err =
		MW_REFUSE(way_out(process, why, able),
			  "the handler that keeps process %d alive if memwatch is killed can't be installed: %s",
			  process->pid, mw_error_text(why));

	mw_error_destroy(why);
	return err;
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
		MW_TRY(seccomp_check(process, tid));
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

static bool is_inside(const struct trap_process *process, pid_t tid, bool counted)
{
	struct mw_tracee_regs regs;

	return mw_error_none(mw_tracee_get_regs(tid, &regs)) &&
	       trap_leads_inside(tid, process->arch, &regs.general, process->rescue.base, counted,
				 process->shadow_stack);
}

/* A thread that stands in our code, or will come back to it, comes out by itself. Those whose process is stopped are
 * marked to run all the same, for as long as it takes. */
static bool anybody_inside(struct trap_process *process)
{
	pid_t tid = trap_stopped_tid(process);
	uint32_t inside = 0;
	bool any = false;
	struct trap_thread *thread;

	if (tid)
		mw_error_destroy(mw_remote_read_all(tid, TRAP_RESCUE_AT(process, inside), &inside, sizeof(inside)));
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!thread->stopped || !is_inside(process, thread->tid, inside != 0))
			continue;
		any = true;
		thread->group_stopped = false;
	}
	return any;
}

static struct mw_error *give_back(struct trap_process *process, const struct mw_inject *inject, bool dropped)
{
	struct mw_rescue_marks marks;

	MW_TRY(mw_remote_read_all(inject->tid, TRAP_RESCUE_AT(process, marks), &marks, sizeof(marks)));
	MW_TRY(rescue_look(process, inject->tid));
	return trap_actions_give_back(inject, &marks, &process->signals.trap_action, led_here(process).handler,
				      dropped);
}

/* By code and memory that are not in what is unmapped. */
static struct mw_error *unmap(struct trap_process *process, pid_t tid)
{
	struct mw_inject *outside = &process->rescue.outside;
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_inject better = {0};
	struct mw_error *first = NULL;

	outside->tid = tid;
	outside->room = (struct mw_room){.low = 0};
	if (mw_error_none(mw_maps_read(tid, &maps))) {
		mw_inject_use(outside, tid, &maps);
		/* One that was launched had no C library then. */
		if (!outside->code.restorer && !outside->code.gadget &&
		    mw_error_none(mw_inject_init(&better, tid, &maps)))
			*outside = better;
	}
	for (size_t i = 0; i < process->rescue.area_count; i++)
		mw_error_keep_first(&first, mw_inject_unmap(outside, process->rescue.areas[i].start, MW_RESCUE_AREA));
	return first ? first : mw_inject_unmap(outside, process->rescue.base, TRAP_RESCUE_SIZE);
}

struct mw_error *trap_rescue_clean_child(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = trap_inject_by(process, tid);

	/* Where its filter would end it for that, it keeps what does no harm. */
	if (!process->rescue.base || !may_or_unsafe(process, tid, TRAP_CALLS_INSTALL))
		return NULL;
	/* It may have been made without actions (CLONE_CLEAR_SIGHAND). */
	MW_TRY(give_back(process, &inject, false));
	return unmap(process, tid);
}

/* Children that share the memory have actions of their own, made from the process's, or none. */
static struct mw_error *give_back_of_child(struct trap_process *process, pid_t tid)
{
	const struct mw_inject inject = trap_inject_by(process, tid);
	struct trap_thread *child = mw_map_get(&process->threads, (uint64_t)tid);
	struct mw_rescue_action none = {.handler = (uint64_t)(uintptr_t)SIG_DFL};
	bool resets = false;

	MW_TRY(rescue_look(process, tid));
	if (process->signals.trap_action.handler == (uint64_t)(uintptr_t)SIG_IGN)
		MW_TRY(trap_rescue_resets(process, child, &resets));
	else
		resets = child->cleared;
	return resets ? target_sigaction(&inject, SIGTRAP, true, &none) : give_back(process, &inject, true);
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
	MW_TRY(sharing_each(process, give_back_of_child));
	if (thread->relation == TRAP_THREAD) {
		const struct mw_inject inject = trap_inject_by(process, thread->tid);

		MW_TRY(give_back(process, &inject, true));
	}
	MW_TRY(mw_journal_rollback(&process->acts.journal, thread->tid));
	err = unmap(process, thread->tid);
	if (!err)
		process->rescue.base = 0;
	return err;
}

/*
 * What the target wants done with SIGTRAP. The kernel leads it to ours; the program's own action is read at attach, and
 * kept there as the program changes it (plant.c). A child that lives in the process's memory (vfork) has actions of its
 * own, but the same breakpoints: its action for SIGTRAP stays as well.
 *
 * The kernel sets a trap's action back to the default when the trap strikes a thread that blocks or ignores it, as our
 * breakpoints may. Then it is put back at once, by a system call in the thread that was interrupted.
 *
 * A program that is run begins with what is ignored, and with no other action. It has found ours, so where the one
 * before it ignored SIGTRAP that is put in by a system call in the new one, before its first instruction.
 */
struct mw_error *trap_disposition_put_back(struct trap_thread *thread, bool *was_dropped)
{
	struct trap_process *process = thread->process;
	struct mw_status status;

	*was_dropped = false;
	/* One that shares the memory only has actions of its own. */
	if (!process->rescue.base || thread->relation != TRAP_THREAD)
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	*was_dropped = !(status.sig_caught & MW_RESCUE_TRAP_BIT);
	return *was_dropped ? lead(process, thread->tid) : NULL;
}

void trap_disposition_look(struct trap_process *process)
{
	if (process->signals.trap_action_changes)
		mw_error_destroy(rescue_look(process, trap_live_tid(process)));
}

/* Would the thread that runs another program have ignored SIGTRAP in that? */
static struct mw_error *is_to_ignore(struct trap_thread *thread, bool *out)
{
	struct trap_process *process = thread->process;
	bool resets = false;
	struct mw_status status;

	*out = false;
	if (!process->rescue.led || thread->own_action)
		return NULL;
	/* The process itself has left the memory in which that stands: what was seen last has to do. */
	if (thread->relation == TRAP_SHARING_CHILD) {
		MW_TRY(rescue_look(process, trap_live_tid(process)));
		MW_TRY(trap_rescue_resets(process, thread, &resets));
	}
	if (!trap_ignored_by(process) || resets)
		return NULL;
	MW_TRY(mw_status_read(thread->tid, &status));
	*out = !(status.sig_ignored & MW_RESCUE_TRAP_BIT);
	return NULL;
}

struct mw_error *trap_disposition_after_exec(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;
	struct mw_rescue_action ignore = {.handler = (uint64_t)(uintptr_t)SIG_IGN};
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	struct mw_inject inject;
	struct mw_error *err;
	bool wanted;

	MW_TRY(is_to_ignore(thread, &wanted));
	if (!wanted || !may_or_unsafe(process, thread->tid, MW_CALL_BIT(SIGACTION)))
		return NULL;
	/* From the exec's own stop no system call can be made. */
	MW_TRY(mw_tracee_to_border(thread->tid));
	err = mw_maps_read(thread->tid, &maps);
	if (!err)
		err = mw_inject_init(&inject, thread->tid, &maps);
	/* One of another machine's code may have no such instruction. */
	if (err && mw_error_kind(err) == MW_ERROR_UNSUPPORTED) {
		mw_error_destroy(err);
		return NULL;
	}
	MW_TRY(err);
	return target_sigaction(&inject, SIGTRAP, true, &ignore);
}
