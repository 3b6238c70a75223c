// SPDX-License-Identifier: MIT
/*
 * replay FILE [track]: read a recording, feed its events to a tracker where told so, and print what there was of what,
 * one line each; on standard error how quickly.
 */
#include "store/reader.h"
#include "track/track.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define TYPE_COUNT (MW_EVENT_REMAP_FAIL + 1)

struct numbers {
	uint32_t *to; /* number in the recording to number of the tracker's */
	size_t count;
};

struct replay {
	struct mw_track *track; /* NULL: only count */
	struct mw_event_sink sink;
	struct numbers stacks, threads;
	uint64_t events[TYPE_COUNT], bytes[TYPE_COUNT], event_count;
	uint64_t digest; /* of times, addresses, stacks and threads */
	uint64_t threads_told, stacks_told, frames, samples, marks, modules, symbols;
	struct mw_event room[16384]; /* as many as a chunk has at most */
};

static void set_number(struct numbers *numbers, uint32_t number, uint32_t to)
{
	if (number >= numbers->count) {
		numbers->count = 2 * (size_t)number + 16;
		numbers->to = realloc(numbers->to, numbers->count * sizeof(*numbers->to));
		if (!numbers->to)
			exit(1);
	}
	numbers->to[number] = to;
}

static struct mw_error *take_stack(void *context, uint32_t process, uint32_t number, const struct mw_raw_stack *stack)
{
	struct replay *replay = context;
	uint32_t id;

	replay->stacks_told++;
	replay->frames += stack->count;
	if (!replay->track || process)
		return NULL;
	MW_TRY(replay->sink.stack(replay->sink.context, stack, &id));
	set_number(&replay->stacks, number, id);
	return NULL;
}

static struct mw_error *take_thread(void *context, uint32_t process, const struct mw_stored_thread *thread)
{
	struct replay *replay = context;
	uint32_t number;

	replay->threads_told++;
	if (!replay->track || process)
		return NULL;
	MW_TRY(replay->sink.thread(replay->sink.context, thread->tid, thread->name, true, &number));
	set_number(&replay->threads, thread->number, number);
	return NULL;
}

static struct mw_error *feed(struct replay *replay, const struct mw_event *events, size_t count)
{
	const size_t room = sizeof(replay->room) / sizeof(replay->room[0]);

	for (size_t done = 0; done < count; done += room) {
		size_t some = count - done < room ? count - done : room;

		for (size_t i = 0; i < some; i++) {
			replay->room[i] = events[done + i];
			replay->room[i].thread = replay->threads.to[replay->room[i].thread];
			if (replay->room[i].stack != MW_STACK_NONE)
				replay->room[i].stack = replay->stacks.to[replay->room[i].stack];
		}
		MW_TRY(replay->sink.events(replay->sink.context, replay->room, some));
	}
	return NULL;
}

static struct mw_error *take_events(void *context, uint32_t process, const struct mw_event *events, size_t count)
{
	struct replay *replay = context;

	for (size_t i = 0; i < count; i++) {
		replay->events[events[i].type]++;
		replay->bytes[events[i].type] += events[i].size == MW_SIZE_UNKNOWN ? 0 : events[i].size;
		replay->digest =
			replay->digest * 31 + (events[i].time_ns ^ events[i].addr ^ (uint64_t)events[i].stack << 8 ^
					       (uint64_t)events[i].thread << 40);
	}
	replay->event_count += count;
	return replay->track && !process ? feed(replay, events, count) : NULL;
}

static struct mw_error *take_sample(void *context, uint32_t process, const struct mw_stored_sample *sample)
{
	struct replay *replay = context;

	(void)process, (void)sample;
	replay->samples++;
	return NULL;
}

static struct mw_error *take_mark(void *context, uint32_t process, const struct mw_stored_mark *mark)
{
	struct replay *replay = context;

	(void)process, (void)mark;
	replay->marks++;
	return NULL;
}

static struct mw_error *take_module(void *context, uint32_t process, const struct mw_stored_module *module)
{
	struct replay *replay = context;

	(void)process, (void)module;
	replay->modules++;
	return NULL;
}

static struct mw_error *take_symbol(void *context, uint32_t process, const struct mw_stored_symbol *symbol)
{
	struct replay *replay = context;

	(void)process, (void)symbol;
	replay->symbols++;
	return NULL;
}

static void check(struct mw_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "replay: %s\n", mw_error_text(err));
	exit(1);
}

static void print(const struct replay *replay, const struct mw_store_state *state)
{
	for (size_t i = 0; i < TYPE_COUNT; i++)
		printf("event %zu: %" PRIu64 " %" PRIu64 "\n", i, replay->events[i], replay->bytes[i]);
	printf("digest: %" PRIx64 "\n", replay->digest);
	printf("threads: %" PRIu64 "\nstacks: %" PRIu64 " %" PRIu64 "\nsamples: %" PRIu64 "\nmarks: %" PRIu64
	       "\nmodules: %" PRIu64 "\nsymbols: %" PRIu64 "\n",
	       replay->threads_told, replay->stacks_told, replay->frames, replay->samples, replay->marks,
	       replay->modules, replay->symbols);
	printf("processes: %u\nwhole: %s\n", state->processes, state->cut ? state->why : "yes");
	if (replay->track) {
		struct mw_track_totals totals;

		mw_track_totals(replay->track, MW_KIND_HEAP, &totals);
		printf("heap: size %" PRIu64 " %" PRIu64 ", impacting %" PRIu64 " %" PRIu64 "\n", totals.size.count,
		       totals.size.bytes, totals.impacting.count, totals.impacting.bytes);
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static struct replay replay;
	const struct mw_store_visitor visitor = {.context = &replay,
						 .module = take_module,
						 .thread = take_thread,
						 .stack = take_stack,
						 .events = take_events,
						 .sample = take_sample,
						 .mark = take_mark,
						 .symbol = take_symbol};
	struct mw_store_reader *reader;
	struct mw_store_state state;
	struct rusage usage;
	double seconds = now();

	if (argc < 2) {
		fprintf(stderr, "usage: replay FILE [track]\n");
		return 2;
	}
	if (argc > 2 && strcmp(argv[2], "track") == 0) {
		check(mw_track_create(&replay.track));
		replay.sink = mw_track_sink(replay.track);
	}
	check(mw_store_open(argv[1], &reader));
	check(mw_store_read(reader, &visitor, &state));
	seconds = now() - seconds;
	print(&replay, &state);
	mw_store_close(reader);
	mw_track_destroy(replay.track);
	free(replay.stacks.to);
	free(replay.threads.to);
	getrusage(RUSAGE_SELF, &usage);
	fprintf(stderr, "seconds=%.2f million_events_per_second=%.1f max_rss_mib=%ld\n", seconds,
		(double)replay.event_count / seconds / 1e6, usage.ru_maxrss / 1024);
	return 0;
}
