package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
)

// oneShot is a subject that starts a new program for every execution.
type oneShot struct {
	id, title, note string
	shop            *workshop
	argv            func(code string) []string
	env             []string                        // besides the run's own
	check           func(ctx context.Context) error // says whether it can run here; nil means that it can
	version         func(ctx context.Context) string

	found string
}

func (s *oneShot) About() About {
	return About{ID: s.id, Title: s.title, Note: s.note, Version: s.found}
}

func (s *oneShot) Start(ctx context.Context) error {
	if s.check != nil {
		if err := s.check(ctx); err != nil {
			return err
		}
	}
	if s.version != nil {
		s.found = s.version(ctx)
	}
	return nil
}

func (s *oneShot) Stop(context.Context) error { return nil }

func (s *oneShot) Cold(context.Context) (Live, error) {
	return &program{shop: s.shop, argv: s.argv, env: s.env}, nil
}

// bare is a oneShot without a pool, for the row of pools: it starts so fast that a pool would be beside the point.
type bare struct{ *oneShot }

func (s bare) Refill(context.Context) error            { return nil }
func (s bare) Claim(ctx context.Context) (Live, error) { return s.Cold(ctx) }

// program runs each task as one process.
type program struct {
	shop *workshop
	argv func(code string) []string
	env  []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	waited chan struct{}
	stderr bytes.Buffer
}

// Run returns as soon as the result's line is there, or at the end when the output itself is wanted.
func (p *program) Run(ctx context.Context, t Task) (Output, error) {
	if err := p.finish(ctx); err != nil {
		return Output{}, err
	}
	argv := p.argv(t.Program())
	cmd := p.shop.command(argv[0], argv[1:]...)
	cmd.Env = append(cmd.Env, p.env...)
	p.stderr.Reset()
	cmd.Stderr = &p.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Output{}, err
	}
	if err := cmd.Start(); err != nil {
		return Output{}, err
	}
	stop := context.AfterFunc(ctx, func() { killGroup(cmd) })
	defer stop()
	var out Output
	reader := bufio.NewReaderSize(stdout, 64<<10)
	if t.Expr == "" {
		out.Bytes, err = io.Copy(io.Discard, reader)
	} else {
		out.Text, err = reader.ReadString('\n')
	}
	p.reap(cmd, reader)
	if err != nil {
		_ = p.finish(ctx)
		return out, fmt.Errorf("%s ended without a result: %s", filepath.Base(argv[0]), lastWords(p.stderr.String()))
	}
	return out, nil
}

// reap waits for cmd in the background.
func (p *program) reap(cmd *exec.Cmd, rest io.Reader) {
	waited := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.waited = cmd, waited
	p.mu.Unlock()
	go func() {
		defer close(waited)
		_, _ = io.Copy(io.Discard, rest)
		_ = cmd.Wait() // its result was seen already
	}()
}

// finish waits until the last process has ended.
func (p *program) finish(ctx context.Context) error {
	p.mu.Lock()
	cmd, waited := p.cmd, p.waited
	p.mu.Unlock()
	if waited == nil {
		return nil
	}
	select {
	case <-waited:
		return nil
	case <-ctx.Done():
		killGroup(cmd)
		<-waited
		return errors.New("did not end in time")
	}
}

func (p *program) Close(ctx context.Context) error { return p.finish(ctx) }
