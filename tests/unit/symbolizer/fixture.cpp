// SPDX-License-Identifier: MIT
// fixture.cpp: functions whose frames are known, for the symbolizer's tests. Each calls `probe`, which notes where it
// was called from. The #line directives fix the lines that the tests expect.
extern "C" {
typedef void (*probe_fn)(void);
int fixture_chain(probe_fn probe);
int fixture_hidden(probe_fn probe);
int fixture_method(probe_fn probe);
int fixture_last(probe_fn probe);
int fixture_anonymous(probe_fn probe);
int fixture_cold(probe_fn probe);
}

volatile int fixture_sink;

namespace demo
{
#line 100 "fixture.cpp"
__attribute__((always_inline)) inline int innermost(probe_fn probe)
{
	probe();
	return fixture_sink + 1;
}

#line 200 "fixture.cpp"
template <typename T>
struct box {
	T value;
	__attribute__((always_inline)) T middle(probe_fn probe)
	{
		return value + innermost(probe);
	}
	__attribute__((noinline)) T outside(probe_fn probe);
};

#line 300 "fixture.cpp"
template <typename T>
T box<T>::outside(probe_fn probe)
{
	probe();
	return value + fixture_sink;
}
} // namespace demo

#line 400 "fixture.cpp"
extern "C" int fixture_chain(probe_fn probe)
{
	demo::box<int> box = {fixture_sink};

	return box.middle(probe) + fixture_sink;
}

#line 500 "fixture.cpp"
static __attribute__((noinline)) int not_exported(probe_fn probe)
{
	probe();
	return fixture_sink + 2;
}

extern "C" int fixture_hidden(probe_fn probe)
{
	return not_exported(probe) + fixture_sink;
}

extern "C" int fixture_method(probe_fn probe)
{
	demo::box<long> box = {fixture_sink};

	return (int)box.outside(probe) + fixture_sink;
}

#line 600 "fixture.cpp"
// The call is the function's last instruction: its return address belongs to another function already.
extern "C" int fixture_last(probe_fn probe)
{
	probe();
	__builtin_unreachable();
}

#line 700 "fixture.cpp"
namespace
{
struct local {
	__attribute__((always_inline)) static inline int unnamed(probe_fn probe)
	{
		probe();
		return fixture_sink + 3;
	}
};
} // namespace

#line 800 "fixture.cpp"
extern "C" int fixture_anonymous(probe_fn probe)
{
	return local::unnamed(probe) + fixture_sink;
}

#line 900 "fixture.cpp"
__attribute__((cold, noinline)) static void unlikely()
{
	__asm__ volatile("");
}

// GCC moves the call away from the rest, to fixture_cold.cold.
extern "C" int fixture_cold(probe_fn probe)
{
	if (__builtin_expect(fixture_sink == 0, 0)) {
		unlikely();
		probe();
	}
	return fixture_sink;
}
