// SPDX-License-Identifier: MIT
/* histories.c: see histories.h. */
#include "histories.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define NEVER INFINITY

static struct history_step *steps;
static uint32_t step_count, step_capacity, block_count;
static double length;
static uint64_t noise;

/* In (0, 1]. */
static double any(void)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return ((double)(noise >> 40) + 1) / (double)(1u << 24);
}

static double between(double low, double high)
{
	return low + (high - low) * any();
}

static double pause_of(double rate)
{
	return -log(any()) / rate;
}

static void add_step(double at, uint32_t block, uint32_t bytes, uint8_t stack, uint8_t thread, bool birth)
{
	if (at < 0 || at >= length)
		return;
	if (step_count == step_capacity) {
		step_capacity = step_capacity ? 2 * step_capacity : 4096;
		steps = realloc(steps, step_capacity * sizeof(*steps));
		assert_non_null(steps);
	}
	steps[step_count] = (struct history_step){at, step_count, block, bytes, stack, thread, birth};
	step_count++;
}

/* A block, which may be from before the window; freed by a thread. */
static void block_of(uint8_t stack, double born, double died, double bytes, uint8_t freer)
{
	uint32_t block = block_count++;

	add_step(born, block, (uint32_t)bytes, stack, 0, true);
	if (born < 0)
		add_step(died, block, (uint32_t)(((uint32_t)bytes + 8 + 15) & ~15u) - 8, stack, freer, false);
	else
		add_step(died, block, (uint32_t)bytes, stack, freer, false);
}

static void block(double born, double died, double bytes)
{
	block_of(HISTORY_SUBJECT, born, died, bytes, 0);
}

/* --- what leaks ------------------------------------------------------------------------------------------ */

static void trickle(void)
{
	double rate = exp(between(log(1), log(500)));

	for (double at = pause_of(rate); at < length; at += pause_of(rate))
		block(at, NEVER, 100);
}

static void regular(void)
{
	double period = between(0.05, 1.5);

	for (double at = between(0, period); at < length; at += period)
		block(at, NEVER, between(50, 5000));
}

/* One of many is forgotten; the others live shortly, or not so shortly. */
static void on_error_path(void)
{
	double rate = between(200, 2000), life = exp(between(log(1e-4), log(0.5))), share = between(0.005, 0.1);

	for (double at = pause_of(rate); at < length; at += pause_of(rate))
		block(at, any() < share ? NEVER : at + pause_of(1 / life), 300);
}

static void bursts(void)
{
	double period = length * between(0.08, 0.2), phase = between(0, period);

	for (double at = phase; at < length; at += period)
		for (int i = 0; i < 100; i++)
			block(at + i * 1e-4, NEVER, 1000);
}

static void faster(void)
{
	for (int i = 1; i < 2000; i++)
		block(length * sqrt(i / 2000.0), NEVER, 100);
}

/* A queue whose consumer falls behind: first in, first out, ever later. */
static void queue(void)
{
	double rate = between(100, 1000), served = between(0.5, 0.9);

	for (double at = 0.01; at < length; at += 1 / rate)
		block(at, at / served + 1e-3, 200);
}

/* The same, where there was a backlog at attach: some seconds of older blocks go first. */
static void queue_of_old(void)
{
	double rate = between(100, 500), served = between(0.5, 0.8), backlog = between(0.5, 2);

	for (double at = -backlog; at < length; at += 1 / rate)
		block(at, (at + backlog) / served + 1e-3, 200);
}

/* A vector: the new storage is there before the old goes. */
static void storage(double first, double factor, double added, double start, double rate)
{
	double bytes = first, filled = first, at = start, born = -1;

	for (;;) {
		double next = (bytes - filled) / rate, grown = bytes * factor + added;

		at += fmax(next, 1e-4);
		filled = bytes;
		block(born, at + 1e-6, bytes);
		born = at;
		bytes = grown;
		if (at >= length)
			break;
	}
	block(born, NEVER, bytes);
}

/* By doubling, from the start on. */
static void vector(void)
{
	double first = between(500, 4000);

	storage(first, 2, 0, 0.001, first * between(5, 20));
}

