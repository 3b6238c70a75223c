// SPDX-License-Identifier: MIT
/* commands.c: the commands that look at processes, and their options, each a row of a table (options.h). */
#include "cli/rows.h"
#include "session/judge.h"
#include "session/outputs.h"

#include <stddef.h>
#include <string.h>

/* --- rows that several commands have --------------------------------------------------------------------------------- */

#define MW_CLI_ENGINES "auto jump trap"
#define MW_CLI_KINDS   "heap vm"

#define MW_CLI_TRACK(help, about) MW_CLI_OPTION("track", 0, WORDS, "heap,vm", help, about, MW_CLI_KINDS, TRACK, session)

/* `does`: "record" or "watch". */
#define MW_CLI_TRACK_TO(help, does)                                                                                    \
	MW_CLI_TRACK(help,                                                                                             \
		     "The kinds of memory to " does                                                                    \
		     ": heap is malloc's family and C++'s operators, vm is mmap, munmap, mremap, brk and sbrk where "  \
		     "the allocator itself does not call them. Both are the default.")

/* Processes of which memwatch is to find the ids. `help` is that of the last. */
#define MW_CLI_GROUPS(help)                                                                                            \
	MW_CLI_OPTION("cgroup", 0, NOTHING, "PATH|UNIT", NULL,                                                         \
		      "All processes of a cgroup and of those below it: a path below /sys/fs/cgroup, or a unit of "    \
		      "systemd's, as in nginx.service. With names or other groups: those that are in all of them.",    \
		      NULL, TEXT, session.cgroup),                                                                     \
		MW_CLI_OPTION("container", 0, NOTHING, "NAME|ID", NULL,                                                \
			      "All processes of a container: by the beginning of its id, or by the name that its "     \
			      "cgroup, its host or podman has for it. No daemon is asked: of Docker's containers "     \
			      "memwatch knows the id and the host's name.",                                            \
			      NULL, TEXT, session.container),                                                          \
		MW_CLI_OPTION("user", 0, NOTHING, "USER", help,                                                        \
			      "All processes of a user, by name or number (the effective one).", NULL, TEXT,           \
			      session.user)

#define MW_CLI_ENGINE(help, about)                                                                                     \
	MW_CLI_OPTION("engine", 0, WORD, "auto|jump|trap", help, about, MW_CLI_ENGINES, ENGINE, session)

#define MW_CLI_UNSAFE(help)                                                                                            \
	MW_CLI_OPTION("unsafe", 0, NOTHING, NULL, help,                                                                \
		      "Attach even where the process might end if memwatch is killed (SIGKILL): where the handler "    \
		      "that keeps it alive can't be installed in it.",                                                 \
		      NULL, FLAG, session.unsafe)

#define MW_CLI_MAX_STOPPED(about)                                                                                      \
	MW_CLI_OPTION("max-stopped", 0, NOTHING, "PCT", "limits: memwatch's memory, pauses\n", about, NULL, PERCENT,   \
		      session.max_stopped)

#define MW_CLI_OVERLOADS "wait sample drop"

