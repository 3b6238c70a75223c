/* SPDX-License-Identifier: MIT */
/*
 * verdicts STEPS: holds memory in many ways at once, all of which are under way for long when it says "ready". Functions
 * leak_CASE leak, functions keep_CASE don't; what only works for them is neither. The blocks of each case have sizes of their
 * own, but for those that are meant to be mistaken for each other.
 *
 * A step takes 20 ms or, where the machine is loaded, as long as it takes. It takes them before it is told to go as well.
 * After STEPS from then on it says how long the longest took (longest_step_ns) and "done".
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_NS 20000000
#define OLD     500 /* steps that are behind it when it says "ready" */

static uint64_t noise = 1;

static unsigned any(unsigned below)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(noise >> 33) % below;
}

/* As often, in a loop that the compiler can't take apart: there is one call in it, and one stack. */
static unsigned times(unsigned count)
{
	OPAQUE(count);
	return count;
}

/* Blocks in the order in which they came. */
struct fifo {
	void *blocks[1 << 14];
	unsigned long due[1 << 14];
	unsigned first, count;
};

static void push(struct fifo *fifo, void *block, unsigned long due)
{
	unsigned at = (fifo->first + fifo->count++) % (1 << 14);

	if (fifo->count > 1 << 14)
		target_fail("too many blocks");
	fifo->blocks[at] = block;
	fifo->due[at] = due;
}

static void *pop(struct fifo *fifo)
{
	void *block = fifo->blocks[fifo->first];

	fifo->first = (fifo->first + 1) % (1 << 14);
	fifo->count--;
	return block;
}

/* Blocks that go each at a time of its own: by the step in which they do. */
struct wheel {
	void *blocks[1024][32];
	unsigned counts[1024];
};

static void wheel_add(struct wheel *wheel, void *block, unsigned long step)
{
	unsigned at = step % 1024;

	if (wheel->counts[at] == 32)
		free(block);
	else
		wheel->blocks[at][wheel->counts[at]++] = block;
}

static void wheel_turn(struct wheel *wheel, unsigned long step)
{
	unsigned at = step % 1024;

	while (wheel->counts[at])
		free(wheel->blocks[at][--wheel->counts[at]]);
}

/* --- what leaks ------------------------------------------------------------------------------------------ */

static KEEP void leak_alone(unsigned long step)
{
	void *block = malloc(100);

	OPAQUE(block);
	OPAQUE(step);
}

/* One of a hundred is forgotten. */
static KEEP void leak_on_error(unsigned long step)
{
	for (unsigned i = 0, count = times(5); i < count; i++) {
		void *block = malloc(160);

		OPAQUE(block);
		if (step % 20 != 7 || i != times(0))
			free(block);
	}
}

/* A buffer that is replaced by a larger one. */
static KEEP void leak_storage(unsigned long step)
{
	static char *storage;
	static size_t size = 50000;
	char *larger;

	if (step % 8)
		return;
	larger = malloc(size += 600);
	OPAQUE(larger);
	free(storage);
	storage = larger;
}

/* Four come, three go. */
static KEEP void leak_queue(unsigned long step)
{
	static struct fifo queue;

	for (unsigned i = 0, count = times(4); i < count; i++) {
		void *block = malloc(230);

		OPAQUE(block);
		push(&queue, block, 0);
	}
	for (unsigned i = 0; i < 3 && step > 30; i++)
		free(pop(&queue));
}

/* In the same function as a ring's entry, of its size. */
static KEEP void *ring_slot(void)
{
	return malloc(300);
}

static KEEP void *leak_slot(void)
{
	return malloc(300);
}

static void slots(unsigned long step)
{
	static void *ring[450];
	void *old = ring[step % 450], *block;

	ring[step % 450] = ring_slot();
	block = leak_slot();
	OPAQUE(block);
	free(old);
}

/* Sessions of about a second, of which one in ten never ends. */
static KEEP void leak_sessions(unsigned long step)
{
	static struct wheel wheel;

	for (unsigned i = 0, count = times(2); i < count; i++) {
		void *block = malloc(380);

		OPAQUE(block);
		if ((2 * step + i) % 10)
			wheel_add(&wheel, block, step + 20 + any(60));
	}
	wheel_turn(&wheel, step);
}

/* Where an entry makes room for another it is forgotten, one time in eight. */
static KEEP void leak_evicted(unsigned long step)
{
	static void *ring[900];

	for (unsigned i = 0, count = times(2); i < count; i++) {
		unsigned at = (2 * step + i) % 900;
		void *block = malloc(450);

		OPAQUE(block);
		if (at % 8)
			free(ring[at]);
		ring[at] = block;
	}
}

/* While older blocks of the same size go. */
#define REMAINS 4000

static void *remains[REMAINS];

static void fill_remains(void)
{
	for (unsigned i = 0; i < REMAINS; i++)
		remains[i] = malloc(520);
}

static KEEP void leak_while_others_go(unsigned long step)
{
	void *block = malloc(520);

	OPAQUE(block);
	OPAQUE(step);
}

static void drop_remains(void)
{
	static unsigned next;

	for (unsigned i = 0; i < 15 && next < REMAINS; i++)
		free(remains[next++]);
}

