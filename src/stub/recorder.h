/* SPDX-License-Identifier: MIT */
/*
 * recorder.h: what the parts of the recorder share. All of it runs inside the target, at any place where the program
 * may allocate, signal handlers included: no libc, no system call, no data of its own, no lock, few hundred bytes of
 * stack.
 *
 *   record.c   enter and leave: what a call is, and whether it counts
 *   heap.c     what heap functions do, told as records; blocks that are known
 *   vm.c       what functions for mappings do
 *   visit.c    a thread comes into the recorder and goes: its slot and ring, the records in that, which memory of its
 *              stack may be read, and what a signal may have left behind
 *   nest.c     calls of hooked functions inside each other
 *   sample.c   which blocks are recorded, where not all are
 *   script.c   the frames of an interpreter
 *   stack.c    walking the stack by rows (frame.h): the stack of a call as an id
 *
 * A signal may strike between any two instructions, and its handler may come here too, or jump away and never come
 * back.
 */
#ifndef MW_STUB_RECORDER_H
#define MW_STUB_RECORDER_H

#include "stub/stub.h"

#include <stdbool.h>
#include <stddef.h>
#include <stub_cpu.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define STUB_RARE   __attribute__((noinline))
/*
 * All that it calls is part of it, but for what is STUB_RARE. A processor predicts where so many returns lead (32 on
 * Zen 5) and no more, and a call takes a place for as long as it has not retired, returned or not: what is called here
 * is missing to the program when it returns.
 */
#define STUB_FLAT __attribute__((flatten))
/* The image is one translation unit, and what is used in one place there is part of it; tests link the parts. */
#ifdef MW_STUB_IMAGE
#define STUB_API static
#else
#define STUB_API
#endif

/* Registers as they were when the trampoline was entered, the stack pointer's place unused. */
struct mw_stub_saved {
	uint64_t gpr[16]; /* in DWARF order */
	uint64_t flags, unused;
};

/* What the assembly does next: on to the original, or a call of it. */
#define MW_STUB_PASS 0u
#define MW_STUB_WRAP 1u

STUB_API unsigned mw_stub_enter(struct mw_stub_saved *saved, struct mw_stub_call *call);
STUB_API void mw_stub_leave(struct mw_stub_call *call, uint64_t result);
#ifdef MW_STUB_IMAGE
/* From the assembly, with them inside: instead of returning they go on there. */
void mw_stub_entering(struct mw_stub_saved *saved, struct mw_stub_call *call);
void mw_stub_leaving(struct mw_stub_call *call, uint64_t result);
#endif
/* From the C++ runtime, as _Unwind_Personality_Fn of the Itanium C++ ABI has it. */
int mw_stub_unwound(int version, int actions, uint64_t class, void *exception, void *context);

/* In the image, read-only where the recorder runs. Hidden: they are reached relative to the code, by no table. */
extern struct mw_stub_context mw_stub_context __attribute__((visibility("hidden")));
extern const char mw_stub_returned[] __attribute__((visibility("hidden"))); /* where wrapped functions return to */

#define STUB_PAGE      4096u
#define STUB_LINK_SIZE (MW_STUB_CALL_SIZE + 8) /* a call and the return address above it */

typedef uint64_t __attribute__((may_alias)) stub_word;

/* A thread in enter or leave. */
struct stub_visit {
	struct mw_ring_control *control;
	struct mw_ring_slot *slot;
	const struct mw_stub_saved *saved; /* NULL in leave */
	struct mw_stub_call *call;
	const struct mw_stub_hook *hook;
	uint64_t ret;  /* the call's return address */
	uint64_t high; /* the stack may be read from `call` to here; 0: it may not */
	/* As they were, for when the visit that this one interrupted goes on. */
	uint64_t pending, pending_sp;
	uint32_t inside;
	bool unreserved; /* it had said what is pending, and not reserved it yet */
	bool stays;      /* the call will come back: it stays counted in slot->open */
};

static inline const struct mw_stub_context *stub_context(void)
{
	return &mw_stub_context;
}

static inline uint32_t stub_guard(void)
{
	return __atomic_load_n((const uint32_t *)(uintptr_t)stub_context()->guard, __ATOMIC_RELAXED);
}

static inline bool stub_on(void)
{
	return (stub_guard() & 3) == MW_STUB_GUARD_ON;
}

static inline bool stub_samples(void)
{
	return unlikely(stub_guard() > MW_STUB_GUARD_ENDING);
}

static inline struct mw_ring_control *stub_control(void)
{
	return (struct mw_ring_control *)(uintptr_t)stub_context()->shared;
}

/* Never NULL: the shared memory does not begin there. */
static inline __attribute__((returns_nonnull)) void *stub_at(struct mw_ring_control *control, uint64_t offset)
{
	return (uint8_t *)control + offset;
}

static inline uint64_t stub_read(uint64_t addr)
{
	return *(const stub_word *)(uintptr_t)addr;
}

static inline bool stub_in_ranges(const struct mw_stub_range *ranges, uint64_t count, uint64_t ret)
{
	for (uint64_t i = 0; i < count && i < MW_STUB_RANGES; i++)
		if (ret > ranges[i].start && ret <= ranges[i].end)
			return true;
	return false;
}

