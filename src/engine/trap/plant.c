// SPDX-License-Identifier: MIT
/* plant.c: which breakpoints a process gets, and when (trap.h). */
#include "base/fault.h"
#include "engine/trap/trap.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A segment of a module's code, as its file has it. */
struct text {
	const uint8_t *bytes;
	size_t size;
	mw_addr base; /* where it is in the process */
};

/* The next one; false: there is no more. */
static bool next_text(const struct mw_module *module, size_t *position, struct text *out)
{
	while (*position < module->elf->segment_count) {
		const struct mw_elf_segment *segment = &module->elf->segments[(*position)++];

		out->base = segment->vaddr + module->bias;
		out->bytes = segment->exec ? mw_elf_bytes(module->elf, segment->vaddr, &out->size) : NULL;
		if (out->bytes)
			return true;
	}
	return false;
}

/* What a handler of the program returns to: 0 where there is none in its code. */
static mw_addr find_restorer(const struct trap_process *process)
{
	const struct mw_module *module;
	struct text text;

	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));)
		for (size_t j = 0; next_text(module, &j, &text);)
			for (size_t at = 0; at < text.size; at++)
				if (process->arch->is_signal_return(text.bytes + at, text.size - at))
					return text.base + at;
	return 0;
}

mw_addr trap_restorer(struct trap_process *process)
{
	if (!process->signals.restorer)
		process->signals.restorer = find_restorer(process);
	return process->signals.restorer;
}

/* Other bytes that are about to be changed, at most 8; `last`: put back when the actions of signals are. */
static struct mw_error *note_bytes(struct trap_process *process, pid_t tid, mw_addr addr, const void *bytes,
				   size_t size, bool last, bool *possible)
{
	struct trap_rescue *rescue = &process->rescue;
	struct mw_rescue_bytes entry = {.addr = addr, .size = (uint8_t)size, .last = last};

	*possible = rescue->base && rescue->change_count < MW_RESCUE_CHANGES && size <= sizeof(entry.after);
	if (!*possible)
		return NULL;
	memcpy(entry.after, bytes, size);
	MW_TRY(mw_remote_read_all(tid, addr, entry.before, size));
	MW_TRY(TRAP_RESCUE_PUT(process, tid, changes[rescue->change_count], entry));
	rescue->change_count++;
	return TRAP_RESCUE_PUT(process, tid, change_count, rescue->change_count);
}

/*
 * The C library's own sections under which every signal is blocked. It makes threads and starts programs with all
 * signals blocked, and gives memory back there. The set of all signals is a constant that it refers to, and the compiler
 * may have others refer to it; so these system calls are made to refer to one of ours, which lacks SIGTRAP:
 *
 *      before                                 after
 *      lea  all(%rip), %rsi                   lea  ours(%rip), %rsi
 *      mov  $14, %eax                         mov  $14, %eax
 *      syscall                                syscall
 *
 * Threads end under a set that is made there, or that lacks some of the library's own signals.
 *
 * All threads are held; none stands amidst an instruction.
 */
#define SETS        4                   /* different ones */
#define LIBRARY_OWN (UINT64_C(7) << 31) /* signals of the C libraries' own */
#define TRAP_BIT    (UINT64_C(1) << (SIGTRAP - 1))

struct set {
	uint64_t theirs; /* 0: none yet */
	mw_addr ours;    /* 0: there is no room */
};

static struct mw_error *patch(struct trap_process *process, pid_t tid, mw_addr addr, const void *bytes, size_t size,
			      bool *done)
{
	MW_TRY(note_bytes(process, tid, addr, bytes, size, false, done));
	return *done ? mw_journal_plant(&process->journal, tid, addr, bytes, size, NULL) : NULL;
}

/* Our set in the place of `theirs`, near to the module's code; 0 where there is no room. */
static struct mw_error *make_set(struct trap_process *process, pid_t tid, uint32_t module, uint64_t theirs,
				 struct set *out)
{
	const uint64_t set = theirs & ~TRAP_BIT;
	bool done = false;
	mw_addr at;

