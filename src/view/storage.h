/* SPDX-License-Identifier: MIT */
/* storage.h: of a container, which is replaced by larger storage, for the rules of verdict.h. */
#ifndef MW_VIEW_STORAGE_H
#define MW_VIEW_STORAGE_H

#include "view/course.h"

/* Storage that is replaced by larger storage. */
enum mw_growth_verdict mw_storage_judge(const struct mw_course *course);
/*
 * Storage that is built anew each time, larger than before, by other calls than those that free it: one or a few blocks are
 * there at any time. Moments between a free and the next allocation are no falls.
 */
bool mw_storage_is_built_larger(const struct mw_course *course);
/*
 * What storage of which the stack has one block at a time rises by over the window, to one byte of the largest, where it does
 * so evenly; else 0. Other stacks may have it in between: then the stack has none.
 */
double mw_storage_larger_each_time(const struct mw_course *course);
/* Storage that stood for long: what was freed while the window settled may have been replaced again. */
bool mw_storage_lasts(const struct mw_course *course);

#endif
