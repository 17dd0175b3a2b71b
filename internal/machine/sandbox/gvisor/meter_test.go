package gvisor_test

import (
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
)

// TestProcessorTime runs code that waits and code that works, by itself and in processes that have ended by the time that it is looked. The work is always the same, however long it takes.
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
	began := time.Now()
	waiting := used("sleep 1")
	if passed := time.Since(began); waiting > passed/2 {
		t.Errorf("waiting for %v used %v", passed, waiting)
	}
	for name, script := range map[string]string{
		"in one process": `i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done`,
		"in processes":   `n=0; while [ $n -lt 25 ]; do n=$((n+1)); (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done`,
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

// TestMemoryTaken has files in memory come and go, which the sandbox's own measurement follows.
func TestMemoryTaken(t *testing.T) {
	t.Parallel()
	sb, l := sandboxtest.Start(t, newEngine(t), sandbox.Spec{})
	weigher, ok := sb.(sandbox.Weigher)
	if !ok {
		t.Fatal("the sandbox does not know how much memory it takes")
	}
	const size = 100 << 20
	before := weigher.Memory()
	if code, out := sandboxtest.Shell(t, l, "head -c 100M /dev/zero | tr '\\0' x > /tmp/large"); code != 0 {
		t.Fatal(out)
	}
	if taken := weigher.Memory() - before; before <= 0 || taken < size*9/10 || taken > size*2 {
		t.Errorf("%d bytes with a file of %d, %d before", taken+before, size, before)
	}
	if code, out := sandboxtest.Shell(t, l, "rm /tmp/large"); code != 0 {
		t.Fatal(out)
	}
	waitFor(t, "the memory is given back", func() bool { return weigher.Memory() < before+size/2 })
	if err := sb.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := weigher.Memory(); left != 0 {
		t.Errorf("%d bytes after its end", left)
	}
}
