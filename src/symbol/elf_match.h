/* SPDX-License-Identifier: MIT */
/* elf_match.h: does an image lie in a process's memory, and where? */
#ifndef MW_SYMBOL_ELF_MATCH_H
#define MW_SYMBOL_ELF_MATCH_H

#include "proc/maps.h"
#include "symbol/elf_image.h"

/*
 * The bias that a mapping of the image's file gives it: the segment that holds the mapping's file
 * offset (an executable one is preferred where pages are shared by two) tells the address wanted.
 * False where no segment does.
 */
bool mw_elf_bias(const struct mw_elf *elf, const struct mw_mapping *mapping, uint64_t *bias);

/* Can a mapping of the image's file belong to the load with this bias? */
bool mw_elf_fits(const struct mw_elf *elf, const struct mw_mapping *mapping, uint64_t bias);

enum mw_elf_match {
	MW_ELF_DIFFERENT, /* the memory holds something else */
	MW_ELF_LIKE,      /* the headers agree; nothing more could be compared */
	MW_ELF_SAME,      /* headers and build-id agree */
	MW_ELF_UNKNOWN,   /* the memory can't be read */
};

/* Compare headers and build-id with what a process has in memory. It may run meanwhile. */
enum mw_elf_match mw_elf_match(const struct mw_elf *elf, pid_t tid, uint64_t bias);

#endif
