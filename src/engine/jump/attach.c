// SPDX-License-Identifier: MIT
/*
 * attach.c: put the recorder into a process (jump.h).
 *
 *      survey, plan, compile rows      the process runs
 *      stop: map memory, write code    some milliseconds
 *      fill the memory, publish rows   the process runs
 *      stop: write the jumps           some milliseconds; the window begins
 *
 * A command is first let come from before its exec to where its libraries are mapped:
 *
 *      exec            a breakpoint at the function that the loader calls for debuggers
 *      … first time    it begins to map libraries
 *      … second time   all are mapped and relocated, none has been initialised: the recorder is put in
 *
 * musl's loader, which is its C library, tells the second only.
 */
#include "engine/jump/jump.h"

#include "engine/stale.h"
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BREATHS       10 /* for calls that map memory */
#define BREATH_NS     50000
#define RIVAL_NS      UINT64_C(2000000000) /* for another memwatch to let go of the process */
#define RIVAL_REST_NS 5000000

/*
 * A thread that makes system calls for us and lives through them whatever happens to memwatch; where there is none,
 * with --unsafe, any; else UNSUPPORTED. Stopping it must be harmless as well.
 */
static struct mw_error *pick_injector(struct jump_process *process, uint32_t calls, const struct mw_maps *maps,
				      pid_t *tid)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	const struct mw_seccomp_policy_need restart = {.made = MW_CALL_BIT(RESTART)};
	struct mw_permit permit, everyone = {.harmless = MW_CALLS_ALL};

	MW_TRY(jump_injector_find(&process->policy, &process->quiesce, maps, calls, tid, &permit));
	if (process->engine->options.unsafe) {
		if (!*tid)
			*tid = mw_quiesce_pick(&process->quiesce);
		return NULL;
	}
	if (!*tid)
		return mw_seccomp_policy_refuse("jump", process->pid, &permit, &need);
	/* Stopped are all of them. */
	MW_TRY(mw_seccomp_policy_everyone(&process->policy, &process->quiesce, &everyone.made));
	return mw_permit_suits(&everyone, &restart)
		       ? NULL
		       : mw_seccomp_policy_refuse("jump", process->pid, &everyone, &restart);
}

/*
 * Modules that come and go during the window.
 *
 * The loader's thread waits in the recorder until this is done: what a new library's constructors allocate is seen.
 */

static bool is_to_plant(const struct jump_patch *patch)
{
	return !patch->gone && !patch->standing && !patch->detour.why;
}

static bool anything_to_plant(const struct jump_process *process)
{
	MW_EACH(patch, process->patches.items, process->patches.count)
		if (is_to_plant(patch))
			return true;
	return mw_survey_pointers_astray(&process->survey, mw_live_thread(process->pid));
}

/* What was in a module that is unmapped is no more. */
static void forget_gone(struct jump_process *process)
{
	MW_EACH_MUTABLE(patch, process->patches.items, process->patches.count) {
		const struct mw_module *module = mw_modules_get(process->survey.modules, patch->module);

		if (patch->gone || !module->gone)
			continue;
		patch->gone = true;
		if (patch->standing)
			mw_journal_forget(&process->patches.journal, module->start, module->end);
		patch->standing = false;
	}
}

/* Entry points that came and can't be detoured: what they do will be missed. */
static void note_refused(struct jump_process *process, size_t first)
{
	for (size_t i = first; i < process->patches.count; i++) {
		const struct jump_patch *patch = &process->patches.items[i];

		if (patch->detour.why && patch->hook != JUMP_NO_HOOK)
			process->survey.hooks.items[patch->hook].info.refused = patch->detour.why;
	}
}

/* It has put itself under a filter since the attach, under which no memory can be had without harm. */
static void give_up_new(struct jump_process *process)
{
	MW_EACH_MUTABLE(patch, process->patches.items, process->patches.count)
		if (is_to_plant(patch))
			patch->detour.why = "the process has put itself under a seccomp filter that forbids it";
	note_refused(process, 0);
}

