// SPDX-License-Identifier: MIT
// fleetxx MODE BOARD LIFE: as fleet, with the C++ runtime: `exceptions` and `cxx`; see fleet.h.
#include "fleet.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

struct board *fleet_board;

namespace
{

std::int64_t objects; // alive; of one thread

void wrong(const char *what)
{
	if (__atomic_fetch_add(&fleet_board->wrong, 1, __ATOMIC_SEQ_CST) == 0)
		std::strncpy(fleet_board->text, what, BOARD_TEXT - 1);
	_exit(3);
}

void advance(unsigned number)
{
	struct timespec rest = {0, 2000000};

	fleet_board->counter[number] = fleet_board->counter[number] + 1;
	if (!fleet_board->full)
		nanosleep(&rest, nullptr);
}

struct thing {
	std::string name;
	explicit thing(int number) : name("thing number " + std::to_string(number) + std::string(40, 'x'))
	{
		if (number % 3 == 0)
			throw std::runtime_error(name);
		objects++;
	}
	thing(const thing &) = delete;
	thing &operator=(const thing &) = delete;
	~thing()
	{
		objects--;
	}
};

__attribute__((noinline)) int deep(int depth, int number)
{
	thing first(number * 3 + 1);
	std::unique_ptr<thing> second(new thing(number * 3 + 2));

	if (depth == 0)
		throw std::runtime_error(first.name + second->name);
	return deep(depth - 1, number + 1) + static_cast<int>(first.name.size());
}

void exceptions_round(int number)
{
	std::size_t huge = static_cast<std::size_t>(1) << 62;
	int caught = 0;

	__asm__ volatile("" : "+r"(huge));
	try {
		deep(12, number);
	} catch (const std::runtime_error &error) {
		caught += std::strstr(error.what(), "thing number") != nullptr;
	}
	try {
		delete new thing(number * 3); // throws: the memory is given back by the compiler's code
	} catch (const std::runtime_error &error) {
		caught += std::strncmp(error.what(), "thing number ", 13) == 0;
	}
	try {
		::operator delete(::operator new(huge));
	} catch (const std::bad_alloc &) {
		caught++;
	}
	if (::operator new(huge, std::nothrow) != nullptr)
		wrong("operator new gave the impossible");
	if (caught != 3)
		wrong("an exception was not caught");
	if (objects != 0)
		wrong("objects are miscounted after exceptions");
}

void exceptions_work(unsigned counter)
{
	for (int number = 1;; number = number % 100000 + 1) {
		exceptions_round(number);
		advance(counter);
	}
}

void cxx_round(unsigned seed)
{
	std::map<std::string, std::vector<std::string>> index;
	std::size_t expected = 0, found = 0;

	for (unsigned i = 0; i < 60; i++) {
		std::string word = "word " + std::to_string((i * 7919 + seed) % 40);
		index[word].push_back(word + std::string(i, 'y'));
		expected += word.size() + i;
	}
	for (const auto &entry : index) {
		for (const auto &text : entry.second) {
			if (text.compare(0, entry.first.size(), entry.first) != 0)
				wrong("a string holds something else");
			found += text.size();
		}
	}
	if (found != expected)
		wrong("a map holds something else");
}

void *cxx_work(void *counter)
{
	unsigned number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(counter));

	for (unsigned seed = number;; seed++) {
		cxx_round(seed);
		advance(number);
	}
}

struct board *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *board = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, BOARD_SIZE) == 0)
		board = mmap(nullptr, BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		_exit(2);
	close(fd);
	return static_cast<struct board *>(board);
}

} // namespace

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 4)
		return 2;
	fleet_board = board_open(argv[2]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
	if (std::strcmp(argv[1], "cxx") == 0) {
		if (pthread_create(&thread, nullptr, cxx_work, reinterpret_cast<void *>(1)) != 0)
			return 2;
		fleet_board->counters = 2;
		fleet_board->ready = static_cast<std::uint64_t>(getpid());
		cxx_work(nullptr);
	}
	fleet_board->counters = 1;
	fleet_board->ready = static_cast<std::uint64_t>(getpid());
	exceptions_work(0);
}
