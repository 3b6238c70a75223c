/* SPDX-License-Identifier: MIT */
/* hash.h: the bit mixing behind hash tables. */
#ifndef MW_BASE_HASH_H
#define MW_BASE_HASH_H

#include <stdint.h>

/* Addresses differ in few bits and at regular strides; after this every bit depends on all. */
static inline uint64_t mw_hash_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15U;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9U;
	return x ^ (x >> 32);
}

/* The x that mw_hash_mix() made `hash` of: no two have the same, and only 0 has 0. */
static inline uint64_t mw_hash_unmix(uint64_t hash)
{
	uint64_t x = hash ^ (hash >> 32);

	x *= 0x96de1b173f119089U;
	x ^= (x >> 29) ^ (x >> 58);
	x *= 0xf1de83e19937733dU;
	return x ^ (x >> 32);
}

/* Hash of a sequence: `hash` of what came before, then `x`. */
static inline uint64_t mw_hash_add(uint64_t hash, uint64_t x)
{
	hash = (hash ^ x) * 0x9e3779b97f4a7c15U;
	return hash ^ (hash >> 29);
}

/* Spread 32 hash bits evenly over [0, capacity), for any capacity, without a division. */
static inline uint32_t mw_hash_place(uint32_t bits, uint32_t capacity)
{
	return (uint32_t)(((uint64_t)bits * capacity) >> 32);
}

#endif
