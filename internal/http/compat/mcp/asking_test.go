package mcp

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestWaiting: code that waits is its caller's and of the same call, is there once, and there is not more of it than the bounds say.
func TestWaiting(t *testing.T) {
	t.Parallel()
	var w waiting
	r := &run{asked: make(chan asked), over: make(chan struct{})}
	state := w.put(waits{owner: "a", arguments: "{}", run: r})
	for name, f := range map[string]func() (waits, bool){
		"another's":    func() (waits, bool) { return w.take(state, "b", "{}", true) },
		"another call": func() (waits, bool) { return w.take(state, "a", `{"code":"1"}`, true) },
		"a guess":      func() (waits, bool) { return w.take("x", "a", "{}", true) },
	} {
		if _, ok := f(); ok {
			t.Errorf("%s is given", name)
		}
	}
	for _, last := range []bool{false, true} {
		if one, ok := w.take(state, "a", "{}", last); !ok || one.run != r {
			t.Errorf("it is not there: %v", last)
		}
	}
	if _, ok := w.take(state, "a", "{}", true); ok {
		t.Error("it is there twice")
	}
	for n := range mostWaitingOfKey + 1 {
		if full := w.put(waits{owner: "a", run: r}) == ""; full != (n == mostWaitingOfKey) {
			t.Errorf("of one key %d: %v", n, full)
		}
	}
	for n := range mostWaiting {
		w.put(waits{owner: strconv.Itoa(n), run: r})
	}
	if len(w.all) != mostWaiting {
		t.Errorf("%d wait", len(w.all))
	}
}

// TestInput: what a user says comes to the code, and nothing does when they say nothing, or are asked for a password.
func TestInput(t *testing.T) {
	t.Parallel()
	r := &run{asked: make(chan asked), over: make(chan struct{}), patience: time.Hour}
	accept := func(value any) *sdk.ElicitResult {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{field: value}}
	}
	for _, c := range []struct {
		said *sdk.ElicitResult
		want string
		ok   bool
	}{{accept("Ada"), "Ada", true}, {accept(""), "", true}, {accept(7), "", false}, {accept(strings.Repeat("x", longestAnswer+1)), "", false}, {&sdk.ElicitResult{Action: "decline"}, "", false}, {nil, "", false}} {
		go func() { (<-r.asked).give(c.said) }()
		if text, err := r.input("?", false); text != c.want || (err == nil) != c.ok {
			t.Errorf("%+v gives %q, %v", c.said, text, err)
		}
	}
	if _, err := r.input("?", true); err == nil {
		t.Error("a password is asked for")
	}
	r.patience = time.Millisecond
	if _, err := r.input("?", false); err == nil {
		t.Error("code is answered although nobody came back")
	}
	close(r.over)
	if _, err := r.input("?", false); err == nil {
		t.Error("code that has ended is answered")
	}
}

// TestVisits: there are not more sessions of the protocol than the bounds say, and they count for those who have them.
func TestVisits(t *testing.T) {
	t.Parallel()
	var v visits
	for n := range mostVisitsOfKey {
		v.add(strconv.Itoa(n), "a")
	}
	if v.room("a") || !v.room("b") {
		t.Errorf("room: %v, of another %v", v.room("a"), v.room("b"))
	}
	v.during("1", "b", true, func() {})
	if v.room("a") {
		t.Error("another has ended a session")
	}
	if v.during("1", "a", true, func() {}); !v.room("a") {
		t.Error("one that has ended counts")
	}
}

func TestAsksToOpen(t *testing.T) {
	t.Parallel()
	s := &server{Options: Options{MaxBody: 1 << 10}}
	for body, want := range map[string]bool{
		`{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}}}}`:         true,
		`{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}}}}`: false,
		`{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`:                         false,
		`{"method":"tools/call","params":{}}`: false, `[`: false, strings.Repeat(" ", 2<<10): false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(body))
		if got := s.asksToOpen(httptest.NewRecorder(), r); got != want {
			t.Errorf("%.80s: %v", body, got)
		}
	}
}