	*out = (struct set){.theirs = theirs};
	MW_TRY(trap_cave_take(process, module, &at));
	if (at)
		MW_TRY(patch(process, tid, at, &set, sizeof(set), &done));
	out->ours = done ? at : 0;
	return NULL;
}

static struct mw_error *refer_to(struct trap_process *process, pid_t tid, mw_addr operand, mw_addr set)
{
	int64_t far = (int64_t)(set - (operand + sizeof(int32_t)));
	int32_t displacement = (int32_t)far;
	bool done;

	return far == displacement ? patch(process, tid, operand, &displacement, sizeof(displacement), &done) : NULL;
}

/* A set that is made by an instruction: one byte of it has the bit. */
static struct mw_error *change_constants(struct trap_process *process, pid_t tid, const struct text *text)
{
	size_t operand, at = 0;

	while ((at = process->arch->mask_constant(text->bytes, text->size, at, &operand)) < text->size) {
		const uint8_t changed = text->bytes[operand] & (uint8_t)~TRAP_BIT;
		uint8_t now[sizeof(uint64_t)];
		bool done;

		if (mw_remote_read(tid, text->base + operand, now, sizeof(now)) == sizeof(now) &&
		    memcmp(now, text->bytes + operand, sizeof(now)) == 0)
			MW_TRY(patch(process, tid, text->base + operand, &changed, sizeof(changed), &done));
	}
	return NULL;
}

/* The place of a set in `sets`, made where it is a new one; NULL where there is no room. */
static struct mw_error *our_set(struct trap_process *process, pid_t tid, uint32_t module, uint64_t theirs,
				struct set sets[SETS], mw_addr *out)
{
	*out = 0;
	for (size_t i = 0; i < SETS; i++) {
		if (!sets[i].theirs)
			MW_TRY(make_set(process, tid, module, theirs, &sets[i]));
		if (sets[i].theirs != theirs)
			continue;
		*out = sets[i].ours;
		return NULL;
	}
	return NULL;
}

static struct mw_error *refer_all(struct trap_process *process, pid_t tid, uint32_t module, const struct text *text,
				  struct set sets[SETS])
{
	size_t operand, at = 0;
	mw_addr set, ours;

	while ((at = process->arch->mask_set(text->bytes, text->size, text->base, at, &operand, &set)) < text->size) {
		uint64_t signals;
		int32_t now;

		/* What stands there, not what the file says. */
		if (mw_remote_read(tid, set, &signals, sizeof(signals)) != sizeof(signals) ||
		    (signals | LIBRARY_OWN) != UINT64_MAX ||
		    mw_remote_read(tid, text->base + operand, &now, sizeof(now)) != sizeof(now) ||
		    memcmp(&now, text->bytes + operand, sizeof(now)) != 0)
			continue;
		MW_TRY(our_set(process, tid, module, signals, sets, &ours));
		if (ours)
			MW_TRY(refer_to(process, tid, text->base + operand, ours));
	}
	return NULL;
}

static struct mw_error *sections_open(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	struct set sets[SETS] = {{0}};
	struct text text;

	for (size_t i = 0; next_text(module, &i, &text);) {
		MW_TRY(refer_all(process, tid, module->number, &text, sets));
		MW_TRY(change_constants(process, tid, &text));
	}
	return NULL;
}

/*
 * The C library's system calls that set the actions of signals are made by code of ours (stub/rescue/rescue.c): in the
 * thread that makes them, so that they are made or not made, but never half, whatever becomes of memwatch. Where it can
 * be, the library's code jumps there, which needs no signal and nobody who serves it; else a breakpoint is put there.
 *
 *      attach      jumps stand before SIGTRAP is led to ours
 *      detach      … and go when it leads to the program's own action again, after the last breakpoint
 */
typedef struct mw_error *found(struct trap_process *process, pid_t tid, mw_addr insn);

