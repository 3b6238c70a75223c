// SPDX-License-Identifier: MIT
/* everything.c: a bit of everything that a recording can hold (rig.h). */
#include "rig.h"

#include <string.h>

static void tell_target(struct mw_store_writer *writer, uint32_t process, const struct mw_store_visitor *as_read)
{
	static const char *const command[] = {"/bin/a b", "--ключ", ""};
	/* More than the command line has words. */
	static const struct mw_stored_child children[] = {
		{4712, "child", true}, {-1, NULL, false}, {4713, "", false}, {4714, "d", true}};
	const struct mw_stored_target target = {.pid = 4711,
						.comm = "a b",
						.exe = NULL,
						.command = command,
						.command_count = 3,
						.started_realtime_ns = -1700000000000000000,
						.track_vm = true,
						.launched = true,
						.depth = 128,
						.engine = "jump",
						.engine_reason = "",
						.limit = {UINT64_MAX, 5, MW_LIMIT_CGROUP},
						.distribution = "debian",
						.own_root = true,
						.runtimes = UINT32_MAX,
						.knows_children = true,
						.children = children,
						.child_count = 4};
	const struct mw_stored_hook hook = {7, "malloc", "/lib/libc.so.6", NULL, 0x7fff00001000, 3, MW_KIND_VM};
	const struct mw_stored_hook refused = {8, NULL, NULL, "no room", UINT64_MAX, 0, MW_KIND_HEAP};
	const uint8_t id[] = {0, 1, 2, 0xff};
	const struct mw_stored_module module = {3,      "/usr/bin/a", id,   sizeof(id), 0x1000,
						0x2000, UINT64_MAX,   true, false};
	const struct mw_stored_module nameless = {4, NULL, NULL, 0, 0, UINT64_MAX, 0, false, true};

	MW_STORE_TELL(writer, target, process, &target);
	rig_good(as_read->target(as_read->context, process, &target));
	MW_STORE_TELL(writer, hook, process, &hook);
	rig_good(as_read->hook(as_read->context, process, &hook));
	MW_STORE_TELL(writer, hook, process, &refused);
	rig_good(as_read->hook(as_read->context, process, &refused));
	MW_STORE_TELL(writer, module, process, &module);
	rig_good(as_read->module(as_read->context, process, &module));
	MW_STORE_TELL(writer, module, process, &nameless);
	rig_good(as_read->module(as_read->context, process, &nameless));
	MW_STORE_TELL(writer, before, process, 0x7000, 0x9000);
	rig_good(as_read->before(as_read->context, process, 0x7000, 0x9000));
}

static void tell_events(const struct mw_event_sink *sink, uint32_t process, const struct mw_store_visitor *as_read)
{
	const struct mw_raw_frame frames[] = {{0x401000, 3}, {0x400800, 4}, {UINT64_MAX, MW_MODULE_NONE}, {0, 0}};
	const struct mw_raw_stack stack = {frames, 4, MW_STACK_TRUNCATED, 7, MW_KIND_HEAP};
	const struct mw_raw_stack empty = {NULL, 0, MW_STACK_BROKEN, UINT32_MAX, MW_KIND_VM_INTERNAL};
	struct mw_stored_thread thread = {0, 4711, "main"};
	struct mw_event events[] = {
		{5, 0x5000, 24, 0, 0, MW_EVENT_ALLOC, MW_KIND_HEAP, 1, false},
		{5, 0x5000, MW_SIZE_UNKNOWN, MW_STACK_NONE, 1, MW_EVENT_FREE, MW_KIND_HEAP, 0, false},
		{4, UINT64_MAX, 0, 1, 1, MW_EVENT_REMAP_FAIL, MW_KIND_VM_INTERNAL, 0, false},
		{UINT64_MAX, 0, UINT64_MAX - 1, MW_STACK_NONE, 0, MW_EVENT_MAP, MW_KIND_VM, 0, false},
	};
	uint32_t number;
	uint16_t interval;

	rig_good(sink->thread(sink->context, 4711, "main", true, &thread.number));
	rig_good(as_read->thread(as_read->context, process, &thread));
	thread = (struct mw_stored_thread){0, 4712, NULL};
	rig_good(sink->thread(sink->context, 4712, NULL, true, &thread.number));
	rig_good(as_read->thread(as_read->context, process, &thread));
	rig_good(sink->stack(sink->context, &stack, &number));
	rig_good(as_read->stack(as_read->context, process, number, &stack));
	rig_good(sink->stack(sink->context, &empty, &number));
	rig_good(as_read->stack(as_read->context, process, number, &empty));
	rig_good(sink->interval(sink->context, 1, &interval));
	rig_good(as_read->interval(as_read->context, process, interval, 1));
	rig_good(sink->event(sink->context, &events[0]));
	rig_good(sink->events(sink->context, events + 1, 3));
	rig_good(as_read->events(as_read->context, process, events, 4));
}

