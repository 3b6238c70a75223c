// SPDX-License-Identifier: MIT
/*
 * patch.c: which functions get a jump, and the jumps at their entries, put in and taken out while all threads stand
 * (jump.h).
 *
 * A thread may stand among the instructions that the jump replaces, or in their copies: it is moved to the same
 * instruction on the other side.
 */
#include "engine/jump/jump.h"

#include "proc/maps.h"

#include <string.h>

#define AROUND (256u << 10) /* code on either side of a function that is looked through for branches into it */

/* Functions that are detoured for what they say, not for memory; … and such as tell of a module's unwinder. */
enum { FIND_FDE = 1, HELPERS = 5, RAISES = HELPERS, STEP, OWN_STEP, NAMES };

static const struct {
	const char *symbol;
	uint8_t role;
} helpers[NAMES] = {
	{"_dl_debug_state", MW_STUB_LOADER},
	[FIND_FDE] = {"_Unwind_Find_FDE", MW_STUB_UNWINDER},
	{"execve", MW_STUB_EXEC},
	{"_exit", MW_STUB_EXIT}, /* exit() ends there, after what atexit() was reported */
	{"_Exit", MW_STUB_EXIT}, /* musl's _exit() and exit() call it, or go on there */
	[RAISES] = {"_Unwind_RaiseException", 0},
	[STEP] = {"unw_step", 0}, /* an unwinder that asks nobody for frame descriptions */
	[OWN_STEP] = {"__unw_step", 0},
};

/* The file's bytes around a function, and the vaddr of the first. */
static const uint8_t *code_around(const struct mw_elf *elf, uint64_t vaddr, uint64_t size, uint64_t *base,
				  size_t *available)
{
	for (uint64_t before = AROUND;; before /= 2) {
		const uint8_t *bytes = vaddr >= before ? mw_elf_bytes(elf, vaddr - before, available) : NULL;

		if (bytes && *available > before) {
			uint64_t wanted = before + size + AROUND;

			*base = vaddr - before;
			*available = *available < wanted ? *available : (size_t)wanted;
			return bytes;
		}
		if (before == 0)
			return NULL;
	}
}

/* A function in its file. */
struct place {
	const struct mw_arch *arch;
	uint64_t vaddr, size;
};

/* A detour at vaddr. Looking for branches into a function takes long, and depends on the file alone. */
static struct mw_error *make_detour(struct mw_elf *elf, const void *context, void **out)
{
	const struct place *place = context;
	struct mw_detour *detour = calloc(1, sizeof(*detour));
	size_t available = 0;
	uint64_t base = 0;
	const uint8_t *bytes;

	if (!detour)
		return mw_error_nomem();
	bytes = code_around(elf, place->vaddr, place->size, &base, &available);
	if (bytes)
		place->arch->detour(bytes, available, base, place->vaddr, place->size, detour);
	else
		detour->why = "its code can't be read from its file";
	*out = detour;
	return NULL;
}

void jump_plan_detour(const struct jump_process *process, struct jump_patch *patch)
{
	static const struct mw_elf_fact_kind kind = {make_detour, free};
	const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);
	const struct place place = {process->survey.arch, patch->addr - module->bias, patch->size};
	const uint64_t key[2] = {place.vaddr, place.size};
	const void *detour = NULL;

	if (!mw_error_none(mw_elf_fact(module->elf, &kind, key, &place, &detour))) {
		patch->detour.why = "there was no memory to look at its code";
		return;
	}
	patch->detour = *(const struct mw_detour *)detour;
	patch->detour.at += module->bias;
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

static struct mw_error *add_patch(struct jump_process *process, pid_t tid, const struct jump_patch *planned)
{
	if (!MW_VECTOR_ROOM(process->patches.items, process->patches.count, process->patches.capacity))
		return mw_error_nomem();
	process->patches.items[process->patches.count] = *planned;
	plan_detour(process, tid, &process->patches.items[process->patches.count]);
	process->patches.count++;
	return NULL;
}

static bool is_planned(const struct jump_process *process, mw_addr addr)
{
	MW_EACH(patch, process->patches.items, process->patches.count)
		if (patch->addr == addr && !patch->gone)
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
		    is_planned(process, patch.addr))
			continue;
		MW_TRY(add_patch(process, tid, &patch));
	}
	return NULL;
}

