// SPDX-License-Identifier: MIT
/* What a live table says of rows beside their sums: what became of their memory, and whether a filter takes them. */
#include "top/draw.h"
#include "top/view.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define S       UINT64_C(1000000000)
#define SECONDS 10
#define TICKS   1000 /* events of a stack a window */

enum { LEAKS, CHURNS, FILLS, MAPS, INTERNAL, AGAIN, STACKS };

static struct mw_top_known known;
static struct mw_top_stack stacks[STACKS];
static struct mw_view_module modules[] = {{.path = "/opt/bin/one"}, {.path = "/opt/lib/two.so"}};
static struct mw_top_view view;
static struct mw_track *track;

static struct mw_top_named *named(const struct mw_top_stack *stack, const char *id, const char *outer,
				  const char *inner)
{
	struct mw_top_named *made = calloc(1, sizeof(*made) + 2 * sizeof(*made->stack.frames));

	assert_non_null(made);
	made->stack.frames = (void *)(made + 1);
	made->stack.frame_count = 2;
	made->stack.kind = stack->kind;
	made->stack.api = stack->api;
	memcpy(made->stack.id, id, 17);
	made->stack.frames[0] = (struct mw_report_frame){.function = inner, .module = modules[1].path};
	made->stack.frames[1] = (struct mw_report_frame){.function = outer, .module = modules[0].path};
	return made;
}

static void make_known(void)
{
	static const struct {
		enum mw_kind kind;
		uint32_t module, as;
		const char *api;
	} rows[] = {
		[LEAKS] = {MW_KIND_HEAP, 0, 0, "malloc"},         [CHURNS] = {MW_KIND_HEAP, 1, 0, "malloc"},
		[FILLS] = {MW_KIND_HEAP, 1, 0, "calloc"},         [MAPS] = {MW_KIND_VM, MW_MODULE_NONE, 0, "mmap"},
		[INTERNAL] = {MW_KIND_VM_INTERNAL, 1, 0, "mmap"}, [AGAIN] = {MW_KIND_HEAP, 0, LEAKS + 1, "malloc"},
	};

	for (size_t i = 0; i < STACKS; i++) {
		stacks[i].kind = rows[i].kind;
		stacks[i].module = rows[i].module;
		stacks[i].as = rows[i].as;
		stacks[i].api = rows[i].api;
		assert_true(mw_shared_list_add(&known.stacks, &stacks[i]));
	}
	for (size_t i = 0; i < 2; i++)
		assert_true(mw_shared_list_add(&known.modules, &modules[i]));
}

static void name(uint32_t stack, const char *id, const char *outer, const char *inner)
{
	free(atomic_exchange(&stacks[stack].named, named(&stacks[stack], id, outer, inner)));
}

static int begin(void **state)
{
	(void)state;
	view = (struct mw_top_view){.known = &known};
	make_known();
	return 0;
}

static int end(void **state)
{
	(void)state;
	mw_top_view_deinit(&view);
	mw_shared_list_deinit(&known.stacks);
	mw_shared_list_deinit(&known.modules);
	for (size_t i = 0; i < STACKS; i++)
		free(atomic_exchange(&stacks[i].named, NULL));
	mw_track_destroy(track);
	track = NULL;
	return 0;
}

/* --- courses ----------------------------------------------------------------------------------------------- */

static void tell(enum mw_event_type type, uint32_t stack, mw_addr addr, uint64_t time_ns)
{
	const struct mw_event_sink sink = mw_track_sink(track);
	const struct mw_event event = {
		.type = type, .kind = MW_KIND_HEAP, .addr = addr, .size = 100, .stack = stack, .time_ns = time_ns};

	assert_null(sink.event(sink.context, &event));
}

/* Ten seconds of one stack that leaks, by two numbers, one that gives back all, and one that stops after a second. */
static void run_program(uint64_t from_ns)
{
	for (uint64_t i = 1; i < TICKS; i++) {
		uint64_t now_ns = from_ns + i * SECONDS * S / TICKS;
		mw_addr at = from_ns / 1000 + i * 0x100;

		tell(MW_EVENT_ALLOC, i % 2 ? LEAKS : AGAIN, 0x10000000 + at, now_ns);
		tell(MW_EVENT_ALLOC, CHURNS, 0x20000000 + at, now_ns + 1);
		tell(MW_EVENT_FREE, CHURNS, 0x20000000 + at, now_ns + 2);
		if (i < TICKS / SECONDS)
			tell(MW_EVENT_ALLOC, FILLS, 0x30000000 + at, now_ns + 3);
	}
}

