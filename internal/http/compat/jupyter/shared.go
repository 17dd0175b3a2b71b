package jupyter

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// The states of a kernel that clients are told.
const (
	stateBusy       = "busy"
	stateIdle       = "idle"
	stateStarting   = "starting"
	stateRestarting = "restarting" // its interpreter has died
	stateDead       = "dead"
)

// Bounds of what one kernel has in memory.
const (
	mostSockets = 32
	mostWaiting = 128     // requests of clients that wait for those before them
	mostKept    = 1000    // messages for a client that went away
	keptRoom    = 4 << 20 // bytes of those
	keptFor     = 5 * time.Minute
)

// shared is what the clients of one kernel share: they see each other's output, and their requests are served one after the other. It exists while
// clients are connected, a request is served, or messages are kept for a client that may come back.
type shared struct {
	s     *server
	place place
	label string // of this interpreter, in headers

	mu        sync.Mutex
	users     int // sockets and requests that hold it
	sockets   map[*socket]struct{}
	queue     []*request
	working   bool
	execution string // of the hub, which runs
	running   bool   // code of a client is started or runs
	stop      bool   // an interrupt came before the code was started
	gone      bool   // the kernel was deleted
	quitting  bool   // the server is stopping: connections end when no request is served
	state     string
	count     int               // of the last numbered execution
	restarts  int               // that clients have asked for
	ready     bool              // count and comms are known, and the interpreter is in its folder
	comms     map[string]string // the targets of comms that are open
	hidden    map[string]bool   // executions of the hub that took no number, as far as is remembered
	sent      int
	active    time.Time
	asking    *question
	kept      *kept // nil: nothing is kept
}

// question is code's request for input that a client has not answered.
type question struct {
	of     string // the client
	answer chan string
	failed chan struct{} // closed when the client is gone
}

// kept are messages that nobody was there to get.
type kept struct {
	client   string // that they are for
	messages []*message
	bytes    int64
	until    *time.Timer
}

// join returns what the clients of a kernel share. leave gives it back.
func (s *server) join(p place) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kernels[p.id]
	if k == nil {
		k = &shared{s: s, place: p, label: newUUID(), sockets: map[*socket]struct{}{}, state: stateIdle, comms: map[string]string{}, active: p.session.Used}
		k.ready = p.session.Executions == 0 && p.entry.Dir == ""
		s.kernels[p.id] = k
	}
	k.mu.Lock()
	k.users++
	k.mu.Unlock()
	return k
}

func (s *server) leave(k *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.users--; k.users == 0 && s.kernels[k.place.id] == k {
		delete(s.kernels, k.place.id)
	}
}

// present returns what the clients of a kernel share, nil where it has none.
func (s *server) present(id string) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kernels[id]
}

func (k *shared) look() (state string, active time.Time, connections int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.active, len(k.sockets)
}

// attach adds a client. A connection that the same client had before ends, and what it missed while it had none is sent first.
func (k *shared) attach(c *socket) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return problem.New(problem.KernelNotFound, "Kernel does not exist: "+k.place.id)
	}
	for old := range k.sockets {
		if old.client == c.client {
			delete(k.sockets, old)
			old.end(errReplaced)
		}
	}
	if len(k.sockets) >= mostSockets {
		return problem.New(problem.TooManyRequests, fmt.Sprintf("the kernel has %d connections", mostSockets)).WithHint("end some of them")
	}
	if k.kept != nil && k.kept.client == c.client {
		for _, m := range k.kept.messages {
			c.send(m)
		}
	}
	k.dropKept()
	k.sockets[c] = struct{}{}
	return nil
}

// detach removes a client. When it was the last one, what comes is kept for it for a while.
func (k *shared) detach(c *socket) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.sockets[c]; !there {
		return
	}
	delete(k.sockets, c)
	if q := k.asking; q != nil && q.of == c.client {
		close(q.failed)
		k.asking = nil
	}
	if len(k.sockets) > 0 || !k.working || k.gone {
		return
	}
	k.users++ // until dropKept
	one := &kept{client: c.client}
	one.until = time.AfterFunc(keptFor, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.kept == one {
			k.dropKept()
		}
	})
	k.kept = one
}