static struct mw_error *plan_helpers_of(struct jump_process *process, pid_t tid, const struct mw_module *module)
{
	struct mw_named_symbol found[NAMES] = {{NULL, 0, 0}};

	for (size_t i = 0; i < NAMES; i++)
		found[i].name = helpers[i].symbol;
	MW_TRY(mw_error_if_memory(mw_elf_find_named(module->elf, found, NAMES)));
	if (found[RAISES].vaddr && (found[STEP].vaddr || found[OWN_STEP].vaddr || !found[FIND_FDE].vaddr))
		process->patches.odd_unwinder = module->path;
	for (size_t i = 0; i < HELPERS; i++) {
		const struct jump_patch patch = {.number = process->patches.next_helper - 1,
						 .hook = JUMP_NO_HOOK,
						 .role = helpers[i].role,
						 .module = module->number,
						 .function = helpers[i].symbol,
						 .addr = found[i].vaddr + module->bias,
						 .size = found[i].size};

		/* A program's own function of such a name may mean anything. */
		if (!found[i].vaddr || is_planned(process, patch.addr) ||
		    (helpers[i].role != MW_STUB_UNWINDER &&
		     process->survey.module_class[module->number] != MW_MODULE_RUNTIME))
			continue;
		if (process->patches.next_helper <= process->survey.hooks.count)
			return NULL; /* jump_plan_check says so */
		MW_TRY(add_patch(process, tid, &patch));
		process->patches.next_helper--;
	}
	return NULL;
}

struct mw_error *jump_plan(struct jump_process *process, pid_t tid)
{
	const struct mw_module *module;

	MW_TRY(plan_hooks(process, tid));
	for (uint32_t i = process->patches.helpers_seen; (module = mw_modules_next(process->survey.modules, &i));)
		MW_TRY(plan_helpers_of(process, tid, module));
	process->patches.helpers_seen = mw_modules_count(process->survey.modules);
	return NULL;
}

static struct mw_error *refused(const struct jump_process *process, const struct jump_patch *patch)
{
	const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);

	return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s of %s can't be detoured: %s", patch->function, module->path,
			       patch->detour.why);
}

static struct mw_error *check_plan(const struct jump_process *process)
{
	const struct jump_patch *unwinder = NULL;
	bool throws = false;

	MW_EACH(patch, process->patches.items, process->patches.count) {
		if (patch->gone)
			continue;
		throws |= patch->hook != JUMP_NO_HOOK && process->survey.hooks.items[patch->hook].entry->may_throw;
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
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "exceptions from operator new could not pass through a detour: %s has its own "
				       "kind of unwinder",
				       process->patches.odd_unwinder);
	if (process->patches.next_helper <= process->survey.hooks.count)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "process %d has %zu allocator functions, more than the jump engine can detour",
				       process->pid, process->survey.hooks.count);
	return NULL;
}

struct mw_error *jump_plan_check(const struct jump_process *process)
{
	return mw_error_hint(check_plan(process), "--engine trap can watch process %d", process->pid);
}

static struct mw_error *plant(struct jump_process *process, pid_t tid, struct jump_patch *patch)
{
	uint8_t jump[MW_DETOUR_MAX];

	MW_TRY(mw_fault("attach.patch"));
	MW_TRY(mw_survey_unchanged(&process->survey, tid, patch->function, patch->detour.at, patch->detour.bytes,
				   patch->detour.length));
	MW_TRY(process->survey.arch->detour_jump(&patch->detour, patch->trampoline_at, jump));
	MW_TRY(mw_journal_plant(&process->patches.journal, tid, patch->detour.at, jump, patch->detour.jump,
				&patch->journal));
	patch->standing = true;
	return NULL;
}

/* The copy of the instruction at `pc`, or 0. */
static mw_addr copy_of(const struct jump_patch *patch, mw_addr pc)
{
	/* The first instruction is where the jump stands: to go there is right. */
	for (uint8_t i = 1; i < patch->detour.count; i++)
		if (pc == patch->detour.at + patch->detour.offset[i] && pc < patch->detour.at + patch->detour.jump)
			return patch->trampoline_at + patch->trampoline.copied[i];
	return 0;
}

