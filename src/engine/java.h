/* SPDX-License-Identifier: MIT */
/*
 * java.h: the frames of a Java virtual machine's code (script/hotspot.h) in stacks: how both engines walk through them,
 * and what they are called.
 */
#ifndef MW_ENGINE_JAVA_H
#define MW_ENGINE_JAVA_H

#include "proc/status.h"
#include "script/hotspot.h"
#include "unwind/made.h"

#include <memwatch/event.h>

struct mw_java {
	pid_t pid;
	struct mw_hotspot *hotspot;
	struct mw_made_code made; /* for unwinders; good as long as this */
};

/* `modules` must outlive it. Errors: MEMORY. */
struct mw_error *mw_java_init(struct mw_java *java, pid_t pid, struct mw_modules *modules) MW_MUST_CHECK;
void mw_java_deinit(struct mw_java *java); /* a zeroed one is fine */

/* Is there one whose code is known? Not of a zeroed one. */
static inline bool mw_java_is_there(const struct mw_java *java)
{
	return java->hotspot && mw_hotspot_is_there(java->hotspot);
}

/* The memory that it has set aside for code. Returns how many ranges. */
static inline unsigned mw_java_ranges(const struct mw_java *java, struct mw_hotspot_range out[MW_HOTSPOT_RANGES])
{
	return mw_java_is_there(java) ? mw_hotspot_ranges(java->hotspot, out, MW_HOTSPOT_RANGES) : 0;
}

/* Look for it, and for what it has set up since the last time. The process may run. Errors: MEMORY. */
static inline struct mw_error *mw_java_take_in(struct mw_java *java)
{
	return java->hotspot ? mw_hotspot_take_in(java->hotspot, mw_live_thread(java->pid)) : NULL;
}

/* Has code, or a method, that stacks were named by since the last time made place for another? */
static inline bool mw_java_has_changed(const struct mw_java *java)
{
	return mw_java_is_there(java) && mw_hotspot_has_changed(java->hotspot, mw_live_thread(java->pid));
}

/* A frame of the interpreter by what it runs. Errors: MEMORY. */
struct mw_error *mw_java_interpreted(struct mw_java *java, const struct mw_interpreted *interpreted,
				     struct mw_raw_frame *out) MW_MUST_CHECK;
/*
 * Name the frames of compiled code, of which each may stand for several, as calls are inlined. Writes at most `capacity`
 * frames; `*truncated` where there are more. `*count` 0: there is nothing to name. Errors: MEMORY.
 */
struct mw_error *mw_java_name(struct mw_java *java, const struct mw_raw_stack *native, struct mw_raw_frame *out,
			      uint32_t capacity, uint32_t *count, bool *truncated) MW_MUST_CHECK;

#endif
