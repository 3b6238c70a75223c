// SPDX-License-Identifier: MIT
/* memory_limit.c: limits of cgroups, versions 1 and 2, and the machine's memory (memory_limit.h). */
#include "proc/memory_limit.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the two versions have their directories and what their files are called. */
struct version {
	const char *directory;
	const char *limit, *usage;
	const char *cache; /* a line of memory.stat */
};

static const struct version v1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
static const struct version v2[] = {
	{"", "memory.max", "memory.current", "inactive_file"},
	{"/unified", "memory.max", "memory.current", "inactive_file"}, /* beside v1 */
};

/* False for no number ("max"), and where something stands behind it but what `end` has. */
static bool parse_number(const char *text, const char *end, uint64_t *out)
{
	unsigned long long value;
	char *behind;

	errno = 0;
	value = strtoull(text, &behind, 10);
	if (text[0] < '0' || text[0] > '9' || errno || (*behind && !strchr(end, *behind)))
		return false;
	*out = value;
	return true;
}

static bool read_number(const char *path, const char *file, uint64_t *out)
{
	MW_FREE char *text = NULL;

	return mw_error_none(mw_proc_file_read(&text, NULL, "%s/%s", path, file)) && parse_number(text, "\n", out);
}

/* The number behind a name at the start of a line, and what stands between the two. */
static bool find_number(const char *text, const char *name, const char *between, uint64_t *out)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, name, length) == 0 && line[length] && strchr(between, line[length]))
			return parse_number(line + length + strspn(line + length, between), " \n", out);
	return false;
}

static uint64_t read_cache(const char *path, const char *name)
{
	MW_FREE char *text = NULL;
	uint64_t value = 0;

	if (!mw_error_none(mw_proc_file_read(&text, NULL, "%s/memory.stat", path)) ||
	    !find_number(text, name, " ", &value))
		return 0;
	return value;
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

/* What the limits of cgroups are looked for by, and the tightest until now. */
struct search {
	const char *root;
	bool with_cache;
	struct mw_memory_limit *tightest;
};

static void take(const struct search *search, const struct mw_memory_limit *limit)
{
	if (mw_memory_limit_room(limit) < mw_memory_limit_room(search->tightest))
		*search->tightest = *limit;
}

static void look_at(const struct search *search, const struct version *version, const char *path)
{
	struct mw_memory_limit limit = {.of = MW_LIMIT_CGROUP};
	uint64_t cache;

	if (!read_number(path, version->limit, &limit.bytes) || !read_number(path, version->usage, &limit.used))
		return;
	/* v1 has no word for no limit, but a number near the greatest. */
	if (limit.bytes >= (uint64_t)INT64_MAX - (1u << 20))
		return;
	cache = search->with_cache ? 0 : read_cache(path, version->cache);
	limit.used = limit.used > cache ? limit.used - cache : 0;
	take(search, &limit);
}

/* Go up from a group to the root of those that can be seen. `group` begins with a slash. */
static void look_along(const struct search *search, const struct version *version, const char *group, size_t length)
{
	char path[2 * PATH_MAX];
	size_t top, used;
	int printed = snprintf(path, sizeof(path), "%s%s", search->root, version->directory);

	/* A name that leads out of what can be seen from here says nothing. */
	if (printed < 0 || (size_t)printed >= PATH_MAX || length >= PATH_MAX || memmem(group, length, "/..", 3))
		return;
	top = (size_t)printed;
	memcpy(path + top, group, length);
	used = top + length;
	for (;;) {
		while (used > top && path[used - 1] == '/')
			used--;
		path[used] = '\0';
		look_at(search, version, path);
		if (used == top)
			return;
		while (used > top && path[used - 1] != '/')
			used--;
	}
}

static void look_by_line(const struct search *search, const char *line, size_t length)
{
	const char *end = line + length;
	const char *controllers = memchr(line, ':', length);
	const char *group = controllers ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1)) : NULL;

	if (!group || group + 1 == end || group[1] != '/')
		return;
	controllers++;
	if (has_controller(controllers, (size_t)(group - controllers), "memory"))
		look_along(search, &v1, group + 1, (size_t)(end - group - 1));
	for (size_t i = 0; controllers == group && i < sizeof(v2) / sizeof(v2[0]); i++)
		look_along(search, &v2[i], group + 1, (size_t)(end - group - 1));
}

void mw_cgroup_limit_in(const char *root, const char *membership, bool with_cache, struct mw_memory_limit *out)
{
	const struct search search = {root, with_cache, out};

	*out = (struct mw_memory_limit){.of = MW_LIMIT_NONE};
	while (*membership) {
		size_t length = strcspn(membership, "\n");

		look_by_line(&search, membership, length);
		membership += length + (membership[length] != '\0');
	}
}

static void read_cgroups(pid_t pid, bool with_cache, struct mw_memory_limit *out)
{
	MW_FREE char *text = NULL;

	*out = (struct mw_memory_limit){.of = MW_LIMIT_NONE};
	if (mw_error_none(mw_proc_file_read(&text, NULL, "/proc/%d/cgroup", (int)pid)))
		mw_cgroup_limit_in("/sys/fs/cgroup", text, with_cache, out);
}

uint64_t mw_cgroup_room(pid_t pid)
{
	struct mw_memory_limit limit;

	read_cgroups(pid, true, &limit);
	return mw_memory_limit_room(&limit);
}

void mw_machine_limit_in(const char *meminfo, struct mw_memory_limit *out)
{
	uint64_t total, available;

	*out = (struct mw_memory_limit){.of = MW_LIMIT_NONE};
	if (!find_number(meminfo, "MemTotal", ": ", &total) ||
	    !find_number(meminfo, "MemAvailable", ": ", &available) || available > total || total > UINT64_MAX >> 10)
		return;
	*out = (struct mw_memory_limit){total << 10, (total - available) << 10, MW_LIMIT_MACHINE};
}

void mw_memory_limit_read(pid_t pid, struct mw_memory_limit *out)
{
	MW_FREE char *text = NULL;
	struct mw_memory_limit other;

	read_cgroups(pid, false, out);
	/* In a cgroup namespace of its own it sees its group, which memwatch may not see, as the root. */
	if (out->of == MW_LIMIT_NONE)
		mw_cgroup_limit_in(mw_path("/proc/%d/root/sys/fs/cgroup", (int)pid).text, "0::/\n1:memory:/\n", false,
				   out);
	if (!mw_error_none(mw_proc_file_read(&text, NULL, "/proc/meminfo")))
		return;
	mw_machine_limit_in(text, &other);
	if (mw_memory_limit_room(&other) < mw_memory_limit_room(out))
		*out = other;
}
