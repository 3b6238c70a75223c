/* SPDX-License-Identifier: MIT */
/* shop.h: a hand-made process with four stacks, and fates of blocks for it. Nothing in it needs freeing. */
#ifndef TEST_VIEW_SHOP_H
#define TEST_VIEW_SHOP_H

#include "view/views.h"

#define APP   "/opt/shop/bin/shopd"
#define CACHE "/opt/shop/lib/libcache.so.2"
#define LIBC  "/usr/lib/libc.so.6"

/* Tracker's stacks. ORDER_AGAIN is the same report stack as ORDER; NOWHERE is none. */
enum { ORDER, PUT, RESERVE, INTERNAL, ORDER_AGAIN, NOWHERE, SHOP_STACKS };
/* Threads; STRANGER is none. */
enum { MAIN_THREAD, WORKER, STRANGER, SHOP_THREADS = STRANGER };
enum { SHOP_HEAPS = 3 }; /* unknown, "main", "arena 1" */

struct shop {
	struct mw_report report;
	struct mw_report_stack stacks[4];
	struct mw_view_process process;
};

void shop_init(struct shop *shop);

/* The kind of a tracker's stack. */
enum mw_kind shop_kind(uint32_t stack);
/* The interval begins at 1 s; what dies at 0 lives on. Times in milliseconds. */
#define SHOP_FROM_NS UINT64_C(1000000000)
struct mw_track_fate shop_fate(mw_addr addr, uint64_t bytes, uint32_t stack, uint32_t thread, uint64_t born_ms,
			       uint64_t died_ms);
/* Odd addresses (in units of 16) lie in arena 1, others in main; vm is in none. */
uint32_t shop_heap_of(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc);
/* A random one of few sizes, stacks, threads and all fates; `state` is a seed. */
struct mw_track_fate shop_random_fate(uint64_t *state);
uint64_t shop_random(uint64_t *state, uint64_t below);
/* The name of the cells' and lists' fate. */
enum mw_fate shop_type(const struct mw_track_fate *fate);

#endif
