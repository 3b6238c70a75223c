/* SPDX-License-Identifier: MIT */
/*
 * loaders LIBRARY OWN: threads made inside the window that load, use and unload libraries, while others, short-lived,
 * allocate all the time. OWN brings an allocator of its own and stays.
 */
#include "target.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LOADERS 3
#define ROUNDS  12
#define USES    20
#define SHORT   300

static const char *library_path, *own_path;
static _Atomic uint64_t pairs;
static _Atomic bool over;

typedef void (*function)(void);

static function find(void *library, const char *name)
{
	union {
		void *data;
		function code;
	} cast = {library ? dlsym(library, name) : NULL};

	if (!cast.data)
		target_fail("a library can't be loaded");
	return cast.code;
}

static void *load(void *unused)
{
	for (int round = 0; round < ROUNDS; round++) {
		void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
		void *own = dlopen(own_path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_DEEPBIND);
		function leak = find(library, "plugin_leak"), own_leak = find(own, "plugin_leak"),
			 own_pair = find(own, "plugin_pair");

		for (int i = 0; i < USES; i++) {
			leak();
			own_leak();
			own_pair();
		}
		dlclose(own);
		dlclose(library);
	}
	return unused;
}

static KEEP void loaders_pair(size_t size)
{
	char *block = malloc(size);

	OPAQUE(block);
	memset(block, 'l', size);
	free(block);
	atomic_fetch_add(&pairs, 1);
}

static void *be_short(void *unused)
{
	for (size_t i = 0; i < 50; i++)
		loaders_pair(200 + i);
	return unused;
}

static void *make_threads(void *unused)
{
	for (int i = 0; i < SHORT || !atomic_load(&over); i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, be_short, NULL))
			target_fail("pthread_create");
		pthread_join(thread, NULL);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t loaders[LOADERS], maker;

	if (argc < 3)
		target_fail("usage: loaders LIBRARY OWN");
	library_path = argv[1];
	own_path = argv[2];
	target_ready();
	if (pthread_create(&maker, NULL, make_threads, NULL))
		target_fail("pthread_create");
	for (int i = 0; i < LOADERS; i++)
		if (pthread_create(&loaders[i], NULL, load, NULL))
			target_fail("pthread_create");
	for (int i = 0; i < LOADERS; i++)
		pthread_join(loaders[i], NULL);
	atomic_store(&over, true);
	pthread_join(maker, NULL);
	target_say("plugin_leak.57.impacting.count", LOADERS * ROUNDS * USES);
	target_say("plugin_leak.58.impacting.count", LOADERS * ROUNDS * USES);
	target_say("plugin_pair.59.transient.count", LOADERS * ROUNDS * USES);
	target_say("loaders_pair.transient.count", pairs);
	target_done();
	return 0;
}
