/* SPDX-License-Identifier: MIT */
/*
 * listen.h: an HTTP server, for GET alone, in threads of its own.
 *
 * It listens where it is asked to: on loopback where only a port is given. Whoever may connect to another address has to
 * know a token; on loopback, requests that name another host are refused, as a web page that resolves its own name to
 * 127.0.0.1 would send them.
 */
#ifndef MW_SERVE_LISTEN_H
#define MW_SERVE_LISTEN_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>

struct mw_listen;

struct mw_listen_answer {
	unsigned status; /* of HTTP */
	const char *type;
	char *bytes; /* malloc'ed; taken */
	size_t size;
};

/* What a GET of that path gets; in one of the server's threads. Status 0: there is no such path. */
typedef struct mw_listen_answer mw_listen_get(void *context, const char *path);

/*
 * `where`: PORT, HOST:PORT, [IPV6]:PORT (HOST a number or "localhost"; PORT 0: any), or unix:PATH. `token_file`: a file with
 * the token that is asked for, "Authorization: Bearer TOKEN" or as the password of "Basic"; NULL: none. Errors: USAGE: not
 * such a place, or it is no loopback and there is no token; SYSTEM: it can't be listened there, or the file not be read.
 */
struct mw_error *mw_listen_open(const char *where, const char *token_file, struct mw_listen **out) MW_MUST_CHECK;
/* "http://127.0.0.1:9090", or "unix:PATH": where it is. */
const char *mw_listen_place(const struct mw_listen *listen);
/* Answer from now on. Errors: SYSTEM. */
struct mw_error *mw_listen_start(struct mw_listen *listen, mw_listen_get *get, void *context) MW_MUST_CHECK;
/* Waits for those that are being answered. NULL is fine. */
void mw_listen_close(struct mw_listen *listen);

#endif
