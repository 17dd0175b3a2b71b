package session

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
)

//go:embed memory_map.py
var mold string

// moldFile is where memory_map.py leaves the memory in the workspace, in which it starts: in so many files with a number after that.
const moldFile = ".memory"

// moldTimeout bounds one run of memory_map.py, which reads some hundred megabytes; loaded machines take tens of seconds.
const moldTimeout = 3 * time.Minute

// mostParts is how many files the memory of an interpreter may come in.
const mostParts = 1000

// ShareMemory replaces the memory of the session's interpreter by the same memory from files, which every session that begins with this one's checkpoint has in common. What
// rehearse writes to, which is to do what most sessions do at first, stays memory of each session's own: a page that is written to for the first time costs more than one that is loaded. What the
// interpreter has now is never looked at for garbage again. It is for a session that only exists to be saved, and whose sandbox is a sandbox.MemorySharer. After an error the session is of no
// further use.
func (s *Live) ShareMemory(ctx context.Context, rehearse func(context.Context) error) error {
	t, err := s.main(ctx)
	if err != nil {
		return err
	}
	sharer, ok := t.sandbox.(sandbox.MemorySharer)
	if !ok {
		return problem.New(problem.EngineCannotSave, "the engine "+s.opts.Engine.Name()+" cannot share memory between sandboxes")
	}
	if err := t.kernel.BeginMold(ctx); err != nil {
		return explain(t.sandbox, err)
	}
	said, err := s.runMold(ctx, t, "save", moldFile)
	if err != nil {
		return explain(t.sandbox, err)
	}
	parts, err := strconv.Atoi(said)
	if err != nil || parts < 1 || parts > mostParts {
		return fmt.Errorf("share the interpreter's memory: it came in %.20q parts", said)
	}
	paths := make([]string, parts)
	for i := range paths {
		name := moldFile + "." + strconv.Itoa(i)
		if paths[i], err = sharer.ShareMemory(func(w io.Writer) error {
			_, err := t.link.ReadFile(ctx, name, 0, w)
			return errors.Join(err, t.link.Remove(ctx, name, false))
		}); err != nil {
			return explain(t.sandbox, err)
		}
	}
	if _, err := s.runMold(ctx, t, "map", paths...); err != nil {
		return explain(t.sandbox, err)
	}
	if err := rehearse(ctx); err != nil {
		return err
	}
	if _, err := s.runMold(ctx, t, "keep", paths...); err != nil {
		return explain(t.sandbox, err)
	}
	return explain(t.sandbox, t.kernel.EndMold(ctx))
}

// runMold runs memory_map.py beside the interpreter, as the same user, and returns what it says.
func (s *Live) runMold(ctx context.Context, t *run, deed string, paths ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, moldTimeout)
	defer cancel()
	var out, complaint bytes.Buffer
	args := append([]string{s.opts.Env.Interpreter(t.sandbox.Layout()), "-I", "-S", "-c", mold, deed, strconv.Itoa(t.kernel.PID())}, paths...)
	code, err := t.link.Run(ctx, wire.ProcessSpec{Args: args, Env: s.opts.Env.LoaderVariables()}, &out, &complaint)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d: %s", code, bytes.TrimSpace(complaint.Bytes()))
	}
	if err != nil {
		return "", fmt.Errorf("share the interpreter's memory: %s: %w", deed, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// memoryIntact returns a problem with code "memory_changed" when a sandbox has memory from a file that somebody has changed: what it says is not passed on.
func memoryIntact(sb sandbox.Sandbox) error {
	if s, ok := sb.(sandbox.MemorySharer); ok {
		return s.MemoryIntact()
	}
	return nil
}
