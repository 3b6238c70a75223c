// SPDX-License-Identifier: MIT
/*
 * detour.c: can a function's first instructions make room for a jump? (memwatch/arch.h, detour)
 *
 *	f:    endbr64                    stays: indirect calls must find it
 *	f+4:  push %rbp       ─┐
 *	f+5:  mov  %rsp,%rbp   │         jmp rel32 stands here, [f+4, f+9)
 *	f+8:  sub  $8,%rsp    ─┘
 *
 * Two things are asked: what the displaced instructions are, and whether anything else in the module leads into the
 * middle of the jump. The second is answered by decoding the function (all of it where its size is known, else along
 * its direct branches) and by a look at every byte around it that could be a branch with 32 bits of displacement.
 * Where instructions begin there is not known, so a find is believed only if it is an instruction when decoding begins
 * some way before it. Branches with 8 bits are looked for in the function alone.
 */
#include "arch/x86_64/decode.h"
#include "arch/x86_64/ops.h"

#include <stdlib.h>
#include <string.h>

#define JUMP_LENGTH        5
#define NEAR_BRANCH_LENGTH 5                 /* opcode (its last byte) and displacement */
#define ALIGN              16                /* functions begin at multiples of this, what is between is padding */
#define WALK_MAX           ((size_t)1 << 16) /* bytes of a function that are decoded */
#define MAX_BRANCHES       512
#define STEP_FROM          48 /* bytes before a place that decoding begins at, to be in step there */
#define STEP_TRIES         32

static const char too_short[] = "the function is too short for a jump";
static const char lands_inside[] = "a branch lands inside the bytes that the jump would overwrite";

/* The module's code around the function, and what nothing may lead to: behind the jump's first byte, up to its end. */
struct code {
	const uint8_t *bytes;
	size_t size;
	mw_addr base;
	mw_addr start, end;
};

static bool is_forbidden(const struct code *code, mw_addr target)
{
	return target >= code->start && target < code->end;
}

/* The target of a direct branch. */
static bool branch_target(const struct mw_x86_insn *insn, mw_addr *target)
{
	const cs_x86_op *first = &insn->x86.operands[0];

	if (insn->x86.op_count != 1 || first->type != X86_OP_IMM ||
	    !(mw_x86_in_group(insn, X86_GRP_JUMP) || mw_x86_in_group(insn, X86_GRP_CALL) ||
	      mw_x86_in_group(insn, X86_GRP_BRANCH_RELATIVE)))
		return false;
	*target = (mw_addr)first->imm;
	return true;
}

/* Does the instruction branch to, read or take the address of what the jump would overwrite? */
static bool refers_inside(const struct code *code, const struct mw_x86_insn *insn, mw_addr next)
{
	mw_addr target;

	if (branch_target(insn, &target))
		return is_forbidden(code, target);
	for (uint8_t i = 0; i < insn->x86.op_count && i < sizeof(insn->x86.operands) / sizeof(cs_x86_op); i++) {
		const cs_x86_op *operand = &insn->x86.operands[i];

		if (operand->type == X86_OP_MEM && operand->mem.base == X86_REG_RIP &&
		    is_forbidden(code, next + (uint64_t)operand->mem.disp))
			return true;
	}
	return false;
}

/*
 * Does a branch to inside begin at `at`, or a byte before? Where instructions begin there is not known, but decoding
 * from anywhere falls into step within a few of them: so from many places before, and most of them are right.
 */
static bool is_branch(const struct code *code, size_t at)
{
	unsigned tries = 0, agree = 0;

	for (size_t back = STEP_FROM; back < STEP_FROM + STEP_TRIES && back <= at; back++, tries++) {
		struct mw_x86_insn insn = {0};
		size_t place = at - back;

		while (place + insn.length <= at) {
			place += insn.length;
			if (!mw_x86_decode(code->bytes + place, code->size - place, code->base + place, &insn))
				insn = (struct mw_x86_insn){.length = 1};
		}
		agree += refers_inside(code, &insn, code->base + place + insn.length);
	}
	return agree * 4 >= tries;
}

/* Is there something in the bytes [from, to) that may be a branch with a displacement of 32 bits to inside?
 * `doubt`: it must look like one among the instructions before it, too. */
