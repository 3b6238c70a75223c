// SPDX-License-Identifier: MIT
/* cgroup.c: how much memory the cgroups of a process leave it (inject.h). */
#include "proc/file.h"
#include "tracee/inject.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the two versions have their directories and what their files are called. */
struct version {
	const char *directory;
	const char *limit, *usage;
};

static const struct version v1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"};
static const struct version v2[] = {
	{"", "memory.max", "memory.current"}, {"/unified", "memory.max", "memory.current"}, /* beside v1 */
};

/* A number alone in a file: false for none ("max"). */
static bool read_number(const char *path, const char *file, uint64_t *out)
{
	unsigned long long value;
	char *text = NULL, *end;
	size_t size = 0;
	bool good;
	struct mw_error *err = mw_proc_file_read(&text, &size, "%s/%s", path, file);

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	errno = 0;
	value = strtoull(text, &end, 10);
	good = text[0] >= '0' && text[0] <= '9' && errno == 0 && (*end == '\n' || *end == '\0');
	free(text);
	if (good)
		*out = value;
	return good;
}

static bool has_controller(const char *list, size_t length, const char *controller)
{
	while (length > 0) {
		const char *comma = memchr(list, ',', length);
		size_t this = comma ? (size_t)(comma - list) : length;

		if (this == strlen(controller) && memcmp(list, controller, this) == 0)
			return true;
		if (!comma)
			break;
		list += this + 1;
		length -= this + 1;
	}
	return false;
}

/* Go up from a group to the root of those that can be seen. `group` begins with a slash. */
static uint64_t room_along(const char *root, const struct version *version, const char *group, size_t length)
{
	uint64_t room = UINT64_MAX;
	char path[2 * PATH_MAX];
	size_t top, used;
	int printed = snprintf(path, sizeof(path), "%s%s", root, version->directory);

	/* A name that leads out of what can be seen from here says nothing. */
	if (printed < 0 || (size_t)printed >= PATH_MAX || length >= PATH_MAX || memmem(group, length, "/..", 3))
		return room;
	top = (size_t)printed;
	memcpy(path + top, group, length);
	used = top + length;
	for (;;) {
		uint64_t limit, usage;

		while (used > top && path[used - 1] == '/')
			used--;
		path[used] = '\0';
		if (read_number(path, version->limit, &limit) && read_number(path, version->usage, &usage)) {
			uint64_t left = limit > usage ? limit - usage : 0;

			/* v1 has no word for no limit, but a number near the greatest. */
			if (limit < (uint64_t)INT64_MAX - (1u << 20) && left < room)
				room = left;
		}
		if (used == top)
			return room;
		while (used > top && path[used - 1] != '/')
			used--;
	}
}

static uint64_t room_of_line(const char *root, const char *line, size_t length)
{
	const char *end = line + length;
	const char *controllers = memchr(line, ':', length);
	const char *group = controllers ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1)) : NULL;
	uint64_t room = UINT64_MAX;

	if (!group || group + 1 == end || group[1] != '/')
		return room;
	controllers++;
	if (has_controller(controllers, (size_t)(group - controllers), "memory"))
		return room_along(root, &v1, group + 1, (size_t)(end - group - 1));
	if (controllers != group)
		return room;
	for (size_t i = 0; i < sizeof(v2) / sizeof(v2[0]); i++) {
		uint64_t here = room_along(root, &v2[i], group + 1, (size_t)(end - group - 1));

		if (here < room)
			room = here;
	}
	return room;
}

uint64_t mw_cgroup_room_in(const char *root, const char *membership)
{
	uint64_t room = UINT64_MAX;

	while (*membership) {
		size_t length = strcspn(membership, "\n");
		uint64_t here = room_of_line(root, membership, length);

		if (here < room)
			room = here;
		membership += length + (membership[length] != '\0');
	}
	return room;
}

uint64_t mw_cgroup_room(pid_t pid)
{
	char *text = NULL;
	size_t size = 0;
	uint64_t room;
	struct mw_error *err = mw_proc_file_read(&text, &size, "/proc/%d/cgroup", (int)pid);

	if (err) {
		mw_error_destroy(err);
		return UINT64_MAX;
	}
	room = mw_cgroup_room_in("/sys/fs/cgroup", text);
	free(text);
	return room;
}