static void make_track(void)
{
	struct mw_event_sink sink;
	uint32_t id;

	assert_null(mw_track_create(&track));
	sink = mw_track_sink(track);
	assert_null(sink.thread(sink.context, 1, "one", true, &id));
	for (uint32_t i = 0; i < STACKS; i++) {
		const struct mw_raw_frame frame = {0x1000 + i, 0};
		const struct mw_raw_stack stack = {&frame, 1, MW_STACK_COMPLETE, 0, stacks[i].kind};

		assert_null(sink.stack(sink.context, &stack, &id));
		assert_int_equal(id, i);
	}
}

static struct mw_top_shot *shot(uint64_t zero_ns, uint64_t time_ns, uint32_t zeros)
{
	struct mw_top_shot *made = mw_top_shot_create(STACKS, 2, 5);

	assert_non_null(made);
	made->zero_ns = zero_ns;
	made->time_ns = time_ns;
	made->zeros = zeros;
	for (uint32_t i = 0; i < STACKS; i++)
		made->stacks[i] = (struct mw_track_sum){{1, 1000 - i}, 1, 0};
	return made;
}

static void check_course(const struct mw_top_course *course, enum mw_growth_verdict verdict, const char *bars)
{
	assert_non_null(course);
	assert_true(course->judged);
	assert_string_equal(mw_growth_name(course->verdict), mw_growth_name(verdict));
	assert_string_equal(mw_top_show_bars(course, false).text, bars);
}

static const struct mw_top_course *course_of(uint32_t stack)
{
	const struct mw_top_item item = {.kind = MW_TOP_ROW, .key = stack};

	return mw_top_view_course(&view, &item);
}

static void test_courses(void **state)
{
	const struct mw_top_key keys[] = {{false, LEAKS}, {false, CHURNS}, {false, FILLS}, {true, 1}, {false, 99}};
	struct mw_top_shot *made;

	(void)state;
	make_track();
	run_program(0);
	made = shot(0, SECONDS * S, 0);
	mw_top_courses_fill(track, &known, keys, 5, made);
	assert_int_equal(made->course_count, 5);
	/* Both numbers of the one that leaks are its row's. */
	check_course(&made->courses[0], MW_GROWTH_STEADY, "_.-=+*%#");
	check_course(&made->courses[1], MW_GROWTH_CHURN, "        ");
	check_course(&made->courses[2], MW_GROWTH_PLATEAU, "########");
	/* Of a module there is a level only, that of its stacks. */
	assert_false(made->courses[3].judged);
	assert_int_equal(made->courses[3].bar_count, MW_TOP_BARS);
	assert_int_equal(made->courses[3].bars[7], MW_TOP_BAR_MAX);
	/* That stack is in no row, and of nothing nothing is known. */
	assert_int_equal(made->courses[4].bars[7], 0);

	mw_top_view_shot(&view, made);
	assert_int_equal(course_of(LEAKS)->verdict, MW_GROWTH_STEADY);
	assert_null(course_of(MAPS));
	/* Where there was no time for others they stay … */
	mw_top_view_shot(&view, shot(0, SECONDS * S + 1, 0));
	assert_int_equal(course_of(LEAKS)->verdict, MW_GROWTH_STEADY);
	/* … but not past a zero point. */
	mw_top_view_shot(&view, shot(SECONDS * S, SECONDS * S + 2, 1));
	assert_null(course_of(LEAKS));
}

static void test_courses_since_zero(void **state)
{
	const struct mw_top_key keys[] = {{false, LEAKS}, {false, FILLS}};
	struct mw_top_shot *made;

	(void)state;
	make_track();
	run_program(0);
	assert_null(mw_track_interval(track, SECONDS * S));
	made = shot(SECONDS * S, SECONDS * S + S / 2, 1);
	mw_top_courses_fill(track, &known, keys, 2, made);
	assert_false(made->courses[0].judged);
	assert_int_equal(made->courses[0].bars[7], 0);
	free(made);
	run_program(SECONDS * S);
	made = shot(SECONDS * S, 2 * SECONDS * S, 1);
	mw_top_courses_fill(track, &known, keys, 2, made);
	check_course(&made->courses[0], MW_GROWTH_STEADY, "_.-=+*%#");
	free(made);
}

