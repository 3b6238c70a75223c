// SPDX-License-Identifier: MIT
/* seccomp_policy.c: what threads may do under seccomp (seccomp_policy.h), filters of memwatch's own among them. */
#include "tracee/seccomp_policy.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/status.h"
#include "tracee/filter.h"
#include "tracee/inject.h"
#include "tracee/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define FIRST  1u /* which arguments are known */
#define SECOND 2u
#define THIRD  4u
#define FOURTH 8u
#define FIFTH  16u
#define SIXTH  32u

#define PAGE 4096u
#define DATA (PROT_READ | PROT_WRITE)
#define CODE (PROT_READ | PROT_EXEC)

/*
 * Arguments that are not known are such as do a child no harm that tries the call. `fails`: the kernel answers that one
 * with this error, so that a filter must have passed it on. `on_page`: bit i: argument i is the address of a page then.
 */
static const struct {
	const char *name;
	struct mw_filter_call call;
	uint8_t on_page;
	int fails;
} kinds[MW_CALL_COUNT] = {
	[MW_CALL_MMAP] = {.name = "mmap",
			  .call = {SYS_mmap,
				   {0, PAGE, DATA, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
				   FIRST | THIRD | FOURTH | FIFTH | SIXTH}},
	[MW_CALL_MMAP_AT] = {"mmap",
			     {SYS_mmap,
			      {0, PAGE, DATA, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0},
			      THIRD | FOURTH | FIFTH | SIXTH},
			     .on_page = FIRST,
			     .fails = EEXIST},
	[MW_CALL_MUNMAP] = {"munmap", {SYS_munmap, {0, PAGE}, 0}, .on_page = FIRST},
	[MW_CALL_MEMFD_CREATE] = {"memfd_create", {SYS_memfd_create, {0, MFD_CLOEXEC}, 0}, .on_page = FIRST},
	[MW_CALL_MMAP_SHARED] = {"mmap",
				 {SYS_mmap,
				  {0, PAGE, DATA, MAP_SHARED | MAP_NORESERVE, UINT64_MAX},
				  FIRST | THIRD | FOURTH | SIXTH},
				 .fails = EBADF},
	[MW_CALL_CLOSE] = {"close", {SYS_close, {UINT64_MAX}, 0}, .fails = EBADF},
	[MW_CALL_MMAP_LOCKED] = {"mmap",
				 {SYS_mmap,
				  {0, PAGE, PROT_NONE, MAP_SHARED | MAP_NORESERVE, UINT64_MAX},
				  FIRST | THIRD | FOURTH | SIXTH},
				 .fails = EBADF},
	[MW_CALL_MUNLOCK] = {"munlock", {SYS_munlock, {0, PAGE}, 0}, .on_page = FIRST},
	[MW_CALL_MPROTECT_DATA] = {"mprotect", {SYS_mprotect, {0, PAGE, DATA}, THIRD}, .on_page = FIRST},
	[MW_CALL_MADVISE] = {"madvise", {SYS_madvise, {0, PAGE, MADV_WIPEONFORK}, THIRD}, .on_page = FIRST},
	[MW_CALL_MPROTECT_CODE] = {"mprotect", {SYS_mprotect, {0, PAGE, CODE}, THIRD}, .on_page = FIRST},
	[MW_CALL_PRCTL] = {"prctl", {SYS_prctl, {PR_GET_TSC}, FIRST}, .on_page = SECOND},
	[MW_CALL_SIGACTION] = {"rt_sigaction", {SYS_rt_sigaction, {SIGUSR1, 0, 0, 8}, FOURTH}, .on_page = THIRD},
	/* Who it is for is filled in, and what about is nothing. */
	[MW_CALL_SIGQUEUE] = {"rt_tgsigqueueinfo", {SYS_rt_tgsigqueueinfo, {0, 0, SIGTRAP}, THIRD}, .fails = EFAULT},
	[MW_CALL_SIGRETURN] = {.name = "rt_sigreturn", .call = {.number = SYS_rt_sigreturn}},
	[MW_CALL_RESTART] = {"restart_syscall", {.number = SYS_restart_syscall}, .fails = EINTR},
	/* An empty name. */
	[MW_CALL_OPEN] = {"open", {SYS_open, {0, O_RDWR | O_CLOEXEC}, SECOND}, .on_page = FIRST, .fails = ENOENT},
	[MW_CALL_PREAD] = {"pread64", {SYS_pread64, {UINT64_MAX}, 0}, .fails = EBADF},
	[MW_CALL_PWRITE] = {"pwrite64", {SYS_pwrite64, {UINT64_MAX}, 0}, .fails = EBADF},
	[MW_CALL_MINCORE] = {"mincore", {SYS_mincore, {0, PAGE}, 0}, .on_page = FIRST | THIRD},
	[MW_CALL_MPROTECT_ALL] = {"mprotect", {SYS_mprotect, {0, PAGE, DATA | PROT_EXEC}, THIRD}, .on_page = FIRST},
	[MW_CALL_GETPID] = {.name = "getpid", .call = {.number = SYS_getpid}},
	[MW_CALL_GETTID] = {.name = "gettid", .call = {.number = SYS_gettid}},
	/* Flags that the kernel does not take together; to filters it is a fork. */
	[MW_CALL_CLONE] = {"clone", {SYS_clone, {CLONE_FILES | CLONE_SIGHAND}, FIRST}, .fails = EINVAL},
	[MW_CALL_WAIT4] = {"wait4",
			   {SYS_wait4, {INT32_MAX, 0, WNOHANG | __WALL}, SECOND | THIRD | FOURTH},
			   .fails = ECHILD},
	[MW_CALL_SIGALTSTACK] = {"sigaltstack", {SYS_sigaltstack, {0}, FIRST}, .on_page = SECOND},
};

/*
 * Filters that memwatch shares with a thread can be neither read nor suspended. What they permit can be tried: a child
 * of memwatch is under them as well, and makes the calls that a target would have to make.
 */

#define PATIENCE_MS  1000
#define MOST_PARENTS 64
#define FILTER       2 /* mode of seccomp, as /proc has it */
#define ANSWER_LIVES 'l'
#define ANSWER_MADE  'm'
#define ANSWER_ENDED 0
#define ANSWER_HANGS 1

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
	const struct mw_filter_call *call = &kinds[kind].call;
	uint64_t arguments[6];
	long result;

	if (kind == MW_CALL_SIGRETURN)
		return return_from_handler();
	for (unsigned i = 0; i < 6; i++) {
		arguments[i] = kinds[kind].on_page >> i & 1 ? (uint64_t)(uintptr_t)page : call->arguments[i];
	}
	if (kind == MW_CALL_SIGQUEUE) {
		arguments[0] = (uint64_t)getpid();
		arguments[1] = (uint64_t)gettid();
	}
	result = syscall(call->number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
			 arguments[5]);
	return kinds[kind].fails ? result == -1 && errno == kinds[kind].fails : result >= 0;
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

/* What children of memwatch may do: the calls that they have lived through, and those that were made. Tried once for the
 * whole run, each by a child of its own that has a second for it. Any thread. */
static struct mw_permit probe(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct mw_permit tried;
	struct mw_permit permit;
	void *page;

	pthread_mutex_lock(&lock);
	page = tried.known ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED) {
		char got = ANSWER_LIVES;

		/* Who is asked about one call and does not answer is not asked about others. */
		for (unsigned kind = 0; kind < MW_CALL_COUNT && got != ANSWER_HANGS; kind++) {
			got = try_call((enum mw_seccomp_policy_call)kind, page);
			tried.harmless |= (uint32_t)(got == ANSWER_LIVES || got == ANSWER_MADE) << kind;
			tried.made |= (uint32_t)(got == ANSWER_MADE) << kind;
		}
		munmap(page, PAGE);
		tried.known = true;
	}
	permit = tried;
	permit.known = true;
	pthread_mutex_unlock(&lock);
	return permit;
}

