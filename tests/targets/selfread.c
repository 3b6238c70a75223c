/* SPDX-License-Identifier: MIT */
/*
 * selfread MODE: a program that reads its own code. What it finds may change while it is watched, and is said
 * ("changed", "unchanged"); all else must go on, and be as it was afterwards.
 *
 * watch  threads sum up the code of the program and its libraries, through memory and through /proc/self/mem, which
 *        must give the same, while others allocate
 * every  reads every readable mapping that /proc/self/maps tells of, whosever it is, as a collector or a writer of
 *        core files does: no byte may be missing
 * mend   puts its code back as it is in the files wherever it differs, as programs do that don't want to be hooked
 */
#include "target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_RANGES 64
#define ROUNDS     25
#define THREADS    2
#define PAGE       4096u

#define PAGEMAP_GUARD (UINT64_C(1) << 58)

struct range {
	char *from;
	size_t size;
	uint64_t sum;
	off_t offset;
	char path[128];
};

static struct range code[MAX_RANGES];
static size_t code_count;
static _Atomic uint64_t pairs, leaks, changed, unchanged;
static _Atomic bool over;
static int memory = -1;
static const char *volatile reading = "";

static uint64_t sum_of(const char *at, size_t size)
{
	uint64_t sum = 0xcbf29ce484222325u, word;

	for (; size >= sizeof(word); at += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3u;
	}
	return sum;
}

/* The lines of /proc/self/maps, read without an allocation. False: there are no more. */
struct lines {
	int fd;
	size_t at, end;
	char buffer[8192];
};

static bool next_line(struct lines *lines, char line[512])
{
	size_t n = 0;

	for (;;) {
		if (lines->at == lines->end) {
			ssize_t got = read(lines->fd, lines->buffer, sizeof(lines->buffer));

			if (got <= 0)
				return false;
			lines->at = 0;
			lines->end = (size_t)got;
		}
		char c = lines->buffer[lines->at++];

		if (c == '\n')
			break;
		if (n < 511)
			line[n++] = c;
	}
	line[n] = '\0';
	return true;
}

struct mapping {
	uintptr_t from, to;
	char permissions[5];
	unsigned long offset;
	char path[128];
};

static bool next_mapping(struct lines *lines, struct mapping *mapping)
{
	char line[512];

	mapping->path[0] = '\0';
	return next_line(lines, line) &&
	       sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %lx %*s %*s %127s", &mapping->from, &mapping->to,
		      mapping->permissions, &mapping->offset, mapping->path) >= 4;
}

static void open_maps(struct lines *lines)
{
	lines->at = lines->end = 0;
	lines->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (lines->fd < 0)
		target_fail("/proc/self/maps");
}

/* The code of the program and its libraries, as it is before anybody looks on. */
static void learn(void)
{
	struct lines lines;
	struct mapping m;

	open_maps(&lines);
	while (next_mapping(&lines, &m)) {
		if (m.permissions[0] != 'r' || m.permissions[2] != 'x' || m.path[0] != '/' || code_count == MAX_RANGES)
			continue;
		struct range *range = &code[code_count++];

		range->from = (char *)m.from;
		range->size = m.to - m.from;
		range->offset = (off_t)m.offset;
		snprintf(range->path, sizeof(range->path), "%s", m.path);
		range->sum = sum_of(range->from, range->size);
	}
	close(lines.fd);
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (memory < 0 || code_count < 2)
		target_fail("its own memory can't be read");
}

static KEEP void selfread_pair(size_t i)
{
	char *block = malloc(1 + i % 900);

	OPAQUE(block);
	memset(block, 's', 1 + i % 900);
	free(block);
	atomic_fetch_add(&pairs, 1);
}

static KEEP void selfread_leak(void)
{
	void *block = malloc(53);

	OPAQUE(block);
	atomic_fetch_add(&leaks, 1);
}

static void *allocate(void *unused)
{
	for (size_t i = 0; !atomic_load(&over); i++) {
		selfread_pair(i);
		if (i % 10 == 0)
			selfread_leak();
		if (i % 50 == 0)
			usleep(1000);
	}
	return unused;
}

static uint64_t sum_by_file(const struct range *range)
{
	static __thread char page[16 * PAGE];
	uint64_t sum = 0xcbf29ce484222325u, word;

	for (size_t at = 0; at < range->size;) {
		ssize_t got = pread(memory, page, sizeof(page), (off_t)(uintptr_t)range->from + (off_t)at);

		if (got <= 0 || got % (ssize_t)sizeof(word))
			target_fail("/proc/self/mem");
		if ((size_t)got > range->size - at)
			got = (ssize_t)(range->size - at);
		for (ssize_t i = 0; i < got; i += (ssize_t)sizeof(word)) {
			memcpy(&word, page + i, sizeof(word));
			sum = (sum ^ word) * 0x100000001b3u;
		}
		at += (size_t)got;
	}
	return sum;
}

