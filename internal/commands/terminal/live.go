package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// When what is awaited is shown: late enough that what is quick does not flicker, seldom enough that it can be read.
const (
	awaitAfter    = 500 * time.Millisecond
	progressAfter = 150 * time.Millisecond
	drawEvery     = 80 * time.Millisecond
	countFrom     = time.Second // from when on the seconds are shown
)

// Live is the last line of a terminal, which says what is awaited and for how long, and above it the rows of a text that is not complete yet. They are
// drawn in place, and taken away before anything else is written: all that is written to the terminal goes through a File of the Live. Nothing is
// drawn after text that stands on the same row. A nil Live shows nothing.
type Live struct {
	out    *os.File
	colour bool

	mu     sync.Mutex // guards what follows, which a timer uses too
	text   string
	begun  time.Time // of what is awaited; zero when nothing is
	after  time.Duration
	held   int             // how many want nothing to be drawn
	tail   func() []string // rows above the line; nil: none
	drawn  int             // rows on the screen
	saved  bool            // the cursor's place and colours were saved before they were drawn
	drew   time.Time
	wrote  time.Time // by others
	within bool      // what they wrote ended within a row
	timer  *time.Timer
}

// NewLive returns the live line of a terminal.
func NewLive(out *os.File, colour bool) *Live { return &Live{out: out, colour: colour} }

// File returns f, a terminal, as something to write to besides the live line.
func (l *Live) File(f *os.File) *File { return &File{file: f, live: l} }

// Await says what is awaited from now on. The same text again goes on counting.
func (l *Live) Await(text string) { l.set(text, awaitAfter, true) }

// Progress says how far is what is awaited, which is shown a little earlier.
func (l *Live) Progress(text string) { l.set(text, progressAfter, false) }

func (l *Live) set(text string, after time.Duration, anew bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun.IsZero() || anew && text != l.text {
		l.begun = time.Now()
	}
	if anew && text != l.text {
		l.erase()
	}
	l.text, l.after = text, after
	l.schedule()
}

// Over says that nothing is awaited any more.
func (l *Live) Over() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.text, l.begun, l.tail = "", time.Time{}, nil
}

// Tail shows rows above the line, instead of those that were there, as many of the last as there is room for; nil: none. They have no line ends, and end
// without colours. rows is called when they are drawn, and may return nothing.
func (l *Live) Tail(rows func() []string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tail = rows; rows == nil {
		l.erase()
	}
	l.schedule()
}

// Hold has nothing drawn until release is called, because a person is asked for something.
func (l *Live) Hold() (release func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.held++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held--
		l.wrote, l.within = time.Now(), false // the person's line end is on the screen
		l.schedule()
	})
}

// due is when there is something to draw; zero when there is nothing.
func (l *Live) due() time.Time {
	var at time.Time
	if l.held > 0 || l.within {
		return at
	}
	if !l.begun.IsZero() {
		at = latest(l.begun, l.wrote).Add(l.after)
	}
	if l.tail != nil && (at.IsZero() || l.wrote.Before(at)) {
		at = l.wrote
	}
	if at.IsZero() {
		return at
	}
	return latest(at, l.drew.Add(drawEvery))
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// schedule has draw be called when something is due. The caller holds the lock.
func (l *Live) schedule() {
	at := l.due()
	if at.IsZero() {
		return
	}
	wait := max(time.Until(at), 0)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.draw)
		return
	}
	l.timer.Reset(wait)
}

func (l *Live) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.due(); at.IsZero() || time.Until(at) > 0 {
		l.schedule() // others wrote, or nothing is awaited any more
		return
	}
	columns, rows := Size(l.out)
	if columns < 10 || rows < 2 {
		columns, rows = 80, 24
	}
	var shown []string
	if l.tail != nil {
		tail := l.tail()
		shown = tail[max(0, len(tail)-rows+2):]
	}
	above := len(shown)
	if line := l.line(columns - 1); line != "" {
		shown = append(shown[:len(shown):len(shown)], line)
	}
	if len(shown) == 0 {
		l.schedule()
		return
	}
	var b strings.Builder
	b.WriteString(l.erasure())
	l.saved = above == 0
	if l.saved {
		b.WriteString("\x1b7\x1b[0m")
	}
	b.WriteString("\r" + strings.Join(shown, "\r\n"))
	_, _ = io.WriteString(l.out, b.String()) // a terminal that is gone shows nothing
	l.drawn, l.drew = len(shown), time.Now()
	if !l.begun.IsZero() {
		l.timer.Reset(time.Second) // the count goes on when nothing is heard
	}
}

