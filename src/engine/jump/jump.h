/* SPDX-License-Identifier: MIT */
/*
 * jump.h: what the parts of the jump engine share.
 *
 * Nobody is traced while the window goes. ptrace is used for moments only: to put the recorder in (attach.c; memory.c
 * maps what it needs; patch.c plans and writes the jumps), to look at modules that came (attach.c), and to take it all
 * out again (process.c). The way of an event: trampoline → recorder (src/stub) → ring → drain.c, in order of time
 * → records.c → sink. engine.c goes round: drain, answers to what the recorder asks (ask.c), modules, children,
 * samples.
 *
 * One thread of memwatch does all of it, but for the heartbeat, which has its own.
 */
#ifndef MW_ENGINE_JUMP_JUMP_H
#define MW_ENGINE_JUMP_JUMP_H

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/path.h"
#include "base/vector.h"
#include "engine/jump/drain.h"
#include "engine/survey.h"
#include "proc/peek.h"
#include "proc/program.h"
#include "proc/status.h"
#include "stub/stub.h"
#include "symbol/frames.h"
#include "tracee/inject.h"
#include "tracee/journal.h"
#include "tracee/quiesce.h"
#include "tracee/seccomp_policy.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#include <memwatch/engine.h>
#include <pthread.h>
#include <stdlib.h>

#define JUMP_NO_HOOK     UINT32_MAX
#define JUMP_MAX_DEPTH   1024
#define JUMP_PAGE        4096u
#define JUMP_PLACES      64
#define JUMP_STACK_BELOW 16384u     /* bytes below a stack pointer: several frames of signals */
#define JUMP_STACK_SCAN  (1u << 20) /* bytes from a stack pointer up that are looked through */

/* A function that is, or is to be, detoured. */
struct jump_patch {
	uint32_t number; /* of the stub's hook; that of the hook in the survey, or one from the top for a helper */
	uint32_t hook;   /* in the survey, or JUMP_NO_HOOK */
	uint8_t role;    /* enum mw_role or MW_STUB_… */
	uint32_t module;
	const char *function;
	mw_addr addr;
	uint64_t size; /* of the function, 0 unknown */
	struct mw_detour detour;
	uint32_t entry;        /* where its trampoline leads to, from the image's start */
	mw_addr trampoline_at; /* 0: none yet */
	struct mw_trampoline trampoline;
	size_t journal;
	bool standing;
	bool gone; /* its module is unmapped */
};

/* Memory of ours in the target that holds trampolines. */
struct jump_trampolines {
	mw_addr start;
	uint64_t size, used;
};

/* A place that a signal has interrupted (standing.c): where its frame keeps the pc, and what. */
struct jump_interrupted {
	mw_addr at, sp, pc;
	uint64_t others; /* of the registers that it keeps: what they are */
};

/* What has been seen since calls, or handlers, are waited for. */
struct jump_seen {
	struct jump_interrupted *gone_back;
	size_t gone_back_count;
	mw_addr places[JUMP_PLACES]; /* where what may come back was found (standing.c) */
	size_t place_count;
	mw_addr reached;   /* all that lies below has been looked through */
	bool at_large;     /* … and all mappings that are not large */
	uint64_t clear_ns; /* all stand since then (mw_quiesce.since_ns), and nothing was found anywhere */
	uint64_t since_ns;
	uint64_t since_cpu_ns; /* … and the CPU time that the process had had by then */
	uint64_t handlers_ns;  /* all stand since then (mw_quiesce.since_ns), and no handler goes back to what is
				  overwritten */
};

/* What is learned of a pc (help.c). */
struct jump_learned {
	mw_addr pc;
	uint64_t row; /* as in memwatch/ring.h */
	uint32_t module;
};

/* Code that nothing describes (help.c). */
struct jump_learned_code {
	struct jump_learned *items;
	size_t count, capacity;
	struct mw_map at;  /* by pc: index in `items`, plus 1 */
	mw_addr *to_learn; /* met by the recorder, and not looked at yet */
	size_t to_learn_count, to_learn_capacity;
	mw_addr *stack_pointers; /* of the threads, as they were stopped before the window */
	size_t stack_pointer_count;
};

