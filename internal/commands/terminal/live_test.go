package terminal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/commands/terminal/terminaltest"
)

func TestTheLineIsTakenAwayBeforeOthersWrite(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 30, 6)
	l := terminal.NewLive(y.Device, true)
	to := l.File(y.Device)
	l.Await("waiting for the model")
	y.UntilShown("waiting for the model")
	fmt.Fprintln(to, "a line")
	y.UntilShown("a line\nwaiting for the model") // again, when it is quiet
	fmt.Fprint(to, "half")
	y.Shows("a line", "half|")
	l.Progress("and more") // not after half a line
	fmt.Fprint(to, " a line\n\x1b[0m")
	y.UntilShown("half a line\nand more")
	release := l.Hold()
	y.Shows("a line", "half a line", "|")
	release()
	y.UntilShown("and more")
	l.Over()
	y.Shows("a line", "half a line", "|")
}

func TestRowsThatAreNotComplete(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 20, 5)
	l := terminal.NewLive(y.Device, false)
	to := l.File(y.Device)
	fmt.Fprintln(to, "first")
	l.Await("the model writes a long text")
	l.Tail(func() []string { return []string{"a", "b", "c", "d", "e"} }) // of which the last stay
	y.UntilShown("c\nd\ne\nthe model wr")                                // as many as there is room for
	l.Tail(nil)
	fmt.Fprintln(to, "abcde")
	l.Over()
	y.UntilEnds("abcde\n|")
}

// TestModesTakeNoRoom: what ends with a sequence that shows nothing ends where it ended before.
func TestModesTakeNoRoom(t *testing.T) {
	t.Parallel()
	for text, drawn := range map[string]bool{"a\n\x1b[?2004l": true, "a\n\x1b[0m": true, "bar\r\x1b[K": true, "a\nbar 3": false, "\x1b[1mx": false, "bar\r": false} {
		y := terminaltest.New(t, 30, 6)
		l := terminal.NewLive(y.Device, false)
		fmt.Fprint(l.File(y.Device), text)
		l.Progress("waiting")
		if drawn {
			y.UntilShown("waiting")
		} else {
			time.Sleep(400 * time.Millisecond) // longer than it takes to draw; that it is late cannot fail this
			y.Until("nothing more", func() (string, bool) { return y.Face(), !strings.Contains(y.Face(), "waiting") })
		}
		l.Over()
	}
}

// TestLinesOfTheirOwn wants a line that comes at any time to stand alone, with nothing of the live line left.
func TestLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 30, 6)
	l := terminal.NewLive(y.Device, false)
	to := l.File(y.Device)
	l.Await("running")
	y.UntilShown("running")
	_, _ = to.WriteLine([]byte("it goes on\n"))
	y.UntilShown("it goes on\nrunning")
	fmt.Fprint(to, "half")
	_, _ = to.WriteLine([]byte("it still does\n"))
	l.Over()
	y.Shows("it goes on", "half", "it still does", "|")
}
