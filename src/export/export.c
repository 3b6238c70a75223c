// SPDX-License-Identifier: MIT
/* export.c: the table of formats (include/memwatch/export.h). */
#include <memwatch/export.h>

static const struct mw_export_format *const formats[] = {
	&mw_export_pprof, &mw_export_collapsed, &mw_export_speedscope, &mw_export_callgrind,
	&mw_export_dhat,  &mw_export_sqlite,    &mw_export_heaptrack};

const struct mw_export_format *mw_export_get(size_t number)
{
	return number < sizeof(formats) / sizeof(formats[0]) ? formats[number] : NULL;
}

const char *mw_export_measure_name(enum mw_export_measure measure)
{
	static const char *const names[MW_EXPORT_MEASURES] = {"inuse_space", "inuse_objects", "alloc_space",
							      "alloc_objects"};

	return measure < MW_EXPORT_MEASURES ? names[measure] : "?";
}
