// SPDX-License-Identifier: MIT
/* documents_main.c: memwatch-documents WHAT FILE writes a manual page or a shell's completions (documents.h). */
#include "cli/documents.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	FILE *out;

	if (argc != 3 || !mw_documents_write(argv[1], NULL, NULL)) {
		fputs("usage: memwatch-documents man|bash|zsh|fish FILE\n", stderr);
		return 2;
	}
	out = fopen(argv[2], "we");
	if (!out) {
		perror(argv[2]);
		return EXIT_FAILURE;
	}
	mw_documents_write(argv[1], out, MEMWATCH_VERSION);
	if (fclose(out) == 0)
		return EXIT_SUCCESS;
	perror(argv[2]);
	return EXIT_FAILURE;
}
