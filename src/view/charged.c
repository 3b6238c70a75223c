// SPDX-License-Identifier: MIT
/* charged.c: the function that a stack is charged to (group.h). */
#include "view/group.h"

#include <string.h>

/* What compilers instantiate or link into everybody's code: C++'s and Rust's libraries. */
static const char *const library_prefixes[] = {
	"std::",         "__gnu_cxx::",     "operator new", "alloc::alloc::",   "alloc::raw_vec::", "alloc::vec::",
	"alloc::string", "alloc::boxed::",  "core::",       "<alloc::",         "<core::",          "<std::",
	"__rust_",       "__rustc::__rust", "__rdl_",       "hashbrown::raw::",
};

/* A template's demangled name begins with what it returns: its own begins behind the last blank outside of <>. */
static const char *own_name(const char *function)
{
	const char *name = function;
	size_t depth = 0;

	for (const char *at = function; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && depth)
			depth--;
		else if (*at == '(' && !depth && at > name)
			break;
		else if (*at == ' ' && !depth && strncmp(name, "operator", 8) != 0)
			name = at + 1;
	}
	return name;
}

bool mw_view_is_library(const char *function)
{
	const char *name = function ? own_name(function) : "";

	for (size_t i = 0; i < sizeof(library_prefixes) / sizeof(library_prefixes[0]); i++)
		if (strncmp(name, library_prefixes[i], strlen(library_prefixes[i])) == 0)
			return true;
	return false;
}

const struct mw_report_frame *mw_view_charged_frame(const struct mw_report_stack *stack)
{
	const struct mw_report_frame *first = NULL;

	if (!stack->suspect)
		return NULL;
	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct mw_report_frame *frame = &stack->frames[i];

		if (!frame->module || strcmp(frame->module, stack->suspect) != 0)
			continue;
		first = first ? first : frame;
		if (!mw_view_is_library(frame->function))
			return frame;
	}
	return first;
}
