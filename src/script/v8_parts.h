/* SPDX-License-Identifier: MIT */
/* v8_parts.h: what the files of the V8 reader share (v8.h). */
#ifndef MW_SCRIPT_V8_PARTS_H
#define MW_SCRIPT_V8_PARTS_H

#include "script/v8.h"

#include "base/map.h"

/* What the file says, by names that begin with "v8dbg_". */
enum v8_constant {
	V8_SMI_SHIFT,
	V8_FRAME_FUNCTION,
	V8_FRAME_CONTEXT,
	V8_FRAME_BYTECODE,
	V8_FRAME_OFFSET,
	V8_FUNCTION_SHARED,
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_NAME,
	V8_MAP_TYPE,
	V8_STRING_LENGTH,
	V8_ONE_BYTE_CHARS,
	V8_TWO_BYTE_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_SLICED_PARENT,
	V8_SLICED_OFFSET,
	V8_THIN_ACTUAL,
	V8_EXTERNAL_RESOURCE,
	V8_ARRAY_LENGTH,
	V8_ARRAY_DATA,
	V8_BYTECODE_DATA,
	V8_SCOPE_LOCALS,
	V8_SCOPE_FIRST,
	V8_TYPE_SHARED,
	V8_TYPE_SCOPE,
	V8_TYPE_SCRIPT,
	V8_TYPE_BYTECODE,
	V8_TYPE_BYTES,
	V8_TYPE_CODE,
	V8_TYPE_ARRAY,
	V8_NEEDED,
	V8_TYPE_TRUSTED_BYTES = V8_NEEDED, /* since 12 */
	V8_TYPE_TRUSTED_ARRAY,
	V8_TYPE_PROTECTED_ARRAY, /* since 13 */
	V8_TYPE_STREAM,          /* since 11 */
	V8_CONSTANTS
};

/* … and what it does not. Offsets of fields are from the beginning of the object. */
struct v8_version {
	unsigned major, minor;
	uint16_t positions; /* in a BytecodeArray: its table of source positions */
	struct {
		uint8_t eval, function;
	} scopes;       /* kinds of them */
	bool raw_flags; /* a ScopeInfo's flags are no number of V8's */
	/* In a Code object. What is made of bytecode alone has that in the place of what its deoptimization takes, and a
	 * table of its instructions in that of the positions. */
	struct {
		uint16_t deoptimization, positions;
		uint16_t stream, start; /* the InstructionStream that holds it, the first instruction there … */
		uint16_t size;          /* … how many bytes of them, an int */
		uint16_t inside;        /* not 0: the object is in the place of the stream, and they are there in it */
		uint16_t flags;         /* of which the lowest four bits say who has made it … */
		uint8_t maglev;         /* … which it is if that was Maglev */
	} code;
	/* Which elements of the array that deoptimization takes are what. */
	struct {
		uint8_t literals, function, inlined;
		bool is_wrapped; /* the function is in an object of its own */
		/* Of Maglev's code; `entries` is 0 where they can't be read. Each has three elements. */
		uint8_t translation, bytecodes, entries;
	} deoptimization;
};

#define V8_INLINED 24 /* functions in one frame */

struct v8_named_frame {
	unsigned count;
	uint32_t numbers[V8_INLINED]; /* the innermost first */
};

/* Where a function is: an offset in bytecode, or a position in the source; neither is known of one that is all 0. */
struct v8_place {
	mw_addr bytecode;
	uint32_t offset;
	bool in_source;
};

struct v8_lines {
	uint32_t *ends; /* where each line ends, counted in characters of the source */
	size_t count;
};

struct mw_v8 {
	struct mw_modules *modules;
	struct mw_named_frames *named;
	uint32_t module;
	uint32_t seen; /* modules that were looked at */
	const struct v8_version *version;
	int32_t constants[V8_CONSTANTS];
	struct mw_javascript_layout layout;
	/* Of bytecodes, and of those with operands of twice and of four times the size: so many bytes. */
	uint8_t sizes[3 * 256];
	unsigned bytecodes;         /* … how many there are; 0: it is not known */
	mw_addr stream_map;         /* of memory with instructions, the last that was found; 0: none was */
	struct mw_map named_frames; /* struct v8_named_frame by mw_javascript_key() */
	struct mw_map lines;        /* struct v8_lines, by a hash of the script */
	size_t line_bytes;
};

