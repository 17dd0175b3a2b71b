// Package terminaltest is a terminal for tests: a pseudo terminal, and what a person sees on it.
package terminaltest

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
)

// patience bounds a wait for what is going to happen.
const patience = time.Minute

// TTY is a terminal. Device is the side that programs open, Control the other one.
type TTY struct {
	t       *testing.T
	Control *os.File
	Device  *os.File

	mu   sync.Mutex
	more *sync.Cond
	face face
}

// New returns a terminal of that size.
func New(t *testing.T, columns, rows int) *TTY {
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
	y := &TTY{t: t, Control: control, Device: device, face: newFace(columns, rows)}
	y.more = sync.NewCond(&y.mu)
	y.Resize(columns, rows)
	t.Cleanup(func() { _ = control.Close(); _ = device.Close() })
	go y.watch()
	return y
}

// Resize gives the terminal another size; what is on it stays.
func (y *TTY) Resize(columns, rows int) {
	y.t.Helper()
	err := unix.IoctlSetWinsize(int(y.Device.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *TTY) watch() {
	b := make([]byte, 4096)
	for {
		n, err := y.Control.Read(b)
		y.mu.Lock()
		y.face.write(b[:n])
		y.more.Broadcast()
		y.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Types presses keys.
func (y *TTY) Types(keys string) {
	y.t.Helper()
	if _, err := y.Control.WriteString(keys); err != nil {
		y.t.Fatal(err)
	}
}

// Shows waits until the screen has these rows, from the top, and the cursor is where | is.
func (y *TTY) Shows(rows ...string) {
	y.t.Helper()
	y.Until(strings.Join(rows, "\n"), func() (string, bool) { got := y.face.String(); return got, got == strings.Join(rows, "\n") })
}

// Until waits for a fact.
func (y *TTY) Until(want string, is func() (got string, ok bool)) {
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

// face is a terminal's screen: what the sequences that an editor uses make of it, and no others.
type face struct {
	columns, rows int
	cells         [][]string // "" is after a character of two columns
	row, column   int
	pending       []byte
	unknown       []string
	kept          [2]int
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
		if len(b) < 2 {
			return 0
		}
		if b[1] == '7' || b[1] == '8' {
			f.keep(b[1] == '7')
			return 2
		}
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

// keep remembers the cursor's place, or returns to it.
func (f *face) keep(remember bool) {
	if remember {
		f.kept = [2]int{f.row, f.column}
		return
	}
	f.row, f.column = f.kept[0], f.kept[1]
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
	case s[len(s)-1] == 'm':
	case s == "K":
		f.cells[f.row] = append(f.cells[f.row][:min(f.column, f.columns)], blank(f.columns-min(f.column, f.columns))...)
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

// Face is what is on the screen now, as Shows has it. Callers are within Until.
func (y *TTY) Face() string { return y.face.String() }

// UntilShown waits until the screen has what is wanted somewhere.
func (y *TTY) UntilShown(want string) {
	y.t.Helper()
	y.Until(want, func() (string, bool) { got := y.face.String(); return got, strings.Contains(got, want) })
}

// UntilEnds waits until the screen ends with this.
func (y *TTY) UntilEnds(want string) {
	y.t.Helper()
	y.Until("... "+want, func() (string, bool) { got := y.face.String(); return got, strings.HasSuffix(got, want) })
}

// MarksPastes says whether the terminal was told to mark what is pasted. Callers are within Until.
func (y *TTY) MarksPastes() bool { return y.face.pastes }

// Lay makes the terminal one of another size, with this on it, as a terminal lays out anew what is on it.
func (y *TTY) Lay(columns, rows int, text string) {
	y.mu.Lock()
	y.face = newFace(columns, rows)
	y.face.write([]byte(text))
	y.mu.Unlock()
	y.Resize(columns, rows)
}
