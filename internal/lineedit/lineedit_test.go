package lineedit_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/lineedit"
)

// open returns an editor on a terminal, with a prompt and a history of these entries.
func open(t *testing.T, y *tty, o lineedit.Options, history ...string) *lineedit.Editor {
	t.Helper()
	h, err := lineedit.OpenHistory("", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range history {
		if err := h.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	o.In, o.Out, o.History = y.device, y.device, h
	e, err := lineedit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	e.SetPrompt("> ")
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestKeys edits with keys and wants the entry, whatever pieces the keys come in.
func TestKeys(t *testing.T) {
	t.Parallel()
	old := []string{"print('alpha')", "x = 1", "for i in x:\n    print(i)"}
	for name, c := range map[string]struct {
		keys, want string
		err        error
	}{
		"a line":                        {"1+1\r", "1+1", nil},
		"what waits from before":        {"1+1\n", "1+1", nil},
		"in the middle":                 {"ac\x1b[Db\x1b[C!\r", "abc!", nil},
		"backspace":                     {"abcd\x7f\x08\r", "ab", nil},
		"delete":                        {"abc\x1b[D\x1b[D\x1b[3~\r", "ac", nil},
		"Ctrl-D in an entry":            {"abc\x01\x04\r", "bc", nil},
		"Ctrl-D at the end of an entry": {"abc\x04\r", "abc", nil},
		"home and end":                  {"bc\x1b[Ha\x1b[Fd\x1bOHx\x1bOFy\x1b[1~1\x1b[4~2\r", "1xabcdy2", nil},
		"Chinese by the character":      {"销售额增长\x7f\x1b[D\x1b[D\x7f\r", "销额增", nil},
		"an accent goes with its letter": {
			"xe\u0301\x7f\r", "x", nil,
		},
		"words":           {"one two three\x1bb\x1bb\x17X\x1bf\x1b[1;5C!\r", "Xtwo three!", nil},
		"kill and yank":   {"abc def\x1b[D\x1b[D\x1b[D\x15\x05\x19\r", "defabc ", nil},
		"kill to the end": {"abc\x02\x0b\x01\x19\r", "cab", nil},
		"transpose":       {"ab\x14\r", "ba", nil},
		"the history":     {"\x1b[A\x1b[A\x1b[A\r", "x = 1", nil},
		"the entry comes back": {
			"new\x10\x0e\r", "new", nil,
		},
		"a block as a whole": {"\x1b[A\r", "for i in x:\n    print(i)", nil},
		"within a block":     {"\x1b[A\x1b[A\x05#\r", "for i in x:#\n    print(i)", nil},
		"search":             {"\x12PRIN\x12\r", "print('alpha')", nil},
		"search, then edit":  {"\x12x =\x05+1\r", "x = 1+1", nil},
		"search given up":    {"kept\x12zzz\x07\r", "kept", nil},
		"a paste is text":    {"a\x1b[200~b\r\nc\td\x03\x1b[Ae\n\x1b[201~f\r", "ab\nc\td[Ae\nf", nil},
		"Ctrl-Space":         {"1\x00+1\r", "1+1", nil},
		"Alt-Enter":          {"a\x1b\rb\r", "a\nb", nil},
		"keys that mean nothing": {
			"a\x1b[15~\x1b[99;99X\x1bz\x1b[200xb\x1d\xff\r", "ab", nil,
		},
		"an escape by itself": {"a\x1b\x1b[Db\r", "ba", nil},
		"Ctrl-C":              {"abc\x03", "", lineedit.ErrInterrupt},
		"Ctrl-C in a search":  {"abc\x12pri\x03\x03", "", lineedit.ErrInterrupt},
		"Ctrl-D":              {"\x04", "", io.EOF},
	} {
		for how, piece := range map[string]int{"at once": len(c.keys), "by the byte": 1} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				y := newTTY(t, 60, 10)
				got := reads(open(t, y, lineedit.Options{}, old...))
				y.shows("> |")
				for rest := c.keys; rest != ""; rest = rest[min(piece, len(rest)):] {
					y.types(rest[:min(piece, len(rest))])
				}
				returns(t, got, c.want, c.err)
			})
		}
	}
}

