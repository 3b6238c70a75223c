// SPDX-License-Identifier: MIT
/* test_diff.c: recordings made by hand, compared. */
#include "tape.h"
#include "unit.h"
#include "view/diff.h"
#include "view/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const bool both_kinds[MW_KIND_COUNT] = {[MW_KIND_HEAP] = true, [MW_KIND_VM] = true};
static const bool all_kinds[MW_KIND_COUNT] = {true, true, true};

/* What one process of a recording held at a moment. */
struct shot {
	struct mw_replay *replay;
	struct mw_moments moments;
	struct mw_summary_input summary;
	struct mw_diff_input input;
};

static void fill_input(struct shot *shot, size_t process, const struct mw_moments_held *held)
{
	const struct mw_metadata *metadata = &mw_replay_watched(shot->replay, process)->metadata;

	mw_watched_input(mw_replay_watched(shot->replay, process), &shot->summary);
	shot->input = (struct mw_diff_input){
		.snapshot = {.file = "a.mw",
			     .pid = metadata->target.pid,
			     .tracked = {metadata->target.track_heap, metadata->target.track_vm,
					 metadata->target.track_vm}},
		.summary = &shot->summary,
		.held = held->amounts,
		.spreads = held->spreads,
		.held_count = held->count,
	};
}

static void shot_take(struct shot *shot, const char *path, uint64_t at_ns)
{
	*shot = (struct shot){.replay = NULL};
	assert_null(mw_replay_open(path, NULL, NULL, &shot->replay));
	assert_null(mw_moments_read(shot->replay, 0, at_ns, &shot->moments));
	fill_input(shot, 0, &shot->moments.now[0]);
}

static void shot_deinit(struct shot *shot)
{
	mw_moments_deinit(&shot->moments);
	mw_replay_close(shot->replay);
}

/* What must be so of any comparison: sums, order, nothing empty. */
static void check_always(const struct mw_diff *diff)
{
	struct mw_amount sums[MW_KIND_COUNT][MW_DIFF_SIDES] = {{{0}}};

	for (size_t i = 0; i < diff->stack_count; i++) {
		const struct mw_diff_stack *stack = &diff->stacks[i];
		int64_t change = (int64_t)(stack->held[MW_DIFF_NEW].bytes - stack->held[MW_DIFF_OLD].bytes);

		assert_true(diff->compared[stack->kind]);
		assert_true(stack->held[MW_DIFF_OLD].count || stack->held[MW_DIFF_NEW].count);
		for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
			sums[stack->kind][side].count += stack->held[side].count;
			sums[stack->kind][side].bytes += stack->held[side].bytes;
		}
		if (i) {
			const struct mw_amount *before = diff->stacks[i - 1].held;

			assert_true((int64_t)(before[MW_DIFF_NEW].bytes - before[MW_DIFF_OLD].bytes) >= change);
		}
	}
	assert_memory_equal(sums, diff->totals, sizeof(sums));
}

static struct mw_diff *diff_shots(const struct shot *old, const struct shot *new, const bool kinds[MW_KIND_COUNT])
{
	const struct mw_diff_input inputs[MW_DIFF_SIDES] = {old->input, new->input};
	struct mw_diff *diff = NULL;

	assert_null(mw_diff_create(inputs, kinds, &diff));
	check_always(diff);
	return diff;
}

static struct mw_diff *diff_files(const char *old, const char *new, const bool kinds[MW_KIND_COUNT])
{
	struct shot old_shot, new_shot;
	struct mw_diff *diff;

	shot_take(&old_shot, old, MW_REPLAY_END);
	shot_take(&new_shot, new, MW_REPLAY_END);
	diff = diff_shots(&old_shot, &new_shot, kinds);
	shot_deinit(&old_shot);
	shot_deinit(&new_shot);
	return diff;
}

/* The stack of that offset in the program, or NULL. */
static const struct mw_diff_stack *find(const struct mw_diff *diff, enum mw_kind kind, uint64_t offset)
{
	for (size_t i = 0; i < diff->stack_count; i++)
		if (diff->stacks[i].kind == kind && diff->stacks[i].frames[0].offset == offset)
			return &diff->stacks[i];
	return NULL;
}

