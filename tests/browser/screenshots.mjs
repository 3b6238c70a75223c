// SPDX-License-Identifier: MIT
// screenshots.mjs PAGE DIRECTORY: pictures of a report page: see scripts/screenshots.
import { join } from "node:path";
import { Browser, tab } from "./browser.mjs";

const [path, directory] = process.argv.slice(2);
const browser = await Browser.start();
const viewport = { width: 1280, height: 860 };
for (const scheme of ["light", "dark"]) {
	const page = await browser.open(null, { path, context: { viewport, colorScheme: scheme } });
	await page.screenshot({ path: join(directory, `report-${scheme}.png`) });
	if (scheme === "light") {
		for (const name of ["flame", "table"]) {
			await tab(page, name);
			if (name === "table") {
				await page.focus(".scroll");
				for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
			}
			await page.locator("#views").screenshot({ path: join(directory, `report-${name}.png`) });
		}
	}
	await page.close();
}
await browser.stop();
