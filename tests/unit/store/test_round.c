// SPDX-License-Identifier: MIT
/* What was written comes back exactly. */
#include "rig.h"
#include "store/format.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static void test_everything_comes_back(void **state)
{
	char *path = strdup(rig_path("everything.mw"));
	struct mw_store_writer *writer;
	struct mw_store_state read;
	struct rig_told expected, told;

	(void)state;
	rig_told_init(&expected);
	rig_told_init(&told);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_tell_everything(writer, 0, &expected);
	rig_tell_everything(writer, 2, &expected);
	rig_good(mw_store_finish(writer));
	fflush(expected.stream);
	rig_good(rig_read(path, &told, &read));
	assert_string_equal(told.text, expected.text);
	assert_false(read.cut);
	assert_null(read.why);
	assert_int_equal(read.processes, 2);
	assert_int_equal(read.good, read.size);
	assert_int_equal(read.size, mw_store_written(writer));
	mw_store_destroy(writer);
	rig_told_deinit(&expected);
	rig_told_deinit(&told);
	free(path);
}

static uint64_t seed;

static uint64_t some(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A number of any width. */
static uint64_t any(void)
{
	return some() >> some() % 64;
}

#define THREADS 200U
#define STACKS  300U

static struct mw_event make_event(uint64_t style)
{
	struct mw_event event = {
		.time_ns = any(),
		.addr = any(),
		.size = some() % 3 ? any() : MW_SIZE_UNKNOWN,
		.stack = some() % 3 ? (uint32_t)(some() % STACKS) : MW_STACK_NONE,
		.thread = (uint32_t)(some() % THREADS),
		.type = (enum mw_event_type)(some() % (MW_EVENT_REMAP_FAIL + 1)),
		.kind = (enum mw_kind)(some() % MW_KIND_COUNT),
	};

	/* Not where nothing is sampled. */
	if (style >= 4) {
		event.interval = (uint16_t)(some() % (style < 6 ? 2 : MW_INTERVAL_MAX + 1));
		event.unsampled = some() % 4 == 0;
	}
	if (style % 2)
		event.addr &= ~UINT64_C(15);
	if (style % 4 == 0)
		event.stack = MW_STACK_NONE;
	if (style % 8 == 0)
		event.size = MW_SIZE_UNKNOWN;
	return event;
}

struct compared {
	const struct mw_event *events;
	size_t at, count;
};

static struct mw_error *compare(void *context, uint32_t process, const struct mw_event *events, size_t count)
{
	struct compared *compared = context;

	assert_int_equal(process, 0);
	assert_true(count <= compared->count - compared->at);
	for (size_t i = 0; i < count; i++, compared->at++) {
		const struct mw_event *event = &events[i], *expected = &compared->events[compared->at];

		assert_int_equal(event->time_ns, expected->time_ns);
		assert_int_equal(event->addr, expected->addr);
		assert_int_equal(event->size, expected->size);
		assert_int_equal(event->stack, expected->stack);
		assert_int_equal(event->thread, expected->thread);
		assert_int_equal(event->type, expected->type);
		assert_int_equal(event->kind, expected->kind);
		assert_int_equal(event->interval, expected->interval);
		assert_int_equal(event->unsampled, expected->unsampled);
	}
	return NULL;
}

static void write_random(const char *path, const struct mw_event *events, size_t count)
{
	const struct mw_raw_stack stack = {.hook = 1};
	struct mw_store_writer *writer;
	struct mw_event_sink sink;
	struct rig_inner inner;
	uint32_t number;
	uint16_t interval;

	rig_inner_init(&inner);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_good(mw_store_sink(writer, 0, &inner.sink, &sink));
	for (uint32_t i = 0; i < THREADS; i++)
		rig_good(sink.thread(sink.context, 1, "t", true, &number));
	for (uint32_t i = 0; i < STACKS; i++)
		rig_good(sink.stack(sink.context, &stack, &number));
	for (uint16_t i = 1; i <= MW_INTERVAL_MAX; i++)
		rig_good(sink.interval(sink.context, i, &interval));
	rig_good(sink.interval(sink.context, 7, &interval)); /* told once */
	for (size_t i = 0; i < count;) {
		size_t some_of = 1 + some() % 3000;

		some_of = some_of < count - i ? some_of : count - i;
		rig_good(sink.events(sink.context, events + i, some_of));
		i += some_of;
		if (some() % 64 == 0)
			mw_store_flush(writer);
	}
	assert_int_equal(inner.events, count);
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
}

static void test_random_events_come_back(void **state)
{
	static const size_t counts[] = {1, 2, 3, 1023, 1024, 1025, 16383, 16384, 16385, 100000};
	char *path = strdup(rig_path("random.mw"));
	struct mw_event *events = malloc(100000 * sizeof(*events));

	(void)state;
	seed = 4711;
	for (uint64_t style = 0; style < 8; style++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			struct compared compared = {.events = events, .count = counts[i]};
			const struct mw_store_visitor visitor = {.context = &compared, .events = compare};
			struct mw_store_reader *reader;
			struct mw_store_state read;

			for (size_t j = 0; j < counts[i]; j++)
				events[j] = make_event(style);
			write_random(path, events, counts[i]);
			rig_good(mw_store_open(path, &reader));
			rig_good(mw_store_read(reader, &visitor, &read));
			assert_false(read.cut);
			assert_int_equal(compared.at, counts[i]);
			/* Again, from the beginning. */
			compared.at = 0;
			rig_good(mw_store_read(reader, &visitor, &read));
			assert_int_equal(compared.at, counts[i]);
			mw_store_close(reader);
		}
	}
	free(events);
	free(path);
}