/* --- what does not --------------------------------------------------------------------------------------- */

static KEEP void keep_ring(unsigned long step)
{
	static void *ring[450];

	free(ring[step % 450]);
	ring[step % 450] = malloc(640);
	OPAQUE(ring[step % 450]);
}

static KEEP void keep_any_ring(unsigned long step)
{
	static void *ring[420];
	void *work = malloc(32), *block = malloc(3000 + any(2000));

	OPAQUE(work);
	OPAQUE(block);
	free(ring[step % 420]);
	free(work);
	ring[step % 420] = block;
}

static void expire(struct fifo *fifo, unsigned long step)
{
	while (fifo->count && fifo->due[fifo->first] < step)
		free(pop(fifo));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fifo cached, cached_long;

/* What a thread lets expire; the time to live is shorter than the window. */
static KEEP void keep_expiring(unsigned long step)
{
	void *block = malloc(720);

	OPAQUE(block);
	pthread_mutex_lock(&lock);
	push(&cached, block, step + 150);
	pthread_mutex_unlock(&lock);
}

/* The same, longer. */
static KEEP void keep_expiring_late(unsigned long step)
{
	void *block = malloc(850);

	OPAQUE(block);
	pthread_mutex_lock(&lock);
	push(&cached_long, block, step + 450);
	pthread_mutex_unlock(&lock);
}

static KEEP void keep_sessions(unsigned long step)
{
	static struct wheel wheel;

	for (unsigned i = 0, count = times(2); i < count; i++) {
		void *block = malloc(1000);

		OPAQUE(block);
		wheel_add(&wheel, block, step + 10 + any(60));
	}
	wheel_turn(&wheel, step);
}

/* Most live for a moment, one in ten three seconds. */
static KEEP void keep_some_longer(unsigned long step)
{
	static struct wheel wheel;

	for (unsigned i = 0, count = times(3); i < count; i++) {
		void *block = malloc(1200);

		OPAQUE(block);
		wheel_add(&wheel, block, step + (any(10) ? 1 : 150));
	}
	wheel_turn(&wheel, step);
}

static KEEP void keep_configuration(unsigned long step)
{
	static void *now[50];
	void *next[50];

	if (step % 75)
		return;
	for (unsigned i = 0, count = times(50); i < count; i++) {
		next[i] = malloc(1400);
		OPAQUE(next[i]);
	}
	for (unsigned i = 0; i < 50; i++)
		free(now[i]);
	memcpy(now, next, sizeof(now));
}

/* A string that is made longer and longer, and then let go. */
static KEEP void keep_string(unsigned long step)
{
	static char *string;
	char *longer = malloc(6000 + step % 7 * 700);

	OPAQUE(longer);
	free(string);
	string = longer;
	if (step % 7 == 6) {
		free(string);
		string = NULL;
	}
}

/* Replaces any entry. */
static KEEP void keep_random(unsigned long step)
{
	static void *entries[200];
	unsigned at = any(200);

	OPAQUE(step);
	free(entries[at]);
	entries[at] = malloc(1700);
	OPAQUE(entries[at]);
}

static void (*const cases[])(unsigned long step) = {
	leak_alone,    leak_on_error,        leak_storage,     leak_queue,         slots,         leak_sessions,
	leak_evicted,  leak_while_others_go, keep_ring,        keep_any_ring,      keep_expiring, keep_expiring_late,
	keep_sessions, keep_random,          keep_some_longer, keep_configuration, keep_string,
};

/* -------------------------------------------------------------------------------------------------------- */

static atomic_ulong now_step;

static void *expirer(void *unused)
{
	const struct timespec pause = {.tv_nsec = 5 * STEP_NS};

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&lock);
		expire(&cached, atomic_load(&now_step));
		expire(&cached_long, atomic_load(&now_step));
		pthread_mutex_unlock(&lock);
		drop_remains();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void take_step(unsigned long step)
{
	atomic_store(&now_step, step);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i](step);
}

static atomic_ullong longest;

static void *stepper(void *unused)
{
	const struct timespec pause = {.tv_nsec = STEP_NS};
	uint64_t last = now();

	(void)unused;
	for (unsigned long step = OLD;; step++) {
		uint64_t time;

		take_step(step);
		nanosleep(&pause, NULL);
		time = now();
		if (time - last > atomic_load(&longest))
			atomic_store(&longest, time - last);
		last = time;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = STEP_NS};
	unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 400, end;
	pthread_t thread;

	fill_remains();
	for (unsigned long step = 0; step < OLD; step++) {
		take_step(step);
		expire(&cached, step);
		expire(&cached_long, step);
	}
	if (pthread_create(&thread, NULL, expirer, NULL) || pthread_create(&thread, NULL, stepper, NULL))
		target_fail("pthread_create");
	target_ready();
	atomic_store(&longest, 0);
	end = atomic_load(&now_step) + steps;
	while (atomic_load(&now_step) < end)
		nanosleep(&pause, NULL);
	target_say("longest_step_ns", atomic_load(&longest));
	target_done();
	return 0;
}
