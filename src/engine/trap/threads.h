/* SPDX-License-Identifier: MIT */
/* threads.h: threads of processes: hear of their stops, hold them, let them go (trap.h). */
#ifndef MW_ENGINE_TRAP_THREADS_H
#define MW_ENGINE_TRAP_THREADS_H

#include "engine/trap/trap.h"

/* wait.c: hear of the next stop. */
struct mw_error *trap_tick_start(struct trap_engine *engine) MW_MUST_CHECK;
void trap_tick_stop(struct trap_engine *engine);
/* Wait for any thread to change state; *tid is 0 where only time has passed. */
struct mw_error *trap_wait(struct trap_engine *engine, pid_t *tid, int *status) MW_MUST_CHECK;
/* The same of those that are known, where it has happened already. */
void trap_wait_no_time(struct trap_engine *engine, pid_t *tid, int *status);
/* The stop of a thread has no signal (any more) that must not be lost. */
void trap_reap(struct trap_thread *thread);
/* It runs again, or is ours no more. */
void trap_unreaped_no_more(struct trap_thread *thread);

/* dispatch.c: act on a stop. */
struct mw_error *trap_dispatch(struct trap_engine *engine, pid_t tid, int status) MW_MUST_CHECK;

/* thread.c: the threads of a process. */
/* Let a held thread run. A thread that has died meanwhile is no error. */
struct mw_error *trap_resume(struct trap_thread *thread) MW_MUST_CHECK;
struct mw_error *trap_thread_add(struct trap_process *process, pid_t tid, enum trap_relation relation,
				 struct trap_thread **out) MW_MUST_CHECK;
void trap_thread_remove(struct trap_thread *thread);
struct mw_error *trap_thread_number(struct trap_thread *thread) MW_MUST_CHECK;
/* A tid of the process whose memory can be written now: a stopped thread of it, or 0. */
pid_t trap_stopped_tid(const struct trap_process *process);
/* A tid of the process that lives, for /proc; the process id where none is known. */
pid_t trap_live_tid(const struct trap_process *process);
/* Have a thread stop; one that has no more than left a stop for it is to stop again. */
struct mw_error *trap_interrupt(struct trap_thread *thread) MW_MUST_CHECK;
/* Is a stop of it awaited where its process is held? A newborn one makes one by itself before its first instruction. */
bool trap_is_to_stop(const struct trap_thread *thread);
/* Can it perform a system call for us now? */
bool trap_is_usable(const struct trap_thread *thread);

/* family.c: births, execs and ends. */
struct mw_error *trap_thread_ended(struct trap_thread *thread, int status) MW_MUST_CHECK;
struct mw_error *trap_child_born(struct trap_thread *parent, int event) MW_MUST_CHECK;
struct mw_error *trap_newborn_stopped(struct trap_thread *thread) MW_MUST_CHECK;
struct mw_error *trap_exec(struct trap_thread *thread) MW_MUST_CHECK;
struct mw_error *trap_thread_exiting(struct trap_thread *thread) MW_MUST_CHECK;

/* family.c: stops of tids that no event has announced. */
/* The news of its birth may still come. `status` as waitpid gives it; an end is forgotten. Errors: MEMORY. */
struct mw_error *trap_orphan_keep(struct trap_engine *engine, pid_t tid, int status) MW_MUST_CHECK;
/* Is it a thread that is traced by the engine (`context`), or an orphan that it knows of? */
bool trap_is_known(void *context, pid_t tid);
/* Nothing else is to be heard: those whose maker was killed before it could tell are found a place, one at a time. */
struct mw_error *trap_orphans_resolve(struct trap_engine *engine) MW_MUST_CHECK;
/* Nothing is watched any more, and a process is gone: the same for all that are there. */
struct mw_error *trap_orphans_free(struct trap_engine *engine) MW_MUST_CHECK;

/* hold.c: stop all threads of a process, let them all go on. */
/*
 * Seize all threads that there are; *fresh says whether there was any that had not been. A list of threads that come
 * and go may lack some: only one that is read while all known ones stand and that has nothing new is to be believed.
 */
struct mw_error *trap_seize_all(struct trap_process *process, bool *fresh) MW_MUST_CHECK;
struct mw_error *trap_hold(struct trap_process *process) MW_MUST_CHECK;
struct mw_error *trap_release(struct trap_process *process) MW_MUST_CHECK;

/* hold.c: others that live in the memory of a process. */
/* Seize and stop those who share the memory of a held process, as TRAP_SHARING_CHILD. */
struct mw_error *trap_sharing_seize(struct trap_process *process) MW_MUST_CHECK;
/* UNSUPPORTED where a thread that has not stopped would die of a breakpoint if memwatch is killed before it has. */
struct mw_error *trap_sharing_check(const struct trap_process *process) MW_MUST_CHECK;
/* Do something with each of them that can perform a system call; one that ends meanwhile is no error. */
struct mw_error *trap_sharing_each(struct trap_process *process,
				   struct mw_error *(*each)(struct trap_process *process, pid_t tid)) MW_MUST_CHECK;

/* injector.c: a thread that can perform a system call for us. */
/* Let those that are not held get on for so long, and serve their stops. */
struct mw_error *trap_run_briefly(struct trap_process *process, useconds_t breath_us) MW_MUST_CHECK;
/* Let the threads of a held process get on until one stands where it can perform a system call, if that is to be had.
 */
struct mw_error *trap_await_injector(struct trap_process *process) MW_MUST_CHECK;
/* A thread that stands where it can perform a system call, or NULL; one that may under seccomp before others. */
struct trap_thread *trap_usable_thread(struct trap_process *process);
/* Let the threads that were stopped with a signal take it, and stop again; each time for longer. */
struct mw_error *trap_deliver_held(struct trap_process *process, useconds_t *breath_us) MW_MUST_CHECK;
/* One that lives through a call outside of our memory, if there is any; else any that is usable, or NULL. */
struct trap_thread *trap_best_thread(struct trap_process *process);

/* starved.c: could a thread of a held process not be stopped, and may it be in code of ours? */
bool trap_is_starved(const struct trap_thread *thread);
bool trap_any_starved(const struct trap_process *process);

/* amidst.c: nobody is about to block SIGTRAP when breakpoints are put in. */
/* Where that is done in the libraries that were surveyed. */
struct mw_error *trap_amidst_find(struct trap_process *process) MW_MUST_CHECK;
/* Those who stand there in a held process get on until they have come out. UNSUPPORTED where one does not. */
struct mw_error *trap_amidst_clear(struct trap_process *process) MW_MUST_CHECK;

/* detach.c */
struct mw_error *trap_process_detach(struct trap_process *process, enum mw_window_end end) MW_MUST_CHECK;
void trap_process_end(struct trap_process *process, enum mw_window_end end);
/* The window ends now, or when it was as long as it was to be. */
void trap_window_close(struct trap_process *process);

/* standstill.c: all times are those of mw_clock_ns(). */
void trap_account_stop(struct trap_process *process, uint64_t begin_ns, uint64_t end_ns);
/* Has it stood still for more of the last five seconds than it may (options.max_stopped)? Asked often, looks once a
 * second. */
bool trap_stands_too_long(struct trap_process *process);
/* Time since the process's window began. */
static inline uint64_t trap_now(const struct trap_process *process)
{
	return mw_clock_ns() - process->start_ns;
}

/* pace.c: keep the tracer on the CPU of the thread it serves. Begun already: nothing. */
void trap_pace_begin(struct trap_engine *engine);
void trap_pace_stop(struct trap_engine *engine, struct trap_thread *thread);
void trap_pace_end(struct trap_engine *engine);

#endif
