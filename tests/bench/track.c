// SPDX-License-Identifier: MIT
/*
 * track [EVENTS [ROUNDS [PATTERN]]]: how many events a second one thread can feed the tracker, by pattern; one at a
 * time and many at a time. By processor time, without that for making the events up. The best of ROUNDS rounds of
 * EVENTS events.
 */
#include "track/track.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH   512U
#define STACKS  300U
#define MANY    20000U
#define FRAMES  30U
#define THREADS 16U

struct bench {
	const struct pattern *pattern;
	struct mw_track *track;
	struct mw_event_sink sink;
	uint32_t heap[MANY], vm[MANY], threads[THREADS];
	mw_addr *live, *unused; /* addresses of blocks in use and not */
	uint32_t live_count, unused_count;
	uint64_t random, time_ns;
	bool many;
};

struct pattern {
	const char *name;
	void (*fill)(struct bench *bench, struct mw_event *events); /* BATCH of them */
	uint32_t blocks;                                            /* addresses, of which half are in use */
	uint32_t threads, stacks;
};

static void check(struct mw_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "%s\n", mw_error_text(err));
	exit(1);
}

static uint32_t random_below(struct bench *bench, uint32_t limit)
{
	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return (uint32_t)((bench->random >> 32) * limit >> 32);
}

static struct mw_event next_event(struct bench *bench, enum mw_event_type type, mw_addr addr)
{
	bool heap = type < MW_EVENT_MAP;
	uint32_t stack = random_below(bench, bench->pattern->stacks);

	bench->time_ns += 20 + random_below(bench, 100);
	return (struct mw_event){
		.time_ns = bench->time_ns,
		.addr = addr,
		.size = heap ? 16 + stack % 100 * 8 : 8192,
		.stack = heap ? bench->heap[stack] : bench->vm[stack],
		.thread = bench->threads[random_below(bench, bench->pattern->threads)],
		.type = type,
		.kind = heap ? MW_KIND_HEAP : MW_KIND_VM,
	};
}

static struct mw_event next_free(struct bench *bench, mw_addr addr)
{
	struct mw_event event = next_event(bench, MW_EVENT_FREE, addr);

	event.size = MW_SIZE_UNKNOWN;
	event.stack = MW_STACK_NONE;
	return event;
}

/* Any block in use, to be put back or given up. */
static mw_addr take_live(struct bench *bench)
{
	uint32_t i = random_below(bench, bench->live_count);
	mw_addr addr = bench->live[i];

	bench->live[i] = bench->live[--bench->live_count];
	bench->unused[bench->unused_count++] = addr;
	return addr;
}

static mw_addr take_unused(struct bench *bench)
{
	mw_addr addr = bench->unused[--bench->unused_count];

	bench->live[bench->live_count++] = addr;
	return addr;
}

/* malloc and free in turn, of the same block. */
static void fill_pairs(struct bench *bench, struct mw_event *events)
{
	for (uint32_t i = 0; i < BATCH; i += 2) {
		mw_addr addr = bench->unused[random_below(bench, bench->unused_count)];

		events[i] = next_event(bench, MW_EVENT_ALLOC, addr);
		events[i + 1] = next_free(bench, addr);
	}
}

/* malloc or free, either as likely, of any block. */
static void fill_churn(struct bench *bench, struct mw_event *events)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		bool alloc = bench->unused_count > 0 && (bench->live_count == 0 || random_below(bench, 2));

		events[i] = alloc ? next_event(bench, MW_EVENT_ALLOC, take_unused(bench))
				  : next_free(bench, take_live(bench));
	}
}

/* Each block is freed and its address handed out again at once, as allocators do: no table grows or shrinks. */
static void fill_steady(struct bench *bench, struct mw_event *events)
{
	for (uint32_t i = 0; i < BATCH; i += 2) {
		events[i] = next_free(bench, take_live(bench));
		events[i + 1] = next_event(bench, MW_EVENT_ALLOC, take_unused(bench));
	}
}

static void fill_realloc(struct bench *bench, struct mw_event *events)
{
	for (uint32_t i = 0; i < BATCH; i += 2) {
		mw_addr from = bench->live[random_below(bench, bench->live_count)];

		events[i] = next_event(bench, MW_EVENT_REALLOC_BEGIN, from);
		events[i + 1] = next_event(bench, MW_EVENT_REALLOC_END, from);
		events[i + 1].thread = events[i].thread;
	}
}

/* Freed are blocks that nobody knows. */
static void fill_before(struct bench *bench, struct mw_event *events)
{
	for (uint32_t i = 0; i < BATCH; i++)
		events[i] = next_event(bench, MW_EVENT_FREE, 16 + 16 * (mw_addr)random_below(bench, 1U << 24));
}

