// SPDX-License-Identifier: MIT
/*
 * code_frame.c: how to get from a return address to the caller in a function without unwind information
 * (mw_arch.frame_at).
 *
 * Two readings of the code, which must agree. From the function's start to the call, each instruction says how far the
 * stack pointer is below the CFA and what has become of the frame pointer:
 *
 *     f:   push %rbp            CFA = rsp + 16, rbp saved at CFA - 16
 *          mov  %rsp,%rbp       CFA = rbp + 16
 *          sub  $0x20,%rsp      CFA = rsp + 48
 *          call malloc
 *     pc:  …
 *          add  $0x20,%rsp
 *          pop  %rbp
 *          ret                  return address at rsp(pc) + 40
 *
 * and from the call on, the returns say where they will find the return address (ways_out.c). Where the function does
 * not return from there the first reading alone counts, if it is known where the function begins and ends and no jump
 * was met whose target is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/code_state.h"
#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

#define MAX_INSNS   6000
#define MAX_PENDING 128
#define MAX_WAYS    8
#define WORD        8

/* Register values that stand for themselves in what ways_out() says. */
#define SOME_SP (UINT64_C(1) << 44)
#define SOME_FP (UINT64_C(1) << 46)
#define NEAR    (UINT64_C(1) << 30)

struct visit {
	bool seen;
	struct mw_x86_state state;
};

struct reading {
	const uint8_t *bytes;
	size_t size, start, limit, pc; /* offsets: the function lies in [start, limit) as far as is known */
	mw_addr base;
	struct visit *visits; /* one a byte from start to limit */
	size_t pending[MAX_PENDING];
	size_t pending_count, insns;
	bool blind; /* not everything was followed, but for jumps to what a register or a table says */
	bool reached, indirect;
	struct mw_x86_state at_call, at_indirect;
};

static void note(bool *seen, struct mw_x86_state *into, const struct mw_x86_state *state)
{
	if (*seen)
		(void)mw_x86_state_merge(into, state);
	else
		*into = *state;
	*seen = true;
}

/* The instruction at offset `at` can be come to in that state. */
static void reach(struct reading *reading, size_t at, const struct mw_x86_state *state)
{
	struct visit *visit;

	/* A jump to the very start is a call in the function's place; elsewhere are other functions. */
	if (at <= reading->start || at >= reading->limit)
		return;
	visit = &reading->visits[at - reading->start];
	if (visit->seen && !mw_x86_state_merge(&visit->state, state))
		return;
	if (!visit->seen)
		visit->state = *state;
	visit->seen = true;
	if (reading->pending_count == MAX_PENDING) {
		reading->blind = true;
		return;
	}
	reading->pending[reading->pending_count++] = at;
}

/* False where the path does not go on to what follows. */
static bool branch(struct reading *reading, const struct mw_x86_state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *target = &insn->x86.operands[0];

	if (insn->x86.op_count != 1 || target->type != X86_OP_IMM) {
		note(&reading->indirect, &reading->at_indirect, state);
		return false;
	}
	if ((mw_addr)target->imm - reading->base < reading->size)
		reach(reading, (size_t)((mw_addr)target->imm - reading->base), state);
	return insn->id != X86_INS_JMP;
}

static bool calls_next(const struct reading *reading, const struct mw_x86_insn *insn, size_t next)
{
	return insn->x86.op_count == 1 && insn->x86.operands[0].type == X86_OP_IMM &&
	       (mw_addr)insn->x86.operands[0].imm == reading->base + next;
}

static bool ends(const struct mw_x86_insn *insn)
{
	return insn->id == X86_INS_RET || insn->id == X86_INS_HLT || insn->id == X86_INS_UD2 ||
	       insn->id == X86_INS_INT3 || insn->id == X86_INS_RETF || insn->id == X86_INS_IRETQ;
}

