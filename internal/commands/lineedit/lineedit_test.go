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

	"cove/internal/commands/lineedit"
	"cove/internal/commands/terminal/terminaltest"
)

// open returns an editor on a terminal, with a prompt and a history of these entries.
func open(t *testing.T, y *terminaltest.TTY, o lineedit.Options, history ...string) *lineedit.Editor {
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
	o.In, o.Out, o.History = y.Device, y.Device, h
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
		"what begins like it":      {"pri\x1b[A\r", "print('alpha')", nil},
		"nothing begins like it":   {"new\x1b[A\x1b[B\r", "new", nil},
		"down to what was typed":   {"x\x1b[A\x1b[B\r", "x", nil},
		"all, whatever was typed":  {"pri\x10\r", "for i in x:\n    print(i)", nil},
		"undo what was typed":      {"abc\x1f\r", "", nil},
		"undo by the change":       {"abc\x1b[Dd\x7f\x7f\x1f\x1f\x1f!\r", "ab!c", nil},
		"nothing to undo any more": {"a\x1f\x1f\x1fb\r", "b", nil},
		"undo what was cut":        {"one two\x15\x1f\r", "one two", nil},
		"a block as a whole":       {"\x1b[A\r", "for i in x:\n    print(i)", nil},
		"within a block":           {"\x1b[A\x1b[A\x05#\r", "for i in x:#\n    print(i)", nil},
		"search":                   {"\x12PRIN\x12\r", "print('alpha')", nil},
		"search, then edit":        {"\x12x =\x05+1\r", "x = 1+1", nil},
		"search given up":          {"kept\x12zzz\x07\r", "kept", nil},
		"a paste is text":          {"a\x1b[200~b\r\nc\td\x03\x1b[Ae\n\x1b[201~f\r", "ab\nc\td[Ae\nf", nil},
		"Ctrl-X with other keys":   {"1\x18+\x18\x051\r", "1+1", nil},
		"Ctrl-Space":               {"1\x00+1\r", "1+1", nil},
		"Alt-Enter":                {"a\x1b\rb\r", "a\nb", nil},
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
				y := terminaltest.New(t, 60, 10)
				got := reads(open(t, y, lineedit.Options{}, old...))
				y.Shows("> |")
				for rest := c.keys; rest != ""; rest = rest[min(piece, len(rest)):] {
					y.Types(rest[:min(piece, len(rest))])
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
			y := terminaltest.New(t, 10, 4)
			reads(open(t, y, lineedit.Options{}, "print('alpha')"))
			y.Shows("> |")
			y.Types(c.keys)
			y.Shows(c.want...)
		})
	}
}

// TestEditElsewhere changes an entry in the person's own editor, which has the terminal as it was before.
func TestEditElsewhere(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 40, 6)
	fails := false
	edit := func(_ context.Context, text string) (string, bool) {
		mode, err := unix.IoctlGetTermios(int(y.Device.Fd()), unix.TCGETS)
		if err != nil || mode.Lflag&unix.ECHO == 0 || mode.Lflag&unix.ICANON == 0 {
			t.Errorf("the editor got a terminal with the mode %+v, %v", mode, err)
		}
		_, _ = io.WriteString(y.Device, "(an editor)\n")
		return text + " + 1\n", !fails
	}
	e := open(t, y, lineedit.Options{Edit: edit})
	got := reads(e)
	y.Shows("> |")
	y.Types("x\x18\x05")
	y.Shows("> x", "(an editor)", "> x + 1|")
	y.Types("\x1f")
	y.Shows("> x", "(an editor)", "> x|")
	fails = true
	y.Types("\x18y\x18\x05")
	y.Shows("> x", "(an editor)", "> xy", "(an editor)", "> xy|")
	y.Types("\r")
	returns(t, got, "xy", nil)
}

// TestOffer types the beginning of what was entered before, and takes over what is shown after it.
func TestOffer(t *testing.T) {
	t.Parallel()
	plain := func(text string) []string { return make([]string, len([]rune(text))) }
	for name, c := range map[string]struct{ keys, shown, want string }{
		"all of it":           {"imp\x1b[C", "> import pandas as pd|", "import pandas as pd"},
		"to the end":          {"imp\x05", "> import pandas as pd|", "import pandas as pd"},
		"a word":              {"imp\x1bf", "> import| pandas as pd", "import"},
		"two words":           {"imp\x1bf\x1bf", "> import pandas| as pd", "import pandas"},
		"left alone":          {"imp", "> imp|ort pandas as pd", "imp"},
		"taken back":          {"imp\x05\x1f", "> imp|ort pandas as pd", "imp"},
		"the newest":          {"x", "> x| = 2", "x"},
		"a line of a block":   {"for", "> for| 年 in x:", "for"},
		"not in the middle":   {"import p\x02\x1b[C", "> import p|andas as pd", "import p"},
		"nothing is like it":  {"import z\x1b[C", "> import z|", "import z"},
		"not of what is gone": {"imp\x15x =\x05!", "> x = 2!|", "x = 2!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := terminaltest.New(t, 40, 4)
			got := reads(open(t, y, lineedit.Options{Highlight: plain}, "import pandas as pd", "x = 1", "x = 2", "for 年 in x:\n    print(年)"))
			y.Shows("> |")
			y.Types(c.keys)
			y.Shows(c.shown)
			y.Types("\r")
			returns(t, got, c.want, nil)
			y.Shows("> "+c.want, "|") // what was offered is gone
		})
	}
}