static void test_no_courses(void **state)
{
	struct mw_top_shot *made;
	const struct mw_top_key key = {false, LEAKS};

	(void)state;
	assert_null(mw_track_create(&track));
	made = shot(0, S, 0);
	/* The tracker knows fewer stacks than there are. */
	mw_top_courses_fill(track, &known, &key, 1, made);
	assert_int_equal(made->course_count, 1);
	assert_int_equal(made->courses[0].bar_count, 0);
	free(made);
}

static void test_bars(void **state)
{
	const struct mw_top_course course = {.bar_count = 3, .bars = {0, 1, 8}};
	(void)state;
	assert_string_equal(mw_top_show_bars(&course, true).text, " ▁█");
	assert_string_equal(mw_top_show_bars(&course, false).text, " _#");
}

/* --- filters ----------------------------------------------------------------------------------------------- */

static void look(void)
{
	struct mw_top_shot *made = shot(0, S, 0);

	made->names[0] = (struct mw_top_thread){11, "main"};
	made->names[1] = (struct mw_top_thread){12, "worker"};
	made->threads[0] = made->threads[1] = (struct mw_track_sum){{1, 5}, 2, 0};
	mw_top_view_shot(&view, made);
}

/* The rows' keys in order, as digits. */
static void check_rows(const char *text, const char *keys)
{
	char found[16] = "";

	assert_null(mw_top_view_filter(&view, text));
	assert_true(mw_top_view_update(&view));
	assert_true(view.rows.count < sizeof(found));
	for (size_t i = 0; i < view.rows.count; i++)
		found[i] = (char)(view.rows.items[i].key == MW_MODULE_NONE ? '-' : '0' + (int)view.rows.items[i].key);
	assert_string_equal(found, keys);
	if (*text)
		assert_string_equal(mw_top_view_filter_text(&view), text);
	else
		assert_null(mw_top_view_filter_text(&view));
}

static void check_refused(const char *text, const char *says)
{
	const char *before = mw_top_view_filter_text(&view);
	struct mw_error *err = mw_top_view_filter(&view, text);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	assert_non_null(strstr(mw_error_text(err), says));
	assert_non_null(mw_error_hint_text(err));
	mw_error_destroy(err);
	assert_ptr_equal(mw_top_view_filter_text(&view), before);
}

static void name_all(void)
{
	name(LEAKS, "00c0ffee00000000", "main", "leak");
	name(CHURNS, "1111111111111111", "serve", "parse");
	name(FILLS, "2222222222222222", "main", "fill");
	name(MAPS, "3333333333333333", "main", "grow");
}

/* Template arguments would fill the line. */
static void test_text(void **state)
{
	const struct mw_top_item item = {.kind = MW_TOP_ROW, .key = LEAKS};
	struct mw_line line = {0};

	(void)state;
	look();
	name(LEAKS, "00c0ffee00c0ffee", "main", "shop::Registry<std::string, std::vector<int> >::add(int)");
	mw_top_view_text(&view, &item, &line);
	assert_string_equal(line.data, "shop::Registry<…>::add(int) < main");
	mw_line_deinit(&line);
}

static void check_text(enum mw_top_item_kind kind, const char *expected)
{
	const struct mw_top_item item = {.kind = kind, .key = LEAKS};
	struct mw_line line = {0};

	mw_top_view_text(&view, &item, &line);
	if (!strstr(line.data, expected))
		fail_msg("%s: %s", expected, line.data);
	mw_line_deinit(&line);
}

/* A script's line, by its file; the interpreter's frames are one. */
static void test_script(void **state)
{
	struct mw_top_named *made;

	(void)state;
	look();
	name(LEAKS, "00c0ffee00c0ffee", "handle", "list_append");
	made = atomic_load(&stacks[LEAKS].named);
	made->stack.frames[0].interprets = true;
	made->stack.frames[1] = (struct mw_report_frame){.function = "handle",
							 .module = "[python]",
							 .file = "/srv/app.py",
							 .line = 41,
							 .language = MW_LANGUAGE_PYTHON};
	made->stack.charged = 1;
	assert_true(mw_top_view_update(&view));
	check_text(MW_TOP_ROW, "handle (app.py:41)");
	check_text(MW_TOP_DETAIL, ", in python, stack 00c0ffee00c0ffee");
	check_text(MW_TOP_FRAME, "#0  (interpreter, 1 frame)");
}

