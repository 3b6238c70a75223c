// SPDX-License-Identifier: MIT
/* package_lines.c: see package_lines.h. */
#include "cli/package_lines.h"

#include "cli/unpack.h"
#include "proc/root.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 65536
#define PACKED_BYTES   16384 /* that are read at a time */

struct packed {
	struct mw_unpack *unpack;
	uint64_t left;     /* bytes that may still be read */
	size_t start, end; /* of what was read and not unpacked yet */
	uint8_t data[PACKED_BYTES];
};

struct mw_lines {
	int fd;
	struct packed *packed; /* NULL: it is not */
	uint64_t limit;
	uint64_t left;     /* bytes of its lines that may still be had */
	bool whole;        /* all of it was read, to a proper end */
	size_t start, end; /* of what was read and not given yet */
	bool skipping;     /* the rest of a line that was too long */
	char data[LINE_MAX_BYTES + 1];
};

static bool begin_packed(struct mw_lines *lines, const char *path, uint64_t limit)
{
	if (!mw_unpack_is_packed(path))
		return true;
	lines->packed = calloc(1, sizeof(*lines->packed));
	if (!lines->packed)
		return false;
	lines->packed->left = limit;
	lines->packed->unpack = mw_unpack_create(path);
	return lines->packed->unpack != NULL;
}

struct mw_lines *mw_lines_open(int root, const char *path, uint64_t limit)
{
	struct mw_lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return NULL;
	lines->limit = lines->left = limit;
	lines->fd = mw_root_open_at(root, path, false);
	if (lines->fd >= 0 && begin_packed(lines, path, limit))
		return lines;
	mw_lines_close(lines);
	return NULL;
}

void mw_lines_close(struct mw_lines *lines)
{
	if (!lines)
		return;
	if (lines->fd >= 0)
		close(lines->fd);
	if (lines->packed)
		mw_unpack_destroy(lines->packed->unpack);
	free(lines->packed);
	free(lines);
}

bool mw_lines_are_whole(const struct mw_lines *lines)
{
	return lines->whole;
}

uint64_t mw_lines_spend(const struct mw_lines *lines, uint64_t budget)
{
	uint64_t text = lines->limit - lines->left;
	uint64_t packed = lines->packed ? lines->limit - lines->packed->left : 0;

	budget -= text < budget ? text : budget;
	return budget - (packed < budget ? packed : budget);
}

static ssize_t read_on(int fd, void *out, size_t size)
{
	ssize_t got;

	do
		got = size ? read(fd, out, size) : 0;
	while (got < 0 && errno == EINTR);
	return got;
}

/* Bytes of the text: how many, 0 at its end, negative where they can't be had. */
static ssize_t read_plain(struct mw_lines *lines, void *out, size_t size)
{
	ssize_t got = read_on(lines->fd, out, size);

	lines->whole = got == 0 && size > 0;
	return got;
}

static ssize_t read_packed(struct mw_lines *lines, void *out, size_t size)
{
	struct packed *packed = lines->packed;

	for (;;) {
		size_t taken = packed->end - packed->start, given = size;
		bool more = taken > 0;
		ssize_t got;

		if (!mw_unpack(packed->unpack, packed->data + packed->start, &taken, out, &given))
			return -1;
		packed->start += taken;
		if (given > 0)
			return (ssize_t)given;
		if (more && taken > 0)
			continue;
		/* Neither takes nor gives. */
		if (more || packed->left == 0)
			return -1;
		got = read_on(lines->fd, packed->data,
			      packed->left < PACKED_BYTES ? (size_t)packed->left : PACKED_BYTES);
		if (got <= 0) {
			lines->whole = got == 0 && mw_unpack_is_whole(packed->unpack);
			return got;
		}
		packed->left -= (uint64_t)got;
		packed->start = 0;
		packed->end = (size_t)got;
	}
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
	if (wanted == 0)
		return false;
	got = lines->packed ? read_packed(lines, lines->data + lines->end, wanted)
			    : read_plain(lines, lines->data + lines->end, wanted);
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
