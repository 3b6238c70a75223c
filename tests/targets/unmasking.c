/* SPDX-License-Identifier: MIT */
/*
 * unmasking: threads that block all signals and unblock them again without an end, by a set whose page must be fetched
 * each time, so that they are mostly amidst that. One that finds itself traced after it had to stand rests until the
 * end: then it says whether SIGTRAP is blocked in it.
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define THREADS     12
#define PAGE        4096
#define STANDING_NS 5000000u

static atomic_bool over;
static atomic_uint found_amidst, blocked;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static unsigned long long from_status(const char *format)
{
	unsigned long long value = 0;
	char line[256];
	FILE *file = fopen("/proc/thread-self/status", "r");

	if (!file)
		target_fail("/proc/thread-self/status");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			break;
	fclose(file);
	return value;
}

/* An empty set in a page of a file, which madvise() drops. */
static sigset_t *make_set(void)
{
	int file = memfd_create("set", 0);
	sigset_t *set;

	if (file < 0 || ftruncate(file, PAGE) != 0)
		target_fail("memfd_create");
	set = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	if (set == MAP_FAILED)
		target_fail("mmap");
	return set;
}

static void *work(void *unused)
{
	sigset_t *none = make_set(), all;

	sigfillset(&all);
	while (!atomic_load(&over)) {
		uint64_t begin = now_ns();

		pthread_sigmask(SIG_SETMASK, &all, NULL);
		madvise(none, PAGE, MADV_DONTNEED);
		pthread_sigmask(SIG_SETMASK, none, NULL);
		if (now_ns() - begin <= STANDING_NS || from_status("TracerPid: %llu") == 0)
			continue;
		atomic_fetch_add(&found_amidst, 1);
		while (!atomic_load(&over))
			usleep(10000);
		atomic_fetch_add(&blocked, (unsigned)(from_status("SigBlk: %llx") >> (SIGTRAP - 1) & 1));
	}
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			target_fail("pthread_create");
	target_ready_for(120);
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	target_say("amidst", atomic_load(&found_amidst));
	target_say("blocked", atomic_load(&blocked));
	target_done();
	return 0;
}
