/* SPDX-License-Identifier: MIT */
/*
 * classes.h: which C++ class an object is of, by its first word, and which variable an address of a module's data is in.
 *
 * An object with virtual functions begins with a pointer into its class's vtable, behind two words of it: the offset to
 * the top of the object (0 here), and the type_info, which names the class. That type_info is an object itself, of a
 * class of the C++ runtime (__cxxabiv1::…): so it is known for one without any symbol. Where a program has no run-time
 * type information the vtable's symbol names the class.
 */
#ifndef MW_HEAP_CLASSES_H
#define MW_HEAP_CLASSES_H

#include "heap/image.h"
#include "symbol/modules.h"

#include <memwatch/error.h>

struct mw_classes;

/* Both are borrowed, and must outlive it. Errors: MEMORY. */
struct mw_error *mw_classes_create(const struct mw_image *image, const struct mw_modules *modules,
				   struct mw_classes **out) MW_MUST_CHECK;
void mw_classes_destroy(struct mw_classes *classes);
/* The class of an object that begins with this word, demangled and shortened; NULL: of none. Good as long as `classes`;
 * equal names are one pointer. Errors: MEMORY. */
struct mw_error *mw_classes_of(struct mw_classes *classes, uint64_t word, const char **out) MW_MUST_CHECK;
/* The same of a block, of so many usable bytes, which begins with this word; or whose it is, where a pool on top of malloc
 * tells (alloc/pools.h): "memory context ExecutorState in PortalContext". */
struct mw_error *mw_classes_of_block(struct mw_classes *classes, mw_addr block, uint64_t size, uint64_t word,
				     const char **out) MW_MUST_CHECK;
/* A variable, by its symbol. */
struct mw_variable {
	const char *name; /* demangled; NULL: none is known. Good as long as `classes` */
	uint64_t offset;  /* how far into it */
	uint64_t size;
	uint32_t module; /* whose it is */
};

/* The variable that an address lies in. Errors: MEMORY. */
struct mw_error *mw_classes_variable(struct mw_classes *classes, mw_addr addr, struct mw_variable *out) MW_MUST_CHECK;

/* The same of a variable of the thread whose control block is at `thread_pointer`: of the program's own ones. */
struct mw_error *mw_classes_thread_variable(struct mw_classes *classes, mw_addr thread_pointer, mw_addr addr,
					    struct mw_variable *out) MW_MUST_CHECK;

/* The path of the file whose data an address lies in, zeroed data too; NULL: none is known. Good as long as `modules`. */
const char *mw_classes_file(const struct mw_classes *classes, mw_addr addr);

#endif
