// SPDX-License-Identifier: MIT
// build.mjs [FILE]: makes dist/report.html (or FILE) of src/. The same sources give the same bytes everywhere.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist/report.html");

async function bundle(entry) {
	const result = await build({
		entryPoints: [join(here, entry)],
		absWorkingDir: here,
		bundle: true,
		minify: true,
		write: false,
		charset: "ascii",
		format: "iife",
		target: ["chrome102", "firefox113", "safari16.4"],
		legalComments: "inline",
		logLevel: "warning",
	});
	return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

// The bundle holds uPlot, whose license wants to be told.
const { version } = JSON.parse(readFileSync(join(here, "node_modules/uplot/package.json"), "utf8"));
const license = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();
const script = `/* This holds uPlot ${version}.\n${license}\n*/\n${await bundle("src/main.ts")}`;
const style = await bundle("src/style.css");
// What is in a script or style element must not end it, nor look like the places where the report is put in.
for (const text of [script, style])
	if (/<\/(script|style)|<!--|@@MEMWATCH_/i.test(text)) throw new Error("the bundle holds what ends its element, or a mark");

const parts = { SCRIPT: script, STYLE: style, POLICY: `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'` };
const page = readFileSync(join(here, "src/page.html"), "utf8").replace(/\{\{(SCRIPT|STYLE|POLICY)\}\}/g, (_, part) => parts[part]);
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
