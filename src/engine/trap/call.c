// SPDX-License-Identifier: MIT
/*
 * call.c: the calls of hooked functions that have not returned yet (trap.h).
 *
 * A thread's calls in flight are kept innermost last. A call can end without returning: a signal
 * handler that interrupted it jumps away (siglongjmp), the thread dies. So whether a call is still in
 * flight is never assumed: it is, if its frame is on the stack that the thread has now.
 */
#include "engine/trap/trap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE            4096u
#define STRING_MAX      (1u << 20)
#define REMAP_DONTUNMAP 4 /* MREMAP_DONTUNMAP: newer than some C libraries */

/* Stops wait to be served, and a window's end does not wait for them: a free that waits then is of the window. */
static uint64_t time_of(const struct trap_process *process, enum mw_event_type type)
{
	const struct trap_engine *engine = process->engine;
	uint64_t now = trap_now(process);
	uint64_t end = trap_window_length(process);

	return type == MW_EVENT_FREE && end && now > end && engine->stop_ns <= process->closed_ns ? end : now;
}

static struct mw_error *tell(struct trap_thread *thread, struct mw_event event)
{
	const struct trap_process *process = thread->process;

	/* It may be over before the process is detached from. */
	if (process->window.length_ns && !process->engine->windows_ended)
		return NULL;
	event.time_ns = time_of(process, event.type);
	event.thread = thread->number;
	return process->sink.event(process->sink.context, &event);
}

static struct mw_error *emit(struct trap_thread *thread, enum mw_event_type type, enum mw_kind kind, mw_addr addr,
			     uint64_t size, uint32_t stack)
{
	return tell(thread, (struct mw_event){.addr = addr, .size = size, .stack = stack, .type = type, .kind = kind});
}

/* Of a call: with its kind, its stack, and how it was sampled. */
static struct mw_error *emit_of(struct trap_thread *thread, const struct trap_call *call, enum mw_event_type type,
				mw_addr addr, uint64_t size)
{
	return tell(thread, (struct mw_event){.addr = addr,
					      .size = size,
					      .stack = call->stack,
					      .type = type,
					      .kind = call->kind,
					      .interval = call->interval,
					      .unsampled = call->unsampled && type == MW_EVENT_REALLOC_END});
}

/* What may end in one of two ways has begun. */
static struct mw_error *emit_begin(struct trap_thread *thread, struct trap_call *call, enum mw_event_type type,
				   uint64_t size)
{
	MW_TRY(emit_of(thread, call, type, call->pointer, size));
	call->begin = type;
	return NULL;
}

static struct mw_error *cancel(struct trap_thread *thread, const struct trap_call *call)
{
	if (!call->begin)
		return NULL;
	return emit(thread, mw_event_fail(call->begin), call->kind, call->pointer, call->size, MW_STACK_NONE);
}

struct mw_error *trap_calls_drop(struct trap_thread *thread, size_t keep)
{
	while (thread->call_count > keep)
		MW_TRY(cancel(thread, &thread->calls[--thread->call_count]));
	return NULL;
}

static struct mw_error *calls_settle(struct trap_hit *hit, enum trap_inside *inside)
{
	struct trap_thread *thread = hit->thread;

	*inside = TRAP_OUTSIDE;
	while (thread->call_count > 0) {
		const struct trap_call *call = &thread->calls[thread->call_count - 1];
		const struct mw_hook *hook = &hit->process->survey.hooks.items[call->hook];
		enum trap_inside kind = hook->info.kind == MW_KIND_HEAP ? TRAP_INSIDE_HEAP : TRAP_INSIDE_VM;
		int found = 0;

		/* One entry point jumped to another; or the same call comes again after a signal. */
		if (call->sp == hit->sp && call->ret == hit->ret)
			found = hook != hit->hook;
		else if (trap_return_word_stands(hit, call->sp, call->ret))
			found = trap_among_frames(hit, call->sp, call->ret);
		if (found == 1)
			*inside = kind;
		if (found)
			return NULL;
		MW_TRY(trap_calls_drop(thread, thread->call_count - 1));
	}
	return NULL;
}

