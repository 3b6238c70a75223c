/* SPDX-License-Identifier: MIT */
/*
 * v8.h: JavaScript functions that V8 runs (Node.js), and what they are called, found from outside in a process that nobody
 * has prepared.
 *
 * Where its objects have their fields, the file that V8 is in says itself (v8dbg_…, which node exports). What it does not
 * say is known of the versions of V8 in Node 18, 20, 22 and 24, and others are refused by name.
 *
 * Whatever stands in the process's memory is taken for what it may be: anything. Reading is bounded, and what is
 * invalid has no name. x86-64 only.
 */
#ifndef MW_SCRIPT_V8_H
#define MW_SCRIPT_V8_H

#include "script/spaces.h"
#include "symbol/modules.h"

#include <memwatch/event.h>
#include <memwatch/javascript.h>

struct mw_v8;

/* One for a process. Errors: MEMORY. `modules` must outlive it. */
struct mw_error *mw_v8_create(struct mw_modules *modules, struct mw_v8 **out) MW_MUST_CHECK;
void mw_v8_destroy(struct mw_v8 *v8); /* NULL is fine */

/* Look for V8 in modules that came since the last call. The process may run. A version that is not known is refused by
 * name, in modules->frames_missing. Errors: MEMORY. */
struct mw_error *mw_v8_take_in(struct mw_v8 *v8, pid_t tid) MW_MUST_CHECK;
/* Is there one whose frames can be read? */
bool mw_v8_is_there(const struct mw_v8 *v8); /* NULL is fine */
/* What its frames are; all is 0 until it is there. Good as long as `v8`. */
const struct mw_javascript_layout *mw_v8_layout(const struct mw_v8 *v8);

/*
 * Read what a frame is called, and keep that: its objects may move at any time. `pc`: its return address. The thread whose
 * frame it is must not run meanwhile. Errors: MEMORY.
 */
struct mw_error *mw_v8_learn(struct mw_v8 *v8, pid_t tid, const struct mw_javascript *frame, mw_addr pc) MW_MUST_CHECK;
/*
 * Put functions in place of those frames that are theirs: `functions` of each frame; they have been learned where they can
 * be. One may stand for several, as calls are inlined. Writes at most `capacity` frames; `*truncated` where there are more.
 */
void mw_v8_name(const struct mw_v8 *v8, const struct mw_raw_stack *native, const struct mw_javascript *functions,
		struct mw_raw_frame *out, uint32_t capacity, uint32_t *count, bool *truncated);

/* --- its memory --------------------------------------------------------------------------------------------------- */

/* The file that V8 is in, by a mapping of it, in a process where V8 has a heap, of any version; NULL: there is none. The
 * process may run. */
const struct mw_mapping *mw_v8_file(pid_t tid, const struct mw_maps *maps);
/*
 * What of the process's memory is V8's heap: by its spaces, as v8.getHeapSpaceStatistics() calls them ("V8 old_space"), of
 * all isolates together; and "V8 freed chunks", which belong to no space: V8 12 and later keep them for reuse. Of a
 * version that is not known it is "V8 heap", as far as its chunks look like those of one that is. Memory of the code range that
 * holds no code yet is not among it. The process may run. Added to `out`. Errors: MEMORY.
 */
struct mw_error *mw_v8_spaces(const struct mw_v8 *v8, pid_t tid, const struct mw_maps *maps,
			      struct mw_script_spaces *out) MW_MUST_CHECK;

#endif
