/* SPDX-License-Identifier: MIT */
/*
 * seccomp_probe.h: seccomp filters that a thread shares with memwatch, as in a container whose runtime puts all that it
 * starts under one.
 *
 * Such filters can be neither read nor suspended: that takes CAP_SYS_ADMIN, and no filter on memwatch itself. What they
 * permit can be tried: a child of memwatch is under them as well, and makes the calls that a target would have to make.
 */
#ifndef MW_TRACEE_SECCOMP_PROBE_H
#define MW_TRACEE_SECCOMP_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Is the thread under exactly the filters that memwatch is under? Filters are inherited, and only ever added. So it is
 * where both have as many as the nearest process that both descend from, or, where there is none, as process 1 of their
 * pid namespace: what a container's runtime starts there it puts under the container's filters. False also where
 * memwatch is under none, and where the kernel does not count them (before Linux 5.9).
 */
bool mw_seccomp_shared(pid_t tid);

/*
 * Before a process is stopped: where it shares memwatch's filters, try now what they permit, as each try is a fork and
 * takes its time. What is known of the last process that shares them is forgotten: this one may have its number.
 */
void mw_seccomp_prepare(pid_t pid);

/*
 * The process shared memwatch's filters when it was attached to, by a memwatch that has ended since: its threads do as
 * long as they are under as many, whoever is their parent now. Of the last process that was named so.
 */
void mw_seccomp_trust(pid_t pid);

/*
 * Which calls (bits of enum mw_seccomp_policy_call) a child of memwatch has lived through, and which of them were made.
 * Tried once for the whole run, each by a child of its own that has a second for it. Any thread.
 */
void mw_seccomp_probe(uint32_t *harmless, uint32_t *made);

/* May a thread under shared filters be had make the call of this number? */
bool mw_seccomp_shared_may(pid_t tid, long number);

#endif