static struct mw_error *call_push(struct trap_hit *hit, const struct trap_call *call)
{
	struct trap_thread *thread = hit->thread;

	if (thread->call_count == TRAP_MAX_CALLS) {
		/* So many at once can only be dead ones: give up the oldest. */
		MW_TRY(cancel(thread, &thread->calls[0]));
		memmove(&thread->calls[0], &thread->calls[1], (TRAP_MAX_CALLS - 1) * sizeof(thread->calls[0]));
		thread->call_count--;
	}
	thread->calls[thread->call_count++] = *call;
	return NULL;
}

struct mw_error *trap_call_returning(struct trap_thread *thread, mw_addr ret, mw_addr sp, bool exchanged,
				     struct trap_call *out, bool *found)
{
	*found = false;
	for (size_t i = thread->call_count; i-- > 0;) {
		const struct trap_call *call = &thread->calls[i];

		if (call->sp != sp || call->exchanged != exchanged || (!exchanged && call->ret != ret))
			continue;
		*out = *call;
		*found = true;
		MW_TRY(trap_calls_drop(thread, i + 1));
		thread->call_count = i;
		return NULL;
	}
	return NULL;
}

/*
 * Hearing of a call's return. A breakpoint at the place that the call returns to leaves the thread's stack as it is:
 * exceptions, backtraces and profilers inside the target find it whole, and a jump out of the call leaves nothing
 * behind. Where there can be none (code in no file, which may be rewritten; an instruction that can't be displaced; a
 * place that is passed much more often than returned to) the return address on the stack is exchanged for the
 * trampoline's.
 */
#define BEFORE 8 /* longest call instruction, rounded up */

#define STRAYS_AT_LEAST 256
#define STRAYS_FACTOR   4

/* Look at the code around a return address; true where a breakpoint may stand there. */
static bool plan_site(struct trap_process *process, pid_t tid, struct trap_breakpoint *site)
{
	const struct mw_module *module = mw_modules_find(process->survey.modules, site->addr);
	uint8_t code[BEFORE + MW_INSN_MAX];
	uint8_t now;

	if (!module || !module->elf ||
	    !mw_elf_read(module->elf, site->addr - module->bias - BEFORE, code, sizeof(code)))
		return false;
	if (!process->arch->is_call_before(code, BEFORE))
		return false;
	/* Somebody else's breakpoint, or code that differs from its file. */
	if (mw_remote_read(tid, site->addr, &now, 1) != 1 || now != code[BEFORE])
		return false;
	process->arch->plan(code + BEFORE, MW_INSN_MAX, site->addr, &site->plan);
	return site->plan.how != MW_INSN_REFUSE;
}

static struct mw_error *make_site(struct trap_hit *hit, struct trap_breakpoint *site)
{
	struct trap_process *process = hit->process;
	pid_t tid = hit->thread->tid;
	bool possible = site->standing;

	if (!possible && plan_site(process, tid, site))
		MW_TRY(trap_breakpoint_plant(process, tid, site, &possible));
	site->exchange = !possible;
	site->site = possible;
	return NULL;
}

/* The place of a return address that is exchanged at `sp`, from now on. */
static uint32_t take_place(struct trap_rescue *rescue, mw_addr sp)
{
	uint32_t at = mw_rescue_place(sp, MW_RESCUE_RETURNS);

	while (rescue->return_sps[at] && rescue->return_sps[at] != sp)
		at = (at + 1) & (MW_RESCUE_RETURNS - 1);
	rescue->return_count += rescue->return_sps[at] == 0;
	rescue->return_sps[at] = sp;
	return at;
}

/* Nearly full of what has long returned: only what is in flight now. */
static struct mw_error *renew_returns(struct trap_process *process, pid_t tid)
{
	struct trap_rescue *rescue = &process->rescue;
	MW_FREE struct mw_rescue_return *all = calloc(MW_RESCUE_RETURNS, sizeof(*all));
	const struct trap_thread *thread;

