// SPDX-License-Identifier: MIT
/* The writer's file: when it is there, what survives, and what becomes of a disk that is full. */
#include "rig.h"

#include "store/format.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path;

static int setup(void **state)
{
	(void)state;
	path = strdup(rig_path("writer.mw"));
	return path ? 0 : -1;
}

static int teardown(void **state)
{
	free(path);
	return rig_cleanup(state);
}

/* Files in the directory of the recording. */
static unsigned int count_files(void)
{
	char *directory = strdup(path);
	struct dirent *entry;
	unsigned int count = 0;
	DIR *all;

	*strrchr(directory, '/') = 0;
	all = opendir(directory);
	while ((entry = readdir(all)))
		count += entry->d_name[0] != '.';
	closedir(all);
	free(directory);
	return count;
}

static void test_nothing_before_publish(void **state)
{
	struct mw_store_writer *writer;
	struct stat there;
	uint8_t *bytes;
	size_t size;

	(void)state;
	rig_save(path, (const uint8_t *)"old", 3);
	rig_good(mw_store_create(path, &writer));
	/* It has no name, on file systems that have such. */
	assert_null(mw_store_partial(writer));
	assert_int_equal(count_files(), 1);
	bytes = rig_load(path, &size);
	assert_int_equal(size, 3);
	free(bytes);
	mw_store_destroy(writer);
	assert_int_equal(count_files(), 1);
	/* Finished, but never published. */
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
	assert_int_equal(count_files(), 1);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	assert_null(mw_store_partial(writer));
	assert_int_equal(count_files(), 1);
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
	mw_store_destroy(NULL);
	bytes = rig_load(path, &size);
	assert_true(size > 16);
	free(bytes);
	assert_int_equal(stat(path, &there), 0);
	assert_int_equal(there.st_mode & 07777, 0600);
	unlink(path);
}

static void refuse(const char *name, const char *why)
{
	struct mw_store_writer *writer;
	struct mw_error *err = mw_store_create(name, &writer);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_SYSTEM);
	assert_non_null(strstr(mw_error_text(err), name));
	if (!strstr(mw_error_text(err), why))
		fail_msg("'%s' does not say '%s'", mw_error_text(err), why);
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
}

static void test_names_that_cannot_be(void **state)
{
	(void)state;
	refuse("/dev/null", "not a regular file");
	refuse("/tmp", "Is a directory");
	refuse("/nonexistent/x.mw", "No such file");
}

/* What a link leads to is replaced, and the link stays; but none that may be anyone's is followed. */
static void test_link(void **state)
{
	char *other = strdup(rig_path("other"));
	struct mw_store_writer *writer;
	struct stat there;
	uint8_t *bytes;
	size_t size;

	(void)state;
	rig_save(other, (const uint8_t *)"mine", 4);
	assert_int_equal(symlink(other, path), 0);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
	bytes = rig_load(other, &size);
	assert_true(size > 16);
	assert_int_equal(lstat(path, &there), 0);
	assert_true(S_ISLNK(there.st_mode));
	free(bytes);
	assert_int_equal(stat(rig_path("."), &there), 0);
	assert_int_equal(chmod(rig_path("."), 01777), 0);
	refuse(path, "all users may write to");
	assert_int_equal(chmod(rig_path("."), there.st_mode & 07777), 0);
	unlink(other);
	refuse(path, "leads nowhere");
	unlink(path);
	free(other);
}

