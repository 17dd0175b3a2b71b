package scan_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
	"cove/internal/python/deps/scan"
)

// liar is a guest whose scanner gives the same answers whatever it is asked: one message each, and its end for "exit".
type liar []string

// scanner serves a liar and starts the scanner in it.
func (g liar) scanner(t *testing.T) *scan.Scanner {
	t.Helper()
	ours, theirs := net.Pipe()
	conn := wire.NewConn(theirs, false)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := conn.Handshake(wire.Hello{Version: wire.Version, Info: wire.Encode(wire.GuestInfo{PID: 1})}, nil); err != nil {
			return
		}
		go func() {
			for {
				ch, err := conn.Accept(ctx)
				if err != nil {
					return
				}
				go g.serve(ch)
			}
		}()
		_ = conn.Run(ctx)
	}()
	l, err := guestlink.Open(t.Context(), ours, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scan.Start(t.Context(), l, "/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		_ = l.Close()
		cancel()
	})
	return s
}

func (g liar) serve(ch *wire.Channel) {
	var req wire.Request
	if _, err := wire.ReadMessage(ch, wire.MessageLimit, &req); err != nil {
		return
	}
	_ = wire.WriteMessage(ch, wire.Response{PID: 2}, nil)
	for {
		var h wire.ToKernel
		if _, err := wire.ReadMessage(ch, wire.MessageLimit, &h); err != nil {
			return
		}
		if h.Kind == wire.ToSignal {
			_ = wire.WriteMessage(ch, wire.FromProcess{Kind: wire.FromExit, Signal: h.Signal}, nil)
			return
		}
		for _, said := range g {
			if said == "exit" {
				_ = wire.WriteMessage(ch, wire.FromProcess{Kind: wire.FromExit, Code: 1}, nil)
				return
			}
			_ = wire.WriteMessage(ch, wire.FromProcess{Kind: wire.FromStderr}, []byte("noise"))
			_ = wire.WriteMessage(ch, wire.FromProcess{Kind: wire.FromMessage}, []byte(said))
		}
	}
}

// TestBelievesLittle has a scanner say what must not be passed on.
func TestBelievesLittle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	s := liar{`{"imports":[
		{"module":"good.one","names":["x","../y","","z z","x"],"unless":["../a","b"]},
		{"module":"../etc/passwd"},{"module":"a-b"},{"module":""},{"module":"."},{"module":"a..b"},{"module":"a b"},{"module":"1a"},{"module":"a\u0000"},
		{"module":"` + long + `"},{"module":"a;b"},{"module":"a\nb"},{"module":"$(x)"},{"module":"ok","optional":true}],
		"needs":[{"module":"evil","function":"read_excel"},{"module":"openpyxl","function":"evil"},{"module":"openpyxl","function":"read_excel"}],
		"shell":["pip install evil @ https://example.com/x.whl --index-url https://example.com good --extra-index-url=x"],
		"argv":[["pip","install","--find-links","/tmp","fine==1.0"],[],["pip"],["-m"]],
		"asked":["nothing"]}`}.scanner(t)
	r := look(t, s, scan.Code{Text: "x"})
	want := []scan.Import{
		{Module: "good.one", Names: []string{"x"}, Unless: []string{"b"}},
		{Module: "ok", Optional: true},
		{Module: "openpyxl", Need: "read_excel", Distribution: "openpyxl"},
	}
	if diff := cmp.Diff(want, r.Imports); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, a := range r.Asked {
		if a.Name != "good" && a.Name != "fine" && a.Name != "evil" || strings.Contains(a.String(), "/") {
			t.Errorf("asked for %v", a)
		}
	}
	if len(r.Refused) == 0 {
		t.Error("nothing was refused")
	}
}

// TestBoundsReplies has a scanner say too much.
func TestBoundsReplies(t *testing.T) {
	t.Parallel()
	imports := strings.Repeat(`{"module":"a"},`, 5000) + `{"module":"a"}`
	names := strings.Repeat(`"b",`, 5000) + `"c"`
	shell := strings.Repeat(`"pip install a`+strings.Repeat(" b", 10)+`",`, 1000) + `""`
	s := liar{`{"imports":[{"module":"x","names":[` + names + `]},` + imports + `],"shell":[` + shell + `]}`}.scanner(t)
	r := look(t, s, scan.Code{Text: "x"})
	if len(r.Imports) != 500 || len(r.Imports[0].Names) > 100 || len(r.Asked) > 200 {
		t.Errorf("%d imports, %d names, %d requirements", len(r.Imports), len(r.Imports[0].Names), len(r.Asked))
	}
}

// TestFaults has a scanner break in every way; what is left is a problem, and an end.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]liar{"not JSON": {"{"}, "an array": {"[]"}, "other types": {`{"imports":5}`}, "dies": {"exit"}} {
		s := g.scanner(t)
		_, err := s.Scan(t.Context(), scan.Code{Text: "x"})
		requireProblem(t, err, "scan_failed")
		select {
		case <-s.Ended():
		case <-t.Context().Done():
			t.Errorf("%s: goes on", name)
		}
		_, err = s.Scan(t.Context(), scan.Code{Text: "x"})
		requireProblem(t, err, "scan_failed")
	}
}

// TestTimeout waits, in the time of its own that synctest makes, for an answer that does not come.
func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := liar{}.scanner(t)
		_, err := s.Scan(t.Context(), scan.Code{Text: "x"})
		requireProblem(t, err, "scan_timeout")
		<-s.Ended()
	})
}

// TestLateReply has a scanner answer more often than it is asked: the extra answer is not taken for one to the next question.
func TestLateReply(t *testing.T) {
	t.Parallel()
	s := liar{`{"imports":[{"module":"a"}]}`, `{"imports":[{"module":"b"}]}`}.scanner(t)
	for range 3 {
		if r := look(t, s, scan.Code{Text: "x"}); len(r.Imports) != 1 {
			t.Errorf("got %+v", r)
		}
	}
}
