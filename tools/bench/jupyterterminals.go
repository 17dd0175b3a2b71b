package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

// jupyterTerminals is a Jupyter Server, on which the kernel gateway is built, with terminals. The gateway itself has none.
type jupyterTerminals struct{ kit *gatewayKit }

var _ Typing = (*jupyterTerminals)(nil)

func (s *jupyterTerminals) About() About {
	return About{ID: "jupyter-terminals", Title: "Jupyter Server, no isolation", Version: s.kit.version, Note: "its terminals over WebSocket; the kernel gateway, which is built on it, has none"}
}

func (s *jupyterTerminals) Start(ctx context.Context) error { return s.kit.prepare(ctx) }
func (s *jupyterTerminals) Stop(context.Context) error      { return nil }

// Terminal implements Typing: a server whose terminals run the program. It speaks JSON lists, ["stdin", text] and ["stdout", text] among them; see terminado's documentation.
func (s *jupyterTerminals) Terminal(ctx context.Context, argv []string) (_ io.ReadWriteCloser, err error) {
	program, err := json.Marshal(argv)
	if err != nil {
		return nil, err
	}
	server, err := s.kit.serveTerminals(ctx, string(program))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
			defer cancel()
			err = errors.Join(err, server.stop(stop))
		}
	}()
	var made struct {
		Name string `json:"name"`
	}
	if err := server.call(ctx, http.MethodPost, "/api/terminals", "{}", http.StatusOK, &made); err != nil {
		return nil, fmt.Errorf("start a terminal: %w", err)
	}
	//nolint:bodyclose // Dial says that it never needs to be
	conn, _, err := websocket.Dial(ctx, "ws://"+server.host+"/terminals/websocket/"+made.Name, &websocket.DialOptions{HTTPClient: server.client, HTTPHeader: server.header, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("connect to a terminal: %w", err)
	}
	return &jupyterTerminal{server: server, conn: conn}, nil
}

type jupyterTerminal struct {
	server *gatewayServer
	conn   *websocket.Conn
}

func (t *jupyterTerminal) Write(b []byte) (int, error) {
	text, err := json.Marshal([]string{"stdin", string(b)})
	if err != nil {
		return 0, err
	}
	return len(b), t.conn.Write(context.Background(), websocket.MessageText, text)
}

func (t *jupyterTerminal) Read(b []byte) (int, error) {
	for {
		_, text, err := t.conn.Read(context.Background())
		if err != nil {
			return 0, err
		}
		var said []json.RawMessage
		var kind, output string
		if err := json.Unmarshal(text, &said); err != nil {
			return 0, err
		}
		if len(said) < 2 || json.Unmarshal(said[0], &kind) != nil || kind != "stdout" || json.Unmarshal(said[1], &output) != nil || output == "" {
			continue
		}
		return copy(b, output), nil
	}
}

func (t *jupyterTerminal) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardown)
	defer cancel()
	_ = t.conn.CloseNow() // the server ends
	return t.server.stop(ctx)
}
