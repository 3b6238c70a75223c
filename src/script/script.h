/* SPDX-License-Identifier: MIT */
/*
 * script.h: the frames of code that an interpreter runs, found from outside in a process that nobody has prepared.
 *
 * A stack's native frames are the interpreter's; what it interprets is a list of its own frames that it keeps in its
 * memory. Both are read at the moment of an event, and merged: each run of the interpreter's loop is replaced by the
 * frames that it evaluates. A merged frame is as any other (memwatch/event.h): a module that stands for the language
 * (symbol/modules.h), and a number there. So nothing that counts, filters or records stacks knows of it.
 *
 * Whatever stands in the process's memory is taken for what it may be: anything. Reading is bounded, and what is
 * invalid ends the list.
 *
 * To add a language: a file beside python.c, and its fields in struct mw_script.
 */
#ifndef MW_SCRIPT_SCRIPT_H
#define MW_SCRIPT_SCRIPT_H

#include "symbol/modules.h"

#include <memwatch/event.h>
#include <memwatch/script.h>

struct mw_script;

/* Errors: MEMORY. `modules` must outlive it. */
struct mw_error *mw_script_create(struct mw_modules *modules, struct mw_script **out) MW_MUST_CHECK;
void mw_script_destroy(struct mw_script *script); /* NULL is fine */

/*
 * Look for interpreters in modules that came since the last call. The process may run. One of a version that is not known
 * is refused by name, in modules->frames_missing. Errors: MEMORY.
 */
struct mw_error *mw_script_take_in(struct mw_script *script, pid_t tid) MW_MUST_CHECK;
/* Is there one whose frames can be read? */
bool mw_script_is_there(const struct mw_script *script);
/* For whoever walks in the thread itself: how, and where the state of each thread is, as far as that is known. NULL: there is
 * no interpreter. Good as long as the script. */
const struct mw_script_layout *mw_script_layout_of(const struct mw_script *script, struct mw_script_place *place);

/*
 * The frames of the thread `tid`, innermost first, `capacity` at most; `thread_pointer` is its. The thread is stopped.
 * `*cut`: the list did not end, or was invalid from there on. None for a thread that runs no such code.
 */
uint32_t mw_script_walk(struct mw_script *script, pid_t tid, mw_addr thread_pointer, struct mw_script_ref *refs,
			uint32_t capacity, bool *cut);
/* Read a frame's code object, which may be gone when the frame is to be named. False: it could not be read. `*forgotten`:
 * others that were read before are not known any more, as they were too many. */
bool mw_script_learn(struct mw_script *script, pid_t tid, const struct mw_script_ref *ref, bool *forgotten);
/* A hash of frames as walked: the same for what mw_script_merge() would do the same with. */
uint64_t mw_script_hash(const struct mw_script_ref *refs, uint32_t count);

/*
 * Name the frames, and put them where they belong among the native ones. Writes at most `capacity` frames; `*truncated`
 * where there are more. Errors: MEMORY.
 */
struct mw_error *mw_script_merge(struct mw_script *script, pid_t tid, const struct mw_raw_stack *native,
				 const struct mw_script_ref *refs, uint32_t ref_count, struct mw_raw_frame *out,
				 uint32_t capacity, uint32_t *count, bool *truncated) MW_MUST_CHECK;

#endif
