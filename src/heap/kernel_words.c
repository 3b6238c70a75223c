// SPDX-License-Identifier: MIT
#include "heap/kernel_words.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "proc/file.h"
#include "tracee/altstacks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUEUE_SIZE (1 << 20) /* bytes of all pipes: what a pipe holds at most without privileges */

static struct mw_error *add(struct mw_kernel_words *words, uint64_t word, enum mw_kernel_word kind, int of)
{
	if (word == 0)
		return NULL;
	if (!MW_VECTOR_ROOM(words->items, words->count, words->capacity))
		return mw_error_nomem();
	words->items[words->count++] = (struct mw_image_kernel_word){word, kind, of};
	return NULL;
}

/* The hexadecimal numbers behind each `label` of a file; none where it can't be read. */
static struct mw_error *add_all(struct mw_kernel_words *words, const char *path, const char *label, int descriptor)
{
	struct mw_error *err;
	char *text = NULL;
	size_t size;

	err = mw_proc_file_read(&text, &size, "%s", path);
	if (err) {
		if (mw_error_kind(err) == MW_ERROR_MEMORY)
			return err;
		mw_error_destroy(err);
		return NULL;
	}
	for (const char *at = strstr(text, label); at && !err; at = strstr(at, label)) {
		at += strlen(label);
		err = add(words, strtoull(at, NULL, 16), MW_KERNEL_EPOLL, descriptor);
	}
	free(text);
	return err;
}

static bool is_epoll(DIR *directory, const char *name)
{
	char target[64];
	ssize_t got = readlinkat(dirfd(directory), name, target, sizeof(target) - 1);

	target[got > 0 ? got : 0] = '\0';
	return strcmp(target, "anon_inode:[eventpoll]") == 0;
}

static struct mw_error *add_epolls(struct mw_kernel_words *words, pid_t pid, DIR *directory)
{
	const struct dirent *entry;

	while ((entry = readdir(directory)) != NULL)
		if (isdigit((unsigned char)*entry->d_name) && is_epoll(directory, entry->d_name))
			MW_TRY(add_all(words, mw_path("/proc/%d/fdinfo/%.10s", (int)pid, entry->d_name).text,
				       " data:", atoi(entry->d_name)));
	return NULL;
}

/* A line of timers: "signal: 34/000055d0c9b7d0a0". */
static struct mw_error *add_timers(struct mw_kernel_words *words, pid_t pid)
{
	struct mw_error *err;
	char *text = NULL;
	size_t size;

	err = mw_proc_file_read(&text, &size, "/proc/%d/timers", (int)pid);
	if (err) {
		if (mw_error_kind(err) == MW_ERROR_MEMORY)
			return err;
		mw_error_destroy(err);
		return NULL;
	}
	for (const char *at = strstr(text, "signal:"); at && !err; at = strstr(at, "signal:")) {
		at += strcspn(at, "/\n");
		if (*at == '/')
			err = add(words, strtoull(at + 1, NULL, 16), MW_KERNEL_TIMER, 0);
	}
	free(text);
	return err;
}

struct mw_error *mw_kernel_words_read(pid_t pid, struct mw_kernel_words *words)
{
	DIR *directory = opendir(mw_path("/proc/%d/fd", (int)pid).text);
	struct mw_error *err;

	if (!directory)
		return errno == ENOMEM ? mw_error_nomem()
				       : mw_error_create(MW_ERROR_SYSTEM, errno,
							 "can't list the descriptors of process %d", (int)pid);
	err = add_epolls(words, pid, directory);
	closedir(directory);
	return err ? err : add_timers(words, pid);
}

struct mw_error *mw_kernel_words_add_signal_stacks(pid_t pid, struct mw_kernel_words *words, bool *complete,
						   uint64_t *stood_ns)
{
	struct mw_altstacks altstacks = {0};
	struct mw_error *err = mw_altstacks_read(pid, &altstacks);

	MW_EACH(altstack, altstacks.items, altstacks.count)
		if (!err)
			err = add(words, altstack->start, MW_KERNEL_SIGNAL_STACK, (int)altstack->tid);
	*complete = altstacks.complete;
	*stood_ns = altstacks.stood_ns;
	mw_altstacks_deinit(&altstacks);
	return err;
}

/* --- pipes ---------------------------------------------------------------------------------------------------------- */

static struct mw_error *note_pipe(struct mw_kernel_words *words, DIR *directory, const char *name)
{
	struct stat file, link;

