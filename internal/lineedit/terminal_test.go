package lineedit_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/text/width"

	"cove/internal/lineedit"
)

// patience bounds a wait for what is going to happen.
const patience = time.Minute

// tty is a terminal: a pair of a pseudo terminal, and what a person sees on it.
type tty struct {
	t       *testing.T
	control *os.File
	device  *os.File

	mu   sync.Mutex
	more *sync.Cond
	face face
}

func newTTY(t *testing.T, columns, rows int) *tty {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var number int
	raw, err := control.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	y := &tty{t: t, control: control, device: device, face: newFace(columns, rows)}
	y.more = sync.NewCond(&y.mu)
	y.resize(columns, rows)
	t.Cleanup(func() { _ = control.Close(); _ = device.Close() })
	go y.watch()
	return y
}

func (y *tty) resize(columns, rows int) {
	y.t.Helper()
	err := unix.IoctlSetWinsize(int(y.device.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *tty) watch() {
	b := make([]byte, 4096)
	for {
		n, err := y.control.Read(b)
		y.mu.Lock()
		y.face.write(b[:n])
		y.more.Broadcast()
		y.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// types presses keys.
func (y *tty) types(keys string) {
	y.t.Helper()
	if _, err := y.control.WriteString(keys); err != nil {
		y.t.Fatal(err)
	}
}

// shows waits until the screen has these rows, from the top, and the cursor is where | is.
func (y *tty) shows(rows ...string) {
	y.t.Helper()
	y.until(strings.Join(rows, "\n"), func() (string, bool) { got := y.face.String(); return got, got == strings.Join(rows, "\n") })
}

// until waits for a fact.
func (y *tty) until(want string, is func() (got string, ok bool)) {
	y.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		late = true
		y.more.Broadcast()
	})
	defer timer.Stop()
	y.mu.Lock()
	defer y.mu.Unlock()
	for {
		got, ok := is()
		if ok {
			return
		}
		if late {
			y.t.Fatalf("the terminal shows\n%s\nwant\n%s", got, want)
		}
		y.more.Wait()
	}
}

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

// face is a terminal's screen: what the sequences that an editor uses make of it, and no others.
type face struct {
	columns, rows int
	cells         [][]string // "" is behind a character of two columns
	row, column   int
	pending       []byte
	unknown       []string
	pastes        bool
}

func newFace(columns, rows int) face {
	f := face{columns: columns, rows: rows}
	f.cells = make([][]string, rows)
	for i := range f.cells {
		f.cells[i] = blank(columns)
	}
	return f
}

func blank(columns int) []string {
	row := make([]string, columns)
	for i := range row {
		row[i] = " "
	}
	return row
}

func (f *face) write(b []byte) {
	f.pending = append(f.pending, b...)
	for len(f.pending) > 0 {
		n := f.one(f.pending)
		if n == 0 {
			return
		}
		f.pending = f.pending[n:]
	}
}

func (f *face) one(b []byte) int {
	switch b[0] {
	case '\r':
		f.column = 0
		return 1
	case '\n':
		f.down()
		return 1
	case '\b':
		f.column = max(0, f.column-1)
		return 1
	case 0x1b:
		end := 2
		for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
			end++
		}
		if end >= len(b) {
			return 0
		}
		f.sequence(string(b[2 : end+1]))
		return end + 1
	}
	if !utf8.FullRune(b) {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	f.put(r)
	return n
}

func (f *face) put(r rune) {
	w := 1
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		w = 2
	}
	if r >= 0x300 && r < 0x370 {
		f.cells[f.row][max(0, f.column-1)] += string(r)
		return
	}
	if f.column+w > f.columns {
		f.column = 0
		f.down()
	}
	f.cells[f.row][f.column] = string(r)
	if w == 2 {
		f.cells[f.row][f.column+1] = ""
	}
	f.column += w
}

func (f *face) down() {
	if f.row++; f.row == f.rows {
		f.row--
		f.cells = append(f.cells[1:], blank(f.columns))
	}
}

func (f *face) sequence(s string) {
	n, _ := strconv.Atoi(s[:len(s)-1])
	switch {
	case s == "?2004h" || s == "?2004l":
		f.pastes = s == "?2004h"
	case s == "J":
		f.cells[f.row] = append(f.cells[f.row][:min(f.column, f.columns)], blank(f.columns-min(f.column, f.columns))...)
		for i := f.row + 1; i < f.rows; i++ {
			f.cells[i] = blank(f.columns)
		}
	case s == "H":
		f.row, f.column = 0, 0
	case s == "2J":
		for i := range f.cells {
			f.cells[i] = blank(f.columns)
		}
	case s[len(s)-1] == 'A':
		f.row = max(0, f.row-n)
	case s[len(s)-1] == 'B':
		f.row = min(f.rows-1, f.row+n)
	case s[len(s)-1] == 'C':
		f.column = min(f.columns-1, f.column+n)
	default:
		f.unknown = append(f.unknown, s)
	}
}

// String is the rows down to the last that has something, with | where the cursor is.
func (f *face) String() string {
	var rows []string
	for i, cells := range f.cells {
		var row strings.Builder
		for j, cell := range cells {
			if i == f.row && j == f.column {
				row.WriteString("|")
			}
			row.WriteString(cell)
		}
		if i == f.row && f.column >= f.columns {
			row.WriteString("|")
		}
		rows = append(rows, strings.TrimRight(row.String(), " "))
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	if len(f.unknown) > 0 {
		rows = append(rows, fmt.Sprintf("sequences that this terminal does not know: %q", f.unknown))
	}
	return strings.Join(rows, "\n")
}
