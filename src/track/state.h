/* SPDX-License-Identifier: MIT */
/* state.h: what a tracker consists of, and accounting; for the files of this module only. */
#ifndef MW_TRACK_STATE_H
#define MW_TRACK_STATE_H

#include "base/map.h"
#include "track/block_table.h"
#include "track/range_tree.h"
#include "track/replaced.h"
#include "track/sampling.h"
#include "track/stack_table.h"

/* A name that a thread has or had; names handed out stay good, so the old ones are kept. */
struct mw_thread_name {
	struct mw_thread_name *older;
	char text[];
};

/* Calls that take something away, and may fail after that (struct mw_pending). */
enum mw_pending_family {
	MW_PENDING_REALLOC,
	MW_PENDING_UNMAP,
	MW_PENDING_REMAP,
	MW_PENDING_FAMILIES,
};

struct mw_thread_record {
	struct mw_amount impacting, transient;
	struct mw_thread_name *names; /* every name once, in no order */
	const char *name;             /* the present one */
	pid_t tid;
	uint32_t pending[MW_PENDING_FAMILIES]; /* its newest call of each that has not ended, or MW_POOL_NONE */
	struct mw_recent recent;
};

/* Numbers leave these bits free. They are set in that of a block which was allocated before the interval, … */
#define MW_THREAD_OLDER (UINT32_C(1) << 31)
/* … and of a heap block that was freed after the window (settle.c). */
#define MW_THREAD_SETTLED (UINT32_C(1) << 30)

struct mw_thread_table {
	struct mw_pool records;
	struct mw_map latest; /* tid to its latest number + 1 */
	uint64_t name_bytes;
};

static inline struct mw_thread_record *mw_thread_table_at(const struct mw_thread_table *table, uint32_t number)
{
	return MW_POOL_AT(&table->records, struct mw_thread_record, number);
}

enum mw_pending_holds {
	MW_PENDING_NOTHING, /* realloc(NULL, …) */
	MW_PENDING_BLOCK,   /* `block`, which was in the table */
	MW_PENDING_UNKNOWN, /* a heap block from before the window, of block.bytes or MW_SIZE_UNKNOWN */
	MW_PENDING_RANGES,  /* `ranges`, cut out of the tree */
	/* Since the window has ended: */
	MW_PENDING_SETTLING, /* nothing: what it is about, block.addr (and so many bytes), is where it was */
	MW_PENDING_SETTLED,  /* `ranges`, though it has ended */
};

/*
 * What a call that has begun and not ended holds, until it is known whether it succeeds; it still counts as live.
 * Each thread has a list of them a family, newest first: calls of a signal handler come before the call that it
 * interrupted.
 */
struct mw_pending {
	uint32_t next;     /* older call of the same thread and family, or MW_POOL_NONE */
	uint8_t holds;     /* enum mw_pending_holds */
	uint16_t interval; /* of `block` (sampling.h) */
	uint32_t stack;    /* of the BEGIN, or MW_STACK_NONE */
	uint32_t ranges;   /* their root, or MW_RANGE_NONE */
	uint64_t time_ns;
	struct mw_block block;
};

/* The owner of ranges that were mapped before the window. */
#define MW_VM_BEFORE (UINT32_MAX - 1)
/* In the owner of a range that was unmapped after the window. */
#define MW_VM_SETTLED (UINT32_C(1) << 31)

/* One MAP. Its bytes are those of its ranges: in the tree, or held by a pending call. */
struct mw_vm_block {
	uint64_t time_ns;
	uint64_t size; /* that was mapped */
	uint32_t stack;
	uint32_t thread;  /* with MW_THREAD_OLDER where it is so */
	uint32_t pieces;  /* ranges that it still has */
	uint32_t settled; /* of these, unmapped after the window */
	uint8_t kind;
	bool visited; /* by the walk under way (query.c) */
};

/*
 * Blocks that came to be by an event which was reported after later ones. Intervals are cut by the order of events, so
 * such a block lies where the latest event before it does, not where its own time would have it. There are few: engines
 * put events in order of time, and do not wait for ever.
 */
#define MW_LATE_MAX (1u << 20) /* more are not kept: their own times count then */

