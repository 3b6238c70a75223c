// SPDX-License-Identifier: MIT
/* seccomp_policy.c: what threads may do under seccomp (seccomp_policy.h). */
#include "tracee/seccomp_policy.h"

#include "proc/status.h"
#include "tracee/filter.h"
#include "tracee/inject.h"
#include "tracee/preflight.h"
#include "tracee/seccomp_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

#define MOST_FILTERS  128u /* of a thread; who has more may nothing */
#define MOST_PROGRAMS 256u /* that are kept */
#define STRICT        1    /* modes of seccomp, as /proc has them */

/* A filter's program, and the answers that it has for each call. */
struct mw_seccomp_policy_program {
	struct sock_filter *code;
	size_t count;
	uint8_t answers[MW_CALL_COUNT]; /* enum mw_filter_action */
};

void mw_seccomp_policy_deinit(struct mw_seccomp_policy *policy)
{
	for (size_t i = 0; i < policy->count; i++)
		free(policy->programs[i].code);
	free(policy->programs);
	free(policy->room);
	*policy = (struct mw_seccomp_policy){.count = 0};
}

/* The program that was read to seccomp policy->room, as it is kept. */
static struct mw_error *keep(struct mw_seccomp_policy *policy, size_t count,
			     const struct mw_seccomp_policy_program **out)
{
	size_t size = count * sizeof(*policy->room);
	struct mw_seccomp_policy_program *program;

	for (size_t i = 0; i < policy->count; i++)
		if (policy->programs[i].count == count && memcmp(policy->programs[i].code, policy->room, size) == 0) {
			*out = &policy->programs[i];
			return NULL;
		}
	/* Who has as many different ones makes us forget those that came before. */
	if (policy->count == MOST_PROGRAMS)
		free(policy->programs[--policy->count].code);
	program = &policy->programs[policy->count];
	program->code = malloc(size);
	if (!program->code)
		return mw_error_nomem();
	memcpy(program->code, policy->room, size);
	program->count = count;
	for (size_t i = 0; i < MW_CALL_COUNT; i++)
		program->answers[i] = (uint8_t)mw_filter_actions(
			program->code, count, mw_seccomp_policy_call((enum mw_seccomp_policy_call)i));
	policy->count++;
	*out = program;
	return NULL;
}

static struct mw_error *make_room(struct mw_seccomp_policy *policy)
{
	if (!policy->room)
		policy->room = calloc(MW_FILTER_MAX, sizeof(*policy->room));
	if (!policy->programs)
		policy->programs = calloc(MOST_PROGRAMS, sizeof(*policy->programs));
	return policy->room && policy->programs ? NULL : mw_error_nomem();
}

/* glibc's ptrace() takes an enum for requests that its header may not have. Instructions, or -1 with errno. */
static long get_filter(pid_t tid, unsigned long number, struct sock_filter *out)
{
	return ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, number, out);
}

/*
 * All filters of a thread together. *errnum: why they could not be read to the end; EINVAL where it seems to be under
 * none.
 */
static struct mw_error *read_filters(struct mw_seccomp_policy *policy, pid_t tid, uint8_t answers[MW_CALL_COUNT],
				     int *errnum)
{
	memset(answers, MW_FILTER_ALLOW, MW_CALL_COUNT);
	for (unsigned long number = 0;; number++) {
		const struct mw_seccomp_policy_program *program = NULL;
		long count = get_filter(tid, number, policy->room);

		*errnum = count < 0 ? errno : number == MOST_FILTERS || count > MW_FILTER_MAX ? E2BIG : 0;
		if (count < 0 && errno == ENOENT && number > 0)
			*errnum = 0;
		if (count < 0 || *errnum)
			return NULL;
		MW_TRY(keep(policy, (size_t)count, &program));
		for (size_t i = 0; program && i < MW_CALL_COUNT; i++)
			answers[i] = (uint8_t)mw_filter_both(answers[i], program->answers[i]);
	}
}

static void permit_by(const uint8_t answers[MW_CALL_COUNT], struct mw_permit *out)
{
	*out = (struct mw_permit){.seccomp_filtered = true, .known = true};
	for (size_t i = 0; i < MW_CALL_COUNT; i++) {
		out->harmless |= (uint32_t)((answers[i] & ~MW_FILTER_HARMLESS) == 0) << i;
		out->made |= (uint32_t)((answers[i] & ~MW_FILTER_PASSES) == 0) << i;
	}
}

/* What can be reported without reading its filters. */
static struct mw_error *permit_by_mode(pid_t tid, int errnum, struct mw_permit *out)
{
	struct mw_status status;

