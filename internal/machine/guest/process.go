package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cove/internal/machine/wire"
)

// processes knows the processes of a guest that are no kernels. Its zero value is ready for use.
type processes struct {
	mu       sync.Mutex
	all      []*process // in the order of their start
	watching bool       // of their memory
}

// process is one of them. It belongs to nobody's channel.
type process struct {
	start   wire.ProcessStart
	pid     int
	dir     string
	streams *streams
	output  *output
	begun   time.Time
	late    atomic.Bool
	memory  atomic.Bool
	done    chan struct{} // closed when it has ended

	mu     sync.Mutex
	size   *wire.TerminalSize
	ended  time.Time // zero while it runs
	status syscall.WaitStatus
}

// markName is the variable by which all that a process has started is known, also what it has left behind.
const markName = "COVE_PROCESS"

func (g *guest) startProcess(ch *wire.Channel, req wire.Request) error {
	s := req.Start
	if s == nil || len(s.Args) == 0 || s.ID == "" {
		return fault{wire.FaultInvalid, "no program named"}
	}
	p := &process{start: *s, output: newOutput(s.Followed), done: make(chan struct{}), size: s.Terminal, dir: s.Dir}
	if s.Root && !g.root {
		return fault{wire.FaultNoRoot, "the session has no root"}
	}
	if p.dir == "" {
		p.dir = g.workspace
		if err := g.asUser(g.mendWorkspace); err != nil {
			return err
		}
	}
	if err := g.processes.add(p); err != nil {
		return err
	}
	if err := g.launchProcess(p); err != nil {
		g.processes.remove(p)
		return err
	}
	if p.start.Memory > 0 {
		g.watchProcesses(p.start.Memory)
	}
	body, err := json.Marshal(p.info())
	if err != nil {
		return err
	}
	answer(ch, wire.Response{PID: p.pid}, body)
	return nil
}

func (g *guest) launchProcess(p *process) error {
	var path string
	as := g.asUser
	if p.start.Root {
		as = func(f func() error) error { return f() }
	}
	err := as(func() (err error) {
		if fi, err := os.Stat(p.dir); err != nil || !fi.IsDir() {
			return fault{wire.FaultPath, fmt.Sprintf("%.300q is not a folder", p.dir)}
		}
		path, err = lookFor(p.start.Args[0], p.dir, p.start.Env)
		return err
	})
	if err != nil {
		return err
	}
	if p.streams, err = g.openStreams(p.start); err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: p.dir, Env: append(slices.Clone(p.start.Env), markName+"="+p.start.ID), Files: p.streams.child(), Sys: g.as(program)}
	if p.start.Terminal != nil {
		attr.Sys.Setctty, attr.Sys.Ctty = true, 0
	}
	start := g.procs.start
	if p.start.Root {
		start, attr.Sys.Credential = g.procs.startRoot, nil
		attr.Env = rootEnvironment(attr.Env)
	}
	pid, exit, err := start(path, p.start.Args, attr)
	p.streams.closeChild()
	if err != nil {
		p.streams.close()
		if errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.ENOENT) {
			return fault{wire.FaultNoProgram, fmt.Sprintf("%.300q cannot be run: %v", path, err)}
		}
		return err
	}
	p.pid, p.begun = pid, time.Now()
	p.streams.serve(p.output)
	go g.attend(p, exit)
	return nil
}

// attend stays with a process until it has ended.
func (g *guest) attend(p *process, exit <-chan syscall.WaitStatus) {
	if p.start.Timeout > 0 {
		timer := time.AfterFunc(time.Duration(p.start.Timeout)*time.Millisecond, func() {
			p.late.Store(true)
			g.signalAll(p, syscall.SIGKILL)
		})
		defer timer.Stop()
	}
	status := <-exit
	p.streams.drain(p.output) // what it wrote before it ended comes before the end
	p.mu.Lock()
	p.status, p.ended = status, time.Now()
	p.mu.Unlock()
	p.streams.closeInput()
	g.processes.tidy()
	p.output.finish()
	close(p.done)
}

