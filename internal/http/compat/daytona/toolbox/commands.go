package toolbox

import (
	"context"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"cove/internal/machine/process"
)

// logs are what a command has written: by its streams, and as one.
type logs struct {
	both, stdout, stderr output
	marked               output // both, with marks
	marker               marker
}

func (l *logs) add(kind process.Kind, data []byte) {
	l.both.add(data)
	l.marked.add(l.marker.mark(kind, data))
	if kind == process.Stderr {
		l.stderr.add(data)
	} else {
		l.stdout.add(data)
	}
}

// The forms in which clients of different ages take logs: those before 0.27, and what says no version, as text; those before 0.167 as text with marks; the others as JSON.
type logForm int

const (
	plainLogs logForm = iota
	markedLogs
	splitLogs
)

func formOf(r *http.Request) logForm {
	switch major, minor := sdkVersion(r); {
	case major > 0 || minor >= 167:
		return splitLogs
	case minor >= 27:
		return markedLogs
	}
	return plainLogs
}

// executed is the answer to a command of a session.
type sessionAnswer struct {
	Command  string  `json:"cmdId"`
	ExitCode *int    `json:"exitCode,omitempty"`
	Output   *string `json:"output,omitempty"`
	Stdout   *string `json:"stdout,omitempty"`
	Stderr   *string `json:"stderr,omitempty"`
}

