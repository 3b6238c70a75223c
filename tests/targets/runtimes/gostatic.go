// SPDX-License-Identifier: MIT

// gostatic: a Go program without C, which allocates all the time. Follows the protocol of target.h.
package main

import "os"

var kept [][]byte

func main() {
	var one [1]byte
	for i := 0; i < 1000; i++ {
		kept = append(kept, make([]byte, 1000))
	}
	os.Stdout.WriteString("ready 0\n")
	os.Stdin.Read(one[:])
}