static void check_held(const struct mw_diff_stack *stack, uint64_t old_count, uint64_t old_bytes, uint64_t new_count,
		       uint64_t new_bytes)
{
	assert_non_null(stack);
	assert_int_equal(stack->held[MW_DIFF_OLD].count, old_count);
	assert_int_equal(stack->held[MW_DIFF_OLD].bytes, old_bytes);
	assert_int_equal(stack->held[MW_DIFF_NEW].count, new_count);
	assert_int_equal(stack->held[MW_DIFF_NEW].bytes, new_bytes);
}

/* Blocks of `size` bytes from one stack, each at its own address. */
static void tape_blocks(struct tape *tape, uint64_t offset, unsigned count, uint64_t size)
{
	uint32_t stack = tape_stack(tape, 0, MW_KIND_HEAP, offset);

	for (unsigned i = 0; i < count; i++)
		tape_alloc(tape, 0, stack, (offset << 20) + i * 0x1000, size, TAPE_SECOND);
}

static void tape_map(struct tape *tape, enum mw_kind kind, uint64_t offset, mw_addr addr, uint64_t size)
{
	uint32_t stack = tape_stack(tape, 0, kind, offset);

	tape_event(tape, 0, (struct mw_event){TAPE_SECOND, addr, size, stack, 0, MW_EVENT_MAP, kind, 0, false});
}

/* Grown, shrunk, the same, come, gone; in two processes where the program lies elsewhere. */
static void test_exact(void **state)
{
	/* Those of 0x700 to 0x900 have blocks of no bytes: their counts say which grew. */
	const uint64_t order[] = {0x600, 0x100, 0x400, 0x900, 0x800, 0x300, 0x700, 0x200, 0x500};
	const char *old = tape_path("old.mw"), *new = tape_path("new.mw");
	struct mw_diff *diff;
	struct tape tape;

	(void)state;
	tape_open(&tape, old);
	tape_add(&tape, &(struct tape_process){.pid = 10, .base = 0x400000, .build = 1});
	tape_blocks(&tape, 0x100, 10, 50);
	tape_blocks(&tape, 0x200, 3, 100);
	tape_blocks(&tape, 0x300, 2, 8);
	tape_blocks(&tape, 0x500, 4, 1000);
	tape_blocks(&tape, 0x700, 3, 0);
	tape_blocks(&tape, 0x800, 1, 0);
	tape_map(&tape, MW_KIND_VM, 0x600, 0x10000000, 0x1000);
	tape_end(&tape, 0, 5 * TAPE_SECOND);
	tape_close(&tape);
	tape_open(&tape, new);
	tape_add(&tape, &(struct tape_process){.pid = 20, .base = 0x550000, .build = 1});
	tape_map(&tape, MW_KIND_VM, 0x600, 0x20000000, 0x8000);
	tape_map(&tape, MW_KIND_VM_INTERNAL, 0xa00, 0x30000000, 0x21000);
	tape_blocks(&tape, 0x700, 1, 0);
	tape_blocks(&tape, 0x800, 2, 0);
	tape_blocks(&tape, 0x900, 5, 0);
	tape_blocks(&tape, 0x400, 7, 1);
	tape_blocks(&tape, 0x300, 2, 8);
	tape_blocks(&tape, 0x200, 1, 100);
	tape_blocks(&tape, 0x100, 58, 50);
	tape_end(&tape, 0, 5 * TAPE_SECOND);
	tape_close(&tape);

	diff = diff_files(old, new, both_kinds);
	assert_int_equal(diff->stack_count, 9);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(diff->stacks[i].frames[0].offset, order[i]);
	check_held(&diff->stacks[0], 1, 0x1000, 1, 0x8000);
	check_held(&diff->stacks[1], 10, 500, 58, 2900);
	check_held(&diff->stacks[2], 0, 0, 7, 7);
	check_held(&diff->stacks[3], 0, 0, 5, 0);
	check_held(&diff->stacks[5], 2, 16, 2, 16);
	check_held(&diff->stacks[7], 3, 300, 1, 100);
	check_held(&diff->stacks[8], 4, 4000, 0, 0);
	assert_string_equal(diff->stacks[1].api, "malloc");
	assert_string_equal(diff->stacks[0].api, "mmap");
	assert_string_equal(diff->stacks[0].api_module, "/lib/libc.so.6");
	assert_string_equal(diff->stacks[8].frames[0].module, "/bin/app");
	assert_int_equal(diff->totals[MW_KIND_HEAP][MW_DIFF_OLD].bytes, 4816);
	assert_int_equal(diff->totals[MW_KIND_HEAP][MW_DIFF_NEW].bytes, 3023);
	assert_int_equal(diff->snapshots[MW_DIFF_OLD].pid, 10);
	assert_int_equal(diff->snapshots[MW_DIFF_NEW].pid, 20);
	assert_int_equal(diff->rebuilt_count, 0);
	mw_diff_destroy(diff);

	diff = diff_files(old, new, all_kinds);
	assert_int_equal(diff->stack_count, 10);
	check_held(find(diff, MW_KIND_VM_INTERNAL, 0xa00), 0, 0, 1, 0x21000);
	mw_diff_destroy(diff);
	diff = diff_files(new, new, all_kinds);
	for (size_t i = 0; i < diff->stack_count; i++) {
		const struct mw_diff_stack *stack = &diff->stacks[i];

		assert_memory_equal(&stack->held[MW_DIFF_OLD], &stack->held[MW_DIFF_NEW], sizeof(stack->held[0]));
		assert_true(!i || strcmp(diff->stacks[i - 1].id, stack->id) < 0);
	}
	mw_diff_destroy(diff);
	mw_diff_destroy(NULL);
}

