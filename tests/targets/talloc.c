/* SPDX-License-Identifier: MIT */
/*
 * talloc N: makes N sessions, each a chunk of talloc's below a context "server", with a string and an array below it; and one
 * pool, with two chunks in it.
 */
#include "target.h"

#include <talloc.h>

struct session {
	char name[200];
};

struct message {
	char text[40];
};

static KEEP void make_session(void *server, unsigned number)
{
	struct session *session = talloc_zero(server, struct session);

	if (!session || !talloc_asprintf(session, "session %u", number) || !talloc_array(session, uint64_t, 100))
		target_fail("talloc");
}

static KEEP void make_pool(void *server)
{
	void *pool = talloc_pool(server, 8192);

	if (!pool || !talloc(pool, struct message) || !talloc(pool, struct message))
		target_fail("talloc_pool");
	talloc_set_name_const(pool, "messages");
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	void *server = talloc_named_const(NULL, 0, "server");

	target_ready();
	for (unsigned i = 0; i < count; i++)
		make_session(server, i);
	make_pool(server);
	target_say("session_bytes", 96 + sizeof(struct session));
	target_say("array_bytes", 96 + 100 * sizeof(uint64_t));
	target_say("pool_bytes", 32 + 96 + 8192);
	target_done();
	talloc_free(server);
	return 0;
}
