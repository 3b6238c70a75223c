// SPDX-License-Identifier: MIT
/* test_replay.c: recordings made by hand, read again over any interval. */
#include "store/format.h"
#include "tape.h"
#include "unit.h"
#include "view/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE ((mw_addr)0x400000)

static const struct tape_process app = {.pid = 77, .base = BASE, .build = 1};

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static struct mw_replay *open_replay(const char *path)
{
	struct mw_replay *replay = NULL;

	good(mw_replay_open(path, NULL, NULL, &replay));
	assert_non_null(replay);
	return replay;
}

static void run(struct mw_replay *replay, uint64_t from_ns, uint64_t to_ns)
{
	good(mw_replay_run(replay, &(struct mw_replay_interval){.from_ns = from_ns, .to_ns = to_ns}));
}

static struct mw_track_totals totals(const struct mw_replay *replay, size_t process, enum mw_kind kind)
{
	struct mw_track_totals out;

	mw_track_totals(mw_replay_watched(replay, process)->track, kind, &out);
	return out;
}

static void assert_amount(struct mw_amount got, uint64_t count, uint64_t bytes)
{
	assert_int_equal(got.count, count);
	assert_int_equal(got.bytes, bytes);
}

/* Blocks of 1, 2, 4 and 8 bytes at 1, 2, 3 and 4 s; the first and third go at 3 and 5 s. */
static const char *four_blocks(const char *name)
{
	const char *path = tape_path(name);
	struct tape tape;
	uint32_t stack;

	tape_open(&tape, path);
	tape_add(&tape, &app);
	stack = tape_stack(&tape, 0, MW_KIND_HEAP, 0x10);
	tape_alloc(&tape, 0, stack, 0x1000, 1, 1 * TAPE_SECOND);
	tape_alloc(&tape, 0, stack, 0x2000, 2, 2 * TAPE_SECOND);
	tape_free(&tape, 0, 0x1000, 3 * TAPE_SECOND);
	tape_alloc(&tape, 0, stack, 0x3000, 4, 3 * TAPE_SECOND);
	tape_alloc(&tape, 0, stack, 0x4000, 8, 4 * TAPE_SECOND);
	tape_free(&tape, 0, 0x3000, 5 * TAPE_SECOND);
	tape_end(&tape, 0, 6 * TAPE_SECOND);
	tape_close(&tape);
	return path;
}

/* What happens when the interval begins is in it, what happens when it ends is not. */
static void test_borders(void **state)
{
	struct mw_replay *replay = open_replay(four_blocks("borders.mw"));
	struct mw_track_totals heap;

	(void)state;
	assert_int_equal(mw_replay_count(replay), 1);
	run(replay, 0, MW_REPLAY_END);
	heap = totals(replay, 0, MW_KIND_HEAP);
	assert_amount(heap.size, 4, 15);
	assert_amount(heap.impacting, 2, 10);
	assert_amount(heap.transient, 2, 5);
	run(replay, 3 * TAPE_SECOND, 4 * TAPE_SECOND);
	heap = totals(replay, 0, MW_KIND_HEAP);
	assert_amount(heap.size, 1, 4);
	assert_amount(heap.impacting, 1, 4);
	assert_amount(heap.aofi, 1, 1);
	assert_amount(heap.aofo, 1, 2);
	run(replay, 3 * TAPE_SECOND + 1, 4 * TAPE_SECOND + 1);
	heap = totals(replay, 0, MW_KIND_HEAP);
	assert_amount(heap.size, 1, 8);
	assert_amount(heap.aofi, 0, 0);
	assert_amount(heap.aofo, 2, 6);
	/* Nothing comes any more: the interval begins for all that. */
	run(replay, 5 * TAPE_SECOND + 1, MW_REPLAY_END);
	heap = totals(replay, 0, MW_KIND_HEAP);
	assert_amount(heap.size, 0, 0);
	assert_amount(heap.aofo, 2, 10);
	run(replay, 60 * TAPE_SECOND, 70 * TAPE_SECOND);
	assert_amount(totals(replay, 0, MW_KIND_HEAP).aofo, 2, 10);
	/* And none before that. */
	run(replay, 0, 1);
	heap = totals(replay, 0, MW_KIND_HEAP);
	assert_amount(heap.size, 0, 0);
	assert_amount(heap.aofo, 0, 0);
	run(replay, 0, MW_REPLAY_END);
	assert_amount(totals(replay, 0, MW_KIND_HEAP).size, 4, 15);
	mw_replay_close(replay);
}

