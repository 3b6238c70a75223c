// SPDX-License-Identifier: MIT
/* package_system.c: see package_system.h. */
#include "cli/package_system.h"

#include "cli/package_lines.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define OS_RELEASE_MAX 65536 /* bytes */

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

static void read_release(struct mw_lines *lines, struct mw_distribution *out)
{
	char ubuntu[sizeof(out->codename)] = "";
	const struct {
		const char *key;
		char *value;
		size_t size;
	} keys[] = {
		{"ID=", out->id, sizeof(out->id)},
		{"ID_LIKE=", out->like, sizeof(out->like)},
		{"PRETTY_NAME=", out->name, sizeof(out->name)},
		{"VERSION_CODENAME=", out->codename, sizeof(out->codename)},
		{"UBUNTU_CODENAME=", ubuntu, sizeof(ubuntu)}, /* of what it is derived from */
	};

	for (const char *line; (line = mw_lines_next(lines));)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (strncmp(line, keys[i].key, strlen(keys[i].key)) == 0)
				take_value(line + strlen(keys[i].key), keys[i].value, keys[i].size);
	if (*ubuntu)
		snprintf(out->codename, sizeof(out->codename), "%s", ubuntu);
	if (out->codename[strspn(out->codename, "abcdefghijklmnopqrstuvwxyz0123456789.-")])
		out->codename[0] = '\0';
}

static enum mw_packaging packaging_of(const char *word, size_t length)
{
	static const struct {
		const char *id;
		enum mw_packaging packaging;
	} known[] = {
		{"debian", MW_PACKAGING_DEBIAN},
		{"ubuntu", MW_PACKAGING_UBUNTU},
		{"fedora", MW_PACKAGING_FEDORA},
		{"rhel", MW_PACKAGING_FEDORA},
		{"centos", MW_PACKAGING_FEDORA},
		{"suse", MW_PACKAGING_SUSE},
		{"opensuse", MW_PACKAGING_SUSE},
		{"opensuse-leap", MW_PACKAGING_SUSE},
		{"opensuse-tumbleweed", MW_PACKAGING_SUSE},
		{"sles", MW_PACKAGING_SUSE},
		{"arch", MW_PACKAGING_ARCH},
		{"alpine", MW_PACKAGING_ALPINE},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].id) == length && strncmp(known[i].id, word, length) == 0)
			return known[i].packaging;
	return MW_PACKAGING_UNKNOWN;
}

void mw_distribution_read(int root, struct mw_distribution *out)
{
	struct mw_lines *lines = mw_lines_open(root, "/etc/os-release", OS_RELEASE_MAX);

	*out = (struct mw_distribution){.packaging = MW_PACKAGING_UNKNOWN};
	if (!lines)
		lines = mw_lines_open(root, "/usr/lib/os-release", OS_RELEASE_MAX);
	if (!lines)
		return;
	read_release(lines, out);
	mw_lines_close(lines);
	if (!*out->name)
		snprintf(out->name, sizeof(out->name), "%s", out->id);
	out->packaging = packaging_of(out->id, strlen(out->id));
	/* The nearest relative stands first. */
	for (const char *word = out->like; *word && !out->packaging; word += strspn(word, " ")) {
		size_t length = strcspn(word, " ");

		out->packaging = packaging_of(word, length);
		word += length;
	}
}

const char *mw_distribution_debuginfod(enum mw_packaging packaging)
{
	switch (packaging) {
	case MW_PACKAGING_DEBIAN:
		return "https://debuginfod.debian.net";
	case MW_PACKAGING_UBUNTU:
		return "https://debuginfod.ubuntu.com";
	case MW_PACKAGING_FEDORA:
		return "https://debuginfod.fedoraproject.org";
	case MW_PACKAGING_SUSE:
		return "https://debuginfod.opensuse.org";
	case MW_PACKAGING_ARCH:
		return "https://debuginfod.archlinux.org";
	default:
		return "https://debuginfod.elfutils.org";
	}
}
