// SPDX-License-Identifier: MIT
/* output.c: the table of forms (include/memwatch/output.h). */
#include <memwatch/output.h>

#include "output/html.h"
#include "output/json.h"
#include "output/text.h"

#include <string.h>

static const struct mw_output outputs[] = {
	{"text", mw_text_write},
	{"json", mw_json_write},
	{"html", mw_html_write},
};

const struct mw_output *mw_output_find(const char *name)
{
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (strcmp(outputs[i].name, name) == 0)
			return &outputs[i];
	return NULL;
}
