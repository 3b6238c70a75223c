// SPDX-License-Identifier: MIT
/*
 * snapshot.c: a process's memory at one moment (snapshot.h).
 *
 * While the process stands only that is done which must be: registers, the list of mappings, the fork. How much of each
 * mapping is in memory is read from the copy; of what a fork does not copy (shared memory, files' pages that were never
 * written, MADV_DONTFORK, MADV_WIPEONFORK) from the process, in small steps: /proc/PID/smaps would keep it from mapping
 * memory for as long as it takes.
 */
#include "heap/snapshot.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "heap/kernel_words.h"
#include "heap/memory.h"
#include "heap/pages.h"
#include "proc/maps.h"
#include "proc/smaps.h"
#include "proc/status.h"
#include "tracee/copy.h"
#include "tracee/inject.h"
#include "tracee/quiesce.h"
#include "tracee/seccomp_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE          UINT64_C(4096)
#define SPARE_THREADS 16 /* that may have begun since they were counted */
#define REAP_AGAIN    5u
#define REAP_WAIT_US  20000

struct mw_heap_snapshot {
	struct mw_image image;
	struct mw_memory memory;
	struct mw_copy copy;
	bool forked; /* there was a copy */
	char *why;
	uint64_t pause_ns, rss;
	pid_t pid;
	struct mw_maps before; /* the process's, before it stood */
	struct mw_inject inject;
	/* Behind the image: */
	struct mw_maps maps;     /* the copy's, or the process's where there is none: own the paths … */
	struct mw_maps uncopied; /* … and those of the process that the copy lacks */
	struct mw_image_mapping *mappings;
	size_t mapping_count;
	bool *copied;
	struct mw_page_runs runs;
	struct mw_image_thread *threads;
	size_t thread_room;
	struct mw_kernel_words words;
};

/* What prevents a copy is reported, and is no error; GONE and MEMORY are. */
static struct mw_error *take_why(struct mw_heap_snapshot *snapshot, struct mw_error *err)
{
	if (!err || mw_error_kind(err) == MW_ERROR_GONE || mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	free(snapshot->why);
	snapshot->why = strdup(mw_error_text(err));
	mw_error_destroy(err);
	return snapshot->why ? NULL : mw_error_nomem();
}

/* --- before it stands ------------------------------------------------------------------------------------------------ */

/* Room for as many threads as there are, in memory already: that takes longer than to fill it. */
static bool make_room(struct mw_heap_snapshot *snapshot, size_t count)
{
	struct mw_image_thread *threads = malloc(count * sizeof(*threads));

	if (!threads)
		return false;
	memset(threads, 0, count * sizeof(*threads));
	free(snapshot->threads);
	snapshot->threads = threads;
	snapshot->thread_room = count;
	return true;
}

static struct mw_error *prepare(struct mw_heap_snapshot *snapshot, bool fork)
{
	pid_t tid = mw_live_thread(snapshot->pid);
	struct mw_status status;

	MW_TRY(mw_status_read(tid, &status));
	if (!make_room(snapshot, status.threads + SPARE_THREADS))
		return mw_error_nomem();
	MW_TRY(mw_maps_read(tid, &snapshot->before));
	return fork ? take_why(snapshot, mw_inject_find_code(&snapshot->inject, tid, &snapshot->before)) : NULL;
}

/* --- while it stands ------------------------------------------------------------------------------------------------ */

static struct mw_error *read_thread(const struct mw_quiet_thread *thread, struct mw_image_thread *out)
{
	struct mw_tracee_regs regs;

