// SPDX-License-Identifier: MIT
/*
 * ask.c: what the recorder asks: which memory around a stack pointer may be read (jump.h).
 *
 * The answer holds as long as the thread runs on that stack: from the stack pointer up all is the thread's own.
 */
#include "engine/jump/jump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GROWTH   (UINT64_C(64) << 20) /* a main stack may have grown by so much since it was looked at */
#define ATTEMPTS 3                    /* at reading the list of mappings */
#define READS    16                   /* … of that, for all who ask at a time: others get to know nothing */
#define GUARD    (UINT64_C(1) << 20)  /* … but not nearer than this to what lies below it */

/* Who asks: where its control block is, and whether it is the process's first thread. */
struct asker {
	pid_t tid; /* to read by */
	mw_addr thread;
	bool first;
};

/*
 * A pthread's stack lies below its control block, whatever else has been mapped right behind that. The first thread has
 * a stack of its own elsewhere: what lies below its control block is somebody's.
 */
static void bound(struct mw_ring_region *region, mw_addr sp, const struct asker *asker)
{
	if (asker->thread <= sp || asker->thread >= region->high)
		return;
	region->high = asker->thread;
	if (!asker->first)
		region->low |= MW_RING_REGION_OWN;
}

static bool find_region(const struct mw_maps *maps, mw_addr sp, const struct asker *asker, struct mw_ring_region *out)
{
	const struct mw_mapping *mapping = mw_maps_find(maps, sp);
	mw_addr below = 0;

	if (!mapping || !mapping->read || !mapping->write)
		return false;
	*out = (struct mw_ring_region){mapping->start, mapping->end};
	(void)mw_touched_clip(asker->tid, sp, &out->low, &out->high);
	bound(out, sp, asker);
	if (strcmp(mapping->path, "[stack]") != 0)
		return true;
	if (mapping > maps->items)
		below = mapping[-1].end + GUARD;
	if (below < out->low)
		out->low = below > out->low - GROWTH ? below : out->low - GROWTH;
	out->low |= MW_RING_REGION_OWN;
	return true;
}

/*
 * PROCMAP_QUERY of Linux 6.11: one mapping, and the true one. A list of many that is read while threads come and go may
 * lack some that are there.
 */
struct procmap_query {
	uint64_t size, flags, addr, start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};

#define QUERY_READ_WRITE 3u

/* -1: the kernel can't tell; 0: no such memory; 1: *out is it. */
static int query_region(int fd, mw_addr sp, const struct asker *asker, struct mw_ring_region *out)
{
	char name[32] = "";
	struct procmap_query query = {.size = sizeof(query),
				      .flags = QUERY_READ_WRITE,
				      .addr = sp,
				      .name_size = sizeof(name),
				      .name_addr = (uintptr_t)name};

	if (fd < 0)
		return -1;
	if (ioctl(fd, _IOWR('f', 17, struct procmap_query), &query))
		return errno == ENOENT ? 0 : -1;
	/* Of a main stack it matters what lies below. */
	if (strncmp(name, "[stack]", sizeof(name)) == 0)
		return -1;
	*out = (struct mw_ring_region){query.start, query.end};
	(void)mw_touched_clip(asker->tid, sp, &out->low, &out->high);
	bound(out, sp, asker);
	return 1;
}

/* What is asked in one go: the list of mappings is read when it is needed. */
struct inquiry {
	struct jump_process *process;
	struct mw_maps maps;
	int fd;
	unsigned reads;
	bool script; /* what there is of an interpreter has been looked for */
};

/* The thread is on it, so it is there: what says otherwise was read while mappings changed, and is asked again. */
static bool look_up(struct inquiry *inquiry, mw_addr sp, const struct asker *asker, struct mw_ring_region *out)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		int known = query_region(inquiry->fd, sp, asker, out);

		if (known > 0)
			return true;
		if (known == 0)
			continue;
		if (inquiry->reads == 0 || (i > 0 && inquiry->reads < READS)) {
			mw_maps_deinit(&inquiry->maps);
			mw_error_destroy(mw_maps_read(mw_live_thread(inquiry->process->pid), &inquiry->maps));
			inquiry->reads++;
		}
		if (find_region(&inquiry->maps, sp, asker, out))
			return true;
	}
	return false;
}

