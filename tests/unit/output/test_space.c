// SPDX-License-Identifier: MIT
/* test_space.c: how much of the process is what, as text and as JSON. */
#include "output/line.h"
#include "render.h"
#include "unit.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static struct mw_report_unattributed unattributed[] = {
	{0x7f0000000000, 30 * MIB, 10 * MIB, MW_REGION_ANONYMOUS, ""},
	{0x7e0000000000, 2 * MIB, MW_SIZE_UNKNOWN, MW_REGION_FILE_TEXT,
	 "/opt/a/very/long/path/that/leads/to/a/plugin/in/some/directory/or/other/libplugin.so.1.2.3\n"},
	{0x7d0000000000, 4096, 0, MW_REGION_SHARED, "/dev/shm/x"},
	{0x7d0000010000, 4096, 0, MW_REGION_SHARED, "/dev/shm/x"},
	{0x7d0000020000, 4096, 0, MW_REGION_SHARED, "/dev/shm/x"},
	{0x7d0000030000, 4096, 0, MW_REGION_SHARED, "/dev/shm/x"},
};

static struct mw_report_named named[] = {
	{.name = "Java heap",
	 .start = {1, 64 * MIB, 20 * MIB},
	 .end = {2, 64 * MIB, 30 * MIB},
	 .use_at_start = {32 * MIB, 16 * MIB},
	 .use_at_end = {40 * MIB, 28 * MIB}},
	{.name = "V8 old_space", .end = {1, 8 * MIB, 2 * MIB}, .use_at_end = {8 * MIB, 0}},
	{.name = "[anon:mine]", .start = {1, 8 * MIB, MIB}, .end = {1, 8 * MIB, MIB}},
	{.name = "code cache", .end = {1, 28 * MIB, 0}, .use_at_end = {8 * MIB, 0}},
};

static struct mw_report_space space = {
	.start = {.known = true,
		  .kinds = {[MW_REGION_HEAP] = {1, 10 * MIB, 8 * MIB}, [MW_REGION_STACK] = {2, 16 * MIB, 1 * MIB}},
		  .arena_used = 7 * MIB,
		  .arena_free = 3 * MIB,
		  .arena_size = 10 * MIB},
	.end = {.known = true,
		.kinds = {[MW_REGION_HEAP] = {1, 20 * MIB, 15 * MIB},
			  [MW_REGION_STACK] = {3, 24 * MIB, MW_SIZE_UNKNOWN},
			  [MW_REGION_ANONYMOUS] = {4, 100 * MIB, 0}},
		.arena_used = 8 * MIB,
		.arena_free = 12 * MIB,
		.arena_size = 20 * MIB},
	.has_unattributed = true,
	.unattributed = unattributed,
	.unattributed_count = 6,
	.named = named,
	.named_count = 4,
};

static enum mw_window_end ended = MW_END_DURATION;

