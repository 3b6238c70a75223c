/* SPDX-License-Identifier: MIT */
/*
 * course.h: what the rules of verdict.h ask of a stack's history: does a level rise, has a block outlived those that are freed,
 * what went of older blocks. The words are those of verdict.h.
 */
#ifndef MW_VIEW_COURSE_H
#define MW_VIEW_COURSE_H

#include "view/verdict.h"

#define STEPS          MW_SERIES_MAX
#define LEAST_S        1.0
#define LEAST_STEPS    16
#define MARGIN         1.5        /* what is that much older than freed ones were is kept */
#define OUTNUMBERED    2          /* freed after two thirds of an age, to one that outlived it */
#define LEAST_SETTLED  (1.0 / 4)  /* of births: fewer that could settle say nothing */
#define FEW            (1.0 / 16) /* of what settled */
#define ONE_OFF        (1.0 / 16) /* of the window */
#define ONE_OFF_QUIET  0.6        /* of the window */
#define QUIET          (1.0 / 4)  /* of the window */
#define LEAST_SAMPLES  5.0        /* where blocks are sampled */
#define MANY_SAMPLES   200.0      /* by which a level can be judged as where all blocks are recorded */
#define LEAST_SAMPLED  0.6        /* of births that could settle, where there are not so many */
#define CHANCE         0.02       /* that births at random leave so long a pause */
#define RARE           0.02       /* of births: what leaks so seldom shows in nothing that has settled */
#define RARER          0.015      /* the same, where it is clearly fewer */
#define MADE_UP        (1.0 / 8)  /* of what came: more or less went of older blocks, at most */
#define LONG_LIVED     (1.0 / 8)  /* of the window */
#define WAVES          0.6        /* of the bytes that go: they go together */
#define WAVE           (1.0 / 6)  /* of a level's range: it falls by more in a wave */
#define PAUSES         3          /* of the longest before */
#define BACK           0.05       /* of a level's rises: what is as near to where it was is back there */
#define CLASS_WIDTH    0.3466     /* of ages, by their natural logarithm */
#define FLAT           0.05       /* of the bytes that came in the second half: the net level rises by less */
#define FLAT_NOISE     0.25       /* the same, the error of that included */
#define RISE           0.1        /* of the level: less over the second half is no rise */
#define LEVEL          0.2        /* of the level: less, the error included, can be no rise */
#define SUSTAINED      0.6        /* of the slope of the first half */
#define SLOWER         0.7        /* births of the last third, to one of the first */
#define ENDED          4          /* begun, to one storage that is there */
#define LARGER         1.3        /* the mean size of storage that is there, to that of all that was */
#define LITTLE_LARGER  1.02       /* the same, where each is larger than the one before */
#define CEASED         (1.0 / 5)
#define SUSTAINED_LOAD 0.85      /* of what came in the third before */
#define DOMINANT       (2.0 / 3) /* of the bytes that come in these sizes */
#define OWN_OLDER      1.25      /* of the bytes that come: what goes of older blocks */
#define SOME_OLDER     0.25      /* the same: less is not what the births' chance adds to */
#define EVEN_BIRTHS    1.15      /* in the second half, to one in the first */
#define EVEN_FREES     1.1
#define EXACT          0.01 /* of the bytes that are added */
#define FASTER         1.5
#define SEVERAL        8    /* blocks */
#define HANDFUL        16   /* blocks */
#define TRIFLE         4096 /* bytes */
#define LEAST_TIMES    5    /* steps in which blocks were born: fewer are not even */
#define STEADY         0.85 /* steadiness: less is not even */
#define SIGMAS         3.0
#define LIKELY         1.5 /* errors: no more than that can well be chance */
#define WALK           0.5 /* correlation of what values are off the line with the value before */
#define NEARLY_ALIKE   0.8 /* the same, of the longest */
#define ALIKE          0.5 /* the shortest lifetime, of nearly the longest */