	MW_TRY(mw_status_read(tid, &status));
	*out = (struct mw_permit){.seccomp_filtered = status.seccomp != 0, .known = true};
	if (!out->seccomp_filtered)
		out->harmless = out->made = MW_CALLS_ALL;
	else if (status.seccomp == STRICT && (errnum == EINVAL || errnum == EACCES))
		/* It can't be in a wait that is gone on with. */
		out->harmless = out->made = MW_CALLS_BACK | MW_CALL_BIT(RESTART);
	else if (mw_seccomp_shared(tid))
		mw_seccomp_probe(&out->harmless, &out->made);
	else
		out->known = false;
	return NULL;
}

struct mw_error *mw_seccomp_policy_look(struct mw_seccomp_policy *policy, pid_t tid, bool surely, struct mw_permit *out)
{
	uint8_t answers[MW_CALL_COUNT];
	int errnum;

	MW_TRY(make_room(policy));
	MW_TRY(read_filters(policy, tid, answers, &errnum));
	if (!errnum)
		permit_by(answers, out);
	else if (errnum == EINVAL && !surely)
		*out = (struct mw_permit){.known = true, .harmless = MW_CALLS_ALL, .made = MW_CALLS_ALL};
	else
		return permit_by_mode(tid, errnum, out);
	return NULL;
}

/* Do all filters of a thread let it go on with a wait? */
static bool may_restart(pid_t tid)
{
	struct sock_filter *room = calloc(MW_FILTER_MAX, sizeof(*room));
	unsigned actions = MW_FILTER_ALLOW;
	unsigned long number = 0;
	long count = 0;
	bool all;

	if (!room)
		return false;
	while (number < MOST_FILTERS && (count = get_filter(tid, number, room)) >= 0) {
		actions |= mw_filter_actions(room, (size_t)count, mw_seccomp_policy_call(MW_CALL_RESTART));
		number++;
	}
	all = number > 0 && count < 0 && errno == ENOENT;
	free(room);
	if (number == 0 && mw_seccomp_shared(tid)) {
		uint32_t harmless, made;

		mw_seccomp_probe(&harmless, &made);
		return made & MW_CALL_BIT(RESTART);
	}
	return all && (actions & ~MW_FILTER_PASSES) == 0;
}

struct mw_error *mw_seccomp_policy_mend(pid_t tid)
{
	struct mw_tracee_regs regs;
	struct mw_status status;

	MW_TRY(mw_tracee_get_regs(tid, &regs));
	if (!mw_regs_restart_anew(&regs.general))
		return NULL;
	/* Under none, or the strict mode: then it can't be in such a wait. */
	if (get_filter(tid, 0, NULL) < 0 && errno == EINVAL)
		return NULL;
	if (may_restart(tid))
		return NULL;
	MW_TRY(mw_status_read(tid, &status));
	return status.seccomp == 0 ? NULL : mw_tracee_set_regs(tid, &regs);
}

struct mw_seccomp_policy_need mw_seccomp_policy_need_of(uint32_t calls)
{
	return (struct mw_seccomp_policy_need){.harmless = calls | MW_CALLS_BACK, .made = MW_CALLS_BACK};
}

bool mw_permit_suits(const struct mw_permit *permit, const struct mw_seccomp_policy_need *need)
{
	return (need->harmless & ~permit->harmless) == 0 && (need->made & ~permit->made) == 0;
}

/* As of mw_quiesce_pick(). */
static bool may_be_picked(const struct mw_quiet_thread *thread)
{
	return thread->stopped && !thread->in_event && !thread->sharing && !thread->newborn;
}

/* The first that suits, of those that are stopped as a group or not, and that have room for the sigframe or not. */
static struct mw_error *pick_of(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
				const struct mw_maps *maps, const struct mw_seccomp_policy_need *need,
				bool group_stopped, pid_t *tid, struct mw_permit *permit)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];
		struct mw_error *err;

		if (!may_be_picked(thread) || thread->group_stopped != group_stopped ||
		    (maps && !mw_inject_has_room(thread->tid, maps)))
			continue;
		err = mw_seccomp_policy_look(policy, thread->tid, true, permit);
		if (err && mw_error_kind(err) == MW_ERROR_GONE) {
			mw_error_destroy(err);
			continue;
		}
		MW_TRY(err);
		if (mw_permit_suits(permit, need)) {
			*tid = thread->tid;
			return NULL;
		}
	}
	return NULL;
}

struct mw_error *mw_seccomp_policy_pick(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
					const struct mw_maps *maps, const struct mw_seccomp_policy_need *need,
					pid_t *tid, struct mw_permit *permit)
{
	*tid = 0;
	*permit = (struct mw_permit){.seccomp_filtered = true};
	for (unsigned pass = 0; pass < 4 && !*tid; pass++)
		MW_TRY(pick_of(policy, quiesce, pass < 2 ? maps : NULL, need, pass % 2, tid, permit));
	return NULL;
}

