// SPDX-License-Identifier: MIT
// words.test.mjs: what the page says of stacks: verdicts, names and colours.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, figures, tab, tableRows, zoom } from "./browser.mjs";
import { frame, growth, inspect, makePage, shop } from "./make.mjs";

let browser;
const made = shop();
const { blocks, stacks, end } = made;
const html = makePage([made]);
const MAIN = "/usr/bin/shop";
before(async () => {
	browser = await Browser.start();
});
after(() => browser?.stop());

const NAMES = ["suspects", "flame", "table", "lifetimes", "space"];

/** Suspects by their stacks' ids. */
async function suspects(page) {
	const all = await page.$$eval(".suspect", (list) =>
		list.map((one) => ({
			id: one.querySelector(".where .id").textContent,
			badge: one.querySelector(".badge").textContent,
			tone: one.className,
			verdict: one.querySelector(".verdict").textContent,
			doubt: one.querySelector(".doubt")?.textContent.trim() ?? null,
			figures: [...one.querySelectorAll(".suspect-figures data")].map((data) => Number(data.value)),
			rate: one.querySelector(".suspect-figures .note:nth-of-type(3)").textContent,
			bar: one.querySelector(".bar-fill") !== null,
		})),
	);
	return new Map(all.map((one) => [one.id, one]));
}

test("verdicts are the report's, in every interval; figures are the interval's", async () => {
	const verdicts = ["accelerating", "plateau", null, "growing container", null, "too short to tell", "stepwise growth", "one-off", "steady state"];
	const own = { ...made, stacks: stacks.map((stack, i) => ({ ...stack, growth: verdicts[i] && growth(verdicts[i]) })) };
	const page = await browser.open(makePage([own]));
	let later = 0;
	for (const [from, to] of [[0, 10], [0, 2.5], [2.5, 7.5], [4, 4.05], [9, 10]]) {
		await zoom(page, from, to);
		const shown = await suspects(page);
		for (const [i, { id, kind }] of stacks.entries()) {
			const sums = inspect(blocks.filter((block) => block.stack === i), from * 1e9, to * 1e9);
			assert.equal(shown.has(id), kind !== "vm-internal" && sums.impacting.count > 0, `${id} of ${from} to ${to}`);
			if (!shown.has(id)) continue;
			const one = shown.get(id);
			assert.equal(one.badge, verdicts[i] ?? "freed later");
			assert.deepEqual(one.figures, [sums.impacting.bytes, sums.impacting.count]);
			const rate = sums.impacting.bytes / (to - from);
			assert.equal(one.rate, `${rate < 1024 ? `${Math.round(rate)} B` : rate < 1 << 20 ? `${(rate / 1024).toFixed(1)} KiB` : `${(rate / (1 << 20)).toFixed(1)} MiB`} a second`);
			later += verdicts[i] ? 0 : 1;
		}
	}
	assert.ok(later >= 2);
	// What grows comes first.
	const order = [...(await suspects(page)).values()].map(({ badge }) => badge);
	const grows = order.map((badge) => ["accelerating", "growing container", "stepwise growth"].includes(badge));
	assert.deepEqual(grows, [...grows].sort((a, b) => b - a));
	assert.ok(grows[0]);
	const freed = page.locator(".suspect", { hasText: stacks[2].id });
	assert.match(await freed.textContent(), /freed by the end of the window/);
	await freed.locator("summary").click();
	await freed.locator(".why").waitFor();
	assert.match(await freed.textContent(), /In this interval \d+ of the \d+ blocks that it allocated were freed\. In the whole window:All of its blocks were freed/);
	await assertQuiet(page);
	await page.close();
});