static char *render_space(const char *form, struct mw_report_space *what, unsigned width)
{
	static struct mw_report_stack stacks[] = {
		{.id = "0123456789abcdef",
		 .kind = MW_KIND_VM,
		 .api = "mmap",
		 .size = {1, 8192},
		 .impacting = {1, 8192},
		 .resident = 4096},
		{.id = "0123456789abcdee", .kind = MW_KIND_HEAP, .api = "malloc", .size = {1, 8}, .impacting = {1, 8}},
	};
	const struct mw_report report = {.target.comm = "x",
					 .window.ended = ended,
					 .engine.name = "trap",
					 .stacks = stacks,
					 .stack_count = 2,
					 .space = what};
	const struct mw_report *reports = &report;

	return render(form, &reports, 1, (struct mw_output_options){.top = 10, .width = width, .all = true});
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void is_told_as_text(void **state)
{
	char *text = render_space("text", &space, 0);

	(void)state;
	assert_has(text,
		   "\nAddress space at the window's start and end, by what it is for\n"
		   "                        reserved         end       change    resident         end       change\n"
		   "  heap (brk)            10.0 MiB    20.0 MiB    +10.0 MiB     8.0 MiB    15.0 MiB     +7.0 MiB\n"
		   "  thread stacks         16.0 MiB    24.0 MiB     +8.0 MiB     1.0 MiB           ?            ?\n"
		   "  anonymous                  0 B   100.0 MiB   +100.0 MiB         0 B         0 B          0 B\n"
		   "    Java heap           64.0 MiB    64.0 MiB          0 B    20.0 MiB    30.0 MiB    +10.0 MiB\n"
		   "      64.0 MiB reserved, 40.0 MiB committed, 28.0 MiB used (+12.0 MiB)\n"
		   "    V8 old_space             0 B     8.0 MiB     +8.0 MiB         0 B     2.0 MiB     +2.0 MiB\n"
		   "    [anon:mine]          8.0 MiB     8.0 MiB          0 B     1.0 MiB     1.0 MiB          0 B\n"
		   "    code cache               0 B    28.0 MiB    +28.0 MiB         0 B         0 B          0 B\n"
		   "      28.0 MiB reserved, 8.0 MiB committed\n"
		   "  all                   26.0 MiB   144.0 MiB   +118.0 MiB     9.0 MiB           ?            ?\n"
		   "  glibc's arenas: 8.0 MiB in use, 12.0 MiB free in them, 20.0 MiB in all (60.0 % free); since "
		   "the start +1.0 MiB in use, +9.0 MiB free\n"
		   "  unattributed: 32.0 MiB in 6 mappings that appeared in the window without a recorded call\n"
		   "      30.0 MiB    10.0 MiB resident  anonymous\n"
		   "       2.0 MiB           ? resident  files' code  /opt/a/very/long/path/that/leads/to/a/plugin/in"
		   "/some/directory/or/other/libplugin.so.1.2.3\\x0a\n"
		   "       4.0 KiB         0 B resident  shared  /dev/shm/x\n");
	assert_has(text, "    … and 1 more\n");
	free(text);
}

static void fits_the_width(void **state)
{
	(void)state;
	for (unsigned width = 60; width < 140; width++) {
		char *text = render_space("text", &space, width);

		assert_has(text, "heap (brk)");
		assert_has(text, width < 100 ? "  resident            " : "    resident         end");
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			if (mw_utf8_columns(line, strlen(line)) > width)
				fail_msg("wider than %u: %s", width, line);
		free(text);
	}
}

/* Without a look at one of the moments, or at any. */
static void tells_nothing_it_does_not_know(void **state)
{
	struct mw_report_space part = {.end = space.end};
	char *text;

	(void)state;
	part.end.arena_size = MW_SIZE_UNKNOWN;
	text = render_space("text", &part, 0);
	assert_has(text,
		   "  heap (brk)                   ?    20.0 MiB            ?           ?    15.0 MiB            ?\n");
	assert_null(strstr(text, "glibc"));
	assert_null(strstr(text, "unattributed"));
	free(text);
	part.end.known = false;
	text = render_space("text", &part, 0);
	assert_null(strstr(text, "Address space"));
	free(text);
	text = render_space("text", NULL, 0);
	assert_null(strstr(text, "Address space"));
	assert_null(strstr(text, "What the address space held"));
	free(text);
	ended = MW_END_EXIT;
	text = render_space("text", NULL, 0);
	assert_has(text, "  - What the address space held at the end, and so in which heap some blocks were: a process "
			 "that ends by itself is looked at before it does, not one that is killed");
	free(text);
	part = (struct mw_report_space){.start = space.start};
	text = render_space("text", &part, 0);
	assert_has(text, "  - What the address space held at the end");
	free(text);
	text = render_space("text", &space, 0);
	ended = MW_END_DURATION;
	assert_null(strstr(text, "What the address space held"));
	free(text);
}

static json_t *read_back(struct mw_report_space *what)
{
	char *text = render_space("json", what, 0);
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(root);
	free(text);
	return root;
}

static void is_told_as_json(void **state)
{
	json_t *root = read_back(&space);
	json_int_t reserved, resident, count, used, size, vm_resident, committed;
	json_t *list, *unknown, *path, *heap_resident;

	(void)state;
	assert_int_equal(
		json_unpack(root, "{s:{s:{s:{s:I, s:I, s:I}, s:{s:o}}, s:{s:{s:I, s:I}}, s:o}, s:[{s:I}, {s:o}]}",
			    "address_space", "end", "heap", "reserved", &reserved, "resident", &resident, "count",
			    &count, "stack", "resident", &unknown, "arenas", "start", "used", &used, "size", &size,
			    "unattributed", &list, "stacks", "resident", &vm_resident, "resident", &heap_resident),
		0);
	assert_int_equal(reserved, 20 * MIB);
	assert_int_equal(resident, 15 * MIB);
	assert_int_equal(count, 1);
	assert_int_equal(used, 7 * MIB);
	assert_int_equal(size, 10 * MIB);
	assert_int_equal(vm_resident, 4096);
	assert_true(json_is_null(heap_resident));
	assert_true(json_is_null(unknown));
	assert_int_equal(json_array_size(list), 6);
	assert_true(json_is_null(json_object_get(json_array_get(list, 0), "path")));
	path = json_object_get(json_array_get(list, 2), "path");
	assert_string_equal(json_string_value(path), "/dev/shm/x");
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "kind")), "file_text");
	assert_int_equal(json_unpack(root, "{s:{s:[{s:{s:I, s:I}, s:{s:I}}, {s:{s:o}}]}}", "address_space", "named",
				     "end", "committed", &committed, "used", &used, "start", "used", &size, "start",
				     "used", &unknown),
			 0);
	assert_true(committed == (json_int_t)(40 * MIB) && used == (json_int_t)(28 * MIB) &&
		    size == (json_int_t)(16 * MIB));
	assert_true(json_is_null(unknown));
	json_decref(root);
	root = read_back(NULL);
	assert_true(json_is_null(json_object_get(root, "address_space")));
	json_decref(root);
}

UNIT_GROUP(space)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_told_as_text),
		cmocka_unit_test(fits_the_width),
		cmocka_unit_test(tells_nothing_it_does_not_know),
		cmocka_unit_test(is_told_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
