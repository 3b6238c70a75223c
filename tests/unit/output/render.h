/* SPDX-License-Identifier: MIT */
/* render.h: a report as a string, and its golden file. */
#ifndef TEST_OUTPUT_RENDER_H
#define TEST_OUTPUT_RENDER_H

#include <memwatch/output.h>

#include <jansson.h>

/* NULL: there is none of that name. */
const struct mw_output *find_output(const char *name);
/* Malloc'ed. Fails the test where the output fails. */
char *render(const char *form, const struct mw_report *const *reports, size_t count, struct mw_output_options options);
/* The same, read back from JSON. */
json_t *render_json(const char *form, const struct mw_report *const *reports, size_t count,
		    struct mw_output_options options);
char *render_heap(const char *form, const struct mw_heap_report *heap, bool all);
/* Compare with tests/golden/NAME; with MEMWATCH_UPDATE_GOLDEN set in the environment, write that file instead. */
void assert_golden(const char *name, const char *text);

#endif
