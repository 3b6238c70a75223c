/* SPDX-License-Identifier: MIT */
/*
 * roots.h: the memory from which a process's own code finds its blocks.
 *
 * All memory in which the process can have left a pointer is a root, but for what is known to be none:
 * - what walked allocators own: blocks hold one another only where a root leads to them, and free lists hold nothing;
 * - the part of a thread's stack below its stack pointer and the red zone, where the bounds of its stack are known;
 * - options->holes.
 *
 * Protection says nothing: memory that is PROT_NONE or read-only now may have been written before. So read-only private
 * mappings of files are scanned, too (relocated data is all that is resident of most, and costs little). Not scanned are
 * code that can't be written, read-only shared mappings of files on disks, devices, and the kernel's own mappings: none of
 * these can hold what the process has stored, unless it rewrites its own code or has the same file mapped twice.
 *
 * In generated code pointers are parts of instructions, and stand at any address: so in executable memory that may be
 * written or is of no file, and in memory of no file that touches such (where it is made writable to be changed).
 *
 * A stack pointer in a mapping that is not known to be the thread's own stack (coroutines, alternate stacks) makes all of
 * that mapping a root, and the stack that the thread has left one in full: what else its owner keeps there is not known.
 */
#ifndef MW_HEAP_ROOTS_H
#define MW_HEAP_ROOTS_H

#include "heap/reach.h"

struct mw_root_range {
	mw_addr start, end;
	enum mw_root_kind kind;
	pid_t tid; /* of MW_ROOT_STACK and MW_ROOT_TLS, else 0 */
	bool code; /* pointers stand in instructions, at any address */
};

/* Zero-initialise. Ranges by address. */
struct mw_roots {
	struct mw_root_range *ranges;
	size_t count, capacity;
};

/* Errors: MEMORY. */
struct mw_error *mw_roots_find(const struct mw_image *image, const struct mw_blocks *blocks,
			       const struct mw_reach_options *options, struct mw_roots *out) MW_MUST_CHECK;
void mw_roots_deinit(struct mw_roots *roots);
/* The range that holds `addr`, or NULL. */
const struct mw_root_range *mw_roots_of(const struct mw_roots *roots, mw_addr addr);

/* Where a thread keeps the address of its vector of TLS blocks, and where glibc's heap block with that vector begins: the
 * address in the thread leads two words into the block. False: not known. */
bool mw_roots_thread_vector(const struct mw_image *image, const struct mw_image_thread *thread, mw_addr *at,
			    mw_addr *block);

#endif
