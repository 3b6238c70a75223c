// SPDX-License-Identifier: MIT
/* Exceptions that pass through the frame that the recorder puts around a hooked function. */
#include "image.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <unistd.h>

#include "test_exceptions.h"

typedef void *find(void *pc, void *bases);
static find *diverted;

/* The unwinder's own question, diverted as memwatch diverts it. */
extern "C" __attribute__((visibility("default"))) void *_Unwind_Find_FDE(void *pc, void *bases);
extern "C" void *_Unwind_Find_FDE(void *pc, void *bases)
{
	static find *const next = (find *)dlsym(RTLD_NEXT, "_Unwind_Find_FDE");

	return diverted ? diverted(pc, bases) : next(pc, bases);
}

extern "C" void *throwing_new(size_t size);
extern "C" void *throwing_new(size_t size)
{
	if (size > 1000)
		throw std::bad_alloc();
	return malloc(size);
}

struct mark {
	int *count;
	~mark()
	{
		++*count;
	}
};

static int attempt(allocate *hooked, size_t size, int *destroyed)
{
	mark m = {destroyed};

	try {
		free(hooked(size));
		return 0;
	} catch (const std::bad_alloc &) {
		return 1;
	}
}

#define EXPECT(what)                                                                                                   \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                     \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

int main()
{
	allocate *hooked =
		exceptions_begin((void *)throwing_new, dlsym(RTLD_NEXT, "_Unwind_Find_FDE"), (void **)&diverted);
	int destroyed = 0;

	for (int i = 0; i < 100; i++) {
		EXPECT(attempt(hooked, 10, &destroyed) == 0);
		EXPECT(attempt(hooked, 2000, &destroyed) == 1);
	}
	exceptions_sample();
	for (int i = 0; i < 100; i++) {
		EXPECT(attempt(hooked, 10, &destroyed) == 0);
		EXPECT(attempt(hooked, 2000, &destroyed) == 1);
	}
	EXPECT(destroyed == 400);
	/* Turned off while a call is under way: its frame is still ours. */
	exceptions_off();
	EXPECT(attempt(hooked, 2000, &destroyed) == 1);
	exceptions_end();
	return 0;
}