test("stacks of one line are one suspect, with the report's sentence", async () => {
	const line = { line: 26, function: "leak_session", file: "/src/shop/session.c", module: MAIN, verdict: "steady growth", stacks: [stacks[0].id, stacks[7].id], sentence: "It took <b>memory</b>." };
	const open = { line: null, function: "make", file: null, module: "/opt/libmake.so", verdict: "too short to tell", stacks: [stacks[5].id], sentence: "Watch for 60 s or longer." };
	const verdicts = ["steady growth", "plateau", "churn", "one-off", null, "too short to tell", null, "too short to tell", "plateau"];
	const page = await browser.open(makePage([{ ...made, stacks: stacks.map((stack, i) => ({ ...stack, growth: verdicts[i] && growth(verdicts[i]), frames: i === 7 ? [...stack.frames, stacks[0].frames[0]] : stack.frames })), report: { suspects: [line, open] } }]));
	for (const [from, to] of [[0, 10], [2.5, 6.5], [0, 2]]) {
		await zoom(page, from, to);
		const sums = inspect(blocks.filter(({ stack }) => stack === 0 || stack === 7), from * 1e9, to * 1e9);
		const first = page.locator(".suspect").first();
		assert.equal(await first.locator("h3").textContent(), "leak_session");
		assert.match(await first.textContent(), /session\.c:26.*steady growth It took <b>memory<\/b>\./s);
		assert.equal(/ and 1 more/.test(await first.locator(".where").textContent()), to > 6);
		assert.deepEqual(await figures(page, ".suspect:first-child .suspect-figures"), [sums.impacting.bytes, sums.impacting.count]);
		const shown = await suspects(page);
		assert.match(shown.get(stacks[5].id).verdict, /too short to tell Watch for 60 s or longer\./);
		// What comes and goes, or was freed later, is last.
		const ranks = [...shown.values()].map(({ badge }) => (["churn", "freed later"].includes(badge) ? 1 : 0));
		assert.deepEqual(ranks, [...ranks].sort());
		assert.ok(ranks.at(-1));
	}
	await zoom(page, 0, 10);
	// It is open at first, with its stacks.
	await page.waitForSelector(".suspect:first-child .own-stacks");
	assert.equal((await page.$$(".suspect:first-child .own-stacks li")).length, 2);
	assert.match(await page.textContent("#panel-suspects .bar"), /1 place keeps growing/);
	await page.click('.panels [data-value="stack"]');
	const one = (await suspects(page)).get(stacks[7].id);
	assert.deepEqual([one.badge, one.doubt], ["too short to tell", "Together with the other stacks of its line: steady growth."]);
	await page.click('.panels [data-value="module"]');
	const module = page.locator(".suspect", { hasText: "libshop.so" });
	assert.equal(await module.locator(".badge").first().textContent(), "steady growth");
	await assertQuiet(page);
	await page.close();
});

test("a verdict that is not certain says what else it may be", async () => {
	const lived = { min: 1e6, median: 1e9, p99: 7e9, max: 8e9 };
	const doubts = [
		[growth("steady growth", { certain: false }), null, "None of these blocks was freed, so a cache that is still filling would look the same."],
		[growth("steady growth", { certain: true }), null, null],
		[growth("stepwise growth", { certain: false, freed_share: 0.5 }), null, /likely, not certain.*freed much later/],
		[growth("steady state", { certain: false }), null, /judged by sizes/],
		null,
		[growth("too short to tell", { certain: false }), null, "To tell, watch for 1 minute."],
		[growth("too short to tell", { certain: false }), lived, "Blocks of this stack live up to 7.0 s: to tell, watch for 30 seconds."],
		[growth("too short to tell", { certain: false }), { ...lived, p99: 1e6 }, "To tell, watch for 1 minute."],
		[growth("accelerating", { certain: true }), null, null],
	];
	const page = await browser.open(makePage([{ ...made, stacks: stacks.map((stack, i) => ({ ...stack, growth: doubts[i]?.[0] ?? null, lifetime_ns: doubts[i]?.[1] ?? null, settled_later: { count: i === 0 ? 3 : 0, bytes: i === 0 ? 600 : 0 } })) }]));
	const shown = await suspects(page);
	const own = page.locator(".suspect", { hasText: stacks[0].id });
	assert.equal(await own.locator(".facts").textContent(), "3 blocks (600 B) were freed within the settling time");
	for (const [i, doubt] of doubts.entries()) {
		if (!doubt) continue;
		const { doubt: said } = shown.get(stacks[i].id);
		if (doubt[2] instanceof RegExp) assert.match(said, doubt[2]);
		else assert.equal(said, doubt[2], stacks[i].id);
	}
	assert.match(await page.textContent("#panel-suspects .bar"), /4 places keep growing/);
	await page.close();
	// Too short to tell is no all-clear.
	const short = await browser.open(makePage([{ ...made, stacks: stacks.map((stack, i) => ({ ...stack, growth: growth(i ? "plateau" : "too short to tell", { certain: i > 0 }) })) }]));
	assert.match(await short.textContent("#panel-suspects .bar"), /No leak found, but the window was too short to judge 1 place\./);
	await short.close();
});

