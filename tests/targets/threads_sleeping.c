/* SPDX-License-Identifier: MIT */
/* threads_sleeping [THREADS]: many threads that each do a little at a time and sleep, until the harness ends the
 * work. */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic uint64_t pairs;
static _Atomic bool working, over;

static KEEP void crowd_pair(void)
{
	void *block = malloc(75);

	OPAQUE(block);
	free(block);
	atomic_fetch_add(&pairs, 1);
}

static void *work(void *unused)
{
	while (!atomic_load(&over)) {
		for (int i = 0; i < 10 && atomic_load(&working); i++)
			crowd_pair();
		usleep(50000);
	}
	return unused;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	pthread_t *threads = calloc(count, sizeof(*threads));

	for (size_t i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			target_fail("pthread_create");
	target_ready();
	atomic_store(&working, true);
	target_wait();
	atomic_store(&working, false);
	atomic_store(&over, true);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	target_say("crowd_pair.transient.count", pairs);
	target_say("heap.impacting.count", 0);
	target_done();
	free(threads);
	return 0;
}