static void test_filter(void **state)
{
	(void)state;
	look();
	name_all();
	check_rows("", "0123");
	check_rows("function:main", "023");
	check_rows("function:~'^(leak|parse)$'", "01");
	check_rows("not function:main", "1");
	check_rows("module:two.so and api:calloc", "2");
	/* By its whole path, and by a bare word of either. */
	check_rows("module:/opt/bin", "0123");
	check_rows("serve", "1");
	check_rows("kind:vm or stack:00c0ff", "03");
	check_rows("function:nowhere", "");
	check_rows("", "0123");
	/* Modules are the sums of what it takes. */
	mw_top_view_group(&view, MW_TOP_MODULES);
	check_rows("function:main", "01-");
	assert_int_equal(view.rows.items[1].key, 1);
	assert_int_equal(view.rows.items[1].impacting.bytes, 1000 - FILLS);
	assert_true(mw_top_view_toggle(&view, true, true));
	view.selected = 1;
	assert_true(mw_top_view_toggle(&view, true, true));
	assert_true(mw_top_view_update(&view));
	for (size_t i = 0; i < view.item_count; i++)
		assert_true(view.items[i].kind != MW_TOP_CHILD || view.items[i].key != CHURNS);
}

static void test_filter_of_threads(void **state)
{
	(void)state;
	look();
	name_all();
	check_rows("function:parse", "1");
	mw_top_view_group(&view, MW_TOP_THREADS);
	assert_null(mw_top_view_filter_text(&view));
	check_rows("thread:work", "1");
	check_rows("thread:11 or thread:12", "01");
	check_rows("not thread:11", "1");
	check_refused("function:parse", "function: is not known");
	check_refused("parse", "is not known of these rows");
	/* The others' has stayed. */
	mw_top_view_group(&view, MW_TOP_STACKS);
	assert_string_equal(mw_top_view_filter_text(&view), "function:parse");
	check_refused("thread:work", "thread: is not known of these rows");
	check_refused("size:>4K", "size: ");
	check_refused("type:transient or leak", "type: ");
	check_refused("nonsense:1", "no such field");
	check_refused("function:", "a value is missing");
}

static void test_filter_awaits_names(void **state)
{
	static struct mw_top_wishes wishes;

	(void)state;
	look();
	name(CHURNS, "1111111111111111", "serve", "parse");
	/* Neither taken nor left out as long as they have no names; these are looked up, of all that are no part of others. */
	check_rows("not function:leak", "1");
	assert_int_equal(view.unnamed, 3);
	view.lines = 10;
	mw_top_view_wishes(&view, &wishes);
	assert_int_equal(wishes.name_count, 3);
	assert_int_equal(wishes.names[0], LEAKS);
	assert_int_equal(wishes.names[2], MAPS);
	/* Of the row that is shown. */
	assert_int_equal(wishes.course_count, 1);
	assert_int_equal(wishes.courses[0].key, CHURNS);
	name_all();
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.unnamed, 0);
	assert_int_equal(view.rows.count, 3);
	mw_top_view_wishes(&view, &wishes);
	assert_int_equal(wishes.name_count, 0);
	assert_int_equal(wishes.course_count, 3);
	/* That can be told without names. */
	free(atomic_exchange(&stacks[FILLS].named, NULL));
	check_rows("api:calloc", "2");
	assert_int_equal(view.unnamed, 0);
}

UNIT_GROUP(rows)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_courses, begin, end),
		cmocka_unit_test_setup_teardown(test_courses_since_zero, begin, end),
		cmocka_unit_test_setup_teardown(test_no_courses, begin, end),
		cmocka_unit_test(test_bars),
		cmocka_unit_test_setup_teardown(test_text, begin, end),
		cmocka_unit_test_setup_teardown(test_script, begin, end),
		cmocka_unit_test_setup_teardown(test_filter, begin, end),
		cmocka_unit_test_setup_teardown(test_filter_of_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_filter_awaits_names, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
