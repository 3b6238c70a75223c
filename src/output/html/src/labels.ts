// SPDX-License-Identifier: MIT
// labels.ts: how stacks, modules, threads and frames are named.
import { h, name } from "./dom";
import { basename, visible } from "./format";
import type { Model } from "./model";
import type { Frame, Stack } from "./types";

export function functionText(frame: Frame | null): string {
	if (!frame) return "not known";
	if (frame.function !== null) return frame.function;
	return `${frame.module === null ? "code in no file" : basename(frame.module)}+0x${frame.offset.toString(16)}`;
}

export function moduleText(module: string | null): string {
	return module === null ? "charged to no module" : basename(module);
}

export function stackText(model: Model, stack: number): string {
	const frame = model.chargedFrame(stack) ?? model.frames(stack)[0] ?? null;
	return functionText(frame);
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

/** One frame as a line. */
export function frameLine(frame: Frame, most = 160): HTMLElement {
	return h(
		"span",
		{ class: "frame" },
		name(functionText(frame), most, "Function"),
		frame.inlined && h("span", { class: "tag" }, "inlined"),
		" ",
		frame.module !== null && frame.function !== null && h("span", { class: "module", title: visible(frame.module).slice(0, 2000) }, h("bdi", null, visible(basename(frame.module)).slice(-60))),
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
	const frames = model.frames(stack);
	const list = h("ol", { class: "frames", start: 0 }, frames.slice(0, most).map((frame) => h("li", null, frameLine(frame))));
	if (frames.length > most) list.appendChild(h("li", { class: "note" }, `… and ${frames.length - most} more frames`));
	const end = endOf(model.stacks[stack]!);
	if (end) list.appendChild(h("li", { class: "note" }, end));
	if (!frames.length) list.appendChild(h("li", { class: "note" }, "no frames are known"));
	return list;
}
