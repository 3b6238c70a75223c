// SPDX-License-Identifier: MIT
/* histories_leaks.c: what leaks; the same without what is forgotten is in histories_kept.c. */
#include "history_steps.h"

#include <math.h>

static void trickle(void)
{
	double rate = exp(between(log(1), log(500)));

	for (double at = pause_of(rate); at < window_length; at += pause_of(rate))
		block(at, NEVER, 100);
}

static void regular(void)
{
	double period = between(0.05, 1.5);

	for (double at = between(0, period); at < window_length; at += period)
		block(at, NEVER, between(50, 5000));
}

/* One of many is forgotten; the others live shortly, or not so shortly. */
static void on_error_path(void)
{
	double rate = between(200, 2000), life = exp(between(log(1e-4), log(0.5))), share = between(0.005, 0.1);

	for (double at = pause_of(rate); at < window_length; at += pause_of(rate))
		block(at, any() < share ? NEVER : at + pause_of(1 / life), 300);
}

static void bursts(void)
{
	double period = window_length * between(0.08, 0.2), phase = between(0, period);

	for (double at = phase; at < window_length; at += period)
		for (int i = 0; i < 100; i++)
			block(at + i * 1e-4, NEVER, 1000);
}

static void faster(void)
{
	for (int i = 1; i < 2000; i++)
		block(window_length * sqrt(i / 2000.0), NEVER, 100);
}

/* A queue whose consumer falls behind: first in, first out, ever later. */
static void queue(void)
{
	double rate = between(100, 1000), served = between(0.5, 0.9);

	for (double at = 0.01; at < window_length; at += 1 / rate)
		block(at, at / served + 1e-3, 200);
}

/* The same, where there was a backlog at attach: some seconds of older blocks go first. */
static void queue_of_old(void)
{
	double rate = between(100, 500), served = between(0.5, 0.8), backlog = between(0.5, 2);

	for (double at = -backlog; at < window_length; at += 1 / rate)
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
		if (at >= window_length)
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

	storage(first, 1.125, 6, 0.01, first / window_length * between(1, 4));
}

/* A string to which something is appended again and again, large at attach. */
static void string(void)
{
	double first = between(1e5, 1e6), period = between(0.02, 0.1);

	block(-1, 0.01, first);
	for (double at = 0.01; at < window_length; at += period, first += 50)
		block(at - 1e-6, at + period, first);
}

/* A text that is copied whenever something is appended; a temporary copy takes the place of the old one for a moment. */
static void text(void)
{
	double bytes = between(5e3, 5e4), period = window_length / between(100, 1000), added = bytes * between(0.5, 2);

	for (double at = 0.01; at < window_length; at += period) {
		block(at, at + period * between(0.95, 0.99), bytes + added * at / window_length);
		block_of(HISTORY_OTHER, at + 0.9 * period, at + period + 1e-5, bytes, 0);
	}
}

/* A text is copied by one of several stacks whenever something is appended. */
static void text_of_stacks(void)
{
	double bytes = between(5e3, 5e4), period = window_length / between(100, 300), added = bytes * between(0.2, 1);

	for (double at = 0.01; at < window_length; at += period)
		block_of(any() < 0.4 ? HISTORY_SUBJECT : HISTORY_OTHER, at, at + 1.01 * period,
			 bytes + added * at / window_length, 0);
}

/* A ring, and beside it what has the ring's size and is forgotten. */
static void beside_a_ring(void)
{
	double rate = between(20, 200);

	for (double at = -100; at < window_length; at += 1 / rate)
		block_of(HISTORY_OTHER, at, at + 50 + 1e-6, 400, 0);
	for (double at = 0.01; at < window_length; at += between(0.5, 1.5) / rate)
		block(at, NEVER, 400);
}

/* In each call an entry of a ring, and another block of its size. */
static void in_each_put(void)
{
	double period = between(0.005, 0.05);
	bool before = any() < 0.5;

	for (double at = -60; at < window_length; at += period) {
		block_of(HISTORY_OTHER, at, at + 50 * period * 1000 / 1000 + 40, 400, 0);
		block(at + (before ? -1e-5 : 1e-5), at < 0 ? -0.5 : NEVER, 400);
	}
}

/* Old sessions of the same size end, by another thread, while new ones are forgotten. */
static void while_others_go(void)
{
	double rate = between(20, 100);

	for (double at = 0; at < window_length / 2; at += 1 / rate)
		block_of(HISTORY_OTHER, -1, at, 400, 1);
	for (double at = 0.01; at < window_length; at += 1 / rate)
		block(at, NEVER, 400);
}

