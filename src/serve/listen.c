// SPDX-License-Identifier: MIT
/* listen.c: see listen.h. */
#include "serve/listen.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS 16u
#define IDLE_S      5u
#define TOKEN_MAX   512
#define TOKEN_LEAST 16

struct mw_listen {
	int fd;
	bool loopback;
	char *path;       /* of a socket of ours, to be removed … */
	struct stat file; /* … if it is still this one */
	char place[160];
	char token[TOKEN_MAX + 1]; /* "": none */
	struct MHD_Daemon *daemon;
	mw_listen_get *get;
	void *context;
};

/* --- where ------------------------------------------------------------------------------------------------------------ */

union place {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static struct mw_error *no_place(const char *where, const char *why)
{
	return mw_error_hint(
		mw_error_create(MW_ERROR_USAGE, 0, "--listen '%.100s': %s", where, why),
		"It takes a port, as in 9464, an address and a port, as in 127.0.0.1:9464 or [::1]:9464, or "
		"unix:PATH");
}

static bool parse_port(const char *text, in_port_t *out)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (!*text || strspn(text, "0123456789") != strlen(text) || *end || port > UINT16_MAX)
		return false;
	*out = htons((uint16_t)port);
	return true;
}

static bool is_loopback(const union place *place)
{
	if (place->any.sa_family == AF_INET)
		return ntohl(place->v4.sin_addr.s_addr) >> 24 == 127;
	return place->any.sa_family == AF_UNIX || IN6_IS_ADDR_LOOPBACK(&place->v6.sin6_addr);
}

/* HOST:PORT, [HOST]:PORT or PORT. */
static struct mw_error *parse_address(const char *where, union place *place, socklen_t *size)
{
	const char *colon = strrchr(where, ':');
	char host[64] = "127.0.0.1";
	size_t length = colon ? (size_t)(colon - where) : 0;
	in_port_t port;

	if (!parse_port(colon ? colon + 1 : where, &port))
		return no_place(where, "there is no such port");
	if (colon && (length == 0 || length >= sizeof(host)))
		return no_place(where, "there is no such address");
	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)length, where);
	if (strcmp(host, "localhost") == 0)
		strcpy(host, "127.0.0.1");
	*place = (union place){.v4 = {.sin_family = AF_INET, .sin_port = port}};
	*size = sizeof(place->v4);
	if (inet_pton(AF_INET, host, &place->v4.sin_addr) == 1)
		return NULL;
	*place = (union place){.v6 = {.sin6_family = AF_INET6, .sin6_port = port}};
	*size = sizeof(place->v6);
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &place->v6.sin6_addr) == 1)
			return NULL;
	}
	return no_place(where, "there is no such address");
}

static struct mw_error *parse_place(const char *where, union place *place, socklen_t *size)
{
	if (strncmp(where, "unix:", 5) != 0)
		return parse_address(where, place, size);
	*place = (union place){.local = {.sun_family = AF_UNIX}};
	*size = sizeof(place->local);
	if (!where[5] || strlen(where + 5) >= sizeof(place->local.sun_path))
		return no_place(where, "the path is empty, or too long for a socket");
	strcpy(place->local.sun_path, where + 5);
	return NULL;
}

/* A socket that nobody listens at any more, as a memwatch that was killed leaves it. */
static void remove_stale(const union place *place, socklen_t size)
{
	struct stat st;
	MW_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && lstat(place->local.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, &place->any, size) != 0 && errno == ECONNREFUSED)
		(void)unlink(place->local.sun_path);
}

static struct mw_error *cannot_listen(const char *where, int errnum)
{
	struct mw_error *err =
		mw_error_create(MW_ERROR_SYSTEM, errnum, "--listen '%.100s': cannot listen there", where);

	return errnum == EADDRINUSE ? mw_error_hint(err, "Another program does; take another port, or 0 for any") : err;
}

