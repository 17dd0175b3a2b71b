package session_test

import (
	"context"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// watched is an engine whose last sandbox the test knows.
type watched struct {
	sandbox.Engine
	last sandbox.Sandbox
}

func (w *watched) Start(ctx context.Context, spec sandbox.Spec) (sb sandbox.Sandbox, err error) {
	w.last, err = w.Engine.Start(ctx, spec)
	return w.last, err
}

// TestProcessorTime loses a sandbox: what it has used stays used.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := &watched{Engine: newGVisor(t)}
	s := open(t, e, sandbox.Limits{})
	used := func(code string) time.Duration {
		t.Helper()
		before, ok := s.CPU()
		if !ok {
			t.Fatal("it is not known")
		}
		execute(t, s, cell{req: kernel.Request{Code: code}})
		after, ok := s.CPU()
		if !ok || after < before {
			t.Fatalf("%v after %v, %t", after, before, ok)
		}
		return after - before
	}
	waiting := used("import time\ntime.sleep(1)")
	if working := used("end = time.process_time() + 1\nwhile time.process_time() < end: pass"); working < 2*waiting {
		t.Errorf("working used %v, waiting %v", working, waiting)
	}
	before, _ := s.CPU()
	if err := e.last.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.CPU(); ok {
		t.Error("it is known without a sandbox")
	}
	execute(t, s, cell{req: kernel.Request{Code: "1"}})
	if after, ok := s.CPU(); !ok || after <= before {
		t.Errorf("%v before the loss, %v after it, %t", before, after, ok)
	}
}

// TestUnknownProcessorTime is about an engine that does not measure.
func TestUnknownProcessorTime(t *testing.T) {
	t.Parallel()
	s := open(t, newLocal(t), sandbox.Limits{})
	if d, ok := s.CPU(); ok {
		t.Errorf("it is known to be %v", d)
	}
}