/* How much is recorded, and what that may cost. */
#define MW_CLI_COST                                                                                                    \
	MW_CLI_OPTION(                                                                                                 \
		"sample", 0, NOTHING, "BYTES", NULL,                                                                   \
		"Record a sample of the heap blocks, one in so many bytes on average: a block of SIZE bytes with "     \
		"probability 1 - exp(-SIZE/BYTES). Amounts are estimates then, each with its standard error, and "     \
		"what is freed of older blocks is not known. K, M, G and T are units, or KiB and so on. Without it "   \
		"every block is recorded as long as memwatch can keep up (--overload).",                               \
		NULL, SIZE, session.sample_interval),                                                                  \
		MW_CLI_OPTION(                                                                                         \
			"budget", 0, NOTHING, "PCT", NULL,                                                             \
			"Sample, and adapt the interval so that recording, and memwatch itself, take this share "      \
			"of the process's CPU time. It begins with the interval of --sample, or with 512K. Each "      \
			"block counts by the interval that held when it was allocated. Only with engine jump.",        \
			NULL, PERCENT, session.budget),                                                                \
		MW_CLI_OPTION("python-objects", 0, NOTHING, NULL, "sample; Python's objects\n",                        \
			      "Record each block that CPython's own allocator (pymalloc) serves as well: objects of "  \
			      "up to 512 bytes, which lie in arenas of its own. A program that does little but make "  \
			      "objects takes several times as long.",                                                  \
			      NULL, FLAG, session.python_objects),                                                     \
		MW_CLI_OPTION(                                                                                         \
			"overload", 0, WORD, "wait|sample|drop", NULL,                                                 \
			"What happens if every block is recorded and memwatch can't keep up. wait (the default): "     \
			"threads wait for it, for the share of their time that --max-wait says. sample: blocks are "   \
			"sampled from the first wait on, and the report says from when. drop: events are lost, "       \
			"nobody waits, and the report says how many. Only for engine jump.",                           \
			MW_CLI_OVERLOADS, OVERLOAD, session.overload),                                                 \
		MW_CLI_OPTION("max-wait", 0, NOTHING, "PCT", "if memwatch can't keep up\n",                            \
			      "With --overload wait, the largest share of its time, over any 100 ms, that a thread "   \
			      "waits for memwatch; 5 by default. Where it would be more, blocks are sampled from "     \
			      "then on, and the report says from when. With 100 threads wait for as long as it "       \
			      "takes, and every block is recorded.",                                                   \
			      NULL, SHARE, session.max_wait)

/* `help` is NULL where the next option's line tells of it. */
#define MW_CLI_DEPTH(help)                                                                                             \
	MW_CLI_OPTION("depth", 0, NOTHING, "N", help,                                                                  \
		      "The most frames that are recorded of a stack; 128 by default. A deeper stack is marked as "     \
		      "truncated.",                                                                                    \
		      NULL, DEPTH, session.depth)

#define BUDGET_INTERVAL (UINT64_C(512) << 10) /* to begin with */
#define INTERVAL_MAX    (UINT64_C(1) << 40)
#define MAX_WAIT        50000   /* millionths */
#define NO_LIMIT        1000000 /* … which 0 stands for later */

static struct mw_error *refuse_wait(const struct mw_session_options *options, const char *why, const char *hint)
{
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--%s can't be used %s",
					     options->overload == MW_OVERLOAD_COUNT ? "max-wait" : "overload", why),
			     "%s", hint);
}

/* What happens if memwatch can't keep up. */
static struct mw_error *check_overload(struct mw_session_options *options)
{
	bool given = options->overload != MW_OVERLOAD_COUNT || options->max_wait;

	if (given && strcmp(options->engine, "trap") == 0)
		return refuse_wait(options, "with engine trap, which stops the thread at each call",
				   "There is nothing to keep up with: leave it out, or use --engine jump");
	if (given && (options->sample_interval || options->budget))
		return refuse_wait(options, "with --sample or --budget, as no thread waits then",
				   "Leave it out, or --sample and --budget");
	if (options->max_wait && options->overload != MW_OVERLOAD_COUNT && options->overload != MW_OVERLOAD_WAIT)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--max-wait can't be used with --overload %s",
						     mw_overload_name(options->overload)),
				     "Only with --overload wait do threads wait");
	if (options->overload == MW_OVERLOAD_COUNT)
		options->overload = options->sample_interval ? MW_OVERLOAD_SAMPLE : MW_OVERLOAD_WAIT;
	if (options->overload == MW_OVERLOAD_WAIT && !options->max_wait)
		options->max_wait = MAX_WAIT;
	else if (options->max_wait == NO_LIMIT)
		options->max_wait = 0;
	return NULL;
}

