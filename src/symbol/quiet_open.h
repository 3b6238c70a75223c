/* SPDX-License-Identifier: MIT */
/*
 * quiet_open.h: what libdw opens by names that stand in a target's files.
 *
 * The name of a file with debug information (.gnu_debuglink, .gnu_debugaltlink, DW_AT_dwo_name) is anything that the
 * target's maker likes, and libdw opens it: a FIFO's open would wait for ever, a device's may do something. So this
 * program has an open() of its own, which libraries find before that of libc; while a thread is quiet it opens nothing
 * for reading but regular files, and does not wait.
 */
#ifndef MW_SYMBOL_QUIET_OPEN_H
#define MW_SYMBOL_QUIET_OPEN_H

/* From here on this thread opens quietly, until as many ends as begins. ELF files are opened with their sections
 * uncompressed (inflate.h). */
void mw_quiet_open_begin(void);
void mw_quiet_open_end(void);
/* In between: as they are, for their checksums. */
void mw_quiet_open_plain_begin(void);
void mw_quiet_open_plain_end(void);

#endif
