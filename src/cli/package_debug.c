// SPDX-License-Identifier: MIT
/* package_debug.c: see package_debug.h. */
#include "cli/package_debug.h"

#include "cli/package_lines.h"
#include "cli/unpack.h"
#include "proc/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APT_LISTS     "/var/lib/apt/lists"
#define APT_LISTS_MAX 4096                  /* files */
#define APT_LIST_MAX  (UINT64_C(256) << 20) /* bytes of one */
#define APT_ALL_MAX   (UINT64_C(1) << 30)   /* … and of all */
#define BUILD_ID_MIN  16                    /* letters */

bool mw_package_is_name(const char *name)
{
	return *name && *name != '-' && *name != '.' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+_-")];
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Debian packages that have one for all that is built with them, made by hand, in the archive itself. */
static bool has_old_style(const char *package, char out[MW_PACKAGE_NAME_MAX])
{
	const char *version;
	size_t length;

	if (strcmp(package, "libc6") == 0) {
		snprintf(out, MW_PACKAGE_NAME_MAX, "libc6-dbg");
		return true;
	}
	version = begins(package, "libpython3.") ? package + strlen("lib") : package;
	if (!begins(version, "python3."))
		return false;
	length = strlen("python3.") + strspn(version + strlen("python3."), "0123456789");
	snprintf(out, MW_PACKAGE_NAME_MAX, "%.*s-dbg", (int)(length < 64 ? length : 64), version);
	return length > strlen("python3.");
}

static void name_usual(enum mw_packaging packaging, struct mw_lacking *file)
{
	const char *stem = packaging == MW_PACKAGING_ALPINE && *file->origin ? file->origin : file->package;
	const char *end = packaging == MW_PACKAGING_ALPINE ? "-dbg" : "-dbgsym";

	if (!*stem || (packaging != MW_PACKAGING_ALPINE && has_old_style(stem, file->debug)))
		return;
	snprintf(file->debug, sizeof(file->debug), "%.100s%s", stem, end);
}

/* --- what apt knows ------------------------------------------------------------------------------------ */

/* What is looked for in the lists. */
struct wanted {
	struct mw_lacking *files;
	size_t count;
	size_t *id_lengths; /* of build-ids; 0: that one is not looked for */
};

static bool wanted_init(struct wanted *wanted, struct mw_lacking *files, size_t count)
{
	*wanted = (struct wanted){files, count, calloc(count, sizeof(*wanted->id_lengths))};
	for (size_t i = 0; wanted->id_lengths && i < count; i++)
		if (*files[i].package)
			wanted->id_lengths[i] = strlen(files[i].build_id);
	return wanted->id_lengths != NULL;
}

/* A package of the lists is the one where its build-ids say so, or where it has the name that was expected. */
static void see_package(const char *package, const struct wanted *wanted)
{
	struct mw_lacking *files = wanted->files;

	for (size_t i = 0; i < wanted->count; i++)
		if (files[i].known != MW_PACKAGE_LISTED && *files[i].debug && strcmp(files[i].debug, package) == 0)
			files[i].known = MW_PACKAGE_LISTED;
}

/* Lists may be made to keep us: words that are no build-ids are compared with none. */
static void see_build_ids(const char *package, const char *ids, const struct wanted *wanted)
{
	for (ids += strspn(ids, " "); *ids; ids += strspn(ids, " ")) {
		size_t length = strcspn(ids, " ");

		for (size_t i = 0; length >= BUILD_ID_MIN && i < wanted->count; i++) {
			struct mw_lacking *file = &wanted->files[i];

			if (wanted->id_lengths[i] != length || memcmp(file->build_id, ids, length) != 0)
				continue;
			snprintf(file->debug, sizeof(file->debug), "%s", package);
			file->known = MW_PACKAGE_LISTED;
		}
		ids += length;
	}
}

static void read_packages(struct mw_lines *lines, const struct wanted *wanted)
{
	char package[MW_PACKAGE_NAME_MAX] = "";

	for (const char *line; (line = mw_lines_next(lines));) {
		if (begins(line, "Package: ")) {
			snprintf(package, sizeof(package), "%s", line + strlen("Package: "));
			if (!mw_package_is_name(package))
				package[0] = '\0';
			see_package(package, wanted);
		} else if (begins(line, "Build-Ids: ") && *package) {
			see_build_ids(package, line + strlen("Build-Ids: "), wanted);
		}
	}
}

/* Of packages, packed or not: X_Packages, X_Packages.lz4. */
static bool is_list(const char *name)
{
	const char *kind = strstr(name, "_Packages");

	return kind && (!kind[strlen("_Packages")] || mw_unpack_is_packed(kind + strlen("_Packages")));
}

/* False: there is more in it than was read. */
static bool read_apt_list(int root, const char *name, const struct wanted *wanted, uint64_t *budget)
{
	char path[sizeof(APT_LISTS) + 300];
	struct mw_lines *lines;
	bool whole;

	snprintf(path, sizeof(path), APT_LISTS "/%s", name);
	lines = mw_lines_open(root, path, *budget < APT_LIST_MAX ? *budget : APT_LIST_MAX);
	if (!lines)
		return false;
	read_packages(lines, wanted);
	whole = mw_lines_are_whole(lines);
	*budget = mw_lines_spend(lines, *budget);
	mw_lines_close(lines);
	return whole;
}

/* False where not all were read as a whole, or there is none: what is not in the others may be in those. */
static bool read_apt_lists(int root, DIR *directory, const struct wanted *wanted)
{
	bool any = false, all = true;
	uint64_t budget = APT_ALL_MAX;
	const struct dirent *entry;
	size_t i;

	for (i = 0; i < APT_LISTS_MAX && budget && (entry = readdir(directory)); i++) {
		if (!is_list(entry->d_name))
			continue;
		any = true;
		all = read_apt_list(root, entry->d_name, wanted, &budget) && all;
	}
	return any && all && budget && i < APT_LISTS_MAX;
}

static void ask_apt(int root, struct mw_lacking *files, size_t count)
{
	int fd = mw_root_list_at(root, APT_LISTS);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct wanted wanted = {.files = files};
	bool all;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	all = wanted_init(&wanted, files, count) && read_apt_lists(root, directory, &wanted);
	free(wanted.id_lengths);
	closedir(directory);
	for (size_t i = 0; all && i < count; i++)
		if (*files[i].debug && files[i].known == MW_PACKAGE_UNSURE)
			files[i].known = MW_PACKAGE_ABSENT;
}

/* … and has not helped: it is of another version. */
static bool is_installed(int root, const char *package)
{
	static const char *const kinds[] = {"", ":amd64"};
	char path[MW_PACKAGE_NAME_MAX + 60];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "/var/lib/dpkg/info/%s%s.list", package, kinds[i]);
		fd = mw_root_open_at(root, path, false);
		if (fd >= 0) {
			close(fd);
			return true;
		}
	}
	return false;
}

void mw_package_name_debug(int root, enum mw_packaging packaging, struct mw_lacking *files, size_t count)
{
	bool any = false, apt = packaging == MW_PACKAGING_DEBIAN || packaging == MW_PACKAGING_UBUNTU;

	for (size_t i = 0; i < count; i++) {
		name_usual(packaging, &files[i]);
		any = any || *files[i].debug;
	}
	if (!any || !apt)
		return;
	ask_apt(root, files, count);
	for (size_t i = 0; i < count; i++)
		if (*files[i].debug && is_installed(root, files[i].debug))
			files[i].known = MW_PACKAGE_INSTALLED;
}