static void tape_simple(const char *path, uint8_t build, bool no_vm, const char *function)
{
	struct tape tape;

	tape_open(&tape, path);
	tape_add(&tape,
		 &(struct tape_process){.pid = 1, .base = 0x400000 * (mw_addr)build, .build = build, .no_vm = no_vm});
	tape_blocks(&tape, 0x100, 1, 10);
	if (!no_vm)
		tape_map(&tape, MW_KIND_VM, 0x600, 0x10000000, 0x1000);
	if (function)
		tape_symbol(&tape, 0, 0x100, function);
	tape_end(&tape, 0, 5 * TAPE_SECOND);
	tape_close(&tape);
}

/* Names come from the newer recording, and where it has none from the older. */
static void test_names(void **state)
{
	static const struct {
		const char *old, *new, *shown;
	} cases[] = {
		{"older", "newer", "newer"}, {"older", NULL, "older"}, {NULL, "newer", "newer"}, {NULL, NULL, NULL}};
	const char *old = tape_path("old.mw"), *new = tape_path("new.mw");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mw_report_frame *frame;
		struct mw_diff *diff;

		tape_simple(old, 1, true, cases[i].old);
		tape_simple(new, 1, true, cases[i].new);
		diff = diff_files(old, new, both_kinds);
		assert_int_equal(diff->stack_count, 1);
		assert_int_equal(diff->stacks[0].frame_count, 1);
		frame = &diff->stacks[0].frames[0];
		if (cases[i].shown) {
			assert_string_equal(frame->function, cases[i].shown);
			assert_string_equal(frame->file, "/src/app.c");
			assert_int_equal(frame->line, 7);
		} else {
			assert_null(frame->function);
		}
		mw_diff_destroy(diff);
	}
}

/* A new build has new stacks, and says so; a kind that one side lacks is not compared. */
static void test_unlike(void **state)
{
	const char *old = tape_path("old.mw"), *new = tape_path("new.mw");
	struct mw_diff *diff;

	(void)state;
	tape_simple(old, 1, true, NULL);
	tape_simple(new, 2, false, NULL);
	diff = diff_files(old, new, all_kinds);
	assert_int_equal(diff->stack_count, 2);
	assert_int_equal(diff->rebuilt_count, 1);
	assert_string_equal(diff->rebuilt[0], "/bin/app");
	assert_true(diff->compared[MW_KIND_HEAP]);
	assert_false(diff->compared[MW_KIND_VM]);
	assert_false(diff->compared[MW_KIND_VM_INTERNAL]);
	assert_int_equal(diff->totals[MW_KIND_VM][MW_DIFF_NEW].bytes, 0);
	mw_diff_destroy(diff);
}

