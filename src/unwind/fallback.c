// SPDX-License-Identifier: MIT
/* fallback.c: a step through code without frame descriptions (fallback.h). */
#include "unwind/fallback.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define BEFORE     16384u /* code looked at before the pc, for jumps back */
#define AFTER      16384u /* … and behind it */
#define ABOVE      64u    /* words of the stack looked at for a return address */
#define CALL_BYTES 8u
#define MAX_WAYS   8u

static bool is_behind_call(const struct mw_module *module, const struct mw_arch *arch, mw_addr addr)
{
	uint8_t code[CALL_BYTES];

	return mw_elf_read(module->elf, addr - module->bias - sizeof(code), code, sizeof(code)) &&
	       arch->is_call_before(code, sizeof(code));
}

/* Is there code of a module at `addr`, and right before it a call? */
static bool is_return_address(const struct mw_modules *modules, const struct mw_arch *arch, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(modules, addr - 1);

	return module && module->elf && is_behind_call(module, arch, addr);
}

/* The code around the pc, and where it begins. */
static const uint8_t *code_around(const struct mw_module *module, mw_addr pc, mw_addr *base, size_t *size)
{
	size_t available;
	uint64_t vaddr = pc - module->bias;
	const uint8_t *bytes;

	for (uint64_t before = BEFORE;; before /= 2) {
		bytes = vaddr >= before ? mw_elf_bytes(module->elf, vaddr - before, &available) : NULL;
		if (bytes && available > before) {
			*base = pc - before;
			*size = available < before + AFTER ? available : before + AFTER;
			return bytes;
		}
		if (before == 0)
			return NULL;
	}
}

static bool take_way(const struct mw_modules *modules, const struct mw_arch *arch, const struct mw_memory_view *memory,
		     const struct mw_way_out *way, const struct mw_regs *regs, struct mw_regs *out)
{
	mw_addr ret;

	if (!memory->read(memory->context, way->return_at, &ret, sizeof(ret)) || !is_return_address(modules, arch, ret))
		return false;
	*out = *regs;
	for (uint32_t mask = way->restored; mask; mask &= mask - 1) {
		unsigned reg = (unsigned)__builtin_ctz(mask);

		if (!memory->read(memory->context, way->restored_at[reg], &out->gpr[reg], sizeof(out->gpr[reg])))
			return false;
	}
	out->pc = ret;
	out->gpr[arch->dwarf_sp] = way->sp;
	return true;
}

/* Where a module's functions begin, in order. */
struct mw_function_starts {
	uint64_t *vaddr;
	size_t count, capacity;
	struct mw_generated_code generated;
	bool known;
};

static bool see_function(void *context, const struct mw_elf_symbol *symbol)
{
	struct mw_function_starts *starts = context;
	uint64_t *room;

	if (!symbol->function)
		return true;
	room = mw_vector_room(starts->vaddr, starts->count, &starts->capacity, sizeof(*room));
	if (!room)
		return false;
	starts->vaddr = room;
	room[starts->count++] = symbol->vaddr;
	return true;
}

