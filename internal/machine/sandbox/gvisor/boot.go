package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/flag"
)

// memoryName is the file in a bundle that says how many bytes of memory its sandbox shall report.
const memoryName = "memory"

// boot is runsc's command that becomes the sentry. Upstream takes the memory that code sees in /proc/meminfo from
// a cgroup that runsc itself made; ours are made by the engine, and hold the sentry too, so the bundle says it.
//
// It also ends with cove, see lifelineName.
type boot struct {
	sentrycmd.Boot
	lifeline int
}

// SetFlags adds the flag that carries the lifeline's descriptor from one start of the command to the next.
func (b *boot) SetFlags(f *flag.FlagSet) {
	b.Boot.SetFlags(f)
	f.IntVar(&b.lifeline, "lifeline-fd", -1, "file descriptor whose end is this process's")
}

func (b *boot) Execute(ctx context.Context, f *flag.FlagSet, args ...any) subcommands.ExitStatus {
	if dir := f.Lookup("bundle"); b.lifeline < 0 && dir != nil && dir.Value.String() != "" {
		// Without a lifeline the sandbox is no engine's, but a Docker daemon's, whose runtime this is; it lives for as long as that wants.
		if _, err := os.Lstat(filepath.Join(dir.Value.String(), lifelineName)); errors.Is(err, fs.ErrNotExist) {
			return b.Boot.Execute(ctx, f, args...)
		}
	}
	closeStrays(os.Args)
	if dir := f.Lookup("bundle"); dir != nil {
		// Absent when the command starts itself again inside its empty root; by then the flag has the value.
		if limit, err := os.ReadFile(filepath.Join(dir.Value.String(), memoryName)); err == nil {
			_ = f.Set("total-memory", strings.TrimSpace(string(limit)))
		}
		if b.lifeline < 0 {
			fd, err := openLifeline(dir.Value.String())
			if err != nil {
				fmt.Fprintln(os.Stderr, "open the lifeline:", err)
				return subcommands.ExitFailure
			}
			_ = f.Set("lifeline-fd", strconv.Itoa(fd))
		}
	}
	started := make(chan struct{})
	go endWith(b.lifeline, started)
	go delayFastPath(started)
	keepParallelism()
	go returnMemory()
	return b.Boot.Execute(ctx, f, args...)
}

// gofer is runsc's command that serves a sentry with the host's files.
type gofer struct{ cmd.Gofer }

func (g *gofer) Execute(ctx context.Context, f *flag.FlagSet, args ...any) subcommands.ExitStatus {
	closeStrays(os.Args)
	go returnMemory()
	return g.Gofer.Execute(ctx, f, args...)
}
