/* SPDX-License-Identifier: MIT */
/*
 * crash.h: what becomes of memwatch when its own code is at fault (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL).
 *
 * Signal handlers are a process's, so this is global state.
 */
#ifndef MW_SESSION_CRASH_H
#define MW_SESSION_CRASH_H

#include <stdbool.h>

/*
 * From now on `crashed` is called where one of these signals strikes, in the thread that it interrupted, as a signal
 * handler; it must not return. Where a sanitizer has handlers of its own these come first. Call it from the first
 * thread.
 */
void mw_crash_catch(void (*crashed)(int number));

/* "SIGSEGV" and so on. Async-signal-safe, static text. */
const char *mw_crash_name(int number);

/*
 * Call a function that reads symbols by libraries that are not ours. False where it crashed in the midst of it, by a
 * null pointer, or in code of these libraries, or where these found no memory: whatever it worked on may not be touched
 * any more, not even to free it. Other crashes are crashes. From the first thread, not nested.
 */
bool mw_crash_try(void (*function)(void *context), void *context);

#endif
