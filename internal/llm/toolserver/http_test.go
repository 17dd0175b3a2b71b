package toolserver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/llm/toolserver"
	"cove/internal/server/auth"
)

// webPlace is one server, named web, that a handler is.
func webPlace(t *testing.T, h http.Handler, change ...func(*toolserver.Config)) (*place, *httptest.Server) {
	t.Helper()
	front := httptest.NewServer(h)
	p := newPlace(t, nil)
	all := configured(t, fmt.Sprintf(`{"mcpServers":{"web":{"url":"%s/mcp","headers":{"Authorization":"Bearer ${FROM_OUTSIDE}"}}}}`, front.URL))
	for _, c := range change {
		c(&all[0])
	}
	p.Servers = toolserver.New(toolserver.Options{Servers: all, Log: nil})
	t.Cleanup(func() {
		p.Close()
		front.CloseClientConnections()
		front.Close()
	})
	return p, front
}

// keyed lets in those with the secret.
func keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestServersAtAnAddress(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]sdk.StreamableHTTPOptions{"with sessions": {}, "without": {Stateless: true}, "with JSON": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := goodServer()
			p, _ := webPlace(t, keyed(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return good }, &o)))
			tools, err := p.Offer(t.Context(), auth.LocalProject, []string{"web"})
			if err != nil || len(tools) != 11 {
				t.Fatalf("%v, %v", tools, err)
			}
			p.wants("web.same", `{"z":7,"a":"b"}`, `{"a":"b","z":7}`, "")
			p.wants("web.texts", "", `["one","two"]`, "")
			p.wants("web.fail", "", "", "it is broken")
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() { p.wants("web.text", "", `"one"`, "") })
			}
			all.Wait()
		})
	}
}

