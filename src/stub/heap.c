// SPDX-License-Identifier: MIT
/* heap.c: what heap functions do, told as records (recorder.h). The trap engine's call.c is what this is to agree
 * with. */
#include "stub/recorder.h"

/* --- blocks that are known ---------------------------------------------------------------------------------------- */

/*
 * Blocks that were allocated in the window: a free of one needs no stack. An entry's place and value together are the
 * block's address: what does not fit that is not kept.
 */

static bool place(struct mw_ring_control *control, uint64_t block, uint32_t **entry, uint32_t *value)
{
	uint32_t *known = stub_at(control, control->known);
	uint64_t n = block >> 4, rest = n >> __builtin_ctz(control->known_count);

	*entry = &known[n & (control->known_count - 1)];
	*value = (uint32_t)rest + 1;
	return likely(!(block & 15) && rest < UINT32_MAX);
}

void stub_known_add(struct mw_ring_control *control, uint64_t block)
{
	uint32_t *entry, value;

	if (place(control, block, &entry, &value))
		__atomic_store_n(entry, value, __ATOMIC_RELAXED);
}

bool stub_known_take(struct mw_ring_control *control, uint64_t block)
{
	uint32_t *entry, value;

	if (!place(control, block, &entry, &value) || __atomic_load_n(entry, __ATOMIC_RELAXED) != value)
		return false;
	__atomic_store_n(entry, 0, __ATOMIC_RELAXED);
	return true;
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

static STUB_RARE bool free_unknown(struct stub_visit *visit, uint64_t block)
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

unsigned stub_heap_enter(struct stub_visit *visit, enum stub_inside inside)
{
	const struct mw_stub_hook *hook = visit->hook;
	struct mw_stub_call *call = visit->call;

	if (hook->role == STUB_ROLE_FREE)
		return enter_free(visit, inside);
	if (inside == STUB_INSIDE_HEAP)
		return MW_STUB_PASS;
	call->flags = MW_STUB_HEAP;
	call->size = wanted_size(visit);
	call->pointer = hook->pointer == MW_STUB_NO_ARG ? 0 : stub_argument(visit, hook->pointer);
	call->stack = stub_stack(visit, 0);
	if (resizes(hook->role) && call->pointer)
		begin_realloc(visit);
	return MW_STUB_WRAP;
}

static inline void allocated(struct stub_visit *visit, uint32_t type, uint64_t block, uint64_t size)
{
	if (likely(stub_emit_after(visit, type, block, size, visit->call->stack)) && likely(block))
		stub_known_add(visit->control, block);
}

/* It failed: the block is what it was. */
static void failed(struct stub_visit *visit)
{
	const struct mw_stub_call *call = visit->call;

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
static void leave_resize(struct stub_visit *visit, uint64_t result)
{
	const struct mw_stub_call *call = visit->call;

	if (!(call->flags & MW_STUB_BEGUN))
		return;
	if (result == call->pointer || (result >= call->size && result != 0))
		allocated(visit, MW_RING_REALLOC_END, call->pointer, call->size);
	else
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
	if (unlikely(visit->hook->argument == MW_STUB_NO_ARG && visit->hook->count == MW_STUB_NO_ARG))
		size = string_size(result);
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
