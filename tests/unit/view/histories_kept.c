// SPDX-License-Identifier: MIT
/* histories_kept.c: what does not leak, but may look so. */
#include "history_steps.h"

#include <math.h>

static void requests(void)
{
	double rate = exp(between(log(5), log(1500))), life = exp(between(log(1e-4), log(0.1 * window_length)));

	for (double at = -5 * life; at < window_length; at += pause_of(rate))
		block(at, at + 1e-6 + pause_of(1 / life), 300);
}

/* A stack's blocks live shortly, but a few at the start stay. */
static void requests_and_setup(void)
{
	double rate = between(100, 1500), life = exp(between(log(1e-4), log(0.1)));

	for (double at = 0.01; at < window_length; at += pause_of(rate))
		block(at, at + 1e-6 + pause_of(1 / life), 300);
	for (int i = 0; i < 3; i++)
		block(0.05 + i * 1e-3, NEVER, 300);
}

static void cache_that_fills(void)
{
	double until = window_length * between(0.1, 0.5);

	for (double at = 0.01; at < until; at += 0.01)
		block(at, NEVER, 1000);
}

static void once(void)
{
	double at = window_length * between(0.01, 0.3);

	for (int i = 0; i < 50; i++)
		block(at + i * 1e-3, NEVER, 12345);
}

/* A text is built anew again and again, of any size. */
static void texts(void)
{
	double bytes = between(5e3, 5e4), period = window_length / between(100, 1000);

	for (double at = 0.01; at < window_length; at += period)
		block(at, at + period * between(0.95, 0.99), bytes * between(0.5, 1.5));
}

/* The same, by one of several stacks. */
static void texts_of_stacks(void)
{
	double bytes = between(5e3, 5e4), period = window_length / between(100, 300);

	for (double at = 0.01; at < window_length; at += period)
		block_of(any() < 0.4 ? HISTORY_SUBJECT : HISTORY_OTHER, at, at + 1.01 * period,
			 bytes * between(0.5, 1.5), 0);
}

/* Each call replaces the oldest entry, all from before the window. */
static void ring(void)
{
	double period = between(0.005, 0.1), size = between(100, 3000);
	bool before = any() < 0.5;

	for (double at = 0.01; at < window_length; at += period) {
		block(-1, at, size);
		block(at + (before ? -1e-5 : 1e-5), NEVER, size);
	}
}

/* Of sizes at random. */
static void ring_of_any(void)
{
	double period = between(0.005, 0.02);

	for (double at = 0.01; at < window_length; at += period) {
		block(-1, at, between(100, 4000));
		block(at + 1e-5, NEVER, between(100, 4000));
	}
}

/* The window is longer than the ring. */
static void short_ring(void)
{
	double period = between(0.005, 0.05), turn = window_length * between(0.1, 0.9);

	for (double at = -turn; at < window_length; at += period)
		block(at, at + turn, 500);
}

/* A queue of a fixed window_length, in chunks: one goes for each that comes. */
static void chunks(void)
{
	double period = between(0.05, 0.4), turn = between(50, 300) * period;

	for (double at = -turn; at < window_length; at += period)
		block_of(HISTORY_SUBJECT, at, at + turn + between(0, 0.1) * period, 512, 1);
}

static void expiring_at_once(void)
{
	expired_at_once(0);
}

/* Entries expire, by a thread that looks once in a while. */
static void expiring(void)
{
	double rate = between(50, 300), ttl = window_length * between(0.15, 3);

	for (double at = -ttl; at < window_length; at += pause_of(rate))
		block_of(HISTORY_SUBJECT, at, ceil((at + ttl) / 0.2) * 0.2, 600, 1);
}

/*
 * Each allocated by a busy thread, of many stacks and sizes, some of them leaking; of a few older blocks the size is not
 * known.
 */
void expired_beside_others(double forgotten)
{
	double period = between(0.01, 0.05), ttl = window_length * between(0.2, 2);

	for (int i = 0; i < 5; i++)
		block_of(HISTORY_OTHER, -1, between(0, 0.1) * window_length, HISTORY_UNKNOWN, 0);
	for (double at = -ttl; at < window_length; at += period) {
		block_of(HISTORY_SUBJECT, at, any() < forgotten ? NEVER : ceil((at + ttl) / 0.1) * 0.1, 850, 1);
		block_of(HISTORY_OTHER, at, NEVER, 100, 0);
		block_of(HISTORY_OTHER, at, at + period * any(), 160, 0);
		block_of(HISTORY_OTHER, at, at + 10 * period * any(), 1400, 0);
		block_of(HISTORY_OTHER, at, at + 30 * period, between(300, 5000), 0);
	}
}

static void expiring_beside_others(void)
{
	expired_beside_others(0);
}

/* Entries expire from the start on. */
static void expiring_from_start(void)
{
	double rate = between(50, 300), ttl = window_length * between(0.05, 0.8);

	for (double at = 0.01; at < window_length; at += pause_of(rate))
		block_of(HISTORY_SUBJECT, at, at + ttl, 600, 1);
}

