/* SPDX-License-Identifier: MIT */
/* package_lines.h: files of a target's root, such as its package manager's, line by line and with bounds. */
#ifndef MW_CLI_PACKAGE_LINES_H
#define MW_CLI_PACKAGE_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct mw_lines;

/*
 * Open a regular file inside a root (mw_root_directory); at most `limit` bytes of its text are read, and as many of the
 * file where its name says that it is packed (.gz, .lz4, .zst). NULL where there is none, it can't be read, is packed
 * in another way, or there is no memory.
 */
struct mw_lines *mw_lines_open(int root, const char *path, uint64_t limit);
void mw_lines_close(struct mw_lines *lines); /* NULL is fine */
/* The next line, without its newline; NULL at the end. Good until the next call. What a line of more than 64 KiB has
 * beyond them is left out, as are lines with a NUL from there on. */
char *mw_lines_next(struct mw_lines *lines);
/* At the end: was that the file's? It may have been cut off, broken, or longer than the limit. */
bool mw_lines_are_whole(const struct mw_lines *lines);
/* Take what was read, packed or not, and its text from a budget of bytes for several files: what is left, or 0. */
uint64_t mw_lines_spend(const struct mw_lines *lines, uint64_t budget);

#endif
