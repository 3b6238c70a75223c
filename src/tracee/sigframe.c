// SPDX-License-Identifier: MIT
/* sigframe.c: frames and scratch in a thread's room (sigframe.h). */
#include "tracee/sigframe.h"

#include "proc/peek.h"
#include "tracee/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define MARK       UINT64_C(0x6b636162796177f3)
#define SELF       UINT64_C(0x8f1bbcdc7a3e60d5) /* … beside it, with the address of the mark */
#define MARK_WORDS 4u
#define AROUND_PC  16u

/* The mark of `size` bytes at `start`; it is to stand at `at`. */
static void put_mark(uint8_t *out, mw_addr at, mw_addr start, size_t size)
{
	const uint64_t words[MARK_WORDS] = {MARK, SELF ^ at, start, size};

	memcpy(out, words, sizeof(words));
}

static bool is_mark(const uint64_t *word, mw_addr at)
{
	return word[0] == MARK && word[1] == (SELF ^ at) && word[2] <= at && word[3] <= MW_ROOM_MAX &&
	       at + MARK_WORDS * sizeof(*word) - word[2] <= word[3];
}

/* The words below the frame; returns their size. */
static size_t put_first(const struct mw_way_code *code, uint8_t *out)
{
	const uint64_t words[] = {code->gadget, SYS_rt_sigreturn};

	_Static_assert(sizeof(words) == MW_SIGFRAME_FIRST, "what is popped");
	if (code->restorer)
		return 0;
	memcpy(out, words, sizeof(words));
	return sizeof(words);
}

/* The frame and what is popped before it, as it is to stand at *at; returns its size, 0 where there can be none. */
static size_t make_frame(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask, const struct mw_way_code *code,
			 mw_addr below, uint8_t *out, mw_addr *at)
{
	const size_t first = put_first(code, out), spare = mw_regs_signal_frame_spare();
	size_t size = mw_regs_signal_frame(tid, regs, mask, code->restorer ? code->restorer : code->insn, below,
					   out + first, at);

	if (size == 0)
		return 0;
	put_mark(out + first + spare, *at + spare, *at - first, first + size);
	*at -= first;
	return first + size;
}

/* What stands there; where nothing ever was it is not to be made resident by looking at it. */
static bool read_before(pid_t tid, const struct mw_room *room, mw_addr at, uint8_t *out, size_t size)
{
	if (room->zero)
		memset(out, 0, size);
	return room->zero || mw_remote_read(tid, at, out, size) == size;
}

struct mw_error *mw_sigframe_lay(pid_t tid, const struct mw_tracee_regs *regs, uint64_t mask,
				 const struct mw_way_code *code, const struct mw_room *room, struct mw_sigframe *out)
{
	uint8_t *frame = malloc(sizeof(out->before));
	struct mw_error *err = NULL;
	mw_addr at = 0;
	size_t size = 0;

	out->size = 0;
	if (frame && (code->restorer || code->gadget) && room->high - room->low > MW_SCRATCH_SIZE)
		size = make_frame(tid, regs, mask, code, room->high - MW_SCRATCH_SIZE, frame, &at);
	if (size && at >= room->low && at < room->high && read_before(tid, room, at, out->before, size)) {
		out->sp = at;
		out->size = size;
		/* Not by force: where the program may not write is no stack. */
		err = mw_remote_write(tid, at, frame, size);
	}
	free(frame);
	if (!err)
		return NULL;
	mw_sigframe_take_up(tid, out);
	out->size = 0;
	if (mw_error_kind(err) == MW_ERROR_GONE)
		return err;
	mw_error_destroy(err);
	return NULL;
}

void mw_sigframe_take_up(pid_t tid, const struct mw_sigframe *way)
{
	if (way->size)
		mw_error_destroy(mw_remote_write(tid, way->sp, way->before, way->size));
}

