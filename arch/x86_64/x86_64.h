/* SPDX-License-Identifier: MIT */
/*
 * x86_64.h: the x86-64 row of the architecture table. Callers outside arch/ get it from mw_arch_find().
 */
#ifndef MW_ARCH_X86_64_X86_64_H
#define MW_ARCH_X86_64_X86_64_H

#include <memwatch/arch.h>

extern const struct mw_arch mw_arch_x86_64;

#endif
