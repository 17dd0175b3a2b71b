package guest

import (
	"errors"
	"os"
	"testing"

	"cove/internal/machine/wire"
)

// Code may put a symlink that leads out where a moment ago there was a file. That is refused, and no fault of the guest.
func TestSymlinkThatLeadsOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", dir+"/swap"); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err = root.Open("swap"); err == nil {
		t.Fatal("it was opened")
	}
	if r := respond(err); r.Code != wire.FaultDenied {
		t.Errorf("%v is told as %s", err, r.Code)
	}
}

// TestNoListingHasWhatIsSent lists a folder while files come into it.
func TestNoListingHasWhatIsSent(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sent := &guest{workspace: "/w"}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for range 500 {
			part, end := sent.parts.begin("/w")
			if err := errors.Join(root.WriteFile(part, []byte("text"), 0o600), root.Rename(part, "whole")); err != nil {
				t.Error(err)
			}
			end()
		}
	}()
	for {
		l := lister{g: sent, root: root, looks: maxLooks}
		l.walk(".", 0)
		for _, f := range l.files {
			if f.Path != "whole" {
				t.Errorf("listed is %+v", f)
			}
		}
		select {
		case <-all:
			return
		default:
		}
	}
}
