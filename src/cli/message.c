// SPDX-License-Identifier: MIT
/* message.c: what memwatch says on standard error. */
#include "cli/message.h"

#include "output/utf8.h"

#include <errno.h>

void mw_cli_put_clean(FILE *out, const char *text)
{
	uint32_t character;

	for (size_t taken; (taken = mw_utf8_decode(text, &character)) != 0; text += taken) {
		char encoded[4];
		size_t size = mw_utf8_encode(character, encoded);

		if (mw_utf8_is_printable(character))
			fwrite(encoded, 1, size, out);
		else
			fputc('?', out);
	}
}

enum mw_cli_status mw_cli_report_error(struct mw_error *err)
{
	enum mw_cli_status status;
	char line[BUFSIZ];

	if (!err)
		return MW_CLI_DONE;
	status = mw_error_kind(err) == MW_ERROR_USAGE ? MW_CLI_USAGE : MW_CLI_FAILED;
	/* In one write where that is possible, so that the messages of several programs don't mix. */
	setvbuf(stderr, line, _IOLBF, sizeof(line));
	fputs("memwatch: ", stderr);
	mw_cli_put_clean(stderr, mw_error_text(err));
	if (mw_error_hint_text(err)) {
		fputs(". ", stderr);
		mw_cli_put_clean(stderr, mw_error_hint_text(err));
	} else if (mw_error_errno(err) == EMFILE) {
		fputs(". Raise the limit of open files: ulimit -n 1024", stderr);
	}
	fputc('\n', stderr);
	setvbuf(stderr, NULL, _IONBF, 0);
	mw_error_destroy(err);
	return status;
}
