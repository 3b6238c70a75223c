// SPDX-License-Identifier: MIT
/* v8_code.c: where code is that V8 has made of functions (v8_parts.h). */
#include "script/v8_parts.h"

#include "proc/peek.h"
#include "symbol/frames.h"

#include <stdlib.h>
#include <string.h>

#define WORD         8u
#define CHUNK        512u        /* words that are read at once */
#define CODE_MAX     (2u << 20)  /* bytes from where it begins to a place in it */
#define HEAD_MAX     256u        /* … to its first instruction */
#define BYTECODE_MAX (16u << 20) /* bytes of a function */
#define CALL_MAX     512u        /* … of a call and what it takes besides, in code */
#define ALIGNMENT    32u         /* of an object that holds its instructions */
#define WRAPPED      8u          /* in an object that wraps another: that one */
#define MADE_BY      15u         /* bits of flags */
#define PREFIXES     4u          /* bytecodes that make the operands of the next one larger */

struct code {
	mw_addr start; /* its first instruction */
	uint32_t size, flags;
	mw_addr deoptimization, positions;
};

/* Is the code that begins at `head` that of `pc`? */
static bool take_code(const struct mw_v8 *v8, pid_t tid, mw_addr head, mw_addr pc, struct code *out)
{
	const struct v8_version *version = v8->version;
	mw_addr object = head + 1, stream;

	if (!version->code.inside &&
	    (!v8_field(tid, head + 1, WORD, &object) || !v8_is(v8, tid, object, V8_TYPE_CODE) ||
	     !v8_field(tid, object, version->code.stream, &stream) || stream != head + 1 ||
	     !v8_field(tid, object, version->code.start, &out->start)))
		return false;
	if (version->code.inside) {
		if (head % ALIGNMENT)
			return false;
		out->start = head + version->code.inside;
	}
	return mw_peek(tid, object - 1 + version->code.size, &out->size, sizeof(out->size)) &&
	       mw_peek(tid, object - 1 + version->code.flags, &out->flags, sizeof(out->flags)) && out->start > head &&
	       out->start - head <= HEAD_MAX && pc > out->start && pc - out->start <= out->size &&
	       v8_field(tid, object, version->code.deoptimization, &out->deoptimization) &&
	       v8_field(tid, object, version->code.positions, &out->positions) &&
	       (v8_is(v8, tid, out->positions, V8_TYPE_BYTES) || v8_is(v8, tid, out->positions, V8_TYPE_TRUSTED_BYTES));
}

/* Is that word the map that an object with instructions begins with? */
static bool is_map_of_code(const struct mw_v8 *v8, pid_t tid, uint64_t word)
{
	enum v8_constant wanted = v8->version->code.inside ? V8_TYPE_CODE : V8_TYPE_STREAM;
	uint16_t type;

	if (word == v8->stream_map)
		return true;
	return word % 8 == 1 && word >> 47 == 0 && word > UINT16_MAX &&
	       mw_peek(tid, word - 1 + (uint32_t)v8->constants[V8_MAP_TYPE], &type, sizeof(type)) &&
	       type == v8->constants[wanted];
}

/* Its object stands before it in memory: of objects that may be it the nearest. */
static bool find_code(struct mw_v8 *v8, pid_t tid, mw_addr pc, struct code *out)
{
	mw_addr end = (pc & ~(mw_addr)(WORD - 1)) + WORD, low = pc > CODE_MAX ? pc - CODE_MAX : 0;
	uint64_t words[CHUNK];

	while (end > low) {
		mw_addr from = (end - WORD) & ~(mw_addr)(sizeof(words) - 1);
		size_t count = (size_t)(end - from) / WORD;

		if (!mw_peek(tid, from, words, count * WORD))
			return false;
		while (count--) {
			if (!is_map_of_code(v8, tid, words[count]) || !take_code(v8, tid, from + count * WORD, pc, out))
				continue;
			v8->stream_map = words[count];
			return true;
		}
		end = from;
	}
	return false;
}

/* --- made of bytecode alone --------------------------------------------------------------------------------------- */

