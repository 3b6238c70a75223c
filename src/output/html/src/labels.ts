// SPDX-License-Identifier: MIT
// labels.ts: how stacks, modules, threads and frames are named.
import { h, name } from "./dom";
import { basename, visible } from "./format";
import { type Model, type Shown, isScript } from "./model";
import type { Frame, Stack } from "./types";

export function functionText(frame: Frame | null): string {
	if (!frame) return "not known";
	if (frame.function !== null) return frame.function;
	return `${frame.module === null ? "code in no file" : basename(frame.module)}+0x${frame.offset.toString(16)}`;
}

export function moduleText(module: string | null): string {
	return module === null ? "charged to no module" : basename(module);
}

/** Is it of a language that says by itself where the program's own code is? */
function isNamed({ language }: Frame): boolean {
	return language !== undefined && language !== "native";
}

export function stackText(model: Model, stack: number): string {
	const line = model.chargedLine(stack);
	const named = line && isNamed(line) ? line : model.chargedFrame(stack);
	return functionText(named ?? model.frames(stack)[0] ?? null);
}

export function threadText(model: Model, thread: number): string {
	const { tid, name: text, process } = model.threads[thread]!;
	const own = tid === null ? "not known" : `${text ?? "?"} (${tid})`;
	return model.processes.length > 1 ? `${own} of ${processText(model, process)}` : own;
}

export function processText(model: Model, process: number): string {
	const { comm, pid } = model.processes[process]!.report.target;
	return `${comm ?? "?"} (${pid})`;
}

/** "file.c:12", with the whole path as its title. */
export function placeOf(frame: Frame): HTMLElement | null {
	if (frame.file === null) return null;
	return h("span", { class: "place", title: visible(frame.file).slice(0, 2000) }, h("bdi", null, visible(basename(frame.file)).slice(-80)), frame.line ? `:${frame.line}` : "");
}

/** What it is written in, where that is no native language. */
export function languageTag(frame: Frame): HTMLElement | null {
	return isNamed(frame) ? h("span", { class: "tag language" }, frame.language) : null;
}

/** What is shown of a stack's frames, as a line. */
export function shownLine({ frame, count }: Shown, most = 160): HTMLElement {
	return count > 1 ? h("span", { class: "frame" }, `(interpreter, ${count} frames)`) : frameLine(frame, most);
}

/** One frame as a line. */
export function frameLine(frame: Frame, most = 160): HTMLElement {
	return h(
		"span",
		{ class: "frame" },
		name(functionText(frame), most, "Function"),
		languageTag(frame),
		frame.inlined && h("span", { class: "tag" }, "inlined"),
		" ",
		frame.module !== null && frame.function !== null && !isScript(frame) && h("span", { class: "module", title: visible(frame.module).slice(0, 2000) }, h("bdi", null, visible(basename(frame.module)).slice(-60))),
		" ",
		placeOf(frame),
	);
}

/** Where a stack is cut, or ends by design, in the words of the text report. */
export function endOf({ cut, end }: Stack): string | null {
	if (cut) return `cut here: ${cut === "depth" ? "the wanted depth was reached" : cut}`;
	return end && `ends here: ${end}`;
}

export function frameList(model: Model, stack: number, most = 400): HTMLElement {
	const frames = model.shown(stack);
	const list = h("ol", { class: "frames", start: 0 }, frames.slice(0, most).map((shown) => h("li", { value: shown.at }, shownLine(shown))));
	if (frames.length > most) list.appendChild(h("li", { class: "note" }, `… and ${frames.length - most} more frames`));
	const end = endOf(model.stacks[stack]!);
	if (end) list.appendChild(h("li", { class: "note" }, end));
	if (!frames.length) list.appendChild(h("li", { class: "note" }, "no frames are known"));
	return list;
}
