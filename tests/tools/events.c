// SPDX-License-Identifier: MIT
/*
 * events --engine NAME --pid PID [--out FILE] [--duration SECONDS] [--compare N] [--depth N]: attach with an engine,
 * and tell what it tells (canon.h) to FILE, until SIGINT, SIGTERM, the time or the process's end. Prints "attached"
 * once the window has begun, and at its end key=value lines of what the engine says of itself, then "done".
 *
 * --compare N: every so many stacks are also unwound by libunwind, where the engine walks inside the target.
 */
#include "canon.h"

#include "base/clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct arguments {
	const char *engine, *out;
	pid_t pid;
	double duration;
	uint32_t depth, compare;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static void handle_signals(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool parse(int argc, char **argv, struct arguments *out)
{
	static const struct option options[] = {
		{"engine", required_argument, NULL, 'e'},
		{"pid", required_argument, NULL, 'p'},
		{"out", required_argument, NULL, 'o'},
		{"duration", required_argument, NULL, 'd'},
		{"compare", required_argument, NULL, 'c'},
		{"depth", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};

	*out = (struct arguments){.engine = "trap", .depth = 128};
	for (int key; (key = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (key) {
		case 'e':
			out->engine = optarg;
			break;
		case 'p':
			out->pid = (pid_t)strtol(optarg, NULL, 10);
			break;
		case 'o':
			out->out = optarg;
			break;
		case 'd':
			out->duration = strtod(optarg, NULL);
			break;
		case 'c':
			out->compare = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			out->depth = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		default:
			return false;
		}
	}
	return out->pid > 0 && optind == argc;
}

static void say(const char *key, uint64_t value)
{
	printf("%s=%" PRIu64 "\n", key, value);
}

static void say_stats(const struct mw_engine *engine, const struct canon *canon)
{
	const struct mw_engine_stats *stats = engine->ops->stats(engine, canon->pid);
	const char *text;

	say("events", canon->events);
	say("stacks", canon->next_stack);
	say("threads", canon->thread_count);
	say("lost", stats->lost_events);
	say("broken", stats->broken_stacks);
	say("attach_ns", stats->attach_ns);
	say("detach_ns", stats->detach_ns);
	say("lost_stacks", stats->lost_stacks);
	say("walks", stats->walks);
	say("slow_walks", stats->slow_walks);
	say("compared", stats->compared);
	say("differing", stats->differing);
	say("waited_ns", stats->waited_ns);
	if (stats->left_behind)
		printf("left_behind: %s\n", stats->left_behind);
	if (!engine->ops->difference)
		return;
	for (size_t i = 0; (text = engine->ops->difference(engine, canon->pid, i)) != NULL; i++)
		printf("differences:\n%s\nend of differences\n", text);
}

static struct mw_error *watch(struct mw_engine *engine, const struct arguments *arguments,
			      const struct mw_event_sink *sink)
{
	uint64_t deadline = 0;

	MW_TRY(engine->ops->attach(engine, arguments->pid, false, sink));
	MW_TRY(engine->ops->start(engine, arguments->pid));
	printf("attached\n");
	fflush(stdout);
	if (arguments->duration > 0)
		deadline = mw_clock_ns() + (uint64_t)(arguments->duration * 1e9);
	return engine->ops->run(engine, deadline, &interrupted);
}

static struct mw_error *record(const struct arguments *arguments, FILE *out)
{
	const struct mw_engine_options options = {
		.track_heap = true, .track_vm = true, .depth = arguments->depth, .compare = arguments->compare};
	const struct mw_engine_ops *ops = mw_engine_find(arguments->engine);
	static struct canon canon;
	struct mw_event_sink sink;
	struct mw_engine *engine;
	struct mw_error *err, *detached;

	if (!ops)
		return mw_error_create(MW_ERROR_UNSUPPORTED, 0, "there is no engine '%s'", arguments->engine);
	MW_TRY(ops->create(&options, &engine));
	canon_init(&canon, engine, arguments->pid, out, &sink);
	err = watch(engine, arguments, &sink);
	detached = ops->detach(engine);
	if (!err) {
		err = detached;
		detached = NULL;
	}
	mw_error_destroy(detached);
	if (!err)
		say_stats(engine, &canon);
	canon_deinit(&canon);
	ops->destroy(engine);
	return err;
}

int main(int argc, char **argv)
{
	struct arguments arguments;
	struct mw_error *err;
	FILE *out = NULL;

	if (!parse(argc, argv, &arguments)) {
		fprintf(stderr, "usage: events --engine NAME --pid PID [--out FILE] [--duration SECONDS] [--compare N] "
				"[--depth N]\n");
		return 2;
	}
	handle_signals();
	raise_limits();
	if (arguments.out) {
		out = fopen(arguments.out, "we");
		if (!out || setvbuf(out, NULL, _IOFBF, 1 << 20)) {
			perror(arguments.out);
			return 1;
		}
	}
	err = record(&arguments, out);
	if (out && fclose(out)) {
		perror(arguments.out);
		return 1;
	}
	if (err) {
		fprintf(stderr, "events: %s\n", mw_error_text(err));
		mw_error_destroy(err);
		return 1;
	}
	printf("done\n");
	return 0;
}
