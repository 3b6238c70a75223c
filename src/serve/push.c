// SPDX-License-Identifier: MIT
/* push.c: see push.h. */
#include "serve/push.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "session/terminal.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIES      6
#define FIRST_S    1 /* until the second try; then twice as long each time */
#define CONNECT_S  5L
#define TRANSFER_S 60L
#define WHY        CURL_ERROR_SIZE /* bytes that a reason has room for */
#define NS_PER_S   UINT64_C(1000000000)

/* How Pyroscope sums up each of the profile's figures over time. */
static const char sample_types[] = "{\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"},"
				   "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"
				   "\"alloc_space\":{\"units\":\"bytes\",\"aggregation\":\"sum\"},"
				   "\"alloc_objects\":{\"units\":\"objects\",\"aggregation\":\"sum\"}}";

struct profile {
	char *bytes;
	size_t size;
	struct mw_labels labels;
	uint64_t from_ns, until_ns;
};

struct mw_push {
	const char *url;
	char *shown; /* without a password */
	enum form { FORM_RAW, FORM_INGEST, FORM_CONNECT, FORM_PARCA } form;
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct profile waiting[MW_PUSH_KEPT];
	size_t count, bytes;
	bool sending, ending;
	uint64_t sent, dropped;
	char why[WHY]; /* the last one could not be sent */
};

/* --- labels ----------------------------------------------------------------------------------------------------------- */

struct mw_error *mw_labels_set(struct mw_labels *labels, const char *name, const char *value)
{
	struct mw_label *items, set = {.name = strdup(name), .value = strdup(value)};

	if (!set.name || !set.value)
		goto nomem;
	for (size_t i = 0; i < labels->count; i++) {
		if (strcmp(labels->items[i].name, set.name) != 0)
			continue;
		free(labels->items[i].name);
		free(labels->items[i].value);
		labels->items[i] = set;
		return NULL;
	}
	items = realloc(labels->items, (labels->count + 1) * sizeof(*items));
	if (!items)
		goto nomem;
	labels->items = items;
	items[labels->count++] = set;
	return NULL;
nomem:
	free(set.name);
	free(set.value);
	return mw_error_nomem();
}

void mw_labels_deinit(struct mw_labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free(labels->items[i].name);
		free(labels->items[i].value);
	}
	free(labels->items);
	*labels = (struct mw_labels){.count = 0};
}

/* --- forms ------------------------------------------------------------------------------------------------------------ */

static void profile_deinit(struct profile *profile)
{
	free(profile->bytes);
	mw_labels_deinit(&profile->labels);
	*profile = (struct profile){.bytes = NULL};
}

/* "…?name=memwatch{host=db1,comm=redis}&from=…&until=…&format=pprof"; malloc'ed, NULL: no memory. */
static char *ingest_url(CURL *curl, const struct mw_push *push, const struct profile *profile)
{
	const char *application = "memwatch";
	MW_FREE char *name = NULL;
	char *url = NULL, *escaped;
	size_t size = 0;
	FILE *stream = open_memstream(&name, &size);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < profile->labels.count; i++)
		if (strcmp(profile->labels.items[i].name, "service_name") == 0)
			application = profile->labels.items[i].value;
	fprintf(stream, "%s{", application);
	for (size_t i = 0; i < profile->labels.count; i++) {
		fprintf(stream, "%s%s=", i ? "," : "", profile->labels.items[i].name);
		for (const char *at = profile->labels.items[i].value; *at; at++)
			fputc(strchr("{},=", *at) ? '_' : *at, stream);
	}
	fputc('}', stream);
	if (fclose(stream) || !name)
		return NULL;
	escaped = curl_easy_escape(curl, name, 0);
	if (!escaped || asprintf(&url, "%s%cname=%s&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof&spyName=memwatch",
				 push->url, strchr(push->url, '?') ? '&' : '?', escaped, profile->from_ns / NS_PER_S,
				 profile->until_ns / NS_PER_S) < 0)
		url = NULL;
	curl_free(escaped);
	return url;
}

