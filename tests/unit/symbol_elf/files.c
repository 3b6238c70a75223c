// SPDX-License-Identifier: MIT
/* files.c: files for tests to read, copy and spoil. */
#include "files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

uint8_t *file_read(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*size = (size_t)st.st_size;
	return bytes;
}

void file_write(const char *path, const void *bytes, size_t size)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
}

void file_copy(const char *from, const char *to)
{
	size_t size;
	uint8_t *bytes = file_read(from, &size);

	file_write(to, bytes, size);
	free(bytes);
}

struct mw_elf *elf_of(const char *path)
{
	struct mw_elf *elf = NULL;
	struct mw_error *err;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	err = mw_elf_open(fd, path, &elf);
	close(fd);
	if (err)
		fail_msg("%s", mw_error_text(err));
	return elf;
}

struct search {
	const char *name;
	uint64_t vaddr;
};

static bool match(void *context, const struct mw_elf_symbol *symbol)
{
	struct search *search = context;

	if (strcmp(symbol->name, search->name) == 0)
		search->vaddr = symbol->vaddr;
	return search->vaddr == 0;
}

uint64_t symbol_of(struct mw_elf *elf, const char *name)
{
	struct search search = {name, 0};

	assert_null(mw_elf_each_symbol(elf, match, &search));
	return search.vaddr;
}
