/* SPDX-License-Identifier: MIT */
/* undescribed.h: a library that is built without unwind information, and its caller. */
#ifndef MW_TEST_UNDESCRIBED_H
#define MW_TEST_UNDESCRIBED_H

typedef void (*undescribed_step)(unsigned level);

/* Each calls step(level) through frames of its own. */
void undescribed_go(undescribed_step step, unsigned kind, unsigned level);
/* How many kinds there are. */
unsigned undescribed_kinds(void);

#endif
