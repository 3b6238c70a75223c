/* SPDX-License-Identifier: MIT */
/* group.h: blocks sorted into rows, by several columns one within the other. */
#ifndef MW_VIEW_GROUP_H
#define MW_VIEW_GROUP_H

#include "view/arena.h"
#include "view/views.h"

/*
 * A table of the cells of all processes, in the arena. At each level the first `top` rows that have any block of the
 * question's type are shown, the others are one row. vm-internal blocks count only where kinds are a column, or where
 * the filter names theirs: the heap's blocks lie in them.
 *
 * The function of a stack is that of the innermost frame of the module that it is charged to, but for templates and
 * wrappers of the language's library that were compiled into that module. Errors: MEMORY.
 */
struct mw_error *mw_view_groups(const struct mw_view_question *question, const struct mw_view_process *processes,
				size_t count, struct mw_arena *arena, const struct mw_table **out) MW_MUST_CHECK;

/* That frame, or NULL where all is runtime. */
const struct mw_report_frame *mw_view_charged_frame(const struct mw_report_stack *stack);
/* Is a function of that (demangled) name one that compilers put into everybody's code? */
bool mw_view_is_library(const char *function);

#endif
