// SPDX-License-Identifier: MIT
/* output.c: the table of formats (include/memwatch/output.h). */
#include <memwatch/output.h>

static const struct mw_output *const outputs[] = {&mw_output_json, &mw_output_html, &mw_output_junit, &mw_output_sarif,
						  &mw_output_text};

_Static_assert(sizeof(outputs) / sizeof(outputs[0]) <= MW_OUTPUTS_MAX, "as many formats as there is room for");

const struct mw_output *mw_output_get(size_t number)
{
	return number < sizeof(outputs) / sizeof(outputs[0]) ? outputs[number] : NULL;
}
