// SPDX-License-Identifier: MIT
/* walk.c: walking the stack by rows (recorder.h). The usual step is in the header. */
#include "stub/recorder.h"

void stub_frame_first(const struct stub_visit *visit, struct stub_frame *frame)
{
	frame->pc = visit->ret;
	frame->sp = (uint64_t)(uintptr_t)visit->call + STUB_LINK_SIZE;
	frame->fp = visit->saved->gpr[CPU_FP];
	frame->high = visit->high;
	frame->fp_lost = false;
}

enum stub_step stub_frame_step_odd(struct stub_frame *frame, uint64_t row)
{
	uint64_t n = (uint64_t)(int64_t)mw_row_n(row), at = (uint64_t)(int64_t)mw_row_fp_at(row), cfa;

	switch (mw_row_kind(row)) {
	case MW_ROW_SP:
	case MW_ROW_OURS:
		cfa = frame->sp + n;
		return stub_frame_to(frame, cfa, row, cfa + at);
	case MW_ROW_FP:
		if (frame->fp_lost)
			return STUB_SLOW;
		cfa = frame->fp + n;
		return stub_frame_to(frame, cfa, row, cfa + at);
	case MW_ROW_FP_DEREF:
		cfa = frame->fp + n;
		if (frame->fp_lost || cfa - frame->sp > frame->high - frame->sp - 8 || cfa & 7)
			return STUB_SLOW;
		return stub_frame_to(frame, stub_read(cfa), row, frame->fp + at);
	case MW_ROW_END:
		return STUB_END;
	case MW_ROW_FOREIGN:
		return STUB_FOREIGN;
	case MW_ROW_SIGNAL:
		return STUB_SIGNAL;
	default:
		return STUB_SLOW;
	}
}

/* The signal interrupted the recorder itself: what it was recording is the program's call. */
static enum stub_step cross_recorder(struct stub_visit *visit, struct stub_frame *frame)
{
	uint64_t call = visit->pending_sp;

	if (!visit->inside || call & 7)
		return STUB_SLOW;
	frame->high = stub_region(visit, call);
	if (!frame->high || frame->high - call < STUB_LINK_SIZE + 8)
		return STUB_SLOW;
	frame->pc = stub_read(call + MW_STUB_CALL_SIZE);
	frame->sp = call + STUB_LINK_SIZE;
	frame->fp_lost = true;
	return STUB_CALLER;
}

enum stub_step stub_frame_cross(struct stub_visit *visit, struct stub_frame *frame)
{
	uint64_t interrupted, sp;

	if (frame->high - frame->sp < CPU_SIGNAL_FRAME)
		return STUB_SLOW;
	interrupted = stub_read(frame->sp + CPU_SIGNAL_PC);
	sp = stub_read(frame->sp + CPU_SIGNAL_SP);
	if (mw_row_kind(stub_row(visit->control, interrupted + 1)) == MW_ROW_OURS)
		return cross_recorder(visit, frame);
	frame->fp = stub_read(frame->sp + CPU_SIGNAL_FP);
	frame->fp_lost = false;
	if (sp & 7)
		return STUB_SLOW;
	if (sp < frame->sp || sp >= frame->high)
		frame->high = stub_region(visit, sp);
	if (!frame->high || frame->high - sp < 8)
		return STUB_SLOW;
	frame->pc = interrupted + 1;
	frame->sp = sp;
	return STUB_CALLER;
}
