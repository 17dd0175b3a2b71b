package gvisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/subcommands"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/control/client"
	"gvisor.dev/gvisor/pkg/sentry/control"
	"gvisor.dev/gvisor/pkg/state/statefile"
	sentry "gvisor.dev/gvisor/runsc/boot"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/specutils"
)

// The warden is the one process through which an engine drives its sandboxes: runsc's own code for creating,
// restoring, saving and destroying containers, called over RPC instead of being started anew for every step. It is a
// process apart because it must be root in a user namespace when cove is not root, and because runsc code may exit.
// Its sandboxes outlive it, and the next one takes them over. It ends with cove, and kills them then, which they do by themselves too (see lifelineName).
const (
	wardenCommand = "warden"
	ownRootFlag   = "own-root"
	wardenSocket  = 3 // the descriptor of its end of the RPC connection
)

// reservedFD is held open so that the descriptor tables of the processes that the warden starts are born large. A sentry moves
// its files above 253; growing the table of a process with threads waits for the kernel's readers, 10 ms and more.
const reservedFD = 600

// wardenCmd is the runsc subcommand that serves an engine.
type wardenCmd struct{ ownRoot bool }

func (*wardenCmd) Name() string     { return wardenCommand }
func (*wardenCmd) Synopsis() string { return "serve cove's engine" }
func (*wardenCmd) Usage() string    { return wardenCommand + "\n" }
func (c *wardenCmd) SetFlags(f *flag.FlagSet) {
	f.BoolVar(&c.ownRoot, ownRootFlag, false, "enter a root of its own, for sandboxes that have users of their own")
}
func (*wardenCmd) FetchSpec(*config.Config, *flag.FlagSet) (string, *specs.Spec, error) {
	return "", nil, nil
}

// Execute serves until the engine closes its end.
func (c *wardenCmd) Execute(_ context.Context, _ *flag.FlagSet, args ...any) subcommands.ExitStatus {
	f := os.NewFile(wardenSocket, "engine")
	conn, err := net.FileConn(f)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cove warden:", err)
		return subcommands.ExitFailure
	}
	_ = f.Close()
	_, _ = unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, reservedFD)
	server := rpc.NewServer()
	w := &warden{conf: args[0].(*config.Config), wards: map[string]*ward{}, gone: map[string]bool{}, births: newBirths()}
	if c.ownRoot {
		if w.root, err = enterOwnRoot(); err != nil {
			fmt.Fprintln(os.Stderr, "cove warden:", err)
			return subcommands.ExitFailure
		}
	}
	if err := server.RegisterName("Warden", w); err != nil {
		fmt.Fprintln(os.Stderr, "cove warden:", err)
		return subcommands.ExitFailure
	}
	owner := &owner{Conn: conn, gone: make(chan struct{})}
	go server.ServeConn(owner) // which waits for calls that are under way
	<-owner.gone
	w.killAll()
	return subcommands.ExitSuccess
}

// owner is the connection to an engine.
type owner struct {
	net.Conn
	gone chan struct{} // closed when the engine has closed it or is dead
	once sync.Once
}

func (o *owner) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if err != nil {
		o.once.Do(func() { close(o.gone) })
	}
	return n, err
}

// warden's exported methods are its RPC interface.
type warden struct {
	conf   *config.Config
	root   *ownRoot // nil: the host's
	births births
	making sync.RWMutex // see creating

	mu    sync.Mutex
	wards map[string]*ward
	// gone are the containers that were destroyed before they were created: calls are served as they come, and an engine that was
	// interrupted sends the one right after the other.
	gone map[string]bool
}

// ward is one container.
type ward struct {
	mu   sync.Mutex // one step at a time
	conf *config.Config
	c    *container.Container // nil when creating it failed, or it is destroyed
	// adopted says that another warden created it. Its processes are not ours, and only the engine ends them.
	adopted bool
	pids    []int             // pidfds of its processes; the warden's mu guards them
	shown   map[string]string // its volumes, until it is destroyed
}

