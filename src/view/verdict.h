/* SPDX-License-Identifier: MIT */
/*
 * verdict.h: is what a stack holds a leak? The rules, from what is known of the stack's blocks over a window.
 *
 * What is looked at
 *
 *   level     outstanding bytes over time, in up to 64 steps; `net` is the level less what was freed of older blocks whose
 *             place the stack's blocks took (track/replaced.h): what the stack holds against what it held at attach. Where
 *             two thirds of what comes in the sizes of its outstanding blocks are the stack's, all older blocks of these
 *             sizes that go count as its own: `inclusive`; unless more go than come, which are another's
 *   settled   outstanding blocks that are old enough to stay. A block is held against the lifetimes of its own stack's
 *             freed ones: settle_age is the least age of which twice as many blocks outlived it and are still there as
 *             were freed after two thirds of it. Nothing was freed, or next to nothing: 0. What is younger is in
 *             flight, and says nothing. Few that settled, of many, can be those of a stack whose lifetimes are of any
 *             length: they count where it is unlikely that so few of their age were freed. What was freed while the
 *             window settled died at that age
 *   wave      blocks that go together: a collector's, a batch's. What was born since the last has met none and can't
 *             have settled
 *   mortal    even the oldest births are gone to a larger part than those after them, and no survivor is much older than
 *             freed blocks get (where blocks go in waves, and nothing is left of the oldest, than it was at the last): all
 *             blocks die, only late. Then only the net level counts
 *
 * Values of a level are not independent of each other, and errors of slopes know that: what returns to its line is a series
 * of the first order, what stays off it a walk; where blocks replace older ones that came at random the births' own chance
 * adds up. Ages end with the last event of the process: while it makes no call no block can go.
 *
 * Whether the program does less shows in what it allocates and frees again, in stacks of more than a handful of blocks. Where
 * there is next to nothing of that, what else gets rarer can be parts of the same entries: then what gets rarer is neither growth
 * nor a plateau.
 *
 * Where all that are freed get nearly as old (a time to live, a ring), three blocks or more that are older than that have
 * outlasted the rest: they settled, and what comes and goes beside them is no excuse.
 *
 * The rules, in this order
 *
 *   churn               all that is outstanding at the window's end was freed while it settled (--settle): certain.
 *                       But for storage that grows, and queues that do; storage that stood for long may have been
 *                       replaced again: too short to tell
 *   too short to tell   less than a second, or fewer than 16 steps
 *   growing container   most blocks that were freed were replaced by a larger one in the same call (realloc, vector,
 *                       rehash, string; many buffers, nearly each of them), and the net level rises. Storage that grows
 *                       by a factor is replaced ever less often: the next time is expected after the last pause times
 *                       that factor. Quiet for thrice the longest pause is a plateau. One replacement alone is too
 *                       short to tell; so is a buffer that is made larger and smaller as it is needed. The same where
 *                       one block or a few are there at any time, and each that comes is larger than the one before,
 *                       by a quarter over the window; by less it is not harmless: too short to tell. Other stacks may
 *                       have the storage in between
 *   steady state        each block takes the place of one that goes, but for two, and the new ones are not mostly larger; of
 *                       a few large ones, each is as large as the one whose place it takes. Or older blocks go as new ones
 *                       come, in the same calls and nearly as many, and the net level is flat over the second half, and does
 *                       not rise by a block now and then either
 *   plateau             births get rarer by the same factor all the time, all that the process allocates does not, and few are
 *                       still to come: a table of results that were computed once. Or hardly any come in the end, and each half
 *                       of those that were still to come took as long as the half before: where a load ends it takes half as long
 *   Where nothing settled, or all is mortal:
 *   churn               there is more because more come, which live as shortly as before: the load rises
 *   steady growth       the net level rises over the second half as steeply as over the first, up to the end, and
 *                       lifetimes get longer, and are not all alike: a queue whose blocks are freed ever later. Or the
 *                       level is inclusive, rises over the whole window, and as many come and go in the second half as in
 *                       the first: where all blocks end ever more would go
 *   too short to tell   it rises otherwise: an expiry time of about the window's length looks so
 *   churn               at a time half of the most that was outstanding was given back; or blocks live shortly
 *   plateau             blocks live long, and the level is flat
 *   Else settled blocks are judged by when they were born:
 *   plateau             the level is flat although blocks settle: others go for them; or nothing settled for the last
 *                       quarter or longer, twice as long as any pause before; or births fell to a seventh. Where most
 *                       blocks are freed, of so many births as there were then: the load falls, and with it what leaks
 *   one-off             all within a sixteenth of the window, and nothing for 60 % of it since
 *   too short to tell   births slow down; one or two blocks or bursts; all of it young
 *   accelerating        births speed up by half or more
 *   stepwise growth     three bursts or more, with pauses that take most of the time
 *   steady growth       the rest
 *
 * What would be growth or too short is churn, which is not certain, where all that was born before the last wave is gone, and
 * that is not long ago; or where the level was let go twice or more, to where it was, and nothing is older than what went.
 *
 * Where nearly all blocks of these sizes are the stack's, and they go in waves, a good part of them older ones (a
 * collector's, or a cache's that makes room now and then), what is left right after each wave counts. If that is no more
 * than it was half the window or longer ago, what would be growth or too short is a steady state, with less certainty. If it
 * is clearly more after each of four waves or more, it is steady growth. Otherwise there is no verdict of no leak, and what
 * is not clearly more is too short to tell. After a single wave that took half as much as is there, growth is too short to
 * tell.
 *
 * What would be growth or too short is a steady state, with less certainty, where of the sizes that the stack's blocks have
 * the process holds no more and no less over the second half, and no more over the window, all stacks and older blocks taken
 * together (or the stack alone): against what this stack alone adds, so that one that leaks is not excused by others of its size, nor
 * by what shrinks beside it. Where most of what a stack adds replaces older blocks and the rest rises, but not evenly, it is
 * too short to tell.
 *
 * Where it is known by number which older blocks went for those of a stack (kin, track/replaced.h), for hundreds of them and about as
 * many at any moment, that number decides, and not the sizes. A cache that is limited by bytes holds a few entries more or fewer by
 * chance: their number strays by about the root of how many came. It is a steady state where those that are left over are clearly
 * fewer than that, and than a leak of one in fifty would leave, over the window with the error and over its second half, and no more
 * than of another part of the same entries; where at times more go than come; and where the process has not more of these sizes, as
 * those that went could have been others'. It is growth only where it is likely more than chance or one in fifty leaves. Between these
 * it is too short to tell, and so is what may as well be of the stack that shares what goes. What others are known to own makes up for
 * nothing else.
 *
 * Plateau, churn and one-off are verdicts of no leak. They are given only where a quarter of the window's births could have
 * settled, or of hundreds that came in its first three quarters none is left nor got older than half of it, or as many went as came and hardly any is older
 * than what was freed, and the net level does not rise over the
 * second half beyond its noise; else it is too short to tell. So is what takes the place of older blocks, a good part of it, where
 * the net level rises over the window by a twentieth of what came and by more than is likely by chance: it may be a leak of a few.
 *
 * A stack of which hundreds of blocks could have settled, of which none did, and which has no more blocks at a time for each that
 * comes than before, has no leak of one in fifty: its level rises only if it does so by a fifth. Where there are always as many
 * over the last third, within two blocks, though many come, one goes for each that comes: that less came meanwhile explains nothing.
 *
 * Growth is too short to tell where there is no more in the second half, at its highest, than in the first; where the level rises
 * ever less, and births get rarer; where fewer than eight of blocks most of which are freed have settled, and the level rises by
 * no more than its error; where a wave took away more than came in that time, half as much as is there; and where some
 * blocks of a runtime that collects were freed, as the others may wait for a collection of all that is old. What rises after each
 * of four waves or more is growth only where some of what comes outlives them at any time: a collector may spare a batch.
 *
 * Storage in the same line as what is in it grows with that (suspects.c): where that does not, neither does the storage.
 *
 * Growth is too short to tell where more settles than the net level rises by: it takes the place of others. So is that of a
 * handful of blocks or a few KiB that do not come evenly; of a few KiB that come at fewer than five times, or in fewer than eight
 * blocks.
 *
 * Where blocks are sampled, counts are of units: so many bytes as stand for one independent block (growth.c). A stack of which
 * ten blocks were sampled is judged as one that allocated ten large blocks, so that no rule finds more in them than is there.
 * Growth takes five samples that are outstanding. A verdict of no leak takes five samples too, 200 where much of what was
 * allocated could not settle, and a pause so long that it is unlikely for what goes on. Else it is too short to tell. Growth is
 * not certain, as it is not known what older blocks were freed meanwhile, but where there were none.
 *
 * A leak and a cache that is still filling look the same where nothing of a stack was freed, or what was freed lived long:
 * growth is not certain then. It is where most blocks live shortly and the rest stays, and of storage that was replaced many
 * times, as often in the second half as in the first.
 */