static bool read_status(pid_t pid, struct mw_status *out)
{
	return mw_error_none(mw_status_read(pid, out));
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

	return stat("/proc/self/ns/pid", &own) == 0 && stat(mw_path("/proc/%d/ns/pid", (int)pid).text, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
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
	sharer = 0;
	if (mw_seccomp_shared(mw_live_thread(pid)))
		(void)probe();
}

bool mw_seccomp_shared_may(pid_t tid, long number)
{
	bool listed = false, may = true;
	struct mw_permit permit;

	if (!mw_seccomp_shared(tid))
		return false;
	permit = probe();
	for (unsigned kind = 0; kind < MW_CALL_COUNT; kind++)
		if (kinds[kind].call.number == number) {
			listed = true;
			may &= permit.harmless >> kind & 1;
		}
	return listed && may;
}

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
		program->answers[i] = (uint8_t)mw_filter_actions(program->code, count, &kinds[i].call);
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
	*out = (struct mw_permit){.known = true};
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
	*out = (struct mw_permit){.known = true};
	if (status.seccomp == 0)
		out->harmless = out->made = MW_CALLS_ALL;
	else if (status.seccomp == STRICT && (errnum == EINVAL || errnum == EACCES))
		/* It can't be in a wait that is gone on with. */
		out->harmless = out->made = MW_CALLS_BACK | MW_CALL_BIT(RESTART);
	else if (mw_seccomp_shared(tid))
		*out = probe();
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
	MW_FREE struct sock_filter *room = calloc(MW_FILTER_MAX, sizeof(*room));
	unsigned actions = MW_FILTER_ALLOW;
	unsigned long number = 0;
	long count = 0;

	if (!room)
		return false;
	while (number < MOST_FILTERS && (count = get_filter(tid, number, room)) >= 0) {
		actions |= mw_filter_actions(room, (size_t)count, &kinds[MW_CALL_RESTART].call);
		number++;
	}
	if (number > 0)
		return count < 0 && errno == ENOENT && (actions & ~MW_FILTER_PASSES) == 0;
	return mw_seccomp_shared(tid) && probe().made & MW_CALL_BIT(RESTART);
}