size_t mw_sigframe_room(pid_t tid)
{
	const struct mw_way_code code = {.gadget = 1};
	const mw_addr below = MW_ROOM_MAX * 2;
	struct mw_tracee_regs regs;
	struct mw_error *err = mw_tracee_get_regs(tid, &regs);
	uint8_t *frame = err ? NULL : malloc(MW_SIGFRAME_FIRST + MW_SIGFRAME_MAX);
	mw_addr at = 0;
	size_t size = frame ? make_frame(tid, &regs, 0, &code, below, frame, &at) : 0;

	free(frame);
	mw_error_destroy(err);
	return size ? (size_t)(below - at) + MW_SCRATCH_SIZE + 64 : 0;
}

struct mw_error *mw_scratch_put(pid_t tid, const struct mw_room *room, const void *bytes, size_t size,
				struct mw_scratch *out)
{
	const mw_addr start = room->high - MW_SCRATCH_SIZE;
	uint8_t block[MW_SCRATCH_SIZE] = {0};
	struct mw_error *err;

	if (room->high - room->low < MW_SCRATCH_SIZE || size > MW_SCRATCH_MAX ||
	    !read_before(tid, room, start, out->before, sizeof(out->before)))
		return mw_error_create(MW_ERROR_DATA, 0,
				       "thread %d has no stack of its own for the arguments of an injected system call",
				       (int)tid);
	put_mark(block, start, start, sizeof(block));
	memcpy(block + MARK_WORDS * sizeof(uint64_t), bytes, size);
	out->at = start + MARK_WORDS * sizeof(uint64_t);
	err = mw_remote_write(tid, start, block, sizeof(block));
	return err ? mw_error_first(err, mw_scratch_take_up(tid, out)) : NULL;
}

struct mw_error *mw_scratch_take_up(pid_t tid, const struct mw_scratch *scratch)
{
	return mw_remote_write(tid, scratch->at - MARK_WORDS * sizeof(uint64_t), scratch->before,
			       sizeof(scratch->before));
}

/* Does the pc stand in such code, or behind its first instruction? */
static bool is_way_code(pid_t tid, mw_addr pc)
{
	const uint8_t *(*const codes[])(size_t *) = {mw_regs_syscall_return, mw_regs_restorer,
						     mw_regs_sigreturn_gadget};
	uint8_t bytes[2 * AROUND_PC];

	if (mw_remote_read(tid, pc - AROUND_PC, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		size_t size;
		const uint8_t *code = codes[i](&size);

		for (size_t into = 0; into < size; into++)
			if (memcmp(bytes + AROUND_PC - into, code, size) == 0)
				return true;
	}
	return false;
}

bool mw_sigframe_is_at(pid_t tid, const struct mw_regs *regs)
{
	const mw_addr sp = regs->gpr[mw_arch_find(mw_target_machine())->dwarf_sp];
	const mw_addr at = mw_regs_signal_frame_at(sp) + mw_regs_signal_frame_spare();
	uint64_t word[MARK_WORDS];

	/* The code first: hardly any thread is there, and what lies above others' stacks may never have been touched.
	 */
	return is_way_code(tid, regs->pc) && mw_touched_peek(tid, at, word, sizeof(word)) == sizeof(word) &&
	       is_mark(word, at) && sp - word[2] < MW_SIGFRAME_FIRST + 2 * sizeof(mw_addr);
}

bool mw_sigframe_find_remains(pid_t tid, mw_addr from, mw_addr limit, mw_addr *start, size_t *size)
{
	const size_t most = MW_ROOM_MAX / sizeof(uint64_t);
	uint64_t *words = malloc(most * sizeof(*words));
	size_t count = 0;
	bool found = false;

	from &= ~(mw_addr)(sizeof(*words) - 1);
	if (words && limit > from)
		count = mw_touched_peek(tid, from, words,
					limit - from < MW_ROOM_MAX ? (size_t)(limit - from) : most * sizeof(*words)) /
			sizeof(*words);
	for (size_t i = 0; i + MARK_WORDS <= count && !found; i++) {
		found = is_mark(&words[i], from + i * sizeof(*words));
		if (found) {
			*start = words[i + 2];
			*size = (size_t)words[i + 3];
		}
	}
	free(words);
	return found;
}
