/* SPDX-License-Identifier: MIT */
/*
 * place.h: the place of a file that is to be written: held by its directory, so that nobody leads it elsewhere
 * meanwhile.
 *
 * Symbolic links are followed as the user expects: what a link leads to is written, and the link stays. But none is
 * followed that stands in a directory to which every user may write (as /tmp, sticky or not), at whatever part of the
 * path: it may be anyone's. What is there already and is no file must be ours or root's in such a directory.
 *
 * A new file has no name, or one that nobody had before (O_EXCL), and mode 0600 whatever the umask is. It gets its name
 * by rename, which replaces what is there and follows nothing.
 */
#ifndef MW_BASE_PLACE_H
#define MW_BASE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

enum mw_place_kind {
	MW_PLACE_NEW,  /* nothing is there */
	MW_PLACE_FILE, /* a regular file that may be written, and replaced */
	MW_PLACE_OPEN, /* a device, FIFO, or a link of /proc (as /dev/fd/3 is): to be written to as it is */
};

struct mw_place {
	enum mw_place_kind kind;
	int dir; /* descriptors, -1: none */
	int there;
	char name[NAME_MAX + 1], temp[NAME_MAX + 1];
	bool has_temp;   /* there is a file of the name `temp` */
	const char *why; /* set where it is refused: static text */
};

/* Find the place. 0, or an errno value; where `why` is set then it says more. To be deinit'ed in any case. */
int mw_place_find(struct mw_place *place, const char *path);
/* Leaves nothing that was not given its name. */
void mw_place_deinit(struct mw_place *place);
/* A descriptor to write to: a new file, or what is there (MW_PLACE_OPEN). -1 with errno. */
int mw_place_open(struct mw_place *place);
/* Give the new file its name. 0, or an errno value. */
int mw_place_name(struct mw_place *place, int fd);
/* The path of the file that is there without its name, malloc'ed; NULL: there is none. */
char *mw_place_partial(const struct mw_place *place);

#endif
