// SPDX-License-Identifier: MIT
/* select.c: see select.h. */
#include "session/select.h"

#include "base/cleanup.h"
#include "proc/processes.h"
#include "proc/program.h"
#include "proc/status.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN 10u /* of several where one is wanted */

struct mw_error *mw_pids_add(struct mw_pids *pids, pid_t pid)
{
	pid_t *items;

	for (size_t i = 0; i < pids->count; i++)
		if (pids->items[i] == pid)
			return NULL;
	items = realloc(pids->items, (pids->count + 1) * sizeof(*items));
	if (!items)
		return mw_error_nomem();
	items[pids->count] = pid;
	pids->items = items;
	pids->count++;
	return NULL;
}

void mw_pids_deinit(struct mw_pids *pids)
{
	for (size_t i = 0; i < pids->name_count; i++)
		free(pids->names[i]);
	free(pids->names);
	free(pids->items);
	*pids = (struct mw_pids){.items = NULL};
}

/* A name first, since there are users whose names are numbers. */
static struct mw_error *find_user(const char *text, uid_t *out)
{
	struct passwd *entry = getpwnam(text);
	unsigned long value;
	char *end;

	if (entry) {
		*out = entry->pw_uid;
		return NULL;
	}
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value > UINT32_MAX - 1)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--user '%.64s': there is no such user", text),
				     "It takes a user's name or number, as in --user postgres");
	*out = (uid_t)value;
	return NULL;
}

static struct mw_error *nobody(const struct mw_session_options *options, const char *name)
{
	const char *option = name                 ? "--pid"
			     : options->cgroup    ? "--cgroup"
			     : options->container ? "--container"
						  : "--user";
	const char *value = name                 ? name
			    : options->cgroup    ? options->cgroup
			    : options->container ? options->container
						 : options->user;
	bool narrowed = name ? options->cgroup || options->container || options->user
			     : (options->cgroup != NULL) + (options->container != NULL) + (options->user != NULL) > 1;
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "%s '%.200s': there is no such process%s", option,
					       value, narrowed ? " that is also in the given group" : "");

	if (!name && options->container)
		return mw_error_hint(err,
				     "A container of Docker's is known by its id, which 'docker inspect -f {{.Id}} "
				     "NAME' prints; 'ps -eo pid,cgroup' shows the ids of all that run");
	return mw_error_hint(err, name ? "It takes process ids and names; 'ps -e' lists those that run"
				       : "It takes what 'ps -eo pid,user,comm,cgroup' shows of a process that runs");
}

/* Append those that are found. */
static struct mw_error *find(const struct mw_process_match *match, struct mw_session_options *options)
{
	struct mw_pids *pids = &options->pids;
	MW_FREE pid_t *found = NULL;
	size_t count;

	MW_TRY(mw_processes_find(match, &found, &count));
	if (!count)
		return nobody(options, match->name);
	for (size_t i = 0; i < count; i++) {
		size_t before = pids->count;

		MW_TRY(mw_pids_add(pids, found[i]));
		pids->found += pids->count - before;
	}
	return NULL;
}

/* Append the children of those, and theirs. */
static struct mw_error *add_children(struct mw_session_options *options)
{
	struct mw_pids *pids = &options->pids;

	for (size_t i = 0; i < pids->count; i++) {
		MW_FREE pid_t *children = NULL;
		size_t count = 0, before = pids->count;
		struct mw_error *err = mw_children_alive(pids->items[i], &children, &count);

		/* It may have ended. */
		if (err && mw_error_kind(err) == MW_ERROR_MEMORY)
			return err;
		mw_error_destroy(err);
		for (size_t j = 0; j < count; j++)
			if (children[j] != getpid())
				MW_TRY(mw_pids_add(pids, children[j]));
		pids->found += pids->count - before;
	}
	return NULL;
}

/* "1234 (nginx: master process)" */
static void describe(pid_t pid, char *out, size_t size)
{
	MW_CLEANUP(mw_command_free) char **argv = NULL;
	size_t words, used;
	char name[17];

	mw_comm_read(pid, pid, name);
	mw_error_destroy(mw_command_read(pid, &argv, &words));
	used = (size_t)snprintf(out, size, "%d (%.40s", (int)pid, argv && argv[0] ? argv[0] : name);
	for (size_t i = 1; argv && argv[0] && argv[i] && used < 60 && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, " %.20s", argv[i]);
	if (used < size)
		snprintf(out + used, size - used, ")");
}

static struct mw_error *too_many(const char *command, const struct mw_pids *pids)
{
	char list[2048] = "", one[128];
	size_t used = 0;

