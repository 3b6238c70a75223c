/* SPDX-License-Identifier: MIT */
/* rows_image.h: small files made up of nothing but frame descriptions. */
#ifndef TEST_ROWS_IMAGE_H
#define TEST_ROWS_IMAGE_H

#include "symbol/elf_image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_CODE      0x10000u /* vaddr of the executable segment … */
#define IMAGE_CODE_SIZE 0x200000000u
#define IMAGE_EH        0x1000u /* … and of .eh_frame, also its place in the file */
#define IMAGE_DEBUG     0x3000u /* where .debug_frame is in the file */
#define IMAGE_SIZE      0x5000u

/* A section being written. */
struct image_section {
	uint8_t *bytes; /* in the image */
	uint64_t vaddr; /* of what is written first */
	size_t size, room;
	bool debug, wide;
	size_t cie; /* where the last one begins */
	bool augmented;
};

struct image {
	uint8_t bytes[IMAGE_SIZE];
	struct image_section eh, debug;
	uint16_t type;   /* ET_DYN */
	bool compressed; /* .debug_frame is */
	bool go;         /* Go's linker has made it */
};

/* Instructions: IMAGE_PROGRAM(bytes …) for the parameters `program, size`. */
#define IMAGE_PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
/* CFA = rsp + 8, return address below it. */
#define IMAGE_USUAL IMAGE_PROGRAM(0x0c, 7, 8, 0x90, 1)

void image_init(struct image *image);
/* A CIE whose version is 1 in .eh_frame, 4 in .debug_frame. `letters`: its augmentation, "" or "z…" of R, S and others
 * without data. */
void image_cie(struct image_section *section, const char *letters, const uint8_t *program, size_t size);
/* A description that refers to the last CIE. */
void image_describe(struct image_section *section, uint64_t start, uint64_t length, const uint8_t *program,
		    size_t size);
void image_put(struct image_section *section, uint64_t value, size_t size);
/* Compress .debug_frame by ELFCOMPRESS_ZLIB or IMAGE_ZSTD. */
#define IMAGE_ZSTD 2u
void image_compress(struct image *image, uint32_t type);
/* Open what is there by now. */
struct mw_elf *image_open(struct image *image);

#endif
