/* SPDX-License-Identifier: MIT */
/*
 * modules.h: the table of all files with code that a process has or had mapped.
 *
 * A module gets its number when it is first seen and keeps it; when it is unmapped it is marked
 * gone but stays, so stacks taken before can still be reported. The same file mapped again elsewhere
 * is a new module. Files are opened through the process's own root (/proc/TID/root/PATH), checked
 * against the mapping's device and inode, and through /proc/TID/map_files where the name leads to
 * another file or none (deleted, replaced, other mount namespace). The vdso is read from memory.
 * Where device and inode differ, headers and build-id in the target's memory decide.
 *
 * Code mapped from a file that is no ELF file (a JIT's memfd) makes one module for the whole file,
 * without elf; so does a file that can't be opened. Anonymous code is no module.
 */
#ifndef MW_SYMBOL_MODULES_H
#define MW_SYMBOL_MODULES_H

#include "base/shared_list.h"
#include "proc/maps.h"
#include "symbol/elf_image.h"
#include "symbol/named_frames.h"

struct mw_module {
	uint32_t number;
	char *path; /* as the target sees it; "[vdso]" */
	uint64_t inode;
	uint32_t major, minor;
	bool deleted;
	bool gone;          /* no longer mapped */
	mw_addr start, end; /* lowest and highest address of its mappings */
	uint64_t bias;      /* address in the target = vaddr in the file + bias */
	struct mw_elf *elf; /* NULL where the file could not be had; `why` says why */
	char *why;
	struct mw_named_frames *named; /* NULL, or it is no file: "addresses" are the numbers of frames of a language */
	bool seen;                     /* in the maps that are being taken in; for modules.c alone */
	void *user;                    /* the owner of the table may hang something here; not freed */
};

struct mw_module_range {
	mw_addr start, end;
	struct mw_module *module;
};

struct mw_modules {
	struct mw_shared_list items;
	struct mw_module_range *ranges; /* what is mapped now, in address order */
	size_t range_count;
	uint64_t signature; /* of the maps that were last taken in */
	bool valid;
	/* Why the frames of an interpreter among them can't be had, a sentence; "": they can, or there is none. */
	char frames_missing[160];
};

/* Reads target memory for the vdso: pid is any stopped or running thread of the process. */
struct mw_error *mw_modules_create(struct mw_modules **out) MW_MUST_CHECK;
void mw_modules_destroy(struct mw_modules *modules);
/* Take in the present mappings. `*added` (may be NULL) is the number of modules that are new: they are the last ones
 * of the table; `*removed` the number of those that have gone. Modules that could not be opened are in the table
 * without elf. */
struct mw_error *mw_modules_refresh(struct mw_modules *modules, pid_t tid, const struct mw_maps *maps, size_t *added,
				    size_t *removed) MW_MUST_CHECK;
/* Add a module that some other table had: the next number is its. Takes `elf` (may be NULL), also on failure; copies
 * the path (may be NULL). For a table that is never refreshed. Errors: MEMORY. */
struct mw_error *mw_modules_add(struct mw_modules *modules, const char *path, uint64_t bias,
				struct mw_elf *elf) MW_MUST_CHECK;
/* Add the code of a language, as "[python]", which has no addresses: a frame of this module has for an address its number
 * in `*named`, which belongs to the table. `*number` is the module's. Errors: MEMORY. */
struct mw_error *mw_modules_add_named(struct mw_modules *modules, const char *path, struct mw_named_frames **named,
				      uint32_t *number) MW_MUST_CHECK;
/* Any thread may ask for modules that a refresh has added, while another refreshes: their path, bias and elf (whose bytes
 * any thread may read) stay. */
static inline uint32_t mw_modules_count(const struct mw_modules *modules)
{
	return mw_shared_list_count(&modules->items);
}

/* NULL: there is none of that number. */
static inline struct mw_module *mw_modules_get(const struct mw_modules *modules, uint32_t number)
{
	return mw_shared_list_get(&modules->items, number);
}

/* The next module that is mapped and has its file: `for (uint32_t i = 0; (module = mw_modules_next(modules, &i));)`. */
static inline struct mw_module *mw_modules_next(const struct mw_modules *modules, uint32_t *position)
{
	struct mw_module *module;

	do
		module = mw_modules_get(modules, (*position)++);
	while (module && (module->gone || !module->elf));
	return module;
}

/* The module mapped at `addr` now (its code or its data), or NULL. Binary search; fit for hot paths. Not to be called
 * while another thread refreshes. */
struct mw_module *mw_modules_find(const struct mw_modules *modules, mw_addr addr);

#endif
