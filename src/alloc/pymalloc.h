/* SPDX-License-Identifier: MIT */
/*
 * pymalloc.h: CPython's allocator of objects (pymalloc): its functions, which have no names in a stripped program, and
 * the pointers that CPython calls them by.
 *
 * Each domain has a struct of a context and four pointers (PyMemAllocatorEx). CPython keeps a second set for its debug
 * hooks, by which they are found; there is only one such place:
 *
 *      'r' NULL  malloc calloc realloc free     raw memory: of malloc's
 *      'm' NULL  malloc calloc realloc free     PyMem_Malloc  ┐ pymalloc's, the same functions
 *      'o' NULL  malloc calloc realloc free     PyObject_Malloc ┘
 *
 * A build that was optimised by a profile has the functions inlined wherever the pointer is the usual one:
 *
 *      mov  _PyObject.malloc, %rax                    such a call never enters the function. If the pointer leads to
 *      cmp  $_PyObject_Malloc, %rax                   another entry of it, a nop right before it or a jump to it,
 *      jne  elsewhere             call *%rax          all calls do. Nothing of memwatch's own is pointed to, so that
 *      … what it does …                               copies of the pointer may stay anywhere.
 */
#ifndef MW_ALLOC_PYMALLOC_H
#define MW_ALLOC_PYMALLOC_H

#include "alloc/families.h"

#define MW_PYMALLOC_FUNCTIONS 4 /* malloc, calloc, realloc, free */
#define MW_PYMALLOC_POINTERS  64

struct mw_pymalloc {
	struct mw_found_entry functions[MW_PYMALLOC_FUNCTIONS];
	uint64_t others[MW_PYMALLOC_FUNCTIONS]; /* vaddr of another entry of each; 0: none, and none is needed */
	struct {
		mw_addr addr; /* in the process */
		uint8_t function;
	} pointers[MW_PYMALLOC_POINTERS];
	size_t pointer_count;
	const char *missing; /* why its blocks can't be told, or NULL; static text */
};

extern const struct mw_family mw_family_pymalloc;

/* Does the module hold CPython? */
bool mw_pymalloc_may_be_in(struct mw_elf *elf);
/*
 * Look for it in a process where the module lies `bias` from where its file says. False: there is none, or the module is
 * not relocated yet. Where `missing` is set, the rest means nothing. `read` reads its memory. Errors: MEMORY.
 */
struct mw_error *mw_pymalloc_find(struct mw_elf *elf, mw_addr bias,
				  bool (*read)(void *context, mw_addr addr, void *out, size_t size), void *context,
				  struct mw_pymalloc *out, bool *found) MW_MUST_CHECK;

#endif
