// SPDX-License-Identifier: MIT
/* record.c: enter and leave: what a call is, and whether it counts (recorder.h). */
#include "stub/recorder.h"

#include <stub_layout.h>

_Static_assert(STUB_CALL_SIZE == MW_STUB_CALL_SIZE, "");
_Static_assert(STUB_CALL_HOOK == offsetof(struct mw_stub_call, hook), "");
_Static_assert(STUB_CALL_ORIGINAL == offsetof(struct mw_stub_call, original), "");
_Static_assert(STUB_CALL_PREV == offsetof(struct mw_stub_call, prev), "");
_Static_assert(STUB_CALL_COOKIE == offsetof(struct mw_stub_call, cookie), "");
_Static_assert(STUB_CALL_SLOT == offsetof(struct mw_stub_call, slot), "");
_Static_assert(STUB_CALL_FLAGS == offsetof(struct mw_stub_call, flags), "");
_Static_assert(STUB_TAKEN == MW_STUB_TAKEN, "");
_Static_assert(STUB_GUARD_SAMPLING == MW_STUB_GUARD_SAMPLING, "");
_Static_assert(STUB_FILTER_MASK == MW_RING_FILTER - 1 && STUB_FILTER_PIECE == MW_RING_FILTER_PIECE, "");
_Static_assert(sizeof(struct mw_ring_slot) == 1u << STUB_SLOT_SHIFT, "");
_Static_assert(STUB_SILENT_FREE == (MW_STUB_FREE | MW_STUB_SILENT), "");
_Static_assert(STUB_SLOT_OWNER == offsetof(struct mw_ring_slot, owner), "");
_Static_assert(STUB_SLOT_COUNTDOWN == offsetof(struct mw_ring_slot, countdown), "");
_Static_assert(STUB_SLOT_TOP == offsetof(struct mw_ring_slot, top), "");
_Static_assert(STUB_SLOT_OPEN == offsetof(struct mw_ring_slot, open), "");
_Static_assert(STUB_SAVED_SIZE == sizeof(struct mw_stub_saved), "");
_Static_assert(STUB_SAVED_FLAGS == offsetof(struct mw_stub_saved, flags), "");
_Static_assert(STUB_CONTEXT_SIZE == sizeof(struct mw_stub_context), "");
_Static_assert(STUB_CONTEXT_GUARD == offsetof(struct mw_stub_context, guard), "");
_Static_assert(STUB_CONTEXT_SHARED == offsetof(struct mw_stub_context, shared), "");
_Static_assert(STUB_CONTEXT_COOKIE == offsetof(struct mw_stub_context, cookie), "");
_Static_assert(STUB_CONTEXT_RDFSBASE == offsetof(struct mw_stub_context, rdfsbase), "");
_Static_assert(STUB_CONTEXT_SLOTS == offsetof(struct mw_stub_context, slots), "");
_Static_assert(STUB_CONTEXT_FILTER == offsetof(struct mw_stub_context, filter), "");
_Static_assert(STUB_CONTEXT_SLOT_MASK == offsetof(struct mw_stub_context, slot_mask), "");
_Static_assert(STUB_CONTEXT_HOOK_COUNT == offsetof(struct mw_stub_context, hook_count), "");
_Static_assert(STUB_CONTEXT_HOOKS == offsetof(struct mw_stub_context, hooks), "");
_Static_assert(STUB_HOOK_SIZE == sizeof(struct mw_stub_hook), "");
_Static_assert(STUB_HOOK_ORIGINAL == offsetof(struct mw_stub_hook, original), "");
_Static_assert(STUB_CONTROL_RECORDING == offsetof(struct mw_ring_control, recording), "");
_Static_assert((uint64_t)STUB_MAGIC_HIGH << 32 == (MW_STUB_MAGIC & ~(uint64_t)UINT32_MAX), "");
_Static_assert(STUB_LAYOUT == MW_STUB_LAYOUT, "");
_Static_assert(STUB_MAGIC_LOW == (uint32_t)MW_STUB_MAGIC, "");

