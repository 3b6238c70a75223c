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

#endif
