/* SPDX-License-Identifier: MIT */
/*
 * sequences: three threads on one CPU that count in one number by restartable sequences (rseq(2)), and allocate, until
 * the harness says so. lost: counts that another thread's went over, which no interruption may bring about. registered:
 * 0 where the C library or the kernel has no such sequences.
 */
#include "target.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#ifdef RSEQ_SIG

#define THREADS 3

static uint64_t number __attribute__((aligned(64)));
static _Atomic uint64_t counted, restarts;
static atomic_bool enough;

/* One more, in a sequence of some microseconds. False: it has been interrupted, and nothing was done. */
static KEEP bool count(struct rseq *own)
{
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
		     ".balign 32\n"
		     "3: .long 0, 0\n"
		     ".quad 1f, 2f - 1f, 4f\n"
		     ".popsection\n"
		     "lea 3b(%%rip), %%rax\n"
		     "mov %%rax, %[sequence]\n"
		     "1:\n"
		     "mov (%[number]), %%rcx\n"
		     "mov $3000, %%edx\n"
		     "5: dec %%edx\n"
		     "jnz 5b\n"
		     "inc %%rcx\n"
		     "mov %%rcx, (%[number])\n"
		     "2:\n"
		     ".pushsection __rseq_failure, \"ax\"\n"
		     ".byte 0x0f, 0xb9, 0x3d\n"
		     ".long 0x53053053\n"
		     "4: jmp %l[interrupted]\n"
		     ".popsection\n"
		     :
		     : [number] "r"(&number), [sequence] "m"(own->rseq_cs)
		     : "memory", "cc", "rax", "rcx", "rdx"
		     : interrupted);
	return true;
interrupted:
	return false;
}

static void *work(void *unused)
{
	struct rseq *own = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint64_t mine = 0, again = 0;

	while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
		void *block;

		if (count(own))
			mine++;
		else
			again++;
		if (mine % 1000 == 0) {
			block = malloc(40);
			OPAQUE(block);
			free(block);
		}
	}
	atomic_fetch_add(&counted, mine);
	atomic_fetch_add(&restarts, again);
	return unused;
}

static bool run(void)
{
	pthread_t threads[THREADS];
	cpu_set_t cpu;

	if (__rseq_size == 0)
		return false;
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			target_fail("pthread_create");
	target_wait();
	atomic_store(&enough, true);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	target_say("counted", counted);
	target_say("lost", counted - number);
	target_say("restarts", restarts);
	return true;
}

#else

static bool run(void)
{
	return false;
}

#endif

int main(void)
{
	bool registered;

	target_ready();
	registered = run();
	target_say("registered", registered);
	if (!registered)
		target_wait();
	target_done();
	return 0;
}
