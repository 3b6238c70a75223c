// SPDX-License-Identifier: MIT
/*
 * portable.c: what glibc can't do in a statically linked program (MEMWATCH_STATIC) where the system's glibc is another
 * one than memwatch was built with: load libraries, and with them its modules for users' names and for character sets.
 * The linker puts these functions in the place of glibc's (--wrap).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENT   "debuginfod-find"
#define ID_BYTES 64

void *__wrap_dlopen(const char *file, int flags);
void *__wrap_dlsym(void *handle, const char *name);
int __wrap_dlclose(void *handle);
struct passwd *__wrap_getpwnam(const char *name);
struct passwd *__wrap_getpwuid(uid_t uid);
char *__wrap_setlocale(int category, const char *locale);
char *__real_setlocale(int category, const char *locale);

/* --- libdebuginfod, which libdw loads where it can: its client program does the same ----------------------------------- */

static bool is_program(const char *directory, size_t length)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%.*s/" CLIENT, (int)length, directory) < (int)sizeof(path) &&
	       access(path, X_OK) == 0;
}

static bool has_client(void)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");

		if (is_program(path, length))
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

/* Start the client; what it prints comes from *output. */
static int start(char *const argv[], pid_t *pid, int *output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	(void)sigemptyset(&none);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(pid, CLIENT, &actions, &attributes, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	close(ends[1]);
	if (error)
		close(ends[0]);
	else
		*output = ends[0];
	return error;
}

/* A line, without its end; empty where there is none, or one too long. Signals, as the clock's, may come at any time. */
static void read_line(int fd, char *line, size_t size)
{
	size_t length = 0;
	ssize_t got;

	do {
		got = TEMP_FAILURE_RETRY(read(fd, line + length, size - 1 - length));
		length += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	line[length] = '\0';
	if (!memchr(line, '\n', length))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

/* A descriptor of the file, or the negative of an errno, as libdebuginfod's functions return. */
static int ask(char *what, const unsigned char *id, int length)
{
	char hex[2 * ID_BYTES + 1], path[PATH_MAX];
	char *const argv[] = {(char[]){CLIENT}, what, hex, NULL};
	int error, fd, output = -1;
	pid_t pid = 0;

	if (length <= 0 || length > ID_BYTES)
		return -EINVAL;
	for (int i = 0; i < length; i++)
		snprintf(hex + 2 * (size_t)i, 3, "%02x", id[i]);
	error = start(argv, &pid, &output);
	if (error)
		return -error;
	read_line(output, path, sizeof(path));
	close(output);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	return fd < 0 ? -ENOENT : fd;
}

static int find_debuginfo(void *client, const unsigned char *id, int length, char **path)
{
	(void)client, (void)path;
	return ask((char[]){"debuginfo"}, id, length);
}

static int find_executable(void *client, const unsigned char *id, int length, char **path)
{
	(void)client, (void)path;
	return ask((char[]){"executable"}, id, length);
}

/* NULL: libdw asks for nothing. */
static void *begin(void)
{
	static char client;
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls && has_client() ? &client : NULL;
}

static void end(void *client)
{
	(void)client;
}

static const struct function {
	const char *name;
	void (*code)(void);
} functions[] = {
	{"debuginfod_begin", (void (*)(void))begin},
	{"debuginfod_find_executable", (void (*)(void))find_executable},
	{"debuginfod_find_debuginfo", (void (*)(void))find_debuginfo},
	{"debuginfod_end", (void (*)(void))end},
};

void *__wrap_dlopen(const char *file, int flags)
{
	(void)flags;
	return file && strncmp(file, "libdebuginfod", strlen("libdebuginfod")) == 0 ? (void *)(uintptr_t)functions
										    : NULL;
}

void *__wrap_dlsym(void *handle, const char *name)
{
	(void)handle;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, name) == 0)
			return (void *)(uintptr_t)functions[i].code;
	return NULL;
}

int __wrap_dlclose(void *handle)
{
	(void)handle;
	return 0;
}

/* --- users and character sets ------------------------------------------------------------------------------------------ */

/* What is returned lasts until the next call. Users who are in no file have no name. */
static struct passwd *find_user(const char *name, uid_t uid)
{
	static char text[4096];
	static struct passwd entry;
	struct passwd *found = NULL;
	FILE *file = fopen("/etc/passwd", "re");

	if (!file)
		return NULL;
	while (fgetpwent_r(file, &entry, text, sizeof(text), &found) == 0 &&
	       (name ? strcmp(found->pw_name, name) != 0 : found->pw_uid != uid))
		found = NULL;
	fclose(file);
	return found;
}

struct passwd *__wrap_getpwnam(const char *name)
{
	return find_user(name, 0);
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
	return find_user(NULL, uid);
}

/* UTF-8 is built in. In any other character set memwatch writes ASCII. */
char *__wrap_setlocale(int category, const char *locale)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	if (!locale || *locale)
		return __real_setlocale(category, locale);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (!value || !*value)
			continue;
		if (strstr(value, "UTF-8") || strstr(value, "utf8"))
			return __real_setlocale(category, "C.UTF-8");
		break;
	}
	return __real_setlocale(category, "C");
}
