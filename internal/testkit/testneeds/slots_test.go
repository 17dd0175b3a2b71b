package testneeds

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlots has tests of one process and of another wait for the slots of a machine that has two.
func TestSlots(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(slotsVariable, "2")
	t.Setenv(innerVariable, "")
	own, other := &slots{held: map[string]*os.File{}}, &slots{held: map[string]*os.File{}}
	var taken *os.File
	t.Run("two", func(t *testing.T) {
		if !own.take(t) || own.take(t) {
			t.Error("a test takes no slot, or two")
		}
		t.Run("part", func(t *testing.T) {
			if own.take(t) {
				t.Error("a part takes a second slot")
			}
		})
		if !other.take(t) {
			t.Error("another process gets no slot")
		}
		var err error
		if taken, err = lockSlot(0); taken != nil || err != nil {
			t.Errorf("there is a third slot: %v", err)
		}
	})
	for range 2 {
		file, err := lockSlot(0)
		if file == nil || err != nil {
			t.Fatalf("a test that has ended has its slot: %v", err)
		}
		defer func() { _ = file.Close() }()
	}
	if os.Getenv(innerVariable) == "" {
		t.Error("the programs of a test that has a slot do not learn it")
	}
	for _, wrong := range []string{"0", "-1", "two"} {
		t.Setenv(slotsVariable, wrong)
		if _, err := lockSlot(0); err == nil {
			t.Errorf("%q is a number of slots", wrong)
		}
	}
}

// TestGoroutinesTakeOneSlot has goroutines of one test take a slot at once.
func TestGoroutinesTakeOneSlot(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(slotsVariable, "2")
	t.Setenv(innerVariable, "")
	s := &slots{held: map[string]*os.File{}}
	t.Run("part", func(t *testing.T) {
		var all sync.WaitGroup
		var taken atomic.Int32
		for range 10 {
			all.Go(func() {
				if s.take(t) {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		if taken.Load() != 1 {
			t.Errorf("they take %d slots", taken.Load())
		}
	})
	for range 2 {
		file, err := lockSlot(0)
		if file == nil || err != nil {
			t.Fatalf("a slot was not given back: %v", err)
		}
		defer func() { _ = file.Close() }()
	}
}

// TestTakeSlotWaits has a test wait until another gives its slot back.
func TestTakeSlotWaits(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(slotsVariable, "1")
	t.Setenv(innerVariable, "")
	synctest.Test(t, func(t *testing.T) {
		held, err := lockSlot(0)
		if err != nil || held == nil {
			t.Fatalf("%v", err)
		}
		var given atomic.Bool
		time.AfterFunc(time.Minute, func() {
			given.Store(true)
			_ = held.Close()
		})
		s := &slots{held: map[string]*os.File{}}
		if !s.take(t) || !given.Load() {
			t.Error("it does not wait for the slot")
		}
	})
}