struct parts {
	uint64_t before, after, settles;
};

static struct mw_error *count_events(void *context, uint32_t process, const struct mw_event *events, size_t count)
{
	struct parts *parts = context;

	assert_int_equal(process, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(events[i].time_ns, parts->before + parts->after + i);
	*(parts->settles ? &parts->after : &parts->before) += count;
	return NULL;
}

static struct mw_error *begin_after(void *context, uint32_t process)
{
	struct parts *parts = context;

	assert_int_equal(process, 0);
	parts->settles++;
	return NULL;
}

static void write_settled(const char *path, uint64_t before, uint64_t after)
{
	struct mw_store_writer *writer;
	struct mw_event_sink sink;
	struct rig_inner inner;
	uint32_t number;

	rig_inner_init(&inner);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_good(mw_store_sink(writer, 0, &inner.sink, &sink));
	rig_good(sink.thread(sink.context, 1, "t", true, &number));
	for (uint64_t i = 0; i < before + after; i++) {
		const struct mw_event event = {.time_ns = i,
					       .addr = 16 * i,
					       .size = MW_SIZE_UNKNOWN,
					       .stack = MW_STACK_NONE,
					       .type = MW_EVENT_FREE};

		if (i >= before)
			MW_STORE_TELL(writer, settle, 0);
		rig_good(sink.event(sink.context, &event));
	}
	assert_int_equal(inner.events, before + after);
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
}

/* Events of the settling time come apart, and who does not ask for them gets none. */
static void test_settled_events(void **state)
{
	static const uint64_t counts[][2] = {{1, 1}, {100, 40000}, {20000, 3}, {0, 5}, {7, 0}};
	char *path = strdup(rig_path("settled.mw"));

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct parts parts = {0}, window = {0};
		const struct mw_store_visitor both = {.context = &parts, .events = count_events, .settle = begin_after};
		const struct mw_store_visitor older = {.context = &window, .events = count_events};
		struct mw_store_reader *reader;
		struct mw_store_state read;

		write_settled(path, counts[i][0], counts[i][1]);
		rig_good(mw_store_open(path, &reader));
		rig_good(mw_store_read(reader, &both, &read));
		assert_false(read.cut);
		assert_int_equal(parts.before, counts[i][0]);
		assert_int_equal(parts.after, counts[i][1]);
		assert_int_equal(parts.settles, (counts[i][1] + MW_STORE_EVENTS_MAX - 1) / MW_STORE_EVENTS_MAX);
		rig_good(mw_store_read(reader, &older, &read));
		assert_false(read.cut);
		assert_int_equal(window.before, counts[i][0]);
		mw_store_close(reader);
	}
	free(path);
}