static inline void jump_learned_deinit(struct jump_learned_code *learned)
{
	free(learned->items);
	free(learned->to_learn);
	free(learned->stack_pointers);
	mw_map_deinit(&learned->at);
}

struct jump_engine;

/* The functions that are, or are to be, detoured (patch.c). */
struct jump_patches {
	struct jump_patch *items;
	size_t count, capacity;
	struct mw_journal journal;
	uint32_t next_helper;  /* stub hook number that the next helper gets, plus 1 */
	uint32_t helpers_seen; /* modules looked at for helpers */
	bool loader_hooked;
	size_t disturbed;         /* jumps that somebody else had written over by the end */
	const char *odd_unwinder; /* a module whose unwinder can't be told of our frames, or NULL */
};

/* The recorder and its memory in the target (memory.c). */
struct jump_recorder {
	struct mw_shared_memory memory;
	struct jump_shared shared;
	uint32_t first_rings; /* rings that have memory from the beginning */
	struct mw_stub_context context;
	const uint8_t *code;     /* the image, as it is in the process: mw_stub_image, or that of a memwatch before */
	uint32_t open_elsewhere; /* mw_ring_control.open, where the control block is not at hand */
	bool mapped;             /* any memory of ours may be in the process */
	mw_addr image, guard;    /* 0: never there */
	uint64_t image_size;
	struct jump_trampolines *trampolines;
	size_t trampolines_count;
	uint32_t owned_count; /* pieces of memory that are known in the control block */
	int own_memory;       /* its memory as a file, which leads to this program's, also when it is another; or -1 */
};

/* How the recorder walks stacks (rows.c). */
struct jump_rows {
	struct mw_row_dictionary dictionary;
	struct jump_module_rows *items; /* by module number */
	size_t count;
	uint64_t used;               /* bytes of the shared space for rows */
	uint64_t published;          /* rows of the dictionary */
	struct mw_ring_index *index; /* as it was published last, or NULL */
	bool stale;                  /* code was met that is not in it */
};

/* What has been seen of stacks of the process (standing.c). */
struct jump_stacks_known {
	bool own;              /* it has been seen on a custom stack: none that a thread was made with */
	bool has_frames;       /* a signal's frame has been found in its memory */
	uint64_t search_until; /* for forked children of one with stacks of its own; 0: not now */
};

/* Thread ids of the process (help.c). */
struct jump_ids {
	bool other_namespace;            /* they are not those that memwatch sees */
	uint32_t first;                  /* its first thread, as that is known in its innermost namespace */
	struct mw_map tids;              /* ours, by number in the innermost namespace; only where that is another */
	uint64_t seek_ns, seek_since_ns; /* time spent on finding them; since when */
};

/* Forked children (process.c). */
struct jump_children {
	uint64_t attach_start; /* clock ticks of /proc starttime at attach: younger processes may be our children */
	uint32_t seen;
	uint64_t cleaned;
};

/* From a window in which every block is recorded to one that samples (sampling.c). */
struct jump_transition {
	enum { JUMP_TRANSITION_NONE, JUMP_TRANSITION_VISITS, JUMP_TRANSITION_RECORDS, JUMP_TRANSITION_DONE } state;
	uint64_t since_ns;
	uint64_t interval; /* bytes */
	uint64_t step;     /* when it was last looked at what threads have waited */
	uint64_t limit;    /* ticks that they may wait in PERIOD_NS */
	uint64_t limit_ns; /* … 0: not at all, or for ever */
	uint64_t *entries; /* of each slot whose thread was in the recorder, as it was then; 0: it has left */
};

/* When it was last done (engine.c). */
struct jump_last {
	uint64_t sample_ns, tidy_ns, alive_ns, look_ns, name_ns, served_ns, made_ns;
	uint64_t java_next_ns;      /* when it is to be done next */
	uint64_t counted, event_ns; /* what the recorder had counted, and when that was last another */
	uint64_t asked, busy_ns;    /* … what threads had asked for; or there were many records */
	uint64_t calm_ns;
};

