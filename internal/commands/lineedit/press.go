package lineedit

import (
	"context"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"cove/internal/commands/terminal"
)

// press does what a key means. done says that the entry is over. The caller holds the lock.
func (e *Editor) press(k key) (text string, done bool, err error) {
	if e.entry.search != nil && e.pressInSearch(k) {
		return "", false, nil
	}
	if k.name == "" {
		e.entry.remember(true)
		e.entry.insert(k.text)
		return "", false, nil
	}
	switch k.name {
	case "enter":
		if more, err := e.goesOn(); more || err != nil {
			return "", err != nil, err
		}
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
	case "editor":
		return "", false, e.elsewhere()
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
	if e.accept(name) {
		return true
	}
	t.typing = false
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
			e.step(-1, true)
		}
	case "down":
		if !t.line(true) {
			e.step(1, true)
		}
	case "previous":
		e.step(-1, false)
	case "next":
		e.step(1, false)
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
	if name == "undo" {
		t.undo()
		return
	}
	t.remember(false)
	switch name {
	case "backspace":
		t.cut(t.outdent(), t.pos)
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

func (e *Editor) step(by int, stem bool) {
	if !e.entry.secret {
		e.entry.step(e.o.History, by, stem)
	}
}

// offer is what a key that goes right puts after the entry; it is shown, faintly, where there are colours.
func (e *Editor) offer() []rune {
	if e.o.Highlight == nil || e.o.Dumb || e.entry.search != nil {
		return nil
	}
	return e.entry.offer(e.o.History)
}

// accept takes over what is offered, or a word of it, where a key goes right beyond the end of the entry.
func (e *Editor) accept(name string) bool {
	if name != "right" && name != "end" && name != "word-right" {
		return false
	}
	offer := e.offer()
	if len(offer) == 0 {
		return false
	}
	if name == "word-right" {
		offer = offer[:(&entry{text: offer}).wordForth()]
	}
	e.entry.remember(false)
	e.entry.insert(offer)
	return true
}

// suspend stops the program, as Ctrl-Z does, until its shell has it go on.
func (e *Editor) suspend() {
	e.leave()
	_ = unix.Kill(0, unix.SIGTSTP) // it returns when the program goes on, or at once where it cannot be stopped
	e.comeBack()
}

// leave gives the terminal back in the middle of an entry.
func (e *Editor) leave() {
	e.screen.finish(e.prompt, e.entry.shown(), "")
	e.restore()
}

// comeBack takes the terminal over again.
func (e *Editor) comeBack() {
	if normal, err := unix.IoctlGetTermios(e.fd, unix.TCGETS); err == nil {
		e.normal = normal
		_ = unix.IoctlSetTermios(e.fd, unix.TCSETS, rawMode(*normal))
	}
	e.screen.begin()
}

// elsewhere has the person's own editor change the entry. The lock is not held meanwhile.
func (e *Editor) elsewhere() error {
	t := e.entry
	if t.secret || e.o.Edit == nil || e.o.Dumb {
		return nil
	}
	e.leave()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.current = cancel
	e.mu.Unlock()
	changed, ok := e.o.Edit(ctx, string(t.text))
	e.mu.Lock()
	e.current = nil
	if e.closed {
		return ErrClosed
	}
	e.comeBack()
	if ok {
		t.remember(false)
		t.cut(0, len(t.text))
		t.insert([]rune(strings.TrimRight(changed, "\n")))
	}
	return nil
}

// goesOn begins another line of an entry that is not complete. The lock is not held while that is found out.
func (e *Editor) goesOn() (bool, error) {
	t := e.entry
	if e.o.More == nil || e.o.Dumb || t.secret || t.pos != len(t.text) {
		return false, nil
	}
	e.draw()
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	e.current = cancel
	text := string(t.text)
	e.mu.Unlock()
	indent, more := e.o.More(ctx, text)
	e.mu.Lock()
	e.current = nil
	if e.closed {
		return false, ErrClosed
	}
	if more {
		t.insert([]rune("\n" + indent))
	}
	return more, nil
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
		t.insert([]rune(strings.Repeat(" ", terminal.TabWidth)))
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
		t.remember(false)
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
		t.stem = ""
		t.recall(e.o.History, at)
	}
	return true
}