/* A cache of the same size is emptied, faster. */
static void while_a_cache_goes(void)
{
	double rate = between(20, 100), faster = between(3, 8);

	for (double at = 0.01; at < window_length; at += 1 / (rate * faster))
		block_of(HISTORY_OTHER, -1, at, 400, 1);
	for (double at = 0.01; at < window_length; at += 1 / rate)
		block(at, NEVER, 400);
}

void sessions_but(double forgotten)
{
	double rate = between(100, 300), life = window_length * between(0.05, 0.15);

	for (double at = -20 * life; at < window_length; at += 1 / rate)
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
	double rate = between(50, 300), ttl = window_length * between(0.15, 2), share = between(0.1, 0.3);

	for (double at = -ttl; at < window_length; at += 1 / rate)
		block_of(HISTORY_SUBJECT, at, any() < share ? NEVER : ceil((at + ttl) / 0.2) * 0.2, 600, 1);
}

/* Entries that come at random expire each at its time, by another thread, but for some. */
void expired_at_once(double forgotten)
{
	double rate = between(50, 300), ttl = window_length * between(0.1, 0.7);

	for (double at = -ttl; at < window_length; at += pause_of(rate))
		block_of(HISTORY_SUBJECT, at, any() < forgotten ? NEVER : at + ttl + 1e-3, 210, 1);
}

static void missed_at_once(void)
{
	expired_at_once(between(0.03, 0.1));
}

static void missed_beside_others(void)
{
	expired_beside_others(between(0.1, 0.3));
}

/* A job runs every period; what it takes lives on for any time, longer than the job, and some of it for ever. */
void by_jobs(double forgotten)
{
	double period = window_length * between(0.08, 0.25), life = window_length * between(0.05, 0.6);

	for (double at = -2 * life + between(0, period); at < window_length; at += period)
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
	double young = window_length * between(0.03, 0.08), old = window_length * between(0.25, 0.5),
	       rate = between(60, 300);
	double phase = between(0, old), forgotten = between(0.15, 0.4);

	for (double at = -2 * old; at < window_length; at += 1 / rate) {
		double died = ceil(at / young) * young;

		if (any() < 0.1)
			died = any() < forgotten ? NEVER : ceil((died - phase) / old) * old + phase + 0.01;
		block(at, died, 180);
	}
}

/* The load comes and goes, and with it what is forgotten. */
void load_of(double forgotten, double rate, double (*load)(double part))
{
	double life = exp(between(log(0.01), log(0.03 * window_length))), phase = any();

	for (double at = 0.01; at < window_length; at += pause_of(rate * load(phase + at / window_length)))
		block(at, any() < forgotten ? NEVER : at + 1e-6 + pause_of(1 / life), 300);
}

double wave(double part)
{
	return 1.1 + sin(part * 6.283);
}

double rising(double part)
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
	double rate = between(50, 200), tau = window_length * between(0.3, 0.8);

	for (double at = 0.01; at < window_length; at += pause_of(rate * exp(-at / tau))) {
		block(at, NEVER, 200);
		for (int i = 0; i < 5; i++)
			block_of(HISTORY_OTHER, at, at + 1e-3, 1000, 0);
	}
}

/* All that is let go goes at once, now and then; some never. */
void collected(double forgotten)
{
	double period = window_length * between(0.1, 0.4), next = between(0.3, 1) * period, rate = between(50, 300);

	for (double at = 0.01; at < window_length; at += 1 / rate) {
		while (next <= at)
			next += period * between(0.7, 1.3);
		block(at, any() < forgotten ? NEVER : next, 500);
	}
}

/* What falls out of a ring goes with all else that did, now and then; some never. */
void collected_ring(double forgotten)
{
	double turn = window_length * between(0.05, 1.5), period = window_length * between(0.08, 0.4),
	       rate = between(50, 300);

	for (double at = -turn - 2 * period; at < window_length; at += 1 / rate) {
		double next = ceil((at + turn) / period) * period;

		block(at, any() < forgotten ? NEVER : next + between(0, 0.01) * period, 500);
	}
}

static void missed_in_a_ring(void)
{
	collected_ring(between(0.1, 0.3));
}

/* Where a cache is full it makes room for more than one entry, the oldest first; some are forgotten. */
void made_room(double forgotten)
{
	double rate = between(50, 300), room = window_length * between(0.08, 0.4),
	       holds = window_length * between(0.5, 5);
	double phase = between(0, room);

	for (double at = -holds - 2 * room; at < window_length; at += 1 / rate)
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
	double period = window_length * between(0.1, 0.15), share = between(0.03, 0.3);

	for (double at = between(0, period); at < window_length; at += period)
		for (int i = 0; i < 200; i++)
			block(at + i * 1e-4, i < 200 * share ? NEVER : at + between(0.03, 0.1), 300);
}

