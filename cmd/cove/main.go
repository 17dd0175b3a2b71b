// Command cove is the code interpreter you own. The same file also starts its sandboxes as runsc; the name that it is called by decides.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cove/internal/app"
	"cove/internal/sandbox/gvisor"
)

// version is set by the linker.
var version = "0.1.0-dev"

func main() {
	if gvisor.Invoked(os.Args) {
		gvisor.Main()
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A closed pipe must not kill cove before its sandbox is stopped: with a listener, writing fails with EPIPE instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(app.Main(context.Background(), os.Args[1:], version, signals))
}
