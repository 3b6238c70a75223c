/* SPDX-License-Identifier: MIT */
/*
 * suspects.h: stacks merged by the line of the user's own code that they come from, the worst first.
 *
 * The line is the innermost frame in the program or in a library that does not belong to the system, which is neither an
 * allocator's wrapper (zmalloc, PyMem_Malloc, operator new …) nor the insides of a standard library (std::, alloc::). Where
 * there is none, or only main() far out, it is the innermost frame outside allocators and runtimes that is no wrapper.
 * Where an interpreter's frames are known, it is the innermost line of a script that is no part of the language's
 * installation.
 */
#ifndef MW_VIEW_SUSPECTS_H
#define MW_VIEW_SUSPECTS_H

#include "view/arena.h"
#include "view/summary.h"

/* Is it a function through which programs allocate, or one of a standard library? `function` is demangled. */
bool mw_suspects_is_wrapper(const char *function);
/* Is that module, by its path, an interpreter of scripts, or does it belong to one's installation? */
bool mw_suspects_interprets(const char *module);
/* The index of the frame that the stack is charged to; the stack has frames. `exe` is the program's path. */
size_t mw_suspects_frame(const struct mw_report_stack *stack, const char *exe);
/*
 * Fill report->suspects: report->stacks are in their order, and their `group` is the one of `group_of`, by the tracker's
 * numbers. Errors: MEMORY.
 */
struct mw_error *mw_view_suspects(const struct mw_summary_input *input, struct mw_arena *arena,
				  struct mw_report *report, const uint32_t *group_of) MW_MUST_CHECK;

#endif
