// SPDX-License-Identifier: MIT
// Takes memory of C on stacks of Go, and knows each of them: cgo COUNT ANSWER
//
// The answer is JSON: for each stack of Go's functions, innermost first, as [name, file, line], how many blocks of how many
// bytes it has taken and kept.
package main

// #include <stdlib.h>
// static void *volatile kept[1 << 16];
// static unsigned count;
// static void hold(size_t size) { kept[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) & 0xffff] = malloc(size); }
import "C"

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"unsafe"
)

type amount struct{ blocks, bytes int }

var (
	lock  sync.Mutex
	known = map[string]*amount{}
	held  []unsafe.Pointer
)

// note keeps the caller's stack, which is about to take such a block on the same line.
//
//go:noinline
func note(size int) C.size_t {
	var pcs [64]uintptr
	var stack [][]any
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		stack = append(stack, []any{frame.Function, frame.File, frame.Line})
		if !more {
			break
		}
	}
	key, _ := json.Marshal(stack)
	lock.Lock()
	defer lock.Unlock()
	if known[string(key)] == nil {
		known[string(key)] = &amount{}
	}
	known[string(key)].blocks++
	known[string(key)].bytes += size
	return C.size_t(size)
}

func keep(block unsafe.Pointer) {
	lock.Lock()
	held = append(held, block)
	lock.Unlock()
}

func take(size int) { // small enough to be inlined
	keep(C.malloc(note(size)))
}

//go:noinline
func text(length int) {
	keep(unsafe.Pointer(C.CString(string(make([]byte, int(note(length+1))-1)))))
}

//go:noinline
func byC(size int) {
	C.hold(note(size))
}

// Deep enough that its stack has to grow, which moves it.
func deep(level int, size int) int {
	var room [128]byte
	room[level%128] = byte(level)
	if level == 0 {
		take(size)
		return int(room[0])
	}
	return deep(level-1, size) + int(room[level%128])
}

type store struct{ size int }

func (s *store) put() { take(s.size) }

func generic[T any](value T, size int) T {
	take(size)
	return value
}

func work(round int) {
	take(100)
	text(30)
	byC(200)
	deep(round%20, 300)
	(&store{400}).put()
	func() { take(500) }()
	_ = generic("value", 600)
	defer func() { take(700) }()
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	in := bufio.NewReader(os.Stdin)
	step := func(word string) {
		fmt.Println(word)
		in.ReadByte()
	}
	step(fmt.Sprint("ready ", os.Getpid()))
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := 0; round < count; round++ {
				work(round)
			}
		}()
	}
	all.Wait()
	var answer []any
	for key, sums := range known {
		answer = append(answer, []any{json.RawMessage(key), []int{sums.blocks, sums.bytes}})
	}
	out, _ := json.Marshal(answer)
	os.WriteFile(os.Args[2], out, 0o600)
	step("done")
}