// line is the line that says what is awaited, or "" before that is due.
func (l *Live) line(columns int) string {
	if l.begun.IsZero() || time.Until(latest(l.begun, l.wrote).Add(l.after)) > 0 && l.drawn == 0 {
		return ""
	}
	text := l.text
	if took := time.Since(l.begun); took >= countFrom {
		count := fmt.Sprintf("  %d s", int(took.Seconds()))
		text = Cut(text, columns-len(count)) + count
	}
	text = Cut(text, columns)
	if l.colour {
		return "\x1b[2m" + text + "\x1b[0m"
	}
	return text
}

// erase takes away what is drawn. The caller holds the lock.
func (l *Live) erase() {
	if text := l.erasure(); text != "" {
		_, _ = io.WriteString(l.out, text)
	}
	l.drawn = 0
}

func (l *Live) erasure() string {
	if l.drawn == 0 {
		return ""
	}
	text := "\r"
	if l.drawn > 1 {
		text += fmt.Sprintf("\x1b[%dA", l.drawn-1)
	}
	text += "\x1b[0m\x1b[J"
	if l.saved {
		text += "\x1b8"
	}
	return text
}

// File is a terminal that has a live line, which is taken away before something is written.
type File struct {
	file  *os.File
	live  *Live
	tells bool
}

// Telling is f with lines that say what is awaited from then on, while anything is.
func (f *File) Telling() *File { return &File{file: f.file, live: f.live, tells: true} }

// Fd is the file's descriptor.
func (f *File) Fd() uintptr { return f.file.Fd() }

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	return f.write(b)
}

// WriteLine writes a line on a row of its own, also where something stands on the present one.
func (f *File) WriteLine(line []byte) (int, error) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	if f.live.within {
		line = append([]byte("\n"), line...)
	}
	return f.write(line)
}

// write is Write for a caller that holds the lock.
func (f *File) write(b []byte) (int, error) {
	l := f.live
	if len(b) > 0 {
		l.erase()
		l.wrote, l.within = time.Now(), endsWithin(b, l.within)
	}
	n, err := f.file.Write(b)
	if line, ended := strings.CutSuffix(string(b), "\n"); ended && f.tells && !l.begun.IsZero() {
		l.text, l.begun = strings.TrimRight(strings.TrimSpace(line[strings.LastIndexByte(line, '\n')+1:]), " ."), time.Now()
	}
	l.schedule()
	return n, err
}

// endsWithin says whether the cursor is after something after text was written; was says so of the time before. Colours and modes take no room.
func endsWithin(text []byte, was bool) bool {
	if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
		text, was = text[at+1:], false
	}
	begins := false // the cursor is at the beginning of the row
	for len(text) > 0 {
		last, size := sequence(text)
		switch {
		case last == 'm' || last == 'h' || last == 'l':
		case (last == 'K' || last == 'J') && begins:
			was = false
		case text[0] == '\r':
			begins = true
		default:
			was, begins = true, false
		}
		text = text[size:]
	}
	return was
}

// sequence is the last byte of the control sequence that text begins with, and the size of that; 0 and 1 where it begins with none.
func sequence(text []byte) (last byte, size int) {
	if !bytes.HasPrefix(text, []byte("\x1b[")) {
		return 0, 1
	}
	for i := 2; i < len(text); i++ {
		if c := text[i]; c >= 0x40 && c <= 0x7e {
			return c, i + 1
		}
	}
	return 0, len(text)
}
