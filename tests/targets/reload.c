/* SPDX-License-Identifier: MIT */
/*
 * reload ROUNDS LIBRARY… : threads that load, use and unload libraries in a loop, so that one comes to lie where
 * another was; each thread begins with another library, and the last library is only one thread's. A further thread
 * allocates all the time. ROUNDS 0: until the harness says stop. Libraries are plugin.h's.
 */
#include "library.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS  3
#define USES     8
#define TOGETHER 5 /* rounds after which all libraries are unloaded */

static char **libraries;
static size_t library_count;
static unsigned long rounds;
static _Atomic uint64_t uses[16], pairs;
static _Atomic bool over;
static pthread_barrier_t meeting;

static void use(size_t which)
{
	void *library = dlopen(libraries[which], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	library_function leak, pair;

	if (!library)
		target_fail(dlerror());
	leak = library_find(library, "plugin_leak");
	pair = library_find(library, "plugin_pair");
	for (int i = 0; i < USES; i++) {
		/* Other libraries' blocks lie in themselves, and are no more when they are unloaded. */
		if (which == 0)
			leak();
		pair();
	}
	uses[which] += USES;
	if (dlclose(library))
		target_fail("dlclose");
}

static bool stop_is_said(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	if (poll(&input, 1, 0) <= 0)
		return false;
	target_wait();
	return true;
}

/* None of them has a library loaded. True for all threads if it goes on. */
static bool meet(unsigned long round)
{
	static bool goes_on;

	if (pthread_barrier_wait(&meeting) == PTHREAD_BARRIER_SERIAL_THREAD)
		goes_on = rounds ? round < rounds : !atomic_load(&over);
	pthread_barrier_wait(&meeting);
	return goes_on;
}

static void *reload(void *number)
{
	size_t self = (size_t)(uintptr_t)number;

	for (unsigned long round = 0; round % TOGETHER || meet(round); round++) {
		/* The last library's allocator is not for several threads. */
		use((self + round) % (library_count - 1));
		if (self == 0)
			use(library_count - 1);
	}
	return NULL;
}

static KEEP void reload_pair(size_t size)
{
	char *block = malloc(size);

	OPAQUE(block);
	memset(block, 'l', size);
	free(block);
	atomic_fetch_add(&pairs, 1);
}

static void *allocate(void *unused)
{
	for (size_t i = 0; !atomic_load(&over); i++) {
		reload_pair(200 + i % 100);
		if (i % 20 == 0)
			usleep(500);
		if (!rounds && stop_is_said())
			atomic_store(&over, true);
	}
	return unused;
}

static void say_uses(void)
{
	uint64_t ordinary = uses[0], other = 0;

	for (size_t i = 1; i < library_count; i++)
		other += uses[i];
	target_say("plugin_leak.57.impacting.count", ordinary);
	target_say("plugin_leak.57.impacting.bytes", ordinary * 57);
	target_say("plugin_pair.57.transient.count", ordinary);
	target_say("plugin_pair.59.transient.count", other);
	target_say("reload_pair.transient.count", pairs);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS], allocating;

	if (argc < 4 || argc > 16)
		target_fail("usage: reload ROUNDS LIBRARY LIBRARY…");
	rounds = strtoul(argv[1], NULL, 10);
	libraries = argv + 2;
	library_count = (size_t)argc - 2;
	/* It stays for good, and would keep the library that it came with. */
	if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL))
		target_fail("libstdc++");
	pthread_barrier_init(&meeting, NULL, THREADS);
	target_ready();
	if (pthread_create(&allocating, NULL, allocate, NULL))
		target_fail("pthread_create");
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, reload, (void *)i))
			target_fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&over, true);
	pthread_join(allocating, NULL);
	say_uses();
	target_done();
	for (size_t i = 0; i < library_count; i++)
		use(i);
	return 0;
}
