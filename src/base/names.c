// SPDX-License-Identifier: MIT
/* names.c: what reports, options and filters call the contracts' constants. */
#include <memwatch/engine.h>
#include <memwatch/heap.h>
#include <memwatch/table.h>
#include <memwatch/view.h>

#include <string.h>

#define NAME_OF(names, number) ((size_t)(number) < sizeof(names) / sizeof((names)[0]) ? (names)[number] : "?")

const char *mw_role_name(enum mw_role role)
{
	static const char *const names[MW_ROLE_COUNT] = {
		[MW_ROLE_MALLOC] = "malloc",   [MW_ROLE_CALLOC] = "calloc",
		[MW_ROLE_REALLOC] = "realloc", [MW_ROLE_REALLOCARRAY] = "reallocarray",
		[MW_ROLE_FREE] = "free",       [MW_ROLE_POSIX_MEMALIGN] = "posix_memalign",
		[MW_ROLE_RESIZE] = "resize",   [MW_ROLE_MMAP] = "mmap",
		[MW_ROLE_MUNMAP] = "munmap",   [MW_ROLE_MREMAP] = "mremap",
		[MW_ROLE_BRK] = "brk",         [MW_ROLE_SBRK] = "sbrk",
	};

	return NAME_OF(names, role);
}

const char *mw_language_name(enum mw_language language)
{
	static const char *const names[MW_LANGUAGE_COUNT] = {
		[MW_LANGUAGE_NATIVE] = "native",         [MW_LANGUAGE_PYTHON] = "python", [MW_LANGUAGE_JAVA] = "java",
		[MW_LANGUAGE_JAVASCRIPT] = "javascript", [MW_LANGUAGE_GO] = "go",
	};

	return NAME_OF(names, language);
}

const char *mw_frames_name(enum mw_frames frames)
{
	static const char *const names[] = {
		[MW_FRAMES_DEFAULT] = "own",
		[MW_FRAMES_ALL] = "all",
		[MW_FRAMES_OWN] = "own",
		[MW_FRAMES_SCRIPT] = "script",
	};

	return NAME_OF(names, frames);
}

const char *mw_overload_name(enum mw_overload overload)
{
	static const char *const names[] = {
		[MW_OVERLOAD_WAIT] = "wait",
		[MW_OVERLOAD_SAMPLE] = "sample",
		[MW_OVERLOAD_DROP] = "drop",
	};

	return NAME_OF(names, overload);
}

const char *mw_heap_change_name(enum mw_heap_change_kind kind)
{
	static const char *const names[MW_HEAP_CHANGE_COUNT] = {
		[MW_HEAP_CHANGE_BLOCKS] = "blocks",       [MW_HEAP_CHANGE_FREED] = "older_freed",
		[MW_HEAP_CHANGE_ALLOCATOR] = "allocator", [MW_HEAP_CHANGE_MAPPINGS] = "mappings",
		[MW_HEAP_CHANGE_REST] = "rest",
	};

	return NAME_OF(names, kind);
}

const char *mw_reach_name(enum mw_reach reach)
{
	static const char *const names[] = {
		[MW_REACH_DEFINITE] = "definitely lost",
		[MW_REACH_INDIRECT] = "indirectly lost",
		[MW_REACH_POSSIBLE] = "possibly lost",
		[MW_REACH_REACHABLE] = "still reachable",
	};

	return NAME_OF(names, reach);
}

const char *mw_window_end_name(enum mw_window_end end)
{
	static const char *const names[] = {
		[MW_END_DURATION] = "duration", [MW_END_INTERRUPT] = "interrupt", [MW_END_EXIT] = "exit",
		[MW_END_EXEC] = "exec",         [MW_END_TRIGGER] = "trigger",     [MW_END_LIMIT] = "limit",
		[MW_END_LOST] = "lost",         [MW_END_RUNNING] = "running",
	};

	return NAME_OF(names, end);
}

const char *mw_stack_end_name(enum mw_stack_end end)
{
	static const char *const names[] = {
		[MW_STACK_END_COROUTINE] = "coroutine",
		[MW_STACK_END_GENERATED] = "generated code",
		[MW_STACK_END_ERLANG] = "Erlang code",
		[MW_STACK_END_GO] = "Go runtime",
	};

	return (size_t)end < sizeof(names) / sizeof(names[0]) ? names[end] : NULL;
}

const char *mw_growth_name(enum mw_growth_verdict verdict)
{
	static const char *const names[] = {
		[MW_GROWTH_TOO_SHORT] = "too short to tell",
		[MW_GROWTH_ONE_OFF] = "one-off",
		[MW_GROWTH_CHURN] = "churn",
		[MW_GROWTH_PLATEAU] = "plateau",
		[MW_GROWTH_STEADY_STATE] = "steady state",
		[MW_GROWTH_STEADY] = "steady growth",
		[MW_GROWTH_STEPWISE] = "stepwise growth",
		[MW_GROWTH_ACCELERATING] = "accelerating",
		[MW_GROWTH_CONTAINER] = "growing container",
	};

	return NAME_OF(names, verdict);
}

const char *mw_column_name(enum mw_column column)
{
	static const char *const names[MW_COLUMN_COUNT] = {
		[MW_COLUMN_PROCESS] = "process",   [MW_COLUMN_KIND] = "kind",     [MW_COLUMN_HEAP] = "heap",
		[MW_COLUMN_TYPE] = "type",         [MW_COLUMN_THREAD] = "thread", [MW_COLUMN_MODULE] = "module",
		[MW_COLUMN_FUNCTION] = "function", [MW_COLUMN_STACK] = "stack",   [MW_COLUMN_SIZE] = "size",
		[MW_COLUMN_API] = "api",           [MW_COLUMN_LINE] = "line",     [MW_COLUMN_LANGUAGE] = "language",
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

const char *mw_plain_type(const char *word)
{
	static const struct {
		const char *plain;
		enum mw_fate fate;
	} words[] = {{"not-freed", MW_FATE_IMPACTING},
		     {"freed", MW_FATE_TRANSIENT},
		     {"older", MW_FATE_AOFI},
		     {"older-kept", MW_FATE_AOFO}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i].plain) == 0)
			return mw_fate_name(words[i].fate);
	return word;
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