/* Sizes that only a liar tells: the order holds for all 64 bits. */
static void test_huge(void **state)
{
	const char *old = tape_path("old.mw"), *new = tape_path("new.mw");
	const uint64_t huge = UINT64_C(1) << 63;
	struct shot shots[MW_DIFF_SIDES];
	struct mw_diff *diff = NULL;
	struct tape tape;

	(void)state;
	tape_open(&tape, old);
	tape_add(&tape, &(struct tape_process){.pid = 1, .base = 0x400000, .build = 1});
	tape_blocks(&tape, 0x300, 1, huge + 9);
	tape_close(&tape);
	tape_open(&tape, new);
	tape_add(&tape, &(struct tape_process){.pid = 1, .base = 0x400000, .build = 1});
	tape_blocks(&tape, 0x200, 1, 5);
	tape_blocks(&tape, 0x100, 1, huge + 7);
	tape_close(&tape);
	shot_take(&shots[MW_DIFF_OLD], old, MW_REPLAY_END);
	shot_take(&shots[MW_DIFF_NEW], new, MW_REPLAY_END);
	assert_null(mw_diff_create((const struct mw_diff_input[]){shots[0].input, shots[1].input}, both_kinds, &diff));
	assert_int_equal(diff->stack_count, 3);
	assert_int_equal(diff->stacks[0].frames[0].offset, 0x100);
	assert_int_equal(diff->stacks[1].frames[0].offset, 0x200);
	assert_int_equal(diff->stacks[2].frames[0].offset, 0x300);
	check_held(&diff->stacks[2], 1, huge + 9, 0, 0);
	mw_diff_destroy(diff);
	shot_deinit(&shots[0]);
	shot_deinit(&shots[1]);
}

/* --- against a count by hand --------------------------------------------------------------------------- */

#define CELLS  24U
#define PAGES  32U
#define STACKS 6U
#define EVENTS 400U
#define PAGE   UINT64_C(0x1000)
#define SPACE  UINT64_C(0x40000000)
#define NOBODY UINT32_MAX

/* All that is needed to count what is there at any moment: who owns what. */
struct world {
	struct {
		bool live;
		uint32_t stack;
		uint64_t size;
	} cells[CELLS];
	uint32_t pages[PAGES]; /* number of the mapping, or NOBODY */
	uint32_t mappings[EVENTS];
	uint32_t mapping_count;
};

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % limit;
}

/* What a list of raw events, up to a moment, leaves in the world. Of pairs only the END does anything. */
static void play(const struct mw_event *events, size_t count, uint64_t at_ns, const uint32_t stacks[2 * STACKS],
		 struct world *world)
{
	mw_addr moving = 0;

	*world = (struct world){.mapping_count = 0};
	memset(world->pages, 0xff, sizeof(world->pages));
	for (size_t i = 0; i < count && events[i].time_ns < at_ns; i++) {
		const struct mw_event *event = &events[i];
		size_t first = (event->addr - SPACE) / PAGE, cell = event->addr / 0x1000;
		uint32_t stack = 0;

		while (stack < 2 * STACKS && stacks[stack] != event->stack)
			stack++;
		switch (event->type) {
		case MW_EVENT_REALLOC_BEGIN:
			moving = event->addr;
			break;
		case MW_EVENT_REALLOC_END:
			world->cells[moving / 0x1000].live = false;
			world->cells[cell].live = true;
			world->cells[cell].stack = stack;
			world->cells[cell].size = event->size;
			break;
		case MW_EVENT_ALLOC:
			world->cells[cell].live = true;
			world->cells[cell].stack = stack;
			world->cells[cell].size = event->size;
			break;
		case MW_EVENT_FREE:
			world->cells[cell].live = false;
			break;
		case MW_EVENT_MAP:
			world->mappings[world->mapping_count] = stack;
			for (size_t page = 0; page < event->size / PAGE; page++)
				world->pages[first + page] = world->mapping_count;
			world->mapping_count++;
			break;
		case MW_EVENT_UNMAP_END:
			for (size_t page = 0; page < event->size / PAGE; page++)
				world->pages[first + page] = NOBODY;
			break;
		default:
			break;
		}
	}
}

