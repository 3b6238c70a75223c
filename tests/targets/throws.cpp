/* SPDX-License-Identifier: MIT */
/*
 * throws MODE: all the ways to leave operator new and what calls it but by returning. The operators are the program's
 * own in the build with THROWS_OWN, libstdc++'s otherwise. How often the new_handler was called, and destructors ran,
 * must be what it is when nobody looks on.
 *
 * handler    the new_handler throws bad_alloc, throws a class of the program's own, or gives up a reserve so that the
 *            operator succeeds at its third attempt
 * jump       the new_handler leaves by longjmp
 * switch     the new_handler switches to another context, which allocates, and comes back; or never comes back
 * exit       the new_handler ends its thread by pthread_exit; others are cancelled in it
 * construct  constructors throw amidst new, new[] and make_shared: what was allocated is given back
 * cross      exceptions go from thread to thread by exception_ptr, with blocks inside
 */
#include "target.h"

#include <atomic>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

static std::atomic<uint64_t> operator_calls, handler_calls, destroyed, constructed, caught;

#ifdef THROWS_OWN
/* Gives nothing to who asks for too much, as often as it is asked. */
KEEP void *operator new(std::size_t size)
{
	operator_calls++;
	for (;;) {
		void *block = std::malloc(size);
		std::new_handler handler;

		if (block)
			return block;
		handler = std::get_new_handler();
		if (!handler)
			throw std::bad_alloc();
		handler();
	}
}

KEEP void operator delete(void *block) noexcept
{
	std::free(block);
}

KEEP void operator delete(void *block, std::size_t) noexcept
{
	std::free(block);
}
#endif

static const std::size_t too_much = std::size_t(1) << 60;
static const uint64_t rounds = 150;

struct guard {
	~guard()
	{
		destroyed++;
	}
};

static KEEP void *ask(std::size_t size)
{
	guard here;

	OPAQUE(size);
	return ::operator new(size);
}

static KEEP void throws_pair(std::size_t size)
{
	void *block = ::operator new(size);

	OPAQUE(block);
	std::memset(block, 'p', size);
	::operator delete(block);
}

static KEEP void throws_leak()
{
	void *block = ::operator new(59);

	OPAQUE(block);
}

static void expect(std::atomic<uint64_t> &counter, uint64_t wanted, const char *what)
{
	if (counter != wanted) {
		target_say(what, counter);
		target_fail("it was done another number of times");
	}
}

/* What happened on the way beside what is allocated in every round. */
static void say_rounds(uint64_t done)
{
	target_say("throws_pair.transient.count", done);
	target_say("throws_pair.impacting.count", 0);
	target_say("throws_leak.impacting.count", done);
	target_say("throws_leak.impacting.bytes", done * 59);
	target_say("ask.impacting.count", 0);
}

static void each_round(std::size_t i)
{
	throws_pair(1 + i % 300);
	throws_leak();
}

/* --- handler --- */

struct out_of_all : std::bad_alloc {
	std::string why = std::string(100, 'o');

	const char *what() const noexcept override
	{
		return why.c_str();
	}
};

static uint64_t attempts;

static void throw_plain()
{
	handler_calls++;
	throw std::bad_alloc();
}

static void throw_own()
{
	handler_calls++;
	throw out_of_all();
}

static void give_up_third()
{
	handler_calls++;
	if (++attempts == 3)
		std::set_new_handler(nullptr);
}

static void by_handler()
{
	for (std::size_t i = 0; i < rounds; i++) {
		attempts = 0;
		std::set_new_handler(i % 3 == 0 ? throw_plain : i % 3 == 1 ? throw_own : give_up_third);
		try {
			void *block = ask(too_much);

			OPAQUE(block);
		} catch (const out_of_all &e) {
			if (i % 3 != 1 || std::strlen(e.what()) != 100)
				target_fail("another exception came");
			caught++;
		} catch (const std::bad_alloc &) {
			if (i % 3 == 1)
				target_fail("another exception came");
			caught++;
		}
		std::set_new_handler(nullptr);
		each_round(i);
	}
	expect(caught, rounds, "caught");
	expect(destroyed, rounds, "destroyed");
	expect(handler_calls, rounds / 3 * 5, "handler_calls");
	say_rounds(rounds);
}

