/* SPDX-License-Identifier: MIT */
/* search.h: look through the memory of a process for what may come back to somewhere (standing.c). */
#ifndef MW_ENGINE_JUMP_SEARCH_H
#define MW_ENGINE_JUMP_SEARCH_H

#include "engine/jump/jump.h"

#define JUMP_CALL_WORDS (sizeof(struct mw_stub_call) / sizeof(uint64_t))

/* A thread's own stack, and the stack pointer of the thread on it. */
struct jump_running {
	mw_addr start, sp;
};

/* Doubtful is what looks like something that has long been left, and may not have been. */
enum jump_found { JUMP_FOUND_NOTHING, JUMP_FOUND_DOUBTFUL, JUMP_FOUND };

struct jump_search {
	struct jump_process *process;
	pid_t tid; /* to read by */
	/* Does word `i` of the `count` at `start` (`words`) tell of what is looked for? */
	enum jump_found (*tells)(struct jump_search *search, mw_addr start, size_t count, size_t i);
	mw_addr low, high; /* what is looked for leads to [low, high) */
	bool counted;      /* the recorder's count says that there is something */
	bool first;        /* that there is anything is all that is asked */
	bool brief; /* it is hardly there: 5 ms of CPU time are enough, in which a small process is looked through */

	/* What came of it. What lies below the stack pointer of the thread whose stack it is is doubtful as well: a
	 * stack of the program's own making may lie in a variable there. */
	size_t found, doubtful, below; /* `below` are among `doubtful` */

	unsigned altstack_looks; /* standing.c's */

	/* search.c's */
	uint64_t *words;
	int pagemap;    /* -1: none, all is taken for present */
	uint64_t left;  /* bytes that may still be looked through */
	uint64_t until; /* … before that much CPU time was spent */
	struct jump_running *running;
	size_t running_count;
};

/*
 * Look at the places where something was found since jump_seen_nothing(); where it is there no more, through all
 * memory that may hold stacks: 256 MiB, and 0.3 s of CPU time, at most. The next search goes on where this one had to
 * end. What is found is taken note of. False: not everything has been looked at since, for want of memory or time.
 */
bool jump_search(struct jump_search *search, const struct mw_maps *maps);
/* The next one begins at the beginning. */
static inline void jump_seen_anew(struct jump_seen *seen)
{
	seen->reached = 0;
	seen->at_large = false;
}

/* Nobody comes back to a stack pointer right below that of the thread whose stack it is. Further down there may be
 * stacks of the program's own making, in a variable of a function that has called what runs. */
static inline bool jump_search_below(const struct jump_search *search, mw_addr sp)
{
	for (size_t i = 0; i < search->running_count; i++)
		if (sp >= search->running[i].start && sp < search->running[i].sp &&
		    search->running[i].sp - sp <= JUMP_STACK_BELOW)
			return true;
	return false;
}

/* Does a thread with these registers run on the stack that it was made with? */
bool jump_on_own_stack(const struct jump_process *process, const struct mw_maps *maps, pid_t tid,
		       const struct mw_regs *regs);

#endif