/* --- names (v8_names.c) ------------------------------------------------------------------------------------------- */

void v8_names_deinit(struct mw_v8 *v8);

/* --- objects (v8_objects.c) --------------------------------------------------------------------------------------- */

/* A field of an object, by a pointer to it. */
bool v8_field(pid_t tid, mw_addr object, uint32_t field, uint64_t *word);
/* The instance type of an object; false: it is none. */
bool v8_type(const struct mw_v8 *v8, pid_t tid, mw_addr object, uint16_t *type);
bool v8_is(const struct mw_v8 *v8, pid_t tid, mw_addr object, enum v8_constant type);
/* A number of V8's ("Smi"), not negative. */
bool v8_number(uint64_t word, uint32_t *number);
/* An element of an array. */
bool v8_element(const struct mw_v8 *v8, pid_t tid, mw_addr array, uint32_t index, uint64_t *word);
#define V8_WEAK 2u /* a bit of a pointer that keeps nothing alive */

/* A string's first characters as UTF-8. False: it is no string, or can't be read. */
bool v8_text(const struct mw_v8 *v8, pid_t tid, mw_addr string, char *out, size_t size);
/* Its characters, in pieces, in order; `visit` returns false to end that, which is a success. */
typedef bool v8_visit(void *context, const void *chars, size_t count, bool one_byte);
bool v8_each_char(const struct mw_v8 *v8, pid_t tid, mw_addr string, uint32_t most, v8_visit *visit, void *context);

/* --- code (v8_code.c) --------------------------------------------------------------------------------------------- */

/* A function, and where it is. */
struct v8_at {
	mw_addr shared;
	struct v8_place place;
};

/* Where the code that has been made of the function `shared` is at the return address `pc`: in which functions that are
 * inlined there, the innermost first, and last itself. Returns how many, at most V8_INLINED; 0: it is not known. */
unsigned v8_code_at(struct mw_v8 *v8, pid_t tid, mw_addr shared, mw_addr pc, struct v8_at out[V8_INLINED]);

/* --- code of Maglev (v8_maglev.c) ---------------------------------------------------------------------------------- */

/* A function in a frame: at which offset in its bytecode (-1: none), and which of the literals are it and that. */
struct v8_translated {
	int32_t offset, function, bytecode;
};

/* The functions of the frame whose translation begins at `index`, the outermost first. Returns how many; 0: it is invalid,
 * or has more. */
unsigned v8_translate(const uint8_t *bytes, uint32_t size, uint32_t index, struct v8_translated out[V8_INLINED]);
/* As v8_code_at(). `deoptimization` and the table of `safepoints` are the code's, `pc` is bytes from its first
 * instruction. */
unsigned v8_maglev_at(const struct mw_v8 *v8, pid_t tid, mw_addr deoptimization, mw_addr safepoints, uint32_t pc,
		      struct v8_at out[V8_INLINED]);

/* --- places (v8_lines.c) ------------------------------------------------------------------------------------------ */

/* The bytes of an array of V8's, to be freed; NULL: it is none, or is too long. */
uint8_t *v8_bytes(const struct mw_v8 *v8, pid_t tid, mw_addr array, uint32_t *size);

/* A position as it stands in a table of V8's: which inlined call it is in, and where in the script; from 1, 0: in none. */
#define V8_POSITION_INLINED(raw) ((uint32_t)((raw) >> 31 & 0xffff))
#define V8_POSITION_AT(raw)      ((raw)&1 ? 0 : (uint32_t)((raw) >> 1 & 0x3fffffff))

/* The position of the last entry of a table that is not behind `offset`, and that entry's offset. False: there is none, or the
 * table is invalid. */
bool v8_find_position(const uint8_t *table, uint32_t size, uint32_t offset, uint64_t *raw, uint32_t *at);
/* The line, from 1, of a place in a script; 0: it is not known. */
uint32_t v8_line_of(struct mw_v8 *v8, pid_t tid, mw_addr script, const struct v8_place *at);
void v8_lines_deinit(struct mw_v8 *v8);

#endif
