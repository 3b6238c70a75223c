/* SPDX-License-Identifier: MIT */
/*
 * ownheap: a program that puts something between its blocks and malloc: an operator new with a header before each
 * block, one call that frees in two ways, and a reallocarray that cannot succeed.
 */
#include "target.h"

#include <cstdlib>
#include <cstring>
#include <new>

static const std::size_t header = 16;
static const uint64_t rounds = 300;
static uint64_t frees;

KEEP void *operator new(std::size_t size)
{
	char *whole = static_cast<char *>(std::malloc(size + header));

	if (!whole)
		throw std::bad_alloc();
	std::memcpy(whole, &size, sizeof(size));
	return whole + header;
}

static KEEP void give_back(void *block)
{
	char *whole = static_cast<char *>(block) - header;

	OPAQUE(whole);
	std::free(whole);
}

KEEP void operator delete(void *block) noexcept
{
	if (block)
		give_back(block);
}

KEEP void operator delete(void *block, std::size_t) noexcept
{
	if (block)
		give_back(block);
}

static KEEP void ownheap_new_delete()
{
	void *block = ::operator new(40);

	OPAQUE(block);
	std::memset(block, 1, 40);
	::operator delete(block);
}

static KEEP void ownheap_new()
{
	void *block = ::operator new(24);

	OPAQUE(block);
	std::memset(block, 2, 24);
}

static KEEP void counting_free(void *block)
{
	frees++;
	std::free(block);
	OPAQUE(block);
}

static KEEP void destroy(void (*how)(void *), void *block)
{
	how(block);
	OPAQUE(block);
}

static KEEP void ownheap_two_ways(uint64_t i)
{
	void *block = std::malloc(90);

	OPAQUE(block);
	destroy(i % 2 ? counting_free : std::free, block);
}

/* The product of count and size is 2^64. */
static KEEP void ownheap_reallocarray()
{
	std::size_t count = std::size_t(1) << 32, size = count;
	void *block = std::malloc(70);

	OPAQUE(count);
	OPAQUE(size);
	OPAQUE(block);
	if (!block || reallocarray(block, count, size))
		target_fail("reallocarray gave the impossible");
	std::memset(block, 3, 70);
}

int main()
{
	target_ready();
	for (uint64_t i = 0; i < rounds; i++) {
		ownheap_new_delete();
		if (i % 10 == 0)
			ownheap_new();
		ownheap_two_ways(i);
		ownheap_reallocarray();
	}
	if (frees != rounds / 2)
		target_fail("frees");
	target_say("ownheap_new_delete.size.count", rounds);
	target_say("ownheap_new_delete.transient.count", rounds);
	target_say("ownheap_new.size.count", rounds / 10);
	target_say("ownheap_new.impacting.count", rounds / 10);
	target_say("ownheap_two_ways.size.count", rounds);
	target_say("ownheap_two_ways.transient.count", rounds);
	target_say("ownheap_two_ways.transient.bytes", rounds * 90);
	target_say("ownheap_reallocarray.impacting.count", rounds);
	target_say("ownheap_reallocarray.impacting.bytes", rounds * 70);
	target_say("heap.size.count", rounds * 3 + rounds / 10);
	target_say("heap.impacting.count", rounds + rounds / 10);
	target_say("heap.aofi.count", 0);
	target_done();
	return 0;
}
