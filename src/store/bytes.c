// SPDX-License-Identifier: MIT
/* bytes.c: numbers and strings in bytes (bytes.h). */
#include "store/bytes.h"

#include "store/format.h"

#include <stdlib.h>
#include <string.h>

static void put_bytes(struct mw_store_put *put, const void *bytes, size_t size)
{
	if (put->full || (size_t)(put->end - put->at) < size) {
		put->full = true;
		return;
	}
	if (size)
		memcpy(put->at, bytes, size);
	put->at += size;
}

void mw_store_put_number(struct mw_store_put *put, uint64_t value)
{
	uint8_t bytes[10];
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[size++] = (uint8_t)(value | 0x80);
	bytes[size++] = (uint8_t)value;
	put_bytes(put, bytes, size);
}

void mw_store_put_signed(struct mw_store_put *put, int64_t value)
{
	mw_store_put_number(put, mw_store_zigzag((uint64_t)value));
}

void mw_store_put_string(struct mw_store_put *put, const char *text)
{
	size_t length;

	if (!text) {
		mw_store_put_number(put, 0);
		return;
	}
	length = strnlen(text, MW_STORE_STRING_MAX);
	mw_store_put_number(put, length + 1);
	put_bytes(put, text, length);
	put_bytes(put, "", 1);
}

void mw_store_put_blob(struct mw_store_put *put, const uint8_t *bytes, size_t size)
{
	mw_store_put_number(put, size);
	put_bytes(put, bytes, size);
}

bool mw_store_buffer_room(struct mw_store_buffer *buffer, size_t wanted)
{
	if (wanted < 1)
		wanted = 1;
	if (wanted <= buffer->size)
		return true;
	free(buffer->bytes);
	buffer->bytes = malloc(wanted);
	buffer->size = buffer->bytes ? wanted : 0;
	return buffer->bytes;
}

uint64_t mw_store_get_number(struct mw_store_get *get)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; !get->bad && shift < 64 && get->at < get->end; shift += 7) {
		uint8_t byte = *get->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	get->bad = true;
	return 0;
}

uint32_t mw_store_get_below(struct mw_store_get *get, uint64_t limit)
{
	uint64_t value = mw_store_get_number(get);

	if (value < limit && value <= UINT32_MAX)
		return (uint32_t)value;
	get->bad = true;
	return 0;
}

int64_t mw_store_get_signed(struct mw_store_get *get)
{
	return (int64_t)mw_store_unzigzag(mw_store_get_number(get));
}

const uint8_t *mw_store_get_blob(struct mw_store_get *get, size_t *size)
{
	uint64_t wanted = mw_store_get_number(get);
	const uint8_t *bytes = get->at;

	*size = 0;
	if (get->bad || wanted > (size_t)(get->end - get->at)) {
		get->bad = true;
		return NULL;
	}
	get->at += wanted;
	*size = (size_t)wanted;
	return bytes;
}

const char *mw_store_get_string(struct mw_store_get *get)
{
	uint64_t size = mw_store_get_number(get);
	const uint8_t *text = get->at;

	if (get->bad || size == 0)
		return NULL;
	/* `size` counts the 0 at its end, the only one there may be. */
	if (size > (size_t)(get->end - get->at) || memchr(text, 0, (size_t)size) != text + size - 1) {
		get->bad = true;
		return NULL;
	}
	get->at += size;
	return (const char *)text;
}
