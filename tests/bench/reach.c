// SPDX-License-Identifier: MIT
/*
 * reach BLOCKS AVERAGE RARITY [THREADS]: how quickly a made-up heap of another process is looked through for reachable
 * blocks, with and without dominators, and in how much memory. AVERAGE is the bytes of a block. A third of the words of the
 * first 128 bytes of a block are pointers, most to blocks near by; behind these one of RARITY is.
 *
 * With 0 for RARITY the blocks are a binary tree: each but the first is pointed to by one other, anywhere.
 */
#include "heap/reach.h"
#include "heap/retained.h"

#include "base/path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEAP     UINT64_C(0x600000000000)
#define DATA     UINT64_C(0x500000000000)
#define ROOTS    512u
#define NEAR     1000u
#define TAIL     8u
#define CHILDREN 2u

struct heap {
	uint64_t blocks, average, rarity, bytes;
	mw_addr *starts; /* one more than there are blocks */
};

static uint64_t roll(uint64_t *random, uint64_t sides)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random % sides;
}

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void must(struct mw_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "reach: %s\n", mw_error_text(err));
	exit(1);
}

static void lay_out(struct heap *heap)
{
	uint64_t random = 88172645463325252;
	mw_addr at = HEAP;

	heap->starts = malloc((heap->blocks + 1) * sizeof(*heap->starts));
	if (!heap->starts)
		fail("malloc");
	for (uint64_t i = 0; i <= heap->blocks; i++) {
		heap->starts[i] = at;
		at += 32 + roll(&random, 2 * (heap->average - 24) / 16) * 16;
	}
	heap->bytes = (heap->starts[heap->blocks] - HEAP + 4095) & ~UINT64_C(4095);
}

static uint64_t *map(mw_addr at, uint64_t size)
{
	void *memory = mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			    -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

/* Each block, in an order of no meaning, is pointed to by one before it that has a word free. */
static void fill_tree(const struct heap *heap, uint64_t *words, uint64_t *roots)
{
	uint64_t random = 1234567;
	uint32_t *order = malloc(heap->blocks * sizeof(*order));

	if (!order)
		fail("malloc");
	for (uint64_t i = 0; i < heap->blocks; i++) {
		uint64_t other = roll(&random, i + 1);

		order[i] = order[other];
		order[other] = (uint32_t)i;
	}
	roots[0] = heap->starts[order[0]];
	for (uint64_t i = 1; i < heap->blocks;) {
		uint64_t parent = order[roll(&random, i)];
		uint64_t count = (heap->starts[parent + 1] - heap->starts[parent] - TAIL) / 8;
		uint64_t *word = words + (heap->starts[parent] - HEAP) / 8;

		for (uint64_t k = 0; k < count && k < CHILDREN; k++) {
			if (word[k])
				continue;
			word[k] = heap->starts[order[i++]];
			break;
		}
	}
	free(order);
}

static void fill(const struct heap *heap)
{
	uint64_t *words = map(HEAP, heap->bytes), *roots = map(DATA, 4096), random = 1234567;

	if (heap->rarity == 0) {
		fill_tree(heap, words, roots);
		return;
	}
	for (uint64_t i = 0; i < heap->blocks; i++) {
		uint64_t count = (heap->starts[i + 1] - heap->starts[i] - TAIL) / 8;
		uint64_t *word = words + (heap->starts[i] - HEAP) / 8;

		for (uint64_t k = 0; k < count; k++) {
			uint64_t near = (i + roll(&random, NEAR)) % heap->blocks;

			word[k] = random >> 32;
			if (roll(&random, k < 16 ? 3 : heap->rarity) == 0)
				word[k] = heap->starts[roll(&random, 4) ? near : roll(&random, heap->blocks)];
		}
	}
	for (unsigned i = 0; i < ROOTS; i++)
		roots[i] = heap->starts[roll(&random, heap->blocks)];
}

/* The process whose heap it is. */
static pid_t start(const struct heap *heap)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) != 0 || (pid = fork()) < 0)
		fail("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fill(heap);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		fail("read");
	return pid;
}

static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	ssize_t got = pread(*(int *)context, out, size, (off_t)addr);

	return got > 0 ? (size_t)got : 0;
}

static struct mw_blocks *blocks_of(const struct heap *heap)
{
	struct mw_heap_allocator allocator = {.name = "bench", .walked = true};
	struct mw_blocks *blocks;
	uint32_t number, arena, span;

	must(mw_blocks_create(&blocks));
	must(mw_blocks_add_allocator(blocks, &allocator, &number));
	must(mw_blocks_add_arena(blocks, number, "main", &arena));
	must(mw_blocks_add_span(blocks, arena, HEAP, heap->starts[heap->blocks], 0, TAIL, &span));
	for (uint64_t i = 0; i < heap->blocks; i++)
		if (!mw_span_cut(blocks, span, heap->starts[i]) ||
		    !mw_span_set_live(blocks, span, heap->starts[i], true))
			exit(1);
	must(mw_blocks_finish(blocks));
	return blocks;
}

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The most memory that this process has had since it was last asked. */
static double peak_mib(void)
{
	char line[128];
	double kib = 0;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %lf", &kib) == 1)
			break;
	if (file)
		fclose(file);
	file = fopen("/proc/self/clear_refs", "w");
	if (file) {
		fputs("5", file);
		fclose(file);
	}
	return kib / 1024;
}

