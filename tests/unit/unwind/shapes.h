/* SPDX-License-Identifier: MIT */
/* shapes.h: functions without frame descriptions, to be stepped out of. */
#ifndef MW_TESTS_UNIT_UNWIND_SHAPES_H
#define MW_TESTS_UNIT_UNWIND_SHAPES_H

#include <memwatch/arch.h>

/*
 * Call the shape of that number; its name, or NULL where there is none. The last one, "no_return", ends with a call
 * that does not come back.
 */
const char *shape_run(unsigned number);

/*
 * Called from inside a shape with the registers there (pc a return address, stack as after that return), and those that
 * a step out of it is to find. Only what a function must preserve is in either.
 */
void shape_seen(const struct mw_regs *regs, const struct mw_regs *caller);

#endif
