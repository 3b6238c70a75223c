// SPDX-License-Identifier: MIT
/* processes.c: see processes.h. */
#include "proc/processes.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/file.h"
#include "proc/program.h"
#include "proc/root.h"
#include "proc/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMM_MAX 15u /* characters that the kernel keeps of a name */
#define ID_LEAST 12u /* digits of a container's id, as its runtime shortens it */
#define TEXT_MAX 256u

/* A part of a text, which need not end in NUL. */
struct part {
	const char *text;
	size_t length;
};

static bool is(struct part part, const char *word)
{
	return strlen(word) == part.length && memcmp(part.text, word, part.length) == 0;
}

static bool begins(struct part part, const char *word)
{
	return strlen(word) <= part.length && memcmp(part.text, word, strlen(word)) == 0;
}

/* The part without that end; the same where it has another. */
static struct part without_end(struct part part, const char *end)
{
	size_t length = strlen(end);

	if (part.length > length && memcmp(part.text + part.length - length, end, length) == 0)
		part.length -= length;
	return part;
}

/* The path of the next line of /proc/PID/cgroup ("4:memory:/a/b", "0::/a/b"). False: there are no more. */
static bool next_group(const char **lines, struct part *path)
{
	while (**lines) {
		const char *line = *lines, *end = line + strcspn(line, "\n");
		const char *first = memchr(line, ':', (size_t)(end - line));
		const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

		*lines = *end ? end + 1 : end;
		if (!second)
			continue;
		*path = (struct part){second + 1, (size_t)(end - second - 1)};
		return true;
	}
	return false;
}

/* The next part of a path. */
static bool next_part(struct part *path, struct part *out)
{
	while (path->length && *path->text == '/') {
		path->text++;
		path->length--;
	}
	if (!path->length)
		return false;
	*out = (struct part){path->text, 0};
	while (path->length && *path->text != '/') {
		path->text++;
		path->length--;
		out->length++;
	}
	return true;
}

/* --- cgroups ---------------------------------------------------------------------------------------------------------- */

/* Does one path begin with the other, part for part? */
static bool is_below(struct part path, struct part above)
{
	struct part a, b;

	while (next_part(&above, &a))
		if (!next_part(&path, &b) || a.length != b.length || memcmp(a.text, b.text, a.length) != 0)
			return false;
	return true;
}

static bool is_unit(struct part part, const char *wanted)
{
	static const char *const kinds[] = {".service", ".scope", ".slice"};

	if (is(part, wanted))
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is(without_end(part, kinds[i]), wanted))
			return true;
	return false;
}

bool mw_cgroup_matches(const char *lines, const char *wanted)
{
	static const char mount[] = "/sys/fs/cgroup";
	struct part path, part, above = {wanted, strlen(wanted)}, controller;
	bool mounted = is_below(above, (struct part){mount, sizeof(mount) - 1});

	if (mounted) {
		above.text += sizeof(mount) - 1;
		above.length -= sizeof(mount) - 1;
	}
	while (next_group(&lines, &path)) {
		if (strchr(wanted, '/')) {
			struct part rest = above;

			/* Version 1 has a directory for each controller there. */
			if (is_below(path, above) ||
			    (mounted && next_part(&rest, &controller) && rest.length && is_below(path, rest)))
				return true;
			continue;
		}
		while (next_part(&path, &part))
			if (is_unit(part, wanted))
				return true;
	}
	return false;
}

/* --- containers ------------------------------------------------------------------------------------------------------- */

static size_t hex_digits(struct part part)
{
	size_t count = 0;

	while (count < part.length && isxdigit((unsigned char)part.text[count]))
		count++;
	return count;
}

/*
 * The id in a part of a path: docker-ID.scope, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope, or ID alone. False
 * where none is there.
 */
static bool find_id(struct part part, struct part *id)
{
	part = without_end(part, ".scope");
	for (size_t i = part.length; i > 0; i--)
		if (part.text[i - 1] == '-' || part.text[i - 1] == ':') {
			part.text += i;
			part.length -= i;
			break;
		}
	*id = part;
	return part.length >= ID_LEAST && hex_digits(part) == part.length;
}

/* lxc.payload.NAME, machine-NAME.scope, systemd-nspawn@NAME.service, and what is below /lxc. */
static bool is_named(struct part part, struct part before, const char *wanted)
{
	static const struct {
		const char *before, *behind;
	} forms[] = {
		{"lxc.payload.", ""}, {"lxc.payload/", ""}, {"machine-", ".scope"}, {"systemd-nspawn@", ".service"}};

	if (is(before, "lxc") || is(before, "lxc.payload"))
		return is(part, wanted);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t length = strlen(forms[i].before);

		if (begins(part, forms[i].before) &&
		    is(without_end((struct part){part.text + length, part.length - length}, forms[i].behind), wanted))
			return true;
	}
	return false;
}

