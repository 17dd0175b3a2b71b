package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cove/internal/commands/lineedit"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
)

// decider asks a person whether code may run.
type decider struct {
	p      *Program
	typist *typist
	view   *narrator
}

// decide shows the code, where it was not shown while it came, and asks until there is an answer.
func (d *decider) decide(ctx context.Context, a loop.Approval) (loop.Decision, error) {
	d.view.complete(a.Code)
	defer d.p.live.Hold()()
	if a.Why != "" {
		d.view.note(a.Why)
	}
	for {
		line, err := d.typist.line(lang.Sprintf("Run this? [y]es, [n]o and why, [e]dit: "), false, ctx.Done())
		switch {
		case errors.Is(err, lineedit.ErrInterrupt), errors.Is(err, io.EOF), errors.Is(err, errLeft):
			return loop.Decision{}, errStopped()
		case err != nil:
			return loop.Decision{}, err
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			return loop.Decision{Run: true}, nil
		case "n", "no":
			return loop.Decision{Note: strings.TrimSpace(rest)}, nil
		case "e", "edit":
			code, err := d.p.edited(ctx, a.Code, "code.py")
			if err != nil {
				d.p.report(err)
				continue
			}
			return loop.Decision{Run: true, Code: code}, nil
		}
	}
}

// edited has the person's own editor change a text.
func (p *Program) edited(ctx context.Context, text, name string) (string, error) {
	words := strings.Fields(p.Getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(p.Getenv("EDITOR"))
	}
	if len(words) == 0 {
		return "", problem.New(problem.Usage, "no editor is set").WithHint("set EDITOR, for example with `export EDITOR=nano`")
	}
	dir, err := os.MkdirTemp("", "cove-edit-")
	if err != nil {
		return "", problem.New(problem.TempUnusable, "cannot keep the text in a temporary file").WithCause(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", problem.New(problem.TempUnusable, "cannot keep the text in a temporary file").WithCause(err)
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, unwrapped(p.Out), unwrapped(p.Err)
	defer p.live.Hold()()
	if err := cmd.Run(); err != nil {
		return "", problem.New(problem.Usage, "the editor "+oneLine(words[0])+" failed").WithCause(err).WithHint("nothing was changed; set EDITOR to one that is installed")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", unreadable(file, err)
	}
	defer f.Close()
	return readBounded(f, "the text")
}
