// SPDX-License-Identifier: MIT
/*
 * detour.c: can a function's first instructions make room for a jump? And where that leads (memwatch/arch.h, detour,
 * trampoline).
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
#include "arch/x86_64/x86_64.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define JUMP_LENGTH        5
#define NEAR_BRANCH_LENGTH 5                 /* opcode (its last byte) and displacement */
#define ALIGN              16                /* functions begin at multiples of this, what is between is padding */
#define WALK_MAX           ((size_t)1 << 16) /* bytes of a function that are decoded */
#define MAX_BRANCHES       512
#define STEP_FROM          48 /* bytes before a place that decoding begins at, to be in step there */
#define STEP_TRIES         32

#define ORIGINAL_ALIGN      16
#define PUSH_LENGTH         6
#define HOOK_SIZE           4
#define CALL_POINTER_LENGTH 6

#define JCC_SHORT    0x70
#define JCC_NEAR     0x80 /* behind 0f */
#define CALL_POINTER 0x15 /* behind ff: ModRM with /2 and relative to pc */
#define JMP_POINTER  0x25 /* the same with /4 */
#define FILLER       0xcc /* int3: nothing runs between the parts */

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
		int64_t disp = mw_x86_displacement(code->bytes + at + 1);

		/* Cheap, and hardly ever true: this runs over whole libraries. */
		if ((uint32_t)disp + (uint32_t)(next - code->start) >= room)
			continue;
		if (is_forbidden(code, next + (uint64_t)disp) &&
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
		int8_t disp = (int8_t)code->bytes[at + 1];

		if (((opcode & 0xf0) == 0x70 || opcode == 0xeb || (opcode & 0xfc) == 0xe0) &&
		    is_forbidden(code, code->base + at + 2 + (uint64_t)(int64_t)disp)) /* jcc, jmp, loop and jrcxz */
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

/*
 * The one call through memory that can be made to return elsewhere: call *d(%rip), whose operand does not depend on the
 * stack pointer. No prefix: with some of them processors differ.
 */
static bool is_call_relative_pointer(const struct mw_insn_plan *plan)
{
	return plan->length == CALL_POINTER_LENGTH && plan->disp_offset == 2 && plan->bytes[0] == 0xff &&
	       plan->bytes[1] == CALL_POINTER;
}

static bool is_relative_branch(const struct mw_insn_plan *plan)
{
	return plan->can_emulate && plan->src == MW_X86_NO_REG &&
	       (plan->op == MW_X86_OP_JMP || plan->op == MW_X86_OP_JCC || plan->op == MW_X86_OP_CALL);
}

/* Why a trampoline can't hold the instruction, or NULL where it can. */
static const char *obstacle(const struct mw_insn_plan *plan)
{
	if (plan->can_relocate || is_relative_branch(plan) || is_call_relative_pointer(plan))
		return NULL;
	return plan->why;
}

/* Is it a call that a trampoline can hold? Its copy never goes on to what follows: the return comes to where it stood. */
static bool calls(const struct mw_insn_plan *plan)
{
	return (is_relative_branch(plan) && plan->op == MW_X86_OP_CALL) || is_call_relative_pointer(plan);
}

/* Take the instruction at `at` up. Returns why it can't be displaced, or NULL. */
static const char *displace(const struct code *code, size_t at, struct mw_detour *detour)
{
	struct mw_insn_plan plan;
	struct mw_x86_insn insn;
	const char *why;

	mw_x86_plan(code->bytes + at, code->size - at, code->base + at, &plan);
	why = obstacle(&plan);
	if (why)
		return why;
	if (!mw_x86_decode(plan.bytes, plan.length, plan.pc, &insn))
		return "the bytes are no complete instruction that memwatch can read";
	detour->offset[detour->count++] = detour->length;
	memcpy(detour->bytes + detour->length, plan.bytes, plan.length);
	detour->length = (uint8_t)(detour->length + plan.length);
	/* A direct call is as long as the jump or longer: it is the last, and its return comes to untouched bytes. */
	detour->ends = insn.id == X86_INS_RET || insn.id == X86_INS_JMP || calls(&plan);
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

/* --- the trampoline -------------------------------------------------------------------------------------- */

/*
 *	trampoline:       lea  -frame_size(%rsp),%rsp       neither this nor mov touches a flag
 *	           movl $hook,(%rsp)
 *	           jmp  *0(%rip)
 *	           .quad entry
 *	original:  the displaced instructions          copied[0], copied[1], …
 *	           jmp  at + length                    unless they end the function
 *
 * Branches relative to pc become (far: where a trampoline so far away cannot reach the target)
 *
 *	jmp  x      jmp x                              far: jmp *0(%rip); .quad x
 *	jcc  x      jcc x, with 32 bits                far: jncc 1f; jmp *0(%rip); .quad x; 1:
 *	call x      push 1f(%rip); jmp x; 1: .quad the address behind the call where it stood
 *	call *d(%rip)                                  the same with jmp *d(%rip)
 *
 * so that the called function returns to where the program would have it, and not to a trampoline that nobody's unwind
 * information knows.
 */
struct writer {
	const struct mw_detour *detour;
	mw_addr dest;
	size_t size;
	uint8_t bytes[MW_TRAMPOLINE_SIZE];
};

static struct mw_error *put(struct writer *writer, const void *bytes, size_t size)
{
	if (size > MW_TRAMPOLINE_SIZE - writer->size)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "the first instructions at 0x%" PRIx64 " do not fit into a trampoline",
				       writer->detour->at);
	memcpy(writer->bytes + writer->size, bytes, size);
	writer->size += size;
	return NULL;
}

static struct mw_error *put_jump(struct writer *writer, mw_addr to)
{
	uint8_t jump[MW_OOL_MAX];

	return put(writer, jump, mw_x86_jump(writer->dest + writer->size, to, jump));
}

static struct mw_error *put_jcc(struct writer *writer, uint8_t condition, mw_addr to)
{
	mw_addr here = writer->dest + writer->size;
	uint8_t jump[MW_OOL_MAX];
	/* A near jcc is a near jmp that stands one byte further on, with two bytes for the opcode's one. */
	size_t length = mw_x86_jump(here + 1, to, jump);

	if (length == JUMP_LENGTH) {
		uint8_t opcode[] = {0x0f, (uint8_t)(JCC_NEAR | condition)};

		MW_TRY(put(writer, opcode, sizeof(opcode)));
		return put(writer, jump + 1, length - 1);
	}
	length = mw_x86_jump(here + 2, to, jump);
	MW_TRY(put(writer, (uint8_t[]){(uint8_t)(JCC_SHORT | (condition ^ 1)), (uint8_t)length}, 2));
	return put(writer, jump, length);
}

static struct mw_error *put_call(struct writer *writer, const struct mw_insn_plan *plan)
{
	mw_addr from = writer->dest + writer->size + PUSH_LENGTH, back = plan->pc + plan->length;
	uint8_t jump[MW_OOL_MAX], push[PUSH_LENGTH] = {0xff, 0x35};
	size_t length, with_jump_back;

	if (is_call_relative_pointer(plan)) {
		struct mw_insn_plan through = *plan;

		through.bytes[1] = JMP_POINTER;
		through.can_relocate = true;
		MW_TRY(mw_x86_relocate(&through, from, jump, &length, &with_jump_back));
	} else {
		length = mw_x86_jump(from, plan->target, jump);
	}
	push[2] = (uint8_t)length;
	MW_TRY(put(writer, push, sizeof(push)));
	MW_TRY(put(writer, jump, length));
	return put(writer, &back, sizeof(back));
}

static struct mw_error *put_copy(struct writer *writer, const struct mw_insn_plan *plan)
{
	uint8_t copy[MW_OOL_MAX];
	size_t length, with_jump_back;

	if (calls(plan))
		return put_call(writer, plan);
	if (is_relative_branch(plan))
		return plan->op == MW_X86_OP_JCC ? put_jcc(writer, plan->cond, plan->target)
						 : put_jump(writer, plan->target);
	MW_TRY(mw_x86_relocate(plan, writer->dest + writer->size, copy, &length, &with_jump_back));
	return put(writer, copy, length);
}

static struct mw_error *put_frame(struct writer *writer, const struct mw_trampoline_frame *frame)
{
	static const uint8_t lea8[] = {0x48, 0x8d, 0x64, 0x24}, lea32[] = {0x48, 0x8d, 0xa4, 0x24};
	static const uint8_t movl[] = {0xc7, 0x04, 0x24}, jump[] = {0xff, 0x25, 0, 0, 0, 0};
	int32_t down;

	if (frame->frame_size < HOOK_SIZE || frame->frame_size > INT32_MAX)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "a trampoline cannot reserve %" PRIu32 " bytes",
				       frame->frame_size);
	down = -(int32_t)frame->frame_size;
	if (down >= INT8_MIN) {
		MW_TRY(put(writer, lea8, sizeof(lea8)));
		MW_TRY(put(writer, &(int8_t){(int8_t)down}, 1));
	} else {
		MW_TRY(put(writer, lea32, sizeof(lea32)));
		MW_TRY(put(writer, &down, sizeof(down)));
	}
	MW_TRY(put(writer, movl, sizeof(movl)));
	MW_TRY(put(writer, &frame->hook, HOOK_SIZE));
	MW_TRY(put(writer, jump, sizeof(jump)));
	MW_TRY(put(writer, &frame->entry, sizeof(frame->entry)));
	while (writer->size % ORIGINAL_ALIGN)
		MW_TRY(put(writer, &(uint8_t){FILLER}, 1));
	return NULL;
}