static struct mw_error *plant_new(struct jump_process *process, const struct mw_maps *maps)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps now = {0};
	struct mw_permit permit;
	struct mw_inject inject;
	pid_t tid;

	if (!jump_still_there(process))
		return NULL;
	MW_TRY(jump_injector_find(&process->policy, &process->quiesce, maps, MW_CALLS_MAP | MW_CALL_BIT(MPROTECT_CODE),
				  &tid, &permit));
	if (!tid && process->engine->options.unsafe)
		tid = mw_quiesce_pick(&process->quiesce);
	if (!tid) {
		give_up_new(process);
		return NULL;
	}
	MW_TRY(mw_inject_init(&inject, tid, maps));
	MW_TRY(jump_memory_extend(process, &inject));
	return jump_patch_all(process, &now);
}

static struct mw_error *stop_and_plant(struct jump_process *process, const struct mw_maps *maps)
{
	struct mw_error *err = jump_stop(process, 0);

	if (!err)
		err = plant_new(process, maps);
	return mw_error_first(err, jump_let_go(process));
}

static struct mw_error *take_modules(struct jump_process *process)
{
	size_t added = 0, removed = 0, before = process->patches.count;
	pid_t tid = mw_live_thread(process->pid);
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	/* A thread that is about to write a record holds back others', whose stacks may pass through what has gone. */
	MW_TRY(jump_drain_stacks(process->drain));
	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
	if (added || removed)
		process->unwinder->ops->flush(process->unwinder);
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	MW_TRY(mw_maps_read(tid, &maps));
	jump_learned_tidy(process);
	MW_TRY(jump_rows_publish(process, &maps, added || removed));
	forget_gone(process);
	MW_TRY(jump_plan(process, tid));
	note_refused(process, before);
	process->drain->hooks = (uint32_t)process->survey.hooks.count;
	return anything_to_plant(process) ? stop_and_plant(process, &maps) : NULL;
}

/* An exec or an end is found out elsewhere. */
struct mw_error *jump_modules_changed(struct jump_process *process)
{
	return jump_has_execed(process) ? NULL : mw_error_unless_gone(take_modules(process));
}

#define HEARTBEAT_LIMIT_NS UINT64_C(1000000000)
#define WAIT_LIMIT_NS      UINT64_C(2000000000)
#define EXIT_LIMIT_NS      UINT64_C(1000000000)

/* What a thread does to have the recorder put in. */
#define CALLS (MW_CALLS_MAP | MW_CALLS_SHARE | MW_CALL_BIT(MADVISE) | MW_CALL_BIT(MPROTECT_CODE) | MW_CALL_BIT(PRCTL))

/* A target may have forbidden itself to read the time stamp counter. */
static struct mw_error *check_counter(const struct jump_process *process, const struct mw_inject *inject)
{
	const uint64_t arguments[6] = {PR_GET_TSC};
	uint32_t flag = 0;
	int64_t result;

	MW_TRY(mw_inject_call_with(inject, SYS_prctl, arguments, 1, &flag, sizeof(flag), &result));
	if (result != 0 || flag != PR_TSC_SIGSEGV)
		return NULL;
	return MW_REFUSE("--engine trap can watch it",
			 "the jump engine can't be used on process %d: it may not read the time stamp counter",
			 process->pid);
}

/* Calls of ours that a stack passes through are no frames of the program's. */
static void emit_unwinder(struct jump_process *process)
{
	const struct mw_stub_header *header = mw_stub_header();
	const struct mw_unwinder_code code = {.start = process->recorder.image,
					      .end = process->recorder.image + process->recorder.image_size,
					      .base = process->recorder.image,
					      .table = process->recorder.image + header->table,
					      .entries = 1};

	mw_unwinder_libunwind_pass_over(process->inner, &code);
}

#define CONTROL_BLOCK 4096u /* how much of a thread's control block is looked through for its id */

/* What a thread's control block holds, and what id it should. */
struct candidate {
	uint8_t bytes[CONTROL_BLOCK];
	mw_addr at;
	size_t size;
	uint32_t id;
};

static bool read_block(const struct mw_quiet_thread *thread, struct candidate *out)
{
	struct mw_tracee_regs regs;
	struct mw_status status;

	if (!jump_regs_of(thread, &regs) || !regs.general.thread_pointer ||
	    !mw_error_none(mw_status_read(thread->tid, &status)))
		return false;
	out->id = (uint32_t)status.ns_pid;
	out->at = regs.general.thread_pointer;
	/* The block may end before that, and behind it there may be memory that nobody has touched yet. */
	out->size = mw_touched_peek(thread->tid, regs.general.thread_pointer, out->bytes, sizeof(out->bytes));
	return out->size > 0;
}

