/* SPDX-License-Identifier: MIT */
/*
 * leak_service [SECONDS]: a service with a leak, for scripts/quickstart. One thread loses a session
 * record now and then, one fills a cache and stops at its limit, the others serve requests and give
 * everything back.
 */
#include "target.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_ENTRIES 400

struct session_record {
	char user[64];
	char token[128];
};

static void *cache[CACHE_ENTRIES];

static KEEP struct session_record *leak_session_record(unsigned id)
{
	struct session_record *record = malloc(sizeof(*record));

	OPAQUE(record);
	snprintf(record->user, sizeof(record->user), "user%u", id);
	return record;
}

static void *sessions_main(void *unused)
{
	for (unsigned id = 0;; id++) {
		struct session_record *last = leak_session_record(id);
		OPAQUE(last);
		usleep(2000);
	}
	return unused;
}

static KEEP void fill_cache(size_t entry)
{
	cache[entry] = malloc(128);
	OPAQUE(cache[entry]);
}

static void *cache_main(void *unused)
{
	for (size_t i = 0; i < CACHE_ENTRIES; i++) {
		fill_cache(i);
		usleep(3000);
	}
	for (;;)
		pause();
	return unused;
}

static KEEP void churn_request(unsigned id)
{
	char *request = malloc(256 + id % 256);
	char *answer = calloc(1, 1024);

	OPAQUE(request);
	OPAQUE(answer);
	memset(request, 'r', 256);
	free(answer);
	free(request);
}

static void *requests_main(void *unused)
{
	for (unsigned id = 0;; id++) {
		churn_request(id);
		usleep(500);
	}
	return unused;
}

static void start(void *(*work)(void *), const char *name)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, NULL) != 0)
		target_fail("pthread_create");
	pthread_setname_np(thread, name);
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 60;

	alarm(seconds);
	start(sessions_main, "sessions");
	start(cache_main, "cache");
	start(requests_main, "worker-0");
	start(requests_main, "worker-1");
	for (;;)
		pause();
}
