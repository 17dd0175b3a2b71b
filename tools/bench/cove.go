package bench

import (
	"context"
	"fmt"
	"iter"
	"os"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// Cove is what bench needs of cove; all its sessions have the standard environment.
type Cove interface {
	// Open restores a session from the template, with no sandbox prepared ahead.
	Open(ctx context.Context) (CoveSession, error)
	// Fill returns when the pool is full.
	Fill(ctx context.Context) error
	// Claim takes a session from the pool, and starts one in another way when the pool is empty.
	Claim(ctx context.Context) (CoveSession, error)
	// Install makes a package known as r says, opens a session and, with have, installs it there.
	Install(ctx context.Context, distribution string, r Readiness, have bool) (CoveSession, error)
	// Resume starts a session from the folder that Save wrote, which is kept.
	Resume(ctx context.Context, dir string) (CoveSession, error)
}

// CoveSession is one session of cove's.
type CoveSession interface {
	Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error]
	// Save saves the session to the empty folder dir. With keep it goes on; without, it is gone.
	Save(ctx context.Context, dir string, keep bool) (sandbox.Checkpoint, error)
	Close(ctx context.Context) error
}

const coveID = "cove"

// coveSubject is cove, driven in this process.
type coveSubject struct {
	cove   Cove
	folder func() (string, error)
}

// NewCove returns cove as a subject. Folder makes empty folders to save sessions to.
func NewCove(c Cove, folder func() (string, error)) Subject {
	return &coveSubject{cove: c, folder: folder}
}

func (s *coveSubject) About() About {
	return About{ID: coveID, Title: "cove", Note: "isolated by gVisor: a kernel of its own, no network"}
}

func (s *coveSubject) Start(context.Context) error { return nil }
func (s *coveSubject) Stop(context.Context) error  { return nil }

func (s *coveSubject) Cold(ctx context.Context) (Live, error)  { return live(s.cove.Open(ctx)) }
func (s *coveSubject) Open(ctx context.Context) (Live, error)  { return live(s.cove.Open(ctx)) }
func (s *coveSubject) Claim(ctx context.Context) (Live, error) { return live(s.cove.Claim(ctx)) }
func (s *coveSubject) Join(ctx context.Context) (Live, error)  { return live(s.cove.Claim(ctx)) }
func (s *coveSubject) Refill(ctx context.Context) error        { return s.cove.Fill(ctx) }
func (s *coveSubject) Footprint() int64                        { return 150e6 }
func (s *coveSubject) Folder() (string, error)                 { return s.folder() }

func (s *coveSubject) Pause(ctx context.Context, l Live, dir string) error {
	_, err := l.(coveLive).session.Save(ctx, dir, false)
	return err
}

func (s *coveSubject) Save(ctx context.Context, l Live, dir string) error {
	_, err := l.(coveLive).session.Save(ctx, dir, true)
	return err
}

func (s *coveSubject) Resume(ctx context.Context, dir string) (Live, error) {
	return live(s.cove.Resume(ctx, dir))
}

func (s *coveSubject) Fork(ctx context.Context, l Live, dir string) (Live, error) {
	if _, err := l.(coveLive).session.Save(ctx, dir, true); err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	return live(s.cove.Resume(ctx, dir))
}

func live(s CoveSession, err error) (Live, error) {
	if err != nil {
		return nil, err
	}
	return coveLive{s}, nil
}

func (s *coveSubject) Having(ctx context.Context) (Live, error) {
	return live(s.cove.Install(ctx, wantedPackage, Installed, true))
}

func (s *coveSubject) Lacking(ctx context.Context, r Readiness) (Live, func(context.Context) error, error) {
	l, err := live(s.cove.Install(ctx, wantedPackage, r, false))
	return l, nil, err
}

type coveLive struct{ session CoveSession }

func (l coveLive) Run(ctx context.Context, t Task) (out Output, err error) {
	for event, err := range l.session.Execute(ctx, kernel.Request{Code: t.Cell()}) {
		if err != nil {
			return out, err
		}
		switch e := event.(type) {
		case kernel.Stream:
			out.Bytes += int64(len(e.Data))
		case kernel.Result:
			out.Text, _ = e.Data["text/plain"].(string)
		case kernel.Error:
			return out, fmt.Errorf("%s: %s", e.Name, e.Value)
		case kernel.Done:
			if e.Outcome != kernel.OutcomeOK {
				return out, fmt.Errorf("ended with %s %s", e.Outcome, e.Message)
			}
		}
	}
	return out, nil
}

func (l coveLive) Close(ctx context.Context) error { return l.session.Close(ctx) }

// scratch makes an empty folder that goes with the run at the latest.
func (w *workshop) scratch() (string, error) {
	dir, err := os.MkdirTemp(w.run, "save-")
	if err != nil {
		return "", fmt.Errorf("make a folder to save to: %w", err)
	}
	return dir, nil
}
