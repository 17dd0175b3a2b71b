package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
)

// The sentry reads and writes the files of a checkpoint by itself, as they are. Where checkpoints are sealed, these files are in a folder in memory for that moment,
// and what is on the disk is sealed. A sandbox that is being restored still reads from them when their names are gone.

const (
	statePrefix = "cove-state-"
	// stateGrace is how old a folder of states is at least that Sweep removes: its maker locks it sooner.
	stateGrace = 10 * time.Second
)

// Sealing is how checkpoints are sealed.
type Sealing struct {
	Sealer *seal.Sealer // nil: they are not
	// Memory is a folder in memory, for the files of a checkpoint as the sentry has them.
	Memory string
}

// sealing returns how checkpoints are sealed.
func (e *Engine) sealing() (Sealing, error) {
	if e.opts.Sealing == nil {
		return Sealing{}, nil
	}
	return e.opts.Sealing()
}

// plainState is the files of a checkpoint as the sentry has them.
type plainState struct {
	dir  string
	lock *os.File
}

func noMemory(memory string, err error) error {
	return problem.New(problem.TempUnusable, "the state of a sandbox cannot be put into memory, below "+memory).WithCause(err).
		WithHint("sandboxes whose state is encrypted are saved and restored by way of memory: make room there, or name another folder in memory with COVE_ENCRYPTION_MEMORY")
}

func newPlainState(memory string) (*plainState, error) {
	dir, err := os.MkdirTemp(memory, statePrefix)
	if err != nil {
		return nil, noMemory(memory, err)
	}
	f, err := os.Open(dir)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, noMemory(memory, errors.Join(err, os.RemoveAll(dir)))
	}
	p := &plainState{dir, f}
	return p, nil
}

func (p *plainState) remove() {
	_ = os.RemoveAll(p.dir)
	_ = p.lock.Close()
}

// sweepStates removes what killed processes have left in memory.
func sweepStates(memory string) {
	left, _ := filepath.Glob(filepath.Join(memory, statePrefix+"*"))
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < stateGrace {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue // another user's
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

// sealInto seals the files of a state into those of a draft.
func (p *plainState) sealInto(ctx context.Context, d *draft, sealer *seal.Sealer) error {
	for _, to := range d.files {
		if err := p.sealFile(ctx, to, sealer); err != nil {
			return asFull(err)
		}
	}
	return nil
}

func (p *plainState) sealFile(ctx context.Context, to *os.File, sealer *seal.Sealer) error {
	path := filepath.Join(p.dir, filepath.Base(to.Name()))
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	w, err := sealer.NewWriter(to)
	if err == nil {
		_, err = io.Copy(w, interruptible{ctx, from})
	}
	if err == nil {
		err = w.Close()
	}
	return errors.Join(err, os.Remove(path)) // memory is scarcer than time
}

// openFrom makes a state of the sealed files of a checkpoint.
func (p *plainState) openFrom(ctx context.Context, image string, sealer *seal.Sealer) error {
	for _, name := range imageFiles() {
		from, err := sealer.OpenFile(filepath.Join(image, name), true)
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		to, err := os.OpenFile(filepath.Join(p.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = io.Copy(to, interruptible{ctx, from})
			err = errors.Join(err, to.Close())
		}
		if err = errors.Join(err, from.Close()); err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
	}
	return nil
}

// StateFiles names the files of a checkpoint that have the state of a sandbox.
func StateFiles() []string { return imageFiles() }

// isSealed says whether the checkpoint in a folder is sealed.
func isSealed(image string) (bool, error) {
	return seal.IsSealed(filepath.Join(image, imageFiles()[0]))
}

// imageOf returns the folder with the files of a checkpoint as the sentry reads them. The caller says when that has opened them.
func (s *running) imageOf(ctx context.Context, dir string) (image string, done func(), err error) {
	sealed, err := isSealed(dir)
	if err != nil || !sealed {
		return dir, func() {}, err
	}
	sealing, err := s.engine.sealing()
	if err != nil {
		return "", nil, err
	}
	if sealing.Sealer == nil {
		return "", nil, problem.New(problem.EncryptionKeyMissing, "the sandbox was saved encrypted, and no encryption key is set").
			WithHint("set COVE_ENCRYPTION_KEY_FILE to the file with the key")
	}
	plain, err := newPlainState(sealing.Memory)
	if err != nil {
		return "", nil, err
	}
	if err := plain.openFrom(ctx, dir, sealing.Sealer); err != nil {
		plain.remove()
		return "", nil, err
	}
	return plain.dir, plain.remove, nil
}

// writeImage has the sentry write itself to the files of a draft, in the folder dir; by way of memory where they are sealed.
func (s *running) writeImage(ctx context.Context, dir string, d *draft) error {
	sealing, err := s.engine.sealing()
	if err != nil {
		return err
	}
	if sealing.Sealer == nil || s.spec.Common {
		return s.ask(ctx, "Checkpoint", ImageArgs{ID: s.ID(), Image: dir}, &struct{}{})
	}
	plain, err := newPlainState(sealing.Memory)
	if err != nil {
		return err
	}
	defer plain.remove()
	inMemory, err := outline(plain.dir, needsOf(s.sentry, s.instance, s.loaded))
	if err != nil {
		return noMemory(sealing.Memory, err)
	}
	err = s.ask(ctx, "Checkpoint", ImageArgs{ID: s.ID(), Image: plain.dir}, &struct{}{})
	if err = errors.Join(err, inMemory.finish()); err != nil {
		return err
	}
	return plain.sealInto(ctx, d, sealing.Sealer)
}

// interruptible reads until its context ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
