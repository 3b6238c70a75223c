/* SPDX-License-Identifier: MIT */
/* utf8.h: text from a target, which may be any bytes. */
#ifndef MW_OUTPUT_UTF8_H
#define MW_OUTPUT_UTF8_H

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
/* A copy in which all that is no UTF-8 is replaced, to be freed; NULL without memory. */
char *mw_utf8_repair(const char *text);
/* May it go to a terminal as it is? Not control characters, nor such as reorder or break a line. */
bool mw_utf8_is_printable(uint32_t character);
/* Number of characters: columns, as far as that can be said without asking the terminal. */
size_t mw_utf8_columns(const char *text, size_t size);

#endif