bool mw_container_matches(const char *lines, const char *wanted)
{
	bool hex = *wanted && wanted[strspn(wanted, "0123456789abcdef")] == '\0';
	struct part path, part, id;

	while (next_group(&lines, &path)) {
		struct part before = {"", 0};

		for (; next_part(&path, &part); before = part)
			if ((hex && find_id(part, &id) && begins(id, wanted)) || is_named(part, before, wanted))
				return true;
	}
	return false;
}

/* The name of its host, where it has one of its own. */
static bool has_host(pid_t pid, const char *wanted)
{
	struct stat ours, theirs;
	char name[TEXT_MAX];
	ssize_t got;
	int fd;

	if (stat("/proc/self/ns/uts", &ours) != 0 || stat(mw_path("/proc/%d/ns/uts", (int)pid).text, &theirs) != 0 ||
	    ours.st_ino == theirs.st_ino)
		return false;
	fd = mw_root_open(pid, "/etc/hostname");
	if (fd < 0)
		return false;
	got = read(fd, name, sizeof(name) - 1);
	close(fd);
	name[got > 0 ? got : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return strcmp(name, wanted) == 0;
}

/* What stands behind an option on a command line; NULL where it is not there. */
static const char *argument_of(char *const *argv, const char *option)
{
	for (; argv[0] && argv[1]; argv++)
		if (strcmp(argv[0], option) == 0)
			return argv[1];
	return NULL;
}

/* The id of podman's container of that name, malloc'ed: "conmon … -c ID … -n NAME". NULL where its monitor does not run. */
static char *podman_id(const pid_t *pids, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		MW_CLEANUP(mw_command_free) char **argv = NULL;
		const char *has, *id;
		char comm[17];
		size_t words;

		mw_comm_read(pids[i], pids[i], comm);
		if (strcmp(comm, "conmon") != 0 || !mw_error_none(mw_command_read(pids[i], &argv, &words)))
			continue;
		has = argument_of(argv, "-n");
		id = argument_of(argv, "-c");
		if (has && id && strcmp(has, name) == 0)
			return strdup(id);
	}
	return NULL;
}

/* --- names ------------------------------------------------------------------------------------------------------------ */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_program(pid_t pid, const char *wanted)
{
	MW_FREE char *exe = NULL, *executed = NULL;
	bool path = strchr(wanted, '/');

	if (!mw_error_none(mw_exe_read(pid, &exe)))
		return false;
	executed = mw_exe_executed(pid, exe);
	return strcmp(path ? exe : last_part(exe), wanted) == 0 ||
	       (executed && strcmp(path ? executed : last_part(executed), wanted) == 0);
}

/* By its first argument, which may be a title: "nginx: worker process", "-bash". */
static bool is_titled(pid_t pid, const char *wanted)
{
	MW_CLEANUP(mw_command_free) char **argv = NULL;
	const char *title;
	size_t count;

	if (!mw_error_none(mw_command_read(pid, &argv, &count)) || !count)
		return false;
	argv[0][strcspn(argv[0], ": ")] = '\0';
	title = strchr(wanted, '/') ? argv[0] : last_part(argv[0]);
	return strcmp(title, wanted) == 0 || (*title == '-' && strcmp(title + 1, wanted) == 0);
}

static bool is_called(pid_t pid, const struct mw_status *status, const char *wanted)
{
	size_t length = strlen(wanted);

	if (strncmp(status->name, wanted, COMM_MAX) == 0 && (length <= COMM_MAX || strlen(status->name) == COMM_MAX))
		return length <= COMM_MAX || is_program(pid, wanted) || is_titled(pid, wanted);
	return is_program(pid, wanted) || is_titled(pid, wanted);
}

/* --- all -------------------------------------------------------------------------------------------------------------- */

static bool matches(const struct mw_process_match *match, const char *podman, pid_t pid)
{
	MW_FREE char *groups = NULL;
	struct mw_status status;

	if (!mw_error_none(mw_status_read(pid, &status)) || status.kernel_thread || mw_state_is_end(status.state))
		return false;
	if (match->by_user && status.euid != match->user)
		return false;
	if ((match->cgroup || match->container) &&
	    !mw_error_none(mw_proc_file_read(&groups, NULL, "/proc/%d/cgroup", (int)pid)))
		return false;
	if (match->cgroup && !mw_cgroup_matches(groups, match->cgroup))
		return false;
	if (match->container && !mw_container_matches(groups, match->container) &&
	    !(podman && mw_container_matches(groups, podman)) && !has_host(pid, match->container))
		return false;
	return !match->name || is_called(pid, &status, match->name);
}

struct mw_error *mw_processes_find(const struct mw_process_match *match, pid_t **pids, size_t *count)
{
	MW_FREE pid_t *all = NULL;
	MW_FREE char *podman = NULL;
	size_t every, kept = 0;

	MW_TRY(mw_processes_read(&all, &every));
	if (match->container)
		podman = podman_id(all, every, match->container);
	for (size_t i = 0; i < every; i++)
		if (all[i] != getpid() && matches(match, podman, all[i]))
			all[kept++] = all[i];
	*pids = MW_TAKE(all);
	*count = kept;
	return NULL;
}
