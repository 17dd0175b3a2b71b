// Command cove is the code interpreter you own. The same file also starts its sandboxes as runsc, and watches over servers of tools; the name that it is called by decides.
package main

import (
	"context"
	"os"

	"cove/internal/commands/app"
	"cove/internal/commands/cli"
	"cove/internal/llm/toolserver"
	"cove/internal/machine/sandbox/gvisor"
	_ "cove/internal/machine/unmount" // is initialised before all others here
)

// What the linker sets; see Build in package cli.
var (
	version = "0.1.0-dev"
	commit  string
	date    string
)

func main() {
	if toolserver.IsWarden(os.Args) {
		toolserver.Ward(os.Args)
	}
	collectLate()
	if gvisor.Invoked(os.Args) {
		gvisor.Main()
	}
	os.Exit(app.Main(context.Background(), os.Args[1:], cli.Build{Version: version, Commit: commit, Date: date}, app.Signals()))
}
