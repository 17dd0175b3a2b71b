package toolbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

const (
	ptyLabel    = "daytona pty " // begins the label of a terminal's process
	mostLazy    = 100            // terminals of all sandboxes that begin with their first client
	largestSize = 1000           // columns or rows
)

// ptys are what is known here of terminals beside their processes.
type ptys struct {
	mu  sync.Mutex
	all map[string]ptyRequest // by the session and the id
}

type ptyRequest struct {
	ID      string            `json:"id"`
	Dir     string            `json:"cwd"`
	Env     map[string]string `json:"envs"`
	Columns int               `json:"cols"`
	Rows    int               `json:"rows"`
	Lazy    bool              `json:"lazyStart"`
	created time.Time
	waiting bool // nothing has been started yet
}

// check returns what is wrong with a request for a terminal, and fills in what it leaves out.
func (r *ptyRequest) check() error {
	if r.ID == "" {
		code, _ := auth.RandomCode()
		r.ID = code
	}
	if r.Columns == 0 {
		r.Columns = 80
	}
	if r.Rows == 0 {
		r.Rows = 24
	}
	if !sessionName().MatchString(r.ID) {
		return invalid("id: a terminal's id has 1 to 80 letters, digits and signs of . _ : @ -, and begins with a letter or a digit")
	}
	if r.Columns < 1 || r.Rows < 1 || r.Columns > largestSize || r.Rows > largestSize {
		return invalid(fmt.Sprintf("cols, rows: a terminal has 1 to %d of them", largestSize))
	}
	if err := process.CheckEnvironment(r.Env); err != nil {
		return invalid("envs: " + problem.Of(err).Message)
	}
	return nil
}

// shownPTY is a terminal as clients see it.
type shownPTY struct {
	ID      string            `json:"id"`
	Dir     string            `json:"cwd"`
	Columns int               `json:"cols"`
	Rows    int               `json:"rows"`
	Env     map[string]string `json:"envs"`
	Active  bool              `json:"active"`
	Created time.Time         `json:"createdAt"`
	Lazy    bool              `json:"lazyStart"`
}

func shownRequest(r ptyRequest) shownPTY {
	env := r.Env
	if env == nil {
		env = map[string]string{}
	}
	return shownPTY{ID: r.ID, Dir: r.Dir, Columns: r.Columns, Rows: r.Rows, Env: env, Created: r.created, Lazy: r.Lazy}
}

func (t *Toolbox) ptyKnown(session, id string) (ptyRequest, bool) {
	t.ptys.mu.Lock()
	defer t.ptys.mu.Unlock()
	r, ok := t.ptys.all[session+" "+id]
	return r, ok
}

func (t *Toolbox) ptyKeep(session string, r ptyRequest) {
	t.ptys.mu.Lock()
	defer t.ptys.mu.Unlock()
	if t.ptys.all == nil || len(t.ptys.all) > mostContexts {
		t.ptys.all = map[string]ptyRequest{} // what is lost is their variables, and those that have not begun
	}
	t.ptys.all[session+" "+r.ID] = r
}

func (t *Toolbox) ptyForget(session, id string) {
	t.ptys.mu.Lock()
	defer t.ptys.mu.Unlock()
	delete(t.ptys.all, session+" "+id)
}

// ptyAll are the terminals whose processes run, by their ids.
func (t *Toolbox) ptyAll(c *call) (map[string]process.Info, error) {
	all, err := t.o.Hub.Processes(c.Context(), c.who, c.id())
	if err != nil {
		return nil, err
	}
	out := map[string]process.Info{}
	for _, i := range all {
		if id, ok := strings.CutPrefix(i.Label, ptyLabel); ok && i.Exit == nil && i.Terminal != nil {
			out[id] = i
		}
	}
	return out, nil
}

func (t *Toolbox) ptyShown(c *call, id string, i process.Info) shownPTY {
	r, ok := t.ptyKnown(c.id(), id)
	if !ok {
		r = ptyRequest{ID: id, created: i.Started}
	}
	r.Dir, r.Columns, r.Rows = i.Dir, i.Terminal.Columns, i.Terminal.Rows
	out := shownRequest(r)
	out.Active = true
	return out
}

