// SPDX-License-Identifier: MIT
/* distribution.c: the table of distributions, and which one a root directory holds (distribution.h). */
#include "symbol/distribution.h"

#include "base/cleanup.h"
#include "proc/root.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RELEASE_MAX 16384 /* bytes of os-release: no more are read */

#define DBGSYM_COMMAND "find-dbgsym-packages --install"
#define DBGSYM_NOTE    "find-dbgsym-packages is in package debian-goodies. apt needs the archive of debug packages: "
#define DNF_COMMAND    "dnf debuginfo-install $(rpm -qf"
#define DNF_NOTE       "Where dnf has no debuginfo-install: it is in package dnf-plugins-core."

/* A new distribution is a new row; its relatives are found by ID_LIKE. The last row is for all others. */
static const struct mw_distribution distributions[] = {
	{"debian", "https://debuginfod.debian.net", DBGSYM_COMMAND, "", MW_TAKES_PID, "sudo ",
	 DBGSYM_NOTE "deb http://deb.debian.org/debian-debug CODENAME-debug main"},
	{"ubuntu", "https://debuginfod.ubuntu.com", DBGSYM_COMMAND, "", MW_TAKES_PID, "sudo ",
	 DBGSYM_NOTE "deb http://ddebs.ubuntu.com CODENAME main universe (also CODENAME-updates; its key is in package "
		     "ubuntu-dbgsym-keyring)"},
	{"fedora", "https://debuginfod.fedoraproject.org", DNF_COMMAND, ")", MW_TAKES_PATHS, "sudo ", DNF_NOTE},
	{"rhel", "https://debuginfod.elfutils.org", DNF_COMMAND, ")", MW_TAKES_PATHS, "sudo ", DNF_NOTE},
	{"suse", "https://debuginfod.opensuse.org", "zypper --plus-content debug install -C", "", MW_TAKES_IDS, "sudo ",
	 NULL},
	{"alpine", "https://debuginfod.elfutils.org", "apk info -qW",
	 " | xargs -rn1 apk list -I |\n      sed -n 's/.*{\\(.*\\)}.*/\\1-dbg/p' | sort -u | xargs -rn1 apk add",
	 MW_TAKES_PATHS, "", "Run this as root. Not every package of Alpine has a -dbg package."},
	{"arch", "https://debuginfod.archlinux.org", NULL, NULL, MW_TAKES_PATHS, "",
	 "Arch's debug information comes from its debuginfod; the library for it is in package debuginfod."},
	{NULL, "https://debuginfod.elfutils.org", NULL, NULL, MW_TAKES_PATHS, "",
	 "No command is known for this distribution: install its debug packages, or use its debuginfod server."},
};

#define LAST (sizeof(distributions) / sizeof(distributions[0]) - 1)

static const struct mw_distribution *find_row(const char *id)
{
	size_t i = 0;

	while (i < LAST && strcmp(distributions[i].id, id) != 0)
		i++;
	return &distributions[i];
}

/* The value of an assignment as a shell would read it, cut to `size`. */
static void take_value(const char *text, char *out, size_t size)
{
	char quote = *text == '"' || *text == '\'' ? *text++ : '\0';
	size_t length = 0;

	for (; *text && *text != quote && length + 1 < size; text++) {
		if (*text == '\\' && quote != '\'' && text[1])
			text++;
		out[length++] = *text;
	}
	out[length] = '\0';
}

static void read_release(int root, char text[RELEASE_MAX])
{
	MW_CLOSE int fd = mw_root_open_at(root, "/etc/os-release", false);
	ssize_t got = 1;
	size_t size = 0;

	if (fd < 0)
		fd = mw_root_open_at(root, "/usr/lib/os-release", false);
	while (fd >= 0 && got > 0 && size < RELEASE_MAX - 1) {
		got = read(fd, text + size, RELEASE_MAX - 1 - size);
		size += got > 0 ? (size_t)got : 0;
	}
	text[size] = '\0';
}

const struct mw_distribution *mw_distribution_of(const char *id)
{
	return find_row(id ? id : "");
}

const struct mw_distribution *mw_distribution_find(int root, char name[MW_DISTRIBUTION_NAME_MAX])
{
	const struct mw_distribution *found;
	char text[RELEASE_MAX], id[64] = "", like[256] = "", *rest = NULL;

	name[0] = '\0';
	read_release(root, text);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "ID=", 3) == 0)
			take_value(line + 3, id, sizeof(id));
		else if (strncmp(line, "ID_LIKE=", 8) == 0)
			take_value(line + 8, like, sizeof(like));
		else if (strncmp(line, "PRETTY_NAME=", 12) == 0)
			take_value(line + 12, name, MW_DISTRIBUTION_NAME_MAX);
	}
	if (!*name)
		snprintf(name, MW_DISTRIBUTION_NAME_MAX, "%s", id);
	found = find_row(id);
	/* The nearest relative stands first. */
	for (char *word = strtok_r(like, " ", &rest); word && !found->id; word = strtok_r(NULL, " ", &rest))
		found = find_row(word);
	return found;
}

bool mw_distribution_has(const char *path)
{
	static const char *const places[] = {"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/"};

	if (strncmp(path, "/usr/local/", strlen("/usr/local/")) == 0)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}
