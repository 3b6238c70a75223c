// SPDX-License-Identifier: MIT
/* find_file.c: see find_file.h. */
#include "symbol/find_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_ID_MAX 64 /* bytes */

struct sought {
	const uint8_t *build_id;
	size_t size;
};

/* Open what is there if it is the one; *out stays NULL where it is not. */
static struct mw_error *try_path(const struct sought *sought, const char *path, struct mw_elf **out)
{
	const uint8_t *build_id;
	struct mw_elf *elf = NULL;
	struct mw_error *err;
	struct stat st;
	size_t size;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return NULL;
	}
	err = mw_elf_open(fd, path, &elf);
	close(fd);
	if (err) {
		/* No ELF file, so not the one. */
		if (mw_error_kind(err) == MW_ERROR_MEMORY)
			return err;
		mw_error_destroy(err);
		return NULL;
	}
	build_id = mw_elf_build_id(elf, &size);
	if (build_id && size == sought->size && memcmp(build_id, sought->build_id, size) == 0)
		*out = elf;
	else
		mw_elf_unref(elf);
	return NULL;
}

/* The path of a directory and up to three more parts; false where it is too long. */
static bool join(char out[PATH_MAX], const char *directory, const char *middle, const char *name, const char *end)
{
	int length = snprintf(out, PATH_MAX, "%s%s%s%s", directory, middle, name, end);

	return length > 0 && length < PATH_MAX;
}

/* "xx/yyyy…" of a build-id. */
static void name_of(const struct sought *sought, char out[2 * BUILD_ID_MAX + 2])
{
	for (size_t i = 0, at = 0; i < sought->size; i++) {
		at += (size_t)snprintf(out + at, 3, "%02x", sought->build_id[i]);
		if (i == 0)
			out[at++] = '/';
	}
}

static struct mw_error *try_directory(const struct sought *sought, const char *directory, const char *path,
				      struct mw_elf **out)
{
	char build_id[2 * BUILD_ID_MAX + 2] = "", name[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const struct {
		const char *middle, *name, *end;
	} ways[] = {
		{*path == '/' ? "" : "/", path, ""},
		{"/", base, ""},
		{"/", base, ".debug"},
		{"/.build-id/", build_id, ""},
		{"/.build-id/", build_id, ".debug"},
	};

	name_of(sought, build_id);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !*out; i++)
		if (join(name, directory, ways[i].middle, ways[i].name, ways[i].end))
			MW_TRY(try_path(sought, name, out));
	return NULL;
}

struct mw_error *mw_find_file(const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *const *directories, size_t count, struct mw_elf **out)
{
	const struct sought sought = {.build_id = build_id, .size = build_id_size};
	struct mw_elf *found = NULL;

	if (path && build_id_size >= 2 && build_id_size <= BUILD_ID_MAX) {
		for (size_t i = 0; i < count && !found; i++)
			MW_TRY(try_directory(&sought, directories[i], path, &found));
		if (!found)
			MW_TRY(try_path(&sought, path, &found));
	}
	*out = found;
	return NULL;
}