/* What the input comes to. */
struct mw_course {
	const struct mw_verdict_input *in;
	double seconds, step;
	double net[STEPS];
	struct mw_verdict_line whole, early, late; /* of net: all, the first and the second half */
	double own_rise, own_mean;                 /* of the level, not net, over the second half */
	double chance;                             /* what it strays by over that, where older blocks go for new ones */
	double late_bytes;                         /* settled, and born in the second half */
	double most, fall, mean_late;              /* of net */
	double block;                              /* mean size of a block */
	/* By class of ages: outstanding blocks that are as old; those that were freed when they were. */
	double older[MW_VERDICT_AGES + 2], outlived[MW_VERDICT_AGES + 2];
	double settle_age;
	double last_drop; /* when most of what went last went together; infinity: it does not */
	double wave;      /* the same, where all but nothing that was there went; negative: it does not */
	struct mw_amount settled;
	double could;             /* share of births that could have settled */
	double shortest, longest; /* lifetimes: the shortest, 99 % of all */
	double longest_of_all;
	int steps;
	int settle_class;  /* of the lifetimes that settle_age is held against */
	int settled_steps; /* births of these could have settled */
	bool inclusive;    /* net: of the stack's blocks from before the window as well */
	bool made_up;      /* net: by number about as many older blocks go as come, at any moment */
	bool emptied;      /* all but nothing of what was born until the wave went then */
	bool mortal;
	bool outlasted; /* all that are freed get nearly as old, and some that settled are older */
	bool mostly_freed;
	bool all_go; /* all that could settle went, and lifetimes don't get longer */
	bool alike;  /* lifetimes hardly differ */
};

/* From `in`, `seconds`: all the rest. */
void mw_course_find(struct mw_course *course);

/* Blocks that were allocated in steps [first, end), and those of them that are outstanding. */
double mw_course_births_between(const struct mw_course *course, int first, int end);
double mw_course_kept_between(const struct mw_course *course, int first, int end);
/* Of the net level, in steps [first, end). */
double mw_course_mean_net(const struct mw_course *course, int first, int end);
/* What the net level rises by over the second half; `sigmas` errors more or less. */
double mw_course_late_rise(const struct mw_course *course, double sigmas);
/* The net level does not rise, against `bytes` that came in the second half. */
bool mw_course_is_flat(const struct mw_course *course, double bytes);
/* It rises over the second half, by more than so many errors and blocks, and by a tenth; where all blocks go, by a fifth of what
 * there is at a time. */
bool mw_course_is_rising(const struct mw_course *course, double sigmas, double blocks);
/* As steep as ever up to the end. */
bool mw_course_keeps_rising(const struct mw_course *course);
/* Is it storage that is replaced by larger storage? */
bool mw_course_is_container(const struct mw_verdict_input *in);
/* Is it known what the stack's blocks took the place of, and not as well another stack's, nor among many that went for nothing? */
bool mw_course_is_replaced_known(const struct mw_verdict_input *in);
/* Most blocks that come in the sizes of the outstanding ones are the stack's. */
bool mw_course_makes_sizes(const struct mw_verdict_input *in);
/* So many bytes of older blocks of these sizes go, to one that comes of the stack. */
double mw_course_older_share(const struct mw_verdict_input *in);
/* Usable bytes of the outstanding blocks, to one that was asked for. */
double mw_course_usable_share(const struct mw_verdict_input *in);
/*
 * One goes for each that comes: what does so by chance would stray further over the window, and from step to step by more than
 * what comes does.
 */
bool mw_course_is_in_step(const struct mw_course *course);
/* Most of what is added in the second half makes up for older blocks that go. */
bool mw_course_replaces_older(const struct mw_course *course);
/* First in, first out: nothing is left of what was born before the oldest survivor, and nothing went that is younger. */
bool mw_course_is_queue(const struct mw_course *course);
/* How likely are `count` events or fewer where `mean` are expected? */
double mw_course_chance_of_few(double count, double mean);
/*
 * Can so few have been freed by chance, of blocks as old as those that settled and of which as many go as usually go of old
 * ones: with each factor of e that they age the same share?
 */
bool mw_course_are_few_by_chance(const struct mw_course *course);

#endif
