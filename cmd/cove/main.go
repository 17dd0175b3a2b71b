package main

import (
	"cove/internal/sandbox/gvisor"
)

func main() { gvisor.Main() }
