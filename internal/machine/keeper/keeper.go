// Package keeper keeps a sandbox in memory for commands that come and go: a process that holds it, and what it offers them
// through a socket in a folder of the caller's.
//
// Each connection begins with one request, a line of JSON, which is answered with another:
//
//	watch       says what the sandbox is; the connection lasts until the sandbox ends, and then says why
//	use         afterwards the connection is the sandbox's next one to its guest, until either side ends it
//	checkpoint  saves the sandbox into a folder, and goes on
//	flush       has the keeper save for itself, and go on
//	pause       has the keeper save for itself, and end; the connection lasts until it has
//	stop        ends the sandbox and the keeper, without saving; the connection lasts until they have
//
// That there is one user at a time is not checked: the callers have a lock for that. Only processes of the same user of the machine are served. The keeper does
// not read the sandbox's streams; they are as hostile as the code in the sandbox.
//
// In the folder:
//
//	keeper       locked by the keeper for as long as it lives
//	keeper.sock  the socket on which it listens
package keeper

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

const (
	lockName   = "keeper"
	socketName = "keeper.sock"

	// protocol is the version of these requests and answers. "pause", "flush" and "stop" are the same in all.
	protocol = 1
	// lineLimit bounds a request and an answer, in bytes.
	lineLimit = 16 << 10
	// patience bounds how long the other side may take for a request or an answer that needs no work.
	patience = 10 * time.Second
)

// The operations.
const (
	opWatch      = "watch"
	opUse        = "use"
	opCheckpoint = "checkpoint"
	opShow       = "show"
	opFlush      = "flush"
	opPause      = "pause"
	opStop       = "stop"
)

type request struct {
	Protocol int    `json:"protocol"`
	Op       string `json:"op"`
	Dir      string `json:"dir,omitempty"`  // of a checkpoint: the folder for it, absolute
	Keep     bool   `json:"keep,omitempty"` // of a checkpoint: the sandbox goes on
	Name     string `json:"name,omitempty"` // of what is to be shown in the sandbox
}

type answer struct {
	Fault   *fault `json:"fault,omitempty"`
	Sandbox *about `json:"sandbox,omitempty"`
	// Checkpoint and Size are those of a checkpoint that the engine keeps; "" for one in the files of request.Dir.
	Checkpoint string `json:"checkpoint,omitempty"`
	Size       int64  `json:"size,omitempty"` // bytes
}

// about says what a sandbox is.
type about struct {
	ID        string `json:"id"`
	Identity  string `json:"identity"`
	Workspace string `json:"workspace"`
	Tmp       string `json:"tmp"`
}

// fault is a problem in the form in which it is sent to another process.
type fault struct {
	Kind    problem.Kind `json:"kind"`
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	p := problem.Of(err)
	return &fault{Kind: p.Kind, Code: p.Code, Message: cut(p.Error(), lineLimit/8), Hint: cut(p.Hint, lineLimit/8)}
}

func cut(text string, limit int) string {
	if len(text) > limit {
		return text[:limit] + "..."
	}
	return text
}

func (f *fault) err() error {
	if f == nil {
		return nil
	}
	return problem.Received(f.Kind, f.Code, f.Message).WithHint(f.Hint)
}

func writeLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// readLine reads one line into v. The reader's buffer has room for lineLimit bytes, and no line may be longer.
func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("a line is longer than %d bytes", lineLimit)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// through calls f with a path to the file name in dir that is short enough for a socket's address: those are limited to 107 bytes, and
// folders are not.
func through(dir, name string, f func(path string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
}

func wholeFile(kind int16) *unix.Flock_t { return &unix.Flock_t{Type: kind, Whence: io.SeekStart} }

// Lives says whether a keeper process runs for the folder dir.
func Lives(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	lock := wholeFile(unix.F_WRLCK)
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, lock) == nil && lock.Type != unix.F_UNLCK
}

// Place is a folder that this process keeps a sandbox in.
type Place struct {
	lock     *os.File
	path     string
	listener *net.UnixListener
}

// Occupy makes this process the keeper in the folder dir. When there is one already, that is a problem with code "keeper_lives".
func Occupy(dir string) (*Place, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep a sandbox: %w", err)
	}
	p := &Place{lock: f, path: path}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, wholeFile(unix.F_WRLCK)); err != nil {
		f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, problem.New(problem.KeeperLives, "another process keeps a sandbox in "+dir)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := p.listen(dir); err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	return p, nil
}

func (p *Place) listen(dir string) error {
	return through(dir, socketName, func(path string) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove what another keeper left: %w", err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return fmt.Errorf("open the keeper's socket: %w", err)
		}
		l.SetUnlinkOnClose(false) // the path would be another file's by then
		p.listener = l
		return os.Chmod(path, 0o600)
	})
}

// Stands says whether the folder still exists and this process is its keeper.
func (p *Place) Stands() bool {
	ours, err := p.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(p.path)
	return err == nil && os.SameFile(ours, there)
}

// Leave releases the place for another keeper.
func (p *Place) Leave() error {
	var err error
	if p.listener != nil {
		err = p.listener.Close()
		if p.Stands() {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(p.path), socketName)))
		}
	}
	_ = unix.FcntlFlock(p.lock.Fd(), unix.F_OFD_SETLK, wholeFile(unix.F_UNLCK))
	return errors.Join(err, p.lock.Close())
}

// peer returns the process at the other end, if it is of the same user.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, problem.New(problem.KeeperUser, "the process at the other end belongs to another user")
	}
	return int(cred.Pid), nil
}
