/* SPDX-License-Identifier: MIT */
/* rescue_layout.h: numbers of memwatch/rescue.h, for the assembler; rescue.c checks that they are the same. */
#ifndef MW_ARCH_X86_64_RESCUE_LAYOUT_H
#define MW_ARCH_X86_64_RESCUE_LAYOUT_H

#define MW_RESCUE_ASM_MAGIC  0x6575637365722f77
#define MW_RESCUE_ASM_LAYOUT 4
#define MW_RESCUE_ASM_CODE   16384

#endif
