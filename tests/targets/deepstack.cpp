/* SPDX-License-Identifier: MIT */
/*
 * deepstack: some sixty different stacks, each of which allocates a size of its own, through all that
 * stacks are made of: program and library without frame pointers, libc calling back (qsort), C++
 * templates, virtual calls and lambdas, exceptions on their way through frames, signal handlers on
 * the normal and an alternate stack, variable-size and realigned frames, inlined functions.
 */
#include "deep.h"

#include <alloca.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>

static void deep_go(unsigned level);

template <unsigned N>
KEEP void deep_chain(unsigned level)
{
	volatile unsigned here = level;

	deep_take();
	if constexpr (N > 0)
		deep_chain<N - 1>(level);
	else
		deep_go(level + 1);
	here = here + 1;
}

namespace deep
{
struct shape {
	virtual ~shape() = default;
	virtual void visit(unsigned level) = 0;
};

template <typename T>
struct holder : shape {
	T value{};
	KEEP void visit(unsigned level) override
	{
		deep_take();
		value += T(1);
		deep_go(level + 1);
		value += T(1);
	}
};

struct closer {
	unsigned level;
	~closer()
	{
		deep_take(); /* while an exception passes, at the last level */
	}
};
} // namespace deep

KEEP static void deep_throw(unsigned level)
{
	deep::closer close{level};
	throw std::runtime_error("thrown through allocating frames");
}

KEEP static void deep_catch(unsigned level)
{
	try {
		deep_throw(level);
	} catch (const std::runtime_error &) {
		deep_take();
	}
	deep_go(level + 1);
}

KEEP static void deep_variable(unsigned level)
{
	volatile char *room = static_cast<char *>(alloca(100 + level * 16));

	room[0] = 1;
	deep_take();
	deep_go(level + 1);
	room[1] = room[0];
}

KEEP static void deep_aligned(unsigned level)
{
	alignas(64) volatile char room[256];

	room[0] = 1;
	deep_take();
	deep_go(level + 1);
	room[1] = room[0];
}

static volatile sig_atomic_t signal_level;

extern "C" void deep_handler(int)
{
	deep_take();
	deep_go(static_cast<unsigned>(signal_level) + 1);
	signal_level = 0;
}

KEEP static void deep_signal(unsigned level, int number)
{
	signal_level = static_cast<sig_atomic_t>(level);
	raise(number);
	signal_level = -1;
}

KEEP static void deep_lambda(unsigned level)
{
	std::function<void(unsigned)> call = [](unsigned at) {
		deep_take();
		deep_go(at + 1);
	};
	call(level);
}

/* One kind of frame a level, in the order of their difficulty. */
static void deep_go(unsigned level)
{
	static deep::holder<int> ints;
	static deep::holder<double> doubles;

	switch (level) {
	case 0:
		return deep_chain<10>(level);
	case 1:
		return deep_library_step(deep_go, 2);
	case 2:
		return deep_chain<7>(level);
	case 3:
		return deep_library_sort(deep_go, 4);
	case 4:
		deep_take();
		return static_cast<deep::shape &>(ints).visit(level);
	case 5:
		return static_cast<deep::shape &>(doubles).visit(level);
	case 6:
		return deep_catch(level);
	case 7:
		return deep_variable(level);
	case 8:
		return deep_aligned(level);
	case 9:
		return deep_lambda(level);
	case 10:
		return deep_signal(level, SIGUSR1);
	case 11:
		return deep_chain<4>(level);
	case 12:
		return deep_library_step(deep_go, 13);
	case 13:
		return deep_chain<12>(level);
	case 14:
		return deep_library_sort(deep_go, 15);
	case 15:
		return deep_signal(level, SIGUSR2);
	case 16:
		return deep_chain<9>(level);
	default:
		deep_take();
	}
}

static void handle(int number, int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = deep_handler;
	action.sa_flags = flags | SA_NODEFER;
	sigaction(number, &action, nullptr);
}

int main()
{
	static char alternate[1 << 18];
	stack_t stack = {};

	stack.ss_sp = alternate;
	stack.ss_size = sizeof(alternate);
	sigaltstack(&stack, nullptr);
	handle(SIGUSR1, 0);
	handle(SIGUSR2, SA_ONSTACK);
	target_ready();
	deep_go(0);
	target_say("stacks", deep_taken());
	target_say("first_size", DEEP_FIRST_SIZE);
	target_done();
	return 0;
}