static void count_world(const struct world *world, struct mw_amount out[2 * STACKS])
{
	bool counted[EVENTS] = {false};

	memset(out, 0, 2 * STACKS * sizeof(*out));
	for (unsigned i = 0; i < CELLS; i++) {
		if (!world->cells[i].live)
			continue;
		out[world->cells[i].stack].count++;
		out[world->cells[i].stack].bytes += world->cells[i].size;
	}
	for (unsigned i = 0; i < PAGES; i++) {
		uint32_t mapping = world->pages[i];

		if (mapping == NOBODY)
			continue;
		out[world->mappings[mapping]].count += !counted[mapping];
		out[world->mappings[mapping]].bytes += PAGE;
		counted[mapping] = true;
	}
}

/* One or two events that make sense together; returns how many. */
static size_t make_events(uint64_t *seed, const uint32_t stacks[2 * STACKS], uint64_t *time_ns, struct mw_event *out)
{
	uint32_t heap = stacks[random_below(seed, STACKS)], vm = stacks[STACKS + random_below(seed, STACKS)];
	mw_addr cell = 0x1000 * (1 + random_below(seed, CELLS - 1)),
		other = 0x1000 * (1 + random_below(seed, CELLS - 1));
	uint64_t first = random_below(seed, PAGES), size = PAGE * (1 + random_below(seed, PAGES - first));
	uint64_t later = *time_ns + random_below(seed, 3), bytes = random_below(seed, 500);
	bool fails = random_below(seed, 4) == 0;
	size_t count = 2;

	switch (random_below(seed, 6)) {
	case 0:
	case 1:
		out[0] = (struct mw_event){*time_ns, cell, bytes, heap, 0, MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false};
		count = 1;
		break;
	case 2:
		out[0] = (struct mw_event){*time_ns, cell, 16, heap, 0, MW_EVENT_FREE, MW_KIND_HEAP, 0, false};
		count = 1;
		break;
	case 3:
		out[0] = (struct mw_event){*time_ns, cell, 16, heap, 0, MW_EVENT_REALLOC_BEGIN, MW_KIND_HEAP, 0, false};
		out[1] = (struct mw_event){later,        other, bytes,
					   heap,         0,     fails ? MW_EVENT_REALLOC_FAIL : MW_EVENT_REALLOC_END,
					   MW_KIND_HEAP, 0,     false};
		break;
	case 4:
		out[0] = (struct mw_event){*time_ns,     SPACE + first * PAGE, size, vm,   0,
					   MW_EVENT_MAP, MW_KIND_VM,           0,    false};
		count = 1;
		break;
	default:
		out[0] = (struct mw_event){
			*time_ns, SPACE + first * PAGE, size, vm, 0, MW_EVENT_UNMAP_BEGIN, MW_KIND_VM, 0, false};
		out[1] = (struct mw_event){later,      SPACE + first * PAGE,
					   size,       vm,
					   0,          fails ? MW_EVENT_UNMAP_FAIL : MW_EVENT_UNMAP_END,
					   MW_KIND_VM, 0,
					   false};
		break;
	}
	*time_ns = (count == 2 ? later : *time_ns) + random_below(seed, 3);
	return count;
}

static size_t tape_random(const char *path, uint64_t *seed, struct mw_event *events, uint32_t stacks[2 * STACKS])
{
	size_t count = 0, wanted = random_below(seed, EVENTS - 2);
	uint64_t time_ns = 0;
	struct tape tape;

	tape_open(&tape, path);
	tape_add(&tape, &(struct tape_process){.pid = 1, .base = 0x400000, .build = 1});
	for (uint32_t i = 0; i < 2 * STACKS; i++)
		stacks[i] = tape_stack(&tape, 0, i < STACKS ? MW_KIND_HEAP : MW_KIND_VM, 0x100 * (i + 1));
	while (count < wanted)
		count += make_events(seed, stacks, &time_ns, &events[count]);
	for (size_t i = 0; i < count; i++)
		tape_event(&tape, 0, events[i]);
	tape_end(&tape, 0, time_ns + 1);
	tape_close(&tape);
	return count;
}

