// SPDX-License-Identifier: MIT
/* package_owner.c: see package_owner.h. */
#include "cli/package_owner.h"

#include "cli/package_debug.h"
#include "cli/package_lines.h"
#include "proc/root.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DPKG_INFO  "/var/lib/dpkg/info"
#define LISTS_MAX  100000                /* packages */
#define LIST_MAX   (UINT64_C(32) << 20)  /* bytes of one package's list of files … */
#define ALL_MAX    (UINT64_C(1) << 30)   /* … and of all: what is in others stays unknown */
#define APK_DB_MAX (UINT64_C(256) << 20) /* bytes */

/* A name under which a package may have a file, in order of `path`. */
struct name {
	char *path;
	struct mw_lacking *file;
};

struct search {
	struct name *names;
	size_t count;
};

static int compare(const void *a, const void *b)
{
	const struct name *one = a, *other = b;

	return strcmp(one->path, other->path);
}

static void add_name(struct search *search, struct mw_lacking *file, const char *prefix, const char *path)
{
	char *copy;

	if (asprintf(&copy, "%s%s", prefix, path) >= 0)
		search->names[search->count++] = (struct name){copy, file};
}

static bool begins(const char *path, const char *with)
{
	return strncmp(path, with, strlen(with)) == 0;
}

/* Where /lib is a link to /usr/lib, packages may still say /lib. */
static bool search_init(struct search *search, struct mw_lacking *files, size_t count)
{
	search->count = 0;
	search->names = calloc(2 * count + 1, sizeof(*search->names));
	if (!search->names)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *path = files[i].path;

		add_name(search, &files[i], "", path);
		if (begins(path, "/usr/lib") || begins(path, "/usr/bin/") || begins(path, "/usr/sbin/"))
			add_name(search, &files[i], "", path + strlen("/usr"));
		else if (begins(path, "/lib") || begins(path, "/bin/") || begins(path, "/sbin/"))
			add_name(search, &files[i], "/usr", path);
	}
	qsort(search->names, search->count, sizeof(*search->names), compare);
	return true;
}

static void search_deinit(struct search *search)
{
	for (size_t i = 0; i < search->count; i++)
		free(search->names[i].path);
	free(search->names);
}

static void take(const struct search *search, char *path, const char *package, const char *origin)
{
	const struct name key = {path, NULL};
	const struct name *found = bsearch(&key, search->names, search->count, sizeof(key), compare);

	/* One file may be there twice, mapped at two places. */
	while (found && found > search->names && compare(found - 1, &key) == 0)
		found--;
	for (; found && found < search->names + search->count && compare(found, &key) == 0; found++) {
		snprintf(found->file->package, sizeof(found->file->package), "%s", package);
		snprintf(found->file->origin, sizeof(found->file->origin), "%s", origin);
	}
}

/* --- dpkg ---------------------------------------------------------------------------------------------- */

static void read_list(int root, const char *name, const char *package, const struct search *search, uint64_t *budget)
{
	char path[sizeof(DPKG_INFO) + 300];
	struct mw_lines *lines;

	snprintf(path, sizeof(path), DPKG_INFO "/%s", name);
	lines = mw_lines_open(root, path, *budget < LIST_MAX ? *budget : LIST_MAX);
	if (!lines)
		return;
	for (char *line; (line = mw_lines_next(lines));)
		take(search, line, package, "");
	*budget = mw_lines_spend(lines, *budget);
	mw_lines_close(lines);
}

/* "libc6" of "libc6:amd64.list". */
static bool package_of(const char *name, char out[MW_PACKAGE_NAME_MAX])
{
	size_t length = strlen(name), kept = strcspn(name, ":");

	if (length < 6 || strcmp(name + length - 5, ".list") != 0)
		return false;
	if (kept == length)
		kept -= 5;
	if (kept >= MW_PACKAGE_NAME_MAX)
		return false;
	memcpy(out, name, kept);
	out[kept] = '\0';
	return mw_package_is_name(out);
}

static void search_dpkg(int root, const struct search *search)
{
	int fd = mw_root_list_at(root, DPKG_INFO);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	char package[MW_PACKAGE_NAME_MAX];
	uint64_t budget = ALL_MAX;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (size_t i = 0; i < LISTS_MAX && budget && (entry = readdir(directory));)
		if (package_of(entry->d_name, package)) {
			read_list(root, entry->d_name, package, search, &budget);
			i++;
		}
	closedir(directory);
}

/* --- apk ----------------------------------------------------------------------------------------------- */

static void copy_name(char out[MW_PACKAGE_NAME_MAX], const char *name)
{
	out[0] = '\0';
	if (strlen(name) < MW_PACKAGE_NAME_MAX && mw_package_is_name(name))
		snprintf(out, MW_PACKAGE_NAME_MAX, "%s", name);
}

/* Lines of one letter and a value: P a package, o what it is built from, F a directory, R a file in it. */
static void search_apk(int root, const struct search *search)
{
	struct mw_lines *lines = mw_lines_open(root, "/lib/apk/db/installed", APK_DB_MAX);
	char package[MW_PACKAGE_NAME_MAX] = "", origin[MW_PACKAGE_NAME_MAX] = "";
	char directory[4096] = "", path[8192];

	if (!lines)
		lines = mw_lines_open(root, "/usr/lib/apk/db/installed", APK_DB_MAX);
	for (const char *line; lines && (line = mw_lines_next(lines));) {
		if (!*line)
			package[0] = origin[0] = directory[0] = '\0';
		else if (begins(line, "P:"))
			copy_name(package, line + 2);
		else if (begins(line, "o:"))
			copy_name(origin, line + 2);
		else if (begins(line, "F:"))
			snprintf(directory, sizeof(directory), "%s", line + 2);
		else if (begins(line, "R:") && *package) {
			snprintf(path, sizeof(path), "/%s%s%.4000s", directory, *directory ? "/" : "", line + 2);
			take(search, path, package, origin);
		}
	}
	mw_lines_close(lines);
}

void mw_package_find(int root, enum mw_packaging packaging, struct mw_lacking *files, size_t count)
{
	struct search search;

	for (size_t i = 0; i < count; i++) {
		files[i].package[0] = files[i].origin[0] = files[i].debug[0] = '\0';
		files[i].known = MW_PACKAGE_UNSURE;
	}
	if (!count || !search_init(&search, files, count))
		return;
	if (packaging == MW_PACKAGING_DEBIAN || packaging == MW_PACKAGING_UBUNTU)
		search_dpkg(root, &search);
	else if (packaging == MW_PACKAGING_ALPINE)
		search_apk(root, &search);
	search_deinit(&search);
	mw_package_name_debug(root, packaging, files, count);
}
