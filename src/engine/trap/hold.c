// SPDX-License-Identifier: MIT
/* hold.c: stop all threads of a process, and let them all go on (trap.h). */
#include "base/fault.h"
#include "engine/trap/trap.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Also one that is seized already, as it could not be let go by who looked at the process before on our behalf: it
 * waits where nothing interrupts it (vfork). Errors: as mw_tracee_seize(). */
static struct mw_error *seize(pid_t tid)
{
	struct mw_error *err = mw_tracee_seize(tid);
	struct mw_status status;

	if (!err || !mw_error_none(mw_status_read(tid, &status)) || status.tracer != gettid() || status.state != 'D')
		return err;
	mw_error_destroy(err);
	return NULL;
}

/*
 * Other processes that live in a process's memory already when it is attached to: children of vfork() and posix_spawn()
 * that have not come to their exec or end, and whatever else was cloned with its memory. They run into our breakpoints,
 * but have actions of their own, in which SIGTRAP kills. So they are held and served as threads are, and their SIGTRAP
 * is led where the process's is. Those that are born later inherit all that.
 */
#define MOST_ROUNDS 16 /* children's children */

/* The first that shares the memory, is a child of this thread and is none of ours, or, with `held`, is held by us; 0:
 * there is none. */
static pid_t find_child(const struct trap_thread *thread, bool held)
{
	const struct trap_process *process = thread->process;
	pid_t group = thread->relation == TRAP_SHARING_CHILD ? thread->tid : process->pid, child = 0;
	MW_FREE pid_t *found = NULL;
	size_t count = 0;

	mw_error_destroy(mw_children_read(group, thread->tid, &found, &count));
	for (size_t i = 0; i < count && !child; i++) {
		const struct trap_thread *ours = mw_map_get(&process->threads, (uint64_t)found[i]);

		if (held ? ours && ours->relation == TRAP_SHARING_CHILD
			 : !mw_map_get(&process->engine->threads, (uint64_t)found[i]) &&
				    mw_shares_memory(thread->tid, found[i]) == 1)
			child = found[i];
	}
	return child;
}

/* Is it one of the process's own that has stopped, by which its signals can be led? */
static bool is_injector(const struct trap_thread *thread)
{
	return thread->stopped && !thread->ending && thread->relation == TRAP_THREAD;
}

/* Of one that has not stopped: its mask could not be changed. */
static bool blocks_trap(const struct trap_thread *thread)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(thread->tid, &status)) && status.sig_blocked & MW_RESCUE_TRAP_BIT;
}

/* It waits for a vforked child, and nothing can be done to it until that has come to its exec or end: would SIGTRAP
 * kill it then if memwatch is no more? */
static bool is_exposed(const struct trap_thread *thread)
{
	return thread->relation == TRAP_SHARING_CHILD || !trap_any(thread->process, is_injector) || blocks_trap(thread);
}

/* Does a thread that does not stop wait for a child in its memory that is none of ours? `*exposed` where such a one
 * would run into breakpoints then that kill if nobody serves them. */
static bool sharing_awaited(const struct trap_process *process, bool *exposed)
{
	bool awaited = false;
	const struct trap_thread *thread;

	*exposed = false;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!trap_is_to_stop(thread) || !find_child(thread, false))
			continue;
		awaited = true;
		*exposed |= is_exposed(thread);
	}
	return awaited;
}

/* Has it not stopped, blocks SIGTRAP, and does not wait for a child that we hold? Until it stops its mask can't be
 * changed. */
static bool keeps_mask(const struct trap_thread *thread)
{
	return trap_is_to_stop(thread) && blocks_trap(thread) && !find_child(thread, true);
}

/* One after the other: who is added may change the order of all. */
static struct mw_error *seize_child(struct trap_process *process, bool *any)
{
	const struct trap_thread *thread;

	*any = false;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		pid_t child = thread->relation == TRAP_NEWBORN ? 0 : find_child(thread, false);
		struct trap_thread *added;
		struct mw_error *err;