struct jump_process {
	struct jump_engine *engine;
	pid_t pid;
	pid_t key; /* by which it is asked for: the pid, or another number once it is over */
	int pidfd; /* -1: the kernel has none */
	char name[17];
	struct mw_event_sink sink;
	struct mw_program program; /* that was prepared */
	bool launched;             /* stands before its exec, or its loader is at work */
	bool windowed;             /* the window has begun */
	bool window_closed;        /* … and nothing is recorded any more */
	bool ended;                /* … and is over; nothing of ours is left in the process, or it is no more */
	bool installed;
	bool launched_by_us; /* memwatch is its parent */
	bool exiting;        /* a thread of it has called _exit */
	bool calm;           /* blocks are sampled, and there is little to do for it (engine.c) */
	bool signalled;      /* its pidfd has told of its end, or there is none to tell */
	bool gave_up;        /* the recorder stopped as memwatch was not heard of */
	bool is_copy;        /* a forked child's, in another process's words */
	struct {
		mw_addr loader; /* the loader's word for debuggers: a breakpoint stands there */
		size_t patch;
		unsigned told;  /* how often it was come to */
		unsigned tells; /* … when all is mapped */
		bool execed;
	} launch;
	char why_left[160]; /* what could not be taken out, "" where all was */
	struct mw_survey survey;
	struct mw_unwinder *unwinder;
	struct mw_unwinder *inner; /* the one below its memo */
	struct mw_quiesce quiesce;
	struct mw_seccomp_policy policy;
	struct jump_patches patches;
	struct jump_recorder recorder;
	struct jump_rows rows;
	struct jump_learned_code learned;
	struct jump_seen seen;
	struct jump_stacks_known stacks;
	struct jump_ids ids;
	struct jump_children children;
	struct jump_clock clock;
	struct jump_drain *drain;
	struct jump_transition transition;
	uint32_t asks_seen;
	struct jump_last last;
	struct mw_engine_stats stats;
	struct mw_window_info window;
};

/* urgency.c: the priority of the thread that serves. */
struct jump_urgency {
	bool on;
	int nice, policy, slack; /* before */
	bool may, realtime;      /* be a real-time thread; is one now */
	uint64_t left_ns;        /* for so long */
	uint64_t seen_ns;
};

/* The calling thread is to get a CPU whenever it wants one, as far as it may; again, after jump_urgency_lower(). */
void jump_urgency_begin(struct jump_urgency *urgency);
/* Since the last call it has worked, or rested. */
void jump_urgency_note(struct jump_urgency *urgency, bool worked);
/* It is no real-time thread until the next jump_urgency_note(): for what may take long, and for what others are to get a
 * CPU for. */
void jump_urgency_lower(struct jump_urgency *urgency);
/* As it was before. */
void jump_urgency_end(struct jump_urgency *urgency);

struct jump_engine {
	struct mw_engine base;
	struct mw_engine_options options;
	struct jump_process **processes;
	size_t process_count;
	enum mw_window_end end; /* why run() came back */
	bool windows_ended;     /* … and stays the reason */
	struct mw_orphans others;
	struct {
		pthread_t thread;
		bool beating, stop;
		pthread_mutex_t lock; /* of controls and count */
		pthread_cond_t wake;
		struct mw_ring_control **controls;
		size_t count;
	} heart;
	/* Serve those whose windows have begun, while another is prepared, which takes long. */
	void (*serve)(struct jump_engine *engine);
	struct mw_error *failure; /* of that; the next run() returns it */
	bool clock_trusted;       /* that was looked at once */
	size_t alive;             /* processes whose windows are not over, at the last rest */
	unsigned idle_rounds;
	int ends; /* epoll of the processes' pidfds, and of what wakes us */
	uint64_t woken_ns;
	struct jump_urgency urgency;
	struct mw_unwound_frame *frames; /* room for depth of them */
};

