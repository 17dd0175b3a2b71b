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

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/sse"
)

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
	client        *http.Client

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

// serve passes messages on until there are no more, and returns when all are answered, or soon after ctx has ended.
func (b *mcpBridge) serve(ctx context.Context, in io.Reader) (err error) {
	var sent sync.WaitGroup
	defer func() {
		answered := make(chan struct{})
		go func() {
			sent.Wait()
			close(answered)
		}()
		select {
		case <-answered:
		case <-soonAfter(ctx, lastWords): // what is written may wait for a program that does not read
		}
		b.close(ctx)
	}()
	room := make(chan struct{}, mostMCP)
	for messages := readMessages(ctx, in); ; {
		var one mcpRead
		select {
		case one = <-messages:
		case <-ctx.Done():
			return nil
		}
		text := bytes.TrimSpace(one.text)
		var m mcpMessage
		switch {
		case one.long:
			b.refuse(json.RawMessage("null"), -32600, fmt.Sprintf("the message is longer than %d MiB", longestMCP>>20))
			continue
		case errors.Is(one.err, io.EOF) && len(text) == 0:
			return nil
		case one.err != nil && !errors.Is(one.err, io.EOF):
			return problem.New(problem.InputUnreadable, "cannot read the messages of the program").WithCause(one.err)
		case len(text) == 0:
			continue
		}
		if err := json.Unmarshal(text, &m); err != nil {
			b.refuse(json.RawMessage("null"), -32700, "that is no message: "+bodybudget.WhyNotJSON(err))
			continue
		}
		if m.Method == "notifications/cancelled" {
			b.cancel(m.Params.RequestID)
			continue
		}
		if m.Method == "" || m.Method == "initialize" { // calls wait for an answer to the server; what comes after the first request is said in the version that it agrees on
			b.pass(ctx, m, text)
			continue
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		sent.Go(func() {
			defer func() { <-room }()
			b.pass(ctx, m, text)
		})
	}
}

// soonAfter returns a channel that is closed so long after ctx has ended.
func soonAfter(ctx context.Context, wait time.Duration) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(wait, func() { close(over) }) })
	return over
}

// mcpRead is a line, or why there are no more; the last one may be both.
type mcpRead struct {
	text []byte
	long bool // the line is longer than longestMCP, and text is nil
	err  error
}

// readMessages reads lines until ctx ends.
func readMessages(ctx context.Context, in io.Reader) <-chan mcpRead {
	out := make(chan mcpRead)
	go func() {
		for from := bufio.NewReaderSize(in, 64<<10); ; {
			var one mcpRead
			for more := true; more; {
				var part []byte
				part, one.err = from.ReadSlice('\n')
				if more = errors.Is(one.err, bufio.ErrBufferFull); more {
					one.err = nil
				}
				if one.long = one.long || len(one.text)+len(part) > longestMCP; one.long {
					one.text = nil
				} else {
					one.text = append(one.text, part...)
				}
			}
			for again := true; again; {
				select {
				case out <- one: // and the end for as long as somebody asks
					again = one.err != nil
				case <-ctx.Done():
					return
				}
				one.text, one.long = nil, false
			}
		}
	}()
	return out
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
	answer, err := b.client.Do(r)
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
	if answer, err := b.client.Do(r); err == nil {
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
