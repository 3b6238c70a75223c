// SPDX-License-Identifier: MIT
/* unpack.c: reads chunks ahead (unpack.h). */
#include "store/unpack.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

int64_t mw_store_read_at(int fd, uint8_t *out, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t count = pread(fd, out + done, size - done, (off_t)(at + done));

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -1;
		if (count == 0)
			break;
		done += (size_t)count;
	}
	return (int64_t)done;
}

static enum mw_store_step damage(struct mw_store_slot *slot, const char *why)
{
	slot->why = why;
	return MW_STORE_STEP_DAMAGE;
}

/* Frame by frame, and nothing but zstd's frames of today: the library also reads those of its past. */
static bool decompress(ZSTD_DCtx *zstd, const uint8_t *in, size_t size, uint8_t *out, size_t wanted)
{
	size_t made = 0;

	while (size) {
		size_t frame = ZSTD_findFrameCompressedSize(in, size), done;

		if (size < 4 || mw_store_load32(in) != ZSTD_MAGICNUMBER || ZSTD_isError(frame))
			return false;
		done = ZSTD_decompressDCtx(zstd, out + made, wanted - made, in, frame);
		if (ZSTD_isError(done))
			return false;
		made += done;
		in += frame;
		size -= frame;
	}
	return made == wanted;
}

static enum mw_store_step no_memory(struct mw_store_slot *slot)
{
	slot->errnum = ENOMEM;
	return MW_STORE_STEP_TROUBLE;
}

static enum mw_store_step unpack_events(struct mw_store_slot *slot)
{
	const struct mw_store_chunk *chunk = &slot->chunk;

	if (chunk->count > MW_STORE_EVENTS_MAX)
		return damage(slot, "a chunk of events has no sensible number of them");
	if (!mw_store_buffer_room(&slot->events, chunk->count * sizeof(struct mw_event)))
		return no_memory(slot);
	slot->why = mw_store_columns_decode(slot->content.bytes, chunk->raw_size, chunk->count,
					    (struct mw_event *)(void *)slot->events.bytes, &slot->named);
	return slot->why ? MW_STORE_STEP_DAMAGE : MW_STORE_STEP_CHUNK;
}

static enum mw_store_step unpack(struct mw_store_unpacker *unpacker, struct mw_store_slot *slot)
{
	const struct mw_store_chunk *chunk = &slot->chunk;

	if (chunk->coding == MW_STORE_ZSTD) {
		if (!mw_store_buffer_room(&slot->content, chunk->raw_size))
			return no_memory(slot);
		if (!decompress(unpacker->zstd, unpacker->stored.bytes, chunk->stored_size, slot->content.bytes,
				chunk->raw_size))
			return damage(slot, "a chunk can't be decompressed");
	} else if (chunk->coding != MW_STORE_RAW || chunk->raw_size != chunk->stored_size) {
		return damage(slot, "a chunk is compressed in an unknown way");
	} else {
		/* Who tells it has it while the next one is read. */
		struct mw_store_buffer other = slot->content;

		slot->content = unpacker->stored;
		unpacker->stored = other;
	}
	return chunk->type == MW_STORE_EVENTS ? unpack_events(slot) : MW_STORE_STEP_CHUNK;
}

static enum mw_store_step step(struct mw_store_unpacker *unpacker, struct mw_store_slot *slot)
{
	uint8_t header[MW_STORE_CHUNK_HEADER];
	uint64_t rest = unpacker->size - unpacker->at;
	struct mw_store_chunk *chunk = &slot->chunk;
	int64_t got;