static struct mw_error *each_call(struct trap_process *process, pid_t tid, const struct mw_module *module,
				  found *function)
{
	size_t length;
	const uint8_t *call = mw_regs_syscall_insn(&length);
	struct text text;

	for (size_t i = 0; process->rescue.base && next_text(module, &i, &text);) {
		size_t insn, at = 0;

		while ((at = process->arch->action_call(text.bytes, text.size, at, &insn)) < text.size) {
			uint8_t now[MW_INSN_MAX];

			/* What stands there, not what the file says. */
			if (mw_remote_read(tid, text.base + insn, now, length) == length &&
			    memcmp(now, call, length) == 0)
				MW_TRY(function(process, tid, text.base + insn));
		}
	}
	return NULL;
}

/* The code that jumps to ours is written down before it is changed, as all that is. */
static struct mw_error *redirect(struct trap_process *process, pid_t tid, mw_addr insn)
{
	struct trap_acts *acts = &process->acts;
	mw_addr at = insn - MW_ACTION_JUMP, trampoline_at;
	uint8_t before[MW_ACTION_JUMP], jump[MW_ACTION_JUMP], trampoline[MW_ACTION_TRAMPOLINE];
	bool possible;

	trampoline_at = process->rescue.base + MW_RESCUE_CODE - (acts->count + 1) * MW_ACTION_TRAMPOLINE;
	if (acts->count == TRAP_ACTS || mw_remote_read(tid, at, before, sizeof(before)) != sizeof(before) ||
	    !process->arch->action_jump(before, insn, trampoline_at, process->rescue.act, jump, trampoline))
		return NULL;
	MW_TRY(trap_rescue_put(process, tid, trampoline_at, trampoline, sizeof(trampoline)));
	MW_TRY(note_bytes(process, tid, at, jump, sizeof(jump), true, &possible));
	if (!possible)
		return NULL;
	acts->insns[acts->count++] = insn;
	/* Nobody is notified of it when the program does. */
	process->signals.trap_action_changes = true;
	return mw_journal_plant(&acts->journal, tid, at, jump, sizeof(jump), NULL);
}

static bool is_redirected(const struct trap_process *process, mw_addr insn)
{
	for (size_t i = 0; i < process->acts.count; i++)
		if (process->acts.insns[i] == insn)
			return true;
	return false;
}

/* It can't be displaced, and need not be: it is carried out elsewhere. */
static struct mw_error *catch (struct trap_process *process, pid_t tid, mw_addr insn)
{
	struct trap_breakpoint *breakpoint;
	size_t length;
	const uint8_t *call = mw_regs_syscall_insn(&length);
	bool possible;

	if (is_redirected(process, insn))
		return NULL;
	MW_TRY(trap_breakpoint_get(process, insn, &breakpoint));
	process->arch->plan(call, length, insn, &breakpoint->plan);
	breakpoint->action = true;
	return trap_breakpoint_plant(process, tid, breakpoint, &possible);
}

/* A thread that stands between the number's load and the call would make it by itself. */
static struct mw_error *send_back(struct trap_process *process)
{
	const struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		struct mw_tracee_regs regs;

		if (!thread->stopped)
			continue;
		MW_TRY(mw_error_unless_gone(mw_tracee_get_regs(thread->tid, &regs)));
		if (is_redirected(process, regs.general.pc))
			MW_TRY(mw_error_unless_gone(mw_tracee_set_pc(thread->tid, regs.general.pc - MW_ACTION_JUMP)));
	}
	return NULL;
}

/* Look at the modules that are new in the table: hooks, classes. */
static struct mw_error *take_in_modules(struct trap_process *process, pid_t tid)
{
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	process->freeing_hooks = 0;
	for (size_t i = 0; i < process->survey.hooks.count; i++)
		process->freeing_hooks += process->survey.hooks.items[i].info.role == MW_ROLE_FREE;
	return NULL;
}

static struct mw_error *refresh(struct trap_process *process, pid_t tid, size_t *removed)
{
	size_t added = 0;

	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, removed));
	if ((added || *removed) && process->unwinder)
		process->unwinder->ops->flush(process->unwinder);
	return NULL;
}

/* Before the first breakpoint: a debugger's own, or another memwatch's jump, may have been planted since the survey. */
static struct mw_error *check_unchanged(const struct trap_process *process, pid_t tid)
{
	MW_EACH(hook, process->survey.hooks.items, process->survey.hooks.count)
		if (!hook->info.refused && !mw_modules_get(process->survey.modules, hook->module)->gone)
			MW_TRY(mw_survey_unchanged(&process->survey, tid, hook->info.function, hook->info.address,
						   hook->plan.bytes, hook->plan.length));
	return NULL;
}

