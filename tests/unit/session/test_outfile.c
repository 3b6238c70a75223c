// SPDX-License-Identifier: MIT
/* test_outfile.c: an output file is there whole or not at all. */
#include "session/outputs.h"
#include "session/process_setup.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/mw-outfile-XXXXXX";
static char path[64];

static void put(const char *name, const char *text)
{
	FILE *stream = fopen(name, "w");

	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static void assert_holds(const char *name, const char *text)
{
	char content[100] = "";
	FILE *stream = fopen(name, "r");

	assert_non_null(stream);
	assert_true(fread(content, 1, sizeof(content) - 1, stream) < sizeof(content));
	fclose(stream);
	assert_string_equal(content, text);
}

/* Entries beside "." and "..": nothing temporary may be left. */
static size_t entries(void)
{
	DIR *stream = opendir(directory);
	size_t count = 0;

	assert_non_null(stream);
	while (readdir(stream))
		count++;
	closedir(stream);
	return count - 2;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/report", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static void test_new(void **state)
{
	struct mw_outfile *file = NULL;
	struct stat info;

	(void)state;
	assert_null(mw_outfile_open(path, &file));
	assert_int_equal(access(path, F_OK), -1);
	fputs("whole", mw_outfile_stream(file));
	assert_int_equal(access(path, F_OK), -1);
	assert_null(mw_outfile_commit(file));
	assert_holds(path, "whole");
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(entries(), 1);
	unlink(path);
}

static void test_abort(void **state)
{
	struct mw_outfile *file = NULL;

	(void)state;
	put(path, "before");
	assert_null(mw_outfile_open(path, &file));
	fputs("after", mw_outfile_stream(file));
	fflush(mw_outfile_stream(file));
	assert_holds(path, "before");
	mw_outfile_abort(file);
	assert_holds(path, "before");
	assert_int_equal(entries(), 1);
	assert_null(mw_outfile_open(path, &file));
	fputs("after", mw_outfile_stream(file));
	assert_null(mw_outfile_commit(file));
	assert_holds(path, "after");
	assert_int_equal(entries(), 1);
	unlink(path);
	mw_outfile_abort(NULL);
}

static void test_link(void **state)
{
	struct mw_outfile *file = NULL;
	struct mw_error *err;
	struct stat info;
	char link[80];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", directory);
	put(path, "before");
	assert_int_equal(symlink(path, link), 0);
	assert_null(mw_outfile_open(link, &file));
	fputs("after", mw_outfile_stream(file));
	assert_null(mw_outfile_commit(file));
	assert_holds(path, "after");
	assert_int_equal(lstat(link, &info), 0);
	assert_true(S_ISLNK(info.st_mode));
	unlink(path);
	err = mw_outfile_open(link, &file);
	assert_non_null(err);
	mw_error_destroy(err);
	unlink(link);
	assert_int_equal(entries(), 0);
}

static void write_whole(const char *name, const char *text)
{
	struct mw_outfile *file = NULL;

	assert_null(mw_outfile_open(name, &file));
	fputs(text, mw_outfile_stream(file));
	assert_null(mw_outfile_commit(file));
}

static void assert_refused(const char *name, const char *why)
{
	struct mw_outfile *file = NULL;
	struct mw_error *err = mw_outfile_open(name, &file);

	assert_non_null(err);
	assert_non_null(strstr(mw_error_text(err), why));
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
}

/* Links in a directory of everyone's are anyone's: none is followed, at whatever part of the path, sticky or not. (The
 * kernel's own care, fs.protected_symlinks, is for sticky ones.) */
static void links_of_all(void)
{
	char open_directory[80], link[120], through[160], own[80];

	snprintf(open_directory, sizeof(open_directory), "%s/open", directory);
	snprintf(own, sizeof(own), "%s/own", directory);
	snprintf(link, sizeof(link), "%s/link", open_directory);
	assert_int_equal(mkdir(open_directory, 0700), 0);
	assert_int_equal(mkdir(own, 0700), 0);
	put(path, "before");
	for (mode_t mode = 0777;; mode |= S_ISVTX) {
		assert_int_equal(chmod(open_directory, mode), 0);
		assert_int_equal(symlink(path, link), 0);
		assert_refused(link, "all users may write to");
		unlink(link);
		assert_int_equal(symlink("/dev/null", link), 0);
		assert_refused(link, "all users may write to");
		unlink(link);
		/* A directory on the way. */
		assert_int_equal(symlink(own, link), 0);
		snprintf(through, sizeof(through), "%s/file", link);
		assert_refused(through, "all users may write to");
		unlink(link);
		/* A link of ours that leads to one of theirs. */
		assert_int_equal(symlink("../own", link), 0);
		snprintf(through, sizeof(through), "%s/way", own);
		assert_int_equal(symlink("../open/link/file", through), 0);
		assert_refused(through, "all users may write to");
		unlink(through);
		unlink(link);
		/* A file is just a file there. */
		write_whole(link, "new");
		assert_holds(link, "new");
		write_whole(link, "newer");
		assert_holds(link, "newer");
		unlink(link);
		if (mode & S_ISVTX)
			break;
	}
	assert_holds(path, "before");
	assert_int_equal(rmdir(open_directory), 0);
	assert_int_equal(rmdir(own), 0);
	unlink(path);
}

static void test_links_of_all(void **state)
{
	(void)state;
	links_of_all();
	assert_int_equal(entries(), 0);
}

/* The same as somebody else, in a directory of theirs. */
static void test_as_another(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(directory, 65534, 65534), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		links_of_all();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(chown(directory, 0, 0), 0);
	assert_int_equal(entries(), 0);
}

/* In a directory of everyone's, root does not write to what another has put there to be written to. */
static void test_fifo_of_another(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(directory, 01777), 0);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_refused(path, "belongs to another user");
	unlink(path);
	/* A file of another's is replaced, not written to. */
	put(path, "theirs");
	assert_int_equal(chown(path, 65534, 65534), 0);
	write_whole(path, "ours");
	assert_holds(path, "ours");
	unlink(path);
	assert_int_equal(chmod(directory, 0700), 0);
}

static void test_umask(void **state)
{
	static const mode_t masks[] = {0, 0777, 0277};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		mode_t before = umask(masks[i]);
		struct stat info;

		write_whole(path, "text");
		umask(before);
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 07777, 0600);
		unlink(path);
	}
}

