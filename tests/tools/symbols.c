// SPDX-License-Identifier: MIT
/*
 * symbols FILE: reads addresses of an ELF file (hexadecimal, one a line) from standard input, and writes for each what
 * memwatch's symbolizer says of it: a line "= ADDRESS", then one for each frame, innermost first, of function, file and
 * line with tabs between; what is not known is "?" or 0.
 * symbols --demangle: reads names, and writes them as memwatch shows them.
 */
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(struct mw_error *err)
{
	fprintf(stderr, "symbols: %s\n", mw_error_text(err));
	mw_error_destroy(err);
	return 1;
}

/* The next line of standard input without its end, or NULL; good until the next. */
static char *next_line(void)
{
	static char *line;
	static size_t capacity;
	ssize_t length = getline(&line, &capacity, stdin);

	if (length <= 0)
		return NULL;
	if (line[length - 1] == '\n')
		line[length - 1] = '\0';
	return line;
}

static int demangle_names(void)
{
	for (const char *line; (line = next_line());) {
		char *name = mw_demangle(line);

		if (!name)
			return 1;
		puts(name);
		free(name);
	}
	return 0;
}

static struct mw_error *resolve_all(struct mw_symbolizer *symbolizer)
{
	for (const char *line; (line = next_line());) {
		mw_addr address = strtoull(line, NULL, 16);
		const struct mw_symbol_frame *frames;
		size_t count;

		MW_TRY(mw_symbolizer_resolve(symbolizer, 0, address, false, &frames, &count));
		printf("= %" PRIx64 "\n", address);
		for (size_t i = 0; i < count; i++)
			printf("%s\t%s\t%u\n", frames[i].function ? frames[i].function : "?",
			       frames[i].file ? frames[i].file : "?", frames[i].line);
	}
	return NULL;
}

static struct mw_error *load(struct mw_modules *modules, const char *path)
{
	struct mw_elf *elf = NULL;
	struct mw_error *err;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	err = mw_elf_open(fd, path, &elf);
	if (fd >= 0)
		close(fd);
	return err ? err : mw_modules_add(modules, path, 0, elf);
}

int main(int argc, char **argv)
{
	struct mw_symbolizer *symbolizer = NULL;
	struct mw_modules *modules = NULL;
	struct mw_error *err;

	if (argc != 2) {
		fprintf(stderr, "usage: symbols FILE|--demangle\n");
		return 2;
	}
	if (strcmp(argv[1], "--demangle") == 0)
		return demangle_names();
	err = mw_modules_create(&modules);
	if (!err)
		err = load(modules, argv[1]);
	if (!err)
		err = mw_symbolizer_create(modules, &symbolizer);
	if (!err)
		err = resolve_all(symbolizer);
	mw_symbolizer_destroy(symbolizer);
	mw_modules_destroy(modules);
	return err ? fail(err) : 0;
}
