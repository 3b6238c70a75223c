/* SPDX-License-Identifier: MIT */
/*
 * hotspot.h: the code that a Java virtual machine (HotSpot) has made, and the names of Java methods, found from outside in
 * a process that nobody has prepared.
 *
 * Where its structures have their fields, libjvm.so says itself (gHotSpotVMStructs), whatever version it is. How it encodes
 * lines and inlined calls it does not say: that is known for the versions 17 to 25, and others are refused by name.
 *
 * Whatever stands in the process's memory is taken for what it may be: anything. Reading is bounded, and what makes no
 * sense has no name. x86-64 only.
 */
#ifndef MW_SCRIPT_HOTSPOT_H
#define MW_SCRIPT_HOTSPOT_H

#include "script/spaces.h"
#include "symbol/modules.h"

struct mw_hotspot;

/* One for a process. Errors: MEMORY. `modules` must outlive it. */
struct mw_error *mw_hotspot_create(struct mw_modules *modules, struct mw_hotspot **out) MW_MUST_CHECK;
void mw_hotspot_destroy(struct mw_hotspot *hotspot); /* NULL is fine */

/*
 * Look for libjvm in modules that came since the last call; and, until it is there, for what the virtual machine has set
 * up since. The process may run. A version that is not known is refused by name, in modules->frames_missing.
 * Errors: MEMORY.
 */
struct mw_error *mw_hotspot_take_in(struct mw_hotspot *hotspot, pid_t tid) MW_MUST_CHECK;
/* Is there one, with its interpreter, whose code can be read? */
bool mw_hotspot_is_there(const struct mw_hotspot *hotspot);
/* … is one that has not set that up yet? */
bool mw_hotspot_is_awaited(const struct mw_hotspot *hotspot);
/* The module that stands for the language: a number of those below is a frame's address in it. Once it is there. */
uint32_t mw_hotspot_module(const struct mw_hotspot *hotspot);

struct mw_hotspot_range {
	mw_addr low, high; /* [low, high) */
};
#define MW_HOTSPOT_RANGES 4

/* The address ranges that it has reserved for code, which do not change once it is there. Returns how many. */
unsigned mw_hotspot_ranges(const struct mw_hotspot *hotspot, struct mw_hotspot_range *out, unsigned capacity);

/* How a frame of generated code stands on the stack. */
enum mw_hotspot_kind {
	MW_HOTSPOT_COMPILED,    /* a compiled method, or the wrapper of a native one */
	MW_HOTSPOT_INTERPRETER, /* by frame pointer: the method at -24, its instruction at -64, the caller's sp at -8 */
	MW_HOTSPOT_ENTRY,       /* by frame pointer: the call of Java by native code, which is its caller */
	MW_HOTSPOT_STUB,        /* other code, with a frame size */
	MW_HOTSPOT_OTHER,       /* other code, of which none is known: by frame pointer */
};

struct mw_hotspot_code {
	enum mw_hotspot_kind kind;
	mw_addr start, end; /* of the blob, whole, its data as well */
	mw_addr code_start,
		code_end;    /* its instructions; of MW_HOTSPOT_ENTRY only those at the call, as the blob has others */
	uint32_t frame_size; /* bytes from sp to the canonical frame address (CFA), at a call; 0: unknown */
	uint32_t frame_complete; /* offset from code_start on which the frame is set up; 0 where it is not told */
	/* When what a compiled method took for granted is no longer so, HotSpot lets its frames return elsewhere in their
	 * blob, and keeps the return address in the frame. Where `pc` is that place: bytes from sp to there; else -1. */
	int32_t original_at;
};

/* The code blob that holds `pc`, a return address. The process may run. False: there is none, or it is gone. */
bool mw_hotspot_find(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, struct mw_hotspot_code *out);

/*
 * The frames at a return address in compiled code, right behind a call: inlined ones too, the innermost first. `*count` is
 * `capacity` at most, and 0 where there is no compiled code. A frame is "java.util.zip.Inflater.init", "Inflater.java" and
 * the line. Errors: MEMORY.
 */
struct mw_error *mw_hotspot_name_compiled(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc, uint32_t *numbers,
					  unsigned capacity, unsigned *count) MW_MUST_CHECK;
/* An interpreted frame: its Method, and its instruction ("bcp", 0 in a native method). Errors: MEMORY. */
struct mw_error *mw_hotspot_name_interpreted(struct mw_hotspot *hotspot, pid_t tid, mw_addr method, mw_addr bcp,
					     uint32_t *number) MW_MUST_CHECK;
/* Code that is no method, as "~StubRoutines::call_stub". `*number` is 0 where there is none. Errors: MEMORY. */
struct mw_error *mw_hotspot_name_stub(struct mw_hotspot *hotspot, pid_t tid, mw_addr pc,
				      uint32_t *number) MW_MUST_CHECK;

/*
 * Does memory that frames were named by since the last call hold something else now? Code that is compiled, and methods of
 * classes, come to stand where others have been: then what is at an address has another name.
 */
bool mw_hotspot_has_changed(struct mw_hotspot *hotspot, pid_t tid);

/* --- its memory --------------------------------------------------------------------------------------------------- */

/*
 * What it says of its memory: "Java heap", "code cache", "class space", "metaspace", "shared classes", "card table", and
 * "stack of NAME", which is that of the thread, as /proc has it. That is not all: no structure says where a collector's
 * bitmaps and stacks of threads that run no Java are; those of malloc's are not among them. "metaspace" is what classes
 * were found in. The used part of the Java heap is the collector's own figure. The process may run. Added to `out`, in no
 * order. Errors: MEMORY.
 */
struct mw_error *mw_hotspot_spaces(struct mw_hotspot *hotspot, pid_t tid, const struct mw_maps *maps,
				   struct mw_script_spaces *out) MW_MUST_CHECK;

#endif
