/* SPDX-License-Identifier: MIT */
/* function_name.h: what a function's demangled name says. */
#ifndef MW_BASE_FUNCTION_NAME_H
#define MW_BASE_FUNCTION_NAME_H

#include <stdbool.h>

/*
 * Where the name itself begins: past a return type, which a template's function has, and into Rust's "<Type as Trait>::f":
 * at the type, or at the trait where the type is any ("T", "&str").
 */
const char *mw_function_bare(const char *function);
/* Is it of the standard library of C++ or Rust? */
bool mw_function_is_std(const char *function);
/* Does it begin with one of these names, NULL-ended? One that has a $ at its end is to be all of it, but for what a compiler
 * has put behind it ("palloc$": "palloc", "palloc.part.0", "palloc(unsigned long)"). */
bool mw_function_is_of(const char *const *names, const char *function);

#endif
