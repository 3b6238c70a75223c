// SPDX-License-Identifier: MIT
/* utf8.c: decoding that cannot be led astray, see utf8.h. */
#include "output/utf8.h"

#include <stdlib.h>
#include <string.h>

size_t mw_utf8_decode(const char *text, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xc2 ? 0 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	uint32_t value;

	if (!bytes[0])
		return 0;
	if (length == 1) {
		*character = bytes[0];
		return 1;
	}
	*character = MW_UTF8_REPLACEMENT;
	if (!length || bytes[0] > 0xf4)
		return 1;
	value = bytes[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		/* The NUL at the end is no continuation byte, so nothing behind it is read. */
		if ((bytes[i] & 0xc0) != 0x80)
			return 1;
		value = value << 6 | (bytes[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 1;
	*character = value;
	return length;
}

size_t mw_utf8_encode(uint32_t character, char out[4])
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	for (size_t i = length - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (character & 0x3f));
		character >>= 6;
	}
	out[0] = (char)(lead[length] | character);
	return length;
}

char *mw_utf8_repair(const char *text)
{
	/* A bad byte becomes three. */
	char *copy = malloc(strlen(text) * 3 + 1);
	size_t length = 0, taken;
	uint32_t character;

	if (!copy)
		return NULL;
	for (; (taken = mw_utf8_decode(text, &character)) != 0; text += taken) {
		char encoded[4];
		size_t size = mw_utf8_encode(character, encoded);

		memcpy(copy + length, encoded, size);
		length += size;
	}
	copy[length] = '\0';
	return copy;
}

bool mw_utf8_is_printable(uint32_t character)
{
	/* C0 and C1 controls and DEL drive terminals. */
	if (character < 0x20 || (character >= 0x7f && character < 0xa0))
		return false;
	/* Marks and overrides of direction, line and paragraph separators make a line read as another. */
	if (character >= 0x200b && character <= 0x200f)
		return false;
	if (character >= 0x2028 && character <= 0x202e)
		return false;
	if (character >= 0x2060 && character <= 0x206f)
		return false;
	return character != 0xfeff && character != 0x061c;
}

size_t mw_utf8_columns(const char *text, size_t size)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; i++)
		columns += (text[i] & 0xc0) != 0x80;
	return columns;
}