/* Follow the instructions from `at` until a path that has been followed in that state. */
static void follow(struct reading *reading, size_t at)
{
	for (;;) {
		struct mw_x86_state state = reading->visits[at - reading->start].state;
		struct visit *visit;
		struct mw_x86_insn insn;
		size_t next;

		if (++reading->insns > MAX_INSNS ||
		    !mw_x86_decode(reading->bytes + at, reading->limit - at, reading->base + at, &insn)) {
			reading->blind = true;
			return;
		}
		next = at + insn.length;
		if (mw_x86_in_group(&insn, X86_GRP_CALL)) {
			if (calls_next(reading, &insn, next))
				mw_x86_state_move(&state, WORD);
			else if (next == reading->pc)
				note(&reading->reached, &reading->at_call, &state);
		} else if (ends(&insn)) {
			return;
		} else if (mw_x86_in_group(&insn, X86_GRP_JUMP)) {
			if (!branch(reading, &state, &insn))
				return;
		} else {
			mw_x86_state_apply(&state, &insn);
		}
		if (next >= reading->limit)
			return;
		visit = &reading->visits[next - reading->start];
		if (visit->seen && !mw_x86_state_merge(&visit->state, &state))
			return;
		if (!visit->seen)
			visit->state = state;
		visit->seen = true;
		at = next;
	}
}

static void read_function(struct reading *reading)
{
	struct visit *first;

	reading->visits = calloc(reading->limit - reading->start, sizeof(*reading->visits));
	if (!reading->visits)
		return;
	first = &reading->visits[0];
	first->seen = true;
	first->state = (struct mw_x86_state){.sp_known = true, .sp_below = WORD};
	follow(reading, reading->start);
	while (reading->pending_count > 0)
		follow(reading, reading->pending[--reading->pending_count]);
	free(reading->visits);
	reading->visits = NULL;
}

/* push %rbp; mov %rsp,%rbp, in either encoding. */
static bool is_prologue(const uint8_t *bytes)
{
	static const uint8_t a[] = {0x55, 0x48, 0x89, 0xe5}, b[] = {0x55, 0x48, 0x8b, 0xec};

	return memcmp(bytes, a, sizeof(a)) == 0 || memcmp(bytes, b, sizeof(b)) == 0;
}

#define PROLOGUE 4

/* The last prologue that sets up a frame pointer and begins before `pc`; `size` where there is none. */
static size_t prologue_before(const uint8_t *bytes, size_t size, size_t pc)
{
	for (size_t at = pc < size ? pc : size; at-- > 0;)
		if (bytes[at] == 0x55 && size - at >= PROLOGUE && is_prologue(bytes + at))
			return at;
	return size;
}

static size_t prologue_behind(const uint8_t *bytes, size_t size, size_t pc)
{
	for (size_t at = pc; at + PROLOGUE <= size; at++)
		if (bytes[at] == 0x55 && is_prologue(bytes + at))
			return at;
	return size;
}

/* Where the function that holds the call before `pc` begins and ends at the latest. */
static bool find_function(struct reading *reading, const struct mw_code_function *known)
{
	size_t found = reading->size, start = reading->size;

	reading->limit = reading->size;
	if (known->end > reading->base + reading->pc && known->end - reading->base < reading->limit)
		reading->limit = (size_t)(known->end - reading->base);
	else if (known->exact && known->end == reading->base + reading->pc)
		reading->limit = reading->pc;
	if (known->start && known->start >= reading->base && known->start < reading->base + reading->pc)
		start = (size_t)(known->start - reading->base);
	if (!known->exact) {
		size_t behind = prologue_behind(reading->bytes, reading->limit, reading->pc);

		found = prologue_before(reading->bytes, reading->size, reading->pc);
		reading->limit = behind;
	}
	if (found < reading->size && (start == reading->size || found > start))
		start = found;
	reading->start = start;
	return start < reading->pc && reading->pc <= reading->limit;
}

/* The ways out from the pc, by registers that are not known. */
struct exits {
	struct mw_way_out ways[MAX_WAYS];
	size_t count;
	bool blind;
};

static void find_exits(const struct reading *reading, struct exits *exits)
{
	struct mw_regs regs = {.pc = reading->base + reading->pc};

	regs.gpr[MW_X86_RSP] = SOME_SP;
	regs.gpr[MW_X86_RBP] = SOME_FP;
	exits->blind = false;
	exits->count = 0;
	if (reading->pc < reading->limit)
		exits->count = mw_x86_ways_out(reading->bytes + reading->start, reading->limit - reading->start,
					       reading->base + reading->start, reading->base + reading->pc, &regs,
					       exits->ways, MAX_WAYS, &exits->blind);
}

/* Does a way find the return address where the state has it? */
static const struct mw_way_out *find_way(const struct exits *exits, const struct mw_x86_state *state)
{
	for (size_t i = 0; i < exits->count; i++) {
		const struct mw_way_out *way = &exits->ways[i];
		uint64_t from_sp = way->return_at - SOME_SP, from_fp = way->return_at - SOME_FP;

		if (state->sp_known && from_sp < NEAR && from_sp + WORD == (uint64_t)state->sp_below)
			return way;
		if (state->fp == MW_X86_FP_FRAME && from_fp < NEAR && from_fp + WORD == (uint64_t)state->fp_below)
			return way;
	}
	return NULL;
}