/* A forked child: its guard was wiped, the memory that its parent records in is still there. It says so once. */
static STUB_RARE void announce(void)
{
	const struct mw_stub_context *context = stub_context();
	struct mw_ring_control *control = stub_control();
	uint32_t none = 0, n;
	uint64_t tp;

	if (!__atomic_compare_exchange_n((uint32_t *)(uintptr_t)context->guard, &none, MW_STUB_GUARD_CHILD, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	tp = cpu_thread_pointer(context->rdfsbase);
	n = __atomic_fetch_add(&control->child_count, 1, __ATOMIC_ACQ_REL);
	if (n < MW_RING_CHILDREN)
		__atomic_store_n(&control->children[n], *(const uint32_t *)(uintptr_t)(tp + context->tid_offset),
				 __ATOMIC_RELEASE);
}

/* Modules have come or are about to go: memwatch looks before anything goes on. */
static STUB_RARE void loader_changed(void)
{
	struct mw_ring_control *control = stub_control();
	uint32_t number = __atomic_add_fetch(&control->loader_changes, 1, __ATOMIC_ACQ_REL);
	uint64_t start = cpu_ticks();

	while ((int32_t)(__atomic_load_n(&control->loader_served, __ATOMIC_ACQUIRE) - number) < 0)
		if (!stub_wait_on(control, start))
			break;
}

/*
 * The process is about to end: memwatch looks at its memory for the last time before. A vfork child that ends says so,
 * too, as the thread that it was lent memory by: memwatch knows that one to be in a system call, and answers at once.
 */
static STUB_RARE void process_ends(void)
{
	const struct mw_stub_context *context = stub_context();
	struct mw_ring_control *control = stub_control();
	uint64_t tp = cpu_thread_pointer(context->rdfsbase);
	uint32_t tid = *(const uint32_t *)(uintptr_t)(tp + context->tid_offset), number;
	uint64_t before = __atomic_load_n(&control->exits, __ATOMIC_RELAXED), start;

	do
		number = mw_ring_exit_count(before) + 1;
	while (!__atomic_compare_exchange_n(&control->exits, &before, (uint64_t)number << 32 | tid, true,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	start = cpu_ticks();
	while ((int32_t)(__atomic_load_n(&control->exits_served, __ATOMIC_ACQUIRE) - number) < 0)
		if (!stub_wait_on(control, start) || cpu_ticks() - start > control->exit_limit)
			break;
}

static inline unsigned consider(struct stub_visit *visit)
{
	const struct mw_stub_hook *hook = visit->hook;
	enum stub_inside inside = STUB_OUTSIDE;
	bool heap = stub_is_heap(hook);

	if (!heap)
		stub_vm_forget(visit);
	if (unlikely(visit->slot->top))
		inside = stub_nest(visit);
	/* An exception that an operator new throws outlives the call. */
	if (unlikely(inside == STUB_INSIDE_HEAP) && heap && stub_allocates_exception(visit))
		inside = STUB_OUTSIDE;
	if (unlikely(hook->flags & MW_STUB_UNTRACKED)) {
		visit->call->flags = MW_STUB_SILENT | MW_STUB_HEAP | (hook->role == STUB_ROLE_FREE ? MW_STUB_FREE : 0);
		return heap && inside != STUB_INSIDE_HEAP ? MW_STUB_WRAP : MW_STUB_PASS;
	}
	return likely(heap) ? stub_heap_enter(visit, inside) : stub_vm_enter(visit, inside);
}

/* While the window settles: nothing that the call does is a free. */
static STUB_RARE bool is_quiet(const struct stub_visit *visit)
{
	const struct mw_stub_hook *hook = visit->hook;

	switch (hook->role) {
	case STUB_ROLE_MALLOC:
	case STUB_ROLE_CALLOC:
	case STUB_ROLE_POSIX_MEMALIGN:
	case STUB_ROLE_RESIZE:
		return true;
	case STUB_ROLE_REALLOC:
	case STUB_ROLE_REALLOCARRAY:
		return !stub_argument(visit, hook->pointer);
	case STUB_ROLE_MMAP:
		return !stub_vm_is_fixed(visit);
	default:
		return false;
	}
}

/* While blocks are sampled, what the recorder takes is measured. */
static inline void note_spent(struct stub_visit *visit, uint64_t since)
{
	if (unlikely(since))
		cpu_add(&visit->slot->spent, cpu_ticks() - since);
}

/* A free of a block that was not sampled. */
static inline bool is_unsampled(const struct stub_visit *visit)
{
	return unlikely(stub_guard() == MW_STUB_GUARD_SAMPLING) && stub_is_heap(visit->hook) &&
	       !stub_sampled(visit->control, stub_argument(visit, visit->hook->pointer));
}

STUB_FLAT STUB_API unsigned mw_stub_enter(struct mw_stub_saved *saved, struct mw_stub_call *call)
{
	const struct mw_stub_context *context = stub_context();
	struct stub_visit visit;
	uint64_t since;
	unsigned answer;

	/* The number is the trampoline's, which nobody writes. */
	if (unlikely(call->hook >= MW_STUB_MAX_HOOKS))
		__builtin_trap();
	visit.hook = &context->hooks[call->hook];
	call->original = visit.hook->original;
	if (unlikely(!stub_on())) {
		/* Out of a child that ends nothing need be taken. */
		if (visit.hook->role != MW_STUB_EXIT)
			announce();
		return MW_STUB_PASS;
	}
	if (unlikely(visit.hook->role >= STUB_ROLE_COUNT && visit.hook->role != MW_STUB_EXEC)) {
		if (visit.hook->role == MW_STUB_LOADER)
			loader_changed();
		else if (visit.hook->role == MW_STUB_EXIT)
			process_ends();
		return MW_STUB_PASS;
	}
	visit.control = stub_control();
	visit.saved = saved;
	visit.call = call;
	visit.ret = stub_read((uint64_t)(uintptr_t)call + MW_STUB_CALL_SIZE);
	visit.high = 0;
	if (visit.hook->role == STUB_ROLE_FREE && (!stub_argument(&visit, visit.hook->pointer) || is_unsampled(&visit)))
		return MW_STUB_PASS;
	if (unlikely(__atomic_load_n(&visit.control->settling, __ATOMIC_RELAXED)) && is_quiet(&visit)) {
		if (stub_samples())
			stub_sample_no_more(visit.control);
		return MW_STUB_PASS;
	}
	since = stub_samples() ? cpu_ticks() : 0;
	if (unlikely(!stub_visit_begin(&visit)))
		return MW_STUB_PASS;
	if (unlikely(visit.hook->role == MW_STUB_EXEC)) {
		call->flags = MW_STUB_SILENT;
		visit.slot->exec = visit.slot->entries;
		answer = MW_STUB_WRAP;
	} else {
		answer = consider(&visit);
	}
	if (likely(answer == MW_STUB_WRAP)) {
		call->prev = visit.slot->top;
		call->cookie = (uint64_t)(uintptr_t)call ^ context->cookie;
		call->slot = (uint64_t)(uintptr_t)visit.slot;
		__atomic_store_n(&visit.slot->top, (uint64_t)(uintptr_t)call, __ATOMIC_RELEASE);
		/* From an execve that a vfork child has called none comes back. */
		visit.stays = visit.hook->role != MW_STUB_EXEC;
	}
	note_spent(&visit, since);
	stub_visit_end(&visit);
	return answer;
}

STUB_FLAT STUB_API void mw_stub_leave(struct mw_stub_call *call, uint64_t result)
{
	const struct mw_stub_context *context = stub_context();
	struct mw_ring_slot *slot = (struct mw_ring_slot *)(uintptr_t)call->slot;
	struct stub_visit visit;

	uint64_t cookie = call->cookie, since;

	/* No call of ours stands here any more. */
	call->cookie = 0;
	/* The stack is the program's, which may have written there. */
	if (unlikely(cookie != ((uint64_t)(uintptr_t)call ^ context->cookie) || call->hook >= MW_STUB_MAX_HOOKS))
		return;
	if (unlikely(!stub_on())) {
		if (stub_guard() == MW_STUB_GUARD_ENDING && context->hooks[call->hook].role != MW_STUB_EXEC)
			stub_visit_count_out(slot);
		return;
	}
	visit.control = stub_control();
	visit.saved = NULL;
	visit.call = call;
	visit.hook = &context->hooks[call->hook];
	visit.ret = 0;
	visit.high = 0;
	since = stub_samples() ? cpu_ticks() : 0;
	if (unlikely(!stub_visit_resume(&visit, slot)))
		return;
	__atomic_store_n(&slot->top, call->prev, __ATOMIC_RELEASE);
	if (unlikely(visit.hook->role == MW_STUB_EXEC)) {
		slot->exec = 0;
		visit.stays = true;
	} else if (!(call->flags & MW_STUB_SILENT)) {
		if (likely(stub_is_heap(visit.hook)))
			stub_heap_leave(&visit, result);
		else
			stub_vm_leave(&visit, result);
	}
	note_spent(&visit, since);
	stub_visit_end(&visit);
}

#ifdef MW_STUB_IMAGE
STUB_FLAT void mw_stub_entering(struct mw_stub_saved *saved, struct mw_stub_call *call)
{
	cpu_entered(mw_stub_enter(saved, call), saved);
}

STUB_FLAT void mw_stub_leaving(struct mw_stub_call *call, uint64_t result)
{
	mw_stub_leave(call, result);
	cpu_left(call);
}
#endif

#define CLEANUP_PHASE   2
#define CONTINUE_UNWIND 8

/*
 * The personality of the frame of a call that comes back: an exception takes it away, or the end of the thread, with
 * which the slot's count is no more. Only where another thread has begun the call the slot may not be the one that it
 * was counted in.
 */
int mw_stub_unwound(int version, int actions, uint64_t class, void *exception, void *context)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if (actions & CLEANUP_PHASE && (stub_on() || stub_guard() == MW_STUB_GUARD_ENDING)) {
		struct mw_ring_control *control = stub_control();
		struct mw_ring_slot *slot = stub_slot_known(control);

		if (slot)
			cpu_add32(&slot->open, UINT32_MAX);
		else
			__atomic_fetch_sub(&control->open, 1, __ATOMIC_RELAXED);
	}
	return CONTINUE_UNWIND;
}

STUB_RARE void stub_cancel(struct stub_visit *visit, struct mw_stub_call *call)
{
	struct mw_stub_call *here = visit->call;
	uint8_t role;

	if (!(call->flags & MW_STUB_BEGUN))
		return;
	role = stub_context()->hooks[call->hook & (MW_STUB_MAX_HOOKS - 1)].role;
	visit->call = call;
	stub_emit(visit,
		  role == STUB_ROLE_MUNMAP   ? MW_RING_UNMAP_FAIL
		  : role == STUB_ROLE_MREMAP ? MW_RING_REMAP_FAIL
					     : MW_RING_REALLOC_FAIL,
		  call->pointer, call->size, MW_RING_STACK_NONE);
	visit->call = here;
}