static void test_input(void **state)
{
	struct mw_replay *replay = open_replay(four_blocks("input.mw"));
	struct mw_summary_input input;
	struct mw_report *report = NULL;

	(void)state;
	run(replay, 2 * TAPE_SECOND, 5 * TAPE_SECOND);
	mw_watched_input(mw_replay_watched(replay, 0), &input);
	input.from_ns = 2 * TAPE_SECOND;
	input.to_ns = 5 * TAPE_SECOND;
	good(mw_summary_create(&input, &report));
	assert_int_equal(report->target.pid, 77);
	assert_string_equal(report->target.exe, "/bin/app");
	assert_string_equal(report->engine.name, "jump");
	assert_float_equal(report->window.seconds, 6, 1e-9);
	assert_float_equal(report->window.from, 2, 1e-9);
	assert_float_equal(report->window.to, 5, 1e-9);
	assert_int_equal(report->window.ended, MW_END_DURATION);
	assert_int_equal(report->stack_count, 1);
	assert_int_equal(report->stacks[0].impacting.bytes, 14);
	assert_string_equal(report->stacks[0].api, "malloc");
	assert_string_equal(report->stacks[0].frames[0].module, "/bin/app");
	mw_report_destroy(report);
	mw_replay_close(replay);
}

/* The first highest moment, of heap and vm together. */
/* What is freed after the window counts where the interval ends with it, and only there. */
static void test_settled(void **state)
{
	const char *path = tape_path("settled.mw");
	struct mw_replay *replay;
	struct tape tape;
	uint32_t stack;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	stack = tape_stack(&tape, 0, MW_KIND_HEAP, 0x10);
	tape_alloc(&tape, 0, stack, 0x1000, 1, 1 * TAPE_SECOND);
	tape_alloc(&tape, 0, stack, 0x2000, 2, 2 * TAPE_SECOND);
	tape_alloc(&tape, 0, stack, 0x3000, 4, 3 * TAPE_SECOND);
	MW_STORE_TELL(tape.writer, settle, 0);
	good(mw_track_settle(tape.processes[0].track));
	tape_free(&tape, 0, 0x1000, 11 * TAPE_SECOND);
	tape_free(&tape, 0, 0x3000, 12 * TAPE_SECOND);
	tape_free(&tape, 0, 0x3000, 13 * TAPE_SECOND);
	tape_end(&tape, 0, 10 * TAPE_SECOND);
	tape_close(&tape);
	replay = open_replay(path);
	for (uint64_t from = 0; from <= 2; from++) {
		uint64_t ends[] = {MW_REPLAY_END, 10 * TAPE_SECOND, 99 * TAPE_SECOND};

		for (size_t i = 0; i < 3; i++) {
			run(replay, from * TAPE_SECOND, ends[i]);
			assert_amount(totals(replay, 0, MW_KIND_HEAP).settled_later, from < 2 ? 2 : 1,
				      from < 2 ? 5 : 4);
			assert_amount(totals(replay, 0, MW_KIND_HEAP).impacting, from < 2 ? 3 : 2, from < 2 ? 7 : 6);
		}
	}
	/* The interval begins after all events. */
	run(replay, 5 * TAPE_SECOND, MW_REPLAY_END);
	assert_amount(totals(replay, 0, MW_KIND_HEAP).settled_later, 0, 0);
	assert_amount(totals(replay, 0, MW_KIND_HEAP).aofo, 3, 7);
	run(replay, 0, 9 * TAPE_SECOND);
	assert_amount(totals(replay, 0, MW_KIND_HEAP).settled_later, 0, 0);
	assert_amount(totals(replay, 0, MW_KIND_HEAP).impacting, 3, 7);
	assert_int_equal(mw_replay_watched(replay, 0)->metadata.last_ns, 3 * TAPE_SECOND);
	mw_replay_close(replay);
}