// lookFor finds a program as a shell does.
func lookFor(name, dir string, env []string) (string, error) {
	missing := fault{wire.FaultNoProgram, fmt.Sprintf("there is no program %.300q", name)}
	runnable := func(path string) bool {
		fi, err := os.Stat(path)
		return err == nil && fi.Mode().IsRegular() && syscall.Access(path, 1) == nil
	}
	if strings.ContainsRune(name, '/') {
		if path := name; filepath.IsAbs(path) && runnable(path) || runnable(filepath.Join(dir, path)) {
			return path, nil // a relative one is relative to the folder that the process begins in
		}
		return "", missing
	}
	for _, v := range slices.Backward(env) {
		folders, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, folder := range filepath.SplitList(folders) {
			if path := filepath.Join(folder, name); filepath.IsAbs(folder) && runnable(path) {
				return path, nil
			}
		}
		break
	}
	return "", missing
}

// add records a process that is about to start.
func (a *processes) add(p *process) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	running := 0
	for _, other := range a.all {
		if other.start.ID == p.start.ID {
			return fault{wire.FaultExists, "there is a process with this id"}
		}
		if !other.over() {
			running++
		}
	}
	if running >= wire.ProcessLimit {
		return fault{wire.FaultMany, fmt.Sprintf("%d processes run, which is the most that a session has at a time", running)}
	}
	a.all = append(a.all, p)
	return nil
}

func (a *processes) remove(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(other *process) bool { return other == p })
}

// tidy forgets the processes that ended first, where too many have ended.
func (a *processes) tidy() {
	a.mu.Lock()
	defer a.mu.Unlock()
	var over []*process
	for _, p := range a.all {
		if p.over() {
			over = append(over, p)
		}
	}
	slices.SortFunc(over, func(x, y *process) int { return x.ended.Compare(y.ended) })
	for len(over) > wire.ProcessesEnded {
		gone := over[0]
		gone.streams.close()
		over = over[1:]
		a.all = slices.DeleteFunc(a.all, func(p *process) bool { return p == gone })
	}
}

func (a *processes) list() []*process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.all), func(p *process) bool { return p.pid == 0 })
}

func (a *processes) find(id string) (*process, error) {
	for _, p := range a.list() {
		if p.start.ID == id {
			return p, nil
		}
	}
	return nil, fault{wire.FaultNoProcess, "there is no such process"}
}

// running lists the ids of those that run.
func (a *processes) running() []string {
	ids := []string{}
	for _, p := range a.list() {
		if !p.over() {
			ids = append(ids, p.start.ID)
		}
	}
	return ids
}

func (p *process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ended.IsZero()
}

func (p *process) info() wire.ProcessInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := wire.ProcessInfo{ID: p.start.ID, PID: p.pid, Args: p.start.Args, Dir: p.dir, Label: p.start.Label, Root: p.start.Root, Input: p.start.Input || p.size != nil, Terminal: p.size, Started: p.begun.UnixMicro()}
	i.Kept, i.Written = p.output.span()
	if !p.ended.IsZero() {
		end := p.exit()
		i.Ended, i.Code, i.Signal, i.Late, i.Memory = p.ended.UnixMicro(), end.Code, end.Signal, end.Late, end.Memory
	}
	return i
}

// exit tells of the end of a process. The caller holds mu.
func (p *process) exit() wire.FromProcess {
	h := wire.FromProcess{Kind: wire.FromExit, Code: p.status.ExitStatus(), Late: p.late.Load(), Memory: p.memory.Load()}
	if p.status.Signaled() {
		h.Code, h.Signal = 0, int(p.status.Signal())
	}
	return h
}

func (g *guest) listProcesses(ch *wire.Channel) error {
	infos := []wire.ProcessInfo{}
	for _, p := range g.processes.list() {
		infos = append(infos, p.info())
	}
	body, err := json.Marshal(infos)
	if err != nil {
		return err
	}
	answer(ch, wire.Response{}, body)
	return nil
}

func (g *guest) followProcess(ctx context.Context, ch *wire.Channel, req wire.Request) error {
	p, err := g.processes.find(req.ID)
	if err != nil {
		return err
	}
	if err := wire.WriteMessage(ch, wire.Response{}, nil); err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel() // the follower has gone
		var end [1]byte
		_, _ = ch.Read(end[:])
	}()
	if req.End {
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil
		}
	} else if err = p.output.follow(ctx, req.Offset, pieceAsked(req.Most), func(h wire.FromProcess, body []byte) error { return wire.WriteMessage(ch, h, body) }); err != nil {
		return nil // nobody is left to tell
	}
	p.mu.Lock()
	end := p.exit()
	p.mu.Unlock()
	_, end.At = p.output.span()
	_ = wire.WriteMessage(ch, end, nil)
	_ = ch.CloseWrite()
	return nil
}