	_Static_assert(MW_REGS_WORDS <= MW_IMAGE_REGISTERS, "room for all words");
	*out = (struct mw_image_thread){.tid = thread->tid};
	if (!thread->stopped) {
		/* Its other registers can't be had. */
		if (!mw_waiting_read(thread->tid, &out->sp, &out->pc))
			out->sp = out->pc = 0;
		return NULL;
	}
	MW_TRY(mw_tracee_get_regs(thread->tid, &regs));
	out->regs = regs.general;
	out->pc = regs.general.pc;
	out->sp = regs.general.gpr[mw_machine.sp];
	out->thread_pointer = regs.general.thread_pointer;
	return mw_regs_words(thread->tid, &regs, out->registers, MW_IMAGE_REGISTERS, &out->register_count);
}

/* Threads of which registers are read. */
struct standing {
	struct mw_heap_snapshot *snapshot;
	const struct mw_quiesce *quiesce;
	struct mw_error *err; /* the first */
};

/* Those that have not been read yet. */
static void read_threads(void *context)
{
	struct standing *standing = context;
	const struct mw_quiesce *quiesce = standing->quiesce;

	for (size_t i = 0; i < quiesce->count; i++) {
		struct mw_image_thread *out = &standing->snapshot->threads[i];

		/* One that was killed is no more. */
		if (!out->tid)
			mw_error_keep_first(&standing->err, read_thread(&quiesce->threads[i], out));
	}
}

/* The one that is about to have others. */
static void read_before(struct standing *standing, pid_t tid)
{
	for (size_t i = 0; i < standing->quiesce->count; i++)
		if (standing->quiesce->threads[i].tid == tid)
			mw_error_keep_first(&standing->err, read_thread(&standing->quiesce->threads[i],
									&standing->snapshot->threads[i]));
}

/* Registers are read while the kernel copies the process: with many threads that takes as long. */
static struct mw_error *fork_standing(struct standing *standing)
{
	struct mw_heap_snapshot *snapshot = standing->snapshot;

	MW_TRY(mw_copy_choose(&snapshot->inject, standing->quiesce, &snapshot->before, MW_CALLS_COPY));
	read_before(standing, snapshot->inject.tid);
	return mw_copy_make(&snapshot->inject, read_threads, standing, &snapshot->copy);
}

static struct mw_error *take_standing(struct mw_heap_snapshot *snapshot, struct mw_quiesce *quiesce, bool fork)
{
	struct standing standing = {.snapshot = snapshot, .quiesce = quiesce};
	pid_t tid = mw_live_thread(snapshot->pid);
	struct mw_error *err = NULL;

	if (fork)
		MW_TRY(take_why(snapshot, mw_quiesce_await_injector(quiesce)));
	if (quiesce->count > snapshot->thread_room && !make_room(snapshot, quiesce->count))
		return mw_error_nomem();
	snapshot->image.threads = snapshot->threads;
	snapshot->image.thread_count = quiesce->count;
	/* Bound to the program that runs now. */
	snapshot->memory.process_fd = open(mw_path("/proc/%d/mem", (int)tid).text, O_RDONLY | O_CLOEXEC);
	if (fork && !snapshot->why)
		err = take_why(snapshot, fork_standing(&standing));
	/* Where it did not come to that. */
	read_threads(&standing);
	if (!mw_kernel_words_copy_pipes(snapshot->pid, &snapshot->words))
		snapshot->image.kernel_words_hidden = true;
	return mw_error_first(err, standing.err);
}

static struct mw_error *take_stopped(struct mw_heap_snapshot *snapshot, bool fork)
{
	struct mw_quiesce quiesce = {0};
	struct mw_error *err = mw_quiesce_begin(&quiesce, snapshot->pid);

