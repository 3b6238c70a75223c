// SPDX-License-Identifier: MIT
/* clock.c: from the time stamp counter to nanoseconds (drain.h). */
#include "engine/jump/drain.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#define MEASURE_NS 2000000u
#define CLOSEST_NS 10000000u /* pairs closer than that say little about the rate */
#define READINGS   8

/* Is `word` one of the words from `text` to the line's end? */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *end = text + strcspn(text, "\n"); text < end;) {
		size_t span = strcspn(text, " \t\n");

		if (span == length && strncmp(text, word, length) == 0)
			return true;
		text += span;
		text += strspn(text, " \t");
	}
	return false;
}

/* A thread of its own, as no thread gets rid of a filter. */
static void *read_without_call(void *works)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(*code), .filter = code};
	struct timespec now;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
		*(bool *)works = clock_gettime(CLOCK_MONOTONIC, &now) == 0;
	return NULL;
}

bool jump_clock_needs_no_call(void)
{
	bool works = false;
	pthread_t thread;

	if (pthread_create(&thread, NULL, read_without_call, &works) == 0)
		pthread_join(thread, NULL);
	return works;
}

bool jump_clock_judge(const char *cpuinfo, const char *sources, bool needs_no_call, const char **why)
{
	const char *flags = strstr(cpuinfo, "\nflags");

	flags = flags ? strchr(flags, ':') : NULL;
	if (!flags || !has_word(flags, "constant_tsc"))
		*why = "the processor's time stamp counter does not run at a constant rate";
	else if (!has_word(flags, "nonstop_tsc"))
		*why = "the processor's time stamp counter stops in deep sleep";
	else if (!has_word(sources, "tsc") && !needs_no_call)
		*why = "the kernel does not consider the processors' time stamp counters synchronized (tsc is not an "
		       "available clock source, and reading the clock takes a system call)";
	else
		return true;
	return false;
}

/* Read both clocks at one moment: the pair of several whose two looks at the counter lie closest together. */
static void read_both(uint64_t *tick, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = jump_clock_tick();
		uint64_t now = mw_clock_ns();
		uint64_t took = jump_clock_tick() - before;

		if (took < best) {
			best = took;
			*tick = before + took / 2;
			*ns = now;
		}
	}
}

/* ns a tick, 32 bits of fraction; between a tick of 1/16 ns and one of 2^20 ns whatever the clocks said. */
static uint64_t rate_of(uint64_t ns, uint64_t ticks)
{
	unsigned __int128 rate = ticks ? ((unsigned __int128)ns << 32) / ticks : 0;

	if (rate < (UINT64_C(1) << 28))
		return UINT64_C(1) << 28;
	return rate > (UINT64_C(1) << 52) ? UINT64_C(1) << 52 : (uint64_t)rate;
}

static uint64_t scaled(uint64_t ticks, uint64_t rate)
{
	unsigned __int128 ns = (unsigned __int128)ticks * rate >> 32;

	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static void begin(struct jump_clock *clock, uint64_t tick, uint64_t ns)
{
	clock->start_tick = clock->known_tick = clock->before_tick = clock->measured_tick = tick;
	clock->start_ns = clock->measured_ns = ns;
	clock->known_ns = clock->before_ns = 0;
	clock->before_rate = clock->rate;
}

void jump_clock_init(struct jump_clock *clock)
{
	const struct timespec pause = {.tv_nsec = MEASURE_NS};
	uint64_t from_tick = 0, from_ns = 0, tick = 0, ns = 0;

	read_both(&from_tick, &from_ns);
	nanosleep(&pause, NULL);
	read_both(&tick, &ns);
	clock->rate = rate_of(ns - from_ns, tick - from_tick);
	begin(clock, tick, ns);
}

void jump_clock_start(struct jump_clock *clock)
{
	uint64_t tick = 0, ns = 0;

	read_both(&tick, &ns);
	begin(clock, tick, ns);
}

void jump_clock_take(struct jump_clock *clock, uint64_t tick, uint64_t ns)
{
	uint64_t length = ns - clock->measured_ns, reckoned, real, rate, error, correction;
	unsigned __int128 wanted;

	if (tick <= clock->known_tick || ns < clock->measured_ns || length < CLOSEST_NS)
		return;
	reckoned = jump_clock_ns(clock, tick);
	real = ns - clock->start_ns;
	rate = rate_of(length, tick - clock->measured_tick);
	/* What is wrong now is to be made good in as long as it took to come about; never by more than a sixteenth. */
	error = real > reckoned ? real - reckoned : reckoned - real;
	wanted = (unsigned __int128)error * rate / length;
	correction = wanted > rate / 16 ? rate / 16 : (uint64_t)wanted;
	clock->before_tick = clock->known_tick;
	clock->before_ns = clock->known_ns;
	clock->before_rate = clock->rate;
	clock->known_tick = clock->measured_tick = tick;
	clock->known_ns = reckoned;
	clock->measured_ns = ns;
	clock->rate = real > reckoned ? rate + correction : rate - correction;
}

void jump_clock_adjust(struct jump_clock *clock)
{
	uint64_t tick = 0, ns = 0;

	read_both(&tick, &ns);
	jump_clock_take(clock, tick, ns);
}

uint64_t jump_clock_ns(const struct jump_clock *clock, uint64_t tick)
{
	uint64_t ns, back;

	if (tick >= clock->known_tick) {
		ns = scaled(tick - clock->known_tick, clock->rate);
		return ns > UINT64_MAX - clock->known_ns ? UINT64_MAX : clock->known_ns + ns;
	}
	if (tick <= clock->start_tick)
		return 0;
	if (tick >= clock->before_tick) {
		ns = clock->before_ns + scaled(tick - clock->before_tick, clock->before_rate);
		return ns < clock->known_ns ? ns : clock->known_ns;
	}
	back = scaled(clock->before_tick - tick, clock->before_rate);
	return back < clock->before_ns ? clock->before_ns - back : 0;
}
