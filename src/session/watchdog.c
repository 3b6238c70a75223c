// SPDX-License-Identifier: MIT
/* watchdog.c: see watchdog.h. */
#include "session/watchdog.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "engine/stale.h"
#include "proc/program.h"
#include "proc/status.h"
#include "session/process_setup.h"
#include "session/terminal.h"
#include "tracee/seccomp_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- what is executed: memwatch --stand-by ------------------------------------------------------------------------ */

/* Its arguments, by position. Processes follow, as PID:START (clock ticks since boot, 0: not known), and ":shared"
 * where memwatch shares the seccomp filters of the process. */
enum {
	ARGUMENT_SELF,
	ARGUMENT_IS,        /* MW_WATCHDOG_VERB */
	ARGUMENT_FD,        /* the guard's pipe, kept open; -1: none, or it is the guard that executes this */
	ARGUMENT_GUARD,     /* the guard's process id, or 0 */
	ARGUMENT_SIGNAL,    /* of a crash; 0: none; -1: memwatch has been killed */
	ARGUMENT_MESSAGE,   /* of memwatch's, or "" */
	ARGUMENT_OUTPUT,    /* or "" */
	ARGUMENT_PROCESSES, /* the first of them */
};

/* What is on its way to a program that was in the midst of something else; nothing of it is for this one.
 * Async-signal-safe. */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP, SIGTTOU,
				      SIGTTIN, SIGPIPE, SIGALRM, SIGUSR1, SIGXFSZ};
	sigset_t none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

#define REST_NS 100000000 /* between two attempts … */
#define LONG_S  1         /* … where calls are to come back meanwhile */

/* Take out what is left in a process, as it stands in the arguments, if that is still the one that began then. What has
 * to stay is reported in `left`, "" otherwise. */
static struct mw_error *clean_process(const char *process, char *left, size_t size)
{
	pid_t pid = (pid_t)strtol(process, NULL, 10);
	const char *colon = strchr(process, ':');
	uint64_t started = colon ? strtoull(colon + 1, NULL, 10) : 0;
	struct mw_program now;

	*left = '\0';
	if (mw_process_is_over(pid))
		return NULL;
	if (strstr(process, ":shared"))
		mw_seccomp_trust(pid);
	mw_program_read(pid, &now);
	if (started && now.started && now.started != started)
		return NULL; /* another one has its number */
	mw_seccomp_prepare(pid);
	return mw_stale_remove(pid, left, size);
}

/* How often is it tried? What is not to be had may be in a moment; mostly it is not. */
static unsigned attempts(const struct mw_error *err)
{
	if (!err)
		return 4;
	return mw_error_kind(err) == MW_ERROR_UNSUPPORTED ? 2 : 11;
}

/*
 * The kernel may just be taking the old memwatch away from it. On a busy machine calls that go through what is to be
 * taken out may take a while to come back.
 */
static struct mw_error *clean_patiently(const char *process, char *left, size_t size)
{
	for (unsigned i = 1;; i++) {
		struct mw_error *err = clean_process(process, left, size);
		const struct timespec rest = {.tv_sec = err ? 0 : LONG_S, .tv_nsec = err ? REST_NS : 0};

		if ((!err && !*left) || i >= attempts(err))
			return err;
		if (err && mw_error_kind(err) == MW_ERROR_GONE) {
			mw_error_destroy(err);
			return NULL;
		}
		mw_error_destroy(err);
		nanosleep(&rest, NULL);
	}
}

/* Those that live come first, and are counted; all where none does. */
static int put_living_first(int count, char **processes)
{
	int living = 0;

	for (int i = 0; i < count; i++) {
		char *process = processes[i];
		int same = 0;

		/* One that has become another program was added again. */
		while (same < living && atoi(processes[same]) != atoi(process))
			same++;
		if (same < living || mw_process_is_over((pid_t)atoi(process)))
			continue;
		processes[i] = processes[living];
		processes[living++] = process;
	}
	return living ? living : count;
}

/* "detached from process 12, which runs on", "detached from processes 12, 13, which run on". */
static void report_processes(FILE *out, int count, char **processes)
{
	fprintf(out, "detached from process%s ", count == 1 ? "" : "es");
	for (int i = 0; i < count; i++)
		fprintf(out, "%s%d", i ? ", " : "", atoi(processes[i]));
	fprintf(out, ", which run%s on", count == 1 ? "s" : "");
}

