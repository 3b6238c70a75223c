/* SPDX-License-Identifier: MIT */
/* terminal.h: what the ends of the standard streams can show. */
#ifndef MW_SESSION_TERMINAL_H
#define MW_SESSION_TERMINAL_H

#include <stdbool.h>

/* Columns of the terminal behind a descriptor: COLUMNS, else what it says itself, else 80; 0 where it is none. */
unsigned mw_terminal_width(int fd);

/* Are colours wanted there: a terminal, not TERM=dumb, no NO_COLOR? */
bool mw_terminal_color(int fd);

#endif
