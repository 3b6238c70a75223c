/* SPDX-License-Identifier: MIT */
/*
 * survivor MODE BOARD [LIBRARY]: works until it is told to end, whatever becomes of a memwatch that watches it, looks
 * at all that it gets, and counts its rounds in the file BOARD (8 bytes), so that one can see from outside that it goes
 * on.
 *
 *   idle      sleeps, allocates a little from time to time
 *   busy      four threads that allocate and check what they have
 *   brief     detached threads that come, allocate and go
 *   spawn     posix_spawn() and system(), with statuses that must be right
 *   fork      children that allocate, check, and end with a status
 *   vfork     children that allocate in its memory and end, or run another program
 *   masked    threads that allocate with all signals blocked, and look at their masks
 *   sections  threads that block all signals for a moment, from time to time, and allocate in it
 *   masking   threads that hardly do anything else but setting their masks to all signals and to none
 *   creating  threads with all signals blocked that make others, which get their mask, and wait for those
 *   trap      it handles SIGTRAP: raised ones, int3s and int 3s, each of which must arrive once
 *   handler   allocates in a handler for whose time the kernel blocks all signals
 *   changing  it changes its action for SIGTRAP all the time
 *   load      loads, uses and unloads LIBRARY
 *   seccomp_filtered     a seccomp filter kills it for all that services don't do
 *   made      allocates from code that is in no file
 */
#include "filters.h"
#include "target.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE         1800 /* seconds */
#define BLOCKS       40
#define CHILD        17 /* status */
#define BRIEF        6  /* threads at once */
#define THREADS      4
#define MOST         40 /* threads of `masking` */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static _Atomic uint64_t *rounds;
static _Atomic bool over;
static _Atomic int alive;
static _Atomic uint64_t arrived;
static pthread_mutex_t forever = PTHREAD_MUTEX_INITIALIZER;
static const char *library_path;
static void *(*made_malloc)(size_t size);

static void *volatile last_block;

/* The first instruction behind the call writes memory: it can't be emulated. */
static KEEP void *survivor_alloc(size_t size)
{
	void *block;

	if (made_malloc)
		return made_malloc(size);
	last_block = block = malloc(size);
	return block;
}

/* Allocates, writes, moves, reads, frees. */
static KEEP void work_once(unsigned seed)
{
	unsigned char *blocks[BLOCKS];
	size_t sizes[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		unsigned char mark = (unsigned char)(seed + i * 7);

		sizes[i] = 16 + (seed * 31 + i * 53) % 700;
		blocks[i] = i % 4 == 1 ? calloc(1, sizes[i]) : survivor_alloc(sizes[i]);
		if (!blocks[i])
			target_fail("there is no memory");
		if (i % 4 == 1 && (blocks[i][0] || blocks[i][sizes[i] - 1]))
			target_fail("calloc's block is not empty");
		memset(blocks[i], mark, sizes[i]);
		if (i % 8 == 0) {
			blocks[i] = realloc(blocks[i], sizes[i] + 300);
			if (!blocks[i])
				target_fail("there is no memory");
		}
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		for (size_t j = 0; j < sizes[i]; j++)
			if (blocks[i][j] != (unsigned char)(seed + i * 7))
				target_fail("a block holds what was not written to it");
		free(blocks[i]);
	}
	atomic_fetch_add(rounds, 1);
}

static void *keep_working(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!atomic_load(&over))
		work_once(seed += 101);
	return NULL;
}

static bool may_trap;
static size_t trapped;

static void idle(void)
{
	work_once(1);
	usleep(20000);
}

static void *brief_work(void *argument)
{
	work_once((unsigned)(uintptr_t)argument);
	atomic_fetch_sub(&alive, 1);
	return NULL;
}

static void brief(void)
{
	static uintptr_t number;
	pthread_t thread;
	int error;

	if (atomic_load(&alive) >= BRIEF) {
		usleep(200);
		return;
	}
	atomic_fetch_add(&alive, 1);
	error = pthread_create(&thread, NULL, brief_work, (void *)++number);
	if (error == EAGAIN) {
		/* Ended ones still count for a moment. */
		atomic_fetch_sub(&alive, 1);
		usleep(1000);
		return;
	}
	if (error)
		target_fail("no thread could be made");
	pthread_detach(thread);
}

static void expect(pid_t child, int status)
{
	int got = -1;

	while (waitpid(child, &got, 0) != child)
		if (errno != EINTR)
			target_fail("a child is not to be found");
	if (!WIFEXITED(got) || WEXITSTATUS(got) != status)
		target_fail(WIFSIGNALED(got) ? "a child was killed" : "a child ended with another status");
}

/* Where the test says so, SIGTRAP may end a child before it runs its program: that is counted. */
static bool is_trapped(int status)
{
	if (!may_trap || !WIFSIGNALED(status) || WTERMSIG(status) != SIGTRAP)
		return false;
	trapped++;
	return true;
}

