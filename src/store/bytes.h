/* SPDX-License-Identifier: MIT */
/* bytes.h: the numbers and strings that records are made of, put into bytes and got out again. */
#ifndef MW_STORE_BYTES_H
#define MW_STORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where to put: what does not fit before `end` is left out, and sets `full`. */
struct mw_store_put {
	uint8_t *at, *end;
	bool full;
};

void mw_store_put_number(struct mw_store_put *put, uint64_t value);
void mw_store_put_signed(struct mw_store_put *put, int64_t value);
/* NULL is distinguished from "". What is longer than MW_STORE_STRING_MAX is cut. */
void mw_store_put_string(struct mw_store_put *put, const char *text);
void mw_store_put_blob(struct mw_store_put *put, const uint8_t *bytes, size_t size);

/* Where to get: what makes no sense or goes beyond `end` sets `bad`, and gives 0 from then on. */
struct mw_store_get {
	const uint8_t *at, *end;
	bool bad;
};

uint64_t mw_store_get_number(struct mw_store_get *get);
/* Bad where it is `limit` or more. */
uint32_t mw_store_get_below(struct mw_store_get *get, uint64_t limit);
int64_t mw_store_get_signed(struct mw_store_get *get);
/* NULL or a string that ends in 0, in the bytes themselves. */
const char *mw_store_get_string(struct mw_store_get *get);
const uint8_t *mw_store_get_blob(struct mw_store_get *get, size_t *size);

/* Bytes that are made anew where more are wanted. */
struct mw_store_buffer {
	uint8_t *bytes;
	size_t size;
};

/* See that there are `wanted`, at least one; what was in them is lost. False without memory: then there are none. */
bool mw_store_buffer_room(struct mw_store_buffer *buffer, size_t wanted);

static inline uint64_t mw_store_zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t mw_store_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

#endif
