// SPDX-License-Identifier: MIT
/* seccomp_probe.c: what seccomp filters permit that memwatch is under itself (seccomp_probe.h). */
#include "tracee/seccomp_probe.h"

#include "proc/status.h"
#include "tracee/filter.h"
#include "tracee/seccomp_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE         4096u
#define PATIENCE_MS  1000
#define MOST_PARENTS 64
#define FILTER       2 /* mode of seccomp, as /proc has it */
#define ANSWER_LIVES 'l'
#define ANSWER_MADE  'm'
#define ANSWER_ENDED 0
#define ANSWER_HANGS 1

/*
 * Arguments that do no harm to the child, where struct mw_filter_call does not say which they are. `fails`: the kernel
 * answers such a call with that error, so that a filter must have passed it on.
 */
static const struct {
	uint64_t arguments[6];
	int fails;
	uint8_t on_page; /* bit i: argument i is the address of a page */
} trials[MW_CALL_COUNT] = {
	[MW_CALL_MMAP] = {.arguments = {[1] = PAGE}},
	[MW_CALL_MMAP_AT] = {.on_page = 1, .arguments = {[1] = PAGE}, .fails = EEXIST},
	[MW_CALL_MUNMAP] = {.on_page = 1, .arguments = {[1] = PAGE}},
	[MW_CALL_MEMFD_CREATE] = {.on_page = 1, .arguments = {[1] = MFD_CLOEXEC}},
	[MW_CALL_MMAP_SHARED] = {.arguments = {[1] = PAGE, [4] = UINT64_MAX}, .fails = EBADF},
	[MW_CALL_CLOSE] = {.arguments = {UINT64_MAX}, .fails = EBADF},
	[MW_CALL_MMAP_LOCKED] = {.arguments = {[1] = PAGE, [4] = UINT64_MAX}, .fails = EBADF},
	[MW_CALL_MUNLOCK] = {.on_page = 1, .arguments = {[1] = PAGE}},
	[MW_CALL_MPROTECT_DATA] = {.on_page = 1, .arguments = {[1] = PAGE}},
	[MW_CALL_MADVISE] = {.on_page = 1, .arguments = {[1] = PAGE}},
	[MW_CALL_MPROTECT_CODE] = {.on_page = 1, .arguments = {[1] = PAGE}},
	[MW_CALL_PRCTL] = {.on_page = 2},
	[MW_CALL_SIGACTION] = {.on_page = 4, .arguments = {SIGUSR1}},
	[MW_CALL_SIGQUEUE] = {.fails = EFAULT}, /* who it is for is filled in, and what about is nothing */
	[MW_CALL_RESTART] = {.fails = EINTR},
	[MW_CALL_OPEN] = {.on_page = 1, .fails = ENOENT}, /* an empty name */
	[MW_CALL_PREAD] = {.arguments = {UINT64_MAX}, .fails = EBADF},
	[MW_CALL_PWRITE] = {.arguments = {UINT64_MAX}, .fails = EBADF},
	[MW_CALL_MINCORE] = {.on_page = 1 | 4, .arguments = {[1] = PAGE}},
	[MW_CALL_MPROTECT_ALL] = {.on_page = 1, .arguments = {[1] = PAGE}},
};

static volatile sig_atomic_t handled;
static _Atomic pid_t trusted;
static _Atomic pid_t sharer; /* the process that was found last to share memwatch's filters */

static void note_signal(int number)
{
	(void)number;
	handled = 1;
}

/* A handler that returns does so by rt_sigreturn. */
static bool return_from_handler(void)
{
	struct sigaction action = {.sa_handler = note_signal};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigaction(SIGUSR1, &action, NULL) || sigprocmask(SIG_UNBLOCK, &set, NULL))
		return false;
	return syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && handled;
}

static bool make(enum mw_seccomp_policy_call kind, void *page)
{
	const struct mw_filter_call *call = mw_seccomp_policy_call(kind);
	uint64_t arguments[6];
	long result;

	if (kind == MW_CALL_SIGRETURN)
		return return_from_handler();
	for (unsigned i = 0; i < 6; i++) {
		arguments[i] = call->known >> i & 1 ? call->arguments[i] : trials[kind].arguments[i];
		if (trials[kind].on_page >> i & 1)
			arguments[i] = (uint64_t)(uintptr_t)page;
	}
	if (kind == MW_CALL_SIGQUEUE) {
		arguments[0] = (uint64_t)getpid();
		arguments[1] = (uint64_t)gettid();
	}
	result = syscall(call->number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
			 arguments[5]);
	return trials[kind].fails ? result == -1 && errno == trials[kind].fails : result >= 0;
}

