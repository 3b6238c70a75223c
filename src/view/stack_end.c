// SPDX-License-Identifier: MIT
/* stack_end.c: see stack_end.h. */
#include "view/stack_end.h"

#include "view/frames.h"

#include <string.h>

static bool begins(const char *text, const char *prefix)
{
	return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Where libraries let a context begin: glibc's makecontext, Boost.Context. */
static bool begins_context(const char *function)
{
	static const char *const names[] = {"__start_context", "__push___start_context", "make_fcontext"};

	for (size_t i = 0; function && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(function, names[i]) == 0)
			return true;
	return false;
}

/* Is it Erlang's virtual machine? All code that it makes is Erlang's, and keeps to a stack of its own. */
static bool is_erlang(const struct mw_summary_input *input)
{
	for (size_t i = 0; i < input->module_count; i++) {
		const char *path = input->modules[i].path, *slash = path ? strrchr(path, '/') : NULL;

		if (begins(slash ? slash + 1 : path, "beam."))
			return true;
	}
	return false;
}

/* Has the code of a frame been made at run time, as far as is known? */
static bool is_generated(const struct mw_summary_input *input, const struct mw_report_frame *frame)
{
	if (frame->generated)
		return frame->function;
	for (size_t i = 0; frame->module && i < input->module_count; i++)
		if (input->modules[i].path && strcmp(input->modules[i].path, frame->module) == 0)
			return mw_view_is_generated(&input->modules[i]);
	return frame->module && strcmp(frame->module, MW_VIEW_NO_FILE) == 0;
}

void mw_view_stack_end(const struct mw_summary_input *input, struct mw_report_stack *stack)
{
	const struct mw_report_frame *last = stack->frame_count ? &stack->frames[stack->frame_count - 1] : NULL;

	stack->end = MW_STACK_END_NONE;
	if (!last || stack->cut == MW_STACK_TRUNCATED)
		return;
	if (stack->cut == MW_STACK_COMPLETE)
		stack->end = begins_context(last->function) ? MW_STACK_END_COROUTINE : MW_STACK_END_NONE;
	else if (begins(last->function, "runtime.asmcgocall"))
		stack->end = MW_STACK_END_GO;
	else if (is_generated(input, last))
		stack->end = is_erlang(input) ? MW_STACK_END_ERLANG : MW_STACK_END_GENERATED;
	if (stack->end == MW_STACK_END_GO || stack->end == MW_STACK_END_ERLANG)
		stack->cut = MW_STACK_COMPLETE;
}