/* The instruction that the copy at `pc` is of, or 0: where the jump still stands there is none. */
static mw_addr original_of(const struct jump_patch *patch, mw_addr pc)
{
	if (patch->standing)
		return 0;
	for (uint8_t i = 0; i < patch->detour.count; i++)
		if (pc == patch->trampoline_at + patch->trampoline.copied[i])
			return patch->detour.at + patch->detour.offset[i];
	/* The way back: a jump, or several instructions of one. */
	if (patch->detour.count && !patch->detour.ends &&
	    pc == patch->trampoline_at + patch->trampoline.copied[patch->detour.count - 1])
		return patch->detour.at + patch->detour.length;
	return 0;
}

/* Move those that stand where `to` says that there is another place for them. */
static struct mw_error *move(struct jump_process *process, pid_t tid,
			     mw_addr (*to)(const struct jump_patch *patch, mw_addr pc))
{
	struct mw_tracee_regs regs;

	MW_TRY(mw_tracee_get_regs(tid, &regs));
	MW_EACH(patch, process->patches.items, process->patches.count) {
		mw_addr pc = patch->trampoline_at && !patch->gone ? to(patch, regs.general.pc) : 0;

		if (pc)
			return mw_tracee_set_pc(tid, pc);
	}
	return NULL;
}

static struct mw_error *move_all(struct jump_process *process,
				 mw_addr (*to)(const struct jump_patch *patch, mw_addr pc))
{
	MW_EACH(thread, process->quiesce.threads, process->quiesce.count)
		if (thread->stopped)
			MW_TRY(mw_error_unless_gone(move(process, thread->tid, to)));
	return NULL;
}

static bool same_file(const struct mw_module *module, const struct mw_mapping *mapping)
{
	return mapping->inode == module->inode && mapping->major == module->major && mapping->minor == module->minor;
}

/* Where in its file an address of a module stands. */
static bool file_offset(const struct mw_module *module, mw_addr addr, uint64_t *out)
{
	uint64_t vaddr = addr - module->bias;

	MW_EACH(segment, module->elf->segments, module->elf->segment_count) {
		*out = segment->offset + (vaddr - segment->vaddr);
		if (segment->exec && vaddr - segment->vaddr < segment->file_size)
			return true;
	}
	return false;
}

/* Does the function stand there as its file has it? */
static bool same_code(const struct jump_process *process, const struct mw_module *module,
		      const struct jump_patch *patch)
{
	uint8_t now[JUMP_PAGE];
	size_t size = patch->size < sizeof(now) ? (size_t)patch->size : sizeof(now);
	const uint8_t *bytes;

	if (size < patch->detour.length)
		size = patch->detour.length;
	bytes = mw_elf_span(module->elf, patch->addr - module->bias, size);
	return bytes && mw_remote_read(mw_live_thread(process->pid), patch->addr, now, size) == size &&
	       memcmp(now, bytes, size) == 0;
}

bool jump_patch_in_place(const struct jump_process *process, const struct jump_patch *patch, const struct mw_maps *maps)
{
	const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);
	const struct mw_mapping *mapping = mw_maps_find(maps, patch->detour.at);
	uint64_t offset;

	if (module->gone || !module->elf || !mapping || !mapping->exec ||
	    mapping->end - patch->detour.at < patch->detour.length)
		return false;
	/* A program may have moved its code to other pages. */
	if (!mapping->inode)
		return same_code(process, module, patch);
	return same_file(module, mapping) && file_offset(module, patch->detour.at, &offset) &&
	       offset == mapping->offset + (patch->detour.at - mapping->start);
}

/* What was planned for libraries that were unloaded since is not done: something else may lie there, and may even begin
 * in the same way. */
static void drop_misplaced(struct jump_process *process, const struct mw_maps *maps)
{
	MW_EACH_MUTABLE(patch, process->patches.items, process->patches.count)
		if (jump_is_due(patch))
			patch->gone = !jump_patch_in_place(process, patch, maps);
}

/*
 * Who stands where a jump is to be goes on in the copies: first, as memwatch can be killed at any moment, and then all
 * go on as they are.
 */
struct mw_error *jump_patch_all(struct jump_process *process, struct mw_maps *maps)
{
	pid_t tid;

