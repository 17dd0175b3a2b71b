package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
)

// escapes floods its terminal: a title, an answer that the terminal is asked for, a string without end, a screen that is cleared, and bytes that are no text.
const escapes = `exec yes "$(printf '\033]0;title\007\033[6n\033P\033[2J\377\200\033[999999999;999999999H')"`

// meetsHostileTerminals has programs flood their terminals with escape sequences, to a follower, to one who does not read and to nobody, and others that never read what they are
// sent. Another program of the sandbox goes on as if they were not there, and each can be ended.
func meetsHostileTerminals(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*processPatience)
	defer cancel()
	terminal := process.Start{Terminal: &process.Size{Columns: 80, Rows: 24}}
	followed, unread, alone := shellScript(ctx, t, l, escapes, terminal), shellScript(ctx, t, l, escapes, terminal), shellScript(ctx, t, l, escapes, terminal)
	deaf := shellScript(ctx, t, l, "exec sleep 1000", process.Start{Input: true})
	deafTerminal := shellScript(ctx, t, l, "stty raw -echo; exec sleep 1000", terminal)

	stuck, release := context.WithCancel(ctx)
	defer release()
	held := make(chan struct{})
	go func() {
		defer close(held)
		for _, err := range l.FollowProcess(stuck, unread, 0) {
			if err != nil {
				t.Errorf("follow: %v", err)
			}
			held <- struct{}{}
			<-stuck.Done()
			return
		}
	}()
	<-held
	written := make(chan error, 2)
	for _, id := range []string{deaf, deafTerminal} {
		go func() {
			_, err := l.WriteProcess(stuck, id, strings.NewReader(strings.Repeat("\x1b[6n\x00", 4<<20)), false)
			written <- err
		}()
	}
	followsFlood(ctx, t, l, followed)
	for range 5 {
		quick := shellScript(ctx, t, l, "exec cat", process.Start{Input: true})
		if _, err := l.WriteProcess(ctx, quick, strings.NewReader("here\n"), true); err != nil {
			t.Error(err)
		}
		if out, _, exit := told(ctx, t, l, quick); out != "here\n" || exit.Code != 0 {
			t.Errorf("another program said %q and ended with %+v", out, exit)
		}
	}
	select {
	case err := <-written:
		t.Errorf("a program that reads nothing took 20 MB, %v", err)
	default:
	}
	for _, id := range []string{followed, unread, alone, deaf, deafTerminal} {
		endsOne(ctx, t, l, id)
	}
	for range 2 {
		select {
		case err := <-written:
			if errors.Is(err, context.Canceled) || err == nil {
				t.Errorf("what is sent to a program that was killed: %v", err)
			}
		case <-ctx.Done():
			t.Fatal("who writes to a program that was killed waits")
		}
	}
}

// followsFlood reads more of a program than is ever kept: it comes in order, or it is said what is missing.
func followsFlood(ctx context.Context, t *testing.T, l *guestlink.Link, id string) {
	t.Helper()
	var got, at int64
	for event, err := range l.FollowProcess(ctx, id, 0) {
		if err != nil {
			t.Fatalf("follow: %v", err)
		}
		if event.Kind == process.Gap {
			at = event.At
			continue
		}
		if event.At != at {
			t.Errorf("byte %d came where byte %d was to come", event.At, at)
		}
		at = event.Next()
		if got += int64(len(event.Data)); got > 4<<20 {
			return
		}
	}
	t.Errorf("%d bytes came", got)
}

// endsOne kills a program, of which little is kept then.
func endsOne(ctx context.Context, t *testing.T, l *guestlink.Link, id string) {
	t.Helper()
	if err := l.SignalProcess(ctx, id, int(syscall.SIGKILL), true); err != nil {
		t.Error(err)
	}
	kept := 0
	for event, err := range l.FollowProcess(ctx, id, 0) {
		if err != nil {
			t.Fatalf("follow what has ended: %v", err)
		}
		if kept += len(event.Data); event.Kind == process.Ended && event.Exit.Signal != "SIGKILL" {
			t.Errorf("it ended with %+v", event.Exit)
		}
	}
	if kept > 2<<20 {
		t.Errorf("%d bytes are kept of a program", kept)
	}
}

// watchesManyFiles watches ten thousand files in a hundred folders, all of which change at once: each change is told.
func watchesManyFiles(t *testing.T, e sandbox.Engine) {
	const folders, files = 100, 100
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), 4*processPatience)
	defer cancel()
	shell(ctx, t, l, "mkdir many && cd many && for d in $(seq 100); do mkdir $d; (cd $d; touch $(seq 100)); done")
	w, err := l.WatchFiles(ctx, "many", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	seen := gather(w)
	shell(ctx, t, l, "cd many && for d in *; do (cd $d; for f in *; do echo x > $f; done); done")
	deadline := time.After(3 * processPatience)
	changed := map[string]bool{}
	for len(changed) < folders*files {
		select {
		case word := <-seen.come:
			what, name, _ := strings.Cut(word, " ")
			if what == "write" {
				changed[name] = true
			} else if what != "change" {
				t.Fatalf("the watch says %q", word)
			}
		case <-deadline:
			t.Fatalf("%d of %d files that have changed were told", len(changed), folders*files)
		}
	}
}