static struct mw_error *plant_hooks(struct trap_process *process, pid_t tid)
{
	const struct mw_engine_options *options = &process->engine->options;

	for (size_t i = 0; i < process->survey.hooks.count; i++) {
		struct mw_hook *hook = &process->survey.hooks.items[i];
		struct trap_breakpoint *breakpoint;
		bool possible;

		if (hook->info.refused || mw_modules_get(process->survey.modules, hook->module)->gone)
			continue;
		if (hook->info.kind == MW_KIND_HEAP && !options->track_heap)
			continue;
		MW_TRY(trap_breakpoint_get(process, hook->info.address, &breakpoint));
		if (breakpoint->hook != TRAP_NO_HOOK)
			continue;
		MW_TRY(mw_fault("attach.plant"));
		if (!breakpoint->standing)
			breakpoint->plan = hook->plan;
		MW_TRY(trap_breakpoint_plant(process, tid, breakpoint, &possible));
		if (possible)
			breakpoint->hook = (uint32_t)i;
		else
			hook->info.refused = "its first instruction can't be emulated and there is no room for a copy";
	}
	return mw_survey_lead_pointers(&process->survey, tid, &process->journal);
}

/* A breakpoint that is no hook, at an instruction read from memory. Quietly none where it can't be. */
static struct mw_error *plant_helper(struct trap_process *process, pid_t tid, mw_addr addr,
				     struct trap_breakpoint **out)
{
	struct trap_breakpoint *breakpoint;
	uint8_t code[MW_INSN_MAX];
	bool possible;

	*out = NULL;
	if (mw_remote_read(tid, addr, code, sizeof(code)) != sizeof(code))
		return NULL;
	MW_TRY(trap_breakpoint_get(process, addr, &breakpoint));
	if (!breakpoint->standing) {
		process->arch->plan(code, sizeof(code), addr, &breakpoint->plan);
		if (breakpoint->plan.how == MW_INSN_REFUSE)
			return NULL;
		MW_TRY(trap_breakpoint_plant(process, tid, breakpoint, &possible));
		if (!possible)
			return NULL;
	}
	*out = breakpoint;
	return NULL;
}

/* The program's entry point: executed once, long ago, so a breakpoint there is hit by nothing but our own return
 * addresses. */
static struct mw_error *plant_trampoline(struct trap_process *process, pid_t tid)
{
	struct trap_breakpoint *breakpoint;
	uint64_t entry;
	bool possible;

	if (process->planted.trampoline || !mw_auxv_read(tid, AT_ENTRY, &entry) ||
	    !mw_modules_find(process->survey.modules, entry))
		return NULL;
	MW_TRY(plant_helper(process, tid, entry, &breakpoint));
	if (breakpoint) {
		breakpoint->trampoline = true;
		MW_TRY(trap_breakpoint_plant(process, tid, breakpoint, &possible));
		process->planted.trampoline = entry;
	}
	return NULL;
}

/*
 * Functions that are watched for what they say of the target, not for memory: the empty one that the dynamic loader
 * calls, for debuggers, before and after it changes what is mapped, and those that set signal masks. From 2.38 on glibc
 * has strlcpy(), and children of posix_spawn() have no actions.
 */
enum { LOADER, MASK, OTHER_MASK, HELPERS, LIBC = HELPERS, STRLCPY, NAMES };

static const struct mw_named_symbol names[NAMES] = {
	[LOADER] = {"_dl_debug_state", 0, 0}, [MASK] = {"pthread_sigmask", 0, 0},
	[OTHER_MASK] = {"sigprocmask", 0, 0}, [LIBC] = {"gnu_get_libc_version", 0, 0},
	[STRLCPY] = {"strlcpy", 0, 0},
};

/* Does a module have the C library's functions for us? A program's own function of such a name may mean anything. */
static bool is_library(const struct trap_process *process, const struct mw_module *module)
{
	enum mw_module_class class = process->survey.module_class[module->number];

	return class == MW_MODULE_RUNTIME || (class != MW_MODULE_ALLOCATOR && module->elf->is_static);
}