/* Bytes of the first bytecode of `left` bytes, its prefix among them; 0: there is none. */
static uint32_t bytecode_size(const struct mw_v8 *v8, const uint8_t *bytecode, size_t left)
{
	unsigned scale = 0, prefix = 0;

	if (!left)
		return 0;
	if (*bytecode < PREFIXES) {
		scale = *bytecode % 2 ? 2 : 1;
		prefix = 1;
	}
	if (left <= prefix || bytecode[prefix] >= v8->bytecodes)
		return 0;
	return prefix + v8->sizes[scale * v8->bytecodes + bytecode[prefix]];
}

/* The table says how many bytes of instructions the prologue has, then each bytecode. */
static bool find_offset(const struct mw_v8 *v8, struct mw_cursor table, const uint8_t *bytecode, uint32_t length,
			uint32_t pc, uint32_t *offset)
{
	/* No call is in the prologue, whose frame is not there yet. */
	uint64_t end = mw_cursor_uleb(&table), more;
	uint32_t now = 0, next = 0, size;

	if (!table.ok || end >= pc)
		return false;
	while (end < pc) {
		now = next;
		size = bytecode_size(v8, bytecode + now, length - now);
		more = mw_cursor_uleb(&table);
		if (!table.ok || more > UINT32_MAX || !size || size > length - now)
			return false;
		next += size;
		end += more;
	}
	*offset = now;
	return true;
}

static bool baseline_at(const struct mw_v8 *v8, pid_t tid, const struct code *code, uint32_t pc, struct v8_place *out)
{
	uint32_t table_size, size;
	uint8_t *table, *bytecode = NULL;
	uint64_t length;
	bool found = false;

	if (!v8->bytecodes || !v8_field(tid, code->deoptimization, (uint32_t)v8->constants[V8_ARRAY_LENGTH], &length) ||
	    !v8_number(length, &size) || size > BYTECODE_MAX)
		return false;
	table = v8_bytes(v8, tid, code->positions, &table_size);
	if (table)
		bytecode = malloc(size + 1);
	if (bytecode &&
	    mw_peek(tid, code->deoptimization - 1 + (uint32_t)v8->constants[V8_BYTECODE_DATA], bytecode, size))
		found = find_offset(v8, (struct mw_cursor){.at = table, .left = table_size, .ok = true}, bytecode, size,
				    pc, &out->offset);
	out->bytecode = found ? code->deoptimization : 0;
	free(table);
	free(bytecode);
	return found;
}

/* --- optimized ---------------------------------------------------------------------------------------------------- */

static bool function_of(const struct mw_v8 *v8, pid_t tid, mw_addr deoptimization, mw_addr *shared)
{
	const struct v8_version *version = v8->version;

	return v8_element(v8, tid, deoptimization, version->deoptimization.function, shared) &&
	       (!version->deoptimization.is_wrapped || v8_field(tid, *shared, WRAPPED, shared));
}

/* Bytes of the call at `at`, of `left` that there are; 0: there is none. */
static unsigned call_size(pid_t tid, const uint8_t *at, size_t left, mw_addr addr)
{
	unsigned mod, size;
	int32_t by;
	uint8_t byte;

	if (left >= 5 && at[0] == 0xe8) {
		memcpy(&by, at + 1, sizeof(by));
		/* What leads to no memory is part of something else. */
		return mw_peek(tid, addr + 5 + (uint64_t)(int64_t)by, &byte, 1) ? 5 : 0;
	}
	if (left < 2 || at[0] != 0xff || (at[1] >> 3 & 7) != 2)
		return 0;
	mod = at[1] >> 6;
	size = mod == 1 ? 3 : mod == 2 || (mod == 0 && (at[1] & 7) == 5) ? 6 : 2;
	return size + (mod != 3 && (at[1] & 7) == 4);
}

/*
 * Is the position of the entry at `at` that of the call before `pc`? An entry stands right before what takes it, and calls
 * alone have entries. But there are calls that have none, and one that has the position of the call before it has none
 * either. So between the two there is to be no other call, nor any bytes that may be one.
 */