// TestWhatIsShown wants rows and the cursor's column to be a terminal's, also for characters of two columns and at the edges.
func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys string
		want []string
	}{
		"Chinese":                    {"销售ab\x1b[D\x1b[D\x1b[D", []string{"> 销|售ab"}},
		"a full row":                 {"12345678", []string{"> 12345678", "|"}},
		"a wide one does not fit":    {"1234567售", []string{"> 1234567", "售|"}},
		"the cursor before that":     {"1234567售\x1b[D", []string{"> 1234567", "|售"}},
		"back in the row above":      {"1234567890\x01", []string{"> |12345678", "90"}},
		"shorter by a row":           {"123456789\x15x", []string{"> x|"}},
		"several lines":              {"\x1b[200~a\nbc\nd\x1b[201~\x1b[A", []string{"> a", "b|c", "d"}},
		"a tab":                      {"\x1b[200~a\tb\x1b[201~", []string{"> a    b|"}},
		"a mark on a letter":         {"e\u0301x", []string{"> e\u0301x|"}},
		"a search":                   {"\x12al", []string{"(search 'a", "l'): print", "('alpha')|"}},
		"more than fits the screen":  {"\x1b[200~1\n2\n3\n4\n5\n6\n7\x1b[201~", []string{"4", "5", "6", "7|"}},
		"the beginning of that":      {"\x1b[200~1\n2\n3\n4\n5\n6\n7\x1b[201~" + strings.Repeat("\x1b[A", 6), []string{"> 1|", "2", "3", "4"}},
		"an empty screen":            {"abc\x0c", []string{"> abc|"}},
		"control characters vanish":  {"a\u009b31mb", []string{"> a31mb|"}},
		"what was there before goes": {"\x1b[A\x1b[B", []string{"> |"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newTTY(t, 10, 4)
			reads(open(t, y, lineedit.Options{}, "print('alpha')"))
			y.shows("> |")
			y.types(c.keys)
			y.shows(c.want...)
		})
	}
}

func TestAfterAnEntry(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	before := mode(t, y)
	got := reads(e)
	y.shows("> |")
	y.types("12\x01")
	y.shows("> |12")
	if mode(t, y) == before {
		t.Error("the terminal's mode is the usual one while an entry is read")
	}
	y.types("\r")
	returns(t, got, "12", nil)
	y.shows("> 12", "|")
	if mode(t, y) != before {
		t.Error("the terminal's mode is not what it was")
	}
	y.until("the end of marking what is pasted", func() (string, bool) { return y.face.String(), !y.face.pastes })
	y.types("typed ahead\r") // which the terminal echoes itself
	returns(t, reads(e), "typed ahead", nil)
	e.SetPrompt("last> ") // which cannot be taken for an earlier one
	got = reads(e)
	y.until("a prompt", func() (string, bool) { s := y.face.String(); return s, strings.HasSuffix(s, "\nlast> |") })
	y.types("never mind\x03")
	returns(t, got, "", lineedit.ErrInterrupt)
	y.until("^C behind what was typed", func() (string, bool) {
		s := y.face.String()
		return s, strings.HasSuffix(s, "last> never mind^C\n|")
	})
}

func mode(t *testing.T, y *tty) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(y.device.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func TestSeveralEntriesAtOnce(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 20, 10)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.shows("> |")
	y.types("one\rtwo\rthr")
	returns(t, got, "one", nil)
	returns(t, reads(e), "two", nil)
	got = reads(e)
	y.types("ee\r")
	returns(t, got, "three", nil)
}

func TestClose(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 20, 6)
	before := mode(t, y)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.shows("> |")
	y.types("abc")
	y.shows("> abc|")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	returns(t, got, "", lineedit.ErrClosed)
	if mode(t, y) != before {
		t.Error("the terminal's mode is not what it was")
	}
	returns(t, reads(e), "", lineedit.ErrClosed)
	if err := e.Close(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestATerminalThatIsClosed(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.shows("> |")
	if err := y.control.Close(); err != nil {
		t.Fatal(err)
	}
	returns(t, got, "", io.EOF)
	returns(t, reads(e), "", io.EOF)
}

func TestAnotherPromptMeanwhile(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.shows("> |")
	y.types("ab")
	y.shows("> ab|")
	e.SetPrompt("名? ")
	y.shows("名? ab|")
	y.types("\r")
	returns(t, got, "ab", nil)
}

func TestPassword(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 40, 6)
	e := open(t, y, lineedit.Options{}, "old")
	got := make(chan entered, 1)
	go func() {
		text, err := e.ReadPassword("password: ")
		got <- entered{text, err}
	}()
	y.shows("password: |")
	y.types("ge\x1b[A\x12heim\x7f\r")
	returns(t, got, "gehei", nil)
	y.shows("password:", "|")
}