		if (!child)
			continue;
		err = seize(child);
		if (!err) {
			*any = true;
			return trap_thread_add(process, child, TRAP_SHARING_CHILD, &added);
		}
		/* It has ended or become a program of its own, or is another tracer's. */
		MW_TRY(mw_error_if_memory(err));
	}
	return NULL;
}

/* Seize and stop those who share the memory of a held process, as TRAP_SHARING_CHILD. */
static struct mw_error *sharing_seize(struct trap_process *process)
{
	for (unsigned round = 0; round < MOST_ROUNDS; round++) {
		bool any, fresh = false;

		do {
			MW_TRY(seize_child(process, &any));
			fresh |= any;
		} while (any);
		if (!fresh)
			return NULL;
		/* They may have made others. */
		MW_TRY(trap_hold(process));
	}
	return NULL;
}

static struct mw_error *refuse(const struct trap_thread *thread, const char *why)
{
	return MW_REFUSE("Try again in a moment; or accept the risk with --unsafe",
			 "thread %d %s, and would die if memwatch is killed meanwhile", (int)thread->tid, why);
}

/* UNSUPPORTED where a thread that has not stopped would die of a breakpoint if memwatch is killed before it has. */
static struct mw_error *sharing_check(const struct trap_process *process)
{
	const struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		bool waits;

		if (!trap_is_to_stop(thread))
			continue;
		waits = find_child(thread, true) != 0;
		if (waits ? is_exposed(thread) : blocks_trap(thread))
			return refuse(thread, waits ? "waits for a program to be started (vfork, posix_spawn)"
						    : "does not stop (it waits for a disk, or gets no CPU)");
	}
	return NULL;
}

#define PATIENCE_NS 2000000000u /* for threads that are neither stopped nor in an uninterruptible wait */
/* Nothing is heard of the process any more: two waits in vain; or for so long, with so many events of others, where
 * those come without an end. Then it is looked at what it waits for. */
#define QUIET_NS 50000000u
#define OTHERS   100
/* For a thread that waits for a vforked child to come to its exec or end, and does not stop meanwhile. The child may go
 * on for long: then it is held as well. */
#define CHILD_PATIENCE_NS 250000000u
#define MOST_LISTS        64 /* of threads are read before those are interrupted that are known */

/* A thread that is there in /proc but can't be seized: is that in order? */
static bool may_be_passed_over(pid_t tid, bool *ended)
{
	struct mw_status status;
	bool dead = !mw_error_none(mw_status_read(tid, &status)) || mw_state_is_end(status.state);

	*ended |= dead;
	/* Or ours already: its birth will be announced. One that another traces would run into our breakpoints. */
	return dead || status.tracer == gettid() || mw_stat_kernel_worker(tid);
}

/* `*ended` where it is about to be no more, and may have made another before. */
static struct mw_error *seize_one(struct trap_process *process, pid_t tid, bool *ended)
{
	struct trap_thread *thread;
	struct mw_status status;
	struct mw_error *err;
	int errnum;

	MW_TRY(mw_fault("attach.seize"));
	err = seize(tid);
	if (!err)
		return trap_thread_add(process, tid, TRAP_THREAD, &thread);
	if (mw_error_kind(err) == MW_ERROR_GONE || (tid != process->pid && may_be_passed_over(tid, ended))) {
		*ended |= mw_error_kind(err) == MW_ERROR_GONE;
		mw_error_destroy(err);
		return NULL;
	}
	errnum = mw_error_errno(err);
	if (errnum != EPERM && errnum != EACCES)
		return err;
	mw_error_destroy(err);
	/* A main thread that has ended while others go on. */
	if (mw_error_none(mw_status_read(tid, &status)) && status.state == 'Z' && status.threads > 1)
		return NULL;
	return mw_preflight_explain_denied(tid, errnum);
}

/*
 * Seize those of one list that are new. It is complete where none of those in it is on its way out, and where it has as
 * many as there are.
 */
