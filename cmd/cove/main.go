// Command cove is the code interpreter you own. The same file also starts its sandboxes as runsc; the name that it is called by decides.
package main

import (
	"context"
	"os"

	"cove/internal/app"
	"cove/internal/sandbox/gvisor"
)

// version is set by the linker.
var version = "0.1.0-dev"

func main() {
	collectLate()
	if gvisor.Invoked(os.Args) {
		gvisor.Main()
	}
	os.Exit(app.Main(context.Background(), os.Args[1:], version, app.Signals()))
}
