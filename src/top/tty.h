/* SPDX-License-Identifier: MIT */
/*
 * tty.h: the terminal that a live table takes over, and how it gets back what it had: whoever leaves it, also a
 * crash, or the guard of a memwatch that was killed.
 *
 * There is one terminal a process, so this is global state; it lies in memory that the guard shares.
 */
#ifndef MW_TOP_TTY_H
#define MW_TOP_TTY_H

#include <memwatch/error.h>

#include <stdbool.h>

/* Are standard input and output a terminal that can show a table? Notes what it is like. Before the guard is made.
 * Errors: UNSUPPORTED where not; SYSTEM. */
struct mw_error *mw_top_tty_prepare(void) MW_MUST_CHECK;
/* It has been taken over, and is as it will be until it is left. */
void mw_top_tty_entered(void);
/* It has been put back. */
void mw_top_tty_left(void);
/* Put it back, if it is taken over. Async-signal-safe; also for the guard, which has it as standard error at best. What
 * somebody else has set meanwhile is let be. */
void mw_top_tty_restore(void);
/* Output that a halted terminal holds up is thrown away. */
void mw_top_tty_unblock(void);

#endif
