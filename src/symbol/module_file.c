// SPDX-License-Identifier: MIT
/* module_file.c: the file behind an executable mapping, found and checked. */
#include "symbol/module_file.h"

#include "proc/peek.h"
#include "proc/root.h"
#include "symbol/elf_companion.h"
#include "symbol/elf_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_VDSO ((uint64_t)1 << 20)

static struct mw_error *say(char **why, char *text)
{
	if (!text)
		return mw_error_nomem();
	*why = text;
	return NULL;
}

/* An error becomes the reason why there is no image; lack of memory stays an error. */
static struct mw_error *say_error(char **why, struct mw_error *err)
{
	char *text;

	if (mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	text = strdup(mw_error_text(err));
	mw_error_destroy(err);
	return say(why, text);
}

/*
 * Is what was found under the name the file that is mapped? Device and inode are the best witness, as a
 * mapped file's inode is not given to another. On overlayfs and btrfs /proc and stat disagree on the
 * device, and a reinstalled file is the same under another inode: then memory tells.
 */
static bool is_mapped_file(pid_t tid, const struct mw_mapping *mapping, const struct stat *st, const struct mw_elf *elf)
{
	bool same_inode = st->st_ino == mapping->inode;
	uint64_t bias;

	if (same_inode && major(st->st_dev) == mapping->major && minor(st->st_dev) == mapping->minor)
		return true;
	if (!elf || !mw_elf_bias(elf, mapping, &bias))
		return false;
	switch (mw_elf_match(elf, tid, bias)) {
	case MW_ELF_SAME:
		return true;
	case MW_ELF_LIKE:
	case MW_ELF_UNKNOWN:
		return same_inode;
	case MW_ELF_DIFFERENT:
		break;
	}
	return false;
}

/* What the name led to. */
struct attempt {
	struct mw_elf *elf;   /* the mapped file's image */
	struct mw_error *err; /* the mapped file is no ELF file */
	int errnum;           /* the name could not be opened; 0: it leads to another file */
};

static struct attempt open_by_name(pid_t tid, const struct mw_mapping *mapping, const char *path)
{
	struct attempt attempt = {0};
	struct stat st;
	int fd = mw_root_open(tid, path);
	bool mapped;

	if (fd < 0 || fstat(fd, &st) < 0) {
		attempt.errnum = errno;
		if (fd >= 0)
			close(fd);
		return attempt;
	}
	attempt.err = mw_elf_open(fd, path, &attempt.elf);
	close(fd);
	mapped = is_mapped_file(tid, mapping, &st, attempt.elf);
	if (!mapped) {
		mw_elf_unref(attempt.elf);
		attempt.elf = NULL;
		/* What is wrong with some other file does not matter. */
		mw_error_destroy(attempt.err);
		attempt.err = NULL;
	}
	return attempt;
}

static int open_by_mapping(pid_t tid, const struct mw_mapping *mapping)
{
	char link[96];

	(void)snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)tid, (unsigned long long)mapping->start,
		       (unsigned long long)mapping->end);
	return mw_root_open_link(link);
}

/* The program's own file is to be had without a capability, whatever has become of its name. */
static int open_program(pid_t tid, const struct mw_mapping *mapping)
{
	char link[64];
	struct stat st;
	int fd;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)tid);
	fd = mw_root_open_link(link);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && is_mapped_file(tid, mapping, &st, NULL))
		return fd;
	close(fd);
	return -1;
}

static struct mw_error *explain(char **why, int by_name, int by_mapping)
{
	const char *first = "its file was replaced";
	char *text = NULL;
	int length;

	if (by_name == EMFILE || by_name == ENFILE || by_mapping == EMFILE || by_mapping == ENFILE)
		return say(why, strdup("its file cannot be opened: too many open files (raise ulimit -n)"));
	if (by_name == ENOENT || by_name == ENOTDIR)
		first = "its file was deleted";
	else if (by_name == ENXIO)
		first = "its name leads to something that is not a file";
	else if (by_name)
		first = "its file cannot be opened by name";
	if (by_mapping == EPERM || by_mapping == EACCES)
		length = asprintf(&text, "%s%s%s and map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", first,
				  by_name && by_name != ENOENT ? ": " : "",
				  by_name && by_name != ENOENT ? strerror(by_name) : "");
	else
		length = asprintf(&text, "%s, and its mapping cannot be opened: %s", first, strerror(by_mapping));
	return say(why, length < 0 ? NULL : text);
}

static struct mw_error *open_file(pid_t tid, const struct mw_mapping *mapping, const char *path, struct mw_elf **elf,
				  char **why)
{
	struct attempt attempt = open_by_name(tid, mapping, path);
	struct mw_error *err;
	int fd;

	*elf = attempt.elf;
	*why = NULL;
	if (attempt.elf)
		return NULL;
	if (attempt.err)
		return say_error(why, attempt.err);
	fd = open_by_mapping(tid, mapping);
	if (fd < 0) {
		int errnum = errno;

		fd = open_program(tid, mapping);
		if (fd < 0)
			return explain(why, attempt.errnum, errnum);
	}
	/* This is the mapped file by definition. */
	err = mw_elf_open(fd, path, elf);
	close(fd);
	return err ? say_error(why, err) : NULL;
}

struct mw_error *mw_module_file_open(pid_t tid, const struct mw_mapping *mapping, const char *path, struct mw_elf **elf,
				     char **why)
{
	struct mw_error *err;

	MW_TRY(open_file(tid, mapping, path, elf, why));
	err = *elf ? mw_elf_find_symbols(*elf, tid, path) : NULL;
	if (err) {
		mw_elf_unref(*elf);
		*elf = NULL;
	}
	return err;
}

struct mw_error *mw_module_vdso_open(pid_t tid, const struct mw_mapping *mapping, struct mw_elf **elf, char **why)
{
	uint64_t size = mapping->end - mapping->start;
	struct mw_error *err;
	uint8_t *bytes;

	*elf = NULL;
	*why = NULL;
	if (size > MAX_VDSO)
		return say(why, strdup("it is too large"));
	bytes = malloc(size);
	if (!bytes)
		return mw_error_nomem();
	if (mw_peek(tid, mapping->start, bytes, size))
		err = mw_elf_open_memory(bytes, size, mapping->path, elf);
	else
		err = mw_error_create(MW_ERROR_SYSTEM, errno, "its memory cannot be read");
	free(bytes);
	return err ? say_error(why, err) : NULL;
}
