// SPDX-License-Identifier: MIT
/* context.c: what the recorder has to know (jump.h, stub.h). */
#include "engine/jump/lifecycle.h"
#include "engine/jump/recorder.h"

#include "proc/peek.h"
#include "proc/status.h"
#include "tracee/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#define CONTROL_BLOCK 4096u /* how much of a thread's control block is looked through for its id */

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE 2
#endif

static void add_range(struct mw_stub_range *ranges, uint64_t *count, mw_addr start, mw_addr end)
{
	if (*count < MW_STUB_RANGES)
		ranges[(*count)++] = (struct mw_stub_range){start, end};
}

static void fill_code(struct jump_process *process)
{
	const struct mw_survey *survey = &process->survey;
	struct mw_stub_context *context = &process->recorder.context;

	context->allocator_count = context->internal_count = context->exception_count = 0;
	for (uint32_t i = 0; i < survey->modules_seen; i++) {
		const struct mw_module *module = mw_modules_get(survey->modules, i);

		if (!module->gone && survey->module_class[i] == MW_MODULE_ALLOCATOR)
			add_range(context->allocators, &context->allocator_count, module->start, module->end);
	}
	for (size_t i = 0; i < survey->internal.count; i++) {
		mw_addr bias = mw_modules_get(survey->modules, survey->internal.module)->bias;

		add_range(context->internal, &context->internal_count, survey->internal.items[i].start + bias,
			  survey->internal.items[i].end + bias);
	}
	for (size_t i = 0; i < survey->exception_count; i++)
		add_range(context->exceptions, &context->exception_count, survey->exceptions[i].start,
			  survey->exceptions[i].end);
}

/* Where headers of blocks from before the window may be read. */
static struct mw_error *write_readable(struct jump_process *process, const struct mw_maps *maps)
{
	struct mw_stub_range *ranges = calloc(maps->count ? maps->count : 1, sizeof(*ranges));
	uint64_t room = (process->recorder.image_size - mw_stub_image_size) / sizeof(*ranges), count = 0;
	struct mw_error *err = NULL;

	if (!ranges)
		return mw_error_nomem();
	for (size_t i = 0; i < maps->count && count < room; i++) {
		const struct mw_mapping *mapping = &maps->items[i];

		if (mapping->read && mapping->write && !mapping->shared)
			ranges[count++] = (struct mw_stub_range){mapping->start, mapping->end};
	}
	process->recorder.context.readable = process->recorder.image + mw_stub_image_size;
	process->recorder.context.readable_count = count;
	if (count)
		err = mw_remote_write(jump_live_tid(process), process->recorder.context.readable, ranges,
				      count * sizeof(*ranges));
	free(ranges);
	return err;
}

struct mw_error *jump_context_fill(struct jump_process *process, const struct mw_maps *maps)
{
	struct mw_stub_context *context = &process->recorder.context;

	context->guard = process->recorder.guard;
	context->shared = process->recorder.memory.there;
	if (getrandom(&context->cookie, sizeof(context->cookie), 0) != sizeof(context->cookie))
		context->cookie = jump_clock_tick();
	context->rdfsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
	context->hook_count = MW_STUB_MAX_HOOKS;
	fill_code(process);
	return write_readable(process, maps);
}

struct mw_error *jump_context_update(struct jump_process *process, pid_t tid)
{
	fill_code(process);
	return mw_remote_poke(tid, process->recorder.image + mw_stub_header()->context, &process->recorder.context,
			      sizeof(process->recorder.context));
}