test("a suspect has the text report's sentence, and what it says of frees, days and the limit of memory", async () => {
	const suspect = (stack, verdict, more) => ({ line: 26, function: stack.frames[0].function, file: stack.frames[0].file, module: stack.suspect, verdict, certain: false, bytes: 4e5, blocks: 900, freed: 0, bytes_per_hour: 0, seconds_to_limit: null, stacks: [stack.id], sentence: "It did. A cache that is still filling would look the same.", ...more });
	const limit = { bytes: 2 * 2 ** 30, used: 5e8, of: "cgroup" };
	const report = {
		target: { pid: 4711, comm: "shop", exe: MAIN, command: [MAIN], exit_status: null, memory_limit: limit },
		suspects: [
			suspect(stacks[0], "steady growth", { bytes_per_hour: 50 * 2 ** 20, seconds_to_limit: 47000 }),
			suspect(stacks[5], "too short to tell", { freed: 300, blocks: 100, seconds_to_limit: 1e12 }),
			suspect(stacks[1], "plateau", { freed: 2, blocks: 4727 }),
		],
		rss_growth: { bytes: 64 * 2 ** 20, blocks: 16 * 2 ** 20, unexplained: true, other: null },
	};
	const judged = stacks.map((stack, i) => ({ ...stack, growth: growth(["steady growth", "plateau", "plateau", "plateau", null, "too short to tell"][i] ?? "plateau", { certain: false }), settled_later: { count: i === 5 ? 1 : 0, bytes: i === 5 ? 24 : 0 } }));
	const page = await browser.open(makePage([{ ...made, stacks: judged, report }]));
	const of = (i, part) => page.locator(".suspect", { hasText: stacks[i].id }).locator(part).textContent();
	assert.equal(await of(0, ".verdict"), "steady growth It did. A cache that is still filling would look the same.");
	assert.equal(await of(0, ".facts"), "none freed; 1.2 GiB a day; reaches the cgroup's limit (2.0 GiB) in 13 h at this rate");
	assert.equal(await of(1, ".facts"), "2 of 4,729 freed");
	assert.equal(await of(5, ".facts"), "75.0 % of 400 freed; 1 block (24 B) was freed within the settling time");
	const held = inspect(blocks.filter(({ stack }) => stack === 0), 0, 10e9).impacting.bytes;
	assert.ok((await of(0, ".suspect-figures")).includes(`${((held / (64 * 2 ** 20)) * 100).toFixed(1)} % of what the RSS grew by`));
	await assertQuiet(page);
	await page.close();
});

