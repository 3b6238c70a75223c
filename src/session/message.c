// SPDX-License-Identifier: MIT
/* message.c: what memwatch says on standard error. */
#include "session/message.h"

#include "output/utf8.h"

#include <errno.h>

void mw_message_put(FILE *out, const char *text)
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

enum mw_message_status mw_message_error(struct mw_error *err)
{
	enum mw_message_status status;
	char line[BUFSIZ];

	if (!err)
		return MW_STATUS_DONE;
	status = mw_error_kind(err) == MW_ERROR_USAGE ? MW_STATUS_USAGE : MW_STATUS_FAILED;
	/* In one write where that is possible, so that the messages of several programs don't mix. */
	setvbuf(stderr, line, _IOLBF, sizeof(line));
	fputs("memwatch: ", stderr);
	mw_message_put(stderr, mw_error_text(err));
	if (mw_error_hint_text(err)) {
		fputs(". ", stderr);
		mw_message_put(stderr, mw_error_hint_text(err));
	} else if (mw_error_errno(err) == EMFILE) {
		fputs(". Raise the limit of open files: ulimit -n 1024", stderr);
	}
	fputc('\n', stderr);
	setvbuf(stderr, NULL, _IONBF, 0);
	mw_error_destroy(err);
	return status;
}