/* The directory is replaced meanwhile: what is written goes where it was to go. */
static void test_directory_moved(void **state)
{
	struct mw_outfile *file = NULL;
	char there[80], moved[80], name[120];

	(void)state;
	snprintf(there, sizeof(there), "%s/there", directory);
	snprintf(moved, sizeof(moved), "%s/moved", directory);
	snprintf(name, sizeof(name), "%s/file", there);
	assert_int_equal(mkdir(there, 0700), 0);
	assert_null(mw_outfile_open(name, &file));
	fputs("text", mw_outfile_stream(file));
	assert_int_equal(rename(there, moved), 0);
	assert_int_equal(symlink("/", there), 0);
	assert_null(mw_outfile_commit(file));
	assert_int_equal(access("/file", F_OK), -1);
	snprintf(name, sizeof(name), "%s/file", moved);
	assert_holds(name, "text");
	unlink(name);
	unlink(there);
	assert_int_equal(rmdir(moved), 0);
}

/* What is open already is written to, from where it is at, and stays. */
static void test_descriptors(void **state)
{
	char name[40];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "one ", 4), 4);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	write_whole(name, "two ");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	write_whole(name, "three");
	close(fd);
	assert_holds(path, "one two three");
	unlink(path);
	assert_refused(name, "cannot write");
	write_whole("/dev/null", "nothing");
}

