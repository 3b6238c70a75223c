/* SPDX-License-Identifier: MIT */
/* recorder.h: the recorder in the target: its memory, what it has to know, what it asks (jump.h). */
#ifndef MW_ENGINE_JUMP_RECORDER_H
#define MW_ENGINE_JUMP_RECORDER_H

#include "engine/jump/jump.h"

/* memory.c: memory of ours in the target. `inject` is ready. */
struct mw_error *jump_memory_map(struct jump_process *process, const struct mw_inject *inject,
				 const struct mw_maps *maps, uint64_t rows_bytes) MW_MUST_CHECK;
/* Give what was mapped its memory, and format it: takes its time, nothing need stand for it. */
struct mw_error *jump_memory_prepare(struct jump_process *process) MW_MUST_CHECK;
/* Trampolines for all planned patches that have none. */
struct mw_error *jump_memory_trampolines(struct jump_process *process, const struct mw_inject *inject) MW_MUST_CHECK;
/* Write the image and its context; the process's threads may run, nothing jumps there yet. */
struct mw_error *jump_memory_write_image(struct jump_process *process, const struct mw_inject *inject) MW_MUST_CHECK;
/* Give `count` rings from `first` memory. */
bool jump_memory_fill_rings(struct jump_process *process, uint32_t first, uint32_t count);
/* Unmap it all. */
struct mw_error *jump_memory_unmap(struct jump_process *process, const struct mw_inject *inject) MW_MUST_CHECK;
/* Does a process, be it the one that is watched or a copy of it, have the shared memory mapped, where it was put? */
bool jump_memory_stands(const struct jump_process *process, pid_t tid);
/* Is an address in code of ours? */
bool jump_memory_ours(const struct jump_process *process, mw_addr addr);
/* The lowest and the highest address of such code. */
void jump_memory_bounds(const struct jump_process *process, mw_addr *low, mw_addr *high);
/* Where memory of ours is: how many places, no more than `capacity` filled in. */
size_t jump_memory_ranges(const struct jump_process *process, struct mw_engine_range *out, size_t capacity);
/* Bytes of ours that are in the target's resident set, and in its address space. */
void jump_memory_measure(struct jump_process *process, pid_t tid, uint64_t *resident, uint64_t *mapped);

/* context.c: what the recorder has to know. */
struct mw_error *jump_context_fill(struct jump_process *process, const struct mw_maps *maps) MW_MUST_CHECK;
/* Write what has been added to the context since the image was written. `tid` stands. */
struct mw_error *jump_context_update(struct jump_process *process, pid_t tid) MW_MUST_CHECK;
void jump_context_hook(struct jump_process *process, const struct jump_patch *patch);
/* Where a thread's control block has its id, found by looking at those of all threads (which stand). */
struct mw_error *jump_find_tid_offset(struct jump_process *process) MW_MUST_CHECK;
/* Turn recording on and off. `tid` is any live thread. */
struct mw_error *jump_guard_set(struct jump_process *process, pid_t tid, uint64_t value) MW_MUST_CHECK;

/* heart.c: the recorder holds memwatch for gone where its heart stops. */
struct mw_error *jump_heart_add(struct jump_engine *engine, struct mw_ring_control *control) MW_MUST_CHECK;
void jump_heart_remove(struct jump_engine *engine, const struct mw_ring_control *control);
void jump_heart_stop(struct jump_engine *engine);

/* ask.c: what the recorder asks. */
/* Answer for all threads before they ask: they stand, and nothing records yet. Best effort. */
void jump_introduce_threads(struct jump_process *process);
struct mw_error *jump_answer(struct jump_process *process) MW_MUST_CHECK;
/* Memory [start, end) was unmapped: stacks are not to be read there. */
void jump_forget_region(struct jump_process *process, mw_addr start, mw_addr end);

/* help.c: what the drain asks. */
/* Which thread is that, as memwatch sees it, which the process knows by `tid`? 0: none. */
pid_t jump_thread_of(struct jump_process *process, uint32_t tid);
struct jump_drain_help jump_help(struct jump_process *process);

#endif