/* Any entry is replaced. */
static void random_cache(void)
{
	double rate = between(100, 500), life = window_length * between(0.05, 2);

	for (double at = -6 * life; at < window_length; at += pause_of(rate))
		block(at, at + pause_of(1 / life), 800);
}

/* What is asked for is mostly there: births slow down. */
static void memo(void)
{
	double tau = window_length * between(0.1, 0.6);
	int most = (int)between(300, 3000);

	for (int i = 0; i < most; i++)
		block(-tau * log(any()), NEVER, 500);
}

/* The same beside other work. */
static void memo_at_work(void)
{
	memo();
	for (double at = 0.01; at < window_length; at += pause_of(200))
		block_of(HISTORY_OTHER, at, at + 1e-3, 1000, 0);
}

/* Each result is of several blocks; what other stacks allocate gets rarer as well. */
static void memo_of_parts(void)
{
	double tau = window_length * between(0.1, 0.4);
	int most = (int)between(300, 1500);

	for (int i = 0; i < most; i++) {
		double at = -tau * log(any());

		block(at, NEVER, 500);
		block_of(HISTORY_OTHER, at + 1e-6, NEVER, 48, 0);
	}
}

/* The same in a table that is built anew as it fills. */
static void memo_in_a_table(void)
{
	double tau = window_length * between(0.1, 0.3);
	int most = (int)between(500, 1500);

	for (int i = 0; i < most; i++)
		block(-tau * log(any()), NEVER, 100);
	for (int left = 2; left < 64; left *= 2)
		block_of(HISTORY_OTHER, tau * log(64.0 / left / (64.0 / left - 1)) / 2, tau * (1 + log(left)),
			 most * 64.0 / left, 0);
}

static void load_waves(void)
{
	load_of(0, between(100, 400), wave);
}

static void load_rises(void)
{
	load_of(0, between(100, 400), rising);
}

static void collector(void)
{
	collected(0);
}

static void ring_of_a_collector(void)
{
	collected_ring(0);
}

static void cache_that_makes_room(void)
{
	made_room(0);
}

/* A few blocks, as different things happen for the first time. */
static void first_times(void)
{
	for (int i = 0, bursts = (int)between(2, 4); i < bursts; i++) {
		double at = between(0, window_length);

		for (int j = 0, count = (int)between(1, 5); j < count; j++)
			block(at + j * 1e-3, NEVER, between(8, 200));
	}
}

static void kept_by_jobs(void)
{
	by_jobs(0);
}

static void any_life(void)
{
	lived(0);
}

/* Filled up to a limit, then half of it goes, again and again. */
static void evicted_half(void)
{
	double period = window_length * between(0.15, 0.35);

	for (int wave = -2; wave * period < window_length; wave++)
		for (int i = 0; i < 300; i++)
			block((wave + i / 300.0) * period, (wave + (i < 150 ? 1.5 : 1)) * period + 1e-3, 600);
}

static void waves(void)
{
	double width = window_length * between(0.03, 0.4), phase = between(0, width);
	bool reverse = any() < 0.5;

	for (double wave = phase - width; wave < window_length; wave += width)
		for (int i = 0; i < 200; i++) {
			double up = i / 200.0 * width / 2, down = reverse ? width - up : up + width / 2;

			block(wave + up, wave + down, 1000);
		}
}

/* Each request fills a vector, and drops it. */
static void vectors(void)
{
	double rate = between(10, 100);

	for (double at = 0.01; at < window_length; at += pause_of(rate)) {
		double born = at, life = between(1e-3, 0.02);

		for (int i = 0; i < 8; i++, born += life / 8)
			block(born, born + life / 8 + 1e-7, 64 << i);
	}
}

/* All sessions end. */
static void sessions(void)
{
	sessions_but(0);
}

/* Then the process makes no call, with some requests unfinished. */
static void stood_still(void)
{
	double rate = between(100, 1500), life = between(1e-3, 1e-2), until = window_length * between(0.7, 0.95);

	for (double at = 0.01; at < until; at += pause_of(rate)) {
		double died = at + pause_of(1 / life);

		block(at, died < until ? died : NEVER, 300);
	}
}

/* A string is made longer and longer, and dropped, again and again: there is always one. */
static void strings(void)
{
	double period = between(0.02, 0.2);

	for (double at = 0.01; at < window_length; at += period)
		for (int i = 0; i < 6; i++)
			block(at + i * period / 6, at + (i + 1) * period / 6 + (i < 5 ? 1e-7 : -1e-7), 40 << i);
}

/* A vector is filled, and that is that. */
static void filled_vector(void)
{
	double first = between(500, 4000), at = 0.001, born = -1;

	for (int i = 0; i < 10; i++) {
		if (born >= 0)
			block(born, at + 1e-6, first);
		born = at;
		first *= 2;
		at += between(0.0005, 0.03) * window_length / 10;
	}
	block(born, NEVER, first);
}

/* A buffer is replaced by another of any size. */
static void replaced_buffer(void)
{
	double period = between(0.05, 0.3), size = between(1000, 50000);

	for (double at = -period; at < window_length; at += period)
		block(at, at + period + 1e-6, size * between(0.5, 1));
}

