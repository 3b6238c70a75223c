// SPDX-License-Identifier: MIT
/* maps.c: a process's mappings, from /proc/TID/maps. */
#include "proc/maps.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "proc/file.h"
#include "proc/root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DELETED " (deleted)"

/* What is left of one line. */
struct cursor {
	const char *at, *end;
};

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* A number and the one character after it. False without digits, beyond `limit`, or on another character. */
static bool take_number(struct cursor *line, unsigned base, uint64_t limit, char after, uint64_t *out)
{
	const char *at = line->at;
	uint64_t value = 0;

	for (; at < line->end; at++) {
		uint64_t next;
		int digit = digit_of(*at);

		if (digit >= (int)base)
			break;
		if (__builtin_mul_overflow(value, base, &next) ||
		    __builtin_add_overflow(next, (unsigned)digit, &next) || next > limit)
			return false;
		value = next;
	}
	if (at == line->at)
		return false;
	/* An inode may stand at the very end of its line. */
	if (at < line->end) {
		if (*at != after)
			return false;
		at++;
	} else if (after != ' ') {
		return false;
	}
	line->at = at;
	*out = value;
	return true;
}

static bool take_permissions(struct cursor *line, struct mw_mapping *mapping)
{
	const char *p = line->at;

	if (line->end - p < 5 || p[4] != ' ' || (p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') ||
	    (p[2] != 'x' && p[2] != '-') || (p[3] != 's' && p[3] != 'p'))
		return false;
	mapping->read = p[0] == 'r';
	mapping->write = p[1] == 'w';
	mapping->exec = p[2] == 'x';
	mapping->shared = p[3] == 's';
	line->at = p + 5;
	return true;
}

/* The kernel writes a newline in a name as \012, and leaves all else alone (a backslash too). */
static char *unescape(const char *at, const char *end)
{
	char *path = malloc((size_t)(end - at) + 1);
	char *out = path;

	if (!path)
		return NULL;
	while (at < end) {
		if (end - at >= 4 && memcmp(at, "\\012", 4) == 0) {
			*out++ = '\n';
			at += 4;
		} else {
			*out++ = *at++;
		}
	}
	*out = '\0';
	return path;
}

static void cut_deleted(struct mw_mapping *mapping)
{
	size_t length = strlen(mapping->path);
	const size_t suffix = sizeof(DELETED) - 1;

	if (mapping->inode && length > suffix && strcmp(mapping->path + length - suffix, DELETED) == 0) {
		mapping->path[length - suffix] = '\0';
		mapping->deleted = true;
	}
}

/* One line without its newline. */
static struct mw_error *parse_line(const char *at, const char *end, struct mw_mapping *out)
{
	struct cursor line = {at, end};
	struct mw_mapping mapping = {0};
	uint64_t major, minor;

	if (memchr(at, '\0', (size_t)(end - at)) || !take_number(&line, 16, UINT64_MAX, '-', &mapping.start) ||
	    !take_number(&line, 16, UINT64_MAX, ' ', &mapping.end) || mapping.end <= mapping.start ||
	    !take_permissions(&line, &mapping) || !take_number(&line, 16, UINT64_MAX, ' ', &mapping.offset) ||
	    !take_number(&line, 16, UINT32_MAX, ':', &major) || !take_number(&line, 16, UINT32_MAX, ' ', &minor) ||
	    !take_number(&line, 10, UINT64_MAX, ' ', &mapping.inode))
		return mw_error_create(MW_ERROR_DATA, 0, "a line of the memory map is invalid: \"%.*s\"",
				       (int)(end - at > 200 ? 200 : end - at), at);
	mapping.major = (uint32_t)major;
	mapping.minor = (uint32_t)minor;
	/* The name is padded to a column; a name proper begins with '/' or '[', never with a space. */
	while (line.at < line.end && *line.at == ' ')
		line.at++;
	mapping.path = unescape(line.at, line.end);
	if (!mapping.path)
		return mw_error_nomem();
	cut_deleted(&mapping);
	*out = mapping;
	return NULL;
}

static void free_path(struct mw_mapping *mapping)
{
	free(mapping->path);
}

/*
 * A list of a process that runs is not of one moment: a mapping that grows while it is read comes once with the old
 * bounds and once with the new. What overlaps what came before is cut there; false: nothing of it is left.
 */
static bool cut(const struct mw_maps *maps, struct mw_mapping *mapping)
{
	mw_addr before = maps->count ? maps->items[maps->count - 1].end : 0;

	if (mapping->end <= before)
		return false;
	if (mapping->start < before) {
		mapping->offset += mapping->inode ? before - mapping->start : 0;
		mapping->start = before;
	}
	return true;
}

struct mw_error *mw_maps_parse(const char *text, size_t size, bool torn, struct mw_maps *out)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	const char *end = size ? text + size : text;
	size_t capacity = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		MW_CLEANUP(free_path) struct mw_mapping mapping = {0};

		MW_TRY(parse_line(text, stop, &mapping));
		text = newline ? newline + 1 : end;
		if (torn && !cut(&maps, &mapping))
			continue;
		if (maps.count && mapping.start < maps.items[maps.count - 1].end)
			return mw_error_create(MW_ERROR_DATA, 0, "the memory map is out of order at %llx",
					       (unsigned long long)mapping.start);
		if (!MW_VECTOR_ROOM(maps.items, maps.count, capacity))
			return mw_error_nomem();
		maps.items[maps.count++] = mapping;
		mapping.path = NULL;
	}
	*out = maps;
	maps = (struct mw_maps){0};
	return NULL;
}

