// SPDX-License-Identifier: MIT
/*
 * engines.c: the engines there are, and the one that takes, for each process, the jump engine where that is safe and
 * else the trap engine, and says why (memwatch/engine.h).
 */
#include "engine/engines.h"
#include "base/clock.h"
#include "base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_NS 2000000u /* turns that the two take where both are at work */

struct choice {
	pid_t pid; /* or key (retire()) */
	bool launched;
	struct mw_event_sink sink;
	struct mw_engine *engine;
	char *reason;
};

static const struct mw_engine_ops auto_ops;

enum { JUMP, TRAP, ENGINES };

struct auto_engine {
	struct mw_engine base;
	struct mw_engine_options options;
	struct mw_engine *with[ENGINES]; /* NULL: not needed so far */
	struct choice *choices;
	size_t count;
};

static struct mw_error *auto_create(const struct mw_engine_options *options, struct mw_engine **out)
{
	struct auto_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return mw_error_nomem();
	engine->base.ops = &auto_ops;
	engine->options = *options;
	engine->options.stop_unfit = true;
	*out = &engine->base;
	return NULL;
}

static struct mw_error *attach_with(struct auto_engine *engine, const struct mw_engine_ops *ops,
				    struct mw_engine **with, pid_t pid, bool launched, const struct mw_event_sink *sink)
{
	if (!*with)
		MW_TRY(ops->create(&engine->options, with));
	return ops->attach(*with, pid, launched, sink);
}

/* Why the one that was wanted could not be had. */
static char *reason_of(const struct mw_error *err)
{
	char *reason = NULL;

	if (asprintf(&reason, "auto: %s", mw_error_text(err)) < 0)
		return NULL;
	return reason;
}

/* Could the trap engine do what has failed with `err` for the jump engine? */
static bool may_be_trapped(const struct mw_error *err)
{
	return mw_error_kind(err) != MW_ERROR_GONE && mw_error_kind(err) != MW_ERROR_MEMORY;
}

/* Takes `err`, for which the jump engine could not be had. */
static struct mw_error *trap_instead(struct auto_engine *engine, struct choice *choice, bool launched,
				     struct mw_error *err)
{
	/* No interval makes up for a stop at each call. */
	if (engine->options.budget && mw_error_kind(err) != MW_ERROR_UNSUPPORTED)
		return err;
	if (engine->options.budget)
		return mw_error_hint(mw_error_prefix(err, "--budget needs engine jump, which can't be used"),
				     "Leave it out to have the process stopped at each call (engine trap); "
				     "--max-stopped PCT ends that where it takes too long");
	choice->reason = reason_of(err);
	mw_error_destroy(err);
	MW_TRY(attach_with(engine, &mw_engine_trap, &engine->with[TRAP], choice->pid, launched, &choice->sink));
	choice->engine = engine->with[TRAP];
	return NULL;
}

static struct mw_error *choose(struct auto_engine *engine, struct choice *choice, bool launched)
{
	struct mw_error *err =
		attach_with(engine, &mw_engine_jump, &engine->with[JUMP], choice->pid, launched, &choice->sink);

	choice->engine = engine->with[JUMP];
	if (!err || !may_be_trapped(err))
		return err;
	return trap_instead(engine, choice, launched, err);
}

static struct mw_error *auto_attach(struct mw_engine *base, pid_t pid, bool launched, const struct mw_event_sink *sink)
{
	struct auto_engine *engine = (struct auto_engine *)base;
	struct choice *choice = MW_VECTOR_AT(engine->choices, engine->count, engine->count);
	struct mw_error *err;

	if (!choice)
		return mw_error_nomem();
	*choice = (struct choice){.pid = pid, .launched = launched, .sink = *sink};
	err = choose(engine, choice, launched);
	if (err)
		free(engine->choices[--engine->count].reason);
	return err;
}

static void auto_end(struct mw_engine *base)
{
	struct auto_engine *engine = (struct auto_engine *)base;

	for (size_t i = 0; i < ENGINES; i++)
		if (engine->with[i])
			engine->with[i]->ops->end(engine->with[i]);
}

static void auto_settle(struct mw_engine *base)
{
	struct auto_engine *engine = (struct auto_engine *)base;

	for (size_t i = 0; i < ENGINES; i++)
		if (engine->with[i])
			engine->with[i]->ops->settle(engine->with[i]);
}