struct mw_error *mw_tracee_mend_interrupted_call(pid_t tid)
{
	struct mw_tracee_regs regs;
	struct mw_status status;

	MW_TRY(mw_tracee_get_regs(tid, &regs));
	if (mw_regs_restart(&regs.general, EINTR))
		return mw_tracee_set_regs(tid, &regs);
	if (!mw_regs_restart(&regs.general, MW_ERESTART_RESTARTBLOCK))
		return NULL;
	/* Under none, or the strict mode: then it can't be in such a wait. */
	if (get_filter(tid, 0, NULL) < 0 && errno == EINVAL)
		return NULL;
	if (may_restart(tid))
		return NULL;
	MW_TRY(mw_status_read(tid, &status));
	return status.seccomp == 0 ? NULL : mw_tracee_set_regs(tid, &regs);
}

/* The first that suits, of those that are stopped as a group or not, and that have room for the sigframe or not. */
static struct mw_error *pick_of(struct mw_seccomp_policy *policy, const struct mw_quiesce *quiesce,
				const struct mw_maps *maps, const struct mw_seccomp_policy_need *need,
				bool group_stopped, pid_t *tid, struct mw_permit *permit)
{
	for (size_t i = 0; i < quiesce->count; i++) {
		const struct mw_quiet_thread *thread = &quiesce->threads[i];
		struct mw_error *err;

		if (!mw_quiet_thread_can_call(thread) || thread->group_stopped != group_stopped ||
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
	*permit = (struct mw_permit){.known = false};
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

/* The calls that stand in the way, by name: "mmap, munmap". */
static void list_lacks(const struct mw_permit *permit, const struct mw_seccomp_policy_need *need, char *out,
		       size_t size)
{
	uint32_t lacks = (need->harmless & ~permit->harmless) | (need->made & ~permit->made);
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < MW_CALL_COUNT; i++) {
		bool told = false;

		for (size_t j = 0; j < i; j++)
			told |= lacks >> j & 1 && strcmp(kinds[j].name, kinds[i].name) == 0;
		if (!(lacks >> i & 1) || told || at >= size)
			continue;
		at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", kinds[i].name);
	}
}

struct mw_error *mw_seccomp_policy_refuse(const char *engine, pid_t pid, const struct mw_permit *permit,
					  const struct mw_seccomp_policy_need *need)
{
	char names[256];
	struct mw_error *err;

	list_lacks(permit, need, names, sizeof(names));
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "engine %s can't be used on process %d: its seccomp filter may kill it for system calls "
			      "that it must make (%s) if memwatch is killed at that moment",
			      engine, (int)pid, names);
	return mw_error_hint(err, "--unsafe accepts that risk");
}

/* `shared`: a thread under the filters that memwatch is under counts as one under none. */
static struct mw_error *count_threads(pid_t pid, bool shared, size_t *seccomp_filtered, size_t *others)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;
	struct mw_error *err = mw_tasks_read(pid, &tids, &count);

	*seccomp_filtered = *others = 0;
	for (size_t i = 0; i < count && !err; i++) {
		struct mw_status status;

		err = mw_status_read(tids[i], &status);
		if (!err && !mw_state_is_end(status.state))
			++*(status.seccomp > 0 && !(shared && mw_seccomp_shared(tids[i])) ? seccomp_filtered : others);
		err = mw_error_unless_gone(err);
	}
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
