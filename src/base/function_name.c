// SPDX-License-Identifier: MIT
/* function_name.c: see function_name.h. */
#include "base/function_name.h"

#include <string.h>

/* <alloc::vec::Vec<T> as …>::push is the type's; <T as alloc::slice::…>::to_vec is the trait's. */
static const char *name_of_impl(const char *type)
{
	const char *trait = strstr(type, " as "), *path = strstr(type, "::");

	return trait && path && trait < path ? trait + strlen(" as ") : type;
}

const char *mw_function_bare(const char *function)
{
	const char *name = function;
	int depth = 0;

	if (strncmp(function, "operator", 8) == 0)
		return function;
	for (const char *at = function; *at && *at != '('; at++) {
		depth += *at == '<';
		depth -= *at == '>';
		if (*at == ' ' && depth == 0)
			name = strncmp(at + 1, "operator", 8) == 0 ? name : at + 1;
		if (strncmp(at, "operator", 8) == 0)
			break;
	}
	return *name == '<' ? name_of_impl(name + 1) : name;
}

/* Names of Rust's have none at their end, and those of C++ that are compiled have. */
static bool has_parameters(const char *function)
{
	const char *end = strrchr(function, ')');

	return end && !strpbrk(end, ">:");
}

static bool begins_with_any(const char *name, const char *const *beginnings)
{
	while (*beginnings && strncmp(name, *beginnings, strlen(*beginnings)) != 0)
		beginnings++;
	return *beginnings;
}

bool mw_function_is_std(const char *function)
{
	static const char *const both[] = {"std::", "__gnu_cxx::", NULL};
	/* Namespaces of C++ programs have such names too. */
	static const char *const rust[] = {"alloc::", "core::", "hashbrown::", NULL};
	const char *name = mw_function_bare(function);

	return begins_with_any(name, both) || (begins_with_any(name, rust) && !has_parameters(function));
}

bool mw_function_is_of(const char *const *names, const char *function)
{
	const char *name = mw_function_bare(function);

	for (; *names; names++) {
		size_t length;

		/* Most names differ from the first letter on. */
		if (**names != *name)
			continue;
		length = strcspn(*names, "$");
		if (strncmp(name, *names, length) == 0 && (!(*names)[length] || strchr("(.", name[length])))
			return true;
	}
	return false;
}