/* Before the first breakpoint: SIGTRAP goes to what rescue.c has put in, which the program is not to see. */
static struct mw_error *lead_signals(struct trap_process *process, pid_t tid)
{
	const struct trap_thread *thread = trap_usable_thread(process);
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));)
		if (is_library(process, module))
			MW_TRY(each_call(process, tid, module, redirect));
	if (process->acts.count > 0)
		MW_TRY(send_back(process));
	MW_TRY(trap_rescue_begin(process, thread ? thread->tid : tid));
	MW_TRY(trap_areas_map(process, thread ? thread->tid : tid));
	MW_TRY(mw_fault("attach.areas"));
	return trap_masks_open(process, tid);
}

static struct mw_error *plant_helpers_of(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	struct mw_named_symbol named[NAMES];

	memcpy(named, names, sizeof(named));
	MW_TRY(mw_error_if_memory(mw_elf_find_named(module->elf, named, NAMES)));
	if (!is_library(process, module))
		return NULL;
	if (named[LIBC].vaddr && named[STRLCPY].vaddr && process->rescue.base)
		MW_TRY(TRAP_RESCUE_PUT(process, tid, clears, 1));
	if (process->holding || process->launched)
		MW_TRY(sections_open(process, tid, module));
	MW_TRY(each_call(process, tid, module, catch));
	for (size_t i = 0; i < HELPERS; i++) {
		struct trap_breakpoint *breakpoint;
		bool possible;

		if (!named[i].vaddr)
			continue;
		MW_TRY(plant_helper(process, tid, named[i].vaddr + module->bias, &breakpoint));
		if (!breakpoint)
			continue;
		breakpoint->loader |= i == LOADER;
		breakpoint->mask |= i != LOADER;
		MW_TRY(trap_breakpoint_plant(process, tid, breakpoint, &possible));
	}
	return NULL;
}

static struct mw_error *plant_helpers(struct trap_process *process, pid_t tid, uint32_t first)
{
	const struct mw_module *module;

	while ((module = mw_modules_next(process->survey.modules, &first)))
		MW_TRY(plant_helpers_of(process, tid, module));
	return NULL;
}

/* A launched program whose loader has not mapped its libraries yet. */
static bool still_loading(const struct trap_process *process)
{
	void *value;

	if (!process->launched)
		return false;
	for (size_t i = 0; mw_map_next(&process->planted.breakpoints, &i, &value);)
		if (((const struct trap_breakpoint *)value)->loader)
			return true;
	return false;
}

struct mw_error *trap_plant(struct trap_process *process, pid_t tid)
{
	size_t removed;

	MW_TRY(refresh(process, tid, &removed));
	MW_TRY(take_in_modules(process, tid));
	if (!process->launched)
		MW_TRY(mw_survey_check(&process->survey));
	MW_TRY(check_unchanged(process, tid));
	MW_TRY(lead_signals(process, tid));
	MW_TRY(mw_fault("attach.trampoline"));
	MW_TRY(plant_trampoline(process, tid));
	MW_TRY(mw_fault("attach.loader"));
	MW_TRY(plant_helpers(process, tid, 0));
	if (process->launched && !still_loading(process))
		MW_TRY(mw_survey_check(&process->survey));
	return plant_hooks(process, tid);
}

/* The module is unmapped: what we wrote there is gone, and the addresses may be another's soon. */
static struct mw_error *forget_module(struct trap_process *process, pid_t tid, const struct mw_module *module)
{
	void *value;

	mw_journal_forget(&process->journal, module->start, module->end);
	mw_journal_forget(&process->acts.journal, module->start, module->end);
	for (size_t i = 0; mw_map_next(&process->planted.breakpoints, &i, &value);) {
		struct trap_breakpoint *breakpoint = value;

		if (breakpoint->addr - module->start >= module->end - module->start)
			continue;
		MW_TRY(trap_rescue_forget(process, tid, breakpoint->addr));
		mw_map_remove(&process->planted.breakpoints, breakpoint->addr);
		if (breakpoint->slot)
			mw_map_remove(&process->planted.slots, breakpoint->slot);
		free(breakpoint);
		i = 0; /* that has changed the map */
	}
	for (size_t i = 0; i < process->planted.cave_count; i++)
		if (process->planted.caves[i].module == module->number)
			process->planted.caves[i].end = process->planted.caves[i].next;
	return NULL;
}