#ifndef MW_VIEW_VERDICT_H
#define MW_VIEW_VERDICT_H

#include "track/histogram.h"
#include "track/track.h"

#include <memwatch/view.h>

#define MW_VERDICT_AGES 128 /* classes of ages, two to the power of two of nanoseconds */

/* Heap blocks of the sizes that a stack's outstanding ones have, of all stacks, in usable bytes. Nothing born: not
 * known. */
struct mw_verdict_sizes {
	bool known; /* false: blocks from before the window may have gone that are not in here, or all were others' */
	double usable; /* of the stack's outstanding blocks */
	double born;
	double net[MW_SERIES_MAX];   /* allocated less freed, over time: the moments of `level` */
	double older[MW_SERIES_MAX]; /* freed, and allocated before the window */
};

/* What is known of a stack's blocks over a window that begins at 0. */
struct mw_verdict_input {
	double seconds;                    /* the window's length */
	double active;                     /* the process's last event: after it no block could go */
	struct mw_track_series level;      /* outstanding bytes */
	struct mw_track_series births;     /* blocks allocated until then; the same moments */
	struct mw_track_replaced replaced; /* zeroed: nothing */
	bool has_kin;  /* whose calls freed older blocks of the stack is known (mw_track_find_kin) */
	bool by_count; /* what `replaced` has of older blocks is their number, by the mean size of those that came */
	double ahead;  /* bytes left over, more than of another part of the same entries */
	double either; /* bytes that are left over of blocks for which older ones go, and may be another stack's */
	struct mw_amount size, impacting, transient;
	/* Outstanding blocks, but for those freed while the window settled: by the step of their birth (the last: after
	 * the last moment), and by age. */
	struct mw_amount kept[MW_SERIES_MAX + 1];
	double ages[MW_VERDICT_AGES];
	double later[MW_VERDICT_AGES]; /* ages of those that were freed while the window settled */
	double oldest, newest;         /* when they were born, seconds */
	struct mw_amount settled_later;
	const struct mw_histogram *lifetimes; /* of freed blocks */
	struct mw_verdict_sizes sizes;
	/* So many blocks of as many bytes are sampled on average, by the largest interval of the window; 0: they are not
	 * sampled. */
	double samples;
	double larger; /* bytes of a sampled block that is outstanding, to one of all that were sampled */
	/* Of `lifetimes` to one block; 0: one. */
	double lifetimes_each;
	bool collected;     /* a runtime holds them until its collector finds that nobody needs them */
	bool older_unknown; /* which blocks from before the window were freed */
	/* Bytes that the process allocated until then, of all stacks, and of those most of whose blocks are freed; the
	 * moments of `level`. */
	const float *all, *load;
};

/* A line through values a step of so many seconds apart. */
struct mw_verdict_line {
	double slope, error; /* a second; the error is the standard error of the slope */
	double steadiness;   /* how near the values lie to it, 0 to 1 (R squared) */
};

struct mw_verdict_line mw_verdict_fit(const double *values, int first, int end, double step);

static inline bool mw_verdict_mostly_freed(const struct mw_amount *size, const struct mw_amount *transient)
{
	return transient->count * 2 >= size->count;
}

/* The class of an age. */
static inline uint32_t mw_verdict_age_class(uint64_t age_ns)
{
	uint32_t octave = age_ns ? 63 - (uint32_t)__builtin_clzll(age_ns) : 0;

	/* The upper half of an octave, by its logarithm, begins at 1.414. */
	return 2 * octave + (octave >= 7 && ((age_ns >> (octave - 7)) & 127) >= 53);
}

void mw_verdict_find(const struct mw_verdict_input *input, struct mw_report_growth *out);

#endif
