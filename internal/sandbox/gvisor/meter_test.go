package gvisor_test

import (
	"testing"
	"time"

	"cove/internal/sandbox"
	"cove/internal/sandbox/sandboxtest"
)

// TestProcessorTime runs code that works and code that waits for as long, and code whose processes have ended by the time that it is looked.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{})
	counts, ok := sb.(sandbox.Meter)
	if !ok {
		t.Fatal("the sandbox does not measure its processor time")
	}
	used := func(script string) time.Duration {
		before, err := counts.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if code, out := sandboxtest.Shell(t, l, script); code != 0 {
			t.Fatalf("%s: %s", script, out)
		}
		after, err := counts.CPU()
		if err != nil || after < before {
			t.Fatalf("%v after %v: %v", after, before, err)
		}
		return after - before
	}
	waiting := used("sleep 1")
	for name, script := range map[string]string{
		"in one process": `timeout 1 sh -c 'while :; do :; done'; true`,
		"in processes":   `timeout 1 sh -c 'while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done'; true`,
	} {
		if working := used(script); working < 2*waiting {
			t.Errorf("working %s used %v, waiting %v", name, working, waiting)
		}
	}
	if err := sb.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := counts.CPU(); err == nil {
		t.Errorf("after its end it used %v", d)
	}
}
