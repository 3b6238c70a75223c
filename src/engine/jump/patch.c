// SPDX-License-Identifier: MIT
/*
 * patch.c: the jumps at the functions' entries, put in and taken out while all threads stand (jump.h).
 *
 * A thread may stand among the instructions that the jump replaces, or in their copies: it is moved to the same
 * instruction on the other side.
 */
#include "engine/jump/lifecycle.h"
#include "engine/jump/patching.h"

#include "base/clock.h"
#include "base/fault.h"
#include "proc/maps.h"
#include "tracee/remote.h"

#include <string.h>

#define BREATH_NS       UINT64_C(1000000)
#define HANDLER_BREATHS 100 /* and, where it takes long to look, no more than … */
#define PATIENCE_NS     UINT64_C(3000000000)
#define WORK_TO_LOOK    5 /* time that it runs for, to the time that it stands to be looked at */

/*
 * What was planned is what stands there? The process ran since: another memwatch, or a debugger, may have come. Whose
 * change stands on another's can't be taken out first.
 */
static struct mw_error *check_planned(const struct jump_process *process, pid_t tid, const struct jump_patch *patch)
{
	uint8_t now[MW_DETOUR_MAX];

	MW_TRY(mw_remote_read_all(tid, patch->detour.at, now, patch->detour.length));
	if (memcmp(now, patch->detour.bytes, patch->detour.length) == 0)
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_DENIED, 0, "another tool has just changed the code of %s in process %d",
				patch->function, process->pid),
		"Another memwatch or a debugger is attaching at the same time: wait until it has detached");
}

static struct mw_error *plant(struct jump_process *process, pid_t tid, struct jump_patch *patch)
{
	uint8_t jump[MW_DETOUR_MAX];

	MW_TRY(mw_fault("attach.patch"));
	MW_TRY(check_planned(process, tid, patch));
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
	for (size_t i = 0; i < process->patches.count; i++) {
		mw_addr pc = process->patches.items[i].trampoline_at && !process->patches.items[i].gone
				     ? to(&process->patches.items[i], regs.general.pc)
				     : 0;

		if (pc)
			return mw_tracee_set_pc(tid, pc);
	}
	return NULL;
}

static struct mw_error *move_all(struct jump_process *process,
				 mw_addr (*to)(const struct jump_patch *patch, mw_addr pc))
{
	for (size_t i = 0; i < process->quiesce.count; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];
		struct mw_error *err = thread->stopped ? move(process, thread->tid, to) : NULL;

		if (err && mw_error_kind(err) != MW_ERROR_GONE)
			return err;
		mw_error_destroy(err);
	}
	return NULL;
}

static struct mw_error *explain_handlers(const struct jump_process *process)
{
	pid_t tid = jump_any_without_cpu(process);

	if (tid)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				       "thread %d of process %d gets no CPU time, so it can't be stopped", (int)tid,
				       process->pid);
	return mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			       "a signal handler of process %d is running, and will return to the first instructions "
			       "of an allocator function",
			       process->pid);
}

/* A handler that is at work will go back to where its signal interrupted: not among instructions that are being
 * replaced. */
struct mw_error *jump_await_handlers(struct jump_process *process)
{
	uint64_t begin = mw_clock_ns(), looked = begin;

	/* Nobody has run since. */
	if (process->quiesce.since_ns && process->seen.handlers_ns == process->quiesce.since_ns)
		return NULL;
	jump_seen_nothing(process);
	for (unsigned i = 0; jump_handler_goes_back(process); i++) {
		uint64_t now = mw_clock_ns(), breath = (now - looked) * WORK_TO_LOOK;

		if (process->quiesce.gone || process->quiesce.execed)
			return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
		if (i == HANDLER_BREATHS || now - begin > PATIENCE_NS)
			return mw_error_hint(explain_handlers(process), "Try again, or use --engine trap");
		MW_TRY(mw_quiesce_run_briefly(&process->quiesce, breath > BREATH_NS ? breath : BREATH_NS));
		looked = mw_clock_ns();
	}
	process->seen.handlers_ns = process->quiesce.since_ns;
	return NULL;
}