static struct mw_error *put_original(struct writer *writer, struct mw_trampoline *trampoline)
{
	const struct mw_detour *detour = writer->detour;

	for (uint8_t i = 0; i < detour->count; i++) {
		struct mw_insn_plan plan;
		uint8_t offset = detour->offset[i];
		const char *why;

		mw_x86_plan(detour->bytes + offset, (size_t)detour->length - offset, detour->at + offset, &plan);
		why = obstacle(&plan);
		if (why)
			return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					       "the instruction at 0x%" PRIx64 " cannot be run elsewhere: %s", plan.pc,
					       why);
		trampoline->copied[i] = (uint8_t)writer->size;
		MW_TRY(put_copy(writer, &plan));
	}
	return detour->ends ? NULL : put_jump(writer, detour->at + detour->length);
}

static struct mw_error *check(const struct mw_detour *detour)
{
	if (detour->why)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "the function at 0x%" PRIx64 " cannot be patched: %s",
				       detour->at, detour->why);
	if (detour->length > MW_DETOUR_MAX || detour->count > MW_DETOUR_INSNS)
		return mw_error_create(MW_ERROR_DATA, 0, "no detour was planned for 0x%" PRIx64, detour->at);
	for (uint8_t i = 0; i < detour->count; i++)
		if (detour->offset[i] >= detour->length)
			return mw_error_create(MW_ERROR_DATA, 0, "no detour was planned for 0x%" PRIx64, detour->at);
	return NULL;
}

struct mw_error *mw_x86_trampoline(const struct mw_detour *detour, const struct mw_trampoline_frame *frame,
				   mw_addr dest, struct mw_trampoline *trampoline)
{
	struct writer writer = {.detour = detour, .dest = dest};
	uint8_t jump[JUMP_LENGTH];
	struct mw_trampoline made = {0};

	MW_TRY(check(detour));
	MW_TRY(mw_x86_detour_jump(detour, dest, jump));
	MW_TRY(put_frame(&writer, frame));
	made.original = (uint8_t)writer.size;
	MW_TRY(put_original(&writer, &made));
	memcpy(made.bytes, writer.bytes, writer.size);
	made.size = (uint8_t)writer.size;
	*trampoline = made;
	return NULL;
}

struct mw_error *mw_x86_detour_jump(const struct mw_detour *detour, mw_addr trampoline, uint8_t *out)
{
	uint8_t jump[MW_OOL_MAX];

	if (mw_x86_jump(detour->at, trampoline, jump) != JUMP_LENGTH)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "a jump at 0x%" PRIx64 " cannot reach a trampoline at 0x%" PRIx64, detour->at,
				       trampoline);
	memcpy(out, jump, JUMP_LENGTH);
	return NULL;
}