struct mw_error *mw_seccomp_policy_pick_best(const struct mw_quiesce *quiesce, const struct mw_maps *maps,
					     uint32_t calls, pid_t *tid)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(calls);
	struct mw_seccomp_policy policy = {.count = 0};
	struct mw_permit permit;
	struct mw_error *err = mw_seccomp_policy_pick(&policy, quiesce, maps, &need, tid, &permit);

	mw_seccomp_policy_deinit(&policy);
	if (!err && !*tid)
		*tid = mw_quiesce_pick(quiesce);
	return err;
}

struct mw_error *mw_seccomp_policy_everyone(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
					    uint32_t *made)
{
	*made = MW_CALLS_ALL;
	for (size_t i = 0; i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];
		struct mw_permit permit;
		struct mw_error *err;

		if (!thread->stopped)
			continue;
		err = mw_seccomp_policy_look(policy, thread->tid, false, &permit);
		if (err && mw_error_kind(err) != MW_ERROR_GONE)
			return err;
		if (!err && permit.known)
			*made &= permit.made;
		mw_error_destroy(err);
	}
	return NULL;
}

void mw_permit_lacks(const struct mw_permit *permit, const struct mw_seccomp_policy_need *need, char *out, size_t size)
{
	uint32_t lacks = (need->harmless & ~permit->harmless) | (need->made & ~permit->made);
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < MW_CALL_COUNT; i++) {
		bool told = false;

		for (size_t j = 0; j < i; j++)
			told |= lacks >> j & 1 &&
				strcmp(mw_seccomp_policy_call_name((enum mw_seccomp_policy_call)j),
				       mw_seccomp_policy_call_name((enum mw_seccomp_policy_call)i)) == 0;
		if (!(lacks >> i & 1) || told || at >= size)
			continue;
		at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "",
				       mw_seccomp_policy_call_name((enum mw_seccomp_policy_call)i));
	}
}

struct mw_error *mw_seccomp_policy_refuse(const char *engine, pid_t pid, const struct mw_permit *permit,
					  const struct mw_seccomp_policy_need *need)
{
	char names[256];
	struct mw_error *err;

	mw_permit_lacks(permit, need, names, sizeof(names));
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "engine %s can't be used on process %d: its seccomp filter may kill it for system calls "
			      "that it must make (%s) if memwatch is killed at that moment",
			      engine, (int)pid, names);
	return mw_error_hint(err, "--unsafe accepts that risk");
}

/* `shared`: a thread under the filters that memwatch is under counts as one under none. */
static struct mw_error *count_threads(pid_t pid, bool shared, size_t *seccomp_filtered, size_t *others)
{
	pid_t *tids = NULL;
	size_t count = 0;
	struct mw_error *err = mw_tasks_read(pid, &tids, &count);

	*seccomp_filtered = *others = 0;
	for (size_t i = 0; i < count && !err; i++) {
		struct mw_status status;

		err = mw_status_read(tids[i], &status);
		if (!err && status.state != 'Z' && status.state != 'X')
			++*(status.seccomp > 0 && !(shared && mw_seccomp_shared(tids[i])) ? seccomp_filtered : others);
		err = mw_error_unless_gone(err);
	}
	free(tids);
	return err;
}

struct mw_error *mw_seccomp_policy_count(pid_t pid, size_t *seccomp_filtered, size_t *others)
{
	return count_threads(pid, false, seccomp_filtered, others);
}

struct mw_error *mw_seccomp_policy_preflight(const char *engine, pid_t pid, bool all)
{
	size_t seccomp_filtered, others;

	if (mw_preflight_may_suspend_seccomp())
		return NULL;
	mw_seccomp_prepare(pid);
	MW_TRY(count_threads(pid, true, &seccomp_filtered, &others));
	if (seccomp_filtered == 0 || (others > 0 && !all))
		return NULL;
	return mw_seccomp_policy_unreadable(engine, pid);
}

struct mw_error *mw_seccomp_policy_unreadable(const char *engine, pid_t pid)
{
	struct mw_error *err =
		mw_error_create(MW_ERROR_UNSUPPORTED, 0,
				"engine %s can't be used on process %d: it is under a seccomp filter, which memwatch "
				"can read and suspend only with CAP_SYS_ADMIN, and when under no filter itself",
				engine, (int)pid);
	return mw_error_hint(err, "Watch it as root from outside of its container, or start the container with "
				  "--security-opt seccomp=unconfined; or accept the risk that the process ends if "
				  "memwatch is killed, with --engine trap --unsafe");
}
