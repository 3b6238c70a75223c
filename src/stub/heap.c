// SPDX-License-Identifier: MIT
/*
 * heap.c: what heap functions do, told as records; blocks that are known, and what glibc's headers say of others
 * (recorder.h). The trap engine's call.c is what this is to agree with.
 */
#include "stub/recorder.h"

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
	if (prev_size > chunk || (chunk - prev_size) % STUB_PAGE)
		return UINT64_MAX;
	if ((prev_size + size) % STUB_PAGE == 0)
		return size - HEADER;
	/* glibc 2.43 and later */
	return (prev_size + size + HEADER) % STUB_PAGE == 0 ? size - 8 : UINT64_MAX;
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
		if (stub_sampled_take(visit->control, block) || stub_guard() == MW_STUB_GUARD_TRANSITION)
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
		      (stub_sampled_take(visit->control, call->pointer) || stub_guard() == MW_STUB_GUARD_TRANSITION);

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

unsigned stub_heap_enter(struct stub_visit *visit, enum stub_inside inside)
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

void stub_heap_leave(struct stub_visit *visit, uint64_t result)
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
