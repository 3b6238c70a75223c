// SPDX-License-Identifier: MIT
/*
 * v8_maglev.c: places in code of Maglev, V8's middle compiler (v8_parts.h).
 *
 * Its table of source positions has entries for only some of the calls. Its deoptimization data have all of them: for
 * each call after which the code may be deoptimized, which functions are at which bytecode. That is a sequence of
 * operations, of which those are read that begin a frame.
 */
#include "script/v8_parts.h"

#include "proc/peek.h"
#include "symbol/frames.h"

#include <stdlib.h>

#define SAFEPOINTS_MAX (1u << 20) /* bytes of the table */

/* Operations of V8 13.6: those up to the last of frames begin one, the first two that of a function that is interpreted,
 * and the next two that of a builtin that a function has called. */
enum {
	WITH_RETURN,
	WITHOUT_RETURN,
	LAST_OF_JAVASCRIPT = 3,
	LAST_OF_FRAMES = 10,
	BEGIN = 14,
	BEGIN_AND_UPDATE,
	MATCH = 44,
	OPERATIONS
};

/* How many operands each has. */
static const uint8_t operands[OPERATIONS] = {6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0, 1, 1, 1,
					     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1};

/* An operation. Of one that repeats those of another translation: how many. */
struct operation {
	uint8_t kind;
	uint64_t repeats;
	struct v8_translated frame;
};

/* Frames that are still to come, and those that were taken. */
struct taken {
	int32_t left, javascript; /* of all kinds, of JavaScript */
	unsigned count;
	struct v8_translated *out;
};

/* The sign is the lowest bit. Negative: it is, or can't be kept. */
static int32_t take_signed(struct mw_cursor *bytes)
{
	uint64_t bits = mw_cursor_uleb(bytes);

	return bits & 1 || bits >> 1 > INT32_MAX ? -1 : (int32_t)(bits >> 1);
}

static struct operation take_operation(struct mw_cursor *bytes)
{
	struct operation operation = {.kind = (uint8_t)mw_cursor_take(bytes, 1)};
	unsigned left;

	if (operation.kind >= OPERATIONS) {
		operation.repeats = operation.kind - OPERATIONS;
		operation.kind = MATCH;
		return operation;
	}
	left = operands[operation.kind];
	if (operation.kind == MATCH) {
		operation.repeats = mw_cursor_uleb(bytes);
		return operation;
	}
	if (operation.kind <= WITHOUT_RETURN) {
		operation.frame.offset = take_signed(bytes);
		operation.frame.function = take_signed(bytes);
		operation.frame.bytecode = take_signed(bytes);
		left -= 3;
	}
	while (left--)
		(void)mw_cursor_uleb(bytes);
	return operation;
}

static bool take_begin(struct mw_cursor *bytes, uint64_t *back, struct taken *taken)
{
	uint8_t kind = (uint8_t)mw_cursor_take(bytes, 1);

	*back = mw_cursor_uleb(bytes);
	taken->left = take_signed(bytes);
	taken->javascript = take_signed(bytes);
	return bytes->ok && (kind == BEGIN || kind == BEGIN_AND_UPDATE);
}

/* False: the operation can't be one of a translation. */
static bool take_frame(struct taken *taken, const struct operation *operation)
{
	if (operation->kind <= WITHOUT_RETURN)
		taken->out[taken->count++] = operation->frame;
	taken->left -= operation->kind <= LAST_OF_FRAMES;
	taken->javascript -= operation->kind <= LAST_OF_JAVASCRIPT;
	return operation->kind != BEGIN && operation->kind != BEGIN_AND_UPDATE;
}

/* The next operation, which stands for one of the earlier translation; or those of it that it repeats. */
static bool take_next(struct mw_cursor *bytes, struct mw_cursor *earlier, struct taken *taken)
{
	struct operation operation = take_operation(bytes);

	if (operation.kind != MATCH) {
		if (earlier->ok)
			(void)take_operation(earlier);
		return bytes->ok && take_frame(taken, &operation);
	}
	for (uint64_t i = 0; i < operation.repeats && taken->left > 0; i++) {
		struct operation repeated = take_operation(earlier);

		if (!earlier->ok || repeated.kind == MATCH || !take_frame(taken, &repeated))
			return false;
	}
	return bytes->ok;
}

