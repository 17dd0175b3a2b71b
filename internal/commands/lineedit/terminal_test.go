package lineedit_test

import (
	"errors"
	"testing"
	"time"

	"cove/internal/commands/lineedit"
)

// patience bounds a wait for what is going to happen.
const patience = time.Minute

// entered is what ReadLine returned.
type entered struct {
	text string
	err  error
}

// reads begins a ReadLine.
func reads(e *lineedit.Editor) <-chan entered {
	got := make(chan entered, 1)
	go func() {
		text, err := e.ReadLine()
		got <- entered{text, err}
	}()
	return got
}

// returns waits for what ReadLine returns.
func returns(t *testing.T, got <-chan entered, want string, wantErr error) {
	t.Helper()
	select {
	case g := <-got:
		if g.text != want || !errors.Is(g.err, wantErr) {
			t.Errorf("got %q, %v; want %q, %v", g.text, g.err, want, wantErr)
		}
	case <-time.After(patience):
		t.Fatalf("ReadLine does not return; want %q, %v", want, wantErr)
	}
}
