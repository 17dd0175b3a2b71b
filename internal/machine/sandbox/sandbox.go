// Package sandbox is the contract between cove and the engines that isolate
// code. An engine does little more than start a guest and hand over a byte
// stream; files, processes and kernels go through the guest (see package wire).
//
// To add an engine: implement Engine, run sandboxtest.Run against it, and
// register it in package app.
package sandbox

import (
	"context"
	"io"
	"time"
)

// Engine is a way to start sandboxes.
type Engine interface {
	// Name is the engine's stable name, as --engine takes it.
	Name() string
	// Isolates says whether what runs in its sandboxes can do less than who starts them.
	Isolates() bool
	// Check says why the engine cannot run here, or returns nil.
	Check(ctx context.Context) error
	// Start returns once the guest has connected.
	Start(ctx context.Context, spec Spec) (Sandbox, error)
	// Sweep removes what dead owners left behind: processes, mounts, cgroups, directories.
	// It never touches a sandbox whose owner lives. It returns how many sandboxes it removed.
	Sweep(ctx context.Context) (int, error)
}

// Warmer is an Engine whose first start costs more than others, part of which can be done ahead.
type Warmer interface {
	// Warm does that and returns at once.
	Warm()
}

// Limiter is an Engine that enforces the limits of memory and processors.
type Limiter interface {
	// LimitsEnforcedBy says in a few words by what, or returns why it cannot here.
	LimitsEnforcedBy(ctx context.Context) (string, error)
}

// Describer is an Engine that isolates more or less by what it finds on the machine.
type Describer interface {
	// Describe says in a sentence what is between code and the machine, which is said each time, and of what to be aware.
	Describe(ctx context.Context) (isolation string, warnings []string, err error)
}

// UserGiver is an Engine that gives each sandbox a user of the host, where cove is root.
type UserGiver interface {
	// WhyRoot returns why the processes of sandboxes are root on the host all the same; "" means that they are not.
	WhyRoot() string
}

// Sandbox is one running guest.
type Sandbox interface {
	ID() string
	// Layout says where things are, seen from inside.
	Layout() Layout
	// Dial returns the byte stream to the guest. When that has ended, a sandbox that can be saved returns the guest's next
	// connection; others refuse a second call.
	Dial(ctx context.Context) (io.ReadWriteCloser, error)
	// Done is closed when the sandbox has ended, for whatever reason.
	Done() <-chan struct{}
	// Cause says why the sandbox ended, as the host saw it: nil after Stop, a problem with
	// code "session_oom" when the memory limit killed it, "sandbox_died" otherwise.
	// It is meaningful after Done is closed.
	Cause() error
	// Stop ends the sandbox and frees all it holds. It is safe to call twice.
	Stop(ctx context.Context) error
}

// Meter is a Sandbox that knows the processor time that it has used. Not every engine's does.
type Meter interface {
	// CPU returns the processor time since the sandbox's start, on all processors together and with the engine's own work for it. A restored
	// sandbox begins with what restoring cost.
	CPU() (time.Duration, error)
}

// Weigher is a Sandbox that knows how much memory it takes. Not every engine's does.
type Weigher interface {
	// Memory returns the memory that only this sandbox takes, in bytes; 0 when it has ended.
	Memory() int64
}

// MemoryReporter is a Sandbox that can say when it ran out of memory. Not every engine's can.
type MemoryReporter interface {
	// Shortages counts how often the host's system has killed one of the sandbox's processes for lack of memory, or made it wait at its limit. The count
	// only grows. It may include processes of others where a sandbox has no control group of its own.
	Shortages() int64
	// WaitsForMemory says whether the sandbox waits at its memory limit, which may be why it does not answer.
	WaitsForMemory() bool
}

// Shower is a Sandbox with Limits.System, from which what a SecretFolder has is hidden until it is named.
type Shower interface {
	// Show makes a folder of each SecretFolder visible under its name; one that is not there is left out.
	Show(ctx context.Context, name string) error
}

// Booter is a Sandbox whose system knows when it was booted.
type Booter interface {
	// Boot gives the system another id of its boot. Nothing but the guest runs in the sandbox meanwhile.
	Boot(ctx context.Context) error
}

// Spec says what a sandbox is made of. Its zero value is the tightest sandbox: no network, default limits.
type Spec struct {
	// ID names the sandbox; letters, digits, '-' and '_', at most 64 bytes.
	ID string
	// Root is a folder of this host with the whole file system of an image (see package image), which takes the place of the host's programs and libraries. "": those are shown.
	Root string
	// Layer is a folder of this host with a layer of system packages (see package debs), which are there beside the host's programs and libraries. "": the host's alone. It is for sandboxes without a Root.
	Layer string
	// Mounts are folders shown read-only inside.
	Mounts []Mount
	Limits Limits
	// Volumes are folders that other sandboxes write to, too. They take an engine that is a VolumeKeeper.
	Volumes []VolumeMount
	// Shown names what a sandbox with Limits.System may use of each SecretFolder from its start; a Shower shows more. Other sandboxes may use whatever they are told the name of.
	Shown []string
	// Common says that the sandbox has nothing that is anybody's, so that its checkpoints need not be encrypted.
	Common bool
	// Checkpoint is what will be loaded into the sandbox, for a Saver's Prepare; zero is none. It decides about what a checkpoint must find again and
	// cannot bring along.
	Checkpoint Checkpoint
}

// Limits bound one sandbox. A zero field takes the default of DefaultLimits.
type Limits struct {
	Memory    int64   // bytes for all processes and tmpfs together
	CPUs      float64 // cores
	Processes int     // processes and threads of the sandboxed user
	OpenFiles int     // per process
	Tmp       int64   // bytes in /tmp and in /dev/shm, each
	Workspace int64   // bytes in the workspace
	// System is how many bytes what is changed outside of the workspace may take, in each of the system's parts. 0: nothing can be changed there, and there is no root. Not every engine
	// has it: it is a problem with code "root_absent" then.
	System int64
}

// LeastCPUs is the smallest share of a core that a sandbox can be limited to: the kernel counts in thousandths of a second, ten times a second.
const LeastCPUs = 0.01

// DefaultLimits are the limits of a sandbox that asks for none.
func DefaultLimits() Limits {
	return Limits{Memory: 2 << 30, CPUs: 2, Processes: 512, OpenFiles: 4096, Tmp: 1 << 30, Workspace: 4 << 30}
}

// OrDefault returns l with every zero field replaced by its default.
func (l Limits) OrDefault() Limits {
	d := DefaultLimits()
	if l.Memory == 0 {
		l.Memory = d.Memory
	}
	if l.CPUs == 0 {
		l.CPUs = d.CPUs
	}
	if l.Processes == 0 {
		l.Processes = d.Processes
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = d.OpenFiles
	}
	if l.Tmp == 0 {
		l.Tmp = d.Tmp
	}
	if l.Workspace == 0 {
		l.Workspace = d.Workspace
	}
	return l
}

// Layout says where things are inside a sandbox. Paths are absolute.
type Layout struct {
	Workspace string // the user's files; the working directory of code
	Tmp       string // scratch space
	mounts    map[string]string
}

// NewLayout returns a layout in which each mount's target is seen at the path that actual maps it to,
// or at the target itself where actual has no entry.
func NewLayout(workspace, tmp string, actual map[string]string) Layout {
	return Layout{Workspace: workspace, Tmp: tmp, mounts: actual}
}

// Path returns where a mount's target is really found. Engines without a file system of their own
// (local) cannot mount, so code must ask.
func (l Layout) Path(target string) string {
	if p, ok := l.mounts[target]; ok {
		return p
	}
	return target
}