static void test_peak(void **state)
{
	const char *path = tape_path("peak.mw");
	const struct mw_replay_interval whole = {.to_ns = MW_REPLAY_END},
					late = {.from_ns = 450, .to_ns = MW_REPLAY_END}, early = {.to_ns = 300};
	struct mw_replay *replay;
	struct tape tape;
	uint64_t at_ns = 0;
	uint32_t heap, vm;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	heap = tape_stack(&tape, 0, MW_KIND_HEAP, 0x10);
	vm = tape_stack(&tape, 0, MW_KIND_VM, 0x20);
	tape_alloc(&tape, 0, heap, 0x1000, 100, 100);
	tape_event(&tape, 0, (struct mw_event){200, 0x100000, 4096, vm, 0, MW_EVENT_MAP, MW_KIND_VM, 0, false});
	tape_alloc(&tape, 0, heap, 0x2000, 50, 300); /* 4246 */
	tape_free(&tape, 0, 0x1000, 400);
	tape_alloc(&tape, 0, heap, 0x3000, 100, 500); /* 4246 again */
	tape_free(&tape, 0, 0x3000, 600);
	tape_end(&tape, 0, 1000);
	tape_close(&tape);
	replay = open_replay(path);
	good(mw_replay_peak(replay, &whole, 0, &at_ns));
	assert_int_equal(at_ns, 300);
	good(mw_replay_peak(replay, &late, 0, &at_ns));
	assert_int_equal(at_ns, 500);
	good(mw_replay_peak(replay, &early, 0, &at_ns));
	assert_int_equal(at_ns, 200);
	run(replay, 0, 301);
	assert_int_equal(
		totals(replay, 0, MW_KIND_HEAP).impacting.bytes + totals(replay, 0, MW_KIND_VM).impacting.bytes, 4246);
	mw_replay_close(replay);
}

/* The tracker makes stacks of its own for events that have none: other numbers than in the live run are given. */
static void test_numbers_of_stacks(void **state)
{
	const char *path = tape_path("numbers.mw");
	uint32_t stacks[3];
	struct mw_replay *replay;
	struct tape tape;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	for (uint32_t i = 0; i < 3; i++) {
		mw_addr at = 0x1000 * (i + 1);

		tape_alloc(&tape, 0, MW_STACK_NONE, at, 7, i + 1);
		stacks[i] = tape_stack(&tape, 0, MW_KIND_HEAP, 0x10 * (i + 1));
		tape_alloc(&tape, 0, stacks[i], at + 0x100, 10 + i, i + 1);
	}
	assert_int_not_equal(stacks[1], 1);
	tape_end(&tape, 0, 100);
	tape_close(&tape);
	replay = open_replay(path);
	for (int again = 0; again < 2; again++) {
		const struct mw_track *track;
		uint64_t found = 0;

		run(replay, again ? 2 : 0, MW_REPLAY_END);
		track = mw_replay_watched(replay, 0)->track;
		assert_int_equal(mw_track_stack_count(track), 4);
		for (uint32_t i = 0; i < 4; i++) {
			struct mw_raw_frame frame = {0};
			struct mw_track_stack stack;

			mw_track_stack(track, i, &stack);
			if (!mw_track_frames(track, i, &frame, 1)) {
				assert_amount(stack.totals.size, again ? 2 : 3, again ? 14 : 21);
				continue;
			}
			assert_int_equal(stack.totals.size.bytes,
					 again && frame.addr == BASE + 0x10 ? 0 : 10 + (frame.addr - BASE) / 0x10 - 1);
			found |= UINT64_C(1) << (frame.addr - BASE) / 0x10;
		}
		assert_int_equal(found, 0xe);
	}
	mw_replay_close(replay);
}

struct begun {
	unsigned times[2];
	struct mw_track_totals before[2];
};

static void on_begin(void *context, size_t process, struct mw_track *track)
{
	struct begun *begun = context;

	begun->times[process]++;
	mw_track_totals(track, MW_KIND_HEAP, &begun->before[process]);
}