	if (!all)
		return mw_error_nomem();
	memset(rescue->return_sps, 0, MW_RESCUE_RETURNS * sizeof(*rescue->return_sps));
	rescue->return_count = 0;
	for (size_t i = 0; (thread = trap_thread_next(process, &i));) {
		for (size_t j = 0; j < thread->call_count && rescue->return_count < MW_RESCUE_RETURNS / 2; j++) {
			const struct trap_call *call = &thread->calls[j];

			if (call->exchanged)
				all[take_place(rescue, call->sp)] =
					(struct mw_rescue_return){.sp = call->sp, .ret = call->ret};
		}
	}
	return trap_rescue_put(process, tid, TRAP_RESCUE_AT(process, returns), all, MW_RESCUE_RETURNS * sizeof(*all));
}

/* A return address that is about to be exchanged. */
static struct mw_error *note_return(struct trap_process *process, pid_t tid, mw_addr sp, mw_addr ret, bool *possible)
{
	struct trap_rescue *rescue = &process->rescue;
	uint32_t at;

	*possible = true;
	if (!rescue->base)
		return NULL;
	if (rescue->return_count >= MW_RESCUE_RETURNS / 4 * 3)
		MW_TRY(renew_returns(process, tid));
	*possible = rescue->return_count < MW_RESCUE_RETURNS / 4 * 3;
	if (!*possible)
		return NULL;
	at = take_place(rescue, sp);
	return TRAP_RESCUE_PUT(process, tid, returns[at], ((struct mw_rescue_return){.sp = sp, .ret = ret}));
}

static struct mw_error *return_arrange(struct trap_hit *hit, bool may_throw, bool *exchanged, bool *possible)
{
	struct trap_process *process = hit->process;
	struct trap_breakpoint *site;

	*possible = true;
	*exchanged = false;
	MW_TRY(trap_breakpoint_get(process, hit->ret, &site));
	site->may_throw |= may_throw;
	if (!site->site && !site->exchange)
		MW_TRY(make_site(hit, site));
	if (site->site && site->standing)
		return NULL;
	if (!process->planted.trampoline || process->shadow_stack || may_throw) {
		*possible = false;
		return NULL;
	}
	MW_TRY(note_return(process, hit->thread->tid, hit->sp, hit->ret, possible));
	if (!*possible)
		return NULL;
	*exchanged = true;
	return mw_error_unless_gone(mw_remote_poke(hit->thread->tid, hit->sp - sizeof(mw_addr),
						   &process->planted.trampoline, sizeof(process->planted.trampoline)));
}

/* Does any thread have a call in flight that returns here? */
static bool awaited(const struct trap_process *process, const struct trap_breakpoint *site)
{
	const struct trap_thread *thread;

	for (size_t i = 0; (thread = trap_thread_next(process, &i));)
		MW_EACH(call, thread->calls, thread->call_count)
			if (call->ret == site->addr && !call->exchanged)
				return true;
	return false;
}

struct mw_error *trap_site_stray(struct trap_hit *hit)
{
	struct trap_breakpoint *site = hit->breakpoint;

	site->strays++;
	/* While windows settle, allocations are not waited for any more. */
	if (!hit->engine->settling &&
	    (site->strays < STRAYS_AT_LEAST || site->strays < site->returns * STRAYS_FACTOR || site->may_throw ||
	     !hit->process->planted.trampoline || hit->process->shadow_stack))
		return NULL;
	if (site->hook != TRAP_NO_HOOK || awaited(hit->process, site))
		return NULL;
	site->site = false;
	site->exchange |= !hit->engine->settling;
	return trap_breakpoint_lift(hit->process, hit->thread->tid, site);
}

/* The thread's frames in an interpreter; *hash is 0 where it has none. */
static uint32_t read_script(struct trap_hit *hit, uint64_t *hash, bool *cut)
{
	struct trap_engine *engine = hit->engine;
	uint32_t count;

	*hash = 0;
	*cut = false;
	if (!mw_script_is_there(hit->process->survey.script))
		return 0;
	count = mw_script_walk(hit->process->survey.script, hit->thread->tid, hit->regs.general.thread_pointer,
			       engine->refs, engine->options.depth, cut);
	if (count)
		*hash = mw_script_hash(engine->refs, count) ^ *cut;
	return count;
}

