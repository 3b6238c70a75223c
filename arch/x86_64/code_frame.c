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
 * was met whose target is not known. So it does in a function all of whose code is known to be its own.
 */
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/x86_64.h"

#define MAX_INSNS   6000
#define MAX_PENDING 128
#define MAX_WAYS    8
#define WORD        8

/* Register values that stand for themselves in what ways_out() says. */
#define SOME_SP (UINT64_C(1) << 44)
#define SOME_FP (UINT64_C(1) << 46)
#define NEAR    (UINT64_C(1) << 30)

/* --- stack and frame pointer, instruction by instruction ------------------------------------------------- */

#define MAX_BELOW (1 << 24) /* no frame is larger */

enum fp { FP_CALLERS, FP_FRAME, FP_OTHER };

/* What is known before an instruction. Distances are from the CFA down. */
struct state {
	bool sp_known, fp_saved;
	uint8_t fp; /* enum fp */
	int32_t sp_below, fp_below, saved_below;
};

/* Where two paths meet: what both know. True where `into` knows less than before. */
static bool merge(struct state *into, const struct state *from)
{
	struct state was = *into;

	if (into->sp_known && (!from->sp_known || from->sp_below != into->sp_below))
		into->sp_known = false;
	if (into->fp != from->fp || (into->fp == FP_FRAME && into->fp_below != from->fp_below))
		into->fp = FP_OTHER;
	if (into->fp_saved && (!from->fp_saved || from->saved_below != into->saved_below))
		into->fp_saved = false;
	return was.sp_known != into->sp_known || was.fp != into->fp || was.fp_saved != into->fp_saved;
}

static bool is_register(const cs_x86_op *operand, uint8_t wanted)
{
	uint8_t code, width;

	return operand->type == X86_OP_REG && mw_x86_register(operand->reg, &code, &width) &&
	       (code & ~MW_X86_HIGH) == wanted && !(code & MW_X86_HIGH);
}

static bool is_whole(const cs_x86_op *operand, uint8_t wanted)
{
	uint8_t code, width;

	return operand->type == X86_OP_REG && mw_x86_register(operand->reg, &code, &width) && code == wanted &&
	       width == WORD;
}

static bool has_register(const struct mw_x86_insn *insn, unsigned from, uint8_t wanted)
{
	for (unsigned i = from; i < insn->x86.op_count; i++)
		if (is_register(&insn->x86.operands[i], wanted))
			return true;
	return false;
}