static void test_two_processes(void **state)
{
	const char *path = tape_path("two.mw");
	const struct tape_process other = {.pid = 78, .base = BASE, .build = 1};
	struct begun begun = {0};
	struct mw_replay_interval interval = {.to_ns = 2000, .begin = on_begin, .context = &begun};
	struct mw_replay *replay;
	struct tape tape;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	tape_add(&tape, &other);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t stack = tape_stack(&tape, i, MW_KIND_HEAP, 0x10);

		/* The second ends early. */
		for (uint64_t time = 1; time <= (i ? 500 : 3000); time += 100)
			tape_alloc(&tape, i, stack, 0x1000 + time * 16, i + 1, time);
	}
	tape_end(&tape, 0, 3000);
	tape_end(&tape, 1, 700);
	tape_close(&tape);
	replay = open_replay(path);
	assert_int_equal(mw_replay_count(replay), 2);
	assert_int_equal(mw_metadata_length(&mw_replay_watched(replay, 0)->metadata), 3000);
	assert_int_equal(mw_metadata_length(&mw_replay_watched(replay, 1)->metadata), 700);
	good(mw_replay_run(replay, &interval));
	assert_amount(totals(replay, 0, MW_KIND_HEAP).size, 20, 20);
	assert_amount(totals(replay, 1, MW_KIND_HEAP).size, 5, 10);
	interval.from_ns = 1000;
	good(mw_replay_run(replay, &interval));
	assert_amount(totals(replay, 0, MW_KIND_HEAP).size, 10, 10);
	assert_amount(totals(replay, 1, MW_KIND_HEAP).size, 0, 0);
	assert_amount(totals(replay, 1, MW_KIND_HEAP).aofo, 5, 10);
	/* Once each run; nothing of the interval has been fed then. */
	assert_int_equal(begun.times[0], 2);
	assert_int_equal(begun.times[1], 2);
	assert_amount(begun.before[0].aofo, 10, 10);
	assert_amount(begun.before[0].size, 0, 0);
	mw_replay_close(replay);
}

/* A mapping from before the window is of known size when it goes. */
static void test_before(void **state)
{
	const char *path = tape_path("before.mw");
	struct mw_replay *replay;
	struct tape tape;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	MW_STORE_TELL(tape.writer, before, 0, 0x100000, 0x104000);
	for (uint64_t i = 0; i < 2; i++) {
		tape_event(&tape, 0,
			   (struct mw_event){10 + 20 * i, 0x100000 + 0x1000 * i, 0x1000,
					     tape_stack(&tape, 0, MW_KIND_VM, 0x20), 0, MW_EVENT_UNMAP_BEGIN,
					     MW_KIND_VM, 0, false});
		tape_event(&tape, 0,
			   (struct mw_event){11 + 20 * i, 0x100000 + 0x1000 * i, 0x1000, MW_STACK_NONE, 0,
					     MW_EVENT_UNMAP_END, MW_KIND_VM, 0, false});
	}
	tape_end(&tape, 0, 100);
	tape_close(&tape);
	replay = open_replay(path);
	run(replay, 0, MW_REPLAY_END);
	assert_amount(totals(replay, 0, MW_KIND_VM).aofi, 2, 0x2000);
	/* A call that has begun before the interval ends inside. */
	run(replay, 11, 31);
	assert_amount(totals(replay, 0, MW_KIND_VM).aofi, 1, 0x1000);
	mw_replay_close(replay);
}

/* A piece of an older mapping goes: no block does yet, but its stack is not left out of the report. */
static void test_piece(void **state)
{
	const char *path = tape_path("piece.mw");
	struct mw_summary_input input;
	struct mw_report *report = NULL;
	struct mw_replay *replay;
	struct tape tape;
	uint32_t stack;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	stack = tape_stack(&tape, 0, MW_KIND_VM, 0x20);
	tape_event(&tape, 0, (struct mw_event){10, 0x100000, 0x3000, stack, 0, MW_EVENT_MAP, MW_KIND_VM, 0, false});
	tape_event(&tape, 0,
		   (struct mw_event){20, 0x100000, 0x1000, stack, 0, MW_EVENT_UNMAP_BEGIN, MW_KIND_VM, 0, false});
	tape_event(&tape, 0,
		   (struct mw_event){21, 0x100000, 0x1000, MW_STACK_NONE, 0, MW_EVENT_UNMAP_END, MW_KIND_VM, 0, false});
	tape_end(&tape, 0, 100);
	tape_close(&tape);
	replay = open_replay(path);
	run(replay, 15, MW_REPLAY_END);
	mw_watched_input(mw_replay_watched(replay, 0), &input);
	input.from_ns = 15;
	good(mw_summary_create(&input, &report));
	assert_amount(report->totals[MW_KIND_VM].aofi, 0, 0x1000);
	assert_int_equal(report->stack_count, 1);
	assert_amount(report->stacks[0].aofi, 0, 0x1000);
	mw_report_destroy(report);
	mw_replay_close(replay);
}

/* --- recordings that were cut off ---------------------------------------------------------------------- */