static bool same_file(const struct mw_module *module, const struct mw_mapping *mapping)
{
	return mapping->inode == module->inode && mapping->major == module->major && mapping->minor == module->minor;
}

/* Where in its file an address of a module stands. */
static bool file_offset(const struct mw_module *module, mw_addr addr, uint64_t *out)
{
	const struct mw_elf_segment *segments = module->elf->segments;
	size_t count = module->elf->segment_count;
	uint64_t vaddr = addr - module->bias;

	for (size_t i = 0; i < count; i++) {
		if (!segments[i].exec || vaddr - segments[i].vaddr >= segments[i].file_size)
			continue;
		*out = segments[i].offset + (vaddr - segments[i].vaddr);
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
	return bytes && mw_remote_read(jump_live_tid(process), patch->addr, now, size) == size &&
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
	for (size_t i = 0; i < process->patches.count; i++) {
		struct jump_patch *patch = &process->patches.items[i];

		if (!patch->standing && !patch->gone && patch->trampoline_at)
			patch->gone = !jump_patch_in_place(process, patch, maps);
	}
}

/*
 * Who stands where a jump is to be goes on in the copies: first, as memwatch can be killed at any moment, and then all
 * go on as they are.
 */
struct mw_error *jump_patch_all(struct jump_process *process, struct mw_maps *maps)
{
	pid_t tid;

	MW_TRY(jump_await_handlers(process));
	MW_TRY(mw_maps_read(jump_live_tid(process), maps));
	drop_misplaced(process, maps);
	tid = mw_quiesce_pick(&process->quiesce);
	MW_TRY(move_all(process, copy_of));
	for (size_t i = 0; i < process->patches.count; i++) {
		struct jump_patch *patch = &process->patches.items[i];

		if (!patch->standing && !patch->gone && patch->trampoline_at)
			MW_TRY(plant(process, tid, patch));
	}
	return NULL;
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
	for (size_t i = 0; i < process->patches.count; i++) {
		const struct jump_patch *patch = &process->patches.items[i];

		if (patch->trampoline_at && patch->role == MW_STUB_UNWINDER &&
		    patch->detour.at == process->patches.journal.items[entry].addr)
			return true;
	}
	return false;
}

struct mw_error *jump_unpatch_copy(const struct jump_process *process, pid_t child, bool unwinders)
{
	struct mw_error *first = NULL;

	for (size_t i = process->patches.journal.count; i-- > 0;) {
		struct mw_error *err = is_unwinders(process, i) == unwinders
					       ? mw_journal_clean_entry(&process->patches.journal, child, i)
					       : NULL;

		if (first)
			mw_error_destroy(err);
		else
			first = err;
	}
	return first;
}

/* The functions' bytes, but for those of unwinders. */
static struct mw_error *restore_functions(struct jump_process *process, pid_t tid)
{
	struct mw_error *first = NULL;

	for (size_t i = process->patches.journal.count; i-- > 0;) {
		struct mw_error *err =
			is_unwinders(process, i) ? NULL : mw_journal_restore(&process->patches.journal, tid, i);

		if (first)
			mw_error_destroy(err);
		else
			first = err;
	}
	return first;
}

bool jump_unwinder_patched(const struct jump_process *process)
{
	for (size_t i = 0; i < process->patches.count; i++)
		if (process->patches.items[i].standing && process->patches.items[i].role == MW_STUB_UNWINDER)
			return true;
	return false;
}

struct mw_error *jump_unpatch(struct jump_process *process, bool unwinders, const char **taken)
{
	pid_t tid = mw_quiesce_pick(&process->quiesce);
	struct mw_error *err =
		unwinders ? mw_journal_rollback(&process->patches.journal, tid) : restore_functions(process, tid);
	struct mw_error *moved;

	for (size_t i = 0; i < process->patches.count; i++) {
		struct jump_patch *patch = &process->patches.items[i];

		if (patch->role == MW_STUB_UNWINDER && !unwinders)
			continue;
		if (!err && taken_by_another(process, patch, tid))
			*taken = patch->function;
		patch->standing = false;
	}
	moved = jump_move_out(process);
	if (!err)
		return moved;
	mw_error_destroy(moved);
	return err;
}
