/* SPDX-License-Identifier: MIT */
/* vm: mappings made and given back in whole and in part, moved, replaced, and the program break. In pages. */
#include "target.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

static uint64_t mapped, unmapped, before_unmapped;

static KEEP char *vm_map(size_t pages)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		target_fail("mmap");
	return at;
}

static KEEP void vm_unmap(char *at, size_t pages)
{
	if (munmap(at, pages * PAGE) != 0)
		target_fail("munmap");
}

static KEEP char *vm_remap(char *at, size_t from, size_t to, int flags)
{
	char *moved = mremap(at, from * PAGE, to * PAGE, flags);

	if (moved == MAP_FAILED)
		target_fail("mremap");
	return moved;
}

static KEEP void vm_map_over(char *at, size_t pages)
{
	if (mmap(at, pages * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		target_fail("mmap fixed");
}

static KEEP void vm_break(intptr_t pages)
{
	if (sbrk(pages * (intptr_t)PAGE) == (void *)-1)
		target_fail("sbrk");
}

int main(void)
{
	char *early = vm_map(20), *whole, *part, *grown;

	/* A guard on either side keeps the kernel from merging it with a neighbour. */
	if (mprotect(early, PAGE, PROT_NONE) != 0 || mprotect(early + 19 * PAGE, PAGE, PROT_NONE) != 0)
		target_fail("mprotect");
	target_ready();

	whole = vm_map(10);
	vm_unmap(whole, 10);
	mapped += 10, unmapped += 10;

	part = vm_map(16);
	vm_unmap(part + 4 * PAGE, 4); /* a hole in the middle */
	vm_unmap(part, 2);            /* the front */
	mapped += 16, unmapped += 6;

	/* 32 pages in three pieces, given back across pieces in one call. */
	part = vm_map(32);
	vm_unmap(part + 8 * PAGE, 8);
	vm_unmap(part, 32);
	mapped += 32, unmapped += 32;

	/* mremap gives back the old and hands out the new, also in place. */
	grown = vm_map(4);
	grown = vm_remap(grown, 4, 12, MREMAP_MAYMOVE);
	grown = vm_remap(grown, 12, 6, 0);
	mapped += 4 + 12 + 6, unmapped += 4 + 12;

	whole = vm_map(8);
	vm_map_over(whole + 2 * PAGE, 3);
	mapped += 8 + 3, unmapped += 3;

	vm_unmap(early + 1 * PAGE, 18);
	before_unmapped += 18;

	if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	    munmap((void *)1, PAGE) == 0 || mremap(grown, 6 * PAGE, (size_t)1 << 50, MREMAP_MAYMOVE) != MAP_FAILED)
		target_fail("the impossible was mapped");

	vm_break(16);
	vm_break(8);
	vm_break(-12);
	mapped += 24, unmapped += 12;

	target_say("vm.size.bytes", mapped * PAGE);
	target_say("vm.transient.bytes", unmapped * PAGE);
	target_say("vm.impacting.bytes", (mapped - unmapped) * PAGE);
	target_say("vm.aofi.bytes", before_unmapped * PAGE);
	target_say("vm_map.size.bytes", 70 * PAGE);
	target_say("vm_remap.size.bytes", 18 * PAGE);
	target_say("vm_remap.impacting.bytes", 6 * PAGE);
	target_say("vm_map_over.impacting.bytes", 3 * PAGE);
	target_say("vm_break.impacting.bytes", 12 * PAGE);
	target_say("heap.size.count", 0);
	target_done();
	return 0;
}