static struct mw_error *seize_listed(struct trap_process *process, bool *any, bool *complete)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;
	bool ended = false;
	struct mw_status status;

	MW_TRY(mw_tasks_read(process->pid, &tids, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_error *err;

		if (mw_map_get(&process->engine->threads, (uint64_t)tids[i]))
			continue;
		err = seize_one(process, tids[i], &ended);
		*any |= mw_map_get(&process->engine->threads, (uint64_t)tids[i]) != NULL;
		MW_TRY(err);
	}
	MW_TRY(mw_status_read(process->pid, &status));
	*complete = !ended && status.threads == count;
	return NULL;
}

/*
 * Seize all threads that there are; *fresh says whether there was any that had not been. A list of threads that come
 * and go may lack some: only one that is read while all known ones stand and that has nothing new is to be believed.
 */
static struct mw_error *seize_all(struct trap_process *process, bool *fresh)
{
	bool complete = false;

	*fresh = false;
	/* Threads that appear meanwhile were either made by one that is seized, and are seized then, or are in the next
	 * list. */
	for (unsigned i = 0; i < MOST_LISTS && !complete; i++) {
		bool any = false;
		struct mw_error *err = seize_listed(process, &any, &complete);

		*fresh |= any;
		/* With some of them seized, what became of it will be heard by waiting. */
		if (err)
			return process->threads.count > 0 ? mw_error_unless_gone(err) : err;
		complete &= !any;
	}
	if (process->threads.count == 0)
		return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
	return NULL;
}

static struct mw_error *interrupt_all(struct trap_process *process)
{
	struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		if (trap_is_to_stop(thread) && !thread->interrupted)
			MW_TRY(trap_interrupt(thread));
	return NULL;
}

/* Has a stopped thread executed a breakpoint of ours whose trap is still to come? Then it must come first. */
static bool has_trap_coming(struct trap_thread *thread)
{
	const struct trap_process *process = thread->process;
	struct mw_tracee_regs regs;

	if (process->planted.breakpoints.count == 0 || !mw_error_none(mw_tracee_get_regs(thread->tid, &regs)))
		return false;
	return mw_map_get(&process->planted.breakpoints, regs.general.pc - process->arch->breakpoint_advance) &&
	       mw_tracee_trap_queued(thread->tid);
}

static bool is_running(const struct trap_thread *thread)
{
	return !thread->stopped && !thread->ending;
}

/* … and is in no wait that nothing interrupts (vfork, a dead disk)? */
static bool is_awake(const struct trap_thread *thread)
{
	return is_running(thread) && mw_state_read(thread->tid) != 'D';
}

static bool is_stuck(const struct trap_process *process, uint64_t held_ns)
{
	bool exposed;

	if (held_ns > PATIENCE_NS)
		return true;
	/* A process would be refused for such a one, which need but wait for its disk. */
	if (!process->windowed && !process->ended && trap_any(process, keeps_mask))
		return false;
	return !trap_any(process, is_awake) &&
	       (!sharing_awaited(process, &exposed) || (!exposed && held_ns > CHILD_PATIENCE_NS));
}

/* Let those report whose trap is on its way; `*any` where there are such. */
static struct mw_error *await_traps(struct trap_process *process, bool *any)
{
	struct trap_thread *thread;

	*any = false;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!thread->stopped || !has_trap_coming(thread))
			continue;
		thread->group_stopped = false;
		*any = true;
		MW_TRY(trap_resume(thread));
	}
	return NULL;
}

struct mw_error *trap_hold(struct trap_process *process)
{
	struct trap_engine *engine = process->engine;
	uint64_t begin = mw_clock_ns(), heard = begin;
	unsigned quiet = 0, others = 0;

