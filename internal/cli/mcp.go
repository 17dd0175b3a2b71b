package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"cove/internal/problem"
	"cove/internal/sse"
)

type mcpCmd struct {
	Serve   mcpServe   `cmd:"" default:"withargs" help:"Speak the protocol on standard input and output, for a server."`
	Install mcpInstall `cmd:"" help:"Have a program (Claude, Cursor, VS Code, Codex, Gemini CLI) use a server as a tool."`
}

type mcpServe struct {
	serverFlags
	ownSignals
}

// Help is the long help.
func (mcpServe) Help() string {
	return `Speaks the Model Context Protocol on standard input and output, for programs that start their servers themselves: what they send goes to a cove server, and its answers come
back. Programs that take an address need no such command: the server's address with /mcp behind it, and the key.

Example, as such a program has it in its settings:

    {"command": "cove", "args": ["mcp", "--server", "http://127.0.0.1:8700"], "env": {"COVE_KEY": "cove_..."}}`
}

func (c *mcpServe) run(ctx context.Context, p *Program) (int, error) {
	base, key, err := c.remote(p.Config)
	if err != nil {
		return 0, err
	}
	if base == "" {
		return 0, problem.New(problem.Usage, "cove mcp works on a server").WithHint("start one with `cove serve`, and give its address with --server, or as COVE_SERVER")
	}
	b := &mcpBridge{endpoint: strings.TrimSuffix(base, "/") + "/mcp", key: key, out: p.Out, under: map[string]context.CancelFunc{}}
	return 0, b.serve(ctx, p.In)
}

const (
	// longestMCP bounds a message, in bytes.
	longestMCP = 32 << 20
	// mostMCP is how many requests are under way at a time.
	mostMCP = 64
	// mcpHeaders is the version from which on what a request is about is in headers, too.
	mcpHeaders = "2026-07-28"
	// mcpSession is the header with the session of the protocol, and mcpGoodbye bounds the wait for its end.
	mcpSession = "Mcp-Session-Id"
	mcpGoodbye = 2 * time.Second
)

// mcpBridge passes the messages of a program on to a server, and the server's messages back; see "Transports" in the protocol's specification.
type mcpBridge struct {
	endpoint, key string

	mu      sync.Mutex
	out     io.Writer
	version string                        // that was agreed on
	session string                        // of the protocol, where the server has opened one
	under   map[string]context.CancelFunc // requests that are under way, by their ids
}

// mcpMessage is what the bridge reads of a message.
type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// serve passes messages on until there are no more, and returns when all are answered.
func (b *mcpBridge) serve(ctx context.Context, in io.Reader) error {
	var sent sync.WaitGroup
	defer func() {
		sent.Wait()
		b.close(ctx)
	}()
	room := make(chan struct{}, mostMCP)
	messages := bufio.NewScanner(in)
	messages.Buffer(nil, longestMCP)
	for messages.Scan() {
		text := bytes.Clone(bytes.TrimSpace(messages.Bytes()))
		if len(text) == 0 {
			continue
		}
		var m mcpMessage
		if err := json.Unmarshal(text, &m); err != nil {
			b.refuse(json.RawMessage("null"), -32700, "that is no message: "+err.Error())
			continue
		}
		if m.Method == "notifications/cancelled" {
			b.cancel(m.Params.RequestID)
			continue
		}
		if m.Method == "" { // an answer to the server: calls wait for it
			b.pass(ctx, m, text)
			continue
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pass := func() {
			defer func() { <-room }()
			b.pass(ctx, m, text)
		}
		if m.Method == "initialize" { // what comes behind it is said in the version that it agrees on
			pass()
			continue
		}
		sent.Go(pass)
	}
	if err := messages.Err(); err != nil && ctx.Err() == nil {
		return problem.New(problem.InputUnreadable, "cannot read the messages of the program").WithCause(err)
	}
	return nil
}

func (b *mcpBridge) pass(ctx context.Context, m mcpMessage, text []byte) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if len(m.ID) > 0 && m.Method != "" { // what has no method answers the server
		b.mu.Lock()
		b.under[string(m.ID)] = cancel
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.under, string(m.ID))
		}()
	}
	if err := b.ask(ctx, m, text); err != nil && len(m.ID) > 0 && m.Method != "" && ctx.Err() == nil {
		b.refuse(m.ID, -32603, err.Error())
	}
}

func (b *mcpBridge) cancel(id json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cancel := b.under[string(id)]; cancel != nil {
		cancel()
	}
}

// ask sends a message and writes what comes back. An error says that nothing did.
func (b *mcpBridge) ask(ctx context.Context, m mcpMessage, text []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.endpoint, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	b.mu.Lock()
	version, session := b.version, b.session
	b.mu.Unlock()
	if session != "" && m.Method != "initialize" {
		r.Header.Set(mcpSession, session)
	}
	if m.Params.Meta.Version != "" {
		version = m.Params.Meta.Version
	}
	if version != "" && m.Method != "initialize" {
		r.Header.Set("Mcp-Protocol-Version", version)
		if version >= mcpHeaders && m.Method != "" {
			r.Header.Set("Mcp-Method", m.Method)
			switch m.Method {
			case "tools/call", "prompts/get":
				r.Header.Set("Mcp-Name", m.Params.Name)
			case "resources/read":
				r.Header.Set("Mcp-Name", m.Params.URI)
			}
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if m.Method == "initialize" {
		b.mu.Lock()
		b.session = answer.Header.Get(mcpSession)
		b.mu.Unlock()
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return b.stream(m, answer.Body)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, longestMCP))
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return errors.New("the server does not take the key; " + wantsKey)
	case answer.StatusCode >= http.StatusBadRequest && !json.Valid(body):
		return fmt.Errorf("the server answers %s: %s", answer.Status, oneLine(string(body[:min(len(body), 300)])))
	case len(bytes.TrimSpace(body)) > 0:
		b.tell(m, body)
	}
	return nil
}

func (b *mcpBridge) stream(m mcpMessage, body io.Reader) error {
	for events := sse.NewReader(body, longestMCP, nil); ; {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the server's answer breaks off: %w", err)
		}
		if len(e.Data) > 0 {
			b.tell(m, e.Data)
		}
	}
}

// close ends the session of the protocol. One that is not ended goes with the time.
func (b *mcpBridge) close(ctx context.Context) {
	if b.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpGoodbye)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, b.endpoint, nil)
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set(mcpSession, b.session)
	if answer, err := http.DefaultClient.Do(r); err == nil {
		_ = answer.Body.Close()
	}
}

// tell writes a message of the server's on a line.
func (b *mcpBridge) tell(to mcpMessage, text []byte) {
	var line bytes.Buffer
	if json.Compact(&line, text) != nil {
		return
	}
	line.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	if to.Method == "initialize" {
		var said mcpMessage
		if json.Unmarshal(text, &said) == nil && said.Result.Version != "" {
			b.version = said.Result.Version
		}
	}
	_, _ = b.out.Write(line.Bytes()) // a program that does not read any more ends its input, too
}

func (b *mcpBridge) refuse(id json.RawMessage, code int, why string) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		b.tell(mcpMessage{}, text)
	}
}
