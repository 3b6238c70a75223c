// SPDX-License-Identifier: MIT
/* hooks.c: what is to be hooked (hooks.h). */
#include "engine/hooks.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

static struct mw_error *append(struct mw_hooks *hooks, struct mw_hook **out)
{
	if (!MW_VECTOR_ROOM(hooks->items, hooks->count, hooks->capacity))
		return mw_error_nomem();
	*out = &hooks->items[hooks->count];
	memset(*out, 0, sizeof(**out));
	return NULL;
}

static const char unreadable[] = "its code can't be read";

/*
 * What stands at the entry now must be what the file has there: anything else was written by somebody (a debugger's
 * breakpoint, another tool's jump), and to plant on top of it would break the one or the other.
 */
static const char *check_entry(struct mw_hook *hook, const struct mw_module *module, uint64_t vaddr,
			       const struct mw_arch *arch, const struct mw_memory_view *memory)
{
	uint8_t now[MW_INSN_MAX], file[MW_INSN_MAX];
	size_t size = sizeof(now);

	while (size > 0 && !memory->read(memory->context, hook->info.address, now, size))
		size--;
	if (size == 0)
		return unreadable;
	arch->plan(now, size, hook->info.address, &hook->plan);
	if (mw_elf_read(module->elf, vaddr, file, size) &&
	    memcmp(now, file, hook->plan.length ? hook->plan.length : 1)) {
		hook->foreign = true;
		if (memcmp(now, arch->breakpoint, arch->breakpoint_length) == 0)
			return "a breakpoint of another tool stands there";
		return "another tool has patched it";
	}
	if (hook->plan.how == MW_INSN_REFUSE)
		return hook->plan.why ? hook->plan.why : "its first instruction can't be displaced";
	return NULL;
}

static struct mw_error *add_entry(struct mw_hooks *hooks, const struct mw_module *module,
				  const struct mw_found_entry *found, const struct mw_arch *arch,
				  const struct mw_memory_view *memory)
{
	struct mw_hook *hook = NULL;

	MW_TRY(append(hooks, &hook));
	hook->family = found->family;
	hook->entry = found->entry;
	hook->module = module->number;
	hook->size = found->size;
	hook->glibc = mw_alloc_is_glibc(module->elf);
	hook->info.function = found->entry->name ? found->entry->name : found->entry->symbol;
	hook->info.module = module->path;
	hook->info.address = found->vaddr + module->bias;
	hook->info.role = found->entry->role;
	hook->info.kind = found->family->kind;
	hook->info.refused = check_entry(hook, module, found->vaddr, arch, memory);
	hooks->count++;
	return NULL;
}

struct mw_error *mw_hooks_find(struct mw_hooks *hooks, const struct mw_modules *modules, uint32_t first,
			       const struct mw_arch *arch, const struct mw_memory_view *memory, bool heap, bool vm)
{
	for (uint32_t number = first; number < mw_modules_count(modules); number++) {
		const struct mw_module *module = mw_modules_get(modules, number);
		struct mw_found_entry *found = NULL;
		struct mw_error *err;
		size_t count = 0;

		if (module->gone || !module->elf)
			continue;
		err = mw_alloc_find(module->elf, &found, &count);
		if (err && mw_error_kind(err) != MW_ERROR_MEMORY) {
			/* A file that makes no sense defines nothing. */
			mw_error_destroy(err);
			continue;
		}
		for (size_t i = 0; i < count && !err; i++)
			if (found[i].family->kind == MW_KIND_HEAP ? heap : vm)
				err = add_entry(hooks, module, &found[i], arch, memory);
		free(found);
		if (err)
			return err;
	}
	return NULL;
}

void mw_hooks_recheck(struct mw_hooks *hooks, const struct mw_modules *modules, const struct mw_arch *arch,
		      const struct mw_memory_view *memory)
{
	for (size_t i = 0; i < hooks->count; i++) {
		struct mw_hook *hook = &hooks->items[i];
		const struct mw_module *module = mw_modules_get(modules, hook->module);

		if (!hook->foreign && hook->info.refused != unreadable)
			continue;
		hook->foreign = false;
		/* What was unmapped before it could be read, as by an exec during the survey, was not called since. */
		if (!module->gone)
			hook->info.refused = check_entry(hook, module, hook->info.address - module->bias, arch, memory);
		else if (hook->info.refused == unreadable)
			hook->info.refused = NULL;
	}
}

size_t mw_hooks_usable(const struct mw_hooks *hooks, enum mw_kind kind)
{
	size_t usable = 0;

	for (size_t i = 0; i < hooks->count; i++)
		usable += hooks->items[i].info.kind == kind && !hooks->items[i].info.refused;
	return usable;
}

void mw_hooks_deinit(struct mw_hooks *hooks)
{
	free(hooks->items);
	memset(hooks, 0, sizeof(*hooks));
}
