// SPDX-License-Identifier: MIT
/*
 * test_evicted.c: a cache that is full. Its entries have several blocks each: a few calls allocate those of new entries, and other
 * calls free those of older ones. Their sizes are not known, as jemalloc does not tell them. The figures are those of redis.
 */
#include "unit.h"
#include "view/growth.h"
#include "world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define SECONDS 5.0  /* of the window */
#define RATE    400u /* entries a second */
#define PUT     2000u
#define LONG    10u            /* times the window */
#define OLDER   (LONG * 2400u) /* entries that are there before the window */
#define SLOTS   65536u

#ifdef __SANITIZE_ADDRESS__ /* where each takes ten times as long */
#define SEEDS 4u
#else
#define SEEDS 30u
#endif

#define OBJECT_BYTES 16u
#define KEY_BYTES    11u
#define NODE_BYTES   24u
#define LEAST_VALUE  100u /* bytes */
#define VALUES       150u /* sizes */
#define SPARE        30u  /* bytes more than a value takes, at first */
#define SHORTENED    205u /* bytes: what is smaller is shortened */

/* Who allocates: the parts of an entry, and at last something else. A value is by either of two. */
enum { OBJECT, KEY, NODE, SHORT_VALUE, VALUE, OTHER, PARTS, ENTRY = PARTS };
/* Who frees what is evicted. */
enum { EVICT_OBJECT, EVICT_KEY, EVICT_NODE, EVICT_VALUE, EVICTS };

/* An allocator's slots of one size, which are next to each other. */
struct slots {
	uint64_t bytes;
	mw_addr begin;
	unsigned used, free_count;
	mw_addr free[SLOTS];
};

struct entry {
	mw_addr object, key, node, value;
	unsigned bytes; /* of the value */
};

/* What happens in a window. */
struct course {
	/* How many more entries have been put than evicted, in as many parts of the window. NULL: as many bytes as come are evicted. */
	const int *over;
	unsigned over_count;
	unsigned smaller; /* bytes: so much smaller values are evicted than come, at most */
	int leaks;        /* one in `one_in` (0: none) is never evicted; of ENTRY all parts */
	unsigned one_in;
	bool is_long; /* LONG times as many come, in as much more time */
};

/* Of two recordings. */
static const int over_rising[] = {2, 3, 1, 0, 0, 1, 0, -1, 0, 2, 3, 2, 2, 3, 4, 2, 4,  4,  6, 5,
				  8, 7, 8, 8, 8, 8, 7, 8,  8, 9, 9, 7, 8, 9, 9, 9, 11, 10, 13};
static const int over_level[] = {0, -1, 1, 2, 2, 3, 3, 0, 1, 2, 1, -1, 1, -1, -1, 0, 0, 1, 4, 2,
				 2, 2,  3, 4, 5, 5, 6, 6, 6, 4, 5, 4,  4, 6,  6,  5, 6, 5, 3};

static struct world world;
static struct slots slots[8];
static struct entry older[OLDER];
static uint32_t putting[PARTS], evicting[EVICTS], dropping, thread;
static uint64_t noise;
static double now;

static unsigned any(unsigned below)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(noise >> 33) % below;
}

static struct slots *slots_of(uint64_t bytes)
{
	size_t i = 0;

	while (slots[i].bytes < bytes)
		i++;
	return &slots[i];
}

static mw_addr take_slot(uint64_t bytes)
{
	struct slots *of = slots_of(bytes);

	return of->free_count ? of->free[--of->free_count] : of->begin + of->bytes * of->used++;
}

static void send(enum mw_event_type type, mw_addr addr, uint64_t bytes, uint32_t stack)
{
	now += 1e-6;
	world_event(&world, type, MW_KIND_HEAP, addr, bytes, stack, thread, now);
}

static mw_addr allocate(uint32_t stack, uint64_t bytes)
{
	mw_addr addr = take_slot(bytes);

	send(MW_EVENT_ALLOC, addr, bytes, stack);
	return addr;
}

