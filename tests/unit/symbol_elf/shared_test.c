// SPDX-License-Identifier: MIT
/* shared_test.c: images that several processes have of one file, and facts that are kept with an image. */
#include "child.h"
#include "files.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A process, and the library at `path` in it. */
struct watched {
	struct child child;
	struct mw_modules *modules;
	struct mw_elf *elf; /* the library's */
};

static char directory[64], path[128];

static int setup(void **state)
{
	(void)state;
	(void)strcpy(directory, "/tmp/mw-shared-XXXXXX");
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/library", directory);
	file_copy(SAMPLE_GNU, path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(path);
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

static struct mw_elf *library_of(const struct mw_modules *modules)
{
	for (uint32_t i = 0; i < mw_modules_count(modules); i++)
		if (strcmp(mw_modules_get(modules, i)->path, path) == 0)
			return mw_modules_get(modules, i)->elf;
	return NULL;
}

static void begin(struct watched *watched)
{
	memset(watched, 0, sizeof(*watched));
	assert_null(mw_modules_create(&watched->modules));
	assert_true(child_start(&watched->child, SAMPLE_CHILD, NULL, NULL));
	child_tell(&watched->child, "open", path);
	child_refresh(&watched->child, watched->modules, NULL, NULL);
	watched->elf = library_of(watched->modules);
	assert_non_null(watched->elf);
}

static void end(struct watched *watched)
{
	child_end(&watched->child);
	mw_modules_destroy(watched->modules);
}

static bool is_found(void)
{
	struct mw_elf *elf;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	elf = mw_elf_find_shared(&st);
	mw_elf_unref(elf);
	return elf != NULL;
}

static void processes_share_images(void **state)
{
	struct watched first, second;

	(void)state;
	assert_false(is_found());
	begin(&first);
	begin(&second);
	assert_ptr_equal(first.elf, second.elf);
	for (uint32_t i = 0; i < mw_modules_count(first.modules); i++) {
		const struct mw_module *one = mw_modules_get(first.modules, i);
		const struct mw_module *other = mw_modules_get(second.modules, i);

		assert_string_equal(one->path, other->path);
		/* The vdso has no file. */
		assert_int_equal(one->elf == other->elf, one->inode != 0);
	}
	end(&first);
	assert_true(is_found());
	assert_int_not_equal(symbol_of(second.elf, "sample_other"), 0);
	end(&second);
	assert_false(is_found());
}

static void replaced_files_are_others(void **state)
{
	struct watched first, second, third;

	(void)state;
	begin(&first);
	file_copy(SAMPLE_GNU, path);
	begin(&second);
	assert_ptr_not_equal(first.elf, second.elf);
	begin(&third);
	assert_ptr_equal(second.elf, third.elf);
	end(&first);
	end(&third);
	assert_true(is_found());
	end(&second);
}

/* By way of map_files, where that may be used. */
static void deleted_files_are_shared(void **state)
{
	struct mw_modules *tables[2] = {NULL};
	struct watched watched;

	(void)state;
	begin(&watched);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_null(mw_modules_create(&tables[i]));
		child_refresh(&watched.child, tables[i], NULL, NULL);
	}
	assert_ptr_equal(library_of(tables[0]), library_of(tables[1]));
	mw_modules_destroy(tables[0]);
	mw_modules_destroy(tables[1]);
	end(&watched);
}

/* What a file was is not what it has become, though it is the same file, of the same size, and its time is put back. */
static void overwritten_files_are_others(void **state)
{
	struct watched first, second;
	struct stat st;
	struct timespec times[2];
	uint8_t byte;
	int fd;

	(void)state;
	begin(&first);
	assert_int_equal(stat(path, &st), 0);
	assert_true(first.elf->build_id_size);
	/* The kernel's clock has gone on. */
	(void)usleep(50000);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)first.elf->build_id_note.offset), 1);
	byte ^= 0x55;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)first.elf->build_id_note.offset), 1);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	begin(&second);
	assert_ptr_not_equal(first.elf, second.elf);
	assert_int_equal(second.elf->build_id[0], byte);
	end(&first);
	end(&second);
}

/* The same, where no time tells: what the process has in memory does. */
static void memory_speaks_against_sharing(void **state)
{
	struct watched first, second;
	struct stat st;
	uint8_t byte;
	int fd;

	(void)state;
	begin(&first);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)first.elf->build_id_note.offset), 1);
	byte ^= 0x55;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)first.elf->build_id_note.offset), 1);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	first.elf->bytes.modified = st.st_mtim;
	first.elf->bytes.changed = st.st_ctim;
	assert_true(is_found());
	begin(&second);
	assert_ptr_not_equal(first.elf, second.elf);
	assert_int_equal(second.elf->build_id[0], byte);
	end(&first);
	end(&second);
}

static unsigned made, destroyed;
static bool fails;

static struct mw_error *make(struct mw_elf *elf, const void *context, void **out)
{
	(void)elf;
	if (fails)
		return mw_error_create(MW_ERROR_DATA, 0, "no");
	*out = (void *)(uintptr_t)context;
	made++;
	return NULL;
}

static void destroy(void *fact)
{
	assert_non_null(fact);
	destroyed++;
}

static void facts_are_made_once(void **state)
{
	static const struct mw_elf_fact_kind kind = {make, destroy}, other = {make, destroy};
	static const uint64_t key[2] = {1, 2}, next[2] = {1, 3};
	static const char text[] = "abc";
	struct mw_elf *elf = elf_of(SAMPLE_GNU);
	const void *fact = NULL;

	(void)state;
	fails = true;
	mw_error_destroy(mw_elf_fact(elf, &kind, key, text, &fact));
	assert_null(fact);
	fails = false;
	assert_null(mw_elf_fact(elf, &kind, key, text, &fact));
	assert_ptr_equal(fact, text);
	assert_null(mw_elf_fact(elf, &kind, key, text + 1, &fact));
	assert_ptr_equal(fact, text);
	assert_null(mw_elf_fact(elf, &kind, next, text + 1, &fact));
	assert_ptr_equal(fact, text + 1);
	assert_null(mw_elf_fact(elf, &other, key, text + 2, &fact));
	assert_ptr_equal(fact, text + 2);
	assert_int_equal(made, 3);
	mw_elf_forget(elf, &kind, next);
	mw_elf_forget(elf, &kind, next);
	assert_int_equal(destroyed, 1);
	assert_null(mw_elf_fact(elf, &kind, next, text + 1, &fact));
	assert_int_equal(made, 4);
	mw_elf_unref(elf);
	assert_int_equal(destroyed, 4);
}

UNIT_GROUP(shared)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(processes_share_images, setup, teardown),
		cmocka_unit_test_setup_teardown(replaced_files_are_others, setup, teardown),
		cmocka_unit_test_setup_teardown(deleted_files_are_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(overwritten_files_are_others, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_speaks_against_sharing, setup, teardown),
		cmocka_unit_test(facts_are_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
