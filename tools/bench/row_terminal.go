package bench

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"cove/internal/http/sse"
)

// Typing is a Subject in whose sessions programs run at terminals.
type Typing interface {
	// Terminal makes a session and starts a program at a terminal in it. What is written is typed; what is read is on its screen. Closing it ends the session.
	Terminal(ctx context.Context, argv []string) (io.ReadWriteCloser, error)
}

var _, _ Typing = (*coveServer)(nil), (*dockerKept)(nil)

func terminalRow() Row {
	const warm, perRound = 5, 100
	return Row{
		ID: "terminal", Title: "a terminal in a session", Rounds: 3, Quick: 1,
		Measures: []Measure{{ID: "terminal-echo", Title: "a key's echo on a terminal", Unit: "ms",
			Detail: fmt.Sprintf("from the key until its client has the echo; %d in each of several sessions, after %d that do not count. "+
				"cove: one request for all that is typed, server-sent events for the screen; docker: exec over its own interface; Jupyter: a WebSocket.", perRound, warm)}},
		Able: as[Typing]("no program runs at a terminal in it"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			t, err := s.(Typing).Terminal(ctx, []string{"cat"})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, t.Close()) }()
			screen := make([]byte, 1024)
			for i := range warm + perRound {
				key := []byte{'a' + byte(i%26)}
				begun := time.Now()
				if _, err := t.Write(key); err != nil {
					return err
				}
				n, err := t.Read(screen)
				if err != nil {
					return err
				}
				if i >= warm {
					rec.took(0, time.Since(begun))
				}
				if string(screen[:n]) != string(key) {
					return fmt.Errorf("%q is on the screen, not %q", screen[:n], key)
				}
			}
			return nil
		},
	}
}

// Terminal implements Typing.
func (s *coveServer) Terminal(ctx context.Context, argv []string) (_ io.ReadWriteCloser, err error) {
	l, err := s.Create(ctx)
	if err != nil {
		return nil, err
	}
	served := l.(*servedSession)
	defer func() {
		if err != nil {
			free(ctx, l, &err)
		}
	}()
	body, err := json.Marshal(map[string]any{"command": argv, "terminal": map[string]int{"columns": 80, "rows": 24}})
	if err != nil {
		return nil, err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := served.api.call(ctx, http.MethodPost, served.path+"/processes", string(body), http.StatusCreated, &made); err != nil {
		return nil, err
	}
	at := served.path + "/processes/" + made.ID
	answer, err := served.api.send(ctx, http.MethodGet, at+"/events", "", "text/event-stream")
	if err != nil {
		return nil, err
	}
	typed, keys := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+served.api.host+at+"/input", typed)
	if err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	if served.api.header != nil {
		req.Header = served.api.header.Clone()
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	go func() {
		reply, err := served.api.client.Do(req)
		if err == nil {
			err = errors.Join(reply.Body.Close(), errors.New("typing has ended: "+reply.Status))
		}
		_ = typed.CloseWithError(err)
	}()
	return &servedTerminal{WriteCloser: keys, session: l, body: answer.Body, events: sse.NewReader(answer.Body, maxServedEvent, nil)}, nil
}

// servedTerminal is a terminal of a server's session.
type servedTerminal struct {
	io.WriteCloser
	session Live
	body    io.Closer
	events  *sse.Reader
}

func (t *servedTerminal) Read(b []byte) (int, error) {
	for {
		next, err := t.events.Next()
		if err != nil {
			return 0, err
		}
		var e struct{ Type, Text, Data, Message string }
		if err := json.Unmarshal(next.Data, &e); err != nil {
			return 0, err
		}
		bytes, err := base64.StdEncoding.DecodeString(e.Data)
		if err != nil {
			return 0, err
		}
		if text := e.Text + string(bytes); text != "" {
			return copy(b, text), nil
		}
		if e.Message != "" {
			return 0, fmt.Errorf("%s: %s", e.Type, e.Message)
		}
	}
}

func (t *servedTerminal) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardown)
	defer cancel()
	return errors.Join(t.WriteCloser.Close(), t.body.Close(), t.session.Close(ctx))
}

// Terminal implements Typing; see "Exec" and "Stream format" in https://docs.docker.com/reference/api/engine/. With a terminal, the bytes of the connection are its own.
func (s *dockerKept) Terminal(ctx context.Context, argv []string) (_ io.ReadWriteCloser, err error) {
	l, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			free(ctx, l, &err)
		}
	}()
	k := l.(*keptPython)
	api := k.api()
	defer api.client.CloseIdleConnections()
	body, err := json.Marshal(map[string]any{"AttachStdin": true, "AttachStdout": true, "AttachStderr": true, "Tty": true, "Cmd": argv})
	if err != nil {
		return nil, err
	}
	var made struct {
		ID string `json:"Id"`
	}
	if err := api.call(ctx, http.MethodPost, "/containers/"+k.id+"/exec", string(body), http.StatusCreated, &made); err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", k.daemon.socket)
	if err != nil {
		return nil, err
	}
	const start = `{"Detach":false,"Tty":true}`
	_, err = fmt.Fprintf(conn, "POST /exec/%s/start HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: %d\r\n\r\n%s", made.ID, len(start), start)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil) //nolint:bodyclose // the connection is the body
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New("exec: " + answer.Status)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &keptTerminal{Conn: conn, reader: reader, session: l}, nil
}

// keptTerminal is a terminal in a container.
type keptTerminal struct {
	net.Conn
	reader  *bufio.Reader
	session Live
}

func (t *keptTerminal) Read(b []byte) (int, error) { return t.reader.Read(b) }

func (t *keptTerminal) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardown)
	defer cancel()
	return errors.Join(t.Conn.Close(), t.session.Close(ctx))
}
