package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

// waiting is a place where a command waits, for its context or for what never comes.
type waiting struct {
	there chan struct{}
	in    *io.PipeReader
}

func (w *waiting) Read(p []byte) (int, error) {
	close(w.there)
	return w.in.Read(p)
}

// TestSignalsEndCommands wants every command to end with a signal, wherever it waits.
func TestSignalsEndCommands(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args    []string
		signals []os.Signal
		want    int
	}{
		"a database that does not answer": {[]string{"history"}, []os.Signal{os.Interrupt}, 130},
		"asked to end":                    {[]string{"key", "ls"}, []os.Signal{syscall.SIGTERM}, 143},
		"a backup":                        {[]string{"backup", "$DIR/all.tar.gz"}, []os.Signal{os.Interrupt}, 130},
		"shown":                           {[]string{"show"}, []os.Signal{os.Interrupt}, 130},
		"run again":                       {[]string{"rerun"}, []os.Signal{os.Interrupt}, 130},
		"gone on with":                    {[]string{"chat", "--continue", "--model", "ollama/a"}, []os.Signal{os.Interrupt}, 130},
		"a pipe that says nothing":        {[]string{"restore", "-"}, []os.Signal{os.Interrupt, os.Interrupt}, 130},
		"between questions":               {[]string{"chat", "--no-history", "--model", "ollama/a"}, []os.Signal{syscall.SIGTERM}, 143},
		"between inputs":                  {[]string{"repl"}, []os.Signal{syscall.SIGHUP}, 129},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent, never := io.Pipe()
			defer never.Close()
			w := &waiting{there: make(chan struct{}), in: silent}
			r := run(t, &scripted{}, func(_ string, p *cli.Program) {
				signals := make(chan os.Signal)
				p.Signals, p.In = signals, w
				p.NewModel = func(choose.Choice) (model.Model, error) { return &model.Replay{}, nil }
				scratch := p.Records
				p.Records = func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
					if o.Scratch {
						return scratch(ctx, c, o)
					}
					close(w.there)
					<-ctx.Done()
					return nil, ctx.Err()
				}
				p.Restore = func(_ context.Context, _ config.Config, r io.Reader) error {
					_, err := io.ReadAll(r)
					return err
				}
				go func() {
					<-w.there
					for _, s := range test.signals {
						signals <- s
					}
				}()
			}, test.args...)
			if r.code != test.want || r.err != "" && name != "between inputs" && name != "between questions" {
				t.Errorf("exit code %d, want %d; stderr: %s", r.code, test.want, r.err)
			}
		})
	}
}

// awaitedText is a text that is written at any time; said is closed when it has these words.
type awaitedText struct {
	words string
	said  chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (b *awaitedText) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := strings.Contains(b.text.String(), b.words)
	n, err := b.text.Write(p)
	if !had && strings.Contains(b.text.String(), b.words) {
		close(b.said)
	}
	return n, err
}

func (b *awaitedText) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestCodeThatDoesNotStop wants Ctrl-C on code that ignores it to say what happens, and that another one ends it at once.
func TestCodeThatDoesNotStop(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"run": {"run", "-c", "x"}, "repl": {"repl"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := &awaitedText{words: "Ctrl-C again ends it at once", said: make(chan struct{})}
			s := &stubborn{scripted: &scripted{}, begun: make(chan struct{})}
			r := run(t, s.scripted, func(_ string, p *cli.Program) {
				signals := make(chan os.Signal)
				p.Signals, p.Err, p.In = signals, said, strings.NewReader("x\n")
				p.Open = func(context.Context, config.Config, io.Writer) (hub.Live, error) { return s, nil }
				go func() {
					<-s.begun
					signals <- os.Interrupt
					defer s.over()
					select {
					case <-said.said:
					case <-time.After(testneeds.Patience):
					}
				}()
			}, args...)
			if text := said.String(); !strings.Contains(text, "cove: the code does not stop: its Python is ended in a few seconds and its variables are lost; Ctrl-C again ends it at once") {
				t.Errorf("exit code %d: %s", r.code, text)
			}
		})
	}
}

// stubborn is a session whose code goes on when it is interrupted, until over is called.
type stubborn struct {
	*scripted
	begun chan struct{}
	ended chan struct{}
}

func (s *stubborn) over() { close(s.ended) }

func (s *stubborn) Execute(context.Context, kernel.Request) iter.Seq2[kernel.Event, error] {
	s.ended = make(chan struct{})
	return func(yield func(kernel.Event, error) bool) {
		close(s.begun)
		<-s.ended
		yield(kernel.Done{Outcome: kernel.OutcomeInterrupted, ExitCode: 1}, nil)
	}
}

// TestWholeFiles wants a file to be there whole or not at all, and what is no file to stay what it is.
func TestWholeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	say := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, werr := io.WriteString(w, text)
			return errors.Join(werr, err)
		}
	}
	if n, err := cli.WriteWhole(file, 0o600, say("all", nil)); n != 3 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	broken := errors.New("broken off")
	if _, err := cli.WriteWhole(file, 0o600, say("a part", broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "all" {
		t.Errorf("a part of a file is in the place of the whole: %q", text)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- string(text)
	}()
	if _, err := cli.WriteWhole(pipe, 0o600, say("through", nil)); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("%q came through the pipe", got)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "no", "file")} {
		_, err := cli.WriteWhole(bad, 0o600, say("x", nil))
		if err == nil || !strings.HasPrefix(err.Error(), "cannot write "+bad+": ") || strings.Contains(err.Error(), "partial") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".cove*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
