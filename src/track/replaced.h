/* SPDX-License-Identifier: MIT */
/*
 * replaced.h: which stack's new block took the place of a block that was freed.
 *
 * A ring, an LRU cache or a growing container frees an old block in the call in which it allocates a new one. Of blocks
 * from before the window the allocating stack is not known; what the thread allocated right before or after the free
 * tells it. A block takes the place of another where
 * - it is realloc's new block;
 * - the same thread allocated it within the last or next MW_NEAR calls, and both have the same usable size (a slot of a
 *   ring, an entry of a cache); or the allocation comes right before or after, and the sizes are not too different: the
 *   storage of a container, entries of any size;
 * - the freed block was allocated in the window by the same stack.
 * What a function frees of older blocks again and again where it allocates is its own: mw_track_find_kin tells whose, by the
 * stacks of both calls, whatever comes between them. So are entries of several blocks which one function puts and another
 * evicts: at any moment about as many blocks have come as gone, and as many calls allocate them as free them. One part of the
 * entries can be allocated by either of two calls (a value that is shortened, or not), which together allocate as many blocks as
 * another part has: they share what goes.
 * Each new block takes the place of one other at most. Where blocks of several stacks could have taken a place the
 * choice is ambiguous, and counted as such.
 */
#ifndef MW_TRACK_REPLACED_H
#define MW_TRACK_REPLACED_H

#include "base/map.h"
#include "track/block_table.h"
#include "track/tally.h"

#define MW_RECENT 8u  /* allocations that are remembered for each thread, and frees */
#define MW_NEAR   16u /* calls of the thread between the two */

struct mw_recent_call {
	mw_addr addr; /* of an allocation */
	uint64_t bytes;
	uint32_t
		stack; /* of an allocation that took no place; of a free: that took its place; MW_STACK_NONE: neither */
	uint32_t call; /* number among the thread's calls */
};

/* The latest calls of a thread; what each call needs comes first. Zero-initialise. */
struct mw_recent {
	uint64_t tags; /* the lowest byte of each allocation's stack */
	uint32_t calls;
	uint8_t next_allocation, next_free;
	bool has_frees;                 /* there may be some whose place is not taken or was of late */
	struct mw_recent_call own_free; /* the latest of a block of the window; `stack` allocated it */
	struct mw_recent_call allocations[MW_RECENT], frees[MW_RECENT]; /* frees: of older blocks */
};

/*
 * What blocks of a stack took the place of. Of a stack whose calls only free, which took no place (`count` is 0): the blocks from
 * before the window that they freed; `older` is of older_count then, and older_bytes of those whose size is known.
 * Zero-initialise; mw_replaced_deinit frees.
 */
struct mw_replaced {
	struct mw_series older; /* of older_bytes */
	uint16_t known;         /* up to which moment that is */
	uint64_t older_bytes;   /* of blocks from before the window: usable, or, where not known, the new block's */
	uint64_t older_count, unknown;
	uint64_t count, larger; /* of all: how many, and where the new block is larger than the old one */
	uint64_t ambiguous;     /* of older_count */
};

void mw_replaced_deinit(struct mw_replaced *replaced);

struct mw_track;

struct mw_error *mw_replaced_match(struct mw_track *track, struct mw_recent *recent,
				   struct mw_recent_call *own) MW_MUST_CHECK;
/* A block was allocated, not by a realloc that took another. Errors: MEMORY. */
static inline MW_MUST_CHECK struct mw_error *mw_replaced_alloc(struct mw_track *track, struct mw_recent *recent,
							       const struct mw_block *block)
{
	struct mw_recent_call *own = &recent->allocations[recent->next_allocation++ % MW_RECENT];

	recent->tags = recent->tags << 8 | (uint8_t)block->stack;
	own->addr = block->addr;
	own->bytes = block->bytes;
	own->stack = block->stack;
	own->call = ++recent->calls;
	if (__builtin_expect(recent->own_free.stack != block->stack && !recent->has_frees, 1))
		return NULL;
	return mw_replaced_match(track, recent, own);
}

struct mw_error *mw_replaced_look_back(struct mw_track *track, struct mw_recent *recent,
				       const struct mw_block *block) MW_MUST_CHECK;
