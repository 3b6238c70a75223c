/* SPDX-License-Identifier: MIT */
/*
 * types.h: the few types that every module shares.
 */
#ifndef MEMWATCH_TYPES_H
#define MEMWATCH_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address in a target. Never a pointer of ours. */
typedef uint64_t mw_addr;

/* A size that nobody knows (never guessed, never negative). */
#define MW_SIZE_UNKNOWN UINT64_MAX

/* The three ways in which memory is counted (terms: block kinds). */
enum mw_kind {
	MW_KIND_HEAP,        /* malloc family and C++ operators */
	MW_KIND_VM,          /* mmap family and brk, called by anything but an allocator */
	MW_KIND_VM_INTERNAL, /* the same called by an allocator for its own needs */
	MW_KIND_COUNT
};

/* Kinds of regions of an address space, for its summary. */
enum mw_region_kind {
	MW_REGION_HEAP,      /* [heap]: what brk made */
	MW_REGION_ARENA,     /* other memory of an allocator's */
	MW_REGION_STACK,     /* of threads */
	MW_REGION_ANONYMOUS, /* private, of no file */
	MW_REGION_FILE_TEXT, /* private, executable, of a file */
	MW_REGION_FILE_DATA, /* private, of a file */
	MW_REGION_SHARED,    /* shared, of a file or none */
	MW_REGION_OWN,       /* memwatch's */
	MW_REGION_SPECIAL,   /* vdso and the like */
	MW_REGION_KIND_COUNT
};

/* What a process that takes more and more memory comes to, and how much of it is used already. */
struct mw_memory_limit {
	uint64_t bytes, used;
	enum mw_limit_of {
		MW_LIMIT_NONE, /* not known */
		MW_LIMIT_CGROUP,
		MW_LIMIT_MACHINE,
	} of;
};

/* A number of blocks and their bytes. */
struct mw_amount {
	uint64_t count;
	uint64_t bytes;
};

/* How far an estimated amount may be off: the variances of its count and its bytes, and how many blocks were recorded that
 * stand for all. Where every block is recorded the variances are 0. */
struct mw_spread {
	double count, bytes;
	uint64_t blocks;
};

static inline void mw_spread_add(struct mw_spread *sum, struct mw_spread spread)
{
	sum->count += spread.count;
	sum->bytes += spread.bytes;
	sum->blocks += spread.blocks;
}

/* Those of what is known of a set of blocks. */
struct mw_spreads {
	struct mw_spread impacting, transient, aofi, aofo, settled, peak;
};

/* Of several sets, whose blocks were sampled independently. Peaks can't be added. */
static inline void mw_spreads_add(struct mw_spreads *sum, const struct mw_spreads *spreads)
{
	mw_spread_add(&sum->impacting, spreads->impacting);
	mw_spread_add(&sum->transient, spreads->transient);
	mw_spread_add(&sum->aofi, spreads->aofi);
	mw_spread_add(&sum->aofo, spreads->aofo);
	mw_spread_add(&sum->settled, spreads->settled);
}

/* Of all that was allocated inside. */
static inline struct mw_spread mw_spreads_size(const struct mw_spreads *spreads)
{
	struct mw_spread size = spreads->impacting;

	mw_spread_add(&size, spreads->transient);
	return size;
}

static inline void mw_amount_add(struct mw_amount *sum, struct mw_amount amount)
{
	sum->count += amount.count;
	sum->bytes += amount.bytes;
}

#endif
