/* SPDX-License-Identifier: MIT */
/* frame.h: a frame of the stack, and from it to its caller's by a row (recorder.h): for nest.c and stack.c. */
#ifndef MW_STUB_FRAME_H
#define MW_STUB_FRAME_H

#include "stub/recorder.h"

#define FP_LOST 1u /* for fp_at: no place where it could be saved */

/* A frame: `sp` is as the call that returns to `pc` left it. The frame pointer is read where it is needed only. */
struct stub_frame {
	uint64_t pc, sp;
	uint64_t fp, fp_at; /* the frame pointer, or where it is saved, unless 0 */
	uint64_t low, high; /* of the stack that may be read: low <= sp, sp + 8 <= high */
};

enum stub_step {
	STUB_CALLER, /* the frame is the caller's now */
	STUB_END,
	STUB_FOREIGN,
	STUB_SIGNAL,
	STUB_SLOW, /* can't be known here */
};

/* False: it can't be known. */
static inline bool frame_fp(const struct stub_frame *frame, uint64_t *fp)
{
	uint64_t at = frame->fp_at;

	if (!at) {
		*fp = frame->fp;
		return true;
	}
	if (unlikely(at & 7 || at - frame->low > frame->high - frame->low - 8))
		return false;
	*fp = stub_read(at);
	return true;
}

/* Where the frame pointer is saved from here on; `at`: where it would be. */
static inline void frame_fp_goes(struct stub_frame *frame, uint64_t row, uint64_t at)
{
	enum mw_row_fp fp = mw_row_fp(row);

	if (fp == MW_ROW_FP_SAVED)
		frame->fp_at = at ? at : FP_LOST;
	else if (unlikely(fp != MW_ROW_FP_SAME))
		frame->fp_at = FP_LOST;
}

/* The caller's frame, where all that is read lies in its bounds. `at`: where the frame pointer is saved. */
static inline enum stub_step frame_to(struct stub_frame *frame, uint64_t cfa, uint64_t row, uint64_t at)
{
	if (unlikely(cfa - (frame->sp + 8) > frame->high - (frame->sp + 8) || cfa & 7))
		return STUB_SLOW;
	frame_fp_goes(frame, row, at);
	frame->pc = stub_read(cfa - 8);
	frame->sp = cfa;
	/* A stack ends at 0; where no caller has room there is none. */
	if (unlikely(frame->pc == 0))
		return STUB_END;
	return likely(frame->high - cfa >= 8) ? STUB_CALLER : STUB_SLOW;
}

/* From a frame of HotSpot's interpreter, whose arguments its caller's frame may have been made longer for. */
static inline enum stub_step frame_interpreted(struct stub_frame *frame)
{
	uint64_t fp, sp;

	if (!frame_fp(frame, &fp) || fp & 7 || fp - frame->sp < MW_INTERPRETED_SIZE || fp < frame->sp ||
	    fp >= frame->high || frame->high - fp < 24)
		return STUB_SLOW;
	sp = stub_read(fp + (uint64_t)(int64_t)MW_INTERPRETED_SP);
	/* A method handle has taken its last argument away before it went on. */
	if (sp == fp + 8)
		sp = fp + 16;
	if (sp & 7 || sp - (fp + 16) > frame->high - (fp + 16) - 8)
		return STUB_SLOW;
	frame->pc = stub_read(fp + 8);
	frame->sp = sp;
	frame->fp_at = fp;
	return frame->pc ? STUB_CALLER : STUB_END;
}

static inline enum stub_step frame_step(struct stub_frame *frame, uint64_t row)
{
	uint64_t n = (uint64_t)(int64_t)mw_row_n(row), at = (uint64_t)(int64_t)mw_row_fp_at(row), cfa, fp;

	switch (mw_row_kind(row)) {
	case MW_ROW_SP:
	case MW_ROW_OURS:
		cfa = frame->sp + n;
		return frame_to(frame, cfa, row, cfa + at);
	case MW_ROW_FP:
	case MW_ROW_CALLED:
	case MW_ROW_MADE:
		if (!frame_fp(frame, &fp))
			return STUB_SLOW;
		cfa = fp + n;
		return frame_to(frame, cfa, row, cfa + at);
	case MW_ROW_FP_DEREF:
		if (!frame_fp(frame, &fp))
			return STUB_SLOW;
		cfa = fp + n;
		if (cfa - frame->sp > frame->high - frame->sp - 8 || cfa & 7)
			return STUB_SLOW;
		return frame_to(frame, stub_read(cfa), row, fp + at);
	case MW_ROW_DEOPTIMIZED:
		cfa = frame->sp + n;
		return frame_to(frame, cfa, mw_row(MW_ROW_SP, 0, MW_ROW_FP_SAVED, 0),
				cfa + (uint64_t)(int64_t)MW_DEOPTIMIZED_FP);
	case MW_ROW_INTERPRETED:
		return frame_interpreted(frame);
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

/* To the frame that the frame pointer is of, which may be on another stack: CALLER, END or SLOW. */
static inline enum stub_step frame_switch(struct stub_visit *visit, struct stub_frame *frame)
{
	uint64_t fp;

	if (!frame_fp(frame, &fp) || fp & 7)
		return STUB_SLOW;
	if (fp < frame->sp || fp >= frame->high)
		frame->high = stub_region(visit, fp);
	if (!frame->high || frame->high - fp < 24)
		return STUB_SLOW;
	frame->pc = stub_read(fp + 8);
	frame->sp = fp + 16;
	frame->low = frame->fp_at = fp;
	return frame->pc ? STUB_CALLER : STUB_END;
}

static inline void frame_first(const struct stub_visit *visit, struct stub_frame *frame)
{
	frame->pc = visit->ret;
	frame->sp = (uint64_t)(uintptr_t)visit->call + STUB_LINK_SIZE;
	frame->fp = visit->saved->gpr[CPU_FP];
	frame->fp_at = 0;
	frame->low = frame->sp;
	frame->high = visit->high;
}

#endif