	if (fstatat(dirfd(directory), name, &file, 0) || !S_ISFIFO(file.st_mode) ||
	    fstatat(dirfd(directory), name, &link, AT_SYMLINK_NOFOLLOW))
		return NULL;
	if (!MW_VECTOR_ROOM(words->pipes, words->pipe_count, words->pipe_capacity))
		return mw_error_nomem();
	words->pipes[words->pipe_count++] = (struct mw_kernel_pipe){
		file.st_dev, file.st_ino, atoi(name), (link.st_mode & S_IRUSR) != 0, (link.st_mode & S_IWUSR) != 0};
	return NULL;
}

/* By pipe, ends that can be read first. */
static int by_pipe(const void *a, const void *b)
{
	const struct mw_kernel_pipe *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return (int)y->reads - (int)x->reads;
}

/* Of each pipe the first end, if there is one to write to as well. */
static void keep_own_pipes(struct mw_kernel_words *words)
{
	size_t kept = 0, next;

	for (size_t i = 0; i < words->pipe_count; i = next) {
		struct mw_kernel_pipe pipe = words->pipes[i];

		for (next = i + 1; next < words->pipe_count && words->pipes[next].device == pipe.device &&
				   words->pipes[next].inode == pipe.inode;
		     next++)
			pipe.writes |= words->pipes[next].writes;
		if (pipe.reads && pipe.writes)
			words->pipes[kept++] = pipe;
	}
	words->pipe_count = kept;
}

struct mw_error *mw_kernel_words_find_pipes(pid_t pid, struct mw_kernel_words *words)
{
	DIR *directory = opendir(mw_path("/proc/%d/fd", (int)pid).text);
	const struct dirent *entry;
	struct mw_error *err = NULL;

	if (!directory)
		return errno == ENOMEM ? mw_error_nomem() : NULL;
	while (!err && (entry = readdir(directory)) != NULL)
		if (isdigit((unsigned char)*entry->d_name))
			err = note_pipe(words, directory, entry->d_name);
	closedir(directory);
	if (words->pipe_count)
		qsort(words->pipes, words->pipe_count, sizeof(*words->pipes), by_pipe);
	keep_own_pipes(words);
	return err;
}

/* Nothing is taken out of it. */
static bool copy_pipe(struct mw_kernel_words *words, int descriptor)
{
	int there = 0;

	if (ioctl(descriptor, FIONREAD, &there) || there <= 0)
		return true;
	if (!words->piped) {
		if (pipe2(words->queue, O_CLOEXEC | O_NONBLOCK))
			return false;
		words->piped = true;
		fcntl(words->queue[1], F_SETPIPE_SZ, QUEUE_SIZE);
	}
	return tee(descriptor, words->queue[1], (size_t)there, SPLICE_F_NONBLOCK) == there;
}

bool mw_kernel_words_copy_pipes(pid_t pid, struct mw_kernel_words *words)
{
	MW_CLEANUP(mw_cleanup_close) int process = -1;
	bool all = true;

	if (words->pipe_count)
		process = (int)syscall(SYS_pidfd_open, pid, 0);
	MW_EACH(pipe, words->pipes, process >= 0 ? words->pipe_count : 0) {
		MW_CLEANUP(mw_cleanup_close)
		int descriptor = (int)syscall(SYS_pidfd_getfd, process, pipe->descriptor, 0);
		struct stat file;

		/* It may have been closed since, and the number be another's. */
		if (descriptor >= 0 && fstat(descriptor, &file) == 0 && S_ISFIFO(file.st_mode) &&
		    file.st_ino == pipe->inode)
			all &= copy_pipe(words, descriptor);
	}
	return all;
}

struct mw_error *mw_kernel_words_add_pipes(struct mw_kernel_words *words)
{
	MW_FREE char *bytes = words->piped ? malloc(QUEUE_SIZE) : NULL;
	ssize_t got = bytes ? read(words->queue[0], bytes, QUEUE_SIZE) : 0;
	uint64_t word;

	if (words->piped && !bytes)
		return mw_error_nomem();
	for (ssize_t i = 0; i + (ssize_t)sizeof(word) <= got; i++) {
		memcpy(&word, bytes + i, sizeof(word));
		MW_TRY(add(words, word, MW_KERNEL_PIPE, 0));
	}
	return NULL;
}

void mw_kernel_words_deinit(struct mw_kernel_words *words)
{
	if (words->piped) {
		close(words->queue[0]);
		close(words->queue[1]);
	}
	free(words->pipes);
	free(words->items);
	*words = (struct mw_kernel_words){0};
}

const struct mw_image_mapping *mw_kernel_words_unknown(const struct mw_image *image)
{
	MW_EACH(mapping, image->mappings, image->mapping_count)
		if (strncmp(mapping->path, "anon_inode:[io_uring]", 21) == 0 ||
		    strncmp(mapping->path, "/[aio]", 6) == 0)
			return mapping;
	return NULL;
}
