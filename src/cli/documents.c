// SPDX-License-Identifier: MIT
/* documents.c: see documents.h. */
#include "cli/documents.h"

#include "cli/options.h"

#include <string.h>

/* --- the manual page, in the macros of man(7) ------------------------------------------------------------------------ */

/* Text as it is: nothing in it is a request, or a hyphen that is not the one of the keyboard. */
static void put(FILE *out, const char *text, size_t length)
{
	bool begins = true;

	for (size_t i = 0; i < length; i++) {
		if (begins && (text[i] == '.' || text[i] == '\''))
			fputs("\\&", out);
		if (text[i] == '\\')
			fputs("\\e", out);
		else if (text[i] == '-')
			fputs("\\-", out);
		else if (text[i] == '\'')
			fputs("\\(aq", out);
		else if (text[i] == '~')
			fputs("\\(ti", out);
		else if (text[i] == '^')
			fputs("\\(ha", out);
		else
			fputc(text[i], out);
		begins = text[i] == '\n';
	}
}

static void put_all(FILE *out, const char *text)
{
	put(out, text, strlen(text));
}

/* A paragraph a line. */
static void put_paragraphs(FILE *out, const char *text)
{
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		fputs(".PP\n", out);
		put(out, line, length);
		fputc('\n', out);
		line += length + (line[length] == '\n');
	}
}

/* As it stands, line by line. */
static void put_lines(FILE *out, const char *text)
{
	fputs(".PP\n.EX\n", out);
	put_all(out, text);
	fputs(".EE\n", out);
}

static void put_option(FILE *out, const struct mw_cli_option *option)
{
	fputs(".TP\n", out);
	if (option->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
	fputs("\\fB\\-\\-", out);
	put_all(out, option->name);
	fputs("\\fR", out);
	if (option->value) {
		fputs(" \\fI", out);
		put_all(out, option->value);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	put_all(out, option->about);
	fputc('\n', out);
}

static void put_options(FILE *out, const struct mw_cli_command *command)
{
	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name; option++)
		put_option(out, option);
}

static void put_synopses(FILE *out)
{
	fputs(".SH SYNOPSIS\n.nf\n", out);
	for (size_t i = 0; mw_cli_commands[i]; i++)
		for (const char *line = mw_cli_commands[i]->synopsis; *line;) {
			size_t length = strcspn(line, "\n"), text = length;
			const char *remark = strstr(line, "  ");

			/* What is said of it behind it is for --help. */
			if (remark && (size_t)(remark - line) < length)
				text = (size_t)(remark - line);
			put(out, line, text);
			fputc('\n', out);
			line += length + (line[length] == '\n');
		}
	fputs(".fi\n", out);
}

static void put_command(FILE *out, const struct mw_cli_command *command)
{
	fprintf(out, ".SS memwatch %s: %s\n", command->name, command->summary);
	put_paragraphs(out, command->about);
	put_options(out, command);
}

static void put_tail(FILE *out)
{
	fputs(".SH FILTERS\n.PP\nWhat report \\-\\-filter takes.\n", out);
	put_lines(out, mw_cli_command_report.notes);
	fputs(".SH EXIT STATUS\n.TP\n.B 0\nThe window was recorded, and all that was asked for was written.\n"
	      ".TP\n.B 1\nIt was not; a message says what failed, on what, why, and what can be done. No partial "
	      "output file is left behind, except a recording, which can be read up to where it ends. Where the reader "
	      "of a pipe has ended, as head(1) does, there is no message.\n"
	      ".TP\n.B 2\nThe command line is wrong; nothing was done.\n"
	      ".TP\n.B 3\nAs 0, and what \\-\\-fail\\-on names holds; a line on standard error says of what, how\n"
	      "much, and how fast.\n"
	      ".PP\nWhere something failed the status is 1, whatever was found. With \\-\\-fail\\-on it is 1, too,\n"
	      "where nothing was found, but not all was seen: events were lost or calls not hooked, a\n"
	      "recording is cut off, a limit ended the window, no process was watched until the end of \\-d (a\n"
	      "launched command may end before), a process of a name or group, or a child, could not be\n"
	      "watched, the window is shorter than a second and blocks are left, nothing was allocated in it,\n"
	      "or a look at a heap could not read all of it. Lines of which the window is too short to tell\n"
	      "are counted on standard error, and the status is 0.\n"
	      ".PP\nA command that memwatch has launched has its own status in the report.\n"
	      ".SH ENVIRONMENT\n.TP\n.B COLUMNS\nThe width of the terminal, instead of the real one. A report that "
	      "goes elsewhere is wrapped at 120\ncolumns; one that answers a question (\\-\\-by and the like) is not "
	      "wrapped.\n"
	      ".TP\n.B NO_COLOR\nIf set and not empty, nothing is coloured.\n"
	      ".TP\n.B DEBUGINFOD_URLS\nServers to ask for debug information, if libdebuginfod is "
	      "installed; where memwatch is statically linked, if the program debuginfod\\-find is.\n"
	      ".SH SIGNALS\n.TP\n.B SIGINT, SIGTERM, SIGHUP\nThe window ends, memwatch detaches and reports.\n"
	      ".TP\n.B SIGUSR1\nPuts a mark into the recording.\n"
	      ".SH EXAMPLES\n.PP\nWatch a process for a minute:\n",
	      out);
	put_lines(out, "memwatch -p 1234 -d 60\n");
	fputs(".PP\nWrite a recording, and show ten seconds of it by module and function:\n", out);
	put_lines(out, "memwatch -p 1234 -d 60 -o leak.mw\n"
		       "memwatch report leak.mw --from 20 --to 30 --by module,function\n");
	fputs(".PP\nCompare two marks:\n", out);
	put_lines(out, "memwatch -p 1234 -d 60 -o leak.mw --mark-every 10\nmemwatch diff leak.mw --from 1 --to 5\n");
	fputs(".SH SEE ALSO\n.BR ptrace (2),\n.BR gdb (1),\n.BR valgrind (1)\n", out);
}

static void write_manual(FILE *out, const char *version)
{
	const struct mw_cli_command *record = mw_cli_commands[0];

	fprintf(out, ".TH MEMWATCH 1 \"\" \"memwatch %s\" \"User Commands\"\n", version);
	fprintf(out, ".SH NAME\nmemwatch \\- %s\n", record->summary);
	put_synopses(out);
	fputs(".SH DESCRIPTION\n", out);
	put_paragraphs(out, record->about);
	fputs(".SH OPTIONS\n", out);
	put_options(out, record);
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 1; mw_cli_commands[i]; i++)
		put_command(out, mw_cli_commands[i]);
	put_tail(out);
}