static void spawn(void)
{
	char *const arguments[] = {(char[]){"true"}, NULL}, *const nothing[] = {NULL};
	pid_t child;
	int status;

	if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, nothing) != 0)
		target_fail("posix_spawn");
	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			target_fail("a child is not to be found");
	if (status != 0 && !is_trapped(status))
		target_fail(WIFSIGNALED(status) ? "a child was killed" : "a child ended with another status");
	status = system("exit 3");
	if ((!WIFEXITED(status) || WEXITSTATUS(status) != 3) && !is_trapped(status))
		target_fail("system() has another status");
	work_once(3);
}

static void fork_some(void)
{
	pid_t child = fork();

	if (child == 0) {
		for (unsigned i = 0; i < 5; i++)
			work_once(i);
		_exit(CHILD);
	}
	if (child < 0)
		target_fail("fork");
	work_once(9);
	expect(child, CHILD);
}

static KEEP pid_t vfork_one(bool run)
{
	char *const arguments[] = {(char[]){"true"}, NULL}, *const nothing[] = {NULL};
	pid_t child = vfork();

	if (child == 0) {
		free(malloc(77));
		if (run)
			execve("/bin/true", arguments, nothing);
		_exit(CHILD);
	}
	return child;
}

static void vfork_some(void)
{
	expect(vfork_one(false), CHILD);
	expect(vfork_one(true), 0);
	work_once(11);
}

static void *masked_work(void *argument)
{
	sigset_t all, now;

	sigfillset(&all);
	while (!atomic_load(&over)) {
		if (pthread_sigmask(SIG_SETMASK, &all, NULL) != 0)
			target_fail("pthread_sigmask");
		work_once((unsigned)(uintptr_t)argument);
		if (pthread_sigmask(SIG_SETMASK, NULL, &now) != 0)
			target_fail("pthread_sigmask");
		/* Between a memwatch's death and its being cleaned, SIGTRAP may be missing. */
		for (int i = 1; i < 32; i++)
			if (i != SIGTRAP && sigismember(&now, i) != (i != SIGKILL && i != SIGSTOP))
				target_fail("a signal mask was changed");
	}
	return NULL;
}

static void *sections_work(void *argument)
{
	sigset_t all, none, now;

	sigfillset(&all);
	sigemptyset(&none);
	while (!atomic_load(&over)) {
		for (int i = 0; i < 4; i++)
			free(survivor_alloc(40));
		if (pthread_sigmask(SIG_SETMASK, &all, NULL) != 0)
			target_fail("pthread_sigmask");
		free(survivor_alloc(50));
		if (pthread_sigmask(SIG_SETMASK, &none, &now) != 0)
			target_fail("pthread_sigmask");
		if (!sigismember(&now, SIGINT))
			target_fail("a signal mask was changed");
		atomic_fetch_add(rounds, 1);
	}
	return argument;
}

static void *masking_work(void *argument)
{
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	while (!atomic_load(&over)) {
		for (unsigned i = 0; i < 100; i++)
			pthread_sigmask(SIG_SETMASK, i % 2 ? &none : &all, NULL);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
		free(survivor_alloc(60));
		atomic_fetch_add(rounds, 1);
	}
	return argument;
}

static void *created_work(void *argument)
{
	free(survivor_alloc(70));
	return argument;
}

static void *creating_work(void *argument)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&over)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, created_work, argument) != 0)
			target_fail("no thread could be made");
		pthread_join(thread, NULL);
		free(survivor_alloc(80));
		atomic_fetch_add(rounds, 1);
	}
	return argument;
}

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)context;
	if ((info->si_code == SI_TKILL && info->si_pid == getpid()) || info->si_code == SI_KERNEL)
		atomic_fetch_add(&arrived, 1);
	free(malloc(99));
}

static void handle(void (*handler)(int, siginfo_t *, void *), struct sigaction *before)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO;
	if (sigaction(SIGTRAP, &action, before) != 0)
		target_fail("sigaction");
}

static void expect_arrived(uint64_t count)
{
	if (atomic_exchange(&arrived, 0) != count)
		target_fail("SIGTRAPs were lost, doubled or changed");
}

static void trap(void)
{
	raise(SIGTRAP);
	expect_arrived(1);
	work_once(13);
	__asm__ volatile("int3");
	expect_arrived(1);
	__asm__ volatile(".byte 0xcd, 0x03");
	expect_arrived(1);
	work_once(14);
}

static void on_user(int signal_number)
{
	(void)signal_number;
	work_once(21);
	atomic_fetch_add(&arrived, 1);
}

static void handler(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_user;
	sigfillset(&action.sa_mask);
	if (sigaction(SIGUSR1, &action, NULL) != 0)
		target_fail("sigaction");
	raise(SIGUSR1);
	expect_arrived(1);
}

static void on_other(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)info, (void)context;
	atomic_fetch_add(&arrived, 1000);
}

