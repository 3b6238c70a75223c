// SPDX-License-Identifier: MIT
// format.ts: numbers in the text report's form, and names that fit.

export function bytes(value: number): string {
	if (value < 0) return "-" + bytes(-value);
	if (value < 1024) return `${Math.round(value)} B`;
	const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	let unit = 0;
	let shown = value / 1024;
	for (; shown >= 1023.95 && unit + 1 < units.length; unit++) shown /= 1024;
	return `${shown.toFixed(1)} ${units[unit]}`;
}

export function change(from: number, to: number): string {
	return to > from ? "+" + bytes(to - from) : to < from ? "−" + bytes(from - to) : "0 B";
}

export function count(value: number): string {
	return Math.round(value).toLocaleString("en-US");
}

/** "1 block", "2,313 blocks". */
export function many(value: number, one: string, more = one + "s"): string {
	return `${count(value)} ${Math.round(value) === 1 ? one : more}`;
}

export function seconds(value: number): string {
	if (value < 0) return "-" + seconds(-value);
	if (value === 0) return "0 s";
	if (value < 0.9995e-6) return `${(value * 1e9).toFixed(0)} ns`;
	if (value < 0.99995e-3) return `${(value * 1e6).toFixed(1)} µs`;
	if (value < 0.99995) return `${(value * 1e3).toFixed(1)} ms`;
	if (value < 119.95) return `${value.toFixed(1)} s`;
	const whole = Math.round(value);
	if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
	return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A time to come: "45 s", "12 min", "13 h", "400 days". */
export function roughly(value: number): string {
	const [unit, word] = ([[86400, "days"], [3600, "h"], [60, "min"]] as const).find(([length]) => value >= 2 * length) ?? [1, "s"];
	return `${(value / unit).toFixed(0)} ${word}`;
}

/** A moment, to the microsecond where it has one: "1.25 s". */
export function moment(ns: number): string {
	return `${parseFloat((ns / 1e9).toFixed(6))} s`;
}

export function percent(part: number, whole: number): string {
	return whole > 0 ? `${((part / whole) * 100).toFixed(1)} %` : "–";
}

/* Characters that are invisible, or that change the direction of reading. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** The text with such characters shown by their numbers. */
export function visible(text: string): string {
	return text.replace(UNSEEN, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** At most `most` characters, the middle left out: both ends tell names apart. */
export function shorten(text: string, most: number): string {
	if (text.length <= most) return text;
	const head = Math.ceil((most - 1) * 0.55);
	const tail = most - 1 - head;
	const points = (part: string): string => part.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
	return points(text.slice(0, head)) + "…" + points(text.slice(text.length - tail));
}

/** The demangled name of a template begins with the type that it returns; its own name begins after the last space outside of <>. */
export function ownName(name: string): string {
	let depth = 0;
	let start = 0;
	for (let i = 0; i < name.length; i++) {
		const c = name[i];
		if (c === "<") depth++;
		else if (c === ">" && depth) depth--;
		else if (c === "(" && !depth && i > start) break;
		else if (c === " " && !depth && !name.startsWith("operator", start)) start = i + 1;
	}
	return name.slice(start);
}

/* A function's name between the "::" of its scopes; `mark` stands for template arguments. Parameters are left out. */
function scopesOf(text: string, mark: string): string[] {
	const scopes: string[] = [];
	let scope = "";
	let depth = 0;
	const own = ownName(text.replaceAll("(anonymous namespace)", "{anonymous}"));
	for (let i = 0; i < own.length; i++) {
		const c = own[i]!;
		const operator = depth || /\w/.test(own[i - 1] ?? "") ? null : /^operator(\(\)|[^\w\s(]+| ?[^(]*)/.exec(own.slice(i));
		if (operator) {
			scope += operator[0];
			i += operator[0].length - 1;
		} else if (c === "<" || c === "(" || c === "[") {
			if (!depth++ && c === "<") scope += mark;
		} else if (depth && (c === ">" || c === ")" || c === "]")) {
			depth--;
		} else if (!depth && c === ":" && own[i + 1] === ":") {
			scopes.push(scope);
			scope = "";
			i++;
		} else if (!depth) scope += c;
	}
	return [...scopes, scope].map((one) => one.trim()).filter(Boolean);
}

/** A function's name in `most` characters: first without arguments, then without its scopes, and only then with its end cut off. */
export function shortName(text: string, most: number): string {
	if (text.length <= most) return text;
	const marked = scopesOf(text, "<…>").join("::");
	if (marked && marked.length <= most) return marked;
	const scopes = scopesOf(text, "");
	let name = scopes.pop() ?? text;
	while (scopes.length && scopes[scopes.length - 1]!.length + 2 + name.length <= most) name = `${scopes.pop()}::${name}`;
	return name.length <= most ? name : name.slice(0, most - 1) + "…";
}

export function basename(path: string): string {
	const name = path.slice(path.lastIndexOf("/") + 1);
	return name || path;
}
