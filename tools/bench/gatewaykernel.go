package bench

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// gatewayServer is a running kernel gateway. Its protocol: the Jupyter server's REST interface for kernels, and Jupyter
// messages (version 5.3) as JSON over a WebSocket that carries all channels.
type gatewayServer struct {
	remote
	process *server
}

func (g *gatewayServer) stop(ctx context.Context) error {
	if g == nil {
		return nil
	}
	return g.process.stop(ctx)
}

type gatewayKernelID struct {
	ID string `json:"id"`
}

func (g *gatewayServer) kernels(ctx context.Context) (ids []string, err error) {
	var list []gatewayKernelID
	err = g.call(ctx, http.MethodGet, "/api/kernels", "", http.StatusOK, &list)
	for _, k := range list {
		ids = append(ids, k.ID)
	}
	return ids, err
}

func (g *gatewayServer) startKernel(ctx context.Context) (string, error) {
	var k gatewayKernelID
	if err := g.call(ctx, http.MethodPost, "/api/kernels", "{}", http.StatusCreated, &k); err != nil {
		return "", fmt.Errorf("start kernel: %w", err)
	}
	return k.ID, nil
}

func (g *gatewayServer) deleteKernel(ctx context.Context, id string) error {
	return g.call(ctx, http.MethodDelete, "/api/kernels/"+id, "", http.StatusNoContent, nil)
}

func (g *gatewayServer) connect(ctx context.Context, id string) (*gatewayKernel, error) {
	session := rand.Text()
	//nolint:bodyclose // Dial says that it never needs to be
	conn, _, err := websocket.Dial(ctx, "ws://"+g.host+"/api/kernels/"+id+"/channels?session_id="+session,
		&websocket.DialOptions{HTTPClient: g.client, HTTPHeader: g.header, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("connect to kernel: %w", err)
	}
	conn.SetReadLimit(-1)
	listening, stop := context.WithCancel(context.Background())
	k := &gatewayKernel{server: g, id: id, session: session, conn: conn, stop: stop, replies: make(chan jupyterReply, 16), gone: make(chan struct{})}
	go k.receive(listening)
	return k, nil
}

// gatewayKernel is a connection to a kernel.
type gatewayKernel struct {
	server  *gatewayServer
	id      string
	session string
	conn    *websocket.Conn
	stop    func()                 // ends receive and the connection
	current atomic.Pointer[string] // ID of the request that is under way
	replies chan jupyterReply      // to it
	gone    chan struct{}          // closed when nothing more comes; why says why
	why     error
}

// receive reads all the time, because the gateway hangs up on a client that does not answer its pings.
func (k *gatewayKernel) receive(ctx context.Context) {
	defer close(k.gone)
	for {
		_, text, err := k.conn.Read(ctx)
		if err != nil {
			k.why = fmt.Errorf("receive: %w", err)
			return
		}
		var m jupyterReply
		if err := json.Unmarshal(text, &m); err != nil {
			k.why = fmt.Errorf("receive: %w", err)
			return
		}
		if id := k.current.Load(); id == nil || *id != m.Parent.ID {
			continue
		}
		select {
		case k.replies <- m:
		case <-ctx.Done():
			k.why = ctx.Err()
			return
		}
	}
}

// next waits for the next reply to the current request.
func (k *gatewayKernel) next(ctx context.Context) (m jupyterReply, err error) {
	select {
	case m = <-k.replies:
		return m, nil
	case <-k.gone:
		return m, k.why
	case <-ctx.Done():
		return m, ctx.Err()
	}
}

type jupyterHeader struct {
	ID       string `json:"msg_id,omitempty"`
	Type     string `json:"msg_type,omitempty"`
	Session  string `json:"session,omitempty"`
	Username string `json:"username"`
	Version  string `json:"version,omitempty"`
	Date     string `json:"date,omitempty"`
}

type jupyterRequest struct {
	Header   jupyterHeader  `json:"header"`
	Parent   struct{}       `json:"parent_header"`
	Metadata struct{}       `json:"metadata"`
	Content  map[string]any `json:"content"`
	Buffers  []string       `json:"buffers"`
	Channel  string         `json:"channel"`
}

type jupyterReply struct {
	Header  jupyterHeader `json:"header"`
	Parent  jupyterHeader `json:"parent_header"`
	Content struct {
		Text   string         `json:"text"`            // stream
		Data   map[string]any `json:"data"`            // execute_result
		State  string         `json:"execution_state"` // status
		Status string         `json:"status"`          // execute_reply
		EName  string         `json:"ename"`
		EValue string         `json:"evalue"`
	} `json:"content"`
}

// Run executes and returns once the kernel has both replied and gone idle: only then all output has arrived.
func (k *gatewayKernel) Run(ctx context.Context, t Task) (out Output, err error) {
	err = k.execute(ctx, t.Cell(), func(m jupyterReply) {
		switch m.Header.Type {
		case "stream":
			out.Bytes += int64(len(m.Content.Text))
		case "execute_result":
			out.Text, _ = m.Content.Data["text/plain"].(string)
		}
	})
	return out, err
}

// Watch implements Watched.
func (k *gatewayKernel) Watch(ctx context.Context, code string, got func(text string)) error {
	return k.execute(ctx, code, func(m jupyterReply) {
		if m.Header.Type == "stream" {
			got(m.Content.Text)
		}
	})
}

func (k *gatewayKernel) execute(ctx context.Context, code string, each func(jupyterReply)) error {
	request := jupyterRequest{
		Header: jupyterHeader{ID: rand.Text(), Type: "execute_request", Session: k.session, Version: "5.3", Date: time.Now().UTC().Format(time.RFC3339Nano)},
		Content: map[string]any{"code": code, "silent": false, "store_history": true, "user_expressions": map[string]any{},
			"allow_stdin": false, "stop_on_error": true},
		Buffers: []string{}, Channel: "shell",
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	k.current.Store(&request.Header.ID)
	defer k.current.Store(nil)
	if err := k.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	for replied, idle := false, false; !replied || !idle; {
		m, err := k.next(ctx)
		if err != nil {
			return err
		}
		switch m.Header.Type {
		case "status":
			idle = m.Content.State == "idle"
		case "execute_reply":
			if m.Content.Status != "ok" {
				return fmt.Errorf("%s: %s", m.Content.EName, m.Content.EValue)
			}
			replied = true
		default:
			each(m)
		}
	}
	return nil
}

// hangUp leaves the kernel alone.
func (k *gatewayKernel) hangUp() {
	k.stop()
	<-k.gone
}

// Close ends the kernel with its process.
func (k *gatewayKernel) Close(ctx context.Context) error {
	k.hangUp()
	return k.server.deleteKernel(ctx, k.id)
}
