// SPDX-License-Identifier: MIT
/*
 * sqlite.c: a database of SQLite, for questions of everybody's own (docs/SQL.md).
 *
 * It is made in memory, which grows with stacks and threads, not with events, and written as a file of SQLite.
 */
#include "export/frames.h"

#include "output/line.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>

#define APPLICATION_ID 0x4d574348 /* "MWCH", in the file's header */
#define VERSION        1
#define PLACES         "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?," /* as many as any table has columns */

/* What is written: a row of this a table. */
enum table {
	PROCESSES,
	MODULES,
	THREADS,
	FRAMES,
	STACKS,
	STACK_FRAMES,
	BLOCKS,
	SUSPECTS,
	SUSPECT_STACKS,
	SAMPLES,
	MARKS,
	TABLES
};

static const struct {
	const char *name, *columns;
} tables[TABLES] = {
	[PROCESSES] = {"processes",
		       "id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, comm TEXT, exe TEXT, command TEXT, started REAL, "
		       "seconds REAL, from_s REAL, to_s REAL, ended TEXT, engine TEXT, complete INTEGER, "
		       "sampling_interval INTEGER"},
	[MODULES] = {"modules", "process INTEGER NOT NULL REFERENCES processes, path TEXT, build_id TEXT, start "
				"INTEGER, \"end\" INTEGER"},
	[THREADS] = {"threads",
		     "id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes, tid INTEGER, name TEXT"},
	[FRAMES] =
		{"frames",
		 "id INTEGER PRIMARY KEY, function TEXT NOT NULL, file TEXT, line INTEGER, module TEXT, language TEXT, "
		 "inlined INTEGER"},
	[STACKS] = {"stacks",
		    "id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes, stack_id TEXT, api TEXT, "
		    "truncated INTEGER, verdict TEXT, certain INTEGER, bytes_per_second REAL, "
		    "charged INTEGER REFERENCES frames, module TEXT, peak_bytes INTEGER, peak_at REAL, "
		    "lifetime_min REAL, lifetime_median REAL, lifetime_p99 REAL, lifetime_max REAL, "
		    "lost_bytes INTEGER, lost_blocks INTEGER, possibly_lost_bytes INTEGER, reachable_bytes INTEGER, "
		    "holder TEXT"},
	[STACK_FRAMES] = {"stack_frames", "stack INTEGER NOT NULL REFERENCES stacks, depth INTEGER NOT NULL, "
					  "frame INTEGER NOT NULL REFERENCES frames, PRIMARY KEY (stack, depth)"},
	[BLOCKS] = {"blocks",
		    "stack INTEGER NOT NULL REFERENCES stacks, thread INTEGER REFERENCES threads, kind TEXT NOT NULL, "
		    "allocated_blocks INTEGER, allocated_bytes INTEGER, not_freed_blocks INTEGER, not_freed_bytes "
		    "INTEGER, "
		    "freed_blocks INTEGER, freed_bytes INTEGER, older_freed_blocks INTEGER, older_freed_bytes INTEGER"},
	[SUSPECTS] =
		{"suspects",
		 "id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes, rank INTEGER NOT NULL, "
		 "verdict TEXT, certain INTEGER, function TEXT, file TEXT, line INTEGER, module TEXT, bytes INTEGER, "
		 "blocks INTEGER, lost_bytes INTEGER, bytes_per_hour REAL, sentence TEXT"},
	[SUSPECT_STACKS] = {"suspect_stacks", "suspect INTEGER NOT NULL REFERENCES suspects, stack_id TEXT NOT NULL"},
	[SAMPLES] = {"samples",
		     "process INTEGER NOT NULL REFERENCES processes, at REAL NOT NULL, rss INTEGER, pss INTEGER, "
		     "vsize INTEGER, heap_not_freed INTEGER, vm_not_freed INTEGER"},
	[MARKS] =
		{"marks",
		 "process INTEGER NOT NULL REFERENCES processes, number INTEGER NOT NULL, at REAL NOT NULL, name TEXT"},
};