// TestResized makes a terminal narrower and wider while an entry is read. The process hears of it by a signal, which this test sends itself.
func TestResized(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	reads(e)
	y.shows("> |")
	y.types("0123456789")
	y.shows("> 0123456789|")
	y.mu.Lock()
	y.face = newFace(10, 6) // as a terminal would lay it out anew
	y.face.write([]byte("> 01234567\r\n89"))
	y.mu.Unlock()
	y.resize(10, 6)
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	y.types("x")
	y.shows("> 01234567", "89x|")
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	names := []string{"alpha", "alphabet", "alpine", "名字"}
	complete := func(_ context.Context, text string, cursor int) ([]string, int) {
		start := cursor
		runes := []rune(text)
		for start > 0 && runes[start-1] != ' ' {
			start--
		}
		var matches []string
		for _, name := range names {
			if strings.HasPrefix(name, string(runes[start:cursor])) {
				matches = append(matches, name)
			}
		}
		return matches, start
	}
	y := newTTY(t, 30, 8)
	e := open(t, y, lineedit.Options{Complete: complete})
	got := reads(e)
	y.shows("> |")
	y.types("值 a\t")
	y.shows("> 值 alp|")
	y.types("\t")
	y.shows("> 值 alp", "alpha     alphabet  alpine", "> 值 alp|")
	y.types("i\t 名\t zzz\t")
	y.shows("> 值 alp", "alpha     alphabet  alpine", "> 值 alpine 名字 zzz|")
	y.types("\x15\tx\r") // nothing to complete is an indent
	returns(t, got, "    x", nil)
}

// TestCloseDuringACompletion does not wait for one that takes long.
func TestCloseDuringACompletion(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	y := newTTY(t, 30, 8)
	e := open(t, y, lineedit.Options{Complete: func(ctx context.Context, _ string, _ int) ([]string, int) {
		close(asked)
		<-ctx.Done()
		return nil, 0
	}})
	got := reads(e)
	y.shows("> |")
	y.types("a\t")
	<-asked
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	returns(t, got, "", lineedit.ErrClosed)
}

func TestDumb(t *testing.T) {
	t.Parallel()
	y := newTTY(t, 40, 4)
	e := open(t, y, lineedit.Options{Dumb: true}, "for i in x:\n    print(i)")
	got := reads(e)
	y.shows("> |")
	y.types("销售ab\x1b[D\x1b[D\x7f")
	y.shows("> 销|ab")
	y.types("\x1b[A")
	y.shows("> for i in x:⏎    print(i)|")
	y.types("\x1b[B\x1b[Fc\r")
	returns(t, got, "销abc", nil)
	y.shows("> 销abc", "|")
}

func TestHistoryFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(file, []byte("old\nprint(\"a\\n\")\r\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := lineedit.OpenHistory(file, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{"new", "new", "  ", "def f():\n\treturn '销售'"} {
		if err := h.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	want := "old\nprint(\"a\\n\")\r\n\nnew\ndef f():⏎\treturn '销售'\n"
	if text, _ := os.ReadFile(file); string(text) != want {
		t.Errorf("the file has %q, want %q", text, want)
	}
	again, err := lineedit.OpenHistory(file, 4)
	if err != nil {
		t.Fatal(err)
	}
	y := newTTY(t, 40, 8)
	e, err := lineedit.New(lineedit.Options{In: y.device, Out: y.device, History: again})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.SetPrompt("> ")
	for up, want := range []string{"def f():\n\treturn '销售'", "new", `print("a\n")`, "old", "old"} {
		prompt := fmt.Sprintf("%d> ", up)
		e.SetPrompt(prompt)
		got := reads(e)
		y.until("a prompt", func() (string, bool) { s := y.face.String(); return s, strings.HasSuffix(s, prompt+"|") })
		y.types(strings.Repeat("\x10", up+1) + "\r")
		returns(t, got, want, nil)
	}
}

// TestHistoryFileIsCut wants the file of a history that many have added to to keep its last entries.
func TestHistoryFileIsCut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(file, []byte(strings.Repeat("a\nb\n", 50)+"c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lineedit.OpenHistory(file, 3); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "a\nb\nc\n" {
		t.Errorf("the file has %q", text)
	}
}