/* An eighth more each time, from what it was at attach. */
static void list(void)
{
	double first = between(1e4, 1e6);

	storage(first, 1.125, 6, 0.01, first / length * between(1, 4));
}

/* A string to which something is appended again and again, large at attach. */
static void string(void)
{
	double first = between(1e5, 1e6), period = between(0.02, 0.1);

	block(-1, 0.01, first);
	for (double at = 0.01; at < length; at += period, first += 50)
		block(at - 1e-6, at + period, first);
}

/* A text that is copied whenever something is appended; a temporary copy takes the place of the old one for a moment. */
static void text(void)
{
	double bytes = between(5e3, 5e4), period = length / between(100, 1000), added = bytes * between(0.5, 2);

	for (double at = 0.01; at < length; at += period) {
		block(at, at + period * between(0.95, 0.99), bytes + added * at / length);
		block_of(HISTORY_OTHER, at + 0.9 * period, at + period + 1e-5, bytes, 0);
	}
}

/* A ring, and beside it what has the ring's size and is forgotten. */
static void beside_a_ring(void)
{
	double rate = between(20, 200);

	for (double at = -100; at < length; at += 1 / rate)
		block_of(HISTORY_OTHER, at, at + 50 + 1e-6, 400, 0);
	for (double at = 0.01; at < length; at += between(0.5, 1.5) / rate)
		block(at, NEVER, 400);
}

/* In each call an entry of a ring, and another block of its size. */
static void in_each_put(void)
{
	double period = between(0.005, 0.05);
	bool before = any() < 0.5;

	for (double at = -60; at < length; at += period) {
		block_of(HISTORY_OTHER, at, at + 50 * period * 1000 / 1000 + 40, 400, 0);
		block(at + (before ? -1e-5 : 1e-5), at < 0 ? -0.5 : NEVER, 400);
	}
}

/* Old sessions of the same size end, by another thread, while new ones are forgotten. */
static void while_others_go(void)
{
	double rate = between(20, 100);

	for (double at = 0; at < length / 2; at += 1 / rate)
		block_of(HISTORY_OTHER, -1, at, 400, 1);
	for (double at = 0.01; at < length; at += 1 / rate)
		block(at, NEVER, 400);
}

/* A cache of the same size is emptied, faster. */
static void while_a_cache_goes(void)
{
	double rate = between(20, 100), faster = between(3, 8);

	for (double at = 0.01; at < length; at += 1 / (rate * faster))
		block_of(HISTORY_OTHER, -1, at, 400, 1);
	for (double at = 0.01; at < length; at += 1 / rate)
		block(at, NEVER, 400);
}

static void sessions_but(double forgotten)
{
	double rate = between(100, 300), life = length * between(0.05, 0.15);

	for (double at = -20 * life; at < length; at += 1 / rate)
		block_of(HISTORY_SUBJECT, at, any() < forgotten ? NEVER : at + life / 3 + pause_of(1 / life), 900, 0);
}

/* Of sessions that end one is forgotten now and then. */
static void forgotten_sessions(void)
{
	sessions_but(between(0.1, 0.3));
}

static void few_forgotten_sessions(void)
{
	sessions_but(between(0.03, 0.1));
}

/* Entries expire, but for some. */
static void missed_by_expiry(void)
{
	double rate = between(50, 300), ttl = length * between(0.15, 2), share = between(0.1, 0.3);

	for (double at = -ttl; at < length; at += 1 / rate)
		block_of(HISTORY_SUBJECT, at, any() < share ? NEVER : ceil((at + ttl) / 0.2) * 0.2, 600, 1);
}

/* Entries that come at random expire each at its time, by another thread, but for some. */
static void expired_at_once(double forgotten)
{
	double rate = between(50, 300), ttl = length * between(0.1, 0.7);

	for (double at = -ttl; at < length; at += pause_of(rate))
		block_of(HISTORY_SUBJECT, at, any() < forgotten ? NEVER : at + ttl + 1e-3, 210, 1);
}

