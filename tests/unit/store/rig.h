/* SPDX-License-Identifier: MIT */
/* rig.h: what the store's tests share: an inner sink, small recordings, and all that a reader tells as text. */
#ifndef MW_TEST_STORE_RIG_H
#define MW_TEST_STORE_RIG_H

#include "store/reader.h"
#include "store/writer.h"

/* cmocka.h wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Fail with the error's text. */
void rig_good(struct mw_error *err);

/* A sink that numbers stacks and threads in turn; what is set is given instead, once. */
struct rig_inner {
	struct mw_event_sink sink;
	uint32_t next_stack, next_thread;
	uint32_t give_stack, give_thread; /* UINT32_MAX: the next */
	uint64_t events;
	bool refuse; /* events */
};
void rig_inner_init(struct rig_inner *inner);

/* A path under a directory of its own, which rig_cleanup() removes with all that is in it. */
const char *rig_path(const char *name);
int rig_cleanup(void **state);

/* What a reader tells, one line each; events one by one. */
struct rig_told {
	char *text;
	size_t size;
	FILE *stream;
	uint64_t events;
	struct mw_store_visitor visitor;
};
void rig_told_init(struct rig_told *told);
void rig_told_deinit(struct rig_told *told);
/* Read a file from begin to end into the text. */
struct mw_error *rig_read(const char *path, struct rig_told *told, struct mw_store_state *state);

/* Tell a bit of everything to both a writer and, as a reader would tell it, to `told`. */
void rig_tell_everything(struct mw_store_writer *writer, uint32_t process, struct rig_told *told);

/* Write a small recording that has a bit of everything. */
void rig_write_small(const char *path);

/* Read a file into memory of the caller's. */
uint8_t *rig_load(const char *path, size_t *size);
void rig_save(const char *path, const uint8_t *bytes, size_t size);

#endif
