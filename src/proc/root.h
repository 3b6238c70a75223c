/* SPDX-License-Identifier: MIT */
/*
 * root.h: files under the names by which a target knows them (its root directory and mount
 * namespace may be others than ours).
 */
#ifndef MW_PROC_ROOT_H
#define MW_PROC_ROOT_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/stat.h>
#include <sys/types.h>

/*
 * Open a regular file for reading by its path inside the root of a process or thread. Links are
 * followed inside that root and cannot lead out of it. Nothing but a regular file is ever opened
 * (a device's open may have effects, a fifo's may block). Returns a descriptor (close-on-exec),
 * or -1 with errno; ENXIO where the path is not a regular file.
 */
int mw_root_open(pid_t tid, const char *path);

/* The root directory of a process or thread, as a place holder (O_PATH), or -1 with errno. To be closed. */
int mw_root_directory(pid_t tid);

/* Is it memwatch's own? */
bool mw_root_is_own(int root);

/* As mw_root_open, from such a root. `plain`: the path's last part is not to be a link (ENXIO). */
int mw_root_open_at(int root, const char *path, bool plain);

/* What lies at `path` inside the root of a process? False where nothing does. Its device is not to be compared with what
 * /proc/PID/maps says: on overlayfs and btrfs they differ. */
bool mw_root_stat(pid_t tid, const char *path, struct stat *out);

/*
 * Reopen a path for reading (magic links of /proc are followed), with the same care for what it is.
 * Returns a descriptor, or -1 with errno as above.
 */
int mw_root_open_link(const char *path);

/*
 * The prefix that /proc puts before the target's own view of a path: "" as a rule; the directory, where
 * the target is in a chroot (the kernel tells paths as the reader sees them). Malloc'ed, NULL without memory.
 */
char *mw_root_prefix(pid_t tid);

/* `path` without such a prefix; a pointer into it. */
const char *mw_root_strip(const char *path, const char *prefix);

#endif
