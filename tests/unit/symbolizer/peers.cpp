// SPDX-License-Identifier: MIT
// peers.cpp: code of all kinds for peers.py: namespaces, templates, lambdas, local classes, much of the standard
// library.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

void *volatile keep;

namespace shop
{
static inline __attribute__((always_inline)) void in()
{
	keep = malloc(9);
}
__attribute__((noinline)) void order()
{
	in();
	asm volatile("");
}
namespace
{
struct basket {
	std::map<std::string, std::vector<int>> items;
	std::unordered_map<int, std::string> names;
	void add(const std::string &name, int count)
	{
		items[name].push_back(count);
		names[count] = name + name;
		auto both = [this, &name](int n) { return items[name].size() + names.count(n); };
		std::function<size_t(int)> f = both;
		std::cout << f(count) << "\n";
	}
	struct inner {
		static int weigh(const basket &b)
		{
			int sum = 0;
			for (auto &[name, counts] : b.items)
				for (int c : counts)
					sum += c * (int)name.size();
			return sum;
		}
	};
};
} // namespace
inline namespace v1
{
template <typename T>
struct till {
	T total{};
	virtual ~till() = default;
	virtual void pay(T amount)
	{
		if (amount < T{})
			throw std::runtime_error("negative " + std::to_string(amount));
		total += amount;
	}
};
} // namespace v1
} // namespace shop

int main(int argc, char **argv)
{
	shop::basket b;
	shop::till<int> a;
	shop::till<double> d;
	std::regex words("([a-z]+)([0-9]*)", std::regex::icase);
	std::ostringstream out;

	shop::order();
	for (int i = 0; i < argc; i++) {
		std::smatch match;
		std::string s = argv[i];
		if (std::regex_search(s, match, words))
			out << match[1] << match.size();
		b.add(s, i);
		a.pay(i);
		d.pay(i * .5);
	}
	std::ifstream file(argv[0]);
	std::string line;
	while (std::getline(file, line) && line.size() > 3)
		out << line;
	auto p = std::make_shared<shop::till<long>>();
	p->pay(3);
	std::thread t([&] { p->pay(shop::basket::inner::weigh(b)); });
	t.join();
	std::cout << out.str().size() << p->total << "\n";
}
