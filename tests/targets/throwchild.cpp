/* SPDX-License-Identifier: MIT */
/*
 * throwchild: forks in the middle of a failing operator new, in its new_handler. The child allocates, so that memwatch
 * hears of it, and waits until it may have been cleaned; then std::bad_alloc is thrown through the operator.
 */
#include "target.h"

#include <csignal>
#include <cstdlib>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_US 400000 /* memwatch looks for children every 50 ms */

static pid_t child = -1;

/* One of its own: libstdc++'s is not hooked, as all it asks for it asks malloc for. */
KEEP void *operator new(std::size_t size)
{
	void *block = std::malloc(size);

	while (!block) {
		std::get_new_handler()();
		block = std::malloc(size);
	}
	return block;
}

KEEP void operator delete(void *block) noexcept
{
	std::free(block);
}

KEEP void operator delete(void *block, std::size_t) noexcept
{
	std::free(block);
}

static void fail()
{
	throw std::bad_alloc();
}

static void fork_and_fail()
{
	child = fork();
	if (child == 0) {
		std::free(std::malloc(1));
		usleep(PATIENCE_US);
	}
	fail();
}

/* Does the operator's exception arrive? */
static KEEP bool throws()
{
	std::size_t size = std::size_t(1) << 60;

	OPAQUE(size);
	try {
		char *block = static_cast<char *>(::operator new(size));

		OPAQUE(block);
		::operator delete(block);
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

static void once()
{
	int status = 0;

	std::set_new_handler(fork_and_fail);
	if (!throws())
		target_fail("no exception");
	if (child == 0) {
		/* And one that is thrown when all is as it was. */
		std::set_new_handler(fail);
		_exit(throws() ? 0 : 1);
	}
	if (waitpid(child, &status, 0) != child)
		target_fail("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		target_fail(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? "child: std::terminate" : "child");
}

int main()
{
	target_ready();
	for (int i = 0; i < 3; i++)
		once();
	target_say("children", 3);
	target_done();
	return 0;
}
