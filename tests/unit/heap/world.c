// SPDX-License-Identifier: MIT
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	struct world *world = context;
	size_t done = 0;

	world->reads++;
	while (done < size) {
		const struct mw_image_mapping *mapping = mw_image_mapping_of(&world->image, addr + done);
		size_t there;

		if (!mapping || !world->bytes[mapping - world->mappings])
			break;
		there = mapping->end - (addr + done);
		if (there > size - done)
			there = size - done;
		memcpy((char *)out + done, world->bytes[mapping - world->mappings] + (addr + done - mapping->start),
		       there);
		done += there;
	}
	return done;
}

void world_init(struct world *world, uint64_t heap, bool walked)
{
	struct mw_heap_allocator allocator = {.name = "test", .walked = walked};

	*world = (struct world){.image = {.read_some = read_some, .pid = 100, .consistent = true}};
	world->image.context = world;
	world->image.mappings = world->mappings;
	world->image.threads = world->threads;
	world->next = WORLD_HEAP;
	world->end = WORLD_HEAP + heap;
	world_map(world, WORLD_DATA, 4096, WORLD_READ | WORLD_WRITE | WORLD_FILE, "/bin/world");
	world_map(world, WORLD_HEAP, heap, WORLD_READ | WORLD_WRITE, "[heap]");
	assert_null(mw_blocks_create(&world->blocks));
	assert_null(mw_blocks_add_allocator(world->blocks, &allocator, &world->allocator));
	assert_null(mw_blocks_add_arena(world->blocks, world->allocator, "main", &world->arena));
	assert_null(
		mw_blocks_add_span(world->blocks, world->arena, WORLD_HEAP, world->end, 0, WORLD_TAIL, &world->span));
}

void world_deinit(struct world *world)
{
	for (size_t i = 0; i < world->image.mapping_count; i++)
		if (world->bytes[i])
			munmap(world->bytes[i], world->mappings[i].end - world->mappings[i].start);
	mw_blocks_destroy(world->blocks);
}

void world_map(struct world *world, mw_addr start, uint64_t size, unsigned flags, const char *path)
{
	size_t at = world->image.mapping_count++;
	unsigned char *bytes = NULL;

	assert_true(at < WORLD_MAPPINGS);
	if (!(flags & WORLD_LOST)) {
		bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert_true(bytes != MAP_FAILED);
	}
	for (; at > 0 && world->mappings[at - 1].start > start; at--) {
		world->mappings[at] = world->mappings[at - 1];
		world->bytes[at] = world->bytes[at - 1];
	}
	world->bytes[at] = bytes;
	world->mappings[at] = (struct mw_image_mapping){.start = start,
							.end = start + size,
							.inode = flags & WORLD_FILE ? 7 : 0,
							.read = flags & WORLD_READ,
							.write = flags & WORLD_WRITE,
							.exec = flags & WORLD_EXEC,
							.shared = flags & WORLD_SHARED,
							.path = path,
							.resident = MW_SIZE_UNKNOWN,
							.swapped = MW_SIZE_UNKNOWN};
}

struct mw_image_thread *world_thread(struct world *world, pid_t tid, mw_addr sp, mw_addr thread_pointer)
{
	struct mw_image_thread *thread = &world->threads[world->image.thread_count++];

	assert_true(world->image.thread_count <= WORLD_THREADS);
	*thread = (struct mw_image_thread){.tid = tid, .register_count = 2, .sp = sp, .thread_pointer = thread_pointer};
	thread->registers[0] = sp;
	return thread;
}

mw_addr world_block(struct world *world, uint64_t size)
{
	mw_addr block = world->next;

	assert_int_equal(size % 16, 8);
	world->next += size + WORLD_TAIL;
	assert_true(world->next <= world->end);
	assert_true(mw_span_cut(world->blocks, world->span, block));
	assert_true(mw_span_set_live(world->blocks, world->span, block, true));
	return block;
}

static unsigned char *at_address(const struct world *world, mw_addr at)
{
	const struct mw_image_mapping *mapping = mw_image_mapping_of(&world->image, at);

	assert_non_null(mapping);
	assert_true(mapping->end - at >= sizeof(uint64_t));
	return world->bytes[mapping - world->mappings] + (at - mapping->start);
}

void world_poke(struct world *world, mw_addr at, uint64_t word)
{
	memcpy(at_address(world, at), &word, sizeof(word));
}

uint64_t world_peek(struct world *world, mw_addr at)
{
	uint64_t word;

	memcpy(&word, at_address(world, at), sizeof(word));
	return word;
}

void world_finish(struct world *world)
{
	if (world->next < world->end)
		assert_true(mw_span_cut(world->blocks, world->span, world->next));
	assert_null(mw_blocks_finish(world->blocks));
}

uint32_t world_number(const struct world *world, mw_addr block)
{
	struct mw_block found;

	assert_true(mw_blocks_find(world->blocks, block, &found));
	assert_int_equal(found.start, block);
	return found.number;
}

struct mw_reached *world_reach(const struct world *world, const struct mw_reach_options *options)
{
	struct mw_reached *reached = NULL;

	assert_null(mw_reach(&world->image, world->blocks, options, &reached));
	return reached;
}