	MW_TRY(jump_await_handlers(process));
	MW_TRY(mw_maps_read(mw_live_thread(process->pid), maps));
	drop_misplaced(process, maps);
	tid = mw_quiesce_pick(&process->quiesce);
	MW_TRY(move_all(process, copy_of));
	MW_EACH_MUTABLE(patch, process->patches.items, process->patches.count)
		if (jump_is_due(patch))
			MW_TRY(plant(process, tid, patch));
	return mw_survey_lead_pointers(&process->survey, tid, &process->patches.journal);
}

struct mw_error *jump_move_out(struct jump_process *process)
{
	return move_all(process, original_of);
}

/* Another tool's breakpoint stands in a jump of ours: what it puts back there one day is the jump. */
static bool taken_by_another(const struct jump_process *process, const struct jump_patch *patch, pid_t tid)
{
	const struct mw_patch *planted = &process->patches.journal.items[patch->journal];
	uint8_t now[MW_OOL_MAX];
	size_t ours = 0;

	if (patch->gone || !patch->standing || mw_remote_read(tid, planted->addr, now, planted->size) != planted->size)
		return false;
	for (size_t i = 0; i < planted->size; i++)
		ours += now[i] == planted->planted[i];
	return ours > planted->size / 2u && memcmp(now, planted->original, planted->size) != 0;
}

/* Is that journal entry the jump of an unwinder's function? */
static bool is_unwinders(const struct jump_process *process, size_t entry)
{
	MW_EACH(patch, process->patches.items, process->patches.count) {
		if (patch->trampoline_at && patch->role == MW_STUB_UNWINDER &&
		    patch->detour.at == process->patches.journal.items[entry].addr)
			return true;
	}
	return false;
}

struct mw_error *jump_unpatch_copy(const struct jump_process *process, pid_t child, bool unwinders)
{
	struct mw_error *first = NULL;

	for (size_t i = process->patches.journal.count; i-- > 0;)
		if (is_unwinders(process, i) == unwinders)
			first = mw_error_first(first, mw_journal_clean_entry(&process->patches.journal, child, i));
	return first;
}

/* The functions' bytes, but for those of unwinders. */
static struct mw_error *restore_functions(struct jump_process *process, pid_t tid)
{
	struct mw_error *first = NULL;

	for (size_t i = process->patches.journal.count; i-- > 0;)
		if (!is_unwinders(process, i))
			first = mw_error_first(first, mw_journal_restore(&process->patches.journal, tid, i));
	return first;
}

static bool unwinder_patched(const struct jump_process *process)
{
	MW_EACH(patch, process->patches.items, process->patches.count)
		if (patch->standing && patch->role == MW_STUB_UNWINDER)
			return true;
	return false;
}

/* The bytes of functions, `unwinders` too; and PCs out of what was copied. */
static struct mw_error *unpatch(struct jump_process *process, bool unwinders, const char **taken)
{
	pid_t tid = mw_quiesce_pick(&process->quiesce);
	struct mw_error *err =
		unwinders ? mw_journal_rollback(&process->patches.journal, tid) : restore_functions(process, tid);

	MW_EACH_MUTABLE(patch, process->patches.items, process->patches.count) {
		if (patch->role == MW_STUB_UNWINDER && !unwinders)
			continue;
		if (!err && taken_by_another(process, patch, tid))
			*taken = patch->function;
		/* A jump that could not be taken out still covers the instructions behind its first byte. */
		patch->standing = patch->standing && process->patches.journal.items[patch->journal].standing;
	}
	return mw_error_first(err, jump_move_out(process));
}

struct mw_error *jump_unpatch_all(struct jump_process *process, struct mw_maps *maps,
				  void (*look)(struct jump_process *process, void *context), void *context,
				  const char **taken, size_t *left)
{
	struct mw_error *err = unpatch(process, false, taken);

	if (!err)
		err = jump_await_calls(process, maps, look, context, left);
	if (!unwinder_patched(process) || !jump_still_there(process))
		return err;
	/* After calls in flight have come back: one may still throw. */
	err = mw_error_first(err, mw_error_unless_gone(unpatch(process, true, taken)));
	return err || *left ? err : jump_await_calls(process, maps, look, context, left);
}