	if (rest == 0)
		return MW_STORE_STEP_ALL;
	got = mw_store_read_at(unpacker->fd, header, sizeof(header), unpacker->at);
	if (got >= 0 && got < (int64_t)sizeof(header))
		return damage(slot, "it ends inside a chunk");
	if (got >= 0 && !mw_store_unpack_chunk(header, chunk))
		return damage(slot, "there are bytes that are no chunk");
	if (got >= 0 && (chunk->raw_size > MW_STORE_CHUNK_MAX || chunk->stored_size > chunk->raw_size))
		return damage(slot, "a chunk has an invalid size");
	if (got >= 0 && chunk->sequence != unpacker->sequence)
		return damage(slot, "a chunk is missing");
	if (got >= 0 && rest < sizeof(header) + chunk->stored_size)
		return damage(slot, "it ends inside a chunk");
	if (got >= 0 && !mw_store_buffer_room(&unpacker->stored, chunk->stored_size))
		return no_memory(slot);
	if (got >= 0)
		got = mw_store_read_at(unpacker->fd, unpacker->stored.bytes, chunk->stored_size,
				       unpacker->at + sizeof(header));
	if (got < 0) {
		slot->errnum = errno;
		return MW_STORE_STEP_TROUBLE;
	}
	if ((uint64_t)got < chunk->stored_size)
		return damage(slot, "it ends inside a chunk");
	if (!mw_store_hash_fits(chunk, header, unpacker->stored.bytes))
		return damage(slot, "a chunk's checksum does not fit its bytes");
	unpacker->sequence++;
	unpacker->at += sizeof(header) + chunk->stored_size;
	slot->end = unpacker->at;
	slot->skipped = chunk->type >= MW_STORE_TYPE_COUNT || !unpacker->wanted[chunk->type];
	return slot->skipped ? MW_STORE_STEP_CHUNK : unpack(unpacker, slot);
}

static void *run(void *context)
{
	struct mw_store_unpacker *unpacker = context;
	enum mw_store_step last;

	pthread_setname_np(pthread_self(), "memwatch-read");
	do {
		struct mw_store_slot *slot = NULL;

		pthread_mutex_lock(&unpacker->lock);
		while (unpacker->count == MW_STORE_AHEAD && !unpacker->stop)
			pthread_cond_wait(&unpacker->changed, &unpacker->lock);
		if (!unpacker->stop)
			slot = &unpacker->slots[(unpacker->first + unpacker->count) % MW_STORE_AHEAD];
		pthread_mutex_unlock(&unpacker->lock);
		if (!slot)
			break;
		last = slot->step = step(unpacker, slot);
		pthread_mutex_lock(&unpacker->lock);
		unpacker->count++;
		pthread_cond_signal(&unpacker->changed);
		pthread_mutex_unlock(&unpacker->lock);
	} while (last == MW_STORE_STEP_CHUNK);
	return NULL;
}

static void free_buffers(struct mw_store_unpacker *unpacker)
{
	for (size_t i = 0; i < MW_STORE_AHEAD; i++) {
		free(unpacker->slots[i].content.bytes);
		free(unpacker->slots[i].events.bytes);
	}
	free(unpacker->stored.bytes);
	ZSTD_freeDCtx(unpacker->zstd);
}

struct mw_error *mw_store_unpacker_start(struct mw_store_unpacker *unpacker)
{
	sigset_t all, before;
	int errnum;

	unpacker->at = MW_STORE_FILE_HEADER;
	unpacker->zstd = ZSTD_createDCtx();
	if (!unpacker->zstd)
		return mw_error_nomem();
	pthread_mutex_init(&unpacker->lock, NULL);
	pthread_cond_init(&unpacker->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&unpacker->thread, NULL, run, unpacker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!errnum)
		return NULL;
	free_buffers(unpacker);
	return mw_error_create(MW_ERROR_SYSTEM, errnum, "can't start the thread that reads the recording");
}

const struct mw_store_slot *mw_store_unpacker_next(struct mw_store_unpacker *unpacker)
{
	const struct mw_store_slot *slot;

	pthread_mutex_lock(&unpacker->lock);
	while (unpacker->count == 0)
		pthread_cond_wait(&unpacker->changed, &unpacker->lock);
	slot = &unpacker->slots[unpacker->first];
	pthread_mutex_unlock(&unpacker->lock);
	return slot;
}

void mw_store_unpacker_drop(struct mw_store_unpacker *unpacker)
{
	pthread_mutex_lock(&unpacker->lock);
	unpacker->first = (unpacker->first + 1) % MW_STORE_AHEAD;
	unpacker->count--;
	pthread_cond_signal(&unpacker->changed);
	pthread_mutex_unlock(&unpacker->lock);
}

void mw_store_unpacker_stop(struct mw_store_unpacker *unpacker)
{
	pthread_mutex_lock(&unpacker->lock);
	unpacker->stop = true;
	pthread_cond_signal(&unpacker->changed);
	pthread_mutex_unlock(&unpacker->lock);
	pthread_join(unpacker->thread, NULL);
	pthread_cond_destroy(&unpacker->changed);
	pthread_mutex_destroy(&unpacker->lock);
	free_buffers(unpacker);
}
