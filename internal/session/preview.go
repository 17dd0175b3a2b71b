package session

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"time"

	"cove/internal/link"
	"cove/internal/problem"
	"cove/internal/pyenv"
	"cove/internal/wire"
	"cove/internal/workspace"
)

//go:embed preview.py
var previewSource string

//go:embed first.py
var firstSource string

// previewTimeout bounds one look at a file, the start of a Python interpreter included. The program in the sandbox gives up a moment before.
const previewTimeout = 15 * time.Second

// firstTimeout bounds a first look at the files of a turn. The program gives up a moment before.
const firstTimeout = 14 * time.Second

// Preview says what is in a file of the workspace. A process of its own in the sandbox reads the file, so that code may run meanwhile and none of its variables is
// touched; one file is looked at at a time. Problems: file_not_found, is_folder, not_shown.
func (s *Live) Preview(ctx context.Context, look workspace.Look) (p workspace.Preview, err error) {
	over, err := s.share(ctx)
	if err != nil {
		return p, err
	}
	defer over()
	select {
	case s.previewing <- struct{}{}:
		defer func() { <-s.previewing }()
	case <-ctx.Done():
		return p, context.Cause(ctx)
	}
	l, sb, err := s.connected(ctx)
	if err != nil {
		return p, err
	}
	p, err = preview(ctx, l, sb.Layout().Path(pyenv.MountPoint)+"/bin/python", look)
	return p, explain(sb, err)
}

// Tell says of files of the workspace what a model is told of them, in the order of the paths. It looks as Preview does, for firstTimeout at most: what it does not
// come to is told as nothing. An error means that it could not look at all.
func (s *Live) Tell(ctx context.Context, paths []string) (told []workspace.Told, err error) {
	over, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	l, sb, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	question, err := json.Marshal(paths)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	var said, complaint capped
	said.most, complaint.most = len(paths)*workspace.LargestTold, 64<<10
	_, err = l.Run(limited, looking(sb.Layout().Path(pyenv.MountPoint)+"/bin/python", firstSource+"\n\nmain_first()\n", question), &said, &complaint)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && limited.Err() == nil && !errors.Is(err, errCapped) {
		return nil, explain(sb, err)
	}
	lines := bytes.Split(said.b.Bytes(), []byte("\n"))
	told = make([]workspace.Told, len(paths))
	for n := range told {
		if n < len(lines) {
			told[n] = workspace.ReadTold(lines[n])
		}
	}
	return told, nil
}

// looking is the process that looks at files: preview.py, and what is behind it.
func looking(python, behind string, question []byte) wire.ProcessSpec {
	// Isolated (-I), so that no file of the workspace is imported. Arrow and BLAS would reserve more memory than the process may have.
	return wire.ProcessSpec{Args: []string{python, "-I", "-B", "-c", previewSource + behind, string(question)}, Env: []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "ARROW_DEFAULT_MEMORY_POOL=system", "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "OMP_THREAD_LIMIT=1",
	}}
}

func preview(ctx context.Context, l *link.Link, python string, look workspace.Look) (workspace.Preview, error) {
	question, err := json.Marshal(map[string]any{"path": look.Path, "sheet": look.Sheet, "offset": look.Offset, "limit": look.Limit})
	if err != nil {
		return workspace.Preview{}, err
	}
	limited, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	var said, complaint capped
	said.most, complaint.most = workspace.LargestPreview, 64<<10
	code, err := l.Run(limited, looking(python, "\n\nmain()\n", question), &said, &complaint)
	switch {
	case ctx.Err() != nil:
		return workspace.Preview{}, context.Cause(ctx)
	case limited.Err() != nil:
		return workspace.Preview{}, problem.New(problem.NotShown, "looking at the file took too long").WithHint("download it, or read it with code")
	case errors.Is(err, errCapped):
		return workspace.Preview{}, problem.New(problem.NotShown, "the preview of the file is too large").WithHint("ask for fewer rows")
	case err != nil:
		return workspace.Preview{}, err
	case code != 0:
		return workspace.Preview{}, problem.New(problem.NotShown, "looking at the file took too much time or memory").WithHint("download it, or read it with code").
			WithCause(errors.New(string(bytes.ToValidUTF8(complaint.b.Bytes(), []byte("?")))))
	}
	p, err := workspace.ReadPreview(said.b.Bytes())
	if err != nil {
		return p, problem.New(problem.NotShown, "the file cannot be shown").WithHint("download it, or read it with code").WithCause(err)
	}
	if p.Error != "" {
		return p, problem.New(problem.NotShown, "the file cannot be shown: "+p.Error).WithHint("download it, or read it with code")
	}
	return p, nil
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
