// SPDX-License-Identifier: MIT
/*
 * test_walk_glibc.c: the blocks of a child, against what it has written down itself, and what its glibc says (mallinfo2).
 *
 * MEMWATCH_GLIBC_CHILD is a command that runs the child (glibc_child.c) with another glibc.
 */
#include "glibc_child.h"
#include "heap/walker.h"
#include "image_of.h"
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define NO_CACHE    "glibc.malloc.tcache_count=0"
#define LARGE_CACHE "glibc.malloc.tcache_max=4000000:glibc.malloc.tcache_count=200" /* from 2.42 on */

struct child {
	pid_t pid;
	int to, from;
	struct child_truth *truth;
	struct image_of of;
	struct mw_modules *modules;
	struct mw_blocks *blocks;
};

/* --- the child --------------------------------------------------------------------------------------------------------- */

static void wait_for(const struct child *child)
{
	char byte;

	assert_int_equal(read(child->from, &byte, 1), 1);
}

static void start(struct child *child, const char *arguments, const char *tunables)
{
	const char *other = getenv("MEMWATCH_GLIBC_CHILD");
	int to[2], from[2], shared = memfd_create("child", 0);
	char command[512];

	memset(child, 0, sizeof(*child));
	assert_int_equal(ftruncate(shared, sizeof(*child->truth)), 0);
	child->truth = mmap(NULL, sizeof(*child->truth), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
	assert_true(child->truth != MAP_FAILED);
	(void)snprintf(command, sizeof(command), "exec %s %s", other ? other : GLIBC_CHILD, arguments);
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	child->pid = fork();
	if (child->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		dup2(shared, CHILD_FD);
		setenv("GLIBC_TUNABLES", tunables, 1);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(1);
	}
	assert_true(child->pid > 0);
	close(shared);
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = from[0];
	wait_for(child);
}

static void look(struct child *child)
{
	size_t added, removed;

	image_of_begin(&child->of, child->pid);
	assert_null(mw_modules_create(&child->modules));
	assert_null(mw_modules_refresh(child->modules, child->pid, &child->of.maps, &added, &removed));
	assert_null(mw_blocks_create(&child->blocks));
	assert_null(mw_walker_glibc.walk(&child->of.image, child->modules, child->blocks));
	assert_null(mw_blocks_finish(child->blocks));
}

static void look_away(struct child *child)
{
	mw_blocks_destroy(child->blocks);
	mw_modules_destroy(child->modules);
	image_of_end(&child->of);
}

static void end(struct child *child)
{
	(void)kill(child->pid, SIGKILL);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
	close(child->to);
	close(child->from);
	munmap(child->truth, sizeof(*child->truth));
}

/* --- what is found against what is there --------------------------------------------------------------------------------- */

struct sums {
	uint64_t live, free; /* bytes of chunks */
	uint64_t blocks;
	uint64_t mapped, mapped_bytes;
	uint64_t top; /* the main arena's */
};

static struct sums sum_up(const struct child *child)
{
	size_t arena_count, span_count;
	const struct mw_heap_arena *arenas = mw_blocks_arenas(child->blocks, &arena_count);
	const struct mw_span *spans = mw_blocks_spans(child->blocks, &span_count);
	size_t bookkeeping_count;
	const struct mw_bookkeeping *bookkeeping = mw_blocks_bookkeeping(child->blocks, &bookkeeping_count);
	struct sums sums = {0};

	MW_EACH(range, bookkeeping, bookkeeping_count)
		if (strcmp(arenas[range->arena].name, "mmapped") == 0)
			sums.mapped_bytes += range->end - range->start;
	MW_EACH(span, spans, span_count) {
		struct mw_segment segment = {0};
		mw_addr at = span->start;

		while (mw_span_next(span, &at, &segment)) {
			uint64_t chunk = segment.size + span->tail;

			/* A top has no chunk behind it, and its header is before the segment. */
			if (at == span->end && at % 4096 == 0 && !segment.live && span->tail) {
				chunk += 16;
				if (strcmp(arenas[span->arena].name, "main") == 0)
					sums.top = chunk;
			}
			sums.blocks += segment.live;
			if (strcmp(arenas[span->arena].name, "mmapped") == 0) {
				sums.mapped++;
				sums.free += segment.live ? 0 : chunk;
				sums.mapped_bytes += segment.size;
			} else if (segment.live) {
				sums.live += chunk;
			} else {
				sums.free += chunk;
			}
		}
	}
	return sums;
}

static uint64_t check_blocks(const struct child *child)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= child->truth->threads; i++) {
		MW_EACH(slot, child->truth->slots[i], CHILD_SLOTS) {
			struct mw_block block;

			if (!slot->addr)
				continue;
			count++;
			if (!mw_blocks_find(child->blocks, slot->addr, &block) || block.start != slot->addr ||
			    block.size != slot->usable)
				fail_msg("block %#lx of %lu bytes is not found, or not of that size", slot->addr,
					 slot->usable);
			assert_true(mw_blocks_find(child->blocks, slot->addr + slot->usable - 1, &block));
			assert_int_equal(block.start, slot->addr);
		}
	}
	return count;
}

