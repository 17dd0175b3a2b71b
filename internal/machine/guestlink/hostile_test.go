package guestlink_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// hostile returns a link to a guest that gives the same answer to everything, and the guest.
func hostile(t *testing.T, response wire.Response, body string) (*guestlink.Link, *wire.Conn) {
	t.Helper()
	return hostileThat(t, response, body, func(*wire.Channel) {})
}

// hostileThat is hostile with what the guest does after its answer.
func hostileThat(t *testing.T, response wire.Response, body string, then func(*wire.Channel)) (*guestlink.Link, *wire.Conn) {
	t.Helper()
	near, far := net.Pipe()
	guest := wire.NewConn(far, false)
	go func() {
		info := wire.Encode(wire.GuestInfo{Workspace: "/home/user", Files: true, Processes: []string{}})
		if _, err := guest.Handshake(wire.Hello{Version: wire.Version, Info: info}, nil); err != nil {
			return
		}
		go func() { _ = guest.Run(context.Background()) }()
		for {
			ch, err := guest.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				var req wire.Request
				_, _ = wire.ReadMessage(ch, wire.MessageLimit, &req)
				_ = wire.WriteMessage(ch, response, []byte(body))
				then(ch)
				_, _ = io.Copy(io.Discard, ch)
				_ = ch.Close()
			}()
		}
	}()
	l, err := guestlink.Open(t.Context(), near, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = guest.Close()
	})
	return l, guest
}

// TestShorter reads files of which less comes than was said, as when code shortens one meanwhile.
func TestShorter(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*wire.Channel){
		"ends": func(ch *wire.Channel) {
			_, _ = ch.Write([]byte("four"))
			_ = ch.CloseWrite()
		},
		"is given up": func(ch *wire.Channel) { _ = ch.Reset("EOF") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := hostileThat(t, wire.Response{Size: 10}, "", then)
			if _, err := l.ReadFile(t.Context(), "x", 0, io.Discard); !problem.Has(err, problem.FileChanging) {
				t.Errorf("it is %v", err)
			}
		})
	}
}

func TestHostileListings(t *testing.T) {
	t.Parallel()
	many := func(n int) string { return `[{"path":"x"}` + strings.Repeat(`,{"path":"x"}`, n-1) + "]" }
	for name, c := range map[string]struct {
		body string
		want int // files, -1 for an error
	}{
		"none":               {"[]", 0},
		"as many as allowed": {many(wire.ListLimit), wire.ListLimit},
		"too many":           {many(wire.ListLimit + 1), -1},
		"millions":           {"[" + strings.Repeat("{},", 5<<20) + "{}]", -1},
		"not a list":         {"{}", -1},
		"no JSON":            {"[", -1},
		"nothing":            {"", -1},
		"other types":        {"[1]", -1},
		"paths that lead elsewhere": {`[{"path":"../x"},{"path":"/etc/passwd"},{"path":"a/../../b"},{"path":""},{"path":"."},{"path":"a//b"},{"path":"a/"},
			{"path":"x","size":-1},{"path":"good"}]`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := hostile(t, wire.Response{}, c.body)
			files, _, err := l.ListFiles(t.Context())
			entries, _, err2 := l.ListFolder(t.Context(), "")
			if c.want < 0 && err != nil && err2 != nil {
				return
			}
			if err = errors.Join(err, err2); err != nil || len(files) != c.want || len(entries) != c.want {
				t.Errorf("%d files and %d entries, %v", len(files), len(entries), err)
			}
		})
	}
	l, _ := hostile(t, wire.Response{}, `[{"path":"a/x"},{"path":"b/x"},{"path":"a"},{"path":"a/b/c"}]`)
	if entries, _, err := l.ListFolder(t.Context(), "a"); err != nil || len(entries) != 1 || entries[0].Path != "a/x" {
		t.Errorf("in a folder there are %v, %v", entries, err)
	}
}

// TestHostileMessages has a guest explain a failure with more than anybody would print.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	l, _ := hostile(t, wire.Response{Code: wire.FaultDenied, Message: "no\x1b[31m\n" + strings.Repeat("x", 1<<20)}, "")
	_, err := l.Stat(t.Context(), "a")
	if p := problem.Of(err); p == nil || p.Code != "file_denied" || len(p.Message) > 4<<10 || strings.ContainsAny(p.Message, "\x1b\n") {
		t.Errorf("it says %.200q", err)
	}
}

// TestUnwantedChannels has a guest open channels to a host that expects none.
func TestUnwantedChannels(t *testing.T) {
	t.Parallel()
	_, guest := hostile(t, wire.Response{}, "")
	for range 2 * wire.MaxChannels {
		ch, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Read(make([]byte, 1)); !errors.Is(err, wire.ErrReset) {
			t.Fatalf("a channel that nobody wants: %v", err)
		}
	}
}

// TestHostileFiles has a guest tell of files what is none, too much, or leads elsewhere.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	many := func(one string, n int) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	attributes := `{"attributes":{` + strings.Repeat(`"aaaaaaaa":"",`, 1<<20) + `"b":""}}`
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "another type": `"x"`, "a number": "7", "more attributes than a file has": attributes, "a list of such": "[" + attributes + "]",
		"too many": many(`{"path":"x"}`, wire.ListLimit+1), "millions": many("{}", 5<<20), "no answer for each": "[]",
		"too many matches": `{"matches":` + many("{}", wire.MatchLimit+1) + "}", "more answers": many("{}", wire.PathsLimit+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := hostile(t, wire.Response{}, body)
			_, _, _, listed := l.ListPath(t.Context(), "", 3)
			_, stat := l.StatPath(t.Context(), "a", true)
			_, found := l.SearchFiles(t.Context(), filesystem.Search{Name: "*"})
			_, replaced := l.ReplaceText(t.Context(), filesystem.Replace{Paths: []string{"a", "b"}, Text: "x"})
			if stat == nil && name != "no answer for each" && name != "too many matches" || replaced == nil || (listed == nil) != (name == "no answer for each" || name == "more answers") || found == nil && name != "more attributes than a file has" {
				t.Errorf("it is believed: %v, %v, %v, %v", stat, replaced, listed, found)
			}
		})
	}
	long := strings.Repeat("x", 1<<20)
	l, _ := hostile(t, wire.Response{Size: -5}, `{"path":"`+long+`","full":"../../etc","kind":"\u0000","size":-1,"mode":4294967295,"uid":-7,"modified":-9223372036854775808,"stamp":"`+long+`","target":"`+long+`","owner":"`+long+`"}`)
	e, err := l.StatPath(t.Context(), "a", true)
	if err != nil || len(e.Path) > 8<<10 || e.Full != "/etc" || e.Kind != filesystem.Other || e.Size != 0 || e.Mode != 0o7777 || e.UID != 0 || len(e.Stamp) > 100 || len(e.Target) > 8<<10 || len(e.Owner) > 100 || e.Symbolic() == "" {
		t.Errorf("an entry: %.300v, %v", e, err)
	}
	if c, err := l.OpenPath(t.Context(), "a", 0, 0); err != nil || c.Len() != 0 {
		t.Errorf("a file of a size below zero: %v", err)
	}
	w, err := l.WatchFiles(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = w.Close() })
	for _, err := range w.Events() { // there are none
		if err == nil {
			t.Error("silence is an event")
		}
	}
}
