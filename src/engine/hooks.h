/* SPDX-License-Identifier: MIT */
/*
 * hooks.h: which addresses of a process are to be hooked, and whether they can be.
 *
 * Shared by the engines and by `memwatch doctor`: reads modules and memory, writes nothing.
 */
#ifndef MW_ENGINE_HOOKS_H
#define MW_ENGINE_HOOKS_H

#include "alloc/families.h"
#include "symbol/modules.h"

#include <memwatch/arch.h>
#include <memwatch/engine.h>
#include <memwatch/unwind.h>

struct mw_hook {
	struct mw_hook_info info; /* function, module path, address, role, kind, refused */
	const struct mw_family *family;
	const struct mw_entry_point *entry;
	uint32_t module;          /* number in the module table */
	uint64_t size;            /* of the function; 0 unknown */
	struct mw_insn_plan plan; /* of its first instruction */
	bool foreign;             /* refused as another tool has changed it */
	bool glibc;               /* blocks have glibc's chunk headers */
};

struct mw_hooks {
	struct mw_hook *items; /* index = hook number, never reused */
	size_t count, capacity;
};

/* Look again at those that another tool seemed to have changed, or that could not be read: while a process loads and
 * unloads libraries, what is read may be another's already. Those of modules that are gone are nobody's. */
void mw_hooks_recheck(struct mw_hooks *hooks, const struct mw_modules *modules, const struct mw_arch *arch,
		      const struct mw_memory_view *memory);

/*
 * Append the hooks of modules number `first` and later that are mapped. `memory` reads the target (to see what stands
 * there now: something else's patch, a breakpoint, is a reason to refuse). Kinds not wanted are left out. Refused ones
 * are in the list with info.refused set (text owned by the hooks). Errors: MEMORY.
 */
struct mw_error *mw_hooks_find(struct mw_hooks *hooks, const struct mw_modules *modules, uint32_t first,
			       const struct mw_arch *arch, const struct mw_memory_view *memory, bool heap,
			       bool vm) MW_MUST_CHECK;
/* How many of them are of the heap kind and not refused. */
size_t mw_hooks_usable(const struct mw_hooks *hooks, enum mw_kind kind);
void mw_hooks_deinit(struct mw_hooks *hooks);

#endif
