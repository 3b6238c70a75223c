/* SPDX-License-Identifier: MIT */
/*
 * survey.h: what there is in a process to be watched: its modules, which addresses are to be hooked and whether they can
 * be, and the code that is to be distinguished. Reads the process, writes nothing; shared by the engines, and the hooks
 * by `memwatch doctor`.
 */
#ifndef MW_ENGINE_SURVEY_H
#define MW_ENGINE_SURVEY_H

#include "alloc/families.h"
#include "alloc/pymalloc.h"
#include "engine/java.h"
#include "script/script.h"
#include "script/v8.h"
#include "symbol/modules.h"
#include "tracee/journal.h"

#include <memwatch/arch.h>
#include <memwatch/engine.h>
#include <memwatch/unwind.h>

#define MW_SURVEY_RUNTIMES 4

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

struct mw_survey {
	pid_t pid;
	bool track_heap, track_vm;
	const struct mw_arch *arch;
	struct mw_modules *modules;
	struct mw_script *script;
	struct mw_java java;
	struct mw_v8 *v8;
	struct mw_hooks hooks;
	struct mw_hook_info *infos; /* of hooks, for reports; made on demand */
	uint32_t modules_seen;      /* modules looked at for hooks */
	uint8_t *module_class;      /* enum mw_module_class by module number */
	struct {
		struct mw_code_range *items; /* vaddr */
		size_t count;
		uint32_t module;
	} internal; /* glibc's own callers of free */
	/* Functions of C++ runtimes that allocate exceptions: addresses in the target. */
	struct mw_code_range exceptions[MW_SURVEY_RUNTIMES];
	size_t exception_count;
	/* Python's objects, where they are to be hooked. */
	bool python_objects;
	bool has_pymalloc; /* it has been found, in a module … */
	uint32_t pymalloc_module;
	struct mw_pymalloc pymalloc;
};

/* `options` say what to track. Errors: MEMORY. */
struct mw_error *mw_survey_init(struct mw_survey *survey, const struct mw_arch *arch, pid_t pid,
				const struct mw_engine_options *options) MW_MUST_CHECK;
/* A zeroed one is fine. */
void mw_survey_deinit(struct mw_survey *survey);

/* Read anew which modules are mapped. `tid` is any live thread of the process. */
struct mw_error *mw_survey_refresh(struct mw_survey *survey, pid_t tid, size_t *added, size_t *removed) MW_MUST_CHECK;
/* Look at the modules that are new in the table since the last time: hooks, classes. Heap entry points are looked for
 * even where only vm is tracked: their mmaps are the allocator's own. */
struct mw_error *mw_survey_take_in(struct mw_survey *survey, pid_t tid) MW_MUST_CHECK;
/* Is there what the user wants tracked, and can it all be hooked? The error says what is missing and where it was
 * looked for: UNSUPPORTED. */
struct mw_error *mw_survey_check(const struct mw_survey *survey) MW_MUST_CHECK;
/*
 * Is `function`'s code at `addr` still what was surveyed? The process ran since: another memwatch, or a debugger, may
 * have come, and whose change stands on another's can't be taken out first. `tid` is stopped, and nothing planted there
 * yet. DENIED where it was changed; as mw_remote_read_all() where it can't be read.
 */
struct mw_error *mw_survey_unchanged(const struct mw_survey *survey, pid_t tid, const char *function, mw_addr addr,
				     const uint8_t *bytes, size_t size) MW_MUST_CHECK;
/* Do pointers lead past the hooks of Python's allocator (alloc/pymalloc.h)? */
bool mw_survey_pointers_astray(const struct mw_survey *survey, pid_t tid);
/* Have them lead to the hooks, which stand. All threads are stopped. */
struct mw_error *mw_survey_lead_pointers(const struct mw_survey *survey, pid_t tid,
					 struct mw_journal *journal) MW_MUST_CHECK;
/* Write down those that a killed memwatch has left so. */
struct mw_error *mw_survey_adopt_pointers(pid_t tid, struct mw_journal *journal) MW_MUST_CHECK;
/* Is it past the entry of a function that maps memory, as in a call that no hook has seen begin? */
bool mw_survey_is_mapping(const struct mw_survey *survey, mw_addr pc);
/* The process's break, page-rounded; 0 where it has moved none. */
mw_addr mw_survey_heap_end(const struct mw_maps *maps);
/* The hooks as reports show them; good until the next call. Returns how many. */
size_t mw_survey_infos(struct mw_survey *survey, const struct mw_hook_info **out);

#endif
