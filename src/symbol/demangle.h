/* SPDX-License-Identifier: MIT */
/* demangle.h: symbol names as people write them, by libiberty: C++, Rust (both manglings) and D. */
#ifndef MW_SYMBOL_DEMANGLE_H
#define MW_SYMBOL_DEMANGLE_H

/*
 * The name of an ELF symbol without its version (malloc@@GLIBC_2.2.5) and demangled where it is mangled: with
 * parameters, without return types; clones keep their suffix as "[clone .cold]"; Rust's hash is dropped. A name of no
 * known mangling comes back as it is. Malloc'ed; NULL only without memory.
 */
char *mw_demangle(const char *symbol);

#endif
