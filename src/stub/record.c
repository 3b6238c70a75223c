// SPDX-License-Identifier: MIT
/*
 * record.c: enter and leave: what a call is, whether it counts, and what heap functions and those for mappings do, told as
 * records (recorder.h). The trap engine's call.c is what this is to agree with.
 */
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
_Static_assert(STUB_FILTER_MASK == MW_RING_FILTER - 1 && sizeof(struct mw_ring_slot) == 1u << STUB_SLOT_SHIFT, "");
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

/* --- blocks that are known ---------------------------------------------------------------------------------------- */

/* Blocks that were allocated in the window: a free of one needs no stack (memwatch/ring.h). */

static inline uint32_t *known_place(struct mw_ring_control *control, uint64_t block, uint32_t second, uint32_t *value)
{
	return mw_ring_known_place(stub_at(control, control->known), control->known_count, block, second, value);
}

void stub_known_add(struct mw_ring_control *control, uint64_t block)
{
	uint32_t value, *entry = known_place(control, block, 0, &value);

	if (likely(entry))
		__atomic_store_n(entry, value, __ATOMIC_RELAXED);
}

static inline bool known_has(struct mw_ring_control *control, uint64_t block, uint32_t second, bool take)
{
	uint32_t value, *entry = known_place(control, block, second, &value);

	if (!entry || __atomic_load_n(entry, __ATOMIC_RELAXED) != value)
		return false;
	if (take)
		__atomic_store_n(entry, 0, __ATOMIC_RELAXED);
	return true;
}

bool stub_known_take(struct mw_ring_control *control, uint64_t block)
{
	return known_has(control, block, 0, true);
}

bool stub_known_has_sampled(struct mw_ring_control *control, uint64_t block, bool take)
{
	return known_has(control, block, 0, take) || known_has(control, block, MW_RING_KNOWN_SECOND, take);
}

/* --- glibc's chunk headers ---------------------------------------------------------------------------------------- */

/*
 *      chunk            block                         next chunk
 *      | prev_size | size|AMP | … usable …            | size|..P |
 *      block-16     block-8                            block-16+size+8
 *
 * The rules are those of src/alloc/glibc_arenas.c. Read is only what was writable memory of the process's own at attach.
 */

#define HEADER         16
#define ALIGNMENT      16
#define MINIMUM        32
#define PREV_INUSE     1u
#define MMAPPED        2u
#define FLAGS          UINT64_C(7)
#define PAGE           4096u
#define ADDRESS_LIMIT  (UINT64_C(1) << 56)
#define FENCEPOST_SIZE 16

