// SPDX-License-Identifier: MIT
/*
 * copied MODE [MIB]: a program that a copy is made of. Threads count up words on many pages, one after the other, so that
 * at no moment any is more than one ahead of the next; others map and unmap, and wait for children.
 *   busy     all of that
 *   idle     none of that
 *   waits    busy, with a child that ends now and then: plain wait() and SIGCHLD tell of that one alone
 *   vforks   threads that make children by vfork all the time
 *   nproc    busy, under RLIMIT_NPROC that leaves no room (not for root)
 *   execs    executes /bin/sleep at the next byte
 *   ends     ends at the next byte
 *   namespace  has made a pid namespace for its children
 *   provides holds a userfaultfd
 * At the next byte it says where memory of each kind is, whose pages begin with their own addresses, and "working"; at the one after that,
 * what was wrong, how many children ended, and how many SIGCHLD came.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE     4096u
#define COUNTERS 64u
#define SIZE     (16u * PAGE)

static _Atomic uint64_t *counters; /* one on each of COUNTERS pages */
static atomic_bool over;
static atomic_ulong told, wrong, reaped;

static char *map(int flags, int fd)
{
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		target_fail("nothing can be mapped");
	return at;
}

/* Every page but each fourth begins with its own address. */
static void fill(const char *name, char *at)
{
	for (size_t i = 0; i < SIZE / PAGE; i++) {
		uint64_t word = (uintptr_t)at + i * PAGE;

		if (i % 4 != 3)
			memcpy(at + i * PAGE, &word, sizeof(word));
	}
	target_say(name, (uintptr_t)at);
}

static char private_file[] = "/tmp/copied-XXXXXX";

static void make_regions(size_t mib)
{
	char *at, bytes[2 * PAGE + 100];
	int fd;

	fill("private", map(MAP_PRIVATE | MAP_ANONYMOUS, -1));
	fill("shared", map(MAP_SHARED | MAP_ANONYMOUS, -1));
	fd = memfd_create("copied", 0);
	if (fd < 0 || ftruncate(fd, SIZE))
		target_fail("no memfd");
	fill("memfd", map(MAP_SHARED, fd));
	at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fill("dontfork", at);
	madvise(at, SIZE, MADV_DONTFORK);
	at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fill("wipeonfork", at);
	madvise(at, SIZE, MADV_WIPEONFORK);
	at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fill("inaccessible", at);
	mprotect(at, SIZE, PROT_NONE);
	at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fill("zeros", at);
	for (size_t i = 0; i < SIZE / PAGE; i++)
		wrong += ((volatile char *)at)[i * PAGE + 8] != 0;
	/* A file of two pages and a bit, the second page written to. */
	fd = mkstemp(private_file);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i / PAGE + 1);
	if (fd < 0 || write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
		target_fail("no file");
	at = map(MAP_PRIVATE, fd);
	at[PAGE] = 'W';
	target_say("file", (uintptr_t)at);
	unlink(private_file);
	close(fd);
	for (size_t i = 0; i < mib; i++) {
		at = malloc(1 << 20);
		memset(at, 1, 1 << 20);
	}
}

static void *count_up(void *unused)
{
	(void)unused;
	while (!over)
		for (size_t i = 0; i < COUNTERS; i++)
			atomic_fetch_add(&counters[i * PAGE / sizeof(*counters)], 1);
	return NULL;
}

static void *map_and_unmap(void *unused)
{
	unsigned number = 0;

	(void)unused;
	while (!over) {
		char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);

		at[0] = 1;
		munmap(at, SIZE);
		free(malloc((size_t)(number++ % 3000)));
	}
	return NULL;
}

static void on_child(int signal)
{
	(void)signal;
	told++;
}

/* No child of its own, or that one alone. */
static void *wait_plainly(void *own)
{
	while (!over) {
		pid_t child = own ? fork() : 0, got;

		if (own && child == 0)
			_exit(7);
		got = waitpid(-1, NULL, own ? 0 : WNOHANG);
		if (own ? got != child : got != -1 || errno != ECHILD)
			wrong++;
		reaped += got > 0;
		usleep(200);
	}
	return NULL;
}

static void *vfork_all_the_time(void *unused)
{
	(void)unused;
	while (!over) {
		pid_t child = vfork();

		if (child == 0) {
			usleep(2000);
			_exit(7);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			wrong++;
		reaped++;
	}
	return NULL;
}

static void start(void *(*work)(void *argument), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, argument))
		target_fail("no thread can be made");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "busy";
	size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 4;
	bool is_idle = strcmp(mode, "idle") == 0, waits = strcmp(mode, "waits") == 0,
	     vforks = strcmp(mode, "vforks") == 0;

	signal(SIGCHLD, on_child);
	target_ready();
	make_regions(mib);
	counters = mmap(NULL, COUNTERS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (counters == MAP_FAILED)
		target_fail("nothing can be mapped");
	for (size_t i = 0; i < COUNTERS; i++)
		counters[i * PAGE / sizeof(*counters)] = 0;
	target_say("counters", (uintptr_t)counters);
	if (!is_idle) {
		start(count_up, NULL);
		start(map_and_unmap, NULL);
		start(vforks ? vfork_all_the_time : wait_plainly, waits ? (void *)mode : NULL);
	}
	if (strcmp(mode, "nproc") == 0 && setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 1}))
		target_fail("no limit can be set");
	if (strcmp(mode, "namespace") == 0 && unshare(CLONE_NEWPID))
		target_fail("no namespace can be made");
	if (strcmp(mode, "provides") == 0 && syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) < 0)
		target_fail("no userfaultfd can be made");
	target_say_text("working\n");
	target_wait();
	if (strcmp(mode, "execs") == 0)
		execl("/bin/sleep", "sleep", "60", NULL);
	if (strcmp(mode, "ends") == 0)
		_exit(0);
	over = true;
	usleep(50000);
	target_say("wrong", wrong);
	target_say("reaped", reaped);
	target_say("told", told);
	target_done();
	return 0;
}
