package gvisor

import (
	"path/filepath"
	"strings"

	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
	"gvisor.dev/gvisor/runsc/specutils"

	"cove/internal/machine/sandbox/gvisor/filters"
)

// Invoked says whether a command line is meant for Main: the engine names the program "runsc", runsc names its own
// children "runsc-…", except for one that it starts under the plain path of its executable.
func Invoked(argv []string) bool {
	return strings.HasPrefix(filepath.Base(argv[0]), "runsc") || argv[0] == specutils.ExePath
}

// Main runs this process as runsc, gVisor's OCI runtime, and exits. It registers only the commands that the engine
// uses, which also keeps the embedded helper binaries of upstream's own main out of ours.
func Main() {
	filters.Register()
	const group = ""
	cli.Run(nil, map[util.SubCommand]string{
		new(wardenCmd):        group,
		new(gofer):            group,
		new(boot):             group,
		new(sentrycmd.Umount): group,

		// What a Docker daemon calls a runtime with.
		new(cmd.Create): group, new(cmd.Start): group, new(cmd.State): group, new(cmd.Kill): group, new(cmd.Delete): group,
		new(cmd.PS): group, new(cmd.Exec): group, new(cmd.Events): group, new(cmd.Pause): group, new(cmd.Resume): group, new(cmd.Update): group, new(cmd.Features): group,
	}, []subcommands.Command{})
}
