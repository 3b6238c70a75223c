/* SPDX-License-Identifier: MIT */
/* child.h: a live child to look at, and its table of modules. */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

#include "symbol/modules.h"

#include <stdio.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	FILE *in, *out;
	mw_addr function; /* where its sample_function lies */
};

/* Runs in the child before exec; false: the child ends. */
typedef bool (*child_setup)(void *context);

/* Start a program that says "ready ADDRESS". `setup` may be NULL. False where it did not come up. */
bool child_start(struct child *child, const char *path, child_setup setup, void *context);
/* Send a line; the child must answer "ok". */
void child_tell(struct child *child, const char *command, const char *argument);
void child_end(struct child *child);

/* Take in the child's present mappings. */
void child_refresh(const struct child *child, struct mw_modules *modules, size_t *added, size_t *removed);
/* The module that holds the child's sample_function; checks that the image agrees on where it is. */
struct mw_module *child_program(const struct child *child, struct mw_modules *modules);

#endif