static void release(uint32_t stack, mw_addr addr, uint64_t bytes)
{
	struct slots *of = slots_of(bytes);

	send(MW_EVENT_FREE, addr, MW_SIZE_UNKNOWN, stack);
	assert_true(of->free_count < SLOTS);
	of->free[of->free_count++] = addr;
}

static mw_addr address_of(unsigned function)
{
	return (mw_addr)(uintptr_t)&address_of + 0x2000 + 16 * function;
}

/* A call of the allocator in a function that the program's loop calls at `site`. */
static uint32_t stack_of(unsigned function, unsigned site)
{
	const mw_addr code = (mw_addr)(uintptr_t)&address_of;
	const mw_addr frames[] = {code + 0x3000, address_of(function), code + site, code + 3, code + 2, code + 1};

	return world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, frames, COUNT(frames), MW_STACK_COMPLETE);
}

/* What a value's entry takes. */
static long room_of(unsigned value)
{
	return (long)(slots_of(OBJECT_BYTES)->bytes + slots_of(KEY_BYTES)->bytes + slots_of(NODE_BYTES)->bytes +
		      slots_of(value)->bytes);
}

static void fill(unsigned smaller)
{
	static const uint64_t sizes[COUNT(slots)] = {16, 32, 112, 128, 160, 192, 224, 256};

	for (size_t i = 0; i < COUNT(slots); i++)
		slots[i] = (struct slots){.bytes = sizes[i], .begin = 0x100000000 * (i + 1)};
	for (unsigned i = 0; i < OLDER; i++) {
		struct entry *entry = &older[i];

		entry->bytes = LEAST_VALUE + any(VALUES - smaller);
		entry->object = take_slot(OBJECT_BYTES);
		entry->key = take_slot(KEY_BYTES);
		entry->node = take_slot(NODE_BYTES);
		entry->value = take_slot(entry->bytes);
	}
	/* They are evicted in no order. */
	for (unsigned i = OLDER - 1; i > 0; i--) {
		unsigned other = any(i + 1);
		struct entry moved = older[i];

		older[i] = older[other];
		older[other] = moved;
	}
}

static long evict(const struct entry *entry)
{
	release(evicting[EVICT_KEY], entry->key, KEY_BYTES);
	release(evicting[EVICT_VALUE], entry->value, entry->bytes);
	release(evicting[EVICT_OBJECT], entry->object, OBJECT_BYTES);
	release(evicting[EVICT_NODE], entry->node, NODE_BYTES);
	return room_of(entry->bytes);
}

static void put(unsigned value)
{
	mw_addr arguments[2], whole;

	for (size_t i = 0; i < COUNT(arguments); i++)
		arguments[i] = allocate(putting[OBJECT], OBJECT_BYTES);
	whole = allocate(putting[VALUE], value < SHORTENED ? value + SPARE : value);
	allocate(putting[OBJECT], OBJECT_BYTES);
	if (value < SHORTENED) {
		allocate(putting[SHORT_VALUE], value);
		release(dropping, whole, value + SPARE);
	}
	allocate(putting[KEY], KEY_BYTES);
	allocate(putting[NODE], NODE_BYTES);
	for (size_t i = 0; i < COUNT(arguments); i++)
		release(dropping, arguments[i], OBJECT_BYTES);
}

static unsigned bytes_of(int part, unsigned value)
{
	static const unsigned bytes[PARTS] = {
		[OBJECT] = OBJECT_BYTES, [KEY] = KEY_BYTES, [NODE] = NODE_BYTES, [OTHER] = NODE_BYTES};

	return bytes[part] ? bytes[part] : value;
}

static unsigned times(const struct course *course)
{
	return course->is_long ? LONG : 1;
}

