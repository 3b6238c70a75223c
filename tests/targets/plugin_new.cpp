/* SPDX-License-Identifier: MIT */
/* plugin_new: a library with an operator new and delete of its own, over a static array. */
extern "C" {
#include "plugin.h"
}
#include "target.h"

#include <cstdlib>
#include <new>

static char region[1 << 20] __attribute__((aligned(16)));
static std::size_t top;

KEEP void *operator new(std::size_t size)
{
	std::size_t at = __atomic_fetch_add(&top, (size + 15) & ~static_cast<std::size_t>(15), __ATOMIC_RELAXED);

	if (at > sizeof(region) - size)
		throw std::bad_alloc();
	return region + at;
}

KEEP void operator delete(void *block) noexcept
{
	OPAQUE(block);
}

KEEP void operator delete(void *block, std::size_t) noexcept
{
	OPAQUE(block);
}

struct fifty_eight {
	char bytes[58];
};

struct fifty_nine {
	char bytes[59];
};

KEEP void plugin_leak(void)
{
	fifty_eight *block = new fifty_eight;

	OPAQUE(block);
}

KEEP void plugin_pair(void)
{
	fifty_nine *block = new fifty_nine;

	OPAQUE(block);
	delete block;
}