static int compare_starts(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* NULL without memory. */
static const struct mw_function_starts *starts_of(struct mw_fallback_cache *cache, const struct mw_module *module)
{
	struct mw_function_starts *starts;

	if (module->number >= cache->count) {
		size_t count = (size_t)module->number + 1;
		struct mw_function_starts *items = realloc(cache->items, count * sizeof(*items));

		if (!items)
			return NULL;
		memset(items + cache->count, 0, (count - cache->count) * sizeof(*items));
		cache->items = items;
		cache->count = count;
	}
	starts = &cache->items[module->number];
	if (!starts->known) {
		starts->known = true;
		mw_error_destroy(mw_elf_each_symbol(module->elf, see_function, starts));
		mw_error_destroy(mw_generated_code_find(module->elf, &starts->generated));
		if (starts->count)
			qsort(starts->vaddr, starts->count, sizeof(*starts->vaddr), compare_starts);
	}
	return starts;
}

/* Where the function that holds `pc` ends at the latest: where the next one begins. */
static mw_addr ends_at(struct mw_fallback_cache *cache, const struct mw_module *module, mw_addr pc)
{
	const struct mw_function_starts *starts = starts_of(cache, module);
	uint64_t vaddr = pc - module->bias;
	size_t low = 0, high = starts ? starts->count : 0, count = high;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (starts->vaddr[middle] < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && starts->vaddr[low] < module->end - module->bias ? starts->vaddr[low] + module->bias
									      : module->end;
}

void mw_fallback_cache_deinit(struct mw_fallback_cache *cache)
{
	for (size_t i = 0; i < cache->count; i++)
		free(cache->items[i].vaddr);
	free(cache->items);
	*cache = (struct mw_fallback_cache){0};
}

static bool is_generated(struct mw_fallback_cache *cache, const struct mw_module *module, mw_addr pc)
{
	const struct mw_function_starts *starts = starts_of(cache, module);

	return starts && mw_generated_code_holds(&starts->generated, pc - 1 - module->bias);
}

bool mw_fallback_is_return(const struct mw_modules *modules, const struct mw_arch *arch, mw_addr addr)
{
	return is_return_address(modules, arch, addr);
}

static bool any_return_above(const struct mw_modules *modules, const struct mw_arch *arch,
			     const struct mw_memory_view *memory, const struct mw_regs *regs)
{
	mw_addr sp = regs->gpr[arch->dwarf_sp];

	for (unsigned i = 0; i < ABOVE; i++) {
		mw_addr word;

		if (!memory->read(memory->context, sp + i * sizeof(word), &word, sizeof(word)))
			return false;
		if (is_return_address(modules, arch, word))
			return true;
	}
	return false;
}

enum mw_fallback mw_fallback_step(struct mw_fallback_cache *cache, const struct mw_modules *modules,
				  const struct mw_arch *arch, const struct mw_memory_view *memory,
				  const struct mw_regs *regs, struct mw_regs *out)
{
	const struct mw_module *module = mw_modules_find(modules, regs->pc - 1);
	struct mw_way_out ways[MAX_WAYS];
	struct mw_regs caller;
	bool found = false;
	const uint8_t *bytes;
	mw_addr base, end;
	size_t size, count;
	bool blind;

	if (!module || !module->elf)
		return MW_FALLBACK_LOST;
	if (is_generated(cache, module, regs->pc))
		return MW_FALLBACK_ALWAYS_LOST;
	bytes = code_around(module, regs->pc, &base, &size);
	if (!bytes)
		return MW_FALLBACK_LOST;
	count = arch->ways_out(bytes, size, base, regs->pc, regs, ways, MAX_WAYS, &blind);
	/* What no call stands before was put there to begin with (makecontext): nothing has called it. */
	if (count == 0)
		return blind && is_behind_call(module, arch, regs->pc) ? MW_FALLBACK_ALWAYS_LOST
								       : MW_FALLBACK_ALWAYS_END;
	for (size_t i = 0; i < count; i++) {
		if (!take_way(modules, arch, memory, &ways[i], regs, &caller))
			continue;
		/* Two places that both look like a return address: guessing would make a stack that never was. */
		if (found)
			return MW_FALLBACK_LOST;
		*out = caller;
		found = true;
	}
	if (found)
		return MW_FALLBACK_FOUND;
	/*
	 * Nothing to return to: the function that a thread begins with, if what is left of it ends with a call that
	 * does not return, or if nothing above on the stack looks like a return address.
	 */
	end = ends_at(cache, module, regs->pc);
	if (end - base < size)
		size = (size_t)(end - base);
	if (arch->ways_out(bytes, size, base, regs->pc, regs, ways, MAX_WAYS, &blind) == 0)
		return blind ? MW_FALLBACK_LOST : MW_FALLBACK_END;
	return any_return_above(modules, arch, memory, regs) ? MW_FALLBACK_LOST : MW_FALLBACK_END;
}