static void emit(char **argv, int count, char **processes, const char *trouble)
{
	int number = atoi(argv[ARGUMENT_SIGNAL]);
	MW_FREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fputs("memwatch: ", out);
	if (number > 0)
		fprintf(out, "memwatch has crashed (%s): ", mw_crash_name(number));
	else if (number < 0)
		fputs("memwatch was killed: ", out);
	else
		mw_message_put(out, argv[ARGUMENT_MESSAGE]);
	if (number)
		report_processes(out, count, processes);
	if (*trouble) {
		fputs(", but ", out);
		mw_message_put(out, trouble);
	}
	if (number && *argv[ARGUMENT_OUTPUT]) {
		fputs(". What was recorded until then is in ", out);
		mw_message_put(out, argv[ARGUMENT_OUTPUT]);
	}
	fputc('\n', out);
	if (fclose(out) == 0 && write(STDERR_FILENO, text, size) < 0)
		errno = 0; /* nobody wants to know */
}

int mw_watchdog_main(int argc, char **argv)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	char trouble[300] = "";
	int fd, status;
	pid_t guard;

	if (argc <= ARGUMENT_PROCESSES)
		return 2;
	setitimer(ITIMER_REAL, &never, NULL);
	ignore_signals();
	if (strcmp(argv[ARGUMENT_SIGNAL], "-1") == 0)
		prctl(PR_SET_NAME, "memwatch-guard");
	for (int i = ARGUMENT_PROCESSES; i < argc; i++) {
		char left[160];
		struct mw_error *err = clean_patiently(argv[i], left, sizeof(left));

		if (err && !*trouble)
			(void)snprintf(trouble, sizeof(trouble), "%s", mw_error_text(err));
		else if (!err && *left && !*trouble)
			(void)snprintf(trouble, sizeof(trouble), "%s", left);
		mw_error_destroy(err);
	}
	emit(argv, put_living_first(argc - ARGUMENT_PROCESSES, argv + ARGUMENT_PROCESSES), argv + ARGUMENT_PROCESSES,
	     trouble);
	fd = atoi(argv[ARGUMENT_FD]);
	guard = (pid_t)atoi(argv[ARGUMENT_GUARD]);
	if (fd > STDERR_FILENO && guard > 0) {
		if (write(fd, "d", 1) == 1)
			waitpid(guard, &status, 0);
		close(fd);
	}
	return 1;
}

/* --- the watchdog ------------------------------------------------------------------------------------------------- */

#define THREAD_STACK  65536
#define LOOK_MS       20    /* at memwatch's own memory, where it is limited */
#define STOPPED_MS    100   /* twice that memwatch may be stopped by a signal while it traces */
#define EXEC_PATIENCE 10000 /* ms that an exec may take */
#define EXEC_ATTEMPTS 20
#define EXEC_REST_NS  100000000
#define FAILED        (-2) /* what is asked for: help without a crash */
#define URGENT        (-15)
#define PROCESS_TEXT  40
#define TEXT          1024 /* of a file of /proc: TracerPid is among the first */

static struct {
	struct mw_watchdog_plan plan;
	char **argv; /* of the memwatch that is executed, and the texts it points to: in memory that the guard shares */
	char (*processes)[PROCESS_TEXT];
	size_t shared; /* bytes of that */
	char fd_text[16], guard_text[16], signal_text[16], message[1200];
	char told[600]; /* of a crash when nothing is attached any more */
	int exe, pipe, wake, statm;
	pid_t guard;
	pthread_t thread;
	bool begun, threaded, forked;
	atomic_bool quit;
	atomic_int wanted; /* 0, a signal's number, or FAILED */
} watchdog = {.exe = -1, .pipe = -1, .wake = -1, .statm = -1};

/* Async-signal-safe. */
static void put_number(char *out, int number)
{
	char digits[12];
	size_t count = 0;

	if (number < 0)
		*out++ = '-';
	number = number < 0 ? -number : number;
	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (count)
		*out++ = digits[--count];
	*out = '\0';
}

/* Without letting go of what is watched. Async-signal-safe. */
static void leave(void)
{
	if (watchdog.plan.leave)
		watchdog.plan.leave();
	mw_process_setup_unlink_partials();
}

/* memwatch anew: nothing of what it was stays but the process's number and its open standard files. */
static void execute(void)
{
	syscall(SYS_execveat, watchdog.exe, "", watchdog.argv, environ, AT_EMPTY_PATH);
	execve("/proc/self/exe", watchdog.argv, environ);
}

/* --- the guard: async-signal-safe calls only ---------------------------------------------------------------------- */

/* Not to be taken for want of memory: best effort, as it takes a privilege. */
static void write_oom_score(const char *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, score, strlen(score)) < 0)
		errno = 0;
	close(fd);
}

