/* SPDX-License-Identifier: MIT */
/*
 * rig.h: the recorder's C, linked into the test, on made-up stacks.
 *
 * Code lies where nobody executes it: each kind of row has a range of its own. A made-up stack grows down from
 * rig.high; rig_frames() puts return addresses there as functions with 16-byte frames would.
 */
#ifndef TEST_STUB_RIG_H
#define TEST_STUB_RIG_H

#include "shared.h"
#include "stub/recorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CODE_SP      0x10000u /* CFA = sp + 16 */
#define CODE_END     0x20000u
#define CODE_SIGNAL  0x30000u
#define CODE_SLOW    0x40000u
#define CODE_FOREIGN 0x50000u
#define CODE_FP      0x60000u /* CFA = fp + 16, fp saved at CFA - 16 */
#define CODE_DEREF   0x70000u /* CFA = word at fp - 8, fp saved where it is */
#define CODE_SAVED   0x80000u /* CFA = sp + 32, fp saved at CFA - 16 */
#define CODE_LOST    0x90000u /* CFA = sp + 16, fp lost */
#define CODE_UP      0xa0000u /* CFA = sp - 16: nonsense */
#define CODE_NONE    0xb0000u /* nobody knows */
#define CODE_CALLED  0xc0000u /* as FP, at calls alone */
#define CODE_ASK     0xd0000u /* memwatch knows */
#define CODE_READ    0xe0000u /* interpreted */
#define CODE_DEOPT   0xf0000u /* CFA = sp + 32, the return address that was at sp + 8 */

enum {
	HOOK_MALLOC,
	HOOK_CALLOC,
	HOOK_REALLOC,
	HOOK_REALLOCARRAY,
	HOOK_FREE,
	HOOK_MEMALIGN,
	HOOK_RESIZE,
	HOOK_MMAP,
	HOOK_MUNMAP,
	HOOK_MREMAP,
	HOOK_BRK,
	HOOK_SBRK,
	HOOK_STRDUP,
	HOOK_LOADER,
	HOOK_EXIT,
	HOOK_SILENT
};

#define STACK_WORDS 4096

struct rig_thread {
	uint64_t tid_word[2]; /* the control block */
	uint64_t stack[STACK_WORDS] __attribute__((aligned(64)));
};

struct rig {
	struct shared shared;
	uint32_t guard;
	struct rig_thread *thread; /* whose turn it is */
	uint64_t ticks;
	void (*on_ticks)(void);  /* once, then NULL */
	unsigned on_ticks_after; /* so many calls of it are let go before */
	void (*on_pause)(void);
	unsigned pauses;
};

extern struct rig rig;

int rig_setup(void **state);
int rig_setup_with(const struct shared_plan *plan);
int rig_teardown(void **state);
struct rig_thread *rig_thread_new(uint32_t tid);
void rig_thread_free(struct rig_thread *thread);
/* The thread that calls is that one from now on. */
void rig_be(struct rig_thread *thread);
static inline uint64_t rig_tp(const struct rig_thread *thread)
{
	return (uint64_t)(uintptr_t)thread;
}

/* A call at word `at` of the thread's stack; `count` return addresses, the caller's first, as frames of 16 bytes. */
struct mw_stub_call *rig_frames(unsigned at, const uint64_t *pcs, unsigned count);
/* The same with `count` frames in CODE_SP and an end. */
struct mw_stub_call *rig_stack(unsigned at, unsigned count);

extern struct mw_stub_saved rig_saved; /* as enter found it the last time */
unsigned rig_enter(struct mw_stub_call *call, uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* Enter at a usual stack; the call has to be wrapped. */
struct mw_stub_call *rig_call(uint32_t hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* The next record of the thread's ring; THREAD and STACK records are let pass by rig_event. */
struct shared_record *rig_record(void);
struct shared_record *rig_event(void);
void rig_expect(uint32_t type, uint64_t addr, uint64_t size);
void rig_expect_none(void);
struct mw_ring_slot *rig_slot(void);

#endif
