/* SPDX-License-Identifier: MIT */
/*
 * event.h: what an engine says happened in a target, and to whom it says it.
 *
 * Every engine turns its hits into these events and hands them to one sink a process. The order
 * of the calls is the order of the events: a free comes before the allocator may hand the
 * address out again, an allocation after its address is known. So a call that gives back and
 * hands out (realloc, mremap) or that may fail after it was announced (munmap) is a BEGIN event
 * at its entry and an END or FAIL event at its return, and other threads' events may lie between.
 */
#ifndef MEMWATCH_EVENT_H
#define MEMWATCH_EVENT_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <stddef.h>
#include <sys/types.h>

enum mw_event_type {
	/* A heap block [addr] of `size` bytes asked for came to be. */
	MW_EVENT_ALLOC,
	/* The heap block at `addr` is given back. `size` is what the allocator's own header says
	 * (usable bytes) or MW_SIZE_UNKNOWN. Size and stack matter only for a block from before the window: they
	 * may be given always, so that whoever has them need not ask whether the sink knows the block. */
	MW_EVENT_FREE,
	/* realloc of `addr` began: the block leaves the table but is kept aside for the thread. Size and stack are
	 * as FREE's, but that the stack also serves an END that has none. */
	MW_EVENT_REALLOC_BEGIN,
	/* … ended: the old block is dead (since its BEGIN), a new one is at `addr` with `size`; with `unsampled` set there is
	 * one, but nothing is known of it: it was not sampled. */
	MW_EVENT_REALLOC_END,
	/* … failed: the old block lives on as if nothing had happened. */
	MW_EVENT_REALLOC_FAIL,
	/* Memory [addr, addr+size) was mapped; what was mapped there before is gone (MAP_FIXED). */
	MW_EVENT_MAP,
	/* munmap of [addr, addr+size) began; END or FAIL follows. */
	MW_EVENT_UNMAP_BEGIN,
	MW_EVENT_UNMAP_END,
	MW_EVENT_UNMAP_FAIL,
	/* mremap of [addr, addr+size) began; END carries the new address and size. */
	MW_EVENT_REMAP_BEGIN,
	MW_EVENT_REMAP_END,
	MW_EVENT_REMAP_FAIL,
};

_Static_assert(MW_EVENT_REALLOC_BEGIN + 2 == MW_EVENT_REALLOC_FAIL && MW_EVENT_UNMAP_BEGIN + 2 == MW_EVENT_UNMAP_FAIL &&
		       MW_EVENT_REMAP_BEGIN + 2 == MW_EVENT_REMAP_FAIL,
	       "BEGIN, END, FAIL");

/* The FAIL of a BEGIN. */
static inline enum mw_event_type mw_event_fail(enum mw_event_type begin)
{
	return begin + 2;
}

/*
 * One event. `stack` is what the sink's stack() returned, or MW_STACK_NONE where the event needs
 * none (a free of a block the sink knows, a FAIL). `thread` is what the sink's thread() returned.
 * BEGIN and its END or FAIL carry the same thread; a thread has at most one BEGIN open of each
 * family, except in a signal handler, whose BEGINs and ENDs nest: match the newest.
 */
struct mw_event {
	uint64_t time_ns; /* since the window's start */
	mw_addr addr;
	uint64_t size;
	uint32_t stack;
	uint32_t thread;
	enum mw_event_type type : 8;
	enum mw_kind kind : 8; /* HEAP; VM or VM_INTERNAL for the mapping events */
	/* Of ALLOC and REALLOC_END: the number of the sampling interval that held for the block, as the sink's interval()
	 * gives it. 0: every block is reported. Blocks of one size need not all have the same. */
	uint16_t interval;
	bool unsampled; /* of REALLOC_END: the new block was not sampled */
};

_Static_assert(sizeof(struct mw_event) == 40, "events are many");

#define MW_STACK_NONE UINT32_MAX

#define MW_INTERVAL_MAX 1024U /* different sampling intervals of a process */

/* A frame as it was captured. `module` indexes the process's module table and is never reused. */
struct mw_raw_frame {
	mw_addr addr;    /* the return address in the target */
	uint32_t module; /* or MW_MODULE_NONE: code in no file */
};

#define MW_MODULE_NONE UINT32_MAX

/* In the address of a frame of no module: the code is near the address that is left without it. A JIT makes code
 * without end, and who interns stacks does not keep every address of it (src/track/stack_table.h). */
#define MW_FRAME_NEAR (UINT64_C(1) << 63)

/* Why a stack ends before the thread's start. */
enum mw_stack_cut {
	MW_STACK_COMPLETE,  /* it does not: the outermost frame is the thread's start */
	MW_STACK_TRUNCATED, /* the wanted depth was reached */
	MW_STACK_BROKEN,    /* no unwind information, or invalid, from there on */
};

struct mw_raw_stack {
	const struct mw_raw_frame *frames; /* [0] is the caller of the allocator; valid during the call */
	uint32_t count;
	enum mw_stack_cut cut;
	uint32_t hook;     /* the entry point that was called: index of the process's hook table */
	enum mw_kind kind; /* one stack id is of one kind and one entry point */
};

/*
 * Who takes the events of one process. All calls come from the engine's thread. None may block,
 * and none may touch the target. A failure of the sink (out of memory) ends the window.
 */
struct mw_event_sink {
	void *context;
	/* Intern a stack; the same stack, hook and kind give the same id, small and dense. */
	struct mw_error *(*stack)(void *context, const struct mw_raw_stack *stack, uint32_t *id);
	/* Name a thread; called when a thread is first seen and again with its name when it ends or
	 * when its name was read anew. Gives the thread's number, small and dense. A tid that ended
	 * and comes again is a new thread: `fresh` is true then and at first sight. */
	struct mw_error *(*thread)(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number);
	/* Take an event. */
	struct mw_error *(*event)(void *context, const struct mw_event *event);
	/* Take `count` events in order: the same as as many calls of event(), but quicker. NULL: there is only event().
	 * Where one fails those before it have been taken, those after it not. No other of these functions sees what
	 * is still in the caller's hands: whoever asks knows() hands over what it has first. */
	struct mw_error *(*events)(void *context, const struct mw_event *events, size_t count);
	/* Is a heap block at `addr` in the table? (Engines for which it is dear to read a stack or the allocator's
	 * header ask before they do so for a free.) */
	bool (*knows)(void *context, mw_addr addr);
	/* Call `visit` for each heap block in the table, in no order. */
	void (*blocks)(void *context, void (*visit)(void *visitor, mw_addr addr), void *visitor);
	/* Give the number of a sampling interval: a block of `size` bytes is reported with the probability
	 * 1 - exp(-max(size, 1) / bytes), whatever became of others. The same bytes give the same number, small and dense;
	 * 0 bytes, every block is reported, are number 0, which need not be asked for. At most MW_INTERVAL_MAX different
	 * ones, so whoever adapts the interval takes powers of a root of two or so. Frees are reported of all blocks that
	 * were reported; mappings are never sampled. */
	struct mw_error *(*interval)(void *context, uint64_t bytes, uint16_t *number);
};

#endif
