// SPDX-License-Identifier: MIT
/* absent.c: a memwatch that was built without libmicrohttpd and libcurl (serve.h). */
#include "serve/serve.h"

struct mw_error *mw_serve_create(struct mw_session *session, struct mw_serve **out)
{
	(void)out;
	return MW_REFUSE(
		"Take memwatch from its package, or build it with -DMEMWATCH_NETWORK=ON; --export writes the same "
		"profiles to files",
		"this memwatch was built without --%s", session->options->listen ? "listen" : "push");
}

struct mw_error *mw_serve_finish(struct mw_serve *serve)
{
	(void)serve;
	return NULL;
}

struct mw_error *mw_serve_destroy(struct mw_serve *serve)
{
	(void)serve;
	return NULL;
}