static bool holds(const struct candidate *block, size_t offset)
{
	uint32_t word;

	if (offset + sizeof(word) > block->size)
		return false;
	memcpy(&word, block->bytes + offset, sizeof(word));
	return word == block->id;
}

/* Where C libraries are known to have it, to choose by where there is only one thread to look at. */
static const uint32_t usual[] = {0x2d0 /* glibc */, 0x30 /* musl */, 0x38 /* musl before 1.2 */};

#define USUAL (sizeof(usual) / sizeof(usual[0]))

static bool has_glibc(const struct jump_process *process)
{
	MW_EACH(hook, process->survey.hooks.items, process->survey.hooks.count)
		if (hook->glibc)
			return true;
	return false;
}

static struct mw_error *no_tid_offset(const struct jump_process *process)
{
	return MW_REFUSE("--engine trap can watch it",
			 "where the C library of process %d keeps thread ids is not known", process->pid);
}

/*
 * Before glibc 2.34 a first thread's id is 0 until libpthread has noted it, in a program without libpthread for ever: nobody
 * looks at it then. Noted here it is what libpthread would note, and a forked child notes its own. `block` is of the only
 * thread, which has its id nowhere.
 */
static struct mw_error *note_only_id(struct jump_process *process, const struct candidate *block)
{
	const uint32_t at = usual[0];
	uint64_t words[4];
	uint32_t id;

	if (!has_glibc(process) || block->size < at + sizeof(id))
		return no_tid_offset(process);
	/* glibc's struct pthread begins with its own address, twice, and whether there are more threads. */
	memcpy(words, block->bytes, sizeof(words));
	memcpy(&id, block->bytes + at, sizeof(id));
	if (id || words[0] != block->at || words[2] != block->at || (uint32_t)words[3])
		return no_tid_offset(process);
	process->recorder.context.tid_offset = at;
	return mw_remote_write(process->pid, block->at + at, &block->id, sizeof(block->id));
}

/* Where a thread's control block has its id, found by looking at those of all threads (which stand). */
static struct mw_error *find_tid_offset(struct jump_process *process)
{
	bool possible[CONTROL_BLOCK / sizeof(uint32_t)];
	MW_FREE struct candidate *block = malloc(sizeof(*block));
	size_t looked = 0;
	pid_t tid = 0;

	if (!block)
		return mw_error_nomem();
	memset(possible, 1, sizeof(possible));
	for (size_t i = 0; i < process->quiesce.count && looked < 64; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];

		if (thread->sharing || !read_block(thread, block))
			continue;
		tid = thread->tid;
		looked++;
		for (size_t j = 0; j < sizeof(possible); j++)
			possible[j] &= holds(block, j * sizeof(uint32_t));
	}
	for (size_t i = 0; looked && i < USUAL + sizeof(possible); i++) {
		uint32_t at = i < USUAL ? usual[i] : (uint32_t)((i - USUAL) * sizeof(uint32_t));

		if (possible[at / sizeof(uint32_t)]) {
			process->recorder.context.tid_offset = at;
			return NULL;
		}
	}
	return looked == 1 && tid == process->pid ? note_only_id(process, block) : no_tid_offset(process);
}

static struct mw_error *put_in_code(struct jump_process *process, const struct mw_maps *maps, uint64_t rows_bytes)
{
	struct mw_inject inject;
	uint32_t calls = CALLS;
	pid_t tid = mw_quiesce_pick(&process->quiesce);

	if (!tid)
		return mw_error_create(MW_ERROR_SYSTEM, 0, "no thread of process %d could be stopped", process->pid);
	if (mw_shared_memory_locks(tid))
		calls |= MW_CALLS_LOCKED;
	MW_TRY(pick_injector(process, calls, maps, &tid));
	MW_TRY(find_tid_offset(process));
	jump_note_stacks(process, maps);
	MW_TRY(mw_fault("attach.inject"));
	MW_TRY(mw_inject_init(&inject, tid, maps));
	if (!process->engine->options.unsafe && !process->launched && !mw_inject_leads_back(&inject))
		return mw_inject_no_sigframe(&inject, process->pid);
	MW_TRY(check_counter(process, &inject));
	MW_TRY(jump_memory_put_in(process, &inject, maps, rows_bytes));
	emit_unwinder(process);
	return NULL;
}

