// SPDX-License-Identifier: MIT
/* table_names.c: what options, filters and outputs call the constants of tables (memwatch/table.h). */
#include <memwatch/table.h>

#define NAME_OF(names, number) ((size_t)(number) < sizeof(names) / sizeof((names)[0]) ? (names)[number] : "?")

const char *mw_column_name(enum mw_column column)
{
	static const char *const names[MW_COLUMN_COUNT] = {
		[MW_COLUMN_PROCESS] = "process",   [MW_COLUMN_KIND] = "kind",     [MW_COLUMN_HEAP] = "heap",
		[MW_COLUMN_TYPE] = "type",         [MW_COLUMN_THREAD] = "thread", [MW_COLUMN_MODULE] = "module",
		[MW_COLUMN_FUNCTION] = "function", [MW_COLUMN_STACK] = "stack",   [MW_COLUMN_SIZE] = "size",
		[MW_COLUMN_API] = "api",
	};

	return NAME_OF(names, column);
}

const char *mw_fate_name(enum mw_fate fate)
{
	static const char *const names[MW_FATE_COUNT + 1] = {
		[MW_FATE_IMPACTING] = "impacting",
		[MW_FATE_TRANSIENT] = "transient",
		[MW_FATE_AOFI] = "aofi",
		[MW_FATE_AOFO] = "aofo",
		[MW_FATE_ALL] = "all",
	};

	return NAME_OF(names, fate);
}

const char *mw_sort_name(enum mw_sort sort)
{
	static const char *const names[MW_SORT_NUMBER] = {
		[MW_SORT_IMPACTING] = "impacting", [MW_SORT_SIZE] = "size", [MW_SORT_COUNT] = "count",
		[MW_SORT_TRANSIENT] = "transient", [MW_SORT_PEAK] = "peak", [MW_SORT_LIFETIME] = "lifetime",
		[MW_SORT_AOFI] = "aofi",
	};

	return NAME_OF(names, sort);
}

const char *mw_kind_name(enum mw_kind kind)
{
	static const char *const names[MW_KIND_COUNT] = {
		[MW_KIND_HEAP] = "heap",
		[MW_KIND_VM] = "vm",
		[MW_KIND_VM_INTERNAL] = "vm-internal",
	};

	return NAME_OF(names, kind);
}