/* What the image that the process has says of itself. */
static inline const struct mw_stub_header *jump_header(const struct jump_process *process)
{
	return (const struct mw_stub_header *)(const void *)process->recorder.code;
}

/* Is there a reason to look for what no thread is in? Forked children are many, and are not looked through for less. */
static inline bool jump_may_be_suspended(const struct jump_process *process)
{
	return process->stacks.own || (process->stacks.has_frames && !process->is_copy);
}

/* Memory of ours for trampolines that an address lies in, or NULL. */
static inline const struct jump_trampolines *jump_trampolines_at(const struct jump_recorder *recorder, mw_addr addr)
{
	for (size_t i = 0; i < recorder->trampolines_count; i++)
		if (addr - recorder->trampolines[i].start < recorder->trampolines[i].size)
			return &recorder->trampolines[i];
	return NULL;
}

/* How a patch's trampoline calls the recorder, whose image is there or has its place. */
static inline struct mw_trampoline_frame jump_frame_of(const struct jump_process *process,
						       const struct jump_patch *patch)
{
	return (struct mw_trampoline_frame){.entry = process->recorder.image + patch->entry,
					    .hook = patch->number,
					    .frame_size = MW_STUB_CALL_SIZE};
}

/* Are its heap blocks sampled from the beginning? */
static inline bool jump_samples(const struct jump_process *process)
{
	return process->engine && process->engine->options.sample_interval && process->engine->options.track_heap;
}

/* … or may they be, if memwatch can't keep up? */
static inline bool jump_may_sample(const struct jump_process *process)
{
	const struct mw_engine_options *options = process->engine ? &process->engine->options : NULL;

	return jump_samples(process) || (options && options->track_heap &&
					 (options->overload == MW_OVERLOAD_SAMPLE ||
					  (options->overload == MW_OVERLOAD_WAIT && options->max_wait)));
}

/* Is its jump still to be written? */
static inline bool jump_is_due(const struct jump_patch *patch)
{
	return !patch->standing && !patch->gone && patch->trampoline_at;
}

/* The registers of a thread; false where it does not stand, or they can't be read. */
static inline bool jump_regs_of(const struct mw_quiet_thread *thread, struct mw_tracee_regs *out)
{
	return thread->stopped && mw_error_none(mw_tracee_get_regs(thread->tid, out));
}

/* While it is stopped: it has not ended, nor become another program. */
static inline bool jump_still_there(const struct jump_process *process)
{
	return !process->quiesce.gone && !process->quiesce.execed;
}

/* ns since the window's start. */
static inline uint64_t jump_now(const struct jump_process *process)
{
	return mw_clock_ns() - process->clock.start_ns;
}

/* attach.c */
/* Put in all but the jumps. The process is stopped for a part of it, and runs when this returns. One that was launched
 * is seized before its exec, and is put in when its libraries are mapped (jump_launch_go_on). */
struct mw_error *jump_prepare(struct jump_process *process) MW_MUST_CHECK;
/* Stop it, write the jumps, let it go. What was put into one program is nothing to another: stopped, it stays what it
 * is. */
struct mw_error *jump_begin_window(struct jump_process *process) MW_MUST_CHECK;
/* If the launched command has stopped, see to it. */
struct mw_error *jump_launch_go_on(struct jump_process *process) MW_MUST_CHECK;
/* The loader says that modules came or went. */
struct mw_error *jump_modules_changed(struct jump_process *process) MW_MUST_CHECK;

/* process.c */
struct mw_error *jump_process_create(struct jump_engine *engine, pid_t pid, const struct mw_event_sink *sink,
				     struct jump_process **out) MW_MUST_CHECK;
