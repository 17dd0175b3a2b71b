package live

import (
	"context"
	"io"
	"iter"
	"syscall"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// Live is a session in memory: *session.Live inside ondisk.Live.
type Live interface {
	ondisk.Live
	Kernels
	Tree
	Installer
	Inspector
	Programs
	PortDialer
	Networked
	FileSystem
}

// Networked is a session whose programs can be given a way to other machines. Problems: network_absent.
type Networked interface {
	SetNetwork(ctx context.Context, n guestlink.Network) error
}

// Kernels are the interpreters of one session. The first is "main", is always there, and is what kernel.Request.Kernel "" means.
type Kernels interface {
	StartKernel(ctx context.Context, name string) error   // problems: kernel_name, kernel_exists, too_many_kernels
	RestartKernel(ctx context.Context, name string) error // a new interpreter in its place; running code is interrupted
	StopKernel(ctx context.Context, name string) error    // not "main"
	Reboot(ctx context.Context) error                     // all that runs ends, and files stay; it waits for code that runs
	KernelNames() []string
}

// Inspector looks at the variables of a session's kernels. It waits until the kernel is idle. Problems: kernel_not_found, variable_unknown, not_a_table.
type Inspector interface {
	Variables(ctx context.Context, kernel string) (kernel.Variables, error)
	Table(ctx context.Context, kernel string, q kernel.TableQuery) (kernel.Table, error)
	Profile(ctx context.Context, kernel, table string, column int) (kernel.Profile, error)
	Widgets(ctx context.Context, kernel string) (kernel.WidgetStates, error)
	// Describe says what the name at cursor (in characters) of code stands for: its signature and what is written of it; "" where that is nothing known.
	Describe(ctx context.Context, kernel, code string, cursor int) (string, error)
	// Preview looks at a file of the workspace; it does not wait for a kernel. Problems: not_shown.
	Preview(ctx context.Context, look workspace.Look) (workspace.Preview, error)
	// Tell says what a model is told of files of the workspace, in the order of the paths; it does not wait for a kernel.
	Tell(ctx context.Context, paths []string) ([]workspace.Told, error)
}

// Programs are the processes that one session has beside its kernels. Package session documents the methods.
type Programs interface {
	StartProcess(ctx context.Context, id string, start process.Start) (process.Info, error)
	Processes(ctx context.Context) ([]process.Info, error)
	WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (n int64, err error)
	ResizeProcess(ctx context.Context, id string, size process.Size) error
	SignalProcess(ctx context.Context, id string, signal syscall.Signal, all bool) error
	FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error]
}

// PortDialer reaches the TCP ports at which programs of one session listen. Package session documents the methods.
type PortDialer interface {
	Ports(ctx context.Context) ([]process.Port, error)
	DialPort(ctx context.Context, port int) (guestlink.Stream, error)
}

// Tree is a session's workspace as a file tree. Paths are relative and slash-separated; "" is the workspace itself. Symlinks are never
// followed. Errors are problems: file_not_found, file_denied, workspace_full, invalid_path, file_exists, not_empty.
type Tree interface {
	TreeReader
	ondisk.Changes
}

// TreeReader is the part of a Tree that changes nothing. The other part is the named session's, which keeps changes in its journal.
type TreeReader interface {
	List(ctx context.Context, dir string) (entries []workspace.Entry, more bool, err error) // one level, by name
	Stat(ctx context.Context, path string) (workspace.Entry, error)
	Read(ctx context.Context, path string, offset, limit int64, w io.Writer) (size int64, err error) // limit 0: to the end
	// Archive writes a folder as "tar.gz" or "zip".
	Archive(ctx context.Context, dir, format string, w io.Writer) error
}

// Installer makes packages importable in a session's kernels.
type Installer interface {
	Install(ctx context.Context, requirements []require.Requirement, told func(installation.Progress)) (installation.Provision, error)
}