/* --- completions ----------------------------------------------------------------------------------------------------- */

/* The first clause: what is shown beside an option. `escaped` have a backslash before them. */
static void put_brief(FILE *out, const char *text, const char *escaped)
{
	const char *end = strstr(text, ". ");
	size_t length = end ? (size_t)(end - text) : strlen(text), clause = strcspn(text, ";:");

	if (clause < length)
		length = clause;
	if (length && text[length - 1] == '.')
		length--;
	for (size_t i = 0; i < length; i++) {
		if (strchr(escaped, text[i]))
			fputc('\\', out);
		/* A quote ends the shell's string, stands by itself, and begins another. */
		fputs(text[i] == '\'' ? "'\\''" : (char[]){text[i], '\0'}, out);
	}
}

/* What completes a value, by mw_cli_option.completion: `before`, and with `after` the option's words between them. */
struct action {
	const char *before, *after;
};

static void put_action(FILE *out, const struct action *actions, const struct mw_cli_option *option)
{
	const struct action *action = &actions[option->completion];

	fputs(action->before ? action->before : actions[MW_COMPLETE_NOTHING].before, out);
	if (action->after)
		fprintf(out, "%s%s", option->words, action->after);
}

/* --- bash --------------------------------------------------------------------------------------------------- */

static const char bash_head[] =
	"# bash completion for memwatch: made from its table of options; changes here are lost.\n"
	"\n"
	"# Words with commas between: what is there already stays, and is not offered again.\n"
	"_memwatch_list() {\n"
	"\tlocal before='' last=$2 word words=()\n"
	"\n"
	"\tif [[ $2 == *,* ]]; then\n"
	"\t\tbefore=${2%,*},\n"
	"\t\tlast=${2##*,}\n"
	"\tfi\n"
	"\tfor word in $1; do\n"
	"\t\t[[ $word == \"$last\"* && ,$before != *\",$word,\"* ]] && words+=(\"$before$word\")\n"
	"\tdone\n"
	"\tCOMPREPLY=(\"${words[@]}\")\n"
	"\tcompopt -o nospace 2>/dev/null\n"
	"}\n"
	"\n"
	"# Ids with the names beside them, which are not inserted. A kernel thread has no command line.\n"
	"_memwatch_processes() {\n"
	"\tlocal before='' last=$1 each pid arguments name\n"
	"\n"
	"\tif [[ $1 == *,* ]]; then\n"
	"\t\tbefore=${1%,*},\n"
	"\t\tlast=${1##*,}\n"
	"\tfi\n"
	"\tfor each in /proc/[0-9]*; do\n"
	"\t\tpid=${each#/proc/}\n"
	"\t\t[[ $pid == \"$last\"* && ,$before != *\",$pid,\"* ]] || continue\n"
	"\t\t{ read -rd '' arguments <\"$each/cmdline\"; } 2>/dev/null || continue\n"
	"\t\t{ read -r name <\"$each/comm\"; } 2>/dev/null || continue\n"
	"\t\tCOMPREPLY+=(\"$before$pid ($name)\")\n"
	"\tdone\n"
	"\t# One that is inserted at once (37, 42: by menu-complete and insert-completions) is the id alone.\n"
	"\tif [[ ${#COMPREPLY[@]} -eq 1 || ${COMP_TYPE-} == 37 || ${COMP_TYPE-} == 42 ]]; then\n"
	"\t\tCOMPREPLY=(\"${COMPREPLY[@]%% *}\")\n"
	"\tfi\n"
	"\tcompopt -o nospace 2>/dev/null\n"
	"}\n"
	"\n"
	"_memwatch_files() {\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
	"}\n"
	"\n"
	"_memwatch_words() {\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$2\")\n"
	"}\n"
	"\n"
	"_memwatch() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\t# --option=value comes as three words.\n"
	"\tif [[ $cur == = ]]; then\n"
	"\t\tcur=\n"
	"\telif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n"
	"\t[[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tif [[ ! $command && ${COMP_WORDS[i]} == -- ]]; then\n"
	"\t\t\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t\t\t_command_offset $((i + 1))\n"
	"\t\t\telif ((i + 1 == COMP_CWORD)); then\n"
	"\t\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
	"\t\t\telse\n"
	"\t\t\t\t_memwatch_files -f \"$cur\"\n"
	"\t\t\tfi\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\tdone\n"
	"\tcase $command:$prev in\n";