/* A block that was allocated in the window was freed. Errors: MEMORY. */
static inline MW_MUST_CHECK struct mw_error *mw_replaced_free(struct mw_track *track, struct mw_recent *recent,
							      const struct mw_block *block)
{
	const uint64_t each = UINT64_MAX / 0xff;
	uint64_t differ = recent->tags ^ (uint8_t)block->stack * each;
	uint64_t same = (differ - each) & ~differ & each << 7; /* lowest bit: that of the lowest byte that is 0 */
	uint32_t latest = recent->next_allocation - 1u - (uint32_t)__builtin_ctzll(same | UINT64_C(1) << 63) / 8;
	uint64_t other = recent->allocations[latest % MW_RECENT].addr ^ block->addr;

	recent->own_free.bytes = block->bytes;
	recent->own_free.stack = block->stack;
	recent->own_free.call = ++recent->calls;
	/* None of the latest allocations is the stack's, or none after this block itself. Each of the two alone would often be
	 * guessed wrong: one branch for both. */
	if (__builtin_expect((same < other ? same : other) == 0, 1))
		return NULL;
	return mw_replaced_look_back(track, recent, block);
}

struct mw_error *mw_replaced_look_for_new(struct mw_track *track, struct mw_recent *recent,
					  struct mw_recent_call *old) MW_MUST_CHECK;
struct mw_error *mw_replaced_count_gone(struct mw_track *track, uint32_t stack, uint64_t bytes) MW_MUST_CHECK;
/* A block from before the window was freed by a call with that stack; bytes: usable, or MW_SIZE_UNKNOWN. Errors: MEMORY. */
static inline MW_MUST_CHECK struct mw_error *mw_replaced_free_older(struct mw_track *track, struct mw_recent *recent,
								    uint32_t stack, uint64_t bytes)
{
	const struct mw_recent_call *latest = &recent->allocations[(recent->next_allocation - 1u) % MW_RECENT];
	struct mw_recent_call *old = &recent->frees[recent->next_free++ % MW_RECENT];

	recent->has_frees = true;
	old->bytes = bytes;
	old->stack = MW_STACK_NONE;
	old->call = ++recent->calls;
	if (stack != MW_STACK_NONE)
		MW_TRY(mw_replaced_count_gone(track, stack, bytes));
	if (__builtin_expect(!latest->call || old->call - latest->call > MW_NEAR, 1))
		return NULL;
	return mw_replaced_look_for_new(track, recent, old);
}

/* A block of `bytes` took the place of one of `old_bytes`; `older`: from before the window. Errors: MEMORY. */
struct mw_error *mw_replaced_take(struct mw_track *track, uint32_t stack, uint64_t bytes, uint64_t old_bytes,
				  bool older) MW_MUST_CHECK;

/* What glibc's malloc gives for `bytes`. */
static inline uint64_t mw_replaced_usable(uint64_t bytes)
{
	uint64_t usable = ((bytes + 8 + 15) & ~UINT64_C(15)) - 8;

	/* Large blocks are mappings of whole pages. */
	if (bytes >= (128u << 10))
		return ((bytes + 16 + 4095) & ~UINT64_C(4095)) - 16;
	return usable < 24 ? 24 : usable;
}

/*
 * Classes of sizes: one for each usable size up to 128, then eight to the power of two; 0: not known. All heap blocks that
 * are allocated and freed, older ones included, are counted by them.
 */
#define MW_SIZE_CLASSES (9u + 8u * 57u)

static inline uint32_t mw_size_class(uint64_t usable)
{
	/* Sizes of a program vary: a branch on them would often be guessed wrong. */
	uint64_t sixteenths = (usable - (usable - 1 < 128)) >> 4;
	uint32_t octave = 60 - (uint32_t)__builtin_clzll(sixteenths | 8);

	return usable == MW_SIZE_UNKNOWN ? 0 : 1 + octave * 8 + (uint32_t)(sixteenths >> octave);
}

enum mw_class_flow {
	MW_FLOW_BORN,
	MW_FLOW_GONE,
	MW_FLOW_OLDER, /* of those gone: from before the window */
	MW_FLOWS,
};

#define MW_SMALL_SIZES 64u

