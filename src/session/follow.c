// SPDX-License-Identifier: MIT
/* follow.c: see follow.h. */
#include "session/follow.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vector.h"
#include "proc/births.h"
#include "proc/program.h"
#include "proc/status.h"
#include "session/select.h"
#include "session/session.h"
#include "session/watchdog.h"
#include "tracee/preflight.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COST_SHARE    100                  /* a look takes at most this part of the time until the next one */
#define GROUP_NS      UINT64_C(500000000)  /* between two looks at who has a name */
#define CHECK_NS      UINT64_C(1000000000) /* between two looks for children that the kernel has told of */
#define FORKED_NS     UINT64_C(20000000)   /* that a forked child is given to exec */
#define HEARD_NS      UINT64_C(5000000)    /* … where the kernel tells of that */
#define SHORT_NS      UINT64_C(10000000)   /* that a program is given to end by itself */
#define AGAIN_NS      UINT64_C(20000000)   /* until the next attempt to attach; the first ones follow sooner */
#define REFUSED_NS    UINT64_C(200000000)  /* between two looks at what one that can't be watched has become */
#define MOST_ATTEMPTS 25                   /* a program's libraries may take half a second to load */
#define MOST_MESSAGES 10

static struct mw_follow_child *find(const struct mw_follow *follow, pid_t pid)
{
	MW_EACH_MUTABLE(child, follow->children, follow->count)
		if (child->pid == pid)
			return child;
	return NULL;
}

static void drop(struct mw_follow *follow, struct mw_follow_child *child)
{
	*child = follow->children[--follow->count];
}

void mw_follow_listen(struct mw_follow *follow)
{
	follow->births = mw_births_open();
}

void mw_follow_note(struct mw_follow *follow, pid_t child, pid_t parent)
{
	struct mw_follow_child *known = find(follow, child);
	uint64_t started = 0;

	/* Of one that has ended already the children may live. */
	if (mw_stat_read(child, MW_STAT_START, &started) ? known && known->started == started : known != NULL)
		return;
	/* Another had that number. */
	if (known) {
		follow->missed += !known->refused;
		drop(follow, known);
	}
	if (!MW_VECTOR_ROOM(follow->children, follow->count, follow->capacity)) {
		follow->missed++;
		return;
	}
	follow->children[follow->count++] =
		(struct mw_follow_child){.pid = child, .parent = parent, .started = started, .seen_ns = mw_clock_ns()};
}

/* --- finding them -------------------------------------------------------------------------------------------------- */

/* Is it watched, as what it is now, or was it until a limit was reached? */
static bool is_watched(const struct mw_session *session, pid_t pid)
{
	for (size_t i = 0; i < session->count; i++) {
		const struct mw_window_info *window = mw_session_window(session, i);

		if (session->recorders[i].key == pid && (!window->over || !window->gone))
			return true;
	}
	return false;
}

/* Neither watched nor memwatch's own. */
static bool is_other(const struct mw_session *session, pid_t pid)
{
	return !is_watched(session, pid) && pid != getpid() && pid != mw_watchdog_guard();
}

static struct mw_error *note_children(struct mw_session *session, pid_t pid)
{
	MW_FREE pid_t *pids = NULL;
	size_t count = 0;
	struct mw_error *err = mw_children_alive(pid, &pids, &count);

	/* It may have ended. */
	if (err && mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	for (size_t i = 0; i < count; i++)
		if (is_other(session, pids[i]))
			mw_follow_note(&session->follow, pids[i], pid);
	return NULL;
}

/* What has come to have a name that is watched, or be in a group. */
static struct mw_error *find_others(struct mw_session *session)
{
	const struct mw_session_options *options = session->options;
	uint64_t begin = mw_clock_ns(), cost;
	MW_FREE pid_t *pids = NULL;
	size_t count = 0;
	struct mw_error *err;