/* Questions that everybody has. */
static const char views[] =
	"CREATE VIEW by_line AS SELECT s.process, f.function, f.file, f.line, f.language, "
	"sum(not_freed_bytes) AS not_freed_bytes, sum(not_freed_blocks) AS not_freed_blocks, "
	"sum(allocated_bytes) AS allocated_bytes, sum(allocated_blocks) AS allocated_blocks "
	"FROM blocks b JOIN stacks s ON s.id = b.stack LEFT JOIN frames f ON f.id = s.charged "
	"GROUP BY s.process, f.function, f.file, f.line, f.language;"
	"CREATE VIEW by_module AS SELECT s.process, s.module, sum(not_freed_bytes) AS not_freed_bytes, "
	"sum(not_freed_blocks) AS not_freed_blocks, sum(allocated_bytes) AS allocated_bytes, "
	"sum(allocated_blocks) AS allocated_blocks "
	"FROM blocks b JOIN stacks s ON s.id = b.stack GROUP BY s.process, s.module;"
	"CREATE VIEW by_thread AS SELECT t.process, t.tid, t.name, sum(not_freed_bytes) AS not_freed_bytes, "
	"sum(not_freed_blocks) AS not_freed_blocks, sum(allocated_bytes) AS allocated_bytes, "
	"sum(allocated_blocks) AS allocated_blocks FROM blocks b LEFT JOIN threads t ON t.id = b.thread "
	"GROUP BY t.process, t.tid, t.name;"
	/* A function counts once in a stack, however often it stands there. */
	"CREATE VIEW by_function AS SELECT s.process, c.function, sum(not_freed_bytes) AS not_freed_bytes, "
	"sum(not_freed_blocks) AS not_freed_blocks, sum(allocated_bytes) AS allocated_bytes, "
	"sum(allocated_blocks) AS allocated_blocks "
	"FROM blocks b JOIN stacks s ON s.id = b.stack JOIN (SELECT DISTINCT sf.stack, f.function FROM stack_frames sf "
	"JOIN frames f ON f.id = sf.frame) c ON c.stack = s.id GROUP BY s.process, c.function;"
	"CREATE VIEW stack_text AS SELECT stack, group_concat(function, ' < ') AS text FROM (SELECT sf.stack, "
	"f.function "
	"FROM stack_frames sf JOIN frames f ON f.id = sf.frame ORDER BY sf.stack, sf.depth) GROUP BY stack;"
	"CREATE INDEX stack_frames_by_frame ON stack_frames (frame);"
	"CREATE INDEX blocks_by_stack ON blocks (stack);";

struct database {
	const struct mw_export *export;
	struct mw_export_frames frames;
	sqlite3 *db;
	sqlite3_stmt *inserts[TABLES];
	struct mw_map threads; /* numbers of (process, tid) */
	struct mw_line text;
	size_t written_frames, stacks, suspects;
	bool failed;
};

/* --- rows ------------------------------------------------------------------------------------------------------------- */

static void run(struct database *database, const char *sql)
{
	database->failed |= sqlite3_exec(database->db, sql, NULL, NULL, NULL) != SQLITE_OK;
}

/* Text that may be any bytes. */
static void bind_text(struct database *database, sqlite3_stmt *statement, int column, const char *text)
{
	if (!text)
		return;
	mw_line_cut(&database->text, 0);
	mw_line_name(&database->text, text);
	database->failed |= database->text.failed ||
			    sqlite3_bind_text(statement, column, database->text.length ? database->text.data : "",
					      (int)database->text.length, SQLITE_TRANSIENT) != SQLITE_OK;
}

