// SPDX-License-Identifier: MIT
/* perf_map.c: see perf_map.h. */
#include "proc/perf_map.h"

#include "base/cleanup.h"
#include "base/vector.h"
#include "proc/root.h"
#include "proc/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES ((size_t)64 << 20)
#define MOST_NAMES (1u << 20)
#define MOST_NAME  1024u /* bytes of one */

/* --- lines ------------------------------------------------------------------------------------- */

/* A line, by when it was written. */
struct entry {
	mw_addr start, end;
	const char *name;
};

struct entries {
	struct entry *items;
	size_t count, capacity;
};

static bool take_hex(char **at, uint64_t *out)
{
	char *digits = *at;
	uint64_t value = 0;

	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		digits += 2;
	for (*at = digits;; ++*at) {
		unsigned char c = (unsigned char)**at, low = c | 0x20;
		unsigned digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (low >= 'a' && low <= 'f')
			digit = low - 'a' + 10u;
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	*out = value;
	return *at > digits;
}

/* A line that ends in NUL. */
static bool take_line(char *at, struct entry *out)
{
	uint64_t size;

	if (!take_hex(&at, &out->start) || *at++ != ' ' || !take_hex(&at, &size) || *at++ != ' ' || !*at || !size ||
	    size > UINT64_MAX - out->start)
		return false;
	out->end = out->start + size;
	out->name = at;
	if (strnlen(at, MOST_NAME) == MOST_NAME)
		at[MOST_NAME] = '\0';
	return true;
}

/* The lines of most names that come last. */
static struct mw_error *take_lines(char *text, size_t size, struct entries *entries)
{
	char *end = text + size;

	for (char *at = text, *next; at < end; at = next) {
		char *stop = memchr(at, '\n', (size_t)(end - at));
		struct entry entry;

		next = stop ? stop + 1 : end;
		if (stop)
			*stop = '\0';
		if (!take_line(at, &entry))
			continue;
		if (entries->count == MOST_NAMES) {
			entries->count = MOST_NAMES / 2;
			memmove(entries->items, entries->items + MOST_NAMES / 2,
				MOST_NAMES / 2 * sizeof(*entries->items));
		}
		if (!MW_VECTOR_ROOM(entries->items, entries->count, entries->capacity))
			return mw_error_nomem();
		entries->items[entries->count++] = entry;
	}
	return NULL;
}

/* --- which one counts ---------------------------------------------------------------------------- */

/* Where a line's code begins or ends. */
struct edge {
	mw_addr at;
	uint32_t entry;
	bool begins;
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	return (left->at > right->at) - (left->at < right->at);
}

/* The lines that claim the place at hand, the latest first: a heap, from which what has ended goes when it is met. */
struct claims {
	uint32_t *heap;
	size_t count;
	const struct entry *entries;
};

static void claim(struct claims *claims, uint32_t entry)
{
	size_t at = claims->count++;

	for (; at && claims->heap[(at - 1) / 2] < entry; at = (at - 1) / 2)
		claims->heap[at] = claims->heap[(at - 1) / 2];
	claims->heap[at] = entry;
}

static void drop_first(struct claims *claims)
{
	uint32_t last = claims->heap[--claims->count];
	size_t at = 0;

	for (size_t child = 1; child < claims->count; child = 2 * at + 1) {
		if (child + 1 < claims->count && claims->heap[child + 1] > claims->heap[child])
			child++;
		if (claims->heap[child] < last)
			break;
		claims->heap[at] = claims->heap[child];
		at = child;
	}
	claims->heap[at] = last;
}

/* Whose is what begins at `at`? NULL: nobody's. */
static const struct entry *owner(struct claims *claims, mw_addr at)
{
	while (claims->count && claims->entries[claims->heap[0]].end <= at)
		drop_first(claims);
	return claims->count ? &claims->entries[claims->heap[0]] : NULL;
}

/* Between two edges next to each other one line counts. */
static void lay_out(const struct edge *edges, size_t count, struct claims *claims, struct mw_perf_map *map)
{
	for (size_t i = 0; i < count;) {
		mw_addr at = edges[i].at;
		const struct entry *entry;
		struct mw_perf_name *last = map->count ? &map->items[map->count - 1] : NULL;

		for (; i < count && edges[i].at == at; i++)
			if (edges[i].begins)
				claim(claims, edges[i].entry);
		entry = owner(claims, at);
		if (!entry || i == count)
			continue;
		if (last && last->end == at && last->name == entry->name)
			last->end = edges[i].at;
		else
			map->items[map->count++] = (struct mw_perf_name){
				.start = at, .end = edges[i].at, .from = entry->start, .name = entry->name};
	}
}

static struct mw_error *arrange(const struct entries *entries, struct mw_perf_map *map)
{
	size_t count = 2 * entries->count;
	MW_FREE struct edge *edges = malloc((count + 1) * sizeof(*edges));
	MW_FREE uint32_t *heap = malloc((entries->count + 1) * sizeof(*heap));
	struct claims claims = {.heap = heap, .entries = entries->items};

	map->items = malloc((count + 1) * sizeof(*map->items));
	if (!edges || !heap || !map->items)
		return mw_error_nomem();
	for (size_t i = 0; i < entries->count; i++) {
		edges[2 * i] = (struct edge){entries->items[i].start, (uint32_t)i, true};
		edges[2 * i + 1] = (struct edge){entries->items[i].end, (uint32_t)i, false};
	}
	qsort(edges, count, sizeof(*edges), compare_edges);
	lay_out(edges, count, &claims, map);
	return NULL;
}

struct mw_error *mw_perf_map_parse(char *text, size_t size, struct mw_perf_map *out)
{
	struct mw_perf_map map = {.text = text};
	struct entries entries = {.count = 0};
	struct mw_error *err = take_lines(text, size, &entries);

	if (!err)
		err = arrange(&entries, &map);
	free(entries.items);
	if (err) {
		mw_perf_map_deinit(&map);
		return err;
	}
	*out = map;
	return NULL;
}

void mw_perf_map_deinit(struct mw_perf_map *map)
{
	free(map->items);
	free(map->text);
	*map = (struct mw_perf_map){.count = 0};
}

const struct mw_perf_name *mw_perf_map_find(const struct mw_perf_map *map, mw_addr addr)
{
	size_t next = mw_vector_up_to(map->items, map->count, sizeof(*map->items), offsetof(struct mw_perf_name, start),
				      addr);

	return next && addr < map->items[next - 1].end ? &map->items[next - 1] : NULL;
}

/* --- the file ------------------------------------------------------------------------------------ */

#define PATH_ROOM 48
#define SLACK     2 /* s that clocks may differ by */

/* When the process began, s since 1970; 0: that can't be known. */
static int64_t start_of(pid_t pid)
{
	struct timespec now = {.tv_sec = 0}, up = {.tv_sec = 0};
	uint64_t ticks = 0;

	if (!mw_stat_read(pid, MW_STAT_START, &ticks) || clock_gettime(CLOCK_REALTIME, &now) ||
	    clock_gettime(CLOCK_BOOTTIME, &up))
		return 0;
	return now.tv_sec - up.tv_sec + (int64_t)(ticks / (uint64_t)sysconf(_SC_CLK_TCK));
}

void mw_perf_place_init(struct mw_perf_place *place, pid_t pid)
{
	struct mw_status status;

	mw_perf_place_deinit(place);
	if (!mw_error_none(mw_status_read(pid, &status)))
		return;
	*place = (struct mw_perf_place){.root = mw_root_directory(pid),
					.pid = status.ns_pid,
					.uid = status.uid,
					.euid = status.euid,
					.started = start_of(pid)};
	place->known = place->root >= 0;
}

void mw_perf_place_deinit(struct mw_perf_place *place)
{
	if (place->known)
		close(place->root);
	place->known = false;
}

/* Is it to be believed? Nobody but the target's user and root may say what its code is called. */
static struct mw_error *check_file(const struct mw_perf_place *place, const char *path, const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return mw_error_create(MW_ERROR_DENIED, 0, "%s is not a file", path);
	if (file->st_uid != 0 && file->st_uid != place->uid && file->st_uid != place->euid)
		return mw_error_create(MW_ERROR_DENIED, 0, "%s belongs to user %u, neither the process's nor root",
				       path, (unsigned)file->st_uid);
	if (file->st_nlink > 1)
		return mw_error_create(MW_ERROR_DENIED, 0, "%s has other names: it may be another file", path);
	return NULL;
}

/* The last bytes of the file: of what it grows by meanwhile nothing. */
static struct mw_error *read_end(int fd, uint64_t length, char **text, size_t *size)
{
	size_t wanted = length < MOST_BYTES ? (size_t)length : MOST_BYTES;
	uint64_t from = length - wanted;
	size_t got = 0;

	*text = malloc(wanted + 1);
	if (!*text)
		return mw_error_nomem();
	while (got < wanted) {
		ssize_t more = pread(fd, *text + got, wanted - got, (off_t)(from + got));

		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			break;
		got += (size_t)more;
	}
	(*text)[got] = '\0';
	*size = got;
	return NULL;
}

static struct mw_error *read_file(int fd, const struct stat *file, struct mw_perf_map *out)
{
	uint64_t length = file->st_size > 0 ? (uint64_t)file->st_size : 0;
	bool cut = length > MOST_BYTES;
	char *text = NULL, *line;
	size_t size = 0;

	MW_TRY(read_end(fd, length, &text, &size));
	/* It begins within a line. */
	line = cut ? memchr(text, '\n', size) : NULL;
	if (line)
		memset(text, ' ', (size_t)(line - text));
	MW_TRY(mw_perf_map_parse(text, size, out));
	out->cut = cut;
	return NULL;
}

static int open_map(const struct mw_perf_place *place, char path[PATH_ROOM])
{
	(void)snprintf(path, PATH_ROOM, "/tmp/perf-%d.map", (int)place->pid);
	return mw_root_open_at(place->root, path, true);
}

bool mw_perf_map_exists(const struct mw_perf_place *place)
{
	char path[PATH_ROOM];
	int fd = place->known ? open_map(place, path) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

struct mw_error *mw_perf_map_read(const struct mw_perf_place *place, struct mw_perf_map *out)
{
	MW_CLOSE int fd = -1;
	struct stat file;
	char path[PATH_ROOM];

	*out = (struct mw_perf_map){.count = 0};
	if (!place->known)
		return NULL;
	fd = open_map(place, path);
	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0 && (errno == ENXIO || errno == ELOOP))
		return mw_error_create(MW_ERROR_DENIED, 0, "%s is not a file", path);
	if (fd < 0)
		return mw_error_create(MW_ERROR_SYSTEM, errno, "%s can't be opened", path);
	if (fstat(fd, &file))
		return mw_error_create(MW_ERROR_SYSTEM, errno, "%s can't be looked at", path);
	MW_TRY(check_file(place, path, &file));
	return file.st_mtime >= place->started - SLACK ? read_file(fd, &file, out) : NULL;
}