static bool scan_near(const struct code *code, size_t from, size_t to, bool doubt)
{
	const uint32_t room = (uint32_t)(code->end - code->start);

	for (size_t at = from; at + NEAR_BRANCH_LENGTH <= to; at++) {
		mw_addr next = code->base + at + NEAR_BRANCH_LENGTH;
		uint8_t opcode = code->bytes[at], before = at > from ? code->bytes[at - 1] : 0;
		int32_t disp;

		memcpy(&disp, code->bytes + at + 1, sizeof(disp));
		/* Cheap, and hardly ever true: this runs over whole libraries. */
		if ((uint32_t)disp + (uint32_t)(next - code->start) >= room)
			continue;
		if (is_forbidden(code, next + (uint64_t)(int64_t)disp) &&
		    (opcode == 0xe8 || opcode == 0xe9 || (before == 0x0f && (opcode & 0xf0) == 0x80) ||
		     (before == 0xc7 && opcode == 0xf8)) && /* call, jmp, jcc, xbegin */
		    (!doubt || is_branch(code, at)))
			return true;
	}
	return false;
}

/* The same for 8 bits. */
static bool scan_short(const struct code *code, size_t from, size_t to)
{
	for (size_t at = from; at + 2 <= to; at++) {
		uint8_t opcode = code->bytes[at];
		int64_t disp = (code->bytes[at + 1] ^ 0x80) - 0x80; /* sign-extended */

		if (((opcode & 0xf0) == 0x70 || opcode == 0xeb || (opcode & 0xfc) == 0xe0) &&
		    is_forbidden(code, code->base + at + 2 + (uint64_t)disp)) /* jcc, jmp, loop and jrcxz */
			return true;
	}
	return false;
}

/* Decode [from, to) from end to end. What capstone doesn't know makes the rest a matter of looks. */
static bool sweep(const struct code *code, size_t from, size_t to)
{
	struct mw_x86_insn insn;

	while (from < to) {
		if (!mw_x86_decode(code->bytes + from, to - from, code->base + from, &insn))
			return scan_short(code, from, to) || scan_near(code, from, to, false);
		from += insn.length;
		if (refers_inside(code, &insn, code->base + from))
			return true;
	}
	return false;
}

struct walk {
	size_t count;
	size_t pending[MAX_BRANCHES];
	uint8_t seen[WALK_MAX]; /* by offset from the function: an instruction there was followed */
};

/* Follow one branch to its end. */
static bool follow(const struct code *code, size_t function, struct walk *walk, size_t at)
{
	while (at < code->size && at >= function && at - function < WALK_MAX && !walk->seen[at - function]) {
		struct mw_x86_insn insn;
		mw_addr target;

		walk->seen[at - function] = 1;
		if (!mw_x86_decode(code->bytes + at, code->size - at, code->base + at, &insn))
			return false;
		at += insn.length;
		if (refers_inside(code, &insn, code->base + at))
			return true;
		if (insn.id != X86_INS_CALL && branch_target(&insn, &target) && walk->count < MAX_BRANCHES)
			walk->pending[walk->count++] = (size_t)(target - code->base);
		if (insn.id == X86_INS_JMP || insn.id == X86_INS_RET || insn.id == X86_INS_UD2 ||
		    insn.id == X86_INS_INT3 || insn.id == X86_INS_HLT)
			return false;
	}
	return false;
}

/* A function of unknown size: along its direct branches. */
static const char *walk_function(const struct code *code, size_t function)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	bool found;

	if (!walk)
		return "there was no memory to look through its code";
	found = follow(code, function, walk, function);
	while (!found && walk->count > 0)
		found = follow(code, function, walk, walk->pending[--walk->count]);
	free(walk);
	return found ? lands_inside : NULL;
}

static const char *find_branch(const struct code *code, size_t function, uint64_t function_size)
{
	size_t rest = code->size - function, swept = function;

	if (function_size > 0) {
		swept += function_size < rest ? (size_t)function_size : rest;
		if (swept - function > WALK_MAX)
			swept = function + WALK_MAX;
		if (sweep(code, function, swept))
			return lands_inside;
	} else {
		const char *why = walk_function(code, function);

		if (why)
			return why;
	}
	return scan_near(code, 0, function, true) || scan_near(code, swept, code->size, true) ? lands_inside : NULL;
}

