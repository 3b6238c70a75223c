// SPDX-License-Identifier: MIT
/* plan.c: which functions get a jump, and can they have one (jump.h). */
#include "engine/jump/patching.h"

#include "base/vector.h"
#include "tracee/remote.h"

#include <string.h>

#define AROUND (256u << 10) /* code on either side of a function that is looked through for branches into it */

/* Functions that are detoured for what they say, not for memory. */
static const struct {
	const char *symbol;
	uint8_t role;
} helpers[] = {
	{"_dl_debug_state", MW_STUB_LOADER},
	{"_Unwind_Find_FDE", MW_STUB_UNWINDER},
	{"execve", MW_STUB_EXEC},
	{"_exit", MW_STUB_EXIT}, /* exit() ends there, after what atexit() was reported */
	{"_Exit", MW_STUB_EXIT}, /* musl's _exit() and exit() call it, or go on there */
};

#define HELPERS (sizeof(helpers) / sizeof(helpers[0]))

/* What a module's symbols say of it. */
struct found {
	struct {
		uint64_t vaddr, size;
	} helper[HELPERS];
	bool raises;       /* defines _Unwind_RaiseException */
	bool own_unwinder; /* … as an unwinder that asks nobody for frame descriptions */
};

static bool see(void *context, const struct mw_elf_symbol *symbol)
{
	struct found *found = context;

	if (!symbol->function || symbol->ifunc)
		return true;
	for (size_t i = 0; i < HELPERS; i++)
		if (strcmp(symbol->name, helpers[i].symbol) == 0) {
			found->helper[i].vaddr = symbol->vaddr;
			found->helper[i].size = symbol->size;
		}
	found->raises |= strcmp(symbol->name, "_Unwind_RaiseException") == 0;
	found->own_unwinder |= strcmp(symbol->name, "unw_step") == 0 || strcmp(symbol->name, "__unw_step") == 0;
	return true;
}

/* The file's bytes around a function, and the address of the first. */
static const uint8_t *code_around(const struct mw_module *module, mw_addr addr, uint64_t size, mw_addr *base,
				  size_t *available)
{
	uint64_t vaddr = addr - module->bias;

	for (uint64_t before = AROUND;; before /= 2) {
		const uint8_t *bytes = vaddr >= before ? mw_elf_bytes(module->elf, vaddr - before, available) : NULL;

		if (bytes && *available > before) {
			uint64_t wanted = before + size + AROUND;

			*base = addr - before;
			*available = *available < wanted ? *available : (size_t)wanted;
			return bytes;
		}
		if (before == 0)
			return NULL;
	}
}

void jump_plan_detour(const struct jump_process *process, struct jump_patch *patch)
{
	const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);
	size_t available = 0;
	mw_addr base = 0;
	const uint8_t *bytes = code_around(module, patch->addr, patch->size, &base, &available);

	if (!bytes) {
		patch->detour.why = "its code can't be read from its file";
		return;
	}
	process->survey.arch->detour(bytes, available, base, patch->addr, patch->size, &patch->detour);
}

/* Can the function be detoured as the file has it, and is that what stands in memory? */
static void plan_detour(const struct jump_process *process, pid_t tid, struct jump_patch *patch)
{
	uint8_t now[MW_DETOUR_MAX];

	jump_plan_detour(process, patch);
	if (patch->detour.why)
		return;
	if (patch->detour.length > sizeof(now) ||
	    mw_remote_read(tid, patch->detour.at, now, patch->detour.length) != patch->detour.length)
		patch->detour.why = "its code can't be read";
	else if (memcmp(now, patch->detour.bytes, patch->detour.length) != 0)
		patch->detour.why = "another tool has patched it";
}

static struct mw_error *add(struct jump_process *process, pid_t tid, const struct jump_patch *planned)
{
	if (!MW_VECTOR_ROOM(process->patches.items, process->patches.count, process->patches.capacity))
		return mw_error_nomem();
	process->patches.items[process->patches.count] = *planned;
	plan_detour(process, tid, &process->patches.items[process->patches.count]);
	process->patches.count++;
	return NULL;
}

static bool planned(const struct jump_process *process, mw_addr addr)
{
	for (size_t i = 0; i < process->patches.count; i++)
		if (process->patches.items[i].addr == addr && !process->patches.items[i].gone)
			return true;
	return false;
}

