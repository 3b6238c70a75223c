/* SPDX-License-Identifier: MIT */
/* draw.h: a live table put on a terminal, by ncurses: what it looks like, not what it does. */
#ifndef MW_TOP_DRAW_H
#define MW_TOP_DRAW_H

#include "top/view.h"

#include <limits.h>

/* All that is shown. */
struct mw_top_picture {
	const struct mw_top_feed *feed;
	struct mw_top_view *view;
	size_t process_count; /* that can be shown */
	bool utf8, color;
	bool help;
	int help_first;      /* the first line of it that is shown */
	struct mw_line line; /* scratch */
	const char *message; /* in the last line; NULL: none */
	const char *prompt;  /* what is being typed there; NULL: nothing … */
	const char *asked;   /* … and what for */
};

/* Take the terminal over. Errors: SYSTEM. */
struct mw_error *mw_top_draw_begin(struct mw_top_picture *picture) MW_MUST_CHECK;
void mw_top_draw_end(struct mw_top_picture *picture);
/* Brings the view up to date. */
void mw_top_draw(struct mw_top_picture *picture);
/* --- the terminal ------------------------------------------------------------------------------------------ */

/*
 * It gets back what it had: whoever leaves it, also a crash, or the guard of a memwatch that was killed. There is one a
 * process, so this is global state; it lies in memory that the guard shares.
 */

/* Are standard input and output a terminal that can show a table? Notes what it is like. Before the guard is made.
 * Errors: UNSUPPORTED where not; SYSTEM. */
struct mw_error *mw_top_tty_prepare(void) MW_MUST_CHECK;
/* Put it back, if it is taken over. Async-signal-safe; also for the guard, which has it as standard error at best. What
 * somebody else has set meanwhile is let be. */
void mw_top_tty_restore(void);
/* --- what fits on a screen of so many columns and lines ------------------------------------------------------------- */

#define MW_TOP_WIDTH_MIN  20
#define MW_TOP_HEIGHT_MIN 5
#define MW_TOP_WIDTH_MAX  512 /* of what is shown; what is wider stays empty */
/* Bytes of a line of text: four a column and its end. */
#define MW_TOP_LINE (4 * MW_TOP_WIDTH_MAX + 8)

/*
 * Text, which may be any bytes, cut to `columns` into `out` (MW_TOP_LINE bytes); returns the columns that it takes.
 * Control characters, marks and overrides of direction, letters that are written from right to left, and what has no
 * width or none that is known, are shown as \x1b or \u202e; bytes that are no UTF-8 as the replacement character. What
 * was cut off is marked. Where the terminal has no UTF-8 (`utf8`) all is ASCII. Widths are those of the locale.
 */
size_t mw_top_cut(const char *text, size_t columns, bool utf8, char *out);

enum mw_top_column {
	MW_TOP_BYTES,
	MW_TOP_GROWTH,
	MW_TOP_BLOCKS,
	MW_TOP_RATE,
	MW_TOP_LEVEL,
	MW_TOP_VERDICT,
	MW_TOP_KIND,
	MW_TOP_COLUMNS, /* behind them stands the name */
};

struct mw_top_layout {
	int columns[MW_TOP_COLUMNS]; /* widths, with the blank behind them; 0: there is no room for that one */
	int name;                    /* what is left */
	int header;                  /* lines above the table's head */
	int rows;                    /* lines for rows */
	bool head;                   /* is there a line for it? */
};
/* False: the screen is too small for a table. */
bool mw_top_layout_make(int width, int height, struct mw_top_layout *out);

/* "0", "0.3", "12", "1200", "12k", "35M" */
struct mw_shown mw_top_show_rate(double per_second);
/* "_" to "█", or in ASCII: a level over time. */
struct mw_shown mw_top_show_bars(const struct mw_top_course *course, bool utf8);
/* "3.141593": seconds, rounded up, so that nothing from before the moment is after what is shown. */
struct mw_shown mw_top_show_moment(uint64_t ns);

#endif