func (t *Toolbox) listPTYs(c *call) error {
	all, err := t.ptyAll(c)
	if err != nil {
		return err
	}
	out := []shownPTY{}
	for id, i := range all {
		out = append(out, t.ptyShown(c, id, i))
	}
	t.ptys.mu.Lock()
	for key, r := range t.ptys.all {
		if r.waiting && strings.HasPrefix(key, c.id()+" ") {
			out = append(out, shownRequest(r))
		}
	}
	t.ptys.mu.Unlock()
	slices.SortFunc(out, func(a, b shownPTY) int { return a.Created.Compare(b.Created) })
	reply(c.w, http.StatusOK, map[string]any{"sessions": out})
	return nil
}

func ptyAbsent(id string) error {
	return &fault{http.StatusNotFound, "NOT_FOUND", fmt.Sprintf("PTY session not found: %.100s", id)}
}

// ptyOf returns the process of a terminal, and starts it where it has waited for its first client.
func (t *Toolbox) ptyOf(c *call, id string) (process.Info, error) {
	all, err := t.ptyAll(c)
	if err != nil {
		return process.Info{}, err
	}
	if i, ok := all[id]; ok {
		return i, nil
	}
	if r, ok := t.ptyKnown(c.id(), id); ok && r.waiting {
		return t.startPTY(c, r)
	}
	return process.Info{}, ptyAbsent(id)
}

func (t *Toolbox) showPTY(c *call) error {
	id := c.PathValue("pty")
	all, err := t.ptyAll(c)
	if err != nil {
		return err
	}
	if i, ok := all[id]; ok {
		reply(c.w, http.StatusOK, t.ptyShown(c, id, i))
		return nil
	}
	if r, ok := t.ptyKnown(c.id(), id); ok && r.waiting {
		reply(c.w, http.StatusOK, shownRequest(r))
		return nil
	}
	return ptyAbsent(id)
}

// newPTY looks at a request for a terminal, whose id must be free.
func (t *Toolbox) newPTY(c *call, r *ptyRequest) error {
	if err := r.check(); err != nil {
		return err
	}
	r.Dir, r.created = c.s.absolute(r.Dir), time.Now().UTC()
	all, err := t.ptyAll(c)
	if err != nil {
		return err
	}
	known, ok := t.ptyKnown(c.id(), r.ID)
	if _, runs := all[r.ID]; runs || ok && known.waiting {
		return &fault{http.StatusConflict, "CONFLICT", "PTY session with ID " + r.ID + " already exists"}
	}
	return nil
}

func (t *Toolbox) startPTY(c *call, r ptyRequest) (process.Info, error) {
	if err := t.o.Hub.CheckProgram(c.Context(), c.who, ""); err != nil {
		return process.Info{}, err
	}
	info, err := t.o.Hub.StartProcess(c.Context(), c.who, c.id(), process.Start{
		Args: []string{"bash"}, Dir: r.Dir, Env: c.s.environment(r.Env), Label: ptyLabel + r.ID, Terminal: &process.Size{Columns: r.Columns, Rows: r.Rows},
	})
	if err == nil {
		r.waiting = false
		t.ptyKeep(c.id(), r)
	}
	return info, err
}

func (t *Toolbox) makePTY(c *call) error {
	var r ptyRequest
	if err := c.read(&r); err != nil {
		return err
	}
	if err := t.newPTY(c, &r); err != nil {
		return err
	}
	if r.Lazy {
		t.ptys.mu.Lock()
		waiting := 0
		for _, one := range t.ptys.all {
			if one.waiting {
				waiting++
			}
		}
		t.ptys.mu.Unlock()
		if waiting >= mostLazy {
			return problem.New(problem.TooManyRequests, "too many terminals wait for their first client").WithHint("connect to them, or make them without lazyStart")
		}
		r.waiting = true
		t.ptyKeep(c.id(), r)
	} else if _, err := t.startPTY(c, r); err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, map[string]string{"sessionId": r.ID})
	return nil
}

func (t *Toolbox) deletePTY(c *call) error {
	id := c.PathValue("pty")
	r, known := t.ptyKnown(c.id(), id)
	all, err := t.ptyAll(c)
	if err != nil {
		return err
	}
	i, runs := all[id]
	if !runs && (!known || !r.waiting) {
		return ptyAbsent(id)
	}
	t.ptyForget(c.id(), id)
	if runs {
		err = t.o.Hub.SignalProcess(c.Context(), c.who, c.id(), i.ID, "KILL", true)
	}
	if err != nil && !problem.Has(err, problem.ProcessEnded) {
		return err
	}
	reply(c.w, http.StatusOK, map[string]string{"message": "PTY session deleted"})
	return nil
}

