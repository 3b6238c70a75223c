/* SPDX-License-Identifier: MIT */
/*
 * cxxnew own|library: C++ allocations. With its own operator new and delete (one of which throws
 * bad_alloc through its callers) in the build with CXXNEW_OWN, with libstdc++'s otherwise.
 */
#include "target.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#ifdef CXXNEW_OWN
static uint64_t calls;

KEEP void *operator new(std::size_t size)
{
	calls++;
	if (size == 123456789)
		throw std::bad_alloc();
	void *block = std::malloc(size + 8);
	if (!block)
		throw std::bad_alloc();
	return block;
}

KEEP void operator delete(void *block) noexcept
{
	std::free(block);
}

KEEP void operator delete(void *block, std::size_t) noexcept
{
	std::free(block);
}
#endif

struct alignas(64) wide {
	char bytes[192];
};

static KEEP void cxx_leak()
{
	int *number = new int(1);

	OPAQUE(number);
}

static KEEP void cxx_array()
{
	char *array = new char[777];

	OPAQUE(array);
	delete[] array;
}

static KEEP void cxx_containers()
{
	std::vector<int> numbers;
	numbers.reserve(1000);
	int *data = numbers.data();

	OPAQUE(data);
	std::string text(500, 'x');
	const char *characters = text.data();
	OPAQUE(characters);
}

static KEEP void cxx_wide()
{
	wide *one = new wide;

	OPAQUE(one);
	delete one;
}

static KEEP int cxx_throws()
{
	try {
		std::size_t size = 123456789;
#ifndef CXXNEW_OWN
		size = std::size_t(1) << 62;
#endif
		OPAQUE(size);
		void *block = ::operator new(size);
		OPAQUE(block);
	} catch (const std::bad_alloc &) {
		return 1;
	}
	return 0;
}

static KEEP void cxx_nothrow()
{
	std::size_t size = std::size_t(1) << 62;

	OPAQUE(size);
	if (::operator new(size, std::nothrow))
		target_fail("operator new gave the impossible");
}

int main()
{
	const uint64_t rounds = 100;
	uint64_t caught = 0;
	wide *older[50];

	for (wide *&block : older)
		block = new wide;
	target_ready();
	for (wide *block : older)
		delete block;
	for (uint64_t i = 0; i < rounds; i++) {
		cxx_leak();
		cxx_array();
		cxx_containers();
		cxx_wide();
		cxx_nothrow();
		caught += static_cast<uint64_t>(cxx_throws());
	}
	if (caught != rounds)
		target_fail("an exception was lost");
	target_say("cxx_leak.impacting.count", rounds);
#ifdef CXXNEW_OWN
	target_say("cxx_leak.impacting.bytes", rounds * sizeof(int));
	target_say("operator_new_calls", calls);
#else
	target_say("cxx_leak.impacting.bytes", rounds * sizeof(int));
#endif
	target_say("cxx_array.transient.count", rounds);
	target_say("cxx_array.transient.bytes", rounds * 777);
	target_say("cxx_containers.transient.count", rounds * 2);
	target_say("cxx_containers.transient.bytes", rounds * (4000 + 501));
	target_say("cxx_wide.transient.count", rounds);
	target_say("cxx_nothrow.impacting.count", 0);
	target_say("heap.impacting.count", rounds);
	target_say("heap.aofi.count", sizeof(older) / sizeof(older[0]));
	target_done();
	return 0;
}
