package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cove/internal/commands/lineedit"
	"cove/internal/commands/terminal"
	"cove/internal/python/kernel"
)

// historyLimit is how many entries the arrow keys go back.
const historyLimit = 5000

// editor reads entries from a person. One from a terminal may have several lines.
type editor interface {
	SetPrompt(string)
	ReadLine() (string, error)
	// Remember keeps an entry for the arrow keys.
	Remember(string) error
	Close() error
}

// plainEditor reads lines from a pipe, without prompts.
type plainEditor struct{ in *bufio.Reader }

func (plainEditor) SetPrompt(string)      {}
func (plainEditor) Remember(string) error { return nil }
func (plainEditor) Close() error          { return nil }
func (e plainEditor) ReadLine() (string, error) {
	line, err := e.in.ReadString('\n')
	if line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// newEditor edits what comes from a terminal. History is the file of what was entered before, or "".
func newEditor(p *Program, history string, set func(*lineedit.Options)) (editor, error) {
	if _, tty := terminal.Descriptor(p.In); !tty {
		return plainEditor{bufio.NewReader(p.In)}, nil
	}
	screen := p.Out
	if _, tty := terminal.Descriptor(p.Out); !tty {
		screen = p.Err // what is said goes to a file, and the prompts are not for it
	}
	o := lineedit.Options{In: p.In.(*os.File), Out: screen, Dumb: p.Getenv("TERM") == "dumb"}
	if set != nil {
		set(&o)
	}
	var err error
	if history != "" {
		err = os.MkdirAll(filepath.Dir(history), 0o755)
	}
	if err == nil {
		o.History, err = lineedit.OpenHistory(history, historyLimit)
	}
	if err != nil {
		return nil, err
	}
	e, err := lineedit.New(o)
	if err != nil {
		return nil, err
	}
	return terminalEditor{e, o.History}, nil
}

// elsewhere has the person's own editor change an entry, in a file of that name.
func (p *Program) elsewhere(name string) func(context.Context, string) (string, bool) {
	return func(ctx context.Context, text string) (string, bool) {
		changed, err := p.edited(ctx, text, name)
		if err != nil && ctx.Err() == nil {
			p.report(err)
		}
		return changed, err == nil
	}
}

// terminalEditor edits entries on a terminal.
type terminalEditor struct {
	*lineedit.Editor
	history *lineedit.History
}

func (e terminalEditor) Remember(entry string) error { return e.history.Add(entry) }

// errLeft means that a line was not waited for any longer.
var errLeft = errors.New("the input is closed")

// typist asks for one line at a time. A line that was not waited for, because the code that wanted it ended, is the next one's to take.
type typist struct {
	editor
	mu      sync.Mutex // held during a wait
	pending chan typed
	secret  bool // what is pending is a password
}

type typed struct {
	line string
	err  error
}

// line asks for a line with a prompt and waits until over.
func (t *typist) line(prompt string, secret bool, over <-chan struct{}) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		select {
		case <-over:
			return "", errLeft
		default:
		}
		if t.pending != nil {
			t.again(prompt)
		} else {
			t.ask(prompt, secret)
		}
		select {
		case got := <-t.pending:
			select {
			case <-over: // in the same moment
				t.pending <- got
				return "", errLeft
			default:
			}
			t.pending = nil
			if t.secret == secret {
				return got.line, got.err
			}
			if got.err != nil {
				return "", got.err
			}
			// A password that came too late is no code, nor the other way round.
		case <-over:
			return "", errLeft
		}
	}
}

func (t *typist) ask(prompt string, secret bool) {
	pending := make(chan typed, 1)
	t.pending, t.secret = pending, secret
	rl, tty := t.editor.(terminalEditor)
	t.SetPrompt(prompt)
	go func() {
		if secret && tty {
			text, err := rl.ReadPassword(prompt)
			pending <- typed{text, err}
			return
		}
		text, err := t.ReadLine()
		pending <- typed{text, err}
	}()
}

// again shows another prompt before a line that is being typed.
func (t *typist) again(prompt string) {
	if rl, ok := t.editor.(terminalEditor); ok && !t.secret {
		rl.SetPrompt(prompt)
	}
}

// completer is what a session may offer beyond running code.
type completer interface {
	Complete(ctx context.Context, name, code string, cursor int) (matches []string, start, end int, err error)
}

// complete returns what may stand in the place of what is before the cursor, from start on, in runes. There is nothing where it cannot be said in time.
func complete(ctx context.Context, s completer, text string, cursor int) (matches []string, start int) {
	found, start, _, err := s.Complete(ctx, kernel.Main, text, cursor)
	if err != nil || start < 0 || start > cursor {
		return nil, 0
	}
	have := string([]rune(text)[start:cursor])
	for _, m := range found {
		if m = oneLine(m); strings.HasPrefix(m, have) {
			matches = append(matches, m)
		}
	}
	return matches, start
}