static inline bool stub_is_heap(const struct mw_stub_hook *hook)
{
	return hook->flags & MW_STUB_IS_HEAP;
}

/* visit.c */
/* False where the thread can't have a slot or ring: nothing can be recorded, and that has been counted. */
STUB_API bool stub_visit_begin(struct stub_visit *visit);
/* For leave: the slot is the one that was found at entry. False where another thread has come back from the call, which
 * can't be recorded, and that has been counted. */
STUB_API bool stub_visit_resume(struct stub_visit *visit, struct mw_ring_slot *slot);
/* The call comes back, and that is all that is noted of it. */
STUB_API void stub_visit_count_out(struct mw_ring_slot *slot);
STUB_API void stub_visit_end(struct stub_visit *visit);

/* `*fresh`: the thread is new to it. NULL: there is none to be had. */
STUB_API struct mw_ring_slot *stub_slot_find(const struct stub_visit *visit, bool *fresh);
/* The thread's own, if it has one: NULL where it has not. */
STUB_API struct mw_ring_slot *stub_slot_known(struct mw_ring_control *control);

/* nest.c: is the call made by another hooked function's? */
enum stub_inside { STUB_OUTSIDE, STUB_INSIDE_VM, STUB_INSIDE_HEAP, STUB_INSIDE_FREE };
STUB_API enum stub_inside stub_nest(struct stub_visit *visit);
/* Is one of the first frames code that allocates exceptions? */
STUB_API bool stub_allocates_exception(struct stub_visit *visit);
/* Is the call made by a function on the fast path, whose block was not sampled, so that it left no trace? */
STUB_API bool stub_in_leaf(struct stub_visit *visit);

/* visit.c: a moment passes, of a wait that has begun at `start` (cpu_ticks). False: not to be waited any longer. */
STUB_API bool stub_wait_on(struct mw_ring_control *control, uint64_t start);

/* Room for so many units, in order of the ring: the first one's number. False: none in time, counted as a lost event.
 */
STUB_API bool stub_reserve(struct stub_visit *visit, uint32_t units, uint64_t *number);
STUB_API struct mw_ring_record *stub_unit(const struct stub_visit *visit, uint64_t number);
/* A reserved record counts from here on. `done`: nothing else of the reservation is to be marked. */
STUB_API void stub_mark(struct stub_visit *visit, uint64_t number, uint32_t stack, uint32_t type, uint32_t flags,
			bool done);
/* Give up a reservation. */
STUB_API void stub_void(struct stub_visit *visit, uint64_t number, uint32_t units);
/* A record of one unit, of the visit's call. */
STUB_API bool stub_emit(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack);
/* … of what has been done already: its time is not before what was read until now. */
STUB_API bool stub_emit_after(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack);

/* sample.c: is a block of that size to be recorded? *label is what its record's size has then. `taken`: the countdown
 * was taken from already, and came to its end. */
STUB_API bool stub_sample(struct stub_visit *visit, uint64_t size, bool taken, uint64_t *label);
/* The calling thread's next blocks are not. */
STUB_API void stub_sample_no_more(struct mw_ring_control *control);
/* May the block be one that was? */
STUB_API bool stub_sampled(struct mw_ring_control *control, uint64_t block);
STUB_API void stub_sampled_add(struct mw_ring_control *control, uint64_t block);
/* It goes: may it have been one? */
STUB_API bool stub_sampled_take(struct mw_ring_control *control, uint64_t block);

/* visit.c: have memwatch look where an interpreter's frames may be read; `addr` is wanted. */
STUB_API void stub_ask_script(struct stub_visit *visit, uint64_t addr);
/* … have it read what functions of JavaScript are called: so many words of frames. */
STUB_API void stub_ask_javascript(struct stub_visit *visit, uint32_t count);
/* … have it learn the row of a return address. */
STUB_API void stub_ask_row(struct stub_visit *visit, uint64_t pc);
/* script.c: the frames of the interpreter that the thread runs, into room for control->script.frames of them: how many, and
 * MW_RING_SCRIPT_CUT. `*hash`: of what they are; 0: there are none. */
STUB_API uint32_t stub_script(struct stub_visit *visit, struct mw_script_ref *refs, uint64_t *hash);
/* Memory is going: no frames are read there any more. */
STUB_API void stub_script_forget(struct mw_ring_control *control, uint64_t start, uint64_t end);
/* … in the scratch of the thread's ring: have memwatch read their code objects, where it has not, as they may be gone soon. */
STUB_API void stub_script_learn(struct stub_visit *visit, const struct mw_script_ref *refs, uint32_t count);

/* Where an interpreter's memory is read. */
#define STUB_NEAR 4u /* 2^n */
struct stub_reader {
	struct stub_visit *visit;
	struct mw_ring_region near[STUB_NEAR]; /* ranges that something was read in lately */
	uint32_t next;                         /* … of which another takes the place */
	bool asked;
};

/* script.c: the function of JavaScript that the frame with that frame pointer is of, all of which can be read. `made`: by
 * what V8 has made as it runs, else by its interpreter. False: it is of none. */
