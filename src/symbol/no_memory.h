/* SPDX-License-Identifier: MIT */
/* no_memory.h: libdw can't say that it has found no memory. It ends the program, or calls this. */
#ifndef MW_SYMBOL_NO_MEMORY_H
#define MW_SYMBOL_NO_MEMORY_H

/* What is called there, from within calls of a symbolizer; it must not return, and what the symbolizer works on may not
 * be touched any more. NULL: libdw prints a message and ends the program. */
extern void (*__attribute__((noreturn)) mw_symbol_no_memory)(void);

#endif
