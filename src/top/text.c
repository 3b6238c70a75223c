// SPDX-License-Identifier: MIT
/* text.c: see text.h. */
#include "top/text.h"

#include "output/line.h"
#include "output/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define MARK "\xe2\x80\xa6" /* … */

/* Scripts that are written from right to left: a terminal might reorder what stands beside them. */
static bool is_right_to_left(uint32_t c)
{
	return (c >= 0x590 && c <= 0x8ff) || (c >= 0xfb1d && c <= 0xfdff) || (c >= 0xfe70 && c <= 0xfeff) ||
	       (c >= 0x10800 && c <= 0x10fff) || (c >= 0x1e800 && c <= 0x1efff);
}

/* A character as it is shown; returns its columns. `size` is set to its bytes, at most 12. */
static size_t show(uint32_t c, bool utf8, char out[16], size_t *size)
{
	int width = c < 0x80 ? 1 : utf8 ? wcwidth((wchar_t)c) : -1;

	if (c == MW_UTF8_REPLACEMENT && !utf8)
		c = '?';
	if (c == MW_UTF8_REPLACEMENT || (c == '?' && width < 1))
		width = 1;
	if (mw_utf8_is_printable(c) && !is_right_to_left(c) && width > 0) {
		*size = mw_utf8_encode(c, out);
		return (size_t)width;
	}
	*size = (size_t)snprintf(out, 16, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%06x", (unsigned)c);
	return *size;
}

size_t mw_top_cut(const char *text, size_t columns, bool utf8, char *out)
{
	size_t used = 0, length = 0, mark_used = 0, mark_length = 0, taken, size;
	uint32_t c;

	columns = columns > MW_TOP_WIDTH_MAX ? MW_TOP_WIDTH_MAX : columns;
	for (; (taken = mw_utf8_decode(text, &c)) != 0; text += taken) {
		char piece[16];
		size_t width = show(c, utf8, piece, &size);

		if (used + width > columns) {
			length = mark_length;
			used = mark_used;
			if (columns) {
				memcpy(out + length, utf8 ? MARK : "~", utf8 ? sizeof(MARK) - 1 : 1);
				length += utf8 ? sizeof(MARK) - 1 : 1;
				used++;
			}
			break;
		}
		memcpy(out + length, piece, size);
		length += size;
		used += width;
		if (used < columns) {
			mark_length = length;
			mark_used = used;
		}
	}
	out[length] = '\0';
	return used;
}

bool mw_top_layout_make(int width, int height, struct mw_top_layout *out)
{
	static const struct {
		int at_least, width;
		size_t offset;
	} columns[] = {
		{0, 11, offsetof(struct mw_top_layout, bytes)},   {34, 12, offsetof(struct mw_top_layout, growth)},
		{46, 10, offsetof(struct mw_top_layout, blocks)}, {64, 9, offsetof(struct mw_top_layout, rate)},
		{72, 5, offsetof(struct mw_top_layout, kind)},
	};

	*out = (struct mw_top_layout){.name = width};
	if (width < MW_TOP_WIDTH_MIN || height < MW_TOP_HEIGHT_MIN)
		return false;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (width >= columns[i].at_least) {
			memcpy((char *)out + columns[i].offset, &columns[i].width, sizeof(columns[i].width));
			out->name -= columns[i].width;
		}
	out->header = height >= 12 ? 3 : height >= 8 ? 2 : 1;
	out->head = height >= 7;
	out->foot = true;
	out->rows = height - out->header - out->head - out->foot;
	return true;
}

void mw_top_show_growth(double bytes_per_second, char *out, size_t size)
{
	bool falls = bytes_per_second < 0;
	struct mw_shown shown = mw_show_size((uint64_t)(falls ? -bytes_per_second + 0.5 : bytes_per_second + 0.5));

	(void)snprintf(out, size, "%s%s", strcmp(shown.text, "0 B") == 0 ? "" : falls ? "-" : "+", shown.text);
}

void mw_top_show_rate(double per_second, char *out, size_t size)
{
	if (per_second <= 0)
		(void)snprintf(out, size, "0");
	else if (per_second < 9.95)
		(void)snprintf(out, size, "%.1f", per_second);
	else if (per_second < 9999.5)
		(void)snprintf(out, size, "%.0f", per_second);
	else if (per_second < 9.9995e6)
		(void)snprintf(out, size, "%.0fk", per_second / 1e3);
	else
		(void)snprintf(out, size, "%.0fM", per_second / 1e6);
}

void mw_top_show_time(double seconds, char *out, size_t size)
{
	uint64_t whole = (uint64_t)seconds;

	(void)snprintf(out, size, "%u:%02u:%02u", (unsigned)(whole / 3600), (unsigned)(whole / 60 % 60),
		       (unsigned)(whole % 60));
}

void mw_top_show_moment(uint64_t ns, char *out, size_t size)
{
	uint64_t us = ns / 1000 + (ns % 1000 != 0);

	(void)snprintf(out, size, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}