static void assert_cannot_open(const char *name, int errnum)
{
	struct mw_outfile *file = NULL;
	struct mw_error *err = mw_outfile_open(name, &file);

	assert_non_null(err);
	assert_null(file);
	assert_int_equal(mw_error_errno(err), errnum);
	assert_non_null(strstr(mw_error_text(err), name));
	mw_error_destroy(err);
	assert_int_equal(entries(), 0);
}

static void test_refused(void **state)
{
	char name[400];

	(void)state;
	assert_cannot_open(directory, EISDIR);
	snprintf(name, sizeof(name), "%s/none/report", directory);
	assert_cannot_open(name, ENOENT);
	snprintf(name, sizeof(name), "%s/report/", directory);
	assert_cannot_open(name, ENOENT);
	assert_cannot_open("/dev/null/report", ENOTDIR);
	memset(name, 'x', 300);
	name[300] = '\0';
	assert_cannot_open(name, ENAMETOOLONG);
	assert_cannot_open("", ENOENT);
}

/* A failure is told with its reason, whether it is met early, by a full buffer, or at the end. */
static void test_full(void **state)
{
	static const size_t sizes[] = {1, 100000};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct mw_outfile *file = NULL;
		struct mw_error *err;

		assert_null(mw_outfile_open("/dev/full", &file));
		for (size_t j = 0; j < sizes[i]; j++)
			fputc('x', mw_outfile_stream(file));
		err = mw_outfile_commit(file);
		assert_non_null(err);
		assert_int_equal(mw_error_errno(err), ENOSPC);
		assert_non_null(strstr(mw_error_text(err), "/dev/full"));
		mw_error_destroy(err);
	}
	assert_int_equal(access("/dev/full", F_OK), 0);
}

/* A recording and a report that would go there. */
static bool is_refused_pair(const char *name, const char *other)
{
	struct mw_session_options options = {.output = name};
	struct mw_error *err;

	options.files[0] = other;
	err = mw_outputs_check(&options);
	if (!err)
		return false;
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	mw_error_destroy(err);
	return true;
}

static void test_same(void **state)
{
	char spelled[400], other[400];

	(void)state;
	snprintf(spelled, sizeof(spelled), "%s/./report", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	/* Not there yet, there, and one of two there. */
	assert_true(is_refused_pair(path, spelled));
	assert_false(is_refused_pair(path, other));
	assert_false(is_refused_pair("/none/report", "/nowhere/report"));
	put(path, "");
	assert_true(is_refused_pair(path, spelled));
	assert_false(is_refused_pair(path, other));
	assert_int_equal(symlink(path, other), 0);
	assert_true(is_refused_pair(path, other));
	assert_int_equal(unlink(other), 0);
	assert_int_equal(unlink(path), 0);
	/* Devices may be written to by two, standard output not. */
	assert_false(is_refused_pair("/dev/null", "/dev/null"));
	assert_true(is_refused_pair("-", "-"));
}

/* A signal is not what tells of a limit. */
static void test_limit(void **state)
{
	struct mw_outfile *file = NULL;
	struct rlimit before, limit;
	struct mw_error *err;

	(void)state;
	mw_process_setup_ignore_write_signals();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_null(mw_outfile_open(path, &file));
	for (size_t i = 0; i < 100000; i++)
		fputc('x', mw_outfile_stream(file));
	err = mw_outfile_commit(file);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(err);
	assert_int_equal(mw_error_errno(err), EFBIG);
	mw_error_destroy(err);
	assert_int_equal(entries(), 0);
}

UNIT_GROUP(outfile)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),         cmocka_unit_test(test_abort),
		cmocka_unit_test(test_link),        cmocka_unit_test(test_refused),
		cmocka_unit_test(test_full),        cmocka_unit_test(test_same),
		cmocka_unit_test(test_limit),       cmocka_unit_test(test_links_of_all),
		cmocka_unit_test(test_as_another),  cmocka_unit_test(test_fifo_of_another),
		cmocka_unit_test(test_umask),       cmocka_unit_test(test_directory_moved),
		cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