static void missed_at_once(void)
{
	expired_at_once(between(0.03, 0.1));
}

/* A job runs every period; what it takes lives on for any time, longer than the job, and some of it for ever. */
static void by_jobs(double forgotten)
{
	double period = length * between(0.08, 0.25), life = length * between(0.05, 0.6);

	for (double at = -2 * life + between(0, period); at < length; at += period)
		for (int i = 0; i < 300; i++)
			block(at + i * 1e-4, any() < forgotten ? NEVER : at + 0.1 + life * any(), 450);
}

static void forgotten_by_jobs(void)
{
	by_jobs(between(0.05, 0.3));
}

/* Most go when the young are collected; what outlived that goes with the old, seldom, but for some. */
static void missed_by_generations(void)
{
	double young = length * between(0.03, 0.08), old = length * between(0.25, 0.5), rate = between(60, 300);
	double phase = between(0, old), forgotten = between(0.15, 0.4);

	for (double at = -2 * old; at < length; at += 1 / rate) {
		double died = ceil(at / young) * young;

		if (any() < 0.1)
			died = any() < forgotten ? NEVER : ceil((died - phase) / old) * old + phase + 0.01;
		block(at, died, 180);
	}
}

/* The load comes and goes, and with it what is forgotten. */
static void load_of(double forgotten, double rate, double (*load)(double part))
{
	double life = exp(between(log(0.01), log(0.03 * length))), phase = any();

	for (double at = 0.01; at < length; at += pause_of(rate * load(phase + at / length)))
		block(at, any() < forgotten ? NEVER : at + 1e-6 + pause_of(1 / life), 300);
}

static double wave(double part)
{
	return 1.1 + sin(part * 6.283);
}

static double rising(double part)
{
	return 0.3 + 1.5 * (part - floor(part));
}

static void forgotten_by_waves(void)
{
	load_of(between(0.03, 0.1), between(100, 400), wave);
}

/* The load falls, and with it what is forgotten. */
static void as_load_falls(void)
{
	double rate = between(50, 200), tau = length * between(0.3, 0.8);

	for (double at = 0.01; at < length; at += pause_of(rate * exp(-at / tau))) {
		block(at, NEVER, 200);
		for (int i = 0; i < 5; i++)
			block_of(HISTORY_OTHER, at, at + 1e-3, 1000, 0);
	}
}

/* All that is let go goes at once, now and then; some never. */
static void collected(double forgotten)
{
	double period = length * between(0.1, 0.4), next = between(0.3, 1) * period, rate = between(50, 300);

	for (double at = 0.01; at < length; at += 1 / rate) {
		while (next <= at)
			next += period * between(0.7, 1.3);
		block(at, any() < forgotten ? NEVER : next, 500);
	}
}

/* What falls out of a ring goes with all else that did, now and then; some never. */
static void collected_ring(double forgotten)
{
	double turn = length * between(0.05, 1.5), period = length * between(0.08, 0.4), rate = between(50, 300);

	for (double at = -turn - 2 * period; at < length; at += 1 / rate) {
		double next = ceil((at + turn) / period) * period;

		block(at, any() < forgotten ? NEVER : next + between(0, 0.01) * period, 500);
	}
}

static void missed_in_a_ring(void)
{
	collected_ring(between(0.1, 0.3));
}

/* Where a cache is full it makes room for more than one entry, the oldest first; some are forgotten. */
static void made_room(double forgotten)
{
	double rate = between(50, 300), room = length * between(0.08, 0.4), holds = length * between(0.5, 5);
	double phase = between(0, room);

	for (double at = -holds - 2 * room; at < length; at += 1 / rate)
		block(at, any() < forgotten ? NEVER : ceil((at + holds - phase) / room) * room + phase, 700);
}

static void forgotten_in_a_cache(void)
{
	made_room(between(0.1, 0.3));
}

static void missed_by_collector(void)
{
	collected(between(0.1, 0.3));
}