/* --- jump --- */

static jmp_buf back;

static void jump_back()
{
	handler_calls++;
	std::longjmp(back, 1);
}

static KEEP void *ask_plainly(std::size_t size)
{
	OPAQUE(size);
	return ::operator new(size);
}

static void by_jump()
{
	static volatile std::size_t i;

	std::set_new_handler(jump_back);
	for (i = 0; i < rounds * 10; i++) {
		if (setjmp(back) == 0) {
			void *block = ask_plainly(too_much);

			OPAQUE(block);
			target_fail("the impossible was given");
		}
		each_round(i);
	}
	expect(handler_calls, rounds * 10, "handler_calls");
	say_rounds(rounds * 10);
}

/* --- switch --- */

static ucontext_t main_context, other_context;
static bool comes_back;
static uint64_t switched;

static void other_main()
{
	for (;;) {
		throws_pair(40);
		switched++;
		swapcontext(&other_context, &main_context);
	}
}

static void switch_away()
{
	handler_calls++;
	if (!comes_back) {
		/* From here nobody goes on. */
		setcontext(&main_context);
	}
	swapcontext(&main_context, &other_context);
	throw std::bad_alloc();
}

static KEEP void ask_and_leave()
{
	static volatile bool left;

	left = false;
	getcontext(&main_context);
	if (!left) {
		left = true;
		void *block = ask_plainly(too_much);

		OPAQUE(block);
		target_fail("the impossible was given");
	}
}

static KEEP void ask_and_catch()
{
	try {
		void *block = ask(too_much);

		OPAQUE(block);
	} catch (const std::bad_alloc &) {
		caught++;
	}
}

static void by_switch()
{
	static char stack[64 * 1024];

	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&other_context, other_main, 0);
	std::set_new_handler(switch_away);
	for (std::size_t i = 0; i < rounds; i++) {
		comes_back = i % 2;
		if (comes_back)
			ask_and_catch();
		else
			ask_and_leave();
		each_round(i);
	}
	expect(handler_calls, rounds, "handler_calls");
	expect(caught, rounds / 2, "caught");
	expect(destroyed, rounds / 2, "destroyed");
	if (switched != rounds / 2)
		target_fail("the other context did not run");
	say_rounds(rounds);
	target_say("throws_pair.transient.count", rounds + rounds / 2);
	target_say("throws_leak.impacting.count", rounds);
	target_say("throws_leak.impacting.bytes", rounds * 59);
}

/* --- exit --- */

static bool cancels;

static void end_thread()
{
	handler_calls++;
	if (!cancels)
		pthread_exit(nullptr);
	pthread_cancel(pthread_self());
	pthread_testcancel();
	target_fail("a cancelled thread went on");
}

static void *be_ended(void *unused)
{
	guard here;
	void *block;

	each_round(3);
	block = ask(too_much);
	OPAQUE(block);
	target_fail("an ended thread went on");
	return unused;
}

static void by_exit()
{
	std::set_new_handler(end_thread);
	for (std::size_t i = 0; i < rounds; i++) {
		void *result;
		pthread_t thread;

		cancels = i % 2;
		if (pthread_create(&thread, nullptr, be_ended, nullptr) || pthread_join(thread, &result) ||
		    result != (cancels ? PTHREAD_CANCELED : nullptr))
			target_fail("a thread did not end as it was to");
	}
	expect(handler_calls, rounds, "handler_calls");
	expect(destroyed, 2 * rounds, "destroyed");
	say_rounds(rounds);
}

/* --- construct --- */

struct fragile {
	char room[120];
	std::string text = std::string(200, 'f');

	fragile()
	{
		if (++constructed % 5 == 0)
			throw std::runtime_error("the fifth");
	}
	~fragile()
	{
		destroyed++;
	}
};

static KEEP void construct_one()
{
	fragile *one = new fragile;

	OPAQUE(one);
	delete one;
}

static KEEP void construct_many()
{
	fragile *many = new fragile[5];

	OPAQUE(many);
	target_fail("one of five was to throw");
}