void jump_process_destroy(struct jump_process *process);
bool jump_has_exited(const struct jump_process *process);
/* Does it run another program now? */
bool jump_has_execed(const struct jump_process *process);
/* Note the exit status, `known` as waitpid gives it or -1. */
void jump_exit_status(struct jump_process *process, int known);
/* Take over the drain's figures. */
void jump_stats_take(struct jump_process *process);
/* All threads stand, and one of them can be picked. Where that fails it is tried again for `patience_ns`; then they are
 * let go, and quiesce says what became of the process. Errors: those of mw_quiesce_begin. */
struct mw_error *jump_stop(struct jump_process *process, uint64_t patience_ns) MW_MUST_CHECK;
/* … and let them go: how long they stood is counted; what of that was after the window counts as detach. Errors: those of
 * mw_quiesce_end. */
struct mw_error *jump_let_go(struct jump_process *process) MW_MUST_CHECK;
/*
 * Of the threads that stand, one that makes system calls for us, `calls` (MW_CALL_BIT, MW_CALLS_...), and lives through
 * them under its seccomp filters should memwatch be killed amidst one; *tid is 0 where there is none. That is for what
 * is put in: to take it out again any will do (mw_seccomp_policy_pick_best). Errors: GONE, MEMORY.
 */
struct mw_error *jump_injector_find(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
				    const struct mw_maps *maps, uint32_t calls, pid_t *tid,
				    struct mw_permit *permit) MW_MUST_CHECK;
/* Clean those that have been heard of. */
void jump_children_heard(struct jump_process *process);
/* Take what is ours out of a process that is to be watched itself, if that was forked from this one. Errors: DENIED where
 * it can't be taken out yet; those of stopping and changing a process. */
struct mw_error *jump_child_release(struct jump_process *process, pid_t pid) MW_MUST_CHECK;
/* The window ends now, or when it was as long as it was to be. What is recorded from now on is reported, too. */
void jump_window_close(struct jump_process *process);
/* The recorder is turned off. */
struct mw_error *jump_window_end(struct jump_process *process) MW_MUST_CHECK;
struct mw_error *jump_process_detach(struct jump_process *process, enum mw_window_end end) MW_MUST_CHECK;
/* The process is no more, or is another program now. */
struct mw_error *jump_process_end(struct jump_process *process, enum mw_window_end end) MW_MUST_CHECK;
/* End its window if it has ended or become another program. */
struct mw_error *jump_look_alive(struct jump_process *process) MW_MUST_CHECK;

/* sampling.c */
/* By which entry of the recorder a function that is to be detoured enters it, from the image's start. */
uint32_t jump_entry_of(struct jump_process *process, const struct jump_patch *patch);
/* How long threads may wait: to be said before the window begins. */
void jump_waiting_plan(struct jump_process *process);
/* Threads have waited for too long: sample, or more sparsely. To be called after each round. Errors: those of the sink's
 * interval() and events(), and of writing to the process. */
struct mw_error *jump_overload_serve(struct jump_process *process) MW_MUST_CHECK;
/* Blocks are sampled with this interval from now on, in bytes. Errors: those of the sink's interval(). */
struct mw_error *jump_sampling_set(struct jump_process *process, uint64_t bytes) MW_MUST_CHECK;

/* memory.c: memory of ours in the target. `inject` is ready. */
/* Map what is needed; trampolines for all planned patches, the image and its context are written. */
struct mw_error *jump_memory_put_in(struct jump_process *process, const struct mw_inject *inject,
				    const struct mw_maps *maps, uint64_t rows_bytes) MW_MUST_CHECK;
/* Trampolines for patches that were planned since, and what else came into the context; inject->tid stands. */
struct mw_error *jump_memory_extend(struct jump_process *process, const struct mw_inject *inject) MW_MUST_CHECK;
/* All of it, at most `capacity` ranges; returns how many. */
size_t jump_memory_ranges(const struct jump_recorder *recorder, struct mw_engine_range *out, size_t capacity);
/* Add up how much of that is resident in the process, and mapped. */
void jump_memory_measure(const struct jump_recorder *recorder, pid_t tid, uint64_t *resident, uint64_t *mapped);
/* Give what was mapped its memory, and format it: takes its time, nothing need stand for it. */
struct mw_error *jump_memory_prepare(struct jump_process *process) MW_MUST_CHECK;
/* As the drain asks for it: give `count` rings of the process (`context`) from `first` memory, and what is theirs alone.
 * */