// dropKept forgets what was kept. The caller holds mu.
func (k *shared) dropKept() {
	if k.kept == nil {
		return
	}
	k.kept.until.Stop()
	k.kept = nil
	go k.s.leave(k) // which takes locks that come before mu
}

// deliver sends a message to a client, or to all when to is "".
func (k *shared) deliver(m *message, to string) {
	k.mu.Lock()
	k.sent++
	k.active = k.s.Now()
	m.header = header{ID: fmt.Sprintf("%s_%d", k.label, k.sent), Type: m.header.Type, Username: "cove", Session: k.label, Date: moment(k.active), Version: "5.3"}
	var list []*socket
	for c := range k.sockets {
		if to == "" || c.client == to {
			list = append(list, c)
		}
	}
	if len(k.sockets) == 0 && k.kept != nil && (to == "" || to == k.kept.client) {
		k.keep(m)
	}
	k.mu.Unlock()
	for _, c := range list {
		c.send(m)
	}
}

// keep keeps a message, as far as there is room. The caller holds mu.
func (k *shared) keep(m *message) {
	if _, err := m.encode(false); err != nil || len(k.kept.messages) >= mostKept || k.kept.bytes+m.size() > keptRoom {
		return
	}
	k.kept.bytes += m.size()
	k.kept.messages = append(k.kept.messages, m)
}

// publish shows something to all clients.
func (k *shared) publish(kind string, parent json.RawMessage, content, metadata any) {
	k.deliver(&message{channel: iopubChannel, header: header{Type: kind}, parent: parent, content: content, metadata: metadata}, "")
}

// tell shows the kernel's state to all clients.
func (k *shared) tell(state string, parent json.RawMessage) {
	k.mu.Lock()
	if k.gone {
		state = stateDead
	}
	k.state = state
	k.mu.Unlock()
	k.show(state, parent)
}

// show shows clients a state which is that of a request, and not the kernel's.
func (k *shared) show(state string, parent json.RawMessage) {
	k.publish("status", parent, map[string]string{"execution_state": state}, nil)
}

func (k *shared) renumber(count int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count = count
}

// renewed is for a new interpreter: it numbers from the beginning, is not in its folder, and has no comms.
func (k *shared) renewed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count, k.ready, k.comms = 0, k.place.entry.Dir == "", map[string]string{}
}

// abort has the requests that wait answered without being served.
func (k *shared) abort() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.queue {
		r.aborted = true
	}
}

// restarting notes that clients have asked for a new interpreter.
func (k *shared) restarting() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restarts++
}

func (k *shared) restartedSince(restarts int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.restarts != restarts
}

// interrupt returns the hub's execution that is to be interrupted. Where code is about to be started it is handled, and there is none yet.
func (k *shared) interrupt() (execution string, handled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running && k.execution == "" {
		k.stop = true
	}
	return k.execution, k.running
}

// die says that the kernel was deleted, and ends the connections of its clients.
func (k *shared) die() {
	k.mu.Lock()
	k.gone = true
	k.mu.Unlock()
	k.tell(stateDead, nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropKept()
	for c := range k.sockets {
		c.finish()
	}
}

// quit ends the connections of a server that is stopping, as soon as nothing runs.
func (k *shared) quit() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.quitting = true
	if k.working {
		return
	}
	for c := range k.sockets {
		c.finish()
	}
}

// ask has a client answer code's request for input. over is closed when nobody waits for that any more.
func (k *shared) ask(over <-chan struct{}, r *request, prompt string, password bool) (string, error) {
	q := &question{of: r.client, answer: make(chan string, 1), failed: make(chan struct{})}
	k.mu.Lock()
	there := k.asking == nil && !k.gone
	if there {
		there = false
		for c := range k.sockets {
			there = there || c.client == r.client
		}
	}
	if !there {
		k.mu.Unlock()
		return "", io.EOF
	}
	k.asking = q
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.asking == q {
			k.asking = nil
		}
	}()
	k.deliver(&message{channel: stdinChannel, header: header{Type: "input_request"}, parent: r.header, content: map[string]any{"prompt": prompt, "password": password}}, r.client)
	select {
	case text := <-q.answer:
		return text, nil
	case <-q.failed:
	case <-over:
	}
	return "", io.EOF
}

// answer takes a client's input.
func (k *shared) answer(client, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if q := k.asking; q != nil && q.of == client {
		k.asking = nil
		q.answer <- text
	}
}
