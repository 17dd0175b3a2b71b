package session_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
)

// cell is one execution and what it must give.
type cell struct {
	req     kernel.Request
	answers []string // of input(), in order; after the last one, end of file
	cancel  string   // cancel the execution once stdout has this
	want    string   // the transcript
	like    string   // instead of want: an expression that the transcript must match
	check   func(t *testing.T, r *run)
}

func code(code, want string) cell { return cell{req: kernel.Request{Code: code}, want: want} }

func codeLike(code, like string) cell { return cell{req: kernel.Request{Code: code}, like: like} }

func codeCheck(code string, check func(*testing.T, *run)) cell {
	return cell{req: kernel.Request{Code: code}, check: check}
}

func script(name, code, want string) cell {
	return cell{req: kernel.Request{Code: code, Mode: kernel.Script, Filename: name}, want: want}
}

// row is a named series of cells in one session.
type row struct {
	name  string
	cells []cell
}

func runRows(t *testing.T, s *session.Live, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			for _, c := range r.cells {
				runCell(t, s, c)
			}
		})
	}
}

func runCell(t *testing.T, s *session.Live, c cell) *run {
	t.Helper()
	r := execute(t, s, c)
	got := r.transcript()
	switch {
	case c.check != nil:
		c.check(t, r)
	case c.like != "":
		requireLike(t, r, c.req.Code, c.like)
	default:
		if diff := cmp.Diff(strings.TrimSpace(c.want), got); diff != "" {
			t.Errorf("%s\ngave (-want +got):\n%s%s", c.req.Code, diff, r.explanation())
		}
	}
	return r
}

func requireLike(t *testing.T, r *run, code, like string) {
	t.Helper()
	got := r.transcript()
	if !regexp.MustCompile(`^(?s:` + like + `)$`).MatchString(got) {
		t.Errorf("%s\ngave\n%s\nwhich is not like\n%s\n%s", code, shortened(got), like, r.explanation())
	}
}

func shortened(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s\n... %d bytes ...\n%s", s[:most/2], len(s)-most, s[len(s)-most/2:])
}

// run is what an execution gave.
type run struct {
	events []kernel.Event
	text   map[string]*strings.Builder // by stream
	done   kernel.Done

	mu    sync.Mutex
	asked []string
}

// execute runs a cell and holds every execution to what holds for all.
func execute(t *testing.T, s *session.Live, c cell) *run {
	t.Helper()
	r := &run{text: map[string]*strings.Builder{"stdout": {}, "stderr": {}}}
	if c.answers != nil {
		c.req.Input = r.answer(c.answers)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := false
	for ev, err := range s.Execute(ctx, c.req) {
		if err != nil {
			t.Fatalf("%s\nfailed: %+v", c.req.Code, err)
		}
		if over {
			t.Fatalf("%s\ngave %T after Done", c.req.Code, ev)
		}
		r.events = append(r.events, ev)
		switch ev := ev.(type) {
		case kernel.Stream:
			r.text[ev.Name].Write(ev.Data)
		case kernel.Error:
			refuseOwnFrames(t, ev)
		case kernel.Done:
			r.done, over = ev, true
		}
		if c.cancel != "" && strings.Contains(r.text["stdout"].String(), c.cancel) {
			cancel()
		}
	}
	if !over {
		t.Fatalf("%s\nended without Done", c.req.Code)
	}
	if r.done.Wall <= 0 {
		t.Errorf("%s\ntook %v", c.req.Code, r.done.Wall)
	}
	for name, b := range r.text {
		if utf8.ValidString(b.String()) {
			r.refuseSplitText(t, name)
		}
	}
	return r
}

func (r *run) refuseSplitText(t *testing.T, stream string) {
	t.Helper()
	for _, ev := range r.events {
		if s, ok := ev.(kernel.Stream); ok && s.Name == stream && !utf8.Valid(s.Data) {
			t.Errorf("a chunk of %s splits a character", stream)
			return
		}
	}
}

// refuseOwnFrames makes sure that a traceback is the one that plain Python would print.
func refuseOwnFrames(t *testing.T, e kernel.Error) {
	t.Helper()
	for _, line := range e.Traceback {
		if strings.Contains(line, "IPython/") || strings.Contains(line, "/kernel-") || strings.Contains(line, "cove_kernel") || strings.Contains(line, "\x1b") {
			t.Errorf("traceback of %s shows the kernel: %q", e.Name, line)
		}
	}
}

func (r *run) answer(answers []string) func(string, bool) (string, error) {
	return func(prompt string, password bool) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, fmt.Sprintf("asked %q %v", prompt, password))
		if len(r.asked) > len(answers) {
			return "", context.Canceled
		}
		return answers[len(r.asked)-1], nil
	}
}

