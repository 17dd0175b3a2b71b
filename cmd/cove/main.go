// Command cove is the code interpreter you own. The same file also starts its sandboxes as runsc, and watches over servers of tools; the name that it is called by decides.
package main

import (
	"context"
	"os"

	"cove/internal/app"
	"cove/internal/sandbox/gvisor"
	"cove/internal/toolserver"
)

// version is set by the linker.
var version = "0.1.0-dev"

func main() {
	if toolserver.IsWarden(os.Args) {
		toolserver.Ward(os.Args)
	}
	collectLate()
	if gvisor.Invoked(os.Args) {
		gvisor.Main()
	}
	os.Exit(app.Main(context.Background(), os.Args[1:], version, app.Signals()))
}