/* The child's side. All signals are blocked: what a filter sends ends it without any of memwatch's handlers. */
static void run_trial(enum mw_seccomp_policy_call kind, void *page, int answer)
{
	char byte;

	/* No core file of what a filter ends, and no child left where memwatch is killed. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	byte = make(kind, page) ? ANSWER_MADE : ANSWER_LIVES;
	while (write(answer, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static char await_answer(int answer)
{
	struct pollfd wait = {.fd = answer, .events = POLLIN};
	char byte;
	int ready;

	do
		ready = poll(&wait, 1, PATIENCE_MS);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return ANSWER_HANGS;
	return read(answer, &byte, 1) == 1 ? byte : ANSWER_ENDED;
}

static char try_call(enum mw_seccomp_policy_call kind, void *page)
{
	sigset_t all, before;
	int answer[2];
	char got = ANSWER_HANGS;
	pid_t pid;

	if (pipe2(answer, O_CLOEXEC))
		return ANSWER_HANGS;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		close(answer[0]);
		run_trial(kind, page, answer[1]);
	}
	close(answer[1]);
	if (pid > 0) {
		got = await_answer(answer[0]);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(answer[0]);
	return got;
}

void mw_seccomp_probe(uint32_t *harmless, uint32_t *made)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t lived, went;
	static bool tried;
	void *page;

	pthread_mutex_lock(&lock);
	page = tried ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED) {
		char got = ANSWER_LIVES;

		/* Who is asked about one call and does not answer is not asked about others. */
		for (unsigned kind = 0; kind < MW_CALL_COUNT && got != ANSWER_HANGS; kind++) {
			got = try_call((enum mw_seccomp_policy_call)kind, page);
			lived |= (uint32_t)(got == ANSWER_LIVES || got == ANSWER_MADE) << kind;
			went |= (uint32_t)(got == ANSWER_MADE) << kind;
		}
		munmap(page, PAGE);
		tried = true;
	}
	*harmless = lived;
	*made = went;
	pthread_mutex_unlock(&lock);
}

static bool read_status(pid_t pid, struct mw_status *out)
{
	struct mw_error *err = mw_status_read(pid, out);

	mw_error_destroy(err);
	return !err;
}

/* `pid`, its parent, and so on. */
static size_t read_line(pid_t pid, pid_t out[MOST_PARENTS])
{
	struct mw_status status;
	size_t count = 0;

	while (pid > 0 && count < MOST_PARENTS && read_status(pid, &status)) {
		out[count++] = pid;
		pid = status.ppid;
	}
	return count;
}

static bool same_pid_namespace(pid_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat("/proc/self/ns/pid", &own) == 0 && stat(path, &other) == 0 && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

/* The nearest process that both descend from, or process 1 where there is none; 0 where that is not theirs. */
static pid_t common_origin(pid_t pid)
{
	pid_t ours[MOST_PARENTS], theirs[MOST_PARENTS];
	size_t our_count = read_line(getpid(), ours), their_count = read_line(pid, theirs);

	for (size_t i = 0; i < their_count; i++)
		for (size_t k = 0; k < our_count; k++)
			if (theirs[i] == ours[k])
				return theirs[i];
	return same_pid_namespace(pid) ? 1 : 0;
}

void mw_seccomp_trust(pid_t pid)
{
	trusted = pid;
}

/* memwatch's own, which adds none. 0: none, or the kernel does not count them. */
static int own_filters(void)
{
	static _Atomic int known = -1;
	struct mw_status own;

	if (known < 0 && read_status(getpid(), &own))
		known = own.seccomp == FILTER && own.seccomp_filters > 0 ? own.seccomp_filters : 0;
	return known < 0 ? 0 : known;
}

bool mw_seccomp_shared(pid_t tid)
{
	struct mw_status status, origin;
	int own = own_filters();
	pid_t from;

	if (own == 0 || !read_status(tid, &status) || status.seccomp != FILTER || status.seccomp_filters != own)
		return false;
	/* All threads of a process have the same ancestors, and no filter is ever taken away from any. */
	if (status.tgid == trusted || status.tgid == sharer)
		return true;
	from = common_origin(status.tgid);
	if (from <= 0 || !read_status(from, &origin) || origin.seccomp_filters != own)
		return false;
	sharer = status.tgid;
	return true;
}

void mw_seccomp_prepare(pid_t pid)
{
	uint32_t harmless, made;

	sharer = 0;
	if (mw_seccomp_shared(mw_live_thread(pid)))
		mw_seccomp_probe(&harmless, &made);
}

bool mw_seccomp_shared_may(pid_t tid, long number)
{
	uint32_t harmless, made;
	bool listed = false, may = true;

	if (!mw_seccomp_shared(tid))
		return false;
	mw_seccomp_probe(&harmless, &made);
	for (unsigned kind = 0; kind < MW_CALL_COUNT; kind++)
		if (mw_seccomp_policy_call((enum mw_seccomp_policy_call)kind)->number == number) {
			listed = true;
			may &= harmless >> kind & 1;
		}
	return listed && may;
}
