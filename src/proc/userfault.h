/* SPDX-License-Identifier: MIT */
/* userfault.h: processes that provide pages of their own memory themselves, as they are needed (userfaultfd(2)). */
#ifndef MW_PROC_USERFAULT_H
#define MW_PROC_USERFAULT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Does the process hold such a descriptor? One of its threads may then be what others wait for that touch a page which
 * is not there yet; and while that thread stands still, whoever reads the page by process_vm_readv() waits for ever.
 * False where its descriptors can't be listed.
 */
bool mw_userfault_held(pid_t pid);

#endif
