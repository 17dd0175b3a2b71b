// Command cove-bench measures cove beside its peers on this machine; `make bench` builds and runs it. The same file also starts the sandboxes of
// what it measures as runsc; the name that it is called by decides.
package main

import (
	"context"
	"os"

	"cove/internal/commands/app"
	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/machine/sandbox/gvisor"
	"cove/tools/bench/benchcmd"
)

// version is set by the linker.
var version = "0.1.0-dev"

func main() {
	if gvisor.Invoked(os.Args) {
		gvisor.Main()
	}
	self, _ := os.Executable() // without it, the PATH is asked for cove
	cfg, err := config.Load(os.Getenv)
	os.Exit(benchcmd.Main(context.Background(), os.Args[1:], &benchcmd.Program{
		Out: os.Stdout, Err: os.Stderr, Version: cli.Build{Version: version}.Complete().String(), Config: cfg, ConfigErr: err,
		Signals: app.Signals(), Self: self, Prepare: benchcmd.Prepare,
	}))
}
