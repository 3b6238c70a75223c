/* SPDX-License-Identifier: MIT */
/* draw.h: a live table put on the screen, by ncurses: what it looks like, not what it does. */
#ifndef MW_TOP_DRAW_H
#define MW_TOP_DRAW_H

#include "top/text.h"
#include "top/view.h"

#include <limits.h>

#define MW_TOP_TEXT 8192 /* bytes of a line before it is cut */

/* All that is shown. */
struct mw_top_picture {
	const struct mw_top_feed *feed;
	struct mw_top_view *view;
	pid_t pid;
	const char *comm;
	bool utf8, color;
	bool help;
	size_t help_first;
	const char *message; /* in the last line; NULL: none */
	const char *prompt;  /* what is being typed there; NULL: nothing */
	size_t lines;        /* set: how many there are for rows */
};

/* Take the terminal over. Errors: SYSTEM. */
struct mw_error *mw_top_draw_begin(struct mw_top_picture *picture) MW_MUST_CHECK;
void mw_top_draw_end(void);
void mw_top_draw(struct mw_top_picture *picture);
/* The next key that was pressed, as ncurses has it; false: there is none. `*character`: it is one, else KEY_... */
bool mw_top_draw_key(int *key, bool *character);
/* The lines of the help; how many there are. */
size_t mw_top_draw_help_lines(void);

#endif