/* A row: `types` has a letter a column: i (uint64_t, MW_SIZE_UNKNOWN is NULL), r (double), t (text or NULL). */
static void insert(struct database *database, enum table table, const char *types, ...)
{
	sqlite3_stmt *statement = database->inserts[table];
	va_list values;

	va_start(values, types);
	for (int i = 0; types[i]; i++) {
		int column = i + 1;
		uint64_t number;

		switch (types[i]) {
		case 'i':
			number = va_arg(values, uint64_t);
			if (number != MW_SIZE_UNKNOWN)
				database->failed |=
					sqlite3_bind_int64(statement, column, (sqlite3_int64)number) != SQLITE_OK;
			break;
		case 'r':
			database->failed |= sqlite3_bind_double(statement, column, va_arg(values, double)) != SQLITE_OK;
			break;
		default:
			bind_text(database, statement, column, va_arg(values, const char *));
		}
	}
	va_end(values);
	database->failed |= sqlite3_step(statement) != SQLITE_DONE;
	(void)sqlite3_reset(statement);
	(void)sqlite3_clear_bindings(statement);
}

/* --- processes -------------------------------------------------------------------------------------------------------- */

static void put_command(const struct mw_report *report, struct mw_line *line)
{
	for (size_t i = 0; i < report->target.command_count; i++) {
		if (i)
			mw_line_printf(line, " ");
		mw_line_name(line, report->target.command[i]);
	}
}

static void put_process(struct database *database, const struct mw_export_process *process, uint64_t id)
{
	const struct mw_report *report = process->report;
	struct mw_line command = {0};

	put_command(report, &command);
	insert(database, PROCESSES, "iitttrrrrttii", id, (uint64_t)report->target.pid, report->target.comm,
	       report->target.exe, command.length ? command.data : NULL,
	       (double)report->window.started_realtime_ns / 1e9, report->window.seconds, report->window.from,
	       report->window.to, mw_window_end_name(report->window.ended), report->engine.name,
	       (uint64_t)(mw_report_is_complete(report) && !report->sampling.interval), report->sampling.interval);
	database->failed |= command.failed;
	mw_line_deinit(&command);
}

static void put_modules(struct database *database, const struct mw_export_process *process, uint64_t id)
{
	for (size_t i = 0; i < process->module_count; i++) {
		const struct mw_export_module *module = &process->modules[i];
		char build_id[2 * 64 + 1] = "";

		for (size_t j = 0; j < module->build_id_size && j < 64; j++)
			(void)snprintf(build_id + 2 * j, 3, "%02x", module->build_id[j]);
		insert(database, MODULES, "ittii", id, module->path, *build_id ? build_id : NULL, module->start,
		       module->end);
	}
}

static void put_course(struct database *database, const struct mw_report *report, uint64_t id)
{
	for (size_t i = 0; i < report->memory_count; i++) {
		const struct mw_report_sample *sample = &report->memory[i];

		insert(database, SAMPLES, "iriiiii", id, sample->at, sample->rss, sample->pss, sample->vsize,
		       sample->heap_impacting, sample->vm_impacting);
	}
	for (size_t i = 0; i < report->mark_count; i++)
		insert(database, MARKS, "iirt", id, (uint64_t)report->marks[i].number,
		       (double)report->marks[i].time_ns / 1e9, report->marks[i].name);
}

static void put_suspects(struct database *database, const struct mw_report *report, uint64_t id)
{
	for (size_t i = 0; i < report->suspect_count; i++) {
		const struct mw_report_suspect *suspect = &report->suspects[i];
		const struct mw_report_frame *frame = suspect->frame;
		uint64_t number = ++database->suspects;

		insert(database, SUSPECTS, "iiitittitiiirt", number, id, (uint64_t)i + 1,
		       mw_growth_name(suspect->verdict), (uint64_t)suspect->certain, frame ? frame->function : NULL,
		       frame ? frame->file : NULL, frame && frame->line ? frame->line : MW_SIZE_UNKNOWN,
		       frame ? frame->module : NULL, suspect->bytes, suspect->blocks, suspect->lost.bytes,
		       suspect->bytes_per_hour, suspect->sentence);
		for (size_t j = 0; j < suspect->stack_count; j++)
			insert(database, SUSPECT_STACKS, "it", number, report->stacks[suspect->stacks[j]].id);
	}
}

/* --- stacks and blocks ------------------------------------------------------------------------------------------------- */