static bool header_readable(uint64_t start, uint64_t size)
{
	const struct mw_stub_range *ranges = (const struct mw_stub_range *)(uintptr_t)stub_context()->readable;
	uint64_t low = 0, high = ranges ? stub_context()->readable_count : 0;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (ranges[middle].start <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && start < ranges[low - 1].end && size <= ranges[low - 1].end - start;
}

static uint64_t mapped_usable(uint64_t chunk, uint64_t prev_size, uint64_t size)
{
	if (prev_size > chunk || (chunk - prev_size) % PAGE)
		return UINT64_MAX;
	if ((prev_size + size) % PAGE == 0)
		return size - HEADER;
	/* glibc 2.43 and later */
	return (prev_size + size + HEADER) % PAGE == 0 ? size - 8 : UINT64_MAX;
}

uint64_t stub_chunk_usable(uint64_t block)
{
	uint64_t word, size, next;

	if (block % ALIGNMENT || block < HEADER || block >= ADDRESS_LIMIT || !header_readable(block - HEADER, HEADER))
		return UINT64_MAX;
	word = stub_read(block - 8);
	size = word & ~FLAGS;
	if (size < MINIMUM || size % ALIGNMENT || size >= ADDRESS_LIMIT)
		return UINT64_MAX;
	if (word & MMAPPED)
		return (word & FLAGS) == MMAPPED ? mapped_usable(block - HEADER, stub_read(block - HEADER), size)
						 : UINT64_MAX;
	if (!header_readable(block - 8 + size, 8))
		return UINT64_MAX;
	next = stub_read(block - 8 + size);
	if (!(next & PREV_INUSE) || (next & MMAPPED))
		return UINT64_MAX;
	next &= ~FLAGS;
	if (next < FENCEPOST_SIZE || next % ALIGNMENT || next >= ADDRESS_LIMIT)
		return UINT64_MAX;
	return size - 8;
}

/* --- heap functions ----------------------------------------------------------------------------------------------- */

#define STRING_MAX (1u << 20)

/* The size that is asked for. */
static inline uint64_t wanted_size(const struct stub_visit *visit)
{
	const struct mw_stub_hook *hook = visit->hook;
	uint64_t size = hook->argument == MW_STUB_NO_ARG ? 0 : stub_argument(visit, hook->argument);

	/* A product that overflows is refused by the allocator; it must not look like a small one. */
	if (unlikely(hook->count != MW_STUB_NO_ARG) &&
	    __builtin_mul_overflow(size, stub_argument(visit, hook->count), &size))
		return UINT64_MAX;
	return size;
}

static uint64_t usable(const struct stub_visit *visit, uint64_t block)
{
	return visit->hook->flags & MW_STUB_GLIBC ? stub_chunk_usable(block) : UINT64_MAX;
}

static inline bool free_unknown(struct stub_visit *visit, uint64_t block)
{
	const struct mw_stub_context *context = stub_context();
	uint32_t stack;

	/* glibc gives a dying thread's cached blocks back through free itself: the program freed them before. */
	if (visit->hook->flags & MW_STUB_GLIBC &&
	    stub_in_ranges(context->internal, context->internal_count, visit->ret))
		return true;
	stack = stub_stack(visit, 0);
	return stub_emit(visit, MW_RING_FREE_BLOCK, block, usable(visit, block), stack);
}

static unsigned enter_free(struct stub_visit *visit, enum stub_inside inside)
{
	uint64_t block = stub_argument(visit, visit->hook->pointer);

	visit->call->flags = MW_STUB_HEAP | MW_STUB_FREE | MW_STUB_SILENT;
	/* It may be one that was sampled: memwatch finds out. */
	if (stub_samples()) {
		if (stub_sampled_take(visit->control, block) || stub_guard() == MW_STUB_GUARD_TURNING)
			stub_emit(visit, MW_RING_FREE_BLOCK, block, UINT64_MAX, MW_RING_STACK_NONE);
		return inside == STUB_OUTSIDE || inside == STUB_INSIDE_VM ? MW_STUB_WRAP : MW_STUB_PASS;
	}
	/* Blocks that are not known may be of the window as well, as not all are kept: memwatch finds out. */
	if (unlikely(visit->control->settling)) {
		(void)stub_known_take(visit->control, block);
		stub_emit(visit, MW_RING_FREE_BLOCK, block, UINT64_MAX, MW_RING_STACK_NONE);
		return MW_STUB_PASS;
	}
	/* A block that is known is freed here and now, whoever calls: operator new(nothrow) frees the exception that it
	 * has caught. One that is not may be what an allocating function gives back of its own, or what a freeing
	 * function makes of the block that it was called for, a header before it. */
	if (likely(stub_known_take(visit->control, block)))
		stub_emit(visit, MW_RING_FREE_BLOCK, block, UINT64_MAX, MW_RING_STACK_NONE);
	else if (inside == STUB_OUTSIDE || inside == STUB_INSIDE_VM)
		free_unknown(visit, block);
	return inside == STUB_INSIDE_FREE || inside == STUB_INSIDE_HEAP ? MW_STUB_PASS : MW_STUB_WRAP;
}

static inline bool resizes(uint8_t role)
{
	return role == STUB_ROLE_REALLOC || role == STUB_ROLE_REALLOCARRAY || role == STUB_ROLE_RESIZE;
}

static void begin_realloc(struct stub_visit *visit)
{
	struct mw_stub_call *call = visit->call;
	bool known = stub_known_take(visit->control, call->pointer);
	uint64_t size = known ? UINT64_MAX : usable(visit, call->pointer);

	if (known)
		call->flags |= MW_STUB_KNOWN;
	if (stub_emit(visit, MW_RING_REALLOC_BEGIN, call->pointer, size, call->stack))
		call->flags |= MW_STUB_BEGUN;
}

/* No argument says how large the block will be: a copy of a string. */
static inline bool sized_later(const struct mw_stub_hook *hook)
{
	return hook->argument == MW_STUB_NO_ARG && hook->count == MW_STUB_NO_ARG;
}

/* Where blocks are sampled: call->extra is the label of the new one. */
static STUB_RARE unsigned enter_sampled(struct stub_visit *visit, bool taken)
{
	struct mw_stub_call *call = visit->call;
	bool sampled = true;
	/* Whether the old block was sampled memwatch knows. */
	bool begins = resizes(visit->hook->role) && call->pointer &&
		      (stub_sampled_take(visit->control, call->pointer) || stub_guard() == MW_STUB_GUARD_TURNING);

	call->extra = MW_RING_UNSAMPLED << MW_RING_SIZE_BITS;
	call->stack = MW_RING_STACK_NONE;
	if (!sized_later(visit->hook))
		sampled = stub_sample(visit, call->size, taken, &call->extra);
	/* In one that was entered before, and whose block was not sampled. */
	if ((sampled && stub_in_leaf(visit)) || __atomic_load_n(&visit->control->settling, __ATOMIC_RELAXED))
		sampled = false;
	if (!sampled)
		call->extra = MW_RING_UNSAMPLED << MW_RING_SIZE_BITS;
	if (!sampled && !begins) {
		/* It is around what it calls. */
		call->flags |= MW_STUB_SILENT;
		return MW_STUB_WRAP;
	}
	if (sampled)
		call->stack = stub_stack(visit, 0);
	if (begins && stub_emit(visit, MW_RING_REALLOC_BEGIN, call->pointer, UINT64_MAX, MW_RING_STACK_NONE))
		call->flags |= MW_STUB_BEGUN;
	return MW_STUB_WRAP;
}

static unsigned heap_enter(struct stub_visit *visit, enum stub_inside inside)
{
	const struct mw_stub_hook *hook = visit->hook;
	struct mw_stub_call *call = visit->call;
	bool taken = stub_samples() && call->flags & MW_STUB_TAKEN;

	if (hook->role == STUB_ROLE_FREE)
		return enter_free(visit, inside);
	if (inside == STUB_INSIDE_HEAP)
		return MW_STUB_PASS;
	call->flags = MW_STUB_HEAP;
	call->size = wanted_size(visit);
	call->pointer = hook->pointer == MW_STUB_NO_ARG ? 0 : stub_argument(visit, hook->pointer);
	if (stub_samples())
		return enter_sampled(visit, taken);
	/* It may be sampled when the call comes back: this block is recorded as all are. */
	call->extra = 0;
	call->stack = stub_stack(visit, 0);
	if (resizes(hook->role) && call->pointer)
		begin_realloc(visit);
	return MW_STUB_WRAP;
}

/* Where blocks are sampled; the filter first: the block may be freed as soon as it is known. */
static STUB_RARE void allocated_sampled(struct stub_visit *visit, uint32_t type, uint64_t block, uint64_t size)
{
	uint64_t label = visit->call->extra;
	bool sampled = label != MW_RING_UNSAMPLED << MW_RING_SIZE_BITS;

	if (!sampled && type == MW_RING_ALLOC)
		return;
	if (sampled && block)
		stub_sampled_add(visit->control, block);
	stub_emit_after(visit, type, block, (size & MW_RING_SIZE_MASK) | label, visit->call->stack);
}

static inline void allocated(struct stub_visit *visit, uint32_t type, uint64_t block, uint64_t size)
{
	if (stub_samples()) {
		allocated_sampled(visit, type, block, size);
		return;
	}
	if (likely(stub_emit_after(visit, type, block, size, visit->call->stack)) && likely(block))
		stub_known_add(visit->control, block);
}

/* It failed: the block is what it was. */
static STUB_RARE void failed(struct stub_visit *visit)
{
	const struct mw_stub_call *call = visit->call;

	if (stub_samples())
		stub_sampled_add(visit->control, call->pointer);
	if (stub_emit(visit, MW_RING_REALLOC_FAIL, call->pointer, 0, MW_RING_STACK_NONE) && call->flags & MW_STUB_KNOWN)
		stub_known_add(visit->control, call->pointer);
}

static void leave_realloc(struct stub_visit *visit, uint64_t result)
{
	const struct mw_stub_call *call = visit->call;

	if (!(call->flags & MW_STUB_BEGUN)) {
		if (result)
			allocated(visit, MW_RING_ALLOC, result, call->size);
		return;
	}
	/* realloc(block, 0) that gives NULL has freed the block. */
	if (!result && call->size != 0)
		failed(visit);
	else
		allocated(visit, MW_RING_REALLOC_END, result, call->size);
}

/* xallocx gives the block's real size, mi_expand the block or NULL. */
static STUB_RARE void leave_resize(struct stub_visit *visit, uint64_t result)
{
	const struct mw_stub_call *call = visit->call;

	bool begun = call->flags & MW_STUB_BEGUN;

	/* Of the old block of one that is sampled nothing need be known. */
	if (!begun && !stub_samples())
		return;
	if (result == call->pointer || (result >= call->size && result != 0))
		allocated(visit, begun ? MW_RING_REALLOC_END : MW_RING_ALLOC, call->pointer, call->size);
	else if (begun)
		failed(visit);
}

/* A copy of a string whose length no argument tells (strdup and its like): what was asked for is what was copied. */
static STUB_RARE uint64_t string_size(uint64_t string)
{
	const char *text = (const char *)(uintptr_t)string;

	for (uint64_t i = 0; i < STRING_MAX; i++)
		if (text[i] == '\0')
			return i + 1;
	return 0;
}

static inline void leave_malloc(struct stub_visit *visit, uint64_t result)
{
	uint64_t size = visit->call->size;

	if (!result)
		return;
	if (unlikely(sized_later(visit->hook))) {
		size = string_size(result);
		if (stub_samples() && !stub_sample(visit, size, false, &visit->call->extra))
			return;
	}
	allocated(visit, MW_RING_ALLOC, result, size);
}

static void heap_leave(struct stub_visit *visit, uint64_t result)
{
	switch (visit->hook->role) {
	case STUB_ROLE_MALLOC:
	case STUB_ROLE_CALLOC:
		leave_malloc(visit, result);
		break;
	case STUB_ROLE_REALLOC:
	case STUB_ROLE_REALLOCARRAY:
		leave_realloc(visit, result);
		break;
	case STUB_ROLE_POSIX_MEMALIGN:
		/* It has written there just now. */
		if ((uint32_t)result == 0)
			allocated(visit, MW_RING_ALLOC, stub_read(visit->call->pointer), visit->call->size);
		break;
	case STUB_ROLE_RESIZE:
		leave_resize(visit, result);
		break;
	default:
		break;
	}
}

/* --- functions for mappings --------------------------------------------------------------------------------------- */

#define MAP_AT          0x10u /* MAP_FIXED */
#define REMAP_AT        2u    /* MREMAP_FIXED */
#define REMAP_DONTUNMAP 4u    /* MREMAP_DONTUNMAP */

static uint64_t round_to_pages(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void forget(struct stub_visit *visit, uint64_t start, uint64_t size)
{
	uint64_t end;

	if (size > UINT64_MAX - PAGE || __builtin_add_overflow(start, round_to_pages(size), &end))
		end = UINT64_MAX;
	stub_region_forget(visit->slot, start, end);
}

/* All that lies from `end` to its region's end. */
static void forget_across(struct stub_visit *visit, uint64_t end)
{
	stub_region_forget(visit->slot, end, end + 1);
}

/* Does an mmap take the place of what is mapped there? */
static bool vm_is_fixed(const struct stub_visit *visit)
{
	return stub_argument(visit, 3) & MAP_AT;
}

/* Memory that goes, before it is asked whether the call counts. */
static STUB_RARE void vm_forget(struct stub_visit *visit)
{
	uint64_t first = stub_argument(visit, 0);

	switch (visit->hook->role) {
	case STUB_ROLE_MMAP:
		if (vm_is_fixed(visit))
			forget(visit, first, stub_argument(visit, 1));
		break;
	case STUB_ROLE_MUNMAP:
		forget(visit, first, stub_argument(visit, 1));
		break;
	case STUB_ROLE_MREMAP:
		forget(visit, first, stub_argument(visit, 1));
		if (stub_argument(visit, 3) & REMAP_AT)
			forget(visit, stub_argument(visit, 4), stub_argument(visit, 2));
		break;
	case STUB_ROLE_BRK:
		forget_across(visit, first);
		break;
	case STUB_ROLE_SBRK:
		/* Where the break is nobody knows: nothing is known any more. */
		if ((int64_t)first < 0)
			stub_region_forget(visit->slot, 0, UINT64_MAX);
		break;
	default:
		break;
	}
}

static void begin_vm(struct stub_visit *visit, uint32_t type)
{
	struct mw_stub_call *call = visit->call;

	if (stub_emit(visit, type, call->pointer, call->size, call->stack))
		call->flags |= MW_STUB_BEGUN;
}

static inline unsigned vm_enter(struct stub_visit *visit, enum stub_inside inside)
{
	const struct mw_stub_context *context = stub_context();
	struct mw_stub_call *call = visit->call;

	/* sbrk calls brk, mmap64 may call mmap: counted at the outermost. */
	if (inside == STUB_INSIDE_VM)
		return MW_STUB_PASS;
	call->flags = inside != STUB_OUTSIDE ||
				      stub_in_ranges(context->allocators, context->allocator_count, visit->ret) ||
				      (stub_samples() && stub_in_leaf(visit))
			      ? MW_RING_INTERNAL
			      : MW_RING_VM;
	call->pointer = stub_argument(visit, 0);
	call->size = round_to_pages(stub_argument(visit, 1));
	call->extra = round_to_pages(stub_argument(visit, 2));
	call->stack = stub_stack(visit, (uint32_t)call->flags);
	if (visit->hook->role == STUB_ROLE_MUNMAP)
		begin_vm(visit, MW_RING_UNMAP_BEGIN);
	else if (visit->hook->role == STUB_ROLE_MREMAP && call->size > 0 &&
		 !(stub_argument(visit, 3) & REMAP_DONTUNMAP))
		begin_vm(visit, MW_RING_REMAP_BEGIN);
	return MW_STUB_WRAP;
}

static void leave_mremap(struct stub_visit *visit, uint64_t result)
{
	const struct mw_stub_call *call = visit->call;
	bool failed = result == UINT64_MAX;

	if (call->flags & MW_STUB_BEGUN) {
		if (failed)
			stub_emit(visit, MW_RING_REMAP_FAIL, call->pointer, call->size, call->stack);
		else
			stub_emit_after(visit, MW_RING_REMAP_END, result, call->extra, call->stack);
	} else if (!failed && call->extra) {
		stub_emit_after(visit, MW_RING_MAP, result, call->extra, call->stack);
	}
}

static STUB_RARE void vm_leave(struct stub_visit *visit, uint64_t result)
{
	const struct mw_stub_call *call = visit->call;
	bool failed = result == UINT64_MAX;

	switch (visit->hook->role) {
	case STUB_ROLE_MMAP:
		if (!failed && call->size)
			stub_emit_after(visit, MW_RING_MAP, result, call->size, call->stack);
		break;
	case STUB_ROLE_MUNMAP:
		if (call->flags & MW_STUB_BEGUN)
			stub_emit(visit, (uint32_t)result ? MW_RING_UNMAP_FAIL : MW_RING_UNMAP_END, call->pointer,
				  call->size, call->stack);
		break;
	case STUB_ROLE_MREMAP:
		leave_mremap(visit, result);
		break;
	case STUB_ROLE_BRK:
		if ((uint32_t)result == 0)
			stub_emit_after(visit, MW_RING_BRK, call->pointer, 0, call->stack);
		break;
	case STUB_ROLE_SBRK:
		if (!failed && call->pointer)
			stub_emit_after(visit, MW_RING_SBRK, result, call->pointer, call->stack);
		break;
	default:
		break;
	}
}

/* --- enter and leave ---------------------------------------------------------------------------------------------- */

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
		vm_forget(visit);
	if (unlikely(visit->slot->top))
		inside = stub_nest(visit);
	/* An exception that an operator new throws outlives the call. */
	if (unlikely(inside == STUB_INSIDE_HEAP) && heap && stub_allocates_exception(visit))
		inside = STUB_OUTSIDE;
	if (unlikely(hook->flags & MW_STUB_UNTRACKED)) {
		visit->call->flags = MW_STUB_SILENT | MW_STUB_HEAP | (hook->role == STUB_ROLE_FREE ? MW_STUB_FREE : 0);
		return heap && inside != STUB_INSIDE_HEAP ? MW_STUB_WRAP : MW_STUB_PASS;
	}
	return likely(heap) ? heap_enter(visit, inside) : vm_enter(visit, inside);
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
		return !vm_is_fixed(visit);
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
			heap_leave(&visit, result);
		else
			vm_leave(&visit, result);
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
