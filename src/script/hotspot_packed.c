// SPDX-License-Identifier: MIT
/* hotspot_packed.c: HotSpot's packed streams of numbers (hotspot_parts.h). */
#include "script/hotspot_parts.h"

#define HIGH     192u /* bytes from there on say that more follow */
#define BYTES    5    /* of a number, at most */
#define ESCAPE   0xff /* in a table of lines: two numbers follow, as they are too large for a byte */
#define BCI_BITS 3    /* … else the lower bits are lines, those above are bytecodes */

/* Six bits a byte, the least first. */
bool hotspot_unpack(struct hotspot_packed *packed, uint32_t *value)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < BYTES; i++) {
		uint8_t byte;

		if (packed->at >= packed->end || *packed->at < packed->base)
			return false;
		byte = *packed->at++;
		sum += (byte - packed->base) << (6 * i);
		if (byte < HIGH)
			break;
	}
	*value = sum;
	return true;
}

/* The sign is the lowest bit. */
static bool unpack_signed(struct hotspot_packed *packed, uint32_t *value)
{
	uint32_t raw;

	if (!hotspot_unpack(packed, &raw))
		return false;
	*value = raw >> 1 ^ (0 - (raw & 1));
	return true;
}

uint32_t hotspot_line(struct hotspot_packed table, uint32_t bci)
{
	uint32_t at = 0, line = 0, best_at = 0, best = 0;

	while (table.at < table.end && *table.at) {
		uint8_t byte = *table.at++;

		if (byte == ESCAPE) {
			uint32_t code, lines;

			if (!unpack_signed(&table, &code) || !unpack_signed(&table, &lines))
				break;
			at += code;
			line += lines;
		} else {
			at += byte >> BCI_BITS;
			line += byte & ((1u << BCI_BITS) - 1);
		}
		if (at == bci)
			return line;
		/* The pairs need not be in order. */
		if (at < bci && at >= best_at) {
			best_at = at;
			best = line;
		}
	}
	return best;
}