/* Those that the last stack was the first to have. */
static void put_frames(struct database *database)
{
	for (; database->written_frames < database->frames.numbering.count; database->written_frames++) {
		const struct mw_export_frame *frame = &database->frames.items[database->written_frames];

		insert(database, FRAMES, "ittitti", (uint64_t)database->written_frames + 1, frame->name, frame->file,
		       frame->line ? frame->line : MW_SIZE_UNKNOWN, frame->module, mw_language_name(frame->language),
		       (uint64_t)frame->inlined);
	}
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* Of the frame that the stack is charged to: all of its frames are there. */
static uint64_t charged(const struct database *database, const struct mw_report_stack *stack)
{
	bool all = stack->charged < stack->frame_count && database->frames.count >= stack->frame_count;

	return all ? (uint64_t)database->frames.numbers[stack->charged] + 1 : MW_SIZE_UNKNOWN;
}

static void put_known_stack(struct database *database, const struct mw_report_stack *stack, uint64_t id,
			    uint64_t process)
{
	const struct mw_report_leaks *leaks = stack->leaks;
	struct mw_amount lost = mw_report_lost(leaks);
	struct mw_line holder = {0};

	for (size_t i = 0; leaks && i < leaks->holder_count; i++) {
		if (i)
			mw_line_printf(&holder, " > ");
		mw_line_name(&holder, leaks->holder[i]);
	}
	insert(database, STACKS, "iittitiritirrrrriiiit", id, process, stack->id, stack->api,
	       (uint64_t)(stack->cut != MW_STACK_COMPLETE),
	       stack->growth.known ? mw_growth_name(stack->growth.verdict) : NULL, (uint64_t)stack->growth.certain,
	       stack->growth.bytes_per_second, charged(database, stack), stack->suspect, stack->peak.bytes,
	       stack->peak.at, seconds(stack->lifetime_min_ns), seconds(stack->lifetime_median_ns),
	       seconds(stack->lifetime_p99_ns), seconds(stack->lifetime_max_ns), leaks ? lost.bytes : MW_SIZE_UNKNOWN,
	       leaks ? lost.count : MW_SIZE_UNKNOWN, leaks ? leaks->amounts[MW_REACH_POSSIBLE].bytes : MW_SIZE_UNKNOWN,
	       leaks ? leaks->amounts[MW_REACH_REACHABLE].bytes : MW_SIZE_UNKNOWN, holder.length ? holder.data : NULL);
	database->failed |= holder.failed;
	mw_line_deinit(&holder);
}

static struct mw_error *put_stack(struct database *database, const struct mw_export_process *process,
				  const struct mw_export_sample *sample, uint64_t id)
{
	uint64_t stack = ++database->stacks;

	MW_TRY(mw_export_frames_of(&database->frames, process, sample));
	put_frames(database);
	if (sample->stack)
		put_known_stack(database, sample->stack, stack, id);
	else
		insert(database, STACKS, "ii", stack, id);
	for (size_t i = 0; i < database->frames.count; i++)
		insert(database, STACK_FRAMES, "iii", stack, (uint64_t)i, (uint64_t)database->frames.numbers[i] + 1);
	return NULL;
}

static uint64_t thread_of(struct database *database, const struct mw_export_sample *sample, uint64_t process)
{
	size_t before = database->threads.count;
	uint32_t number = 0;

	if (!sample->tid)
		return MW_SIZE_UNKNOWN;
	if (!mw_map_number(&database->threads, process << 32 | (uint32_t)sample->tid, &number))
		database->failed = true;
	else if (database->threads.count > before)
		insert(database, THREADS, "iiit", (uint64_t)number + 1, process, (uint64_t)sample->tid, sample->thread);
	return (uint64_t)number + 1;
}

/* Samples come in the order of their stacks. */
static struct mw_error *put_blocks(struct database *database, const struct mw_export_process *process, uint64_t id)
{
	for (size_t i = 0; i < process->sample_count; i++) {
		const struct mw_export_sample *sample = &process->samples[i];
		const struct mw_amount *fates = sample->sums.fates;
		struct mw_amount size = mw_sums_size(&sample->sums);

		if (i == 0 || sample->stack != process->samples[i - 1].stack)
			MW_TRY(put_stack(database, process, sample, id));
		insert(database, BLOCKS, "iitiiiiiiii", (uint64_t)database->stacks, thread_of(database, sample, id),
		       mw_kind_name(sample->kind), size.count, size.bytes, fates[MW_FATE_IMPACTING].count,
		       fates[MW_FATE_IMPACTING].bytes, fates[MW_FATE_TRANSIENT].count, fates[MW_FATE_TRANSIENT].bytes,
		       fates[MW_FATE_AOFI].count, fates[MW_FATE_AOFI].bytes);
	}
	return NULL;
}

/* --- the file --------------------------------------------------------------------------------------------------------- */

static void create_tables(struct database *database)
{
	char sql[2000];

	(void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d; BEGIN;", APPLICATION_ID,
		       VERSION);
	run(database, sql);
	for (enum table table = 0; table < TABLES && !database->failed; table++) {
		int columns = 0;

		(void)snprintf(sql, sizeof(sql), "CREATE TABLE %s (%s);", tables[table].name, tables[table].columns);
		run(database, sql);
		(void)snprintf(sql, sizeof(sql), "SELECT * FROM %s", tables[table].name);
		if (sqlite3_prepare_v2(database->db, sql, -1, &database->inserts[table], NULL) == SQLITE_OK)
			columns = sqlite3_column_count(database->inserts[table]);
		(void)sqlite3_finalize(database->inserts[table]);
		(void)snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (%.*s?)", tables[table].name,
			       columns > 1 ? 2 * (columns - 1) : 0, PLACES);
		database->failed |=
			sqlite3_prepare_v2(database->db, sql, -1, &database->inserts[table], NULL) != SQLITE_OK;
	}
}

