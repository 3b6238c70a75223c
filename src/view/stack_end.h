/* SPDX-License-Identifier: MIT */
/* stack_end.h: what a stack ends at, by its last frame. */
#ifndef MW_VIEW_STACK_END_H
#define MW_VIEW_STACK_END_H

#include "view/summary.h"

/*
 * Set stack->end from its frames and stack->cut. Where the code that it ends at is known to have no native caller, and
 * which other code has called it is not on this stack (Go's runtime, Erlang), it is not cut any more.
 */
void mw_view_stack_end(const struct mw_summary_input *input, struct mw_report_stack *stack);

#endif
