// SPDX-License-Identifier: MIT
/* demangle.c: calling libiberty with the options that fit each language. */
#include "symbol/demangle.h"

#include <demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Demangling may take time and memory out of proportion to what a hostile file says; real names end well before. */
#define LENGTH_LIMIT 32768

/* D has no mark of its own in libiberty's automatic choice; _Z, _R are C++ and Rust, _D is followed by a number. */
static char *demangle_any(const char *symbol)
{
	const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO;

	if (symbol[0] != '_')
		return NULL;
	if (symbol[1] == 'D')
		return dlang_demangle(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_DLANG);
	/* Without DMGL_RET_POSTFIX and its kin, a template function's return type would stand before its name. */
	return cplus_demangle(symbol, options | DMGL_RET_DROP);
}

/* Is this the Rust hash "::h" and 16 hexadecimal digits, at the end? libiberty leaves those in names that it takes for
 * C++ (a hash of too few different digits). */
static bool is_rust_hash(const char *tail)
{
	return strlen(tail) == 19 && strncmp(tail, "::h", 3) == 0 && strspn(tail + 3, "0123456789abcdef") == 16;
}

static void drop_rust_hash(char *name)
{
	size_t length = strlen(name);

	if (length > 19 && is_rust_hash(name + length - 19))
		name[length - 19] = '\0';
}

char *mw_demangle(const char *symbol)
{
	size_t length = strcspn(symbol, "@");
	char *plain, *demangled;

	/* A name that begins with @ is no version. */
	plain = length ? strndup(symbol, length) : strdup(symbol);
	if (!plain || length > LENGTH_LIMIT)
		return plain;
	demangled = demangle_any(plain);
	if (!demangled)
		return plain;
	free(plain);
	drop_rust_hash(demangled);
	return demangled;
}