/* Who may connect to a socket in a directory is said by its mode: its owner alone. */
static int bind_private(int fd, const union place *place, socklen_t size)
{
	mode_t before = umask(0177);
	int result = bind(fd, &place->any, size), errnum = errno;

	umask(before);
	errno = errnum;
	return result;
}

static struct mw_error *listen_there(struct mw_listen *listening, const char *where, const union place *place,
				     socklen_t size)
{
	static const int on = 1;

	if (place->any.sa_family == AF_UNIX)
		remove_stale(place, size);
	listening->fd = socket(place->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listening->fd < 0)
		return cannot_listen(where, errno);
	(void)setsockopt(listening->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind_private(listening->fd, place, size) || listen(listening->fd, (int)CONNECTIONS))
		return cannot_listen(where, errno);
	if (place->any.sa_family != AF_UNIX)
		return NULL;
	listening->path = strdup(place->local.sun_path);
	if (!listening->path)
		return mw_error_nomem();
	return lstat(listening->path, &listening->file) ? cannot_listen(where, errno) : NULL;
}

/* With the port that it got. */
static void name_place(struct mw_listen *listening, const char *where)
{
	union place place = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t size = sizeof(place);
	char host[64] = "";

	if (listening->path || getsockname(listening->fd, &place.any, &size)) {
		snprintf(listening->place, sizeof(listening->place), "%s", where);
		return;
	}
	if (place.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &place.v4.sin_addr, host, sizeof(host));
		snprintf(listening->place, sizeof(listening->place), "http://%s:%u", host, ntohs(place.v4.sin_port));
	} else {
		inet_ntop(AF_INET6, &place.v6.sin6_addr, host, sizeof(host));
		snprintf(listening->place, sizeof(listening->place), "http://[%s]:%u", host, ntohs(place.v6.sin6_port));
	}
}

/* --- who --------------------------------------------------------------------------------------------------------------- */

/* The first line of the file. */
static struct mw_error *read_token(const char *file, char token[TOKEN_MAX + 1])
{
	MW_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, token, TOKEN_MAX);

	if (got < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "--listen-token '%.200s': cannot read it", file);
	token[got] = '\0';
	token[strcspn(token, "\r\n")] = '\0';
	if (strlen(token) == TOKEN_MAX)
		return mw_error_create(MW_ERROR_USAGE, 0, "--listen-token '%.200s': its first line is too long", file);
	if (strlen(token) >= TOKEN_LEAST)
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_USAGE, 0, "--listen-token '%.200s': its first line is too short", file),
		"It takes %d characters at least, as from: openssl rand -hex 16", TOKEN_LEAST);
}

/* In a time that does not depend on where they differ. */
static bool is_token(const struct mw_listen *listening, const char *text)
{
	size_t length = strlen(listening->token);
	unsigned char differs = strlen(text) != length;

	for (size_t i = 0; i < length && text[i]; i++)
		differs |= (unsigned char)(text[i] ^ listening->token[i]);
	return !differs;
}

static bool knows_token(const struct mw_listen *listening, struct MHD_Connection *connection)
{
	const char *header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	char *user, *password = NULL;
	bool knows = false;

	if (!*listening->token)
		return true;
	if (header && strncasecmp(header, "Bearer ", 7) == 0)
		return is_token(listening, header + 7);
	user = MHD_basic_auth_get_username_password(connection, &password);
	if (password)
		knows = is_token(listening, password);
	MHD_free(user);
	MHD_free(password);
	return knows;
}

/* The host that a request on loopback is for: this machine? */
static bool is_here(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
	size_t length = bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");

	if (host[length] && host[length] != ':')
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length && strncasecmp(host, names[i], length) == 0)
			return true;
	return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == length;
}

/* --- requests ---------------------------------------------------------------------------------------------------------- */

