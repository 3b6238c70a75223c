// SPDX-License-Identifier: MIT
/* inject_error.c: which limit of a target's was run into (inject_error.h). */
#include "tracee/inject_error.h"

#include "proc/file.h"
#include "proc/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB (UINT64_C(1) << 20)

/* The value of a line "Name:  123 kB" of /proc/TID/status in bytes; 0 where there is none. */
static uint64_t status_kib(pid_t tid, const char *name)
{
	uint64_t value = 0;
	char *text = NULL;
	size_t size = 0;
	const char *at;
	struct mw_error *err = mw_proc_file_read(&text, &size, "/proc/%d/status", (int)tid);

	if (err) {
		mw_error_destroy(err);
		return 0;
	}
	at = strstr(text, name);
	if (at)
		value = strtoull(at + strlen(name), NULL, 10);
	free(text);
	return value < UINT64_MAX / 1024 ? value * 1024 : 0;
}

/* Is `size` more beyond a limit? Says so in `out`. */
static bool beyond(pid_t tid, __rlimit_resource_t resource, const char *name, uint64_t used, uint64_t size, char *out,
		   size_t room)
{
	struct rlimit limit;

	if (prlimit(tid, resource, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return false;
	if (used <= limit.rlim_cur && size <= limit.rlim_cur - used)
		return false;
	(void)snprintf(out, room, "its limit %s is %" PRIu64 " MiB, of which it uses %" PRIu64, name,
		       (uint64_t)limit.rlim_cur / MIB, used / MIB);
	return true;
}

static void meaning_of_memory(pid_t tid, uint64_t size, char *out, size_t room)
{
	if (beyond(tid, RLIMIT_AS, "RLIMIT_AS (ulimit -v)", status_kib(tid, "\nVmSize:"), size, out, room) ||
	    beyond(tid, RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)", status_kib(tid, "\nVmData:"), size, out, room))
		return;
	(void)snprintf(out, room,
		       "it may have as many mappings as vm.max_map_count allows, or the system no memory to promise "
		       "(vm.overcommit_memory)");
}

static void meaning(pid_t tid, int errnum, uint64_t size, char *out, size_t room)
{
	switch (errnum) {
	case ENOMEM:
		meaning_of_memory(tid, size, out, room);
		break;
	case EMFILE:
		(void)snprintf(out, room, "it has as many files open as RLIMIT_NOFILE (ulimit -n) allows");
		break;
	case ENFILE:
		(void)snprintf(out, room, "the system has as many files open as fs.file-max allows");
		break;
	case EAGAIN:
		(void)snprintf(out, room,
			       "it locks its memory (mlockall), and RLIMIT_MEMLOCK (ulimit -l) forbids more");
		break;
	case EPERM:
	case EACCES:
		(void)snprintf(out, room, "a security policy of the system forbids it to the process");
		break;
	case ENOSYS:
		(void)snprintf(out, room, "the kernel, or what filters its system calls, has no such call");
		break;
	case EEXIST:
		(void)snprintf(out, room, "the place is taken");
		break;
	default:
		out[0] = '\0';
	}
}

struct mw_error *mw_inject_error(pid_t tid, int errnum, uint64_t size, const char *what)
{
	char why[256];
	struct mw_error *err;

	meaning(tid, errnum, size, why, sizeof(why));
	if (why[0])
		err = mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot %s thread %d (%" PRIu64 " KiB): %s", what,
				      (int)tid, size / 1024, why);
	else
		err = mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot %s thread %d (%" PRIu64 " KiB)", what, (int)tid,
				      size / 1024);
	if (errnum == EPERM || errnum == EACCES || errnum == ENOSYS)
		return mw_error_hint(err, MW_INJECT_UNSAFE_HINT);
	return mw_error_hint(err, MW_INJECT_TRAP_HINT);
}

struct mw_error *mw_inject_check_limit(pid_t tid, uint64_t size)
{
	uint64_t peak = status_kib(tid, "\nVmPeak:");
	char why[256];
	struct mw_error *err;

	if (!beyond(tid, RLIMIT_AS, "RLIMIT_AS (ulimit -v)", peak, size, why, sizeof(why)))
		return NULL;
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "the recorder needs %" PRIu64
			      " MiB of address space in process %d, which may be short of it: %s at times",
			      size / MIB, (int)tid, why);
	return mw_error_hint(err, MW_INJECT_TRAP_HINT "; or raise the limit (prlimit --as)");
}