/* malloc'ed; NULL: no memory. */
static char *base64(const char *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((size + 2) / 3 * 4 + 1), *out = text;

	for (size_t i = 0; text && i < size; i += 3) {
		uint32_t three = (uint32_t)(unsigned char)bytes[i] << 16;

		three |= i + 1 < size ? (uint32_t)(unsigned char)bytes[i + 1] << 8 : 0;
		three |= i + 2 < size ? (uint32_t)(unsigned char)bytes[i + 2] : 0;
		*out++ = digits[three >> 18];
		*out++ = digits[three >> 12 & 63];
		*out++ = i + 1 < size ? digits[three >> 6 & 63] : '=';
		*out++ = i + 2 < size ? digits[three & 63] : '=';
	}
	if (out)
		*out = '\0';
	return text;
}

/* Text of a process that may be anything. */
static json_t *text_of(const char *text)
{
	json_t *json = json_string(text);

	return json ? json : json_string("?");
}

/* {"series": [{"labels": …, "samples": [{"rawProfile": …}]}]}; malloc'ed, NULL: no memory. */
static char *series_of(const struct mw_push *push, const struct profile *profile)
{
	MW_FREE char *raw = base64(profile->bytes, profile->size);
	json_t *labels = json_array(), *document;
	char *text;

	json_array_append_new(labels, json_pack("{s:s,s:s}", "name", "__name__", "value", "memory"));
	for (size_t i = 0; i < profile->labels.count; i++)
		json_array_append_new(labels, json_pack("{s:o,s:o}", "name", text_of(profile->labels.items[i].name),
							"value", text_of(profile->labels.items[i].value)));
	if (push->form == FORM_PARCA)
		labels = json_pack("{s:o}", "labels", labels);
	document =
		json_pack("{s:[{s:o,s:[{s:s}]}]}", "series", "labels", labels, "samples", "rawProfile", raw ? raw : "");
	text = raw && document ? json_dumps(document, JSON_COMPACT) : NULL;
	json_decref(document);
	return text;
}

struct request {
	CURL *curl;
	curl_mime *mime;
	struct curl_slist *headers;
	char *url, *body;
};

static void request_deinit(struct request *request)
{
	curl_mime_free(request->mime);
	curl_slist_free_all(request->headers);
	free(request->url);
	free(request->body);
	if (request->curl)
		curl_easy_cleanup(request->curl);
}

static bool prepare_form(struct request *request, const struct mw_push *push, const struct profile *profile)
{
	curl_mimepart *part;

	request->url = ingest_url(request->curl, push, profile);
	request->mime = curl_mime_init(request->curl);
	if (!request->url || !request->mime)
		return false;
	part = curl_mime_addpart(request->mime);
	curl_mime_name(part, "profile");
	curl_mime_filename(part, "profile.pprof");
	curl_mime_type(part, "application/octet-stream");
	curl_mime_data(part, profile->bytes, profile->size);
	part = curl_mime_addpart(request->mime);
	curl_mime_name(part, "sample_type_config");
	curl_mime_filename(part, "sample_type_config.json");
	curl_mime_type(part, "application/json");
	curl_mime_data(part, sample_types, CURL_ZERO_TERMINATED);
	curl_easy_setopt(request->curl, CURLOPT_MIMEPOST, request->mime);
	return true;
}

