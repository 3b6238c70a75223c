/* SPDX-License-Identifier: MIT */
/* sqlite [ROWS]: known SQL on a database in memory; its answers are the same whoever looks on. */
#include "target.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static KEEP void sqlite_run(sqlite3 *database, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(database, sql, NULL, NULL, &error) != SQLITE_OK)
		target_fail(error ? error : "sqlite3_exec");
}

static KEEP uint64_t sqlite_ask(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	uint64_t answer;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		target_fail(sqlite3_errmsg(database));
	answer = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return answer;
}

int main(int argc, char **argv)
{
	int rows = argc > 1 ? atoi(argv[1]) : 500;
	sqlite3 *database = NULL;

	target_ready();
	if (sqlite3_open(":memory:", &database) != SQLITE_OK)
		target_fail("sqlite3_open");
	sqlite_run(database,
		   "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL); CREATE INDEX n ON t(name)");
	sqlite_run(database, "BEGIN");
	for (int i = 0; i < rows; i++) {
		char sql[160];
		snprintf(sql, sizeof(sql), "INSERT INTO t(name, value) VALUES('name-%d-%s', %d.5)", i * 7919 % rows,
			 "some text that is long enough to matter", i);
		sqlite_run(database, sql);
	}
	sqlite_run(database, "COMMIT");
	target_say("rows", sqlite_ask(database, "SELECT count(*) FROM t"));
	target_say("sum", sqlite_ask(database, "SELECT cast(sum(value * 2) AS INTEGER) FROM t WHERE id % 3 = 0"));
	target_say("names", sqlite_ask(database, "SELECT count(DISTINCT name) FROM t"));
	target_say("text",
		   sqlite_ask(database, "SELECT sum(length(x.name || y.name)) FROM t x JOIN t y ON x.id = y.id + 1"));
	target_done();
	sqlite3_close(database);
	return 0;
}