func TestAfterAnEntry(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	before := mode(t, y)
	got := reads(e)
	y.Shows("> |")
	y.Types("12\x01")
	y.Shows("> |12")
	if mode(t, y) == before {
		t.Error("the terminal's mode is the usual one while an entry is read")
	}
	y.Types("\r")
	returns(t, got, "12", nil)
	y.Shows("> 12", "|")
	if mode(t, y) != before {
		t.Error("the terminal's mode is not what it was")
	}
	y.Until("the end of marking what is pasted", func() (string, bool) { return "", !y.MarksPastes() })
	y.Types("typed ahead\r") // which the terminal echoes itself
	returns(t, reads(e), "typed ahead", nil)
	e.SetPrompt("last> ") // which cannot be taken for an earlier one
	got = reads(e)
	y.UntilEnds("\nlast> |")
	y.Types("never mind\x03")
	returns(t, got, "", lineedit.ErrInterrupt)
	y.UntilEnds("last> never mind^C\n|")
}

func mode(t *testing.T, y *terminaltest.TTY) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(y.Device.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func TestSeveralEntriesAtOnce(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 20, 10)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.Shows("> |")
	y.Types("one\rtwo\rthr")
	returns(t, got, "one", nil)
	returns(t, reads(e), "two", nil)
	got = reads(e)
	y.Types("ee\r")
	returns(t, got, "three", nil)
}

func TestClose(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 20, 6)
	before := mode(t, y)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.Shows("> |")
	y.Types("abc")
	y.Shows("> abc|")
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
	y := terminaltest.New(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.Shows("> |")
	if err := y.Control.Close(); err != nil {
		t.Fatal(err)
	}
	returns(t, got, "", io.EOF)
	returns(t, reads(e), "", io.EOF)
}

func TestAnotherPromptMeanwhile(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	got := reads(e)
	y.Shows("> |")
	y.Types("ab")
	y.Shows("> ab|")
	e.SetPrompt("名? ")
	y.Shows("名? ab|")
	y.Types("\r")
	returns(t, got, "ab", nil)
}

func TestPassword(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 40, 6)
	e := open(t, y, lineedit.Options{}, "old")
	got := make(chan entered, 1)
	go func() {
		text, err := e.ReadPassword("password: ")
		got <- entered{text, err}
	}()
	y.Shows("password: |")
	y.Types("ge\x1b[A\x12heim\x7f\r")
	returns(t, got, "gehei", nil)
	y.Shows("password:", "|")
}

// TestResized makes a terminal narrower and wider while an entry is read. The process hears of it by a signal, which this test sends itself.
func TestResized(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 20, 6)
	e := open(t, y, lineedit.Options{})
	reads(e)
	y.Shows("> |")
	y.Types("0123456789")
	y.Shows("> 0123456789|")
	y.Lay(10, 6, "> 01234567\r\n89")
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	y.Types("x")
	y.Shows("> 01234567", "89x|")
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
	y := terminaltest.New(t, 30, 8)
	e := open(t, y, lineedit.Options{Complete: complete})
	got := reads(e)
	y.Shows("> |")
	y.Types("值 a\t")
	y.Shows("> 值 alp|")
	y.Types("\t")
	y.Shows("> 值 alp", "alpha     alphabet  alpine", "> 值 alp|")
	y.Types("i\t 名\t zzz\t")
	y.Shows("> 值 alp", "alpha     alphabet  alpine", "> 值 alpine 名字 zzz|")
	y.Types("\x15\tx\r") // nothing to complete is an indent
	returns(t, got, "    x", nil)
}

// TestCloseDuringACompletion does not wait for one that takes long.
func TestCloseDuringACompletion(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	y := terminaltest.New(t, 30, 8)
	e := open(t, y, lineedit.Options{Complete: func(ctx context.Context, _ string, _ int) ([]string, int) {
		close(asked)
		<-ctx.Done()
		return nil, 0
	}})
	got := reads(e)
	y.Shows("> |")
	y.Types("a\t")
	<-asked
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	returns(t, got, "", lineedit.ErrClosed)
}

func TestDumb(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 40, 4)
	e := open(t, y, lineedit.Options{Dumb: true}, "for i in x:\n    print(i)")
	got := reads(e)
	y.Shows("> |")
	y.Types("销售ab\x1b[D\x1b[D\x7f")
	y.Shows("> 销|ab")
	y.Types("\x10")
	y.Shows("> for i in x:⏎    print(i)|")
	y.Types("\x0e\x1b[Fc\r")
	returns(t, got, "销abc", nil)
	y.Shows("> 销abc", "|")
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
	y := terminaltest.New(t, 40, 8)
	e, err := lineedit.New(lineedit.Options{In: y.Device, Out: y.Device, History: again})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.SetPrompt("> ")
	for up, want := range []string{"def f():\n\treturn '销售'", "new", `print("a\n")`, "old", "old"} {
		prompt := fmt.Sprintf("%d> ", up)
		e.SetPrompt(prompt)
		got := reads(e)
		y.UntilEnds(prompt + "|")
		y.Types(strings.Repeat("\x10", up+1) + "\r")
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
