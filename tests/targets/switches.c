/* SPDX-License-Identifier: MIT */
/*
 * switches: coroutines by makecontext and swapcontext with stacks of 8 and 16 KiB, unmapped memory below them, that
 * allocate and free each other's blocks while threads pass them around: a coroutine goes on in another thread than it
 * stopped in. Some leave by setcontext, some by their end, and new ones begin on the same stacks. Between the turns
 * setjmp and longjmp go out of functions that hold blocks.
 */
#include "target.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE       4096u
#define THREADS    3
#define COROUTINES 24
#define TURNS      40 /* of a coroutine's life */
#define LIVES      6

struct coroutine {
	ucontext_t here;
	ucontext_t *scheduler; /* of the thread that runs it now */
	char *stack;
	size_t size;
	unsigned number, lives;
	bool ended;
	void *_Atomic parcel; /* a block for the next who comes by */
};

static struct coroutine coroutines[COROUTINES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coroutine *ready[COROUTINES];
static unsigned ready_count, alive = COROUTINES;
static _Atomic uint64_t pairs, leaks, parcels, jumps, turns;

static KEEP void switches_leak(void)
{
	void *block = malloc(49);

	OPAQUE(block);
	leaks++;
}

static KEEP void switches_pair(unsigned i)
{
	char *block = malloc(1 + i % 400), *more;

	memset(block, 'w', 1 + i % 400);
	more = realloc(block, 500);
	OPAQUE(more);
	if (more[i % 400] != 'w')
		target_fail("a block lost what was written there");
	free(more);
	pairs++;
}

static KEEP void *switches_parcel(unsigned i)
{
	char *block = malloc(81);

	memset(block, (int)i, 81);
	parcels++;
	return block;
}

static KEEP void jump_out(jmp_buf *back, void *held)
{
	free(held);
	longjmp(*back, 7);
}

static KEEP void descend_and_jump(jmp_buf *back, unsigned depth, void *held)
{
	volatile unsigned mark = depth;

	if (depth == 0)
		jump_out(back, held);
	else
		descend_and_jump(back, depth - 1, held);
	if (mark)
		target_fail("a jump came back");
}

static KEEP void switches_jump(unsigned i)
{
	jmp_buf back;

	if (setjmp(back) == 0)
		descend_and_jump(&back, i % 7, malloc(33));
	jumps++;
}

static void yield(struct coroutine *self)
{
	struct coroutine *volatile me = self;

	swapcontext(&me->here, me->scheduler);
	if (me != self)
		target_fail("a coroutine's stack was overwritten");
}

static KEEP void coroutine_turn(struct coroutine *self, unsigned turn)
{
	struct coroutine *other = &coroutines[(self->number * 7 + turn) % COROUTINES];
	unsigned char *got = atomic_exchange(&other->parcel, NULL);

	if (got) {
		if (got[0] != got[80])
			target_fail("a parcel was opened on its way");
		free(got);
	}
	free(atomic_exchange(&self->parcel, switches_parcel(turn)));
	switches_pair(turn + self->number);
	if (turn % 8 == 0)
		switches_leak();
	switches_jump(turn);
	turns++;
}

static void coroutine_main(unsigned low, unsigned high)
{
	struct coroutine *self = (struct coroutine *)((uintptr_t)low | (uintptr_t)high << 32);

	for (unsigned turn = 0; turn < TURNS; turn++) {
		coroutine_turn(self, turn);
		yield(self);
	}
	self->ended = true;
	/* Both ways to end. */
	if (self->number % 2)
		setcontext(self->scheduler);
	yield(self);
}

static void begin(struct coroutine *self)
{
	uintptr_t at = (uintptr_t)self;

	getcontext(&self->here);
	self->here.uc_stack.ss_sp = self->stack;
	self->here.uc_stack.ss_size = self->size;
	self->here.uc_link = NULL;
	self->ended = false;
	makecontext(&self->here, (void (*)(void))coroutine_main, 2, (unsigned)at, (unsigned)(at >> 32));
}

static struct coroutine *take(bool *over)
{
	struct coroutine *found = NULL;

	pthread_mutex_lock(&lock);
	/* The one that has waited longest, so that all threads come by. */
	if (ready_count) {
		found = ready[0];
		memmove(ready, ready + 1, --ready_count * sizeof(ready[0]));
	}
	*over = alive == 0;
	pthread_mutex_unlock(&lock);
	return found;
}

static void give(struct coroutine *back)
{
	pthread_mutex_lock(&lock);
	if (back->ended && ++back->lives == LIVES) {
		alive--;
	} else {
		if (back->ended)
			begin(back);
		ready[ready_count++] = back;
	}
	pthread_mutex_unlock(&lock);
}

static void *schedule(void *unused)
{
	ucontext_t scheduler;
	bool over = false;

	while (!over) {
		struct coroutine *next = take(&over);

		if (!next)
			continue;
		next->scheduler = &scheduler;
		swapcontext(&scheduler, &next->here);
		give(next);
	}
	return unused;
}

static void make(unsigned i)
{
	struct coroutine *self = &coroutines[i];
	char *at;

	self->number = i;
	self->size = i % 3 ? 4 * PAGE : 2 * PAGE;
	at = mmap(NULL, self->size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || mprotect(at + PAGE, self->size, PROT_READ | PROT_WRITE))
		target_fail("mmap of a stack");
	self->stack = at + PAGE;
	begin(self);
	ready[ready_count++] = self;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < COROUTINES; i++)
		make(i);
	target_ready();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, schedule, NULL))
			target_fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < COROUTINES; i++)
		free(coroutines[i].parcel);
	if (turns != COROUTINES * LIVES * TURNS || jumps != turns || parcels != turns)
		target_fail("a coroutine did not do all its turns");
	target_say("switches_pair.transient.count", 2 * pairs);
	target_say("switches_parcel.transient.count", parcels);
	target_say("switches_parcel.impacting.count", 0);
	target_say("switches_jump.transient.count", jumps);
	target_say("switches_jump.transient.bytes", jumps * 33);
	target_say("switches_leak.impacting.count", leaks);
	target_say("switches_leak.impacting.bytes", leaks * 49);
	target_say("coroutine_main.aofi.count", 0);
	target_done();
	return 0;
}