static void bash_value(FILE *out, const struct mw_cli_command *command, const struct mw_cli_option *option)
{
	static const struct action actions[] = {
		[MW_COMPLETE_NOTHING] = {"", NULL},
		[MW_COMPLETE_PROCESS] = {"\t\t_memwatch_processes \"$cur\"\n", NULL},
		[MW_COMPLETE_FILE] = {"\t\t_memwatch_files -f \"$cur\"\n", NULL},
		[MW_COMPLETE_DIRECTORY] = {"\t\t_memwatch_files -d \"$cur\"\n", NULL},
		[MW_COMPLETE_WORD] = {"\t\t_memwatch_words '", "' \"$cur\"\n"},
		[MW_COMPLETE_WORDS] = {"\t\t_memwatch_list '", "' \"$cur\"\n"},
		[MW_COMPLETE_OWN] = {NULL, NULL},
	};

	fputc('\t', out);
	if (option->letter)
		fprintf(out, "%s:-%c | ", command->name, option->letter);
	fprintf(out, "%s:--%s)\n", command->name, option->name);
	put_action(out, actions, option);
	fputs("\t\treturn\n\t\t;;\n", out);
}

/* With blanks between. */
static void put_commands(FILE *out)
{
	for (size_t i = 1; mw_cli_commands[i]; i++)
		fprintf(out, "%s%s", i > 1 ? " " : "", mw_cli_commands[i]->name);
}

static void bash_command(FILE *out, const struct mw_cli_command *command)
{
	const char *between = "";

	fprintf(out, "\t%s)\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_memwatch_words '",
		*command->name ? command->name : "''");
	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name;
	     option++, between = " ") {
		fputs(between, out);
		if (option->letter)
			fprintf(out, "-%c ", option->letter);
		fprintf(out, "--%s", option->name);
	}
	fputs("' \"$cur\"\n", out);
	if (!*command->name || command->operands == MW_COMPLETE_OWN) {
		fprintf(out, "\t\telif ((COMP_CWORD == %d)); then\n\t\t\t_memwatch_words '", *command->name ? 2 : 1);
		put_commands(out);
		fputs("' \"$cur\"\n", out);
	} else if (command->operands == MW_COMPLETE_FILE) {
		fputs("\t\telse\n\t\t\t_memwatch_files -f \"$cur\"\n", out);
	}
	fputs("\t\tfi\n\t\t;;\n", out);
}