	if (!err)
		err = take_standing(snapshot, &quiesce, fork);
	err = mw_error_first(err, mw_quiesce_end(&quiesce));
	snapshot->pause_ns += quiesce.stood_ns;
	mw_quiesce_deinit(&quiesce);
	return err;
}

/* --- once it runs ---------------------------------------------------------------------------------------------------- */

static void name_threads(struct mw_heap_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->image.thread_count; i++) {
		char name[17];

		/* One of another process lives in the same memory (vfork). */
		mw_comm_read(snapshot->threads[i].tid, snapshot->threads[i].tid, name);
		memcpy(snapshot->threads[i].name, name, sizeof(snapshot->threads[i].name));
		snapshot->threads[i].name[sizeof(snapshot->threads[i].name) - 1] = '\0';
	}
}

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* By its name alone, where its flags can't be had. */
static bool is_device(const struct mw_mapping *mapping)
{
	const char *path = mapping->path;

	if (begins(path, "[vvar") || begins(path, "[vsyscall") || begins(path, "anon_inode:"))
		return true;
	return begins(path, "/dev/") && !begins(path, "/dev/shm/") && !begins(path, "/dev/zero") &&
	       !begins(path, "/dev/hugepages/");
}

/* Was it copied, all of it? */
static bool is_copied(const struct mw_mapping *mapping, const struct mw_smap *smap)
{
	if (!smap || mapping->shared || smap->flags & MW_VM_CLEARED)
		return false;
	/* The kernel's own pages. */
	if (strcmp(mapping->path, "[vdso]") == 0 || strcmp(mapping->path, "[uprobes]") == 0)
		return false;
	if (!mapping->inode)
		return true;
	/* Where none of a file's pages was ever written the kernel leaves all out; code that the copy has executed comes in
	 * again. */
	return (mapping->write || !mapping->exec) && (smap->anonymous > 0 || smap->swapped > 0);
}

/* From what mappings' pages are known. */
struct gather {
	struct mw_smaps smaps; /* of the copy, or of the process where there is none */
	struct mw_pages process, copy;
};

static void gather_deinit(struct gather *gather)
{
	mw_smaps_deinit(&gather->smaps);
	mw_pages_close(&gather->process);
	mw_pages_close(&gather->copy);
}

static struct mw_error *gather_pages(struct mw_heap_snapshot *snapshot, struct mw_pages *pages,
				     const struct mw_smap *smap, bool copied, struct mw_image_mapping *out)
{
	uint64_t most = smap ? smap->resident + smap->swapped : UINT64_MAX;
	struct mw_pages_sum sum = {0};
	struct mw_error *err = NULL;

	if (smap) {
		out->resident = smap->resident;
		out->swapped = smap->swapped;
		out->huge = smap->huge;
		if (most == 0)
			return NULL;
	}
	if (!mw_pages_read(pages, out->start, out->end, most, &snapshot->runs, &sum, &err))
		return err ? err : mw_pages_assume(out->start, out->end, &snapshot->runs);
	/* The process runs: both are to be of one moment. */
	if (!copied) {
		out->resident = sum.resident;
		out->swapped = sum.swapped;
	}
	if (!smap && !out->inode)
		out->huge = sum.huge;
	return NULL;
}

static struct mw_error *gather_mapping(struct mw_heap_snapshot *snapshot, struct gather *gather,
				       const struct mw_mapping *mapping, bool of_copy)
{
	const struct mw_smap *smap = mw_smaps_find(&gather->smaps, mapping->start);
	const size_t number = snapshot->mapping_count++;
	struct mw_image_mapping *out = &snapshot->mappings[number];
	bool copied;

	if (smap && (smap->start != mapping->start || smap->end != mapping->end))
		smap = NULL;
	copied = of_copy && is_copied(mapping, smap);
	snapshot->copied[number] = copied;
	/* memfd_secret() */
	snapshot->image.unreadable |= begins(mapping->path, "/secretmem");
	*out = (struct mw_image_mapping){
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->offset,
		.inode = mapping->inode,
		.read = mapping->read,
		.write = mapping->write,
		.exec = mapping->exec,
		.shared = mapping->shared,
		.device = is_device(mapping) || (smap && smap->flags & MW_VM_DEVICE),
		.path = mapping->path,
		.resident = MW_SIZE_UNKNOWN,
		.swapped = MW_SIZE_UNKNOWN,
	};
	if (out->device) {
		out->resident = out->swapped = 0;
		return NULL;
	}
	/* The copy's figures are not true of what was not copied. */
	return gather_pages(snapshot, copied ? &gather->copy : &gather->process, copied == of_copy ? smap : NULL,
			    copied, out);
}

