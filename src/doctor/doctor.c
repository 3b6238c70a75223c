// SPDX-License-Identifier: MIT
/* doctor.c: whether and how a process can be watched (src/doctor/doctor.h). */
#include "doctor/doctor.h"

#include "doctor/debug.h"
#include "doctor/facts.h"
#include "doctor/hooks.h"
#include "doctor/look.h"
#include "doctor/may.h"
#include "engine/stale.h"
#include "session/message.h"
#include "session/outfile.h"
#include "tracee/preflight.h"

#include <stdlib.h>
#include <string.h>

/* --clean */
static struct mw_error *remove_remains(pid_t pid)
{
	struct mw_stale stale;
	struct mw_outfile *file = NULL;
	char left[160];
	bool found;
	FILE *out;

	MW_TRY(mw_preflight(pid));
	MW_TRY(mw_stale_look(pid, &stale));
	found = stale.found;
	mw_stale_deinit(&stale);
	MW_TRY(mw_stale_remove(pid, left, sizeof(left)));
	if (*left)
		return mw_error_hint(mw_error_create(MW_ERROR_SYSTEM, 0, "process %d: %s", (int)pid, left),
				     "The process is unharmed; try again later");
	MW_TRY(mw_outfile_open("-", &file));
	out = mw_outfile_stream(file);
	if (found)
		fprintf(out, "Process %d: what a killed memwatch left is removed.\n", (int)pid);
	else
		fprintf(out, "Process %d: no memwatch left anything in it.\n", (int)pid);
	return mw_outfile_commit(file);
}

/* The answer, which is what most want to know: it stands first. */
static void print_answer(FILE *out, struct mw_doctor *doctor)
{
	const char *engine = mw_doctor_engine(doctor);
	bool by_engine = !doctor->refused && !doctor->lacking && strcmp(doctor->options->engine, "auto") != 0;

	fprintf(out, "Process %d (", (int)doctor->pid);
	mw_message_put(out, doctor->status.name);
	if (!*mw_doctor_verdict(doctor))
		fprintf(out, ") can be watched: %zu functions, by engine %s.\n", mw_doctor_count_hooks(doctor), engine);
	else
		fprintf(out, ") can't be watched%s%s.\n", by_engine ? " by engine " : "", by_engine ? engine : "");
}

/* Everything, in the order in which it is asked for. */
static void print_all(FILE *out, struct mw_doctor *doctor)
{
	const char *can = *mw_doctor_verdict(doctor) ? "can't" : "can";

	print_answer(out, doctor);
	if (!*mw_doctor_verdict(doctor))
		mw_doctor_print_missed(out, doctor);
	fputc('\n', out);
	mw_doctor_facts(out, doctor);
	mw_doctor_print_may(out, doctor);
	if (mw_doctor_has_inside(doctor)) {
		mw_doctor_print_hooks(out, doctor);
		mw_doctor_print_debug(out, doctor);
	}
	fprintf(out, "\nProcess %d %s be watched.\n", (int)doctor->pid, can);
}

struct mw_error *mw_doctor_run(const struct mw_session_options *options, bool clean)
{
	struct mw_doctor doctor = {.pid = 0};
	struct mw_error **verdict, *err;
	struct mw_outfile *file = NULL;

	if (clean)
		return remove_remains(options->pids.items[0]);
	MW_TRY(mw_outfile_open("-", &file));
	err = mw_doctor_look(options->pids.items[0], options, &doctor);
	if (err) {
		mw_outfile_abort(file);
		mw_doctor_deinit(&doctor);
		return err;
	}
	print_all(mw_outfile_stream(file), &doctor);
	err = mw_outfile_commit(file);
	verdict = mw_doctor_verdict(&doctor);
	if (*verdict) {
		mw_error_destroy(err);
		err = *verdict;
		*verdict = NULL;
	}
	mw_doctor_deinit(&doctor);
	return err;
}
