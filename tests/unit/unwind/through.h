/* SPDX-License-Identifier: MIT */
/* through.h: the library that calls back. */
#ifndef MW_TESTS_UNIT_UNWIND_THROUGH_H
#define MW_TESTS_UNIT_UNWIND_THROUGH_H

/* Call back through two frames of the library; the callback's result. */
int unwind_through(int (*callback)(void *context), void *context);

#endif
