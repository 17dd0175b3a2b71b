// Package guest is what runs inside a sandbox: it reaps, starts processes and
// kernels, and serves the workspace's files to the host over package wire.
//
// It faces hostile code. In a gVisor sandbox it is PID 1 and root with a handful of
// capabilities, while everything it starts is another user without any, so that code
// can neither signal nor trace it. It imports the standard library and wire alone.
//
// A guest that connected to a socket outlives its host, and so do the kernels in it: it connects again after every
// end of a connection, be that for another host, a checkpoint or a restore (see uplink).
package guest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"

	"cove/internal/machine/wire"
)

// gcPercent keeps the guest's heap small: it is part of every checkpoint and of every idle session.
const gcPercent = 50

// Main runs the guest and returns the process's exit code. args are the command line without the program's name:
// --connect=SOCKET or --fd=N says how to reach the host, --workspace=DIR where the user's files
// are, --run=DIR where the guest keeps its own, --user=UID as whom code runs (0: as the guest itself), --root that programs may be run as root, too, --once that there is one connection. --marked=ID and --new-proc are for a moment's work.
//
// With --fd, and with --connect and --once, the guest and all that it started end when the connection ends. With --connect alone they do not: the
// guest connects again, kernels live on meanwhile, and Main does not return.
func Main(args []string) int {
	if filepath.Base(os.Args[0]) == sudoName {
		return sudo(args)
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), pythonName) {
		fmt.Fprintln(os.Stderr, "cove-guest: start the interpreter:", python(args))
		return 127
	}
	g := &guest{}
	flags := flag.NewFlagSet("cove-guest", flag.ContinueOnError)
	connect := flags.String("connect", "", "socket of the host")
	fd := flags.Int("fd", -1, "connected socket of the host")
	flags.StringVar(&g.workspace, "workspace", "", "folder of the user's files")
	flags.StringVar(&g.run, "run", "/run", "folder of the guest's own files")
	flags.IntVar(&g.user, "user", 0, "user id of sandboxed code")
	flags.BoolVar(&g.root, "root", false, "programs may be run as root")
	once := flags.Bool("once", false, "end with the first connection to the host")
	mark := flags.String("marked", "", "list the processes that have a mark, see guest.marked")
	renew := flags.Bool("new-proc", false, "mount /proc anew, see newProc")
	if flags.Parse(args) != nil {
		return 2
	}
	if *renew {
		return newProc(g.run)
	}
	if *mark != "" {
		for _, pid := range withMark(*mark) {
			fmt.Println(pid)
		}
		return 0
	}
	if err := g.serve(*connect, *fd, *once); err != nil {
		fmt.Fprintln(os.Stderr, "cove-guest:", err)
		return 1
	}
	return 0
}

type guest struct {
	workspace string
	run       string
	user      int
	root      bool // programs may be run as root, too
	named     namedProcessors
	procs     *table
	drivers   drivers
	kernels   kernels
	parts     parts
	processes processes
	dials     atomic.Int32 // connections of OpPortDial
	forwards  atomic.Bool  // somebody's OpForward is being served
	network   network
	watches   atomic.Int32 // OpFilesWatch being served
}

func (g *guest) serve(socket string, fd int, once bool) error {
	debug.SetGCPercent(gcPercent)
	// Terminal signals and a closing host must not end the guest before it has cleaned up.
	// Caught rather than ignored: what is ignored stays ignored in every program started from here, and then nothing there
	// could be terminated.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGTERM)
	if g.user != 0 {
		if err := g.ownWorkspace(); err != nil {
			return err
		}
		if err := g.coverProcessors(); err != nil {
			return err
		}
		if err := dropBoundingSet(); err != nil {
			return err
		}
		trust(nil)
	} else if err := becomeSubreaper(); err != nil {
		return err
	}
	var err error
	if g.procs, err = newTable(g.user != 0); err != nil {
		return err
	}
	go g.procs.reap()
	if g.root {
		if err := g.serveSudo(); err != nil {
			return err
		}
	}
	if socket != "" && !once {
		g.stayConnected(socket)
	}
	var stream net.Conn
	if socket != "" {
		stream, err = net.Dial("unix", socket)
	} else {
		stream, err = inherited(fd)
	}
	if err != nil {
		return err
	}
	defer g.procs.killDescendants()
	_, err = g.converse(stream)
	return err
}

// ownWorkspace gives the workspace to the sandboxed user where the engine could not, which takes a capability for that.
func (g *guest) ownWorkspace() error {
	info, err := os.Stat(g.workspace)
	if err != nil {
		return err
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && int(of.Uid) == g.user {
		return nil
	}
	return os.Chown(g.workspace, g.user, g.user)
}

func inherited(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "host")
	if f == nil {
		return nil, errors.New("neither --connect nor --fd")
	}
	defer func() { _ = f.Close() }()
	return net.FileConn(f)
}