struct mw_late_item {
	uint64_t time_ns, since_ns;
	uint32_t thread;
};

struct mw_late {
	struct mw_late_item *items;
	size_t capacity;
	struct mw_index index; /* of the items */
};

/*
 * Where what is kept of blocks and stacks is larger than a processor's cache, events are taken many at a time: the heap blocks
 * that they are about are found (and put in and taken out), then what is known of them by then is counted in the same order.
 * So memory is fetched ahead for both, and both can be done at the same time (counter.h). A step is what is counted at once.
 */
enum mw_step_type {
	MW_STEP_ALLOC,      /* `block` came to be … */
	MW_STEP_REALLOC,    /* … as realloc's new one */
	MW_STEP_FREE,       /* `block` was freed */
	MW_STEP_END,        /* `block` went: realloc took it, or its free was missed */
	MW_STEP_FREE_OLDER, /* `block`, from before the window, was freed; its stack is the caller's */
	MW_STEP_END_OLDER,  /* realloc took such a block */
	MW_STEP_REPLACE,    /* realloc's new block, of `bytes`, took the place of `block` */
	MW_STEP_VM,         /* `event`, of mapped memory */
};

struct mw_step {
	struct mw_block block;
	union {
		uint64_t died_ns;
		uint64_t bytes;
		const struct mw_event *event; /* the caller's */
	};
	uint64_t now_ns; /* the event's time */
	uint32_t thread; /* the event's */
	uint32_t
		caller; /* the stack of a call that freed an older block, or MW_STACK_NONE; MW_STEP_REPLACE: realloc's */
	uint8_t type;   /* enum mw_step_type */
	bool older;     /* MW_STEP_REPLACE: `block` is from before the window */
};

#define MW_STEPS_EVENT 4U                     /* that an event takes at most */
#define MW_STEPS_MAX   (64U + MW_STEPS_EVENT) /* what is in them stays in the innermost cache */

struct mw_steps {
	uint32_t count;
	struct mw_step items[MW_STEPS_MAX];
};

#define MW_CACHE_LINE 64u

struct mw_counter;

struct mw_track {
	struct mw_block_table heap;
	struct mw_pool pending[MW_PENDING_FAMILIES];
	struct mw_stack_table stacks;
	struct mw_thread_table threads;
	struct mw_sampling *sampling; /* NULL: every block is recorded, as far as is known */
	struct mw_counter *counter;   /* NULL: there is none */
	struct mw_series_clock clock;
	uint64_t missed;
	bool settling; /* the window is over: figures stay as they are */
	bool alone;    /* there is to be no counter */
	/* From so many bytes that are kept events are taken in steps, and from so many events at a time with a counter. */
	size_t steps_from, counter_from;
	bool has_stackless
		[MW_KIND_COUNT]; /* there is a stack for what has none (mw_account_stack()): no other comes to be */
	void (*fate)(void *context, const struct mw_track_fate *fate); /* NULL: nobody watches */
	void *fate_context;
	void (*born)(void *context, const struct mw_track_fate *block); /* NULL: nobody watches births */
	void *born_context;
	struct mw_late late; /* blocks of late events, since somebody watches */

	/* What is written while steps are counted, apart from what is read and written while blocks are found. */
	char apart[MW_CACHE_LINE];
	uint64_t now_ns;             /* the latest time of all events until now */
	struct mw_range_tree ranges; /* owners are numbers in vm_blocks, or MW_VM_BEFORE */
	struct mw_pool vm_blocks;
	struct mw_pool replaced; /* struct mw_replaced */
	struct mw_tally totals[MW_KIND_COUNT];
	struct mw_class_flows flows;
};

/* Tell who watches. Whoever fills in a fate first asks whether anybody does. */
static inline bool mw_track_is_watched(const struct mw_track *track)
{
	return __builtin_expect(track->fate != NULL, 0);
}

/* mw_track_fate.since_ns of a block; `thread` may have MW_THREAD_OLDER. */
uint64_t mw_track_since(const struct mw_track *track, uint64_t born_ns, uint32_t thread);
/* Tell who watches what went. `thread` has MW_THREAD_OLDER where it is so; since_ns, until_ns, block and older are
 * filled in. */