	process->holding = true;
	for (;;) {
		uint64_t now = mw_clock_ns();
		bool silent = quiet >= 2 || (others >= OTHERS && now - heard > QUIET_NS);
		bool stuck = silent && is_stuck(process, now - begin);
		const struct trap_thread *thread;
		bool traps;
		int status;
		pid_t tid;

		if (stuck && now - begin > PATIENCE_NS)
			MW_TRY(mw_fault("hold.patience"));
		MW_TRY(interrupt_all(process));
		if (stuck || !trap_any(process, is_running)) {
			MW_TRY(await_traps(process, &traps));
			if (!traps)
				return NULL;
		}
		MW_TRY(trap_wait(engine, &tid, &status));
		if (tid == 0) {
			quiet++;
			continue;
		}
		thread = mw_map_get(&engine->threads, (uint64_t)tid);
		/* One that is not known yet may be anybody's child. */
		if (thread && thread->process == process) {
			quiet = others = 0;
			heard = mw_clock_ns();
		} else {
			others++;
		}
		MW_TRY(trap_dispatch(engine, tid, status));
		trap_reap_served(engine, tid);
	}
}

struct mw_error *trap_release(struct trap_process *process)
{
	struct trap_thread *thread;

	process->holding = false;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		if (!thread->stopped)
			continue;
		/* It may have been at work for us since it stopped. */
		if (!thread->in_event && thread->signal == 0)
			thread->group_stopped = mw_tracee_is_group_stopped(thread->tid);
		MW_TRY(trap_resume(thread));
	}
	return NULL;
}

/*
 * Nobody stands amidst code that blocks SIGTRAP when breakpoints are put in. A thread that has passed the entry of a
 * function that sets masks, or has loaded one of the sets that plant.c redirects, but has not made its system call,
 * blocks SIGTRAP whatever is done to its mask before. So does one that is in such a section, if it blocked SIGTRAP
 * before: it has put that mask aside, for itself or for a thread that it makes. If memwatch is killed then, the next
 * breakpoint kills. So they go on until they have come out, while all others stand.
 */
#define AMIDST_PATIENCE_NS UINT64_C(5000000000)
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

/* Does a stopped thread block SIGTRAP? Or is it in a section of the C library's own, in which all signals are blocked,
 * as nobody else can? When it leaves that it sets the mask which it had before. Nothing may have been taken out of
 * masks yet. */
enum masked { UNMASKED, MASKED, IN_SECTION };

static enum masked mask_now(const struct trap_thread *thread)
{
	uint64_t mask = 0;

	mw_error_destroy(mw_tracee_get_sigmask(thread->tid, &mask));
	if ((mask | TRAP_UNBLOCKABLE) == UINT64_MAX)
		return IN_SECTION;
	/* A thread ends with one of the library's own let through. */
	return mask & MW_RESCUE_TRAP_BIT && !(mask & TRAP_LIBRARY_OWN) ? MASKED : UNMASKED;
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
	enum masked mask;

	/* A vforked child has its mask from its maker, which stands or waits for it. */
	if (!thread->stopped || thread->relation != TRAP_THREAD)
		return AMIDST_NOTHING;
	mask = mask_now(thread);
	*masked |= mask == MASKED;
	if (mask == IN_SECTION)
		return may_go_on(thread) ? AMIDST_SECTION : AMIDST_NOTHING;
	if (thread->in_event || !mw_error_none(mw_tracee_get_regs(thread->tid, &regs)))
		return AMIDST_NOTHING;
	for (size_t i = 0; i < process->signals.masking_count; i++)
		if (regs.general.pc >= process->signals.masking[i].start &&
		    regs.general.pc < process->signals.masking[i].end)
			return is_behind_call(thread->tid, regs.general.pc) ? AMIDST_NOTHING : AMIDST_CALL;
	return AMIDST_NOTHING;
}

/* Those whose process is stopped as well: for a moment. `*worst`: what there is; `*masked`: somebody blocks SIGTRAP. */
static struct mw_error *resume_all(struct trap_process *process, bool sections, enum amidst *worst, bool *masked)
{
	struct trap_thread *thread;