static void run(const struct course *course)
{
	unsigned evicted = 0;
	double late = 0;
	long room = 0;

	now = 0;
	for (unsigned i = 0; i < PUT * times(course); i++) {
		unsigned value = LEAST_VALUE + i * 13 % VALUES;
		bool leaks = course->one_in && i % course->one_in == course->one_in / 2;
		double due = (double)i / RATE;

		/* What the machine holds up comes later, at once. */
		if (any(100) == 0)
			late = (double)any(100) / 1000;
		now = fmax(now, due + late);
		late = fmax(late - 0.5 / RATE, 0);
		if (course->over) {
			int over = course->over[(unsigned)((double)i * course->over_count / PUT)];

			while ((int)evicted < (int)i - over)
				evict(&older[evicted++]);
		}
		while (!course->over && room > 0 && evicted < OLDER)
			room -= evict(&older[evicted++]);
		put(value);
		/* The cache does not know any more of an entry that is forgotten. */
		room += leaks && course->leaks == ENTRY ? 0 : room_of(value);
		if (leaks && course->leaks != ENTRY) {
			unsigned bytes = bytes_of(course->leaks, value);

			allocate(putting[course->leaks], bytes);
			room += (long)slots_of(bytes)->bytes;
		}
	}
}

/* The verdicts on the parts' stacks. */
static void judge(const struct course *course, unsigned seed, enum mw_growth_verdict out[PARTS])
{
	struct mw_report *report;

	noise = seed * 7919u + 1;
	any(2);
	world_forget(&world);
	world.window.length_ns = (uint64_t)(SECONDS * times(course) * 1e9);
	world.input.symbols = NULL;
	thread = world_thread(&world, 1, "one");
	for (unsigned i = 0; i < PARTS; i++)
		putting[i] = stack_of(i, 0x20);
	for (unsigned i = 0; i < EVICTS; i++)
		evicting[i] = stack_of(PARTS + i, 0x40);
	dropping = stack_of(PARTS + EVICTS, 0x60);
	fill(course->smaller);
	run(course);
	report = world_report(&world);
	for (size_t i = 0; i < report->stack_count; i++)
		for (unsigned part = 0; part < PARTS; part++)
			if (report->stacks[i].growth.known && report->stacks[i].frames[1].address == address_of(part))
				out[part] = report->stacks[i].growth.verdict;
	mw_report_destroy(report);
}

static bool grows(enum mw_growth_verdict verdict)
{
	return verdict >= MW_GROWTH_STEADY;
}

/* The verdicts where nothing leaks: none is growth. */
static void judge_harmless(const struct course *course, unsigned seed, enum mw_growth_verdict out[PARTS])
{
	judge(course, seed, out);
	for (unsigned part = 0; part < OTHER; part++)
		if (grows(out[part]))
			fail_msg("seed %u, part %u: %s", seed, part, mw_growth_name(out[part]));
}

static void check_recorded(const int *over, unsigned count, unsigned smaller)
{
	const struct course course = {.over = over, .over_count = count, .smaller = smaller};

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		enum mw_growth_verdict verdicts[PARTS];

		judge_harmless(&course, seed, verdicts);
		for (unsigned part = OBJECT; part <= NODE; part++)
			assert_int_equal(verdicts[part], MW_GROWTH_STEADY_STATE);
	}
}

/* A few entries more at the end than at the beginning, as a limit of bytes allows where the sizes of entries differ. */
static void test_more_entries(void **state)
{
	(void)state;
	check_recorded(over_rising, COUNT(over_rising), 0);
}

/* As many entries at the end, and larger ones than were evicted. */
static void test_larger_entries(void **state)
{
	(void)state;
	check_recorded(over_level, COUNT(over_level), 8);
}

/* As many bytes go as come: never growth, and a window is hardly ever too short. */
static void test_limit_of_bytes(void **state)
{
	const struct course course = {0};
	unsigned steady = 0;

	(void)state;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		enum mw_growth_verdict verdicts[PARTS];

		judge_harmless(&course, seed, verdicts);
		steady += verdicts[NODE] == MW_GROWTH_STEADY_STATE;
	}
	assert_true(steady * 10 >= SEEDS * 9);
}

