/* SPDX-License-Identifier: MIT */
/*
 * unpack.h: the thread that reads chunks ahead of whoever tells them: checks their headers and hashes, decompresses,
 * decodes events.
 */
#ifndef MW_STORE_UNPACK_H
#define MW_STORE_UNPACK_H

#include "store/bytes.h"
#include "store/columns.h"

#include <pthread.h>

#define MW_STORE_AHEAD 4u /* chunks */

enum mw_store_step {
	MW_STORE_STEP_CHUNK,   /* a chunk that is whole */
	MW_STORE_STEP_DAMAGE,  /* there is none that is: `why` */
	MW_STORE_STEP_ALL,     /* the file ends here */
	MW_STORE_STEP_TROUBLE, /* reading failed: `errnum` */
};

/* A step in reading, of which the last is no chunk. */
struct mw_store_slot {
	enum mw_store_step step;
	const char *why;
	int errnum;
	struct mw_store_chunk chunk;
	uint64_t end; /* of the chunk in the file */
	bool skipped; /* nobody wants its content */
	struct mw_store_buffer content;
	struct mw_store_buffer events; /* struct mw_event */
	struct mw_store_named named;
};

struct mw_store_unpacker {
	int fd;
	uint64_t size;                    /* of the file */
	bool wanted[MW_STORE_TYPE_COUNT]; /* chunks whose content is unpacked */
	/* The thread's own. */
	uint64_t at, sequence;
	struct mw_store_buffer stored;
	void *zstd;
	/* What follows: under the lock. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mw_store_slot slots[MW_STORE_AHEAD];
	unsigned int first, count;
	bool stop;
};

/* Begin to read at the first chunk; fd, size and wanted are set, all else 0. Errors: MEMORY, SYSTEM. */
struct mw_error *mw_store_unpacker_start(struct mw_store_unpacker *unpacker) MW_MUST_CHECK;
/* The next step, good until mw_store_unpacker_drop(). */
const struct mw_store_slot *mw_store_unpacker_next(struct mw_store_unpacker *unpacker);
void mw_store_unpacker_drop(struct mw_store_unpacker *unpacker);
/* At any time after start. */
void mw_store_unpacker_stop(struct mw_store_unpacker *unpacker);

/* Read `size` bytes, fewer at the file's end; -1: errno. */
int64_t mw_store_read_at(int fd, uint8_t *out, size_t size, uint64_t at);

#endif