// CreateArgs say what to create.
type CreateArgs struct {
	ID   string
	Dir  string // the instance's directory, which is the OCI bundle
	CPUs int    // cores to keep to; 0 means all
	User int    // the host's user for its processes; 0: the warden's
	// System is how many bytes the changes of each part of the system may take; 0: it cannot be changed.
	System int64
	Tmp    int64
	Root   string // the folder with the file system of an image; "": it has none
	// Volumes are the container's, whose content is Owner's, a user of the host.
	Volumes []VolumeArgs
	Owner   int
}

// CreateReply names the host's processes of a new container.
type CreateReply struct{ Sentry, Gofer int }

// ImageArgs name a container and a folder of checkpoint files.
type ImageArgs struct {
	ID    string
	Image string
}

func (w *warden) ward(id string) (*ward, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.wards[id]; ok {
		return d, nil
	}
	return nil, fmt.Errorf("there is no container %s", id)
}

// do calls f with an existing container.
func (w *warden) do(id string, f func(*ward) error) error {
	d, err := w.ward(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.c == nil {
		return fmt.Errorf("container %s is gone", id)
	}
	return f(d)
}

// Create boots a sentry and its gofer for a bundle.
func (w *warden) Create(a CreateArgs, reply *CreateReply) error {
	dir, err := w.root.find(a.Dir)
	if err != nil {
		return err
	}
	d := w.newWard(dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !w.register(a.ID, d) {
		return fmt.Errorf("container %s was given up before it was created", a.ID)
	}
	// Without a root, code has folders of its own beside those of the system, in memory as /tmp is.
	changes := fmt.Sprintf("root:memory,size=%d", a.Tmp)
	if a.System > 0 {
		changes = fmt.Sprintf("all:dir=%s,size=%d", filepath.Join(dir, systemStore), a.System)
	}
	if err := d.conf.Overlay2.Set(changes); err != nil {
		return fmt.Errorf("make the system one that can be changed: %w", err)
	}
	spec, err := specutils.ReadSpec(dir, d.conf)
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	bundle, err := w.settle(d, spec, dir, a)
	if err != nil {
		return err
	}
	defer w.creating(filepath.Join(d.conf.RootDir, "runsc-"+a.ID+".sock"))()
	err = w.births.call(a.CPUs, func() (err error) {
		d.c, err = container.New(d.conf, container.Args{ID: a.ID, Spec: spec, BundleDir: bundle})
		return err
	})
	if err != nil {
		d.c = nil
		return fmt.Errorf("create container: %w", err)
	}
	reply.Sentry, reply.Gofer = d.c.SandboxPid(), d.c.GoferPid.Load()
	w.follow(d)
	return nil
}

// settle prepares a container for the user that its processes shall have, and returns where they find the bundle, whose folder is dir here.
func (w *warden) settle(d *ward, spec *specs.Spec, dir string, a CreateArgs) (bundle string, err error) {
	if a.User == 0 {
		return dir, nil
	}
	state := filepath.Dir(a.Dir)
	volumes, err := w.root.showVolumes(a.ID, a.Volumes)
	if err != nil {
		return "", err
	}
	d.shown = volumes
	if err := w.root.showAll(spec, []string{state, a.Root}, volumes); err != nil {
		return "", err
	}
	config, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, configName), config, 0o600); err != nil {
		return "", err
	}
	putInNamespace(spec, a.User, a.Owner)
	top, err := w.root.show(state)
	return filepath.Join(top, filepath.Base(a.Dir)), err
}

// longestAddress is the length of the longest path that a socket can be bound to, in bytes; from unix(7).
const longestAddress = 107

// creating waits until a container whose control socket has that path may be created; created has to be called afterwards. To bind a longer path than
// the system takes, gVisor opens the socket's folder as a descriptor that a process inherits which is started at that moment for another container. A
// sentry with an open folder refuses to run, so such a container is created while no other one is.
func (w *warden) creating(socket string) (created func()) {
	if len(socket) > longestAddress {
		w.making.Lock()
		return w.making.Unlock
	}
	w.making.RLock()
	return w.making.RUnlock
}

func (w *warden) newWard(dir string) *ward {
	conf := *w.conf
	conf.RootDir = filepath.Join(dir, "runsc")
	conf.LogFilename = filepath.Join(dir, "runsc.log")
	conf.PanicLog = filepath.Join(dir, "panic.log")
	return &ward{conf: &conf}
}