/* Lifetimes are few and long, many and short. */
void lived(double forgotten)
{
	double rate = between(100, 400), shape = between(1.1, 1.6);

	for (double at = -window_length; at < window_length; at += 1 / rate) {
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
	double at = between(0.02, 0.05) * window_length, bytes = between(30, 60);

	for (int i = 0; i < 40; i++)
		block(between(0, 0.01), at + i * 5e-3, bytes);
	for (; at < window_length; at *= 2, bytes *= 2)
		for (int i = 0; i < 40; i++)
			block(at + i * 5e-3 - 1e-6, 2 * at < window_length ? 2 * at + i * 5e-3 : NEVER, 2 * bytes);
}

/* A string is made longer and longer, and its storage twice as large when it is full: once in the window. */
static void doubled_storage(void)
{
	double first = between(1e4, 1e6), at = window_length * between(0.01, 0.7);

	block(-1, at + 1e-6, first);
	block(at, NEVER, 2 * first);
}

/* Many buffers, each of which is replaced by a little larger one in turn. */
static void many_buffers(void)
{
	double period = between(0.003, 0.03), bytes = between(300, 3000), added = between(8, 40);
	int count = (int)between(20, 300);

	for (double at = -count * period; at < window_length; at += period, bytes += added)
		block(at - 1e-6, at + count * period, bytes);
}

static void missed_among_changing_sizes(void)
{
	resized_ring(between(0.05, 0.3));
}

static void missed_as_load_falls(void)
{
	ring_as_less_comes(between(0.1, 0.3));
}

static void missed_in_a_pool(void)
{
	given_back(between(0.05, 0.3));
}

static void pinned_in_a_cache(void)
{
	evicted_each(between(0.05, 0.2));
}

/* Requests were under way at attach. */
static void on_error_path_of_old(void)
{
	double rate = between(100, 500), life = window_length * between(0.003, 0.03), share = between(0.02, 0.1);

	for (double at = -10 * life; at < window_length; at += pause_of(rate))
		block(at, at >= 0 && any() < share ? NEVER : at + pause_of(1 / life), 600);
}

/* The load ends, and with it all that the program allocates. */
static void until_load_ends(void)
{
	double end = window_length * between(0.4, 0.8), rate = between(30, 300);

	for (double at = 0.01; at < end; at += pause_of(rate)) {
		block(at, NEVER, 500);
		block_of(HISTORY_OTHER, at + 1e-6, NEVER, 48, 0);
	}
}

const struct history history_leaks[] = {
	{"missed_among_changing_sizes", missed_among_changing_sizes, 40},
	{"missed_as_load_falls", missed_as_load_falls, 40},
	{"missed_in_a_pool", missed_in_a_pool, 60},
	{"pinned_in_a_cache", pinned_in_a_cache, 20},
	{"on_error_path_of_old", on_error_path_of_old, 10},
	/* Or a table has filled. */
	{"until_load_ends", until_load_ends, 100},
	{"trickle", trickle, 2},
	{"regular", regular, 2},
	{"on_error_path", on_error_path, 2},
	{"bursts", bursts, 5},
	{"faster", faster, 0},
	{"queue", queue, 2},
	{"queue_of_old", queue_of_old, 15},
	{"vector", vector, 2},
	{"list", list, 2},
	{"string", string, 2},
	{"text", text, 5},
	/* At the end another stack may have it. */
	{"text_of_stacks", text_of_stacks, 40},
	{"beside_a_ring", beside_a_ring, 2},
	{"in_each_put", in_each_put, 2},
	{"while_others_go", while_others_go, 2},
	{"while_a_cache_goes", while_a_cache_goes, 2},
	{"forgotten_sessions", forgotten_sessions, 10},
	{"few_forgotten_sessions", few_forgotten_sessions, 60},
	{"missed_at_once", missed_at_once, 40},
	{"missed_by_expiry", missed_by_expiry, 20},
	{"missed_beside_others", missed_beside_others, 20},
	{"forgotten_by_waves", forgotten_by_waves, 10},
	{"as_load_falls", as_load_falls, 10},
	{"missed_by_collector", missed_by_collector, 10},
	{"missed_in_a_ring", missed_in_a_ring, 25},
	{"forgotten_in_a_cache", forgotten_in_a_cache, 45},
	{"missed_by_generations", missed_by_generations, 100},
	{"jobs", jobs, 5},
	{"forgotten_by_jobs", forgotten_by_jobs, 45},
	{"forgotten_of_any_life", forgotten_of_any_life, 5},
	{"many_strings", many_strings, 10},
	{"many_buffers", many_buffers, 10},
	{"doubled_storage", doubled_storage, 100},
};

const size_t history_leak_count = sizeof(history_leaks) / sizeof(history_leaks[0]);