STUB_API bool stub_javascript(struct stub_reader *reader, uint64_t fp, bool made, struct mw_javascript *out);
/* … have memwatch read what they are called, of those among `count` words of frames in the scratch of the thread's ring, where
 * it has not. */
STUB_API void stub_javascript_learn(struct stub_visit *visit, const uint64_t *frames, uint32_t count);

/* stack.c: the id of the call's stack, or MW_RING_STACK_NONE. `flags`: of the record. */
STUB_API uint32_t stub_stack(struct stub_visit *visit, uint32_t flags);

/* visit.c */
/* Up to where the stack that `sp` is in may be read, memwatch asked where need be; 0: it may not be. */
STUB_API uint64_t stub_region(struct stub_visit *visit, uint64_t sp);
/* The same, nobody asked. */
STUB_API uint64_t stub_region_known(const struct mw_ring_slot *slot, uint64_t sp);
/* Is all of it up to there the thread's? */
STUB_API bool stub_region_own(const struct mw_ring_slot *slot, uint64_t sp);
/* Do two addresses lie in one region? */
STUB_API bool stub_region_same(const struct mw_ring_slot *slot, uint64_t a, uint64_t b);
/* Memory is going: no stack is read there any more. */
STUB_API void stub_region_forget(struct mw_ring_slot *slot, uint64_t start, uint64_t end);
/* … all but the thread's own stack that it is on at `sp`: that stays as long as it runs. */
STUB_API void stub_region_forget_others(struct mw_ring_slot *slot, uint64_t sp);
/* The thread is another one, on the stack of one that has ended. */
STUB_API void stub_region_inherit(struct mw_ring_slot *slot, uint64_t sp, uint64_t tp, uint64_t tp_end);

/* rows.c: the row of the code that returns to `pc`. */
STUB_API uint64_t stub_row_find(struct mw_ring_control *control, uint64_t pc);
/* The code that holds `at`, or NULL. */
STUB_API const struct mw_ring_code *stub_code_find(struct mw_ring_control *control, uint64_t at);

/* Where rows are looked for, as it is now. */
struct stub_rows {
	struct mw_ring_control *control;
	const struct mw_ring_cached_row *cache;
	uint64_t mask, generation; /* generation << 48 */
};

static inline struct stub_rows stub_rows(struct mw_ring_control *control)
{
	const struct mw_ring_cached_row *cache = stub_at(control, control->cache);

	/* Not to be added up for each row. */
	__asm__("" : "+r"(cache));
	return (struct stub_rows){.control = control,
				  .cache = cache,
				  .mask = control->cache_count - 1,
				  .generation = (uint64_t)control->generation << 48};
}

/* False: it is not in the cache. */
static inline bool stub_row_cached(const struct stub_rows *rows, uint64_t pc, uint64_t *row)
{
	const struct mw_ring_cached_row *entry = &rows->cache[(pc ^ pc >> 16) & rows->mask];
	uint64_t tag = __atomic_load_n(&entry->tag, __ATOMIC_RELAXED);

	*row = __atomic_load_n(&entry->row, __ATOMIC_RELAXED);
	return likely((tag ^ *row) == (pc ^ rows->generation));
}

static inline uint64_t stub_row(struct mw_ring_control *control, uint64_t pc)
{
	struct stub_rows rows = stub_rows(control);
	uint64_t row;

	return stub_row_cached(&rows, pc, &row) ? row : stub_row_find(control, pc);
}

/* heap.c and vm.c: a call that counts begins. What the assembly does next. */
STUB_API unsigned stub_heap_enter(struct stub_visit *visit, enum stub_inside inside);
STUB_API unsigned stub_vm_enter(struct stub_visit *visit, enum stub_inside inside);
/* It comes back with that. */
STUB_API void stub_heap_leave(struct stub_visit *visit, uint64_t result);
STUB_API void stub_vm_leave(struct stub_visit *visit, uint64_t result);

/* vm.c: memory that goes by the call, before it is asked whether that counts. */
STUB_API void stub_vm_forget(struct stub_visit *visit);
/* Does an mmap take the place of what is mapped there? */
STUB_API bool stub_vm_is_fixed(const struct stub_visit *visit);

/* heap.c: blocks that were allocated in the window. */
STUB_API void stub_known_add(struct mw_ring_control *control, uint64_t block);
/* Take a block out: was it there? */
STUB_API bool stub_known_take(struct mw_ring_control *control, uint64_t block);
/* Is a sampled one there? `take`: take it out. */
STUB_API bool stub_known_has_sampled(struct mw_ring_control *control, uint64_t block, bool take);

/* What glibc's header says is usable of a block, or UINT64_MAX. */
STUB_API uint64_t stub_chunk_usable(uint64_t block);

/* A call will not return: what it had begun has failed. */
STUB_API void stub_cancel(struct stub_visit *visit, struct mw_stub_call *call);

static inline uint64_t stub_argument(const struct stub_visit *visit, unsigned index)
{
	return cpu_argument(visit->saved->gpr, index);
}

#endif