static void test_cut(void **state)
{
	const char *path = tape_path("cut.mw");
	struct mw_summary_input input;
	struct mw_replay *replay;
	struct tape tape;
	uint32_t stack;

	(void)state;
	tape_open(&tape, path);
	tape_add(&tape, &app);
	stack = tape_stack(&tape, 0, MW_KIND_HEAP, 0x10);
	for (uint64_t i = 0; i < 100; i++) {
		tape_alloc(&tape, 0, stack, 0x1000 + 16 * i, 5, 1000 * i);
		if (i == 60)
			mw_store_flush(tape.writer);
	}
	/* As if it had been killed: what was not flushed is not there, nor is an end. */
	mw_store_destroy(tape.writer);
	mw_track_destroy(tape.processes[0].track);
	replay = open_replay(path);
	assert_true(mw_replay_state(replay)->cut);
	assert_non_null(mw_replay_state(replay)->why);
	run(replay, 0, MW_REPLAY_END);
	assert_in_range(totals(replay, 0, MW_KIND_HEAP).size.count, 61, 100);
	mw_watched_input(mw_replay_watched(replay, 0), &input);
	assert_non_null(input.cut);
	assert_int_equal(input.window->ended, MW_END_LOST);
	assert_int_equal(input.window->length_ns, 1000 * (totals(replay, 0, MW_KIND_HEAP).size.count - 1));
	mw_replay_close(replay);
}

/* Cut at every byte it is read as far as it goes, or refused. */
static void test_cut_anywhere(void **state)
{
	const char *whole = four_blocks("whole.mw"), *part = tape_path("part.mw");
	static char bytes[1 << 16];
	FILE *file = fopen(whole, "rb");
	size_t size = fread(bytes, 1, sizeof(bytes), file);
	uint64_t most = 0;
	size_t refused = 0;

	(void)state;
	(void)fclose(file);
	assert_in_range(size, 100, sizeof(bytes) - 1);
	for (size_t end = 0; end < size; end++) {
		struct mw_replay *replay = NULL;
		struct mw_error *err;
		uint64_t count;

		file = fopen(part, "wb");
		assert_int_equal(fwrite(bytes, 1, end, file), end);
		(void)fclose(file);
		err = mw_replay_open(part, NULL, NULL, &replay);
		if (err) {
			assert_true(strlen(mw_error_text(err)) > 0);
			mw_error_destroy(err);
			refused++;
			continue;
		}
		assert_true(mw_replay_state(replay)->cut);
		run(replay, 0, MW_REPLAY_END);
		count = totals(replay, 0, MW_KIND_HEAP).size.count;
		assert_true(count >= most);
		most = count;
		mw_replay_close(replay);
	}
	assert_int_equal(most, 4);
	assert_in_range(refused, 16, size / 2);
}

static void expect_refusal(const char *path, const char *word)
{
	struct mw_replay *replay = NULL;
	struct mw_error *err = mw_replay_open(path, NULL, NULL, &replay);

	assert_non_null(err);
	assert_null(replay);
	if (!strstr(mw_error_text(err), word))
		fail_msg("no '%s' in: %s", word, mw_error_text(err));
	mw_error_destroy(err);
}

static void test_refused(void **state)
{
	const char *path = tape_path("empty.mw");
	struct tape tape;

	(void)state;
	tape_open(&tape, path);
	tape_close(&tape);
	expect_refusal(path, "empty.mw");
	expect_refusal(tape_path("none.mw"), "none.mw");
	expect_refusal("/proc/self/exe", "/proc/self/exe");
}

struct progress {
	unsigned calls, phases;
	const char *phase;
	uint64_t done;
};

static void on_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
	struct progress *progress = context;

	assert_true(done <= total);
	assert_true(phase && *phase);
	if (!progress->phase || strcmp(phase, progress->phase) != 0) {
		progress->phases++;
		progress->done = 0;
	}
	assert_true(done >= progress->done);
	progress->calls++;
	progress->phase = phase;
	progress->done = done;
}

static void test_progress(void **state)
{
	struct progress progress = {0};
	struct mw_replay *replay = NULL;

	(void)state;
	good(mw_replay_open(four_blocks("progress.mw"), on_progress, &progress, &replay));
	run(replay, 0, MW_REPLAY_END);
	assert_int_equal(progress.phases, 2);
	assert_true(progress.calls >= 2);
	mw_replay_close(replay);
}

