// SPDX-License-Identifier: MIT
/*
 * vm.c: what functions for mappings do, told as records; and stacks that go with them (recorder.h). The trap engine's call.c
 * is what this is to agree with.
 */
#include "stub/recorder.h"

#define MAP_AT          0x10u /* MAP_FIXED */
#define REMAP_AT        2u    /* MREMAP_FIXED */
#define REMAP_DONTUNMAP 4u    /* MREMAP_DONTUNMAP */

static uint64_t round_to_pages(uint64_t size)
{
	return (size + STUB_PAGE - 1) & ~(uint64_t)(STUB_PAGE - 1);
}

static void forget(struct stub_visit *visit, uint64_t start, uint64_t size)
{
	uint64_t end;

	if (size > UINT64_MAX - STUB_PAGE || __builtin_add_overflow(start, round_to_pages(size), &end))
		end = UINT64_MAX;
	stub_region_forget(visit->slot, start, end);
	stub_script_forget(visit->control, start, end);
}

/* All that lies from `end` to its region's end. */
static void forget_across(struct stub_visit *visit, uint64_t end)
{
	stub_region_forget(visit->slot, end, end + 1);
	stub_script_forget(visit->control, end, end + 1);
}

bool stub_vm_is_fixed(const struct stub_visit *visit)
{
	return stub_argument(visit, 3) & MAP_AT;
}

STUB_RARE void stub_vm_forget(struct stub_visit *visit)
{
	uint64_t first = stub_argument(visit, 0);

	switch (visit->hook->role) {
	case STUB_ROLE_MMAP:
		if (stub_vm_is_fixed(visit))
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
		/* Where the break is nobody knows. */
		if ((int64_t)first < 0)
			stub_region_forget_others(visit->slot, (uint64_t)(uintptr_t)visit->call);
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

unsigned stub_vm_enter(struct stub_visit *visit, enum stub_inside inside)
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

STUB_RARE void stub_vm_leave(struct stub_visit *visit, uint64_t result)
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
