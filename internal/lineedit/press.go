package lineedit

import (
	"context"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// press does what a key means. done says that the entry is over. The caller holds the lock.
func (e *Editor) press(k key) (text string, done bool, err error) {
	if e.entry.search != nil && e.pressInSearch(k) {
		return "", false, nil
	}
	if k.name == "" {
		e.entry.insert(k.text)
		return "", false, nil
	}
	switch k.name {
	case "enter":
		return string(e.entry.text), true, nil
	case "interrupt":
		return "", true, ErrInterrupt
	case "ctrl-d":
		if len(e.entry.text) == 0 {
			return "", true, io.EOF
		}
		e.entry.cut(e.entry.pos, e.entry.forth())
	case "tab":
		return "", false, e.complete()
	case "suspend":
		e.suspend()
	case "clear":
		e.screen.clear()
	default:
		if !e.move(k.name) {
			e.change(k.name)
		}
	}
	return "", false, nil
}

// move does what a key means that changes what is seen, and not the text.
func (e *Editor) move(name string) bool {
	t := e.entry
	switch name {
	case "left":
		t.pos = t.back()
	case "right":
		t.pos = t.forth()
	case "home":
		t.pos = t.lineStart()
	case "end":
		t.pos = t.lineEnd()
	case "word-left":
		t.pos = t.wordBack()
	case "word-right":
		t.pos = t.wordForth()
	case "up":
		if !t.line(false) {
			e.recall(t.at - 1)
		}
	case "down":
		if !t.line(true) {
			e.recall(t.at + 1)
		}
	case "previous":
		e.recall(t.at - 1)
	case "next":
		e.recall(t.at + 1)
	case "search-back", "search-forward":
		if !t.secret {
			t.search = &search{forward: name == "search-forward", before: string(t.text), pos: t.pos}
		}
	default:
		return false
	}
	return true
}

// change does what a key means that changes the text.
func (e *Editor) change(name string) {
	t := e.entry
	switch name {
	case "backspace":
		t.cut(t.back(), t.pos)
	case "delete":
		t.cut(t.pos, t.forth())
	case "newline":
		t.insert([]rune{'\n'})
	case "kill-start":
		e.killed = t.cut(t.lineStart(), t.pos)
	case "kill-end":
		e.killed = t.cut(t.pos, t.lineEnd())
	case "kill-word":
		e.killed = t.cut(t.wordBack(), t.pos)
	case "kill-word-right":
		e.killed = t.cut(t.pos, t.wordForth())
	case "yank":
		t.insert(e.killed)
	case "transpose":
		t.transpose()
	}
}

func (e *Editor) recall(at int) {
	if !e.entry.secret {
		e.entry.recall(e.o.History, at)
	}
}

// suspend stops the program, as Ctrl-Z does, until its shell has it go on.
func (e *Editor) suspend() {
	e.screen.finish(e.prompt, e.entry.shown(), "")
	e.restore()
	_ = unix.Kill(0, unix.SIGTSTP) // it returns when the program goes on, or at once where it cannot be stopped
	if normal, err := unix.IoctlGetTermios(e.fd, unix.TCGETS); err == nil {
		e.normal = normal
		_ = unix.IoctlSetTermios(e.fd, unix.TCSETS, rawMode(*normal))
	}
	e.screen.begin()
}

// listed is how many matches are listed.
const listed = 100

// complete puts in what all completions have in common, and lists them where that is nothing. The lock is not held while they are looked for, so
// that Close does not wait for them.
func (e *Editor) complete() error {
	t := e.entry
	if t.secret || e.o.Complete == nil {
		return nil
	}
	if strings.TrimSpace(string(t.text[t.lineStart():t.pos])) == "" {
		t.insert([]rune(strings.Repeat(" ", tabWidth)))
		return nil
	}
	e.draw()
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	e.current = cancel
	text, pos := string(t.text), t.pos
	e.mu.Unlock()
	matches, start := e.o.Complete(ctx, text, pos)
	e.mu.Lock()
	e.current = nil
	if e.closed {
		return ErrClosed
	}
	if start < 0 || start > pos || len(matches) == 0 {
		return nil
	}
	have := string(t.text[start:pos])
	if common := []rune(commonPrefix(matches)); strings.HasPrefix(string(common), have) && string(common) != have {
		t.cut(start, pos)
		t.insert(common)
		return nil
	}
	if len(matches) > 1 && !e.o.Dumb {
		e.screen.list(matches[:min(listed, len(matches))], len(matches)-listed)
	}
	return nil
}

func commonPrefix(texts []string) string {
	common := []rune(texts[0])
	for _, text := range texts[1:] {
		other := []rune(text)
		n := 0
		for n < min(len(common), len(other)) && common[n] == other[n] {
			n++
		}
		common = common[:n]
	}
	return string(common)
}

// search is a search of the history that goes on while its words are typed.
type search struct {
	query   []rune
	forward bool
	failed  bool
	before  string // the entry as it was
	pos     int
}

func (s *search) label() string {
	label := "search"
	if s.failed {
		label = "no match"
	}
	if s.forward {
		label += " forward"
	}
	return label
}

// pressInSearch does what a key means in a search. It returns false for one that ends the search and then has its usual meaning.
func (e *Editor) pressInSearch(k key) bool {
	t, s := e.entry, e.entry.search
	from := t.at
	switch k.name {
	case "":
		if strings.ContainsRune(string(k.text), '\n') {
			t.search = nil
			return false
		}
		s.query = append(s.query, k.text...)
	case "backspace":
		s.query = s.query[:max(0, len(s.query)-1)]
	case "search-back", "search-forward":
		s.forward = k.name == "search-forward"
		from--
		if s.forward {
			from += 2
		}
	case "cancel", "interrupt":
		t.search = nil
		t.text, t.pos, t.at = []rune(s.before), s.pos, e.o.History.len()
		return true
	default:
		t.search = nil
		return false
	}
	at, ok := e.o.History.find(string(s.query), from, s.forward)
	s.failed = !ok && len(s.query) > 0
	if ok {
		t.recall(e.o.History, at)
	}
	return true
}
