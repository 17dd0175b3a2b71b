package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/term"
)

// When a live line is drawn: late enough that what is quick does not flicker, seldom enough that it can be read.
const (
	liveAfter = 150 * time.Millisecond
	liveEvery = 80 * time.Millisecond
	liveCount = 2 * time.Second // from when on it counts the seconds
)

// liveLine is the last line of a terminal, redrawn in place while something goes on. Whatever else is written to the
// terminal meanwhile comes after clear. A nil liveLine shows nothing.
type liveLine struct {
	to io.Writer
	fd int

	mu    sync.Mutex // guards what follows, which a timer uses too
	text  string
	begun time.Time // of what goes on; zero when nothing does
	timer *time.Timer
	drawn bool
	drew  time.Time
}

// newLiveLine returns the live line of the terminal that p.Err is, or nil when it is none.
func (p *Program) newLiveLine() *liveLine {
	fd, tty := terminal(p.Err)
	if !tty || p.Getenv("TERM") == "dumb" {
		return nil
	}
	return &liveLine{to: p.Err, fd: fd}
}

// set says what goes on now.
func (l *liveLine) set(text string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	if l.begun.IsZero() {
		l.begun = time.Now()
	}
	due := l.begun.Add(liveAfter)
	if l.drawn {
		due = l.drew.Add(liveEvery)
	}
	l.schedule(max(time.Until(due), 0))
}

func (l *liveLine) schedule(wait time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.draw)
		return
	}
	l.timer.Reset(wait)
}

func (l *liveLine) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun.IsZero() {
		return // it was cleared meanwhile
	}
	text := l.text
	if took := time.Since(l.begun); took >= liveCount {
		text += fmt.Sprintf("  %d s", int(took.Seconds()))
	}
	width, _, err := term.GetSize(l.fd)
	if err != nil || width < 10 {
		width = 80
	}
	if runes := []rune(text); len(runes) >= width {
		text = string(runes[:width-2]) + "…"
	}
	fmt.Fprint(l.to, "\r\x1b[K"+text)
	l.drawn, l.drew = true, time.Now()
	l.schedule(time.Second) // the count goes on when nothing is heard
}

// clear takes the line away.
func (l *liveLine) clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.drawn {
		fmt.Fprint(l.to, "\r\x1b[K")
	}
	l.begun, l.drawn = time.Time{}, false
}
