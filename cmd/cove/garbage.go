package main

import (
	"os"
	"runtime/debug"
	"time"
)

const (
	// youth is how long a process collects its garbage late.
	youth = 2 * time.Second
	// youthPercent is how much its heap may grow until then before garbage is collected, in percent of what is in use; at first to 32 MB.
	youthPercent = 800
)

// collectLate has this process collect garbage late in its first seconds. Most commands have ended by then, and what lives longer keeps most of
// what it makes at its start: to look for garbage there is work for nothing. Who sets GOGC knows better.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(youthPercent)
	time.AfterFunc(youth, func() { debug.SetGCPercent(usual) })
}