unsigned v8_translate(const uint8_t *all, uint32_t size, uint32_t index, struct v8_translated out[V8_INLINED])
{
	struct mw_cursor bytes, earlier = {0};
	struct taken taken = {.out = out}, unused;
	uint64_t back = 0, no_back;

	if (index >= size)
		return 0;
	bytes = (struct mw_cursor){.at = all + index, .left = size - index, .ok = true};
	if (!take_begin(&bytes, &back, &taken) || taken.left > V8_INLINED || back > index)
		return 0;
	if (back) {
		earlier = (struct mw_cursor){.at = all + index - back, .left = size - index + back, .ok = true};
		if (!take_begin(&earlier, &no_back, &unused) || no_back)
			return 0;
	}
	while (taken.left > 0)
		if (!take_next(&bytes, &earlier, &taken))
			return 0;
	return taken.javascript == 0 ? taken.count : 0;
}

/* Which of the deoptimizations is that of the call that returns to `pc`, bytes from the first instruction? */
static bool find_call(pid_t tid, mw_addr table, uint32_t pc, uint32_t *index)
{
	struct {
		uint32_t slots, length, sizes, tagged;
	} head;
	uint32_t pc_size, index_size, size;
	bool found = false;
	uint8_t *entries;

	if (!mw_peek(tid, table, &head, sizeof(head)) || !(head.sizes & 1))
		return false;
	pc_size = head.sizes >> 4 & 7;
	index_size = head.sizes >> 7 & 7;
	size = 2 * pc_size + index_size + 1 + (head.sizes >> 1 & 7);
	if (!pc_size || pc_size > 4 || !index_size || index_size > 4 || head.length > SAFEPOINTS_MAX / size)
		return false;
	entries = malloc((size_t)head.length * size + 1);
	if (entries && mw_peek(tid, table + sizeof(head), entries, (size_t)head.length * size))
		for (uint32_t i = 0; i < head.length && !found; i++) {
			struct mw_cursor entry = {.at = entries + (size_t)i * size, .left = size, .ok = true};

			found = mw_cursor_take(&entry, pc_size) == pc;
			*index = (uint32_t)mw_cursor_take(&entry, index_size) - 1;
		}
	free(entries);
	return found && *index != UINT32_MAX;
}

static bool element_number(const struct mw_v8 *v8, pid_t tid, mw_addr array, uint32_t index, uint32_t *out)
{
	uint64_t word;

	return v8_element(v8, tid, array, index, &word) && v8_number(word, out);
}

static bool place_frame(const struct mw_v8 *v8, pid_t tid, mw_addr deoptimization, const struct v8_translated *frame,
			struct v8_at *out)
{
	mw_addr literals, bytecodes, bytecode;

	if (frame->function < 0 || frame->bytecode < 0 ||
	    !v8_element(v8, tid, deoptimization, v8->version->deoptimization.literals, &literals) ||
	    !v8_element(v8, tid, deoptimization, v8->version->deoptimization.bytecodes, &bytecodes) ||
	    !v8_element(v8, tid, literals, (uint32_t)frame->function, &out->shared) ||
	    !v8_element(v8, tid, bytecodes, (uint32_t)frame->bytecode, &bytecode) ||
	    !v8_is(v8, tid, bytecode, V8_TYPE_BYTECODE))
		return false;
	out->shared &= ~(uint64_t)V8_WEAK;
	out->place = (struct v8_place){0};
	if (frame->offset >= 0)
		out->place = (struct v8_place){.bytecode = bytecode, .offset = (uint32_t)frame->offset};
	return true;
}

unsigned v8_maglev_at(const struct mw_v8 *v8, pid_t tid, mw_addr deoptimization, mw_addr safepoints, uint32_t pc,
		      struct v8_at out[V8_INLINED])
{
	const struct v8_version *version = v8->version;
	struct v8_translated frames[V8_INLINED];
	uint32_t call, index, size;
	unsigned count = 0;
	mw_addr translation;
	uint8_t *bytes;

	if (!version->deoptimization.entries || !find_call(tid, safepoints, pc, &call) || call > INT16_MAX ||
	    !v8_element(v8, tid, deoptimization, version->deoptimization.translation, &translation) ||
	    !element_number(v8, tid, deoptimization, version->deoptimization.entries + 3 * call + 1, &index))
		return 0;
	bytes = v8_bytes(v8, tid, translation, &size);
	if (bytes)
		count = v8_translate(bytes, size, index, frames);
	free(bytes);
	/* The outermost is translated first. */
	for (unsigned i = 0; i < count; i++)
		if (!place_frame(v8, tid, deoptimization, &frames[i], &out[count - 1 - i]))
			return 0;
	return count;
}