static enum MHD_Result reply(struct MHD_Connection *connection, struct mw_listen_answer answer)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	response = MHD_create_response_from_buffer(answer.size, answer.bytes, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(answer.bytes);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (answer.status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	result = MHD_queue_response(connection, answer.status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
	const struct mw_listen_answer answer = {
		.status = status, .type = "text/plain; charset=utf-8", .bytes = strdup(why)};

	if (!answer.bytes)
		return MHD_NO;
	return reply(connection, (struct mw_listen_answer){answer.status, answer.type, answer.bytes, strlen(why)});
}

static enum MHD_Result serve(void *context, struct MHD_Connection *connection, const char *path, const char *method,
			     const char *version, const char *upload, size_t *upload_size, void **state)
{
	const struct mw_listen *listening = context;
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
	struct mw_listen_answer answer;

	(void)version, (void)upload, (void)upload_size, (void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "memwatch answers GET alone\n");
	if (listening->loopback && !listening->path && host && !is_here(host))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "the request is for another host\n");
	/* A page of another site may have a browser send one, though it does not see the answer. */
	if (site && strcmp(site, "cross-site") == 0)
		return refuse(connection, MHD_HTTP_FORBIDDEN, "the request is of another site's\n");
	if (!knows_token(listening, connection))
		return refuse(connection, MHD_HTTP_UNAUTHORIZED,
			      "the token of --listen-token is missing, or another\n");
	answer = listening->get(listening->context, path);
	return answer.status ? reply(connection, answer)
			     : refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

/* Another memwatch may listen there by now. */
static void remove_own(const struct mw_listen *listening)
{
	struct stat now;

	if (listening->path && lstat(listening->path, &now) == 0 && now.st_dev == listening->file.st_dev &&
	    now.st_ino == listening->file.st_ino)
		(void)unlink(listening->path);
}

/* --- open and close ---------------------------------------------------------------------------------------------------- */

static struct mw_error *open_place(struct mw_listen *listening, const char *where, const char *token_file)
{
	union place place = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t size = 0;

	MW_TRY(parse_place(where, &place, &size));
	if (token_file)
		MW_TRY(read_token(token_file, listening->token));
	listening->loopback = is_loopback(&place);
	if (!listening->loopback && !token_file)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0,
					"--listen '%.100s' would show the process's memory to others on the network",
					where),
			"Give a file with a token by --listen-token FILE, or listen on 127.0.0.1");
	MW_TRY(listen_there(listening, where, &place, size));
	name_place(listening, where);
	return NULL;
}

struct mw_error *mw_listen_open(const char *where, const char *token_file, struct mw_listen **out)
{
	struct mw_listen *listening = calloc(1, sizeof(*listening));
	struct mw_error *err;

	if (!listening)
		return mw_error_nomem();
	listening->fd = -1;
	err = open_place(listening, where, token_file);
	if (err) {
		mw_listen_close(listening);
		return err;
	}
	*out = listening;
	return NULL;
}

const char *mw_listen_place(const struct mw_listen *listening)
{
	return listening->place;
}

struct mw_error *mw_listen_start(struct mw_listen *listening, mw_listen_get *get, void *context)
{
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
			       MHD_USE_SUPPRESS_DATE_NO_CLOCK;
	sigset_t all, before;

	listening->get = get;
	listening->context = context;
	/* Signals are for memwatch's first thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	listening->daemon = MHD_start_daemon(flags, 0, NULL, NULL, serve, listening, MHD_OPTION_LISTEN_SOCKET,
					     listening->fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
					     MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!listening->daemon)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "cannot answer at %s", listening->place);
	listening->fd = -1; /* the daemon's */
	return NULL;
}

void mw_listen_close(struct mw_listen *listening)
{
	if (!listening)
		return;
	if (listening->daemon)
		MHD_stop_daemon(listening->daemon);
	if (listening->fd >= 0)
		close(listening->fd);
	remove_own(listening);
	free(listening->path);
	free(listening);
}
