/* SPDX-License-Identifier: MIT */
/*
 * deterministic [STEPS [LIBRARY]]: one thread that does the same at the same addresses each time it runs: every entry
 * point of the malloc and mmap families, by stacks of every kind. It turns address randomisation off for itself.
 *
 * About two events a step. LIBRARY (libdetlib.so) is loaded in the midst of it and called from then on.
 */
#include "target.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#define BLOCKS  1500
#define REGIONS 40
#define PAGE    ((size_t)4096)
#define LIFE    290

typedef void leaf_function(unsigned what);

static struct {
	unsigned char *at;
	size_t size;
	unsigned char fill;
} blocks[BLOCKS];

static struct {
	char *at;
	size_t pages;
} regions[REGIONS];

static uint64_t state = 88172645463325252u;
static void (*in_library)(leaf_function *leaf, unsigned what, unsigned depth);

static unsigned draw(unsigned below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % below;
}

/* --- what is done in the innermost frame -------------------------------------------------------------- */

static KEEP void check_block(size_t i)
{
	if (blocks[i].size == 0)
		return;
	if (blocks[i].at[0] != blocks[i].fill || blocks[i].at[blocks[i].size - 1] != blocks[i].fill)
		target_fail("a block does not hold what was written there");
}

static KEEP void keep(size_t i, void *at, size_t size)
{
	if (!at)
		target_fail("out of memory");
	blocks[i].at = at;
	blocks[i].size = size;
	blocks[i].fill = (unsigned char)draw(256);
	if (size > 0) {
		blocks[i].at[0] = blocks[i].fill;
		blocks[i].at[size - 1] = blocks[i].fill;
	}
}

static size_t draw_size(void)
{
	unsigned kind = draw(1000);

	if (kind < 3)
		return 100000 + draw(400000); /* a mapping of its own */
	if (kind < 100)
		return draw(20000);
	return draw(500);
}

static KEEP void drop(size_t i)
{
	check_block(i);
	free(blocks[i].at);
	blocks[i].at = NULL;
	blocks[i].size = 0;
}

static KEEP void take(size_t i, unsigned how)
{
	size_t size = draw_size();
	void *at = NULL;

	switch (how % 6) {
	case 0:
	case 1:
		at = malloc(size);
		break;
	case 2:
		at = calloc(size / 8 + 1, 8);
		size = size / 8 * 8 + 8;
		break;
	case 3:
		if (posix_memalign(&at, (size_t)16 << draw(8), size) != 0)
			target_fail("posix_memalign");
		break;
	case 4:
		at = aligned_alloc((size_t)16 << draw(6), size);
		break;
	default:
		at = realloc(NULL, size + 1); /* an allocation */
		size++;
	}
	OPAQUE(at);
	keep(i, at, size);
}

static KEEP void change(size_t i)
{
	size_t size = draw_size() + 1;
	void *at;

	check_block(i);
	at = draw(2) ? realloc(blocks[i].at, size) : reallocarray(blocks[i].at, size, 1);
	OPAQUE(at);
	if (!at)
		target_fail("out of memory");
	if (blocks[i].size && ((unsigned char *)at)[0] != blocks[i].fill)
		target_fail("a block lost what was written there when it was moved");
	keep(i, at, size);
}

/* Calls that must fail, and calls that mean nothing. */
static KEEP void fail(unsigned how)
{
	size_t huge = (size_t)PTRDIFF_MAX - 8192;
	void *at = NULL;

	OPAQUE(huge);
	switch (how % 6) {
	case 0:
		free(NULL);
		break;
	case 1:
		at = malloc(huge);
		break;
	case 2:
		at = calloc(huge, 16);
		break;
	case 3:
		if (blocks[0].at)
			at = realloc(blocks[0].at, huge);
		break;
	case 4:
		if (posix_memalign(&at, 3, 8) != EINVAL)
			target_fail("posix_memalign took a bad alignment");
		at = NULL;
		break;
	default:
		if (munmap((void *)1, PAGE) == 0 || errno != EINVAL)
			target_fail("munmap took a bad address");
		if (mremap((void *)1, PAGE, PAGE, 0) != MAP_FAILED || errno != EINVAL)
			target_fail("mremap took a bad address");
	}
	if (at)
		target_fail("the impossible was given");
}

static KEEP void step_heap(unsigned what)
{
	size_t i = draw(BLOCKS);

	if (what % 100 == 99)
		fail(what / 100);
	if (!blocks[i].at) {
		take(i, what);
	} else if (what % 4 == 3) {
		change(i);
	} else {
		drop(i);
		if (what % 4 == 2)
			take(i, what >> 4);
	}
}