struct mw_error *trap_modules_changed(struct trap_process *process, pid_t tid)
{
	uint32_t before = process->survey.modules_seen;
	size_t removed = 0;

	for (uint32_t i = 0; i < before; i++)
		mw_modules_get(process->survey.modules, i)->user =
			mw_modules_get(process->survey.modules, i)->gone ? process : NULL;
	MW_TRY(refresh(process, tid, &removed));
	for (uint32_t i = 0; i < before && removed; i++) {
		struct mw_module *module = mw_modules_get(process->survey.modules, i);

		if (module->gone && !module->user)
			MW_TRY(forget_module(process, tid, module));
	}
	MW_TRY(take_in_modules(process, tid));
	MW_TRY(plant_helpers(process, tid, before));
	return plant_hooks(process, tid);
}

/* Code amidst which a thread is about to block SIGTRAP, though nothing of its mask shows it (hold.c). */
#define AROUND 64 /* bytes: the call is so near behind its set */

static struct mw_error *add(struct trap_process *process, mw_addr start, mw_addr end)
{
	if (!MW_VECTOR_ROOM(process->signals.masking, process->signals.masking_count,
			    process->signals.masking_capacity))
		return mw_error_nomem();
	process->signals.masking[process->signals.masking_count++] = (struct mw_code_range){start, end};
	return NULL;
}

/* From behind the operand of the load up to the call. */
static struct mw_error *add_section(struct trap_process *process, const struct text *text, size_t operand_end,
				    size_t from)
{
	size_t length, left = text->size - from < AROUND ? text->size - from : AROUND;
	const uint8_t *insn = mw_regs_syscall_insn(&length), *call = memmem(text->bytes + from, left, insn, length);

	return call ? add(process, text->base + operand_end, text->base + (mw_addr)(call - text->bytes) + 1) : NULL;
}

static struct mw_error *add_sections(struct trap_process *process, const struct text *text)
{
	const struct mw_arch *arch = process->arch;
	size_t operand;
	mw_addr set;

	for (size_t at = 0;
	     (at = arch->mask_set(text->bytes, text->size, text->base, at, &operand, &set)) < text->size;)
		MW_TRY(add_section(process, text, operand + sizeof(int32_t), at));
	for (size_t at = 0; (at = arch->mask_constant(text->bytes, text->size, at, &operand)) < text->size;)
		MW_TRY(add_section(process, text, operand + sizeof(uint64_t), at));
	return NULL;
}

static struct mw_error *find_in(struct trap_process *process, const struct mw_module *module)
{
	struct mw_named_symbol named[HELPERS];
	struct text text;

	memcpy(named, names, sizeof(named));
	MW_TRY(mw_error_if_memory(mw_elf_find_named(module->elf, named, HELPERS)));
	/* At its entry is a breakpoint, which is as good as any. */
	for (size_t i = MASK; i < HELPERS; i++)
		if (named[i].size > 1)
			MW_TRY(add(process, named[i].vaddr + module->bias + 1,
				   named[i].vaddr + module->bias + named[i].size));
	for (size_t i = 0; next_text(module, &i, &text);)
		MW_TRY(add_sections(process, &text));
	return NULL;
}

/* Where that is done in the libraries that were surveyed. */
static struct mw_error *find_masking(struct trap_process *process)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));)
		if (is_library(process, module))
			MW_TRY(find_in(process, module));
	return NULL;
}

struct mw_error *trap_survey(struct trap_process *process)
{
	const pid_t tid = trap_live_tid(process);
	size_t removed;

	MW_TRY(mw_fault("attach.modules"));
	MW_TRY(refresh(process, tid, &removed));
	MW_TRY(take_in_modules(process, tid));
	return find_masking(process);
}
