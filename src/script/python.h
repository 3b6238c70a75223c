/* SPDX-License-Identifier: MIT */
/* python.h: what the parts of the reader of CPython share: where a version has its fields, and its tables of lines. */
#ifndef MW_SCRIPT_PYTHON_H
#define MW_SCRIPT_PYTHON_H

#include "base/map.h"
#include "script/script.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum python_lines {
	PYTHON_LNOTAB,    /* co_lnotab: 3.9 */
	PYTHON_LINETABLE, /* PEP 626: 3.10 */
	PYTHON_LOCATIONS, /* the location table: 3.11 on */
};

/*
 * Offsets of fields, in bytes. They are those of x86-64 builds for release of any patch level of the version: CPython
 * keeps them within one, as extensions are built against them.
 */
struct python_layout {
	uint8_t minor; /* of 3.minor */
	enum python_lines lines;
	uint16_t interpreters;              /* in _PyRuntime: the first interpreter */
	uint16_t current_thread;            /* … the state of the thread that holds the GIL; NO_FIELD: not there */
	uint16_t next_interpreter, threads; /* in an interpreter: the next, its first thread's state */
	uint16_t next_thread;               /* in a thread's state */
	uint16_t ascii, compact;            /* where the characters of a string begin, by its kind */
	struct mw_script_layout walk;
};

#define PYTHON_TEXT_SIZE  16 /* in a string: characters */
#define PYTHON_TEXT_STATE 32

#define PYTHON_NEWEST 14

/* NULL: not known. */
const struct python_layout *python_layout_of(unsigned minor);

/* The line of the instruction `at` bytes into the code; 0: it has none. `table` is what the code object has, whatever
 * that holds. */
uint32_t python_line(enum python_lines kind, const uint8_t *table, size_t size, uint32_t first_line, uint64_t at);

/* Code of the interpreter's loop. */
struct python_loop {
	mw_addr start, end;
};
#define PYTHON_LOOPS 4

struct mw_script {
	struct mw_modules *modules;
	uint32_t seen;   /* modules that were looked at */
	uint32_t module; /* that stands for the language */
	struct mw_named_frames *named;
	const struct python_layout *layout; /* NULL: there is no interpreter */
	struct python_layout own;           /* … where it is made of what the process says itself */
	mw_addr runtime;                    /* _PyRuntime */
	struct mw_script_place place;
	struct python_loop loops[PYTHON_LOOPS];
	size_t loop_count;
	struct mw_map threads; /* states of threads, by thread pointer */
	struct mw_map codes;   /* struct python_code by mw_script_key() */
	size_t kept;           /* bytes of these, about */
	bool forgotten;        /* some were thrown away since anybody asked */
};

/* The number of a frame in script->named, which it gets where it is new. Errors: MEMORY. */
struct mw_error *python_name(struct mw_script *script, pid_t tid, const struct mw_script_ref *ref,
			     uint32_t *number) MW_MUST_CHECK;
/* Free code objects, and the map. */
void python_codes_deinit(struct mw_map *codes);

#endif
