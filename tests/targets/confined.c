/* SPDX-License-Identifier: MIT */
/*
 * confined MODE [PAIRS]: a program that may do little, and works all the same:
 *   seccomp-errno, seccomp-kill   mmap and memfd_create fail, or end it
 *   undumpable                    PR_SET_DUMPABLE 0
 *   as, data                      RLIMIT_AS or RLIMIT_DATA a little above what it has
 *   peaks                         RLIMIT_AS above what it has by what it needs at times, and somewhat more
 *   plain                         (what limits it comes from outside)
 */
#include "target.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define ROOM (6u << 20)
#define PEAK (60u << 20)

static void forbid(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		target_fail("seccomp");
}

/* A field of /proc/self/status, in bytes. */
static uint64_t status(const char *name)
{
	char line[256];
	uint64_t value = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoul(line + strlen(name), NULL, 10) << 10;
	if (file)
		fclose(file);
	return value;
}

static void limit(__rlimit_resource_t what, const char *name, uint64_t room)
{
	struct rlimit both = {.rlim_cur = status(name) + room, .rlim_max = status(name) + room};

	if (setrlimit(what, &both))
		target_fail("setrlimit");
}

static KEEP void confined_pair(size_t i)
{
	unsigned char *block = malloc(1 + i % 900);

	if (!block)
		target_fail("there is no memory any more");
	memset(block, (int)(i & 0xff), 1 + i % 900);
	OPAQUE(block);
	if (block[i % 900] != (i & 0xff))
		target_fail("a block lost what was written there");
	free(block);
}

static KEEP void confined_leak(void)
{
	void *block = malloc(68);

	OPAQUE(block);
}

static KEEP void confined_peak(void)
{
	void *block = malloc(PEAK);

	if (!block)
		target_fail("there is not as much memory as there was");
	OPAQUE(block);
	free(block);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "plain";
	bool peaks = strcmp(mode, "peaks") == 0;
	size_t pairs = argc > 2 ? strtoul(argv[2], NULL, 10) : 3000;

	free(malloc(100000)); /* the break has been moved */
	if (strcmp(mode, "seccomp-errno") == 0)
		forbid(SECCOMP_RET_ERRNO | 1);
	else if (strcmp(mode, "seccomp-kill") == 0)
		forbid(SECCOMP_RET_KILL_PROCESS);
	else if (strcmp(mode, "undumpable") == 0)
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	else if (strcmp(mode, "as") == 0)
		limit(RLIMIT_AS, "VmSize:", ROOM);
	else if (strcmp(mode, "data") == 0)
		limit(RLIMIT_DATA, "VmData:", ROOM);
	else if (peaks)
		limit(RLIMIT_AS, "VmSize:", PEAK + PEAK / 2);
	if (peaks)
		confined_peak();
	target_ready();
	for (size_t i = 0; i < pairs; i++) {
		confined_pair(i);
		if (i % 10 == 0)
			confined_leak();
		if (peaks && i % 10 == 0)
			confined_peak();
	}
	/* What was forbidden still is. */
	if (strcmp(mode, "seccomp-errno") == 0 &&
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		target_fail("the filter is gone");
	if (strcmp(mode, "as") == 0 &&
	    mmap(NULL, 2 * ROOM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		target_fail("the limit is gone");
	if (strcmp(mode, "undumpable") == 0 && prctl(PR_GET_DUMPABLE) != 0)
		target_fail("it can be dumped");
	target_say("confined_pair.transient.count", pairs);
	target_say("confined_leak.impacting.count", (pairs + 9) / 10);
	target_say("confined_leak.impacting.bytes", (pairs + 9) / 10 * 68);
	target_say("heap.size.count", pairs + (peaks ? 2 : 1) * ((pairs + 9) / 10));
	target_done();
	return 0;
}
