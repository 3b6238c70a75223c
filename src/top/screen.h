/* SPDX-License-Identifier: MIT */
/*
 * screen.h: the thread of a live table that draws, and takes keys.
 *
 * It holds nobody up: a terminal that takes no more text stops that thread alone. SIGWINCH is for it, all other signals
 * are for memwatch's first thread, which it asks for the end as Ctrl-C does.
 */
#ifndef MW_TOP_SCREEN_H
#define MW_TOP_SCREEN_H

#include "top/draw.h"
#include "top/work.h"

struct mw_top_screen;

/* Starts the thread, which takes the terminal over when the window has begun. All is borrowed. From memwatch's first
 * thread. Errors: MEMORY, SYSTEM. */
struct mw_error *mw_top_screen_create(struct mw_top_feeds *feeds, struct mw_top_work *work, bool utf8,
				      struct mw_top_screen **out) MW_MUST_CHECK;
/* Give the terminal back and end the thread. False: it does not end (the terminal takes no text), and all that it was
 * given must stay; the terminal has been put back as well as can be. True: `*why` the terminal could not be taken over, or
 * NULL; untouched for a screen of NULL. */
bool mw_top_screen_destroy(struct mw_top_screen *screen, struct mw_error **why);

#endif
