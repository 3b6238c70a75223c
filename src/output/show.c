// SPDX-License-Identifier: MIT
/* show.c: numbers as people read them (line.h). Without locale: a report reads the same everywhere. */
#include "output/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct mw_shown mw_show_count(uint64_t count)
{
	struct mw_shown shown = {0};
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
	size_t at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			shown.text[at++] = ',';
		shown.text[at++] = digits[i];
	}
	return shown;
}

struct mw_shown mw_show_size(uint64_t bytes)
{
	static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	struct mw_shown shown = {0};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(shown.text, sizeof(shown.text), "%u B", (unsigned)bytes);
		return shown;
	}
	/* 1023.95 would be shown as 1024.0. */
	for (; value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(shown.text, sizeof(shown.text), "%.1f %s", value, units[unit]);
	return shown;
}

struct mw_shown mw_show_change(uint64_t from, uint64_t to)
{
	struct mw_shown size = mw_show_size(to > from ? to - from : from - to);
	struct mw_shown shown = {0};

	snprintf(shown.text, sizeof(shown.text), "%s%.40s", to > from ? "+" : to < from ? "-" : "", size.text);
	return shown;
}

struct mw_shown mw_show_seconds(double seconds)
{
	struct mw_shown shown = {0};
	uint64_t whole;

	if (seconds < 0.9995e-6)
		snprintf(shown.text, sizeof(shown.text), "%.0f ns", seconds * 1e9);
	else if (seconds < 0.99995e-3)
		snprintf(shown.text, sizeof(shown.text), "%.1f µs", seconds * 1e6);
	else if (seconds < 0.99995)
		snprintf(shown.text, sizeof(shown.text), "%.1f ms", seconds * 1e3);
	else if (seconds < 119.95)
		snprintf(shown.text, sizeof(shown.text), "%.1f s", seconds);
	else if (whole = (uint64_t)(seconds + 0.5), whole < 7200)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
	else
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 " h %" PRIu64 " min", whole / 3600,
			 whole % 3600 / 60);
	return shown;
}

struct mw_shown mw_show_percent(double part, double whole)
{
	struct mw_shown shown = {0};

	if (whole > 0)
		snprintf(shown.text, sizeof(shown.text), "%.1f %%", part / whole * 100);
	return shown;
}
