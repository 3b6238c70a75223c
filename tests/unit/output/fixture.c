// SPDX-License-Identifier: MIT
/* fixture.c: hand-made reports, see fixture.h. */
#include "fixture.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define LIBCACHE "/opt/shop/lib/libcache.so.2"
#define SERVER   "/opt/shop/bin/shopd"
#define LIBC     "/usr/lib/x86_64-linux-gnu/libc.so.6"

static struct mw_report_frame leak_frames[] = {
	{"std::vector<shop::Order, std::allocator<shop::Order> >::_M_realloc_insert<shop::Order const&>(__gnu_cxx::"
	 "__normal_iterator<shop::Order*, std::vector<shop::Order, std::allocator<shop::Order> > >, shop::Order "
	 "const&)",
	 SERVER, 0x9a, 0x55550000119a, "/usr/include/c++/12/bits/new_allocator.h", 137, true, false, MW_LANGUAGE_NATIVE,
	 false},
	{"shop::Basket::add(shop::Order const&)", SERVER, 0x9a, 0x55550000119a, "/home/build/shop/src/basket.cc", 52,
	 false, false, MW_LANGUAGE_NATIVE, false},
	{"shop::Session::handle(http::Request const&)", SERVER, 0x1f4, 0x5555000023f4,
	 "/home/build/shop/src/session.cc", 210, false, false, MW_LANGUAGE_NATIVE, false},
	{"start_thread", LIBC, 0x2d4, 0x7ffff7c89134, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{NULL, LIBC, 0x1097dc, 0x7ffff7d097dc, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
};
static struct mw_report_frame cache_frames[] = {
	{"cache_put", LIBCACHE, 0x31, 0x7ffff7fb1131, "cache.c", 88, false, false, MW_LANGUAGE_NATIVE, false},
	{NULL, NULL, 0x7fffe0001234, 0x7fffe0001234, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"main", SERVER, 0x77, 0x555500001077, "/home/build/shop/src/main.cc", 31, false, false, MW_LANGUAGE_NATIVE,
	 false},
};
static struct mw_report_frame map_frames[] = {
	{"arena_reserve", LIBCACHE, 0x10, 0x7ffff7fb2210, "arena.c", 12, false, false, MW_LANGUAGE_NATIVE, false},
	{"main", SERVER, 0x99, 0x555500001099, "/home/build/shop/src/main.cc", 35, false, false, MW_LANGUAGE_NATIVE,
	 false},
};
static struct mw_report_frame churn_frames[] = {
	{"shop::parse(char const*)", SERVER, 0x20, 0x555500003020, "/home/build/shop/src/parse.cc", 9, false, false,
	 MW_LANGUAGE_NATIVE, false},
	{"f1", SERVER, 1, 0x555500003101, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f2", SERVER, 2, 0x555500003102, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f3", SERVER, 3, 0x555500003103, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f4", SERVER, 4, 0x555500003104, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f5", SERVER, 5, 0x555500003105, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f6", SERVER, 6, 0x555500003106, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f7", SERVER, 7, 0x555500003107, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f8", SERVER, 8, 0x555500003108, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
	{"f9", SERVER, 9, 0x555500003109, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
};
static struct mw_report_frame internal_frames[] = {
	{"sysmalloc", LIBC, 0x40, 0x7ffff7c90040, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
};

/* Of what is not sampled. */
#define EXACT                                                                                                          \
	{                                                                                                              \
		.peak = { 0, 0, 0 }                                                                                    \
	}

static struct mw_report_thread leak_threads[] = {
	{4243, "worker-1", {0}, {1500, 9 << 20}, {0}, EXACT},
	{4244, "worker-2", {0}, {548, 3 << 20}, {0}, EXACT},
};
static struct mw_report_thread cache_threads[] = {
	{4242, "shopd", {0}, {40, 2 << 20}, {0}, EXACT},
};
static struct mw_report_thread map_threads[] = {
	{4242, "shopd", {0}, {1, 1 << 20}, {0}, EXACT},
};
static struct mw_report_thread internal_threads[] = {
	{4243, "worker-1", {0}, {2, 270336}, {0}, EXACT},
};

static struct mw_report_stack server_stacks[] = {
	{.id = "00c0ffee00c0ffee",
	 .kind = MW_KIND_HEAP,
	 .api = "operator new(unsigned long)",
	 .frames = leak_frames,
	 .frame_count = COUNT(leak_frames),
	 .size = {2048, 12 << 20},
	 .impacting = {2048, 12 << 20},
	 .peak = {2048, 12 << 20, 29.5},
	 .has_ages = true,
	 .oldest = 0.25,
	 .newest = 29.5,
	 .threads = leak_threads,
	 .thread_count = COUNT(leak_threads),
	 .suspect = SERVER,
	 .growth = {.known = true,
		    .verdict = MW_GROWTH_STEADY,
		    .bytes_per_second = 81920.25,
		    .steadiness = 0.9975,
		    .floor_start = 12288,
		    .floor_end = 2457600,
		    .growing_until = 30,
		    .freed_share = 0.125,
		    .oldest_age = 29.75,
		    .newest_age = 0.5}},
	{.id = "0123456789abcdef",
	 .kind = MW_KIND_HEAP,
	 .api = "malloc",
	 .cut = MW_STACK_BROKEN,
	 .frames = cache_frames,
	 .frame_count = COUNT(cache_frames),
	 .size = {1040, 52 << 20},
	 .impacting = {40, 2 << 20},
	 .settled_later = {12, 300 << 10},
	 .transient = {1000, 50 << 20},
	 .aofi = {3, 4096},
	 .peak = {60, 3 << 20, 12.25},
	 .has_lifetime = true,
	 .lifetime_min_ns = 900,
	 .lifetime_median_ns = 12500000,
	 .lifetime_p99_ns = 850000000,
	 .lifetime_max_ns = 1900000000,
	 .has_ages = true,
	 .oldest = 28.1,
	 .newest = 29.9,
	 .threads = cache_threads,
	 .thread_count = COUNT(cache_threads),
	 .suspect = LIBCACHE},
	{.id = "1111111111111111",
	 .kind = MW_KIND_VM,
	 .api = "mmap",
	 .cut = MW_STACK_TRUNCATED,
	 .frames = map_frames,
	 .frame_count = COUNT(map_frames),
	 .size = {1, 1 << 20},
	 .impacting = {1, 1 << 20},
	 .resident = 262144,
	 .peak = {1, 1 << 20, 5},
	 .has_ages = true,
	 .oldest = 5,
	 .newest = 5,
	 .threads = map_threads,
	 .thread_count = COUNT(map_threads),
	 .suspect = LIBCACHE},
	{.id = "2222222222222222",
	 .kind = MW_KIND_VM_INTERNAL,
	 .api = "mmap",
	 .frames = internal_frames,
	 .frame_count = COUNT(internal_frames),
	 .size = {2, 270336},
	 .impacting = {2, 270336},
	 .peak = {2, 270336, 20},
	 .has_ages = true,
	 .oldest = 1,
	 .newest = 20,
	 .threads = internal_threads,
	 .thread_count = COUNT(internal_threads)},
	{.id = "3333333333333333",
	 .kind = MW_KIND_HEAP,
	 .api = "malloc",
	 .frames = churn_frames,
	 .frame_count = COUNT(churn_frames),
	 .size = {1234567, 79012288},
	 .transient = {1234567, 79012288},
	 .peak = {10, 640, 0.5},
	 .has_lifetime = true,
	 .lifetime_min_ns = 300,
	 .lifetime_median_ns = 850,
	 .lifetime_p99_ns = 9300,
	 .lifetime_max_ns = 1200000,
	 .suspect = SERVER},
	{.id = "4444444444444444",
	 .kind = MW_KIND_HEAP,
	 .api = "free",
	 .frames = leak_frames + 2,
	 .frame_count = 3,
	 .aofi = {97, 900},
	 .aofi_unknown = 5,
	 .suspect = SERVER},
};

static struct mw_report_module server_modules[] = {
	{SERVER, {1236615, 91595200}, {2048, 12 << 20}, {1234567, 79012288}, EXACT},
	{LIBCACHE, {1041, 53 << 20}, {41, 3 << 20}, {1000, 50 << 20}, EXACT},
};

static struct mw_report_thread server_threads[] = {
	{4243, "worker-1", {618783, 48943104}, {1500, 9 << 20}, {617283, 39505920}, EXACT},
	{4244, "worker-2", {617832, 42652096}, {548, 3 << 20}, {617284, 39506368}, EXACT},
	{4242, "shopd", {1041, 53 << 20}, {41, 3 << 20}, {1000, 50 << 20}, EXACT},
};

static size_t leaking[] = {0}, caching[] = {1}, mapping[] = {2};

static struct mw_report_suspect server_suspects[] = {
	{leak_frames + 1,
	 MW_GROWTH_STEADY,
	 true,
	 false,
	 12 << 20,
	 2048,
	 0,
	 294912900,
	 46800,
	 leaking,
	 1,
	 "It kept on taking memory up to the end and did not give it back.",
	 {0, 0},
	 EXACT,
	 0,
	 0,
	 {0, 0},
	 NULL},
	{NULL,
	 MW_GROWTH_TOO_SHORT,
	 false,
	 false,
	 2 << 20,
	 40,
	 1000,
	 0,
	 -1,
	 caching,
	 1,
	 "The window is too short to tell a leak from memory in use; watch for 150 s or longer.",
	 {12, 300 << 10},
	 EXACT,
	 0,
	 0,
	 {0, 0},
	 NULL},
	{map_frames,
	 MW_GROWTH_ONE_OFF,
	 true,
	 false,
	 1 << 20,
	 1,
	 0,
	 0,
	 -1,
	 mapping,
	 1,
	 "It was allocated once, in a short time, and kept.",
	 {0, 0},
	 EXACT,
	 0,
	 0,
	 {0, 0},
	 NULL},
};

static struct mw_report_hook server_hooks[] = {
	{"malloc", LIBC, "malloc", NULL, 0x7ffff7c98000, false},
	{"free", LIBC, "free", NULL, 0x7ffff7c98600, false},
	{"mmap", LIBC, "mmap", NULL, 0x7ffff7d10000, false},
	{"sbrk", LIBC, "sbrk", "its first instruction is already a breakpoint (gdb?)", 0x7ffff7d11000, true},
};

static struct mw_report_sample server_memory[] = {
	{0, 100 << 20, 90 << 20, 1ull << 30, 0, 0, 40 << 20, 8 << 20, 48 << 20},
	{15, 108 << 20, MW_SIZE_UNKNOWN, (1ull << 30) + (1 << 20), 7 << 20, 1 << 20, MW_SIZE_UNKNOWN, MW_SIZE_UNKNOWN,
	 MW_SIZE_UNKNOWN},
	{30, 116 << 20, 105 << 20, (1ull << 30) + (1 << 20), 14 << 20, 1 << 20, 54 << 20, 10 << 20, 64 << 20},
};

static const char *server_command[] = {SERVER, "--port", "8080"};

static struct mw_report_child server_children[] = {
	{4300, "shopd", true}, {24386, "worker", false}, {24387, "worker", false}};

static const char *server_nameless[] = {LIBCACHE, "/usr/lib/my shop/libfoo.so.1"};

static const struct mw_report server = {
	.target = {.pid = 4242,
		   .comm = "shopd",
		   .exe = SERVER,
		   .command = server_command,
		   .command_count = 3,
		   .limit = {2ull << 30, 1 << 29, MW_LIMIT_CGROUP},
		   .children = server_children,
		   .child_count = COUNT(server_children)},
	.window = {1700000000123456789, 30, 0, 30, MW_END_DURATION},
	.engine = {"trap",
		   "asked for with --engine trap",
		   server_hooks,
		   COUNT(server_hooks),
		   {.stops = 2475322,
		    .longest_stop_ns = 3100000,
		    .stopped_ns = 14200000000,
		    .stood_ns = 9300000000,
		    .attach_ns = 3100000,
		    .detach_ns = 850000,
		    .settle_ns = 3000000000,
		    .broken_stacks = 1,
		    .returns_site = 7,
		    .returns_exchanged = 1237656}},
	.lost = {.hooks = 1},
	.totals = {[MW_KIND_HEAP] = {.size = {1237655, 146121152},
				     .impacting = {2088, 14 << 20},
				     .transient = {1235567, 131441088},
				     .aofi = {100, 4996},
				     .aofi_unknown = 5,
				     .peak = {2108, 15 << 20, 29.5}},
		   [MW_KIND_VM] = {.size = {1, 1 << 20}, .impacting = {1, 1 << 20}, .peak = {1, 1 << 20, 5}},
		   [MW_KIND_VM_INTERNAL] = {.size = {2, 270336}, .impacting = {2, 270336}, .peak = {2, 270336, 20}}},
	.tracked = {true, true, true},
	.memory = server_memory,
	.memory_count = COUNT(server_memory),
	.modules = server_modules,
	.module_count = COUNT(server_modules),
	.threads = server_threads,
	.thread_count = COUNT(server_threads),
	.suspects = server_suspects,
	.suspect_count = COUNT(server_suspects),
	.stacks = server_stacks,
	.stack_count = COUNT(server_stacks),
	.nameless = {server_nameless, COUNT(server_nameless), "sudo ", "pkg install $(pkg owns", ") |\n      sort",
		     server_nameless + 1, 1},
	.rss = {.known = true, .growth = 16 << 20, .blocks = 15 << 20},
};

static struct mw_report_child empty_children[] = {{78, "child", false}};
static struct mw_report_runtime empty_runtimes[] = {
	{"lisp", "the Lisp heap", "Lisp's objects: they lie in pages of its own.", .growth = MW_SIZE_UNKNOWN}};

static const struct mw_report empty = {
	.target = {.pid = 77,
		   .comm = "idle",
		   .exe = "/bin/idle",
		   .has_exit_status = true,
		   .exit_status = 139,
		   .exit_signal = 11,
		   .limit = {16ull << 30, 4ull << 30, MW_LIMIT_MACHINE},
		   .children = empty_children,
		   .child_count = COUNT(empty_children)},
	.window = {1700000000000000000, 2.5, 0, 2.5, MW_END_EXIT},
	.engine = {.name = "jump",
		   .stats = {.attach_ns = 400000,
			     .longest_stop_ns = 400000,
			     .stops = 1,
			     .stopped_ns = 400000,
			     .stood_ns = 400000,
			     .walks = 300,
			     .slow_walks = 100,
			     .waited_ns = 5000000,
			     .own_resident = 3 << 20,
			     .own_cpu_ns = 412345678,
			     .children_cleaned = 2,
			     .left_behind = "1 call was still going on"}},
	.tracked = {true, false, false},
	.runtimes = empty_runtimes,
	.runtime_count = COUNT(empty_runtimes),
	.rss = {.known = true,
		.unexplained = true,
		.growth = 101 << 20,
		.blocks = 12 << 20,
		.has_kinds = true,
		.kinds = {[MW_REGION_ANONYMOUS] = 69 << 20, [MW_REGION_HEAP] = 3 << 20, [MW_REGION_STACK] = 4096}},
};

/* Clears the screen, overlong and lone bytes, a line break, an override of direction, a surrogate, a byte 0xff. */
#define EVIL "a\033[2Jb\xc0\xafz\n\"\\\xe2\x80\xaeq\xed\xa0\x80\xff\x7f\xc2\x9bm"

static struct mw_report_frame hostile_frames[] = {
	{EVIL, "/tmp/" EVIL, 1, 0x1000, EVIL, 3, false, false, MW_LANGUAGE_NATIVE, false},
	{EVIL, "/tmp/" EVIL, 1, UINT64_MAX - 15, EVIL "/" EVIL, 0, true, false, MW_LANGUAGE_NATIVE, false},
	{NULL, EVIL, 5, 0x1005, NULL, 0, false, false, MW_LANGUAGE_NATIVE, false},
};
static struct mw_report_thread hostile_threads[] = {
	{1, EVIL, {1, 0}, {1, 0}, {0}, EXACT}, {2, NULL, {1, 1}, {1, 1}, {0}, EXACT},
	{3, "c", {1, 0}, {1, 0}, {0}, EXACT},  {4, "d", {1, 0}, {1, 0}, {0}, EXACT},
	{5, "e", {1, 0}, {1, 0}, {0}, EXACT},  {6, "f", {1, 0}, {1, 0}, {0}, EXACT},
};
static struct mw_report_stack hostile_stacks[] = {
	{.id = "ffffffffffffffff",
	 .api = EVIL,
	 .cut = MW_STACK_TRUNCATED,
	 .frames = hostile_frames,
	 .frame_count = COUNT(hostile_frames),
	 .size = {6, 1},
	 .impacting = {6, 1},
	 .peak = {6, 1, 7300},
	 .has_ages = true,
	 .threads = hostile_threads,
	 .thread_count = COUNT(hostile_threads),
	 .suspect = EVIL},
	{.id = "eeeeeeeeeeeeeeee", .frames = NULL, .cut = MW_STACK_BROKEN, .size = {1, 0}, .impacting = {1, 0}},
};
static struct mw_report_module hostile_modules[] = {{EVIL, {6, 1}, {6, 1}, {0}, EXACT},
						    {NULL, {1, 0}, {1, 0}, {0}, EXACT}};
static struct mw_report_hook hostile_hooks[12];
static const char *hostile_command[] = {EVIL, NULL, ""};
static struct mw_report hostile = {
	.target = {.pid = 6,
		   .comm = EVIL,
		   .exe = EVIL,
		   .command = hostile_command,
		   .command_count = 3,
		   .has_exit_status = true,
		   .exit_status = 3},
	.window = {0, 7384, 0, 7384, MW_END_EXIT},
	.engine = {EVIL, EVIL, hostile_hooks, COUNT(hostile_hooks), {.lost_events = 12345}},
	.lost = {12345, 1, NULL, COUNT(hostile_hooks)},
	.totals = {[MW_KIND_HEAP] = {.size = {7, 1}, .impacting = {7, 1}, .peak = {6, 1, 7300}}},
	.tracked = {true, false, false},
	.modules = hostile_modules,
	.module_count = COUNT(hostile_modules),
	.threads = hostile_threads,
	.thread_count = COUNT(hostile_threads),
	.stacks = hostile_stacks,
	.stack_count = COUNT(hostile_stacks),
	.nameless = {hostile_command, 1, "", "pkg", "", hostile_command, 1},
	.rss = {.known = true, .unexplained = true, .growth = 8 << 20, .blocks = 1 << 20},
};

const struct mw_report *fixture_server(void)
{
	return &server;
}

const struct mw_report *fixture_empty(void)
{
	return &empty;
}

const struct mw_report *fixture_hostile(void)
{
	for (size_t i = 0; i < COUNT(hostile_hooks); i++)
		hostile_hooks[i] = (struct mw_report_hook){EVIL, EVIL, "malloc", EVIL, 0xffffffffff600000, true};
	return &hostile;
}

/* A spread of blocks that stand for `each` of `bytes` bytes. */
static struct mw_spread spread_of(uint64_t recorded, double each, double bytes)
{
	return (struct mw_spread){(double)recorded * each * each, (double)recorded * each * each * bytes * bytes,
				  recorded};
}

const struct mw_report *fixture_sampled(void)
{
	static struct mw_report report;
	static struct mw_report_stack stacks[COUNT(server_stacks)];
	static struct mw_report_suspect suspects[COUNT(server_suspects)];
	static struct mw_report_sampled intervals[] = {{512 << 10, 0.5, 40}, {256 << 10, 3.25, 60}, {2 << 20, -1, 0}};

	report = server;
	memcpy(stacks, server_stacks, sizeof(stacks));
	memcpy(suspects, server_suspects, sizeof(suspects));
	report.stacks = stacks;
	report.suspects = suspects;
	report.lost.hooks = 0;
	report.engine.hook_count = 0;
	report.sampling = (struct mw_report_sampling){
		2 << 20, intervals, COUNT(intervals), 7, 6282000, 0.5, "memwatch could not keep up; --max-wait 100 …"};
	stacks[0].spreads.impacting = spread_of(4, 512, 6144);
	stacks[1].spreads.impacting = spread_of(40, 1, 52429);
	stacks[1].spreads.transient = spread_of(100, 10, 52429);
	stacks[1].spreads.settled = spread_of(12, 1, 25600);
	suspects[0].spreads = stacks[0].spreads;
	suspects[0].low = 4 << 20;
	suspects[0].high = 29 << 20;
	suspects[1].spreads = stacks[1].spreads;
	suspects[1].low = 1 << 20;
	suspects[1].high = 3 << 20;
	report.totals[MW_KIND_HEAP].spreads.impacting = spread_of(44, 512, 2048);
	report.totals[MW_KIND_HEAP].spreads.transient = spread_of(100, 10, 52429);
	report.totals[MW_KIND_HEAP].spreads.peak = spread_of(44, 512, 2048);
	return &report;
}