test("what the figures leave out stands above them", async () => {
	const child = (pid, watched) => ({ pid, comm: "worker", watched });
	const MIB = 2 ** 20;
	const notes = (page) => page.$$eval(".notes li", (all) => all.map((one) => one.textContent));
	const report = {
		children: [child(24386, false), child(4300, true), child(24387, false)],
		rss_growth: { bytes: 101 * MIB, blocks: 12 * MIB, unexplained: true, other: { heap: MIB - 1, anonymous: 69 * MIB, arena: 0, stack: 70 * MIB, file_text: -5 } },
		nameless: ["/usr/lib/libfoo.so.1", "/usr/lib/my shop/libbar.so.2"],
		nameless_hint: "the debug packages have them",
		nameless_command: "sudo pkg install $(pkg owns /usr/lib/libfoo.so.1) |\n      sort",
		runtimes: [{ name: "php", text: "PHP's objects: start it with USE_ZEND_ALLOC=0.", heap: "PHP's heap" }],
		window: { started: null, seconds: 10, from: 0, to: 10, ended: "duration", limit: null, settle: 1 },
	};
	const page = await browser.open(makePage([{ ...made, report }]));
	assert.deepEqual(await notes(page), ["RSS +101.0 MiB: 12.0 MiB explained by blocks not freed, 70.0 MiB stacks of threads, 69.0 MiB anonymous mappings (PHP's heap)", "Not seen: PHP's objects: start it with USE_ZEND_ALLOC=0.", "2 children not watched: -p 24386,24387, or --children"]);
	assert.match(await page.textContent(".subtitle"), /settled: frees were recorded for 1\.0 s after the window · ended/);
	const points = await page.$$eval(".limits li", (all) => all.map((one) => one.textContent));
	assert.ok(!points.join().includes("PHP's objects"));
	assert.ok(points.includes(`Names of functions in libfoo.so.1 and libbar.so.2 (they are shown as offsets): the debug packages have them:${report.nameless_command}`), points.join("\n"));
	assert.equal(await page.textContent(".limits pre"), report.nameless_command);
	await assertQuiet(page);
	await page.close();
	// What the worst suspect is not called is said with it, what is not seen where that does not matter below.
	const suspect = (verdict) => ({ line: null, function: null, file: null, module: "/opt/x.so", verdict, stacks: [stacks[0].id], sentence: "It did." });
	for (const [verdict, above] of [["too short to tell", true], ["plateau", false]]) {
		const calm = await browser.open(makePage([{ ...made, report: { ...report, children: [], rss_growth: null, suspects: [suspect(verdict)] } }]));
		const said = await notes(calm);
		assert.deepEqual(said.map((note) => note.slice(0, 25)), above ? ["No names of functions in "] : []);
		assert.ok((await calm.textContent(".limits")).includes("PHP's objects: start it with USE_ZEND_ALLOC=0."));
		assert.equal((await calm.textContent(".limits")).includes("Names of functions in"), !above);
		await calm.close();
	}
	// Of which process; and what is not known of the rest.
	const many = Array.from({ length: 18 }, (_, i) => child(100 + i, false));
	const unknown = { children: many, rss_growth: { bytes: 20 * MIB, blocks: 5 * MIB, unexplained: true, other: null }, nameless: ["/opt/x.so"], nameless_hint: "build it with -g, and do not strip it", nameless_command: null };
	const other = await browser.open(makePage([{ ...made, report: { rss_growth: { ...report.rss_growth, unexplained: false }, children: null } }, { ...made, report: unknown }]));
	assert.deepEqual(await notes(other), ["shop (4711): RSS +20.0 MiB: 5.0 MiB explained by blocks not freed, 15.0 MiB by none of them", `shop (4711): 18 children not watched: -p ${many.slice(0, 16).map(({ pid }) => pid).join(",")} and 2 more, or --children`]);
	assert.match(await other.textContent(".limits"), /Names of functions in x\.so \(they are shown as offsets\): build it with -g, and do not strip it\./);
	await other.selectOption("#process", "0");
	assert.deepEqual(await notes(other), []);
	await other.close();
	// There is nothing to say, and nothing is said.
	const whole = await browser.open(html);
	assert.equal(await whole.locator(".notes").isVisible(), false);
	assert.equal((await whole.$$(".facts")).length, 0);
	await whole.close();
});

test("the words are for people", async () => {
	const page = await browser.open(html);
	await zoom(page, 2.5, 7.5);
	const texts = async () =>
		page.evaluate(() => {
			const out = [document.body.innerText];
			for (const element of document.querySelectorAll("[title], [aria-label], [placeholder]")) for (const key of ["title", "aria-label", "placeholder"]) out.push(element.getAttribute(key) ?? "");
			return out.join("\n");
		});
	let all = "";
	for (const name of NAMES) {
		await tab(page, name);
		if (name === "table") {
			await page.selectOption("#add-column", "type");
			for (const column of ["module", "function"]) {
				await page.focus(`.chip[data-column="${column}"]`);
				await page.keyboard.press("Delete");
			}
		}
		all += await texts();
	}
	await page.click("#tab-flame");
	await page.click('#panel-flame [data-value="transient"]');
	await page.fill("#filter", "nobody-has-this");
	await page.waitForFunction(() => document.querySelector("#tile-size data").value === "0");
	all += await texts();
	assert.doesNotMatch(all, /impacting|transient|AOF[IO]|AIFO/i);
	for (const words of ["Not freed", "Freed in the interval", "Older, freed", "older, kept"]) assert.ok(all.includes(words), words);
	await page.close();
	const whole = await browser.open(html);
	assert.match(await whole.textContent("#tile-transient"), /^Freed in the window/);
	await whole.close();
});

