// SPDX-License-Identifier: MIT
/*
 * portable.c: what glibc can't do in a statically linked program (MEMWATCH_STATIC) where the system's glibc is another
 * one than memwatch was built with: load libraries, and with them its modules for users' names and for character sets.
 * The linker puts these functions in the place of glibc's (--wrap).
 */
#include <locale.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__wrap_dlopen(const char *file, int flags);
struct passwd *__wrap_getpwnam(const char *name);
struct passwd *__wrap_getpwuid(uid_t uid);
char *__wrap_setlocale(int category, const char *locale);
char *__real_setlocale(int category, const char *locale);

/* libdw looks for libdebuginfod, and does without it. */
void *__wrap_dlopen(const char *file, int flags)
{
	(void)file;
	(void)flags;
	return NULL;
}

/* What is returned lasts until the next call. Users who are in no file have no name. */
static struct passwd *find_user(const char *name, uid_t uid)
{
	static char text[4096];
	static struct passwd entry;
	struct passwd *found = NULL;
	FILE *file = fopen("/etc/passwd", "re");

	if (!file)
		return NULL;
	while (fgetpwent_r(file, &entry, text, sizeof(text), &found) == 0 &&
	       (name ? strcmp(found->pw_name, name) != 0 : found->pw_uid != uid))
		found = NULL;
	fclose(file);
	return found;
}

struct passwd *__wrap_getpwnam(const char *name)
{
	return find_user(name, 0);
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
	return find_user(NULL, uid);
}

/* UTF-8 is built in. In any other character set memwatch writes ASCII. */
char *__wrap_setlocale(int category, const char *locale)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	if (!locale || *locale)
		return __real_setlocale(category, locale);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (!value || !*value)
			continue;
		if (strstr(value, "UTF-8") || strstr(value, "utf8"))
			return __real_setlocale(category, "C.UTF-8");
		break;
	}
	return __real_setlocale(category, "C");
}