/* The writer's thread takes no signals, and no program that we start gets the file. */
static void test_thread_and_descriptor(void **state)
{
	struct mw_store_writer *writer;
	char name[64], line[256], target[512];
	struct dirent *entry;
	unsigned int blocked = 0, count = 0;
	DIR *all;

	(void)state;
	rig_good(mw_store_create(path, &writer));
	all = opendir("/proc/self/task");
	while ((entry = readdir(all))) {
		FILE *status;

		snprintf(name, sizeof(name), "/proc/self/task/%.20s/status", entry->d_name);
		status = fopen(name, "r");
		while (atoi(entry->d_name) != getpid() && status && fgets(line, sizeof(line), status))
			blocked += strncmp(line, "SigBlk:\tfffffff", 15) == 0;
		if (status)
			fclose(status);
	}
	closedir(all);
	assert_int_equal(blocked, 1);
	for (int fd = 3; fd < 64; fd++) {
		ssize_t length;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		length = readlink(name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		/* The file, and its directory. */
		if (strncmp(target, rig_path(""), strlen(rig_path("")) - 1) != 0)
			continue;
		count++;
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(count, 2);
	mw_store_destroy(writer);
}

/* Tell the writer so many events; their addresses are such that they don't compress. */
static void tell_events(struct mw_event_sink *sink, uint64_t count)
{
	uint64_t random = 88172645463325252U;

	for (uint64_t i = 0; i < count; i++) {
		struct mw_event event = {.time_ns = i, .stack = MW_STACK_NONE};

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		event.addr = random;
		event.size = random * 5;
		rig_good(sink->event(sink->context, &event));
	}
}

static struct mw_error *count_events(void *context, uint32_t process, const struct mw_event *events, size_t count)
{
	uint64_t *all = context;

	assert_int_equal(process, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(events[i].time_ns, *all + i);
	*all += count;
	return NULL;
}

static uint64_t events_in_file(struct mw_store_state *state)
{
	uint64_t count = 0;
	const struct mw_store_visitor visitor = {.context = &count, .events = count_events};
	struct mw_store_reader *reader;

	rig_good(mw_store_open(path, &reader));
	rig_good(mw_store_read(reader, &visitor, state));
	mw_store_close(reader);
	return count;
}

static void start(struct mw_store_writer **writer, struct rig_inner *inner, struct mw_event_sink *sink)
{
	uint32_t number;

	rig_inner_init(inner);
	rig_good(mw_store_create(path, writer));
	rig_good(mw_store_publish(*writer));
	rig_good(mw_store_sink(*writer, 0, &inner->sink, sink));
	rig_good(sink->thread(sink->context, 1, "one", true, &number));
}

/* A child that flushes, and is killed when that is written. */
static void test_flushed_survives_kill(void **state)
{
	struct mw_store_state found;
	int status, ready[2];
	uint64_t events;
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct mw_store_writer *writer;
		struct mw_event_sink sink;
		struct rig_inner inner;
		uint64_t before;

		start(&writer, &inner, &sink);
		tell_events(&sink, 20000);
		before = mw_store_written(writer);
		mw_store_flush(writer);
		/* Two chunks of events: the second is of what was begun. */
		while (mw_store_written(writer) < before + 20000 || mw_store_written(writer) < 20000 * 16)
			usleep(1000);
		(void)!write(ready[1], "", 1);
		tell_events(&sink, 100);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	close(ready[0]);
	events = events_in_file(&found);
	assert_true(found.cut);
	assert_string_equal(found.why, "its end is missing");
	assert_int_equal(events, 20000);
	unlink(path);
}

/* The file may not grow beyond some size, at whatever byte of a chunk that is: as on a disk that is full. */
/* Not even the header can be written: what stood under the name stays. */
static void test_no_room_at_all(void **state)
{
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (rlim_t size = 0; size < 16; size += 5) {
		struct mw_store_writer *writer;
		struct mw_error *err;
		char bytes[8] = "";
		FILE *old = fopen(path, "w");

		assert_non_null(old);
		assert_true(fputs("old", old) >= 0);
		assert_int_equal(fclose(old), 0);
		limit = (struct rlimit){size, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		rig_good(mw_store_create(path, &writer));
		err = mw_store_publish(writer);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_non_null(err);
		assert_int_equal(mw_error_errno(err), EFBIG);
		mw_error_destroy(err);
		mw_store_destroy(writer);
		old = fopen(path, "r");
		assert_non_null(old);
		assert_non_null(fgets(bytes, sizeof(bytes), old));
		assert_string_equal(bytes, "old");
		fclose(old);
		unlink(path);
	}
}

/* Somebody removes the file while it is written. */
static void test_removed(void **state)
{
	struct mw_store_writer *writer;
	struct mw_event_sink sink;
	struct rig_inner inner;
	struct mw_error *err;

	(void)state;
	start(&writer, &inner, &sink);
	assert_int_equal(unlink(path), 0);
	tell_events(&sink, 100);
	err = mw_store_finish(writer);
	assert_non_null(err);
	assert_int_equal(mw_error_errno(err), ENOENT);
	assert_non_null(strstr(mw_error_text(err), "the recording"));
	mw_error_destroy(err);
	mw_store_destroy(writer);
}

static void test_full_disk(void **state)
{
	static const rlim_t limits[] = {16, 17, 16 + 39, 16 + 40, 100, 1000, 100000, 400000, 1000000};
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct mw_store_writer *writer;
		struct mw_store_state found;
		struct mw_event_sink sink;
		struct rig_inner inner;
		struct mw_error *err;
		struct stat there;
		uint64_t events;

		limit = (struct rlimit){limits[i], before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		start(&writer, &inner, &sink);
		tell_events(&sink, 300000);
		MW_STORE_TELL(writer, mark, 0, &(struct mw_stored_mark){1, 2, "x"});
		mw_store_flush(writer);
		err = mw_store_finish(writer);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(inner.events, 300000);
		assert_non_null(err);
		assert_int_equal(mw_error_errno(err), EFBIG);
		assert_non_null(strstr(mw_error_text(err), path));
		assert_non_null(strstr(mw_error_hint_text(err), "good"));
		mw_error_destroy(err);
		assert_int_equal(stat(path, &there), 0);
		assert_int_equal(there.st_size, mw_store_written(writer));
		assert_true((rlim_t)there.st_size <= limits[i]);
		mw_store_destroy(writer);
		if (limits[i] >= 1000) {
			events = events_in_file(&found);
			assert_true(found.cut);
			assert_string_equal(found.why, "its end is missing");
			assert_int_equal(found.good, found.size);
			assert_int_equal(events % MW_STORE_EVENTS_MAX, 0);
			assert_int_equal(events > 0, limits[i] >= 400000);
		}
		unlink(path);
	}
}

/* Strings and lists that are longer than a chunk: they are cut, and the recording is good. */
static void test_too_long(void **state)
{
	const size_t length = 3U << 20;
	char *text = malloc(length + 1);
	const char **command = malloc(100000 * sizeof(*command));
	struct mw_raw_frame *frames = calloc(100000, sizeof(*frames));
	struct mw_stored_target target = {.comm = text, .command = command, .command_count = 100000};
	struct mw_raw_stack stack = {frames, 100000, MW_STACK_COMPLETE, 0, MW_KIND_HEAP};
	struct mw_store_writer *writer;
	struct mw_store_state found;
	struct mw_event_sink sink;
	struct rig_inner inner;
	struct rig_told told;
	uint32_t number;

	(void)state;
	memset(text, 'x', length);
	text[length] = 0;
	for (size_t i = 0; i < 100000; i++) {
		command[i] = text + length - 1000;
		frames[i] = (struct mw_raw_frame){i % 2 ? UINT64_C(1) << 63 : 1, MW_MODULE_NONE - 1};
	}
	start(&writer, &inner, &sink);
	MW_STORE_TELL(writer, target, 0, &target);
	MW_STORE_TELL(writer, mark, 0, &(struct mw_stored_mark){1, 2, text});
	MW_STORE_TELL(writer, module, 0, &(struct mw_stored_module){.number = UINT32_MAX});
	MW_STORE_TELL(writer, mark, UINT32_MAX, &(struct mw_stored_mark){1, 2, "no such process"});
	rig_good(sink.stack(sink.context, &stack, &number));
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
	rig_told_init(&told);
	rig_good(rig_read(path, &told, &found));
	assert_false(found.cut);
	assert_null(strstr(told.text, "module"));
	assert_null(strstr(told.text, "process"));
	assert_non_null(strstr(told.text, "0 target"));
	assert_non_null(strstr(told.text, "0 mark 1 2 \"xxxx"));
	assert_non_null(strstr(told.text, "0 stack 0 1 0 0 1@4294967295 8000000000000000@4294967295 "));
	rig_told_deinit(&told);
	free(frames);
	free(command);
	free(text);
	unlink(path);
}

static void test_too_many_processes(void **state)
{
	struct mw_store_writer *writer;
	struct rig_inner inner;
	struct mw_event_sink sink;
	struct mw_error *err;

	(void)state;
	start(&writer, &inner, &sink);
	err = mw_store_sink(writer, MW_STORE_PROCESS_MAX, &inner.sink, &sink);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_UNSUPPORTED);
	mw_error_destroy(err);
	mw_store_destroy(writer);
	unlink(path);
}

UNIT_GROUP(writer)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before_publish),
		cmocka_unit_test(test_no_room_at_all),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_names_that_cannot_be),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_thread_and_descriptor),
		cmocka_unit_test(test_flushed_survives_kill),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_too_many_processes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