/* A job runs now and then, and leaves some of what it took. */
static void jobs(void)
{
	double period = length * between(0.1, 0.15), share = between(0.03, 0.3);

	for (double at = between(0, period); at < length; at += period)
		for (int i = 0; i < 200; i++)
			block(at + i * 1e-4, i < 200 * share ? NEVER : at + between(0.03, 0.1), 300);
}

/* Lifetimes are few and long, many and short. */
static void lived(double forgotten)
{
	double rate = between(100, 400), shape = between(1.1, 1.6);

	for (double at = -length; at < length; at += 1 / rate) {
		double died = at + 0.005 * pow(any(), -1 / shape);

		block(at, any() < forgotten ? NEVER : died, 400);
	}
}

static void forgotten_of_any_life(void)
{
	lived(between(0.02, 0.1));
}

/* Strings of many, to each of which something is appended. */
static void many_strings(void)
{
	double at = between(0.02, 0.05) * length, bytes = between(30, 60);

	for (int i = 0; i < 40; i++)
		block(between(0, 0.01), at + i * 5e-3, bytes);
	for (; at < length; at *= 2, bytes *= 2)
		for (int i = 0; i < 40; i++)
			block(at + i * 5e-3 - 1e-6, 2 * at < length ? 2 * at + i * 5e-3 : NEVER, 2 * bytes);
}

/* A string is made longer and longer, and its storage twice as large when it is full: once in the window. */
static void doubled_storage(void)
{
	double first = between(1e4, 1e6), at = length * between(0.01, 0.7);

	block(-1, at + 1e-6, first);
	block(at, NEVER, 2 * first);
}

/* Many buffers, each of which is replaced by a little larger one in turn. */
static void many_buffers(void)
{
	double period = between(0.003, 0.03), bytes = between(300, 3000), added = between(8, 40);
	int count = (int)between(20, 300);

	for (double at = -count * period; at < length; at += period, bytes += added)
		block(at - 1e-6, at + count * period, bytes);
}

/* --- what does not --------------------------------------------------------------------------------------- */

static void requests(void)
{
	double rate = exp(between(log(5), log(1500))), life = exp(between(log(1e-4), log(0.1 * length)));

	for (double at = -5 * life; at < length; at += pause_of(rate))
		block(at, at + 1e-6 + pause_of(1 / life), 300);
}

/* A stack's blocks live shortly, but a few at the start stay. */
static void requests_and_setup(void)
{
	double rate = between(100, 1500), life = exp(between(log(1e-4), log(0.1)));

	for (double at = 0.01; at < length; at += pause_of(rate))
		block(at, at + 1e-6 + pause_of(1 / life), 300);
	for (int i = 0; i < 3; i++)
		block(0.05 + i * 1e-3, NEVER, 300);
}

static void cache_that_fills(void)
{
	double until = length * between(0.1, 0.5);

	for (double at = 0.01; at < until; at += 0.01)
		block(at, NEVER, 1000);
}

static void once(void)
{
	double at = length * between(0.01, 0.3);

	for (int i = 0; i < 50; i++)
		block(at + i * 1e-3, NEVER, 12345);
}

/* A text is built anew again and again, of any size. */
static void texts(void)
{
	double bytes = between(5e3, 5e4), period = length / between(100, 1000);

	for (double at = 0.01; at < length; at += period)
		block(at, at + period * between(0.95, 0.99), bytes * between(0.5, 1.5));
}

/* Each call replaces the oldest entry, all from before the window. */
static void ring(void)
{
	double period = between(0.005, 0.1), size = between(100, 3000);
	bool before = any() < 0.5;

	for (double at = 0.01; at < length; at += period) {
		block(-1, at, size);
		block(at + (before ? -1e-5 : 1e-5), NEVER, size);
	}
}

/* Of sizes at random. */
static void ring_of_any(void)
{
	double period = between(0.005, 0.02);

	for (double at = 0.01; at < length; at += period) {
		block(-1, at, between(100, 4000));
		block(at + 1e-5, NEVER, between(100, 4000));
	}
}

/* The window is longer than the ring. */
static void short_ring(void)
{
	double period = between(0.005, 0.05), turn = length * between(0.1, 0.9);

	for (double at = -turn; at < length; at += period)
		block(at, at + turn, 500);
}

