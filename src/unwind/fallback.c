// SPDX-License-Identifier: MIT
/* fallback.c: a step through code without frame descriptions (fallback.h). */
#include "unwind/fallback.h"

#define BEFORE     16384u /* code looked at before the pc, for jumps back */
#define AFTER      16384u /* … and behind it */
#define ABOVE      64u    /* words of the stack looked at for a return address */
#define CALL_BYTES 8u
#define MAX_WAYS   8u

/* Is there code of a module at `addr`, and right before it a call? */
static bool is_return_address(const struct mw_modules *modules, const struct mw_arch *arch, mw_addr addr)
{
	const struct mw_module *module = mw_modules_find(modules, addr - 1);
	uint8_t code[CALL_BYTES];

	return module && module->elf &&
	       mw_elf_read(module->elf, addr - module->bias - sizeof(code), code, sizeof(code)) &&
	       arch->is_call_before(code, sizeof(code));
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

struct next_function {
	uint64_t after, vaddr;
};

static bool is_next_function(void *context, const struct mw_elf_symbol *symbol)
{
	struct next_function *next = context;

	if (symbol->function && symbol->vaddr >= next->after && symbol->vaddr < next->vaddr)
		next->vaddr = symbol->vaddr;
	return true;
}

/* Where the function that holds `pc` ends at the latest: where the next one begins. */
static mw_addr ends_at(const struct mw_module *module, mw_addr pc)
{
	struct next_function next = {.after = pc - module->bias, .vaddr = module->end - module->bias};

	mw_error_destroy(mw_elf_each_symbol(module->elf, is_next_function, &next));
	return next.vaddr + module->bias;
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

enum mw_fallback mw_fallback_step(const struct mw_modules *modules, const struct mw_arch *arch,
				  const struct mw_memory_view *memory, const struct mw_regs *regs, struct mw_regs *out)
{
	const struct mw_module *module = mw_modules_find(modules, regs->pc - 1);
	struct mw_way_out ways[MAX_WAYS];
	struct mw_regs caller;
	bool found = false;
	const uint8_t *bytes;
	mw_addr base, end;
	size_t size, count;

	if (!module || !module->elf)
		return MW_FALLBACK_LOST;
	bytes = code_around(module, regs->pc, &base, &size);
	if (!bytes)
		return MW_FALLBACK_LOST;
	count = arch->ways_out(bytes, size, base, regs->pc, regs, ways, MAX_WAYS);
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
	end = ends_at(module, regs->pc);
	if (end - base < size)
		size = (size_t)(end - base);
	if (arch->ways_out(bytes, size, base, regs->pc, regs, ways, MAX_WAYS) == 0)
		return MW_FALLBACK_END;
	return any_return_above(modules, arch, memory, regs) ? MW_FALLBACK_LOST : MW_FALLBACK_END;
}