/* How far below the CFA an operand's address is, where it is a stack or frame pointer and a constant. */
static bool address_below(const struct state *state, const cs_x86_op *operand, int32_t *below)
{
	int64_t value;

	if (operand->type != X86_OP_MEM || operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return false;
	if (operand->mem.base == X86_REG_RSP && state->sp_known)
		value = state->sp_below - operand->mem.disp;
	else if (operand->mem.base == X86_REG_RBP && state->fp == FP_FRAME)
		value = state->fp_below - operand->mem.disp;
	else
		return false;
	if (value < -MAX_BELOW || value > MAX_BELOW)
		return false;
	*below = (int32_t)value;
	return true;
}

/* The stack pointer moves down by so many bytes. */
static void move_sp(struct state *state, int64_t down)
{
	if (!state->sp_known)
		return;
	/* No function gives up its return address but by returning: that is not this function's path. */
	if (down < -MAX_BELOW || down > MAX_BELOW || state->sp_below + down > MAX_BELOW ||
	    state->sp_below + down < WORD) {
		state->sp_known = false;
		return;
	}
	state->sp_below += (int32_t)down;
	/* What was saved is given up. */
	if (state->fp_saved && state->saved_below > state->sp_below)
		state->fp_saved = false;
}

static void push(struct state *state, const struct mw_x86_insn *insn)
{
	move_sp(state, insn->opsize ? 2 : WORD);
	if (insn->x86.op_count == 1 && is_whole(&insn->x86.operands[0], MW_X86_RBP) && state->sp_known &&
	    state->fp == FP_CALLERS && !state->fp_saved) {
		state->fp_saved = true;
		state->saved_below = state->sp_below;
	}
}

static void pop(struct state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operand = &insn->x86.operands[0];

	if (insn->x86.op_count == 1 && is_register(operand, MW_X86_RBP))
		state->fp = is_whole(operand, MW_X86_RBP) && state->fp_saved && state->sp_known &&
					    state->sp_below == state->saved_below
				    ? FP_CALLERS
				    : FP_OTHER;
	if (insn->x86.op_count == 1 && is_register(operand, MW_X86_RSP))
		state->sp_known = false;
	move_sp(state, insn->opsize ? -2 : -WORD);
}

/* push %rbp; mov %rsp,%rbp; sub $n,%rsp */
static void enter(struct state *state, const struct mw_x86_insn *insn)
{
	bool simple = insn->x86.op_count == 2 && insn->x86.operands[1].imm == 0;

	move_sp(state, WORD);
	if (!simple || !state->sp_known || state->fp != FP_CALLERS || state->fp_saved) {
		state->sp_known = false;
		state->fp = FP_OTHER;
		return;
	}
	state->fp_saved = true;
	state->saved_below = state->sp_below;
	state->fp = FP_FRAME;
	state->fp_below = state->sp_below;
	move_sp(state, insn->x86.operands[0].imm);
}

static void leave(struct state *state)
{
	state->sp_known = state->fp == FP_FRAME;
	state->sp_below = state->fp_below;
	state->fp = state->sp_known && state->fp_saved && state->saved_below == state->fp_below ? FP_CALLERS : FP_OTHER;
	move_sp(state, -WORD);
}

/* An instruction whose first operand is the stack pointer. */
static void set_sp(struct state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;
	int32_t below;

	if (insn->x86.op_count == 2 && is_whole(&operands[0], MW_X86_RSP)) {
		if ((insn->id == X86_INS_SUB || insn->id == X86_INS_ADD) && operands[1].type == X86_OP_IMM) {
			move_sp(state, insn->id == X86_INS_SUB ? operands[1].imm : -operands[1].imm);
			return;
		}
		if (insn->id == X86_INS_LEA && address_below(state, &operands[1], &below)) {
			state->sp_known = true;
			state->sp_below = below;
			move_sp(state, 0);
			return;
		}
		if (insn->id == X86_INS_MOV && is_whole(&operands[1], MW_X86_RBP) && state->fp == FP_FRAME) {
			state->sp_known = true;
			state->sp_below = state->fp_below;
			move_sp(state, 0);
			return;
		}
	}
	state->sp_known = false;
}

/* … is the frame pointer. */
static void set_fp(struct state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;
	int32_t below;

	if (insn->x86.op_count == 2 && is_whole(&operands[0], MW_X86_RBP)) {
		if (insn->id == X86_INS_MOV && is_whole(&operands[1], MW_X86_RSP) && state->sp_known) {
			state->fp = FP_FRAME;
			state->fp_below = state->sp_below;
			return;
		}
		if (insn->id == X86_INS_LEA && address_below(state, &operands[1], &below)) {
			state->fp = FP_FRAME;
			state->fp_below = below;
			return;
		}
		if (insn->id == X86_INS_MOV && state->fp_saved && address_below(state, &operands[1], &below) &&
		    below == state->saved_below) {
			state->fp = FP_CALLERS;
			return;
		}
	}
	state->fp = FP_OTHER;
}

/* A word of the stack is written: the frame pointer put aside, or the place of it taken. */
static void write_memory(struct state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;
	int32_t below;

	if (!address_below(state, &operands[0], &below))
		return;
	if (insn->id == X86_INS_MOV && is_whole(&operands[1], MW_X86_RBP) && state->fp == FP_CALLERS) {
		if (!state->fp_saved && below > WORD) {
			state->fp_saved = true;
			state->saved_below = below;
		}
	} else if (state->fp_saved && below > state->saved_below - WORD &&
		   below - operands[0].size < state->saved_below) {
		state->fp_saved = false;
	}
}

static bool only_reads(const struct mw_x86_insn *insn)
{
	return insn->id == X86_INS_CMP || insn->id == X86_INS_TEST || insn->id == X86_INS_BT ||
	       insn->id == X86_INS_PUSH || mw_x86_in_group(insn, X86_GRP_CALL) || mw_x86_in_group(insn, X86_GRP_JUMP);
}

/* What an instruction that goes on to the next one makes of the state; calls leave all as it is. */
static void apply(struct state *state, const struct mw_x86_insn *insn)
{
	switch (insn->id) {
	case X86_INS_PUSH:
		push(state, insn);
		return;
	case X86_INS_PUSHFQ:
		move_sp(state, WORD);
		return;
	case X86_INS_POPFQ:
		move_sp(state, -WORD);
		return;
	case X86_INS_POP:
		pop(state, insn);
		return;
	case X86_INS_LEAVE:
		leave(state);
		return;
	case X86_INS_ENTER:
		enter(state, insn);
		return;
	case X86_INS_SYSCALL: /* may be on another stack when it returns */
		state->sp_known = false;
		return;
	default:
		break;
	}
	if (only_reads(insn) || insn->x86.op_count == 0)
		return;
	if (insn->x86.operands[0].type == X86_OP_MEM && insn->x86.op_count > 1)
		write_memory(state, insn);
	if (is_register(&insn->x86.operands[0], MW_X86_RSP))
		set_sp(state, insn);
	else if (is_register(&insn->x86.operands[0], MW_X86_RBP))
		set_fp(state, insn);
	/* Few write to another operand than the first. */
	if (insn->id == X86_INS_XCHG || insn->id == X86_INS_XADD || insn->id == X86_INS_MULX) {
		state->sp_known = state->sp_known && !has_register(insn, 1, MW_X86_RSP);
		if (has_register(insn, 1, MW_X86_RBP))
			state->fp = FP_OTHER;
	}
}

/* --- from the function's start to the call ---------------------------------------------------------------- */

struct visit {
	bool seen;
	struct state state;
};

struct reading {
	const uint8_t *bytes;
	size_t size, start, limit, pc; /* offsets: the function lies in [start, limit) as far as is known */
	mw_addr base;
	struct visit *visits; /* one a byte from start to limit */
	size_t pending[MAX_PENDING];
	size_t pending_count, insns;
	bool alone;                  /* mw_code_function.alone */
	bool stands_in;              /* it takes a frame down that is not its own */
	bool blind;                  /* not everything was followed, but for jumps to what a register or a table says */
	struct visit call, indirect; /* the call before pc; jumps to what is not known */
};

/* It can be come to in that state. False where that is no news. */
static bool note(struct visit *visit, const struct state *state)
{
	bool is_news = !visit->seen || merge(&visit->state, state);

	if (!visit->seen)
		visit->state = *state;
	visit->seen = true;
	return is_news;
}

/* The instruction at offset `at` can be come to in that state. */
static void reach(struct reading *reading, size_t at, const struct state *state)
{
	/* A jump to the very start is a call in the function's place; elsewhere are other functions. */
	if (at <= reading->start || at >= reading->limit)
		return;
	if (!note(&reading->visits[at - reading->start], state))
		return;
	if (reading->pending_count == MAX_PENDING) {
		reading->blind = true;
		return;
	}
	reading->pending[reading->pending_count++] = at;
}

/* False where the path does not go on to what follows. */
static bool branch(struct reading *reading, const struct state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *target = &insn->x86.operands[0];

	if (insn->x86.op_count != 1 || target->type != X86_OP_IMM) {
		(void)note(&reading->indirect, state);
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

/* In a function that moves its return address about, where that is comes to be known again as a frame is set up: right
 * below it. */
static void find_frame(struct reading *reading, struct state *state, const struct mw_x86_insn *insn)
{
	const cs_x86_op *operands = insn->x86.operands;

	if (state->fp != FP_CALLERS || state->fp_saved)
		return;
	if (insn->id == X86_INS_LEAVE ||
	    (insn->id == X86_INS_MOV && is_whole(&operands[0], MW_X86_RSP) && is_whole(&operands[1], MW_X86_RBP)))
		reading->stands_in = true;
	if (insn->id == X86_INS_PUSH && is_whole(&operands[0], MW_X86_RBP) && !state->sp_known) {
		state->sp_known = true;
		state->sp_below = WORD;
	}
}

/* Follow the instructions from `at` until a path that has been followed in that state. */
static void follow(struct reading *reading, size_t at)
{
	for (;;) {
		struct state state = reading->visits[at - reading->start].state;
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
				move_sp(&state, WORD);
			else if (next == reading->pc)
				(void)note(&reading->call, &state);
		} else if (ends(&insn)) {
			return;
		} else if (mw_x86_in_group(&insn, X86_GRP_JUMP)) {
			if (!branch(reading, &state, &insn))
				return;
		} else {
			if (reading->alone)
				find_frame(reading, &state, &insn);
			apply(&state, &insn);
		}
		if (next >= reading->limit || !note(&reading->visits[next - reading->start], &state))
			return;
		at = next;
	}
}

static void read_function(struct reading *reading)
{
	const struct state first = {.sp_known = true, .sp_below = WORD};

	reading->visits = calloc(reading->limit - reading->start, sizeof(*reading->visits));
	if (!reading->visits)
		return;
	(void)note(&reading->visits[0], &first);
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
static const struct mw_way_out *find_way(const struct exits *exits, const struct state *state)
{
	for (size_t i = 0; i < exits->count; i++) {
		const struct mw_way_out *way = &exits->ways[i];
		uint64_t from_sp = way->return_at - SOME_SP, from_fp = way->return_at - SOME_FP;

		if (state->sp_known && from_sp < NEAR && from_sp + WORD == (uint64_t)state->sp_below)
			return way;
		if (state->fp == FP_FRAME && from_fp < NEAR && from_fp + WORD == (uint64_t)state->fp_below)
			return way;
	}
	return NULL;
}

/* Does the way take the frame pointer back from where the state has it? */
static bool restores_as_saved(const struct mw_way_out *way, const struct state *state)
{
	uint64_t below = way->return_at + WORD - way->restored_at[MW_X86_RBP];

	if (!(way->restored & 1u << MW_X86_RBP))
		return !state->fp_saved;
	return state->fp_saved && below == (uint64_t)state->saved_below;
}

static bool frame_of(const struct state *state, bool fp_certain, bool exact, struct mw_code_frame *out)
{
	/* Calls are made on an aligned stack. What follows no rules may be said only of what surely is a function. */
	int32_t unit = exact ? WORD : 2 * WORD;
	struct mw_code_frame frame = {.fp = MW_CODE_FP_LOST};

	if (fp_certain && state->fp_saved) {
		frame.fp = MW_CODE_FP_SAVED;
		frame.fp_at = -state->saved_below;
	} else if (fp_certain && state->fp == FP_CALLERS) {
		frame.fp = MW_CODE_FP_SAME;
	}
	frame.by_fp = !state->sp_known || state->sp_below % unit;
	if (frame.by_fp && (state->fp != FP_FRAME || state->fp_below % unit))
		return false;
	frame.cfa = frame.by_fp ? state->fp_below : state->sp_below;
	*out = frame;
	return true;
}

/* In a function that takes down a frame that it has not set up, it stands in the place of the one whose frame that is. */
static bool frame_alone(const struct reading *reading, struct mw_code_frame *out)
{
	const struct state *state = &reading->call.state;

	if (state->fp == FP_CALLERS && !state->fp_saved && reading->stands_in)
		*out = (struct mw_code_frame){
			.by_fp = true, .cfa = 2 * WORD, .fp = MW_CODE_FP_SAVED, .fp_at = -2 * WORD};
	else if (!frame_of(state, true, true, out))
		*out = (struct mw_code_frame){.unknown = true};
	return true;
}

/* Is there a frame that both readings give? */
static bool conclude(const struct reading *reading, const struct mw_code_function *known, struct mw_code_frame *out)
{
	const struct state *state = reading->call.seen ? &reading->call.state : &reading->indirect.state;
	const struct mw_way_out *way;
	struct exits exits;

	if (known->alone)
		return reading->call.seen && frame_alone(reading, out);
	if (!reading->call.seen && !reading->indirect.seen)
		return false;
	find_exits(reading, &exits);
	way = find_way(&exits, state);
	/* By a jump table, perhaps: what is said before it must be all that can be said behind. */
	if (way)
		return (reading->call.seen || exits.count == 1) &&
		       frame_of(state, restores_as_saved(way, state), known->exact, out);
	/* It does not return from here: then what is before the call may as well be another function's end. */
	return reading->call.seen && exits.count == 0 && !reading->blind && !reading->indirect.seen && known->exact &&
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
	struct reading reading = {
		.bytes = bytes, .size = size, .base = base, .pc = (size_t)(pc - base), .alone = known->alone};

	if (pc <= base || pc - base > size || !find_function(&reading, known))
		return false;
	read_function(&reading);
	if (reading.call.seen && is_first_function(&reading)) {
		*out = (struct mw_code_frame){.outermost = true};
		return true;
	}
	return conclude(&reading, known, out);
}