/* A queue of a fixed length, in chunks: one goes for each that comes. */
static void chunks(void)
{
	double period = between(0.05, 0.4), turn = between(50, 300) * period;

	for (double at = -turn; at < length; at += period)
		block_of(HISTORY_SUBJECT, at, at + turn + between(0, 0.1) * period, 512, 1);
}

static void expiring_at_once(void)
{
	expired_at_once(0);
}

/* Entries expire, by a thread that looks once in a while. */
static void expiring(void)
{
	double rate = between(50, 300), ttl = length * between(0.15, 3);

	for (double at = -ttl; at < length; at += pause_of(rate))
		block_of(HISTORY_SUBJECT, at, ceil((at + ttl) / 0.2) * 0.2, 600, 1);
}

/* The same from the start on. */
static void expiring_from_start(void)
{
	double rate = between(50, 300), ttl = length * between(0.05, 0.8);

	for (double at = 0.01; at < length; at += pause_of(rate))
		block_of(HISTORY_SUBJECT, at, at + ttl, 600, 1);
}

/* Any entry is replaced. */
static void random_cache(void)
{
	double rate = between(100, 500), life = length * between(0.05, 2);

	for (double at = -6 * life; at < length; at += pause_of(rate))
		block(at, at + pause_of(1 / life), 800);
}

/* What is asked for is mostly there: births slow down. */
static void memo(void)
{
	double tau = length * between(0.1, 0.6);
	int most = (int)between(300, 3000);

	for (int i = 0; i < most; i++)
		block(-tau * log(any()), NEVER, 500);
}

/* The same beside other work. */
static void memo_at_work(void)
{
	memo();
	for (double at = 0.01; at < length; at += pause_of(200))
		block_of(HISTORY_OTHER, at, at + 1e-3, 1000, 0);
}

/* Each result is of several blocks; what other stacks allocate gets rarer as well. */
static void memo_of_parts(void)
{
	double tau = length * between(0.1, 0.4);
	int most = (int)between(300, 1500);

	for (int i = 0; i < most; i++) {
		double at = -tau * log(any());

		block(at, NEVER, 500);
		block_of(HISTORY_OTHER, at + 1e-6, NEVER, 48, 0);
	}
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
		double at = between(0, length);

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
	double period = length * between(0.15, 0.35);

	for (int wave = -2; wave * period < length; wave++)
		for (int i = 0; i < 300; i++)
			block((wave + i / 300.0) * period, (wave + (i < 150 ? 1.5 : 1)) * period + 1e-3, 600);
}

static void waves(void)
{
	double width = length * between(0.03, 0.4), phase = between(0, width);
	bool reverse = any() < 0.5;

	for (double wave = phase - width; wave < length; wave += width)
		for (int i = 0; i < 200; i++) {
			double up = i / 200.0 * width / 2, down = reverse ? width - up : up + width / 2;

			block(wave + up, wave + down, 1000);
		}
}

/* Each request fills a vector, and drops it. */
static void vectors(void)
{
	double rate = between(10, 100);

	for (double at = 0.01; at < length; at += pause_of(rate)) {
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
	double rate = between(100, 1500), life = between(1e-3, 1e-2), until = length * between(0.7, 0.95);

	for (double at = 0.01; at < until; at += pause_of(rate)) {
		double died = at + pause_of(1 / life);

		block(at, died < until ? died : NEVER, 300);
	}
}

/* A string is made longer and longer, and dropped, again and again: there is always one. */
static void strings(void)
{
	double period = between(0.02, 0.2);

	for (double at = 0.01; at < length; at += period)
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
		at += between(0.0005, 0.03) * length / 10;
	}
	block(born, NEVER, first);
}

/* A buffer is replaced by another of any size. */
static void replaced_buffer(void)
{
	double period = between(0.05, 0.3), size = between(1000, 50000);

	for (double at = -period; at < length; at += period)
		block(at, at + period + 1e-6, size * between(0.5, 1));
}