/* Put these among the native frames. */
static struct mw_error *merge_script(struct trap_hit *hit, uint32_t refs, bool cut, struct mw_raw_stack *raw)
{
	struct trap_engine *engine = hit->engine;
	uint32_t count;
	bool truncated;

	MW_TRY(mw_script_merge(hit->process->survey.script, hit->thread->tid, raw, engine->refs, refs, engine->merged,
			       engine->options.depth, &count, &truncated));
	raw->frames = engine->merged;
	raw->count = count;
	if (truncated || cut)
		raw->cut = MW_STACK_TRUNCATED;
	return NULL;
}

/* engine->merged in place of the frames. */
static void take_named(struct trap_engine *engine, struct mw_raw_stack *raw, uint32_t count, bool truncated)
{
	memcpy(engine->raw_frames, engine->merged, count * sizeof(*engine->merged));
	raw->count = count;
	if (truncated)
		raw->cut = MW_STACK_TRUNCATED;
}

/* Frames that only the process can name. */
static struct mw_error *name_java(struct trap_hit *hit, struct mw_raw_stack *raw)
{
	struct trap_engine *engine = hit->engine;
	uint32_t count;
	bool truncated;

	MW_TRY(mw_java_name(&hit->process->survey.java, raw, engine->merged, engine->options.depth, &count,
			    &truncated));
	if (!count)
		return NULL;
	take_named(engine, raw, count, truncated);
	return NULL;
}

/* Frames of functions of JavaScript. */
static struct mw_error *name_javascript(struct trap_hit *hit, struct mw_raw_stack *raw)
{
	struct trap_engine *engine = hit->engine;
	struct mw_v8 *v8 = hit->process->survey.v8;
	uint32_t count;
	bool truncated;

	if (!mw_v8_is_there(v8))
		return NULL;
	for (uint32_t i = 0; i < raw->count; i++) {
		engine->functions[i] = engine->frames[i].javascript;
		if (engine->functions[i].shared)
			MW_TRY(mw_v8_learn(v8, hit->thread->tid, &engine->functions[i], raw->frames[i].addr));
	}
	mw_v8_name(v8, raw, engine->functions, engine->merged, engine->options.depth, &count, &truncated);
	take_named(engine, raw, count, truncated);
	return NULL;
}

/* The sink's number for the hit's stack. */
static struct mw_error *intern(struct trap_hit *hit, enum mw_kind kind, uint32_t *stack)
{
	struct trap_process *process = hit->process;
	const struct mw_unwound_frame *frames = hit->engine->frames;
	struct mw_raw_stack raw = {.frames = hit->engine->raw_frames, .hook = trap_hook_number(hit), .kind = kind};
	struct trap_known_stack *known;
	uint64_t script;
	uint32_t refs;
	bool cut;

	*stack = MW_STACK_NONE;
	if (hit->engine->settling)
		return NULL;
	trap_hit_walk(hit);
	if (hit->cut == MW_STACK_BROKEN)
		process->stats.broken_stacks++;
	refs = read_script(hit, &script, &cut);
	known = &process->known_stacks[(hit->serial ^ script) % TRAP_KNOWN_STACKS];
	if (hit->serial && known->serial == hit->serial && known->script == script && known->hook == raw.hook &&
	    known->kind == kind) {
		*stack = known->stack;
		return NULL;
	}
	for (uint32_t i = 0; i < hit->frame_count; i++) {
		hit->engine->raw_frames[i] = (struct mw_raw_frame){.addr = frames[i].pc, .module = frames[i].module};
		if (frames[i].interpreted.is)
			MW_TRY(mw_java_interpreted(&process->survey.java, &frames[i].interpreted,
						   &hit->engine->raw_frames[i]));
	}
	raw.count = hit->frame_count;
	raw.cut = hit->cut;
	MW_TRY(name_javascript(hit, &raw));
	MW_TRY(name_java(hit, &raw));
	if (refs)
		MW_TRY(merge_script(hit, refs, cut, &raw));
	MW_TRY(process->sink.stack(process->sink.context, &raw, stack));
	*known = (struct trap_known_stack){
		.serial = hit->serial, .script = script, .hook = raw.hook, .stack = *stack, .kind = kind};
	return NULL;
}

