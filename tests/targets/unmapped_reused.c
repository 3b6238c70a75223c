/* SPDX-License-Identifier: MIT */
/*
 * unmapped_reused: has unmapped memory whose addresses it goes on to use: it maps them again, over whatever is there
 * (MAP_FIXED), in one thread, where nobody else can have mapped anything; it unmaps them twice; it asks whether they
 * are mapped. The holes lie in a row below the libraries, larger and smaller ones, and between the last mapping and
 * nothing. Leaks blocks all the while.
 */
#include "target.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOLES  7
#define ROUNDS 5
#define LEAKS  200
#define MIB    (1ul << 20)
#define PAGE   4096ul

static const size_t sizes[HOLES] = {MIB, 4 * MIB, 5 * MIB, 8 * MIB, 64 * MIB, 600 * MIB, 64 * MIB};
static unsigned char *holes[HOLES];
static uint64_t wrong;

static KEEP void holes_leak(void)
{
	void *block = malloc(47);

	OPAQUE(block);
}

static void work(void)
{
	for (unsigned i = 0; i < LEAKS; i++)
		holes_leak();
}

/* Not by way of the C library, every other time. */
static unsigned char *map(void *addr, size_t size, unsigned round)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (addr ? MAP_FIXED : 0);

	if (round % 2)
		return (unsigned char *)syscall(SYS_mmap, addr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	return mmap(addr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
}

static void make(void)
{
	for (unsigned i = 0; i < HOLES; i++) {
		holes[i] = map(NULL, sizes[i], 0);
		/* What keeps them apart; nothing lies below the last. */
		if (holes[i] == MAP_FAILED || (i + 1 < HOLES && map(NULL, PAGE, 0) == MAP_FAILED))
			target_fail("mmap");
	}
	for (unsigned i = 0; i < HOLES; i++)
		munmap(holes[i], sizes[i]);
}

static void use(unsigned round)
{
	unsigned char there;

	for (unsigned i = 0; i < HOLES; i++) {
		for (size_t at = 0; at < sizes[i]; at += PAGE)
			wrong += mincore(holes[i] + at, PAGE, &there) == 0 || errno != ENOMEM;
		if (map(holes[i], sizes[i], round) != holes[i])
			target_fail("mmap at a fixed address");
		for (size_t at = 0; at < sizes[i]; at += 16 * PAGE) {
			wrong += holes[i][at] != 0;
			memset(holes[i] + at, 0xff, 64);
		}
	}
	work();
	for (unsigned i = 0; i < HOLES; i++) {
		for (size_t at = 0; at < sizes[i]; at += 16 * PAGE)
			wrong += holes[i][at] != 0xff;
		munmap(holes[i], sizes[i]);
		munmap(holes[i], sizes[i]);
	}
	work();
}

int main(void)
{
	make();
	target_ready();
	for (unsigned round = 0; round < ROUNDS; round++)
		use(round);
	target_say("wrong", wrong);
	target_say("holes_leak.impacting.count", 2ul * LEAKS * ROUNDS);
	target_say("holes_leak.impacting.bytes", 2ul * LEAKS * ROUNDS * 47);
	target_done();
	return 0;
}
