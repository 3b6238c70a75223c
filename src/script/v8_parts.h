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
	V8_NEEDED,
	V8_TYPE_TRUSTED_BYTES = V8_NEEDED, /* since 12 */
	V8_CONSTANTS
};

/* … and what it does not. Offsets of fields are from the beginning of the object. */
struct v8_version {
	unsigned major, minor;
	uint16_t data;      /* in a SharedFunctionInfo: its bytecode, or code made from that */
	uint16_t positions; /* in a BytecodeArray: its table of source positions */
	uint8_t eval_scope, function_scope, module_scope;
	bool raw_flags; /* a ScopeInfo's flags are no number of V8's */
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
	struct mw_map named_frames; /* struct v8_named_frame by mw_javascript_key() */
	struct mw_map lines;   /* struct v8_lines, by a hash of the script */
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

/* A string's first characters as UTF-8. False: it is no string, or can't be read. */
bool v8_text(const struct mw_v8 *v8, pid_t tid, mw_addr string, char *out, size_t size);
/* Its characters, in pieces, in order; `visit` returns false to end that, which is a success. */
typedef bool v8_visit(void *context, const void *chars, size_t count, bool one_byte);
bool v8_each_char(const struct mw_v8 *v8, pid_t tid, mw_addr string, uint32_t most, v8_visit *visit, void *context);

/* --- places (v8_lines.c) ------------------------------------------------------------------------------------------ */

/* The bytes of an array of V8's, to be freed; NULL: it is none, or is too long. */
uint8_t *v8_bytes(const struct mw_v8 *v8, pid_t tid, mw_addr array, uint32_t *size);

/* The line, from 1, of a place in a script; 0: it is not known. */
uint32_t v8_line_of(struct mw_v8 *v8, pid_t tid, mw_addr script, const struct v8_place *at);
void v8_lines_deinit(struct mw_v8 *v8);

#endif