/* The inner sink numbers stacks of its own in between, and one of them is asked for later. */
static void test_numbers_left_out(void **state)
{
	const struct mw_raw_frame frame = {0x1000, 2};
	const struct mw_raw_stack stack = {&frame, 1, MW_STACK_COMPLETE, 0, MW_KIND_HEAP};
	char *path = strdup(rig_path("gaps.mw"));
	struct mw_store_writer *writer;
	struct mw_store_state read;
	struct mw_event_sink sink;
	struct rig_inner inner;
	struct rig_told told;
	uint32_t number;

	(void)state;
	rig_inner_init(&inner);
	rig_told_init(&told);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_good(mw_store_sink(writer, 0, &inner.sink, &sink));
	assert_true(sink.knows(sink.context, 0x1234));
	inner.give_thread = 1;
	rig_good(sink.thread(sink.context, 10, "late", true, &number));
	inner.give_thread = 1;
	rig_good(sink.thread(sink.context, 10, "late", false, &number));
	inner.give_thread = 1;
	rig_good(sink.thread(sink.context, 10, NULL, false, &number));
	inner.give_thread = 1;
	rig_good(sink.thread(sink.context, 10, "later", false, &number));
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t given[] = {0, 3, 3, 1};

		inner.give_stack = given[i];
		rig_good(sink.stack(sink.context, &stack, &number));
		assert_int_equal(number, given[i]);
	}
	rig_good(sink.event(sink.context, &(struct mw_event){.stack = 1, .thread = 1}));
	rig_good(mw_store_finish(writer));
	rig_good(rig_read(path, &told, &read));
	assert_false(read.cut);
	assert_string_equal(told.text, "0 thread 1 10 \"late\"\n0 thread 1 10 \"later\"\n"
				       "0 stack 0 0 0 0 1000@2\n0 stack 3 0 0 0 1000@2\n0 stack 1 0 0 0 1000@2\n"
				       "0 event 0 0 0 0 0 1 1\n");
	mw_store_destroy(writer);
	rig_told_deinit(&told);
	free(path);
}

/* What was mapped before is told before events only where it was told before them. */
static void test_order_of_before(void **state)
{
	char *path = strdup(rig_path("order.mw"));
	struct mw_store_writer *writer;
	struct mw_store_state read;
	struct mw_event_sink sink;
	struct rig_inner inner;
	struct rig_told told;
	uint32_t number;

	(void)state;
	rig_inner_init(&inner);
	rig_told_init(&told);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_good(mw_store_sink(writer, 0, &inner.sink, &sink));
	rig_good(sink.thread(sink.context, 10, NULL, true, &number));
	rig_good(sink.event(sink.context, &(struct mw_event){.stack = MW_STACK_NONE}));
	MW_STORE_TELL(writer, before, 0, 1, 2);
	rig_good(sink.event(sink.context, &(struct mw_event){.stack = MW_STACK_NONE}));
	rig_good(mw_store_finish(writer));
	rig_good(rig_read(path, &told, &read));
	assert_string_equal(told.text, "0 thread 0 10 -\n0 event 0 0 0 0 0 4294967295 0\n0 before 1 2\n"
				       "0 event 0 0 0 0 0 4294967295 0\n");
	mw_store_destroy(writer);
	rig_told_deinit(&told);
	free(path);
}

/* What the inner sink refuses is not recorded. */
static void test_refused(void **state)
{
	char *path = strdup(rig_path("refused.mw"));
	struct mw_store_writer *writer;
	struct mw_store_state read;
	struct mw_event_sink sink;
	struct rig_inner inner;
	struct rig_told told;
	struct mw_error *err;
	uint32_t number;

	(void)state;
	rig_inner_init(&inner);
	rig_told_init(&told);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_good(mw_store_sink(writer, 0, &inner.sink, &sink));
	rig_good(sink.thread(sink.context, 10, NULL, true, &number));
	inner.refuse = true;
	err = sink.event(sink.context, &(struct mw_event){.stack = MW_STACK_NONE});
	assert_non_null(err);
	mw_error_destroy(err);
	err = sink.events(sink.context, &(struct mw_event){.stack = MW_STACK_NONE}, 1);
	assert_non_null(err);
	mw_error_destroy(err);
	rig_good(mw_store_finish(writer));
	rig_good(rig_read(path, &told, &read));
	assert_string_equal(told.text, "0 thread 0 10 -\n");
	mw_store_destroy(writer);
	rig_told_deinit(&told);
	free(path);
}

UNIT_GROUP(round)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_comes_back), cmocka_unit_test(test_random_events_come_back),
		cmocka_unit_test(test_settled_events),        cmocka_unit_test(test_numbers_left_out),
		cmocka_unit_test(test_order_of_before),       cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, rig_cleanup);
}
