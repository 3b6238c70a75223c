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
#include <string.h>
#include <unistd.h>

#define APT_LISTS     "/var/lib/apt/lists"
#define APT_LISTS_MAX 4096                  /* files */
#define APT_LIST_MAX  (UINT64_C(256) << 20) /* bytes of one */

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

/* A package of the lists is the one where its build-ids say so, or where it has the name that was expected. */
static void see_package(const char *package, struct mw_lacking *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (files[i].known != MW_PACKAGE_LISTED && *files[i].debug && strcmp(files[i].debug, package) == 0)
			files[i].known = MW_PACKAGE_LISTED;
}

static void see_build_ids(const char *package, const char *ids, struct mw_lacking *files, size_t count)
{
	for (ids += strspn(ids, " "); *ids; ids += strspn(ids, " ")) {
		size_t length = strcspn(ids, " ");

		for (size_t i = 0; i < count; i++)
			if (*files[i].package && strlen(files[i].build_id) == length &&
			    strncmp(files[i].build_id, ids, length) == 0) {
				snprintf(files[i].debug, sizeof(files[i].debug), "%s", package);
				files[i].known = MW_PACKAGE_LISTED;
			}
		ids += length;
	}
}

static void read_packages(struct mw_lines *lines, struct mw_lacking *files, size_t count)
{
	char package[MW_PACKAGE_NAME_MAX] = "";

	for (const char *line; (line = mw_lines_next(lines));) {
		if (begins(line, "Package: ")) {
			snprintf(package, sizeof(package), "%s", line + strlen("Package: "));
			if (!mw_package_is_name(package))
				package[0] = '\0';
			see_package(package, files, count);
		} else if (begins(line, "Build-Ids: ") && *package) {
			see_build_ids(package, line + strlen("Build-Ids: "), files, count);
		}
	}
}

/* Of packages, packed or not: X_Packages, X_Packages.lz4. */
static bool is_list(const char *name)
{
	const char *kind = strstr(name, "_Packages");

	return kind && (!kind[strlen("_Packages")] || mw_unpack_is_packed(kind + strlen("_Packages")));
}

/* Where one can't be read, what is not in the others may be in that. */
static void ask_apt(int root, struct mw_lacking *files, size_t count)
{
	int fd = mw_root_list_at(root, APT_LISTS);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	bool any = false, all = true;
	const struct dirent *entry;
	char path[sizeof(APT_LISTS) + 300];

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (size_t i = 0; i < APT_LISTS_MAX && (entry = readdir(directory)); i++) {
		struct mw_lines *lines = NULL;

		if (!is_list(entry->d_name))
			continue;
		snprintf(path, sizeof(path), APT_LISTS "/%s", entry->d_name);
		lines = mw_lines_open(root, path, APT_LIST_MAX);
		if (lines)
			read_packages(lines, files, count);
		any = any || lines;
		all = all && lines && mw_lines_are_whole(lines);
		mw_lines_close(lines);
	}
	closedir(directory);
	for (size_t i = 0; any && all && i < count; i++)
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