/* How much is recorded, and what that may cost. */
static struct mw_error *check_cost(struct mw_session_options *options)
{
	if (options->sample_interval > INTERVAL_MAX)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--sample: more than 1T"),
				     "It takes how many bytes there are to a recorded block, as in 512K");
	if (options->budget && strcmp(options->engine, "trap") == 0)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0,
					"--budget can't be kept to with engine trap, which stops the process "
					"at each call"),
			"Leave out --engine trap, or --budget; --max-stopped PCT ends the window where "
			"the process is stopped for too long");
	if (options->budget && !options->sample_interval)
		options->sample_interval = BUDGET_INTERVAL;
	return check_overload(options);
}

/* Is there a process to watch? */
static bool names_any(const struct mw_session_options *options)
{
	return options->pids.count || options->pids.name_count || options->cgroup || options->container ||
	       options->user;
}

/* Of commands that look at processes. */
static struct mw_error *check_any(const struct mw_cli_command *command, struct mw_cli_options *options)
{
	/* That is for reports. */
	options->session.settle_ns = 0;
	MW_TRY(check_cost(&options->session));
	if (names_any(&options->session))
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "%s takes a process, and none is given", command->name),
			     "Name it by -p, as in: memwatch %s -p 1234", command->name);
}

/* … at one. */
static struct mw_error *check_one(const struct mw_cli_command *command, struct mw_cli_options *options)
{
	MW_TRY(check_any(command, options));
	if (options->session.pids.count <= 1)
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_USAGE, 0, "%s takes one process, and several are given", command->name),
		"Name it by -p, as in: memwatch %s -p 1234", command->name);
}

/* Of commands that take no operands. */
static struct mw_error *refuse_operand(const struct mw_cli_command *command, struct mw_cli_options *options,
				       const char *word)
{
	struct mw_error *err = mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word);

	(void)options;
	if (mw_cli_is_pids(word))
		return mw_error_hint(err, "To name a process, put -p before its id: memwatch%s%s -p %.64s",
				     *command->name ? " " : "", command->name, word);
	if (command->launches)
		return mw_error_hint(err, "Put '--' before a command to launch, as in: memwatch -- %.64s", word);
	return mw_error_hint(err, "Give the process by -p, as in: memwatch %s -p 1234", command->name);
}

/* --- a recording ----------------------------------------------------------------------------------------------------- */

#define SETTLE_FROM_NS UINT64_C(5000000000)  /* shorter windows don't, unless asked to */
#define SETTLE_MOST_NS UINT64_C(10000000000) /* … of itself */

static struct mw_error *check_settle(struct mw_session_options *options)
{
	uint64_t tenth = options->duration_ns / 10;

	if (options->settle_ns == UINT64_MAX)
		options->settle_ns = options->duration_ns < SETTLE_FROM_NS ? 0
				     : tenth < SETTLE_MOST_NS              ? tenth
									   : SETTLE_MOST_NS;
	else if (options->settle_ns && !options->duration_ns)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--settle needs a window that ends by itself"),
				     "Give its length by -d, as in -d 30");
	return NULL;
}

/* What others get of the window. */
static struct mw_error *check_served(const struct mw_session_options *options)
{
	const char *alone = options->push_every_ns ? "push-every" : options->label_count ? "label" : NULL;

	if (alone && !options->push)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--%s needs --push", alone),
				     "Give the server that profiles are sent to by --push URL");
	if (options->listen_token && !options->listen)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--listen-token needs --listen"),
				     "Give the port by --listen PORT");
	return NULL;
}

static struct mw_error *check_record(const struct mw_cli_command *command, struct mw_cli_options *all)
{
	const struct mw_session_options *options = &all->session;