static void answer(struct inquiry *inquiry, struct mw_ring_slot *slot, uint32_t asked)
{
	uint64_t address = __atomic_load_n(&slot->ask_address, __ATOMIC_RELAXED);
	const struct asker asker = {.tid = mw_live_thread(inquiry->process->pid),
				    .thread = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED),
				    .first = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED) ==
					     inquiry->process->ids.first};
	struct mw_ring_region region;

	if (__atomic_load_n(&slot->ask, __ATOMIC_RELAXED) == MW_RING_ASK_SCRIPT) {
		if (address & MW_RING_ASK_CODES)
			jump_script_learn(inquiry->process, slot, address & ~MW_RING_ASK_CODES);
		else if (!inquiry->script)
			jump_script_publish(inquiry->process);
		inquiry->script |= !(address & MW_RING_ASK_CODES);
	} else if (__atomic_load_n(&slot->ask, __ATOMIC_RELAXED) == MW_RING_ASK_JAVASCRIPT) {
		jump_javascript_learn(inquiry->process, slot, address);
	} else if (__atomic_load_n(&slot->ask, __ATOMIC_RELAXED) == MW_RING_ASK_ROW) {
		jump_learn_asked(inquiry->process, slot, address);
	} else if (look_up(inquiry, address, &asker, &region)) {
		uint32_t number = slot->next_region++ % MW_RING_REGIONS;

		inquiry->process->stacks.own |= !(region.low & MW_RING_REGION_OWN);
		/* Never a state in which low and high of different regions are together. */
		__atomic_store_n(&slot->regions[number].high, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&slot->regions[number].low, region.low, __ATOMIC_RELEASE);
		__atomic_store_n(&slot->regions[number].high, region.high, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&slot->answered, asked, __ATOMIC_RELEASE);
}

void jump_answer(struct jump_process *process)
{
	uint32_t asks = __atomic_load_n(&jump_control(&process->recorder.shared)->asks, __ATOMIC_ACQUIRE);
	struct inquiry inquiry = {.process = process};

	if (asks == process->asks_seen)
		return;
	process->asks_seen = asks;
	inquiry.fd = open(mw_path("/proc/%d/maps", mw_live_thread(process->pid)).text, O_RDONLY | O_CLOEXEC);

	for (uint32_t i = 0; i < process->recorder.shared.geometry.slot_count; i++) {
		struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, i);
		uint32_t asked = __atomic_load_n(&slot->asked, __ATOMIC_ACQUIRE);

		if (asked != slot->answered && __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) > MW_RING_TOMB)
			answer(&inquiry, slot, asked);
	}
	mw_maps_deinit(&inquiry.maps);
	mw_cleanup_close(&inquiry.fd);
}

/* Where a thread will look for its slot: one that is free, or its own. NULL: there is none. */
static struct mw_ring_slot *place_for(const struct jump_process *process, mw_addr thread)
{
	uint32_t count = process->recorder.shared.geometry.slot_count, first = mw_ring_slot_first(thread, count);

	for (uint32_t i = 0; i < count; i++) {
		struct mw_ring_slot *slot = jump_slot(&process->recorder.shared, (first + i) & (count - 1));

		if (slot->owner == MW_RING_FREE || slot->owner == thread)
			return slot;
	}
	return NULL;
}

static void introduce(struct jump_process *process, const struct mw_maps *maps, const struct mw_quiet_thread *thread)
{
	struct mw_tracee_regs regs;
	struct mw_ring_slot *slot;
	struct mw_ring_region region;
	struct asker asker;

	if (!jump_regs_of(thread, &regs) || regs.general.thread_pointer <= MW_RING_TOMB)
		return;
	asker = (struct asker){
		.tid = thread->tid, .thread = regs.general.thread_pointer, .first = thread->tid == process->pid};
	slot = place_for(process, asker.thread);
	if (!slot || slot->owner == asker.thread ||
	    !find_region(maps, regs.general.gpr[process->survey.arch->dwarf_sp], &asker, &region))
		return;
	slot->regions[slot->next_region++ % MW_RING_REGIONS] = region;
	/* Its tid stays 0: the thread takes the slot, and a ring, when it comes. */
	__atomic_store_n(&slot->owner, asker.thread, __ATOMIC_RELEASE);
}

void jump_introduce_threads(struct jump_process *process)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};

	mw_error_destroy(mw_maps_read(mw_live_thread(process->pid), &maps));
	MW_EACH(thread, process->quiesce.threads, process->quiesce.count)
		if (!thread->sharing)
			introduce(process, &maps, thread);
}
