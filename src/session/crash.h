/* SPDX-License-Identifier: MIT */
/*
 * crash.h: what becomes of memwatch when its own code is at fault (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL).
 *
 * Signal handlers are a process's, so this is global state.
 */
#ifndef MW_SESSION_CRASH_H
#define MW_SESSION_CRASH_H

#include "view/frames.h"

#include <stdbool.h>

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
