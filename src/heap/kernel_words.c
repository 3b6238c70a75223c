// SPDX-License-Identifier: MIT
#include "heap/kernel_words.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/vector.h"
#include "proc/file.h"
#include "proc/status.h"
#include "tracee/altstacks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OF_THREAD  O_EXCL    /* PIDFD_THREAD */
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

static struct mw_error *add_descriptors(struct mw_kernel_words *words, pid_t tid, DIR *directory)
{
	const struct dirent *entry;

	while ((entry = readdir(directory)) != NULL) {
		char target[64];
		ssize_t got = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		target[got > 0 ? got : 0] = '\0';
		if (strcmp(target, "anon_inode:[eventpoll]") == 0)
			MW_TRY(add_all(words, mw_path("/proc/%d/fdinfo/%.10s", (int)tid, entry->d_name).text,
				       " data:", atoi(entry->d_name)));
		words->requests |= strcmp(target, "anon_inode:[io_uring]") == 0;
	}
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
	/* A main thread that has ended before others has none any more. */
	pid_t tid = mw_live_thread(pid);
	DIR *directory = opendir(mw_path("/proc/%d/fd", (int)tid).text);
	struct mw_error *err;

	if (!directory)
		return errno == ENOMEM ? mw_error_nomem()
				       : mw_error_create(MW_ERROR_SYSTEM, errno,
							 "can't list the descriptors of process %d", (int)pid);
	err = add_descriptors(words, tid, directory);
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

/* --- pipes and sockets ---------------------------------------------------------------------------------------------- */

/* By which the process's descriptors can be had; negative: they can't. */
static int open_process(pid_t pid)
{
	pid_t tid = mw_live_thread(pid);

	return (int)syscall(SYS_pidfd_open, tid, tid == pid ? 0 : OF_THREAD);
}

static int get_descriptor(int process, int number)
{
	return (int)syscall(SYS_pidfd_getfd, process, number, 0);
}

/* Has the process itself made both ends of it? */
static bool is_own_socket(pid_t pid, int process, int number)
{
	MW_CLEANUP(mw_cleanup_close) int descriptor = get_descriptor(process, number);
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	/* Others than Unix sockets have no peer's. */
	return descriptor >= 0 && getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid;
}

static struct mw_error *note_pipe(struct mw_kernel_words *words, DIR *directory, const char *name, pid_t pid,
				  int process)
{
	struct mw_kernel_pipe pipe = {.descriptor = atoi(name)};
	struct stat file, link;

	if (fstatat(dirfd(directory), name, &file, 0))
		return NULL;
	pipe.device = file.st_dev;
	pipe.inode = file.st_ino;
	pipe.socket = S_ISSOCK(file.st_mode);
	if (pipe.socket) {
		pipe.reads = pipe.writes = is_own_socket(pid, process, pipe.descriptor);
	} else {
		if (!S_ISFIFO(file.st_mode) || fstatat(dirfd(directory), name, &link, AT_SYMLINK_NOFOLLOW))
			return NULL;
		pipe.reads = (link.st_mode & S_IRUSR) != 0;
		pipe.writes = (link.st_mode & S_IWUSR) != 0;
	}
	if (!pipe.reads && !pipe.writes)
		return NULL;
	if (!MW_VECTOR_ROOM(words->pipes, words->pipe_count, words->pipe_capacity))
		return mw_error_nomem();
	words->pipes[words->pipe_count++] = pipe;
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
	DIR *directory = opendir(mw_path("/proc/%d/fd", (int)mw_live_thread(pid)).text);
	MW_CLEANUP(mw_cleanup_close) int process = open_process(pid);
	const struct dirent *entry;
	struct mw_error *err = NULL;

	if (!directory)
		return errno == ENOMEM ? mw_error_nomem() : NULL;
	while (!err && (entry = readdir(directory)) != NULL)
		if (isdigit((unsigned char)*entry->d_name))
			err = note_pipe(words, directory, entry->d_name, pid, process);
	closedir(directory);
	if (words->pipe_count)
		qsort(words->pipes, words->pipe_count, sizeof(*words->pipes), by_pipe);
	keep_own_pipes(words);
	return err;
}

/* A stream's bytes all, else the first message. Where the program peeks itself, beginning where it left off, that would move. */
static bool copy_socket(const struct mw_kernel_words *words, int descriptor, size_t there)
{
	MW_FREE char *bytes = malloc(there);
	int type = 0, from = 0;
	socklen_t size = sizeof(int);

	return bytes && getsockopt(descriptor, SOL_SOCKET, SO_PEEK_OFF, &from, &size) == 0 && from < 0 &&
	       recv(descriptor, bytes, there, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)there &&
	       write(words->queue[1], bytes, there) == (ssize_t)there &&
	       getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Nothing is taken out of it. */
static bool copy_pipe(struct mw_kernel_words *words, const struct mw_kernel_pipe *pipe, int descriptor)
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
	if (pipe->socket)
		return copy_socket(words, descriptor, (size_t)there);
	return tee(descriptor, words->queue[1], (size_t)there, SPLICE_F_NONBLOCK) == there;
}

bool mw_kernel_words_copy_pipes(pid_t pid, struct mw_kernel_words *words)
{
	MW_CLEANUP(mw_cleanup_close) int process = -1;
	bool all;

	if (words->pipe_count)
		process = open_process(pid);
	/* Before Linux 6.9 descriptors can be had by the main thread alone. */
	all = process >= 0 || !words->pipe_count || mw_live_thread(pid) == pid;
	MW_EACH(pipe, words->pipes, process >= 0 ? words->pipe_count : 0) {
		MW_CLEANUP(mw_cleanup_close)
		int descriptor = get_descriptor(process, pipe->descriptor);
		struct stat file;

		/* It may have been closed since, and the number be another's. */
		if (descriptor >= 0 && fstat(descriptor, &file) == 0 && file.st_dev == pipe->device &&
		    file.st_ino == pipe->inode)
			all &= copy_pipe(words, pipe, descriptor);
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
