// SPDX-License-Identifier: MIT
// fleet.test.mjs: docs/SQL.md's recipe for a fleet's recordings side by side, by DuckDB from npm: its commands as they stand there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const PATIENCE = 60000; // ms: a bound, for machines that do much else
const build = resolve(process.env.MEMWATCH_BUILD ?? "build");
const memwatch = join(build, "memwatch");
// Who says where memwatch is wants it tested.
const skip = existsSync(memwatch) || process.env.MEMWATCH_BUILD ? false : `no ${memwatch}: set MEMWATCH_BUILD`;
const web = createRequire(new URL("../../src/output/html/package.json", import.meta.url));
const recordings = fileURLToPath(new URL("../golden/recordings/", import.meta.url));
const names = ["jump", "trap", "python", "two"];
const directory = mkdtempSync(join(tmpdir(), "memwatch-fleet-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** The recipe's blocks of that language. */
function blocks(language) {
	const text = readFileSync(new URL("../../docs/SQL.md", import.meta.url), "utf8").split("## A fleet's recordings")[1];
	return [...text.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))].map((match) => match[1]);
}

test("recordings of a fleet become one Parquet file, with all that is in them", { skip }, async () => {
	const { DuckDBInstance } = await import(pathToFileURL(web.resolve("@duckdb/node-api")));
	let expected = 0;
	for (const name of names) {
		execFileSync(memwatch, ["export", `${name}.mw`, "--to", "sqlite", "-o", join(directory, `${name}.db`)], { cwd: recordings, timeout: PATIENCE });
		const report = JSON.parse(execFileSync(memwatch, ["report", `${name}.mw`, "--quiet", "--json", "-"], { cwd: recordings, timeout: PATIENCE, maxBuffer: 1 << 28 }));
		for (const one of report.processes ?? [report]) expected += one.totals.heap.impacting.bytes + (one.totals.vm?.impacting.bytes ?? 0);
	}
	const [collect] = blocks("sh");
	execFileSync("sh", ["-euc", collect], { cwd: directory, timeout: PATIENCE });
	const database = await DuckDBInstance.create(":memory:");
	const connection = await database.connect();
	const answers = [];
	for (const question of blocks("duckdb")) answers.push((await connection.runAndReadAll(question.replaceAll("'fleet", `'${directory}/fleet`))).getRowObjectsJson());
	assert.equal(answers.length, 3);
	assert.ok(existsSync(join(directory, "fleet.parquet")));
	const total = (await connection.runAndReadAll(`SELECT sum(not_freed_bytes) AS bytes, count(DISTINCT recording) AS recordings FROM '${directory}/fleet.parquet'`)).getRowObjectsJson()[0];
	assert.deepEqual([Number(total.bytes), Number(total.recordings)], [expected, names.length]);
	// One program, watched by either engine: a line of its is found in both recordings.
	assert.ok(answers[1].some((row) => Number(row.recordings) > 1), JSON.stringify(answers[1]));
	connection.closeSync();
});