/* Is there nothing but nops and int3 at `at`, up to where the next function may begin, and that not before `need`? */
static bool is_padding(const struct code *code, size_t at, size_t need)
{
	mw_addr next = (code->base + at + ALIGN - 1) & ~(mw_addr)(ALIGN - 1);
	size_t limit;

	if (next - code->base > code->size)
		return false;
	limit = (size_t)(next - code->base);
	if (need > limit)
		return false;
	while (at < limit) {
		struct mw_x86_insn insn;

		if (!mw_x86_decode(code->bytes + at, limit - at, code->base + at, &insn) ||
		    (insn.id != X86_INS_NOP && insn.id != X86_INS_INT3))
			return false;
		at += insn.length;
	}
	return true;
}

/* Take the instruction at `at` up. Returns why it can't be displaced, or NULL. */
static const char *displace(const struct code *code, size_t at, struct mw_detour *detour)
{
	struct mw_insn_plan plan;
	struct mw_x86_insn insn;
	const char *why;

	mw_x86_plan(code->bytes + at, code->size - at, code->base + at, &plan);
	why = mw_x86_trampoline_obstacle(&plan);
	if (why)
		return why;
	if (!mw_x86_decode(plan.bytes, plan.length, plan.pc, &insn))
		return "the bytes are no complete instruction that memwatch can read";
	detour->offset[detour->count++] = detour->length;
	memcpy(detour->bytes + detour->length, plan.bytes, plan.length);
	detour->length = (uint8_t)(detour->length + plan.length);
	/* A direct call is as long as the jump or longer: it is the last, and its return comes to untouched bytes. */
	detour->ends = insn.id == X86_INS_RET || insn.id == X86_INS_JMP || mw_x86_trampoline_calls(&plan);
	return NULL;
}

_Static_assert(JUMP_LENGTH <= MW_DETOUR_INSNS, "instructions of one byte each have their places");
_Static_assert(JUMP_LENGTH - 1 + MW_INSN_MAX - 1 <= MW_DETOUR_MAX, "the longest last instruction fits");

/* A jump out of the function as its first instruction, and code of the function behind it. */
static bool is_foreign_hook(const struct code *code, size_t at, size_t end, const struct mw_detour *detour)
{
	struct mw_x86_insn insn;
	mw_addr target;
	size_t behind;

	if (detour->count != 1 || !mw_x86_decode(detour->bytes, detour->length, detour->at, &insn) ||
	    insn.id != X86_INS_JMP)
		return false;
	behind = at + insn.length;
	if (behind >= end || is_padding(code, behind, behind))
		return false;
	return !branch_target(&insn, &target) || target < code->base + behind || target >= code->base + end;
}

/* Displace whole instructions until the jump has room. Returns why not, or NULL. */
static const char *collect(const struct code *code, size_t at, size_t end, struct mw_detour *detour)
{
	while (detour->length < JUMP_LENGTH && !detour->ends) {
		const char *why = at + detour->length < end ? NULL : too_short;

		if (!why)
			why = displace(code, at + detour->length, detour);
		if (why)
			return why;
	}
	if (detour->length >= JUMP_LENGTH)
		return NULL;
	if (!is_padding(code, at + detour->length, at + JUMP_LENGTH))
		return too_short;
	memcpy(detour->bytes, code->bytes + at, JUMP_LENGTH);
	detour->length = JUMP_LENGTH;
	return NULL;
}

void mw_x86_detour(const uint8_t *bytes, size_t size, mw_addr base, mw_addr pc, uint64_t function_size,
		   struct mw_detour *detour)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct code code = {.bytes = bytes, .size = size, .base = base};
	size_t function = (size_t)(pc - base), at = function, end;

	memset(detour, 0, sizeof(*detour));
	detour->at = pc;
	detour->jump = JUMP_LENGTH;
	if (pc < base || pc - base >= size) {
		detour->why = "its code is not among what was read";
		return;
	}
	if (size - at >= sizeof(endbr64) && memcmp(bytes + at, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	detour->at = base + at;
	code.start = detour->at + 1;
	code.end = detour->at + JUMP_LENGTH;
	end = function_size > 0 && function_size < size - function ? function + (size_t)function_size : size;
	detour->why = collect(&code, at, end, detour);
	if (function_size > 0 && is_foreign_hook(&code, at, end, detour))
		detour->why = "a jump stands at its entry and leaves out the code behind: it is hooked already";
	if (!detour->why)
		detour->why = find_branch(&code, function, function_size);
}