static KEEP void construct_shared()
{
	std::vector<std::shared_ptr<fragile>> held;

	for (;;)
		held.push_back(std::make_shared<fragile>());
}

static KEEP void construct_all()
{
	for (std::size_t i = 0; i < rounds; i++) {
		try {
			if (i % 3 == 0)
				construct_many();
			else if (i % 3 == 1)
				construct_shared();
			else
				for (;;)
					construct_one();
		} catch (const std::runtime_error &e) {
			if (std::strcmp(e.what(), "the fifth") == 0)
				caught++;
		}
	}
}

static void by_construction()
{
	construct_all();
	for (std::size_t i = 0; i < rounds; i++)
		each_round(i);
	expect(caught, rounds, "caught");
	expect(constructed, rounds * 5, "constructed");
	expect(destroyed, rounds * 4, "destroyed");
	say_rounds(rounds);
	target_say("construct_all.impacting.count", 0);
	target_say("construct_all.impacting.bytes", 0);
}

/* --- cross --- */

struct parcel : std::runtime_error {
	std::vector<int> numbers;

	explicit parcel(int seed) : std::runtime_error(std::string(150, 'x')), numbers(1000, seed)
	{
	}
};

static std::exception_ptr carried[4];
static pthread_barrier_t meet;

static KEEP void throw_parcel(int depth, int seed)
{
	guard here;
	void *block = ::operator new(64);
	std::unique_ptr<char[]> held(new char[77]);
	char *at = held.get();

	OPAQUE(at);
	::operator delete(block);
	if (depth == 0)
		throw parcel(seed);
	throw_parcel(depth - 1, seed);
	destroyed += 1000; /* never */
}

static KEEP void catch_parcel(std::exception_ptr from, int seed)
{
	try {
		std::rethrow_exception(from);
	} catch (const parcel &p) {
		if (p.numbers.size() != 1000 || p.numbers[999] != seed || std::strlen(p.what()) != 150)
			target_fail("an exception was changed on its way");
		caught++;
	}
}

static void cross_round(int self, int round)
{
	try {
		throw_parcel(6, self * 1000 + round);
	} catch (...) {
		carried[self] = std::current_exception();
	}
	pthread_barrier_wait(&meet);
	catch_parcel(carried[(self + 1) % 4], (self + 1) % 4 * 1000 + round);
	pthread_barrier_wait(&meet);
	carried[self] = nullptr;
	pthread_barrier_wait(&meet);
}

static void *cross_thread(void *number)
{
	for (int round = 0; round < static_cast<int>(rounds) / 2; round++) {
		cross_round(static_cast<int>(reinterpret_cast<intptr_t>(number)), round);
		each_round(static_cast<std::size_t>(round));
	}
	return nullptr;
}

static void by_crossing()
{
	pthread_t threads[4];

	pthread_barrier_init(&meet, nullptr, 4);
	for (intptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], nullptr, cross_thread, reinterpret_cast<void *>(i)))
			target_fail("pthread_create");
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	expect(caught, rounds * 2, "caught");
	expect(destroyed, rounds * 2 * 7, "destroyed");
	say_rounds(rounds * 2);
	target_say("cross_round.impacting.count", 0);
	target_say("throw_parcel.impacting.count", 0);
}

static const struct {
	const char *name;
	void (*run)();
} modes[] = {{"handler", by_handler},        {"jump", by_jump},     {"switch", by_switch}, {"exit", by_exit},
	     {"construct", by_construction}, {"cross", by_crossing}};

/* What a runtime allocates once for all, when the first exception comes. */
static void warm_up()
{
	try {
		throw std::runtime_error("the first");
	} catch (const std::exception &) {
		std::exception_ptr kept = std::current_exception();
	}
	/* libgcc_s, for pthread_exit. */
	std::thread([] { pthread_exit(nullptr); }).join();
}

int main(int argc, char **argv)
{
	warm_up();
	for (const auto &mode : modes) {
		if (argc < 2 || std::strcmp(argv[1], mode.name) != 0)
			continue;
		operator_calls = 0;
		target_ready();
		mode.run();
		std::set_new_handler(nullptr);
		target_say("operator_calls", operator_calls);
		target_done();
		return 0;
	}
	target_fail("usage: throws MODE");
}
