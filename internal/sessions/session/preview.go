package session

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/wire"
	"cove/internal/machine/workspace"
)

//go:embed preview.py
var previewSource string

//go:embed encoding.py
var encodingSource string

//go:embed file_summary.py
var firstSource string

// previewTimeout bounds one look at a file, the start of a Python interpreter included. The program in the sandbox gives up a moment before.
const previewTimeout = 15 * time.Second

// firstTimeout bounds a first look at the files of a turn. The program gives up a moment before.
const firstTimeout = 14 * time.Second

// Preview says what is in a file of the workspace. Problems: file_not_found, is_folder, not_shown.
func (s *Live) Preview(ctx context.Context, look workspace.Look) (p workspace.Preview, err error) {
	question := map[string]any{"path": look.Path, "sheet": look.Sheet, "offset": look.Offset, "limit": look.Limit}
	seen, err := s.lookAtFiles(ctx, looking{behind: "\n\nmain()\n", question: question, timeout: previewTimeout, most: workspace.LargestPreview})
	refused := func(text, hint string, cause error) (workspace.Preview, error) {
		return workspace.Preview{}, problem.New(problem.NotShown, text).WithHint(hint).WithCause(cause)
	}
	const otherwise = "download it, or read it with code"
	switch {
	case err != nil:
		return p, err
	case seen.late:
		return refused("looking at the file took too long", otherwise, nil)
	case seen.full:
		return refused("the preview of the file is too large", "ask for fewer rows", nil)
	case seen.code != 0:
		return refused("looking at the file took too much time or memory", otherwise, errors.New(seen.complaint))
	}
	if p, err = workspace.ReadPreview(seen.said); err != nil {
		return refused("the file cannot be shown", otherwise, err)
	}
	if p.Error != "" {
		return refused("the file cannot be shown: "+p.Error, otherwise, nil)
	}
	return p, nil
}

// Tell says of files of the workspace what a model is told of them, in the order of the paths. It waits for other looks and looks for firstTimeout at most: what it
// does not come to is told as nothing. An error means that it could not look at all. Problems: not_shown.
func (s *Live) Tell(ctx context.Context, paths []string) ([]workspace.Told, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	what := looking{behind: firstSource + "\n\nmain_first()\n", question: paths, patience: firstTimeout, timeout: firstTimeout, most: len(paths) * workspace.LargestTold}
	seen, err := s.lookAtFiles(ctx, what)
	if err == nil && seen.wordless() { // as where the sandbox had no memory for it in that moment
		seen, err = s.lookAtFiles(ctx, what)
	}
	if err != nil {
		return nil, err
	}
	if seen.wordless() {
		return nil, problem.New(problem.NotShown, fmt.Sprintf("what looks at files ended with %d", seen.code)).WithCause(errors.New(seen.complaint))
	}
	lines := bytes.Split(seen.said, []byte("\n"))
	told := make([]workspace.Told, len(paths))
	for n := range told {
		if n < len(lines) {
			told[n] = workspace.ReadTold(lines[n])
		}
	}
	return told, nil
}

// looking is one run of the program that looks at files.
type looking struct {
	behind   string        // the program is preview.py, encoding.py and this
	question any           // its argument, as JSON
	patience time.Duration // how long it waits for other looks; 0: as long as the caller
	timeout  time.Duration
	most     int // bytes that it may say
}

// seen is what the program said.
type seen struct {
	said       []byte
	complaint  string
	code       int  // its exit code
	late, full bool // it was ended: it took too long, or said too much
}

// wordless says that the program broke before it said anything.
func (s seen) wordless() bool { return len(s.said) == 0 && !s.late && !s.full }

// lookAtFiles has a process of its own in the sandbox look at files, so that code may run meanwhile and none of its variables is touched; of a session there is one at a time.
func (s *Live) lookAtFiles(ctx context.Context, what looking) (out seen, err error) {
	over, err := s.share(ctx)
	if err != nil {
		return out, err
	}
	defer over()
	var impatient <-chan time.Time
	if what.patience > 0 {
		impatient = time.After(what.patience)
	}
	select {
	case s.previewing <- struct{}{}:
		defer func() { <-s.previewing }()
	case <-impatient:
		out.late = true
		return out, nil
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	l, sb, err := s.connected(ctx)
	if err != nil {
		return out, err
	}
	question, err := json.Marshal(what.question)
	if err != nil {
		return out, err
	}
	limited, cancel := context.WithTimeout(ctx, what.timeout)
	defer cancel()
	var said, complaint capped
	said.most, complaint.most = what.most, 64<<10
	// Isolated (-I), so that no file of the workspace is imported. Arrow and BLAS would reserve more memory than the process may have.
	out.code, err = l.Run(limited, wire.ProcessSpec{
		Args: []string{s.opts.Env.Interpreter(sb.Layout()), "-I", "-B", "-c", previewSource + encodingSource + what.behind, string(question)},
		Env: append(s.opts.Env.LoaderVariables(),
			"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "ARROW_DEFAULT_MEMORY_POOL=system", "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "OMP_THREAD_LIMIT=1"),
	}, &said, &complaint)
	out.said, out.complaint = said.b.Bytes(), string(bytes.ToValidUTF8(complaint.b.Bytes(), []byte("?")))
	out.late, out.full = limited.Err() != nil, errors.Is(err, errCapped)
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil && !out.late && !out.full:
		return out, explain(sb, err)
	}
	return out, nil
}

var errCapped = errors.New("a process has written too much")

// capped keeps what is written to it up to a length.
type capped struct {
	b    bytes.Buffer
	most int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.b.Len()+len(p) > c.most {
		return 0, errCapped
	}
	return c.b.Write(p)
}