/*
 * Usable bytes (of unknown sizes: blocks). Summed up with every event; series are brought up to date when a moment is
 * over. Zero-initialise and restart; mw_class_flows_restart frees as well.
 *
 * Where the allocator does not tell the size of an older block that is freed, its page does: allocators of size classes
 * (jemalloc, tcmalloc, mimalloc) keep blocks of one class in a page, so what is allocated there later has about that size.
 * Until something is, the size is not known. Sizes that were seen in one page are alike to the allocator: flows of older
 * blocks of one can be those of the other.
 *
 * Others (glibc) put blocks of any size next to each other, and a few sizes may be unknown to them as well: of a block in
 * memory that is new since the engine looked at the mappings. Where one in four small blocks is too large or too small for
 * the class of the one before it in its page, pages say nothing, and no sizes are alike.
 */
struct mw_class_flows {
	uint64_t sums[MW_SIZE_CLASSES * MW_FLOWS]; /* by class, then enum mw_class_flow */
	struct mw_series series[MW_SIZE_CLASSES * MW_FLOWS];
	uint16_t known; /* up to which moment they are */
	struct {
		uint16_t first, usable;
	} small[MW_SMALL_SIZES]; /* by usable size / 16 + 1: its class's first sum */
	struct mw_map pages;     /* in which older blocks of unknown size were freed: see replaced.c */
	/* Small blocks that were allocated in these pages after others, and those that can't be of their class. */
	uint64_t seen_sizes, other_sizes;
	uint16_t alike
		[MW_SIZE_CLASSES]; /* a class that is alike, nearer to the one that stands for all; 0: this one does */
};

/* The sums of the class of blocks of which `bytes` were asked for. */
static inline uint64_t *mw_class_flows_of(struct mw_class_flows *flows, uint64_t bytes, uint64_t *usable)
{
	if (__builtin_expect(bytes <= 16 * (MW_SMALL_SIZES - 1) - 8, 1)) {
		uint64_t small = (bytes + 8 + 15) / 16;

		*usable = flows->small[small].usable;
		return &flows->sums[flows->small[small].first];
	}
	*usable = mw_replaced_usable(bytes);
	return &flows->sums[mw_size_class(*usable) * MW_FLOWS];
}

static inline void mw_class_flows_born(struct mw_class_flows *flows, uint64_t bytes)
{
	uint64_t usable, *sums = mw_class_flows_of(flows, bytes, &usable);

	sums[MW_FLOW_BORN] += usable;
}

static inline void mw_class_flows_gone(struct mw_class_flows *flows, uint64_t bytes, bool older)
{
	uint64_t usable, *sums = mw_class_flows_of(flows, bytes, &usable);

	sums[MW_FLOW_GONE] += usable;
	if (older)
		sums[MW_FLOW_OLDER] += usable;
}

/* A block that nobody saw being allocated; `usable` may be MW_SIZE_UNKNOWN. */
static inline void mw_class_flows_gone_older(struct mw_class_flows *flows, uint64_t usable)
{
	uint64_t *sums = &flows->sums[mw_size_class(usable) * MW_FLOWS];
	uint64_t amount = usable == MW_SIZE_UNKNOWN ? 1 : usable;

	sums[MW_FLOW_GONE] += amount;
	sums[MW_FLOW_OLDER] += amount;
}

/* The same, of unknown size; in its page the next block may tell it. Errors: MEMORY. */
struct mw_error *mw_class_flows_gone_unknown(struct mw_class_flows *flows, mw_addr addr) MW_MUST_CHECK;
/* Usable bytes of the latest block that was allocated in that page, or MW_SIZE_UNKNOWN. */
uint64_t mw_class_flows_page_size(const struct mw_class_flows *flows, mw_addr addr);
/* A block was allocated, while there are such pages. */
void mw_class_flows_see_page(struct mw_class_flows *flows, mw_addr addr, uint64_t bytes);
/* The class that stands for all that are like this one. */
uint32_t mw_class_flows_alike(const struct mw_class_flows *flows, uint32_t size_class);

void mw_class_flows_restart(struct mw_class_flows *flows);
/* The clock has advanced. Errors: MEMORY. */
struct mw_error *mw_class_flows_follow(struct mw_class_flows *flows, const struct mw_series_clock *clock) MW_MUST_CHECK;
/* Bytes behind the structure. */
uint64_t mw_class_flows_memory(const struct mw_class_flows *flows);

#endif