/* What reading alone takes, in the same windows, with a look at each word. */
static void measure_copy(const struct mw_image *image, uint64_t bytes)
{
	static uint64_t window[(256 << 10) / 8];
	double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t pointers = 0;

	for (mw_addr at = HEAP; at < HEAP + bytes; at += sizeof(window)) {
		size_t count = mw_image_read_some(image, at, window, sizeof(window)) / 8;

		for (size_t i = 0; i < count; i++)
			pointers += window[i] - HEAP < bytes;
	}
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("pointers=%" PRIu64 " copy_gb_per_cpu_second=%.3f\n", pointers, (double)bytes / cpu / 1e9);
}

/* Who retains how much, with one root, none of whose variables has a name. */
static void measure_tree(const struct mw_findings *found)
{
	double wall = seconds(CLOCK_MONOTONIC);
	struct mw_heap_report *report = calloc(1, sizeof(*report));

	if (!report)
		fail("calloc");
	must(mw_retained(found, 50, report));
	printf("tree_seconds=%.3f tree_nodes=%zu\n", seconds(CLOCK_MONOTONIC) - wall, report->holder_count);
	mw_heap_report_destroy(report);
}

static void measure(const struct mw_image *image, const struct mw_blocks *blocks, unsigned threads, bool holders)
{
	struct mw_modules *modules;
	struct mw_classes *classes;
	struct mw_root_names *names;
	struct mw_reach_options options = {.threads = threads, .holders = holders, .number_root = mw_root_number};
	struct mw_reached *reached;
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	const char *of = holders ? "holders_" : "";
	const struct mw_amount *sums;

	must(mw_modules_create(&modules));
	must(mw_classes_create(image, modules, &classes));
	must(mw_root_names_create(image, classes, modules, &names));
	options.number_context = names;
	peak_mib();
	must(mw_reach(image, blocks, &options, &reached));
	if (holders)
		measure_tree(&(struct mw_findings){image, blocks, classes, names, reached});
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	sums = mw_reached_sums(reached);
	printf("%sseconds=%.3f %scpu_seconds=%.3f %sscanned=%" PRIu64 " %sgb_per_cpu_second=%.3f %speak_mib=%.1f\n", of,
	       wall, of, cpu, of, mw_reached_scanned(reached), of, (double)mw_reached_scanned(reached) / cpu / 1e9, of,
	       peak_mib());
	if (!holders)
		printf("reachable=%" PRIu64 " definite=%" PRIu64 " indirect=%" PRIu64 "\n",
		       sums[MW_REACH_REACHABLE].count, sums[MW_REACH_DEFINITE].count, sums[MW_REACH_INDIRECT].count);
	mw_reached_destroy(reached);
	mw_root_names_destroy(names);
	mw_classes_destroy(classes);
	mw_modules_destroy(modules);
}

int main(int argc, char **argv)
{
	struct heap heap = {0};
	struct mw_image_mapping mappings[2] = {{.start = DATA, .end = DATA + 4096, .write = true, .path = ""}};
	struct mw_image image = {.read_some = read_some, .mappings = mappings, .mapping_count = 2, .consistent = true};
	struct mw_blocks *blocks;
	unsigned threads;
	int memory;
	pid_t pid;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: reach BLOCKS AVERAGE RARITY [THREADS]\n");
		return 2;
	}
	heap.blocks = strtoull(argv[1], NULL, 0);
	heap.average = strtoull(argv[2], NULL, 0);
	heap.rarity = strtoull(argv[3], NULL, 0);
	threads = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 0) : 0;
	if (heap.blocks < NEAR || heap.blocks >= UINT32_MAX || heap.average < 40)
		return 2;
	lay_out(&heap);
	pid = start(&heap);
	memory = open(mw_path("/proc/%d/mem", (int)pid).text, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		fail("/proc/PID/mem");
	blocks = blocks_of(&heap);
	free(heap.starts);
	mappings[1] =
		(struct mw_image_mapping){.start = HEAP, .end = HEAP + heap.bytes, .write = true, .path = "[heap]"};
	image.pid = pid;
	image.context = &memory;
	printf("blocks=%" PRIu64 " bytes=%" PRIu64 " before_mib=%.1f\n", heap.blocks, heap.bytes, peak_mib());
	peak_mib();
	printf("index_mib=%.1f\n", peak_mib());
	setvbuf(stdout, NULL, _IOLBF, 0);
	measure_copy(&image, heap.bytes);
	measure(&image, blocks, threads, false);
	measure(&image, blocks, threads, true);
	mw_blocks_destroy(blocks);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