test("nothing has no red, and an unknown size is not 0 B", async () => {
	const red = (page) => page.$eval("#tile-impacting", (one) => getComputedStyle(one).borderLeftWidth !== getComputedStyle(one).borderRightWidth);
	const page = await browser.open(html);
	assert.equal(await red(page), true);
	assert.ok((await suspects(page)).get(stacks[0].id).bar);
	assert.match((await suspects(page)).get(stacks[0].id).tone, /\bbad\b/);
	await page.fill("#filter", "nobody-has-this");
	await page.waitForFunction(() => document.querySelector("#tile-size data").value === "0");
	assert.equal(await red(page), false);
	await page.close();
	// Blocks of no bytes that grow; older ones of unknown size.
	const empty = { ...made, blocks: blocks.filter((block) => block.stack === 8).map((block) => ({ ...block, bytes: block.born === null ? null : 0 })), stacks: stacks.map((stack) => ({ ...stack, growth: growth("steady growth") })) };
	const other = await browser.open(makePage([empty]));
	const one = (await suspects(other)).get(stacks[8].id);
	assert.deepEqual([one.figures, one.bar, /\bbad\b/.test(one.tone)], [[0, 10], false, false]);
	assert.match(await other.textContent("#tile-aofi"), /size unknown/);
	assert.match(await other.textContent(".limits"), /50 older blocks were freed inside it \(size unknown\)/);
	await tab(other, "table");
	assert.equal((await other.$$(".share")).length, 0);
	await other.close();
});

test("the table opens its first level, as far as there are groups in it", async () => {
	const page = await browser.open(html);
	await tab(page, "table");
	const rows = await tableRows(page);
	const modules = new Set(stacks.filter((stack) => stack.kind !== "vm-internal").map((stack) => stack.suspect));
	assert.equal(rows.filter((row) => row.level === 1).length, modules.size);
	assert.ok(rows.filter((row) => row.level === 1).every((row) => row.expanded === "true"));
	assert.ok(rows.filter((row) => row.level === 2).every((row) => row.expanded === "false"));
	assert.ok(["leak_session", "fill_cache", "parse_request", "map_buffer"].every((name) => rows.some((row) => row.level === 2 && row.name === name)));
	// What is closed stays closed, in other intervals too.
	await page.locator(".tr").first().click();
	await zoom(page, 2, 6);
	const closed = (await tableRows(page)).filter((row) => row.level === 1);
	assert.equal(closed.find((row) => row.key === rows[0].key).expanded, "false");
	assert.equal(closed.filter((row) => row.expanded === "false").length, 1);
	// Alone, or where it is of stacks, it stays closed.
	await page.focus('.chip[data-column="function"]');
	await page.keyboard.press("Delete");
	assert.ok((await tableRows(page)).every((row) => row.level === 1));
	await page.close();
});