/* One that the process had before it stood, and still has. */
static bool was_there(const struct mw_maps *before, const struct mw_mapping *mapping)
{
	const struct mw_mapping *other = mw_maps_find(before, mapping->start);

	return other && other->start == mapping->start && other->end == mapping->end &&
	       other->inode == mapping->inode && other->shared == mapping->shared;
}

/* Those of the copy, and between them what the process had then that no fork copies. */
static struct mw_error *gather_mappings(struct mw_heap_snapshot *snapshot, struct gather *gather)
{
	const struct mw_maps *own = &snapshot->maps, *others = &snapshot->uncopied;
	const size_t most = own->count + others->count;
	mw_addr end = 0;
	size_t j = 0;

	snapshot->mappings = calloc(most ? most : 1, sizeof(*snapshot->mappings));
	snapshot->copied = calloc(most ? most : 1, sizeof(*snapshot->copied));
	if (!snapshot->mappings || !snapshot->copied)
		return mw_error_nomem();
	for (size_t i = 0; i <= own->count; i++) {
		mw_addr next = i < own->count ? own->items[i].start : UINT64_MAX;

		for (; j < others->count && others->items[j].start < next; j++)
			if (others->items[j].start >= end && others->items[j].end <= next &&
			    was_there(&snapshot->before, &others->items[j]))
				MW_TRY(gather_mapping(snapshot, gather, &others->items[j], false));
		if (i < own->count) {
			MW_TRY(gather_mapping(snapshot, gather, &own->items[i], snapshot->copy.standing));
			end = own->items[i].end;
		}
	}
	return NULL;
}

/* What was in memory. */
static struct mw_error *gather(struct mw_heap_snapshot *snapshot)
{
	MW_CLEANUP(gather_deinit) struct gather gather = {.copy.fd = -1};
	pid_t tid = mw_live_thread(snapshot->pid);
	uint64_t swapped = 0;

	mw_pages_open(&gather.process, tid, true);
	gather.process.brief = true;
	if (snapshot->copy.standing) {
		mw_pages_open(&gather.copy, snapshot->copy.pid, true);
		MW_TRY(mw_smaps_read(snapshot->copy.pid, &gather.smaps));
		MW_TRY(mw_maps_read(snapshot->copy.pid, &snapshot->maps));
		/* It may be gone. */
		MW_TRY(mw_error_unless_gone(mw_maps_read(tid, &snapshot->uncopied)));
	} else {
		MW_TRY(mw_maps_read(tid, &snapshot->maps));
		if (!gather.process.scans)
			MW_TRY(mw_smaps_read(tid, &gather.smaps));
	}
	MW_TRY(gather_mappings(snapshot, &gather));
	snapshot->image.mappings = snapshot->mappings;
	snapshot->image.mapping_count = snapshot->mapping_count;
	MW_EACH(mapping, snapshot->mappings, snapshot->mapping_count) {
		if (mapping->resident != MW_SIZE_UNKNOWN)
			snapshot->rss += mapping->resident;
		if (mapping->swapped != MW_SIZE_UNKNOWN)
			swapped += mapping->swapped;
	}
	snapshot->image.unreadable |= swapped > mw_memory_swap_allowed(&snapshot->memory);
	if (gather.process.fd >= 0 || gather.copy.fd >= 0) {
		snapshot->image.runs = snapshot->runs.items;
		snapshot->image.run_count = snapshot->runs.count;
	}
	return NULL;
}

static mw_addr end_of_data(const struct mw_module *module)
{
	mw_addr end = 0;

	if (!module->elf)
		return 0;
	MW_EACH(segment, module->elf->segments, module->elf->segment_count) {
		mw_addr ends = segment->vaddr + segment->memory_size + module->bias;

		if (segment->write && ends > end)
			end = ends;
	}
	return (end + PAGE - 1) & -PAGE;
}

