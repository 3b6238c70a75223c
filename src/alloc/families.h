/* SPDX-License-Identifier: MIT */
/*
 * families.h: the allocator families memwatch knows, and finding their entry points in a module.
 *
 * To add a family: a table of entry points in its own file and a row in mw_families[].
 */
#ifndef MW_ALLOC_FAMILIES_H
#define MW_ALLOC_FAMILIES_H

#include "symbol/modules.h"

#include <memwatch/engine.h>

#define MW_NO_ARG 0xff

/* One name of one entry point: its role and which arguments (0…5) matter. */
struct mw_entry_point {
	const char *symbol; /* ELF name, mangled */
	const char *name;   /* as people write it: "operator new(unsigned long)"; NULL: as symbol */
	enum mw_role role;
	uint8_t pointer; /* argument with the old block, the block to free, or &block of posix_memalign */
	uint8_t count;   /* argument with an element count, or MW_NO_ARG */
	uint8_t size;    /* argument with the size, or MW_NO_ARG */
	bool may_throw;  /* an exception may pass through it */
};

struct mw_family {
	const char *name; /* "libc", "c++", "jemalloc", "tcmalloc", "mimalloc", "vm" */
	enum mw_kind kind;
	const struct mw_entry_point *entries; /* ends with a NULL symbol */
	/* Modules whose definitions of this family are not hooked, as what they call is (libstdc++, libc++). NULL-ended
	 * list of soname prefixes, or NULL. */
	const char *const *skip_sonames;
};

extern const struct mw_family *const mw_families[]; /* ends with NULL */

/* An entry point found in a module. */
struct mw_found_entry {
	const struct mw_family *family;
	const struct mw_entry_point *entry;
	uint64_t vaddr; /* in the module's file */
	uint64_t size;  /* of the function as its symbol says; 0 unknown */
};

/*
 * All entry points that a module defines, one a distinct address (the first in table order names it),
 * in table order. .dynsym first, .symtab (global and weak symbols) too. IFUNC symbols are left out.
 * `*found` is malloc'ed.
 */
struct mw_error *mw_alloc_find(struct mw_elf *elf, struct mw_found_entry **found, size_t *count) MW_MUST_CHECK;

/* What kind of code a module holds, for charging blocks and for telling an allocator's own mmaps. */
enum mw_module_class {
	MW_MODULE_OTHER,
	MW_MODULE_RUNTIME,   /* libc, ld.so, libpthread, libstdc++, libc++, libgcc_s, libm, … */
	MW_MODULE_ALLOCATOR, /* a library whose only purpose is allocation (libjemalloc, libtcmalloc, libmimalloc, …) */
};
/* By path and soname; `elf` may be NULL. */
enum mw_module_class mw_alloc_classify(const char *path, struct mw_elf *elf);

/* A language's runtime, or an allocator, that keeps its objects where no hook sees each of them. */
struct mw_runtime {
	const char *name;
	const char *const *modules;     /* beginnings of names of libraries, whole names of programs; then NULL */
	const char *symbol;             /* that a program defines which holds it; NULL: none */
	const char *const *environment; /* settings that have it take each block from malloc; NULL: there are none */
	const char *heap;               /* what it keeps in anonymous mappings; NULL: nothing */
	const char *region; /* … how these' names begin in an address space, where they are known; or NULL */
	const char *text;   /* what a report does not show, and how it is seen */
	bool collects;      /* by tracing: what nobody needs any more stays until its collector runs */
	const char *hook;   /* whose hook tells of its objects; NULL: there is none */
};

/* So many rows; a set of them is a mask, bit n for row n. */
#define MW_RUNTIMES 11
extern const struct mw_runtime mw_runtimes[MW_RUNTIMES];
/* Which of them does a module hold? `elf` is that of the program itself, else NULL: libraries tell by their names. */
uint32_t mw_runtimes_of(const char *path, struct mw_elf *elf);
/* Is the module one of a runtime that collects? `held`: the runtimes of the process, where it is its program; else 0. */
bool mw_runtimes_collect(const char *path, uint32_t held);
/* Which of them take each block from malloc, by a process's environment (as /proc/PID/environ has it)? */
uint32_t mw_runtimes_visible(const char *environment, size_t size);

/* … by what is hooked? */
uint32_t mw_runtimes_hooked(const struct mw_hook_info *hooks, size_t count);

/* How Go's heap is looked at. */
#define MW_ALLOC_GO_PROFILE "go tool pprof http://HOST:PORT/debug/pprof/heap"
/* What to do about a Go program that has no allocator of C's. */
#define MW_ALLOC_GO_HINT                                                                                               \
	"Go's runtime manages its heap by itself; of a Go program memwatch sees only what C code in it (cgo) "         \
	"allocates and maps. For Go's own heap use its profiler, where the program serves "                            \
	"net/http/pprof: " MW_ALLOC_GO_PROFILE

/* Is this module glibc itself (its malloc's chunk headers can be read)? */
bool mw_alloc_is_glibc(struct mw_elf *elf);

/*
 * Code ranges inside an allocator's module that call its own free for blocks the program has freed already (glibc gives
 * a dying thread's cache back through free). Vaddr ranges; `*count` 0 where there are none. Malloc'ed.
 */
struct mw_code_range {
	uint64_t start, end;
};
struct mw_error *mw_alloc_internal_callers(struct mw_elf *elf, struct mw_code_range **ranges,
					   size_t *count) MW_MUST_CHECK;

/*
 * What glibc's chunk header before `block` says, from the memory around it: usable bytes, or MW_SIZE_UNKNOWN where the
 * header can't be verified. `read` reads target memory.
 */
uint64_t mw_glibc_usable_size(mw_addr block, bool (*read)(void *context, mw_addr addr, void *out, size_t size),
			      void *context);

#endif
