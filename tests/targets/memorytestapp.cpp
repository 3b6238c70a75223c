/* SPDX-License-Identifier: MIT */
/*
 * memorytestapp [SCALE]: the program whose memory a well-known walkthrough of heap analysis looks at, with mmap for
 * large buffers. It runs for 30 s times SCALE (default 1), with the same amounts whatever the scale.
 *
 * - From the beginning to the end it holds 10 MiB; half way it takes 10 MiB more. Both by mmap in main.
 * - Ten spikes of 10 MiB for 100 ms times SCALE, in main > Operation1 > ManipulateTemporaryBuffer.
 * - 1,200 blocks of 40 bytes, one after the other, by new in main > InnerLoopOperation: 319 of them planned in the
 *   third of the run that lies in the middle.
 * - In the end all is given back. Together 120 MiB (126 MB) and 48,000 bytes.
 *
 * Answers, in nanoseconds of CLOCK_MONOTONIC: "begin", "end", "steady.BEFORE=AFTER" and "step.BEFORE=AFTER" (of the
 * call), "spike.N.BEFORE=AFTER" (of all of it, N from 0), "new.N.BEFORE=AFTER", "freeing" (when giving back begins).
 */
#include "target.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sys/mman.h>

namespace
{
constexpr size_t large = 10 << 20;
constexpr unsigned spikes = 10, records = 1200, records_in_the_middle = 319;
constexpr double seconds = 30;

struct Record {
	char bytes[40];
};

struct Span {
	uint64_t before, after;
};

double scale = 1;
uint64_t begin;
Span spike_spans[spikes];
Record *kept[records];
Span record_spans[records];

uint64_t now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

/* A moment of the plan, seconds at scale 1. */
uint64_t planned(double at)
{
	return begin + uint64_t(at * scale * 1e9);
}

void sleep_until(uint64_t time)
{
	timespec t = {time_t(time / 1000000000), long(time % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0)
		;
}

/* A moment in which nothing goes on, also where the plan is behind. */
void rest()
{
	sleep_until(now() + 5000000);
}

void *must(void *mapped)
{
	if (mapped == MAP_FAILED)
		target_fail("mmap");
	return mapped;
}

/* When a record is to be made: a third of the time each for those before the middle, in it and after it. */
double record_at(unsigned number)
{
	constexpr unsigned middle = (records - records_in_the_middle) / 2, last = middle + records_in_the_middle;

	if (number < middle)
		return seconds / 3 * (number + 0.5) / middle;
	if (number < last)
		return seconds / 3 * (1 + (number - middle + 0.5) / records_in_the_middle);
	return seconds / 3 * (2 + (number - last + 0.5) / (records - last));
}

double spike_at(unsigned number)
{
	return seconds * (number + 0.5) / spikes + 0.4;
}

void say_span(const char *name, int number, Span span)
{
	char key[64];

	if (number < 0)
		snprintf(key, sizeof(key), "%s.%llu", name, (unsigned long long)span.before);
	else
		snprintf(key, sizeof(key), "%s.%d.%llu", name, number, (unsigned long long)span.before);
	target_say(key, span.after);
}
} // namespace

KEEP void ManipulateTemporaryBuffer(Span *span)
{
	span->before = now();
	auto *buffer = static_cast<volatile char *>(
		must(mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
	uint64_t end = now() + uint64_t(0.1 * scale * 1e9);

	for (size_t at = 0; at < large; at += 4096)
		buffer[at] = 1;
	sleep_until(end);
	munmap(const_cast<char *>(buffer), large);
	span->after = now();
}

KEEP void Operation1(unsigned number)
{
	ManipulateTemporaryBuffer(&spike_spans[number]);
	OPAQUE(number);
}

KEEP void InnerLoopOperation(unsigned number)
{
	record_spans[number].before = now();
	kept[number] = new Record;
	OPAQUE(kept[number]);
	record_spans[number].after = now();
}

int main(int argc, char **argv)
{
	Span steady, step = {};
	void *held[2] = {};
	unsigned spike = 0, record = 0;

	scale = argc > 1 ? std::atof(argv[1]) : 1;
	target_ready_for(600);
	begin = now();
	steady.before = begin;
	held[0] = must(mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	steady.after = now();
	while (spike < spikes || record < records || !held[1]) {
		double next_spike = spike < spikes ? spike_at(spike) : seconds;
		double next_record = record < records ? record_at(record) : seconds;
		double next_step = held[1] ? seconds : seconds / 2;

		if (next_record <= next_spike && next_record <= next_step) {
			sleep_until(planned(next_record));
			InnerLoopOperation(record++);
		} else if (next_spike <= next_step) {
			sleep_until(planned(next_spike));
			Operation1(spike++);
			rest();
		} else {
			sleep_until(planned(next_step));
			rest();
			step.before = now();
			held[1] =
				must(mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
			step.after = now();
			rest();
		}
	}
	sleep_until(planned(seconds));
	uint64_t freeing = now();
	for (auto *block : kept)
		delete block;
	for (auto *mapped : held)
		munmap(mapped, large);
	target_say("end", now());
	target_say("begin", begin);
	target_say("freeing", freeing);
	say_span("steady", -1, steady);
	say_span("step", -1, step);
	for (unsigned i = 0; i < spikes; i++)
		say_span("spike", int(i), spike_spans[i]);
	for (unsigned i = 0; i < records; i++)
		say_span("new", int(i), record_spans[i]);
	target_done();
	return 0;
}
