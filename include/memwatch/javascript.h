/* SPDX-License-Identifier: MIT */
/*
 * javascript.h: a frame of a JavaScript function, as V8 has it.
 *
 * It is read in memwatch, of a process that is stopped, and in the recorder, in the thread itself (src/stub), by a call
 * `read`, which copies the aligned word at an address, or says that it can't be read: it takes nothing for granted that
 * stands in memory. Objects move: so a frame is kept as what stays when they do, or shows that it has not.
 */
#ifndef MEMWATCH_JAVASCRIPT_H
#define MEMWATCH_JAVASCRIPT_H

#include <memwatch/script.h>

/* Offsets of fields, in bytes, from the pointer to an object, which is 1 more than its address. */
struct mw_javascript_layout {
	int16_t shared;          /* in a function: its SharedFunctionInfo; 0: nothing is known */
	int16_t name, script;    /* … in that */
	int16_t bytecode_length; /* in a BytecodeArray */
	int16_t bytecode;        /* … where the bytecode begins */
	int16_t unused[3];
};

/* A frame of a function. */
struct mw_javascript {
	uint64_t shared; /* its SharedFunctionInfo; 0: it is of none */
	uint64_t at;     /* of the interpreter's: mw_javascript_at(); else 0 */
	uint64_t check;  /* a hash of what is in `shared`: another one may come to lie there */
};

#define MW_JAVASCRIPT_WORDS 3u /* of a frame */

/* Below the frame pointer: a function has its context at -8, where others have a small number; */
#define MW_JAVASCRIPT_CONTEXT  (-8)
#define MW_JAVASCRIPT_FUNCTION (-16)
#define MW_JAVASCRIPT_BYTECODE (-32) /* … the interpreter its BytecodeArray, */
#define MW_JAVASCRIPT_OFFSET   (-40) /* … and where it is in that */

/* … and what a frame has below it at least: `made` by V8 as it runs, else the interpreter's. */
#define MW_JAVASCRIPT_SIZE(made) ((made) ? 16u : 40u)

/* A place in bytecode: of objects, which lie at multiples of 8, below 2^47. Offsets that are larger have none: 0. */
#define MW_JAVASCRIPT_OFFSET_BITS 20

MW_SCRIPT_INLINE uint64_t mw_javascript_at(uint64_t bytecode, uint64_t offset)
{
	return bytecode >> 47 || offset >> MW_JAVASCRIPT_OFFSET_BITS
		       ? 0
		       : bytecode >> 3 << MW_JAVASCRIPT_OFFSET_BITS | offset;
}

MW_SCRIPT_INLINE uint64_t mw_javascript_bytecode_of(uint64_t at)
{
	return (at >> MW_JAVASCRIPT_OFFSET_BITS << 3) | 1;
}

MW_SCRIPT_INLINE uint64_t mw_javascript_offset_of(uint64_t at)
{
	return at & ((UINT64_C(1) << MW_JAVASCRIPT_OFFSET_BITS) - 1);
}

MW_SCRIPT_INLINE bool mw_javascript_field(mw_script_read *read, void *context, uint64_t object, int16_t field,
					  uint64_t *word)
{
	return (object & 7) == 1 && read(context, object + (uint64_t)(int64_t)field, word);
}

/* What is in a SharedFunctionInfo, as a hash that is not 0. */
MW_SCRIPT_INLINE bool mw_javascript_check(const struct mw_javascript_layout *layout, mw_script_read *read,
					  void *context, uint64_t shared, uint64_t *check)
{
	uint64_t map, name, script;

	if (!mw_javascript_field(read, context, shared, -1, &map) ||
	    !mw_javascript_field(read, context, shared, layout->name, &name) ||
	    !mw_javascript_field(read, context, shared, layout->script, &script))
		return false;
	*check = mw_script_mix(mw_script_mix(mw_script_mix(0, map), name), script) | 1;
	return true;
}

/*
 * The interpreter's place: `bytecode` and `offset` are as they stand in the frame, the latter a number of V8's, in the
 * upper half, which counts from the object. False: this is no frame of the interpreter.
 */
MW_SCRIPT_INLINE bool mw_javascript_place(const struct mw_javascript_layout *layout, mw_script_read *read,
					  void *context, uint64_t bytecode, uint64_t offset, uint64_t *at)
{
	uint64_t into = (offset >> 32) - (uint64_t)(int64_t)layout->bytecode, length;

	if (offset & UINT32_MAX || into >> 31 ||
	    !mw_javascript_field(read, context, bytecode, layout->bytecode_length, &length) || length & UINT32_MAX ||
	    into >= length >> 32)
		return false;
	*at = mw_javascript_at(bytecode, into);
	return true;
}

/* The frame's function, `function` as it stands in the frame. False: there is none. */
MW_SCRIPT_INLINE bool mw_javascript_of(const struct mw_javascript_layout *layout, mw_script_read *read, void *context,
				       uint64_t function, struct mw_javascript *out)
{
	return mw_javascript_field(read, context, function, layout->shared, &out->shared) &&
	       mw_javascript_check(layout, read, context, out->shared, &out->check);
}

/* What a frame is known by, with its return address, which counts where its place in bytecode is not known. Not 0. */
MW_SCRIPT_INLINE uint64_t mw_javascript_key(const struct mw_javascript *frame, uint64_t pc)
{
	return mw_script_mix(mw_script_mix(mw_script_mix(frame->check, frame->shared), frame->at), frame->at ? 0 : pc) |
	       1;
}

#endif