// pieceAsked is how much output a message may hold that a host has asked for.
func pieceAsked(most int) int {
	if most <= 0 {
		most = wire.MaxFrame - 1024
	}
	return min(most, wire.ProcessPiece)
}

func (g *guest) signalProcess(ch *wire.Channel, req wire.Request) error {
	p, err := g.processes.find(req.ID)
	if err != nil {
		return err
	}
	signal := syscall.Signal(req.Signal)
	switch {
	case req.Signal <= 0 || req.Signal > 64:
		return fault{wire.FaultInvalid, "there is no such signal"}
	case req.All:
		g.signalAll(p, signal)
	case p.over():
		return fault{wire.FaultEnded, "the process has ended"}
	default:
		if err := syscall.Kill(-p.pid, signal); err != nil && syscall.Kill(p.pid, signal) != nil {
			return fault{wire.FaultEnded, "the process has ended"}
		}
	}
	answer(ch, wire.Response{}, nil)
	return nil
}

// signalAll sends a signal to a process and to everything that it has started. What is killed may have started more meanwhile.
func (g *guest) signalAll(p *process, signal syscall.Signal) {
	for range 20 {
		pids := g.started(p)
		for _, pid := range pids {
			_ = syscall.Kill(pid, signal)
		}
		if signal != syscall.SIGKILL || len(pids) == 0 {
			return
		}
		g.procs.collect()
	}
}

// started lists the living processes that a process has started, and itself.
func (g *guest) started(p *process) []int {
	pids := g.marked(p.start.ID)
	if !p.over() {
		pids = append(append(pids, p.pid), descendants(p.pid)...)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// marked lists the processes of sandboxed code that have the mark of a process. Only that user may read it, so that the guest starts itself as that user.
func (g *guest) marked(id string) []int {
	if g.user == 0 {
		return withMark(id)
	}
	read, write, err := pipe()
	if err != nil {
		return nil
	}
	from := os.NewFile(uintptr(read), "marked")
	defer func() { _ = from.Close() }()
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		_ = syscall.Close(write)
		return nil
	}
	attr := &syscall.ProcAttr{Dir: "/", Files: []uintptr{uintptr(null), uintptr(write), uintptr(null)}, Sys: g.as(program)}
	_, exit, err := g.procs.start("/proc/self/exe", []string{"cove-guest", "--marked=" + id}, attr)
	closeAll(&null, &write)
	if err != nil {
		return nil
	}
	var pids []int
	for {
		var pid int
		if _, err := fmt.Fscan(from, &pid); err != nil {
			break
		}
		// What the user's code may have made of the answer reaches its own processes alone.
		if fi, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); pid > 1 && err == nil && owner(fi) == g.user {
			pids = append(pids, pid)
		}
	}
	<-exit
	return pids
}

func owner(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// withMark lists the living processes that have a mark in their environment.
func withMark(id string) []int {
	var pids []int
	mark := markName + "=" + id
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		env, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), mark) {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(filepath.Base(folder), &pid); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// watchProcesses kills processes while the sandbox holds more memory than it may, the one that was started last first, and as long as any runs.
func (g *guest) watchProcesses(limit int64) {
	g.processes.mu.Lock()
	defer g.processes.mu.Unlock()
	if g.processes.watching {
		return
	}
	g.processes.watching = true
	interval := memoryInterval
	if g.user == 0 {
		interval = memoryIntervalProc
	}
	go func() {
		for before := int64(0); ; time.Sleep(interval) {
			used := g.memoryUsed()
			if over := used > limit; over && before > limit && used >= before {
				g.endOneForMemory()
			}
			before = used
			if g.processes.unwatch() {
				return
			}
		}
	}()
}

// unwatch ends the watch when no process runs, and says whether it has.
func (a *processes) unwatch() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.ContainsFunc(a.all, func(p *process) bool { return !p.over() }) {
		return false
	}
	a.watching = false
	return true
}

func (g *guest) endOneForMemory() {
	for _, p := range slices.Backward(g.processes.list()) {
		if !p.over() {
			p.memory.Store(true)
			g.signalAll(p, syscall.SIGKILL)
			return
		}
	}
}
