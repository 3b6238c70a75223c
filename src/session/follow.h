/* SPDX-License-Identifier: MIT */
/*
 * follow.h: what watched processes fork and exec is watched as well.
 *
 * The kernel tells of forks and execs where it may (births.h). Else children are found in /proc, a hundred times a second
 * at most, and by what the engine hears of them. One that was only just forked is given a moment to exec, as most do, and
 * what it becomes one to end: to attach to each short program would slow down who starts them. A window that ended with an
 * exec is followed by that of the program that the process has become.
 */
#ifndef MW_SESSION_FOLLOW_H
#define MW_SESSION_FOLLOW_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mw_session;

#define MW_FOLLOW_MAX      1024u              /* children of a session, in all */
#define MW_FOLLOW_SLICE_NS UINT64_C(10000000) /* between two looks */

/* Begins as MW_FOLLOW_NONE; mw_follow_deinit frees. */
struct mw_follow {
	struct mw_follow_child {
		pid_t pid, parent;
		uint64_t started; /* clock ticks since boot */
		uint64_t seen_ns, due_ns;
		unsigned attempts;
		uint64_t execed_ns;      /* when it last did since it was forked; 0: it has not, or nobody tells */
		bool refused;            /* it can't be watched, as what it is; its children may be */
		bool left_out;           /* … and is not gone either */
		uint64_t refused_digest; /* of the program that it was then */
	} * children;                    /* that are not watched, or not yet */
	size_t count, capacity;
	uint64_t due_ns, group_due_ns; /* the next look: at children, and at who has the names that are watched */
	int births;                    /* the kernel tells of them; -1: it does not */
	uint64_t check_due_ns;         /* … and that it has told of all is checked */
	uint64_t missed;               /* ended before they were watched, were too many, or can't be watched */
	uint64_t left_out;             /* cannot be watched, of children and of what was found by a name or group */
	unsigned messages;
};

#define MW_FOLLOW_NONE ((struct mw_follow){.births = -1})

/* Ask the kernel to tell of births: `births` polls as readable then. */
void mw_follow_listen(struct mw_follow *follow);
/* There is that child. */
void mw_follow_note(struct mw_follow *follow, pid_t child, pid_t parent);
/* Look for children of what is watched, and for programs that it became, and watch them. In the engine's thread, between
 * two run(). `now`: else nothing is done where the last look was not long ago. Errors: MEMORY, those of run(), and
 * UNSUPPORTED where a launched command has become one that can't be watched at all. */
struct mw_error *mw_follow_look(struct mw_session *session, bool now) MW_MUST_CHECK;
/* Is there one that may yet be watched? */
bool mw_follow_pending(const struct mw_follow *follow);
/* Those that were missed, on standard error. */
void mw_follow_tell(const struct mw_follow *follow);
void mw_follow_deinit(struct mw_follow *follow);

#endif