static void check_against(const struct mw_diff *diff, const struct mw_amount old[2 * STACKS],
			  const struct mw_amount new[2 * STACKS])
{
	for (uint32_t i = 0; i < 2 * STACKS; i++) {
		const struct mw_diff_stack *stack = find(diff, i < STACKS ? MW_KIND_HEAP : MW_KIND_VM, 0x100 * (i + 1));

		if (old[i].count || new[i].count)
			check_held(stack, old[i].count, old[i].bytes, new[i].count, new[i].bytes);
		else
			assert_null(stack);
	}
}

/* [0, a] and [0, b] of random recordings, read at once and one by one, against the world that is left at each. */
static void test_random(void **state)
{
	const char *path = tape_path("random.mw");
	static struct mw_event events[EVENTS];
	static struct world world;
	uint64_t seed = 20260705;

	(void)state;
	for (unsigned round = 0; round < 150; round++) {
		struct mw_amount old[2 * STACKS], new[2 * STACKS];
		uint32_t stacks[2 * STACKS];
		size_t count = tape_random(path, &seed, events, stacks);
		uint64_t end = count ? events[count - 1].time_ns + 2 : 2;
		uint64_t b = 1 + random_below(&seed, end), a = random_below(&seed, b);
		struct shot at_a, at_b, once = {.replay = NULL}, then;
		struct mw_diff *diff;

		if (random_below(&seed, 5) == 0)
			b = MW_REPLAY_END;
		play(events, count, a, stacks, &world);
		count_world(&world, old);
		play(events, count, b, stacks, &world);
		count_world(&world, new);

		shot_take(&at_a, path, a);
		shot_take(&at_b, path, b);
		diff = diff_shots(&at_a, &at_b, both_kinds);
		check_against(diff, old, new);
		mw_diff_destroy(diff);
		diff = diff_shots(&at_b, &at_a, both_kinds);
		check_against(diff, new, old);
		mw_diff_destroy(diff);

		assert_null(mw_replay_open(path, NULL, NULL, &once.replay));
		assert_null(mw_moments_read(once.replay, a, b, &once.moments));
		then = once;
		fill_input(&then, 0, &once.moments.then[0]);
		then.input.summary = &then.summary;
		fill_input(&once, 0, &once.moments.now[0]);
		diff = diff_shots(&then, &once, both_kinds);
		check_against(diff, old, new);
		mw_diff_destroy(diff);
		shot_deinit(&at_a);
		shot_deinit(&at_b);
		shot_deinit(&once);
	}
}

/* Blocks of 10 bytes of each stack that a window leaves; 0: none. */
static void tape_window(const char *path, const unsigned counts[6])
{
	struct tape tape;

	tape_open(&tape, path);
	tape_add(&tape, &(struct tape_process){.pid = 1, .base = 0x400000, .build = 1});
	for (unsigned i = 0; i < 6; i++)
		tape_blocks(&tape, 0x100 * (i + 1), counts[i], 10);
	tape_end(&tape, 0, 60 * TAPE_SECOND);
	tape_close(&tape);
}

/* Of two windows, of 10 s and 60 s, in both orders. */
static void test_rates(void **state)
{
	/*                                 steady faster gone new by chance slower */
	static const unsigned in_10[6] = {100, 20, 50, 0, 4, 100}, in_60[6] = {594, 600, 0, 3, 12, 60};
	static const uint64_t order[6] = {0x200, 0x400, 0x100, 0x500, 0x300, 0x600};
	static const uint64_t back[6] = {0x600, 0x300, 0x100, 0x500, 0x400, 0x200};
	static const enum mw_diff_change changes[6] = {MW_DIFF_MORE, MW_DIFF_MORE, MW_DIFF_SAME,
						       MW_DIFF_SAME, MW_DIFF_LESS, MW_DIFF_LESS};
	const char *paths[] = {tape_path("10.mw"), tape_path("60.mw")};

	(void)state;
	tape_window(paths[0], in_10);
	tape_window(paths[1], in_60);
	for (unsigned first = 0; first < 2; first++) {
		struct shot shots[MW_DIFF_SIDES];
		struct mw_diff *diff = NULL;

		for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
			bool is_10 = side == first;

			shot_take(&shots[side], paths[!is_10], MW_REPLAY_END);
			shots[side].input.snapshot.at = is_10 ? 10 : 60;
			shots[side].input.snapshot.started_realtime_ns = is_10 ? 1000 : 2000;
		}
		assert_null(mw_diff_create((const struct mw_diff_input[]){shots[0].input, shots[1].input}, both_kinds,
					   &diff));
		assert_int_equal(diff->basis, MW_DIFF_RATES);
		assert_int_equal(diff->stack_count, 6);
		for (size_t i = 0; i < 6; i++) {
			assert_int_equal(diff->stacks[i].frames[0].offset, (first ? back : order)[i]);
			assert_int_equal(diff->stacks[i].change, changes[i]);
		}
		mw_diff_destroy(diff);
		for (unsigned side = 0; side < MW_DIFF_SIDES; side++)
			shot_deinit(&shots[side]);
	}
}

