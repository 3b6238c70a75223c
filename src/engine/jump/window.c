// SPDX-License-Identifier: MIT
/* window.c: what is done while the window goes (jump.h). */
#include "engine/jump/lifecycle.h"
#include "engine/jump/recorder.h"
#include "engine/jump/walking.h"

#include "base/clock.h"
#include "proc/file.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A process that ends by itself can be looked at before.
 *
 * Its thread waits in the recorder, at the entry of _exit, until this has been done, for a second at most.
 * What is looked at is the last only if the process ends then, which a task of its own kind that shares its memory may
 * seem to do and not do.
 */

#define CATCH_UP_NS UINT64_C(50000000) /* for what was recorded before */

/*
 * Is the thread in a system call? Then it is not the one that waits in the recorder: a vfork or posix_spawn child does,
 * which runs in the thread's memory with the thread's control block, and for which the thread waits in the kernel.
 */
static bool in_system_call(const struct jump_process *process, pid_t tid)
{
	char *text = NULL, *end;
	size_t size = 0;
	bool is;
	/* "running", "-1 SP PC" of a thread that was interrupted elsewhere, or a call's number and arguments */
	struct mw_error *err = mw_proc_file_read(&text, &size, "/proc/%d/task/%d/syscall", (int)process->pid, (int)tid);

	if (err) {
		mw_error_destroy(err);
		return false;
	}
	is = strtol(text, &end, 10) >= 0 && end != text;
	free(text);
	return is;
}

static struct mw_error *catch_up(struct jump_process *process)
{
	uint64_t begin = mw_clock_ns();
	size_t events = 1;

	while (events && mw_clock_ns() - begin < CATCH_UP_NS)
		MW_TRY(jump_drain_round(process->drain, &events));
	return NULL;
}

static struct mw_error *jump_serve_exits(struct jump_process *process,
					 void (*look)(struct jump_process *process, bool last))
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint64_t exits = __atomic_load_n(&control->exits, __ATOMIC_ACQUIRE);
	uint32_t number = mw_ring_exit_count(exits), served = control->exits_served;
	struct mw_error *err = NULL;

	if (number == served)
		return NULL;
	/* Of several that came at once only the last has left its name. */
	if (number - served > 1 || !in_system_call(process, jump_thread_of(process, mw_ring_exit_tid(exits)))) {
		process->exiting = true;
		err = catch_up(process);
		if (!err)
			look(process, true);
	}
	__atomic_store_n(&control->exits_served, number, __ATOMIC_RELEASE);
	return err;
}

#define MS          UINT64_C(1000000)
#define SAMPLE_NS   (1000 * MS)
#define ALIVE_NS    (10 * MS)
#define TIDY_NS     (50 * MS)
#define NAMES_NS    (1000 * MS)
#define LOOK_NS     (250 * MS) /* at the modules, where the loader can't be asked to tell */
#define SHORT_NS    (MS / 20)
#define ACTIVE_NS   (MS + MS / 2) /* an answer may be waited for */
#define LONG_NS     (6 * MS)
#define IDLE_ROUNDS 64

static void take_sample(struct jump_process *process, bool last)
{
	const struct mw_engine_options *options = &process->engine->options;
	uint64_t now = jump_now(process);

	if (!options->sample || (!last && now - process->last.sample_ns < SAMPLE_NS))
		return;
	process->last.sample_ns = now;
	options->sample(options->sample_context, process->pid, jump_live_tid(process), now, last);
}

/* What has ended so soon after an exec has not been seen as what it had become. */
static bool became_another(const struct jump_process *process)
{
	for (uint32_t i = 0; i < process->recorder.shared.geometry.slot_count; i++) {
		const struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, i);

		/* Nothing has been heard of the thread since: it was no vfork child of its that called it. */
		if (slot->owner > MW_RING_TOMB && slot->exec && slot->exec == slot->entries)
			return true;
	}
	return false;
}

static struct mw_error *look_alive(struct jump_process *process)
{
	if (jump_has_exited(process)) {
		jump_exit_status(process, -1);
		return jump_process_end(process,
					!process->exiting && became_another(process) ? MW_END_EXEC : MW_END_EXIT);
	}
	if (jump_has_execed(process) && !jump_has_exited(process))
		return jump_process_end(process, MW_END_EXEC);
	return NULL;
}

static bool due(uint64_t *last, uint64_t now, uint64_t every)
{
	if (now - *last < every)
		return false;
	*last = now;
	return true;
}

/* The loader waits in the target until this has been done. */
static struct mw_error *serve_loader(struct jump_process *process, uint64_t now)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint32_t changes = __atomic_load_n(&control->loader_changes, __ATOMIC_ACQUIRE);
	struct mw_error *err;

	if (changes == control->loader_served &&
	    (process->patches.loader_hooked || !due(&process->last.look_ns, now, LOOK_NS)))
		return NULL;
	err = jump_modules_changed(process);
	__atomic_store_n(&control->loader_served, changes, __ATOMIC_RELEASE);
	return err;
}