static bool is_own_position(pid_t tid, const struct code *code, uint32_t at, uint32_t pc)
{
	uint8_t bytes[CALL_MAX];
	uint32_t size = pc - at;

	if (size > sizeof(bytes) || !mw_peek(tid, code->start + at, bytes, size))
		return false;
	for (uint32_t i = 0; i < size; i++) {
		unsigned call = call_size(tid, bytes + i, size - i, code->start + at + i);

		if (call && i + call != size)
			return false;
	}
	return true;
}

/* An inlined call: where its caller calls it, and which of the literals the function is. */
struct inlined {
	uint64_t position;
	int32_t function;
	int32_t unused;
};

/* From a position in an inlined call to that of the call, and which function that was in. */
static bool step_out(const struct mw_v8 *v8, pid_t tid, mw_addr deoptimization, uint64_t *raw, mw_addr *shared)
{
	uint32_t size, number = V8_POSITION_INLINED(*raw) - 1;
	struct inlined inlined = {.function = -1};
	mw_addr calls, literals;
	uint8_t *bytes;

	if (!v8_element(v8, tid, deoptimization, v8->version->deoptimization.inlined, &calls) ||
	    !v8_element(v8, tid, deoptimization, v8->version->deoptimization.literals, &literals))
		return false;
	bytes = v8_bytes(v8, tid, calls, &size);
	if (bytes && number < size / sizeof(inlined))
		memcpy(&inlined, bytes + number * sizeof(inlined), sizeof(inlined));
	free(bytes);
	if (inlined.function < 0 || !v8_element(v8, tid, literals, (uint32_t)inlined.function, shared))
		return false;
	*shared &= ~(uint64_t)V8_WEAK;
	*raw = inlined.position;
	return true;
}

static unsigned optimized_at(const struct mw_v8 *v8, pid_t tid, const struct code *code, mw_addr shared, uint32_t pc,
			     struct v8_at *out)
{
	mw_addr function;
	uint32_t size, at;
	unsigned count = 0;
	uint64_t raw;
	bool found;
	uint8_t *bytes;

	if (!function_of(v8, tid, code->deoptimization, &function) || function != shared)
		return 0;
	bytes = v8_bytes(v8, tid, code->positions, &size);
	found = bytes && v8_find_position(bytes, size, pc - 1, &raw, &at);
	free(bytes);
	if (!found || !is_own_position(tid, code, at, pc))
		return 0;
	while (V8_POSITION_INLINED(raw)) {
		struct v8_at *now = &out[count++];

		now->place = (struct v8_place){.offset = V8_POSITION_AT(raw) - 1, .in_source = V8_POSITION_AT(raw)};
		if (count == V8_INLINED || !step_out(v8, tid, code->deoptimization, &raw, &now->shared))
			return 0;
	}
	out[count++] = (struct v8_at){shared, {.offset = V8_POSITION_AT(raw) - 1, .in_source = V8_POSITION_AT(raw)}};
	return count;
}

unsigned v8_code_at(struct mw_v8 *v8, pid_t tid, mw_addr shared, mw_addr pc, struct v8_at out[V8_INLINED])
{
	struct code code;
	unsigned count;
	uint32_t at;

	if (!find_code(v8, tid, pc, &code))
		return 0;
	at = (uint32_t)(pc - code.start);
	if (v8_is(v8, tid, code.deoptimization, V8_TYPE_BYTECODE)) {
		out[0] = (struct v8_at){.shared = shared};
		return baseline_at(v8, tid, &code, at, &out[0].place);
	}
	if (!v8_is(v8, tid, code.deoptimization, V8_TYPE_ARRAY) &&
	    !v8_is(v8, tid, code.deoptimization, V8_TYPE_TRUSTED_ARRAY) &&
	    !v8_is(v8, tid, code.deoptimization, V8_TYPE_PROTECTED_ARRAY))
		return 0;
	if ((code.flags & MADE_BY) != v8->version->code.maglev)
		return optimized_at(v8, tid, &code, shared, at, out);
	count = v8_maglev_at(v8, tid, code.deoptimization, code.start + code.size, at, out);
	return count && out[count - 1].shared == shared ? count : 0;
}
