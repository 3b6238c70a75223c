/* SPDX-License-Identifier: MIT */
/* lifecycle.h: a process is made, launched, stopped, watched and left, and so are its children (jump.h). */
#ifndef MW_ENGINE_JUMP_LIFECYCLE_H
#define MW_ENGINE_JUMP_LIFECYCLE_H

#include "engine/jump/jump.h"

/* process.c */
struct mw_error *jump_process_create(struct jump_engine *engine, pid_t pid, const struct mw_event_sink *sink,
				     struct jump_process **out) MW_MUST_CHECK;
void jump_process_destroy(struct jump_process *process);
/* Can the engine be used on this machine, with these options? UNSUPPORTED with the reason. */
struct mw_error *jump_machine_check(const struct jump_engine *engine) MW_MUST_CHECK;
bool jump_has_exited(const struct jump_process *process);
/* Does it run another program now? */
bool jump_has_execed(const struct jump_process *process);
/* Note the exit status, `known` as waitpid gives it or -1. */
void jump_exit_status(struct jump_process *process, int known);
uint64_t jump_now(const struct jump_process *process);
/* A thread of the process that lives, for /proc and memory; the process id where none is known. */
pid_t jump_live_tid(const struct jump_process *process);
/* The process was stopped for quiesce.stood_ns, and runs again: what of it was after the window counts as detach. */
void jump_account_stop(struct jump_process *process);
void jump_memory_close(struct jump_process *process);
/* Take over the drain's figures. */
void jump_stats_take(struct jump_process *process);

/* stop.c: all threads stand, and one of them can be picked. Where that fails it is tried again for `patience_ns`; then
 * they are let go, and quiesce says what became of the process. Errors: those of mw_quiesce_begin. */
struct mw_error *jump_stop(struct jump_process *process, uint64_t patience_ns) MW_MUST_CHECK;
/* A thread that makes system calls for us, of those that stand; `calls` (MW_CALL_BIT, MW_CALLS_...) says which.
 */
/* One that lives through them whatever happens to memwatch; *tid is 0 where there is none. Errors: GONE, MEMORY. */
struct mw_error *jump_injector_find(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
				    const struct mw_maps *maps, uint32_t calls, pid_t *tid) MW_MUST_CHECK;
/* … and where there is none, with --unsafe, any; else UNSUPPORTED. Stopping it must be harmless as well. */
struct mw_error *jump_injector_wanted(struct jump_process *process, uint32_t calls, const struct mw_maps *maps,
				      pid_t *tid) MW_MUST_CHECK;

/* install.c: all threads stand (process->quiesce). */
/* Put in all but the jumps. */
struct mw_error *jump_install_code(struct jump_process *process) MW_MUST_CHECK;
/* What memwatch writes into the memory that was mapped; nothing need stand. */
struct mw_error *jump_install_data(struct jump_process *process) MW_MUST_CHECK;
/* Write the jumps: the window begins. */
struct mw_error *jump_install_jumps(struct jump_process *process) MW_MUST_CHECK;
/* The loader says that modules came or went. */
struct mw_error *jump_modules_changed(struct jump_process *process) MW_MUST_CHECK;

/* launch.c: from before the exec to where the libraries are mapped. */
struct mw_error *jump_launch_begin(struct jump_process *process) MW_MUST_CHECK;
/* If the command has stopped, see to it. */
struct mw_error *jump_launch_go_on(struct jump_process *process) MW_MUST_CHECK;

/* window.c */
struct mw_error *jump_run_until(struct jump_engine *engine, uint64_t deadline_ns,
				const volatile sig_atomic_t *interrupt) MW_MUST_CHECK;

/* children.c: forked children hold our code and jumps. */
/* For mw_quiesce. */
struct mw_error *jump_child_forked(void *context, pid_t child) MW_MUST_CHECK;
/* Those that have been heard of. */
void jump_children_heard(struct jump_process *process);
/* All that are there: looked for among the processes that began after the attach. */
void jump_children_sweep(struct jump_process *process);

/* detach.c */
/* The window ends now, or when it was as long as it was to be. What is recorded from now on is reported, too. */
void jump_window_close(struct jump_process *process);
/* The recorder is turned off. */
struct mw_error *jump_window_end(struct jump_process *process) MW_MUST_CHECK;
struct mw_error *jump_process_detach(struct jump_process *process, enum mw_window_end end) MW_MUST_CHECK;
/* The process is no more, or is another program now. */
struct mw_error *jump_process_end(struct jump_process *process, enum mw_window_end end) MW_MUST_CHECK;

#endif