	if (begin < session->follow.group_due_ns ||
	    !(options->pids.name_count || options->cgroup || options->container || options->user))
		return NULL;
	err = mw_select_again(options, &pids, &count);
	if (err && mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	for (size_t i = 0; i < count; i++)
		if (is_other(session, pids[i]))
			mw_follow_note(&session->follow, pids[i], pids[i]);
	cost = mw_clock_ns() - begin;
	session->follow.group_due_ns = begin + (cost * COST_SHARE > GROUP_NS ? cost * COST_SHARE : GROUP_NS);
	return NULL;
}

/* It runs another program now, once, and may have ended as that. */
static void note_became(struct mw_follow *follow, struct mw_recorder *recorder)
{
	uint64_t started;

	recorder->became = true;
	if (mw_stat_read(recorder->pid, MW_STAT_START, &started) &&
	    (!recorder->program.known || recorder->program.started == started))
		mw_follow_note(follow, recorder->pid, recorder->pid);
}

static struct mw_error *find_children(struct mw_session *session)
{
	struct mw_follow *follow = &session->follow;
	uint64_t now = mw_clock_ns();
	bool look = follow->births < 0 || now >= follow->check_due_ns;

	if (look)
		follow->check_due_ns = now + CHECK_NS;
	for (size_t i = 0; i < session->count; i++) {
		struct mw_recorder *recorder = &session->recorders[i];

		if (recorder->key != recorder->pid)
			continue;
		if (!mw_session_window(session, i)->over && look)
			MW_TRY(note_children(session, recorder->pid));
		else if (mw_session_window(session, i)->ended == MW_END_EXEC && !recorder->became)
			note_became(follow, recorder);
	}
	for (size_t i = 0; i < follow->count && look; i++)
		MW_TRY(note_children(session, follow->children[i].pid));
	return NULL;
}

static bool is_known(const struct mw_session *session, pid_t pid)
{
	for (size_t i = 0; i < session->count; i++)
		if (session->recorders[i].key == pid)
			return true;
	return find(&session->follow, pid) != NULL;
}

/* What the kernel has told since. */
static void hear(struct mw_session *session)
{
	struct mw_follow *follow = &session->follow;
	struct mw_follow_child *child;
	struct mw_birth birth;

	while (follow->births >= 0 && (birth = mw_birth_next(follow->births)).kind != MW_BIRTH_NONE) {
		if (birth.kind == MW_BIRTH_LOST)
			follow->check_due_ns = 0;
		else if (birth.kind == MW_BIRTH_EXEC && (child = find(follow, birth.pid)) != NULL)
			child->execed_ns = mw_clock_ns();
		else if (birth.kind == MW_BIRTH_FORK && is_known(session, birth.parent) && is_other(session, birth.pid))
			mw_follow_note(follow, birth.pid, birth.parent);
	}
}

/* --- watching them ------------------------------------------------------------------------------------------------- */

static bool is_alive(const struct mw_follow_child *child)
{
	uint64_t started;

	return !mw_state_is_end(mw_state_read(child->pid)) && mw_stat_read(child->pid, MW_STAT_START, &started) &&
	       started == child->started;
}

/* Does it still run its parent's program? */
static bool is_copy(const struct mw_follow_child *child)
{
	struct mw_program parent, own;

	if (child->parent == child->pid)
		return false;
	mw_program_read(child->parent, &parent);
	mw_program_read(child->pid, &own);
	return parent.known && own.known && parent.digest == own.digest && parent.size == own.size;
}

/* It can't be watched, for good. Takes `err`. */
static void refuse(struct mw_follow *follow, struct mw_follow_child *child, struct mw_error *err)
{
	struct mw_program program;
	char name[17];

	mw_program_read(child->pid, &program);
	child->refused = true;
	child->refused_digest = program.digest;
	child->due_ns = mw_clock_ns() + REFUSED_NS;
	child->left_out = mw_error_kind(err) != MW_ERROR_GONE;
	follow->left_out += child->left_out;
	follow->missed++;
	if (follow->messages++ < MOST_MESSAGES) {
		mw_comm_read(child->pid, child->pid, name);
		fprintf(stderr, "memwatch: process %d (%s) is not watched: %s\n", (int)child->pid, name,
			mw_error_text(err));
	}
	mw_error_destroy(err);
}

/* What has not loaded its libraries has no allocator yet, and what ends or execs while it is attached to may be had the next
 * time. Others may be noted meanwhile: the list may change. */
static struct mw_error *attempt(struct mw_session *session, pid_t pid)
{
	struct mw_follow *follow = &session->follow;
	bool full = session->count == session->capacity;
	struct mw_follow_child *child;
	struct mw_error *err;

