/* SPDX-License-Identifier: MIT */
/*
 * process_setup.h: what memwatch sets up in its own process: descriptors, limits and signals, and how a
 * command that it launches gets them as they were.
 *
 * There is one such process, so this is the one module with global state: a signal handler can
 * reach nothing else.
 */
#ifndef MW_SESSION_PROCESS_SETUP_H
#define MW_SESSION_PROCESS_SETUP_H

#include "session/outputs.h"
#include "view/frames.h"

#include <memwatch/error.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* First thing in main(): a standard descriptor that is closed is kept from being given to a file. */
void mw_process_setup_guard_descriptors(void);

/*
 * Raise the limit of open files, ignore SIGPIPE and SIGXFSZ, and let SIGINT, SIGTERM, SIGQUIT and SIGHUP ask for the
 * window's end, SIGUSR1 for a mark. SIGHUP stays ignored where it was (nohup). System calls are not restarted. A
 * memwatch that is stopped may keep its target from running: terminals don't stop it (SIGTSTP, SIGTTIN, SIGTTOU)
 * before mw_process_setup_reporting().
 */
void mw_process_setup_prepare(void);
/* May memwatch open as many files as it needs at least? To be asked after mw_process_setup_prepare(). Errors:
 * SYSTEM. */
struct mw_error *mw_process_setup_check_files(void) MW_MUST_CHECK;

/* Where nothing is attached: a reader that goes, or a file that may grow no further (ulimit -f), is an error of
 * writing. */
void mw_process_setup_ignore_write_signals(void);

/* Not 0 once the window's end was asked for (MW_STOP_...); what an engine's run() looks at. */
const volatile sig_atomic_t *mw_process_setup_interrupted(void);
/* A limit asks for it. From any thread. */
void mw_process_setup_limit_reached(void);
/* A thread that gets no signals but those of a crash: others are the first thread's business. Errors: SYSTEM. */
struct mw_error *mw_process_setup_thread(pthread_t *thread, void *(*run)(void *context), void *context) MW_MUST_CHECK;
/* Has somebody asked for it, by a signal? */
bool mw_process_setup_end_asked(void);
/* The terminal shows a table from now on, or no longer: nothing is written over it when a signal comes. */
void mw_process_setup_screen(bool shown);
/* Was memwatch to be suspended (SIGTSTP) since this was last asked, and has refused? */
bool mw_process_setup_refused_suspension(void);
/* Is the report not to be waited for? By SIGQUIT, or a second signal before it was begun. */
bool mw_process_setup_hurried(void);

#define MW_PROCESS_SETUP_MARKS 256

/* SIGUSR1 asks for a mark: the time of the next one that was not taken yet, ns of CLOCK_MONOTONIC; false: there is
 * none. */
bool mw_process_setup_take_mark(uint64_t *at_ns);

/* The files that are to be unlinked where memwatch ends before it is done; NULL: none. Copies are kept. */
void mw_process_setup_partials(const struct mw_partials *partials);
/* Do so. Async-signal-safe. */
void mw_process_setup_unlink_partials(void);

/*
 * The window is over and nothing is attached: from now on a second signal ends memwatch with
 * status 1. The partial files are then unlinked, as mw_process_setup_partials() has them.
 */
void mw_process_setup_reporting(const struct mw_partials *partials);
/* The report is written: there is nothing left to be cut short. */
void mw_process_setup_reported(void);

/* In a forked child before exec: limits, dispositions and signal mask as memwatch found them. Async-signal-safe. */
void mw_process_setup_restore(void);

/* --- memwatch's own code at fault (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL) --------------------------------------- */

/*
 * From now on `crashed` is called where one of these signals strikes, in the thread that it interrupted, as a signal
 * handler; it must not return. Where a sanitizer has handlers of its own these come first. Call it from the first
 * thread.
 */
void mw_crash_catch(void (*crashed)(int number));

/* "SIGSEGV" and so on. Async-signal-safe, static text. */
const char *mw_crash_name(int number);

/* The symbolizer of a process that is watched. What it reads may crash, in libraries that are not ours: the report goes
 * without names then. */
struct mw_guarded_symbols {
	struct mw_symbolizer *symbolizer;
	bool crashed;                   /* it may not be touched any more, not even to free it */
	struct mw_symbol_frame unknown; /* what is known of an address then */
};

/* For one thread at a time; the modules' owner may refresh them meanwhile. Errors: MEMORY. */
struct mw_error *mw_guarded_symbols_init(struct mw_guarded_symbols *guarded,
					 const struct mw_modules *modules) MW_MUST_CHECK;
void mw_guarded_symbols_deinit(struct mw_guarded_symbols *guarded);
/* Its answers, as long as it gives any. `guarded` must outlive them. */
struct mw_view_symbols mw_guarded_symbols_of(struct mw_guarded_symbols *guarded);

#endif