/* How many stacks may be walked by memwatch: never more than a share. */
static void allow_slow(struct jump_process *process)
{
	struct mw_ring_control *control = jump_control(&process->recorder.shared);
	uint64_t share;

	if (__atomic_load_n(&control->slow_taken, __ATOMIC_RELAXED) < control->slow_allowed)
		return;
	share = jump_drain_stats(process->drain)->walks / JUMP_SLOW_SHARE;
	if (share > JUMP_SLOW_FREE)
		__atomic_store_n(&control->slow_allowed, share, __ATOMIC_RELAXED);
}

static struct mw_error *serve(struct jump_process *process, size_t *events, bool *hurry)
{
	uint64_t now = jump_now(process);

	if (jump_has_exited(process))
		return look_alive(process);
	MW_TRY(jump_answer(process));
	MW_TRY(serve_loader(process, now));
	MW_TRY(jump_drain_round(process->drain, events));
	jump_learn_some(process);
	allow_slow(process);
	/* Where there was nothing to tell, a thread that is about to record holds the others back: let it run. */
	*hurry |= *events && jump_drain_hurries(process->drain);
	if (due(&process->last.tidy_ns, now, TIDY_NS)) {
		jump_drain_tidy(process->drain);
		jump_clock_adjust(&process->clock);
		jump_children_heard(process);
	}
	if (due(&process->last.name_ns, now, NAMES_NS))
		MW_TRY(jump_drain_rename(process->drain));
	MW_TRY(jump_serve_exits(process, take_sample));
	take_sample(process, false);
	if (due(&process->last.alive_ns, now, ALIVE_NS))
		MW_TRY(look_alive(process));
	if (!process->ended && jump_control(&process->recorder.shared)->given_up) {
		/* Its threads waited longer than memwatch is ever away, and went on alone. */
		process->gave_up = true;
		return jump_process_detach(process, MW_END_LOST);
	}
	return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Rest for as long as the rings can do without us, or until something ends. */
static void rest(struct jump_engine *engine, size_t events, uint64_t deadline_ns)
{
	struct pollfd fds[64];
	struct timespec span;
	uint64_t now = mw_clock_ns(), ns = SHORT_NS, until = UINT64_MAX;
	nfds_t count = 0;

	if (events) {
		engine->idle_rounds = 0;
		/* To be woken more often than need be costs the programs that share the CPUs. */
		for (size_t i = 0; i < engine->process_count; i++)
			if (!engine->processes[i]->ended && engine->processes[i]->drain)
				until = least(until, jump_drain_rest(engine->processes[i]->drain,
								     now - engine->last_round_ns));
		ns = until < SHORT_NS ? SHORT_NS : least(until, ACTIVE_NS);
	} else if (engine->idle_rounds < IDLE_ROUNDS) {
		engine->idle_rounds++;
	} else {
		ns = LONG_NS;
	}
	if (deadline_ns && deadline_ns < now + ns)
		ns = deadline_ns > now ? deadline_ns - now : 0;
	for (size_t i = 0; i < engine->process_count && count < 64; i++)
		if (!engine->processes[i]->ended)
			fds[count++] = (struct pollfd){.fd = engine->processes[i]->pidfd, .events = POLLIN};
	span = (struct timespec){.tv_sec = 0, .tv_nsec = (long)ns};
	(void)ppoll(fds, count, &span, NULL);
}

static bool anything_left(const struct jump_engine *engine)
{
	for (size_t i = 0; i < engine->process_count; i++)
		if (!engine->processes[i]->ended)
			return true;
	return false;
}

static struct mw_error *serve_all(struct jump_engine *engine, size_t *events, bool *hurry)
{
	for (size_t i = 0; i < engine->process_count; i++) {
		struct jump_process *process = engine->processes[i];
		size_t some = 0;

		if (process->ended)
			continue;
		if (process->launched)
			MW_TRY(jump_launch_go_on(process));
		else if (process->windowed)
			MW_TRY(serve(process, &some, hurry));
		*events += some;
	}
	return NULL;
}

static void come_back(struct jump_engine *engine, enum mw_window_end end)
{
	if (!engine->windows_ended)
		engine->end = end;
}

struct mw_error *jump_run_until(struct jump_engine *engine, uint64_t deadline_ns,
				const volatile sig_atomic_t *interrupt)
{
	while (anything_left(engine)) {
		size_t events = 0;
		bool hurry = false;
		uint64_t begin = mw_clock_ns();

		MW_TRY(serve_all(engine, &events, &hurry));
		if (interrupt && *interrupt) {
			come_back(engine, *interrupt == MW_STOP_LIMIT ? MW_END_LIMIT : MW_END_INTERRUPT);
			return NULL;
		}
		if (deadline_ns && mw_clock_ns() >= deadline_ns) {
			come_back(engine, MW_END_DURATION);
			return NULL;
		}
		if (!hurry)
			rest(engine, events, deadline_ns);
		engine->last_round_ns = begin;
	}
	come_back(engine, MW_END_EXIT);
	return NULL;
}