static void write_bash(FILE *out, const char *version)
{
	(void)version;
	fputs(bash_head, out);
	for (size_t i = 0; mw_cli_commands[i]; i++)
		for (const struct mw_cli_option *option = mw_cli_command_options(mw_cli_commands[i]); option->name;
		     option++)
			if (option->value)
				bash_value(out, mw_cli_commands[i], option);
	fputs("\tesac\n\tcase $command in\n", out);
	for (size_t i = 0; mw_cli_commands[i]; i++)
		bash_command(out, mw_cli_commands[i]);
	fputs("\tesac\n}\n\ncomplete -F _memwatch memwatch\n", out);
}

/* --- zsh ---------------------------------------------------------------------------------------------------- */

static void zsh_option(FILE *out, const struct mw_cli_option *option)
{
	static const struct action actions[] = {
		[MW_COMPLETE_NOTHING] = {" ", NULL},   [MW_COMPLETE_PROCESS] = {"_memwatch_processes", NULL},
		[MW_COMPLETE_FILE] = {"_files", NULL}, [MW_COMPLETE_DIRECTORY] = {"_files -/", NULL},
		[MW_COMPLETE_WORD] = {"(", ")"},       [MW_COMPLETE_WORDS] = {"_sequence compadd - ", ""},
		[MW_COMPLETE_OWN] = {NULL, NULL},
	};

	/* Several names of one option exclude each other. */
	fputs("\t\t", out);
	if (option->letter)
		fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name, option->letter,
			option->value ? "+" : "", option->name, option->value ? "=" : "");
	else
		fprintf(out, "'--%s%s[", option->name, option->value ? "=" : "");
	put_brief(out, option->about, "[]:\\");
	fputc(']', out);
	if (option->value) {
		fputc(':', out);
		for (const char *at = option->value; *at; at++)
			fputs(strchr("[]:\\", *at) ? (char[]){'\\', *at, '\0'} : (char[]){*at, '\0'}, out);
		fputc(':', out);
		put_action(out, actions, option);
	}
	fputs("' \\\n", out);
}

static void zsh_function(FILE *out, const struct mw_cli_command *command)
{
	fprintf(out, "_memwatch_%s() {\n\t_arguments -s : \\\n", *command->name ? command->name : "record");
	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name; option++)
		zsh_option(out, option);
	if (command->operands == MW_COMPLETE_FILE)
		fputs("\t\t'*:recording:_files'\n", out);
	else if (command->operands == MW_COMPLETE_COMMAND)
		fputs("\t\t'(-):command: _command_names -e' \\\n\t\t'*::arguments: _normal'\n", out);
	else if (command->operands == MW_COMPLETE_OWN) {
		fputs("\t\t':command:(", out);
		put_commands(out);
		fputs(")'\n", out);
	} else
		fputs("\t\t&& return 0\n", out);
	fputs("}\n\n", out);
}

static void write_zsh(FILE *out, const char *version)
{
	(void)version;
	fputs("#compdef memwatch\n# zsh completion for memwatch: made from its table of options; changes here are "
	      "lost.\n"
	      "\n"
	      "# Ids with the names beside them. A kernel thread has no command line.\n"
	      "_memwatch_processes() {\n"
	      "\tlocal each arguments name\n"
	      "\tlocal -a pids shown\n"
	      "\n"
	      "\tfor each in /proc/<->(N); do\n"
	      "\t\t{ read -rd $'\\0' arguments <$each/cmdline } 2>/dev/null || continue\n"
	      "\t\t{ read -r name <$each/comm } 2>/dev/null || continue\n"
	      "\t\tpids+=(${each:t})\n"
	      "\t\tshown+=(\"${each:t} ($name)\")\n"
	      "\tdone\n"
	      "\t_sequence _memwatch_pids\n"
	      "}\n"
	      "\n"
	      "_memwatch_pids() {\n"
	      "\tcompadd \"$@\" -l -d shown -a pids\n"
	      "}\n"
	      "\n",
	      out);
	for (size_t i = 0; mw_cli_commands[i]; i++)
		zsh_function(out, mw_cli_commands[i]);
	fputs("_memwatch() {\n\tlocal -a commands=(\n", out);
	for (size_t i = 1; mw_cli_commands[i]; i++) {
		fprintf(out, "\t\t'%s:", mw_cli_commands[i]->name);
		put_brief(out, mw_cli_commands[i]->summary, ":\\");
		fputs("'\n", out);
	}
	fputs("\t)\n\n\tif ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
	      "\t\t_describe command commands\n\t\treturn\n\tfi\n"
	      "\tcase $words[2] in\n",
	      out);
	for (size_t i = 1; mw_cli_commands[i]; i++)
		fprintf(out, "\t%s)\n\t\tshift words\n\t\t((CURRENT--))\n\t\t_memwatch_%s\n\t\t;;\n",
			mw_cli_commands[i]->name, mw_cli_commands[i]->name);
	fputs("\t*)\n\t\t_memwatch_record\n\t\t;;\n\tesac\n}\n\n_memwatch \"$@\"\n", out);
}