void mw_track_tell(const struct mw_track *track, struct mw_track_fate fate);
/* The same, of a heap block, and of how many others it stands for. */
void mw_track_tell_end(const struct mw_track *track, const struct mw_block *block, uint64_t died_ns,
		       struct mw_weight weight);
/* Tell who watches births of a heap block, or a mapping, and of how many others it stands for. */
void mw_track_tell_birth(const struct mw_track *track, const struct mw_block *block, enum mw_kind kind,
			 struct mw_weight weight);

/* Of two failures one is reported. */
static inline struct mw_error *mw_track_first_error(struct mw_error *first, struct mw_error *second)
{
	if (__builtin_expect(!first, 1))
		return second;
	mw_error_destroy(second);
	return first;
}

/* --- calls under way ------------------------------------------------------------------------------------- */

/* Begin a call of the event's thread; gives what it holds, to be filled in. */
static inline MW_MUST_CHECK struct mw_error *mw_pending_push(struct mw_track *track, const struct mw_event *event,
							     enum mw_pending_family family, struct mw_pending **out)
{
	struct mw_thread_record *thread = mw_thread_table_at(&track->threads, event->thread);
	struct mw_pending *pending;
	uint32_t id;

	MW_TRY(mw_pool_reserve(&track->pending[family], 1));
	id = mw_pool_take(&track->pending[family]);
	pending = mw_pool_at(&track->pending[family], id);
	pending->next = thread->pending[family];
	pending->holds = MW_PENDING_NOTHING;
	pending->interval = 0;
	pending->stack = event->stack;
	pending->ranges = MW_RANGE_NONE;
	pending->time_ns = event->time_ns;
	thread->pending[family] = id;
	*out = pending;
	return NULL;
}

/* NULL for MW_POOL_NONE. */
static inline struct mw_pending *mw_pending_at(const struct mw_track *track, enum mw_pending_family family, uint32_t id)
{
	return id == MW_POOL_NONE ? NULL : mw_pool_at(&track->pending[family], id);
}

/* The newest call of this family that the thread has open, or NULL. */
static inline struct mw_pending *mw_pending_find(const struct mw_track *track, uint32_t thread,
						 enum mw_pending_family family)
{
	return mw_pending_at(track, family, mw_thread_table_at(&track->threads, thread)->pending[family]);
}

/* Forget what mw_pending_find() found. */
static inline void mw_pending_drop(struct mw_track *track, uint32_t thread, enum mw_pending_family family)
{
	uint32_t *link = &mw_thread_table_at(&track->threads, thread)->pending[family];
	uint32_t id = *link;

	*link = mw_pending_at(track, family, id)->next;
	mw_pool_give(&track->pending[family], id);
}

/*
 * --- accounting: what happened to a block goes on the accounts of its kind, its stack and its thread, all three at
 * once, so that sums over stacks and threads equal the totals at every moment.
 */

/* Whose a block is. */
struct mw_account {
	enum mw_kind kind;
	uint32_t stack;
	uint32_t thread; /* with MW_THREAD_OLDER where the block was allocated before the interval */
};

/* The stack to attribute to: `stack` itself, or for MW_STACK_NONE the kind's stack without frames. */
static inline MW_MUST_CHECK struct mw_error *mw_account_stack(struct mw_track *track, enum mw_kind kind, uint32_t stack,
							      uint32_t *out)
{
	if (__builtin_expect(stack == MW_STACK_NONE, 0)) {
		struct mw_raw_stack none = {NULL, 0, MW_STACK_BROKEN, UINT32_MAX, kind};
		uint32_t id; /* what others write to has to lie in memory */

		MW_TRY(mw_stack_table_intern(&track->stacks, &none, &id));
		if (!track->has_stackless[kind])
			track->has_stackless[kind] = true;
		stack = id;
	}
	*out = stack;
	return NULL;
}

