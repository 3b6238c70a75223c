/* SPDX-License-Identifier: MIT */
/* spaces.h: what the runtimes of languages have a process's memory for, found from outside. */
#ifndef MW_SCRIPT_SPACES_H
#define MW_SCRIPT_SPACES_H

#include "proc/maps.h"

/* Address space that a runtime has reserved, and what for. */
struct mw_script_space {
	const char *runtime; /* what has it, static text: "Java virtual machine" */
	char name[64];       /* as in hotspot.h and v8.h */
	bool is_stack;       /* a thread's, which is "stack of NAME" */
	mw_addr low, high;
	bool is_counted;    /* `committed` is what the runtime says, of all its spaces of that name */
	uint64_t committed; /* bytes that can be accessed */
	uint64_t used; /* … that hold something, as the runtime counts; 0: it is not known, or said with another one */
};

/* Zero-initialise; mw_script_spaces_deinit frees. */
struct mw_script_spaces {
	struct mw_script_space *items;
	size_t count, capacity;
};

/* Those of all runtimes that are known, in order of addresses, none over another. The process may run. After an error there
 * are none. Errors: MEMORY; those of mw_maps_read(). */
struct mw_error *mw_script_spaces_of(pid_t tid, struct mw_script_spaces *out) MW_MUST_CHECK;
void mw_script_spaces_deinit(struct mw_script_spaces *spaces);

/* For runtimes: one more. Errors: MEMORY. */
struct mw_error *mw_script_spaces_add(struct mw_script_spaces *spaces,
				      const struct mw_script_space *space) MW_MUST_CHECK;

#endif
