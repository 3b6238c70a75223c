/* SPDX-License-Identifier: MIT */
/*
 * reach.h: which blocks a process can still get at, and through what.
 *
 * Verdicts are memcheck's: a block that is pointed to from a root, at its start, directly or by way of other blocks, is
 * still reachable; one that is only reached by way of a pointer into the middle of a block is possibly lost; one that is
 * reached by nothing is definitely lost, or indirectly where it hangs off a lost one. A cycle that nobody holds is lost.
 *
 * Never a false accusation: what can't be read, walked or understood is a root.
 */
#ifndef MW_HEAP_REACH_H
#define MW_HEAP_REACH_H

#include "heap/blocks.h"
#include "heap/image.h"

#include <memwatch/heap.h>

#include <signal.h>

enum mw_root_kind {
	MW_ROOT_REGISTER,
	MW_ROOT_STACK,   /* of a thread, from sp minus the red zone up */
	MW_ROOT_TLS,     /* a thread's static TLS and its control block */
	MW_ROOT_DATA,    /* a module's writable data */
	MW_ROOT_MAPPING, /* writable memory that no allocator owns */
	MW_ROOT_KERNEL,  /* a word that the kernel keeps */
	MW_ROOT_UNKNOWN, /* an allocator's memory that could not be walked */
	MW_ROOT_MOVED,   /* none was found: it is not one of options->suspects */
};

/* Where the first link of a holder path stands. */
struct mw_root {
	enum mw_root_kind kind;
	mw_addr at; /* of the word; of a register, and of the kernel's words: its index */
	pid_t tid;  /* of a register, a stack, TLS; else 0 */
};

struct mw_reach_options {
	uint64_t tag_bits; /* bits of a pointer that a program may use for itself, beside the lowest three */
	/* A Python program may hold a block by an int with its address, as ctypes makes of a c_void_p: 30 bits of it stand in each
	 * 4 bytes. Such a word leaves the block possibly lost. */
	bool python_ints;
	unsigned threads; /* to scan by; 0: as many as there are CPUs */
	/* Memory of memwatch's own in the process: no root. By address. */
	const struct mw_reach_hole {
		mw_addr start, end;
	} * holes;
	size_t hole_count;
	/* The blocks that may be lost, by where they begin, in order: others are held, also where no pointer to them is found.
	 * Borrowed. NULL: all. */
	const mw_addr *suspects;
	size_t suspect_count;
	bool holders; /* find dominators: 20 bytes a block more, and meanwhile 28 more, and 12 for each pointer */
	/* With `holders`: what a root counts to, numbered from 0 without gaps. NULL: roots are not told apart. What it returns
	 * is passed on. */
	struct mw_error *(*number_root)(void *context, const struct mw_root *root, uint32_t *number);
	void *number_context;
	void (*progress)(void *context, double share); /* NULL: none */
	void *context;
	const volatile sig_atomic_t *interrupted; /* not 0: give it up (SYSTEM, EINTR); NULL: never */
};

struct mw_reached;

/* Blocks must be finished. They and the image must stay as long as what is made of them. Errors: MEMORY. */
struct mw_error *mw_reach(const struct mw_image *image, const struct mw_blocks *blocks,
			  const struct mw_reach_options *options, struct mw_reached **out) MW_MUST_CHECK;
void mw_reached_destroy(struct mw_reached *reached);

/* Of a live block's number. */
enum mw_reach mw_reached_of(const struct mw_reached *reached, uint32_t number);
/* What has led to a block first, by the fewest steps: another block (*holder), or with *holder MW_BLOCK_NONE a root. `at`
 * is the address of the pointer. False: nothing has. */
bool mw_reached_holder(const struct mw_reached *reached, uint32_t number, uint32_t *holder, mw_addr *at,
		       struct mw_root *root);
/* What an address of roots' memory is a part of; false: it is none. */
bool mw_reached_root_of(const struct mw_reached *reached, mw_addr addr, struct mw_root *root);
/* Sums by verdict. */
const struct mw_amount *mw_reached_sums(const struct mw_reached *reached); /* [MW_REACH_COUNT] */
/* Bytes that were looked through for pointers. */
uint64_t mw_reached_scanned(const struct mw_reached *reached);
/* Bytes that should have been there and could not be read. Where there are any in an image of one moment, or a
 * thread's registers are not known, then nothing is definitely or indirectly lost: it is possibly lost. */
uint64_t mw_reached_unread(const struct mw_reached *reached);
/* Bytes of the blocks that would be lost with this one, itself included: what it dominates. 0 without options->holders. */
uint64_t mw_reached_retained(const struct mw_reached *reached, uint32_t number);
/* The block that dominates it at once, or, not below the count of segments, that count and the number of what its root
 * counts to; MW_BLOCK_NONE: several roots, or it is lost. */
uint32_t mw_reached_dominator(const struct mw_reached *reached, uint32_t number);

#endif
