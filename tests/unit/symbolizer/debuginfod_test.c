// SPDX-License-Identifier: MIT
/*
 * debuginfod_test.c: debug information fetched from a server, which is Python's over a directory on 127.0.0.1.
 *
 * libdw looks at DEBUGINFOD_URLS when it is loaded, so the test sets the server up and then runs itself anew.
 */
#include "probe.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY   FIXTURES "/libbare.so"
#define DEBUG     FIXTURES "/fixture.debug"
#define DIRECTORY "MEMWATCH_TEST_DIRECTORY" /* tells the second run from the first */

static void test_fetched(void **state)
{
	const char *directory = getenv(DIRECTORY);
	const struct mw_symbol_frame *frames;
	char path[PATH_MAX], log[4096] = "";
	struct probe probe;
	FILE *file;

	(void)state;
	probe_open(&probe, LIBRARY);
	assert_int_equal(probe_frames(&probe, "fixture_hidden", &frames), 1);
	probe_expect(&frames[0], "not_exported(void (*)())", "fixture.cpp", 502, false);
	assert_int_equal(probe_frames(&probe, "fixture_chain", &frames), 3);
	probe_expect(&frames[1], "demo::box<int>::middle(void (*)())", "fixture.cpp", 205, true);
	assert_string_equal(probe_source(&probe, "fixture_chain"), "debuginfod");
	probe_close(&probe);
	/* The server was asked. */
	snprintf(path, sizeof(path), "%s/log", directory);
	file = fopen(path, "r");
	assert_non_null(file);
	log[fread(log, 1, sizeof(log) - 1, file)] = '\0';
	fclose(file);
	assert_non_null(strstr(log, "GET /buildid/"));
}

/* The library's build-id in hexadecimal; false where there is none. */
static bool build_id(char *text, size_t size)
{
	int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
	struct mw_elf *elf = NULL;
	struct mw_error *err = mw_elf_open(fd, LIBRARY, &elf);
	size_t length;

	close(fd);
	if (err) {
		mw_error_destroy(err);
		return false;
	}
	length = elf->build_id_size;
	for (size_t i = 0; i < length && 2 * i + 2 < size; i++)
		snprintf(text + 2 * i, 3, "%02x", elf->build_id[i]);
	mw_elf_unref(elf);
	return length > 0;
}

static bool lay_out(const char *directory)
{
	char path[PATH_MAX], id[256] = "";

	if (!build_id(id, sizeof(id)))
		return false;
	snprintf(path, sizeof(path), "%s/www", directory);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/www/buildid", directory);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/www/buildid/%s", directory, id);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/www/buildid/%s/debuginfo", directory, id);
	return symlink(DEBUG, path) == 0;
}

/* Python serving DIRECTORY/www, its log in DIRECTORY/log; its port, or 0 where it does not start. */
static int serve(const char *directory, pid_t *server)
{
	char www[PATH_MAX], log[PATH_MAX], line[256] = "";
	int ends[2], port = 0;
	FILE *out;

	snprintf(www, sizeof(www), "%s/www", directory);
	snprintf(log, sizeof(log), "%s/log", directory);
	if (pipe(ends))
		return 0;
	*server = fork();
	if (*server == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(ends[1], STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		close(ends[0]);
		execlp("python3", "python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", www,
		       NULL);
		_exit(127);
	}
	close(ends[1]);
	out = fdopen(ends[0], "r");
	if (!out || !fgets(line, sizeof(line), out) || sscanf(line, "Serving HTTP on 127.0.0.1 port %d", &port) != 1)
		port = 0;
	if (out)
		fclose(out);
	return port;
}

/* Run this program again with the server named in its environment; its exit status. */
static int run_again(const char *directory, int port)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		char text[PATH_MAX];

		snprintf(text, sizeof(text), "http://127.0.0.1:%d", port);
		setenv("DEBUGINFOD_URLS", text, 1);
		snprintf(text, sizeof(text), "%s/cache", directory);
		setenv("DEBUGINFOD_CACHE_PATH", text, 1);
		setenv("DEBUGINFOD_TIMEOUT", "30", 1);
		setenv("no_proxy", "127.0.0.1", 1);
		setenv(DIRECTORY, directory, 1);
		execl("/proc/self/exe", "unit_symbolizer", "debuginfod", NULL);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

static int set_up_and_run(void)
{
	char directory[] = "/tmp/memwatch-debuginfod-XXXXXX", command[PATH_MAX];
	int port, status = UNIT_SKIPPED;
	pid_t server = -1;

	if (!dlopen("libdebuginfod.so.1", RTLD_NOW)) {
		print_message("libdebuginfod.so.1 is not here\n");
		return UNIT_SKIPPED;
	}
	if (!mkdtemp(directory) || !lay_out(directory))
		return 1;
	port = serve(directory, &server);
	if (port)
		status = run_again(directory, port);
	else
		print_message("python3 does not serve\n");
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command) ? 1 : status;
}

UNIT_GROUP(debuginfod)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fetched),
	};

	if (!getenv(DIRECTORY))
		return set_up_and_run();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