func (t *Toolbox) resizePTY(c *call) error {
	var in ptyRequest
	if err := c.read(&in); err != nil {
		return err
	}
	in.ID = c.PathValue("pty")
	if in.Columns < 1 || in.Rows < 1 {
		return invalid("cols, rows: a terminal has at least one of both")
	}
	if err := in.check(); err != nil {
		return err
	}
	if r, ok := t.ptyKnown(c.id(), in.ID); ok && r.waiting {
		r.Columns, r.Rows = in.Columns, in.Rows
		t.ptyKeep(c.id(), r)
		reply(c.w, http.StatusOK, shownRequest(r))
		return nil
	}
	i, err := t.ptyOf(c, in.ID)
	if err == nil {
		err = t.o.Hub.ResizeProcess(c.Context(), c.who, c.id(), i.ID, process.Size{Columns: in.Columns, Rows: in.Rows})
	}
	if err == nil {
		i.Terminal = &process.Size{Columns: in.Columns, Rows: in.Rows}
		reply(c.w, http.StatusOK, t.ptyShown(c, in.ID, i))
	}
	return err
}

func (t *Toolbox) connectPTY(c *call) error {
	i, err := t.ptyOf(c, c.PathValue("pty"))
	if err != nil {
		return err
	}
	return t.terminal(c, i, i.Kept)
}

// createPTY makes a terminal and connects to it, in one request.
func (t *Toolbox) createPTY(c *call) error {
	q := c.URL.Query()
	r := ptyRequest{ID: q.Get("id"), Dir: q.Get("cwd")}
	for name, into := range map[string]*int{"cols": &r.Columns, "rows": &r.Rows} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return invalid(name + " is a number")
			}
			*into = n
		}
	}
	for _, name := range offered(c.Request) {
		text, ok := strings.CutPrefix(name, envProtocol)
		if !ok {
			continue
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
		if err != nil || json.Unmarshal(raw, &r.Env) != nil {
			return invalid("envs: the subprotocol has no variables as JSON in base64url")
		}
	}
	if err := t.newPTY(c, &r); err != nil {
		return err
	}
	if !upgrades(c.Request) {
		return needsUpgrade()
	}
	i, err := t.startPTY(c, r)
	if err != nil {
		return err
	}
	return t.terminal(c, i, 0)
}

// terminal connects a client with the process of a terminal: what that writes goes out in binary messages, and what comes is typed. Clients wait for the first message a tenth of
// a second, so that whatever takes time is done before.
func (t *Toolbox) terminal(c *call, i process.Info, from int64) error {
	noticed := slices.Contains(offered(c.Request), exitProtocol)
	return t.connected(c, func(ctx context.Context, s *socket) (websocket.StatusCode, string) {
		ctx, end := context.WithCancel(ctx)
		defer end()
		if s.control(ctx, map[string]any{"status": "connected"}) != nil {
			return websocket.StatusGoingAway, ""
		}
		go s.listen(end, func(_ websocket.MessageType, data []byte) error {
			_, err := t.o.Hub.TellProcess(ctx, c.who, c.id(), i.ID, bytes.NewReader(data), false)
			return err
		})
		exit, err := t.screen(ctx, c, s, i.ID, from)
		if err != nil {
			return websocket.StatusGoingAway, ""
		}
		said := map[string]any{"exitCode": exit.Status()}
		if exit.Signal != "" {
			said["exitReason"] = "signal: " + exit.Signal
		}
		reason, _ := json.Marshal(said) // a number and a text
		if noticed {
			said["status"] = "exited"
			_ = s.control(ctx, said) // the close has it, too
		}
		return websocket.StatusNormalClosure, string(reason)
	})
}

// control sends a message about the connection.
func (s *socket) control(ctx context.Context, said map[string]any) error {
	said["type"] = "control"
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return s.write(ctx, websocket.MessageText, text)
}

var errScreen = errors.New("the terminal could not be followed to its end")

// screen sends what a terminal shows until its end.
func (t *Toolbox) screen(ctx context.Context, c *call, s *socket, id string, from int64) (process.Exit, error) {
	events, err := t.o.Hub.FollowProcess(ctx, c.who, c.id(), id, from)
	if err != nil {
		return process.Exit{}, err
	}
	for e, err := range events {
		switch {
		case err != nil:
			return process.Exit{}, err
		case e.Kind == process.Ended && e.Exit != nil:
			return *e.Exit, nil
		case e.Kind == process.Terminal:
			if err := s.write(ctx, websocket.MessageBinary, e.Data); err != nil {
				return process.Exit{}, err
			}
		}
	}
	return process.Exit{}, errScreen
}
