package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/llm/model/modeltest"
)

const (
	toolServer    = "records" // its name among cove's tool servers
	scriptedModel = "scripted"
)

// outside is what agents' tasks need besides the subject: a scripted model that speaks OpenAI's chat completions, and a server of the Model Context
// Protocol with the tool. Both are in this process, at one address.
type outside struct {
	listener net.Listener
	serving  *http.Server
	model    atomic.Pointer[playedModel] // of the task under way
	delay    atomic.Int64                // of a request to the model
}

// playedModel is the model of one task.
type playedModel struct {
	*modeltest.Script
	handler http.Handler
	said    atomic.Int64 // bytes
}

// open listens, once.
func (o *outside) open() (err error) {
	if o.listener != nil {
		return nil
	}
	if o.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for the model: %w", err)
	}
	o.begin(workloads()[0], 0)
	records := mcp.NewServer(&mcp.Implementation{Name: toolServer, Version: "1"}, nil)
	mcp.AddTool(records, &mcp.Tool{Name: toolName, Description: toolText}, func(_ context.Context, _ *mcp.CallToolRequest, in toolRequest) (*mcp.CallToolResult, toolRecord, error) {
		return nil, recordOf(in.Key), nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return records }, nil))
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && wait(r.Context(), time.Duration(o.delay.Load())) != nil {
			return
		}
		o.model.Load().handler.ServeHTTP(w, r)
	})
	o.serving = &http.Server{Handler: mux, ReadHeaderTimeout: teardown}
	go func() { _ = o.serving.Serve(o.listener) }() // until close
	return nil
}

func (o *outside) close() error {
	if o.serving == nil {
		return nil
	}
	return o.serving.Close()
}

func (o *outside) address() string { return o.listener.Addr().String() }

// begin makes the model ready for a task. Each request to it takes delay longer.
func (o *outside) begin(w workload, delay time.Duration) *playedModel {
	m := &playedModel{Script: modeltest.NewScript()}
	m.handler = m.Handler()
	m.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		t := w.reply(r)
		for _, text := range t.Text {
			m.said.Add(int64(len(text)))
		}
		for _, c := range t.Calls {
			m.said.Add(int64(len(c.Name) + len(c.Code) + len(c.Arguments)))
		}
		return t
	})
	o.model.Store(m)
	o.delay.Store(int64(delay))
	return m
}

// tokens is how many tokens the model has read and written, by their bytes.
func (m *playedModel) tokens() int64 {
	const bytesPerToken = 4
	bytes := m.said.Load()
	for _, r := range m.Requests() {
		bytes += int64(wordsOf(r.Body["messages"]) + wordsOf(r.Body["tools"]))
	}
	return bytes / bytesPerToken
}

// wordsOf is how many bytes the texts, names and numbers in a JSON value have, without punctuation and escapes.
func wordsOf(v any) (bytes int) {
	switch v := v.(type) {
	case string:
		return len(v)
	case map[string]any:
		for name, value := range v {
			bytes += len(name) + wordsOf(value)
		}
	case []any:
		for _, value := range v {
			bytes += wordsOf(value)
		}
	case nil:
	default:
		return len(fmt.Sprint(v))
	}
	return bytes
}

// settings are cove's for this model and tool server. The file with the latter is made in dir.
func (o *outside) settings(dir string) ([]string, error) {
	base := "http://" + o.address()
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{toolServer: map[string]any{"url": base + "/mcp"}}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("write the file with the tool servers: %w", err)
	}
	return []string{"COVE_TOOLS_FILE=" + file, "OPENAI_BASE_URL=" + base + "/v1", "OPENAI_API_KEY=none", "COVE_MODEL=openai/" + scriptedModel}, nil
}

// wait returns early when ctx ends, with its error.
func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// link is a client's way to a server. It counts, and each request takes delay longer. One task has one, and so a connection of its own.
type link struct {
	delay     time.Duration
	transport *http.Transport
	requests  atomic.Int64
	bytes     atomic.Int64 // both ways
}

func newLink(delay time.Duration) *link {
	l := &link{delay: delay}
	l.transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return countedConn{c, &l.bytes}, nil
	}}
	return l
}

func (l *link) client() *http.Client { return &http.Client{Transport: l} }

func (l *link) close() { l.transport.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.requests.Add(1)
	if err := wait(r.Context(), l.delay); err != nil {
		return nil, err
	}
	return l.transport.RoundTrip(r)
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}