static void tell_rest(struct mw_store_writer *writer, uint32_t process, const struct mw_store_visitor *as_read)
{
	const struct mw_stored_sample sample = {1, 2, MW_SIZE_UNKNOWN, 3, 4, 5, 6, 7, 8, 9, MW_SIZE_UNKNOWN};
	const struct mw_stored_mark mark = {1, 77, "begin"};
	const struct mw_stored_mapping mapping = {0x1000, 0x3000, MW_REGION_STACK, MW_SIZE_UNKNOWN, "", false, true,
						  0,      0};
	const struct mw_stored_mapping code = {0x3000, 0x4000, MW_REGION_ANONYMOUS, 1, "", true, true, 9, 8};
	const struct mw_stored_frame frames[] = {{"inner", "a.c", 12, 3, true}, {NULL, NULL, 0, 99, false}};
	const struct mw_stored_symbol symbol = {3, 0x401000, frames, 2};
	const struct mw_stored_figure figures[] = {{"stops", 12}, {"", UINT64_MAX}};
	const struct mw_stored_end end = {99, 2, true, -1, "a page", figures, 2};

	MW_STORE_TELL(writer, sample, process, &sample);
	rig_good(as_read->sample(as_read->context, process, &sample));
	MW_STORE_TELL(writer, mark, process, &mark);
	rig_good(as_read->mark(as_read->context, process, &mark));
	MW_STORE_TELL(writer, mapping, process, MW_STORED_END, &mapping);
	rig_good(as_read->mapping(as_read->context, process, MW_STORED_END, &mapping));
	MW_STORE_TELL(writer, mapping, process, MW_STORED_END, &code);
	rig_good(as_read->mapping(as_read->context, process, MW_STORED_END, &code));
	MW_STORE_TELL(writer, symbol, process, &symbol);
	rig_good(as_read->symbol(as_read->context, process, &symbol));
	MW_STORE_TELL(writer, end, process, &end);
	rig_good(as_read->end(as_read->context, process, &end));
}

static void tell_part(struct mw_store_writer *writer, uint32_t process, const struct mw_store_visitor *as_read,
		      const struct mw_stored_heap *part)
{
	MW_STORE_TELL(writer, heap, process, part);
	rig_good(as_read->heap(as_read->context, process, part));
}

#define PART(number, ...)                                                                                              \
	tell_part(writer, process, as_read, &(const struct mw_stored_heap){.part = (number), __VA_ARGS__})