static KEEP void step_map(unsigned what)
{
	size_t i = draw(REGIONS);
	size_t pages = 1 + draw(30);
	void *moved;

	if (!regions[i].at) {
		regions[i].at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		regions[i].pages = pages;
		if (regions[i].at == MAP_FAILED)
			target_fail("mmap");
		regions[i].at[0] = 'r';
		return;
	}
	if (regions[i].at[0] != 'r')
		target_fail("a mapping does not hold what was written there");
	switch (what % 4) {
	case 0: /* its end, then the rest */
		if (regions[i].pages > 1 && munmap(regions[i].at + PAGE, (regions[i].pages - 1) * PAGE) != 0)
			target_fail("munmap of a part");
		/* fall through */
	case 1:
		if (munmap(regions[i].at, PAGE * (what % 4 == 0 ? 1 : regions[i].pages)) != 0)
			target_fail("munmap");
		regions[i].at = NULL;
		break;
	default:
		moved = mremap(regions[i].at, regions[i].pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
		if (moved == MAP_FAILED)
			target_fail("mremap");
		regions[i].at = moved;
		regions[i].pages = pages;
	}
}

static KEEP void step_break(unsigned what)
{
	intptr_t size = (intptr_t)(PAGE * (1 + what % 5));
	char *start = sbrk(0);

	if (sbrk(size) != start)
		target_fail("sbrk up");
	start[0] = 'b';
	if (sbrk(-size) != start + size)
		target_fail("sbrk down");
}

static KEEP void step(unsigned what)
{
	if (what % 2000 == 1999)
		step_break(what);
	else if (what % 150 == 149)
		step_map(what >> 8);
	else
		step_heap(what);
}

/* --- the ways to get there ---------------------------------------------------------------------------- */

/* Three kinds of frames: plain, one with a frame pointer (alloca), a realigned one. */
static KEEP void go_down(unsigned depth, unsigned what);

static KEEP void frame_with_alloca(unsigned depth, unsigned what)
{
	volatile char *room = alloca(16 + what % 300);

	room[0] = 1;
	go_down(depth, what);
	if (room[0] != 1)
		target_fail("a stack frame was overwritten");
}

static KEEP void frame_realigned(unsigned depth, unsigned what)
{
	_Alignas(64) volatile char room[128];

	if ((uintptr_t)room % 64)
		target_fail("a frame is not aligned");
	room[what % 128] = 2;
	go_down(depth, what);
	if (room[what % 128] != 2)
		target_fail("a stack frame was overwritten");
}

static KEEP void frame_big(unsigned depth, unsigned what)
{
	volatile char room[3000];

	room[what % 3000] = 3;
	go_down(depth, what);
	if (room[what % 3000] != 3)
		target_fail("a stack frame was overwritten");
}

static KEEP void frame_varargs(unsigned depth, ...)
{
	va_list list;

	va_start(list, depth);
	go_down(depth, va_arg(list, unsigned));
	va_end(list);
}

static KEEP void go_down(unsigned depth, unsigned what)
{
	if (depth == 0) {
		step(what);
		return;
	}
	switch ((what >> depth % 16) % 6) {
	case 0:
		frame_with_alloca(depth - 1, what);
		break;
	case 1:
		frame_realigned(depth - 1, what);
		break;
	case 2:
		frame_big(depth - 1, what);
		break;
	case 3:
		frame_varargs(depth - 1, what, 1.5, "x");
		break;
	default:
		go_down(depth - 1, what);
	}
}

static unsigned compare_what;

static int compare(const void *left, const void *right)
{
	step(compare_what++);
	return *(const int *)left - *(const int *)right;
}

static KEEP void by_qsort(unsigned what)
{
	int numbers[8];

	for (int i = 0; i < 8; i++)
		numbers[i] = (int)draw(1000);
	compare_what = what;
	qsort(numbers, 8, sizeof(numbers[0]), compare);
	for (int i = 1; i < 8; i++)
		if (numbers[i - 1] > numbers[i])
			target_fail("qsort did not sort");
}

static void on_signal(int number)
{
	(void)number;
	go_down(2, compare_what++);
}

static KEEP void by_signal(unsigned what)
{
	compare_what = what;
	raise(SIGUSR2);
}

static KEEP void by_library(unsigned what)
{
	if (in_library)
		in_library(step, what, 1 + what % 9);
	else
		go_down(1 + what % 9, what);
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	union {
		void *data;
		void (*code)(leaf_function *leaf, unsigned what, unsigned depth);
	} cast = {library ? dlsym(library, "detlib_call") : NULL};

	if (!cast.data)
		target_fail("the library can't be loaded");
	in_library = cast.code;
}

/* In this order of randomness nothing depends on an address, and no address depends on chance. */
static void without_randomisation(char **argv)
{
	int now = personality(0xffffffff);

	if (now < 0 || (now & ADDR_NO_RANDOMIZE))
		return;
	if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	target_fail("address randomisation can't be turned off");
}

int main(int argc, char **argv)
{
	unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000;
	struct sigaction action;

	without_randomisation(argv);
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGUSR2, &action, NULL);
	for (size_t i = 0; i < 200; i++) /* from before the window */
		take(i, (unsigned)i);
	target_ready_for(LIFE);
	for (unsigned long i = 0; i < steps; i++) {
		unsigned what = draw(1u << 24);

		if (i == steps / 10 && argc > 2)
			load(argv[2]);
		if (i % 1024 == 1023)
			by_signal(what);
		else if (what % 64 == 0)
			by_qsort(what);
		else if (what % 8 == 1)
			by_library(what);
		else
			go_down(what % 8 == 2 ? what / 8 % 60 : what % 12, what);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i].at)
			check_block(i);
	target_done();
	return 0;
}