/* --- all of them ------------------------------------------------------------------------------------------- */

const struct history histories[] = {
	{"trickle", trickle, true, 2},
	{"regular", regular, true, 2},
	{"on_error_path", on_error_path, true, 2},
	{"bursts", bursts, true, 5},
	{"faster", faster, true, 0},
	{"queue", queue, true, 2},
	{"queue_of_old", queue_of_old, true, 15},
	{"vector", vector, true, 2},
	{"list", list, true, 2},
	{"string", string, true, 2},
	{"text", text, true, 5},
	{"beside_a_ring", beside_a_ring, true, 2},
	{"in_each_put", in_each_put, true, 2},
	{"while_others_go", while_others_go, true, 2},
	{"while_a_cache_goes", while_a_cache_goes, true, 2},
	{"forgotten_sessions", forgotten_sessions, true, 10},
	{"few_forgotten_sessions", few_forgotten_sessions, true, 60},
	{"missed_at_once", missed_at_once, true, 40},
	{"missed_by_expiry", missed_by_expiry, true, 20},
	{"forgotten_by_waves", forgotten_by_waves, true, 10},
	{"as_load_falls", as_load_falls, true, 10},
	{"missed_by_collector", missed_by_collector, true, 10},
	{"missed_in_a_ring", missed_in_a_ring, true, 25},
	{"forgotten_in_a_cache", forgotten_in_a_cache, true, 45},
	{"missed_by_generations", missed_by_generations, true, 100},
	{"jobs", jobs, true, 5},
	{"forgotten_by_jobs", forgotten_by_jobs, true, 45},
	{"forgotten_of_any_life", forgotten_of_any_life, true, 5},
	{"many_strings", many_strings, true, 10},
	{"many_buffers", many_buffers, true, 10},
	{"doubled_storage", doubled_storage, true, 100},
	{"requests", requests, false, 6},
	{"stood_still", stood_still, false, 5},
	{"strings", strings, false, 2},
	{"sessions", sessions, false, 15},
	{"requests_and_setup", requests_and_setup, false, 2},
	{"cache_that_fills", cache_that_fills, false, 2},
	{"once", once, false, 2},
	{"texts", texts, false, 5},
	{"ring", ring, false, 2},
	{"ring_of_any", ring_of_any, false, 10},
	{"short_ring", short_ring, false, 2},
	{"chunks", chunks, false, 10},
	{"expiring_at_once", expiring_at_once, false, 15},
	{"expiring", expiring, false, 10},
	/* The first have not expired for long, or not yet. */
	{"expiring_from_start", expiring_from_start, false, 35},
	{"random_cache", random_cache, false, 20},
	{"memo", memo, false, 10},
	{"memo_at_work", memo_at_work, false, 10},
	/* Or the load falls. */
	{"memo_of_parts", memo_of_parts, false, 100},
	{"load_waves", load_waves, false, 5},
	{"load_rises", load_rises, false, 5},
	{"collector", collector, false, 5},
	{"ring_of_a_collector", ring_of_a_collector, false, 15},
	{"cache_that_makes_room", cache_that_makes_room, false, 50},
	{"first_times", first_times, false, 100},
	{"any_life", any_life, false, 20},
	{"kept_by_jobs", kept_by_jobs, false, 20},
	{"evicted_half", evicted_half, false, 5},
	{"waves", waves, false, 2},
	{"vectors", vectors, false, 2},
	{"filled_vector", filled_vector, false, 2},
	{"replaced_buffer", replaced_buffer, false, 2},
};

const size_t history_count = sizeof(histories) / sizeof(histories[0]);

static int compare_steps(const void *left, const void *right)
{
	const struct history_step *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

size_t history_make(const struct history *history, double seconds, uint64_t seed, const struct history_step **out)
{
	length = seconds;
	noise = seed;
	any();
	step_count = block_count = 0;
	history->make();
	qsort(steps, step_count, sizeof(*steps), compare_steps);
	*out = steps;
	return step_count;
}

void history_end(void)
{
	free(steps);
	steps = NULL;
	step_capacity = 0;
}
