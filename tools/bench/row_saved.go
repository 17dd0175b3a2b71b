package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// openMarked opens a session with variables and imports, and an empty folder to save it to.
func openMarked(ctx context.Context, s Pausing) (Live, string, error) {
	dir, err := s.Folder()
	if err != nil {
		return nil, "", err
	}
	l, err := s.Open(ctx)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	if _, err = timed(ctx, time.Now(), l, marked()); err != nil {
		free(ctx, l, &err)
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return l, dir, nil
}

func pauseRow() Row {
	return Row{
		ID: "pause", Title: "pause and resume", Rounds: 15, Quick: 4,
		Measures: []Measure{
			{ID: "pause", Title: "pause", Unit: "ms", Detail: "a session with numpy, pandas and matplotlib imported, until it is files and no process is left."},
			{ID: "resume", Title: "resume", Unit: "ms", Detail: "from those files until an execution has read a variable of before."},
			{ID: "save", Title: "save, going on", Unit: "ms", Detail: "the same session; what a server does 10 seconds after a session's last use."},
			{ID: "paused-size", Title: "size of a paused session on disk", Unit: "MB", Detail: "blocks allocated, without what all sessions share."},
		},
		Able: as[Pausing](cannotPause),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			p := s.(Pausing)
			l, dir, err := openMarked(ctx, p)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			spare, err := p.Folder()
			if err != nil {
				free(ctx, l, &err)
				return err
			}
			begun := time.Now()
			err = p.Save(ctx, l, spare)
			rec.took(2, time.Since(begun))
			if err = errors.Join(err, os.RemoveAll(spare)); err != nil {
				free(ctx, l, &err)
				return fmt.Errorf("save: %w", err)
			}
			begun = time.Now()
			err = p.Pause(ctx, l, dir)
			took := time.Since(begun)
			if err != nil {
				free(ctx, l, &err)
				return fmt.Errorf("pause: %w", err)
			}
			begun = time.Now()
			again, err := p.Resume(ctx, dir)
			if err != nil {
				return fmt.Errorf("resume: %w", err)
			}
			defer free(ctx, again, &err)
			d, err := timed(ctx, begun, again, remembered())
			if err != nil {
				return fmt.Errorf("resume: %w", err)
			}
			rec.took(0, took)
			rec.took(1, d)
			rec.Value(3, megabytes(allocated(dir)))
			return nil
		},
	}
}

func forkRow() Row {
	return Row{
		ID: "fork", Title: "fork", Rounds: 15, Quick: 4,
		Measures: []Measure{{ID: "fork", Title: "fork", Unit: "ms",
			Detail: "a live session with numpy, pandas and matplotlib imported, until an execution in the copy has read a variable; both go on."}},
		Able: as[Pausing](cannotPause),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			p := s.(Pausing)
			l, dir, err := openMarked(ctx, p)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			defer free(ctx, l, &err)
			begun := time.Now()
			twin, err := p.Fork(ctx, l, dir)
			if err != nil {
				return err
			}
			defer free(ctx, twin, &err)
			d, err := timed(ctx, begun, twin, remembered())
			if err != nil {
				return fmt.Errorf("in the copy: %w", err)
			}
			if _, err := timed(ctx, time.Now(), twin, Task{Setup: "x = 0", Expr: "x", Want: "0"}); err != nil {
				return fmt.Errorf("in the copy: %w", err)
			}
			if _, err := timed(ctx, time.Now(), l, remembered()); err != nil {
				return fmt.Errorf("in the original: %w", err)
			}
			rec.took(0, d)
			return nil
		},
	}
}
