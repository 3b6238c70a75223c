// SPDX-License-Identifier: MIT
/* modules_away_test.c: modules whose files are deleted, replaced, nameless, or in another root or mount namespace. */
#include "child.h"
#include "files.h"

#include "proc/root.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A directory with a newline in its name, as nobody should have one; and a path in it. */
static void make_place(char directory[64], char path[128])
{
	(void)strcpy(directory, "/tmp/mw\nmodules-XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0755), 0);
	(void)snprintf(path, 128, "%s/program", directory);
}

static void remove_place(const char *directory, const char *path)
{
	(void)unlink(path);
	assert_int_equal(rmdir(directory), 0);
}

static bool can_use_map_files(void)
{
	struct mw_maps maps = {0};
	const struct mw_mapping *mapping;
	char name[96];
	int fd;

	assert_null(mw_maps_read(getpid(), &maps));
	mapping = mw_maps_find(&maps, (mw_addr)(uintptr_t)can_use_map_files);
	assert_non_null(mapping);
	(void)snprintf(name, sizeof(name), "/proc/self/map_files/%llx-%llx", (unsigned long long)mapping->start,
		       (unsigned long long)mapping->end);
	mw_maps_deinit(&maps);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* After `change` the child's program must be had. */
static void check_after(void (*change)(const char *path), bool deleted)
{
	struct mw_modules *modules = NULL;
	struct mw_module *program;
	char directory[64], path[128];
	struct child child;

	make_place(directory, path);
	file_copy(SAMPLE_CHILD, path);
	assert_true(child_start(&child, path, NULL, NULL));
	change(path);
	assert_null(mw_modules_create(&modules));
	program = child_program(&child, modules);
	assert_string_equal(program->path, path);
	assert_int_equal(program->deleted, deleted);
	assert_non_null(program->elf);
	child_end(&child);
	mw_modules_destroy(modules);
	remove_place(directory, path);
}

static void delete_file(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static void replace_file(const char *path)
{
	file_copy(SAMPLE_STATIC, path);
}

/* The same program with a constant changed: headers alone don't tell it. */
static void rebuild_file(const char *path)
{
	size_t size;
	uint8_t *bytes = file_read(path, &size);
	struct mw_elf *elf = elf_of(path);
	uint8_t *at = memmem(bytes, size, elf->build_id, elf->build_id_size);

	assert_true(elf->build_id_size && at);
	at[3] ^= 0x55;
	file_write(path, bytes, size);
	mw_elf_unref(elf);
	free(bytes);
}

static void reinstall_file(const char *path)
{
	file_copy(SAMPLE_CHILD, path);
}

static void keep_file(const char *path)
{
	(void)path;
}

static void check_all_changes(void)
{
	check_after(keep_file, false);
	check_after(delete_file, true);
	check_after(replace_file, true);
	check_after(rebuild_file, true);
	check_after(reinstall_file, true);
}

static void finds_changed_files(void **state)
{
	(void)state;
	check_all_changes();
}

/* A library without a name must be had, or it must be said what was lacking. */
static void check_nameless_library(void)
{
	struct mw_modules *modules = NULL;
	struct mw_module *module;
	struct child child;
	size_t added, removed;

	assert_null(mw_modules_create(&modules));
	assert_true(child_start(&child, SAMPLE_CHILD, NULL, NULL));
	(void)child_program(&child, modules);
	child_tell(&child, "memfd", SAMPLE_GNU);
	child_refresh(&child, modules, &added, &removed);
	assert_int_equal(added, 1);
	module = mw_modules_get(modules, (uint32_t)mw_modules_count(modules) - 1);
	assert_string_equal(module->path, "/memfd:nameless");
	assert_true(module->deleted);
	if (can_use_map_files()) {
		assert_non_null(module->elf);
		assert_string_equal(module->elf->soname, "libsample.so.7");
	} else {
		assert_non_null(module->why);
		assert_non_null(strstr(module->why, "CAP_CHECKPOINT_RESTORE"));
	}
	child_end(&child);
	mw_modules_destroy(modules);
}

static void finds_nameless_libraries(void **state)
{
	(void)state;
	check_nameless_library();
}

static void finds_them_unprivileged(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	child = fork();
	if (child == 0) {
		if (setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1) || access(SAMPLE_CHILD, R_OK | X_OK))
			_exit(77);
		check_all_changes();
		check_nameless_library();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("nobody may not read the build directory\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool enter_jail(void *directory)
{
	return chroot(directory) == 0 && chdir("/") == 0;
}

/* The path is told as the target sees it, and opened in its root, which links can't leave. */
static void looks_into_a_chroot(void **state)
{
	struct mw_modules *modules = NULL;
	struct mw_module *program;
	char directory[64], path[128], link[128];
	struct child child;
	int fd;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	make_place(directory, path);
	(void)snprintf(link, sizeof(link), "%s/link", directory);
	file_copy(SAMPLE_STATIC, path);
	assert_int_equal(symlink("../../../program", link), 0);
	assert_true(child_start(&child, "/program", enter_jail, directory));
	assert_null(mw_modules_create(&modules));
	program = child_program(&child, modules);
	assert_string_equal(program->path, "/program");
	assert_non_null(program->elf);
	assert_int_equal(program->bias, 0);
	fd = mw_root_open(child.pid, "/link");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mw_root_open(child.pid, "/etc/passwd"), -1);
	child_end(&child);
	mw_modules_destroy(modules);
	assert_int_equal(unlink(link), 0);
	remove_place(directory, path);
}

static bool copy_program(const char *to_path)
{
	char buffer[65536];
	int from = open(SAMPLE_STATIC, O_RDONLY | O_CLOEXEC);
	int to = open(to_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t got;

	if (from < 0 || to < 0)
		return false;
	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)got) != got)
			return false;
	close(from);
	close(to);
	return true;
}

static bool enter_mounts(void *directory)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", directory, "tmpfs", 0, NULL) == 0 && chdir(directory) == 0;
}

static bool enter_namespace(void *directory)
{
	return enter_mounts(directory) && copy_program("program");
}

/* On overlayfs /proc and stat may disagree on where a file is. */
static bool enter_overlay(void *directory)
{
	return enter_mounts(directory) && mkdir("lower", 0755) == 0 && mkdir("upper", 0755) == 0 &&
	       mkdir("work", 0755) == 0 && copy_program("lower/program") &&
	       mount("none", ".", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work") == 0;
}

static void check_namespace(child_setup setup)
{
	struct mw_modules *modules = NULL;
	struct mw_module *program;
	char directory[64], path[128];
	struct child child;

	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	make_place(directory, path);
	if (!child_start(&child, path, setup, directory)) {
		remove_place(directory, path);
		print_message("cannot mount here\n");
		skip();
	}
	/* In our namespace there is no such file. */
	assert_int_equal(access(path, F_OK), -1);
	assert_null(mw_modules_create(&modules));
	program = child_program(&child, modules);
	assert_string_equal(program->path, path);
	assert_false(program->deleted);
	assert_non_null(program->elf);
	child_end(&child);
	mw_modules_destroy(modules);
	remove_place(directory, path);
}

static void looks_into_a_namespace(void **state)
{
	(void)state;
	check_namespace(enter_namespace);
}

static void looks_into_an_overlay(void **state)
{
	(void)state;
	check_namespace(enter_overlay);
}

UNIT_GROUP(modules_away)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_changed_files),      cmocka_unit_test(finds_them_unprivileged),
		cmocka_unit_test(finds_nameless_libraries), cmocka_unit_test(looks_into_a_chroot),
		cmocka_unit_test(looks_into_a_namespace),   cmocka_unit_test(looks_into_an_overlay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
