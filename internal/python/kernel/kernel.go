// Package kernel is the host's view of one stateful Python interpreter in a
// sandbox: it starts the driver (kernel.py, embedded), runs code in it and turns what comes back into events. Everything that a kernel sends is hostile; how an
// execution ended and how long it took is measured here.
package kernel

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// driver has the parts of the file that the guest runs.
//
//go:embed kernel.py tools.py comms.py widgets.py variables.py plot_style.py model_view.py charts.py vega.py error_hints.py compat_shims.py spawn.py packages.py ffprobe.py
var driver embed.FS

// Main is the name of the kernel that every session has.
const Main = "main"

// DefaultOutputLimit bounds the output of one execution, in bytes.
const DefaultOutputLimit = 64 << 20

// startTimeout bounds the interpreter's start, which imports IPython; a loaded machine takes seconds.
const startTimeout = 90 * time.Second

// Config says how to start a kernel.
type Config struct {
	Python string   // the interpreter's path inside the sandbox
	Env    []string // KEY=value
	Memory int64    // bytes that the sandbox's code may hold before it is killed; 0 means no watch
	// AddressSpace bounds the interpreter's address space, in bytes; 0 leaves it as it is. A process can only make the bound smaller, so a kernel that is to be
	// copied is started without one.
	AddressSpace int64
	// Reseed is for Attach to a copy of a kernel: the global random generators of Python and of libraries start anew.
	// Without Reseed they continue their sequences.
	Reseed bool
	// Paths are folders with packages that the interpreter looks in from its start. Only Start uses them; Attach leaves a kernel the folders that it has.
	Paths Paths
}

// Kernel is one running interpreter. Executions run one at a time; Execute waits until the one before it has ended.
type Kernel struct {
	process *guestlink.Process
	config  Config
	version string
	tools   bool   // the driver knows calls of tools; that of a session that an older cove has saved does not
	name    string // of this owner of the kernel; part of every request's id

	idle     chan struct{} // holds one token while no execution runs
	messages chan message
	exited   chan struct{} // closed when nothing more comes; exit says why
	exit     message
	closing  chan struct{}
	close    sync.Once
	dead     chan struct{} // closed when the kernel cannot run anything any more
	die      sync.Once
	count    int // of requests
}

// message is what the guest passed on from the driver, or the error that ended the connection.
type message struct {
	head wire.FromProcess
	body []byte
	err  error
}