// converse shakes hands with the host and serves it until the connection ends. served says whether there was a host.
func (g *guest) converse(stream net.Conn) (served bool, err error) {
	conn := wire.NewConn(stream, false)
	info := wire.GuestInfo{PID: os.Getpid(), Workspace: g.workspace, Kernels: g.kernels.pids(), Processes: g.processes.running(), Files: true, Parks: true}
	host, err := conn.Handshake(wire.Hello{Version: wire.Version, Info: wire.Encode(info)}, nil)
	if err != nil {
		return false, fmt.Errorf("handshake: %w", err)
	}
	var wanted wire.SessionInfo
	if json.Unmarshal(host.Info, &wanted) == nil {
		g.keepTo(wanted.Processors)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go g.accept(ctx, conn)
	return true, conn.Run(ctx)
}

func (g *guest) accept(ctx context.Context, conn *wire.Conn) {
	for {
		ch, err := conn.Accept(ctx)
		if err != nil {
			return
		}
		go g.handle(ctx, conn, ch)
	}
}

func (g *guest) handle(ctx context.Context, conn *wire.Conn, ch *wire.Channel) {
	defer func() { _ = ch.Close() }()
	var req wire.Request
	body, err := wire.ReadMessage(ch, wire.MessageLimit, &req)
	if err != nil {
		return
	}
	if err := g.understand(&req); err != nil {
		answer(ch, respond(err), nil)
		return
	}
	switch req.Op {
	case wire.OpFileWrite:
		err = g.writeFile(ch, req)
	case wire.OpFileRead:
		err = g.readFile(ch, req)
	case wire.OpFileList:
		err = g.listFiles(ch)
	case wire.OpFileFolder:
		err = g.listFolder(ch, req)
	case wire.OpFileStat:
		err = g.statFile(ch, req)
	case wire.OpFileMove:
		err = g.moveFile(ch, req)
	case wire.OpFileRemove:
		err = g.removeFile(ch, req)
	case wire.OpFileFolderMake:
		err = g.makeFolder(ch, req)
	case wire.OpProcessRun:
		err = g.runProcess(ch, req)
	case wire.OpProcessStart:
		err = g.startProcess(ch, req)
	case wire.OpProcessList:
		err = g.listProcesses(ch)
	case wire.OpProcessFollow:
		err = g.followProcess(ctx, ch, req)
	case wire.OpProcessInput:
		err = g.writeProcess(ctx, ch, req)
	case wire.OpProcessResize:
		err = g.resizeProcess(ch, req)
	case wire.OpPortList:
		err = g.listPorts(ch)
	case wire.OpPortDial:
		err = g.dialPort(ctx, ch, req)
	case wire.OpProcessSignal:
		err = g.signalProcess(ch, req)
	case wire.OpKernelStart:
		err = g.runDriver(ch, req, body, kernel)
	case wire.OpApartStart:
		err = g.runDriver(ch, req, body, apart)
	case wire.OpKernelAttach:
		err = g.attachKernel(ch, req)
	case wire.OpForward:
		err = g.forward(ctx, conn, ch)
	case wire.OpFilesWatch:
		err = g.watch(ctx, ch, req)
	case wire.OpFilesStat, wire.OpFilesList, wire.OpFilesRead, wire.OpFilesWrite, wire.OpFilesChange, wire.OpFilesMove, wire.OpFilesCopy, wire.OpFilesRemove,
		wire.OpFilesFolder, wire.OpFilesLink, wire.OpFilesSearch, wire.OpFilesReplace:
		err = g.filesystem(ch, req)
	case wire.OpReboot:
		err = g.reboot(ch)
	case wire.OpNetwork:
		err = g.serveNetwork(ctx, conn, ch, body)
	default:
		err = fault{wire.FaultInvalid, fmt.Sprintf("unknown operation %q", req.Op)}
	}
	if err != nil {
		if req.Files != nil {
			g.asAsked(err)
		}
		answer(ch, respond(err), nil)
	}
}

// answer ends an operation. It cannot fail in a way that matters: then the host is gone and nobody is left to tell.
func answer(ch *wire.Channel, r wire.Response, body []byte) {
	_ = wire.WriteMessage(ch, r, body)
	_ = ch.CloseWrite()
}

// fault is an error with a code for the host.
type fault struct{ code, message string }

func (f fault) Error() string { return f.message }

// missing says what is not there, without the name of a system call.
func missing(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		if path.IsAbs(p.Path) {
			return fmt.Sprintf("there is no %.300q", p.Path)
		}
		return fmt.Sprintf("there is no %.300q in the workspace", p.Path)
	}
	return err.Error()
}

// leadsOut says that os.Root refused a symlink that leads out of the workspace; package os exports no value for that. Code can put one where none was seen
// a moment before.
func leadsOut(err error) bool { return strings.HasSuffix(err.Error(), "path escapes from parent") }

func respond(err error) wire.Response {
	var f fault
	switch {
	case errors.As(err, &f):
	case errors.Is(err, os.ErrNotExist):
		f = fault{wire.FaultNotFound, missing(err)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f = fault{wire.FaultNoSpace, err.Error()}
	case errors.Is(err, syscall.ENOTEMPTY): // which is os.ErrExist as well
		f = fault{wire.FaultNotEmpty, err.Error()}
	case errors.Is(err, os.ErrExist), errors.Is(err, syscall.EISDIR):
		f = fault{wire.FaultExists, err.Error()}
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ENOTDIR):
		f = fault{wire.FaultPath, err.Error()}
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		f = fault{wire.FaultDenied, err.Error()}
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.ELOOP), leadsOut(err):
		f = fault{wire.FaultDenied, err.Error()}
	default:
		f = fault{wire.FaultInternal, err.Error()}
	}
	return wire.Response{Code: f.code, Message: f.message}
}