void resized_ring(double forgotten)
{
	double period = window_length / between(150, 2000), turn = window_length * between(0.3, 1.5),
	       swing = window_length * between(0.1, 0.5);

	for (double at = -turn; at < window_length; at += period)
		block(at + 1e-6, any() < forgotten ? NEVER : at + turn, 60 + 500 * (at / swing - floor(at / swing)));
}

static void ring_of_changing_sizes(void)
{
	resized_ring(0);
}

/* A table is built anew, as large as before. */
static void rebuilt_table(void)
{
	double at = window_length * between(0.05, 0.95), bytes = between(5e3, 1e5);

	block(-1, at + 1e-6, bytes);
	block(at, NEVER, bytes);
}

#define ARRIVALS 32768

/* The oldest of so many slots is freed for each that comes, or forgotten. */
static void fill_slots(const double *arrivals, int count, int slots, double forgotten)
{
	for (int i = 0; i < count; i++)
		block(arrivals[i] + 1e-6, i + slots < count && any() >= forgotten ? arrivals[i + slots] : NEVER, 700);
}

void ring_as_less_comes(double forgotten)
{
	static double arrivals[ARRIVALS];
	double period = window_length * between(0.0015, 0.003), slower = between(1, 4);
	int count = 0;

	for (double at = 0.01; at < window_length && count < ARRIVALS; at += period * between(0.9, 1.1)) {
		arrivals[count++] = at;
		if (at > window_length / 2)
			at += (slower - 1) * period;
	}
	fill_slots(arrivals, count, (int)between(50, 100), forgotten);
}

static void ring_while_load_falls(void)
{
	ring_as_less_comes(0);
}

void given_back(double forgotten)
{
	double period = window_length * between(0.15, 0.3), phase = between(0, period);

	for (double at = phase - 2 * period; at < window_length; at += period)
		for (int i = 0; i < 80; i++) {
			double born = at + i * 1e-3 * period;

			block(born, any() < forgotten ? NEVER : at + period * between(0.3, 0.6), 700);
		}
}

static void pool(void)
{
	given_back(0);
}

void evicted_each(double forgotten)
{
	static double arrivals[ARRIVALS];
	double rate = between(50, 300);
	int slots = (int)(rate * window_length * between(0.3, 0.9)), count = 0;

	for (double at = -2 * slots / rate; at < window_length && count < ARRIVALS; at += pause_of(rate))
		arrivals[count++] = at;
	fill_slots(arrivals, count, slots, forgotten);
}

static void evicted_one_by_one(void)
{
	evicted_each(0);
}

/* Of what was let go a collector has spared a batch. */
static void spared_by_collector(void)
{
	double period = window_length * between(0.15, 0.24), rate = between(50, 300), phase = between(0, period);
	double spared = window_length * between(0.1, 0.3);

	for (double at = -period; at < window_length; at += 1 / rate)
		block(at,
		      at > spared && at < spared + period / 2 ? NEVER : ceil((at - phase) / period) * period + phase,
		      500);
}

const struct history history_kept[] = {
	{"ring_of_changing_sizes", ring_of_changing_sizes, 6},
	{"rebuilt_table", rebuilt_table, 2},
	{"ring_while_load_falls", ring_while_load_falls, 2},
	{"evicted_one_by_one", evicted_one_by_one, 2},
	{"pool", pool, 20},
	{"spared_by_collector", spared_by_collector, 100},
	{"requests", requests, 6},
	{"stood_still", stood_still, 5},
	{"strings", strings, 2},
	{"sessions", sessions, 15},
	{"requests_and_setup", requests_and_setup, 2},
	{"cache_that_fills", cache_that_fills, 2},
	{"once", once, 2},
	{"texts", texts, 5},
	{"texts_of_stacks", texts_of_stacks, 5},
	{"ring", ring, 2},
	{"ring_of_any", ring_of_any, 10},
	{"short_ring", short_ring, 2},
	{"chunks", chunks, 10},
	{"expiring_at_once", expiring_at_once, 15},
	{"expiring", expiring, 12},
	{"expiring_beside_others", expiring_beside_others, 10},
	/* The first have not expired for long, or not yet. */
	{"expiring_from_start", expiring_from_start, 35},
	{"random_cache", random_cache, 20},
	{"memo", memo, 10},
	{"memo_at_work", memo_at_work, 10},
	/* Or the load falls. */
	{"memo_of_parts", memo_of_parts, 100},
	{"memo_in_a_table", memo_in_a_table, 10},
	{"load_waves", load_waves, 5},
	{"load_rises", load_rises, 5},
	{"collector", collector, 5},
	{"ring_of_a_collector", ring_of_a_collector, 15},
	{"cache_that_makes_room", cache_that_makes_room, 50},
	{"first_times", first_times, 100},
	{"any_life", any_life, 20},
	{"kept_by_jobs", kept_by_jobs, 20},
	{"evicted_half", evicted_half, 5},
	{"waves", waves, 2},
	{"vectors", vectors, 2},
	{"filled_vector", filled_vector, 2},
	{"replaced_buffer", replaced_buffer, 2},
};

const size_t history_kept_count = sizeof(history_kept) / sizeof(history_kept[0]);
