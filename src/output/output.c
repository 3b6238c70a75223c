// SPDX-License-Identifier: MIT
/* output.c: the table of formats (include/memwatch/output.h). */
#include <memwatch/output.h>

#include "output/html.h"
#include "output/json.h"
#include "output/text.h"

static const struct mw_output outputs[] = {
	{
		.name = "json",
		.what = "a JSON report",
		.is_own = mw_json_is_own,
		.of_reports = {"the whole report as JSON; '-' is standard output\n",
			       "Write the whole report as JSON; '-' is standard output."},
		.of_diffs = {"all stacks as JSON; '-' is standard output\n",
			     "Write all stacks as JSON; '-' is standard output."},
		.write = mw_json_write,
		.write_diffs = mw_json_diff_write,
	},
	{
		.name = "html",
		.timelines = true,
		.what = "a page",
		.is_own = mw_html_is_own,
		.of_reports = {"a page for the browser; '-' as above\n",
			       "Write a page that shows the report in any browser, and needs nothing else: timeline, "
			       "flame graph, tables, suspects, and any interval of them. '-' is standard output."},
		.write = mw_html_write,
	},
	{.name = "text", .reading = true, .write = mw_text_write, .write_diffs = mw_text_diff_write},
};

_Static_assert(sizeof(outputs) / sizeof(outputs[0]) <= MW_OUTPUTS_MAX, "as many formats as there is room for");

const struct mw_output *mw_output_get(size_t number)
{
	return number < sizeof(outputs) / sizeof(outputs[0]) ? &outputs[number] : NULL;
}
