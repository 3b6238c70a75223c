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

static void start_program(struct child *child, const char *program, const char *arguments, const char *tunables)
{
	int to[2], from[2], shared = memfd_create("child", 0);
	char command[512];

	memset(child, 0, sizeof(*child));
	assert_int_equal(ftruncate(shared, sizeof(*child->truth)), 0);
	child->truth = mmap(NULL, sizeof(*child->truth), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
	assert_true(child->truth != MAP_FAILED);
	(void)snprintf(command, sizeof(command), "exec %s %s", program, arguments);
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

static void start(struct child *child, const char *arguments, const char *tunables)
{
	const char *other = getenv("MEMWATCH_GLIBC_CHILD");

	start_program(child, other ? other : GLIBC_CHILD, arguments, tunables);
}

static void look(struct child *child)
{
	size_t added, removed;

	image_of_begin(&child->of, child->pid);
	assert_null(mw_modules_create(&child->modules));
	assert_null(mw_modules_refresh(child->modules, child->pid, &child->of.maps, &added, &removed));
	assert_null(mw_blocks_create(&child->blocks));
	assert_null(mw_walker_run(&mw_walker_glibc, &child->of.image, child->modules, child->blocks));
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
	assert_in_range(sums.blocks, blocks, blocks + 8 + 3 * child->truth->threads);
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

static void walks_static_programs(void **state)
{
	struct child child;

	(void)state;
	start_program(&child, GLIBC_CHILD_STATIC, "2 20000 41", NO_CACHE);
	look(&child);
	check(&child, false);
	look_away(&child);
	end(&child);
}

static void tells_copies_apart(void **state)
{
	struct child child;
	size_t count, skipped;
	const struct mw_heap_allocator *allocators;

	(void)state;
	start(&child, "2 20000 42 copy small", "");
	look(&child);
	allocators = mw_blocks_allocators(child.blocks, &count);
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		assert_true(allocators[i].walked);
		assert_string_equal(allocators[i].version, child.truth->version);
	}
	check_blocks(&child);
	(void)mw_blocks_skipped(child.blocks, &skipped);
	assert_int_equal(skipped, 0);
	look_away(&child);
	end(&child);
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

/* It gives back what was predicted. */
static void check_trim(const char *arguments, const char *tunables)
{
	struct child child;
	uint64_t before, trimmable, given;
	size_t count;

	start(&child, arguments, tunables);
	look(&child);
	trimmable = mw_blocks_allocators(child.blocks, &count)->trimmable;
	before = resident(&child);
	look_away(&child);
	assert_int_equal(write(child.to, "t", 1), 1);
	wait_for(&child);
	look(&child);
	given = before - resident(&child);
	assert_true(trimmable > 0);
	assert_int_equal(mw_blocks_allocators(child.blocks, &count)->trimmable, 0);
	check_blocks(&child);
	look_away(&child);
	end(&child);
	assert_int_equal(given, trimmable);
}

static void predicts_trim(void **state)
{
	(void)state;
	check_trim("0 20000 11", "");
	check_trim("4 30000 12", "");
	check_trim("4 30000 13 small", NO_CACHE);
	check_trim("2 20000 14 break", "");
	check_trim("2 20000 15 blocks", "");
	/* The child has this from us: else the kernel may make huge pages out of small ones between two looks. */
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	check_trim("2 20000 16", "glibc.malloc.hugetlb=1");
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

static bool is_skipped(const struct child *child, const struct child_slot *slot)
{
	size_t count;
	const struct mw_heap_skipped *skipped = mw_blocks_skipped(child->blocks, &count);

	MW_EACH(range, skipped, count)
		if (slot->addr >= range->start && slot->addr < range->start + range->bytes)
			return true;
	return false;
}

/* All blocks but those that threads work on are found, or lie in what was passed over; how many do. */
static uint64_t check_moment(const struct child *child)
{
	uint64_t skipped = 0;

	for (size_t i = 0; i <= child->truth->threads; i++) {
		const struct child_slot *slots = child->truth->slots[i];

		for (size_t j = 0; j < CHILD_SLOTS; j++) {
			struct mw_block block;

			if (!slots[j].addr || j + 1 == child->truth->busy[i])
				continue;
			if (is_skipped(child, &slots[j]))
				skipped++;
			else if (!mw_blocks_find(child->blocks, slots[j].addr, &block) ||
				 block.start != slots[j].addr || block.size != slots[j].usable)
				fail_msg("block %#lx of %lu bytes is not found, or not of that size", slots[j].addr,
					 slots[j].usable);
		}
	}
	return skipped;
}

/* Stopped anywhere, also inside malloc. */
static void bears_any_moment(void **state)
{
	struct child child;
	uint64_t skipped = 0, blocks = 0;
	int status;

	(void)state;
	start(&child, "3 10000 21 small churn", "");
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(kill(child.pid, SIGSTOP), 0);
		assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
		look(&child);
		skipped += check_moment(&child);
		blocks += sum_up(&child).blocks;
		look_away(&child);
		assert_int_equal(kill(child.pid, SIGCONT), 0);
		usleep(1000 + 997 * i % 5000);
	}
	/* It is a thread's chunk now and then, no stretch. */
	assert_true(skipped * 1000 < blocks);
	end(&child);
}

/* --- damage ---------------------------------------------------------------------------------------------------------- */

#define PATCHES 8

/* An image of which a few words are others. */
struct damaged {
	const struct mw_image *image;
	struct patch {
		mw_addr at;
		uint64_t value;
	} patches[PATCHES];
	size_t count;
};

static size_t read_damaged(void *context, mw_addr addr, void *out, size_t size)
{
	const struct damaged *damaged = context;
	size_t got = mw_image_read_some(damaged->image, addr, out, size);

	MW_EACH(patch, damaged->patches, damaged->count)
		if (patch->at >= addr && patch->at - addr + sizeof(patch->value) <= got)
			memcpy((char *)out + (patch->at - addr), &patch->value, sizeof(patch->value));
	return got;
}

static void damage(struct damaged *damaged, mw_addr at, uint64_t value)
{
	damaged->patches[damaged->count++] = (struct patch){at, value};
}

/* A program has written over a block's header, or over what is behind the block. */
static mw_addr damage_block(struct damaged *damaged, const struct child *child, unsigned kind, unsigned number)
{
	const struct child_slot *slot = &child->truth->slots[number % 3][number * 7919 % CHILD_SLOTS];

	while (!slot->addr)
		slot = slot == &child->truth->slots[2][CHILD_SLOTS - 1] ? &child->truth->slots[0][0] : slot + 1;
	switch (kind) {
	case 0:
		damage(damaged, slot->addr - 8, UINT64_C(0x4141414141414141));
		break;
	case 1:
		damage(damaged, slot->addr - 8, 0);
		break;
	case 2:
		damage(damaged, slot->addr - 8, UINT64_MAX - 15);
		break;
	case 3:
		damage(damaged, slot->addr - 8, (slot->usable + 8 + 16 * (number % 64)) | 1);
		break;
	default:
		for (unsigned i = 0; i < 4; i++)
			damage(damaged, slot->addr + slot->usable - 8 + 8 * i, UINT64_C(0x6161616161616161));
	}
	return slot->addr;
}

/* Each block is found, or lies in what was passed over, or in the block whose header is another. */
static void check_damaged(const struct child *child, const mw_addr *damaged, size_t count)
{
	for (size_t i = 0; i < (child->truth->threads + 1) * CHILD_SLOTS; i++) {
		const struct child_slot *slot = &child->truth->slots[i / CHILD_SLOTS][i % CHILD_SLOTS];
		struct mw_block block;
		bool known =
			!slot->addr || is_skipped(child, slot) || mw_blocks_find(child->blocks, slot->addr, &block);

		for (size_t j = 0; j < count && !known; j++)
			known = slot->addr >= damaged[j] && slot->addr < damaged[j] + 2048;
		if (!known)
			fail_msg("block %#lx of %lu bytes is neither found nor passed over", slot->addr, slot->usable);
	}
}

static void bears_damage(void **state)
{
	struct child child;
	size_t skipped;

	(void)state;
	start(&child, "2 20000 31", "");
	image_of_begin(&child.of, child.pid);
	for (unsigned i = 0; i < 100; i++) {
		struct damaged damaged = {.image = &child.of.image};
		struct mw_image image = child.of.image;
		mw_addr blocks[2];

		blocks[0] = damage_block(&damaged, &child, i % 5, 2 * i);
		blocks[1] = damage_block(&damaged, &child, i / 5 % 5, 2 * i + 1);
		image.read_some = read_damaged;
		image.context = &damaged;
		assert_null(mw_blocks_create(&child.blocks));
		assert_null(mw_walker_run(&mw_walker_glibc, &image, NULL, child.blocks));
		assert_null(mw_blocks_finish(child.blocks));
		check_damaged(&child, blocks, 2);
		(void)mw_blocks_skipped(child.blocks, &skipped);
		if (i % 5 < 3)
			assert_true(skipped > 0);
		mw_blocks_destroy(child.blocks);
	}
	image_of_end(&child.of);
	end(&child);
}

UNIT_GROUP(walk_glibc)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_all_blocks),   cmocka_unit_test(walks_static_programs),
		cmocka_unit_test(tells_copies_apart), cmocka_unit_test(steps_over_others),
		cmocka_unit_test(walks_mappings),     cmocka_unit_test(predicts_trim),
		cmocka_unit_test(bears_any_moment),   cmocka_unit_test(bears_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