func TestAnAddressThatIsLost(t *testing.T) {
	t.Parallel()
	var at atomic.Pointer[http.Handler]
	renew := func() {
		var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return goodServer() }, nil)
		at.Store(&h)
	}
	renew()
	waits := make(chan struct{}, 1)
	p, front := webPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"wait"`)) {
			waits <- struct{}{}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*at.Load()).ServeHTTP(w, r)
	}))
	p.wants("web.text", "", `"one"`, "")
	answer := make(chan tool.Result, 1)
	go func() { answer <- p.call("web.wait", "") }()
	select {
	case <-waits:
	case r := <-answer:
		t.Fatalf("the call ended before its server had it: %s %s", r.Value, r.Err)
	}
	front.CloseClientConnections()
	if r := <-answer; !strings.Contains(r.Err, "in the middle of the call") {
		t.Errorf("a call whose connection was lost: %s %s", r.Value, r.Err)
	}
	renew() // it knows no session of before
	p.until("it is used again", func() bool { return p.call("web.text", "").Err == "" })
}

// TestAnAddressThatHangs: one that answers nothing in its session after a call that took too long is asked in a new session, so that calls that follow are answered; so is one whose answers
// cannot be read.
func TestAnAddressThatHangs(t *testing.T) {
	t.Parallel()
	var hangs atomic.Pointer[string] // the session that does
	good := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return goodServer() }, nil)
	p, _ := webPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		session := r.Header.Get("Mcp-Session-Id")
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			hangs.CompareAndSwap(nil, &session) // the first one
		}
		if id := hangs.Load(); id != nil && *id == session {
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		good.ServeHTTP(w, r)
	}), func(c *toolserver.Config) { c.Timeout = 2 * time.Second })
	p.start("web")
	p.wants("web.text", "", "", "it went on for longer than 2s")
	p.until("it answers again", func() bool { return string(p.call("web.text", "").Value) == `"one"` })
}

// TestAnswersOfAnAddressThatCannotBeRead fail their call at once, and the next one is answered.
func TestAnswersOfAnAddressThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for kind, form := range map[string]string{"application/json": "%s", "text/event-stream": "event: message\ndata: %s\n\n"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			unreadableAnswers(t, kind, form)
		})
	}
}

func unreadableAnswers(t *testing.T, kind, form string) {
	t.Helper()
	good := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return goodServer() }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	p, _ := webPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct {
			ID     json.RawMessage
			Params struct{ Name string }
		}
		_ = json.Unmarshal(body, &asked)
		result := map[string]string{"texts": `{"content":[],"structuredContent":NaN}`, "same": strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)}[asked.Params.Name]
		if result != "" {
			w.Header().Set("Content-Type", kind)
			_, _ = fmt.Fprintf(w, form, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		good.ServeHTTP(w, r)
	}))
	for range 2 {
		p.wants("web.texts", "", "", "gave an answer that cannot be read: ")
		p.wants("web.same", `{"z":7}`, "", "gave an answer that cannot be read: ")
		p.wants("web.text", "", `"one"`, "")
	}
}

func TestAddressesThatBreakTheRules(t *testing.T) {
	t.Parallel()
	var leaked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(elsewhere.Close)
	stream := func(w http.ResponseWriter, line string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		code   problem.Code
		says   string
	}{
		"wrong key": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no: "+secret, http.StatusForbidden) }, problem.ToolServerUnreachable, "credentials"},
		"broken":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusInternalServerError) }, problem.ToolServerUnreachable, "status 500"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, problem.ToolServerUnreachable, ""},
		"round and round": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		}, problem.ToolServerUnreachable, ""},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, problem.ToolServerUnreachable, ""},
		"no end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
					return
				}
			}
		}, problem.ToolServerUnreachable, ""},
		"a bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 1000 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, problem.ToolServerUnreachable, ""},
		"endless events":   {func(w http.ResponseWriter, _ *http.Request) { stream(w, ": still here\n\n") }, problem.ToolServerUnreachable, ""},
		"an endless event": {func(w http.ResponseWriter, _ *http.Request) { stream(w, "data: "+strings.Repeat("x", 10_000)+"\n") }, problem.ToolServerUnreachable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := webPlace(t, http.HandlerFunc(c.answer))
			_, err := p.Offer(t.Context(), auth.LocalProject, []string{"web"})
			if !problem.Has(err, c.code) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) || strings.Contains(problem.Of(err).Message, "127.0.0.1") {
				t.Errorf("%v", err)
			}
		})
	}
	t.Cleanup(func() {
		if leaked.Load() > 0 {
			t.Error("a redirect to another address was followed")
		}
	})
}

// TestMessagesNobodyWaitsFor has a server answer a call with many messages first, and one that never ends.
func TestMessagesNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	p, _ := webPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		say := func(v any) {
			text, _ := json.Marshal(v)
			_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
			w.(http.Flusher).Flush()
		}
		result := func(v any) map[string]any { return map[string]any{"jsonrpc": "2.0", "id": q.ID, "result": v} }
		w.Header().Set("Content-Type", "text/event-stream")
		switch {
		case q.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case q.Method == "initialize":
			say(result(map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "serverInfo": map[string]any{"name": "x", "version": "1"}}))
		case q.Method == "tools/list":
			if r.Header.Get("Mcp-Protocol-Version") != "2025-06-18" {
				http.Error(w, "the version of the protocol is missing", http.StatusBadRequest)
				return
			}
			schema := map[string]any{"type": "object"}
			say(result(map[string]any{"tools": []any{map[string]any{"name": "much", "inputSchema": schema}, map[string]any{"name": "asks", "inputSchema": schema}}}))
		case q.Method == "tools/call" && q.Params.Name == "much":
			for n := range 3000 {
				say(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": map[string]any{"progressToken": 1, "progress": n}})
			}
			say(result(map[string]any{"content": []any{map[string]any{"type": "text", "text": "at last"}}}))
			for r.Context().Err() == nil { // and it goes on
				say(map[string]any{"jsonrpc": "2.0", "method": "notifications/message", "params": map[string]any{}})
			}
		case q.Method == "tools/call":
			for n := range 1000 {
				say(map[string]any{"jsonrpc": "2.0", "id": fmt.Sprint("q", n), "method": "sampling/createMessage", "params": map[string]any{}})
			}
		default:
			http.Error(w, "no such method", http.StatusBadRequest)
		}
	}))
	p.wants("web.much", "", `"at last"`, "")
	if r := p.call("web.asks", ""); r.Err == "" {
		t.Errorf("a server that asks only: %s", r.Value)
	}
	p.wants("web.much", "", `"at last"`, "")
}
