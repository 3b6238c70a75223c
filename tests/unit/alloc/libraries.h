/* SPDX-License-Identifier: MIT */
/* libraries.h: ELF images for the tests of src/alloc. */
#ifndef MW_TEST_LIBRARIES_H
#define MW_TEST_LIBRARIES_H

#include "alloc/families.h"

/* Open a file; fails the test where it makes no image, NULL where there is no such file. */
struct mw_elf *open_image(const char *path);
/* The path of a library as the loader finds it (copied to `path`), or false where it is not installed. */
bool find_library(const char *soname, char *path, size_t size);
/* Both in one; NULL where it is not installed. */
struct mw_elf *open_library(const char *soname);
/* This process's libc: its path, and where address 0 of the file lies. */
const char *own_libc(mw_addr *bias);

#endif
