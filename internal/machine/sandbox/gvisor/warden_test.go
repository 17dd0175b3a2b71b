package gvisor

import (
	"strings"
	"testing"
)

// TestLongSocketsAreBoundAlone has containers be created one by one where binding the control socket opens a folder.
func TestLongSocketsAreBoundAlone(t *testing.T) {
	t.Parallel()
	var w warden
	short := "/" + strings.Repeat("a", longestAddress-1)
	created := w.creating(short + "a")
	if w.making.TryRLock() {
		t.Error("a container is created beside one with a long socket")
	}
	created()
	created = w.creating(short)
	if !w.making.TryRLock() {
		t.Fatal("one with a short socket holds up another")
	}
	w.making.RUnlock()
	if w.making.TryLock() {
		t.Error("one with a long socket is created beside another")
	}
	created()
}