// transcript writes the events as text, one a line, with neighbouring chunks of a stream joined.
func (r *run) transcript() string {
	var lines []string
	var stream string
	var text []byte
	flush := func() {
		if len(text) > 0 {
			lines = append(lines, fmt.Sprintf("%s %q", stream, text))
		}
		text = nil
	}
	for _, ev := range r.events {
		if s, ok := ev.(kernel.Stream); ok {
			if s.Name != stream {
				flush()
			}
			stream, text = s.Name, append(text, s.Data...)
			continue
		}
		flush()
		if _, ok := ev.(kernel.Done); ok {
			r.mu.Lock()
			lines = append(lines, r.asked...)
			r.mu.Unlock()
		}
		lines = append(lines, describe(ev))
	}
	return strings.Join(lines, "\n")
}

func describe(ev kernel.Event) string {
	switch ev := ev.(type) {
	case kernel.Result:
		return "result " + describeBundle(ev.Data)
	case kernel.Display:
		verb := "display"
		if ev.Update {
			verb = "update"
		}
		return verb + " " + describeBundle(ev.Data)
	case kernel.Error:
		return fmt.Sprintf("error %s: %s", ev.Name, ev.Value)
	case kernel.ClearOutput:
		return fmt.Sprintf("clear wait=%v", ev.Wait)
	case kernel.File:
		if ev.Created {
			return fmt.Sprintf("created %s %d", ev.Path, ev.Size)
		}
		return fmt.Sprintf("changed %s %d", ev.Path, ev.Size)
	case kernel.Install:
		return describeInstall(ev)
	case kernel.Done:
		line := string(ev.Outcome)
		if ev.ExitCode != 0 {
			line += fmt.Sprintf(" %d", ev.ExitCode)
		}
		if ev.Signal != "" {
			line += " " + ev.Signal
		}
		if ev.Lost != kernel.LostNothing {
			line += " lost=" + string(ev.Lost)
		}
		if ev.Dropped > 0 {
			line += fmt.Sprintf(" dropped=%d", ev.Dropped)
		}
		return line
	}
	return fmt.Sprintf("%T", ev)
}

func describeInstall(ev kernel.Install) string {
	switch {
	case ev.Progress != nil:
		return "installing: " + ev.Progress.Phase
	case ev.Failure != nil:
		return "not installed: " + ev.Failure.Code
	}
	var words []string
	for _, p := range ev.Provision.Installed {
		words = append(words, "installed "+p.Name)
	}
	for _, r := range ev.Provision.Refused {
		words = append(words, "refused "+r.Name)
	}
	if ev.Restarted {
		words = append(words, "restarted")
	}
	return strings.Join(words, ", ")
}

// describeBundle names the MIME types; plain text, where it is the only one, is shown.
func describeBundle(b kernel.Bundle) string {
	if plain, ok := b["text/plain"].(string); ok && len(b) == 1 {
		return plain
	}
	return "[" + strings.Join(slices.Sorted(maps.Keys(b)), " ") + "]"
}

// rolledBack says whether the code was told first that what was before it is lost.
func (r *run) rolledBack() bool {
	_, ok := r.events[0].(kernel.Rollback)
	return ok
}

// explanation is what a failed row needs to be understood.
func (r *run) explanation() string {
	var lines []string
	for _, ev := range r.events {
		if e, ok := ev.(kernel.Error); ok {
			lines = append(lines, e.Traceback...)
		}
	}
	if r.done.Message != "" {
		lines = append(lines, r.done.Message)
	}
	return strings.Join(lines, "\n")
}

// bundles returns the displays and results, in order.
func (r *run) bundles() []kernel.Bundle {
	var all []kernel.Bundle
	for _, ev := range r.events {
		switch ev := ev.(type) {
		case kernel.Display:
			all = append(all, ev.Data)
		case kernel.Result:
			all = append(all, ev.Data)
		}
	}
	return all
}
