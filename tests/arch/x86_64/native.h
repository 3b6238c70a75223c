/* SPDX-License-Identifier: MIT */
/*
 * native.h: runs one instruction on this very processor with all registers given, and says what
 * they were afterwards. The judge of emulation and relocation; x86-64 hosts only.
 */
#ifndef TESTS_ARCH_X86_64_NATIVE_H
#define TESTS_ARCH_X86_64_NATIVE_H

#include <memwatch/arch.h>

/* Where control came out. */
enum native_exit {
	NATIVE_FELL_THROUGH, /* behind the instruction */
	NATIVE_TAKEN,        /* at the code's branch target */
};

struct native_state {
	uint64_t gpr[MW_REG_COUNT]; /* DWARF order */
	uint64_t flags;
	uint64_t entry;
	uint64_t saved_sp;
	uint64_t exit; /* enum native_exit */
	uint8_t xmm0[16];
};

#define NATIVE_DATA_SIZE  64
#define NATIVE_STACK_SIZE 512
#define NATIVE_TAKEN_DISP 0x40 /* the branch target, counted from the end of the instruction */

/*
 * A page of code, its data and its stack, in one writable and executable mapping, so that the
 * instruction at `code` reaches `data` by a displacement.
 *
 *	code     the instruction, a jump to the exit "fell through"
 *	         at its end + NATIVE_TAKEN_DISP: a jump to the exit "taken"
 *	copy     room for a relocated copy of it
 *	data     what a pc-relative operand refers to
 *	stack    rsp starts in the middle
 */
struct native_arena {
	uint8_t *code;
	uint8_t *copy;
	uint8_t *data;
	uint8_t *stack;
};

void native_arena_init(struct native_arena *arena);
void native_arena_deinit(struct native_arena *arena);

/* Put the instruction and the exits behind it at arena->code. */
void native_arena_load(struct native_arena *arena, const uint8_t *bytes, size_t size);
/* Where the branch target of an instruction of `size` bytes is. */
uint64_t native_arena_taken(const struct native_arena *arena, size_t size);

/* Run the code at `entry`; `state` goes in and comes out. */
void native_run(struct native_state *state, const uint8_t *entry);

/* Random numbers that include many corner values; the same every run. */
uint64_t native_random(void);

#endif
