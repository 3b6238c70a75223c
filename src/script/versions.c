// SPDX-License-Identifier: MIT
/* versions.c: where CPython's versions have their fields (python.h): offsetof() over the headers of each. */
#include "script/python.h"

#define NONE MW_SCRIPT_NO_FIELD

/* One version a paragraph. */
/* clang-format off */
static const struct python_layout layouts[] = {
	{.minor = 9, .lines = PYTHON_LNOTAB, .interpreters = 32, .current_thread = 568, .next_interpreter = 0, .threads = 8,
	 .next_thread = 8, .ascii = 48, .compact = 72,
	 .walk = {.thread_id = 176, .frame = 24, .cframe_frame = NONE, .previous = 24, .code = 32,
	          .at = 104, .owner = NONE, .is_entry = NONE, .file = 104, .name = 112,
	          .table = 120, .first_line = 40, .bytecode = NONE, .first_traceable = NONE, .at_unit = 1}},
	{.minor = 10, .lines = PYTHON_LINETABLE, .interpreters = 32, .current_thread = 568, .next_interpreter = 0, .threads = 8,
	 .next_thread = 8, .ascii = 48, .compact = 72,
	 .walk = {.thread_id = 176, .frame = 24, .cframe_frame = NONE, .previous = 24, .code = 32,
	          .at = 96, .owner = NONE, .is_entry = NONE, .file = 104, .name = 112,
	          .table = 120, .first_line = 40, .bytecode = NONE, .first_traceable = NONE, .at_unit = 2}},
	{.minor = 11, .lines = PYTHON_LOCATIONS, .interpreters = 40, .current_thread = 576, .next_interpreter = 0, .threads = 16,
	 .next_thread = 8, .ascii = 48, .compact = 72,
	 .walk = {.thread_id = 152, .frame = 56, .cframe_frame = 8, .previous = 48, .code = 32,
	          .at = 56, .owner = 69, .is_entry = 68, .file = 112, .name = 128,
	          .table = 136, .first_line = 72, .bytecode = 184, .first_traceable = 168, .at_unit = 1}},
	{.minor = 12, .lines = PYTHON_LOCATIONS, .interpreters = 40, .current_thread = NONE, .next_interpreter = 0, .threads = 72,
	 .next_thread = 8, .ascii = 40, .compact = 56,
	 .walk = {.thread_id = 136, .frame = 56, .cframe_frame = 0, .previous = 8, .code = 0,
	          .at = 56, .owner = 70, .is_entry = NONE, .file = 112, .name = 128,
	          .table = 136, .first_line = 68, .bytecode = 192, .first_traceable = 176, .at_unit = 1}},
	{.minor = 13, .lines = PYTHON_LOCATIONS, .interpreters = 632, .current_thread = NONE, .next_interpreter = 7264, .threads = 7344,
	 .next_thread = 8, .ascii = 40, .compact = 56,
	 .walk = {.thread_id = 152, .frame = 72, .cframe_frame = NONE, .previous = 8, .code = 0,
	          .at = 56, .owner = 70, .is_entry = NONE, .file = 112, .name = 128,
	          .table = 136, .first_line = 68, .bytecode = 200, .first_traceable = 184, .at_unit = 1}},
	{.minor = 14, .lines = PYTHON_LOCATIONS, .interpreters = 808, .current_thread = NONE, .next_interpreter = 7272, .threads = 7344,
	 .next_thread = 8, .ascii = 40, .compact = 56,
	 .walk = {.thread_id = 152, .frame = 72, .cframe_frame = NONE, .previous = 8, .code = 0,
	          .at = 56, .owner = 74, .is_entry = NONE, .file = 112, .name = 128,
	          .table = 136, .first_line = 68, .bytecode = 208, .first_traceable = 192, .at_unit = 1, .tag = 3}},
};
/* clang-format on */

const struct python_layout *python_layout_of(unsigned minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}