	/* A command that runs another under valgrind is seen up to there, and nothing of what was asked for. */
	if (pid == session->launch.pid)
		MW_TRY(mw_preflight_became(pid, "the command"));
	err = full ? mw_error_create(MW_ERROR_UNSUPPORTED, 0, "memwatch follows at most %u processes", MW_FOLLOW_MAX)
		   : mw_session_add(session, pid);
	child = find(follow, pid);
	if (!err) {
		if (child)
			drop(follow, child);
		return mw_session_begun(session);
	}
	if (mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	if (child && (full || ++child->attempts >= MOST_ATTEMPTS)) {
		refuse(follow, child, err);
	} else {
		if (child)
			child->due_ns = mw_clock_ns() + (AGAIN_NS >> (child->attempts < 4 ? 4 - child->attempts : 0));
		mw_error_destroy(err);
	}
	/* That may have taken a while. */
	return session->engine->ops->run(session->engine, mw_clock_ns(), NULL);
}

/* A wrapper that could not be watched may have become what can be. */
static void look_again(struct mw_follow *follow, struct mw_follow_child *child)
{
	uint64_t now = mw_clock_ns();
	struct mw_program program;

	if (now < child->due_ns)
		return;
	child->due_ns = now + REFUSED_NS;
	mw_program_read(child->pid, &program);
	if (!program.known || program.digest == child->refused_digest)
		return;
	child->refused = false;
	follow->left_out -= child->left_out;
	child->attempts = 0;
	follow->missed--;
}

static bool is_due(const struct mw_follow *follow, const struct mw_follow_child *child)
{
	uint64_t now = mw_clock_ns();

	if (now < child->due_ns)
		return false;
	if (follow->births >= 0)
		return child->execed_ns ? now >= child->execed_ns + SHORT_NS : now >= child->seen_ns + HEARD_NS;
	return now >= child->seen_ns + FORKED_NS || !is_copy(child);
}

static struct mw_error *watch_children(struct mw_session *session)
{
	struct mw_follow *follow = &session->follow;

	for (size_t i = 0; i < follow->count;) {
		struct mw_follow_child *child = &follow->children[i];
		pid_t pid = child->pid;

		if (!is_alive(child)) {
			follow->missed += !child->refused;
			drop(follow, child);
		} else if (is_watched(session, pid)) {
			drop(follow, child);
		} else if (child->refused) {
			look_again(follow, child);
		} else if (is_due(follow, child)) {
			MW_TRY(attempt(session, pid));
		}
		/* Else another has its place now. */
		i += i < follow->count && follow->children[i].pid == pid;
	}
	return NULL;
}

struct mw_error *mw_follow_look(struct mw_session *session, bool now)
{
	struct mw_follow *follow = &session->follow;
	uint64_t begin = mw_clock_ns(), cost;

	hear(session);
	if (begin >= follow->due_ns || now) {
		MW_TRY(find_others(session));
		MW_TRY(find_children(session));
		cost = mw_clock_ns() - begin;
		follow->due_ns =
			begin + (cost * COST_SHARE > MW_FOLLOW_SLICE_NS ? cost * COST_SHARE : MW_FOLLOW_SLICE_NS);
	}
	return watch_children(session);
}

bool mw_follow_pending(const struct mw_follow *follow)
{
	MW_EACH(child, follow->children, follow->count)
		if (!child->refused && is_alive(child))
			return true;
	return false;
}

void mw_follow_tell(const struct mw_follow *follow)
{
	if (follow->missed)
		fprintf(stderr,
			"memwatch: at least %" PRIu64
			" child%s missing from the report: %s ended too soon, or can't be "
			"watched\n",
			follow->missed, follow->missed == 1 ? " is" : "ren are", follow->missed == 1 ? "it" : "they");
}

void mw_follow_deinit(struct mw_follow *follow)
{
	mw_cleanup_close(&follow->births);
	free(follow->children);
	*follow = MW_FOLLOW_NONE;
}
