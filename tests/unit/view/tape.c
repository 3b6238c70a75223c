// SPDX-License-Identifier: MIT
/* tape.c: see tape.h. */
#include "tape.h"

#include <memwatch/engine.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

const char *tape_path(const char *name)
{
	static char paths[8][512];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	if (!directory[0]) {
		strcpy(directory, "/tmp/mw-tape-XXXXXX");
		assert_non_null(mkdtemp(directory));
	}
	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

int tape_cleanup(void **state)
{
	struct dirent *entry;
	DIR *all;

	(void)state;
	if (!directory[0])
		return 0;
	all = opendir(directory);
	while (all && (entry = readdir(all)))
		unlink(tape_path(entry->d_name));
	closedir(all);
	rmdir(directory);
	directory[0] = '\0';
	return 0;
}

void tape_open(struct tape *tape, const char *path)
{
	*tape = (struct tape){.writer = NULL};
	good(mw_store_create(path, &tape->writer));
	good(mw_store_publish(tape->writer));
}

static void tell_process(struct tape *tape, uint32_t number, const struct tape_process *about)
{
	static const char *const command[] = {"app", "--serve"};
	const uint8_t build_id[4] = {about->build, about->build, about->build, about->build}, libc_id[4] = {9, 9, 9, 9};
	const struct mw_stored_target target = {
		.pid = about->pid,
		.comm = "app",
		.exe = "/bin/app",
		.command = command,
		.command_count = 2,
		.started_realtime_ns = 1700000000 * (int64_t)TAPE_SECOND + about->later_ns,
		.track_heap = true,
		.track_vm = !about->no_vm,
		.depth = about->depth ? about->depth : 128,
		.engine = "jump",
		.engine_reason = "a test",
	};
	const struct mw_stored_hook hooks[TAPE_HOOKS] = {
		{TAPE_MALLOC, "malloc", "/lib/libc.so.6", NULL, 0x7000, MW_ROLE_MALLOC, MW_KIND_HEAP},
		{TAPE_MMAP, "mmap", "/lib/libc.so.6", NULL, 0x8000, MW_ROLE_MMAP, MW_KIND_VM},
		{TAPE_OWN_MMAP, "mmap", "/lib/libc.so.6", NULL, 0x9000, MW_ROLE_MMAP, MW_KIND_VM_INTERNAL},
	};
	const struct mw_stored_module modules[] = {
		{.number = 0,
		 .path = "/bin/app",
		 .build_id = build_id,
		 .build_id_size = about->build ? sizeof(build_id) : 0,
		 .start = about->base,
		 .end = about->base + 0x10000,
		 .base = about->base,
		 .suspect = true,
		 .has_file = true},
		{.number = 1,
		 .path = "/lib/libc.so.6",
		 .build_id = libc_id,
		 .build_id_size = sizeof(libc_id),
		 .start = 0x7000000,
		 .end = 0x7100000,
		 .base = 0x7000000,
		 .has_file = true},
	};

	MW_STORE_TELL(tape->writer, target, number, &target);
	for (unsigned i = 0; i < TAPE_HOOKS; i++)
		MW_STORE_TELL(tape->writer, hook, number, &hooks[i]);
	for (unsigned i = 0; i < 2; i++)
		MW_STORE_TELL(tape->writer, module, number, &modules[i]);
}

uint32_t tape_add(struct tape *tape, const struct tape_process *about)
{
	uint32_t number = tape->count++;

	assert_true(number < TAPE_PROCESSES);
	tape->processes[number].about = *about;
	good(mw_track_create(&tape->processes[number].track));
	tape->processes[number].inner = mw_track_sink(tape->processes[number].track);
	good(mw_store_sink(tape->writer, number, &tape->processes[number].inner, &tape->processes[number].sink));
	tell_process(tape, number, about);
	good(tape->processes[number].sink.thread(tape->processes[number].sink.context, about->pid, "main", true,
						 &tape->processes[number].thread));
	return number;
}

uint32_t tape_stack(struct tape *tape, uint32_t process, enum mw_kind kind, uint64_t offset)
{
	static const uint32_t hooks[MW_KIND_COUNT] = {TAPE_MALLOC, TAPE_MMAP, TAPE_OWN_MMAP};
	const struct mw_event_sink *sink = &tape->processes[process].sink;
	const struct mw_raw_frame frame = {tape->processes[process].about.base + offset, 0};
	const struct mw_raw_stack stack = {.frames = &frame, .count = 1, .hook = hooks[kind], .kind = kind};
	uint32_t id = 0;

	good(sink->stack(sink->context, &stack, &id));
	return id;
}

void tape_event(struct tape *tape, uint32_t process, struct mw_event event)
{
	const struct mw_event_sink *sink = &tape->processes[process].sink;

	event.thread = tape->processes[process].thread;
	good(sink->event(sink->context, &event));
}

void tape_alloc(struct tape *tape, uint32_t process, uint32_t stack, mw_addr addr, uint64_t size, uint64_t time_ns)
{
	tape_event(tape, process,
		   (struct mw_event){time_ns, addr, size, stack, 0, MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false});
}

void tape_free(struct tape *tape, uint32_t process, mw_addr addr, uint64_t time_ns)
{
	tape_event(tape, process,
		   (struct mw_event){time_ns, addr, MW_SIZE_UNKNOWN, MW_STACK_NONE, 0, MW_EVENT_FREE, MW_KIND_HEAP, 0,
				     false});
}

void tape_mark(struct tape *tape, uint32_t process, uint32_t number, const char *name, uint64_t time_ns)
{
	const struct mw_stored_mark mark = {.number = number, .time_ns = time_ns, .name = name};

	MW_STORE_TELL(tape->writer, mark, process, &mark);
}

void tape_symbol(struct tape *tape, uint32_t process, uint64_t offset, const char *function)
{
	const struct mw_stored_frame frame = {.function = function, .file = "/src/app.c", .line = 7, .offset = 4};
	const struct mw_stored_symbol symbol = {
		.module = 0, .addr = tape->processes[process].about.base + offset, .frames = &frame, .frame_count = 1};

	MW_STORE_TELL(tape->writer, symbol, process, &symbol);
}

void tape_end(struct tape *tape, uint32_t process, uint64_t length_ns)
{
	const struct mw_stored_end end = {.length_ns = length_ns, .ended = MW_END_DURATION};

	MW_STORE_TELL(tape->writer, end, process, &end);
}

void tape_close(struct tape *tape)
{
	good(mw_store_finish(tape->writer));
	mw_store_destroy(tape->writer);
	for (uint32_t i = 0; i < tape->count; i++)
		mw_track_destroy(tape->processes[i].track);
}