/* The verdict on what leaks is growth or too short; what does not leak is not blamed, but where it can be either of two. */
static unsigned check_leak(const struct course *course)
{
	unsigned growing = 0;

	for (unsigned seed = 0; seed < (SEEDS + times(course) - 1) / times(course); seed++) {
		enum mw_growth_verdict verdicts[PARTS];

		judge(course, seed, verdicts);
		for (int part = 0; part < PARTS; part++) {
			bool leaks = part == course->leaks || (course->leaks == ENTRY && part < OTHER);

			if (part == OTHER && !leaks)
				continue;
			if (leaks && verdicts[part] != MW_GROWTH_TOO_SHORT && !grows(verdicts[part]))
				fail_msg("seed %u, %d leaks: %s", seed, part, mw_growth_name(verdicts[part]));
			if (!leaks && grows(verdicts[part]))
				fail_msg("seed %u, %d leaks, %d: %s", seed, course->leaks, part,
					 mw_growth_name(verdicts[part]));
		}
		growing += course->leaks < PARTS && grows(verdicts[course->leaks]);
	}
	return growing;
}

/* One in fifty of a part is not freed, beside the cache of a recording or another one. */
static void test_leak_of_one_in_fifty(void **state)
{
	(void)state;
	for (int part = 0; part < PARTS; part++) {
		check_leak(&(struct course){.leaks = part, .one_in = 50});
		check_leak(&(struct course){
			.over = over_level, .over_count = COUNT(over_level), .leaks = part, .one_in = 50});
		check_leak(&(struct course){
			.over = over_rising, .over_count = COUNT(over_rising), .leaks = part, .one_in = 50});
	}
}

/* Of one part clearly more are left over than of the others. */
static void test_leak_of_one_in_a_hundred(void **state)
{
	(void)state;
	for (int part = 0; part < OTHER; part++)
		check_leak(&(struct course){.leaks = part, .one_in = 100});
}

/* The more entries come, the smaller is the share by which their number strays. */
static void test_long_windows(void **state)
{
	const struct course course = {.is_long = true};
	unsigned steady = 0;

	(void)state;
	for (unsigned seed = 0; seed < 4; seed++) {
		enum mw_growth_verdict verdicts[PARTS];

		judge_harmless(&course, seed, verdicts);
		steady += verdicts[NODE] == MW_GROWTH_STEADY_STATE;
	}
	assert_true(steady > 0);
	check_leak(&(struct course){.leaks = ENTRY, .one_in = 100, .is_long = true});
	check_leak(&(struct course){.leaks = OBJECT, .one_in = 200, .is_long = true});
	assert_int_equal(check_leak(&(struct course){.leaks = KEY, .one_in = 33, .is_long = true}),
			 (SEEDS + LONG - 1) / LONG);
}

/* A leak of one in ten is growth. */
static void test_leak_of_one_in_ten(void **state)
{
	(void)state;
	for (int part = OBJECT; part <= NODE; part++)
		assert_int_equal(check_leak(&(struct course){.leaks = part, .one_in = 10}), SEEDS);
	assert_int_equal(check_leak(&(struct course){.leaks = OTHER, .one_in = 10}), SEEDS);
}

/* Whole entries are forgotten. */
static void test_forgotten_entries(void **state)
{
	(void)state;
	check_leak(&(struct course){.leaks = ENTRY, .one_in = 25});
}

UNIT_GROUP(evicted)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_entries),
		cmocka_unit_test(test_larger_entries),
		cmocka_unit_test(test_limit_of_bytes),
		cmocka_unit_test(test_leak_of_one_in_fifty),
		cmocka_unit_test(test_leak_of_one_in_ten),
		cmocka_unit_test(test_forgotten_entries),
		cmocka_unit_test(test_leak_of_one_in_a_hundred),
		cmocka_unit_test(test_long_windows),
	};
	int failed;

	world_init(&world);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_deinit(&world);
	return failed;
}