/* What stands on one base, and which programs are one. */
static void test_basis(void **state)
{
	static const struct {
		pid_t pid;
		int64_t started;
		double at, old_at;
		bool launched, old_launched;
		enum mw_diff_basis basis;
	} cases[] = {
		{1, 5, 9, 3, false, false, MW_DIFF_OUTSTANDING}, /* two moments of a window */
		{1, 6, 9, 3, false, false, MW_DIFF_RATES},       /* two windows of a process */
		{2, 5, 9, 3, false, false, MW_DIFF_RATES},
		{2, 6, 9, 3, true, true, MW_DIFF_OUTSTANDING}, /* both from nothing on */
		{2, 6, 9, 3, true, false, MW_DIFF_RATES},
		{2, 6, 9, 3, false, true, MW_DIFF_RATES},
		{2, 6, 9, 0, false, false, MW_DIFF_OUTSTANDING}, /* nothing has passed */
	};
	static const struct {
		const char *old_exe, *new_exe;
		unsigned old_build, new_build;
		enum mw_diff_program program;
	} programs[] = {
		{"/bin/app", "/bin/app", 1, 1, MW_DIFF_PROGRAM_ONE},
		{"/bin/app", "/bin/app", 1, 2, MW_DIFF_PROGRAM_REBUILT},
		{"/bin/app", "/opt/app", 1, 1, MW_DIFF_PROGRAM_OTHER},
		{"/bin/app", NULL, 1, 1, MW_DIFF_PROGRAM_ONE},
		{"/bin/app", "/bin/app", 0, 1, MW_DIFF_PROGRAM_ONE},
	};
	const char *paths[] = {tape_path("old.mw"), tape_path("new.mw")};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shot old, new;
		struct mw_diff *diff;

		tape_simple(paths[0], 1, false, NULL);
		shot_take(&old, paths[0], MW_REPLAY_END);
		shot_take(&new, paths[0], MW_REPLAY_END);
		old.input.snapshot.pid = 1;
		old.input.snapshot.started_realtime_ns = 5;
		old.input.snapshot.at = cases[i].old_at;
		old.input.snapshot.launched = cases[i].old_launched;
		new.input.snapshot.pid = cases[i].pid;
		new.input.snapshot.started_realtime_ns = cases[i].started;
		new.input.snapshot.at = cases[i].at;
		new.input.snapshot.launched = cases[i].launched;
		diff = diff_shots(&old, &new, both_kinds);
		assert_int_equal(diff->basis, cases[i].basis);
		mw_diff_destroy(diff);
		shot_deinit(&old);
		shot_deinit(&new);
	}
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct shot old, new;
		struct mw_diff *diff;

		tape_simple(paths[0], (uint8_t)programs[i].old_build, false, NULL);
		tape_simple(paths[1], (uint8_t)programs[i].new_build, false, NULL);
		shot_take(&old, paths[0], MW_REPLAY_END);
		shot_take(&new, paths[1], MW_REPLAY_END);
		old.input.snapshot.exe = programs[i].old_exe;
		new.input.snapshot.exe = programs[i].new_exe;
		diff = diff_shots(&old, &new, both_kinds);
		assert_int_equal(diff->program, programs[i].program);
		mw_diff_destroy(diff);
		shot_deinit(&old);
		shot_deinit(&new);
	}
}

UNIT_GROUP(diff)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact), cmocka_unit_test(test_names),  cmocka_unit_test(test_unlike),
		cmocka_unit_test(test_huge),  cmocka_unit_test(test_random), cmocka_unit_test(test_rates),
		cmocka_unit_test(test_basis),
	};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}
