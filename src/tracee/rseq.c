// SPDX-License-Identifier: MIT
/* rseq.c: restartable sequences (rseq.h), as linux/rseq.h and PTRACE_GET_RSEQ_CONFIGURATION of ptrace(2) have them. */
#include "tracee/rseq.h"

#include "tracee/remote.h"

#include <sys/ptrace.h>

#define GET_RSEQ_CONFIGURATION 0x420f

struct rseq_configuration {
	uint64_t pointer;
	uint32_t size, signature, flags, pad;
};

/* struct rseq: cpu_id_start and cpu_id of 32 bits each come first. */
#define SEQUENCE 8

struct sequence {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

void mw_rseq_abort(pid_t tid, struct mw_tracee_regs *regs)
{
	struct rseq_configuration known = {.pointer = 0};
	struct sequence sequence;
	uint32_t signature;
	uint64_t at = 0;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, sizeof(known), &known) < (long)sizeof(known) ||
	    !known.pointer)
		return;
	if (mw_remote_read(tid, known.pointer + SEQUENCE, &at, sizeof(at)) != sizeof(at) || !at)
		return;
	if (mw_remote_read(tid, at, &sequence, sizeof(sequence)) != sizeof(sequence) || sequence.version != 0)
		return;
	if (regs->general.pc - sequence.start >= sequence.length)
		return;
	/* What the kernel would end the program for is left to it. */
	if (mw_remote_read(tid, sequence.abort - sizeof(signature), &signature, sizeof(signature)) ==
		    sizeof(signature) &&
	    signature == known.signature)
		regs->general.pc = sequence.abort;
}