/* Nothing stays open but standard error and these, which stand behind it then. */
static void keep_only(int fds[], int count)
{
	const int first = STDERR_FILENO + 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	for (int i = 0; i < count; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + count);
	for (int i = 0; i < count; i++) {
		close(first + i);
		fds[i] = fds[i] < 0 ? -1 : dup3(fds[i], first + i, O_CLOEXEC);
	}
	closefrom(first + count);
}

/* The beginning of a file "/proc/NUMBER/NAME", NUMBER up to whatever stands behind its digits; "" where there is none.
 */
static void read_proc(const char *number, const char *name, char text[TEXT])
{
	static const char root[] = "/proc/";
	char path[PROCESS_TEXT + 16];
	size_t digits = strspn(number, "0123456789"), length = strlen(name);
	ssize_t got = 0;
	int fd = -1;

	if (sizeof(root) + digits + length <= sizeof(path)) {
		memcpy(path, root, sizeof(root));
		memcpy(path + sizeof(root) - 1, number, digits);
		memcpy(path + sizeof(root) - 1 + digits, name, length + 1);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0) {
		got = read(fd, text, TEXT - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
}

static bool is_traced(const char *process)
{
	static const char field[] = "\nTracerPid:\t";
	char text[TEXT];
	const char *at;

	read_proc(process, "/status", text);
	at = strstr(text, field);
	return at && at[sizeof(field) - 1] != '0';
}

/* A memwatch that is stopped keeps the processes from running that it traces: then it is to go on. */
static void keep_going(bool *was_stopped)
{
	char number[12], text[TEXT];
	const char *name_end;
	bool stopped, traces = false;

	put_number(number, getppid());
	read_proc(number, "/stat", text);
	name_end = strrchr(text, ')');
	stopped = name_end && strncmp(name_end, ") T", 3) == 0;
	for (char **at = watchdog.argv + ARGUMENT_PROCESSES; stopped && *at && !traces; at++)
		traces = is_traced(*at);
	if (traces && *was_stopped)
		kill(getppid(), SIGCONT);
	*was_stopped = stopped;
}

/* Sleep until memwatch's process is no more; does not return where it has said that all is done. */
static void await_end(int news, int process)
{
	struct pollfd word = {.fd = news, .events = POLLIN}, end = {.fd = process, .events = POLLIN};
	bool was_stopped = false;
	char byte;
	ssize_t got;

	while (news >= 0 && poll(&word, 1, STOPPED_MS) <= 0)
		keep_going(&was_stopped);
	do
		got = read(news, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(0);
	while (process >= 0 && poll(&end, 1, -1) < 0 && errno == EINTR)
		;
}

static _Noreturn void guard_main(int news, int process)
{
	const struct timespec rest = {.tv_nsec = EXEC_REST_NS};
	int fds[] = {news, process, watchdog.exe};

	prctl(PR_SET_NAME, "memwatch-guard");
	setsid();
	ignore_signals();
	write_oom_score("-1000");
	/* On a busy machine a process may not wait for long for what is to be taken out of it. Best effort as well. */
	(void)setpriority(PRIO_PROCESS, 0, URGENT);
	keep_only(fds, 3);
	if (chdir("/") != 0)
		errno = 0; /* it keeps a directory busy, then */
	watchdog.exe = fds[2];
	await_end(fds[0], fds[1]);
	leave();
	put_number(watchdog.signal_text, -1);
	for (unsigned i = 0; i < EXEC_ATTEMPTS; i++) {
		execute();
		nanosleep(&rest, NULL);
	}
	_exit(1);
}

/* Without one, memwatch is as good as it was. */
static void start_guard(void)
{
	int ends[2], process;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	watchdog.guard = fork();
	if (watchdog.guard == 0)
		guard_main(ends[0], process);
	close(ends[0]);
	if (process >= 0)
		close(process);
	if (watchdog.guard > 0) {
		watchdog.pipe = ends[1];
		return;
	}
	watchdog.guard = 0;
	close(ends[1]);
}

static void dismiss_guard(void)
{
	int status;

	if (watchdog.pipe < 0)
		return;
	/* It may have been killed. */
	while (write(watchdog.pipe, "d", 1) < 0 && errno == EINTR)
		;
	close(watchdog.pipe);
	watchdog.pipe = -1;
	while (waitpid(watchdog.guard, &status, 0) < 0 && errno == EINTR)
		;
	watchdog.guard = 0;
}

/* --- the thread that stands by ------------------------------------------------------------------------------------ */

/* Async-signal-safe; in a thread that traces nobody, or what it traces would stay its own. */
static _Noreturn void become_another(int number)
{
	leave();
	put_number(watchdog.signal_text, number == FAILED ? 0 : number);
	if (watchdog.pipe >= 0)
		fcntl(watchdog.pipe, F_SETFD, 0);
	execute();
	_exit(1);
}

/* Pages of memwatch's own, without those of files and of memory that it shares with processes. */
static bool has_too_much(void)
{
	char text[128];
	unsigned long long all, resident, shared;
	ssize_t got = pread(watchdog.statm, text, sizeof(text) - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	if (sscanf(text, "%llu %llu %llu", &all, &resident, &shared) != 3 || resident < shared)
		return false;
	return (resident - shared) * (unsigned long long)sysconf(_SC_PAGESIZE) > watchdog.plan.max_memory;
}

static void *stand_by(void *unused)
{
	struct pollfd news = {.fd = watchdog.wake, .events = POLLIN};
	bool looks = watchdog.statm >= 0;

	while (!atomic_load(&watchdog.quit)) {
		int wanted;

		(void)poll(&news, 1, looks ? LOOK_MS : -1);
		wanted = atomic_load(&watchdog.wanted);
		if (wanted)
			become_another(wanted);
		if (looks && has_too_much()) {
			watchdog.plan.reached();
			looks = false;
		}
	}
	return unused;
}

static void wake(void)
{
	const uint64_t one = 1;

	if (write(watchdog.wake, &one, sizeof(one)) < 0)
		_exit(1);
}

/* Signals are for memwatch's first thread. Memory for it is had now: there may be none when it is needed. */
static struct mw_error *start_thread(void)
{
	pthread_attr_t attributes;
	int errnum;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	errnum = mw_thread_create(&watchdog.thread, &attributes, stand_by, NULL);
	pthread_attr_destroy(&attributes);
	if (errnum)
		return mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a thread");
	watchdog.threaded = true;
	return NULL;
}

/* It waits while the other one takes everything away. */
static _Noreturn void await_exec(void)
{
	const struct timespec step = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < EXEC_PATIENCE; i++)
		nanosleep(&step, NULL);
	_exit(1);
}

static void on_crash(int number)
{
	int none = 0;

	if (watchdog.forked)
		_exit(1);
	if (!watchdog.threaded) {
		leave();
		if (write(STDERR_FILENO, watchdog.told, strlen(watchdog.told)) < 0)
			_exit(1);
		_exit(1);
	}
	if (pthread_equal(pthread_self(), watchdog.thread))
		become_another(number);
	if (atomic_compare_exchange_strong(&watchdog.wanted, &none, number))
		wake();
	await_exec();
}

/* --- begin and end ------------------------------------------------------------------------------------------------ */

static void put_process(size_t i, pid_t pid)
{
	struct mw_program program;

	mw_program_read(pid, &program);
	snprintf(watchdog.processes[i], PROCESS_TEXT, "%d:%" PRIu64 "%s", (int)pid, program.started,
		 mw_seccomp_shared(pid) ? ":shared" : "");
	/* The guard reads it when memwatch has been killed, at whatever point. */
	__atomic_store_n(&watchdog.argv[ARGUMENT_PROCESSES + i], watchdog.processes[i], __ATOMIC_RELEASE);
}

static struct mw_error *prepare_arguments(void)
{
	size_t count = watchdog.plan.count, room = count + watchdog.plan.more;
	size_t words = (ARGUMENT_PROCESSES + room + 1) * sizeof(char *);
	void *memory;

	watchdog.shared = words + room * PROCESS_TEXT;
	memory = mmap(NULL, watchdog.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return mw_error_nomem();
	watchdog.argv = memory;
	watchdog.processes = (void *)((char *)memory + words);
	watchdog.argv[ARGUMENT_SELF] = (char *)"memwatch";
	watchdog.argv[ARGUMENT_IS] = (char *)MW_WATCHDOG_VERB;
	watchdog.argv[ARGUMENT_FD] = watchdog.fd_text;
	watchdog.argv[ARGUMENT_GUARD] = watchdog.guard_text;
	watchdog.argv[ARGUMENT_SIGNAL] = watchdog.signal_text;
	watchdog.argv[ARGUMENT_MESSAGE] = watchdog.message;
	watchdog.argv[ARGUMENT_OUTPUT] = (char *)(watchdog.plan.output ? watchdog.plan.output : "");
	for (size_t i = 0; i < count; i++)
		put_process(i, watchdog.plan.pids[i]);
	watchdog.plan.pids = NULL; /* the caller's */
	put_number(watchdog.fd_text, -1);
	put_number(watchdog.guard_text, 0);
	return NULL;
}

static struct mw_error *prepare_files(void)
{
	watchdog.exe = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	watchdog.wake = eventfd(0, EFD_CLOEXEC);
	if (watchdog.wake < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot make an eventfd");
	if (!watchdog.plan.max_memory)
		return NULL;
	watchdog.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (watchdog.statm < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot read how much memory memwatch has");
	return NULL;
}

static void close_all(void)
{
	int *const files[] = {&watchdog.exe, &watchdog.wake, &watchdog.statm};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (*files[i] >= 0)
			close(*files[i]);
		*files[i] = -1;
	}
	if (watchdog.argv)
		munmap(watchdog.argv, watchdog.shared);
	watchdog.argv = NULL;
	watchdog.processes = NULL;
	watchdog.begun = false;
}

struct mw_error *mw_watchdog_begin(const struct mw_watchdog_plan *plan)
{
	struct mw_error *err;

	watchdog.plan = *plan;
	watchdog.begun = true;
	err = prepare_arguments();
	if (!err)
		err = prepare_files();
	if (!err) {
		start_guard();
		put_number(watchdog.fd_text, watchdog.pipe);
		put_number(watchdog.guard_text, watchdog.guard);
		/* Of all that has memory here memwatch is what may be taken, not the process that it watches. */
		write_oom_score("1000");
		err = start_thread();
	}
	if (err) {
		dismiss_guard();
		close_all();
		return err;
	}
	mw_crash_catch(on_crash);
	return NULL;
}

struct mw_error *mw_watchdog_add(pid_t pid)
{
	if (!watchdog.plan.more)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "there are too many processes to stand by for");
	put_process(watchdog.plan.count, pid);
	watchdog.plan.more--;
	watchdog.plan.count++;
	return NULL;
}

pid_t mw_watchdog_guard(void)
{
	return watchdog.guard;
}

void mw_watchdog_forget_last(void)
{
	char left[160];
	struct mw_error *err = clean_process(watchdog.processes[watchdog.plan.count - 1], left, sizeof(left));
	bool clean = !err || mw_error_kind(err) == MW_ERROR_GONE;

	mw_error_destroy(err);
	if (!clean)
		return;
	watchdog.plan.count--;
	watchdog.plan.more++;
	__atomic_store_n(&watchdog.argv[ARGUMENT_PROCESSES + watchdog.plan.count], NULL, __ATOMIC_RELEASE);
}

bool mw_watchdog_look(bool *denied)
{
	char left[160];
	bool clean = true;

	*denied = false;
	for (size_t i = 0; watchdog.begun && i < watchdog.plan.count; i++) {
		struct mw_error *failed = clean_process(watchdog.processes[i], left, sizeof(left));

		/* A memwatch that is executed anew would be denied it as well. */
		if (failed && mw_error_kind(failed) == MW_ERROR_DENIED)
			*denied = true;
		else if (failed && mw_error_kind(failed) != MW_ERROR_GONE &&
			 mw_error_kind(failed) != MW_ERROR_UNSUPPORTED)
			clean = false;
		mw_error_destroy(failed);
	}
	return clean;
}

/* Execute memwatch anew, to take out what is left and to tell `err`: does not return. Does nothing outside of begin and
 * end. */
static void execute_anew(struct mw_error *err)
{
	int none = 0;

	if (!watchdog.begun || !watchdog.threaded)
		return;
	snprintf(watchdog.message, sizeof(watchdog.message), "%s%s%s", mw_error_text(err),
		 mw_error_hint_text(err) ? ". " : "", mw_error_hint_text(err) ? mw_error_hint_text(err) : "");
	if (atomic_compare_exchange_strong(&watchdog.wanted, &none, FAILED))
		wake();
	await_exec();
}

void mw_watchdog_forked(void)
{
	watchdog.forked = true;
	watchdog.begun = watchdog.threaded = false;
	/* Its end tells the guard that memwatch has ended. */
	if (watchdog.pipe >= 0)
		close(watchdog.pipe);
	watchdog.pipe = -1;
}

void mw_watchdog_end(struct mw_error *err)
{
	bool denied;

	if (err && !mw_watchdog_look(&denied))
		execute_anew(err);
	if (!watchdog.begun)
		return;
	snprintf(watchdog.told, sizeof(watchdog.told),
		 "memwatch: memwatch has crashed while reporting: it had detached from what it watched%s%.400s\n",
		 watchdog.plan.output ? ". What was recorded is in " : "",
		 watchdog.plan.output ? watchdog.plan.output : "");
	atomic_store(&watchdog.quit, true);
	wake();
	pthread_join(watchdog.thread, NULL);
	watchdog.threaded = false;
	dismiss_guard();
	close_all();
}