/* Does the way take the frame pointer back from where the state has it? */
static bool restores_as_saved(const struct mw_way_out *way, const struct mw_x86_state *state)
{
	uint64_t below = way->return_at + WORD - way->restored_at[MW_X86_RBP];

	if (!(way->restored & 1u << MW_X86_RBP))
		return !state->fp_saved;
	return state->fp_saved && below == (uint64_t)state->saved_below;
}

static bool frame_of(const struct mw_x86_state *state, bool fp_certain, bool exact, struct mw_code_frame *out)
{
	/* Calls are made on an aligned stack. What follows no rules may be said only of what surely is a function. */
	int32_t unit = exact ? WORD : 2 * WORD;
	struct mw_code_frame frame = {.fp = MW_CODE_FP_LOST};

	if (fp_certain && state->fp_saved) {
		frame.fp = MW_CODE_FP_SAVED;
		frame.fp_at = -state->saved_below;
	} else if (fp_certain && state->fp == MW_X86_FP_CALLERS) {
		frame.fp = MW_CODE_FP_SAME;
	}
	frame.by_fp = !state->sp_known || state->sp_below % unit;
	if (frame.by_fp && (state->fp != MW_X86_FP_FRAME || state->fp_below % unit))
		return false;
	frame.cfa = frame.by_fp ? state->fp_below : state->sp_below;
	*out = frame;
	return true;
}

/* Is there a frame that both readings give? */
static bool conclude(const struct reading *reading, const struct mw_code_function *known, struct mw_code_frame *out)
{
	const struct mw_x86_state *state = reading->reached ? &reading->at_call : &reading->at_indirect;
	const struct mw_way_out *way;
	struct exits exits;

	if (!reading->reached && !reading->indirect)
		return false;
	find_exits(reading, &exits);
	way = find_way(&exits, state);
	/* By a jump table, perhaps: what is said before it must be all that can be said behind. */
	if (way)
		return (reading->reached || exits.count == 1) &&
		       frame_of(state, restores_as_saved(way, state), known->exact, out);
	/* It does not return from here: then what is before the call may as well be another function's end. */
	return reading->reached && exits.count == 0 && !reading->blind && !reading->indirect && known->exact &&
	       frame_of(state, true, true, out);
}

/* [endbr64;] xor %ebp,%ebp: a program's first function, which ends the chain of frame pointers so. No other gives up
 * its caller's frame pointer before it has put it aside. */
static bool is_first_function(const struct reading *reading)
{
	static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa}, narrow[] = {0x31, 0xed}, wide[] = {0x48, 0x31, 0xed};
	const uint8_t *code = reading->bytes + reading->start;
	size_t size = reading->pc - reading->start;

	if (size >= sizeof(mark) && memcmp(code, mark, sizeof(mark)) == 0) {
		code += sizeof(mark);
		size -= sizeof(mark);
	}
	return (size >= sizeof(narrow) && memcmp(code, narrow, sizeof(narrow)) == 0) ||
	       (size >= sizeof(wide) && memcmp(code, wide, sizeof(wide)) == 0);
}

bool mw_x86_frame_at(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, const struct mw_code_function *known,
		     struct mw_code_frame *out)
{
	struct reading reading = {.bytes = bytes, .size = size, .base = base, .pc = (size_t)(pc - base)};

	if (pc <= base || pc - base > size || !find_function(&reading, known))
		return false;
	read_function(&reading);
	if (reading.reached && is_first_function(&reading)) {
		*out = (struct mw_code_frame){.outermost = true};
		return true;
	}
	return conclude(&reading, known, out);
}

size_t mw_x86_call_target(const uint8_t *bytes, size_t size, mw_addr base, size_t from, mw_addr *target)
{
	for (size_t at = from; at + 5 <= size; at++) {
		int32_t displacement;

		if (bytes[at] != 0xe8)
			continue;
		memcpy(&displacement, bytes + at + 1, sizeof(displacement));
		if (displacement == 0) /* to have the pc on the stack */
			continue;
		*target = base + at + 5 + (uint64_t)(int64_t)displacement;
		return at + 1;
	}
	return size;
}
