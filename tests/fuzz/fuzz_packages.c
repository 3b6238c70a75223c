// SPDX-License-Identifier: MIT
/* fuzz_packages: libFuzzer's bytes as a file of a root directory that packages are found by, and as a file's name:
 * names of packages are such, and what is printed of it all is printable. The first byte says which file. */
#include "fuzz.h"

#include "cli/advice.h"
#include "cli/package_debug.h"
#include "cli/paragraph.h"
#include "output/utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const paths[] = {
	"etc/os-release",
	"var/lib/dpkg/info/libc6:amd64.list",
	"var/lib/apt/lists/main_Packages",
	"var/lib/apt/lists/gzip_Packages.gz",
	"var/lib/apt/lists/lz4_Packages.lz4",
	"var/lib/apt/lists/zstd_Packages.zst",
	"lib/apk/db/installed",
};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

static char directory[] = "/dev/shm/mw-fuzz-XXXXXX";

static void put(int root, const char *path, const char *bytes, size_t size)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	insist(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static void clean_up(void)
{
	char name[100];

	for (size_t i = 0; i < PATHS; i++) {
		snprintf(name, sizeof(name), "%s/%s", directory, paths[i]);
		(void)remove(name);
		for (char *slash; (slash = strrchr(name, '/')) > name + sizeof(directory);) {
			*slash = '\0';
			(void)rmdir(name);
		}
	}
	(void)rmdir(directory);
}

static int make_root(void)
{
	static const char *const parts[] = {
		"etc", "var",     "var/lib",   "var/lib/dpkg", "var/lib/dpkg/info", "var/lib/apt", "var/lib/apt/lists",
		"lib", "lib/apk", "lib/apk/db"};
	int root;

	insist(mkdtemp(directory) != NULL);
	root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	insist(root >= 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		insist(mkdirat(root, parts[i], 0700) == 0);
	atexit(clean_up);
	return root;
}

static void check_name(const char *name)
{
	insist(!*name || mw_package_is_name(name));
}

static void check_text(const char *text)
{
	uint32_t character;

	for (size_t taken; (taken = mw_utf8_decode(text, &character)) != 0; text += taken)
		insist(character == '\n' || mw_utf8_is_printable(character));
}

static void look(int root, const struct mw_distribution *system, const char *path)
{
	struct mw_lacking files[] = {
		{.path = path, .build_id = "0123456789abcdef"},
		{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6", .build_id = "abcd", .runtime = true},
	};
	const struct mw_advice advice = {system, files, 2, "", 80};
	char *text = NULL, *word = mw_shell_word(path);
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	insist(out && word);
	mw_package_find(root, system->packaging, files, 2);
	for (size_t i = 0; i < 2; i++) {
		check_name(files[i].package);
		check_name(files[i].origin);
		check_name(files[i].debug);
	}
	mw_advice_command(out, &advice, false);
	mw_advice_command(out, &advice, true);
	mw_advice_needs(out, &advice);
	mw_advice_others(out, &advice);
	fclose(out);
	check_text(text);
	check_text(word);
	free(text);
	free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char list[] = "/lib/x86_64-linux-gnu/libc.so.6\n/usr/bin/a\n";
	static int root = -1;
	struct mw_distribution system;
	char *text;

	if (!size)
		return 0;
	if (root < 0)
		root = make_root();
	text = malloc(size);
	insist(text != NULL);
	memcpy(text, bytes + 1, size - 1);
	text[size - 1] = '\0';
	for (size_t i = 0; i < PATHS; i++)
		put(root, paths[i], i == bytes[0] % PATHS ? text : list,
		    i == bytes[0] % PATHS ? size - 1
		    : i == 1              ? sizeof(list) - 1
					  : 0);
	mw_distribution_read(root, &system);
	insist(!system.codename[strspn(system.codename, "abcdefghijklmnopqrstuvwxyz0123456789.-")]);
	look(root, &system, "/usr/bin/a");
	for (system.packaging = MW_PACKAGING_UNKNOWN; system.packaging <= MW_PACKAGING_ALPINE; system.packaging++)
		look(root, &system, text);
	free(text);
	return 0;
}
