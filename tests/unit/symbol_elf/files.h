/* SPDX-License-Identifier: MIT */
/* files.h: files for tests to read, copy and spoil. */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include "symbol/elf_image.h"

#include <stddef.h>
#include <stdint.h>

/* The bytes of a file, malloc'ed. Fails the test where it can't be read. */
uint8_t *file_read(const char *path, size_t *size);
/* Write a file (made anew, mode 0755). */
void file_write(const char *path, const void *bytes, size_t size);
void file_copy(const char *from, const char *to);

/* Open an image by path; fails the test on an error. */
struct mw_elf *elf_of(const char *path);
/* The address of a symbol in the file, or 0. */
uint64_t symbol_of(struct mw_elf *elf, const char *name);

#endif