static bool prepare_body(struct request *request, const struct mw_push *push, const struct profile *profile)
{
	bool raw = push->form == FORM_RAW;

	request->url = strdup(push->url);
	request->body = raw ? NULL : series_of(push, profile);
	request->headers = curl_slist_append(NULL, raw ? "Content-Type: application/octet-stream"
						       : "Content-Type: application/json");
	if (!request->url || !request->headers || (!raw && !request->body))
		return false;
	curl_easy_setopt(request->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(request->curl, CURLOPT_POSTFIELDS, raw ? profile->bytes : request->body);
	curl_easy_setopt(request->curl, CURLOPT_POSTFIELDSIZE_LARGE,
			 (curl_off_t)(raw ? profile->size : strlen(request->body)));
	curl_easy_setopt(request->curl, CURLOPT_HTTPHEADER, request->headers);
	return true;
}

/* --- sending ---------------------------------------------------------------------------------------------------------- */

static size_t ignore(char *bytes, size_t size, size_t count, void *context)
{
	(void)bytes, (void)context;
	return size * count;
}

/* False: not now; *again: it may be worth another try. */
static bool send_once(const struct mw_push *push, const struct profile *profile, char why[WHY], bool *again)
{
	struct request request = {.curl = curl_easy_init()};
	char reason[CURL_ERROR_SIZE] = "";
	CURLcode code = CURLE_OUT_OF_MEMORY;
	long status = 0;

	*again = true;
	if (request.curl && (push->form == FORM_INGEST ? prepare_form(&request, push, profile)
						       : prepare_body(&request, push, profile))) {
		curl_easy_setopt(request.curl, CURLOPT_URL, request.url);
		curl_easy_setopt(request.curl, CURLOPT_PROTOCOLS_STR, "http,https");
		curl_easy_setopt(request.curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
		curl_easy_setopt(request.curl, CURLOPT_FOLLOWLOCATION, 1L);
		curl_easy_setopt(request.curl, CURLOPT_POSTREDIR, (long)CURL_REDIR_POST_ALL);
		curl_easy_setopt(request.curl, CURLOPT_MAXREDIRS, 4L);
		curl_easy_setopt(request.curl, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(request.curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
		curl_easy_setopt(request.curl, CURLOPT_TIMEOUT, TRANSFER_S);
		curl_easy_setopt(request.curl, CURLOPT_USERAGENT, "memwatch");
		curl_easy_setopt(request.curl, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
		curl_easy_setopt(request.curl, CURLOPT_WRITEFUNCTION, ignore);
		curl_easy_setopt(request.curl, CURLOPT_ERRORBUFFER, reason);
		code = curl_easy_perform(request.curl);
		curl_easy_getinfo(request.curl, CURLINFO_RESPONSE_CODE, &status);
	}
	request_deinit(&request);
	if (code == CURLE_OK && status >= 200 && status < 300)
		return true;
	if (code != CURLE_OK)
		snprintf(why, WHY, "%s", *reason ? reason : curl_easy_strerror(code));
	else
		snprintf(why, WHY, "the server answered with status %ld", status);
	/* Of what the server refuses as it is, another try is refused as well. */
	*again = code != CURLE_OK || status >= 500 || status == 408 || status == 429;
	return false;
}

static void deliver(struct mw_push *push, const struct profile *profile)
{
	char why[WHY];
	bool sent = false, again = true;

	for (unsigned i = 0; i < TRIES && !sent && again; i++) {
		const struct timespec rest = {.tv_sec = i ? FIRST_S << (i - 1) : 0};

		nanosleep(&rest, NULL);
		sent = send_once(push, profile, why, &again);
		pthread_mutex_lock(&push->lock);
		if (!sent)
			memcpy(push->why, why, sizeof(why));
		pthread_mutex_unlock(&push->lock);
	}
	pthread_mutex_lock(&push->lock);
	push->sent += sent;
	push->dropped += !sent;
	pthread_mutex_unlock(&push->lock);
}

/* The oldest of those that wait; the lock is held. */
static struct profile take_first(struct mw_push *push)
{
	struct profile first = push->waiting[0];

	push->bytes -= first.size;
	memmove(push->waiting, push->waiting + 1, --push->count * sizeof(first));
	return first;
}

static void *run(void *context)
{
	struct mw_push *push = context;

	pthread_setname_np(pthread_self(), "memwatch-push");
	pthread_mutex_lock(&push->lock);
	for (;;) {
		struct profile profile;

		while (!push->count && !push->ending)
			pthread_cond_wait(&push->changed, &push->lock);
		if (!push->count)
			break;
		profile = take_first(push);
		push->sending = true;
		pthread_mutex_unlock(&push->lock);
		deliver(push, &profile);
		profile_deinit(&profile);
		pthread_mutex_lock(&push->lock);
		push->sending = false;
		pthread_cond_broadcast(&push->changed);
	}
	pthread_mutex_unlock(&push->lock);
	return NULL;
}

void mw_push_add(struct mw_push *push, char *bytes, size_t size, struct mw_labels *labels, uint64_t from_ns,
		 uint64_t until_ns)
{
	pthread_mutex_lock(&push->lock);
	while (push->count && (push->count == MW_PUSH_KEPT || push->bytes + size > MW_PUSH_BYTES)) {
		struct profile dropped = take_first(push);

		profile_deinit(&dropped);
		push->dropped++;
		if (!*push->why)
			snprintf(push->why, sizeof(push->why), "too many had to wait");
	}
	push->waiting[push->count++] = (struct profile){bytes, size, *labels, from_ns, until_ns};
	push->bytes += size;
	pthread_cond_broadcast(&push->changed);
	pthread_mutex_unlock(&push->lock);
	*labels = (struct mw_labels){.count = 0};
}

/* --- begin and end ---------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), other = strlen(end);

	return length >= other && strcmp(path + length - other, end) == 0;
}

static struct mw_error *look_at_url(struct mw_push *push)
{
	CURLU *url = curl_url();
	char *path = NULL, *scheme = NULL;
	bool good;

	if (!url)
		return mw_error_nomem();
	good = curl_url_set(url, CURLUPART_URL, push->url, 0) == CURLUE_OK &&
	       curl_url_set(url, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK &&
	       curl_url_set(url, CURLUPART_QUERY, NULL, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_URL, &push->shown, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	       curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK && strncmp(scheme, "http", 4) == 0;
	if (good)
		push->form = ends_with(path, "/ingest")                       ? FORM_INGEST
			     : ends_with(path, "/push.v1.PusherService/Push") ? FORM_CONNECT
			     : ends_with(path, "/profiles/writeraw")          ? FORM_PARCA
									      : FORM_RAW;
	curl_free(path);
	curl_free(scheme);
	curl_url_cleanup(url);
	if (good)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--push: not a URL of http or https"),
			     "As in --push http://127.0.0.1:4040/ingest");
}

struct mw_error *mw_push_create(const char *url, struct mw_push **out)
{
	struct mw_push *push = calloc(1, sizeof(*push));
	struct mw_error *err;
	int errnum;

	if (!push)
		return mw_error_nomem();
	push->url = url;
	pthread_mutex_init(&push->lock, NULL);
	pthread_cond_init(&push->changed, NULL);
	err = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? look_at_url(push) : mw_error_nomem();
	if (!err) {
		errnum = mw_thread_create(&push->thread, NULL, run, push);
		push->threaded = errnum == 0;
		if (errnum)
			err = mw_error_create(MW_ERROR_SYSTEM, errnum, "cannot make a thread");
	}
	if (err) {
		(void)mw_push_end(push);
		return err;
	}
	*out = push;
	return NULL;
}

/* A thread that hangs in the network is left behind, with what it uses. */
bool mw_push_end(struct mw_push *push)
{
	bool all = true, ended = true;

	if (!push)
		return true;
	if (push->threaded) {
		pthread_mutex_lock(&push->lock);
		push->ending = true;
		pthread_cond_broadcast(&push->changed);
		pthread_mutex_unlock(&push->lock);
		ended = mw_thread_join_within(push->thread, MW_PUSH_PATIENCE_S);
	}
	pthread_mutex_lock(&push->lock);
	push->dropped += push->count + (!ended && push->sending);
	all = push->dropped == 0;
	if (!all) {
		fprintf(stderr, "memwatch: %" PRIu64 " of %" PRIu64 " profiles could not be sent to ", push->dropped,
			push->dropped + push->sent);
		mw_message_put(stderr, push->shown);
		fputs(": ", stderr);
		mw_message_put(stderr, *push->why ? push->why : "it takes too long");
		fputc('\n', stderr);
	}
	for (size_t i = 0; i < push->count; i++)
		profile_deinit(&push->waiting[i]);
	push->count = 0;
	pthread_mutex_unlock(&push->lock);
	if (!ended)
		return all;
	pthread_cond_destroy(&push->changed);
	pthread_mutex_destroy(&push->lock);
	curl_free(push->shown);
	free(push);
	curl_global_cleanup();
	return all;
}