// Start starts a kernel through l and returns when it is ready for code.
func Start(ctx context.Context, l *guestlink.Link, c Config) (*Kernel, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	source, err := driverSource()
	if err != nil {
		return nil, err
	}
	p, err := l.StartKernel(ctx, wire.ProcessSpec{Args: []string{c.Python}, Env: c.Env}, source)
	if err != nil {
		return nil, err
	}
	k := newKernel(p, c)
	err = k.awaitReady(ctx)
	if err == nil && !c.Paths.empty() {
		err = k.AddPaths(ctx, c.Paths)
	}
	if err == nil && c.AddressSpace > 0 {
		err = k.settle(ctx, false)
	}
	if err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

func driverSource() ([]byte, error) {
	var source []byte
	// The last ends in the call of main.
	for _, name := range []string{"kernel.py", "tools.py", "comms.py", "widgets.py", "variables.py", "plot_style.py", "model_view.py", "charts.py", "vega.py", "error_hints.py", "compat_shims.py", "spawn.py", "packages.py"} {
		part, err := driver.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if name == "packages.py" {
			probe, err := driver.ReadFile("ffprobe.py")
			if err != nil {
				return nil, err
			}
			source = fmt.Appendf(source, "\n\nFFPROBE = %+q\n", probe) // what Go quotes in ASCII means the same in Python
		}
		source = append(source, part...)
	}
	return source, nil
}

func newKernel(p *guestlink.Process, c Config) *Kernel {
	k := &Kernel{
		process: p, config: c, name: rand.Text(),
		idle:     make(chan struct{}, 1),
		messages: make(chan message),
		exited:   make(chan struct{}),
		closing:  make(chan struct{}),
		dead:     make(chan struct{}),
	}
	k.idle <- struct{}{}
	go k.receive()
	return k
}

func (k *Kernel) receive() {
	for {
		h, body, err := k.process.Receive()
		m := message{h, body, err}
		last := err != nil || h.Kind == wire.FromExit
		if last {
			k.exit = m
			close(k.exited)
		}
		if !k.deliver(m) || last {
			return
		}
	}
}

// What an interpreter sends while no request runs is kept for the next one, but not for long if it is much: code could fill the host's memory with it.
const (
	unheardKept  = 1 << 20 // bytes
	unheardGrace = time.Second
)

// deliver hands a message to the request that runs. It returns false when the kernel is closed.
func (k *Kernel) deliver(m message) bool {
	var late <-chan time.Time
	if len(m.body) > unheardKept {
		tick := time.NewTicker(unheardGrace)
		defer tick.Stop()
		late = tick.C
	}
	for {
		select {
		case k.messages <- m:
			return true
		case <-k.closing:
			return false
		case <-late:
			if len(k.idle) == 1 { // no request runs
				m = message{head: wire.FromProcess{Kind: wire.FromStdout}}
			}
		}
	}
}

func (k *Kernel) awaitReady(ctx context.Context) error {
	var said strings.Builder
	for {
		select {
		case <-ctx.Done():
			return problem.New(problem.KernelStartTimeout, "the Python interpreter did not become ready in time").WithCause(ctx.Err())
		case m := <-k.messages:
			switch {
			case m.err != nil:
				return fmt.Errorf("start kernel: %w", m.err)
			case m.head.Kind == wire.FromExit:
				return problem.New(problem.KernelStartFailed, "the Python interpreter ended before it was ready").
					WithHint("run `cove doctor`").WithCause(errors.New(strings.TrimSpace(said.String())))
			case m.head.Kind == wire.FromMessage:
				var ready struct {
					Type, Python string
					Tools        bool
				}
				if json.Unmarshal(m.body, &ready) != nil || ready.Type != "ready" {
					return problem.New(problem.KernelProtocolError, "the Python interpreter did not follow the protocol at its start")
				}
				k.version, k.tools = ready.Python, ready.Tools
				return nil
			case said.Len() < 8<<10:
				said.Write(m.body)
			}
		}
	}
}

// Version returns the version that the interpreter reports.
func (k *Kernel) Version() string { return k.version }

// Dead is closed when the kernel cannot run anything any more.
func (k *Kernel) Dead() <-chan struct{} { return k.dead }

// PID is the interpreter's process id inside the sandbox, by which Attach finds it.
func (k *Kernel) PID() int { return k.process.PID }

// Close ends the kernel, unless it was detached.
func (k *Kernel) Close() {
	k.close.Do(func() {
		close(k.closing)
		k.process.Close()
	})
	k.markDead()
}

func ended() error { return problem.New(problem.KernelDied, "the kernel has ended") }

func (k *Kernel) markDead() { k.die.Do(func() { close(k.dead) }) }

func (k *Kernel) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return k.process.Send(wire.ToKernel{Kind: wire.ToMessage}, b)
}

func (k *Kernel) signal(s syscall.Signal) {
	_ = k.process.Send(wire.ToKernel{Kind: wire.ToSignal, Signal: int(s)}, nil)
}

// nextID returns a new request's id, unique among all owners of the kernel: answers to requests of a former owner may still come.
func (k *Kernel) nextID(kind string) string {
	k.count++
	return kind + "-" + k.name + "-" + strconv.Itoa(k.count)
}

// Execute runs code and yields its events; the last is a Done, unless the kernel cannot be reached, which is the error. When ctx ends, or the consumer leaves
// the range, the code is interrupted: SIGINT, again, then the kernel is killed.
func (k *Kernel) Execute(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		select {
		case <-k.idle:
			defer func() { k.idle <- struct{}{} }()
		case <-k.closing:
			yield(nil, ended())
			return
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			yield(nil, problem.New(problem.GivenUp, "the execution was canceled before it began").WithCause(ctx.Err()))
			return
		}
		if req.Tools != nil && req.Tools.Set.Len() > 0 && !k.tools {
			yield(nil, problem.New(problem.KernelOld, "the session was saved by an older cove, whose interpreter cannot call tools").WithHint("begin a new interpreter (restart), or make a new session"))
			return
		}
		x := &execution{kernel: k, req: req, id: k.nextID("exe"), yield: yield, began: time.Now(), limit: req.OutputLimit}
		if x.limit == 0 {
			x.limit = DefaultOutputLimit
		}
		if err := x.send(); err != nil {
			if x.diedBefore(ctx) {
				return
			}
			k.markDead()
			yield(nil, fmt.Errorf("execute: %w", err))
			return
		}
		x.open(ctx)
		x.run(ctx)
	}
}