static void check(const struct child *child, bool cached)
{
	size_t count, skipped;
	const struct mw_heap_allocator *allocator = mw_blocks_allocators(child->blocks, &count);
	struct sums sums = sum_up(child);
	uint64_t blocks = check_blocks(child);

	assert_int_equal(count, 1);
	assert_string_equal(allocator->name, "glibc");
	assert_true(allocator->walked);
	if (*allocator->version)
		assert_string_equal(allocator->version, child->truth->version);
	(void)mw_blocks_skipped(child->blocks, &skipped);
	assert_int_equal(skipped, 0);
	/* glibc's own: of each thread its cache and its table of TLS blocks. */
	assert_in_range(sums.blocks, blocks, blocks + 4 + 3 * child->truth->threads);
	assert_int_equal(sums.mapped, child->truth->hblks);
	/* 2.43 counts 16 bytes too many each time that it moves one. */
	if (strverscmp(child->truth->version, "2.43") < 0)
		assert_int_equal(sums.mapped_bytes, child->truth->hblkhd);
	else
		assert_true(child->truth->hblkhd - sums.mapped_bytes <= 16 * UINT64_C(255));
	if (!cached)
		assert_int_equal(sums.free, child->truth->fordblks);
	else
		assert_in_range(sums.free, child->truth->fordblks + allocator->cached,
				child->truth->fordblks + allocator->cached + allocator->cached / 2);
	assert_true(cached == (allocator->cached != 0));
	assert_int_equal(sums.top, child->truth->keepcost);
}

static void check_child(const char *arguments, const char *tunables)
{
	struct child child;

	start(&child, arguments, tunables);
	look(&child);
	check(&child, strcmp(tunables, NO_CACHE) != 0);
	look_away(&child);
	end(&child);
}

static void finds_all_blocks(void **state)
{
	(void)state;
	check_child("0 20000 1", NO_CACHE);
	check_child("0 20000 2", "");
	check_child("4 30000 3", NO_CACHE);
	check_child("8 30000 4", "");
	check_child("4 30000 4", LARGE_CACHE);
}

static void steps_over_others(void **state)
{
	(void)state;
	check_child("2 20000 5 break small", NO_CACHE);
	check_child("2 20000 6 break", "");
}

static void walks_mappings(void **state)
{
	(void)state;
	check_child("2 20000 7 blocked", NO_CACHE);
	check_child("2 20000 8 blocks", "");
}

/* What is resident of memory that is no file's. */
static uint64_t resident(const struct child *child)
{
	uint64_t sum = 0;

	MW_EACH(mapping, child->of.image.mappings, child->of.image.mapping_count)
		if (!mapping->inode && (!*mapping->path || strcmp(mapping->path, "[heap]") == 0))
			sum += mw_image_residence(&child->of.image, mapping->start, mapping->end).resident;
	return sum;
}

static void check_trim(const char *arguments, const char *tunables)
{
	struct child child;
	uint64_t before, trimmable;
	size_t count;

	start(&child, arguments, tunables);
	look(&child);
	trimmable = mw_blocks_allocators(child.blocks, &count)->trimmable;
	before = resident(&child);
	look_away(&child);
	assert_int_equal(write(child.to, "t", 1), 1);
	wait_for(&child);
	look(&child);
	assert_true(trimmable > 0);
	assert_int_equal(before - resident(&child), trimmable);
	assert_int_equal(mw_blocks_allocators(child.blocks, &count)->trimmable, 0);
	check_blocks(&child);
	look_away(&child);
	end(&child);
}

static void tells_what_trim_gives_back(void **state)
{
	(void)state;
	check_trim("0 20000 11", "");
	check_trim("4 30000 12", "");
	check_trim("4 30000 13 small", NO_CACHE);
	check_trim("2 20000 14 break", "");
	check_trim("2 20000 15 blocks", "");
	check_trim("2 20000 16", "glibc.malloc.hugetlb=1");
}

UNIT_GROUP(walk_glibc)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_all_blocks),
		cmocka_unit_test(steps_over_others),
		cmocka_unit_test(walks_mappings),
		cmocka_unit_test(tells_what_trim_gives_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
