/* SPDX-License-Identifier: MIT */
/* line.h: text from a target, which may be any bytes; lines in the making, with its names made fit for a terminal; numbers. */
#ifndef MW_OUTPUT_LINE_H
#define MW_OUTPUT_LINE_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MW_UTF8_REPLACEMENT 0xfffdu

/*
 * Decode one character at `text`. Gives how many bytes it takes, 0 at the end. Bytes that are no
 * UTF-8 (overlong forms, surrogates and what lies above U+10FFFF too) come one by one as U+FFFD.
 */
size_t mw_utf8_decode(const char *text, uint32_t *character);
/* Encode one valid character; gives its number of bytes (at most 4), without a NUL. */
size_t mw_utf8_encode(uint32_t character, char out[4]);
/* May it go to a terminal as it is? Not control characters, nor such as reorder or break a line. */
bool mw_utf8_is_printable(uint32_t character);
/* Number of characters: columns, as far as that can be said without asking the terminal. */
static inline size_t mw_utf8_columns(const char *text, size_t size)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; i++)
		columns += (text[i] & 0xc0) != 0x80;
	return columns;
}

/* Zero-initialise; mw_line_deinit frees. Without memory a line stays short and `failed` is set. */
struct mw_line {
	char *data; /* NUL-terminated once anything was added */
	size_t length, capacity;
	bool failed;
};

void mw_line_deinit(struct mw_line *line);
/* Append text of our own. */
void mw_line_printf(struct mw_line *line, const char *format, ...) MW_PRINTF(2, 3);
/* Append a name from the target: no UTF-8 becomes U+FFFD, control characters are shown as \x1b, \u202e. NULL is "?". */
void mw_line_name(struct mw_line *line, const char *name);
/* Append text of our own, and a name. */
static inline void mw_line_put(struct mw_line *line, const char *text, const char *name)
{
	mw_line_printf(line, "%s", text);
	mw_line_name(line, name);
}
/* Columns from byte `from` to the end. */
size_t mw_line_columns(const struct mw_line *line, size_t from);
/* Cut out of the middle of what stands from byte `from` on, so that at most `columns` are left; "…" stands for it. */
void mw_line_elide(struct mw_line *line, size_t from, size_t columns);
/* Forget what stands from byte `from` on. */
void mw_line_cut(struct mw_line *line, size_t from);

/* A path as one word of a shell's command line, quoted where that is needed and of printable characters only; to be
 * freed, NULL without memory. What has others is written as $'\033', which bash, zsh, ksh and busybox know. */
char *mw_shell_word(const char *text);

/* Numbers as people read them. */
struct mw_shown {
	char text[64];
};

struct mw_shown mw_show_count(uint64_t count);              /* 12,345 */
struct mw_shown mw_show_size(uint64_t bytes);               /* 512 B, 1.5 KiB, 12.3 GiB */
struct mw_shown mw_show_change(uint64_t from, uint64_t to); /* +1.5 KiB, -512 B, 0 B */
struct mw_shown mw_show_seconds(double seconds);            /* 850 ns, 1.2 ms, 30.0 s, 5 min 10 s, 3 h 5 min */
struct mw_shown mw_show_percent(double part, double whole); /* 87.2 %; empty where the whole is 0 */

#endif