static struct mw_error *fill(struct database *database)
{
	create_tables(database);
	for (size_t i = 0; i < database->export->count && !database->failed; i++) {
		const struct mw_export_process *process = &database->export->processes[i];

		put_process(database, process, i + 1);
		put_modules(database, process, i + 1);
		put_course(database, process->report, i + 1);
		put_suspects(database, process->report, i + 1);
		MW_TRY(put_blocks(database, process, i + 1));
	}
	if (!database->failed)
		run(database, views);
	if (!database->failed)
		run(database, "COMMIT");
	return database->failed ? mw_error_nomem() : NULL;
}

static struct mw_error *write_out(struct database *database, FILE *stream)
{
	sqlite3_int64 size = 0;
	unsigned char *bytes = sqlite3_serialize(database->db, "main", &size, 0);

	if (!bytes)
		return mw_error_nomem();
	fwrite(bytes, 1, (size_t)size, stream);
	sqlite3_free(bytes);
	return NULL;
}

static struct mw_error *write_sqlite(const struct mw_export *export, FILE *stream)
{
	struct database database = {.export = export, .frames = {.export = export}};
	struct mw_error *err = sqlite3_open(":memory:", &database.db) == SQLITE_OK ? fill(&database) : mw_error_nomem();

	for (enum table table = 0; table < TABLES; table++)
		(void)sqlite3_finalize(database.inserts[table]);
	if (!err)
		err = write_out(&database, stream);
	(void)sqlite3_close(database.db);
	mw_export_frames_deinit(&database.frames);
	mw_map_deinit(&database.threads);
	mw_line_deinit(&database.text);
	return err;
}

/* The header of a database file: its first text, and the application's id at byte 68. */
static bool is_own(const char *head, size_t size)
{
	static const unsigned char id[] = {APPLICATION_ID >> 24, APPLICATION_ID >> 16 & 255, APPLICATION_ID >> 8 & 255,
					   APPLICATION_ID & 255};

	return size >= 100 && memcmp(head, "SQLite format 3", 16) == 0 && memcmp(head + 68, id, sizeof(id)) == 0;
}

const struct mw_export_format mw_export_sqlite = {
	.name = "sqlite",
	.what = "a database of SQLite",
	.about = "sqlite3, Datasette, DuckDB",
	.binary = true,
	.is_own = is_own,
	.write = write_sqlite,
};