test("the flame graph's colours tell own code from libraries, and a legend names them", async () => {
	const libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	const own = [
		{ frames: [frame("malloc", libc), frame("std::vector<int>::push_back", MAIN), frame("leak_session", MAIN)], bytes: 400 },
		{ frames: [frame("malloc", "/lib64/libjemalloc.so.2"), frame("plug", "/opt/shop/plugin.so"), frame("main", MAIN)], bytes: 300 },
		{ frames: [frame("operator new", "/usr/lib/libstdc++.so.6"), frame(null, null), frame("main", MAIN)], bytes: 200 },
		{ frames: [frame("<T as core::fmt::Write>::grow", MAIN), frame("core::Engine::add(int)", MAIN)], bytes: 100 },
	];
	const process = {
		...made,
		stacks: own.map(({ frames }, i) => ({ id: `000000000000000${i}`, kind: "heap", api: "malloc", suspect: MAIN, frames, growth: null })),
		blocks: own.map(({ bytes }, i) => ({ stack: i, thread: 1, heap: 1, born: 1e9, died: null, bytes })),
	};
	const page = await browser.open(makePage([process]));
	await tab(page, "flame");
	const colors = await page.$$eval(".node", (all) => Object.fromEntries(all.map((one) => [one.getAttribute("aria-label").split(",")[0], getComputedStyle(one).backgroundColor])));
	assert.equal(colors.main, colors.leak_session);
	assert.equal(colors.malloc, colors["std::vector<int>::push_back"]);
	assert.equal(colors.malloc, colors["operator new"]);
	assert.equal(colors.malloc, colors["<T as core::fmt::Write>::grow"]);
	assert.equal(colors.main, colors["core::Engine::add(int)"]);
	const legend = async () => page.$$eval(".flame-legend li", (all) => all.map((one) => [one.textContent, getComputedStyle(one.querySelector(".swatch")).backgroundColor]));
	const unknown = colors[Object.keys(colors).find((name) => name.startsWith("code in no file"))];
	assert.deepEqual(await legend(), [["own code: shop", colors.main], ["own code: plugin.so", colors.plug], ["libraries", colors.malloc], ["code in no file", unknown]]);
	assert.equal(new Set((await legend()).map(([, color]) => color)).size, 4);
	await page.fill("#flame-search", "plug");
	const found = await page.$eval(".node.hit", (one) => getComputedStyle(one).backgroundColor);
	assert.deepEqual((await legend()).map(([text]) => text), ["own code: shop", "libraries", "code in no file", "found"]);
	assert.deepEqual((await legend()).at(-1)[1], found);
	// Only what is there.
	await page.fill("#flame-search", "");
	await page.click('.node[aria-label^="leak_session,"]');
	assert.deepEqual((await legend()).map(([text]) => text), ["own code: shop", "libraries"]);
	await assertQuiet(page);
	await page.close();
});

test("a program of the system's is own code, and what more own modules there are share a colour", async () => {
	const exe = "/usr/lib/postgresql/16/bin/postgres";
	const modules = [exe, "/opt/a.so", "/opt/b.so", "/opt/c.so", "/opt/d.so", "/usr/lib/postgresql/16/lib/e.so"];
	const process = {
		...made,
		report: { target: { pid: 1, comm: "postgres", exe, command: [exe], exit_status: null } },
		stacks: modules.map((module, i) => ({ id: `000000000000000${i}`, kind: "heap", api: "malloc", suspect: module, frames: [frame(`f${i}`, module)], growth: null })),
		blocks: modules.map((_, i) => ({ stack: i, thread: 1, heap: 1, born: 1e9, died: null, bytes: 1000 - i })),
	};
	const page = await browser.open(makePage([process]));
	await tab(page, "flame");
	assert.deepEqual(await page.$$eval(".flame-legend li", (all) => all.map((one) => one.textContent)), ["own code: postgres", "own code: a.so", "own code: b.so", "own code: c.so, d.so", "libraries"]);
	await page.close();
});

/** The labels of frames side by side, in windows of all widths. */
async function assertLabels(names) {
	const process = {
		...made,
		stacks: names.map(([name], i) => ({ id: `000000000000000${i}`, kind: "heap", api: "malloc", suspect: MAIN, frames: [frame(name, MAIN)], growth: null })),
		blocks: names.map((_, i) => ({ stack: i, thread: 1, heap: 1, born: 1e9, died: null, bytes: 1000 })),
	};
	const page = await browser.open(makePage([process]));
	await tab(page, "flame");
	const seen = new Map(names.map(([name]) => [name, new Set()]));
	for (let width = 1600; width >= 400; width -= 40) {
		await page.setViewportSize({ width, height: 700 });
		await page.waitForFunction(() => Math.abs(document.querySelector(".node").offsetWidth - document.querySelector(".flame").clientWidth) < 3);
		for (const [at, label, text, fits] of await page.$$eval(".node", (all) => all.slice(1).map((one) => [Number(one.dataset.node), one.getAttribute("aria-label"), one.textContent, one.scrollWidth <= one.clientWidth + 1]))) {
			assert.ok(label.startsWith(names[at - 1][0]));
			assert.ok(fits, text);
			seen.get(names[at - 1][0]).add(text);
		}
	}
	for (const [name, wanted] of names) for (const text of wanted) assert.ok(seen.get(name).has(text), `${text} in ${JSON.stringify([...seen.get(name)])}`);
	await page.close();
}

