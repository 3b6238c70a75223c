/* SPDX-License-Identifier: MIT */
/*
 * templates [ROUNDS]: C++ as it is written: deep template instances, type erasure, containers of containers, regular
 * expressions, and exceptions that fly through all of it. Each part checks what it made.
 */
#include "target.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

namespace
{

using std::string;

/* A tower of instances, each level with a frame, a destructor and a way to throw. */
struct counted {
	static thread_local long alive;
	counted()
	{
		alive++;
	}
	counted(const counted &)
	{
		alive++;
	}
	~counted()
	{
		alive--;
	}
	counted &operator=(const counted &) = default;
};
thread_local long counted::alive = 0;

struct too_deep : std::runtime_error {
	string where;
	explicit too_deep(int level) : std::runtime_error("too deep, by " + std::to_string(level)), where(64, 'w')
	{
	}
};

template <int Level, typename... Held>
struct tower {
	static KEEP string build(int stop, const Held &...held)
	{
		counted mark;
		std::vector<string> parts(2, string(20 + Level, char('a' + Level % 26)));

		if (Level == stop)
			throw too_deep(Level);
		string rest = tower<Level - 1, string, Held...>::build(stop, parts[0], held...);
		return rest.size() < 4000 ? rest + parts[1] : parts[1];
	}
};

template <typename... Held>
struct tower<0, Held...> {
	static KEEP string build(int, const Held &...held)
	{
		counted mark;
		std::tuple<Held...> all(held...);

		return std::apply([](const auto &...each) { return (string() + ... + each); }, all);
	}
};

KEEP void by_tower(int round)
{
	int stop = round % 40 - 10; /* below 1: no exception */
	bool caught = false;

	try {
		string text = tower<24>::build(stop);
		if (text.empty())
			target_fail("a tower built nothing");
	} catch (const too_deep &error) {
		caught = error.where.size() == 64 && string(error.what()) == "too deep, by " + std::to_string(stop);
	}
	if (caught != (stop >= 1 && stop <= 24))
		target_fail("an exception was lost, or changed");
	if (counted::alive != 0)
		target_fail("a destructor was left out");
}

/* Exceptions caught and thrown again on their way, nested in each other. */
KEEP void rethrow(int depth)
{
	std::unique_ptr<string> guard(new string(30 + static_cast<size_t>(depth), 'g'));

	try {
		if (depth == 0)
			throw std::out_of_range("the innermost");
		rethrow(depth - 1);
	} catch (...) {
		if (depth % 3)
			throw;
		std::throw_with_nested(std::runtime_error("level " + std::to_string(depth)));
	}
}

KEEP int nesting(const std::exception &error)
{
	try {
		std::rethrow_if_nested(error);
	} catch (const std::exception &inner) {
		return 1 + nesting(inner);
	}
	return 0;
}

KEEP void by_rethrow(int round)
{
	int depth = round % 12;

	try {
		rethrow(depth);
	} catch (const std::exception &error) {
		if (nesting(error) != depth / 3 + 1)
			target_fail("nested exceptions were lost");
		return;
	}
	target_fail("nothing was thrown");
}

/* Type erasure upon type erasure. */
template <int Level>
std::function<string(const string &)> wrap(std::function<string(const string &)> inner)
{
	if constexpr (Level == 0) {
		return inner;
	} else {
		string tag(40, char('0' + Level % 10));
		return wrap<Level - 1>([inner = std::move(inner), tag](const string &text) {
			return inner(text + tag).substr(0, 400);
		});
	}
}

KEEP void by_function(int round)
{
	auto work = wrap<14>([](const string &text) { return text + text; });

	if (work(std::to_string(round)).size() < 40)
		target_fail("a function lost its text");
}

struct leaf_node;
struct branch_node;
using node = std::variant<std::shared_ptr<leaf_node>, std::shared_ptr<branch_node>>;
struct leaf_node {
	string text;
};
struct branch_node {
	std::map<string, node> children;
};

KEEP node grow(int depth, int round)
{
	if (depth == 0)
		return std::make_shared<leaf_node>(leaf_node{string(50, char('a' + round % 26))});
	auto branch = std::make_shared<branch_node>();
	for (int i = 0; i < 3; i++)
		branch->children.emplace("a key that is long enough " + std::to_string(i), grow(depth - 1, round + i));
	return branch;
}

KEEP size_t count_leaves(const node &one)
{
	return std::visit(
		[](const auto &each) -> size_t {
			if constexpr (std::is_same_v<std::decay_t<decltype(*each)>, leaf_node>)
				return 1;
			else
				return std::accumulate(
					each->children.begin(), each->children.end(), size_t(0),
					[](size_t sum, const auto &pair) { return sum + count_leaves(pair.second); });
		},
		one);
}

KEEP void by_variant(int round)
{
	if (count_leaves(grow(4, round)) != 81)
		target_fail("a tree lost leaves");
}

KEEP void by_regex(int round)
{
	static const std::regex pattern("((a|b)*c)+(\\d+)x?");
	std::smatch found;
	string text = "abbcabc" + std::to_string(round) + "x";

	if (!std::regex_match(text, found, pattern) || found[3] != std::to_string(round))
		target_fail("a regular expression did not match");
}

KEEP void by_sort(int round)
{
	std::vector<string> words;
	std::ostringstream out;

	for (int i = 0; i < 20; i++)
		words.push_back(std::to_string((i * 7919 + round) % 1000) + string(20, '.'));
	std::stable_sort(words.begin(), words.end(), [](const string &left, const string &right) {
		return string(left.rbegin(), left.rend()) < string(right.rbegin(), right.rend());
	});
	for (const auto &word : words)
		out << word << ' ' << word.size() << '\n';
	if (out.str().size() < 400)
		target_fail("a stream lost its text");
}

KEEP void by_bad_alloc()
{
	size_t huge = size_t(1) << 62;

	OPAQUE(huge);
	try {
		char *never = new char[huge];
		OPAQUE(never);
		target_fail("the impossible was given");
	} catch (const std::bad_alloc &) {
	}
}

KEEP void work(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		by_tower(i);
		by_rethrow(i);
		by_function(i);
		by_variant(i);
		by_sort(i);
		if (i % 4 == 0)
			by_regex(i);
		by_bad_alloc();
	}
}

} // namespace

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 100;

	target_ready();
	{
		std::thread other(work, rounds / 2);

		work(rounds);
		other.join();
	}
	target_say("rounds", static_cast<uint64_t>(rounds));
	target_done();
	return 0;
}