static uint64_t argument(const struct trap_hit *hit, unsigned index)
{
	return hit->process->arch->argument(&hit->regs.general, index);
}

/* The size that is asked for: element count times size where there is a count. */
static uint64_t wanted_size(const struct trap_hit *hit)
{
	const struct mw_entry_point *entry = hit->hook->entry;
	uint64_t size = entry->size == MW_NO_ARG ? 0 : argument(hit, entry->size);

	/* A product that overflows is refused by the allocator; it must not look like a small one. */
	if (entry->count != MW_NO_ARG && __builtin_mul_overflow(size, argument(hit, entry->count), &size))
		return MW_SIZE_UNKNOWN;
	return size;
}

static uint64_t round_to_pages(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static bool read_live(void *context, mw_addr addr, void *out, size_t size)
{
	const struct trap_hit *hit = context;

	return mw_remote_read(hit->thread->tid, addr, out, size) == size;
}

/* glibc gives a dying thread's cached blocks back through free itself: the program freed them before. */
static bool called_by_allocator_itself(const struct trap_hit *hit)
{
	const struct trap_process *process = hit->process;
	uint64_t vaddr;

	if (process->survey.internal.count == 0 || hit->hook->module != process->survey.internal.module)
		return false;
	vaddr = hit->ret - mw_modules_get(process->survey.modules, process->survey.internal.module)->bias;
	MW_EACH(range, process->survey.internal.items, process->survey.internal.count)
		if (vaddr > range->start && vaddr <= range->end)
			return true;
	return false;
}

/* The last freeing call goes on in the hit: in another function that it has jumped to, in its own once more, or in one
 * that it has called. */
static bool goes_on(struct trap_hit *hit, mw_addr pointer, bool known)
{
	struct trap_thread *thread = hit->thread;
	bool same = thread->last_free.pointer == pointer && thread->last_free.sp == hit->sp;

	/* Its breakpoint is hit once more. */
	if (same && thread->last_free.again && thread->last_free.last == trap_hook_number(hit))
		return true;
	/* What is freed of blocks that are not known is not recorded, whoever does it. */
	if (!pointer || known || hit->process->interval)
		return false;
	/* glibc 2.43: a thread's first free jumps to its own start. */
	if (same && thread->last_free.ret == hit->ret && thread->last_free.hook == trap_hook_number(hit))
		return true;
	return hit->process->freeing_hooks > 1 && trap_inside_free(hit);
}

static struct mw_error *enter_free(struct trap_hit *hit, enum trap_inside inside)
{
	struct trap_process *process = hit->process;
	struct trap_thread *thread = hit->thread;
	mw_addr pointer = argument(hit, hit->hook->entry->pointer);
	uint64_t size = MW_SIZE_UNKNOWN;
	uint32_t stack = MW_STACK_NONE;
	bool known = pointer && process->sink.knows(process->sink.context, pointer);
	bool on = goes_on(hit, pointer, known);

	thread->last_free.again = false;
	if (on && thread->last_free.sp == hit->sp) {
		/* It may jump to a third: from one operator delete to another, and from there to free. */
		thread->last_free.last = trap_hook_number(hit);
		thread->last_free.stop = thread->stops;
	}
	/* A block that is in the table is freed here and now, whoever calls: operator new(nothrow) frees the exception
	 * that it has caught. One that is not may be what an allocating function gives back of its own, or what a
	 * freeing function makes of the block that it was called for, a header before it. */
	if (on || (inside == TRAP_INSIDE_HEAP && !known))
		return NULL;
	if (pointer && !known && !process->interval) {
		if (called_by_allocator_itself(hit))
			return NULL;
		if (hit->hook->glibc)
			size = mw_glibc_usable_size(pointer, read_live, hit);
		MW_TRY(intern(hit, MW_KIND_HEAP, &stack));
	}
	thread->last_free.sp = hit->sp;
	thread->last_free.ret = hit->ret;
	thread->last_free.pointer = pointer;
	thread->last_free.hook = thread->last_free.last = trap_hook_number(hit);
	thread->last_free.stop = thread->stops;
	if (!pointer || (process->interval && !known))
		return NULL;
	return emit(thread, MW_EVENT_FREE, MW_KIND_HEAP, pointer, size, stack);
}

/* From here on the call's return is waited for. Without a way to hear of it the call is lost, and counted. */
static struct mw_error *await_return(struct trap_hit *hit, struct trap_call *call)
{
	bool possible;

	call->hook = trap_hook_number(hit);
	call->ret = hit->ret;
	call->sp = hit->sp;
	MW_TRY(return_arrange(hit, hit->hook->entry->may_throw, &call->exchanged, &possible));
	if (possible)
		return call_push(hit, call);
	hit->process->stats.lost_events++;
	return cancel(hit->thread, call);
}

/* How many more bytes a thread allocates until a block is recorded. */
static void draw(struct trap_thread *thread)
{
	struct trap_process *process = thread->process;

	/* Above 0, and 1 at most. */
	thread->countdown = -log(1 - erand48(process->random)) * (double)process->interval;
	thread->drawn = process->interval;
}

/* Is a block of so many bytes to be recorded? As no allocation depends on those before, an interval may be changed at any
 * time. */
static struct mw_error *sample(struct trap_thread *thread, uint64_t size, struct trap_call *call)
{
	struct trap_process *process = thread->process;

	call->unsampled = false;
	if (!process->interval)
		return NULL;
	if (process->numbered != process->interval)
		MW_TRY(process->sink.interval(process->sink.context, process->interval, &process->interval_number));
	process->numbered = process->interval;
	if (thread->drawn != process->interval)
		draw(thread);
	thread->countdown -= size ? (double)size : 1;
	call->unsampled = thread->countdown >= 0;
	if (!call->unsampled)
		draw(thread);
	call->interval = call->unsampled ? 0 : process->interval_number;
	return NULL;
}

/* A call that is not recorded returns unseen; but what it calls is not the program's own. */
static struct mw_error *pass(struct trap_hit *hit)
{
	struct trap_thread *thread = hit->thread;

	thread->passed.sp = hit->sp;
	thread->passed.ret = hit->ret;
	thread->passed.stop = thread->stops;
	thread->passed.hook = trap_hook_number(hit);
	return NULL;
}

/* How much is wanted shows only in the copy that is made. */
static bool has_no_size(const struct mw_entry_point *entry)
{
	return entry->size == MW_NO_ARG && entry->count == MW_NO_ARG;
}

static struct mw_error *enter_heap(struct trap_hit *hit, enum trap_inside inside)
{
	const struct trap_process *process = hit->process;
	const struct mw_entry_point *entry = hit->hook->entry;
	struct trap_call call = {.kind = MW_KIND_HEAP, .size = wanted_size(hit)};
	enum mw_role role = entry->role;
	uint64_t usable = MW_SIZE_UNKNOWN;
	bool frees, known;

	if (inside == TRAP_INSIDE_HEAP)
		return NULL;
	if (entry->pointer != MW_NO_ARG)
		call.pointer = argument(hit, entry->pointer);
	frees = (role == MW_ROLE_REALLOC || role == MW_ROLE_REALLOCARRAY || role == MW_ROLE_RESIZE) && call.pointer;
	known = frees && process->sink.knows(process->sink.context, call.pointer);
	if (!has_no_size(entry))
		MW_TRY(sample(hit->thread, call.size, &call));
	if (call.unsampled && !known)
		return pass(hit);
	MW_TRY(intern(hit, MW_KIND_HEAP, &call.stack));
	/* While blocks are sampled, a free of a block that is not known is not reported. */
	if (frees && (known || !process->interval)) {
		if (hit->hook->glibc && !known)
			usable = mw_glibc_usable_size(call.pointer, read_live, hit);
		MW_TRY(emit_begin(hit->thread, &call, MW_EVENT_REALLOC_BEGIN, usable));
	}
	return await_return(hit, &call);
}

/* The process's break, page-rounded, or 0: brk() does not say where it was. */
static mw_addr heap_end(const struct trap_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	mw_error_destroy(mw_maps_read(trap_live_tid(process), &maps));
	return mw_survey_heap_end(&maps);
}

static struct mw_error *enter_vm(struct trap_hit *hit, enum trap_inside inside)
{
	struct trap_call call = {.kind = MW_KIND_VM};
	enum mw_role role = hit->hook->info.role;

	/* sbrk calls brk, mmap64 may call mmap: counted at the outermost. */
	if (inside == TRAP_INSIDE_VM)
		return NULL;
	if (inside == TRAP_INSIDE_HEAP || trap_inside_free(hit) || trap_inside_allocator(hit))
		call.kind = MW_KIND_VM_INTERNAL;
	call.pointer = argument(hit, 0);
	call.size = round_to_pages(argument(hit, 1));
	MW_TRY(intern(hit, call.kind, &call.stack));
	if (role == MW_ROLE_MUNMAP) {
		MW_TRY(emit_begin(hit->thread, &call, MW_EVENT_UNMAP_BEGIN, call.size));
	} else if (role == MW_ROLE_MREMAP) {
		call.extra = round_to_pages(argument(hit, 2));
		if (call.size > 0 && !(argument(hit, 3) & REMAP_DONTUNMAP))
			MW_TRY(emit_begin(hit->thread, &call, MW_EVENT_REMAP_BEGIN, call.size));
	} else if (role == MW_ROLE_BRK) {
		call.extra = heap_end(hit->process);
	}
	return await_return(hit, &call);
}

bool trap_entry_is_quiet(const struct trap_hit *hit)
{
	const struct trap_process *process = hit->process;
	mw_addr pointer;

	switch (hit->hook->info.role) {
	case MW_ROLE_FREE:
	case MW_ROLE_REALLOC:
	case MW_ROLE_REALLOCARRAY:
		pointer = argument(hit, hit->hook->entry->pointer);
		return !pointer || !process->sink.knows(process->sink.context, pointer);
	case MW_ROLE_MMAP:
		return !(argument(hit, 3) & MAP_FIXED);
	case MW_ROLE_MUNMAP:
	case MW_ROLE_MREMAP:
	case MW_ROLE_BRK:
	case MW_ROLE_SBRK:
		return false;
	default:
		return true;
	}
}

struct mw_error *trap_entry(struct trap_hit *hit)
{
	enum trap_inside inside = TRAP_OUTSIDE;

	if (hit->thread->call_count > 0)
		MW_TRY(calls_settle(hit, &inside));
	if (inside == TRAP_OUTSIDE && hit->hook->info.role != MW_ROLE_FREE && trap_inside_passed(hit))
		inside = TRAP_INSIDE_HEAP;
	/* An exception that an operator new throws outlives the call. */
	if (inside == TRAP_INSIDE_HEAP && trap_allocates_exception(hit))
		inside = TRAP_OUTSIDE;
	if (hit->hook->info.role == MW_ROLE_FREE)
		return enter_free(hit, inside);
	if (hit->hook->info.kind == MW_KIND_HEAP)
		return enter_heap(hit, inside);
	return enter_vm(hit, inside);
}

/* realloc(block, 0) that gives NULL has freed the block. In place, xallocx gives the block's real size, mi_expand the
 * block or NULL. */
static struct mw_error *leave_realloc(struct trap_hit *hit, const struct trap_call *call, uint64_t result)
{
	bool in_place = hit->hook->info.role == MW_ROLE_RESIZE, done = result || call->size == 0;
	mw_addr block = in_place ? call->pointer : result;

	if (in_place)
		done = result == call->pointer || (result >= call->size && result != 0);
	/* It has freed nothing, or nothing that is known. */
	if (!call->begin)
		return result && done && block ? emit_of(hit->thread, call, MW_EVENT_ALLOC, block, call->size) : NULL;
	if (!done)
		return emit(hit->thread, MW_EVENT_REALLOC_FAIL, call->kind, call->pointer, 0, MW_STACK_NONE);
	return emit_of(hit->thread, call, MW_EVENT_REALLOC_END, block, call->size);
}

static struct mw_error *leave_memalign(struct trap_hit *hit, const struct trap_call *call, uint64_t result)
{
	mw_addr block;

	if ((uint32_t)result != 0 || !read_live(hit, call->pointer, &block, sizeof(block)))
		return NULL;
	return emit_of(hit->thread, call, MW_EVENT_ALLOC, block, call->size);
}

/* A copy of a string whose length no argument tells (strdup and its like): what was asked for is what was copied. */
static uint64_t string_size(struct trap_hit *hit, mw_addr string)
{
	char piece[256];

	for (uint64_t size = 0; size < STRING_MAX;) {
		size_t got = mw_remote_read(hit->thread->tid, string + size, piece, sizeof(piece));
		const char *end = memchr(piece, '\0', got);

		if (end)
			return size + (uint64_t)(end - piece) + 1;
		if (got < sizeof(piece))
			break;
		size += got;
	}
	return 0;
}

static struct mw_error *leave_malloc(struct trap_hit *hit, const struct trap_call *call, mw_addr result)
{
	struct trap_call sized = *call;

	if (!result)
		return NULL;
	if (has_no_size(hit->hook->entry)) {
		sized.size = string_size(hit, result);
		MW_TRY(sample(hit->thread, sized.size, &sized));
	}
	return sized.unsampled ? NULL : emit_of(hit->thread, &sized, MW_EVENT_ALLOC, result, sized.size);
}

static struct mw_error *map(struct trap_hit *hit, const struct trap_call *call, mw_addr start, uint64_t size)
{
	return size ? emit_of(hit->thread, call, MW_EVENT_MAP, start, size) : NULL;
}

static struct mw_error *moved_break(struct trap_hit *hit, const struct trap_call *call, mw_addr from, mw_addr to)
{
	if (from == 0 || to == 0 || from == to)
		return NULL;
	if (to > from)
		return map(hit, call, from, to - from);
	/* Pages were given back. */
	MW_TRY(emit_of(hit->thread, call, MW_EVENT_UNMAP_BEGIN, to, from - to));
	return emit_of(hit->thread, call, MW_EVENT_UNMAP_END, to, from - to);
}

static struct mw_error *leave_vm(struct trap_hit *hit, const struct trap_call *call, uint64_t result)
{
	bool failed = result == UINT64_MAX;

	switch (hit->hook->info.role) {
	case MW_ROLE_MMAP:
		return failed ? NULL : map(hit, call, result, call->size);
	case MW_ROLE_MUNMAP:
		return emit_of(hit->thread, call, (uint32_t)result ? MW_EVENT_UNMAP_FAIL : MW_EVENT_UNMAP_END,
			       call->pointer, call->size);
	case MW_ROLE_MREMAP:
		if (!call->begin)
			return failed ? NULL : map(hit, call, result, call->extra);
		if (failed)
			return emit_of(hit->thread, call, MW_EVENT_REMAP_FAIL, call->pointer, call->size);
		return emit_of(hit->thread, call, MW_EVENT_REMAP_END, result, call->extra);
	case MW_ROLE_BRK:
		return (uint32_t)result ? NULL : moved_break(hit, call, call->extra, heap_end(hit->process));
	case MW_ROLE_SBRK:
		return failed ? NULL : moved_break(hit, call, result, result + call->pointer);
	default:
		return NULL;
	}
}

struct mw_error *trap_return(struct trap_hit *hit, const struct trap_call *call)
{
	uint64_t result = hit->process->arch->result(&hit->regs.general);

	switch (hit->hook->info.role) {
	case MW_ROLE_MALLOC:
	case MW_ROLE_CALLOC:
		return leave_malloc(hit, call, result);
	case MW_ROLE_REALLOC:
	case MW_ROLE_REALLOCARRAY:
	case MW_ROLE_RESIZE:
		return leave_realloc(hit, call, result);
	case MW_ROLE_POSIX_MEMALIGN:
		return leave_memalign(hit, call, result);
	default:
		return leave_vm(hit, call, result);
	}
}
