// SPDX-License-Identifier: MIT
/* documents_main.c: memwatch-documents WHAT FILE writes a manual page or a shell's completions (documents.h). */
#include "cli/documents.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	FILE *out = argc == 3 ? fopen(argv[2], "we") : NULL;
	bool known;

	if (argc == 3 && !out) {
		perror(argv[2]);
		return EXIT_FAILURE;
	}
	known = out && mw_documents_write(argv[1], out, MEMWATCH_VERSION);
	if (out && fclose(out) != 0) {
		perror(argv[2]);
		return EXIT_FAILURE;
	}
	if (known)
		return EXIT_SUCCESS;
	fputs("usage: memwatch-documents man|bash|zsh|fish FILE\n", stderr);
	return 2;
}