static struct mw_error *auto_detach(struct mw_engine *base)
{
	struct auto_engine *engine = (struct auto_engine *)base;
	struct mw_error *err = NULL;

	for (size_t i = 0; i < ENGINES; i++)
		if (engine->with[i])
			err = mw_error_first(err, engine->with[i]->ops->detach(engine->with[i]));
	return err;
}

static struct choice *find(const struct mw_engine *base, pid_t pid)
{
	const struct auto_engine *engine = (const struct auto_engine *)base;

	for (size_t i = 0; i < engine->count; i++)
		if (engine->choices[i].pid == pid)
			return &engine->choices[i];
	return NULL;
}

/* What stands in the way of the jump engine may only show when the process is stopped. */
static struct mw_error *start_with_other(struct auto_engine *engine, struct choice *choice, struct mw_error *err)
{
	if (choice->engine != engine->with[JUMP] || !may_be_trapped(err))
		return err;
	MW_TRY(trap_instead(engine, choice, false, err));
	return choice->engine->ops->start(choice->engine, choice->pid);
}

static struct mw_error *auto_start(struct mw_engine *base, pid_t pid)
{
	struct auto_engine *engine = (struct auto_engine *)base;
	struct choice *choice = find(base, pid);
	struct mw_error *err = choice->engine->ops->start(choice->engine, pid);

	if (err)
		err = start_with_other(engine, choice, err);
	if (!err)
		return NULL;
	free(choice->reason);
	*choice = engine->choices[--engine->count];
	return err;
}

static bool anything_left(const struct auto_engine *engine, const struct mw_engine *with)
{
	MW_EACH(choice, engine->choices, engine->count)
		if (choice->engine == with && !with->ops->window(with, choice->pid)->over)
			return true;
	return false;
}

/* Both serve from this one thread, which is the tracer: they take turns. A thread that a trap has stopped waits for its
 * turn, so the jump engine takes no longer than for what it has to do. */
static struct mw_error *run_both(struct auto_engine *engine, uint64_t deadline_ns,
				 const volatile sig_atomic_t *interrupt)
{
	for (;;) {
		bool jumps = anything_left(engine, engine->with[JUMP]),
		     traps = anything_left(engine, engine->with[TRAP]);
		uint64_t now = mw_clock_ns(), until = now + SLICE_NS;

		if (deadline_ns && deadline_ns < until)
			until = deadline_ns;
		if (jumps)
			MW_TRY(engine->with[JUMP]->ops->run(engine->with[JUMP], traps ? now : until, interrupt));
		if (traps)
			MW_TRY(engine->with[TRAP]->ops->run(engine->with[TRAP], until, interrupt));
		if ((!jumps && !traps) || (interrupt && *interrupt) || (deadline_ns && mw_clock_ns() >= deadline_ns))
			return NULL;
	}
}

/* A launched command shows what it is when it has loaded its libraries: then it is stopped, and goes on under the
 * other. */
static struct mw_error *change_engine(struct auto_engine *engine, struct mw_error *err)
{
	struct choice *choice = engine->count == 1 ? &engine->choices[0] : NULL;

	if (!choice || !choice->launched || choice->engine != engine->with[JUMP] ||
	    mw_error_kind(err) != MW_ERROR_UNSUPPORTED)
		return err;
	err = trap_instead(engine, choice, false, err);
	if (!err)
		err = engine->with[TRAP]->ops->start(engine->with[TRAP], choice->pid);
	kill(choice->pid, SIGCONT);
	return err;
}

static struct mw_error *auto_run(struct mw_engine *base, uint64_t deadline_ns, const volatile sig_atomic_t *interrupt)
{
	struct auto_engine *engine = (struct auto_engine *)base;
	struct mw_error *err;

	if (!engine->with[TRAP]) {
		err = engine->with[JUMP] ? engine->with[JUMP]->ops->run(engine->with[JUMP], deadline_ns, interrupt)
					 : NULL;
		if (err)
			err = change_engine(engine, err);
		if (err || !engine->with[TRAP])
			return err;
	}
	if (!engine->with[JUMP] || !anything_left(engine, engine->with[JUMP]))
		return engine->with[TRAP]->ops->run(engine->with[TRAP], deadline_ns, interrupt);
	err = run_both(engine, deadline_ns, interrupt);
	return err ? mw_error_worse(err, auto_detach(base)) : NULL;
}

