// SPDX-License-Identifier: MIT
/*
 * trampoline.c: where the jump at a function's entry leads (memwatch/arch.h, trampoline).
 *
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
#include "arch/x86_64/operand.h"
#include "arch/x86_64/ops.h"

#include <inttypes.h>
#include <string.h>

#define ORIGINAL_ALIGN      16
#define NEAR_JUMP_LENGTH    5
#define PUSH_LENGTH         6
#define HOOK_SIZE           4
#define CALL_POINTER_LENGTH 6

#define JMP_NEAR     0xe9
#define JCC_SHORT    0x70
#define JCC_NEAR     0x80 /* behind 0f */
#define CALL_POINTER 0x15 /* behind ff: ModRM with /2 and relative to pc */
#define JMP_POINTER  0x25 /* the same with /4 */
#define FILLER       0xcc /* int3: nothing runs between the parts */

struct writer {
	const struct mw_detour *detour;
	mw_addr dest;
	size_t size;
	uint8_t bytes[MW_TRAMPOLINE_SIZE];
};

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

const char *mw_x86_trampoline_obstacle(const struct mw_insn_plan *plan)
{
	if (plan->can_relocate || is_relative_branch(plan) || is_call_relative_pointer(plan))
		return NULL;
	return plan->why;
}

bool mw_x86_trampoline_calls(const struct mw_insn_plan *plan)
{
	return (is_relative_branch(plan) && plan->op == MW_X86_OP_CALL) || is_call_relative_pointer(plan);
}

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

/* A jump that stands at `from`: what relocate() puts behind the copy of an instruction of no length at all. */
static struct mw_error *make_jump(mw_addr from, mw_addr to, uint8_t out[MW_OOL_MAX], size_t *length)
{
	const struct mw_insn_plan nothing = {.can_relocate = true, .pc = to};
	size_t copy_length;

	return mw_x86_relocate(&nothing, from, out, &copy_length, length);
}

static struct mw_error *put_jump(struct writer *writer, mw_addr to)
{
	uint8_t jump[MW_OOL_MAX];
	size_t length;

	MW_TRY(make_jump(writer->dest + writer->size, to, jump, &length));
	return put(writer, jump, length);
}

static struct mw_error *put_jcc(struct writer *writer, uint8_t condition, mw_addr to)
{
	mw_addr here = writer->dest + writer->size;
	uint8_t jump[MW_OOL_MAX];
	size_t length;

	/* A near jcc is a near jmp that stands one byte further on, with two bytes for the opcode's one. */
	MW_TRY(make_jump(here + 1, to, jump, &length));
	if (length == NEAR_JUMP_LENGTH) {
		uint8_t opcode[] = {0x0f, (uint8_t)(JCC_NEAR | condition)};

		MW_TRY(put(writer, opcode, sizeof(opcode)));
		return put(writer, jump + 1, length - 1);
	}
	MW_TRY(make_jump(here + 2, to, jump, &length));
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
		MW_TRY(make_jump(from, plan->target, jump, &length));
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

	if (mw_x86_trampoline_calls(plan))
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
		why = mw_x86_trampoline_obstacle(&plan);
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
	uint8_t jump[NEAR_JUMP_LENGTH];
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
	size_t length;

	MW_TRY(make_jump(detour->at, trampoline, jump, &length));
	if (length != NEAR_JUMP_LENGTH || jump[0] != JMP_NEAR)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "a jump at 0x%" PRIx64 " cannot reach a trampoline at 0x%" PRIx64, detour->at,
				       trampoline);
	memcpy(out, jump, length);
	return NULL;
}