static struct mw_error *install_code(struct jump_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	uint64_t rows_bytes;

	MW_TRY(jump_rows_compile(process, &rows_bytes));
	MW_TRY(mw_maps_read(mw_live_thread(process->pid), &maps));
	return put_in_code(process, &maps, rows_bytes);
}

static struct mw_error *install_data(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	const struct jump_drain_help help = jump_help(process);
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	MW_TRY(jump_memory_prepare(process));
	jump_clock_init(&process->clock);
	control->heartbeat_limit = jump_clock_ticks(&process->clock, HEARTBEAT_LIMIT_NS);
	control->wait_limit = jump_clock_ticks(&process->clock, WAIT_LIMIT_NS);
	control->exit_limit = jump_clock_ticks(&process->clock, EXIT_LIMIT_NS);
	control->compare = process->engine->options.compare;
	MW_TRY(jump_drain_create(&process->recorder.shared, &process->clock, &process->sink, &help, &process->drain));
	process->drain->hooks = (uint32_t)process->survey.hooks.count;
	MW_TRY(mw_maps_read(mw_live_thread(process->pid), &maps));
	return jump_rows_publish(process, &maps, false);
}

static struct mw_error *install_jumps(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	process->installed = true;
	jump_introduce_threads(process);
	MW_TRY(jump_patch_all(process, &maps));
	process->drain->break_end = mw_survey_heap_end(&maps);
	MW_TRY(mw_fault("attach.resume"));
	MW_EACH(patch, process->patches.items, process->patches.count)
		process->patches.loader_hooked |= patch->standing && patch->role == MW_STUB_LOADER;
	/* Libraries may have come and gone since they were looked at: so that is done again at once. */
	__atomic_fetch_add(&control->loader_changes, 1, __ATOMIC_RELEASE);
	jump_clock_start(&process->clock);
	process->window.started_realtime_ns = mw_clock_realtime_ns();
	jump_waiting_plan(process);
	if (jump_samples(process))
		MW_TRY(jump_sampling_set(process, process->engine->options.sample_interval));
	__atomic_store_n(&control->recording, 1, __ATOMIC_RELEASE);
	MW_TRY(jump_guard_set(process, mw_live_thread(process->pid),
			      jump_samples(process) ? MW_STUB_GUARD_SAMPLING : MW_STUB_GUARD_ON));
	process->windowed = true;
	return NULL;
}

