// SPDX-License-Identifier: MIT
/* package_lines.c: see package_lines.h. */
#include "cli/package_lines.h"

#include "proc/root.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 65536

struct mw_lines {
	int fd;
	uint64_t left;     /* bytes that may still be read */
	size_t start, end; /* of what was read and not given yet */
	bool skipping;     /* the rest of a line that was too long */
	char data[LINE_MAX_BYTES + 1];
};

struct mw_lines *mw_lines_open(int root, const char *path, uint64_t limit)
{
	int fd = mw_root_open_at(root, path, false);
	struct mw_lines *lines = fd >= 0 ? malloc(sizeof(*lines)) : NULL;

	if (!lines) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	lines->fd = fd;
	lines->left = limit;
	lines->start = lines->end = 0;
	lines->skipping = false;
	return lines;
}

void mw_lines_close(struct mw_lines *lines)
{
	if (!lines)
		return;
	close(lines->fd);
	free(lines);
}

/* Have more behind what there is; false at the end. */
static bool fill(struct mw_lines *lines)
{
	size_t room, wanted;
	ssize_t got;

	memmove(lines->data, lines->data + lines->start, lines->end - lines->start);
	lines->end -= lines->start;
	lines->start = 0;
	room = LINE_MAX_BYTES - lines->end;
	wanted = lines->left < room ? (size_t)lines->left : room;
	do
		got = wanted ? read(lines->fd, lines->data + lines->end, wanted) : 0;
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return false;
	lines->end += (size_t)got;
	lines->left -= (uint64_t)got;
	return true;
}

/* The line at the start, `length` bytes and `more` that end it. */
static char *take(struct mw_lines *lines, size_t length, size_t more)
{
	char *line = lines->data + lines->start;

	line[length] = '\0';
	lines->start += length + more;
	return line;
}

char *mw_lines_next(struct mw_lines *lines)
{
	for (;;) {
		size_t there = lines->end - lines->start;
		char *newline = there ? memchr(lines->data + lines->start, '\n', there) : NULL;

		if (newline && lines->skipping) {
			lines->start = (size_t)(newline + 1 - lines->data);
			lines->skipping = false;
			continue;
		}
		if (newline)
			return take(lines, (size_t)(newline - lines->data) - lines->start, 1);
		if (lines->skipping) {
			lines->start = lines->end;
		} else if (there == LINE_MAX_BYTES) {
			lines->skipping = true;
			return take(lines, there, 0);
		}
		if (fill(lines))
			continue;
		there = lines->end - lines->start;
		return there ? take(lines, there, 0) : NULL;
	}
}
