// SPDX-License-Identifier: MIT
/* test_window.c: what comes when a window has ended, with events made up of mappings that this process really makes. */
#include "session/recorder.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE ((size_t)64 * 4096)
#define END  UINT64_C(1000)

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

struct rig {
	struct mw_watched_set set;
	struct mw_emitter emitter;
	struct mw_recorder recorder;
	struct mw_event_sink sink;
	uint32_t thread;
};

/* A window of this process that lasts for END. */
static void begin(struct rig *rig)
{
	struct mw_store_visitor model;
	struct mw_watched *watched;

	rig->set = (struct mw_watched_set){.count = 0};
	rig->emitter = (struct mw_emitter){.process = 0};
	good(mw_watched_set_get(&rig->set, 0, &watched));
	model = mw_watched_set_visitor(&rig->set);
	mw_emitter_add(&rig->emitter, &model);
	mw_recorder_init(&rig->recorder, getpid(), watched, &rig->emitter);
	rig->recorder.end_ns = END;
	rig->sink = mw_recorder_sink(&rig->recorder);
	mw_recorder_look_first(&rig->recorder);
	assert_true(rig->recorder.start.taken);
	good(mw_recorder_before(&rig->recorder));
	good(rig->sink.thread(rig->sink.context, getpid(), "tester", true, &rig->thread));
}

static void end(struct rig *rig)
{
	mw_recorder_deinit(&rig->recorder);
	mw_emitter_deinit(&rig->emitter);
	mw_watched_set_deinit(&rig->set);
}

static mw_addr map(void)
{
	/* Not to be joined with its neighbours. */
	char *guard = mmap(NULL, SIZE + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(guard, MAP_FAILED);
	assert_int_equal(mprotect(guard + 4096, SIZE, PROT_READ | PROT_WRITE), 0);
	return (mw_addr)(uintptr_t)(guard + 4096);
}

static void tell(struct rig *rig, enum mw_event_type type, mw_addr addr, uint64_t time_ns)
{
	const struct mw_event event = {.time_ns = time_ns,
				       .addr = addr,
				       .size = SIZE,
				       .stack = MW_STACK_NONE,
				       .thread = rig->thread,
				       .type = type,
				       .kind = type < MW_EVENT_MAP ? MW_KIND_HEAP : MW_KIND_VM};

	good(rig->sink.events(rig->sink.context, &event, 1));
}

/* Is it in the account of the window's end? */
static bool is_told(const struct rig *rig, mw_addr addr)
{
	for (size_t i = 0; i < rig->recorder.end.moment.count; i++)
		if (rig->recorder.end.moment.mappings[i].start <= addr &&
		    addr < rig->recorder.end.moment.mappings[i].end)
			return true;
	return false;
}

static struct rig *looked_at;
static void (*while_looked_at)(struct rig *rig);

static const struct mw_window_info *get_window(const struct mw_engine *engine, pid_t pid)
{
	static const struct mw_window_info window = {.length_ns = END};

	(void)engine;
	(void)pid;
	return &window;
}

/* What is served while the look goes on, once. */
static struct mw_error *run(struct mw_engine *engine, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	(void)engine;
	(void)deadline_ns;
	(void)interrupt;
	if (while_looked_at)
		while_looked_at(looked_at);
	while_looked_at = NULL;
	return NULL;
}

static void look(struct rig *rig, void (*meanwhile)(struct rig *rig))
{
	static const struct mw_engine_ops ops = {.name = "pretence", .window = get_window, .run = run};
	struct mw_engine engine = {.ops = &ops};

	looked_at = rig;
	while_looked_at = meanwhile;
	good(mw_looks_take(&rig->recorder, 1, &engine));
	assert_null(while_looked_at);
	assert_true(rig->recorder.end.taken);
	good(mw_recorder_finish(&rig->recorder, get_window(&engine, rig->recorder.pid)));
}

/* Events of later than the window's end are none of the window's, whenever they are told. */
static void ends_in_time(void **state)
{
	struct mw_track_totals totals;
	struct rig rig;
	struct mw_event events[3] = {{.time_ns = END, .addr = 0x1000, .size = 8, .type = MW_EVENT_ALLOC},
				     {.time_ns = END + 1, .addr = 0x1000, .type = MW_EVENT_FREE},
				     {.time_ns = END + 2, .addr = 0x2000, .size = 8, .type = MW_EVENT_ALLOC}};

	(void)state;
	begin(&rig);
	for (size_t i = 0; i < 3; i++) {
		events[i].stack = MW_STACK_NONE;
		events[i].thread = rig.thread;
		events[i].kind = MW_KIND_HEAP;
	}
	good(rig.sink.events(rig.sink.context, events, 3));
	good(rig.sink.event(rig.sink.context, &events[2]));
	mw_track_totals(rig.recorder.watched->track, MW_KIND_HEAP, &totals);
	assert_int_equal(totals.size.count, 1);
	assert_int_equal(totals.impacting.count, 1);
	/* Its free began in the window, and ended after that: it is there at the end. */
	tell(&rig, MW_EVENT_REALLOC_BEGIN, 0x1000, END);
	tell(&rig, MW_EVENT_REALLOC_END, 0x3000, END + 1);
	mw_track_totals(rig.recorder.watched->track, MW_KIND_HEAP, &totals);
	assert_int_equal(totals.impacting.bytes, 8);
	end(&rig);
}

static mw_addr in_time, late, unseen;

static void tell_late(struct rig *rig)
{
	tell(rig, MW_EVENT_MAP, late, END + 5);
}

/* What was mapped after the window's end may be there when it is looked at: it is not taken for unattributed, whether
 * its event comes before the look or after it. */
static void leaves_out_what_came_later(void **state)
{
	struct rig rig;

	(void)state;
	for (int told_before = 0; told_before < 2; told_before++) {
		begin(&rig);
		in_time = map();
		late = map();
		unseen = map();
		tell(&rig, MW_EVENT_MAP, in_time, END - 1);
		if (told_before)
			tell_late(&rig);
		look(&rig, told_before ? NULL : tell_late);
		assert_true(is_told(&rig, in_time));
		assert_false(is_told(&rig, late));
		assert_true(is_told(&rig, unseen));
		end(&rig);
	}
}

static void map_anew(struct rig *rig)
{
	tell(rig, MW_EVENT_UNMAP_BEGIN, in_time, END - 2);
	tell(rig, MW_EVENT_UNMAP_END, in_time, END - 1);
	/* By somebody else, and not seen: the hooks have been lifted. */
}

/* A mapping that was there at the look, and went before the window's end by events that were told later: its address
 * was given out again. */
static void follows_an_address(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	in_time = map();
	tell(&rig, MW_EVENT_MAP, in_time, END - 3);
	look(&rig, map_anew);
	assert_false(is_told(&rig, in_time));
	end(&rig);
}

/* What the process had when the window began stays, also where it was mapped over. */
static void keeps_what_was_there(void **state)
{
	struct rig rig;

	(void)state;
	late = map();
	begin(&rig);
	look(&rig, tell_late);
	assert_true(is_told(&rig, late));
	end(&rig);
}

UNIT_GROUP(window)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_in_time),
		cmocka_unit_test(leaves_out_what_came_later),
		cmocka_unit_test(follows_an_address),
		cmocka_unit_test(keeps_what_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
