package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chzyer/readline"

	"cove/internal/config"
)

// editor reads lines from a person.
type editor interface {
	SetPrompt(string)
	Readline() (string, error)
	Close() error
}

// plainEditor reads lines from a pipe, without prompts.
type plainEditor struct{ in *bufio.Reader }

func (plainEditor) SetPrompt(string) {}
func (plainEditor) Close() error     { return nil }
func (e plainEditor) Readline() (string, error) {
	line, err := e.in.ReadString('\n')
	if line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

func newEditor(p *Program, cfg config.Config, b *bench) (editor, error) {
	if _, tty := terminal(p.In); !tty {
		return plainEditor{bufio.NewReader(p.In)}, nil
	}
	rc := &readline.Config{HistoryFile: filepath.Join(cfg.Folders.Data, "history"), HistorySearchFold: true, HistoryLimit: 5000}
	if s, ok := b.Session.(completer); ok {
		rc.AutoComplete = completion{s}
	}
	if err := os.MkdirAll(cfg.Folders.Data, 0o755); err != nil {
		return nil, err
	}
	return newTerminalEditor(rc, readline.NewCancelableStdin(p.In))
}

// terminalEditor edits lines on a terminal.
type terminalEditor struct {
	*readline.Instance
	keys io.Closer
}

func newTerminalEditor(rc *readline.Config, keys io.ReadCloser) (terminalEditor, error) {
	keys = textKeys{keys}
	rc.Stdin = keys
	rl, err := readline.NewEx(rc)
	return terminalEditor{rl, keys}, err
}

// Close also ends a wait for a key. The instance waits for its end and does not bring it about: it may be at passing on a key that was typed
// ahead, which nobody takes any more.
func (e terminalEditor) Close() error {
	closed := make(chan struct{})
	go func() {
		for {
			select {
			case <-closed:
				return
			default:
				e.Terminal.ReadRune()
			}
		}
	}()
	defer close(closed)
	return errors.Join(e.keys.Close(), e.Instance.Close())
}

// textKeys are a terminal's keys without the zero of Ctrl-Space, which the editor takes for the end of the input.
type textKeys struct{ io.ReadCloser }

func (k textKeys) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		n, err = k.ReadCloser.Read(p)
		n = len(bytes.ReplaceAll(p[:n], []byte{0}, nil))
	}
	return n, err
}

// errLeft means that a line was not waited for any longer.
var errLeft = errors.New("nobody waits for a line any more")

// typist asks for one line at a time. A line that was not waited for, because the code that wanted it ended, is the next one's to take.
type typist struct {
	editor
	mu      sync.Mutex // held while somebody waits
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
			pending <- typed{string(text), err}
			return
		}
		text, err := t.Readline()
		pending <- typed{text, err}
	}()
}

// again shows another prompt before a line that is being typed.
func (t *typist) again(prompt string) {
	if rl, ok := t.editor.(terminalEditor); ok && !t.secret {
		rl.SetPrompt(prompt)
		rl.Refresh()
	}
}

// completer is what a session may offer beyond running code.
type completer interface {
	Complete(ctx context.Context, code string, cursor int) (matches []string, start, end int, err error)
}

type completion struct{ session completer }

// Do is readline's question for completions: what may follow line[:pos], and how much of it is there already.
func (c completion) Do(line []rune, pos int) ([][]rune, int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	matches, start, _, err := c.session.Complete(ctx, string(line), pos)
	if err != nil || start < 0 || start > pos {
		return nil, 0
	}
	have := string(line[start:pos])
	var out [][]rune
	for _, m := range matches {
		if rest, ok := strings.CutPrefix(m, have); ok && rest != "" {
			out = append(out, []rune(oneLine(rest)))
		}
	}
	return out, utf8.RuneCountInString(have)
}
