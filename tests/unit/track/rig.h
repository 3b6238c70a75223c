/* SPDX-License-Identifier: MIT */
/* rig.h: a tracker with a sink at hand, for tests. */
#ifndef MW_TEST_TRACK_RIG_H
#define MW_TEST_TRACK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "track/track.h"

struct rig {
	struct mw_track *track;
	struct mw_event_sink sink;
	uint32_t heap, vm, internal; /* a stack of each kind */
	uint32_t thread[3];
};

/* cmocka setup and teardown: *state is a struct rig. The teardown checks rig_check() once more. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* Intern a stack of three frames that depend on `seed`. */
uint32_t rig_stack(struct rig *rig, enum mw_kind kind, uint32_t seed);
/* Send an event that must be taken. */
void rig_send(struct rig *rig, struct mw_event event);
/* Send an event that must be refused with an error of that kind. */
void rig_refuse(struct rig *rig, struct mw_event event, enum mw_error_kind kind);

/* Shorthands; stack is rig->heap or rig->vm, thread is rig->thread[t]. */
void rig_alloc(struct rig *rig, uint64_t time, mw_addr addr, uint64_t size);
void rig_free(struct rig *rig, uint64_t time, mw_addr addr);
void rig_heap(struct rig *rig, enum mw_event_type type, uint64_t time, int t, mw_addr addr, uint64_t size);
void rig_vm(struct rig *rig, enum mw_event_type type, uint64_t time, int t, mw_addr addr, uint64_t size);

struct mw_track_totals rig_totals(const struct rig *rig, enum mw_kind kind);
struct mw_track_stack rig_of_stack(const struct rig *rig, uint32_t id);
/* Assert an amount. */
#define rig_amount(amount, n, b)                                                                                       \
	do {                                                                                                           \
		assert_int_equal((amount).count, (n));                                                                 \
		assert_int_equal((amount).bytes, (b));                                                                 \
	} while (0)

/* Everything that must hold at any time: sums over stacks, threads and live blocks equal the totals. */
void rig_check(const struct rig *rig);
/* rig_check() of a tracker. */
void rig_check_track(const struct mw_track *track);

#endif
