// SPDX-License-Identifier: MIT
/* libraries.c: see libraries.h. */
#include "libraries.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

struct mw_elf *open_image(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mw_elf *elf = NULL;
	struct mw_error *err;

	if (fd < 0)
		return NULL;
	err = mw_elf_open(fd, path, &elf);
	close(fd);
	if (err)
		fail_msg("%s", mw_error_text(err));
	return elf;
}

bool find_library(const char *soname, char *path, size_t size)
{
	const char *const directories[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib"};

	/* Loading an allocator to learn its path would put it to use. */
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(path, size, "%s/%s", directories[i], soname);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

struct mw_elf *open_library(const char *soname)
{
	char path[4096];

	return find_library(soname, path, sizeof(path)) ? open_image(path) : NULL;
}

const char *own_libc(mw_addr *bias)
{
	struct link_map *map = NULL;
	Dl_info info;

	assert_int_not_equal(dladdr1((void *)gnu_get_libc_version, &info, (void **)&map, RTLD_DL_LINKMAP), 0);
	*bias = map->l_addr;
	return map->l_name;
}