/* A block of 1 byte and a mark of the first process, and behind them a block of 2 bytes of each. */
static size_t two_parts(const char *path, uint8_t *bytes, size_t room)
{
	static const struct tape_process second = {.pid = 78, .base = BASE, .build = 2};
	struct tape tape;
	uint32_t stack;
	FILE *file;
	size_t size;

	tape_open(&tape, path);
	tape_add(&tape, &app);
	stack = tape_stack(&tape, 0, MW_KIND_HEAP, 0x10);
	tape_alloc(&tape, 0, stack, 0x1000, 1, 1 * TAPE_SECOND);
	tape_mark(&tape, 0, 1, "one", 1 * TAPE_SECOND);
	mw_store_flush(tape.writer);
	tape_alloc(&tape, 0, stack, 0x2000, 2, 2 * TAPE_SECOND);
	tape_add(&tape, &second);
	tape_alloc(&tape, 1, tape_stack(&tape, 1, MW_KIND_HEAP, 0x20), 0x1000, 2, 2 * TAPE_SECOND);
	tape_end(&tape, 0, 3 * TAPE_SECOND);
	tape_end(&tape, 1, 3 * TAPE_SECOND);
	tape_close(&tape);
	file = fopen(path, "rb");
	assert_non_null(file);
	size = fread(bytes, 1, room, file);
	(void)fclose(file);
	assert_in_range(size, 100, room - 1);
	return size;
}

static void save(const char *path, const char *how, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, how);

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	(void)fclose(file);
}

/* A fact that is damaged ends the recording for its events as well, with the checksum right or not. */
static void test_damaged_fact(void **state)
{
	static uint8_t bytes[1 << 16];
	const char *path = tape_path("damaged.mw");
	size_t size = two_parts(path, bytes, sizeof(bytes)), at = MW_STORE_FILE_HEADER;
	struct mw_replay *replay;
	struct mw_store_chunk chunk;

	(void)state;
	for (;; at += MW_STORE_CHUNK_HEADER + chunk.stored_size) {
		assert_true(at + MW_STORE_CHUNK_HEADER < size);
		assert_true(mw_store_unpack_chunk(bytes + at, &chunk));
		if (chunk.type == MW_STORE_MARKS)
			break;
	}
	chunk.count++; /* of which there is none */
	mw_store_pack_chunk(&chunk, bytes + at + MW_STORE_CHUNK_HEADER, bytes + at);
	save(path, "wb", bytes, size);
	replay = open_replay(path);
	assert_true(mw_replay_state(replay)->cut);
	assert_int_equal(mw_replay_count(replay), 1);
	for (unsigned i = 0; i < 2; i++) {
		run(replay, 0, MW_REPLAY_END);
		assert_int_equal(mw_replay_count(replay), 1);
		assert_true(mw_replay_state(replay)->cut);
		assert_int_equal(mw_replay_state(replay)->good, at);
		assert_amount(totals(replay, 0, MW_KIND_HEAP).size, 1, 1);
	}
	mw_replay_close(replay);
}

/* Looked at while it is written: what comes after the facts were read is not told, wherever that was. */
static void test_grows(void **state)
{
	static uint8_t bytes[1 << 16];
	const char *path = tape_path("grows.mw");
	size_t size = two_parts(path, bytes, sizeof(bytes)), opened = 0;

	(void)state;
	for (size_t end = 1; end < size; end++) {
		struct mw_replay *replay = NULL;
		struct mw_error *err;
		struct mw_track_totals heap;
		struct mw_store_state begun;
		size_t count;

		save(path, "wb", bytes, end);
		err = mw_replay_open(path, NULL, NULL, &replay);
		if (err) {
			mw_error_destroy(err);
			continue;
		}
		opened++;
		count = mw_replay_count(replay);
		begun = *mw_replay_state(replay);
		save(path, "ab", bytes + end, size - end);
		run(replay, 0, MW_REPLAY_END);
		assert_int_equal(mw_replay_count(replay), count);
		assert_true(mw_replay_state(replay)->cut);
		assert_int_equal(mw_replay_state(replay)->good, begun.good);
		/* As if it had not grown. */
		heap = totals(replay, 0, MW_KIND_HEAP);
		mw_replay_close(replay);
		save(path, "wb", bytes, end);
		replay = open_replay(path);
		run(replay, 0, MW_REPLAY_END);
		assert_amount(totals(replay, 0, MW_KIND_HEAP).size, heap.size.count, heap.size.bytes);
		mw_replay_close(replay);
	}
	assert_true(opened > 0);
}

UNIT_GROUP(replay)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_numbers_of_stacks),
		cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_piece),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_damaged_fact),
		cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}