static bool look(void)
{
	bool same = true;

	for (size_t i = 0; i < code_count; i++) {
		uint64_t sum = sum_of(code[i].from, code[i].size);
		bool so = sum == code[i].sum;

		/* Hooks may come for a library at any time, but one that reads sees the same on both ways. */
		if (sum_by_file(&code[i]) != sum && sum_of(code[i].from, code[i].size) == sum)
			target_fail("/proc/self/mem shows other code than runs");
		same &= so;
	}
	if (same)
		unchanged++;
	else
		changed++;
	return same;
}

static void watch(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		look();
		selfread_pair((size_t)i);
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	target_say("fault at", (uint64_t)(uintptr_t)info->si_addr);
	target_say_text(reading);
	target_fail("a mapping that is readable can't be read");
}

/* Guards that are pages of a readable mapping (MADV_GUARD_INSTALL) and not mappings of their own: threads' stacks have
 * them since glibc 2.42. */
static bool is_guard(int pagemap, uintptr_t at)
{
	uint64_t entry = 0;

	return pread(pagemap, &entry, sizeof(entry), (off_t)(at / PAGE * sizeof(entry))) == (ssize_t)sizeof(entry) &&
	       (entry & PAGEMAP_GUARD) != 0;
}

/* One word of each page. Mappings may go between the list and the look: those of other threads' allocations. */
static void every(void)
{
	static struct mapping all[512];
	static char path[sizeof(all[0].path)];
	uint64_t sum = 0, read_bytes = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		struct lines lines;
		size_t count = 0, guards = 0;

		open_maps(&lines);
		while (count < 512 && next_mapping(&lines, &all[count]))
			count++;
		close(lines.fd);
		for (size_t i = 0; i < count; i++) {
			/* [vvar] is the kernel's, parts of it are there for no one. */
			if (all[i].permissions[0] != 'r' || strncmp(all[i].path, "[v", 2) == 0)
				continue;
			memcpy(path, all[i].path, sizeof(path));
			reading = path;
			for (uintptr_t at = all[i].from; at < all[i].to; at += PAGE) {
				if (!path[0] && is_guard(pagemap, at)) {
					guards++;
					continue;
				}
				sum += *(volatile char *)at;
				read_bytes += PAGE;
			}
		}
		if (guards > THREADS)
			target_fail("there are more guards than stacks");
		selfread_pair((size_t)round);
	}
	close(pagemap);
	OPAQUE(sum);
	if (read_bytes < ROUNDS * (1u << 20))
		target_fail("there was little to read");
}

/* The file's code over what is in memory, if that is other. */
static void mend(void)
{
	static char page[PAGE];

	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < code_count; i++) {
			int fd = open(code[i].path, O_RDONLY | O_CLOEXEC);

			if (fd < 0)
				target_fail("open");
			for (size_t at = 0; at < code[i].size; at += PAGE) {
				ssize_t got = pread(fd, page, sizeof(page), code[i].offset + (off_t)at);

				if (got <= 0 || memcmp(page, code[i].from + at, (size_t)got) == 0)
					continue;
				changed++;
				if (pwrite(memory, page, (size_t)got, (off_t)(uintptr_t)code[i].from + (off_t)at) !=
				    got)
					target_fail("its code can't be mended");
			}
			close(fd);
		}
		for (size_t i = 0; i < 20; i++)
			selfread_pair(i);
		usleep(2000);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "watch";
	bool mends = strcmp(mode, "mend") == 0;
	pthread_t threads[THREADS];

	learn();
	target_ready();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, allocate, NULL))
			target_fail("pthread_create");
	if (strcmp(mode, "watch") == 0)
		watch();
	else if (mends)
		mend();
	else
		every();
	over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	target_say("changed", changed);
	target_say("unchanged", unchanged);
	/* What happened while code was as in the files is nobody's to tell. */
	target_say(mends ? "pairs" : "selfread_pair.transient.count", pairs);
	target_say(mends ? "leaks" : "selfread_leak.impacting.count", leaks);
	target_done();
	/* The window is over. */
	changed = 0;
	if (!look())
		target_fail("its code is other than before the window");
	return 0;
}