void mw_heap_snapshot_find_bss(struct mw_heap_snapshot *snapshot, const struct mw_modules *modules)
{
	MW_EACH_MUTABLE(mapping, snapshot->mappings, snapshot->mapping_count) {
		const struct mw_module *module;
		mw_addr end;

		if (mapping->inode || mapping->path[0] || mapping->shared || !mapping->write || !mapping->start)
			continue;
		module = mw_modules_find(modules, mapping->start - 1);
		end = module ? end_of_data(module) : 0;
		if (end > mapping->start)
			mapping->bss_end = end < mapping->end ? end : mapping->end;
	}
}

/* --- all of it ------------------------------------------------------------------------------------------------------- */

/* A process that has just executed another program has no code yet by which it could. */
static struct mw_error *reap(struct mw_heap_snapshot *snapshot)
{
	struct mw_error *err;

	for (unsigned left = REAP_AGAIN;; left--) {
		uint64_t stood_ns = 0;
		unsigned count;

		err = mw_copies_reap(snapshot->pid, &count, &stood_ns);
		snapshot->pause_ns += stood_ns;
		if (!err || left == 0 || mw_error_kind(err) != MW_ERROR_UNSUPPORTED)
			break;
		mw_error_destroy(err);
		usleep(REAP_WAIT_US);
	}
	return mw_error_hint(mw_error_prefix(err, "its copy stays as a zombie of process %d", (int)snapshot->pid),
			     "The process is unharmed; memwatch doctor -p %d --clean removes it", (int)snapshot->pid);
}

struct mw_error *mw_heap_snapshot_end_copy(struct mw_heap_snapshot *snapshot)
{
	bool was = snapshot->copy.pid != 0;
	struct mw_error *err;

	mw_memory_set_copy(&snapshot->memory, 0);
	mw_copy_end(&snapshot->copy);
	/* Also what a killed memwatch has left. */
	err = reap(snapshot);
	if (was)
		return err;
	mw_error_destroy(err);
	return NULL;
}

/* Called before the process stands and when it runs again: what it has at the moment between is there both times, but
 * for what it adds and takes away just then. */
static struct mw_error *read_kernel_words(struct mw_heap_snapshot *snapshot)
{
	struct mw_error *err = mw_kernel_words_read(snapshot->pid, &snapshot->words);

	if (!err || mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	snapshot->image.kernel_words_hidden = true;
	return NULL;
}

/* Have the copy come to stand; where that fails do without. */
static struct mw_error *settle(struct mw_heap_snapshot *snapshot)
{
	struct mw_error *err = snapshot->copy.pid ? mw_copy_settle(&snapshot->copy) : NULL;

	if (!err) {
		mw_memory_set_copy(&snapshot->memory, snapshot->copy.pid);
		snapshot->forked = snapshot->image.consistent = snapshot->copy.pid != 0;
		return NULL;
	}
	mw_error_destroy(mw_heap_snapshot_end_copy(snapshot));
	/* It is the copy that is gone. */
	if (mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	free(snapshot->why);
	snapshot->why = strdup(mw_error_text(err));
	mw_error_destroy(err);
	return snapshot->why ? NULL : mw_error_nomem();
}

struct mw_error *mw_heap_snapshot_ask_signal_stacks(struct mw_heap_snapshot *snapshot)
{
	uint64_t stood_ns = 0;
	bool complete = false;
	struct mw_error *err = mw_kernel_words_add_signal_stacks(snapshot->pid, &snapshot->words, &complete, &stood_ns);