void jump_context_hook(struct jump_process *process, const struct jump_patch *patch)
{
	struct mw_stub_hook *hook = &process->recorder.context.hooks[patch->number];

	*hook = (struct mw_stub_hook){.original = patch->trampoline_at + patch->trampoline.original,
				      .start = patch->addr,
				      .end = patch->addr + patch->size,
				      .role = patch->role,
				      .pointer = MW_STUB_NO_ARG,
				      .count = MW_STUB_NO_ARG,
				      .argument = MW_STUB_NO_ARG,
				      .module = patch->module};
	if (patch->hook != JUMP_NO_HOOK) {
		const struct mw_hook *found = &process->survey.hooks.items[patch->hook];
		const struct mw_engine_options *options = &process->engine->options;
		bool heap = found->info.kind == MW_KIND_HEAP;

		hook->pointer = found->entry->pointer;
		hook->count = found->entry->count;
		hook->argument = found->entry->size;
		hook->flags = (uint8_t)((heap ? MW_STUB_IS_HEAP : 0) | (found->glibc ? MW_STUB_GLIBC : 0) |
					((heap ? options->track_heap : options->track_vm) ? 0 : MW_STUB_UNTRACKED));
	}
}

/* What a thread's control block holds, and what id it should. */
struct candidate {
	uint8_t bytes[CONTROL_BLOCK];
	size_t size;
	uint32_t id;
};

static bool read_block(pid_t tid, struct candidate *out)
{
	struct mw_tracee_regs regs;
	struct mw_status status;
	struct mw_error *err = mw_tracee_get_regs(tid, &regs);

	if (!err)
		err = mw_status_read(tid, &status);
	if (err || !regs.general.thread_pointer) {
		mw_error_destroy(err);
		return false;
	}
	out->id = (uint32_t)status.ns_pid;
	/* The block may end before that, and behind it there may be memory that nobody has touched yet. */
	out->size = mw_touched_peek(tid, regs.general.thread_pointer, out->bytes, sizeof(out->bytes));
	return out->size > 0;
}

static bool holds(const struct candidate *block, size_t offset)
{
	uint32_t word;

	if (offset + sizeof(word) > block->size)
		return false;
	memcpy(&word, block->bytes + offset, sizeof(word));
	return word == block->id;
}

/* Where C libraries are known to have it, to choose by where there is only one thread to look at. */
static const uint32_t usual[] = {0x2d0 /* glibc */, 0x30 /* musl */, 0x38 /* musl before 1.2 */};

struct mw_error *jump_find_tid_offset(struct jump_process *process)
{
	bool possible[CONTROL_BLOCK / sizeof(uint32_t)];
	struct candidate *block = malloc(sizeof(*block));
	size_t looked = 0;

	if (!block)
		return mw_error_nomem();
	memset(possible, 1, sizeof(possible));
	for (size_t i = 0; i < process->quiesce.count && looked < 64; i++) {
		const struct mw_quiet_thread *thread = &process->quiesce.threads[i];

		if (!thread->stopped || thread->sharing || !read_block(thread->tid, block))
			continue;
		looked++;
		for (size_t j = 0; j < sizeof(possible); j++)
			possible[j] &= holds(block, j * sizeof(uint32_t));
	}
	free(block);
	for (size_t i = 0; looked && i < sizeof(usual) / sizeof(usual[0]); i++)
		if (possible[usual[i] / sizeof(uint32_t)]) {
			process->recorder.context.tid_offset = usual[i];
			return NULL;
		}
	for (size_t i = 0; looked && i < sizeof(possible); i++)
		if (possible[i]) {
			process->recorder.context.tid_offset = (uint32_t)(i * sizeof(uint32_t));
			return NULL;
		}
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					     "where the C library of process %d keeps thread ids is not known",
					     process->pid),
			     "--engine trap can watch it");
}

struct mw_error *jump_guard_set(struct jump_process *process, pid_t tid, uint64_t value)
{
	if (!process->recorder.guard)
		return NULL;
	if (process->recorder.own_memory >= 0 && pwrite(process->recorder.own_memory, &value, sizeof(value),
							(off_t)process->recorder.guard) == sizeof(value))
		return NULL;
	/* Another program has something else there, or nothing. */
	return jump_has_execed(process) ? NULL : mw_remote_write(tid, process->recorder.guard, &value, sizeof(value));
}
