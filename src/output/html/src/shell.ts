// SPDX-License-Identifier: MIT
// shell.ts: what all pages have around their views: colours, the link past the controls, the footer, printing.
import { fill, h, segments } from "./dom";
import type { Tabs } from "./tabs";

type Theme = "auto" | "light" | "dark";

export function setTheme(theme: Theme): void {
	const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches);
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	document.documentElement.dataset.chosen = theme;
}

export function storedTheme(): Theme {
	try {
		const theme = localStorage.getItem("memwatch-theme");
		return theme === "light" || theme === "dark" ? theme : "auto";
	} catch {
		return "auto"; // a browser that keeps nothing for files
	}
}

/** Where words are typed that what is shown must have. */
export function filterField(placeholder: string, label: string, change: (text: string) => void): { field: HTMLElement; input: HTMLInputElement } {
	const input = h("input", { type: "search", id: "filter", placeholder, "aria-label": label });
	let pending = 0;
	input.addEventListener("input", () => {
		clearTimeout(pending);
		pending = window.setTimeout(() => change(input.value), 120);
	});
	return { field: h("label", { class: "field grow" }, h("span", null, "Filter"), input), input };
}

interface Shell {
	title: HTMLElement;
	name: string; // of the window
	controls: (HTMLElement | null)[];
	main: (HTMLElement | null)[];
	tabs: Tabs;
	/** Colours have changed, which canvases don't follow by themselves. */
	repaint?: () => void;
}

/** Fill the document. */
export function showPage(shell: Shell): void {
	const { tabs } = shell;
	const paint = (): void => {
		setTheme(storedTheme());
		shell.repaint?.();
	};
	const theme = segments<Theme>("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], storedTheme(), (value) => {
		try {
			localStorage.setItem("memwatch-theme", value);
		} catch {
			// The choice is not kept.
		}
		setTheme(value);
		shell.repaint?.();
	});
	// By a handler: the address holds what the page shows.
	const skip = h("a", { class: "skip", href: "#" }, "To the views");
	skip.addEventListener("click", (event) => {
		event.preventDefault();
		document.getElementById(`tab-${tabs.current}`)?.focus();
	});
	fill(
		document.body,
		skip,
		h("header", null, shell.title, h("div", { class: "controls" }, shell.controls, h("div", { class: "theme" }, theme))),
		h("main", null, shell.main),
		h("footer", null, "Made by memwatch. This page needs nothing else and sends nothing anywhere."),
	);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
	const print = (on: boolean): void => {
		setTheme(on ? "light" : storedTheme());
		tabs.print(on);
		shell.repaint?.();
	};
	matchMedia("print").addEventListener("change", (event) => print(event.matches));
	addEventListener("beforeprint", () => print(true));
	addEventListener("afterprint", () => print(false));
	document.title = `${shell.name} · memwatch`;
}
