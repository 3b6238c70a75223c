// SPDX-License-Identifier: MIT
// sarif.test.mjs: SARIF reports are valid by the schema of SARIF 2.1.0: those of the unit tests, and of real recordings.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { test } from "node:test";

const web = createRequire(resolve("src/output/html/package.json"));
// The validator is the one that the schema's package has.
const Ajv = createRequire(web.resolve("@microsoft/jest-sarif"))("ajv");
const schema = JSON.parse(readFileSync(web.resolve("@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"), "utf8"));
const memwatch = join(resolve(process.env.MEMWATCH_BUILD ?? "build"), "memwatch");
// Who says where memwatch is wants it tested.
const skip = existsSync(memwatch) || process.env.MEMWATCH_BUILD ? false : `no ${memwatch}: set MEMWATCH_BUILD`;
const golden = "tests/golden";

const ajv = new Ajv({ schemaId: "id", meta: false });
ajv.addMetaSchema(createRequire(web.resolve("@microsoft/jest-sarif"))("ajv/lib/refs/json-schema-draft-04.json"));
const validate = ajv.compile(schema);

function assertValid(text, name) {
	const document = JSON.parse(text);
	assert.ok(validate(document), `${name}: ${ajv.errorsText(validate.errors)}`);
	return document.runs[0];
}

test("the schema refuses what is no SARIF", () => {
	const text = readFileSync(join(golden, "server.sarif"), "utf8");
	assert.ok(!validate(JSON.parse(text.replace('"ruleId"', '"rule"'))));
	assert.ok(!validate(JSON.parse(text.replace('"level":"error"', '"level":"bad"'))));
});

test("reports of the unit tests, hostile names too", () => {
	const files = readdirSync(golden).filter((name) => name.endsWith(".sarif"));
	assert.ok(files.length > 1);
	for (const name of files) assert.ok(assertValid(readFileSync(join(golden, name), "utf8"), name).results.length > 0);
});

test("reports of recordings", { skip }, () => {
	const directory = join(golden, "recordings");
	const files = readdirSync(directory).filter((name) => name.endsWith(".mw"));
	assert.ok(files.length > 5);
	for (const name of files) {
		const options = { encoding: "utf8", timeout: 120000, stdio: ["ignore", "pipe", "pipe"] };
		assertValid(execFileSync(memwatch, ["report", join(directory, name), "--sarif", "-"], options), name);
	}
});