/* As processes' start times are reported. */
static uint64_t clock_ticks_now(void)
{
	return mw_clock_ns_of(CLOCK_BOOTTIME) / (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

static struct mw_error *survey(struct jump_process *process)
{
	size_t added, removed;
	pid_t tid = mw_live_thread(process->pid);

	MW_TRY(mw_survey_refresh(&process->survey, tid, &added, &removed));
	process->unwinder->ops->flush(process->unwinder);
	MW_TRY(mw_survey_take_in(&process->survey, tid));
	MW_TRY(mw_survey_check(&process->survey));
	MW_TRY(jump_plan(process, tid));
	return jump_plan_check(process);
}

static struct mw_error *stop(struct jump_process *process)
{
	MW_TRY(mw_fault("attach.stop"));
	return jump_stop(process, 0);
}

static struct mw_error *let_go(struct jump_process *process)
{
	struct mw_error *err = jump_let_go(process);

	process->stats.attach_ns += process->quiesce.stood_ns;
	return err;
}

static struct mw_error *put_in(struct jump_process *process)
{
	uint64_t bytes;

	MW_TRY(mw_stale_remove(process->pid, process->why_left, sizeof(process->why_left)));
	MW_TRY(mw_fault("attach.modules"));
	MW_TRY(survey(process));
	process->children.attach_start = clock_ticks_now();
	MW_TRY(jump_rows_compile(process, &bytes));
	MW_TRY(stop(process));
	jump_learn_note_stacks(process);
	MW_TRY(install_code(process));
	MW_TRY(let_go(process));
	MW_TRY(install_data(process));
	jump_learn_from_stacks(process);
	return NULL;
}

/* Is a thread in a call that maps memory, and was made before there was a hook to see it? */
static bool any_maps(const struct jump_process *process)
{
	struct mw_tracee_regs regs;

	MW_EACH(thread, process->quiesce.threads, process->quiesce.count)
		if (jump_regs_of(thread, &regs) && mw_survey_is_mapping(&process->survey, regs.general.pc))
			return true;
	return false;
}

/* What such a call maps would be nobody's. They are short; where new ones are made all the time it is let be. */
static struct mw_error *await_mappings(struct jump_process *process)
{
	for (unsigned i = 0; i < BREATHS && any_maps(process); i++) {
		MW_TRY(mw_quiesce_run_briefly(&process->quiesce, BREATH_NS));
		if (!jump_still_there(process))
			return mw_error_create(MW_ERROR_GONE, 0, "process %d has ended", process->pid);
	}
	return NULL;
}

/*
 * Another memwatch that looked before the recorder was there may be stopping the process to put in its own. It is waited
 * for: if this one took out its recorder instead, it would be in the other's way, and both would refuse.
 */
static struct mw_error *stop_again(struct jump_process *process)
{
	const struct timespec rest = {.tv_nsec = RIVAL_REST_NS};
	const uint64_t begin = mw_clock_ns();
	struct mw_error *err = stop(process);

	while (err && mw_error_kind(err) == MW_ERROR_DENIED && mw_clock_ns() - begin < RIVAL_NS) {
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
		err = stop(process);
	}
	return err;
}

struct mw_error *jump_begin_window(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;

	/* What was found when it was prepared is old by now. */
	jump_look_for_frames(process);
	MW_TRY(stop_again(process));
	MW_TRY(mw_program_check(process->pid, &process->program));
	MW_TRY(await_mappings(process));
	MW_TRY(jump_await_handlers(process));
	if (options->stopped)
		MW_TRY(options->stopped(options->stopped_context, process->pid));
	MW_TRY(install_jumps(process));
	return let_go(process);
}

static void find_loader(struct jump_process *process)
{
	const struct mw_module *module;

	for (uint32_t i = 0; (module = mw_modules_next(process->survey.modules, &i));) {
		struct mw_named_symbol named[] = {{"_dl_debug_state", 0, 0}, {"pthread_create", 0, 0}};

		mw_error_destroy(mw_elf_find_named(module->elf, named, 2));
		if (!named[0].vaddr)
			continue;
		process->launch.loader = named[0].vaddr + module->bias;
		/* A loader that is nothing else starts no threads. */
		process->launch.tells = named[1].vaddr ? 1 : 2;
		return;
	}
	process->launch.loader = 0;
}

/* A static program has no loader that tells when it is ready. */
static struct mw_error *check_program(const char *path)
{
	MW_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mw_elf *elf = NULL;
	bool is_static;

	/* What it is that can't be read, its exec will show. */
	if (fd < 0 || !mw_error_none(mw_elf_open(fd, path, &elf)))
		return NULL;
	is_static = elf->is_static;
	mw_elf_unref(elf);
	if (!is_static)
		return NULL;
	return MW_REFUSE("--engine trap can launch it; once it runs, --engine jump can be attached",
			 "'%s' is a static program: no loader shows when it is ready for the jump engine", path);
}

static struct mw_error *launch_begin(struct jump_process *process)
{
	if (process->engine->options.program)
		MW_TRY(check_program(process->engine->options.program));
	process->launched_by_us = true;
	return mw_tracee_seize(process->pid);
}

static struct mw_error *on_exec(struct jump_process *process)
{
	const struct mw_arch *arch = process->survey.arch;
	size_t added, removed;

	if (process->launch.execed) {
		/* The command runs another before its loader is done (a script's interpreter). */
		mw_journal_forget_all(&process->patches.journal);
		process->launch.told = 0;
	}
	process->launch.execed = true;
	MW_TRY(mw_survey_refresh(&process->survey, process->pid, &added, &removed));
	find_loader(process);
	if (!process->launch.loader)
		return MW_REFUSE("--engine trap can launch it", "the command is a static program: it has no loader "
								"that shows when it is ready for the jump engine");
	return mw_journal_plant(&process->patches.journal, process->pid, process->launch.loader, arch->breakpoint,
				arch->breakpoint_length, &process->launch.patch);
}

/* The function is empty: to return from it is all it does. */
static struct mw_error *return_from_loader(struct jump_process *process, struct mw_tracee_regs *regs)
{
	uint64_t *sp = &regs->general.gpr[process->survey.arch->dwarf_sp];
	mw_addr ret;

	MW_TRY(mw_remote_read_all(process->pid, *sp, &ret, sizeof(ret)));
	regs->general.pc = ret;
	*sp += sizeof(ret);
	return mw_tracee_set_regs(process->pid, regs);
}

static struct mw_error *install_launched(struct jump_process *process)
{
	const struct mw_engine_options *options = &process->engine->options;

	MW_TRY(survey(process));
	MW_TRY(install_code(process));
	MW_TRY(install_data(process));
	MW_TRY(install_jumps(process));
	process->launched = false;
	if (options->sample)
		options->sample(options->sample_context, process->pid, process->pid, 0, false);
	return NULL;
}

static struct mw_error *loader_ready(struct jump_process *process, struct mw_tracee_regs *regs)
{
	struct mw_error *err;

	MW_TRY(mw_journal_restore(&process->patches.journal, process->pid, process->launch.patch));
	mw_journal_forget_all(&process->patches.journal);
	/* It was memwatch's child before, and had its name. */
	mw_comm_read(process->pid, process->pid, process->name);
	regs->general.pc = process->launch.loader;
	MW_TRY(mw_tracee_set_regs(process->pid, regs));
	err = mw_quiesce_take(&process->quiesce, process->pid);
	if (!err)
		err = install_launched(process);
	if (err) {
		if (process->engine->options.stop_unfit && mw_error_kind(err) == MW_ERROR_UNSUPPORTED)
			kill(process->pid, SIGSTOP);
		return err; /* detach lets it go */
	}
	err = jump_let_go(process);
	process->stats.attach_ns = process->quiesce.stood_ns;
	return err;
}

/* `*resume` is false where it has been let go or is to stay stopped. */
static struct mw_error *on_trap(struct jump_process *process, bool *resume, int *signal)
{
	const struct mw_arch *arch = process->survey.arch;
	struct mw_tracee_regs regs;

	MW_TRY(mw_tracee_get_regs(process->pid, &regs));
	if (!process->launch.loader || regs.general.pc != process->launch.loader + arch->breakpoint_advance) {
		*signal = SIGTRAP;
		return NULL;
	}
	mw_tracee_take_signal(process->pid);
	if (++process->launch.told < process->launch.tells)
		return return_from_loader(process, &regs);
	*resume = false;
	return loader_ready(process, &regs);
}

static struct mw_error *on_stop(struct jump_process *process, int status)
{
	int signal = 0;
	bool resume = true;

	switch (status >> 16) {
	case 0:
		if (WSTOPSIG(status) == SIGTRAP)
			MW_TRY(on_trap(process, &resume, &signal));
		else
			signal = WSTOPSIG(status);
		break;
	case PTRACE_EVENT_EXEC:
		MW_TRY(on_exec(process));
		break;
	case PTRACE_EVENT_STOP:
		if (WSTOPSIG(status) != SIGTRAP)
			return mw_tracee_listen(process->pid);
		break;
	default:
		break;
	}
	return resume ? mw_tracee_resume(process->pid, signal) : NULL;
}

struct mw_error *jump_launch_go_on(struct jump_process *process)
{
	for (;;) {
		int status;
		struct mw_error *err;
		pid_t got = mw_tracee_wait(process->pid, &status, WNOHANG);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return NULL;
		if (!WIFSTOPPED(status)) {
			jump_exit_status(process, status);
			return jump_process_end(process, MW_END_EXIT);
		}
		err = on_stop(process, status);
		/* Its end is still to come. */
		if (!process->quiesce.standing)
			err = mw_error_unless_gone(err);
		if (err || !process->launched)
			return err;
	}
}

struct mw_error *jump_prepare(struct jump_process *process)
{
	if (process->launched)
		return launch_begin(process);
	mw_program_read(process->pid, &process->program);
	return mw_program_explain(process->pid, &process->program, put_in(process));
}