bool jump_memory_fill_rings(void *context, uint32_t first, uint32_t count);
/* The same for the filter of sampled blocks, and for the rows of learned code; again where they have it. */
struct mw_error *jump_memory_fill_filter(struct jump_process *process) MW_MUST_CHECK;
bool jump_memory_fill_learned(struct jump_process *process);
/* Unmap it all. */
struct mw_error *jump_memory_unmap(struct jump_process *process, const struct mw_inject *inject) MW_MUST_CHECK;
/* Is an address in code of ours? */
bool jump_memory_ours(const struct jump_process *process, mw_addr addr);
/* Unmap what is shared. */
void jump_memory_close(struct jump_process *process);
/* Turn recording on and off. `tid` is any live thread. */
struct mw_error *jump_guard_set(struct jump_process *process, pid_t tid, uint64_t value) MW_MUST_CHECK;
/* The recorder holds memwatch for gone where its heart stops. */
void jump_heart_stop(struct jump_engine *engine);

/* ask.c: what the recorder asks. */
/* Answer for all threads before they ask: they stand, and nothing records yet. Best effort. */
void jump_introduce_threads(struct jump_process *process);
void jump_answer(struct jump_process *process);

/* script.c: tell the recorder how an interpreter's frames are read, and where; and its frames among native ones, for the
 * drain. */
void jump_script_publish(struct jump_process *process);
/* Read the code objects of the first `count` frames in the scratch of the slot's ring. */
void jump_script_learn(struct jump_process *process, const struct mw_ring_slot *slot, uint64_t count);
/* … what the functions of JavaScript are called, among so many words of frames in the scratch of the slot's ring, and say so. */
void jump_javascript_learn(struct jump_process *process, const struct mw_ring_slot *slot, uint64_t count);
struct mw_error *jump_help_script(void *context, const struct mw_raw_stack *native, const struct mw_script_ref *refs,
				  uint32_t ref_count, struct mw_raw_frame *out, uint32_t capacity, uint32_t *count,
				  bool *truncated) MW_MUST_CHECK;

/* rows.c: how the recorder is to walk stacks. */
struct jump_module_rows {
	bool tried, published;
	const struct mw_file_rows *compiled; /* the image's; until it is published, NULL then */
	uint64_t offset, count;              /* in the shared memory; count 0: none */
	uint64_t base;                       /* vaddr */
	struct mw_generated_code generated;
};
/* Compile the rows of modules that are new: takes its time. `*bytes` is what all that is not published yet will take.
 */
struct mw_error *jump_rows_compile(struct jump_process *process, uint64_t *bytes) MW_MUST_CHECK;
/* Publish what is new, and which code is where. A new generation makes the recorder forget what it has looked up. */
struct mw_error *jump_rows_publish(struct jump_process *process, const struct mw_maps *maps,
				   bool new_generation) MW_MUST_CHECK;
/* Has the process generated code in a file (mw_generated_code)? Then it makes more as it runs. */
bool jump_rows_makes_code(const struct jump_process *process);
/* A stack of such a process comes to `pc`, which is in no module: if it is not in what was published, … */
void jump_rows_met(struct jump_process *process, mw_addr pc);
/* … the mappings are to be looked at again: publish what is new. */
struct mw_error *jump_rows_look(struct jump_process *process) MW_MUST_CHECK;
/* The row of the return address `pc` by what was compiled of its module, or that of MW_ROW_NONE. */
uint64_t jump_rows_find(const struct jump_process *process, mw_addr pc);

/* help.c: what the drain asks, and code that nothing describes. */
/* Which thread is that, as memwatch sees it, which the process knows by `tid`? 0: none. */
pid_t jump_thread_of(struct jump_process *process, uint32_t tid);
struct jump_drain_help jump_help(struct jump_process *process);
/* A walk of memwatch's came through there: read off the code how the recorder's is to go on. The row; of kind FOREIGN
 * where that is not certain, NONE where the code is described. */
