// SPDX-License-Identifier: MIT
/* advice.c: see advice.h. */
#include "cli/advice.h"

#include "cli/paragraph.h"

#include <stdlib.h>
#include <string.h>

#define INDENT 4u

/* Is it where packages put their files? */
static bool in_system(const char *path)
{
	static const char *const places[] = {"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/"};

	if (strncmp(path, "/usr/local/", strlen("/usr/local/")) == 0)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

bool mw_advice_has_command(const struct mw_advice *advice, const struct mw_lacking *file)
{
	switch (advice->distribution->packaging) {
	case MW_PACKAGING_FEDORA:
	case MW_PACKAGING_SUSE:
	case MW_PACKAGING_ARCH:
		return in_system(file->path);
	case MW_PACKAGING_UNKNOWN:
		return false;
	default:
		return *file->debug;
	}
}

static bool is_meant(const struct mw_advice *advice, size_t i, bool runtime)
{
	return advice->files[i].runtime == runtime && mw_advice_has_command(advice, &advice->files[i]);
}

static bool any_meant(const struct mw_advice *advice, bool runtime)
{
	for (size_t i = 0; i < advice->count; i++)
		if (is_meant(advice, i, runtime))
			return true;
	return false;
}

static void begin_command(struct mw_paragraph *line, FILE *out, const struct mw_advice *advice)
{
	fprintf(out, "%*s", (int)INDENT, "");
	mw_paragraph_begin(line, out, advice->width, INDENT, INDENT);
	line->end = " \\";
}

/* Names of packages, each once; also of those that the other command names already. */
static void put_packages(struct mw_paragraph *line, const struct mw_advice *advice, bool runtime)
{
	for (size_t i = 0; i < advice->count; i++) {
		bool again = false;

		for (size_t j = 0; j < advice->count && !again; j++)
			again = (advice->files[j].runtime != runtime ? runtime : j < i) &&
				strcmp(advice->files[j].debug, advice->files[i].debug) == 0;
		if (is_meant(advice, i, runtime) && !again)
			mw_paragraph_word(line, advice->files[i].debug);
	}
}

static bool any_new_package(const struct mw_advice *advice)
{
	for (size_t i = 0; i < advice->count; i++) {
		bool named = false;

		for (size_t j = 0; j < advice->count && !named; j++)
			named = !advice->files[j].runtime &&
				strcmp(advice->files[j].debug, advice->files[i].debug) == 0;
		if (is_meant(advice, i, true) && !named)
			return true;
	}
	return false;
}

static void put_paths(struct mw_paragraph *line, const struct mw_advice *advice, bool runtime)
{
	for (size_t i = 0; i < advice->count; i++) {
		char *word = is_meant(advice, i, runtime) ? mw_shell_word(advice->files[i].path) : NULL;

		if (word)
			mw_paragraph_word(line, word);
		free(word);
	}
}

/* "… $(rpm -qf FILE FILE)": which packages they are of only rpm knows. */
static void put_rpm(FILE *out, const struct mw_advice *advice, bool runtime, const char *begin)
{
	struct mw_paragraph line;

	begin_command(&line, out, advice);
	mw_paragraph_printf(&line, "%s%s", advice->sudo, begin);
	put_paths(&line, advice, runtime);
	fputc(')', out);
	mw_paragraph_end(&line);
}

void mw_advice_command(FILE *out, const struct mw_advice *advice, bool runtime)
{
	enum mw_packaging packaging = advice->distribution->packaging;
	struct mw_paragraph line;

	if (!any_meant(advice, runtime))
		return;
	switch (packaging) {
	case MW_PACKAGING_FEDORA:
		put_rpm(out, advice, runtime, "dnf debuginfo-install $(rpm -qf");
		return;
	case MW_PACKAGING_SUSE:
		put_rpm(out, advice, runtime, "zypper install $(rpm -qf --qf '%{NAME}-debuginfo '");
		return;
	case MW_PACKAGING_ARCH:
		/* One for all files. */
		if (!runtime || !any_meant(advice, false))
			fprintf(out, "%*sexport DEBUGINFOD_URLS=%s\n", (int)INDENT, "",
				mw_distribution_debuginfod(packaging));
		return;
	default:
		if (runtime && !any_new_package(advice))
			return;
		begin_command(&line, out, advice);
		mw_paragraph_printf(&line, "%s%s", advice->sudo,
				    packaging == MW_PACKAGING_ALPINE ? "apk add" : "apt install");
		put_packages(&line, advice, runtime);
		mw_paragraph_end(&line);
	}
}

/* --- in words ------------------------------------------------------------------------------------------ */

static void put_words(FILE *out, const struct mw_advice *advice, const char *text)
{
	struct mw_paragraph words;

	fputs("  ", out);
	mw_paragraph_begin(&words, out, advice->width, 2, 2);
	mw_paragraph_text(&words, text);
	mw_paragraph_end(&words);
}

/* How many of the files' packages … */
static size_t count_known(const struct mw_advice *advice, enum mw_package_known known, bool symbols_only)
{
	size_t count = 0;

	for (size_t i = 0; i < advice->count; i++) {
		const char *name = advice->files[i].debug;

		count += *name && advice->files[i].known == known && (!symbols_only || strstr(name, "-dbgsym"));
	}
	return count;
}

static void need_debian(FILE *out, const struct mw_advice *advice)
{
	const char *codename = *advice->distribution->codename ? advice->distribution->codename : "CODENAME";

	put_words(out, advice,
		  "Packages -dbgsym stand in an archive of their own, debian-debug. Where apt does not have it yet:");
	fprintf(out,
		"    echo deb http://deb.debian.org/debian-debug %s-debug main |\n"
		"        %stee /etc/apt/sources.list.d/debug.list && %sapt update\n",
		codename, advice->sudo, advice->sudo);
}

static void need_ubuntu(FILE *out, const struct mw_advice *advice)
{
	const char *codename = *advice->distribution->codename ? advice->distribution->codename : "CODENAME";

	put_words(out, advice,
		  "Packages -dbgsym stand in an archive of their own, ddebs. Where apt does not have it yet:");
	fprintf(out, "    %sapt install ubuntu-dbgsym-keyring\n", advice->sudo);
	for (unsigned i = 0; i < 2; i++)
		fprintf(out,
			"    echo deb http://ddebs.ubuntu.com %s%s main restricted universe multiverse |\n"
			"        %stee -a /etc/apt/sources.list.d/ddebs.list\n",
			codename, i ? "-updates" : "", advice->sudo);
	fprintf(out, "    %sapt update\n", advice->sudo);
}

static void tell_installed(FILE *out, const struct mw_advice *advice)
{
	struct mw_paragraph words;

	if (!count_known(advice, MW_PACKAGE_INSTALLED, false))
		return;
	fputs("  ", out);
	mw_paragraph_begin(&words, out, advice->width, 2, 2);
	mw_paragraph_text(&words, "Installed already, but of another version than what is running:");
	for (size_t i = 0; i < advice->count; i++)
		if (advice->files[i].known == MW_PACKAGE_INSTALLED)
			mw_paragraph_word(&words, advice->files[i].debug);
	mw_paragraph_text(&words, "(upgrade both, and restart the program).");
	mw_paragraph_end(&words);
}

void mw_advice_needs(FILE *out, const struct mw_advice *advice)
{
	bool dbgsym = count_known(advice, MW_PACKAGE_ABSENT, true) || count_known(advice, MW_PACKAGE_UNSURE, true);

	tell_installed(out, advice);
	if (!any_meant(advice, false) && !any_meant(advice, true))
		return;
	switch (advice->distribution->packaging) {
	case MW_PACKAGING_DEBIAN:
		if (dbgsym)
			need_debian(out, advice);
		break;
	case MW_PACKAGING_UBUNTU:
		if (dbgsym)
			need_ubuntu(out, advice);
		break;
	case MW_PACKAGING_SUSE:
		put_words(out, advice,
			  "The repositories with debug information have to be enabled: \"zypper repos\" lists them, "
			  "\"zypper modifyrepo --enable NAME\" enables one.");
		break;
	case MW_PACKAGING_ALPINE:
		put_words(out, advice, "Not every package of Alpine has one with debug information.");
		break;
	case MW_PACKAGING_ARCH:
		put_words(
			out, advice,
			"Arch has no packages with debug information: they come from that server when memwatch is run "
			"with this set, and libdebuginfod is installed (package debuginfod).");
		break;
	default:
		break;
	}
}

void mw_advice_others(FILE *out, const struct mw_advice *advice)
{
	bool any = false;

	for (size_t i = 0; i < advice->count; i++) {
		const struct mw_lacking *file = &advice->files[i];
		struct mw_paragraph line;

		if (mw_advice_has_command(advice, file))
			continue;
		if (!any)
			put_words(out, advice,
				  "No package is known of these: build them with -g, or put their debug information "
				  "where it is looked for:");
		any = true;
		fputs("    ", out);
		mw_paragraph_begin(&line, out, 0, INDENT, INDENT + 2);
		mw_paragraph_word(&line, file->path);
		if (strlen(file->build_id) > 2)
			mw_paragraph_printf(&line, "/usr/lib/debug/.build-id/%.2s/%s.debug", file->build_id,
					    file->build_id + 2);
		mw_paragraph_end(&line);
	}
}