	snapshot->image.kernel_words = snapshot->words.items;
	snapshot->image.kernel_word_count = snapshot->words.count;
	snapshot->image.kernel_words_hidden |= !complete;
	snapshot->pause_ns += stood_ns;
	if (!err || mw_error_kind(err) == MW_ERROR_MEMORY)
		return err;
	mw_error_destroy(err);
	return NULL;
}

static void destroy(struct mw_heap_snapshot *snapshot)
{
	mw_memory_deinit(&snapshot->memory);
	mw_maps_deinit(&snapshot->before);
	mw_maps_deinit(&snapshot->maps);
	mw_maps_deinit(&snapshot->uncopied);
	free(snapshot->mappings);
	free(snapshot->copied);
	free(snapshot->runs.items);
	free(snapshot->threads);
	mw_kernel_words_deinit(&snapshot->words);
	free(snapshot->why);
	free(snapshot);
}

struct mw_error *mw_heap_snapshot_take(pid_t pid, const struct mw_heap_snapshot_options *options,
				       struct mw_heap_snapshot **out)
{
	struct mw_heap_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	struct mw_error *err = NULL;

	if (!snapshot)
		return mw_error_nomem();
	snapshot->pid = pid;
	snapshot->image = (struct mw_image){.read_some = mw_memory_read_some, .context = &snapshot->memory, .pid = pid};
	mw_memory_init(&snapshot->memory, &snapshot->image, pid);
	if (!options->no_fork)
		err = take_why(snapshot, mw_copy_may(pid));
	if (!err)
		err = prepare(snapshot, !options->no_fork && !snapshot->why);
	if (!err)
		err = read_kernel_words(snapshot);
	if (!err)
		err = mw_kernel_words_find_pipes(snapshot->pid, &snapshot->words);
	if (!err)
		err = take_stopped(snapshot, !options->no_fork && !snapshot->why);
	if (!err)
		err = settle(snapshot);
	if (!err)
		err = read_kernel_words(snapshot);
	if (!err)
		err = mw_kernel_words_add_pipes(&snapshot->words);
	if (!err) {
		snapshot->image.kernel_words = snapshot->words.items;
		snapshot->image.kernel_word_count = snapshot->words.count;
		name_threads(snapshot);
		err = gather(snapshot);
		snapshot->memory.copied = snapshot->copied;
		snapshot->image.requests_hidden =
			snapshot->words.requests || mw_kernel_words_unknown(&snapshot->image) != NULL;
		snapshot->image.kernel_words_hidden |= snapshot->image.requests_hidden;
	}
	if (err) {
		mw_error_destroy(mw_heap_snapshot_release(snapshot));
		return err;
	}
	*out = snapshot;
	return NULL;
}

const struct mw_image *mw_heap_snapshot_image(const struct mw_heap_snapshot *snapshot)
{
	return &snapshot->image;
}

bool mw_heap_snapshot_is_fork(const struct mw_heap_snapshot *snapshot)
{
	return snapshot->forked;
}

const char *mw_heap_snapshot_why(const struct mw_heap_snapshot *snapshot)
{
	return snapshot->why;
}

uint64_t mw_heap_snapshot_pause_ns(const struct mw_heap_snapshot *snapshot)
{
	return snapshot->pause_ns;
}

uint64_t mw_heap_snapshot_rss(const struct mw_heap_snapshot *snapshot)
{
	return snapshot->image.runs ? snapshot->rss : MW_SIZE_UNKNOWN;
}

bool mw_heap_snapshot_is_stale(const struct mw_heap_snapshot *snapshot)
{
	char byte;

	/* Nothing is at 0; but of memory that is no more the kernel says that it is at its end. */
	return snapshot->memory.process_fd < 0 ? mw_state_is_end(mw_state_read(snapshot->pid))
					       : pread(snapshot->memory.process_fd, &byte, 1, 0) == 0;
}

struct mw_error *mw_heap_snapshot_release(struct mw_heap_snapshot *snapshot)
{
	struct mw_error *err;

	if (!snapshot)
		return NULL;
	err = mw_heap_snapshot_end_copy(snapshot);
	destroy(snapshot);
	return err;
}

struct mw_error *mw_heap_snapshot_clean(pid_t pid, unsigned *count)
{
	uint64_t stood_ns;

	return mw_copies_reap(pid, count, &stood_ns);
}
