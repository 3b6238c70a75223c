// SPDX-License-Identifier: MIT

// http BOARD SECONDS: an HTTP server under the load of its own clients, on loopback, whose requests are answered by C code
// that allocates and by goroutines on stacks of 2 KiB that lie side by side, grow and move. Everything that is answered is
// checked; see fleet.h for the board.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Blocks of some sizes, resized once; 0 where one does not hold what was written to it.
static uint64_t http_blocks(uint64_t seed)
{
	unsigned char *blocks[12];
	uint64_t sum = 0;

	for (unsigned i = 0; i < 12; i++) {
		size_t size = 16 + (seed >> i) % 900;

		blocks[i] = malloc(size);
		memset(blocks[i], (int)(seed + i) & 0xff, size);
		if (i % 3 == 0)
			blocks[i] = realloc(blocks[i], size * 2);
	}
	for (unsigned i = 0; i < 12; i++) {
		size_t size = 16 + (seed >> i) % 900;

		for (size_t j = 0; j < size; j++)
			if (blocks[i][j] != ((seed + i) & 0xff))
				return 0;
		sum = sum * 31 + blocks[i][0] + 1;
		free(blocks[i]);
	}
	return sum | 1;
}
*/
import "C"

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	clients = 6
	small   = 24 // goroutines a request
	inRow   = 50 // requests of a connection

	boardSize                = 8192
	ready, counters, wrong   = 0, 1, 2
	full, text, firstCounter = 5, 10, 64
	textSize                 = 160
)

var board *[boardSize / 8]uint64

// The first wrong result stays.
func fail(why string) {
	if atomic.AddUint64(&board[wrong], 1) == 1 {
		copy((*[textSize - 1]byte)(unsafe.Pointer(&board[text]))[:], why)
	}
	os.Exit(1)
}

func mapBoard(path string) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, boardSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	board = (*[boardSize / 8]uint64)(unsafe.Pointer(&memory[0]))
	file.Close()
}

func mix(value uint64) uint64 {
	value = (value ^ value>>31) * 0x9e3779b97f4a7c15
	return value ^ value>>29
}

// Frames that hold what they held, however the stack is moved.
//
//go:noinline
func descend(seed uint64, depth int) uint64 {
	var room [12]uint64
	for i := range room {
		room[i] = seed + uint64(i)
	}
	sum := mix(seed)
	if depth > 0 {
		sum += descend(seed+1, depth-1)
	}
	for i := range room {
		if room[i] != seed+uint64(i) {
			fail("a frame of a goroutine was overwritten")
		}
	}
	return sum
}

func expected(seed uint64, depth int) (sum uint64) {
	for i := 0; i <= depth; i++ {
		sum += mix(seed + uint64(i))
	}
	return sum
}

// A goroutine of its own, most with a stack that never grows.
func part(seed uint64, out chan<- uint64) {
	depth := int(seed % 3)
	if seed%11 == 0 {
		depth = 40
	}
	got := descend(seed, depth)
	for i := 0; i < 40; i++ {
		got = got + descend(seed, depth) - expected(seed, depth)
	}
	if got != expected(seed, depth) {
		fail("a goroutine has computed something else")
	}
	out <- got
}

func answer(seed uint64) uint64 {
	out := make(chan uint64, small)
	for i := uint64(0); i < small; i++ {
		go part(seed+i, out)
	}
	sum := uint64(C.http_blocks(C.uint64_t(seed)))
	if sum == 0 {
		fail("a block of C's holds something else")
	}
	if again := uint64(C.http_blocks(C.uint64_t(seed))); again != sum {
		fail("C has computed something else")
	}
	for i := 0; i < small; i++ {
		sum += <-out
	}
	return sum
}

func handle(writer http.ResponseWriter, request *http.Request) {
	seed, err := strconv.ParseUint(request.URL.Query().Get("seed"), 10, 64)
	if err != nil {
		fail("a request came with another text: " + request.URL.String())
	}
	fmt.Fprintf(writer, "%d", answer(seed))
}

func ask(client *http.Client, url string, seed uint64) uint64 {
	response, err := client.Get(fmt.Sprintf("%s?seed=%d", url, seed))
	if err != nil {
		fail("a request has failed: " + err.Error())
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		fail("an answer has failed: " + err.Error())
	}
	got, err := strconv.ParseUint(string(body), 10, 64)
	if err != nil {
		fail("an answer has another text: " + string(body))
	}
	return got
}

func browse(url string, number uint64) {
	for seed := number << 32; ; {
		transport := &http.Transport{}
		client := &http.Client{Transport: transport}
		for i := 0; i < inRow; i++ {
			seed++
			if first := ask(client, url, seed); first != answer(seed) {
				fail("a request was answered with something else")
			}
			atomic.AddUint64(&board[firstCounter+number], 1)
			rest := 40 * time.Millisecond
			if atomic.LoadUint64(&board[full]) != 0 {
				rest = 4 * time.Millisecond
			}
			time.Sleep(rest)
		}
		transport.CloseIdleConnections()
	}
}

func main() {
	mapBoard(os.Args[1])
	life, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	time.AfterFunc(time.Duration(life)*time.Second, func() { os.Exit(96) })
	runtime.GOMAXPROCS(4)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, http.HandlerFunc(handle))
	for i := uint64(0); i < clients; i++ {
		go browse("http://"+listener.Addr().String()+"/", i)
	}
	atomic.StoreUint64(&board[counters], clients)
	atomic.StoreUint64(&board[ready], uint64(os.Getpid()))
	select {}
}
