/* SPDX-License-Identifier: MIT */
/*
 * script.h: where a process's interpreter (CPython) has its frames, and the walk along them.
 *
 * The walk runs in memwatch, on a process that is stopped, and in the recorder, in the thread itself (src/stub). It makes
 * no call but `read`, which copies the aligned word at an address, or says that it can't be read: it takes nothing for
 * granted that stands in memory.
 */
#ifndef MEMWATCH_SCRIPT_H
#define MEMWATCH_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

/* The recorder is flat: `read` is part of it, too. */
#define MW_SCRIPT_INLINE static inline __attribute__((always_inline))

#define MW_SCRIPT_NO_FIELD UINT16_MAX

/* Offsets of fields, in bytes. */
struct mw_script_layout {
	uint16_t thread_id;      /* in a thread's state */
	uint16_t frame;          /* … its innermost frame, or its C frame */
	uint16_t cframe_frame;   /* in a C frame: the innermost frame; NO_FIELD: there are none */
	uint16_t previous, code; /* in a frame: the caller's, the code object */
	uint16_t at;             /* … where it is in that: a pointer, or an int where there is no `bytecode` */
	uint16_t owner;    /* … who owns it, a byte; NO_FIELD: a frame is an object, and a run of the loop each */
	uint16_t is_entry; /* … is it the outermost of a run of the loop, a byte? NO_FIELD: `owner` says */
	uint16_t file, name, table; /* in a code object */
	uint16_t first_line;        /* … an int */
	uint16_t bytecode;          /* … where the code itself begins; NO_FIELD: `at` counts from its beginning */
	uint16_t first_traceable;   /* … the first instruction after the prologue, an int; NO_FIELD: there is none */
	uint16_t at_unit;           /* `at` counts in so many bytes, where it is an int */
	/* Bits of `code` that are not of the address; where there are any (3.14) a thread's list ends with a frame of no run.
	 */
	uint16_t tag;
};

/* frame.owner */
/* The last two are of the interpreter's own frames; one of them up to 3.13. */
enum {
	MW_SCRIPT_BY_THREAD,
	MW_SCRIPT_BY_GENERATOR,
	MW_SCRIPT_BY_OBJECT,
	MW_SCRIPT_BY_INTERPRETER,
	MW_SCRIPT_BY_C_STACK
};

/* Where the state of the running thread is found. */
struct mw_script_place {
	/* The address of a word: the state of the thread that holds the interpreter's lock; 0: there is none. */
	uint64_t current;
	/* The distance from the thread pointer of a word: the thread's own state; 0: not known. */
	uint64_t own;
};

/* A frame as the interpreter has it. */
struct mw_script_ref {
	uint64_t code;  /* its code object (0: a run of the loop that evaluates nothing yet), and MW_SCRIPT_LAST */
	uint64_t at;    /* bytes into the code */
	uint64_t check; /* a hash of what is in the code object: another one may come to lie there */
};

#define MW_SCRIPT_LAST  UINT64_C(1) /* the outermost frame of its run of the interpreter's loop */
#define MW_SCRIPT_WORDS 3u          /* of a frame */

typedef bool mw_script_read(void *context, uint64_t addr, uint64_t *word);

MW_SCRIPT_INLINE bool mw_script_half(mw_script_read *read, void *context, uint64_t addr, uint32_t *half)
{
	uint64_t word;

	if (!read(context, addr & ~UINT64_C(7), &word))
		return false;
	*half = (uint32_t)(word >> (addr & 4) * 8);
	return true;
}

MW_SCRIPT_INLINE bool mw_script_byte(mw_script_read *read, void *context, uint64_t addr, uint8_t *byte)
{
	uint64_t word;

	if (!read(context, addr & ~UINT64_C(7), &word))
		return false;
	*byte = (uint8_t)(word >> (addr & 7) * 8);
	return true;
}

MW_SCRIPT_INLINE uint64_t mw_script_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

#define MW_SCRIPT_BYTES_SIZE 16u /* in an object of bytes: how many */
#define MW_SCRIPT_BYTES_DATA 32u /* … and where they begin */

/* The hash of what names a code object's frames: its name, file, first line and table of lines, of which the size and the
 * first bytes count as well: code that is made at run time comes to lie where other code was. */
MW_SCRIPT_INLINE bool mw_script_check(const struct mw_script_layout *layout, mw_script_read *read, void *context,
				      uint64_t code, uint64_t *check)
{
	uint64_t name, table, file, size, word, hash;
	uint32_t line;

	if (!read(context, code + layout->name, &name) || !read(context, code + layout->table, &table) ||
	    !read(context, code + layout->file, &file) ||
	    !mw_script_half(read, context, code + layout->first_line, &line) ||
	    !read(context, table + MW_SCRIPT_BYTES_SIZE, &size))
		return false;
	hash = mw_script_mix(mw_script_mix(mw_script_mix(mw_script_mix(line, name), table), file), size);
	for (uint64_t at = 0; at < 2 && at * 8 + 8 <= size; at++) {
		if (!read(context, table + MW_SCRIPT_BYTES_DATA + at * 8, &word))
			return false;
		hash = mw_script_mix(hash, word);
	}
	*check = hash;
	return true;
}

/* What stands for that code object, as it is: never 0. */
MW_SCRIPT_INLINE uint64_t mw_script_key(const struct mw_script_ref *ref)
{
	return mw_script_mix(ref->check, ref->code & ~MW_SCRIPT_LAST) | 1;
}