uint64_t jump_learn(struct jump_process *process, mw_addr pc);
/* … as a thread asks for that, and for more on its stack that is code of the same kind. */
void jump_learn_asked(struct jump_process *process, const struct mw_ring_slot *slot, mw_addr pc);
/* … later: a walk of the recorder's ended there. */
void jump_learn_later(struct jump_process *process, mw_addr pc);
/* Do what is to be done of that, for a few milliseconds. */
void jump_learn_some(struct jump_process *process);
/* Note where the stacks of the threads are, which are stopped; jump_learn_from_stacks() is for when they run again. */
void jump_learn_note_stacks(struct jump_process *process);
/* Learn what the callers of these threads do before the recorder meets them: for a few milliseconds. */
void jump_learn_from_stacks(struct jump_process *process);
/*
 * Look at the frames of a stack that the recorder has walked: one that a row of code has led to must have been called.
 * Returns how many are good; the last of them is where the stack is broken.
 */
uint32_t jump_learned_check(struct jump_process *process, struct mw_raw_frame *frames, uint32_t count);
/* Forget what was in modules that are gone, before there is a new generation. */
void jump_learned_tidy(struct jump_process *process);
/* Have stacks told anew where frames of theirs have other names now; `now` as jump_now() tells. */
void jump_java_serve(struct jump_process *process, uint64_t now);

/* patch.c: which functions get a jump, and can they have one. Before anything is stopped. */
/* Plan what came since the last time. `why` of detours says what is refused. */
struct mw_error *jump_plan(struct jump_process *process, pid_t tid) MW_MUST_CHECK;
/* Can the patch's function be detoured, as its module's file has it? Fills the detour, the reason in it. */
void jump_plan_detour(const struct jump_process *process, struct jump_patch *patch);
/* Can the process be watched by jumps as planned? UNSUPPORTED with the reason. */
struct mw_error *jump_plan_check(const struct jump_process *process) MW_MUST_CHECK;

/* … and the jumps: all threads stand. */
/* Plant all that is planned and has a trampoline. `*maps`, which is the caller's to free, is filled with what is mapped then.
 */
struct mw_error *jump_patch_all(struct jump_process *process, struct mw_maps *maps) MW_MUST_CHECK;
/* Is what stands where the patch is to be the code of the module that it was planned for? */
bool jump_patch_in_place(const struct jump_process *process, const struct jump_patch *patch,
			 const struct mw_maps *maps);
/*
 * Put the functions' bytes back, and threads out of what was copied, and let calls in flight come back (as
 * jump_await_calls() does). `*taken`: a function whose jump somebody else has written over, which is left as it is;
 * else as it was.
 */
struct mw_error *jump_unpatch_all(struct jump_process *process, struct mw_maps *maps,
				  void (*look)(struct jump_process *process, void *context), void *context,
				  const char **taken, size_t *left) MW_MUST_CHECK;
/* Put back the bytes of unwinders' functions, or of all others, in a forked child. */
struct mw_error *jump_unpatch_copy(const struct jump_process *process, pid_t child, bool unwinders) MW_MUST_CHECK;
/* Threads that stand in copies of instructions, to the instructions. */
struct mw_error *jump_move_out(struct jump_process *process) MW_MUST_CHECK;

/* standing.c: all threads stand. */
/* Let handlers return that will go back into what is to be overwritten. UNSUPPORTED where they don't soon. */
struct mw_error *jump_await_handlers(struct jump_process *process) MW_MUST_CHECK;
/* How many threads are in our code, or in calls that return there? `copy`: they are those of a forked child. */
size_t jump_in_flight(struct jump_process *process, const struct mw_maps *maps, bool copy);
/* Let calls in flight come back, for three seconds at most; all threads stand, and do so again. Threads are put out of
 * copies of instructions first, `maps` read anew, and `look` sees to it that the slots are as they are now. `*left`:
 * how many have not come back. Errors: those of the stop and of /proc. */
