// SPDX-License-Identifier: MIT
/* A recording is copied up to a moment while it goes on, and gets an end of its own. */
#include "rig.h"

#include "store/format.h"
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static struct mw_store_writer *writer;
static struct rig_inner inner;
static struct mw_event_sink sink;

static void begin(const char *name)
{
	rig_good(mw_store_create(rig_path(name), &writer));
	rig_inner_init(&inner);
	rig_good(mw_store_sink(writer, 0, &inner.sink, &sink));
}

static void tell(uint64_t first, uint64_t count)
{
	uint32_t thread;

	if (first == 0)
		rig_good(sink.thread(sink.context, 5, "t", true, &thread));
	for (uint64_t i = first; i < first + count; i++) {
		const struct mw_event event = {.time_ns = i, .addr = 0x1000 + i, .size = 8, .stack = MW_STACK_NONE};

		rig_good(sink.event(sink.context, &event));
	}
}

static void await(uint64_t number, struct mw_store_upto *upto)
{
	const struct timespec step = {.tv_nsec = 1000000};

	while (!mw_store_passed(writer, number, upto)) {
		assert_int_equal(mw_store_broken(writer), 0);
		nanosleep(&step, NULL);
	}
}

static uint64_t events_of(const char *path, struct mw_store_state *state)
{
	struct rig_told told;
	uint64_t events;

	rig_told_init(&told);
	rig_good(rig_read(path, &told, state));
	events = told.events;
	rig_told_deinit(&told);
	return events;
}

static bool go_on(void *context, uint64_t done, uint64_t total)
{
	unsigned *left = context;

	assert_true(done < total);
	return (*left)-- > 0;
}

static void test_copy(void **unused)
{
	const struct mw_stored_end end = {.length_ns = 50000};
	struct mw_store_writer *copy = NULL;
	struct mw_store_upto upto;
	struct mw_store_state state;
	struct stat there;
	uint64_t number;
	unsigned left = 100;

	(void)unused;
	begin("unnamed.mw");
	tell(0, 40000);
	number = mw_store_moment(writer);
	assert_int_equal(number, 1);
	tell(40000, 20000);
	await(number, &upto);
	rig_good(mw_store_copy(writer, &upto, rig_path("copy.mw"), go_on, &left, &copy));
	/* Not there before it is whole. */
	assert_int_equal(stat(rig_path("copy.mw"), &there), -1);
	MW_STORE_TELL(copy, end, 0, &end);
	rig_good(mw_store_publish(copy));
	rig_good(mw_store_finish(copy));
	mw_store_destroy(copy);
	assert_int_equal(stat(rig_path("copy.mw"), &there), 0);
	assert_int_equal(there.st_mode & 07777, 0600);
	assert_int_equal(events_of(rig_path("copy.mw"), &state), 40000);
	assert_false(state.cut);
	/* And what was copied goes on as it was: another moment has all. */
	await(mw_store_moment(writer), &upto);
	rig_good(mw_store_copy(writer, &upto, rig_path("second.mw"), NULL, NULL, &copy));
	rig_good(mw_store_publish(copy));
	rig_good(mw_store_finish(copy));
	mw_store_destroy(copy);
	assert_int_equal(events_of(rig_path("second.mw"), &state), 60000);
	assert_false(state.cut);
	mw_store_destroy(writer);
	assert_int_equal(stat(rig_path("unnamed.mw"), &there), -1);
}

static void test_given_up(void **unused)
{
	struct mw_store_writer *copy = NULL;
	struct mw_store_upto upto;
	struct mw_error *err;
	struct stat there;
	unsigned left = 0;

	(void)unused;
	begin("other.mw");
	tell(0, 20000);
	await(mw_store_moment(writer), &upto);
	err = mw_store_copy(writer, &upto, rig_path("none.mw"), go_on, &left, &copy);
	assert_non_null(err);
	assert_int_equal(mw_error_errno(err), ECANCELED);
	mw_error_destroy(err);
	assert_null(copy);
	err = mw_store_copy(writer, &upto, rig_path("no/such/directory.mw"), NULL, NULL, &copy);
	assert_non_null(err);
	mw_error_destroy(err);
	assert_int_equal(stat(rig_path("none.mw"), &there), -1);
	mw_store_give_up(writer, EFBIG);
	assert_int_equal(mw_store_broken(writer), EFBIG);
	assert_false(mw_store_passed(writer, 1, &upto));
	mw_store_destroy(writer);
}

UNIT_GROUP(copy)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, rig_cleanup);
}
