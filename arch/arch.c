// SPDX-License-Identifier: MIT
/* arch.c: the table of instruction sets (include/memwatch/arch.h). */
#include <memwatch/arch.h>

#include "arch/x86_64/x86_64.h"

/* One row an instruction set. */
static const struct mw_arch *const architectures[] = {
	&mw_arch_x86_64,
};

const struct mw_arch *mw_arch_find(uint16_t elf_machine)
{
	for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
		if (architectures[i]->elf_machine == elf_machine)
			return architectures[i];
	}
	return NULL;
}