// run has an execution go on until it is over or parked.
func (x *execution) run(ctx context.Context) {
	x.loop(ctx)
	if x.parking.done {
		x.kernel.Close() // the guest has let the kernel go
		x.emit(Parked{x})
		return
	}
	x.close()
	if x.rung > 0 {
		x.kernel.absorb()
	}
}

// absorbGrace bounds how long the next execution waits for an interpreter that does not react to interrupts.
const absorbGrace = 2 * time.Second

// absorb waits until the interpreter has handled the interrupts of an execution that has ended: one that arrived after the reply was sent would hit the next
// execution.
func (k *Kernel) absorb() {
	ctx, cancel := context.WithTimeout(context.Background(), absorbGrace)
	defer cancel()
	select {
	case <-k.dead:
	default:
		_ = k.answered(ctx, map[string]any{"type": "is_complete", "code": ""}, "is_complete_reply", &struct{}{}) // an error: the next execution reports it
	}
}

// What a kernel says of code that somebody types is of the sandbox, and bounded here.
const (
	mostMatches = 1000
	longMatch   = 1000     // bytes
	longText    = 64 << 10 // bytes of what is written of a name
)

// Complete returns the completions of code at cursor (in characters) and the span they replace.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (matches []string, start, end int, err error) {
	var reply struct {
		Matches    []string
		Start, End int
	}
	err = k.ask(ctx, map[string]any{"type": "complete", "code": code, "cursor": cursor}, "complete_reply", &reply)
	matches = slices.DeleteFunc(reply.Matches, func(m string) bool { return m == "" || len(m) > longMatch })
	whole := utf8.RuneCountInString(code)
	end = min(max(reply.End, 0), whole)
	return matches[:min(len(matches), mostMatches)], min(max(reply.Start, 0), end), end, err
}

// Describe says what the name at cursor (in characters) of code stands for: its signature and what is written of it; "" where that is nothing known.
func (k *Kernel) Describe(ctx context.Context, code string, cursor int) (string, error) {
	var reply struct{ Text string }
	err := k.ask(ctx, map[string]any{"type": "inspect", "code": code, "cursor": cursor}, "inspect_reply", &reply)
	return strings.ToValidUTF8(reply.Text[:min(len(reply.Text), longText)], ""), err
}

// IsComplete says whether code is "complete", "incomplete" or "invalid", for line editors; "unknown" is what cannot be said.
func (k *Kernel) IsComplete(ctx context.Context, code string) (string, error) {
	var reply struct{ Status string }
	err := k.ask(ctx, map[string]any{"type": "is_complete", "code": code}, "is_complete_reply", &reply)
	switch reply.Status {
	case "complete", "incomplete", "invalid":
		return reply.Status, err
	}
	return "unknown", err
}

// ask sends a request that runs no code, once the kernel is idle, and waits for the reply. Output of background threads that comes meanwhile is dropped.
func (k *Kernel) ask(ctx context.Context, question map[string]any, reply string, into any) error {
	select {
	case <-k.idle:
		defer func() { k.idle <- struct{}{} }()
	case <-k.closing:
		return ended()
	case <-ctx.Done():
		return ctx.Err()
	}
	return k.answered(ctx, question, reply, into)
}

// answered is ask for a caller that has taken the token of idle.
func (k *Kernel) answered(ctx context.Context, question map[string]any, reply string, into any) error {
	id := k.nextID("ask")
	question["id"] = id
	if err := k.send(question); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.closing:
			return ended()
		case m := <-k.messages:
			if m.err != nil || m.head.Kind == wire.FromExit {
				k.markDead()
				return ended()
			}
			var head struct{ Type, ID string }
			if m.head.Kind == wire.FromMessage && len(m.body) <= longestReply && json.Unmarshal(m.body, &head) == nil && head.Type == reply && head.ID == id {
				return json.Unmarshal(m.body, into)
			}
		}
	}
}
