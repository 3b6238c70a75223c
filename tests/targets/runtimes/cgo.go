// SPDX-License-Identifier: MIT

// cgo: a Go program whose C code allocates, under load: goroutines whose stacks grow and move, a collector that is kept
// busy, signals that preempt them, C calls from many threads and back into Go. Follows the protocol of target.h.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern int64_t goBack(int64_t);

static __attribute__((noinline, noclone)) void *cgo_leak(size_t size)
{
	char *block = malloc(size);

	memset(block, 'l', size);
	__asm__ volatile("" : "+r"(block) : : "memory");
	return block;
}

static __attribute__((noinline, noclone)) int64_t cgo_pair(int64_t seed)
{
	int64_t *block = malloc(88), *more, sum = 0;

	for (int i = 0; i < 11; i++)
		block[i] = seed + i;
	more = realloc(block, 880);
	__asm__ volatile("" : "+r"(more) : : "memory");
	for (int i = 0; i < 11; i++)
		sum += more[i];
	free(more);
	return sum;
}

// From C back into Go, which comes here again.
static __attribute__((noinline, noclone)) int64_t cgo_there_and_back(int64_t seed)
{
	void *held = malloc(99);
	int64_t result;

	__asm__ volatile("" : "+r"(held) : : "memory");
	result = goBack(seed);
	free(held);
	return result;
}
*/
import "C"

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	workers = 8
	rounds  = 60
	leaks   = 300
)

var pairs, calls int64

//export goBack
func goBack(seed C.int64_t) C.int64_t {
	return pair(grow(seed, 20))
}

func pair(seed C.int64_t) C.int64_t {
	atomic.AddInt64(&pairs, 1)
	sum := C.cgo_pair(seed)
	if sum != 11*seed+55 {
		fail("C gave another sum")
	}
	return sum
}

// Recursion that makes the goroutine's stack grow, and move.
//
//go:noinline
func grow(seed C.int64_t, depth int) C.int64_t {
	var room [64]int64
	for i := range room {
		room[i] = int64(seed) + int64(depth)
	}
	if depth > 0 {
		seed = grow(seed, depth-1)
	}
	for i := range room {
		if room[i] != room[0] {
			fail("a stack frame was overwritten")
		}
	}
	return seed
}

type node struct {
	left, right *node
	value       uint64
}

func tree(depth int, value uint64) *node {
	if depth == 0 {
		return &node{value: value}
	}
	return &node{tree(depth-1, value*2), tree(depth-1, value*2+1), value}
}

func (n *node) sum() uint64 {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

func work(number int, results []uint64, group *sync.WaitGroup) {
	defer group.Done()
	expected := tree(8, 1).sum()
	state := sha256.Sum256([]byte{byte(number)})
	for round := 0; round < rounds; round++ {
		seed := C.int64_t(binary.LittleEndian.Uint32(state[:4]) % 100000)
		pair(grow(seed, 100+round%50))
		atomic.AddInt64(&calls, 1)
		if C.cgo_there_and_back(seed) != 11*seed+55 {
			fail("a call there and back gave another sum")
		}
		if tree(8, 1).sum() != expected {
			fail("the collector took what was in use")
		}
		if round%10 == 0 {
			runtime.Gosched()
		}
		nilDereference()
		state = sha256.Sum256(state[:])
	}
	results[number] = binary.LittleEndian.Uint64(state[:])
}

// Go's runtime makes a panic of a SIGSEGV.
func nilDereference() {
	defer func() {
		if recover() == nil {
			fail("a nil pointer was followed")
		}
	}()
	var nothing *node
	if nothing.value == 1 {
		fail("a nil pointer had a value")
	}
}

func fail(why string) {
	fmt.Println("failed", why)
	os.Exit(1)
}

func wait() {
	var one [1]byte
	os.Stdin.Read(one[:])
}

// Signals that the program has asked for come all the while.
func listen() *int64 {
	var seen int64
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			atomic.AddInt64(&seen, 1)
		}
	}()
	return &seen
}

func main() {
	time.AfterFunc(120*time.Second, func() { os.Exit(96) })
	runtime.GOMAXPROCS(4)
	seen := listen()
	pair(1)
	atomic.StoreInt64(&pairs, 0)
	fmt.Println("ready", os.Getpid())
	wait()
	results := make([]uint64, workers)
	var group sync.WaitGroup
	for i := 0; i < workers; i++ {
		group.Add(1)
		go work(i, results, &group)
	}
	for i := 0; i < leaks; i++ {
		C.cgo_leak(83)
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		if i%20 == 0 {
			runtime.GC()
		}
	}
	group.Wait()
	if atomic.LoadInt64(seen) == 0 {
		fail("no signal came")
	}
	var all uint64
	for _, result := range results {
		all = all*31 + result
	}
	fmt.Printf("checksum=%d\n", all)
	fmt.Printf("cgo_leak.impacting.count=%d\ncgo_leak.impacting.bytes=%d\n", leaks, leaks*83)
	fmt.Printf("cgo_pair.transient.count=%d\ncgo_pair.impacting.count=0\n", 2*pairs)
	fmt.Printf("cgo_there_and_back.transient.count=%d\n", calls)
	fmt.Println("done")
	wait()
}