/* A file may really be called "x (deleted)": then it is there, under that name and with that inode. */
static struct mw_error *restore_true_names(pid_t tid, struct mw_maps *maps)
{
	MW_FREE char *prefix = mw_root_prefix(tid);
	const struct mw_mapping *last = NULL;
	bool last_true = false;

	if (!prefix)
		return mw_error_nomem();
	for (size_t i = 0; i < maps->count; i++) {
		struct mw_mapping *mapping = &maps->items[i];
		MW_FREE char *full = NULL;
		struct stat file;

		if (!mapping->deleted)
			continue;
		if (asprintf(&full, "%s%s", mapping->path, DELETED) < 0) {
			full = NULL;
			return mw_error_nomem();
		}
		/* Neighbours are mostly of one file: ask once. */
		if (!last || last->inode != mapping->inode || strcmp(last->path, last_true ? full : mapping->path) != 0)
			last_true =
				mw_root_stat(tid, mw_root_strip(full, prefix), &file) && file.st_ino == mapping->inode;
		last = mapping;
		if (last_true) {
			free(mapping->path);
			mapping->path = MW_TAKE(full);
			mapping->deleted = false;
		}
	}
	return NULL;
}

/* Kernels differ on a process without memory (a zombie, a kernel thread): an empty file, or ESRCH. */
static bool is_there_without_memory(pid_t tid, const struct mw_error *err)
{
	return mw_error_errno(err) == ESRCH && access(mw_path("/proc/%d/stat", (int)tid).text, F_OK) == 0;
}

struct mw_error *mw_maps_read(pid_t tid, struct mw_maps *out)
{
	struct mw_maps maps = {0};
	MW_FREE char *text = NULL;
	struct mw_error *err;
	size_t size = 0;

	err = mw_proc_file_read(&text, &size, "/proc/%d/maps", (int)tid);
	if (err && is_there_without_memory(tid, err)) {
		mw_error_destroy(err);
		*out = maps;
		return NULL;
	}
	if (!err)
		err = mw_maps_parse(text, size, true, &maps);
	if (!err)
		err = restore_true_names(tid, &maps);
	if (err) {
		mw_maps_deinit(&maps);
		return mw_error_prefix(err, "process %d", (int)tid);
	}
	*out = maps;
	return NULL;
}

void mw_maps_deinit(struct mw_maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->count; i++)
		free(maps->items[i].path);
	free(maps->items);
	maps->items = NULL;
	maps->count = 0;
}

const struct mw_mapping *mw_maps_find(const struct mw_maps *maps, mw_addr addr)
{
	size_t next = mw_vector_up_to(maps->items, maps->count, sizeof(*maps->items),
				      offsetof(struct mw_mapping, start), addr);

	return next && addr < maps->items[next - 1].end ? &maps->items[next - 1] : NULL;
}
