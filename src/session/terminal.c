// SPDX-License-Identifier: MIT
/* terminal.c: what the ends of the standard streams can show. */
#include "session/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MIN     20 /* what claims less is wrong more often than narrow */
#define WIDTH_MAX     10000

unsigned mw_terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	char *end;
	long value;

	if (!isatty(fd))
		return 0;
	if (columns) {
		value = strtol(columns, &end, 10);
		if (!*end && value >= WIDTH_MIN && value <= WIDTH_MAX)
			return (unsigned)value;
	}
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
		return size.ws_col;
	return WIDTH_DEFAULT;
}

bool mw_terminal_color(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}
