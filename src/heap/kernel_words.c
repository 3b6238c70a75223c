// SPDX-License-Identifier: MIT
#include "heap/kernel_words.h"

#include "base/path.h"
#include "base/vector.h"
#include "proc/file.h"
#include "tracee/altstacks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void mw_kernel_words_deinit(struct mw_kernel_words *words)
{
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