// Adopt takes over a container that was created by a warden that has ended.
func (w *warden) Adopt(a CreateArgs, _ *struct{}) error {
	dir, err := w.root.find(a.Dir)
	if err != nil {
		return err
	}
	d := w.newWard(dir)
	d.adopted = true
	d.mu.Lock()
	defer d.mu.Unlock()
	id := container.FullID{SandboxID: a.ID, ContainerID: a.ID}
	if d.c, err = container.Load(d.conf.RootDir, id, container.LoadOpts{Exact: true, SkipCheck: true}); err != nil {
		return fmt.Errorf("take over container: %w", err)
	}
	w.register(a.ID, d)
	w.follow(d)
	return nil
}

// follow opens the processes of a container, to kill them and no others that have their numbers later.
func (w *warden) follow(d *ward) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pid := range []int{d.c.SandboxPid(), d.c.GoferPid.Load()} {
		if fd, err := unix.PidfdOpen(pid, 0); pid > 0 && err == nil {
			d.pids = append(d.pids, fd)
		}
	}
}

// killAll kills the processes of all containers.
func (w *warden) killAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.wards {
		for _, fd := range d.pids {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
}

// register enters a container that is about to be created, unless it is not wanted any more.
func (w *warden) register(id string, d *ward) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone[id] {
		delete(w.gone, id)
		return false
	}
	w.wards[id] = d
	return true
}

// Start starts the bundle's process.
func (w *warden) Start(id string, _ *struct{}) error {
	return w.do(id, func(d *ward) error { return d.c.Start(d.conf) })
}

// Restore fills a created container from a checkpoint. Memory is still being loaded when it returns.
func (w *warden) Restore(a ImageArgs, _ *struct{}) error {
	image, err := w.root.find(a.Image)
	if err != nil {
		return err
	}
	return w.do(a.ID, func(d *ward) error { return d.c.Restore(d.conf, image, false, true, nil) })
}

// Checkpoint has a running container write itself to files that are there, and go on. Upstream's own call makes the files, which would leave nobody a
// moment to set room aside for them.
func (w *warden) Checkpoint(a ImageArgs, _ *struct{}) error {
	image, err := w.root.find(a.Image)
	if err != nil {
		return err
	}
	return w.do(a.ID, func(d *ward) error {
		opts := control.SaveOpts{
			Metadata:                       statefile.CompressionLevelNone.ToMetadata(), // compressed pages cannot be loaded in the background
			AppMFExcludeCommittedZeroPages: true,
			HavePagesFile:                  true,
			Resume:                         true,
		}
		defer func() {
			for _, f := range opts.Files {
				_ = f.Close()
			}
		}()
		for _, name := range imageFiles() {
			f, err := os.OpenFile(filepath.Join(image, name), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			opts.Files = append(opts.Files, f)
		}
		return d.ask(sentry.ContMgrCheckpoint, &opts)
	})
}

// ask calls the sentry of a container.
func (d *ward) ask(method string, args any) error {
	socket, err := unix.Open(d.c.Sandbox.GetControlSocketPath(), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("find the sentry: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	conn, err := client.ConnectTo(fmt.Sprintf("/proc/self/fd/%d", socket)) // a socket's path is limited to 107 bytes
	if err != nil {
		return fmt.Errorf("reach the sentry: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.Call(method, args, nil)
}

// Destroy ends a container, in whatever state, and forgets it. One that was adopted it only forgets.
func (w *warden) Destroy(id string, _ *struct{}) error {
	w.mu.Lock()
	d, ok := w.wards[id]
	delete(w.wards, id)
	if !ok {
		w.gone[id] = true
	} else {
		for _, fd := range d.pids {
			_ = unix.Close(fd)
		}
		d.pids = nil
	}
	w.mu.Unlock()
	if !ok {
		return nil
	}
	d.mu.Lock() // also waits for its creation
	defer d.mu.Unlock()
	defer unshow(d.shown)
	if d.c == nil {
		return nil
	}
	c := d.c
	d.c = nil
	if d.adopted {
		return nil
	}
	// It would end with the sentry anyway, but then one would be waited for after the other.
	if gofer := c.GoferPid.Load(); gofer > 0 {
		_ = unix.Kill(gofer, unix.SIGKILL)
	}
	return c.Destroy()
}
