// SPDX-License-Identifier: MIT
/*
 * sampling.c: windows in which heap blocks are sampled: which functions take the short way into the recorder, and the
 * interval (jump.h). What is sampled the recorder decides (src/stub/sample.c).
 */
#include "engine/jump/jump.h"

#include "alloc/tables.h"

#include <string.h>

static bool is_of_mimalloc(const struct jump_process *process, uint32_t module)
{
	MW_EACH(hook, process->survey.hooks.items, process->survey.hooks.count)
		if (hook->module == module && hook->family == &mw_family_mimalloc)
			return true;
	return false;
}

/*
 * Does it call no other hooked function of the heap? A call that is not sampled leaves no trace, so what it called would be
 * taken for the program's own. mimalloc's functions jump to each other; musl's calloc calls malloc.
 */
static bool is_leaf(const struct jump_process *process, const struct mw_hook *hook)
{
	const char *name = hook->info.function;
	bool calloc = strcmp(name, "calloc") == 0 || strcmp(name, "__libc_calloc") == 0;
	bool malloc = strcmp(name, "malloc") == 0 || strcmp(name, "__libc_malloc") == 0;

	if (!hook->size || is_of_mimalloc(process, hook->module))
		return false;
	switch (process->survey.module_class[hook->module]) {
	case MW_MODULE_ALLOCATOR:
		return true;
	case MW_MODULE_RUNTIME:
		return malloc || (calloc && hook->glibc);
	default:
		return (malloc || calloc) && hook->glibc;
	}
}

/* Where the recorder reads the size from; 0: nowhere but in C. */
static uint32_t entry_by_size(const struct mw_stub_header *header, const struct mw_entry_point *entry)
{
	if (entry->role == MW_ROLE_CALLOC)
		return entry->count == 0 && entry->size == 1 ? header->enter_product : 0;
	if (entry->role != MW_ROLE_MALLOC || entry->count != MW_NO_ARG)
		return 0;
	return entry->size == 0 ? header->enter_size0 : entry->size == 1 ? header->enter_size1 : 0;
}

uint32_t jump_entry_of(struct jump_process *process, const struct jump_patch *patch)
{
	const struct mw_stub_header *header = jump_header(process);
	struct mw_stub_context *context = &process->recorder.context;
	const struct mw_hook *hook;
	uint32_t entry;

	if (patch->role == MW_STUB_UNWINDER)
		return header->find_fde;
	if (!jump_samples(process) || patch->hook == JUMP_NO_HOOK)
		return header->enter;
	hook = &process->survey.hooks.items[patch->hook];
	if (hook->info.kind != MW_KIND_HEAP)
		return header->enter;
	if (hook->entry->role == MW_ROLE_FREE)
		return hook->entry->pointer == 0 ? header->enter_free : header->enter;
	entry = entry_by_size(header, hook->entry);
	if (!entry || context->leaf_count == MW_STUB_RANGES || !is_leaf(process, hook))
		return header->enter;
	context->leaves[context->leaf_count++] = (struct mw_stub_range){patch->addr, patch->addr + patch->size};
	return entry;
}

struct mw_error *jump_sampling_set(struct jump_process *process, uint64_t bytes)
{
	uint16_t number;

	MW_TRY(process->sink.interval(process->sink.context, bytes, &number));
	jump_drain_sampling(process->drain, number);
	__atomic_store_n(&jump_control(&process->recorder.shared)->sampling, mw_ring_sampling(bytes, number),
			 __ATOMIC_RELAXED);
	return NULL;
}
