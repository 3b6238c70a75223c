/* SPDX-License-Identifier: MIT */
/*
 * writer.h: writes a recording as the window goes.
 *
 * What is reported is put into chunks; full ones are compressed and written by a thread of the writer's, a few at a
 * time, so memory is flat and the caller waits only where the disk is slower than the events come. Everything is to be
 * called from one thread.
 *
 * A write that fails (the disk is full) ends the recording, not the window: calls go on and do nothing, what was
 * written up to then stays a good recording that has been cut off, and mw_store_finish() says why.
 */
#ifndef MW_STORE_WRITER_H
#define MW_STORE_WRITER_H

#include "store/store.h"

struct mw_store_writer;

/*
 * Begin a recording in a file of that name (as base/place.h finds it), mode 0600. Nothing is there under that name
 * before mw_store_publish(): until then an old file of that name stays as it was. Errors: SYSTEM with the name; MEMORY.
 */
struct mw_error *mw_store_create(const char *path, struct mw_store_writer **out) MW_MUST_CHECK;
/*
 * A recording in another file, up to a moment of one that goes on, to which more may be reported:
 *
 *   number = mw_store_moment(writer)              the one thread
 *   while (!mw_store_passed(writer, number, ..))  any thread, until writing has failed
 *   mw_store_copy(writer, &upto, path, ..)        any thread, as long as the writer is not finished
 */
struct mw_store_upto {
	uint64_t bytes, chunks; /* of the file */
};

/* What was reported until now is a moment, which gets the next number, from 1. */
uint64_t mw_store_moment(struct mw_store_writer *writer);
/* Has all been written that was reported up to that moment? `*out` is where it, or a later one, is in the file. False where
 * writing has failed, always: mw_store_broken(). From any thread. */
bool mw_store_passed(struct mw_store_writer *writer, uint64_t number, struct mw_store_upto *out);
/* Why nothing is written any more, an errno value; 0: it is. From any thread. */
int mw_store_broken(struct mw_store_writer *writer);
/* As mw_store_create(), with what `from` has up to there. `go_on` (may be NULL) is asked now and then; where it says
 * false the error is SYSTEM with ECANCELED. */
struct mw_error *mw_store_copy(struct mw_store_writer *from, const struct mw_store_upto *upto, const char *path,
			       bool (*go_on)(void *context, uint64_t done, uint64_t total), void *context,
			       struct mw_store_writer **out) MW_MUST_CHECK;
/* A descriptor to read what is written from, whether or not it has a name; negative: errno says why not. Before finish. */
int mw_store_reopen(const struct mw_store_writer *writer);
/* Write no more: it has got too large, or nobody wants it. What was written is as good as it was. From any thread. */
void mw_store_give_up(struct mw_store_writer *writer, int errnum);
/* The windows begin: from now on what is written is found under the name (by rename), whatever becomes of us. */
struct mw_error *mw_store_publish(struct mw_store_writer *writer) MW_MUST_CHECK;
/* Without publish: leaves no file. NULL is fine. */
void mw_store_destroy(struct mw_store_writer *writer);
/* Write what is still in hand, and close. Errors: the first that writing met, with how much is good. */
struct mw_error *mw_store_finish(struct mw_store_writer *writer) MW_MUST_CHECK;
/* The unpublished file's name, for a signal handler to remove; NULL: none. */
const char *mw_store_partial(const struct mw_store_writer *writer);
/* Bytes written so far, those in hand not counted. */
uint64_t mw_store_written(const struct mw_store_writer *writer);

/*
 * A sink that tells the recording what it tells `inner`, whose numbers it uses; both must outlive it. The recording is
 * known a stack or a thread when its number is new (a thread also when its name is).
 */
struct mw_error *mw_store_sink(struct mw_store_writer *writer, uint32_t process, const struct mw_event_sink *inner,
			       struct mw_event_sink *out) MW_MUST_CHECK;

/* Who writes facts; events, threads and stacks have a sink. */
struct mw_store_visitor mw_store_receiver(struct mw_store_writer *writer);
/* Write one fact: MW_STORE_TELL(writer, mark, process, &mark). */
#define MW_STORE_TELL(writer, what, ...) ((void)mw_store_receiver(writer).what(writer, __VA_ARGS__))
/* Chunks that are begun are written now: what was reported until now survives us. For about once a second. */
void mw_store_flush(struct mw_store_writer *writer);

#endif