	*worst = AMIDST_NOTHING;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
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
	const struct trap_thread *thread;
	bool any = false;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		char state = trap_is_to_stop(thread) ? mw_state_read(thread->tid) : '\0';

		if (state && state != 'X' && state != 'S')
			return false;
		any |= state != '\0';
	}
	return any;
}

/* They get on until they have come out of that. UNSUPPORTED where one does not. */
static struct mw_error *amidst_clear(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns(), waited_ns = 0;
	useconds_t breath_us = FIRST_BREATH_US;
	unsigned sleeps = 0;
	bool masked = false;
	enum amidst worst;

	for (; waited_ns <= AMIDST_PATIENCE_NS; waited_ns = mw_clock_ns() - begin) {
		bool sections = sleeps < SLEEPS && waited_ns <= (masked ? SECTION_NS : BRIEF_NS);

		MW_TRY(resume_all(process, sections, &worst, &masked));
		if (worst == AMIDST_NOTHING)
			return NULL;
		MW_TRY(trap_run_briefly(process, breath_us));
		sleeps = all_sleep(process) ? sleeps + 1 : 0;
		MW_TRY(trap_hold(process));
		MW_TRY(trap_still_there(process));
		breath_us = breath_us * 2 < LAST_BREATH_US ? breath_us * 2 : LAST_BREATH_US;
	}
	if (process->engine->options.unsafe)
		return NULL;
	return MW_REFUSE("Try again, use --engine jump, or accept the risk with --unsafe",
			 "a thread of process %d is about to block SIGTRAP, and makes no progress: if memwatch were "
			 "killed, the next breakpoint would end the process",
			 process->pid);
}

#define MOST_MOVES 20 /* of threads to where they may be stopped */
#define BREATHS    10 /* for calls that map memory */
#define BREATH_US  50

static struct mw_error *seize_sharing(struct trap_process *process)
{
	MW_TRY(sharing_seize(process));
	return process->engine->options.unsafe ? NULL : sharing_check(process);
}

/* Before anything is read of what its threads may change: from then on nobody runs. */
static struct mw_error *await_quiet(struct trap_process *process)
{
	for (unsigned i = 0; i < MOST_MOVES && !process->ended; i++) {
		MW_TRY(trap_await_injector(process));
		if (!trap_usable_thread(process))
			break;
		MW_TRY(amidst_clear(process));
		if (trap_usable_thread(process))
			break;
	}
	return trap_still_there(process);
}

/* Is it in a call that maps memory, and was made before there was a hook to see it? */
static bool is_mapping(const struct trap_thread *thread)
{
	struct mw_tracee_regs regs;

	return thread->stopped && mw_error_none(mw_tracee_get_regs(thread->tid, &regs)) &&
	       mw_survey_is_mapping(&thread->process->survey, regs.general.pc);
}

/* What such a call maps would be nobody's. They are short; where new ones are made all the time it is let be. */
static struct mw_error *await_mappings(struct trap_process *process)
{
	for (unsigned i = 0; i < BREATHS && !process->ended && trap_any(process, is_mapping); i++) {
		MW_TRY(trap_release(process));
		usleep(BREATH_US);
		MW_TRY(trap_hold(process));
	}
	return trap_still_there(process);
}

struct mw_error *trap_stop_process(struct trap_process *process)
{
	uint64_t begin = mw_clock_ns();
	bool fresh;

	MW_TRY(seize_all(process, &fresh));
	if (process->launched)
		return NULL;
	MW_TRY(mw_fault("attach.stop"));
	while (fresh) {
		MW_TRY(trap_hold(process));
		MW_TRY(trap_still_there(process));
		MW_TRY(seize_all(process, &fresh));
	}
	MW_TRY(await_mappings(process));
	MW_TRY(seize_sharing(process));
	MW_TRY(await_quiet(process));
	MW_TRY(seize_sharing(process));
	MW_TRY(trap_rescue_install(process, 0));
	process->stats.attach_ns = mw_clock_ns() - begin;
	return NULL;
}
