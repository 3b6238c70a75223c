/* SPDX-License-Identifier: MIT */
/*
 * sites_shared: call sites that now and then return from malloc and mostly from something else, while other threads
 * fork. The children go through the same sites and must end as they want to.
 */
#include "target.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using function = void *(*)(std::size_t);
using call_site = void *(*)(function, std::size_t);

static const int site_count = 120;
static const int strays = 300;
static const int forkers = 3;
static std::atomic<bool> over;
static std::atomic<uint64_t> forks;
static pthread_barrier_t begin, finish;

static KEEP void *something_else(std::size_t size)
{
	return reinterpret_cast<void *>(size);
}

/* Each instance is a return address of its own. */
template <int Number>
static KEEP void *strays_site(function callee, std::size_t size)
{
	void *result = callee(size);

	OPAQUE(result);
	return result;
}

template <int... Numbers>
static call_site at(int number, std::integer_sequence<int, Numbers...>)
{
	static const call_site all[] = {strays_site<Numbers>...};

	return all[number];
}

static call_site site(int number)
{
	return at(number, std::make_integer_sequence<int, site_count>());
}

static void *allocate(void *unused)
{
	pthread_barrier_wait(&begin);
	for (int i = 0; i < site_count; i++) {
		site(i)(std::malloc, 36);
		for (int k = 0; k < strays; k++)
			site(i)(something_else, 4);
		site(i)(std::malloc, 37);
	}
	over = true;
	pthread_barrier_wait(&finish);
	return unused;
}

static void *make_children(void *unused)
{
	int status;

	pthread_barrier_wait(&begin);
	while (!over) {
		pid_t pid = fork();
		if (pid < 0)
			target_fail("fork");
		if (pid == 0) {
			alarm(60);
			for (int i = 0; i < site_count; i++) {
				if (site(i)(something_else, 4) != reinterpret_cast<void *>(4))
					_exit(1);
			}
			_exit(0);
		}
		while (waitpid(pid, &status, 0) < 0) {
			if (errno != EINTR)
				target_fail("waitpid");
		}
		if (WIFSIGNALED(status)) {
			target_say("signal", static_cast<uint64_t>(WTERMSIG(status)));
			target_fail("a child died by a signal");
		}
		if (status != 0)
			target_fail("a child ended with another status");
		forks++;
	}
	pthread_barrier_wait(&finish);
	return unused;
}

int main()
{
	pthread_t threads[forkers + 1];

	pthread_barrier_init(&begin, nullptr, forkers + 2);
	pthread_barrier_init(&finish, nullptr, forkers + 2);
	for (int i = 0; i <= forkers; i++) {
		if (pthread_create(&threads[i], nullptr, i == 0 ? allocate : make_children, nullptr) != 0)
			target_fail("pthread_create");
	}
	target_ready_for(240);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&finish);
	target_say("forks", forks);
	target_say("strays_site.size.count", site_count * 2);
	target_say("strays_site.impacting.count", site_count * 2);
	target_say("strays_site.impacting.bytes", site_count * (36 + 37));
	target_done();
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	return 0;
}