static void tell_heap(struct mw_store_writer *writer, uint32_t process, const struct mw_store_visitor *as_read)
{
	static const char *const holder[] = {"global a::b", ""};
	static char *path[] = {"stack of thread 1 (a)", "\xff"};
	static unsigned char bytes[] = {0, 1, 0xff};
	static struct mw_heap_note notes[] = {{8, "all zero"}, {16, "string \"a\""}};
	const struct mw_stored_leaks leaks = {
		UINT64_MAX, {{1, 2}, {0, 0}, {UINT64_MAX, 3}, {4, 5}}, holder, sizeof(holder) / sizeof(holder[0])};

	const struct mw_stored_change change = {4, "not explained", "", UINT64_MAX, INT64_MIN};
	const struct mw_stored_change rss = {MW_STORED_CHANGE_RSS_AFTER, "", "x", 0, INT64_MAX};

	const struct mw_stored_pool pool = {UINT64_MAX, "pools", "", "a > b", "\xff", {1, UINT64_MAX}};

	MW_STORE_TELL(writer, leaks, process, &leaks);
	rig_good(as_read->leaks(as_read->context, process, &leaks));
	PART(MW_STORED_HEAP_HEAD, .head = {.pid = 4711,
					   .comm = "fifteen letters",
					   .exe = NULL,
					   .build_id = "00ff",
					   .boot_id = "01234567-89ab-cdef-0123-456789abcdef",
					   .start_ticks = UINT64_MAX,
					   .started_realtime_ns = -1,
					   .by = 5,
					   .forked = true,
					   .why = "",
					   .pause_ns = 1,
					   .seconds = 1.234567891,
					   .scanned = 2,
					   .unread = 3,
					   .rss = 4,
					   .swapped = 5,
					   .page_tables = MW_SIZE_UNKNOWN,
					   .leaks = {{1, 2}, {3, 4}, {5, 6}, {7, UINT64_MAX}},
					   .line_count = 1,
					   .allocator_count = 2,
					   .group_count = 3,
					   .gap_count = 4,
					   .holder_count = 5,
					   .advice_count = 6});
	PART(MW_STORED_HEAP_LINE, .line = {"live blocks", "", UINT64_MAX, 1, 9, 8, 7});
	PART(MW_STORED_HEAP_ALLOCATOR, .allocator = {"glibc",
						     "2.36",
						     "/lib/libc.so.6",
						     true,
						     NULL,
						     {1, 2},
						     {3, 4},
						     5,
						     MW_SIZE_UNKNOWN,
						     6,
						     7,
						     8,
						     9,
						     10});
	PART(MW_STORED_HEAP_ALLOCATOR, .allocator = {.name = "", .version = "", .why = "it is new", .trimmable = 0});
	PART(MW_STORED_HEAP_GROUP, .group = {.class_name = "a::b<c>",
					     .size = 24,
					     .allocator = "glibc",
					     .arena = "main",
					     .verdict = MW_REACH_REACHABLE,
					     .blocks = {1, 24},
					     .holder = path,
					     .holder_count = 2,
					     .samples = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX},
					     .sample_count = MW_HEAP_SAMPLES,
					     .content_count = 2});
	PART(MW_STORED_HEAP_CONTENT,
	     .content = {.at = 1, .size = 24, .bytes = bytes, .byte_count = 3, .notes = notes, .note_count = 2});
	PART(MW_STORED_HEAP_CONTENT, .content = {.at = 2});
	PART(MW_STORED_HEAP_GROUP,
	     .group = {.size = MW_SIZE_UNKNOWN, .verdict = MW_REACH_COUNT, .samples = {9}, .sample_count = 1});
	PART(MW_STORED_HEAP_GAP, .gap = {UINT64_MAX, 1, "it is damaged"});
	PART(MW_STORED_HEAP_HOLDER, .holder = {"global a::b", UINT32_MAX, {1, 2}, {3, 4}});
	PART(MW_STORED_HEAP_ADVICE, .advice = "do less");
	/* Of a newer writer. */
	PART(MW_STORED_HEAP_PARTS + 1, .advice = NULL);
	MW_STORE_TELL(writer, change, process, &change);
	rig_good(as_read->change(as_read->context, process, &change));
	MW_STORE_TELL(writer, change, process, &rss);
	rig_good(as_read->change(as_read->context, process, &rss));
	MW_STORE_TELL(writer, pool, process, &pool);
	rig_good(as_read->pool(as_read->context, process, &pool));
}

void rig_tell_everything(struct mw_store_writer *writer, uint32_t process, struct rig_told *told)
{
	static struct rig_inner inners[4];
	struct mw_event_sink sink;

	rig_inner_init(&inners[process]);
	rig_good(mw_store_sink(writer, process, &inners[process].sink, &sink));
	tell_target(writer, process, &told->visitor);
	tell_events(&sink, process, &told->visitor);
	tell_rest(writer, process, &told->visitor);
	tell_heap(writer, process, &told->visitor);
}

void rig_write_small(const char *path)
{
	struct mw_store_writer *writer;
	struct rig_told told;

	rig_told_init(&told);
	rig_good(mw_store_create(path, &writer));
	rig_good(mw_store_publish(writer));
	rig_tell_everything(writer, 0, &told);
	rig_good(mw_store_finish(writer));
	mw_store_destroy(writer);
	rig_told_deinit(&told);
}
