// SPDX-License-Identifier: MIT
/* heap.c: what heap functions do, told as records (recorder.h). The trap engine's call.c is what this is to agree
 * with. */
#include "stub/recorder.h"
#include "stub/roles.h"

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