	(void)command;
	MW_TRY(check_settle(&all->session));
	MW_TRY(check_served(options));
	if (options->children && options->no_children)
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "both --children and --no-children are given"),
				     "They are opposites: leave one out");
	all->session.leaks |= options->heap_before;
	if (options->heap_before && options->command)
		return mw_error_hint(
			mw_error_create(MW_ERROR_USAGE, 0,
					"--heap-before can't be used with a command to launch, which has no "
					"heap yet"),
			"Use --leaks, which looks at its heap at the window's end");
	MW_TRY(check_cost(&all->session));
	if (all->dashes && (!options->command || !options->command[0][0]))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "the command after '--' is empty"),
				     "Name a program and its arguments, as in: memwatch -- ls -l");
	if (!options->output &&
	    ((options->mark_every_ns && !mw_outputs_want_timelines(options)) || options->no_symbols))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "--%s needs a recording, and none is written",
						     options->no_symbols ? "no-symbols" : "mark-every"),
				     "Name its file by -o, as in -o leak.mw");
	if (options->command && names_any(options))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0,
						     "both %s and a command to launch ('%.64s') are given",
						     options->pids.count || options->pids.name_count ? "-p" : "a group",
						     options->command[0]),
				     "memwatch watches one or the other: leave one out");
	if (!options->command && !names_any(options))
		return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "nothing to watch"),
				     "Give a process by -p PID or -p NAME, or a command to launch after '--'");
	all->session.exports.filter = all->view.filter;
	return mw_cli_view_options_finish(&all->view, options);
}