struct mw_error *jump_await_calls(struct jump_process *process, struct mw_maps *maps,
				  void (*look)(struct jump_process *process, void *context), void *context,
				  size_t *left) MW_MUST_CHECK;
/* The process runs: has it handlers, and is there a frame of a signal's in its memory (has_frames)? */
void jump_look_for_frames(struct jump_process *process);
/*
 * What a signal has interrupted, whose handler is at work or has switched to another stack: the place to go back to
 * lies in memory then, word `i` of `count` words at address `at`. Is it among the instructions of a trampoline or of
 * the image? Return addresses, which follow a call, may be left over from calls long ago; a thread that is in the
 * recorder's calls has told so (slot->inside).
 */
bool jump_interrupted_in_ours(const struct jump_process *process, mw_addr at, const uint64_t *stack, size_t count,
			      size_t i);
/* What has been gone back to may be interrupted anew: forget what was seen. */
void jump_seen_nothing(struct jump_process *process);
/* Take note of who is on a stack of the program's own making (stacks.own), and what has been gone back to there. */
void jump_note_stacks(struct jump_process *process, const struct mw_maps *maps);

/* search.c: look through the memory of a process for what may come back to somewhere. */
#define JUMP_CALL_WORDS (sizeof(struct mw_stub_call) / sizeof(uint64_t))

/* A thread's own stack, and the stack pointer of the thread on it. */
struct jump_running {
	mw_addr start, sp;
};

/* Doubtful is what looks like something that has long been left, and may not have been. */
enum jump_found { JUMP_FOUND_NOTHING, JUMP_FOUND_DOUBTFUL, JUMP_FOUND };

struct jump_search {
	struct jump_process *process;
	pid_t tid; /* to read by */
	/* Does word `i` of the `count` at `start` (`words`) tell of what is looked for? */
	enum jump_found (*tells)(struct jump_search *search, mw_addr start, size_t count, size_t i);
	mw_addr low, high; /* what is looked for leads to [low, high) */
	bool counted;      /* the recorder's count says that there is something */
	bool first;        /* that there is anything is all that is asked */
	bool brief; /* it is hardly there: 5 ms of CPU time are enough, in which a small process is looked through */

	/* What came of it. What lies below the stack pointer of the thread whose stack it is is doubtful as well: a
	 * stack of the program's own making may lie in a variable there. */
	size_t found, doubtful, below; /* `below` are among `doubtful` */

	unsigned altstack_looks; /* standing.c's */

	/* search.c's */
	uint64_t *words;
	int pagemap;    /* -1: none, all is taken for present */
	uint64_t left;  /* bytes that may still be looked through */
	uint64_t until; /* … before that much CPU time was spent */
	struct jump_running *running;
	size_t running_count;
};

/*
 * Look at the places where something was found since jump_seen_nothing(); where it is there no more, through all
 * memory that may hold stacks: 256 MiB, and 0.3 s of CPU time, at most. The next search goes on where this one had to
 * end. What is found is taken note of. False: not everything has been looked at since, for want of memory or time.
 */
bool jump_search(struct jump_search *search, const struct mw_maps *maps);
/* The next one begins at the beginning. */
static inline void jump_seen_anew(struct jump_seen *seen)
{
	seen->reached = 0;
	seen->at_large = false;
}

/* Nobody comes back to a stack pointer right below that of the thread whose stack it is. Further down there may be
 * stacks of the program's own making, in a variable of a function that has called what runs. */
static inline bool jump_search_below(const struct jump_search *search, mw_addr sp)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (sp >= search->running[i].start && sp < search->running[i].sp &&
		    search->running[i].sp - sp <= JUMP_STACK_BELOW)
			return true;
	return false;
}

/* Does a thread with these registers run on the stack that it was made with? */
bool jump_on_own_stack(const struct jump_process *process, const struct mw_maps *maps, pid_t tid,
		       const struct mw_regs *regs);

#endif
