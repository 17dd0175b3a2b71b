// Command cove-guest is the program inside every sandbox. It is a file of its own, and not cove itself, because a sandbox that was saved goes on
// with the very guest that it was saved with: this one changes when its own sources do, and not with each build of cove. Package guest/program
// holds it as cove brings it along; `make guest` builds it.
package main

import (
	"os"

	"cove/internal/machine/guest"
)

func main() { os.Exit(guest.Main(os.Args[1:])) }
