package gvisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/subcommands"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
	"gvisor.dev/gvisor/runsc/specutils"
)

// Invoked says whether a command line is meant for Main: the engine names the program "runsc", runsc names its own
// children "runsc-…", except for one that it starts under the plain path of its executable.
func Invoked(argv []string) bool {
	return strings.HasPrefix(filepath.Base(argv[0]), "runsc") || argv[0] == specutils.ExePath
}

// Main runs this process as runsc, gVisor's OCI runtime, and exits. It registers only the commands that the engine
// uses, which also keeps the embedded helper binaries of upstream's own main out of ours.
func Main() {
	keepToCPUs()
	const group = ""
	cli.Run(nil, map[util.SubCommand]string{
		new(cmd.Run):          group,
		new(cmd.Gofer):        group,
		new(sentrycmd.Boot):   group,
		new(sentrycmd.Umount): group,
	}, []subcommands.Command{})
}

func keepToCPUs() {
	n, err := strconv.Atoi(os.Getenv(cpusVariable))
	if err != nil || n < 1 {
		return
	}
	var all, some unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return
	}
	for cpu := 0; cpu < 1024 && some.Count() < n; cpu++ {
		if all.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	_ = unix.SchedSetaffinity(0, &some)
}
