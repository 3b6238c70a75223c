/* SPDX-License-Identifier: MIT */
/* fixture.h: hand-made reports. Nothing in them needs freeing. */
#ifndef TEST_OUTPUT_FIXTURE_H
#define TEST_OUTPUT_FIXTURE_H

#include <memwatch/view.h>

/* A leaking server: two leaks, a cache, a churning stack, an allocator's own mapping. Its stacks sum up to its totals.
 */
const struct mw_report *fixture_server(void);
/* The same where heap blocks were sampled: the first stack is known by four of them, of the last one in heap by many. */
const struct mw_report *fixture_sampled(void);
/* Nothing happened in it, and its process was killed. */
const struct mw_report *fixture_empty(void);
/* Every name in it is meant to do harm; things were lost and refused. */
const struct mw_report *fixture_hostile(void);

#endif
