package gvisor

import (
	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
)

// Main runs this process as runsc, gVisor's OCI runtime.
func Main() {
	const group = ""
	cli.Run(nil, map[util.SubCommand]string{
		new(cmd.Checkpoint):   group,
		new(cmd.Create):       group,
		new(cmd.Delete):       group,
		new(cmd.Exec):         group,
		new(cmd.Kill):         group,
		new(cmd.List):         group,
		new(cmd.Restore):      group,
		new(cmd.Run):          group,
		new(cmd.Start):        group,
		new(cmd.State):        group,
		new(cmd.Wait):         group,
		new(sentrycmd.Boot):   group,
		new(cmd.Gofer):        group,
		new(sentrycmd.Umount): group,
	}, []subcommands.Command{})
}
