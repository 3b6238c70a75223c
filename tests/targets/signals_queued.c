/* SPDX-License-Identifier: MIT */
/*
 * signals_queued BOARD: sends itself signals that come with a number each, and counts what it sent and what arrived:
 * none may be lost, none may come twice.
 *
 *      from                                                    to
 *      each of its threads, another process of its own         one thread of it; the process; a wait of sigwaitinfo();
 *                                                              a signalfd
 *
 * Real-time signals are queued, so each that could be sent arrives. One of the old kind is sent when the one before has
 * arrived. The threads allocate meanwhile. The file BOARD has struct board, so that one can see from outside that it
 * goes on.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE     1800 /* seconds */
#define WORKERS  6
#define UNDERWAY 400   /* signals that may be */
#define PATIENCE 20000 /* ms for the last ones */

#define TO_THREAD  (SIGRTMIN + 1)
#define TO_PROCESS (SIGRTMIN + 2)
#define FROM_OTHER (SIGRTMIN + 3)
#define TO_WAIT    (SIGRTMIN + 4)
#define TO_FD      (SIGRTMIN + 5)
#define OLD        SIGUSR2

struct board {
	_Atomic uint64_t rounds;
	_Atomic uint64_t sent, sent_sum, arrived, arrived_sum;
	_Atomic uint64_t old_sent, old_arrived;
	_Atomic bool over;
};

static struct board *board;
static pthread_t workers[WORKERS];
static _Atomic bool ready;
static _Atomic unsigned idle;

static void count_arrived(int value)
{
	atomic_fetch_add(&board->arrived_sum, (uint64_t)value);
	atomic_fetch_add(&board->arrived, 1);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int before = errno;

	(void)number, (void)context;
	if (info->si_code != SI_QUEUE)
		target_fail("a signal came without its number");
	count_arrived(info->si_value.sival_int);
	errno = before;
}

static void on_old(int number)
{
	(void)number;
	atomic_fetch_add(&board->old_arrived, 1);
}

static bool full(void)
{
	return atomic_load(&board->sent) - atomic_load(&board->arrived) >= UNDERWAY;
}

/* Counted before it can arrive, and no more where it can't be sent. */
static void send_one(const pthread_t *thread, pid_t pid, int number, int value)
{
	const union sigval with = {.sival_int = value};
	int failed;

	atomic_fetch_add(&board->sent, 1);
	atomic_fetch_add(&board->sent_sum, (uint64_t)value);
	failed = thread ? pthread_sigqueue(*thread, number, with) : sigqueue(pid, number, with);
	if (!failed)
		return;
	atomic_fetch_sub(&board->sent_sum, (uint64_t)value);
	atomic_fetch_sub(&board->sent, 1);
}

static void send_old(void)
{
	uint64_t sent = atomic_load(&board->old_sent);

	if (atomic_load(&board->old_arrived) != sent)
		return;
	atomic_store(&board->old_sent, sent + 1);
	pthread_kill(workers[sent % WORKERS], OLD);
}

static KEEP void work_once(unsigned seed)
{
	for (unsigned i = 0; i < 8; i++) {
		unsigned char mark = (unsigned char)(seed + i);
		size_t size = 32 + seed % 500;
		unsigned char *block = malloc(size);

		if (!block)
			target_fail("there is no memory");
		memset(block, mark, size);
		if (block[0] != mark || block[size - 1] != mark)
			target_fail("a block holds what was not written to it");
		free(block);
	}
}

static void *work(void *argument)
{
	unsigned self = (unsigned)(uintptr_t)argument, seed = self * 7919;

	while (!atomic_load(&ready))
		usleep(100);
	while (!atomic_load(&board->over)) {
		work_once(++seed);
		if (full()) {
			usleep(200);
			continue;
		}
		send_one(&workers[(self + seed) % WORKERS], 0, TO_THREAD, (int)(seed % 1000 + 1));
		send_one(NULL, getpid(), seed % 3 ? TO_PROCESS : seed % 2 ? TO_WAIT : TO_FD, (int)(seed % 1000 + 1));
		if (self == 0)
			send_old();
		atomic_fetch_add(&board->rounds, 1);
		if (seed % 4 == 0)
			usleep(50);
	}
	/* What is on its way to a thread goes with it. */
	atomic_fetch_add(&idle, 1);
	for (;;)
		pause();
	return NULL;
}

static void *await(void *unused)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, TO_WAIT);
	for (;;) {
		siginfo_t info;

		if (sigwaitinfo(&set, &info) == TO_WAIT)
			count_arrived(info.si_value.sival_int);
		else if (errno != EINTR)
			target_fail("sigwaitinfo() failed");
	}
	return unused;
}

static void *read_fd(void *argument)
{
	int fd = (int)(uintptr_t)argument;

	for (;;) {
		struct signalfd_siginfo infos[16];
		ssize_t got = read(fd, infos, sizeof(infos));

		if (got < 0 && errno != EINTR)
			target_fail("the signalfd can't be read");
		for (ssize_t i = 0; i < got / (ssize_t)sizeof(*infos); i++)
			count_arrived(infos[i].ssi_int);
	}
	return NULL;
}

/* Another process. */
static _Noreturn void send_from_outside(pid_t to)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 1; !atomic_load(&board->over); i++) {
		if (!full())
			send_one(NULL, to, FROM_OTHER, (int)(i % 1000 + 1));
		if (i % 4 == 0)
			usleep(100);
	}
	_exit(0);
}

static void set_actions(void)
{
	const int numbers[] = {TO_THREAD, TO_PROCESS, FROM_OTHER};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	action = (struct sigaction){.sa_handler = on_old, .sa_flags = SA_RESTART};
	sigaction(OLD, &action, NULL);
}

static void start_threads(void)
{
	pthread_t thread;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, TO_FD);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	sigaddset(&set, TO_WAIT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (fd < 0 || pthread_create(&thread, NULL, await, NULL) ||
	    pthread_create(&thread, NULL, read_fd, (void *)(uintptr_t)fd))
		target_fail("no thread could be made");
	for (uintptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, work, (void *)i))
			target_fail("no thread could be made");
	atomic_store(&ready, true);
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, status = -1;
	pid_t other;

	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		target_fail("there is no board");
	set_actions();
	other = fork();
	if (other == 0)
		send_from_outside(getppid());
	start_threads();
	target_ready_for(LIFE);
	atomic_store(&board->over, true);
	while (waitpid(other, &status, 0) < 0 && errno == EINTR)
		;
	for (unsigned i = 0; i < PATIENCE; i++) {
		if (atomic_load(&idle) == WORKERS && atomic_load(&board->sent) == atomic_load(&board->arrived) &&
		    atomic_load(&board->old_sent) == atomic_load(&board->old_arrived))
			break;
		usleep(1000);
	}
	target_say("sent", atomic_load(&board->sent));
	target_say("sent_sum", atomic_load(&board->sent_sum));
	target_say("arrived", atomic_load(&board->arrived));
	target_say("arrived_sum", atomic_load(&board->arrived_sum));
	target_say("old_sent", atomic_load(&board->old_sent));
	target_say("old_arrived", atomic_load(&board->old_arrived));
	target_done();
	return 0;
}