static void auto_destroy(struct mw_engine *base)
{
	struct auto_engine *engine = (struct auto_engine *)base;

	if (!engine)
		return;
	for (size_t i = 0; i < ENGINES; i++)
		if (engine->with[i])
			engine->with[i]->ops->destroy(engine->with[i]);
	for (size_t i = 0; i < engine->count; i++)
		free(engine->choices[i].reason);
	free(engine->choices);
	free(engine);
}

static bool auto_forked(struct mw_engine *base)
{
	struct auto_engine *engine = (struct auto_engine *)base;
	bool left = true;

	for (size_t i = 0; i < ENGINES; i++)
		if (engine->with[i] && engine->with[i]->ops->forked)
			left = left && engine->with[i]->ops->forked(engine->with[i]);
	return left;
}

static size_t auto_hooks(const struct mw_engine *base, pid_t pid, const struct mw_hook_info **out)
{
	const struct choice *choice = find(base, pid);

	*out = NULL;
	return choice ? choice->engine->ops->hooks(choice->engine, pid, out) : 0;
}

static void auto_set_interval(struct mw_engine *base, pid_t pid, uint64_t bytes)
{
	const struct choice *choice = find(base, pid);

	if (choice && choice->engine->ops->set_interval)
		choice->engine->ops->set_interval(choice->engine, pid, bytes);
}

static void auto_retire(struct mw_engine *base, pid_t pid, pid_t key)
{
	struct choice *choice = find(base, pid);

	if (!choice)
		return;
	choice->engine->ops->retire(choice->engine, pid, key);
	choice->pid = key;
}

static const struct mw_engine_stats *auto_stats(const struct mw_engine *base, pid_t pid)
{
	const struct choice *choice = find(base, pid);

	return choice ? choice->engine->ops->stats(choice->engine, pid) : NULL;
}

static const struct mw_window_info *auto_window(const struct mw_engine *base, pid_t pid)
{
	const struct choice *choice = find(base, pid);

	return choice ? choice->engine->ops->window(choice->engine, pid) : NULL;
}

static struct mw_modules *auto_modules(const struct mw_engine *base, pid_t pid)
{
	const struct choice *choice = find(base, pid);

	return choice ? choice->engine->ops->modules(choice->engine, pid) : NULL;
}

static const char *auto_used(const struct mw_engine *base, pid_t pid, const char **reason)
{
	const struct choice *choice = find(base, pid);

	*reason = "auto: it can be used on this process";
	if (!choice)
		return "auto";
	if (choice->reason)
		*reason = choice->reason;
	return choice->engine->ops->name;
}

static void auto_own_memory(const struct mw_engine *base, pid_t pid, uint64_t *resident, uint64_t *mapped)
{
	const struct choice *choice = find(base, pid);

	*resident = *mapped = 0;
	if (choice)
		choice->engine->ops->own_memory(choice->engine, pid, resident, mapped);
}

static size_t auto_own_ranges(const struct mw_engine *base, pid_t pid, struct mw_engine_range *out, size_t capacity)
{
	const struct choice *choice = find(base, pid);

	return choice ? choice->engine->ops->own_ranges(choice->engine, pid, out, capacity) : 0;
}

static const char *auto_difference(const struct mw_engine *base, pid_t pid, size_t index)
{
	const struct choice *choice = find(base, pid);

	return choice && choice->engine->ops->difference ? choice->engine->ops->difference(choice->engine, pid, index)
							 : NULL;
}

static const struct mw_engine_ops auto_ops = {
	.name = "auto",
	.create = auto_create,
	.attach = auto_attach,
	.start = auto_start,
	.run = auto_run,
	.end = auto_end,
	.settle = auto_settle,
	.set_interval = auto_set_interval,
	.retire = auto_retire,
	.detach = auto_detach,
	.destroy = auto_destroy,
	.forked = auto_forked,
	.hooks = auto_hooks,
	.stats = auto_stats,
	.window = auto_window,
	.modules = auto_modules,
	.used = auto_used,
	.own_memory = auto_own_memory,
	.own_ranges = auto_own_ranges,
	.difference = auto_difference,
};

static const struct mw_engine_ops *const engines[] = {
	&auto_ops,
	&mw_engine_jump,
	&mw_engine_trap,
};

const struct mw_engine_ops *mw_engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}
