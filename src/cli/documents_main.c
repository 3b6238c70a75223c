// SPDX-License-Identifier: MIT
/* documents_main.c: memwatch-documents WHAT FILE writes a manual page or a shell's completions (documents.h). */
#include "cli/documents.h"

#include <stdlib.h>
#include <string.h>

static void write_manual(FILE *out)
{
	mw_documents_manual(out, MEMWATCH_VERSION);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*write)(FILE *out);
	} kinds[] = {
		{"man", write_manual},
		{"bash", mw_documents_bash},
		{"zsh", mw_documents_zsh},
		{"fish", mw_documents_fish},
	};

	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		FILE *out;

		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		out = fopen(argv[2], "we");
		if (!out) {
			perror(argv[2]);
			return EXIT_FAILURE;
		}
		kinds[i].write(out);
		if (fclose(out) == 0)
			return EXIT_SUCCESS;
		perror(argv[2]);
		return EXIT_FAILURE;
	}
	fputs("usage: memwatch-documents man|bash|zsh|fish FILE\n", stderr);
	return 2;
}