	for (size_t i = 0; i < pids->count && i < SHOWN; i++) {
		describe(pids->items[i], one, sizeof(one));
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", one);
	}
	if (pids->count > SHOWN)
		snprintf(list + used, sizeof(list) - used, " and %zu more", pids->count - SHOWN);
	return mw_error_hint(
		mw_error_create(MW_ERROR_USAGE, 0, "%s takes one process, and these are meant: %s", command, list),
		"Name one by its id, as in: memwatch %s -p %d", command, (int)pids->items[0]);
}

struct mw_error *mw_select(struct mw_session_options *options, const char *takes_one)
{
	struct mw_process_match match = {
		.cgroup = options->cgroup,
		.container = options->container,
		.by_user = options->user,
	};
	const struct mw_pids *pids = &options->pids;

	if (options->user)
		MW_TRY(find_user(options->user, &match.user));
	for (size_t i = 0; i < pids->name_count; i++) {
		match.name = pids->names[i];
		MW_TRY(find(&match, options));
	}
	if (!pids->name_count && (options->cgroup || options->container || options->user))
		MW_TRY(find(&match, options));
	if (options->children)
		MW_TRY(add_children(options));
	return takes_one && pids->count > 1 ? too_many(takes_one, pids) : NULL;
}

struct mw_error *mw_select_again(const struct mw_session_options *options, pid_t **pids, size_t *count)
{
	struct mw_session_options again = {
		.cgroup = options->cgroup,
		.container = options->container,
		.user = options->user,
	};
	size_t names = options->pids.name_count;
	struct mw_error *err = NULL;

	for (size_t i = 0; i < (names ? names : 1) && !err; i++) {
		again.pids.names = names ? &options->pids.names[i] : NULL;
		again.pids.name_count = names != 0;
		err = mw_select(&again, NULL);
		/* There may be none at the moment. */
		if (err && mw_error_kind(err) == MW_ERROR_USAGE) {
			mw_error_destroy(err);
			err = NULL;
		}
	}
	*pids = again.pids.items;
	*count = again.pids.count;
	return err;
}

/* One breakpoint can't report to two: processes that share their memory are one to memwatch. */
static struct mw_error *check_shared(const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			struct mw_error *err;

			if (mw_shares_memory(pids[i], pids[j]) != 1)
				continue;
			err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "processes %d and %d share their memory",
					      (int)pids[i], (int)pids[j]);
			return mw_error_hint(err, "Give only one of them");
		}
	return NULL;
}

struct mw_error *mw_select_leave_out(const struct mw_session_options *options, struct mw_follow *follow, pid_t pid,
				     const char *name, struct mw_error *err)
{
	const struct mw_pids *pids = &options->pids;

	for (size_t i = 0; i + pids->found < pids->count; i++)
		if (pids->items[i] == pid)
			return err;
	if (!err || mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	/* Children come and go. */
	if (options->children && mw_error_kind(err) == MW_ERROR_GONE)
		follow->missed++;
	else
		fprintf(stderr, "memwatch: process %d (%s) is not watched: %s\n", (int)pid, name, mw_error_text(err));
	follow->left_out += mw_error_kind(err) != MW_ERROR_GONE;
	mw_error_destroy(err);
	return NULL;
}

/* Does it share its memory with one of those before? That one is watched then. */
static bool is_shared(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (mw_shares_memory(pids[i], pid) == 1)
			return true;
	return false;
}

struct mw_error *mw_select_watchable(const struct mw_session_options *options, pid_t *out, size_t *count,
				     struct mw_follow *follow)
{
	const struct mw_pids *pids = &options->pids;
	size_t named = pids->count - pids->found, seen = 0;

	for (size_t i = 0; i < pids->count; i++) {
		struct mw_error *err;
		char name[17];
		bool passed;

		mw_comm_read(pids->items[i], pids->items[i], name);
		err = mw_preflight(pids->items[i]);
		if (!err && options->leaks)
			err = mw_preflight_heap(pids->items[i]);
		passed = !err;
		MW_TRY(mw_select_leave_out(options, follow, pids->items[i], name, err));
		if (passed && (i < named || !is_shared(out, seen, pids->items[i])))
			out[seen++] = pids->items[i];
	}
	MW_TRY(check_shared(out, named));
	*count = 0;
	for (size_t i = 0; i < seen; i++) {
		struct mw_error *err = mw_preflight_sharing(out[i]);
		bool passed = !err;
		char name[17];

		mw_comm_read(out[i], out[i], name);
		MW_TRY(mw_select_leave_out(options, follow, out[i], name, err));
		if (passed)
			out[(*count)++] = out[i];
	}
	if (*count)
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_UNSUPPORTED, 0, "none of these %zu processes can be watched", pids->count),
		"memwatch doctor -p PID says more of one");
}
