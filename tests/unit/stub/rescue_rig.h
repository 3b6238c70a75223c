/* SPDX-License-Identifier: MIT */
/*
 * rescue_rig.h: the rescue's image in this process, for breakpoints in small functions made here: as if a memwatch had
 * put them in and been killed (memwatch/rescue.h).
 */
#ifndef MW_TEST_RESCUE_RIG_H
#define MW_TEST_RESCUE_RIG_H

#include "stub/stub.h"

#include <memwatch/rescue.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MASK_SIZE    8
#define SLOTS        2048 /* where out-of-line copies begin in the code */
#define STEP         64   /* bytes for each function */
#define CODE_SIZE    8192
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct regs {
	uint64_t gpr[16];
	uint64_t flags, unused;
	uint8_t xmm[256];
};
extern struct regs regs_in, regs_out;
void regs_call(void *function);

/* Leaf functions whose first instruction is displaced, STEP bytes each from the code's beginning on. Each gives its
 * first two arguments' sum and leaves all else to the caller; `slot`: it takes an out-of-line copy. */
struct rig_function {
	const char *name;
	uint8_t bytes[24];
	bool slot;
};
extern const struct rig_function rig_functions[];
extern const size_t rig_function_count;

extern struct rig {
	struct mw_rescue *rescue;
	uint8_t *base, *code;
	struct mw_rescue_action program; /* what this process does with SIGTRAP without all this */
} rig;

typedef uint64_t sum(uint64_t a, uint64_t b);

/* For each test. */
int rig_setup(void **state);
int rig_teardown(void **state);

const struct mw_rescue_header *rig_header(void);
/* rt_sigaction(SIGTRAP, …). */
void rig_action(const struct mw_rescue_action *set, struct mw_rescue_action *old);
/* SIGTRAP goes to the rescue; the program's own action is that which is set now. */
void rig_lead_here(void);
void rig_write_code(size_t at, const uint8_t *bytes, size_t size);
/* A breakpoint at an offset of the code, and all that engine trap leaves word of for it. */
void rig_plant(size_t at, bool slot, uint32_t kind);
void rig_plant_all(void);
void *rig_function_at(size_t at);
sum *rig_sum_at(size_t at);
uint64_t rig_random_word(void);
void rig_random_regs(struct regs *regs);
/* Run it in a child, whose wait status must be `expected`. */
void rig_assert_child(void (*body)(void), int expected);

#endif