// inSession runs a command in a session, which keeps its folder, variables and functions.
func (t *Toolbox) inSession(c *call) error {
	var in struct {
		Command  string `json:"command"`
		Async    bool   `json:"runAsync"`
		OldAsync bool   `json:"async"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if strings.TrimSpace(in.Command) == "" {
		return invalid("command: there is nothing to run")
	}
	if strings.ContainsRune(in.Command, 0) {
		return invalid("command: it has a zero, which no command can have")
	}
	sh, err := t.shellOf(c, c.PathValue("session"))
	if err != nil {
		return err
	}
	if err := t.o.Hub.CheckProgram(c.Context(), c.who, ""); err != nil {
		return err
	}
	if in.Async || in.OldAsync {
		one, err := t.enqueue(c, sh, in.Command, nil)
		if err == nil {
			reply(c.w, http.StatusAccepted, sessionAnswer{Command: one.id})
		}
		return err
	}
	var l logs
	one, err := t.enqueue(c, sh, in.Command, l.add)
	if err != nil {
		return err
	}
	select {
	case <-one.done:
	case <-c.Context().Done():
		return c.Context().Err() // the command goes on
	}
	sh.mu.Lock()
	exit := one.exit
	sh.mu.Unlock()
	if exit == nil {
		return &fault{http.StatusGone, "SESSION_ENDED", "the session was taken from the command before its end: somebody has paused or deleted the sandbox"}
	}
	answer := sessionAnswer{Command: one.id, ExitCode: exit}
	plain, marked, stdout, stderr := l.both.String(), l.marked.String(), l.stdout.String(), l.stderr.String()
	switch formOf(c.Request) {
	case splitLogs:
		answer.Output, answer.Stdout, answer.Stderr = &marked, &stdout, &stderr
	case markedLogs:
		answer.Output = &marked
	default:
		answer.Output = &plain
	}
	reply(c.w, http.StatusOK, answer)
	return nil
}

// commandOf returns a command of a session.
func (t *Toolbox) commandOf(c *call) (*shell, *command, error) {
	sh, err := t.shellOf(c, c.PathValue("session"))
	if err != nil {
		return nil, nil, err
	}
	t.scan(c, sh)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, one := range sh.commands {
		if one.id == c.PathValue("command") {
			return sh, one, nil
		}
	}
	return nil, nil, &fault{http.StatusNotFound, "NOT_FOUND", "command not found"}
}

func (t *Toolbox) showCommand(c *call) error {
	sh, one, err := t.commandOf(c)
	if err != nil {
		return err
	}
	sh.mu.Lock()
	out := shownCommand{one.id, one.text, one.exit}
	sh.mu.Unlock()
	reply(c.w, http.StatusOK, out)
	return nil
}

// tellCommand writes to the input of a command that runs, with a line end where there is none.
func (t *Toolbox) tellCommand(c *call) error {
	var in struct {
		Data string `json:"data"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	sh, one, err := t.commandOf(c)
	if err != nil {
		return err
	}
	sh.mu.Lock()
	over, begun := one.exit != nil, one.begun
	sh.mu.Unlock()
	if over {
		return &fault{http.StatusGone, "COMMAND_ALREADY_COMPLETED", "the command has ended, and takes no input"}
	}
	if !begun {
		return &fault{http.StatusConflict, "CONFLICT", "the command has not begun: others of its session run before it"}
	}
	if !strings.HasSuffix(in.Data, "\n") {
		in.Data += "\n"
	}
	if _, err := t.o.Hub.TellProcess(c.Context(), c.who, c.id(), sh.process, strings.NewReader(in.Data), false); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// commandLogs answers with what a command has written, or streams what it writes until its end.
func (t *Toolbox) commandLogs(c *call) error {
	sh, one, err := t.commandOf(c)
	if err != nil {
		return err
	}
	if c.URL.Query().Get("follow") == "true" {
		return t.followCommand(c, sh, one)
	}
	var l logs
	if err := t.written(c, sh, one, l.add); err != nil {
		return err
	}
	replyLogs(c, &l)
	return nil
}

func replyLogs(c *call, l *logs) {
	switch formOf(c.Request) {
	case splitLogs:
		reply(c.w, http.StatusOK, map[string]string{"output": l.marked.String(), "stdout": l.stdout.String(), "stderr": l.stderr.String()})
		return
	case markedLogs:
		plainText(c.w, l.marked.String())
	default:
		plainText(c.w, l.both.String())
	}
}

func plainText(w http.ResponseWriter, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(text)) // nobody can be told
}

// written has tell take what a command has written until now.
func (t *Toolbox) written(c *call, sh *shell, one *command, tell func(kind process.Kind, data []byte)) error {
	sh.mu.Lock()
	from, begun, over := one.from, one.begun, one.exit != nil
	sh.mu.Unlock()
	if over {
		return t.output(c.Context(), c, sh, one, tell)
	}
	if !begun {
		return nil
	}
	info, err := t.process(c, sh.process)
	if err != nil || info.Written <= from {
		return err
	}
	events, err := t.o.Hub.FollowProcess(c.Context(), c.who, c.id(), sh.process, from)
	if err != nil {
		return err
	}
	reader := shellReader{mark: sh.mark}
	for e, err := range events {
		if err != nil {
			return err
		}
		reader.add(e, func(p piece) {
			if p.kind == pieceText && p.command == one.id {
				tell(p.stream, p.data)
			}
		})
		if e.Next() >= info.Written || e.Kind == process.Ended {
			return nil
		}
	}
	return nil
}

// followCommand streams what a command writes: over a WebSocket in bytes with marks, else as text that comes bit by bit.
func (t *Toolbox) followCommand(c *call, sh *shell, one *command) error {
	var m marker
	if upgrades(c.Request) {
		return t.connected(c, func(ctx context.Context, s *socket) (websocket.StatusCode, string) {
			ctx, end := context.WithCancel(ctx)
			defer end()
			go s.listen(end, func(websocket.MessageType, []byte) error { return nil })
			return t.sendLogs(ctx, c, sh, one, func(kind process.Kind, data []byte) error {
				return s.write(ctx, websocket.MessageBinary, m.mark(kind, data))
			})
		})
	}
	ctx, end := context.WithCancel(c.Context())
	defer end()
	plainText(c.w, "")
	flush := http.NewResponseController(c.w).Flush
	form := formOf(c.Request)
	t.sendLogs(ctx, c, sh, one, func(kind process.Kind, data []byte) error {
		if form != plainLogs {
			data = m.mark(kind, data)
		}
		if _, err := c.w.Write(data); err != nil {
			return err
		}
		return flush()
	})
	return nil
}

// sendLogs sends what a command writes until its end, and says how a WebSocket is to be closed then.
func (t *Toolbox) sendLogs(ctx context.Context, c *call, sh *shell, one *command, send func(kind process.Kind, data []byte) error) (websocket.StatusCode, string) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := t.begun(ctx, c, sh, one); err != nil {
		return websocket.StatusInternalError, problemText(err)
	}
	err := t.output(ctx, c, sh, one, func(kind process.Kind, data []byte) {
		if send(kind, data) != nil {
			end()
		}
	})
	if err != nil && ctx.Err() == nil {
		return websocket.StatusInternalError, problemText(err)
	}
	return websocket.StatusNormalClosure, ""
}

func problemText(err error) string {
	_, _, text := said(err)
	return text
}