static struct mw_error *plan_hooks(struct jump_process *process, pid_t tid)
{
	for (size_t i = 0; i < process->survey.hooks.count; i++) {
		const struct mw_hook *hook = &process->survey.hooks.items[i];
		const struct jump_patch patch = {.number = (uint32_t)i,
						 .hook = (uint32_t)i,
						 .role = (uint8_t)hook->info.role,
						 .module = hook->module,
						 .function = hook->info.function,
						 .addr = hook->info.address,
						 .size = hook->size};

		if (hook->info.refused || mw_modules_get(process->survey.modules, hook->module)->gone ||
		    planned(process, patch.addr))
			continue;
		MW_TRY(add(process, tid, &patch));
	}
	return NULL;
}

static struct mw_error *plan_helpers_of(struct jump_process *process, pid_t tid, const struct mw_module *module)
{
	struct found found = {.raises = false};
	struct mw_error *err = mw_elf_each_symbol(module->elf, see, &found);

	if (err && mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	if (found.raises && (found.own_unwinder || !found.helper[1].vaddr))
		process->patches.odd_unwinder = module->path;
	for (size_t i = 0; i < HELPERS; i++) {
		const struct jump_patch patch = {.number = process->patches.next_helper - 1,
						 .hook = JUMP_NO_HOOK,
						 .role = helpers[i].role,
						 .module = module->number,
						 .function = helpers[i].symbol,
						 .addr = found.helper[i].vaddr + module->bias,
						 .size = found.helper[i].size};

		/* A program's own function of such a name may mean anything. */
		if (!found.helper[i].vaddr || planned(process, patch.addr) ||
		    (helpers[i].role != MW_STUB_UNWINDER &&
		     process->survey.module_class[module->number] != MW_MODULE_RUNTIME))
			continue;
		if (process->patches.next_helper <= process->survey.hooks.count)
			return NULL; /* jump_plan_check says so */
		MW_TRY(add(process, tid, &patch));
		process->patches.next_helper--;
	}
	return NULL;
}

struct mw_error *jump_plan(struct jump_process *process, pid_t tid)
{
	MW_TRY(plan_hooks(process, tid));
	for (; process->patches.helpers_seen < mw_modules_count(process->survey.modules);
	     process->patches.helpers_seen++) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, process->patches.helpers_seen);

		if (!module->gone && module->elf)
			MW_TRY(plan_helpers_of(process, tid, module));
	}
	return NULL;
}

static struct mw_error *refused(const struct jump_process *process, const struct jump_patch *patch)
{
	const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);
	struct mw_error *err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s of %s can't be detoured: %s",
					       patch->function, module->path, patch->detour.why);

	return mw_error_hint(err, "--engine trap can watch process %d", process->pid);
}

static bool may_throw(const struct jump_process *process, const struct jump_patch *patch)
{
	return patch->hook != JUMP_NO_HOOK && process->survey.hooks.items[patch->hook].entry->may_throw;
}

struct mw_error *jump_plan_check(const struct jump_process *process)
{
	const struct jump_patch *unwinder = NULL;
	bool throws = false;

	for (size_t i = 0; i < process->patches.count; i++) {
		const struct jump_patch *patch = &process->patches.items[i];

		if (patch->gone)
			continue;
		throws |= may_throw(process, patch);
		if (!patch->detour.why)
			continue;
		if (patch->hook != JUMP_NO_HOOK)
			return refused(process, patch);
		if (patch->role == MW_STUB_UNWINDER)
			unwinder = patch;
	}
	/* An exception that passes through a call of ours would end the program. */
	if (throws && unwinder)
		return refused(process, unwinder);
	if (throws && process->patches.odd_unwinder)
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "exceptions from operator new could not pass through a detour: %s "
						     "has its own kind of unwinder",
						     process->patches.odd_unwinder),
				     "--engine trap can watch process %d", process->pid);
	if (process->patches.next_helper <= process->survey.hooks.count)
		return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
						     "process %d has %zu allocator functions, more than the jump "
						     "engine can detour",
						     process->pid, process->survey.hooks.count),
				     "--engine trap can watch process %d", process->pid);
	return NULL;
}
