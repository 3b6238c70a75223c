// SPDX-License-Identifier: MIT
/*
 * snapshots PID [--no-fork | --clean]: take a snapshot of a process, and say what it is, for tests. Then do as standard
 * input says, line by line: "read ADDRESS SIZE" (as hex; what can't be read is left out), "stale", "rss", "end".
 */
#include "heap/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(struct mw_error *err)
{
	printf("error %s (%s)\n", mw_error_text(err), mw_error_hint_text(err) ? mw_error_hint_text(err) : "");
	exit(1);
}

static void say_mappings(const struct mw_image *image)
{
	for (size_t i = 0; i < image->mapping_count; i++) {
		const struct mw_image_mapping *mapping = &image->mappings[i];
		struct mw_image_residence found = mw_image_residence(image, mapping->start, mapping->end);

		printf("mapping %" PRIu64 " %" PRIu64 " %c%c%c%c%s %" PRId64 " %" PRIu64 " %" PRId64 " %" PRIu64
		       " %" PRIu64 " %s\n",
		       mapping->start, mapping->end, mapping->read ? 'r' : '-', mapping->write ? 'w' : '-',
		       mapping->exec ? 'x' : '-', mapping->shared ? 's' : 'p', mapping->device ? "d" : "",
		       (int64_t)mapping->resident, found.resident, (int64_t)mapping->swapped, found.swapped,
		       mapping->huge, mapping->path);
	}
}

static void say(const struct mw_heap_snapshot *snapshot)
{
	const struct mw_image *image = mw_heap_snapshot_image(snapshot);
	const char *why = mw_heap_snapshot_why(snapshot);

	printf("fork %d\nwhy %s\npause_ns %" PRIu64 "\nrss %" PRIu64 "\n", mw_heap_snapshot_is_fork(snapshot),
	       why ? why : "", mw_heap_snapshot_pause_ns(snapshot), mw_heap_snapshot_rss(snapshot));
	say_mappings(image);
	for (size_t i = 0; i < image->thread_count; i++) {
		const struct mw_image_thread *thread = &image->threads[i];

		printf("thread %d %zu %" PRIu64 " %s\n", (int)thread->tid, thread->register_count, thread->sp,
		       thread->name);
		for (size_t j = 0; j < thread->register_count; j++)
			printf("register %d %" PRIu64 "\n", (int)thread->tid, thread->registers[j]);
	}
	printf("ready\n");
}

static void read_memory(const struct mw_heap_snapshot *snapshot, mw_addr addr, size_t size)
{
	unsigned char *bytes = malloc(size ? size : 1);
	size_t got = bytes ? mw_image_read_some(mw_heap_snapshot_image(snapshot), addr, bytes, size) : 0;

	printf("bytes ");
	for (size_t i = 0; i < got; i++)
		printf("%02x", bytes[i]);
	printf("\n");
	free(bytes);
}

static void obey(struct mw_heap_snapshot *snapshot)
{
	char line[128], *end;
	struct mw_error *err;

	while (fgets(line, sizeof(line), stdin)) {
		if (strncmp(line, "read ", 5) == 0) {
			mw_addr addr = strtoull(line + 5, &end, 10);

			read_memory(snapshot, addr, strtoul(end, NULL, 10));
		} else if (strcmp(line, "stale\n") == 0) {
			printf("stale %d\n", mw_heap_snapshot_is_stale(snapshot));
		} else if (strcmp(line, "end\n") == 0) {
			err = mw_heap_snapshot_end_copy(snapshot);
			if (err)
				fail(err);
			printf("pause_ns %" PRIu64 "\n", mw_heap_snapshot_pause_ns(snapshot));
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const char *option = argc > 2 ? argv[2] : "";
	const struct mw_heap_snapshot_options options = {.no_fork = strcmp(option, "--no-fork") == 0};
	struct mw_heap_snapshot *snapshot;
	struct mw_error *err;
	unsigned cleaned;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = (pid_t)strtol(argv[1], NULL, 10);
	if (strcmp(option, "--clean") == 0) {
		err = mw_heap_snapshot_clean(pid, &cleaned);
		if (err)
			fail(err);
		printf("cleaned %u\n", cleaned);
		return 0;
	}
	err = mw_heap_snapshot_take(pid, &options, &snapshot);
	if (err)
		fail(err);
	say(snapshot);
	fflush(stdout);
	obey(snapshot);
	err = mw_heap_snapshot_release(snapshot);
	if (err)
		fail(err);
	printf("released\n");
	return 0;
}