/* Is that the state of the thread with this thread pointer? */
MW_SCRIPT_INLINE bool mw_script_is_of(const struct mw_script_layout *layout, mw_script_read *read, void *context,
				      uint64_t state, uint64_t thread_pointer)
{
	uint64_t id;

	return state && !(state & 7) && read(context, state + layout->thread_id, &id) && id == thread_pointer;
}

/* The state of the thread, 0 where it has none that is found so. Of the state that
 * holds the lock, which may be another thread's, only the thread's id is read. */
MW_SCRIPT_INLINE uint64_t mw_script_state(const struct mw_script_layout *layout, const struct mw_script_place *place,
					  mw_script_read *read, void *context, uint64_t thread_pointer)
{
	uint64_t own = 0, current = 0;

	if (place->own && (!read(context, thread_pointer + place->own, &own) || !own))
		return 0;
	/* Of several interpreters it may have a state of each. */
	if (place->current && read(context, place->current, &current) && current != own &&
	    mw_script_is_of(layout, read, context, current, thread_pointer))
		return current;
	return mw_script_is_of(layout, read, context, own, thread_pointer) ? own : 0;
}

/* What the loop was run for ends with the frame that was found last. False: there is no room. */
MW_SCRIPT_INLINE bool mw_script_end_run(struct mw_script_ref *refs, uint32_t *count, uint32_t capacity)
{
	if (*count && !(refs[*count - 1].code & MW_SCRIPT_LAST)) {
		refs[*count - 1].code |= MW_SCRIPT_LAST;
		return true;
	}
	if (*count == capacity)
		return false;
	refs[(*count)++] = (struct mw_script_ref){MW_SCRIPT_LAST, 0, 0};
	return true;
}

/* Where in its code a frame is, in bytes; below 0: before the first instruction. */
MW_SCRIPT_INLINE bool mw_script_at(const struct mw_script_layout *layout, mw_script_read *read, void *context,
				   uint64_t frame, uint64_t code, int64_t *at)
{
	uint64_t pointer;
	uint32_t number;

	if (layout->bytecode != MW_SCRIPT_NO_FIELD) {
		if (!read(context, frame + layout->at, &pointer))
			return false;
		*at = (int64_t)(pointer - code - layout->bytecode);
		return true;
	}
	if (!mw_script_half(read, context, frame + layout->at, &number))
		return false;
	*at = (int64_t)(int32_t)number * layout->at_unit;
	return true;
}

/* Add a frame. False: it is invalid, or there is no room. */
MW_SCRIPT_INLINE bool mw_script_add(const struct mw_script_layout *layout, mw_script_read *read, void *context,
				    uint64_t frame, uint8_t owner, struct mw_script_ref *refs, uint32_t *count,
				    uint32_t capacity)
{
	bool last = layout->owner == MW_SCRIPT_NO_FIELD;
	uint8_t is_entry = 0;
	uint32_t begin = 0;
	uint64_t code, check;
	int64_t at;

	if (!read(context, frame + layout->code, &code))
		return false;
	code &= ~(uint64_t)layout->tag;
	if (!code || code & 7 || !mw_script_at(layout, read, context, frame, code, &at))
		return false;
	if (layout->is_entry != MW_SCRIPT_NO_FIELD &&
	    !mw_script_byte(read, context, frame + layout->is_entry, &is_entry))
		return false;
	last |= is_entry != 0;
	/* What has been entered, and not begun, is in no traceback either. */
	if (layout->first_traceable != MW_SCRIPT_NO_FIELD && owner != MW_SCRIPT_BY_GENERATOR) {
		if (!mw_script_half(read, context, code + layout->first_traceable, &begin))
			return false;
		if (at < (int64_t)(int32_t)begin * 2)
			return !last || mw_script_end_run(refs, count, capacity);
	}
	if (*count == capacity || !mw_script_check(layout, read, context, code, &check))
		return false;
	refs[(*count)++] = (struct mw_script_ref){code | (last ? MW_SCRIPT_LAST : 0), at < 0 ? 0 : (uint64_t)at, check};
	return true;
}

#define MW_SCRIPT_BETWEEN 64u /* frames that are none of a script's, beyond as many as have room */

/* The frames of a thread, innermost first, `capacity` at most. `*cut`: the list was invalid from there on, or there are
 * more. */
MW_SCRIPT_INLINE uint32_t mw_script_frames(const struct mw_script_layout *layout, mw_script_read *read, void *context,
					   uint64_t state, struct mw_script_ref *refs, uint32_t capacity, bool *cut)
{
	uint8_t most = layout->tag ? MW_SCRIPT_BY_C_STACK : MW_SCRIPT_BY_INTERPRETER;
	uint64_t frame, previous;
	uint32_t count = 0;

	*cut = true;
	if (!read(context, state + layout->frame, &frame))
		return 0;
	if (frame && layout->cframe_frame != MW_SCRIPT_NO_FIELD &&
	    (frame & 7 || !read(context, frame + layout->cframe_frame, &frame)))
		return 0;
	for (uint32_t i = 0; frame; i++) {
		uint8_t owner = MW_SCRIPT_BY_THREAD;

		if (frame & 7 || i >= 2 * capacity + MW_SCRIPT_BETWEEN)
			return count;
		if (layout->owner != MW_SCRIPT_NO_FIELD &&
		    (!mw_script_byte(read, context, frame + layout->owner, &owner) || owner > most))
			return count;
		if (!read(context, frame + layout->previous, &previous))
			return count;
		if (layout->tag && !previous)
			break;
		if (owner >= MW_SCRIPT_BY_INTERPRETER
			    ? !mw_script_end_run(refs, &count, capacity)
			    : !mw_script_add(layout, read, context, frame, owner, refs, &count, capacity))
			return count;
		frame = previous;
	}
	*cut = false;
	return count;
}

#endif
