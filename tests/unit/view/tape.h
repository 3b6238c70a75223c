/* SPDX-License-Identifier: MIT */
/* tape.h: recordings made by hand. Whatever fails fails the test. */
#ifndef TEST_VIEW_TAPE_H
#define TEST_VIEW_TAPE_H

#include "store/writer.h"
#include "track/track.h"

#define TAPE_PROCESSES 4U
#define TAPE_SECOND    UINT64_C(1000000000)

enum { TAPE_MALLOC, TAPE_MMAP, TAPE_OWN_MMAP, TAPE_HOOKS };

/* One process: its program is module 0, libc module 1. */
struct tape_process {
	pid_t pid;
	mw_addr base;  /* where the program lies */
	uint8_t build; /* its build-id is of this byte; 0: none */
	uint32_t depth;
	bool no_vm;       /* vm is not recorded */
	int64_t later_ns; /* than others its window began */
};

struct tape {
	struct mw_store_writer *writer;
	struct {
		struct tape_process about;
		struct mw_track *track;
		struct mw_event_sink inner, sink;
		uint32_t thread;
	} processes[TAPE_PROCESSES];
	uint32_t count;
};

/* A file in a directory of this test's own; static text, good until the eighth call from now. */
const char *tape_path(const char *name);
/* Remove all files there; for cmocka's group teardown. */
int tape_cleanup(void **state);

void tape_open(struct tape *tape, const char *path);
uint32_t tape_add(struct tape *tape, const struct tape_process *about);
/* A stack of one frame, `offset` into the program. */
uint32_t tape_stack(struct tape *tape, uint32_t process, enum mw_kind kind, uint64_t offset);
void tape_event(struct tape *tape, uint32_t process, struct mw_event event);
void tape_alloc(struct tape *tape, uint32_t process, uint32_t stack, mw_addr addr, uint64_t size, uint64_t time_ns);
void tape_free(struct tape *tape, uint32_t process, mw_addr addr, uint64_t time_ns);
void tape_mark(struct tape *tape, uint32_t process, uint32_t number, const char *name, uint64_t time_ns);
void tape_symbol(struct tape *tape, uint32_t process, uint64_t offset, const char *function);
void tape_end(struct tape *tape, uint32_t process, uint64_t length_ns);
/* Without tape_end() for each process it is a recording that was cut off. */
void tape_close(struct tape *tape);

#endif