/* --- fish --------------------------------------------------------------------------------------------------- */

static void fish_command(FILE *out, const struct mw_cli_command *command)
{
	static const struct action actions[] = {
		[MW_COMPLETE_NOTHING] = {" -x", NULL},
		[MW_COMPLETE_PROCESS] = {" -x -a '(__fish_append , (__memwatch_processes))'", NULL},
		[MW_COMPLETE_FILE] = {" -r -F", NULL},
		[MW_COMPLETE_DIRECTORY] = {" -x -a '(__fish_complete_directories)'", NULL},
		[MW_COMPLETE_WORD] = {" -x -a '", "'"},
		[MW_COMPLETE_WORDS] = {" -x -a '(__fish_append , ", ")'"},
		[MW_COMPLETE_OWN] = {NULL, NULL},
	};
	const char *condition = *command->name ? "__fish_seen_subcommand_from " : "__memwatch_records";

	for (const struct mw_cli_option *option = mw_cli_command_options(command); option->name; option++) {
		fprintf(out, "complete -c memwatch -n '%s%s' -l %s", condition, command->name, option->name);
		if (option->letter)
			fprintf(out, " -s %c", option->letter);
		if (option->value)
			put_action(out, actions, option);
		fputs(" -d '", out);
		put_brief(out, option->about, "\\");
		fputs("'\n", out);
	}
	if (*command->name && command->operands == MW_COMPLETE_FILE)
		fprintf(out, "complete -c memwatch -n '__fish_seen_subcommand_from %s' -F\n", command->name);
	if (command->operands == MW_COMPLETE_OWN) {
		fprintf(out, "complete -c memwatch -n '__fish_seen_subcommand_from %s' -a '", command->name);
		put_commands(out);
		fputs("'\n", out);
	}
}

static void write_fish(FILE *out, const char *version)
{
	(void)version;
	fputs("# fish completion for memwatch: made from its table of options; changes here are lost.\n\n"
	      "# Ids with the names beside them. A kernel thread has no command line.\n"
	      "function __memwatch_processes\n"
	      "\tfor each in /proc/*\n"
	      "\t\tstring match -qr '^/proc/[0-9]+$' $each; or continue\n"
	      "\t\tset -l arguments\n"
	      "\t\tset -l name\n"
	      "\t\tbegin; read -z arguments <$each/cmdline; end 2>/dev/null; or continue\n"
	      "\t\tbegin; read name <$each/comm; end 2>/dev/null; or continue\n"
	      "\t\tprintf '%s\\t%s\\n' (string replace /proc/ '' $each) $name\n"
	      "\tend\n"
	      "end\n"
	      "\n"
	      "function __memwatch_records\n\tnot __fish_seen_subcommand_from ",
	      out);
	put_commands(out);
	fputs("\nend\n\ncomplete -c memwatch -f\n", out);
	for (size_t i = 1; mw_cli_commands[i]; i++) {
		fprintf(out, "complete -c memwatch -n __fish_use_subcommand -a %s -d '", mw_cli_commands[i]->name);
		put_brief(out, mw_cli_commands[i]->summary, "\\");
		fputs("'\n", out);
	}
	for (size_t i = 0; mw_cli_commands[i]; i++)
		fish_command(out, mw_cli_commands[i]);
}

/* --- all ------------------------------------------------------------------------------------------------------------- */

bool mw_documents_write(const char *kind, FILE *out, const char *version)
{
	static const struct {
		const char *name;
		void (*write)(FILE *out, const char *version);
	} kinds[] = {
		{"man", write_manual},
		{"bash", write_bash},
		{"zsh", write_zsh},
		{"fish", write_fish},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i].name) != 0)
			continue;
		if (out)
			kinds[i].write(out, version);
		return true;
	}
	return false;
}
