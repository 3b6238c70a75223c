// SPDX-License-Identifier: MIT
/* names.c: what reports call the contracts' constants (memwatch/engine.h). */
#include <memwatch/engine.h>
#include <memwatch/view.h>

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

	return role < MW_ROLE_COUNT ? names[role] : "?";
}

const char *mw_window_end_name(enum mw_window_end end)
{
	static const char *const names[] = {
		[MW_END_DURATION] = "duration", [MW_END_INTERRUPT] = "interrupt", [MW_END_EXIT] = "exit",
		[MW_END_EXEC] = "exec",         [MW_END_TRIGGER] = "trigger",     [MW_END_LIMIT] = "limit",
		[MW_END_LOST] = "lost",
	};

	return (size_t)end < sizeof(names) / sizeof(names[0]) ? names[end] : "?";
}

const char *mw_stack_end_name(enum mw_stack_end end)
{
	switch (end) {
	case MW_STACK_END_COROUTINE:
		return "coroutine";
	case MW_STACK_END_GENERATED:
		return "generated code";
	case MW_STACK_END_ERLANG:
		return "Erlang code";
	case MW_STACK_END_GO:
		return "Go runtime";
	case MW_STACK_END_NONE:
		break;
	}
	return NULL;
}

const char *mw_growth_name(enum mw_growth_verdict verdict)
{
	static const char *const names[] = {
		[MW_GROWTH_TOO_SHORT] = "too short to tell",
		[MW_GROWTH_ONE_OFF] = "one-off",
		[MW_GROWTH_CHURN] = "churn",
		[MW_GROWTH_PLATEAU] = "plateau",
		[MW_GROWTH_STEADY] = "steady growth",
	};

	return (size_t)verdict < sizeof(names) / sizeof(names[0]) ? names[verdict] : "?";
}