/* A block came to be. Where memory for its series is wanting all else is counted; so it is with the next two. */
static inline MW_MUST_CHECK struct mw_error *mw_account_add(struct mw_track *track, const struct mw_account *account,
							    uint64_t bytes, uint64_t time_ns)
{
	struct mw_tally *total = &track->totals[account->kind];
	struct mw_tally *stack = &mw_stack_table_at(&track->stacks, account->stack)->tally;
	struct mw_error *err = mw_tally_follow(stack, &track->clock);

	mw_tally_add(total, bytes, time_ns);
	mw_tally_add(stack, bytes, time_ns);
	if (account->kind != MW_KIND_VM_INTERNAL) {
		struct mw_thread_record *thread = mw_thread_table_at(&track->threads, account->thread);

		thread->impacting.count++;
		thread->impacting.bytes += bytes;
	}
	return err;
}

static inline bool mw_account_is_older(const struct mw_account *account)
{
	return __builtin_expect((account->thread & MW_THREAD_OLDER) != 0, 0);
}

/* Part of a block went, the last of it where `count` is 1. */
static inline MW_MUST_CHECK struct mw_error *
mw_account_release(struct mw_track *track, const struct mw_account *account, uint64_t count, uint64_t bytes)
{
	struct mw_tally *total = &track->totals[account->kind];
	struct mw_tally *stack = &mw_stack_table_at(&track->stacks, account->stack)->tally;
	struct mw_error *err;

	if (mw_account_is_older(account)) {
		mw_amount_release(&total->aofo, &total->aofi, count, bytes);
		mw_amount_release(&stack->aofo, &stack->aofi, count, bytes);
		return NULL;
	}
	err = mw_tally_follow(stack, &track->clock);
	mw_amount_release(&total->impacting, &total->transient, count, bytes);
	mw_amount_release(&stack->impacting, &stack->transient, count, bytes);
	if (account->kind != MW_KIND_VM_INTERNAL) {
		struct mw_thread_record *thread = mw_thread_table_at(&track->threads, account->thread);

		mw_amount_release(&thread->impacting, &thread->transient, count, bytes);
	}
	return err;
}

/* A block, or what was left of it, went. */
static inline MW_MUST_CHECK struct mw_error *mw_account_end(struct mw_track *track, const struct mw_account *account,
							    uint64_t bytes, uint64_t born_ns, uint64_t died_ns)
{
	struct mw_stack_record *stack = mw_stack_table_at(&track->stacks, account->stack);
	struct mw_error *err = mw_account_release(track, account, 1, bytes);

	if (mw_account_is_older(account))
		return err;
	return mw_track_first_error(err,
				    mw_histogram_add(&stack->lifetimes, died_ns > born_ns ? died_ns - born_ns : 0, 1));
}

/* Something from before the window went; `bytes` may be MW_SIZE_UNKNOWN, `stack` MW_STACK_NONE. */
static inline MW_MUST_CHECK struct mw_error *mw_account_aofi(struct mw_track *track, enum mw_kind kind, uint32_t stack,
							     uint64_t bytes)
{
	MW_TRY(mw_account_stack(track, kind, stack, &stack));
	mw_tally_aofi(&track->totals[kind], bytes);
	mw_tally_aofi(&mw_stack_table_at(&track->stacks, stack)->tally, bytes);
	return NULL;
}

/* --- events of the heap (heap.c), whose threads and stacks have been checked ----------------------------------- */

/* Find the event's block and count it. Errors: MEMORY. */
struct mw_error *mw_heap_event(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
/* The first half, of any event: add what is to be counted to `steps`, which has room for it. Errors: MEMORY. */
struct mw_error *mw_steps_find(struct mw_track *track, const struct mw_event *event,
			       struct mw_steps *steps) MW_MUST_CHECK;
/* The second half. Where memory for series is wanting all else is counted. */
struct mw_error *mw_steps_count(struct mw_track *track, const struct mw_steps *steps) MW_MUST_CHECK;

/* --- mapped memory, blocks of which may go in parts (vm.c) ----------------------------------------------------- */

void mw_vm_init(struct mw_track *track);
/* An event of mapped memory, whose thread and stack have been checked. */
struct mw_error *mw_vm_event(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;

/* --- after the window (settle.c) ------------------------------------------------------------------------------ */

/* An event whose thread and stack have been checked. */
struct mw_error *mw_settle_event(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;

#endif
