// SPDX-License-Identifier: MIT
/* reserve.c: see reserve.h. */
#include "base/reserve.h"

#include <stdatomic.h>
#include <sys/mman.h>

static _Atomic(void *) reserve;
static atomic_size_t size;

void mw_reserve_keep(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	mw_reserve_release();
	atomic_store(&size, bytes);
	atomic_store(&reserve, memory);
}

void mw_reserve_release(void)
{
	void *memory = atomic_exchange(&reserve, NULL);

	if (memory)
		munmap(memory, atomic_load(&size));
}
