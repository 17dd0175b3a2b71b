package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"cove/internal/machine/wire"
)

// drivers keeps the drivers' sources as files, one per version.
type drivers struct{ mu sync.Mutex }

func (d *drivers) file(dir string, source []byte) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := sha256.Sum256(source)
	path := filepath.Join(dir, "kernel-"+hex.EncodeToString(sum[:6])+".py")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, os.WriteFile(path, source, 0o644)
}

// role says what a process is to the guest.
type role int

const (
	program role = iota // runs as the sandboxed user and ends with its channel
	kernel              // has a driver's descriptors too, outlives its connection and can be taken over
	apart               // has a driver's descriptors too, runs where sandboxed code has no hold on it, and ends with its channel
)

// as says how a process of role r starts. A user of its own has no files and may do nothing but compute, so that it can be one number
// above the sandboxed code's without having been arranged for anywhere.
func (g *guest) as(r role) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if g.user == 0 {
		return attr
	}
	id := uint32(g.user)
	if r == apart {
		id++
		attr.Credential = &syscall.Credential{Uid: id, Gid: id}
		return attr
	}
	attr.Credential = &syscall.Credential{Uid: id, Gid: id, Groups: []uint32{id}}
	return attr
}

// runDriver starts a kernel, or another driver, and stays with it until it has ended.
func (g *guest) runDriver(ch *wire.Channel, req wire.Request, source []byte, r role) error {
	if req.Process == nil || len(req.Process.Args) == 0 {
		return fault{wire.FaultInvalid, "no interpreter named"}
	}
	driver, err := g.drivers.file(g.run, source)
	if err != nil {
		return err
	}
	spec := *req.Process
	spec.Args = append(append([]string{}, spec.Args...), driver)
	if r == kernel {
		spec.Args = append(spec.Args, textInFrames)
	}
	return g.launch(ch, spec, r)
}

// attachKernel hands a living kernel over to the host at the other end of ch and obeys that host until the channel ends.
func (g *guest) attachKernel(ch *wire.Channel, req wire.Request) error {
	r, how := g.kernels.find(req.PID)
	if r != nil && !r.takeOver(ch) {
		<-r.ended
		r, how = nil, r.how()
	}
	if r == nil && how == "" {
		return fault{wire.FaultNotFound, fmt.Sprintf("there is no kernel with process id %d", req.PID)}
	}
	if r == nil {
		return fault{wire.FaultNotFound, fmt.Sprintf("the kernel with process id %d is gone: %s", req.PID, how)}
	}
	r.control(ch)
	return nil
}

// runProcess runs a program to its end.
func (g *guest) runProcess(ch *wire.Channel, req wire.Request) error {
	if req.Process == nil || len(req.Process.Args) == 0 {
		return fault{wire.FaultInvalid, "no program named"}
	}
	return g.launch(ch, *req.Process, program)
}

// launch starts a process and serves it. Its errors are those of starting; what comes later is told in messages.
func (g *guest) launch(ch *wire.Channel, spec wire.ProcessSpec, r role) error {
	p, err := openPlumbing(r != program)
	if err != nil {
		return err
	}
	defer p.close()
	dir := spec.Dir
	switch {
	case dir != "":
	case r == apart:
		dir = "/"
	default:
		dir = g.workspace
		if err := g.asUser(g.mendWorkspace); err != nil {
			return err
		}
	}
	attr := &syscall.ProcAttr{Dir: dir, Env: spec.Env, Files: p.child(), Sys: g.as(r)}
	pid, exit, err := g.procs.start(spec.Args[0], spec.Args, attr)
	p.closeChild()
	if err != nil {
		return err
	}
	run := newRunner(g, p, pid, exit)
	run.kernel = r == kernel
	if run.kernel {
		g.kernels.add(run)
		defer g.kernels.remove(run)
	}
	if err := wire.WriteMessage(ch, wire.Response{PID: pid}, nil); err != nil {
		run.signal(syscall.SIGKILL)
	}
	run.serve(ch)
	p.out = run.out
	return nil
}

// plumbing is the set of file descriptors between the guest and one process.
type plumbing struct {
	null      int
	out       [2]int
	childOut  [2]int
	socket    int
	childSock int
	ackWrite  int
	childAck  int
	wake      [2]int
	epoll     int
}

func openPlumbing(driver bool) (p *plumbing, err error) {
	p = &plumbing{null: -1, out: [2]int{-1, -1}, childOut: [2]int{-1, -1}, socket: -1, childSock: -1, ackWrite: -1, childAck: -1, wake: [2]int{-1, -1}, epoll: -1}
	defer func() {
		if err != nil {
			p.closeChild()
			p.close()
		}
	}()
	if p.null, err = syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		return nil, err
	}
	for i := range p.out {
		if p.out[i], p.childOut[i], err = pipe(); err != nil {
			return nil, err
		}
		if err = syscall.SetNonblock(p.out[i], true); err != nil {
			return nil, err
		}
	}
	if p.wake[0], p.wake[1], err = pipe(); err != nil {
		return nil, err
	}
	if p.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil || !driver {
		return p, err
	}
	if p.childAck, p.ackWrite, err = pipe(); err != nil {
		return nil, err
	}
	// A driver that never reads its acknowledgements must not hang the guest.
	if err = syscall.SetNonblock(p.ackWrite, true); err != nil {
		return nil, err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p.socket, p.childSock = pair[0], pair[1]
	return p, nil
}

func pipe() (r, w int, err error) {
	var fds [2]int
	err = syscall.Pipe2(fds[:], syscall.O_CLOEXEC)
	return fds[0], fds[1], err
}

// child lists the descriptors as the process gets them: 0, 1, 2 and for a driver 3 (messages) and 4 (acknowledgements).
func (p *plumbing) child() []uintptr {
	files := []uintptr{uintptr(p.null), uintptr(p.childOut[0]), uintptr(p.childOut[1])}
	if p.childSock >= 0 {
		files = append(files, uintptr(p.childSock), uintptr(p.childAck))
	}
	return files
}

func closeAll(fds ...*int) {
	for _, fd := range fds {
		if *fd >= 0 {
			_ = syscall.Close(*fd)
			*fd = -1
		}
	}
}

func (p *plumbing) closeChild() {
	closeAll(&p.null, &p.childOut[0], &p.childOut[1], &p.childSock, &p.childAck)
}

func (p *plumbing) close() {
	closeAll(&p.out[0], &p.out[1], &p.socket, &p.ackWrite, &p.wake[0], &p.wake[1], &p.epoll)
}
