/* SPDX-License-Identifier: MIT */
/*
 * jitted [MAP|-]: allocates from code in no file, as a JIT compiler's does: main → code made here → native_alloc →
 * malloc. Two pieces of such code are told of in a perf map (by default /tmp/perf-PID.map; - for none), one by two
 * names, of which the later counts; a third has no name. The map is removed at the end.
 */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 100
#define PIECE  64 /* bytes of memory for each piece of code */

typedef void *made_code(void *(*function)(size_t), size_t size);

/* What calls the function with the size, after a frame of its own. */
static const unsigned char code[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0x48, 0x89, 0xf8, /* mov %rdi,%rax */
	0x48, 0x89, 0xf7, /* mov %rsi,%rdi */
	0xff, 0xd0,       /* call *%rax */
	0x5d,             /* pop %rbp */
	0xc3,             /* ret */
};

static void *kept[3 * ROUNDS];

static KEEP void *native_alloc(size_t size)
{
	void *block = malloc(size);

	OPAQUE(block);
	return block;
}

/* Memory with `count` copies of the code. */
static unsigned char *make(unsigned count)
{
	unsigned char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		target_fail("mmap");
	for (unsigned i = 0; i < count; i++)
		memcpy(memory + i * PIECE, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		target_fail("mprotect");
	return memory;
}

static void tell(const char *path, const unsigned char *memory)
{
	FILE *map = fopen(path, "w");

	if (!map)
		target_fail("the perf map can't be written");
	fprintf(map, "%lx %x LazyCompile:~stale /app/@scope/old.js:1\n", (unsigned long)(uintptr_t)memory, 2 * PIECE);
	fprintf(map, "%lx %x LazyCompile:*hot /app/@scope/main.js:12:3\n", (unsigned long)(uintptr_t)memory, PIECE);
	fprintf(map, "%lx %x \x1b[31mred\x9b\xff\n", (unsigned long)(uintptr_t)(memory + PIECE), PIECE);
	fclose(map);
}

int main(int argc, char **argv)
{
	unsigned char *memory = make(3);
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (argc > 1)
		snprintf(path, sizeof(path), "%s", argv[1]);
	if (strcmp(path, "-") != 0)
		tell(path, memory);
	target_ready();
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned j = 0; j < 3; j++) {
			void *at = memory + j * PIECE;
			made_code *made;

			memcpy(&made, &at, sizeof(made));
			kept[3 * i + j] = made(native_alloc, 100 + j);
			OPAQUE(kept[3 * i + j]);
		}
	}
	target_say("hot.address", (uintptr_t)memory);
	target_done();
	if (strcmp(path, "-") != 0)
		unlink(path);
	return 0;
}