static void changing(void)
{
	struct sigaction before;

	handle(on_trap, &before);
	if (before.sa_sigaction != on_other && before.sa_handler != SIG_DFL)
		target_fail("another action for SIGTRAP than was set");
	raise(SIGTRAP);
	expect_arrived(1);
	work_once(15);
	handle(on_other, &before);
	if (before.sa_sigaction != on_trap)
		target_fail("another action for SIGTRAP than was set");
	raise(SIGTRAP);
	expect_arrived(1000);
}

static void load(void)
{
	union {
		void *data;
		void (*code)(void);
	} pair;
	void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		target_fail(dlerror());
	pair.data = dlsym(library, "plugin_pair");
	if (!pair.data)
		target_fail(dlerror());
	for (unsigned i = 0; i < 8; i++)
		pair.code();
	if (dlclose(library) != 0)
		target_fail("dlclose");
	work_once(19);
}

static void *seccomp_filtered_work(void *argument)
{
	/* An arena of its own, large enough for all that comes. */
	free(malloc(1000000));
	filter_service(SECCOMP_RET_KILL_PROCESS);
	atomic_fetch_add(&alive, 1);
	keep_working(argument);
	/* It may not end by itself: that takes system calls. */
	atomic_fetch_sub(&alive, 1);
	pthread_mutex_lock(&forever);
	return NULL;
}

/* Code in no file that calls malloc() and is returned to. */
static void make_code(void)
{
	unsigned char code[] = {
		0x55,                                  /* push %rbp */
		0x48, 0x89, 0xe5,                      /* mov %rsp,%rbp */
		0x48, 0xb8, 0,    0, 0, 0, 0, 0, 0, 0, /* movabs $malloc,%rax */
		0xff, 0xd0,                            /* call *%rax */
		0x5d,                                  /* pop %rbp */
		0xc3,                                  /* ret */
	};
	void *(*const function)(size_t size) = malloc;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		target_fail("mmap");
	memcpy(code + 6, &function, sizeof(function));
	memcpy(page, code, sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		target_fail("mprotect");
	memcpy(&made_malloc, &page, sizeof(page));
}

/* What the first thread does all the time, or what several others do. */
static const struct mode {
	const char *name;
	void (*step)(void);
	void *(*thread)(void *argument);
} modes[] = {
	{"idle", idle, NULL},
	{"busy", NULL, keep_working},
	{"brief", brief, NULL},
	{"spawn", spawn, NULL},
	{"fork", fork_some, NULL},
	{"vfork", vfork_some, NULL},
	{"masked", NULL, masked_work},
	{"trap", trap, NULL},
	{"handler", handler, NULL},
	{"changing", changing, NULL},
	{"load", load, NULL},
	{"seccomp", NULL, seccomp_filtered_work},
	{"made", NULL, keep_working},
	{"sections", NULL, sections_work},
	{"masking", NULL, masking_work},
	{"creating", NULL, creating_work},
};

static void *step_on(void *argument)
{
	const struct mode *mode = argument;

	while (!atomic_load(&over))
		mode->step();
	return NULL;
}

static void prepare(const char *mode)
{
	if (strcmp(mode, "trap") == 0)
		handle(on_trap, NULL);
	if (strcmp(mode, "made") == 0)
		make_code();
	if (strcmp(mode, "seccomp") == 0) {
		/* No system call for memory later. */
		mallopt(M_MMAP_MAX, 0);
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
	}
}

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < COUNT(modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	target_fail("there is no such mode");
}

int main(int argc, char **argv)
{
	const struct mode *mode = find_mode(argc > 2 ? argv[1] : "");
	size_t count = strcmp(mode->name, "masking") == 0 ? MOST : mode->thread ? THREADS : 1;
	bool seccomp_filtered = strcmp(mode->name, "seccomp") == 0;
	pthread_t threads[MOST];
	int board = open(argv[2], O_RDWR);

	may_trap = getenv("SURVIVOR_MAY_TRAP");
	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, board, 0);
	if (rounds == MAP_FAILED)
		target_fail("the board can't be mapped");
	library_path = argc > 3 ? argv[3] : NULL;
	prepare(mode->name);
	pthread_mutex_lock(&forever);
	for (size_t i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, mode->thread ? mode->thread : step_on,
				   mode->thread ? (void *)(i * 1000) : (void *)(uintptr_t)mode) != 0)
			target_fail("no thread could be made");
	while (seccomp_filtered && atomic_load(&alive) < THREADS)
		usleep(1000);
	target_ready_for(LIFE);
	atomic_store(&over, true);
	for (size_t i = 0; i < count && !seccomp_filtered; i++)
		pthread_join(threads[i], NULL);
	while ((seccomp_filtered || strcmp(mode->name, "brief") == 0) && atomic_load(&alive) > 0)
		usleep(1000);
	target_say("trapped", trapped);
	target_done();
	_exit(0);
}
