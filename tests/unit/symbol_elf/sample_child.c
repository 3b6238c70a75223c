// SPDX-License-Identifier: MIT
/*
 * sample_child.c: a program that loads and maps files when told to.
 *
 *     open PATH    dlopen
 *     close        dlclose of the last
 *     map PATH     map a whole file for reading
 *     memfd PATH   dlopen of a copy that has no name
 *     split        make a page of its own text writable
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int sample_function(int x);

int sample_function(int x)
{
	return x + 1;
}

static void *last;

static const char *open_library(const char *path)
{
	last = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return last ? "ok" : dlerror();
}

static const char *map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) < 0)
		return "cannot open";
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return at == MAP_FAILED ? "cannot map" : "ok";
}

static const char *open_nameless(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int to = memfd_create("nameless", MFD_CLOEXEC);
	const char *answer;
	char name[64];

	while (sendfile(to, from, NULL, 1 << 20) > 0)
		;
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", to);
	answer = open_library(name);
	close(from);
	close(to);
	return answer;
}

static const char *split_text(void)
{
	uintptr_t page = (uintptr_t)sample_function & ~(uintptr_t)4095;

	return mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0 ? "ok" : "cannot protect";
}

static const char *obey(char *line)
{
	char *path = strchr(line, ' ');

	if (path)
		*path++ = '\0';
	if (strcmp(line, "open") == 0)
		return open_library(path);
	if (strcmp(line, "close") == 0)
		return dlclose(last) == 0 ? "ok" : dlerror();
	if (strcmp(line, "map") == 0)
		return map_file(path);
	if (strcmp(line, "memfd") == 0)
		return open_nameless(path);
	if (strcmp(line, "split") == 0)
		return split_text();
	return "what?";
}

int main(void)
{
	char line[4096];

	printf("ready %p\n", (void *)sample_function);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		puts(obey(line));
		(void)fflush(stdout);
	}
	return 0;
}
