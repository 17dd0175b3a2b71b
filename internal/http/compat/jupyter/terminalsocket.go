package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// longestInput bounds a message of a terminal's client, in bytes.
const longestInput = 1 << 20

// screen is a client's connection to a terminal. Both say JSON arrays, as terminado has them: ["stdin", TEXT], ["set_size", ROWS, COLUMNS, ...], and ["setup", {}], ["stdout", TEXT],
// ["disconnect", 1].
type screen struct {
	s        *server
	conn     *websocket.Conn
	who      auth.Principal
	personal string
	id       string // the process
	held     []byte // the beginning of a character whose end is to come
}

// connectTerminal takes over the connection of GET terminals/websocket/{name}.
func (s *server) connectTerminal(c *call) error {
	personal, p, err := s.terminal(c)
	if err != nil {
		return err
	}
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return problem.New(problem.UpgradeNeeded, "this address is a WebSocket").WithHint("connect with a client of WebSockets")
	}
	leave, err := s.count(c.who.Project)
	if err != nil {
		return err
	}
	defer leave()
	// Whose page calls was looked at when the request came in, as for every other request.
	conn, err := websocket.Accept(c.w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(longestInput)
	auth.LeavePlace(c.Context()) // connections are bounded by count
	ctx, end := context.WithCancel(c.Context())
	defer end()
	t := &screen{s: s, conn: conn, who: c.who, personal: personal, id: p.ID}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { defer end(); t.watch(ctx) })
	both.Go(func() { defer end(); t.listen(ctx, c.Context()) })
	err = t.show(ctx, p.Kept)
	if p := problem.Of(err); err != nil && p != nil && p.Kind != problem.Internal {
		_ = conn.Close(websocket.StatusTryAgainLater, p.Code)
	}
	_ = conn.CloseNow()
	end()
	return nil
}

// say writes a message. A client that does not read it in time is gone.
func (t *screen) say(ctx context.Context, parts ...any) error {
	text, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	return t.conn.Write(ctx, websocket.MessageText, text)
}

// show writes what the terminal shows, from what is kept of it on.
func (t *screen) show(ctx context.Context, from int64) error {
	if err := t.say(ctx, "setup", struct{}{}); err != nil {
		return err
	}
	events, err := t.s.Hub.FollowProcess(ctx, t.who, t.personal, t.id, from)
	if err != nil {
		return err
	}
	for e, err := range events {
		switch {
		case err != nil:
			return err
		case e.Kind == process.Ended:
			return errors.Join(t.say(ctx, "disconnect", 1), t.conn.Close(websocket.StatusNormalClosure, "the terminal has ended"))
		case len(e.Data) == 0:
			continue
		}
		if err := t.text(ctx, e.Data); err != nil {
			return err
		}
	}
	return nil
}

// text writes output, in pieces that clients take, none of which ends within a character.
func (t *screen) text(ctx context.Context, data []byte) error {
	data = append(t.held, data...)
	t.held = nil
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if at := len(data) - n; utf8.RuneStart(data[at]) {
			if !utf8.FullRune(data[at:]) {
				t.held = append([]byte(nil), data[at:]...)
				data = data[:at]
			}
			break
		}
	}
	for len(data) > 0 {
		n := min(len(data), longestText)
		for n < len(data) && n > longestText-utf8.UTFMax && !utf8.RuneStart(data[n]) {
			n--
		}
		if err := t.say(ctx, "stdout", strings.ToValidUTF8(string(data[:n]), "\uFFFD")); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// listen takes what the client types. reads is the request's context: a connection whose reading is canceled cannot be told why it ends.
func (t *screen) listen(ctx, reads context.Context) {
	pace := rate.NewLimiter(socketRate, 4*socketRate)
	for {
		if pace.Wait(ctx) != nil {
			return
		}
		_, text, err := t.conn.Read(reads)
		if err != nil {
			return
		}
		if err := t.take(ctx, text); err != nil {
			if p := problem.Of(err); p != nil && p.Kind != problem.Internal && ctx.Err() == nil {
				_ = t.conn.Close(websocket.StatusPolicyViolation, p.Code)
			}
			return
		}
	}
}

func (t *screen) take(ctx context.Context, text []byte) error {
	var parts []json.RawMessage
	var kind, input string
	if json.Unmarshal(text, &parts) != nil || len(parts) == 0 || json.Unmarshal(parts[0], &kind) != nil {
		return problem.New(problem.InvalidRequest, "a message is a JSON array that begins with what it is")
	}
	switch {
	case kind == "stdin" && len(parts) > 1 && json.Unmarshal(parts[1], &input) == nil:
		_, err := t.s.Hub.TellProcess(ctx, t.who, t.personal, t.id, io.Reader(strings.NewReader(input)), false)
		return err
	case kind == "set_size" && len(parts) > 2:
		var size process.Size
		if json.Unmarshal(parts[1], &size.Rows) == nil && json.Unmarshal(parts[2], &size.Columns) == nil && size.Check() == nil {
			return t.s.Hub.ResizeProcess(ctx, t.who, t.personal, t.id, size)
		}
	}
	return nil // of a newer client, or a size that is none
}

// watch ends the connection of a client that is gone, or whose key is not valid any more, and that of a server that stops.
func (t *screen) watch(ctx context.Context) {
	every := time.NewTicker(socketPing)
	defer every.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.s.Stopping:
			_ = t.conn.Close(websocket.StatusGoingAway, "the server is stopping")
			return
		case <-every.C:
		}
		patient, cancel := context.WithTimeout(ctx, slowest)
		err := t.conn.Ping(patient)
		cancel()
		if err != nil {
			return
		}
		if n%socketLook == 0 {
			if _, err := auth.Again(ctx); problem.Of(err) != nil && problem.Of(err).Kind == problem.Denied {
				_ = t.conn.Close(websocket.StatusPolicyViolation, "the key is not valid any more")
				return
			}
		}
	}
}