test("a narrow label keeps the function's name", async () => {
	for (const names of [
		[
			["std::map<int, std::vector<shop::Order> >::insert(int const&)", ["std::map<…>::insert", "std::map::insert", "map::insert", "insert"]],
			["shop::Server::handle(shop::Request const&, int)", ["shop::Server::handle", "Server::handle", "handle"]],
			["void shop::fill<int, std::pair<a::b, c> >(std::vector<int>&)", ["shop::fill<…>", "shop::fill", "fill"]],
			["(anonymous namespace)::make(shop::Order<int>)", ["{anonymous}::make", "make"]],
			["leak_session_record_of_all_customers", ["leak_session_rec…", "leak_se…"]],
			["libshop.so+0x1234", ["libshop.so+0x1234", "libshop…"]],
		],
		[
			["shop::Pool::operator()(int) const", ["shop::Pool::operator() const", "Pool::operator() const", "operator() const"]],
			["std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", ["std::operator<<", "operator<<"]],
			["<alloc::vec::Vec<T> as core::ops::Drop>::drop", ["<…>::drop", "drop"]],
			["shop::run::{{closure}}", ["shop::run::{{closure}}", "run::{{closure}}", "{{closure}}"]],
			["-[Shop orderAll:]", ["-[Shop orderAll:]", "orderAl…"]],
		],
	])
		await assertLabels(names);
});

test("fragmentation is told only where it is so", async () => {
	const arenas = (start, to) => ({ ...made, space: { ...made.space, arenas: { start, end: to } } });
	const of = (used, free) => ({ used, free, size: used + free });
	for (const [start, to, so] of [
		[of(100000, 5000), of(480000, 20000), false], // grew by what is used
		[of(100000, 5000), of(120000, 900000), true],
		[of(100000, 900000), of(480000, 520000), false], // did not grow
		[of(100000, 900000), of(100000, 900000), false],
		[of(1e6, 0), of(1e6, 1000), false], // next to nothing
		[null, of(100, 900), true],
		[null, of(900, 100), false],
	]) {
		const page = await browser.open(makePage([arenas(start, to)]));
		await tab(page, "space");
		const text = await page.textContent("#panel-space");
		assert.match(text, /glibc's arenas/);
		assert.equal(/fragmentation/.test(text), so, JSON.stringify([start, to]));
		await page.close();
	}
});

test("where blocks were sampled the page claims no more than that", async () => {
	const sampling = { interval: 1 << 19, intervals: [{ bytes: 1 << 16, from: 0, blocks: 9 }, { bytes: 1 << 19, from: 1, blocks: 3 }], exact: 0, unseen: 1570635 };
	const exact = await browser.open(html);
	assert.match(await exact.textContent("header"), /nothing was lost/);
	assert.doesNotMatch(await exact.textContent("body"), /ampled|estimated/);
	await exact.close();
	const calm = stacks.map((stack) => ({ ...stack, growth: growth("plateau") }));
	const page = await browser.open(makePage([{ ...made, stacks: calm, report: { complete: false, sampling } }]));
	const header = await page.textContent("header");
	assert.match(header, /no event was lost/);
	assert.match(header, /one heap block in 64\.0 KiB to 512\.0 KiB on average; amounts are estimates ± standard error/);
	assert.doesNotMatch(header, /Sampled from/);
	assert.doesNotMatch(await page.textContent("body"), /nothing was lost|incomplete/);
	assert.match(await page.textContent("#panel-suspects"), /No leak found: of what was sampled no place keeps growing\. Up to 1\.5 MiB in any one place may not have been seen\./);
	assert.match(await page.textContent(".limits"), /a place that kept less than 1\.5 MiB of heap blocks may not have been seen at all/);
	assert.match(await page.textContent(".sentence"), /estimated at steps/);
	await zoom(page, 2, 5);
	assert.match(await page.textContent("#tile-impacting"), /\(estimated\)/);
	await assertQuiet(page);
	await page.close();
	const late = { ...sampling, exact: 12, from: 0.6, why: "memwatch could not keep up; --max-wait 100 records every block" };
	const changed = await browser.open(makePage([{ ...made, stacks: calm, report: { complete: false, sampling: late } }]));
	assert.match(await changed.textContent("header"), /Sampled from 600(\.0)? ms on \(memwatch could not keep up; --max-wait 100 records every block\): one heap block in 64\.0 KiB/);
	await assertQuiet(changed);
	await changed.close();
});