static void fill_vm(struct bench *bench, struct mw_event *events)
{
	uint32_t i = 0;

	while (i < BATCH) {
		/* Three events an unmapping and two a batch to spare: 512 = 3 * 170 + 2. */
		if (i + 3 <= BATCH && bench->live_count > 0 && (bench->unused_count == 0 || random_below(bench, 2))) {
			mw_addr addr = take_live(bench);

			events[i] = next_event(bench, MW_EVENT_UNMAP_BEGIN, addr << 12);
			events[i + 1] = next_event(bench, MW_EVENT_UNMAP_END, addr << 12);
			events[i + 1].thread = events[i].thread;
			i += 2;
		} else if (bench->unused_count > 0) {
			events[i++] = next_event(bench, MW_EVENT_MAP, take_unused(bench) << 12);
		} else {
			events[i++] = next_event(bench, MW_EVENT_MAP, bench->live[0] << 12);
		}
	}
}

static const struct pattern patterns[] = {
	{"pairs", fill_pairs, 200, 1, STACKS},
	{"brief", fill_churn, 100, 1, STACKS},
	{"brief_threads", fill_churn, 100, THREADS, STACKS},
	{"million", fill_steady, 2000000, THREADS, STACKS},
	{"million_churn", fill_churn, 2000000, THREADS, STACKS},
	{"million_stacks", fill_steady, 2000000, THREADS, MANY},
	{"realloc", fill_realloc, 20000, THREADS, STACKS},
	{"before", fill_before, 2, THREADS, STACKS},
	{"vm", fill_vm, 2000, THREADS, STACKS},
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Feed what has been made up; gives the seconds that took. */
static double feed(struct bench *bench, const struct mw_event *events)
{
	double begun = now();

	if (bench->many) {
		check(bench->sink.events(bench->sink.context, events, BATCH));
	} else {
		for (uint32_t i = 0; i < BATCH; i++)
			check(bench->sink.event(bench->sink.context, &events[i]));
	}
	return now() - begun;
}

static uint32_t intern(struct bench *bench, enum mw_kind kind, uint32_t number)
{
	struct mw_raw_frame frames[FRAMES];
	struct mw_raw_stack stack = {frames, FRAMES, MW_STACK_COMPLETE, 0, kind};
	uint32_t id;

	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i] = (struct mw_raw_frame){UINT64_C(0x555555554000) + 64 * i + (number << 12 >> (i / 2)), 0};
	check(bench->sink.stack(bench->sink.context, &stack, &id));
	return id;
}

static void *allocate(size_t size)
{
	void *block = malloc(size);

	if (!block)
		exit(1);
	return block;
}

static void init(struct bench *bench, const struct pattern *pattern, bool many)
{
	*bench = (struct bench){.pattern = pattern, .random = 88172645463325252U, .many = many};
	check(mw_track_create(&bench->track));
	bench->sink = mw_track_sink(bench->track);
	for (uint32_t i = 0; i < pattern->stacks; i++) {
		bench->heap[i] = intern(bench, MW_KIND_HEAP, i);
		bench->vm[i] = intern(bench, MW_KIND_VM, i);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		check(bench->sink.thread(bench->sink.context, 1000 + (pid_t)i, "t", true, &bench->threads[i]));
	bench->live = allocate(pattern->blocks * sizeof(*bench->live));
	bench->unused = allocate(pattern->blocks * sizeof(*bench->unused));
	for (uint32_t i = 0; i < pattern->blocks; i++)
		bench->unused[i] = UINT64_C(0x7f1200000010) + (mw_addr)i * 48;
	for (uint32_t i = pattern->blocks; i > 1; i--) {
		uint32_t other = random_below(bench, i);
		mw_addr addr = bench->unused[i - 1];

		bench->unused[i - 1] = bench->unused[other];
		bench->unused[other] = addr;
	}
	bench->unused_count = pattern->blocks;
	if (pattern->fill == fill_vm)
		for (uint32_t i = 0; i < pattern->blocks; i++)
			bench->unused[i] = bench->unused[i] / 48 * 3 % (1U << 30);
}

static void deinit(struct bench *bench)
{
	free(bench->live);
	free(bench->unused);
	mw_track_destroy(bench->track);
}

static double run(const struct pattern *pattern, bool many, uint64_t count)
{
	struct mw_event events[BATCH];
	struct bench bench;
	double seconds = 0;
	uint64_t done = 0;

	init(&bench, pattern, many);
	while (bench.live_count < pattern->blocks / 2 && pattern->fill != fill_vm) {
		struct mw_event event = next_event(&bench, MW_EVENT_ALLOC, take_unused(&bench));

		check(bench.sink.event(bench.sink.context, &event));
	}
	for (; done < count; done += BATCH) {
		pattern->fill(&bench, events);
		seconds += feed(&bench, events);
	}
	deinit(&bench);
	return (double)done / seconds;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	const char *only = argc > 3 ? argv[3] : NULL;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		double best[2] = {0, 0};

		if (only && strcmp(only, patterns[i].name) != 0)
			continue;
		for (unsigned long j = 0; j < rounds * 2; j++) {
			double rate = run(&patterns[i], j % 2, count);

			if (rate > best[j % 2])
				best[j % 2] = rate;
		}
		printf("%s: one=%.2f many=%.2f million events/s\n", patterns[i].name, best[0] / 1e6, best[1] / 1e6);
	}
	return 0;
}