static const struct mw_cli_option record_options[] = {
	MW_CLI_OPTION("pid", 'p', PROCESS, "PID|NAME,...", NULL,
		      "Attach to these processes, separated by commas, and watch all their threads: by their ids, or "
		      "by the name of the process or of its program (all that have it). What a process forks is "
		      "watched with --children.",
		      NULL, PIDS, session.pids),
	MW_CLI_GROUPS(""),
	MW_CLI_OPTION("duration", 'd', NOTHING, "TIME", "length of the window: 10s, 1m, 1h30m (until Ctrl-C)\n",
		      "The length of the window: seconds, as in 30 or 2.5, or numbers with units, as in 500ms, 10s, 1m "
		      "or 1h30m, as wherever a time is taken. Without it the window ends with Ctrl-C, SIGTERM, or the "
		      "end of the process.",
		      NULL, SECONDS, session.duration_ns),
	MW_CLI_OPTION("settle", 0, NOTHING, "TIME", NULL,
		      "After a window of -d, stay for this long and record only what is freed: that tells blocks that "
		      "were in flight at the window's end from those that are kept. Allocations are not recorded, and "
		      "cost the process next to nothing. By default a tenth of the window, ten seconds at most, from "
		      "windows of five seconds on; 0: not at all. Ctrl-C ends it.",
		      NULL, MOMENT, session.settle_ns),
	MW_CLI_OPTION(
		"children", 0, NOTHING, NULL, NULL,
		"Watch what these processes fork and exec as well, and what comes to have a given name or be in a "
		"given group. The default for a launched command. Each program has a window of its own: when a process "
		"executes another program, its window ends, and another begins. What a child does in its first "
		"hundredths of a second is not seen, and a child that ends by then is counted as missed.",
		NULL, FLAG, session.children),
	MW_CLI_OPTION("no-children", 0, NOTHING, NULL, "frees after it; forks and execs\n",
		      "Watch a launched command alone, and nothing that it forks or executes.", NULL, FLAG,
		      session.no_children),
	MW_CLI_TRACK_TO(NULL, "record"),
	MW_CLI_DEPTH(NULL),
	MW_CLI_ENGINE("kinds; frames; how\n",
		      "How the allocator is hooked. jump redirects its functions to a recorder inside the process, and "
		      "is some hundred times faster; trap plants breakpoints and stops the process at each. auto takes "
		      "jump wherever it is safe, and says why where it is not."),
	MW_CLI_OPTION("output", 'o', FILE, "FILE", NULL,
		      "Write a recording of the window, for report and diff. By convention its name ends in .mw. It is "
		      "written during the window, and can be read up to where it was cut off, whatever happens.",
		      NULL, OUTPUT, session.output),
	MW_CLI_OPTION("no-symbols", 0, NOTHING, NULL, NULL,
		      "Leave the names of functions, files and lines out of the recording; report --symbols finds them "
		      "by build-id.",
		      NULL, FLAG, session.no_symbols),
	MW_CLI_OPTION("mark-every", 0, NOTHING, "TIME", "write a recording\n",
		      "Add a mark to the recording at this interval, for diff to compare. SIGUSR1 sent to memwatch "
		      "adds one at any time.",
		      NULL, SECONDS, session.mark_every_ns),
	MW_CLI_OPTION("max-memory", 0, NOTHING, "SIZE", NULL,
		      "End the window and report what there is when memwatch itself uses more than this many bytes; K, "
		      "M, G and T are units.",
		      NULL, SIZE, session.max_memory),
	MW_CLI_MAX_STOPPED("With engine trap, end the window when the process was paused for more than this share of "
			   "the last five seconds."),
	MW_CLI_COST,
	MW_CLI_OPTION(
		"leaks", 0, NOTHING, NULL, NULL,
		"At the window's end, look at the whole heap as memwatch heap does, and report for each stack how "
		"many of its blocks are lost, and who holds the others. Lost blocks are the first suspects. The "
		"process is paused for as long as it takes to fork a copy of it.",
		NULL, FLAG, session.leaks),
	MW_CLI_OPTION("heap-before", 0, NOTHING, NULL, NULL,
		      "With --leaks, which it implies: look at the heap at the window's start as well, before memwatch "
		      "attaches, and account for all growth of the process's memory from one look to the other: "
		      "blocks that were not freed, by stack; older blocks that were freed; what allocators keep; "
		      "mappings; the rest. The process is paused for a copy twice.",
		      NULL, FLAG, session.heap_before),
	MW_CLI_ALL(NULL),
	MW_CLI_TOP("what is lost; grew; all; stacks\n"),
	MW_CLI_OPTION("listen", 0, NOTHING, "[HOST:]PORT", NULL,
		      "Listen for HTTP while the window runs, on loopback unless an address is given. GET /metrics has "
		      "figures for Prometheus, /debug/pprof/heap and /debug/pprof/allocs profiles for pprof, and "
		      "/report.text the report as it is at that moment, as has /report.NAME, where --NAME is an "
		      "option that writes reports. unix:PATH: a socket of that name. Port 0: any that is free.",
		      NULL, TEXT, session.listen),
	MW_CLI_OPTION("listen-token", 0, FILE, "FILE", "figures and reports meanwhile\n",
		      "With --listen: the first line of this file is a token that has to be given, as Authorization: "
		      "Bearer TOKEN or as a password. Without it memwatch listens only on loopback.",
		      NULL, TEXT, session.listen_token),
	MW_CLI_OPTION(
		"push", 0, NOTHING, "URL", NULL,
		"Send a profile of each process to this URL at the window's end: to Pyroscope (a path that ends in "
		"/ingest, or /push.v1.PusherService/Push), to Parca (/profiles/writeraw), or as the body of a POST to "
		"any other. What can't be sent is tried again; the window does not wait for it.",
		NULL, TEXT, session.push),
	MW_CLI_OPTION("push-every", 0, NOTHING, "TIME", NULL,
		      "With --push: also at this interval while the window runs.", NULL, SECONDS,
		      session.push_every_ns),
	MW_CLI_OPTION("label", 0, NOTHING, "NAME=VALUE", "send profiles\n",
		      "With --push: a label of the profiles, beside host, comm, pid, cgroup and build_id. May be given "
		      "several times.",
		      NULL, LABEL, session),
	MW_CLI_REPORTS,
	MW_CLI_EXPORT(NULL),
	MW_CLI_MEASURE("for another program\n"),
	MW_CLI_FAIL_ON(NULL),
	MW_CLI_UNSAFE(NULL),
	MW_CLI_FORCE(NULL),
	MW_CLI_QUIET("status 3 if so\n"),
#define HELP(own, brief) brief
#include "cli/view_rows.inc"
#undef HELP
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_record = {
	.name = "",
	.summary = "find what a running process allocates and does not free",
	.synopsis = "memwatch -p PID|NAME,... [-d TIME] [OPTION...]   watch a process\n"
		    "memwatch [OPTION...] -- COMMAND [ARG...]         launch and watch\n",
	.help = "",
	.about = "memwatch attaches to a running process, records what it allocates and frees for a while, detaches "
		 "without a trace, and reports what was allocated in that time and never freed: by which stack, thread "
		 "and module. The process needs no preparation and no restart, and keeps running whatever happens to "
		 "memwatch.\n"
		 "A block is not freed where it was allocated inside the window and is there at its end; older where "
		 "it was allocated before.",
	.options = record_options,
	.status = "0 success, 1 failure (see the message), 2 bad usage, 3 --fail-on",
	.operands = MW_COMPLETE_COMMAND,
	.launches = true,
	.operand = refuse_operand,
	.check = check_record,
};

/* --- heap ------------------------------------------------------------------------------------------------------------ */

static struct mw_error *check_heap(const struct mw_cli_command *command, struct mw_cli_options *options)
{
	MW_TRY(check_one(command, options));
	MW_TRY(mw_judge_can_heap(&options->session.fail_on));
	if (options->heap.show > MW_HEAP_SAMPLES)
		return mw_error_create(MW_ERROR_USAGE, 0, "--show %zu is too many: it is at most %u blocks of a group",
				       options->heap.show, MW_HEAP_SAMPLES);
	return mw_outputs_check(&options->session);
}

static const struct mw_cli_option heap_options[] = {
	MW_CLI_OPTION("pid", 'p', PROCESS, "PID|NAME", "the process\n",
		      "The process to look at, by its id, or by a name that no other process has.", NULL, PIDS,
		      session.pids),
	MW_CLI_GROUPS("... by what it alone is in\n"),
	MW_CLI_OPTION(
		"by", 0, WORDS, "LIST", "group blocks by class, size, arena (class,size)\n",
		"What blocks are grouped by, beside whether they are lost: any of class, size and arena. By default "
		"class and size.",
		"class size arena", HEAP_BY, heap.by),
	MW_CLI_OPTION(
		"holders", 0, NOTHING, NULL, "who retains how much of it\n",
		"Show the tree of who retains how much: what would be lost without each variable, thread and group of "
		"blocks. It takes some seconds more for each million blocks, and 60 bytes of memory for each.",
		NULL, FLAG, heap.holders),
	MW_CLI_OPTION(
		"show", 0, NOTHING, "N", "show what is in N blocks of each group\n",
		"Show the first bytes of N blocks of each group that the text shows, 8 at most, with the strings in "
		"them and what their pointers point at.",
		NULL, TOP, heap.show),
	MW_CLI_OPTION("no-fork", 0, NOTHING, NULL, "read the process as it runs, not a forked copy\n",
		      "Do not have the process fork a copy of itself to be read; read it while it runs.", NULL, FLAG,
		      heap.no_fork),
	MW_CLI_OPTION(
		"tag-bits", 0, NOTHING, "MASK", "bits of pointers that the program uses itself\n",
		"Bits of a pointer in which the program keeps something else, as hexadecimal digits: a word counts as "
		"a pointer also without them. The lowest three are always tried.",
		NULL, BITS, heap.tag_bits),
	MW_CLI_OPTION(
		"output", 'o', FILE, "FILE", "keep the look, for report and diff\n",
		"Keep the look in a file, for report, and for diff with another. By convention its name ends in .mw.",
		NULL, OUTPUT, session.output),
	MW_CLI_TOP("how many groups the text shows (10)\n"),
	MW_CLI_ALL("everything in the text\n"),
	MW_CLI_OPTION(mw_cli_formats_of_heaps, 0, FILE, "FILE", NULL, NULL, NULL, FILE, session.files),
	MW_CLI_OPTION(
		"fail-on", 0, WORD, "leak", "status 3 if a block is lost\n",
		"End with status 3, and a line that says how much, where a block is definitely or indirectly lost.",
		"leak", FAIL_ON, session.fail_on),
	MW_CLI_FORCE(NULL),
	MW_CLI_QUIET("replace any file; no progress, no text report\n"),
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_heap = {
	.name = "heap",
	.summary = "the whole heap: what is lost, who holds the rest",
	.synopsis = "memwatch heap -p PID [OPTION...]\n",
	.help = "Look once at the whole heap of a running process, without a window: which of its\n"
		"blocks are lost, who holds the others, and what its memory is used for.\n\n",
	.about = "Looks once at the whole heap of a running process: at all blocks of its allocators, also those from "
		 "before memwatch came. Blocks are followed from the roots (registers, stacks, global and thread-local "
		 "variables, memory that no allocator owns), and called as memcheck calls them: definitely lost where "
		 "no pointer to a block is left, indirectly lost where only lost blocks point to it, possibly lost "
		 "where only interior pointers to it are left, else still reachable. What can't be read or understood "
		 "counts as a root: a block is called lost only where that is certain.\n"
		 "The process is paused for as long as it takes to fork a copy of it, which is read and then ended; "
		 "nothing is left. Where it may not be forked it is read while it runs.",
	.options = heap_options,
	.status = "0 success, 1 failure (see the message), 2 bad usage, 3 --fail-on",
	.takes_one = true,
	.operand = refuse_operand,
	.check = check_heap,
};

/* --- doctor ---------------------------------------------------------------------------------------------------------- */

static const struct mw_cli_option doctor_options[] = {
	MW_CLI_OPTION("pid", 'p', PROCESS, "PID|NAME", "the process\n",
		      "The process to look at, by its id, or by a name that no other process has.", NULL, PIDS,
		      session.pids),
	MW_CLI_GROUPS("... by what it alone is in\n"),
	MW_CLI_TRACK("kinds of memory to look for (default: both)\n",
		     "The kinds of memory to look for; both by default."),
	MW_CLI_ENGINE("how to hook the allocator (default: auto)\n",
		      "How the allocator would be hooked; auto by default."),
	MW_CLI_OPTION("clean", 0, NOTHING, NULL, "only remove what a killed memwatch left in it\n",
		      "Only remove from the process what a killed memwatch left in it.", NULL, FLAG, clean),
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_doctor = {
	.name = "doctor",
	.summary = "check how a process can be watched",
	.synopsis = "memwatch doctor -p PID [--track heap,vm] [--clean]\n",
	.help = "Inspect a process without touching it, and report whether and how memwatch can\n"
		"watch it: what could prevent it, what memwatch is permitted to do, the allocator\n"
		"functions that would be hooked, those that would not and why, and the modules\n"
		"without debug information, with the commands that install it.\n\n",
	.about =
		"Inspects a process without touching it, and reports whether and how memwatch can watch it: what could "
		"prevent it, what memwatch is permitted to do, the allocator functions that would be hooked, those "
		"that would not and why, and the modules without debug information, with the commands that install it.",
	.options = doctor_options,
	.status = "0 it can be watched, 1 it can't (the message says why), 2 bad usage",
	.takes_one = true,
	.operand = refuse_operand,
	.check = check_one,
};

/* --- top ------------------------------------------------------------------------------------------------------------- */

static const struct mw_cli_option top_options[] = {
	MW_CLI_OPTION(
		"pid", 'p', PROCESS, "PID|NAME,...", "the processes; key Tab shows the next of them\n",
		"The processes to watch, all their threads, separated by commas: their ids, or names of processes "
		"or programs. One is shown at a time; key Tab shows the next.",
		NULL, PIDS, session.pids),
	MW_CLI_GROUPS("... all of these\n"),
	MW_CLI_OPTION("duration", 'd', NOTHING, "TIME", "detach after 30, 10s, 1m, 1h30m (else when you quit)\n",
		      "Detach from the process after this time, as in 30, 10s, 1m or 1h30m; the last table stays until "
		      "you quit. Without it the window ends when you quit, or when the process ends.",
		      NULL, SECONDS, session.duration_ns),
	MW_CLI_TRACK_TO("kinds of memory: malloc and new, mmap and brk\n", "watch"),
	MW_CLI_ENGINE("how to hook the allocator (default: auto)\n",
		      "How the allocator is hooked, as for a recording; auto by default."),
	MW_CLI_UNSAFE("attach even if SIGKILL of memwatch may end it\n"),
	MW_CLI_OPTION(
		"output", 'o', FILE, "FILE", "write a recording of the whole session\n",
		"Write a recording of the whole session. Without it the key w writes one of what was seen so far.",
		NULL, OUTPUT, session.output),
	MW_CLI_FORCE("... in place of any file that is there\n"),
	MW_CLI_REPORTS,
	MW_CLI_OPTION(
		"max-memory", 0, NOTHING, "SIZE", NULL,
		"Detach from the process when memwatch itself uses more than this many bytes; K, M, G and T are units.",
		NULL, SIZE, session.max_memory),
	MW_CLI_MAX_STOPPED("With engine trap, detach from the process when it has been paused for more than this share "
			   "of five seconds."),
	MW_CLI_COST,
	MW_CLI_DEPTH("frames per stack (default: 128)\n"),
	MW_CLI_HELP(NULL),
	MW_CLI_VERSION,
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_top = {
	.name = "top",
	.summary = "a live table of what is not freed",
	.synopsis = "memwatch top -p PID|NAME,... [OPTION...]\n",
	.help = "Watch processes, and show each second what one has allocated since the attach\n"
		"and not freed, and how fast that grows: by stack, module or thread. Key h shows\n"
		"the keys, q detaches and quits.\n\n",
	.about = "Watches processes, and shows each second what one has allocated since the attach and not freed, and "
		 "how fast that grows: by stack, module or thread, sorted as you like, a stack with its frames where "
		 "it is opened. Growth and rates are those of the last ten seconds. Beside each stack stand the "
		 "verdict on it, and its level over time, of all that was seen since the attach.\n"
		 "Key h shows the keys. z sets a new zero point: what is shown then was allocated after it. p pauses "
		 "the display, not the recording. / shows only the rows that a filter takes, in the language of report "
		 "--filter; Escape shows all again. w writes a recording of all that was seen until then, for report "
		 "and diff. q, Ctrl-C, SIGTERM and SIGHUP detach from the process and end top.\n"
		 "What was seen is kept in a file without a name in TMPDIR, or /var/tmp, of at most 8 GiB and a "
		 "quarter of what is free there, and is gone when top ends; with -o it is kept in that file. Reports, "
		 "where a file is given for one, are written when top ends, of all that was seen since the attach. top "
		 "does not settle, so that it ends at once: what was only in flight then counts as not freed.",
	.options = top_options,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operand = refuse_operand,
	.check = check_any,
};

/* --- help ------------------------------------------------------------------------------------------------------------ */

static struct mw_error *take_command(const struct mw_cli_command *command, struct mw_cli_options *options,
				     const char *word)
{
	(void)command;
	if (!options->help_of)
		return mw_cli_command_find(word, &options->help_of);
	return mw_error_hint(mw_error_create(MW_ERROR_USAGE, 0, "unexpected argument '%.64s'", word),
			     "help takes one command, as in: memwatch help report");
}

static struct mw_error *check_help(const struct mw_cli_command *command, struct mw_cli_options *options)
{
	(void)command;
	if (!options->help_of)
		options->help_of = &mw_cli_command_record;
	return NULL;
}

static const struct mw_cli_option help_options[] = {
	MW_CLI_HELP("this help\n"),
	{.name = NULL},
};

const struct mw_cli_command mw_cli_command_help = {
	.name = "help",
	.summary = "the options of a command",
	.synopsis = "memwatch help [COMMAND]\n",
	.help = "Print the options of a command, or those of a recording.\n\n",
	.about = "Prints the options of a command as its --help does, or those of a recording where none is named.",
	.options = help_options,
	.status = "0 success, 1 failure (the message says why), 2 bad usage",
	.operands = MW_COMPLETE_OWN,
	.operand = take_command,
	.check = check_help,
};
